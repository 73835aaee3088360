/** Describes the result of a tool call in a few words for a person. */
import { isRecord } from "effect/Predicate"
import type * as Prompt from "@effect/ai/Prompt"

/** One paragraph about one result: what happened, and at most {@link maxLines} lines of the result. */
export const describe = (result: Prompt.ToolResultPart): string => {
  const body = shorten(textOf(result.result))
  if (isRecord(result.result) && result.result["cancelled"] === true) {
    return `${result.name} was cancelled${withReason(result.result["message"])}.`
  }
  if (result.isFailure) {
    return unrun.test(body) ? `${result.name} was not run. ${body}` : headed(`${result.name} failed:`, body)
  }
  if (isRecord(result.result)) {
    const answers = answersOf(result.result)
    if (answers !== undefined) return `You answered: ${answers}`
    const { exitCode, output } = result.result
    if (typeof output === "string" && (typeof exitCode === "number" || exitCode === null)) {
      const end = exitCode === 0 ? "" : ` ended with ${exitCode === null ? "a signal" : `exit code ${exitCode}`}`
      return output === "" && exitCode === 0 ? nothing(result.name) : headed(`${result.name}${end}:`, asIs(output))
    }
    if (typeof result.result["success"] === "boolean" && result.result["output_streamed"] === true) {
      // People have read what it said.
      const { error, success } = result.result
      return success ? `${result.name} is done.` : `${result.name} did not succeed${withReason(error)}.`
    }
    if (typeof result.result["success"] === "boolean" && typeof result.result["response"] === "string") {
      const { error, response, success } = result.result
      return success
        ? headed(`${result.name} came back with:`, shorten(String(response)))
        : headed(`${result.name} did not succeed${withReason(error)}.`, shorten(String(response)))
    }
  }
  return body === "" ? nothing(result.name) : headed(`${result.name}:`, asIs(textOf(result.result)))
}

/** A text on one line of at most 80 characters. */
export const oneLine = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length <= 80 ? line : `${line.slice(0, 79)}…`
}

/** How many lines, and characters, of a result are shown. */
const maxLines = 20
const maxCharacters = 1500

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The beginnings of results of calls that a person, a rule or a timeout prevented. */
const unrun = /^(?:Permission denied|Tool not executed|Permission check failed|cancelled|halted)/

const withReason = (reason: unknown): string =>
  typeof reason === "string" && reason !== "" ? `: ${reason.replace(/\.$/, "")}` : ""

const nothing = (name: string): string => `${name}: done, nothing to show.`

const headed = (head: string, body: string): string => {
  if (body === "") return head.replace(/:$/, ".")
  return /[\n\t]/.test(body) || head.length + body.length > 100 ? `${head}\n${body}` : `${head} ${body}`
}

const shorten = (text: string): string => {
  const { kept, missing } = beginning(text)
  return missing === "" ? kept : `${kept}\n${missing}`
}

/** What a tool printed is no Markdown: more than one line of it stands in a fence. */
const asIs = (text: string): string => {
  const { kept, missing } = beginning(text)
  if (!kept.includes("\n")) return shorten(text)
  const longest = Math.max(2, ...Array.from(kept.matchAll(/`{3,}/g), ([marks]) => marks.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}\n${kept}\n${fence}${missing === "" ? "" : `\n${missing}`}`
}

const beginning = (text: string): { readonly kept: string; readonly missing: string } => {
  const lines = text.trimEnd().split("\n")
  const kept = lines.slice(0, maxLines).join("\n")
  const cut = kept.length > maxCharacters ? `${kept.slice(0, maxCharacters - 1)}…` : kept
  const missing = lines.length - maxLines
  return { kept: cut, missing: missing > 0 ? `… and ${missing} more ${missing === 1 ? "line" : "lines"}` : "" }
}

/** Texts as they are, members as `name: value`, lists one item a line; what is deeper as JSON. */
const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value === null || value === undefined) return ""
  if (Array.isArray(value)) return value.map(itemOf).join("\n")
  if (!isRecord(value)) return String(value)
  return Object.entries(value)
    .filter(([, member]) => member !== "" && member !== null && member !== undefined)
    .map(([name, member]) => {
      const text = Array.isArray(member) ? member.map(itemOf).join("\n") : itemOf(member)
      return text.includes("\n") ? `${name}:\n${text.trimEnd()}` : `${name}: ${text}`
    })
    .join("\n")
}

const itemOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/** The answers to a clarification, which are keyed by question numbers. */
const answersOf = (result: { readonly [key: string]: unknown }): string | undefined => {
  const entries = Object.entries(result)
  if (entries.length === 0 || !entries.every(([number, answer]) => /^[1-9][0-9]*$/.test(number) && isRecord(answer))) {
    return undefined
  }
  return entries
    .map(([, answer]) => {
      if (!isRecord(answer)) return ""
      if (answer["skipped"] === true) return "(skipped)"
      if (Array.isArray(answer["texts"])) return answer["texts"].join(", ")
      return String(answer["text"] ?? answer["value"] ?? "")
    })
    .join("; ")
}
