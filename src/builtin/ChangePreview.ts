/** What a person is shown about a call that changes a file or runs a command. */
import { formatPatch, structuredPatch } from "diff/lib/patch/create.js"
import * as Option from "effect/Option"
import * as Shortened from "../core/Shortened.js"
import { visible } from "../core/Visible.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import { clip } from "./LineReader.js"
import type { Target } from "./WorkspaceRoot.js"
import { countLines, sizeOf, type Change } from "./WorkspaceFile.js"

/** A unified diff, and in the summary whether a file is created, replaced or edited. */
export const ofChange = (change: Change, verb: "replace" | "edit"): ToolDisplay => {
  const { target, after } = change
  const isNew = Option.isNone(change.before)
  const before = Option.getOrElse(change.before, () => "")
  const summary = isNew
    ? `create ${target.shown} (new file, ${sizeOf(after)})`
    : verb === "replace"
      ? `replace the whole of ${target.shown}${before === undefined ? "" : `: ${sizeOf(before)}`} by ${sizeOf(after)}`
      : `edit ${target.shown}${change.places === 1 ? "" : ` in ${change.places} places`}`
  const patch = patchOf(isNew ? "/dev/null" : `a/${target.shown}`, `b/${target.shown}`, before ?? "", after)
  const isSame = !isNew && before === after
  const warnings = [
    ...(before === undefined
      ? [`${target.shown} holds something that cannot be shown as text; it would be lost.`]
      : []),
    ...(isSame ? ["Nothing would change."] : []),
    ...(!isSame && !isNew && before?.replaceAll("\r\n", "\n") === after.replaceAll("\r\n", "\n")
      ? ["Only line ends differ: ␍ shows where a line ends with a carriage return."]
      : []),
    ...(patch === undefined ? ["The two versions differ too much for a diff; the new one is shown."] : [])
  ]
  const shown = display(summary, isSame ? undefined : (patch ?? after), warnings, {
    format: patch === undefined ? "text" : "diff"
  })
  if (before === undefined || before.length + after.length > maxChange) return shown
  const texts = isNew ? { after } : { before, after }
  return { ...shown, change: { path: target.absolute, ...texts } }
}

/**
 * The command, where it runs unless that is the workspace, and whether it goes on in the background. The command is last: its
 * own words cannot look like ours.
 */
export const ofCommand = (command: string, { shown }: Pick<Target, "shown">, background = false): ToolDisplay => {
  const first = command.trim().split("\n", 1)[0] ?? ""
  const where = shown === "." ? "" : ` in ${shown}`
  const how = `run${where}${background ? " in the background, until the session ends" : ""}`
  const isAll = first === command.trim() && first.length <= summarised
  // A program may be called `in`.
  const colon = how === "run" && !first.startsWith("in ") ? "" : ":"
  const summary = `${how}${colon} ${clip(first, summarised)}${isAll ? "" : " …"}`
  return display(summary, command, [], { format: "code", language: "sh" })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters of a command in its summary: most are there whole, and are shown to a person once. */
const summarised = 200

/** Characters that are shown whole. A longer text is shown by its beginning and its end. */
const shownWhole = { head: 80_000, tail: 20_000 }

/**
 * Limits of the search for a diff, for both versions together: it runs synchronously and would delay all other fibers. They
 * bound the work, to some 25 ms, and not the time: what a person is shown must not depend on what else the machine does.
 */
const maxCompared = { characters: 400_000, lines: 6_000, edits: 500 }

/** Characters of both versions of a file that a display carries whole. */
const maxChange = 100_000

/** Lines around a change. */
const context = 3

/** A unified diff; undefined when the versions differ too much. Compares only the differing range. */
const patchOf = (oldName: string, newName: string, before: string, after: string): string | undefined => {
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

const display = (
  summary: string,
  details: string | undefined,
  warnings: ReadonlyArray<string>,
  how: { readonly format: "diff" | "text" } | { readonly format: "code"; readonly language: string }
): ToolDisplay => {
  const shortened = details === undefined ? undefined : Shortened.make(details, shownWhole)
  return {
    summary: visible(summary),
    ...(details === undefined
      ? {}
      : { details: visible((shortened === undefined ? details : Shortened.text(shortened)).replaceAll("\r\n", "\n")) }),
    ...how,
    ...(shortened === undefined ? {} : { truncated: true }),
    ...(warnings.length > 0 ? { warnings } : {})
  }
}
