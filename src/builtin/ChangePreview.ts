/** What a person is shown about a call that changes a file or runs a command. */
import { createTwoFilesPatch } from "diff"
import * as Option from "effect/Option"
import type { ToolDisplay } from "../tool/ToolCall.js"
import { clip } from "./LineReader.js"
import { countLines, type Change } from "./WorkspaceFile.js"

/** A unified diff, and in the summary whether a file is created, replaced or edited. */
export const ofChange = (change: Change, verb: "replace" | "edit"): ToolDisplay => {
  const { target, after } = change
  const isNew = Option.isNone(change.before)
  const before = Option.getOrElse(change.before, () => "")
  const lines = countLines(after)
  const size = `${lines} ${lines === 1 ? "line" : "lines"}`
  const summary = isNew
    ? `create ${target.shown} (new file, ${size})`
    : verb === "replace"
      ? `replace the whole of ${target.shown}, which exists (${size})`
      : `edit ${target.shown}${change.places === 1 ? "" : ` in ${change.places} places`}`
  const patch = createTwoFilesPatch(
    isNew ? "/dev/null" : `a/${target.shown}`,
    `b/${target.shown}`,
    before ?? "",
    after,
    undefined,
    undefined,
    { context: 3, timeout: patience }
  )
  const warnings = [
    ...(before === undefined
      ? [`${target.shown} holds something that cannot be shown as text; it would be lost.`]
      : []),
    ...(!isNew && before === after ? ["Nothing would change."] : []),
    ...(patch === undefined ? ["The two versions differ too much for a diff; the new one is shown."] : [])
  ]
  return display(summary, patch === undefined ? after : patch.replace(/^=+\n/, ""), warnings, {
    format: patch === undefined ? "text" : "diff"
  })
}

/** The command and where it runs. */
export const ofCommand = (command: string, directory: string): ToolDisplay => {
  const first = command.trim().split("\n", 1)[0] ?? ""
  const summary = `run ${clip(first, 100)}${first === command.trim() && first.length <= 100 ? "" : " …"} in ${directory}`
  return display(summary, command, [], { format: "code", language: "sh" })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxDetails = 20_000
/** Milliseconds that finding a short diff may take. */
const patience = 300

const display = (
  summary: string,
  details: string,
  warnings: ReadonlyArray<string>,
  how: { readonly format: "diff" | "text" } | { readonly format: "code"; readonly language: string }
): ToolDisplay => ({
  summary: visible(summary),
  details: clip(visible(details), maxDetails),
  ...how,
  ...(details.length > maxDetails ? { truncated: true } : {}),
  ...(warnings.length > 0 ? { warnings } : {})
})

/**
 * Characters that a terminal would act on, and those that turn the direction of text, as visible symbols: what a person
 * approves is what they see.
 */
const visible = (text: string): string =>
  text
    .replace(/\r\n/g, "\n")
    .replace(/[\0-\x08\x0b-\x1f]/g, (char) => String.fromCharCode(0x2400 + char.charCodeAt(0)))
    .replace(
      /[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
      (char) => `<U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`
    )
