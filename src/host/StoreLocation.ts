/** Where the command line keeps its sessions, and how it opens that. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as path from "node:path"
import type * as AuditArchive from "../audit/AuditArchive.js"
import { visible } from "../audit/AuditReport.js"
import * as RealPath from "../permission/RealPath.js"
import * as SessionStore from "../journal/SessionStore.js"
import type { Overrides } from "./Overrides.js"
import * as StoreAddress from "./local/StoreAddress.js"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"
import * as NodeProcess from "./NodeProcess.js"
import * as Remedy from "./Remedy.js"
import * as OwnFile from "./local/OwnFile.js"
import * as UserLocation from "./local/UserLocation.js"

/** What `--store` is when nothing is to be kept. */
export const memory = ":memory:"

type Settings = UserLocation.Folder & {
  readonly stateDirectory: string
  readonly trusted: boolean
  /** What the person says: by flag, environment or their own configuration. */
  readonly store?: Redacted.Redacted | undefined
}

/** An absolute path, {@link memory}, or a PostgreSQL database. */
export type Place = string | StoreAddress.Database

/**
 * What `--store` says, else the person's own settings, else a file of the workspace's state. A store that lies in
 * a workspace may have come with it, and a store says what was allowed. It is refused, unless the person trusts that
 * workspace.
 */
export const of = (
  flags: Pick<Overrides, "store" | "workspace">,
  settings: Settings
): Effect.Effect<Place, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const asked = flags.store ?? (settings.store && Redacted.value(settings.store))
    if (asked === memory) return memory
    if (asked === undefined) return inFolder(settings)
    const database = yield* Either.mapLeft(StoreAddress.parse(asked), ConfigurationInvalid.make)
    if (database !== undefined) return database
    const file = path.resolve(asked)
    const fileSystem = yield* FileSystem.FileSystem
    const real = yield* RealPath.make(fileSystem, yield* Path.Path).real(file)
    const target = yield* Effect.option(fileSystem.readLink(file))
    if (Option.isSome(target) && !OwnFile.isThere(real)) {
      return yield* ConfigurationInvalid.make(
        `The session store ${visible(file)} is a link to ${visible(target.value)}, and nothing is there. Name the file itself, or remove the link.`
      )
    }
    // SQLite keeps its own files beside the real one.
    const place = Option.isSome(target) ? real : file
    if (!OwnFile.isThere(real) || OwnFile.isWithin(settings.stateDirectory, real)) return place
    const isHere = OwnFile.isWithin(settings.workspace, file) || OwnFile.isWithin(settings.workspace, real)
    if (isHere && settings.trusted) return place
    if (!isHere && path.basename(path.dirname(real)) !== ".assent") return place
    return yield* ConfigurationInvalid.make(
      `The session store ${file} is in a workspace, which may have brought it. Assent did not open it. ` +
        `To take its sessions over, without their permissions: ${importing(flags, file)}` +
        (isHere ? ". To open it all the same, trust the workspace: --trust." : ".")
    )
  })

/** Where the sessions of a workspace are kept when no flag says otherwise. */
export const inFolder = ({ folder }: Pick<UserLocation.Folder, "folder">): string => path.join(folder, "sessions.db")

/** The former place of sessions. It is never opened unasked: it may have come with the workspace. */
const oldPlace = ({ workspace }: Pick<Settings, "workspace">): string => path.join(workspace, ".assent", "assent.db")

/** A sentence about a store at the old place, shown once. */
export const oldNotice = (
  flags: Pick<Overrides, "store" | "workspace">,
  settings: Settings
): Effect.Effect<string | undefined, ConfigurationInvalid.ConfigurationInvalid> =>
  Effect.gen(function* () {
    const old = oldPlace(settings)
    const marker = path.join(settings.folder, "old-store-told")
    if (!OwnFile.isThere(old) || OwnFile.isThere(marker)) return undefined
    yield* UserLocation.prepare(settings)
    yield* Effect.ignore(Effect.try(() => UserLocation.replace(marker, "")))
    return `${visible(old)} holds sessions of an older version, or of the author of this directory. Assent did not open it. To take the sessions over: ${importing(flags, old)}`
  })

const importing = (flags: Pick<Overrides, "workspace">, file: string): string =>
  command({ workspace: flags.workspace }, "sessions", `import ${quoted(file)}`)

/** Makes the directory of a new store. */
export const prepare = (
  store: Place,
  settings: Settings
): Effect.Effect<void, ConfigurationInvalid.ConfigurationInvalid> =>
  store === memory || typeof store !== "string"
    ? Effect.void
    : OwnFile.isWithin(settings.folder, store)
      ? UserLocation.prepare(settings)
      : Effect.try({
          try: () => UserLocation.makeAll(path.dirname(store)),
          catch: (error) =>
            ConfigurationInvalid.make(`The session store ${store} cannot be made: ${UserLocation.reasonOf(error)}.`)
        })

/** Opens the store, and makes it when it does not exist. A file that is no store is not touched. */
export const open = (
  store: Place
): Effect.Effect<
  SessionStore.Service,
  ConfigurationInvalid.ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> =>
  Effect.gen(function* () {
    if (store === memory) return (yield* SessionStore.makeMemory)(NodeProcess.self)
    if (typeof store !== "string") {
      const PostgresStore = yield* loadPostgres
      return yield* PostgresStore.make({ url: store.url, process: NodeProcess.self })
    }
    const LibsqlStore = yield* load
    return yield* LibsqlStore.make({ file: store, process: NodeProcess.self })
  }).pipe(
    Effect.catchTags({
      StoreUnusable: (error) => ConfigurationInvalid.make(error.message),
      StoreUnwritable: (error) => ConfigurationInvalid.make(error.message)
    })
  )

/**
 * Like {@link open}, for an existing store. Yields nothing and creates nothing when there is none. A database is always
 * there, and gets its tables.
 */
export const openExisting = (
  store: Place
): Effect.Effect<
  SessionStore.Service | undefined,
  ConfigurationInvalid.ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> =>
  Effect.gen(function* () {
    if (store === memory) return undefined
    if (typeof store !== "string") return yield* open(store)
    const LibsqlStore = yield* load
    const found = yield* Effect.mapError(LibsqlStore.inspect(store), (error) =>
      ConfigurationInvalid.make(error.message)
    )
    return found === "absent" ? undefined : yield* open(store)
  })

/** The audit that the nodes of a cluster keep in this database; undefined if it has none. */
export const auditIn = ({
  url
}: StoreAddress.Database): Effect.Effect<
  AuditArchive.Source | undefined,
  ConfigurationInvalid.ConfigurationInvalid,
  Scope.Scope
> => Effect.flatMap(loadPostgres, (PostgresStore) => Effect.mapError(PostgresStore.audit(url), refuse))

/** How much a store takes, in words; nothing when there is none. Fails when it could not be opened. Opens and writes none. */
export const look = (store: Place) =>
  Effect.gen(function* () {
    if (typeof store !== "string") return yield* Effect.as(Effect.scoped(open(store)), "which answers")
    const LibsqlStore = yield* load
    const found = yield* Effect.mapError(LibsqlStore.inspect(store), refuse)
    if (found === "absent") return undefined
    const fileSystem = yield* FileSystem.FileSystem
    const { size } = yield* Effect.mapError(fileSystem.stat(store), refuse)
    return bytes(Number(size))
  })

/** Gives the space of deleted sessions back. Yields a sentence. */
export const compact = (store: Place) =>
  Effect.gen(function* () {
    if (typeof store !== "string") return `The room in ${visible(String(store))} is given back by its server.`
    const LibsqlStore = yield* load
    const { after, before } = yield* LibsqlStore.compact(store)
    return `${visible(store)} has ${bytes(after)}${before === after ? "" : `, before ${bytes(before)}`}.`
  })

const bytes = (size: number): string =>
  size < 1_000_000 ? `${Math.ceil(size / 1_000)} kB` : `${(size / 1_000_000).toFixed(1)} MB`

/** A command with the flags that lead to the same store, such as `assent run --store FILE --resume SESSION`. */
export const command = (flags: Pick<Overrides, "store" | "workspace">, name: string, words: string): string => {
  const places = (["workspace", "store"] as const).flatMap((flag) => {
    const value = flags[flag]
    return value === undefined ? [] : [`--${flag} ${quoted(flag === "store" ? StoreAddress.shown(value) : value)}`]
  })
  return ["assent", name, ...places, words].join(" ")
}

/** A configuration error that says the same at a command line. */
export const refuse = (error: { readonly message: string }) => ConfigurationInvalid.make(Remedy.said(error))

/** For `Effect.catchTags`: errors of a store, or of a session in it, as configuration errors. */
export const refusals = {
  SessionLocked: refuse,
  SessionUnknown: refuse,
  StoreUnusable: refuse,
  StoreUnwritable: refuse,
  JournalUnreadable: refuse
}

/** Quoted, so that a shell reads one word. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", `'\\''`)}'`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Loaded on demand: the packages are optional for users who store no sessions. */
const load = Effect.tryPromise({
  try: () => import("../store/LibsqlStore.js"),
  catch: (error) =>
    ConfigurationInvalid.make(
      `Assent cannot store sessions: ${error instanceof Error ? error.message : String(error)}. Run npm install @effect/sql @libsql/client, or start with --store ${memory}.`
    )
})

const loadPostgres = Effect.tryPromise({
  try: () => import("../store/PostgresStore.js"),
  catch: (error) =>
    ConfigurationInvalid.make(
      `Assent cannot store sessions in PostgreSQL: ${error instanceof Error ? error.message : String(error)}. Run npm install @effect/sql @effect/sql-pg, or store them in a file: --store FILE.`
    )
})
