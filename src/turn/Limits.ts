/** Limits of a session. Each ends work with a reason, never silently. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Input from "../inbox/Input.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Counts are whole numbers, or infinite; from 1 up unless they say otherwise.
 *
 * @since 0.1.0
 * @category models
 */
export interface Limits extends Input.Limits {
  /** Model calls in one turn. Default: 100. */
  readonly maxSteps: number
  /** Tools that run concurrently. Default: 8. */
  readonly parallelTools: number
  /** Calls of one step; the others get an error result. Default: 128. */
  readonly callsPerStep: number
  /** Errors of the same call in a row, or refusals of it by a person, that end the turn. Default: 5. */
  readonly identicalErrors: number
  /** Characters of one generation. Default: 2,000,000. */
  readonly maxGeneration: number
  /** Characters of one tool result as the model sees it. Default: 200,000. */
  readonly maxResult: number
  /** How often a model is told that its answer does not fit the schema of a typed result; 0 is never. Default: 2. */
  readonly outputRetries: number
  /** Attempts at one model call, the first included. Default: 6. */
  readonly modelAttempts: number
  /** How long a model may be silent before the attempt fails and is retried; zero is for ever. Default: 5 minutes. */
  readonly modelSilence: Duration.DurationInput
  /** Delay before the second attempt; doubles from there. Default: 1 second. */
  readonly retryDelay: Duration.DurationInput
  /** The longest delay between two attempts, unless the provider names one. Default: 30 seconds. */
  readonly maxRetryDelay: Duration.DurationInput
  /** The longest delay that a provider may ask for. A longer one ends the turn at once. Default: 2 minutes. */
  readonly retryWithin: Duration.DurationInput
  /**
   * How long a cancelled call may take to stop before it is abandoned. Subagents have a little less for each level, so
   * that the report names the innermost one. Default: 5 seconds.
   */
  readonly stopWithin: Duration.DurationInput
}

export const defaults: Limits = {
  maxSteps: 100,
  parallelTools: 8,
  callsPerStep: 128,
  identicalErrors: 5,
  maxGeneration: 2_000_000,
  maxResult: 200_000,
  outputRetries: 2,
  modelAttempts: 6,
  modelSilence: Duration.minutes(5),
  retryDelay: Duration.seconds(1),
  maxRetryDelay: Duration.seconds(30),
  retryWithin: Duration.minutes(2),
  stopWithin: Duration.seconds(5),
  inputFiles: 20,
  inputFileBytes: 20_000_000,
  inputTotalBytes: 50_000_000
}

/**
 * Options without limits: starting with them cannot fail.
 *
 * @since 0.1.0
 * @category models
 */
export interface Unchanged {
  readonly limits?: undefined
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Invalid limits; `problems` names each of them.
 *
 * @since 0.1.0
 * @category errors
 */
export class LimitsInvalid extends Schema.TaggedError<LimitsInvalid>("assent/turn/LimitsInvalid")("LimitsInvalid", {
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `The limits cannot be used: ${this.problems.join("; ")}.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The given limits if all are valid; else fails with every problem. */
export const checked = (given: Partial<Limits> | undefined): Effect.Effect<Partial<Limits>, LimitsInvalid> => {
  if (given === undefined) return none
  return Effect.suspend(() => {
    const set = Object.entries(given).filter(([, value]) => value !== undefined)
    const problems = set.flatMap(([name, value]) => problemOf(name, value) ?? [])
    if (problems.length > 0) return new LimitsInvalid({ problems })
    // Durations are decoded here once; the loop uses them as they are.
    return Effect.succeed(Object.fromEntries(set.map(([name, value]) => [name, read(name, value)])))
  })
}

/** These limits completed with the defaults: one object for all sessions with the same limits. */
export const withDefaults = (limits: Partial<Limits> = noLimits): Limits => {
  const known = completed.get(limits)
  if (known !== undefined) return known
  const all = { ...defaults, ...limits }
  completed.set(limits, all)
  return all
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const noLimits: Partial<Limits> = {}

const none: Effect.Effect<Partial<Limits>> = Effect.succeed(noLimits)

const completed = new WeakMap<Partial<Limits>, Limits>()

const isTime = (name: string): boolean => Duration.isDuration(defaults[name as keyof Limits])

const read = (name: string, value: unknown): unknown =>
  isTime(name) ? Option.getOrElse(Duration.decodeUnknown(value), () => value) : value

const problemOf = (name: string, value: unknown): string | undefined => {
  if (!Object.hasOwn(defaults, name)) return `there is no limit ${name}`
  if (isTime(name)) return isDuration(value) ? undefined : `${name} must be a time from zero up, not ${shown(value)}`
  const least = name === "outputRetries" ? 0 : 1
  if (typeof value === "number" && value >= least && (Number.isInteger(value) || value === Infinity)) return undefined
  return `${name} must be a whole number from ${least} up, not ${shown(value)}`
}

// `Duration` turns negative numbers and NaN into zero, so they are refused before.
const isDuration = (value: unknown): boolean => {
  if (typeof value === "number" || typeof value === "bigint") return value >= 0
  if (typeof value === "string" && /^\s*-/.test(value)) return false
  return Option.isSome(Duration.decodeUnknown(value))
}

const shown = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  // `String` of an object may throw.
  return typeof value === "object" && value !== null ? "an object" : String(value)
}
