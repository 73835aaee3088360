/** The difference of two texts as a unified diff. */
import { formatPatch, structuredPatch } from "diff/lib/patch/create.js"

/** A unified diff; undefined when the versions differ too much. Compares only the differing range. */
export const make = (oldName: string, newName: string, before: string, after: string): string | undefined => {
  const { beforeEnd, afterEnd, start } = differing(before, after)
  const [removed, added] = [before.slice(start, beforeEnd), after.slice(start, afterEnd)]
  if (removed.length + added.length > maxCompared.characters) return undefined
  if (countLines(removed) + countLines(added) > maxCompared.lines) return undefined
  const patch = structuredPatch(oldName, newName, removed, added, undefined, undefined, {
    context,
    maxEditLength: maxCompared.edits
  })
  if (patch === undefined) return undefined
  const above = countLines(before.slice(0, start))
  const hunks = patch.hunks.map((hunk) => ({
    ...hunk,
    lines: withEnds(hunk.lines),
    oldStart: hunk.oldStart + above,
    newStart: hunk.newStart + above
  }))
  return formatPatch({ ...patch, hunks }).replace(/^=+\n/, "")
}

/** Lines of a text; a last line needs no line ending. */
const countLines = (text: string): number =>
  text === "" ? 0 : lineEnds(text, text.length) + (text.endsWith("\n") ? 0 : 1)

/** Line ends before a place in a text. */
export const lineEnds = (text: string, to: number): number => {
  let count = 0
  for (let at = 0; at < to; at++) if (text.charCodeAt(at) === 10) count++
  return count
}

/** Such as `3 lines`. */
export const sizeOf = (text: string): string => {
  const lines = countLines(text)
  return `${lines} ${lines === 1 ? "line" : "lines"}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Limits of the search for a diff, for both versions together: it runs synchronously and would delay all other fibers. They
 * bound the work, to some 25 ms, and not the time: what a person is shown must not depend on what else the machine does.
 */
const maxCompared = { characters: 400_000, lines: 6_000, edits: 500 }

/** Lines around a change. */
const context = 3

/** The lines of a hunk; the ends of two that differ in nothing else can be seen. */
const withEnds = (lines: ReadonlyArray<string>): Array<string> => {
  const out = [...lines]
  for (let at = 0; at < out.length;) {
    const added = endOf(out, at, "-")
    const end = endOf(out, added, "+")
    for (let index = 0; at + index < added && added + index < end; index++) {
      const [before = "", after = ""] = [out[at + index], out[added + index]]
      if (before.slice(1).replace(blanks, "") !== after.slice(1).replace(blanks, "")) continue
      out[at + index] = before.replace(blanks, spelledOut)
      out[added + index] = after.replace(blanks, spelledOut)
    }
    at = Math.max(at + 1, end)
  }
  return out
}

const endOf = (lines: ReadonlyArray<string>, from: number, sign: string): number => {
  let end = from
  while (lines[end]?.startsWith(sign) === true) end++
  return end
}

/** Those at the end of a line, which begins with its sign. */
const blanks = /(?<![ \t\r])[ \t\r]+$/
const spelledOut = (text: string): string => text.replaceAll(" ", "·").replaceAll("\t", "→").replaceAll("\r", "␍")

/** The range in which two texts differ, with some lines around: from `start`, to an end in each of them. */
const differing = (before: string, after: string) => {
  const shorter = Math.min(before.length, after.length)
  let same = 0
  while (same < shorter && before.charCodeAt(same) === after.charCodeAt(same)) same++
  let end = 0
  while (
    end < shorter - same &&
    before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)
  ) {
    end++
  }
  let start = lineStart(before, same)
  for (let line = 0; line < context && start > 0; line++) start = lineStart(before, start - 1)
  let beforeEnd = before.length - end
  for (let line = 0; line <= context && beforeEnd < before.length; line++) {
    const next = before.indexOf("\n", beforeEnd)
    beforeEnd = next < 0 ? before.length : next + 1
  }
  return { start, beforeEnd, afterEnd: after.length - (before.length - beforeEnd) }
}

const lineStart = (text: string, at: number): number => (at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1)
