/**
 * What a screen shows, and what a key does to it: the state machine behind `ConsoleScreen`.
 *
 * Every function is one synchronous step that returns the text to write. It decides nothing about time, locks or
 * fibers; its owner calls one function at a time and writes the returned text before the next call.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as AnswerKey from "./AnswerKey.js"
import * as Overlay from "./Overlay.js"
import * as DialogLine from "./DialogLine.js"
import * as Display from "./Display.js"
import * as TypingPace from "./TypingPace.js"
import * as LineEditor from "./LineEditor.js"
import * as LiveRegion from "./LiveRegion.js"
import * as ScreenLayout from "./ScreenLayout.js"
import { Closed, Left, Typed, type Footer, type Live, type Open, type Reply, type Status } from "./ScreenLayout.js"
import type * as Pager from "./Pager.js"
import * as Paste from "./Paste.js"
import * as PromptLine from "./PromptLine.js"

export interface Options {
  readonly color: boolean
  readonly prompt?: string | undefined
  readonly history?: ReadonlyArray<string> | undefined
  readonly columns: number
  readonly rows: number
  readonly onLine: (text: string) => void
  /** A line for the program that was typed in a dialog, which stays open. */
  readonly onCommand: (text: string) => void
  readonly onInterrupt: () => void
  readonly onEscape: () => void
  /** One of {@link shortcuts}. */
  readonly onShortcut: (key: string) => void
  readonly onEndOfInput: () => void
  /** Whether the terminal can be left for a while. Default: false. */
  readonly leaves?: boolean | undefined
}

/** Keys that mean the same everywhere, with Ctrl: they open and fold what was shown in brief. */
const shortcuts: ReadonlySet<string> = new Set(["o", "t"])

const isEnd = ({ key }: UserInput): boolean => key.ctrl && key.name === "d"

/** Milliseconds after which a single key may answer. */
const alone = 500
/** Milliseconds after an answer in which another one may be meant for the question that comes next. */
const hastily = 3_000

/** Where keys go: to a dialog, or to the prompt. */
type Target = Open | "draft"
/** A key that waits keeps its time, so that pauses count as they were. */
type Typing = readonly [input: UserInput, at: number]

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The state of a screen on which nothing has been typed. */
export const make = (options: Options) => {
  const style = Display.style(options.color)
  const usual = options.prompt ?? "> "
  let prompt = usual
  let size = { columns: options.columns, rows: options.rows }
  const region = LiveRegion.make(size)
  const draft = PromptLine.make(options.history)
  let dialog: Open | undefined
  let status: Status | undefined
  let live: Live | undefined
  let footer: Footer | undefined
  const cover = Overlay.make<Target>(options.leaves === true)
  const { door } = cover
  /** To be written as it is, before anything that is printed. */
  let direct = ""
  let [frame, printings] = [0, 0]
  /** Nobody has come to the open question for a while: nothing turns in front of it. */
  let isResting = false
  let isCommand: (line: string) => boolean = () => false
  const answerKey = AnswerKey.make()
  /** Where the rest of an answered word is being typed, and what stood there before it. */
  let word: { readonly at: Target; readonly before: LineEditor.LineEditor } | undefined
  /** The keys of the question that was answered last, and until when one of them may be meant for the next question. */
  let hasty: { readonly keys: AnswerKey.Keys; readonly until: number } | undefined
  /** The keys of which one began the draft where a question was expected: alone it is an early answer, and no draft. */
  let early: AnswerKey.Keys | undefined
  const paste = Paste.make<Target>()
  const pace = TypingPace.make()
  /** Between two questions of one dialog, keys wait here for the next question, or else for the draft. */
  let between = false
  let held: Array<Typing> = []
  /** When escape last had an effect in a dialog: pressed once too often it must not have another. */
  let escaped = -Infinity
  /** `leaving`: somebody has left by a question that stays open. */
  let [ended, closed, leaving] = [false, false, false]

  // ---- drawing

  const view = (now: number): LiveRegion.View => ScreenLayout.withLive(bottom(now), live, size)
  /** The status, and the draft with what stands below it, or a dialog. */
  const bottom = (now: number): LiveRegion.View => {
    const { columns } = size
    const rows: Array<string> =
      status === undefined ? [] : [ScreenLayout.statusRow(style, status, isResting ? undefined : frame, now, columns)]
    if (dialog !== undefined)
      return ScreenLayout.dialogView(style, dialog, size, {
        rows,
        now,
        usual,
        draft: isEarly() ? "" : draft.shown(),
        isDue: isDue()
      })
    const view = draft.below(rows, prompt, style, size)
    return footer === undefined || draft.takesEscape() ? view : ScreenLayout.withFooter(style, view, footer, size)
  }
  const isDue = (): boolean => answerKey.due() !== undefined || word !== undefined
  const paint = (now: number): string => (closed || cover.isShut() ? "" : region.paint(view(now)))
  const drawPager = (isAnew = false): string =>
    cover.draw(dialog && `${dialog.title ?? "A question"} waits for you · q goes back to it`, isAnew)
  const print = (text: string, now: number): string => {
    if (text !== "") printings++
    if (cover.isShut()) {
      cover.hold(text)
      return ""
    }
    if (text === "") return paint(now)
    return closed ? Display.keepStyles(text).replaceAll("\n", "\r\n") : region.print(text, view(now))
  }
  const lines = (text: string): string => `${(cover.isUnfinished() ?? region.unfinished()) ? "\n" : ""}${text}\n`
  const drawBelow = (now: number): string => region.resize(size.columns, size.rows, view(now))
  /** An open question could not be seen before, and a key that was meant for something else must not answer it. */
  const seen = (now: number): void => {
    if (dialog !== undefined && Number.isFinite(dialog.seenAt)) dialog.seenAt = now
  }
  const uncover = (now: number): string => {
    const { out, text } = cover.remove()
    seen(now)
    return out + drawBelow(now) + print(text, now)
  }
  /** A shell has had the terminal, and has written below what is drawn. */
  const restart = (now: number): string => {
    if (cover.isShut()) return drawPager(true)
    seen(now)
    return region.restart(view(now))
  }

  // ---- dialogs

  const settle = (current: Open, reply: Reply): string => {
    dialog = undefined
    isResting = false
    answerKey.forget()
    Deferred.unsafeDone(current.reply, Effect.succeed(reply))
    return ScreenLayout.record(style, current, reply, size.columns)
  }
  /** Whether a key that comes now counts for the dialog. */
  const listening = (current: Open, now: number, gap: number): boolean => {
    if (now - current.seenAt >= TypingPace.guard && gap >= TypingPace.guard) current.blind = false
    if (current.question.followUp === true) return true
    if (!(now - current.seenAt >= TypingPace.guard) || (current.run && gap < TypingPace.guard)) return false
    current.run = false
    return true
  }

  /** Answers a question. */
  const give = (current: Open, text: string, shown: string, now: number): string => {
    const { keys = AnswerKey.noKeys } = current.question
    if (keys.size > 0) hasty = { keys, until: now + hastily }
    return settle(current, Typed({ text, shown }))
  }
  /** Whether all that stands in the draft is an answer that came before its question. */
  const isEarly = (): boolean => early !== undefined && AnswerKey.isAnswer(draft.text(), early)
  const dropEarly = (): void => {
    if (isEarly()) draft.clear()
    early = undefined
  }

  // ---- keys: each function returns text to print for good

  const pressDialog = (current: Open, typed: UserInput, part: AnswerKey.Part, now: number): string => {
    const { question } = current
    const input = DialogLine.keyOf(question, typed)
    if (isEnd(input) && current.editor.text === "") {
      leaving = question.back !== true && question.staysOpen === true
      // The program hears first that they leave, unless it would close what stays open.
      if (question.back !== true && !leaving) options.onEndOfInput()
      return settle(current, Closed({ by: question.back === true ? "escape" : "end of input" }))
    }
    // The last of several keys that were typed on without a look at this question.
    if (current.blind && input.key.name === "return") return ""
    return DialogLine.match(DialogLine.press(current, input), {
      Edited: ({ editor }) => {
        // Somebody who has words to send, or has hardly seen the question, does not answer it with their first letter.
        // Nor does a letter that is left of a word when the others were deleted.
        const isFirst = current.editor.text === "" && LineEditor.isTyped(input)
        current.early = isFirst && now - current.seenAt < alone
        const isMeant = isFirst && part === "none" && draft.isEmpty() && !current.early
        current.editor = editor
        answerKey.typed(editor.text, isMeant ? (question.keys ?? AnswerKey.noKeys) : AnswerKey.noKeys, now)
        return ""
      },
      Submitted: ({ shown, text }) => {
        if (!DialogLine.takesCommands(question) || !isCommand(text)) return give(current, text, shown, now)
        unTypes(current)
        options.onCommand(text)
        return lines(style.bold(prompt) + Display.revealWords(text))
      },
      Picked: ({ shown, text }) => give(current, text, shown, now),
      Unused: () => ""
    })
  }
  /** Takes back what was typed as an answer. False where nothing was. */
  const unTypes = (current: Open): boolean => {
    if (!DialogLine.clear(current)) return false
    answerKey.forget()
    return true
  }
  /** Takes one step back: out of a text, out of a question behind a question, or out of what is going on. */
  const escape = (heard: Open | undefined, isSecond: boolean, now: number): string => {
    if (heard === undefined) {
      if (!isSecond || !draft.clear()) options.onEscape()
      return ""
    }
    const isBack = heard.question.back === true
    if (isBack || unTypes(heard)) {
      escaped = now
      return isBack ? settle(heard, Closed({ by: "escape" })) : ""
    }
    if (now - escaped < TypingPace.twice) return ""
    options.onEscape()
    return settle(heard, Closed({ by: "interrupt" }))
  }
  const pressDraft = (input: UserInput): string => {
    const { name, ctrl, meta } = input.key
    if (ctrl && name === "d" && draft.isEmpty() && !draft.isSearching()) {
      // While a dialog is on the screen, a Ctrl-D that came too early must not end the input.
      if (dialog === undefined) options.onEndOfInput()
      return ""
    }
    const submits = (name === "return" || name === "enter") && !meta
    // An early Enter was meant for an earlier dialog, unless a draft had been begun before: the typed text stays
    // visible.
    if (submits && dialog !== undefined && !dialog.composing) return ""
    return PromptLine.match(draft.press(input), {
      Edited: () => "",
      Choices: ({ choices }) =>
        choices.length === 0 ? "" : lines(style.dim(choices.map((choice) => Display.oneLine(choice)).join("  "))),
      Submitted: ({ shown, text }) => {
        if (text.trim() === "") return ""
        options.onLine(text)
        return lines(ScreenLayout.sent(style, prompt, shown))
      }
    })
  }
  /** An answer that came before its question answers nothing, and is sent to nobody while something works. */
  const pressPrompt = (input: UserInput, now: number): string => {
    const isEnter = input.key.name === "return" || input.key.name === "enter"
    if (isEnter && status !== undefined && isEarly()) {
      dropEarly()
      return ""
    }
    const isFirst = draft.isEmpty()
    const printed = pressDraft(input)
    if (isFirst) early = dialog?.question.keys ?? (hasty !== undefined && now < hasty.until ? hasty.keys : undefined)
    return printed
  }
  const shortcut = (key: string): string => {
    options.onShortcut(key)
    return ""
  }
  /** Text goes first: nobody leaves by a key that was to clear it. */
  const interrupt = (heard: Open | undefined): string => {
    held = []
    if (dialog !== undefined && unTypes(dialog)) return ""
    if (heard === undefined && draft.clear()) return ""
    options.onInterrupt()
    return dialog === undefined ? "" : settle(dialog, Closed({ by: "interrupt" }))
  }
  /** Shows folded pastes in full, where there are any. */
  const unfolds = (heard: Open | undefined): boolean =>
    heard === undefined ? draft.unfold() : DialogLine.unfold(heard)
  /** Leaves for an editor of what is typed. A choice is no text, and a secret goes into no file. */
  const edit = (heard: Open | undefined): string => {
    if (heard !== undefined && (heard.question.paste !== "insert" || heard.question.hidden === true)) return ""
    direct += region.close()
    door.edit(heard ?? "draft", heard === undefined ? draft.text() : LineEditor.whole(heard.editor))
    return ""
  }
  /** Leaves for the shell. A pager goes meanwhile, and what is below it. */
  const suspend = (now: number): void => {
    if (cover.isPaging()) direct += cover.lift() + drawBelow(now)
    direct += region.close()
    door.suspend()
  }
  const putPasted = (isOver: boolean): void => {
    const taken = paste.take(isOver)
    if (taken?.to === "draft") draft.paste(taken.text)
    // A paste into a question that is gone is dropped: it may have been a secret.
    else if (dialog !== undefined && taken?.to === dialog) dialog.editor = LineEditor.paste(dialog.editor, taken.text)
  }
  /** Takes back the rest of an answered word. */
  const unTypeWord = (): void => {
    if (word?.at === "draft") draft.restore(word.before)
    else if (word !== undefined && word.at === dialog) dialog.editor = word.before
    word = undefined
  }
  const pressOne = (input: UserInput, now: number): string => {
    const { name, ctrl } = input.key
    const beat = pace.press(name, now)
    if (beat === undefined) return ""
    if (beat.gap >= TypingPace.guard) paste.pause()
    const isPaste = paste.isOpen() || name === "paste-start" || name === "paste-end"
    if (isPaste || cover.isShut()) answerKey.over()
    const part = answerKey.part(input, now)
    if (part === "none") word = undefined
    if (door.departure() !== undefined) return ""
    if (cover.isPaging() && !isPaste) {
      if (door.wish(name, ctrl) === "Suspend") suspend(now)
      else if (!cover.press(input)) direct += uncover(now)
      return ""
    }
    const heard = dialog !== undefined && listening(dialog, now, beat.gap) ? dialog : undefined
    const isSearching = name !== "z" && heard === undefined && draft.isSearching()
    const wish = door.wish(name, ctrl && !paste.isOpen() && !isSearching)
    if (name === "tab" && input.key.shift && dialog === undefined && !paste.isOpen()) return shortcut("shift-tab")
    if (ctrl && !paste.isOpen()) {
      if (name === "o" && unfolds(heard)) return ""
      if (shortcuts.has(name)) return shortcut(name)
      if (wish === "Edit") return edit(heard)
      if (wish === "Suspend") suspend(now)
      if (wish !== undefined) return ""
    }
    if (ctrl && name === "c" && paste.isOpen()) {
      // The key may be a character of the paste. What is left of it must not become keys, and be submitted by one.
      putPasted(true)
      paste.lose()
      return ""
    }
    if (ctrl && name === "c") return interrupt(heard)
    if (name === "escape" && !paste.isOpen() && (heard !== undefined || !draft.takesEscape()))
      return escape(heard, beat.isSecondEscape, now)
    if (name === "paste-start") {
      const takes = dialog?.question.paste === "insert" && listening(dialog, now, beat.gap)
      // A pager takes no text: none of it may be a key to it, and close it, and go on as words that are sent.
      paste.begin(beat.isDropped || cover.isPaging() ? "nowhere" : takes && dialog !== undefined ? dialog : "draft")
      return ""
    }
    if (name === "paste-end") {
      putPasted(true)
      paste.end()
      return ""
    }
    if (paste.isOpen()) {
      paste.add(input, beat.gap)
      return ""
    }
    if (part === "end") unTypeWord()
    if (part === "end" || part === "stray" || beat.isDropped || beat.isHasty) return ""
    if (part === "letter" && word === undefined) {
      word = heard === undefined ? { at: "draft", before: draft.editor() } : { at: heard, before: heard.editor }
    }
    // The letters of one word stay together, also where a dialog opens in the midst of it.
    const to = word === undefined ? heard : word.at === dialog ? dialog : undefined
    if (to === undefined) return pressPrompt(input, now)
    // The first key that is meant for the question; nearer behind the others it belongs to their word.
    if (beat.gap >= TypingPace.alone) dropEarly()
    return pressDialog(to, input, part, now)
  }

  const pressAll = (typed: Iterable<Typing>): string => {
    let printed = ""
    for (const [input, at] of typed) {
      const waits = between && dialog === undefined && !(input.key.ctrl && input.key.name === "c")
      if (input.key.name === "continue") direct += restart(at)
      else if (leaving && isEnd(input)) leave()
      else if (waits) held.push([input, at])
      else printed += pressOne(input, at)
    }
    putPasted(false)
    return printed
  }
  /** Tells that somebody has left, where that is not told yet. */
  const leave = (): void => {
    if (leaving) options.onEndOfInput()
    leaving = false
  }
  const release = (): string => {
    const waiting = held
    held = []
    return pressAll(waiting)
  }

  return {
    ended: () => ended,
    draft: draft.text,
    printings: () => printings,
    view: paint,
    print,
    printLine: (text: string, now: number) => print(lines(text), now),
    setStatus: (next: Status | undefined, now: number) => {
      status = next
      // Nothing works any more that could ask.
      if (status === undefined && pace.isAlone(now)) dropEarly()
      return paint(now)
    },
    busy: () => (status !== undefined || dialog?.question.until !== undefined) && !closed && !isResting,
    turn: (now: number): string => {
      frame++
      isResting = dialog !== undefined && dialog.question.until === undefined && pace.isStill(dialog.seenAt, now)
      return paint(now)
    },
    /** Sets the text before the draft; the usual prompt when nothing is given. */
    setPrompt: (next: string | undefined, now: number) => {
      prompt = next === undefined ? usual : Display.truncate(Display.oneLine(next), Math.ceil(size.columns / 2))
      return paint(now)
    },
    setDraft: (text: string, now: number) => {
      answerKey.over()
      draft.set(text)
      return paint(now)
    },
    /** Which lines are for the program also where a question is open. */
    setCommands: (next: (line: string) => boolean) => {
      isCommand = next
    },
    setCompletion: draft.setCompletion,
    resize: (columns: number, rows: number, now: number): string => {
      if (columns === size.columns && rows === size.rows) return ""
      size = { columns, rows }
      cover.resize(size)
      if (closed || door.departure() !== undefined) return ""
      return cover.isPaging() ? drawPager() : region.resize(columns, rows, view(now))
    },
    press: (typed: Iterable<UserInput>, now: number): string => {
      const keys = [...typed]
      isResting = false
      const isPaging = cover.isPaging()
      const clears = keys.some(({ key }) => key.ctrl && key.name === "l") && !paste.isOpen() && !cover.isShut()
      const printed = pressAll(keys.map((input) => [input, now]))
      const out = direct + (isPaging ? drawPager() : "") + (clears ? region.redraw(view(now)) : "")
      direct = ""
      return out + print(printed, now)
    },
    /** When an answer of one key counts. */
    due: answerKey.due,
    /** A key has stayed alone for long enough. */
    mature: (now: number): string => {
      const due = answerKey.due()
      if (dialog === undefined || due === undefined || now < due) return ""
      answerKey.give(now)
      const { text } = dialog.editor
      return print(give(dialog, text, text, now), now)
    },
    /** How long until somebody should be called to this question: never while they type. */
    silence: (current: Open, now: number): number | undefined => (dialog === current ? pace.silence(now) : undefined),
    departure: door.departure,
    /** The terminal is ours again; with the text that came out of an editor. */
    comeBack: (text: string | undefined, now: number): string => {
      if (door.departure() === undefined) return ""
      const editing = door.editing()
      if (editing === "draft" && text !== undefined) draft.set(text)
      if (editing !== undefined && editing !== "draft") {
        if (text !== undefined) editing.editor = LineEditor.setText(editing.editor, text)
        // Its question was taken away meanwhile.
        if (editing !== dialog) draft.add(DialogLine.left(editing))
      }
      if (!cover.isPaging()) return uncover(now)
      door.comeBack()
      return drawBelow(now) + drawPager()
    },
    /** Sets what is drawn above the status, by its size; or draws it again. */
    setLive: (next: Live | undefined, now: number) => {
      live = next
      return paint(now)
    },
    /** Sets the row below the prompt; or draws it again. */
    setFooter: (next: Footer | undefined, now: number) => {
      footer = next
      return paint(now)
    },
    /** Opens a text over everything else, until a key closes it. */
    page: (text: Pager.Text, atEnd: boolean): string => {
      if (closed || ended || cover.isShut()) return ""
      cover.open(text, size, { color: options.color, atEnd })
      return drawPager()
    },
    /** Puts a question on the screen. It ends at once when the input has ended. */
    show: (next: Open, now: number): string => {
      if (ended) {
        Deferred.unsafeDone(next.reply, Effect.succeed(Closed({ by: "end of input" })))
        return ""
      }
      next.run = held.length > 0 || pace.isRunning(now)
      isResting = false
      if (pace.isAlone(now)) dropEarly()
      next.composing = !draft.isEmpty() && !isEarly()
      next.blind = next.question.followUp === true && answerKey.isGiven()
      dialog = next
      between = true
      next.printed = ScreenLayout.isTooHigh(style, next, size)
      direct += drawPager()
      const whole = next.printed ? lines(ScreenLayout.content(style, next, size.columns).join("\n")) : ""
      const noted = direct
      direct = ""
      return noted + print(whole + release(), now)
    },
    /** The question is visible from now on. */
    shown: (next: Open, now: number): void => {
      next.seenAt = now
    },
    /** Removes a question that was not answered here. */
    withdraw: (current: Open, now: number): string => {
      if (dialog !== current) return ""
      dialog = undefined
      isResting = false
      // An answer was half typed. The rest of a "yes" is no message for an agent, and the rest of a password even less.
      // Words that are neither may have been meant for the prompt, or can be used there; what an editor has comes from it.
      const text = LineEditor.whole(current.editor)
      const { hidden, initial = "", keys = AnswerKey.noKeys } = current.question
      const isWord = word?.at === current
      if (text !== initial) {
        pace.cutOff(hidden === true)
        const isPart = !isWord && answerKey.abandon(hidden === true ? "" : text, keys, now)
        if (isWord) word = { at: "draft", before: draft.editor() }
        if (!isPart && door.editing() !== current) draft.add(DialogLine.left(current))
      }
      answerKey.forget()
      return print(lines(style.dim(ScreenLayout.closedNote(current, now, size.columns))), now)
    },
    /** Leaves a question open, for good: the program ends. */
    leave: (current: Open, now: number): string => (dialog === current ? print(settle(current, Left()), now) : ""),
    /** The dialog has no more questions. Text typed meanwhile goes to the draft, unless the dialog was `withdrawn`. */
    finish: (withdrawn: boolean, now: number): string => {
      between = false
      if (withdrawn) held = []
      leave()
      return print(release(), now)
    },
    /** The input has ended: closes what is open, for good. */
    end: (): void => {
      ended = true
      if (dialog !== undefined) Deferred.unsafeDone(dialog.reply, Effect.succeed(Closed({ by: "end of input" })))
      dialog = undefined
    },
    close: (): string => {
      const left = cover.isShut() ? uncover(0) : ""
      closed = true
      return left + region.close()
    }
  }
}
