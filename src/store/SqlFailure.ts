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
}

export const make = (store: string): SqlFailure => ({
  reading: (effect) => catchSql(effect, (error) => unusable(store, error)),
  writing: (effect) => catchSql(effect, (error) => new StoreUnwritable({ store, reason: reasonOf(error) })),
  migrating: (effect) =>
    catchSql(effect, (error) => new StoreUnwritable({ store, reason: reasonOf(error) })).pipe(
      Effect.catchTag("MigrationError", (error) => new StoreUnwritable({ store, reason: reasonOf(error) }))
    ),
  damaged: (reason) => new StoreUnusable({ store, problem: "unreadable", reason }),
  newer: (version, known) =>
    new StoreUnusable({
      store,
      problem: "newer",
      reason: `its tables have version ${version}, this program knows ${known}`
    })
})

/** Why a store cannot be opened or read. */
export const unusable = (store: string, error: unknown): StoreUnusable => {
  const { code } = rootOf(error)
  const damaged = code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB")
  return new StoreUnusable({ store, problem: damaged ? "unreadable" : "unavailable", reason: reasonOf(error) })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sentences: { readonly [code: string]: string } = {
  SQLITE_FULL: "the disk is full",
  SQLITE_READONLY: "it is read-only",
  SQLITE_CANTOPEN: "the file cannot be opened",
  SQLITE_BUSY: "another process has been writing to it for too long",
  SQLITE_CORRUPT: "the file is damaged",
  SQLITE_NOTADB: "the file is not a database",
  SQLITE_IOERR: "the disk reports an error",
  SQLITE_PERM: "access is not permitted"
}

/** The reason, without a full stop. */
const reasonOf = (error: unknown): string => {
  const { code, message } = rootOf(error)
  const known = Object.keys(sentences).find((name) => code.startsWith(name))
  return (known === undefined ? undefined : sentences[known]) ?? message.replace(/\.$/, "")
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
