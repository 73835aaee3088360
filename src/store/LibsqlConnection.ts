/**
 * A SQL client that has one connection to a SQLite file, and keeps it.
 *
 * By itself libsql opens a new connection after every transaction, and loses the settings of the old one. Here
 * transactions run on the one connection. Several clients of this process take turns on one file: otherwise SQLite
 * would block the second one in the thread that the first one needs.
 *
 * It uses only the file part of libsql: the whole package also loads HTTP and web sockets, which takes longer than
 * opening a store.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlConnection from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import { type Client, createClient, type InStatement, type InValue, type ResultSet } from "@libsql/client/sqlite3"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { globalValue } from "effect/GlobalValue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { StoreUnusable } from "../journal/StoreError.js"
import * as DatabaseFile from "./DatabaseFile.js"
import * as SqlFailure from "./SqlFailure.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export interface Options {
  /** Milliseconds to wait for another program. The thread is blocked meanwhile. Default: 5000. */
  readonly busyTimeout?: number | undefined
}

/**
 * Opens the file of this absolute path, and creates it when it does not exist. A commit returns after it reached the
 * disk. The scope closes the connection.
 */
export const open = (
  file: string,
  { busyTimeout = 5_000 }: Options = {}
): Effect.Effect<SqlClient.SqlClient, StoreUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const sdk = yield* Effect.acquireRelease(
      Effect.sync(() => createClient({ url: urlOf(file) })),
      (sdk) => Effect.sync(() => sdk.close())
    )
    const settings = [`PRAGMA busy_timeout = ${busyTimeout}`, "PRAGMA synchronous = FULL", "PRAGMA secure_delete = ON"]
    DatabaseFile.opened(file)
    const connection = new Connection(sdk, settings)
    yield* Effect.promise(() => connection.set())
    return yield* onOneConnection(connection, turnsAt(file))
  }).pipe(
    Effect.provide(Reactivity.layer),
    Effect.catchAllDefect((defect) => SqlFailure.unusable(file, defect))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const urlOf = (file: string): string => `file:${file.split("/").map(encodeURIComponent).join("/")}`

/**
 * One semaphore for each file, first come, first served. It is held for a single statement, or for a whole transaction.
 */
const turns = globalValue("assent/store/LibsqlConnection/turns", () => new Map<string, Effect.Semaphore>())

const turnsAt = (file: string): Effect.Semaphore => {
  const known = turns.get(file) ?? Effect.unsafeMakeSemaphore(1)
  turns.set(file, known)
  return known
}

class Connection {
  constructor(
    readonly sdk: Client,
    private readonly settings: ReadonlyArray<string>
  ) {}

  async set(): Promise<void> {
    for (const setting of this.settings) await this.sdk.execute(setting)
  }

  /** A statement that found the file busy stays active, and no transaction can commit beside it. */
  execute(statement: InStatement): Promise<ResultSet> {
    return this.sdk.execute(statement).catch((error: unknown) => {
      const fail = () => Promise.reject(error)
      return isBusy(error) ? this.renew().then(fail, fail) : fail()
    })
  }

  /** A failed commit must not stay open: the next transaction could not begin. */
  commit(): Promise<ResultSet> {
    return this.sdk.execute("COMMIT").catch((error: unknown) => {
      const fail = () => Promise.reject(error)
      return this.sdk.execute("ROLLBACK").then(fail, fail)
    })
  }

  /** The client drops its connection when it begins a transaction on it. */
  private renew(): Promise<void> {
    return this.sdk
      .transaction("deferred")
      .then((begun) => begun.rollback())
      .then(() => this.set())
  }
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY")

/** Uninterruptible: libsql finishes what it has begun. */
const doing = (what: string, work: () => Promise<ResultSet>): Effect.Effect<ResultSet, SqlError> =>
  Effect.uninterruptible(
    Effect.tryPromise({ try: work, catch: (cause) => new SqlError({ cause, message: `Failed to ${what}` }) })
  )

const onOneConnection = (
  connection: Connection,
  turns: Effect.Semaphore
): Effect.Effect<SqlClient.SqlClient, never, Reactivity.Reactivity> => {
  const spanAttributes = [["db.system.name", "sqlite"]] as const
  const takingTurns = turns.withPermits(1)
  const alone = new Statements((statement) =>
    takingTurns(doing("execute statement", () => connection.execute(statement)))
  )
  const within = new Statements((statement) => doing("execute statement", () => connection.sdk.execute(statement)))
  const withTransaction = SqlClient.makeWithTransaction({
    transactionTag: SqlClient.TransactionConnection,
    spanAttributes,
    // The scope holds the semaphore. It is closed here when the transaction cannot begin, because nothing else would
    // close it.
    acquireConnection: Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Scope.make(), (scope) =>
        restore(turns.take(1)).pipe(
          Effect.zipRight(Scope.addFinalizer(scope, turns.release(1))),
          Effect.zipRight(doing("begin transaction", () => connection.execute("BEGIN IMMEDIATE"))),
          Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
          Effect.as([scope, within] as const)
        )
      )
    ),
    begin: () => Effect.void,
    savepoint: (conn, id) => conn.executeRaw(`SAVEPOINT effect_sql_${id}`, []),
    commit: () => Effect.asVoid(doing("commit transaction", () => connection.commit())),
    rollback: (conn) => conn.executeRaw("ROLLBACK", []),
    rollbackSavepoint: (conn, id) => conn.executeRaw(`ROLLBACK TO SAVEPOINT effect_sql_${id}`, [])
  })
  return Effect.map(
    SqlClient.make({ acquirer: Effect.succeed(alone), compiler: Statement.makeCompilerSqlite(), spanAttributes }),
    (client) => Object.assign(client, { withTransaction })
  )
}

class Statements implements SqlConnection.Connection {
  constructor(private readonly run: (statement: InStatement) => Effect.Effect<ResultSet, SqlError>) {}

  executeRaw(sql: string, params: ReadonlyArray<unknown>) {
    // libsql itself refuses a value that SQLite does not have.
    return this.run({ sql, args: params as Array<InValue> })
  }

  execute(
    sql: string,
    params: ReadonlyArray<unknown>,
    transformRows: (<A extends object>(rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined
  ) {
    return Effect.map(this.executeRaw(sql, params), ({ rows }) => transformRows?.(rows) ?? rows)
  }

  executeUnprepared(...[sql, params, transformRows]: Parameters<SqlConnection.Connection["execute"]>) {
    return this.execute(sql, params, transformRows)
  }

  executeValues(sql: string, params: ReadonlyArray<unknown>) {
    return Effect.map(this.executeRaw(sql, params), ({ rows }) => rows.map((row) => Array.from(row)))
  }

  executeStream() {
    return Stream.dieMessage("A store is not read as a stream.")
  }
}
