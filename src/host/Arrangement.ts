/**
 * In what order people are asked, and which model looks at calls before them: from flags and files. A workspace's own files
 * count here only once the person trusted them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import type { Overrides } from "./Overrides.js"
import * as TimeText from "./TimeText.js"
import type * as ConfigFile from "./local/ConfigFile.js"
import { make as invalid, type ConfigurationInvalid } from "./local/ConfigurationInvalid.js"

/** A model that decides about what the policy delegates. */
export interface Reviewer {
  /** A reference, as of the agent's own model. */
  readonly model: string
  readonly budget: { readonly calls: number | undefined; readonly tokens: number | undefined } | undefined
  /** Milliseconds for one call. */
  readonly timeout: number | undefined
  readonly instructions: string | undefined
}

/** One channel after the other. */
export interface Escalation {
  /** Milliseconds. */
  readonly after: number
  /** Channels as `--channel` takes them, where a file names them. */
  readonly to: ReadonlyArray<string>
  /** Whether a flag wants it: then it is a mistake to have nobody to go on to. */
  readonly isFlag: boolean
}

/** The flag, else the file. `none` is no model. */
export const reviewer = (
  flags: Overrides,
  { reviewer: file }: ConfigFile.ConfigFile
): Effect.Effect<Reviewer | undefined, ConfigurationInvalid> => {
  const { reviewer: named, yolo } = flags
  if (named !== undefined && named !== none && yolo === true) {
    return invalid("--yolo asks nobody, not even a model; leave out --reviewer.")
  }
  if (named?.trim() === "") return invalid("--reviewer needs a model, such as anthropic/claude-haiku-4-5, or none.")
  if (yolo === true || named === none || (named === undefined && file === undefined)) return Effect.succeed(undefined)
  const { budget, instructions, model, timeout } = typeof file === "string" ? { model: file } : { model: "", ...file }
  return Effect.succeed({
    model: named ?? model,
    budget: budget && { calls: budget.calls, tokens: budget.tokens },
    timeout: timeout === undefined ? undefined : timeout * 1_000,
    instructions
  })
}

/** The flag, else the file. `none` is no escalation: all are asked at once. */
export const escalation = (
  flags: Overrides,
  { escalate: file }: ConfigFile.ConfigFile
): Effect.Effect<Escalation | undefined, ConfigurationInvalid> => {
  const { escalate: named, jsonl, yolo } = flags
  if (named === none) return Effect.succeed(undefined)
  if (named === undefined) {
    if (file === undefined || yolo === true || jsonl === true) return Effect.succeed(undefined)
    const { after, to = [] } = typeof file === "string" ? { after: file } : file
    const limit = TimeText.parse(after)
    return limit === undefined
      ? invalid(`escalate: ${JSON.stringify(after)} is not a duration. Use one such as 90s, 5m or 1.5h.`)
      : Effect.succeed({ after: limit, to, isFlag: false })
  }
  if (yolo === true) return invalid("--yolo asks nobody; leave out --escalate.")
  if (jsonl === true) {
    return invalid("With --jsonl the program at the other end decides who is asked and when; leave out --escalate.")
  }
  const after = TimeText.parse(named)
  return after === undefined
    ? invalid(`--escalate takes a time such as 90s, 5m or 1.5h, or none, not ${JSON.stringify(named)}.`)
    : Effect.succeed({ after, to: (typeof file === "string" ? undefined : file?.to) ?? [], isFlag: true })
}

/** The file with its directories as paths from where it is. */
export const placed = (file: ConfigFile.ConfigFile, directory: string): ConfigFile.ConfigFile => {
  const { escalate } = file
  if (escalate === undefined || typeof escalate === "string" || escalate.to === undefined) return file
  const to = escalate.to.map((channel) =>
    channel.startsWith("file:") ? `file:${path.resolve(directory, channel.slice("file:".length))}` : channel
  )
  return { ...file, escalate: { ...escalate, to } }
}

/** What the model may decide, for a person. */
export const describeReviewer = ({ budget, model }: Reviewer): string => {
  const limits = [
    ...(budget?.calls === undefined ? [] : [`${budget.calls} calls`]),
    ...(budget?.tokens === undefined ? [] : [`${budget.tokens} tokens`])
  ]
  const within = limits.length === 0 ? "" : `, within ${limits.join(" and ")}`
  return `${model} decides what the policy delegates, or passes it on${within}`
}

/** Who is asked, one after the other. */
export const describeEscalation = (names: ReadonlyArray<string>, after: number): string =>
  names.join(`, after ${Duration.format(after)} also `)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none = "none"
