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
import * as Display from "./Display.js"
import * as LineEditor from "./LineEditor.js"
import * as LiveRegion from "./LiveRegion.js"
import * as ScreenLayout from "./ScreenLayout.js"
import { Closed, Typed, type Live, type Open, type Reply, type Status } from "./ScreenLayout.js"
import * as Pager from "./Pager.js"

export interface Options {
  readonly color: boolean
  readonly prompt?: string | undefined
  readonly history?: ReadonlyArray<string> | undefined
  readonly columns: number
  readonly rows: number
  readonly onLine: (text: string) => void
  readonly onInterrupt: () => void
  /** One of {@link shortcuts}. */
  readonly onShortcut: (key: string) => void
  readonly onEndOfInput: () => void
}

export interface ScreenState extends ReturnType<typeof make> {}

/** Keys that mean the same everywhere, with Ctrl: they open and fold what was shown in brief. */
export const shortcuts: ReadonlySet<string> = new Set(["o", "t"])

/** Milliseconds after which a key counts for the dialog on the screen. */
export const guard = 200

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
  let draft = LineEditor.make("", options.history)
  let dialog: Open | undefined
  let status: Status | undefined
  let live: Live | undefined
  /** Takes the whole terminal; what is printed meanwhile waits. */
  let pager: Pager.Pager | undefined
  let waiting = ""
  /** To be written as it is, before anything that is printed. */
  let direct = ""
  let frame = 0
  let complete: (line: string) => ReadonlyArray<string> = () => []
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
    if (dialog === undefined) return ScreenLayout.withEditor(rows, draft, { prompt: style.bold(prompt), columns })
    rows.push(...ScreenLayout.dialogRows(style, dialog, size))
    if (draft.text !== "") {
      rows.push(style.dim(Display.truncate(`draft kept: ${Display.oneLine(draft.text)}`, columns - 1)))
    }
    const { label, hidden } = dialog.question
    // A label that leaves no room for an answer gets rows of its own.
    const long = Display.width(label) > columns / 2
    if (long) rows.push(...Display.wrap(label.trimEnd(), columns).map(style.bold))
    return ScreenLayout.withEditor(rows, dialog.editor, { prompt: style.bold(long ? usual : label), columns, hidden })
  }
  const paint = (now: number): string => (closed ? "" : pager === undefined ? region.paint(view(now)) : "")
  const drawPager = (): string =>
    pager?.draw(
      dialog === undefined ? undefined : `${dialog.title ?? "A question"} waits for you · q goes back to it`
    ) ?? ""
  const print = (text: string, now: number): string => {
    if (pager !== undefined) {
      waiting += text
      return ""
    }
    if (text === "") return paint(now)
    return closed ? Display.keepStyles(text).replaceAll("\n", "\r\n") : region.print(text, view(now))
  }
  const isOpen = (): boolean => (waiting === "" ? region.unfinished() : !waiting.endsWith("\n"))
  const lines = (text: string): string => (isOpen() ? `\n${text}\n` : `${text}\n`)
  const closePager = (now: number): string => {
    const [text, left] = [waiting, pager?.close() ?? ""]
    pager = undefined
    waiting = ""
    // It could not be seen before, and a key that was meant for the pager must not answer it.
    if (dialog !== undefined && Number.isFinite(dialog.seenAt)) dialog.seenAt = now
    return left + region.resize(size.columns, size.rows, view(now)) + print(text, now)
  }

  // ---- dialogs

  const settle = (current: Open, reply: Reply): string => {
    dialog = undefined
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

  const pressDialog = (current: Open, input: UserInput): string => {
    if (input.key.ctrl && input.key.name === "d" && current.editor.text === "") {
      return settle(current, Closed({ by: "end of input" }))
    }
    return LineEditor.match(LineEditor.press(current.editor, input), {
      Edited: ({ editor }) => {
        current.editor = editor
        return ""
      },
      Submitted: ({ text }) => settle(current, Typed({ text })),
      Unused: () => ""
    })
  }
  const pressDraft = (input: UserInput): string => {
    const { name, ctrl, meta } = input.key
    if (ctrl && name === "d" && draft.text === "") {
      // While a dialog is on the screen, a Ctrl-D that came too early must not end the input.
      if (dialog === undefined) options.onEndOfInput()
      return ""
    }
    const submits = (name === "return" || name === "enter") && !meta
    // An early Enter was meant for an earlier dialog, unless a draft had been begun before: the typed text stays
    // visible.
    if (submits && dialog !== undefined && !dialog.composing) return ""
    if (name === "tab" && !ctrl && !meta) {
      const { editor, choices } = LineEditor.complete(draft, complete)
      draft = editor
      return choices.length === 0 ? "" : lines(style.dim(choices.map((choice) => Display.oneLine(choice)).join("  ")))
    }
    return LineEditor.match(LineEditor.press(draft, input), {
      Edited: ({ editor }) => {
        draft = editor
        return ""
      },
      Submitted: ({ editor, text }) => {
        draft = editor
        if (text.trim() === "") return ""
        options.onLine(text)
        return lines(
          style.bold(prompt) +
            Display.reveal(text)
              .split("\n")
              .join("\n" + " ".repeat(Display.width(prompt)))
        )
      },
      Unused: () => ""
    })
  }
  const putPasted = (): void => {
    const text = pasted
    pasted = ""
    if (text === "") return
    if (pasting === "draft") draft = LineEditor.insert(draft, text)
    // A paste into a question that is gone is dropped: it may have been a secret.
    else if (dialog !== undefined && pasting === dialog) dialog.editor = LineEditor.insert(dialog.editor, text)
  }
  const pressOne = (input: UserInput, now: number): string => {
    const { name, ctrl } = input.key
    const gap = now - lastKey.at
    const second = name === "enter" && lastKey.name === "return" && gap < guard / 2
    // This key comes from the terminal, not from the person.
    if (name === "resize" || second) return ""
    lastKey = { name, at: now }
    if (lost && gap >= guard) pasting = undefined
    const pastes = pasting !== undefined || name === "paste-start" || name === "paste-end"
    if (pager !== undefined && (!pastes || (ctrl && name === "c"))) {
      if (!pager.press(input)) direct += closePager(now)
      return ""
    }
    if (ctrl && shortcuts.has(name) && pasting === undefined) {
      options.onShortcut(name)
      return ""
    }
    if (ctrl && name === "c") {
      putPasted()
      // The key may be a character of the paste. What is left of it must not become keys, and be submitted by one.
      lost = pasting !== undefined
      pasting = lost ? "nowhere" : undefined
      held = []
      options.onInterrupt()
      return dialog === undefined ? "" : settle(dialog, Closed({ by: "interrupt" }))
    }
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
    if (dropped) return ""
    return dialog !== undefined && listening(dialog, now, gap) ? pressDialog(dialog, input) : pressDraft(input)
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
    draft: () => draft.text,
    view: paint,
    print,
    printLine: (text: string, now: number) => print(lines(text), now),
    setStatus: (next: Status | undefined, now: number) => {
      status = next
      return paint(now)
    },
    busy: () => status !== undefined && !closed,
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
      draft = LineEditor.setText(draft, text)
      return paint(now)
    },
    setCompletion: (next: (line: string) => ReadonlyArray<string>) => {
      complete = next
    },
    resize: (columns: number, rows: number, now: number): string => {
      if (columns === size.columns && rows === size.rows) return ""
      size = { columns, rows }
      pager?.resize(columns, rows)
      return closed ? "" : pager === undefined ? region.resize(columns, rows, view(now)) : drawPager()
    },
    press: (typed: Iterable<UserInput>, now: number): string => {
      const keys = [...typed]
      const isPaging = pager !== undefined
      const redraw = keys.some(({ key }) => key.ctrl && key.name === "l") && pasting === undefined && !isPaging
      const printed = pressAll(keys, now)
      const out = direct + (isPaging ? drawPager() : "") + (redraw ? region.redraw(view(now)) : "")
      direct = ""
      return out + print(printed, now)
    },
    /** Sets what is drawn above the status, by its size; or draws it again. */
    setLive: (next: Live | undefined, now: number) => {
      live = next
      return paint(now)
    },
    /** Opens a text over everything else, until a key closes it. */
    page: (text: Pager.Text, atEnd: boolean): string => {
      if (closed || ended || pager !== undefined) return ""
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
      next.composing = draft.text !== ""
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
      const left = pager === undefined ? "" : closePager(0)
      closed = true
      return left + region.close()
    }
  }
}
