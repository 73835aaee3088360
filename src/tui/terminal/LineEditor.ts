/**
 * The text being typed, as a value: a key yields a new editor. It knows nothing of screens, only of text, cursor and
 * history.
 *
 * | keys | do |
 * |---|---|
 * | arrows, home, end, ctrl-a, ctrl-e, ctrl-b, ctrl-f | move by characters and lines |
 * | alt-b, alt-f, ctrl-left, ctrl-right | move by words |
 * | backspace, delete, ctrl-d, ctrl-w, alt-d, ctrl-u, ctrl-k | delete; the last four can be put back with ctrl-y |
 * | up, down, ctrl-p, ctrl-n | between lines, and then through the history; the draft is kept |
 * | ctrl-j, alt-enter, shift-enter, backslash then enter | a new line |
 * | enter | submits |
 *
 * A long paste is shown as one word, such as `[120 lines]`. In `text` it is one character, one of the code points that
 * Unicode reserves for use inside a program, so every key takes it as one. {@link whole} is the text that is meant.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Data from "effect/Data"
import * as Option from "effect/Option"
import * as Display from "./Display.js"

export interface LineEditor {
  /** What is typed, with a character of {@link folds} for each long paste. */
  readonly text: string
  readonly folds: ReadonlyMap<string, string>
  /** Index into `text`, always between two user-perceived characters. */
  readonly cursor: number
  /** Submitted texts, oldest first. */
  readonly history: ReadonlyArray<string>
  /** Index of the shown history entry; the history's length while the draft is shown. */
  readonly at: number
  /** The draft, while a history entry is shown. */
  readonly kept: string
  /** The text that was cut last. */
  readonly cut: string
}

/** Whether a key types what it says, where it is none of the editor's own. */
export const isTyped = ({ input, key }: UserInput): boolean =>
  Option.isSome(input) && !key.ctrl && !key.meta && !plainKeys.has(key.name)

/** The effect of a key. */
export type Outcome = Data.TaggedEnum<{
  readonly Edited: { readonly editor: LineEditor }
  /** `editor` is empty again, and its history holds `text`, of which `shown` was on the screen. */
  readonly Submitted: { readonly editor: LineEditor; readonly text: string; readonly shown: string }
  /** The key means nothing to an editor. */
  readonly Unused: {}
}>
export const { Edited, Submitted, Unused, $match: match } = Data.taggedEnum<Outcome>()

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** An editor that holds `text`, the cursor at its end. */
export const make = (text = "", history: ReadonlyArray<string> = []): LineEditor => ({
  text: withoutMarks(text),
  folds: noFolds,
  cursor: withoutMarks(text).length,
  history,
  at: history.length,
  kept: "",
  cut: ""
})

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** What is typed, with all pastes. */
export const whole = ({ folds, text }: LineEditor): string =>
  folds.size === 0 ? text : text.replace(marks, (mark) => folds.get(mark) ?? "")

/** What is typed, with a word for each long paste. */
export const shown = ({ folds, text }: LineEditor): string =>
  folds.size === 0 ? text : text.replace(marks, (mark) => wordFor(folds.get(mark) ?? ""))

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Replaces the whole text; the cursor goes to its end. A long text is folded. */
export const setText = (editor: LineEditor, text: string): LineEditor => paste({ ...editor, text: "", cursor: 0 }, text)

/** Types `text` at the cursor. Control characters other than newline and tab do not get in. */
export const insert = (editor: LineEditor, text: string): LineEditor => put(editor, cleaned(text))

/** Like {@link insert}; a long text is folded. */
export const paste = (editor: LineEditor, text: string): LineEditor => {
  const clean = cleaned(text)
  const mark = isLong(clean) ? freeMark(editor) : undefined
  return mark === undefined
    ? put(editor, clean)
    : put({ ...editor, folds: new Map([...editor.folds, [mark, clean]]) }, mark)
}

/** Replaces what stands from there to the cursor. */
export const replaceBefore = (editor: LineEditor, from: number, text: string): LineEditor =>
  insert(cutBetween(editor, from, editor.cursor), text)

/** Shows all pastes in full; the same editor when there is none. */
export const unfold = (editor: LineEditor): LineEditor => {
  const text = whole(editor)
  if (text === editor.text) return editor
  const before = whole({ ...editor, text: editor.text.slice(0, editor.cursor) })
  return {
    ...editor,
    text,
    cursor: before.length,
    folds: noFolds,
    kept: whole({ ...editor, text: editor.kept }),
    cut: whole({ ...editor, text: editor.cut })
  }
}

/** Nothing is typed; ctrl-y puts back what was. */
export const clear = (editor: LineEditor): LineEditor =>
  editor.text === ""
    ? editor
    : { ...editor, text: "", cursor: 0, at: editor.history.length, kept: "", cut: editor.text }

/** The effect of one key. */
export const press = (editor: LineEditor, input: UserInput): Outcome => {
  const { name, ctrl, meta, shift } = input.key
  if (name === "enter") return edited(insert(editor, "\n"))
  if (name === "return") return meta || shift ? edited(insert(editor, "\n")) : enter(editor)
  const action = ctrl ? controlKeys.get(name) : meta ? metaKeys.get(name) : plainKeys.get(name)
  if (action !== undefined) return edited(action(editor))
  if (ctrl || meta || Option.isNone(input.input)) return Unused()
  const typed = insert(editor, input.input.value)
  return typed.text === editor.text ? Unused() : edited(typed)
}

/**
 * Completes the text before the cursor. Each candidate replaces all of it: a single candidate is taken, several extend
 * the text as far as they agree. `choices` are the candidates worth showing when nothing could be added.
 */
export const complete = (
  editor: LineEditor,
  candidates: (line: string) => ReadonlyArray<string>
): { readonly editor: LineEditor; readonly choices: ReadonlyArray<string> } => {
  const before = editor.text.slice(0, editor.cursor)
  const found = candidates(before)
  const common = found.reduce((left, right) => {
    let length = 0
    while (length < left.length && left[length] === right[length]) length++
    return left.slice(0, length)
  }, found[0] ?? "")
  if (found.length === 0 || (found.length > 1 && common.length <= before.length)) return { editor, choices: found }
  const text = common + editor.text.slice(editor.cursor)
  return { editor: { ...editor, text, cursor: common.length }, choices: [] }
}

/** The editor's rows on a terminal of this many columns, and the cursor's place. */
export const layout = (
  editor: LineEditor,
  options: { readonly prompt: string; readonly columns: number; readonly hidden?: boolean | undefined }
): { readonly rows: ReadonlyArray<string>; readonly row: number; readonly column: number } => {
  const columns = Math.max(2, options.columns)
  const prompt = Display.width(options.prompt) < columns - 1 ? options.prompt : ""
  const indent = " ".repeat(Display.width(prompt))
  const rows = [prompt]
  let used = indent.length
  let at = 0
  let cursor = { row: 0, column: used }
  const newRow = (start: string) => {
    rows.push(start)
    used = start.length
  }
  if (options.hidden === true) return { rows, ...cursor }
  const parts = editor.folds.size === 0 ? [editor.text] : editor.text.split(/([\ufdd0-\ufdef])/)
  // A mark stands alone: an accent behind it would make one character of both.
  for (const cluster of parts.flatMap(Display.clusters)) {
    const fold = editor.folds.get(cluster)
    const { text, width } =
      cluster === "\n"
        ? { text: "", width: 0 }
        : fold === undefined
          ? Display.drawn(cluster, columns)
          : label(Display.truncate(wordFor(fold, " · Ctrl-O opens"), columns))
    if (used + width > columns) newRow("")
    if (at === editor.cursor) cursor = { row: rows.length - 1, column: used }
    if (cluster === "\n") newRow(indent)
    else rows[rows.length - 1] += text
    used += width
    at += cluster.length
  }
  if (at === editor.cursor) {
    // A terminal keeps its cursor on a full row until the next character; ours moves to the place of that character.
    if (used >= columns) newRow("")
    cursor = { row: rows.length - 1, column: used }
  }
  return { rows, row: cursor.row, column: Math.min(cursor.column, columns - 1) }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Action = (editor: LineEditor) => LineEditor

const edited = (editor: LineEditor): Outcome => Edited({ editor })

const enter = (editor: LineEditor): Outcome => {
  if (editor.text[editor.cursor - 1] === "\\") {
    return edited(insert(cutBetween(editor, editor.cursor - 1, editor.cursor), "\n"))
  }
  const text = whole(editor)
  const last = editor.history[editor.history.length - 1]
  const history = text.trim() === "" || text === last ? editor.history : [...editor.history, text]
  const cut = whole({ ...editor, text: editor.cut })
  return Submitted({ editor: { ...make("", history), cut }, text, shown: shown(editor) })
}

// ---- folds

/** Code points that no text between programs has: U+FDD0 to U+FDEF. */
const marks = /[\ufdd0-\ufdef]/g
const noFolds: ReadonlyMap<string, string> = new Map()

const withoutMarks = (text: string): string => text.replace(marks, "")
const cleaned = (text: string): string => withoutMarks(text.replace(/\r\n?/g, "\n").replace(/[^\P{Cc}\n\t]/gu, ""))

const put = (editor: LineEditor, text: string): LineEditor => ({
  ...editor,
  text: editor.text.slice(0, editor.cursor) + text + editor.text.slice(editor.cursor),
  cursor: editor.cursor + text.length
})

const freeMark = ({ cut, kept, text }: LineEditor): string | undefined => {
  const used = new Set(text + kept + cut)
  for (let code = 0xfdd0; code <= 0xfdef; code++) {
    const mark = String.fromCharCode(code)
    if (!used.has(mark)) return mark
  }
  return undefined
}

const linesOf = (text: string): number => text.replace(/\n$/, "").split("\n").length
const isLong = (text: string): boolean => text.length > 2_000 || linesOf(text) > 8

const wordFor = (text: string, hint = ""): string => {
  const lines = linesOf(text)
  return lines > 1 ? `[${lines} lines${hint}]` : `[${text.length} characters${hint}]`
}

const label = (text: string) => ({ text, width: Display.width(text) })

// ---- movement

const lineStart = (editor: LineEditor): number => editor.text.lastIndexOf("\n", editor.cursor - 1) + 1
const lineEnd = (editor: LineEditor): number => {
  const end = editor.text.indexOf("\n", editor.cursor)
  return end < 0 ? editor.text.length : end
}

// Only the line around the cursor is segmented, so a long paste does not make every key slow.
const previous = (editor: LineEditor): number => {
  const start = lineStart(editor)
  if (editor.cursor === start) return Math.max(0, start - 1)
  return editor.cursor - (Display.clusters(editor.text.slice(start, editor.cursor)).at(-1)?.length ?? 0)
}
const next = (editor: LineEditor): number => {
  const end = lineEnd(editor)
  if (editor.cursor === end) return Math.min(editor.text.length, end + 1)
  return editor.cursor + (Display.clusters(editor.text.slice(editor.cursor, end))[0]?.length ?? 0)
}
const previousWord = (editor: LineEditor): number =>
  editor.text.slice(0, editor.cursor).replace(/[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u, "").length
const nextWord = (editor: LineEditor): number => {
  const word = /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(editor.text.slice(editor.cursor))
  return editor.cursor + (word?.[0].length ?? 0)
}
/** Back to the last white space, as shells do it. */
const previousBlank = (editor: LineEditor): number => editor.text.slice(0, editor.cursor).replace(/\S*\s*$/u, "").length

const move =
  (to: (editor: LineEditor) => number): Action =>
  (editor) => ({ ...editor, cursor: to(editor) })

const cutBetween = (editor: LineEditor, from: number, to: number): LineEditor => ({
  ...editor,
  text: editor.text.slice(0, from) + editor.text.slice(to),
  cursor: from
})

const erase =
  (to: (editor: LineEditor) => number): Action =>
  (editor) =>
    cutBetween(editor, Math.min(editor.cursor, to(editor)), Math.max(editor.cursor, to(editor)))

const cut =
  (to: (editor: LineEditor) => number): Action =>
  (editor) => {
    const [from, until] = [Math.min(editor.cursor, to(editor)), Math.max(editor.cursor, to(editor))]
    const text = editor.text.slice(from, until)
    return text === "" ? editor : { ...cutBetween(editor, from, until), cut: text }
  }

const recall = (editor: LineEditor, at: number): LineEditor => {
  if (at < 0 || at > editor.history.length) return editor
  const kept = editor.at === editor.history.length ? editor.text : editor.kept
  if (at === editor.history.length) return { ...editor, text: kept, cursor: kept.length, at, kept }
  return { ...paste({ ...editor, text: "", cursor: 0 }, editor.history[at] ?? ""), at, kept }
}

const up: Action = (editor) => {
  const start = lineStart(editor)
  if (start === 0) return recall(editor, editor.at - 1)
  const above = editor.text.lastIndexOf("\n", start - 2) + 1
  return { ...editor, cursor: sameColumn(editor, start, above, start - 1) }
}
const down: Action = (editor) => {
  const end = lineEnd(editor)
  if (end === editor.text.length) return recall(editor, editor.at + 1)
  const belowEnd = editor.text.indexOf("\n", end + 1)
  return {
    ...editor,
    cursor: sameColumn(editor, lineStart(editor), end + 1, belowEnd < 0 ? editor.text.length : belowEnd)
  }
}
/** The place in the line from `start` to `end` with the cursor's column in its own line, which starts at `own`. */
const sameColumn = (editor: LineEditor, own: number, start: number, end: number): number => {
  const count = Display.clusters(editor.text.slice(own, editor.cursor)).length
  return start + Display.clusters(editor.text.slice(start, end)).slice(0, count).join("").length
}

const plainKeys: ReadonlyMap<string, Action> = new Map([
  ["left", move(previous)],
  ["right", move(next)],
  ["up", up],
  ["down", down],
  ["home", move(lineStart)],
  ["end", move(lineEnd)],
  ["backspace", erase(previous)],
  ["delete", erase(next)]
])

const controlKeys: ReadonlyMap<string, Action> = new Map([
  ["a", move(lineStart)],
  ["e", move(lineEnd)],
  ["b", move(previous)],
  ["f", move(next)],
  ["left", move(previousWord)],
  ["right", move(nextWord)],
  ["home", move(() => 0)],
  ["end", move((editor) => editor.text.length)],
  ["p", up],
  ["n", down],
  ["d", erase(next)],
  ["h", erase(previous)],
  ["backspace", erase(previous)],
  ["k", cut(lineEnd)],
  ["u", cut(lineStart)],
  ["w", cut(previousBlank)],
  // It was in the editor before, with its folds.
  ["y", (editor) => put(editor, editor.cut)]
])

const metaKeys: ReadonlyMap<string, Action> = new Map([
  ["b", move(previousWord)],
  ["f", move(nextWord)],
  ["left", move(previousWord)],
  ["right", move(nextWord)],
  ["d", cut(nextWord)],
  ["backspace", cut(previousWord)]
])
