/** Where the command line keeps its sessions, and how it opens that. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { hostname } from "node:os"
import { visible } from "../event/AuditReport.js"
import type { Process } from "../session/SessionLock.js"
import * as SessionStore from "../session/SessionStore.js"
import type * as Arguments from "./Arguments.js"
import * as ConfigurationInvalid from "./ConfigurationInvalid.js"

/** What `--store` is when nothing is to be kept. */
export const memory = ":memory:"

/** An absolute path, or {@link memory}: what `--store` says, else a file of the workspace. */
export const of = (
  flags: Pick<Arguments.Flags, "store">,
  settings: { readonly workspace: string }
): Effect.Effect<string, never, Path.Path> =>
  Effect.map(Path.Path, (path) => {
    if (flags.store === memory) return memory
    return flags.store === undefined ? path.join(settings.workspace, ".assent", "assent.db") : path.resolve(flags.store)
  })

/** Opens the store, and makes it when it is not there. Nothing else than a store is touched. */
export const open = (
  store: string
): Effect.Effect<
  SessionStore.Service,
  ConfigurationInvalid.ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> =>
  Effect.gen(function* () {
    if (store === memory) return (yield* SessionStore.makeMemory)(self)
    const LibsqlStore = yield* load
    return yield* LibsqlStore.make({ file: store, process: self })
  }).pipe(
    Effect.catchTags({
      StoreUnusable: (error) => ConfigurationInvalid.make(error.message),
      StoreUnwritable: (error) => ConfigurationInvalid.make(error.message)
    })
  )

/** As {@link open}, for a store that is there; nothing when none is, which leaves no trace. */
export const openExisting = (
  store: string
): Effect.Effect<
  SessionStore.Service | undefined,
  ConfigurationInvalid.ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> =>
  Effect.gen(function* () {
    if (store === memory) return undefined
    const LibsqlStore = yield* load
    const found = yield* Effect.mapError(LibsqlStore.inspect(store), (error) =>
      ConfigurationInvalid.make(error.message)
    )
    return found === "absent" ? undefined : yield* open(store)
  })

/** A command with the flags that lead to the same store, such as `assent run --store FILE --resume SESSION`. */
export const command = (flags: Pick<Arguments.Flags, "store" | "workspace">, name: string, words: string): string => {
  const places = (["workspace", "store"] as const).flatMap((flag) => {
    const value = flags[flag]
    return value === undefined ? [] : [`--${flag} ${quoted(value)}`]
  })
  return ["assent", name, ...places, words].join(" ")
}

const refuse = (error: { readonly message: string }) => ConfigurationInvalid.make(error.message)

/** For `Effect.catchTags`: what is wrong with a store, or with a session in it, as a mistake to tell. */
export const refusals = {
  SessionLocked: refuse,
  SessionUnknown: refuse,
  StoreUnusable: refuse,
  StoreUnwritable: refuse,
  JournalUnreadable: refuse
}

/** This process, as locks name it. */
export const self: Process = {
  pid: process.pid,
  host: hostname(),
  isAlive: (pid) => {
    try {
      return process.kill(pid, 0)
    } catch (error) {
      // It is there, and somebody else's.
      return error instanceof Error && "code" in error && error.code === "EPERM"
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** As a shell takes it for one word. */
const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${visible(text).replaceAll("'", `'\\''`)}'`

/** On demand: who keeps no sessions need not have the packages. */
const load = Effect.tryPromise({
  try: () => import("../store/LibsqlStore.js"),
  catch: (error) =>
    ConfigurationInvalid.make(
      `Sessions cannot be kept: ${error instanceof Error ? error.message : String(error)}. Run npm install @effect/sql @libsql/client, or start with --store ${memory}.`
    )
})
