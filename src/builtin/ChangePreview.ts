/** What a person is shown about a call that changes a file or runs a command. */
import * as Option from "effect/Option"
import * as Truncated from "../core/Truncated.js"
import { visible } from "../core/Visible.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import { clip } from "./LineReader.js"
import { make as patchOf, sizeOf } from "./TextPatch.js"
import type { Target } from "./WorkspaceRoot.js"
import type { Change } from "./WorkspaceFile.js"

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
    ...(change.isUnread && before !== undefined ? [`The agent has not read ${target.shown}.`] : []),
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

/** Characters of both versions of a file that a display carries whole. */
const maxChange = 100_000

const display = (
  summary: string,
  details: string | undefined,
  warnings: ReadonlyArray<string>,
  how: { readonly format: "diff" | "text" } | { readonly format: "code"; readonly language: string }
): ToolDisplay => {
  const shortened = details === undefined ? undefined : Truncated.make(details, shownWhole)
  return {
    summary: visible(summary),
    ...(details === undefined
      ? {}
      : { details: visible((shortened === undefined ? details : Truncated.text(shortened)).replaceAll("\r\n", "\n")) }),
    ...how,
    ...(shortened === undefined ? {} : { truncated: true }),
    ...(warnings.length > 0 ? { warnings } : {})
  }
}
