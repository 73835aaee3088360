/**
 * A call and its result in few words, as a person would say them: `npm test, timeout=60`, `12 lines`, `lines 1–9 of 12`,
 * `3 matches in 2 files`, `exit 1`. It goes by what arguments and results look like, so that it needs no tool: a journal has names and values only.
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
  return Redaction.summarize(cancelledOf(result) ?? answersOf(result) ?? filledOf(result) ?? result, redactor)
}

/**
 * The arguments of a call in at most 200 characters, secrets masked: what it is about, then the others by name. The text of
 * a file is left out, a plan is its title, and of questions the texts are told: they are shown where somebody decides
 * about them or answers them.
 */
export const ofCall = (params: unknown, redactor: Pick<Redaction.Masking, "text">): string => {
  if (!isRecord(params)) return Redaction.summarize(params, redactor)
  const questions = questionsOf(params["questions"])
  if (questions !== undefined) return Redaction.summarize(questions, redactor)
  const subject = subjects.find((name) => typeof params[name] === "string")
  if (subject === undefined) return Redaction.summarize(params, redactor)
  let text = subject === "plan" ? titleOf(String(params[subject])) : String(params[subject])
  const isFile = subject === "path"
  for (const name of Object.keys(params)) {
    const value = params[name]
    if (name === subject || (isFile && typeof value === "string" && contents.has(name))) continue
    text += `, ${name}=${typeof value === "string" ? value : (JSON.stringify(value) ?? "")}`
  }
  return Redaction.summarize(text, redactor)
}

/** What went wrong in a call that ran to its end, as a command with another exit code than 0 does. */
export const fault = (result: unknown): string | undefined => {
  if (!isRecord(result)) return undefined
  const { exitCode, signal } = result
  if (typeof exitCode === "number") return exitCode === 0 ? undefined : `exit ${exitCode}`
  if (exitCode === null) return typeof signal === "string" ? `ended by ${signal}` : "ended by a signal"
  return undefined
}

/** A result, masked, as an event has it. A longer one is cut to the beginning of its text. */
export const shown = (result: unknown): { readonly result: unknown; readonly leftOut?: number } => {
  const text = typeof result === "string" ? result : typeof result === "object" ? JSON.stringify(result) : ""
  if (text.length <= longest) return { result }
  // Half of a surrogate pair is no character.
  const beginning = text.slice(0, longest).replace(/[\uD800-\uDBFF]$/, "")
  return { result: beginning, leftOut: text.length - beginning.length }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters of a result in an event. */
const longest = 16_000

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Arguments that say what a call is about, whatever stands before them. */
const subjects = ["command", "pattern", "path", "plan"] as const

/** Arguments that are the text of a file. */
const contents: ReadonlySet<string> = new Set(["content", "old_text", "new_text"])

/** The texts of questions to a person. */
const questionsOf = (value: unknown): string | undefined => {
  if (!Array.isArray(value) || value.length === 0) return undefined
  const texts = value.map((one: unknown) => (isRecord(one) ? one["text"] : undefined))
  return texts.every((text) => typeof text === "string") ? texts.join(" / ") : undefined
}

/** What is said of a question that a person cancelled. */
const cancelledOf = (result: unknown): string | undefined =>
  isRecord(result) && result["cancelled"] === true && typeof result["message"] === "string"
    ? result["message"]
    : undefined

/** What a person answered to numbered questions. */
const answersOf = (result: unknown): string | undefined => {
  if (!isRecord(result)) return undefined
  const numbers = Object.keys(result)
  if (numbers.length === 0 || !numbers.every((number) => /^[1-9]\d*$/.test(number))) return undefined
  const answers = numbers.map((number) => answerOf(result[number]))
  return answers.every((answer) => answer !== undefined) ? answers.join(" / ") : undefined
}

const answerOf = (answer: unknown): string | undefined => {
  if (!isRecord(answer)) return undefined
  const { skipped, text, texts, value } = answer
  if (skipped === true) return "skipped"
  if (Array.isArray(texts)) return texts.length === 0 ? "none" : texts.join(", ")
  return [text, value].find((one) => typeof one === "string")
}

/** The values of a form that was filled in, by name. */
const filledOf = (result: unknown): unknown =>
  isRecord(result) && isRecord(result["values"]) && Object.keys(result).length === 1 ? result["values"] : undefined

/** The first line of a Markdown text, without the marks of a heading. */
const titleOf = (text: string): string => {
  const [first = ""] = text.trim().split("\n", 1)
  return first.replace(/^#{1,6}\s+/, "").replace(/\s+#*\s*$/, "")
}

/** A background job, and what it printed. */
const isJob = (value: unknown): value is { readonly job_id: string; readonly state: string; readonly output: string } =>
  isRecord(value) &&
  typeof value["job_id"] === "string" &&
  typeof value["state"] === "string" &&
  typeof value["output"] === "string"

const ofText = (text: string, redactor: Pick<Redaction.Masking, "text">): string => {
  const body = text.endsWith("\n") ? text.slice(0, -1) : text
  const end = body.indexOf("\n")
  const first = end < 0 ? body : body.slice(0, end)
  if (/^ *\d+\t/.test(first)) return partOf(body) ?? count(body.match(/^ *\d+\t/gm)?.length ?? 0, "line")
  if (place.test(first)) {
    const files = Array.from(body.matchAll(new RegExp(place, "gm")), ([, file]) => file)
    return `${count(files.length, "match", "matches")} in ${count(new Set(files).size, "file")}`
  }
  return end < 0 ? Redaction.summarize(body, redactor) : count(body.split("\n").length + leftOut(body), "line")
}

/** Which lines of a file these are, where they are not all. */
const partOf = (body: string): string | undefined => {
  const [, which] = /\n\[(Lines? \d[\d,–]*(?: of \d[\d,]*|; more follow))\.[^\n]*\]$/.exec(body) ?? []
  return which?.replace(/^L/, "l")
}

/** Lines of a long output that its text leaves out, less the two that the mark for them adds. */
const leftOut = (body: string): number => {
  const [mark, lines = "0"] = /^\[… \d+ characters(?: in (\d+) lines?)? left out[;\]]/m.exec(body) ?? []
  return mark === undefined ? 0 : Number(lines) - 2
}

/** A line that was found: its file, its number and its text. */
const place = /^([^\n:]+):\d+: /

const count = (amount: number, one: string, several = `${one}s`): string =>
  `${String(amount).replace(/\B(?=(\d{3})+$)/g, ",")} ${amount === 1 ? one : several}`
