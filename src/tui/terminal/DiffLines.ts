/**
 * A unified diff as a person reads it: counts, line numbers, the words that changed, the colours of the code. All pure.
 *
 * ```
 *  src/a.ts · 1 line added, 1 removed
 *   1   const a = 1
 *   2 - const b = 2
 *   2 + const b = 22
 *     ⋮ 12 lines the same
 * ```
 *
 * A long diff loses lines that are the same in both versions, never one that changed.
 */
import { diffWordsWithSpace } from "diff/lib/diff/word.js"
import { parsePatch } from "diff/lib/patch/parse.js"
import * as Option from "effect/Option"
import * as TimeLimit from "./TimeLimit.js"
import type { Colors } from "./CodeColors.js"
import * as Display from "./Display.js"
import { drawn as drawnSigns, said, type Glyphs } from "./Glyphs.js"
import * as StyledText from "./StyledText.js"
import { colors as ink, over, weights, type Run } from "./StyledText.js"

export interface Look {
  readonly color: boolean
  /** Absent: code is not coloured. */
  readonly colors?: Colors | undefined
  /** More lines than these, and lines without a change are left out. */
  readonly most: number
  /** Default: drawn. */
  readonly signs?: Glyphs | undefined
}

/**
 * Lines, which may be longer than a row. Undefined when it is no diff of one file that can be read, or takes longer than
 * a person waits for a key.
 */
export const make = (patch: string, look: Look): ReadonlyArray<string> | undefined => {
  const language = languageOf(patch)
  // Whether the language is known, and what it takes to load it.
  const colors = look.color && look.colors?.("", language) !== undefined ? look.colors : undefined
  const drawn = (look: Look) => TimeLimit.run(() => linesOf(patch, look), TimeLimit.turn * 0.8)
  return drawn({ ...look, colors }).pipe(
    Option.orElse(() => (colors === undefined ? Option.none() : drawn({ ...look, colors: undefined }))),
    Option.getOrUndefined
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const linesOf = (patch: string, look: Look): ReadonlyArray<string> | undefined => {
  const parsed = parsedOf(patch)
  if (parsed === undefined) return undefined
  const rows = parsed.hunks.map(rowsOf)
  const all = rows.flat()
  const added = all.filter(({ sign }) => sign === "+").length
  const removed = all.filter(({ sign }) => sign === "-").length
  const isLong = all.length > look.most
  const width = String(all.reduce((most, { number }) => Math.max(most, number), 0)).length
  const between = (index: number) => {
    const [last, hunk] = [parsed.hunks[index - 1], parsed.hunks[index]]
    return last === undefined || hunk === undefined ? 0 : Math.max(0, hunk.newStart - last.newStart - last.newLines)
  }
  const shown = all.filter(({ sign }) => sign !== " " || !isLong)
  const drawing: Drawing = {
    width,
    look,
    colors: colored(shown, languageOf(patch), look.colors),
    words: compared(rows)
  }
  const pieces = rows.flatMap((hunk, index) => [{ same: between(index) }, ...drawn(hunk, isLong, drawing)])
  const lines = joined(pieces).map((piece) => (typeof piece === "string" ? piece : skip(piece.same, drawing)))
  const counts = [
    ...(added > 0 ? [`${added} ${added === 1 ? "line" : "lines"} added`] : []),
    ...(removed > 0 ? [`${removed} removed`] : [])
  ]
  const head = [`${parsed.name}${(look.signs ?? drawnSigns).between}${counts.join(", ")}`]
  return [...head.map((text) => StyledText.line([{ text, style: look.color ? weights.bold : 0 }])), ...lines]
}

interface Row {
  readonly sign: " " | "+" | "-" | "\\"
  /** In the version that has the line. */
  readonly number: number
  readonly text: string
}

/** The name of the file, which tells its language. */
const languageOf = (patch: string): string => /^\+\+\+ (?:[^\t\n]*\/)?([^\t\n/]*)/m.exec(patch)?.[1] ?? ""

const parsedOf = (patch: string) => {
  try {
    const [file, ...others] = parsePatch(patch)
    if (file === undefined || others.length > 0 || file.hunks.length === 0) return undefined
    const name = file.newFileName ?? file.oldFileName ?? ""
    return { hunks: file.hunks, name: Display.oneLine(name.replace(/^[ab]\//, "")) }
  } catch {
    return undefined
  }
}

const rowsOf = (hunk: {
  readonly oldStart: number
  readonly newStart: number
  readonly lines: ReadonlyArray<string>
}): ReadonlyArray<Row> => {
  let { newStart, oldStart } = hunk
  return hunk.lines.map((line): Row => {
    const sign = line.charAt(0)
    const text = Display.reveal(line.slice(1))
    if (sign === "-") return { sign, number: oldStart++, text }
    if (sign === "\\") return { sign, number: 0, text }
    oldStart += sign === "+" ? 0 : 1
    return { sign: sign === "+" ? "+" : " ", number: newStart++, text }
  })
}

interface Drawing {
  readonly width: number
  readonly look: Look
  /** Lines in the colours of their language. */
  readonly colors: ReadonlyMap<Row, ReadonlyArray<Run>>
  /** Lines whose words were compared. */
  readonly words: ReadonlyMap<Row, ReadonlyArray<Run>>
}

/** The first lines in their colours: as many as a person does not wait for. */
const colored = (rows: ReadonlyArray<Row>, language: string, colors: Look["colors"]): Drawing["colors"] => {
  const done = new Map<Row, ReadonlyArray<Run>>()
  let room = mostColored
  for (const row of colors === undefined ? [] : rows) {
    if ((room -= row.text.length) < 0) break
    const [line] = colors?.(row.text, language)?.lines ?? []
    if (line !== undefined) done.set(row, line)
  }
  return done
}

/** Lines that stand for one another in two versions, with the words that differ. */
const compared = (hunks: ReadonlyArray<ReadonlyArray<Row>>): Drawing["words"] => {
  const done = new Map<Row, ReadonlyArray<Run>>()
  let room = mostCompared
  for (const hunk of hunks) {
    for (let at = 0; at < hunk.length;) {
      const removed = run(hunk, at, "-")
      const added = run(hunk, at + removed.length, "+")
      for (const [index, before] of removed.entries()) {
        const after = added[index]
        if (after === undefined || (room -= before.text.length + after.text.length) < 0) break
        const words = changed(before.text, after.text)
        done.set(before, words.before).set(after, words.after)
      }
      at += Math.max(1, removed.length + added.length)
    }
  }
  return done
}

/** Lines that are the same in both versions, and left out. */
interface Gap {
  readonly same: number
}

type Piece = string | Gap

/** Gaps that meet are one, and a gap without lines is none. */
const joined = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
  const out: Array<Piece> = []
  for (const piece of pieces) {
    const last = out.at(-1)
    if (typeof piece === "string") out.push(piece)
    else if (typeof last === "object") out[out.length - 1] = { same: last.same + piece.same }
    else if (piece.same > 0) out.push(piece)
  }
  return out
}

const skip = (same: number, { look, width }: Drawing): string =>
  StyledText.line([
    {
      text: `${" ".repeat(width + 1)}${look.signs === said ? "" : "⋮ "}${same} ${same === 1 ? "line" : "lines"} the same`,
      style: look.color ? weights.dim : 0
    }
  ])

const drawn = (hunk: ReadonlyArray<Row>, isLong: boolean, drawing: Drawing): ReadonlyArray<Piece> => {
  const out: Array<Piece> = []
  for (let at = 0; at < hunk.length;) {
    const row = hunk[at]
    if (row === undefined) break
    if (row.sign === " " && isLong) {
      out.push({ same: 1 })
      at++
      continue
    }
    const removed = run(hunk, at, "-")
    const added = run(hunk, at + removed.length, "+")
    if (removed.length + added.length === 0) {
      out.push(lineOf(row, [{ text: row.text, style: 0 }], drawing))
      at++
      continue
    }
    for (const row of [...removed, ...added]) out.push(lineOf(row, drawing.words.get(row) ?? whole(row.text), drawing))
    at += removed.length + added.length
  }
  return out
}

const run = (hunk: ReadonlyArray<Row>, from: number, sign: Row["sign"]): ReadonlyArray<Row> => {
  let end = from
  while (hunk[end]?.sign === sign) end++
  return hunk.slice(from, end)
}

const whole = (text: string): ReadonlyArray<Run> => [{ text, style: 0 }]

/** Characters of two lines, and edits between them: a search for more takes a time that grows with their square. */
const longestCompared = 1_000
const mostEdits = 100

/** Characters of a diff that are compared word by word, and that are coloured. */
const mostCompared = 20_000
const mostColored = 10_000

/** Two versions of a line; what differs is bold. Lines with little in common are not compared word by word. */
const changed = (before: string, after: string) => {
  if (before.length + after.length > longestCompared) return { before: whole(before), after: whole(after) }
  const parts = diffWordsWithSpace(before, after, { maxEditLength: mostEdits })
  if (parts === undefined) return { before: whole(before), after: whole(after) }
  const same = parts.reduce((sum, part) => sum + (part.added || part.removed ? 0 : part.value.trim().length), 0)
  if (same * 3 < Math.max(before.trim().length, after.trim().length))
    return { before: whole(before), after: whole(after) }
  const mark = (isOther: "added" | "removed", isOwn: "added" | "removed") =>
    parts
      .filter((part) => !part[isOther])
      .map(({ value, ...part }) => ({ text: value, style: part[isOwn] ? weights.bold | weights.underline : 0 }))
  return { before: mark("added", "removed"), after: mark("removed", "added") }
}

/** A line with its number and sign; the code in its colours, and on top of these what has changed. */
const lineOf = (row: Row, marks: ReadonlyArray<Run>, { colors, look, width }: Drawing): string => {
  const { number, sign, text } = row
  const tint = sign === "+" ? ink.green : sign === "-" ? ink.red : 0
  const place = `${sign === "\\" ? "" : number}`.padStart(width)
  if (!look.color) return `${place} ${sign} ${text}`
  const code = colors.get(row)
  const runs =
    code === undefined ? marks.map((mark) => ({ ...mark, style: over(tint, mark.style) })) : laid(code, marks, tint)
  return StyledText.line([{ text: `${place} `, style: weights.dim }, { text: `${sign} `, style: tint }, ...runs])
}

/** Coloured code with marks on it: the marks' style, and the tint where something is marked. */
const laid = (code: ReadonlyArray<Run>, marks: ReadonlyArray<Run>, tint: number): ReadonlyArray<Run> => {
  const out: Array<Run> = []
  let index = 0
  let used = 0
  for (const { style, text } of code) {
    for (let at = 0; at < text.length;) {
      const mark = marks[index]
      const length = Math.min(text.length - at, mark === undefined ? Infinity : mark.text.length - used)
      const isMarked = mark !== undefined && mark.style !== 0
      out.push({ text: text.slice(at, at + length), style: isMarked ? over(style, mark.style | tint) : style })
      at += length
      used += length
      if (mark !== undefined && used >= mark.text.length) {
        index++
        used = 0
      }
    }
  }
  return out
}
