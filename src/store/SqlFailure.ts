/** Turns errors of the SQL client into errors of the store, with messages for a person. */
import type * as Migrator from "@effect/sql/Migrator"
import { SqlError } from "@effect/sql/SqlError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { StoreUnusable, StoreUnwritable } from "../journal/StoreError.js"

/** The failures of one store. */
export interface SqlFailure {
  readonly reading: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnusable, R>
  /** For transactions too: the client turns a failed commit into a defect. */
  readonly writing: <A, E, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | StoreUnwritable, R>
  readonly migrating: <A, R>(
    effect: Effect.Effect<A, Migrator.MigrationError | SqlError, R>
  ) => Effect.Effect<A, StoreUnwritable, R>
  readonly damaged: (reason: string) => StoreUnusable
  readonly newer: (version: number, known: number) => StoreUnusable
  readonly foreign: (reason: string, remedy?: string) => StoreUnusable
  readonly unknownDatabase: StoreUnusable
}

export const make = (store: string): SqlFailure => ({
  reading: (effect) => catchSql(effect, (error) => unusable(store, error)),
  writing: (effect) => catchSql(effect, (error) => unwritable(store, error)),
  migrating: (effect) =>
    catchSql(effect, (error) => new StoreUnwritable({ store, ...causeOf(error) })).pipe(
      Effect.catchTag("MigrationError", (error) => new StoreUnwritable({ store, ...causeOf(error) }))
    ),
  damaged: (reason) => new StoreUnusable({ store, problem: "unreadable", reason }),
  newer: (version, known) =>
    new StoreUnusable({
      store,
      problem: "newer",
      reason: `its tables have version ${version}, this program knows ${known}`
    }),
  foreign: (reason, remedy) =>
    new StoreUnusable({ store, problem: "foreign", reason, ...(remedy === undefined ? {} : { remedy }) }),
  unknownDatabase: new StoreUnusable({
    store,
    problem: "foreign",
    reason: "it is neither SQLite nor PostgreSQL",
    remedy: "Use a client for one of these."
  })
})

/** Why a store cannot be opened or read. */
export const unusable = (store: string, error: unknown): StoreUnusable => {
  const { code } = rootOf(error)
  const damaged = ["SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002"].some((known) => code.startsWith(known))
  return new StoreUnusable({ store, problem: damaged ? "unreadable" : "unavailable", ...causeOf(error) })
}

/** Whether there is something else where it was to be written. Behind a commit that may have succeeded, that is its own. */
export const isContradiction = ({ reason }: StoreUnwritable): boolean => reason === contradiction.reason

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Why, and what to do about it where that is not what one does about a file. */
interface Explanation {
  readonly reason: string
  readonly remedy?: string
}

const reach = "Check that the server runs, its address, and the network between."
const permit = "Ask the administrator for these rights, or use another user."
const retry = "Try again."
const roomThere = "Free space on the server, or choose another store."
const named = "Check the address of the database, or have it made."

const contradiction: Explanation = {
  reason: "what was to be written contradicts what is there",
  remedy: "Open the session again."
}
const lost: Explanation = { reason: "the connection to the server was lost", remedy: reach }
const late: Explanation = { reason: "the server did not answer in time", remedy: reach }

/** By the beginning of the code: SQLite's, PostgreSQL's (five characters), the operating system's. */
const explanations: { readonly [code: string]: Explanation } = {
  SQLITE_FULL: { reason: "the disk is full" },
  SQLITE_READONLY: { reason: "it is read-only" },
  SQLITE_CANTOPEN: { reason: "the file cannot be opened" },
  SQLITE_BUSY: { reason: "another process has been writing to it for too long" },
  SQLITE_CORRUPT: { reason: "the file is damaged" },
  SQLITE_NOTADB: { reason: "the file is not a database" },
  SQLITE_IOERR: { reason: "the disk reports an error" },
  SQLITE_PERM: { reason: "access is not permitted" },
  "08": lost,
  "22021": { reason: "a text in it has a character that PostgreSQL cannot store", remedy: "Leave that character out." },
  "23": contradiction,
  "25006": { reason: "it is read-only", remedy: "Connect to the primary server, or make the database writable." },
  "28": { reason: "the server does not accept this user and password", remedy: "Check user and password." },
  "3D000": { reason: "the server has no such database", remedy: named },
  "3F000": { reason: "the database has no such schema", remedy: named },
  "40": { reason: "another process was writing the same at the same moment", remedy: retry },
  "42501": { reason: "this user has no right to that", remedy: permit },
  "42": {
    reason: "its tables are not as this program made them",
    remedy: "Restore them from a copy, or choose another schema or database."
  },
  "53100": { reason: "the server's disk is full", remedy: roomThere },
  "53200": { reason: "the server has no memory left", remedy: retry },
  "53300": { reason: "the server takes no more connections", remedy: "Close some, or allow more on the server." },
  "55P03": { reason: "another process has held a lock on it for too long", remedy: retry },
  "57014": { reason: "the server ended the statement because it took too long", remedy: retry },
  "57P": { reason: "the server is starting, stopping or gone", remedy: reach },
  "58030": { reason: "the server's disk reports an error", remedy: "Check the disk of the server." },
  XX001: { reason: "the server found its data damaged", remedy: "Restore the database from a copy." },
  XX002: { reason: "the server found an index damaged", remedy: "Have the index made again on the server: REINDEX." },
  ECONNREFUSED: { reason: "no server answers at that address", remedy: reach },
  ENOENT: { reason: "no server answers at that address", remedy: reach },
  ENOTFOUND: { reason: "the name of the server is not known", remedy: reach },
  EAI_AGAIN: { reason: "the name of the server cannot be looked up now", remedy: reach },
  EHOSTUNREACH: { reason: "the server cannot be reached", remedy: reach },
  ENETUNREACH: { reason: "the server cannot be reached", remedy: reach },
  ETIMEDOUT: late,
  ECONNRESET: lost,
  EPIPE: lost
}

/**
 * The same may succeed soon: the line was cut, the server starts or is slow, a standby is about to be the primary, or another
 * process was writing.
 */
const passing: ReadonlySet<Explanation | undefined> = new Set([
  lost,
  late,
  ...["SQLITE_BUSY", "25006", "40", "53200", "53300", "55P03", "57014", "57P"].map((code) => explanations[code]),
  ...["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"].map(
    (code) => explanations[code]
  )
])

const unwritable = (store: string, error: unknown): StoreUnwritable => {
  const why = causeOf(error)
  return new StoreUnwritable({ store, ...why, ...(passing.has(why) ? { passing: true } : {}) })
}

/** The PostgreSQL client gives these no code. */
const uncoded: ReadonlyArray<readonly [RegExp, Explanation]> = [
  [/connection timeout|timeout exceeded|timed out/i, late],
  [/connection terminated|connection ended|connection error|not queryable/i, lost]
]

/** The reason is without a full stop. */
const causeOf = (error: unknown): Explanation => {
  const { code, message } = rootOf(error)
  // The longest beginning first: 42501 is not what 42 is.
  const known = Object.keys(explanations)
    .filter((name) => code.startsWith(name))
    .sort((a, b) => b.length - a.length)[0]
  const found = known === undefined ? undefined : explanations[known]
  return found ?? uncoded.find(([pattern]) => pattern.test(message))?.[1] ?? { reason: message.replace(/\.$/, "") }
}

const catchSql = <A, E, R, F>(
  effect: Effect.Effect<A, E, R>,
  make: (error: SqlError) => F
): Effect.Effect<A, Exclude<E, SqlError> | F, R> =>
  Effect.catchAllCause(effect, (cause): Effect.Effect<never, Exclude<E, SqlError> | F> => {
    const found = Option.firstSomeOf([Cause.failureOption(cause), Cause.dieOption(cause)])
    if (Option.isSome(found) && found.value instanceof SqlError) return Effect.fail(make(found.value))
    // No client error is left in this cause.
    return Effect.failCause(cause as Cause.Cause<Exclude<E, SqlError>>)
  })

/** The innermost cause with a code, else the innermost with a message. */
const rootOf = (error: unknown): { readonly code: string; readonly message: string } => {
  let at = error
  let message = "unknown"
  for (let depth = 0; depth < 8 && typeof at === "object" && at !== null; depth++) {
    if ("message" in at && typeof at.message === "string" && at.message !== "") message = at.message
    if ("code" in at && typeof at.code === "string") return { code: at.code, message }
    at = "cause" in at ? at.cause : undefined
  }
  return { code: "", message: typeof at === "string" ? at : message }
}
