/**
 * What a screen shows, and what a key does to it: the state machine behind `ConsoleScreen`.
 *
 * Every function is one synchronous step that returns the text to write. It decides nothing about time, locks or
 * fibers; its owner calls one function at a time and writes the returned text before the next call.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as AnswerKey from "./AnswerKey.js"
import * as Display from "./Display.js"
import * as LineEditor from "./LineEditor.js"
import * as LiveRegion from "./LiveRegion.js"
import * as ScreenLayout from "./ScreenLayout.js"
import { Closed, Typed, type Live, type Open, type Reply, type Status } from "./ScreenLayout.js"
import * as Pager from "./Pager.js"
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

/** Why the terminal was left: for the shell that started the program, or for an editor of this text. */
export type Departure = { readonly _tag: "Suspend" } | { readonly _tag: "Edit"; readonly text: string }

export interface ScreenState extends ReturnType<typeof make> {}

/** Keys that mean the same everywhere, with Ctrl: they open and fold what was shown in brief. */
export const shortcuts: ReadonlySet<string> = new Set(["o", "t"])

/** Milliseconds after which a key counts for the dialog on the screen. */
export const guard = 200

/** Milliseconds after which a single key may answer. */
const alone = 500

/** Milliseconds within which escape was pressed twice. */
const twice = 600

/** Milliseconds without a key after which somebody is called to a question. */
const quiet = 10_000

const noKeys: ReadonlyMap<string, ReadonlyArray<string>> = new Map()

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
  /** Takes the whole terminal; what is printed meanwhile waits. */
  let pager: Pager.Pager | undefined
  let waiting = ""
  /** Somebody else has the terminal; what is printed meanwhile waits. */
  let departure: Departure | undefined
  /** Whose text an editor has. */
  let editing: Open | "draft" = "draft"
  /** Ctrl-X was pressed. */
  let chord = false
  /** To be written as it is, before anything that is printed. */
  let direct = ""
  let frame = 0
  let isCommand: (line: string) => boolean = () => false
  const answerKey = AnswerKey.make()
  /** The target of the current paste; dialogs that open or close meanwhile do not change it. */
  let pasting: Open | "draft" | "nowhere" | undefined
  /** The pasted text not yet inserted: keys come one by one, and a long text is inserted at once. */
  let pasted = ""
  /** The paste was interrupted and may never end. It ends with the first pause. */
  let lost = false
  /** Keys are dropped until there was a pause this long: they were meant for a question that is gone. Milliseconds. */
  let dropping = 0
  /** Between two questions of one dialog, keys wait here for the next question, or else for the draft. */
  let between = false
  let held: Array<UserInput> = []
  let lastKey = { name: "", at: -Infinity }
  /** When escape last had an effect in a dialog: pressed once too often it must not have another. */
  let escaped = -Infinity
  let ended = false
  let closed = false

  // ---- drawing

  const view = (now: number): LiveRegion.View => {
    const below = bottom(now)
    const room = size.rows - 1 - below.rows.length
    const above = live === undefined || room < 1 ? [] : live(size.columns, room).slice(-room)
    return above.length === 0
      ? below
      : { rows: [...above, ...below.rows], row: above.length + below.row, column: below.column }
  }
  /** The status, and the draft or a dialog. */
  const bottom = (now: number): LiveRegion.View => {
    const { columns } = size
    const rows: Array<string> = status === undefined ? [] : [ScreenLayout.statusRow(style, status, frame, now, columns)]
    if (dialog === undefined) return draft.below(rows, prompt, style, columns)
    rows.push(...ScreenLayout.dialogRows(style, dialog, size))
    const { until } = dialog.question
    if (until !== undefined) rows.push(style.yellow(Display.truncate(ScreenLayout.timeLeft(until - now), columns - 1)))
    if (!draft.isEmpty())
      rows.push(style.dim(Display.truncate(`draft kept: ${Display.oneLine(draft.shown())}`, columns - 1)))
    const { label, hidden } = dialog.question
    // A label that leaves no room for an answer gets rows of its own.
    const long = Display.width(label) > columns / 2
    if (long) rows.push(...Display.wrap(label.trimEnd(), columns).map(style.bold))
    return ScreenLayout.withEditor(rows, dialog.editor, { prompt: style.bold(long ? usual : label), columns, hidden })
  }
  const isCovered = (): boolean => pager !== undefined || departure !== undefined
  const paint = (now: number): string => (closed || isCovered() ? "" : region.paint(view(now)))
  const drawPager = (): string =>
    pager?.draw(
      dialog === undefined ? undefined : `${dialog.title ?? "A question"} waits for you · q goes back to it`
    ) ?? ""
  const print = (text: string, now: number): string => {
    if (isCovered()) {
      waiting += text
      return ""
    }
    if (text === "") return paint(now)
    return closed ? Display.keepStyles(text).replaceAll("\n", "\r\n") : region.print(text, view(now))
  }
  const isOpen = (): boolean => (waiting === "" ? region.unfinished() : !waiting.endsWith("\n"))
  const lines = (text: string): string => (isOpen() ? `\n${text}\n` : `${text}\n`)
  const uncover = (now: number): string => {
    const [text, left] = [waiting, pager?.close() ?? ""]
    pager = undefined
    departure = undefined
    waiting = ""
    // It could not be seen before, and a key that was meant for the pager must not answer it.
    if (dialog !== undefined && Number.isFinite(dialog.seenAt)) dialog.seenAt = now
    return left + region.resize(size.columns, size.rows, view(now)) + print(text, now)
  }

  // ---- dialogs

  const settle = (current: Open, reply: Reply): string => {
    dialog = undefined
    answerKey.forget()
    Deferred.unsafeDone(current.reply, Effect.succeed(reply))
    return ScreenLayout.record(style, current, reply, size.columns)
  }
  /** Whether a key that comes now counts for the dialog. */
  const listening = (current: Open, now: number, gap: number): boolean => {
    if (current.question.followUp === true) return true
    if (!(now - current.seenAt >= guard) || (current.run && gap < guard)) return false
    current.run = false
    return true
  }

  // ---- keys: each function returns text to print for good

  const pressDialog = (current: Open, typed: UserInput, now: number): string => {
    const { question } = current
    const isText = question.paste === "insert"
    // A line end is an answer where no text of several lines is wanted.
    const isEnd = typed.key.name === "enter" && (!isText || question.hidden === true)
    const input = isEnd ? { ...typed, key: { ...typed.key, name: "return" } } : typed
    if (input.key.ctrl && input.key.name === "d" && current.editor.text === "") {
      return settle(current, Closed({ by: "end of input" }))
    }
    return LineEditor.match(LineEditor.press(current.editor, input), {
      Edited: ({ editor }) => {
        current.editor = editor
        // Somebody who has words to send, or has hardly seen the question, does not answer it with their first letter.
        const isMeant = draft.isEmpty() && now - current.seenAt >= alone
        answerKey.typed(editor.text, isMeant ? (question.keys ?? noKeys) : noKeys, now)
        return ""
      },
      Submitted: ({ shown, text }) => {
        if (!(question.commands ?? !isText) || !isCommand(text)) return settle(current, Typed({ text, shown }))
        current.editor = LineEditor.make(question.initial)
        answerKey.forget()
        options.onCommand(text)
        return lines(style.bold(prompt) + Display.reveal(text))
      },
      Unused: () => ""
    })
  }
  /** Takes back what was typed as an answer. False where nothing was. */
  const unTypes = (current: Open): boolean => {
    if (current.editor.text === (current.question.initial ?? "")) return false
    current.editor = LineEditor.make(current.question.initial)
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
    if (now - escaped < twice) return ""
    options.onEscape()
    return settle(heard, Closed({ by: "interrupt" }))
  }
  const leave = (next: Departure): string => {
    direct += region.close()
    departure = next
    return ""
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
        return lines(
          style.bold(prompt) +
            Display.reveal(shown)
              .split("\n")
              .join("\n" + " ".repeat(Display.width(prompt)))
        )
      }
    })
  }
  /** Text goes first: nobody leaves by a key that was to clear it. */
  const interrupt = (heard: Open | undefined): string => {
    if (dialog !== undefined && unTypes(dialog)) return ""
    if (heard === undefined && draft.clear()) return ""
    options.onInterrupt()
    return dialog === undefined ? "" : settle(dialog, Closed({ by: "interrupt" }))
  }
  /** Shows folded pastes in full, where there are any. */
  const unfolds = (heard: Open | undefined): boolean => {
    if (heard === undefined) return draft.unfold()
    const before = heard.editor
    return (heard.editor = LineEditor.unfold(before)) !== before
  }
  /** Leaves for an editor of what is typed. A choice is no text, and a secret goes into no file. */
  const edit = (heard: Open | undefined): string => {
    if (heard !== undefined && (heard.question.paste !== "insert" || heard.question.hidden === true)) return ""
    editing = heard ?? "draft"
    return leave({ _tag: "Edit", text: heard === undefined ? draft.text() : LineEditor.whole(heard.editor) })
  }
  const putPasted = (): void => {
    const text = pasted
    pasted = ""
    if (text === "") return
    if (pasting === "draft") draft.paste(text)
    // A paste into a question that is gone is dropped: it may have been a secret.
    else if (dialog !== undefined && pasting === dialog) dialog.editor = LineEditor.paste(dialog.editor, text)
  }
  const pressOne = (input: UserInput, now: number): string => {
    const { name, ctrl } = input.key
    const gap = now - lastKey.at
    const second = name === "enter" && lastKey.name === "return" && gap < guard / 2
    // This key comes from the terminal, not from the person.
    if (name === "resize" || second) return ""
    const isSecondEscape = lastKey.name === "escape" && gap < twice
    lastKey = { name, at: now }
    if (lost && gap >= guard) pasting = undefined
    const pastes = pasting !== undefined || name === "paste-start" || name === "paste-end"
    if (pager !== undefined && !pastes) {
      if (!pager.press(input)) direct += uncover(now)
      return ""
    }
    if (departure !== undefined) return ""
    const heard = dialog !== undefined && listening(dialog, now, gap) ? dialog : undefined
    const chorded = chord
    chord = false
    if (ctrl && pasting === undefined) {
      if (name === "o" && unfolds(heard)) return ""
      if (shortcuts.has(name)) {
        options.onShortcut(name)
        return ""
      }
      if (options.leaves === true && !draft.isSearching()) {
        if (name === "z") return leave({ _tag: "Suspend" })
        chord = name === "x"
        if (chord) return ""
        if (name === "g" || (name === "e" && chorded)) return edit(heard)
      }
    }
    if (ctrl && name === "c" && pasting !== undefined) {
      // The key may be a character of the paste. What is left of it must not become keys, and be submitted by one.
      putPasted()
      lost = true
      pasting = "nowhere"
      return ""
    }
    if (ctrl && name === "c") {
      held = []
      return interrupt(heard)
    }
    if (name === "escape" && pasting === undefined && (heard !== undefined || !draft.isSearching()))
      return escape(heard, isSecondEscape, now)
    const dropped = gap < dropping
    if (!dropped) dropping = 0
    if (name === "paste-start") {
      const takes = dialog?.question.paste === "insert" && listening(dialog, now, gap)
      // A pager takes no text: none of it may be a key to it, and close it, and go on as words that are sent.
      lost = false
      pasting = dropped || pager !== undefined ? "nowhere" : takes && dialog !== undefined ? dialog : "draft"
      return ""
    }
    if (name === "paste-end") {
      putPasted()
      pasting = undefined
      return ""
    }
    if (pasting !== undefined) {
      pasted += name === "return" || name === "enter" ? "\n" : Option.getOrElse(input.input, () => "")
      return ""
    }
    if (dropped || answerKey.takes(input, now)) return ""
    return heard === undefined ? pressDraft(input) : pressDialog(heard, input, now)
  }

  const pressAll = (typed: Iterable<UserInput>, now: number): string => {
    let printed = ""
    for (const input of typed) {
      const waits = between && dialog === undefined && !(input.key.ctrl && input.key.name === "c")
      if (waits) held.push(input)
      else printed += pressOne(input, now)
    }
    putPasted()
    return printed
  }
  const release = (now: number): string => {
    const waiting = held
    held = []
    return pressAll(waiting, now)
  }

  return {
    ended: () => ended,
    draft: draft.text,
    view: paint,
    print,
    printLine: (text: string, now: number) => print(lines(text), now),
    setStatus: (next: Status | undefined, now: number) => {
      status = next
      return paint(now)
    },
    busy: () => (status !== undefined || dialog?.question.until !== undefined) && !closed,
    /** Turns the spinner. */
    turn: (now: number) => {
      frame++
      return paint(now)
    },
    /** Sets the text before the draft; the usual prompt when nothing is given. */
    setPrompt: (next: string | undefined, now: number) => {
      prompt = next === undefined ? usual : Display.truncate(Display.oneLine(next), Math.ceil(size.columns / 2))
      return paint(now)
    },
    setDraft: (text: string, now: number) => {
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
      pager?.resize(columns, rows)
      if (closed || departure !== undefined) return ""
      return pager === undefined ? region.resize(columns, rows, view(now)) : drawPager()
    },
    press: (typed: Iterable<UserInput>, now: number): string => {
      const keys = [...typed]
      const isPaging = pager !== undefined
      const redraw =
        keys.some(({ key }) => (key.ctrl && key.name === "l") || key.name === "continue") &&
        pasting === undefined &&
        !isCovered()
      const printed = pressAll(keys, now)
      const out = direct + (isPaging ? drawPager() : "") + (redraw ? region.redraw(view(now)) : "")
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
      return print(settle(dialog, Typed({ text: dialog.editor.text, shown: dialog.editor.text })), now)
    },
    /** How long until somebody should be called to this question: never while they type. */
    silence: (current: Open, now: number): number | undefined =>
      dialog === current ? Math.max(0, lastKey.at + quiet - now) : undefined,
    departure: () => departure,
    /** The terminal is ours again; with the text that came out of an editor. */
    comeBack: (text: string | undefined, now: number): string => {
      if (departure === undefined) return ""
      if (departure._tag === "Edit" && text !== undefined) {
        if (editing === "draft") draft.set(text)
        else editing.editor = LineEditor.setText(editing.editor, text)
      }
      return uncover(now)
    },
    /** Sets what is drawn above the status, by its size; or draws it again. */
    setLive: (next: Live | undefined, now: number) => {
      live = next
      return paint(now)
    },
    /** Opens a text over everything else, until a key closes it. */
    page: (text: Pager.Text, atEnd: boolean): string => {
      if (closed || ended || isCovered()) return ""
      pager = Pager.make(text, size, { color: options.color, atEnd })
      return drawPager()
    },
    /** Puts a question on the screen. It ends at once when the input has ended. */
    show: (next: Open, now: number): string => {
      if (ended) {
        Deferred.unsafeDone(next.reply, Effect.succeed(Closed({ by: "end of input" })))
        return ""
      }
      next.run = held.length > 0 || now - lastKey.at < guard
      next.composing = !draft.isEmpty()
      dialog = next
      between = true
      const rows = ScreenLayout.dialogRows(style, next, { columns: size.columns, rows: Infinity })
      next.printed = rows.length > size.rows - ScreenLayout.reserved
      if (pager !== undefined) direct += drawPager()
      const whole = next.printed ? lines(ScreenLayout.content(style, next, size.columns).join("\n")) : ""
      const noted = direct
      direct = ""
      return noted + print(whole + release(now), now)
    },
    /** The question is visible from now on. */
    shown: (next: Open, now: number): void => {
      next.seenAt = now
    },
    /** Removes a question that was not answered here. */
    withdraw: (current: Open, now: number): string => {
      if (dialog !== current) return ""
      dialog = undefined
      // An answer was half typed. The rest of a "yes" is no message for an agent, and the rest of a password even less.
      if (current.editor.text !== (current.question.initial ?? ""))
        dropping = current.question.hidden === true ? 10 * guard : guard
      answerKey.forget()
      const what = current.title ?? current.question.label.trim()
      return print(lines(style.dim(`${what} (closed: answered elsewhere or withdrawn)`)), now)
    },
    /** The dialog has no more questions. Text typed meanwhile goes to the draft, unless the dialog was `withdrawn`. */
    finish: (withdrawn: boolean, now: number): string => {
      between = false
      if (withdrawn) held = []
      return print(release(now), now)
    },
    /** The input has ended: closes what is open, for good. */
    end: (): void => {
      ended = true
      if (dialog !== undefined) Deferred.unsafeDone(dialog.reply, Effect.succeed(Closed({ by: "end of input" })))
      dialog = undefined
    },
    close: (): string => {
      const left = isCovered() ? uncover(0) : ""
      closed = true
      return left + region.close()
    }
  }
}
