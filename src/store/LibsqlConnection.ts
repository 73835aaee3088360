/**
 * A SQL client that has one connection to a SQLite file, and keeps it.
 *
 * By itself libsql opens a new connection after every transaction, and forgets what was set on the old one. Here
 * transactions run on the connection that there is. What several clients of this program do to one file takes turns: SQLite
 * makes whoever comes second wait in the thread that the first needs to go on.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as LibsqlClient from "@effect/sql-libsql/LibsqlClient"
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { globalValue } from "effect/GlobalValue"
import type * as Scope from "effect/Scope"
import type { StoreUnusable } from "../session/StoreError.js"
import * as SqlFailure from "./SqlFailure.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export interface Options {
  /** Milliseconds to wait, in which this thread does nothing else, until another program is done. Default: 5000. */
  readonly busyTimeout?: number | undefined
}

/**
 * Opens the file of this absolute path, and makes it when it is not there. A commit reaches the disk before it is over.
 * Closed with the scope.
 */
export const open = (
  file: string,
  { busyTimeout = 5_000 }: Options = {}
): Effect.Effect<SqlClient.SqlClient, StoreUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* LibsqlClient.make({ url: urlOf(file) })
    // The client has it, its type does not say so; it is the only way to the connection that it opened and will close.
    const { sdk } = client as unknown as { readonly sdk: Live }
    const settings = [`PRAGMA busy_timeout = ${busyTimeout}`, "PRAGMA synchronous = FULL"]
    const connection = new Connection(sdk, settings)
    yield* Effect.promise(() => connection.set())
    return yield* LibsqlClient.make({ liveClient: onOneConnection(connection, turnsAt(file)) })
  }).pipe(
    Effect.provide(Reactivity.layer),
    Effect.catchAllDefect((defect) => SqlFailure.unusable(file, defect))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Live = LibsqlClient.LibsqlClientConfig.Live["liveClient"]
type Transaction = Awaited<ReturnType<Live["transaction"]>>

const urlOf = (file: string): string => `file:${file.split("/").map(encodeURIComponent).join("/")}`

/** First come, first served; a turn lasts until it is given back. */
class Turns {
  private last: Promise<void> = Promise.resolve()

  take(): Promise<() => void> {
    const before = this.last
    let giveBack = () => {}
    this.last = new Promise((resolve) => {
      giveBack = resolve
    })
    return before.then(() => giveBack)
  }

  during<A>(work: () => Promise<A>): Promise<A> {
    return this.take().then((giveBack) => work().finally(giveBack))
  }
}

const turns = globalValue("assent/store/LibsqlConnection/turns", () => new Map<string, Turns>())

const turnsAt = (file: string): Turns => {
  const known = turns.get(file) ?? new Turns()
  turns.set(file, known)
  return known
}

class Connection {
  constructor(
    readonly sdk: Live,
    private readonly settings: ReadonlyArray<string>
  ) {}

  async set(): Promise<void> {
    for (const setting of this.settings) await this.sdk.execute(setting)
  }

  /** A statement that found the file busy stays under way, and no transaction can be committed beside it. */
  execute(statement: Statement): ReturnType<Live["execute"]> {
    return this.sdk.execute(statement).catch((error: unknown) => {
      const fail = () => Promise.reject(error)
      return isBusy(error) ? this.renew().then(fail, fail) : fail()
    })
  }

  /** The client lets go of its connection when it begins a transaction on it. */
  private renew(): Promise<void> {
    return this.sdk
      .transaction("deferred")
      .then((begun) => begun.rollback())
      .then(() => this.set())
  }
}

type Statement = Parameters<Live["execute"]>[0]

const isBusy = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY")

const onOneConnection = (connection: Connection, turns: Turns): Live => {
  const { sdk } = connection
  return {
    execute: (statement: Statement) => turns.during(() => connection.execute(statement)),
    transaction: () =>
      turns.take().then((giveBack) =>
        connection.execute("BEGIN IMMEDIATE").then(
          () => begun(sdk, giveBack),
          (error: unknown) => {
            giveBack()
            return neverBegun(error)
          }
        )
      ),
    batch: (statements, mode) => turns.during(() => sdk.batch(statements, mode)),
    migrate: (statements) => turns.during(() => sdk.migrate(statements)),
    executeMultiple: (text) => turns.during(() => sdk.executeMultiple(text)),
    sync: () => sdk.sync(),
    close: () => sdk.close(),
    closed: false,
    protocol: sdk.protocol
  }
}

/** The SQL client ends every transaction that began, by one of the two ends, which give the turn back. */
const begun = (sdk: Live, giveBack: () => void): Transaction => ({
  execute: (statement) => sdk.execute(statement),
  batch: (statements) => sdk.batch(statements),
  executeMultiple: (text) => sdk.executeMultiple(text),
  rollback: () =>
    sdk
      .execute("ROLLBACK")
      .then(() => {})
      .finally(giveBack),
  commit: () =>
    sdk
      .execute("COMMIT")
      .then(
        () => {},
        (error: unknown) => {
          // What cannot be committed must not stay open: the next transaction could not begin.
          const fail = () => Promise.reject(error)
          return sdk.execute("ROLLBACK").then(fail, fail)
        }
      )
      .finally(giveBack),
  close: () => {},
  closed: false
})

/** Fails when it is used: the SQL client waits for ever after a transaction that could not begin. */
const neverBegun = (error: unknown): Transaction => {
  const fail = () => Promise.reject(error)
  return {
    execute: fail,
    batch: fail,
    executeMultiple: fail,
    rollback: () => Promise.resolve(),
    commit: fail,
    close: () => {},
    closed: true
  }
}
