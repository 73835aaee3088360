/**
 * How the parts of a screen look: the status row, a dialog's question, and the record of a question with its reply.
 * Pure; rows are no wider than the terminal.
 */
import * as Data from "effect/Data"
import type * as Deferred from "effect/Deferred"
import * as AnswerTime from "./AnswerTime.js"
import * as ChoiceList from "./ChoiceList.js"
import * as Display from "./Display.js"
import * as LineEditor from "./LineEditor.js"
import type { View } from "./LiveRegion.js"
import * as Menu from "./Menu.js"
import type { Choice } from "./Picker.js"

/**
 * The current activity, with a spinner, above the prompt: `⠹ thinking 3.2s  main`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Status {
  readonly text: string
  /** Milliseconds since the epoch from which to count the seconds shown. Absent: none are shown. */
  readonly since?: number | undefined
  readonly note?: string | undefined
  /** Shown in place of all that until then, in milliseconds since the epoch, behind the seconds that are left. */
  readonly pause?: { readonly until: number; readonly reason: string } | undefined
}

/**
 * What is drawn above the status, again and again, in at most so many columns and rows: what somebody is just saying.
 *
 * @since 0.1.0
 * @category models
 */
export type Live = (columns: number, rows: number) => ReadonlyArray<string>

/**
 * What stands in a row of its own below the prompt, for at most so many columns: plain text, without line breaks. Nothing
 * where it has nothing to say in them.
 *
 * @since 0.1.0
 * @category models
 */
export type Footer = (columns: number) => string | undefined

/**
 * One question of a dialog. Lines may hold styles; quote foreign text through `Display.reveal`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Question {
  /** Shown between the title and the answer. */
  readonly lines: ReadonlyArray<string>
  /** Shown before the answer, such as `y/n> `. */
  readonly label: string
  /** The answer is not shown and leaves no trace on the screen. */
  readonly hidden?: boolean | undefined
  /** Text to edit. */
  readonly initial?: string | undefined
  /** What was typed here before, in place of `initial`: it is the person's own, and stays when the question goes. */
  readonly begun?: string | undefined
  /** The first character that is typed replaces what stands there; any other key edits it. Default: false. */
  readonly replaces?: boolean | undefined
  /**
   * What can be picked by arrows, by a number, or by some letters: its text is the answer. Where no choice fits what is typed,
   * or a number is sent at once, the typed words are. Without a screen it is a numbered list above the question.
   */
  readonly choices?: ReadonlyArray<Choice> | undefined
  /**
   * What can be taken by arrows and Enter where nothing is typed; the answer is its number. Without a screen there is none: the
   * lines of the question say it.
   */
  readonly menu?: Menu.Menu | undefined
  /** Where pasted text goes. Default: to the draft. `insert` is for questions that want a text. */
  readonly paste?: "draft" | "insert" | undefined
  /** Keys that answer by themselves, in small letters, with the words that they stand for. Default: none. */
  readonly keys?: ReadonlyMap<string, ReadonlyArray<string>> | undefined
  /** Escape leads back to the question before this one. Default: false. */
  readonly back?: boolean | undefined
  /**
   * Ctrl-D where nothing is typed leaves it open: the reader of lines hears of that once the dialog is over, or at the next
   * Ctrl-D. Default: the reader hears first, and the question is closed.
   */
  readonly staysOpen?: boolean | undefined
  /** Lines for the program are taken as such. Default: unless the question wants a text. */
  readonly commands?: boolean | undefined
  /**
   * Milliseconds since the epoch, after which the question is withdrawn: shown as the time that is left. It is later
   * whenever the terminal was with the shell.
   */
  readonly until?: (() => number) | undefined
  /** The question follows from the person's last answer, so the next keys are meant for it. */
  readonly followUp?: boolean | undefined
}

/** How a question ended, unless it was withdrawn. */
export type Reply = Data.TaggedEnum<{
  /** `shown` is the text as it stood on the screen. */
  readonly Typed: { readonly text: string; readonly shown: string }
  readonly Closed: { readonly by: "interrupt" | "end of input" | "escape" }
  /** The program ends. */
  readonly Left: {}
}>
export const { Typed, Closed, Left } = Data.taggedEnum<Reply>()

/** What is above an answer. */
export interface Asked {
  readonly title: string | undefined
  readonly question: Pick<Question, "lines">
}

/** A question before, while and after it is on the screen. */
export interface Open extends Asked {
  readonly question: Question
  readonly reply: Deferred.Deferred<Reply>
  editor: LineEditor.LineEditor
  /** Whether the next character replaces what stands there. */
  replaces: boolean
  /** Index, among the choices that fit what is typed, of the marked one. */
  at: number
  /** What was done to its menu. */
  marks: Menu.Marks
  /** Milliseconds since the epoch; `Infinity` before it can be seen. */
  seenAt: number
  /** Whether keys still belong to a run of keys that began before the question was drawn. */
  run: boolean
  /** Whether keys still belong to a run that went on, without a look, behind a key that turned out to answer. */
  blind: boolean
  /** Whether the key that was typed last came too soon after the question to answer by itself. */
  early: boolean
  /** Whether something was half typed when the question was drawn. */
  composing: boolean
  /** Whether title and lines were printed for good, because they did not fit. */
  printed: boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** A question that nobody sees yet. The title is absent for all but the first question of a dialog. */
export const open = (title: string | undefined, question: Question, reply: Deferred.Deferred<Reply>): Open => ({
  title,
  question,
  reply,
  editor: LineEditor.make(question.begun ?? question.initial),
  replaces: question.replaces === true,
  at: 0,
  marks: Menu.marks(question.menu),
  seenAt: Infinity,
  run: false,
  blind: false,
  early: false,
  composing: false,
  printed: false
})

// -----------------------------------------------------------------------------------------------------------------
// rows
// -----------------------------------------------------------------------------------------------------------------

/** Rows that a dialog leaves free: for the status, the kept draft, the answer and one row of output. */
export const reserved = 6

/** The status in one row; `frame` counts the turns of its spinner. Without one it stands still, and counts no seconds. */
export const statusRow = (
  style: Display.Style,
  status: Status,
  frame: number | undefined,
  now: number,
  columns: number
): string => {
  const { pause } = status
  const note = status.note === undefined ? "" : `  ${status.note}`
  if (frame === undefined) return style.dim(Display.truncate(`· ${Display.oneLine(status.text + note)}`, columns - 1))
  const sign = spinner[frame % spinner.length] ?? ""
  if (pause !== undefined && now < pause.until) {
    const left = `waiting ${Math.ceil((pause.until - now) / 1_000)} s ${pause.reason}`
    return style.dim(Display.truncate(`${sign} ${Display.oneLine(left)}`, columns - 1))
  }
  const seconds = status.since === undefined ? "" : ` ${(Math.max(0, now - status.since) / 1000).toFixed(1)}s`
  const text = `${sign} ${Display.oneLine(status.text + seconds + note)}`
  return style.dim(Display.truncate(text, columns - 1))
}

/** The text before what a search backwards through the history has found. */
export const searchLabel = (query: string, isFound: boolean, columns: number): string => {
  const name = isFound || query === "" ? "search" : "nothing for"
  return `${name} "${Display.truncate(Display.oneLine(query), Math.max(1, Math.floor(columns / 3)))}"> `
}

/** Title and lines. Lines stand behind a gutter, so that quoted text cannot pass for a title or an answer line. */
export const content = (style: Display.Style, { title, question }: Asked, columns: number): ReadonlyArray<string> => [
  ...(title === undefined ? [] : Display.wrap(Display.keepStyles(title), columns).map(style.bold)),
  ...question.lines.flatMap((line) =>
    Display.wrapBelow(Display.keepStyles(line), Math.max(1, columns - gutter.length)).map(
      (row) => style.dim(gutter) + row
    )
  )
]

/** The rows of a dialog. A dialog that is too high was printed above; then only its title and last rows are drawn. */
const dialogRows = (
  style: Display.Style,
  dialog: Open,
  size: { readonly columns: number; readonly rows: number }
): ReadonlyArray<string> => {
  const rows = content(style, dialog, size.columns)
  const room = roomFor(dialog, size)
  if (rows.length <= room) return rows
  // What it is about stands first: a title, and the file or the beginning of the command.
  const begun = room < 4 ? 0 : room < 12 ? 1 : 3
  const first = rows.slice(0, dialog.title === undefined ? 0 : begun)
  const rest = rows.slice(first.length)
  const kept = rest.slice(Math.max(0, rest.length - (room - first.length - 1)))
  const more = Display.truncate(`… ${rest.length - kept.length} more rows above`, size.columns - 1)
  return [...first, style.dim(more), ...kept]
}

/** Whether a dialog has more rows above its answer than can be seen. */
export const isTooHigh = (
  style: Display.Style,
  dialog: Open,
  size: { readonly columns: number; readonly rows: number }
): boolean => content(style, dialog, size.columns).length > roomFor(dialog, size)

/** How many rows there are above the answer: a menu below it has a third of them, if it needs so many. */
const roomFor = (
  { question: { menu } }: Open,
  { columns, rows }: { readonly columns: number; readonly rows: number }
): number => {
  const below = menu === undefined ? 0 : Math.min(Menu.heightOf(menu, columns), Math.floor(rows / 3))
  return Math.max(1, rows - reserved - below)
}

/** What a key waits for that would answer by itself at another time, and why. */
const waitingKey = ({ early, editor: { text }, question }: Open, draft: string): ReadonlyArray<string> => {
  if (question.keys?.has(text.toLowerCase()) !== true) return []
  return [`${text} waits for Enter${early ? ": it came early" : draft === "" ? "" : ": a draft is kept"}`]
}

/** A dialog with the time that is left for it, the draft that waits behind it, and its answer. */
export const dialogView = (
  style: Display.Style,
  dialog: Open,
  size: { readonly columns: number; readonly rows: number },
  around: {
    readonly rows: ReadonlyArray<string>
    readonly now: number
    readonly usual: string
    readonly draft: string
    /** Whether what stands there will count, or go, without an Enter. */
    readonly isDue: boolean
  }
): View => {
  const { columns } = size
  const { hidden, label, until } = dialog.question
  const rows = [...around.rows, ...dialogRows(style, dialog, size)]
  if (until !== undefined) rows.push(style.yellow(Display.truncate(AnswerTime.left(until() - around.now), columns - 1)))
  if (around.draft !== "")
    rows.push(style.dim(Display.truncate(`draft kept: ${Display.oneLine(around.draft)}`, columns - 1)))
  if (!around.isDue)
    rows.push(...waitingKey(dialog, around.draft).map((row) => style.dim(Display.truncate(row, columns - 1))))
  // A label that leaves no room for an answer gets rows of its own.
  const long = Display.width(label) > columns / 2
  if (long) rows.push(...Display.wrap(label.trimEnd(), columns).map(style.bold))
  const view = withEditor(rows, dialog.editor, { prompt: style.bold(long ? around.usual : label), columns, hidden })
  const listing = listingOf(dialog)
  const { menu } = dialog.question
  const room = { columns, rows: Math.max(1, size.rows - 1 - view.rows.length) }
  const below =
    menu !== undefined
      ? Menu.rows(menu, dialog.marks, dialog.editor.text, style, room)
      : listing === undefined
        ? []
        : ChoiceList.rows(listing, style, room)
  return { ...view, rows: [...view.rows, ...below] }
}

/** What stands in the answer; nothing of a secret. */
export const typed = ({ editor, question }: Open): string | undefined =>
  question.hidden === true ? undefined : LineEditor.whole(editor)

/** The list of a question that has one, as it is after what was typed. */
export const listingOf = ({ at, editor, question }: Open): ChoiceList.Listing | undefined =>
  question.choices === undefined ? undefined : { choices: question.choices, typed: editor.text, at }

/** What changes all the time, above everything else, where there is room. */
export const withLive = (
  below: View,
  live: Live | undefined,
  { columns, rows }: { readonly columns: number; readonly rows: number }
): View => {
  const room = rows - 1 - below.rows.length
  const above = live === undefined || room < 1 ? [] : live(columns, room).slice(-room)
  return above.length === 0
    ? below
    : { rows: [...above, ...below.rows], row: above.length + below.row, column: below.column }
}

/** The footer below everything else, unless the terminal is so low that the draft needs its row. */
export const withFooter = (
  style: Display.Style,
  view: View,
  footer: Footer,
  size: { readonly columns: number; readonly rows: number }
): View => {
  if (view.rows.length + reserved > size.rows) return view
  const text = footer(size.columns - 1)
  if (text === undefined || text === "") return view
  return { ...view, rows: [...view.rows, style.dim(Display.truncate(Display.oneLine(text), size.columns - 1))] }
}

/** The lines that stay of what was sent from the prompt, or answered. */
export const sent = (style: Display.Style, prompt: string, text: string): string =>
  style.bold(prompt) +
  Display.reveal(text)
    .split("\n")
    .join("\n" + " ".repeat(Display.width(prompt)))

/** The lines that stay of a question with its reply. */
export const record = (style: Display.Style, current: Open, reply: Reply, columns: number): string => {
  const { label, menu } = current.question
  const answer =
    reply._tag === "Typed" && current.question.hidden !== true
      ? sent(style, label, reply.shown)
      : style.bold(label) + style.dim(reply._tag === "Typed" ? "(hidden)" : whyNone(current, reply))
  const above = current.printed ? [] : content(style, current, columns)
  const lines = menu === undefined || menu.isKept === true ? [] : Menu.numbered(menu, style)
  const choices = content(style, { title: undefined, question: { lines } }, columns)
  return [...above, ...choices, answer, ""].join("\n")
}

/** The line that stays of a question that was taken away. */
export const closedNote = (
  { question: { label, until }, title = label.trim() }: Open,
  now: number,
  columns: number
): string => Display.wrap(`${title} (closed: ${AnswerTime.whyClosed(until?.(), now)})`, columns).join("\n")

/** Rows, and below them an editor with the cursor. */
export const withEditor = (
  rows: ReadonlyArray<string>,
  editor: LineEditor.LineEditor,
  options: { readonly prompt: string; readonly columns: number; readonly hidden?: boolean | undefined }
): View => {
  const layout = LineEditor.layout(editor, options)
  return { rows: [...rows, ...layout.rows], row: rows.length + layout.row, column: layout.column }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const whyNone = ({ question }: Open, reply: Exclude<Reply, { readonly _tag: "Typed" }>): string => {
  const isOpen = question.staysOpen === true
  if (reply._tag === "Left") return isOpen ? "(left open)" : "(left)"
  return reply.by === "escape" ? "(back)" : reply.by === "end of input" && isOpen ? "(left open)" : "(cancelled)"
}

const gutter = "│ "

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
