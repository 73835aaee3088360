/** `assent sessions list --all`, `adopt` and `import`: sessions of other workspaces and of other stores. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { SessionId } from "../core/Id.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as AuditArchive from "../audit/AuditArchive.js"
import { visible } from "../audit/AuditReport.js"
import * as SessionArchive from "../journal/SessionArchive.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as Adoption from "./Adoption.js"
import type { Overrides } from "./Overrides.js"
import * as AuditLocation from "./local/AuditLocation.js"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"
import * as NodeProcess from "./NodeProcess.js"
import * as OwnFile from "./local/OwnFile.js"
import * as SessionName from "./SessionName.js"
import type * as Settings from "./Settings.js"
import * as StoreLocation from "./StoreLocation.js"
import * as UserLocation from "./local/UserLocation.js"

/** What is asked of the store of every workspace, one after the other. A store that cannot be read is a remark. */
export const everywhere = <A, E extends { readonly message: string }, R>(
  { stateDirectory }: Pick<Settings.Settings, "stateDirectory">,
  ask: (store: SessionStore.Service, folder: UserLocation.Folder) => Effect.Effect<A, E, R>,
  isWanted: (folder: UserLocation.Folder) => boolean = () => true
) =>
  Effect.gen(function* () {
    const remarks: Array<string> = []
    const found: Array<UserLocation.Folder & { readonly answer: A }> = []
    for (const folder of (yield* UserLocation.folders(stateDirectory)).filter(isWanted)) {
      const outcome = yield* Effect.either(
        Effect.scoped(
          Effect.flatMap(StoreLocation.openExisting(StoreLocation.inFolder(folder)), (store) =>
            store === undefined ? Effect.succeed(undefined) : Effect.map(ask(store, folder), (answer) => ({ answer }))
          )
        )
      )
      if (outcome._tag === "Left") remarks.push(outcome.left.message)
      else if (outcome.right !== undefined) found.push({ ...folder, ...outcome.right })
    }
    return { found, remarks }
  })

/** What is open in the sessions of one workspace. */
export interface WaitingOfWorkspace extends UserLocation.Folder {
  readonly requests: ReadonlyArray<SessionStore.WaitingRequest>
}

/** What is open in one store. A session that cannot be read is a remark, and hides no other. */
export const waitingIn = (store: SessionStore.Service) =>
  Effect.gen(function* () {
    const remarks: Array<string> = []
    const requests: Array<SessionStore.WaitingRequest> = []
    const { sessions } = yield* store.page({ waiting: true, limit: Infinity })
    for (const { rootSessionId } of sessions) {
      const found = yield* Effect.either(store.openRequests(rootSessionId))
      if (found._tag === "Left") remarks.push(found.left.message)
      else requests.push(...found.right)
    }
    return { remarks, requests: requests.sort(SessionStore.byAge) }
  })

/** What is open in all workspaces. A store that cannot be read is a remark. */
export const waiting = (settings: Pick<Settings.Settings, "stateDirectory">) =>
  Effect.map(everywhere(settings, waitingIn), ({ found, remarks }) => ({
    remarks: [...remarks, ...found.flatMap(({ answer }) => answer.remarks)],
    found: found.flatMap(({ answer: { requests }, ...folder }): ReadonlyArray<WaitingOfWorkspace> =>
      requests.length === 0 ? [] : [{ ...folder, requests }]
    )
  }))

/** The session that somebody names among those of all workspaces, with where it is. Fails where several may be meant. */
export const find = (settings: Pick<Settings.Settings, "stateDirectory">, name: string) =>
  Effect.gen(function* () {
    const { found } = yield* everywhere(settings, (store) => SessionName.find(store, name))
    const ones = found.flatMap(({ answer, ...folder }) =>
      Either.isRight(answer) && answer.right !== undefined ? [{ ...folder, session: answer.right }] : []
    )
    const exact = ones.find(({ session }) => session.rootSessionId === name)
    if (exact !== undefined) return exact
    for (const { answer } of found) if (Either.isLeft(answer)) return yield* ConfigurationInvalid.make(answer.left)
    if (ones.length < 2) return ones[0]
    const ids = ones.map(({ session, workspace }) => `${session.rootSessionId} (${visible(workspace)})`)
    return yield* ConfigurationInvalid.make(
      `Sessions of ${ones.length} workspaces begin with ${visible(name)}: ${ids.join(", ")}.`
    )
  })

/** A session of another workspace. */
export type Elsewhere = Effect.Effect.Success<ReturnType<typeof find>>

/** Where a session is, and how to reach it, as a sentence. */
export const whereabouts = ({ session: { rootSessionId: id }, workspace }: NonNullable<Elsewhere>): string =>
  fs.existsSync(workspace)
    ? `Session ${id} belongs to ${visible(workspace)}. Name that workspace: --workspace ${StoreLocation.quoted(workspace)}.`
    : `Session ${id} belongs to ${visible(workspace)}, which is gone. Take the session over: assent sessions adopt ${id}.`

/** What to do about the sessions of workspaces that are gone, as a sentence. Nothing if there are none. */
export const leftBehind = (
  settings: Pick<Settings.Settings, "stateDirectory">
): Effect.Effect<string | undefined, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const { found } = yield* everywhere(
      settings,
      (store) => store.page({ limit: 1 }),
      ({ workspace }) => !fs.existsSync(workspace)
    )
    const gone = found.flatMap(({ answer, workspace }) => (answer.sessions.length > 0 ? [workspace] : []))
    const [first] = gone
    if (first === undefined) return undefined
    const names = gone
      .slice(0, mostNamed)
      .map((workspace) => visible(workspace))
      .join(", ")
    const more = gone.length > mostNamed ? ` and ${gone.length - mostNamed} more` : ""
    const which = gone.length === 1 ? StoreLocation.quoted(first) : "WORKSPACE"
    return `Sessions are kept of ${names}${more}, ${gone.length === 1 ? "which is" : "which are"} gone. If you moved that directory here, take them over: assent sessions adopt ${which}.`
  })

/** Takes over the sessions of a workspace that was moved here, or one of them. Yields a sentence. */
export const adopt = (flags: Overrides, settings: Settings.Settings, word: string | undefined) =>
  Effect.scoped(
    Effect.gen(function* () {
      const place = yield* StoreLocation.of(flags, settings)
      const here = yield* StoreLocation.openExisting(place)
      const folders = yield* UserLocation.folders(settings.stateDirectory)
      const name =
        word !== undefined && folders.every(({ workspace }) => workspace !== path.resolve(word)) ? word : undefined
      const bound =
        here === undefined || name === undefined
          ? undefined
          : yield* Either.mapLeft(yield* SessionName.find(here, name), ConfigurationInvalid.make)
      if (here !== undefined && bound !== undefined) {
        const { rootSessionId, workspace } = bound
        if (workspace === settings.workspace) return `session ${rootSessionId} works here already.`
        if (workspace !== undefined) yield* requireGone(workspace)
        yield* Adoption.adopt(here, { store: here, workspace: settings.workspace }, rootSessionId)
        return `session ${rootSessionId} works in ${visible(settings.workspace)} from now on.`
      }
      const others = (yield* everywhere(settings, (store, { workspace }) => sessionsOf(store, word, workspace))).found
        .map(({ answer, ...folder }) => ({ ...folder, ...answer }))
        .filter(({ folder }) => folder !== settings.folder)
      const named = name === undefined ? undefined : yield* find(settings, name)
      const chosen =
        named === undefined || named.folder === settings.folder
          ? others.find(({ sessions }) => sessions.length > 0)
          : { ...named, sessions: [named.session] }
      if (chosen === undefined) {
        const gone = others.filter(({ isEmpty, workspace }) => !isEmpty && !fs.existsSync(workspace))
        return yield* ConfigurationInvalid.make(
          `${word === undefined ? "assent sessions adopt needs the former path of the workspace, or a session." : `The store has no session of ${visible(word)}.`} ${
            gone.length === 0
              ? "Every workspace with stored sessions still exists."
              : `These workspaces are gone, and their sessions are stored: ${visible(gone.map(({ workspace }) => workspace).join(", "))}.`
          }`
        )
      }
      yield* requireGone(chosen.workspace)
      yield* StoreLocation.prepare(place, settings)
      const store = yield* StoreLocation.open(place)
      const from = yield* StoreLocation.open(StoreLocation.inFolder(chosen))
      for (const { rootSessionId } of chosen.sessions) {
        // The audit trail moves first: without its trail a session can record no decision.
        yield* moveTrail(chosen, settings, rootSessionId)
        yield* Adoption.adopt(from, { store, workspace: settings.workspace }, rootSessionId)
      }
      return `${count(chosen.sessions.length)} of ${visible(chosen.workspace)} ${chosen.sessions.length === 1 ? "works" : "work"} in ${visible(settings.workspace)} from now on.`
    })
  )

/** Copies what was said in the sessions of another store. Yields the new ids beside the old ones. */
export const takeOver = (flags: Overrides, settings: Settings.Settings, file: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const copy = yield* copyOf(path.resolve(file))
      const from = isDocument(copy)
        ? yield* storeOf(copy, file)
        : yield* Effect.mapError(StoreLocation.openExisting(copy), ({ message }) =>
            // The person knows the original.
            ConfigurationInvalid.make(message.replaceAll(copy, path.resolve(file)))
          )
      if (from === undefined) return yield* ConfigurationInvalid.make(`There is no store ${visible(file)}.`)
      const place = yield* StoreLocation.of(flags, settings)
      yield* StoreLocation.prepare(place, settings)
      const store = yield* StoreLocation.open(place)
      const { model, workspace } = settings
      return yield* Effect.forEach(yield* from.list, ({ rootSessionId }) =>
        Effect.map(Adoption.takeOver(from, { store, workspace, model }, rootSessionId), (id) => ({
          id,
          before: rootSessionId
        }))
      )
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Workspaces in a sentence. */
const mostNamed = 3

const count = (sessions: number): string => `${sessions} ${sessions === 1 ? "session" : "sessions"}`

/** All, where a word means the workspace; and whether the store has none at all. */
const sessionsOf = (store: SessionStore.Service, word: string | undefined, workspace: string) =>
  Effect.gen(function* () {
    const isEmpty = (yield* store.page({ limit: 1 })).sessions.length === 0
    const isMeant = word !== undefined && path.resolve(word) === workspace
    return { isEmpty, sessions: isMeant ? yield* store.list : [] }
  })

/** A workspace that still exists keeps its sessions. */
const requireGone = (workspace: string): Effect.Effect<void, ConfigurationInvalid.ConfigurationInvalid> =>
  fs.existsSync(workspace)
    ? ConfigurationInvalid.make(
        `${visible(workspace)} is still there, and its sessions go on there; only those of a workspace that was moved are taken over.`
      )
    : Effect.void

const moveTrail = (from: UserLocation.Folder, settings: Settings.Settings, id: SessionId) =>
  Effect.flatMap(Path.Path, (paths) =>
    Effect.try({
      try: () => {
        const { configDirectory } = settings
        const trailIn = ({ folder, workspace }: UserLocation.Folder) =>
          AuditArchive.files(paths, AuditLocation.archive({ folder, workspace, configDirectory }), id).trail
        const [before, after] = [trailIn(from), trailIn(settings)]
        if (!fs.existsSync(before)) return
        UserLocation.makeAll(path.dirname(after))
        if (!fs.existsSync(after)) fs.renameSync(before, after)
      },
      catch: (error) =>
        ConfigurationInvalid.make(`The audit of session ${id} cannot be moved: ${UserLocation.reasonOf(error)}.`)
    })
  )

/** Works on a copy, which the scope removes: SQLite would write files beside the original. */
const copyOf = (file: string): Effect.Effect<string, ConfigurationInvalid.ConfigurationInvalid, Scope.Scope> =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "assent-import-"))),
      (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
    )
    const copy = path.join(directory, "sessions.db")
    for (const suffix of ["", "-wal"]) {
      const info = yield* Effect.try({
        try: () => fs.lstatSync(`${file}${suffix}`, { throwIfNoEntry: false }),
        catch: (error) => ConfigurationInvalid.make(`${visible(file)} cannot be read: ${UserLocation.reasonOf(error)}.`)
      })
      if (info === undefined && suffix !== "") continue
      if (info === undefined) return yield* ConfigurationInvalid.make(`There is no store ${visible(file)}.`)
      if (!info.isFile())
        return yield* ConfigurationInvalid.make(`${visible(file)}${suffix} is not a regular file, and is not read.`)
      if (info.size > largest)
        return yield* ConfigurationInvalid.make(`${visible(file)}${suffix} is too large to be a store.`)
      yield* Effect.try({
        try: () => {
          fs.copyFileSync(`${file}${suffix}`, `${copy}${suffix}`)
          fs.chmodSync(`${copy}${suffix}`, 0o600)
        },
        catch: (error) =>
          ConfigurationInvalid.make(`${visible(file)} cannot be copied: ${UserLocation.reasonOf(error)}.`)
      })
    }
    return copy
  })

/** What `sessions export` writes begins with a brace; a database does not. */
const isDocument = (file: string): boolean => {
  const descriptor = fs.openSync(file, "r")
  try {
    const first = Buffer.alloc(1)
    return fs.readSync(descriptor, first) === 1 && first.toString() === "{"
  } finally {
    fs.closeSync(descriptor)
  }
}

/** An exported session as a store in memory, from which it is taken over like any other: without what it was allowed. */
const storeOf = (copy: string, name: string) =>
  Effect.gen(function* () {
    const content = OwnFile.readGiven(copy, largestDocument)
    if (content._tag !== "Text") return yield* ConfigurationInvalid.make(`${visible(name)} is too large to be read.`)
    const document = yield* Either.mapLeft(
      UntrustedJson.parse(content.text, { size: Infinity, depth: deepestDocument }),
      ({ reason }) =>
        ConfigurationInvalid.make(
          reason === "depth"
            ? `${visible(name)} is nested more than ${deepestDocument} levels deep, which no exported session is.`
            : `${visible(name)} is no JSON.`
        )
    )
    const loaded = yield* Either.mapLeft(SessionArchive.decode(document), (reason) =>
      ConfigurationInvalid.make(`${visible(name)} cannot be imported: ${visible(reason)}.`)
    )
    const store = (yield* SessionStore.makeMemory)(NodeProcess.self)
    yield* Effect.mapError(SessionArchive.restore(store, loaded), StoreLocation.refuse)
    return store
  })

/** Bytes. */
const largestDocument = 500_000_000

/** Levels of the arguments of a call, and those around them. */
const deepestDocument = 2 * UntrustedJson.maxDepth

/** Bytes. */
const largest = 4_000_000_000
