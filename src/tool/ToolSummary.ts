/**
 * The result of a call in few words, as a person would say it: `12 lines`, `3 matches in 2 files`, `exit 1`. It goes by
 * what results look like, so that it needs no tool: a journal has results only.
 */
import * as Redaction from "../core/Redaction.js"

/** In at most 200 characters, secrets masked. */
export const of = (result: unknown, redactor: Pick<Redaction.Masking, "text">): string => {
  if (typeof result === "string") return ofText(result, redactor)
  const printed = isRecord(result) && "exitCode" in result ? result["output"] : undefined
  if (typeof printed === "string") return printed.trim() === "" ? "no output" : ofText(printed, redactor)
  if (isJob(result)) {
    const printed = result.output.trim() === "" ? "no output" : ofText(result.output, redactor)
    return `${result.job_id} ${result.state === "running" ? "runs" : "has ended"} · ${printed}`
  }
  return isEdited(result) ? of(result.result, redactor) : Redaction.summarize(result, redactor)
}

/** What went wrong in a call that ran to its end, as a command with another exit code than 0 does. */
export const fault = (result: unknown): string | undefined => {
  if (!isRecord(result)) return undefined
  const { exitCode, signal } = result
  if (typeof exitCode === "number") return exitCode === 0 ? undefined : `exit ${exitCode}`
  if (exitCode === null) return typeof signal === "string" ? `ended by ${signal}` : "ended by a signal"
  return isEdited(result) ? fault(result.result) : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A background job, and what it printed. */
const isJob = (value: unknown): value is { readonly job_id: string; readonly state: string; readonly output: string } =>
  isRecord(value) &&
  typeof value["job_id"] === "string" &&
  typeof value["state"] === "string" &&
  typeof value["output"] === "string"

/** A result with the note that its arguments were edited. */
const isEdited = (value: unknown): value is { readonly result: unknown } =>
  isRecord(value) && "result" in value && typeof value["notice"] === "string" && Object.keys(value).length === 2

const ofText = (text: string, redactor: Pick<Redaction.Masking, "text">): string => {
  const body = text.endsWith("\n") ? text.slice(0, -1) : text
  const end = body.indexOf("\n")
  const first = end < 0 ? body : body.slice(0, end)
  if (/^ *\d+\t/.test(first)) return count(body.match(/^ *\d+\t/gm)?.length ?? 0, "line")
  if (place.test(first)) {
    const files = Array.from(body.matchAll(new RegExp(place, "gm")), ([, file]) => file)
    return `${count(files.length, "match", "matches")} in ${count(new Set(files).size, "file")}`
  }
  return end < 0 ? Redaction.summarize(body, redactor) : count(body.split("\n").length, "line")
}

/** A line that was found: its file, its number and its text. */
const place = /^([^\n:]+):\d+: /

const count = (amount: number, one: string, several = `${one}s`): string =>
  `${String(amount).replace(/\B(?=(\d{3})+$)/g, ",")} ${amount === 1 ? one : several}`
