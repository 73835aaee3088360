/**
 * Sessions in a SQLite file, by libsql.
 *
 * Write-ahead log with `synchronous = FULL`: an acknowledged append survives a power cut, not only the death of the
 * process. That costs one `fsync` a commit, which concurrent appends share.
 *
 * A foreign file is never written to. Its header is read before SQLite opens it, because opening would create its
 * write-ahead log or move an old one into the file.
 *
 * Do not open the file by other means in a process that has a store in it, not even to copy it: when its descriptor is
 * closed, the locks of SQLite are gone. Another program may copy it, such as `sqlite3 FILE ".backup COPY"`.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Directory from "../core/Directory.js"
import * as FileFailure from "../core/FileFailure.js"
import type * as SessionLease from "../journal/SessionLease.js"
import * as SessionStore from "../journal/SessionStore.js"
import { StoreUnusable, StoreUnwritable } from "../journal/StoreError.js"
import * as DatabaseFile from "./DatabaseFile.js"
import * as LibsqlConnection from "./LibsqlConnection.js"
import * as Migrations from "./Migrations.js"
import * as SqlFailure from "./SqlFailure.js"
import * as SqlSessionStore from "./SqlSessionStore.js"

/**
 * The file, and how long a session's lock outlives its process.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Created, with its directory, when it does not exist; readable by its owner only. */
  readonly file: string
  /** The process that takes leases here. */
  readonly process: SessionLease.Process
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Opens the store. A file of a newer version or of another program is left untouched.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<
  SessionStore.Service,
  StoreUnusable | StoreUnwritable,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const file = path.resolve(options.file)
    yield* inspect(file)
    yield* create(file)
    const client = yield* LibsqlConnection.open(file)
    return yield* Effect.provideService(
      Effect.gen(function* () {
        yield* prepare(file)
        const isThere = yield* presence(file)
        return yield* SqlSessionStore.make({ process: options.process, name: file, isThere })
      }).pipe(Effect.tap(() => stamp(file))),
      SqlClient.SqlClient,
      client
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A store in one SQLite file; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<SessionStore.SessionStore, StoreUnusable | StoreUnwritable, FileSystem.FileSystem | Path.Path> =>
  Layer.scoped(SessionStore.SessionStore, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<
  SessionStore.SessionStore,
  StoreUnusable | StoreUnwritable | ConfigError.ConfigError,
  FileSystem.FileSystem | Path.Path
> => Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Succeeds when a store could be opened there: no file yet, or a store that this version reads. Writes nothing.
 *
 * @since 0.1.0
 * @category operations
 */
export const inspect = (file: string): Effect.Effect<"absent" | "present", StoreUnusable, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const header = yield* readHeader(file)
    if (header === undefined || header.length === 0) return "absent" as const
    const view = new DataView(header.buffer, header.byteOffset, header.byteLength)
    const text = new TextDecoder().decode(header.subarray(0, magic.length))
    if (header.length < headerSize || text !== magic) {
      return yield* new StoreUnusable({ store: file, problem: "foreign", reason: "the file is not a database" })
    }
    if (view.getUint32(68) !== applicationId) {
      // The header names no program: the creating process may have died before it wrote its mark. The tables decide.
      if (view.getUint32(68) === 0 && view.getUint32(60) === 0) return "present" as const
      return yield* new StoreUnusable({ store: file, problem: "foreign", reason: anothers })
    }
    const version = view.getUint32(60)
    if (version > Migrations.latest) return yield* SqlFailure.make(file).newer(version, Migrations.latest)
    return "present" as const
  })

/**
 * Gives the space of what was deleted back to the disk, and yields the bytes before and after. It takes about as much
 * space again while it works. Fails when another program is writing.
 *
 * @since 0.1.0
 * @category operations
 */
export const compact = (
  file: string
): Effect.Effect<
  { readonly before: number; readonly after: number },
  StoreUnusable | StoreUnwritable,
  FileSystem.FileSystem | Path.Path
> =>
  Effect.scoped(
    Effect.gen(function* () {
      const path = (yield* Path.Path).resolve(file)
      const failure = SqlFailure.make(path)
      if ((yield* inspect(path)) === "absent") return { before: 0, after: 0 }
      const sql = yield* LibsqlConnection.open(path)
      yield* Effect.provideService(prepare(path), SqlClient.SqlClient, sql)
      yield* failure.writing(checkpoint(sql))
      const before = DatabaseFile.sizeOf(path)
      yield* failure.writing(Effect.zipRight(sql`VACUUM`, checkpoint(sql)))
      return { before, after: DatabaseFile.sizeOf(path) }
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const magic = "SQLite format 3\0"
const headerSize = 100
/** Marks the file's header as our database. */
const applicationId = 0x61736e74

const anothers = "it is the database of another program"

/** Undefined when there is no file. */
const readHeader = (file: string): Effect.Effect<Uint8Array | undefined, StoreUnusable, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    if (!(yield* fs.exists(file))) return undefined
    const { type } = yield* fs.stat(file)
    if (type !== "File") {
      return yield* new StoreUnusable({ store: file, problem: "foreign", reason: "it is not a file" })
    }
    return yield* Effect.try({
      try: () => DatabaseFile.beginning(file, headerSize),
      catch: (error) => SqlFailure.unusable(file, error)
    })
  }).pipe(
    Effect.catchTags({
      BadArgument: (error) =>
        new StoreUnusable({ store: file, problem: "unavailable", reason: FileFailure.reason(error) }),
      SystemError: (error) =>
        new StoreUnusable({ store: file, problem: "unavailable", reason: FileFailure.reason(error) })
    })
  )

/** An empty file is an empty database. SQLite gives its own files beside it the same permissions. */
const create = (file: string): Effect.Effect<void, StoreUnwritable, FileSystem.FileSystem | Path.Path> =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      if (yield* fs.exists(file)) return yield* fs.access(file, { readable: true, writable: true })
      yield* Directory.ensure(fs, path, path.dirname(file), 0o700)
      yield* fs.open(file, { flag: "a", mode: 0o600 })
    })
  ).pipe(
    Effect.catchTags({
      BadArgument: (error) => new StoreUnwritable({ store: file, reason: FileFailure.reason(error) }),
      SystemError: (error) => new StoreUnwritable({ store: file, reason: FileFailure.reason(error) })
    })
  )

/**
 * Whether writes still go to the file of that name. SQLite does not check: it goes on writing to a removed file, and
 * all of that is lost with the process.
 */
const presence = (file: string): Effect.Effect<Effect.Effect<boolean>> => {
  const log = `${file}-wal`
  return Effect.sync(() => {
    const before = DatabaseFile.identity(file)
    return Effect.sync(
      () => before !== undefined && DatabaseFile.identity(file) === before && DatabaseFile.identity(log) !== undefined
    )
  })
}

/** Checks that the tables are ours before anything is written. */
const prepare = (file: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const failure = SqlFailure.make(file)
    // This is read first: a view or a trigger could answer in place of a table, or change what is written.
    const objects = yield* failure.reading(
      sql<Migrations.SchemaObject>`SELECT type, name, tbl_name, sql FROM sqlite_master`
    )
    if (objects.length > 0 && !objects.some(({ name }) => name === Migrations.table)) {
      return yield* new StoreUnusable({ store: file, problem: "foreign", reason: anothers })
    }
    const stranger = Migrations.foreign(objects)
    if (stranger !== undefined) {
      const what = JSON.stringify(stranger.name.slice(0, 80))
      const reason = `it holds the ${stranger.type.slice(0, 20)} ${what}, which this program did not make so`
      return yield* new StoreUnusable({ store: file, problem: "foreign", reason })
    }
    const version = yield* failure.reading(Migrations.version)
    if (version > Migrations.latest) return yield* failure.newer(version, Migrations.latest)
    // The mode stays with the file. The first process switches it on; concurrent ones retry.
    const log = Effect.retry(
      sql`PRAGMA journal_mode = WAL`,
      Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(40))
    )
    yield* failure.writing(log)
    // So a closed file is complete without its log when it is copied.
    yield* Effect.addFinalizer(() => Effect.ignore(failure.writing(checkpoint(sql))))
  })

/** Writes mark and version to the header of the file itself, where {@link inspect} reads them. */
const stamp = (file: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const failure = SqlFailure.make(file)
    const [stamped] = yield* failure.reading(sql<{ readonly user_version: number }>`PRAGMA user_version`)
    if (stamped?.user_version === Migrations.latest) return
    yield* failure.writing(
      Effect.gen(function* () {
        yield* sql.unsafe(`PRAGMA application_id = ${applicationId}`)
        yield* sql.unsafe(`PRAGMA user_version = ${Migrations.latest}`)
        yield* checkpoint(sql)
      })
    )
  })

const checkpoint = (sql: SqlClient.SqlClient) => sql`PRAGMA wal_checkpoint(TRUNCATE)`
