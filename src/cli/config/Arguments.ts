/** The command line: what was asked for, and the values of flags that are more than words. */
import * as Either from "effect/Either"
import * as LogLevel from "effect/LogLevel"
import * as Schema from "effect/Schema"
import * as SessionFork from "../../journal/SessionFork.js"
import * as TimeText from "../../host/TimeText.js"
import * as Invocation from "./Invocation.js"

export type { Flags } from "./Flags.js"
export type { Invocation } from "./Invocation.js"

/** The command line cannot be understood; the message says what can be given instead. */
export class UsageError extends Schema.TaggedError<UsageError>("assent/cli/UsageError")("UsageError", {
  message: Schema.String
}) {}

/** Parses the words after the program's name. */
export const parse = (argv: ReadonlyArray<string>): Either.Either<Invocation.Invocation, UsageError> => {
  const read = Invocation.read(argv)
  return typeof read === "string" ? Either.left(new UsageError({ message: read })) : Either.right(read)
}

/** A time to stop after, such as `90s`, `5m`, `1.5h`, `500ms`; a bare number is seconds. Milliseconds come out. */
export const parseLimit = (text: string): Either.Either<number, UsageError> => {
  const limit = TimeText.parse(text)
  return limit === undefined
    ? Either.left(
        new UsageError({
          message: `${JSON.stringify(text)} is not a duration. Use one such as 90s, 5m or 1.5h.`
        })
      )
    : Either.right(limit)
}

/** How long a session may lie: a number with `m`, `h` or `d`. */
export const parseAge = (text: string): Either.Either<number, UsageError> => {
  const [, number, unit] = /^(\d+(?:\.\d+)?)\s*(m|h|d)$/.exec(text.trim()) ?? []
  return number === undefined
    ? Either.left(
        new UsageError({ message: `${JSON.stringify(text)} is not an age. Use one such as 30d, 12h or 90m.` })
      )
    : Either.right(Number(number) * (unit === "d" ? 24 * unitOf("h") : unitOf(unit)))
}

/** A number of sessions. */
export const parseCount = (text: string, least = 0): Either.Either<number, UsageError> =>
  /^\d{1,9}$/.test(text) && Number(text) >= least
    ? Either.right(Number(text))
    : Either.left(
        new UsageError({ message: `${JSON.stringify(text)} is not a number of sessions. Use one such as 100.` })
      )

/** The number of a turn; 0 is the beginning. */
export const parseTurn = (text: string): Either.Either<number, UsageError> => {
  const turn = SessionFork.turnNumber(text)
  return turn === undefined
    ? Either.left(
        new UsageError({
          message: `${JSON.stringify(text)} is not the number of a turn. assent sessions turns lists them.`
        })
      )
    : Either.right(turn)
}

/** How many times as fast as it was: a number above 0, such as 4 or 0.5, or `max`, which is `Infinity`. */
export const parseSpeed = (text: string): Either.Either<number, UsageError> => {
  const speed = text.trim() === "max" ? Infinity : /^\d*\.?\d+x?$/.test(text.trim()) ? Number.parseFloat(text) : 0
  return speed > 0
    ? Either.right(speed)
    : Either.left(
        new UsageError({ message: `${JSON.stringify(text)} is not a speed. Use one such as 1, 4, 0.5 or max.` })
      )
}

/** The level a flag names; warnings and worse when it names none. */
export const logLevelOf = (name: string | undefined): Either.Either<LogLevel.LogLevel, UsageError> => {
  if (name === undefined) return Either.right(LogLevel.Warning)
  const level = Object.entries(levels).find(([known]) => known === name.toLowerCase())
  return level === undefined
    ? Either.left(new UsageError({ message: `--log-level takes ${Object.keys(levels).join(", ")}, not ${name}.` }))
    : Either.right(level[1])
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const levels = {
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error,
  none: LogLevel.None
}

const unitOf = (unit: string | undefined): number =>
  unit === "ms" ? 1 : unit === "m" ? 60_000 : unit === "h" ? 3_600_000 : 1_000
