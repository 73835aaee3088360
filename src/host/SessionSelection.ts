/** Selects the session that the command line runs: a new one, the named one, or the last used. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { SessionId } from "../core/Id.js"
import * as Checkpoints from "../builtin/Checkpoints.js"
import { visible } from "../audit/AuditReport.js"
import * as Persistence from "../runtime/Persistence.js"
import type { Forked } from "../journal/SessionFork.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as SessionStore from "../journal/SessionStore.js"
import type { Selection } from "./Overrides.js"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"
import * as SessionForking from "./SessionForking.js"
import * as GivenFlags from "./local/GivenFlags.js"
import * as SessionName from "./SessionName.js"
import * as Settings from "./Settings.js"
import * as StoreLocation from "./StoreLocation.js"

export interface Kept {
  readonly persistence: Persistence.Persistence
  /** The files it is stored in, which the agent must not reach. */
  readonly files: ReadonlyArray<string>
  /** A resumed session's earlier settings count, unless a flag overrides them. */
  readonly settings: Settings.Settings
  /** The same of settings that were read again. */
  readonly asBefore: (settings: Settings.Settings) => Settings.Settings
  /** The sessions in the store; none where nothing is kept. */
  readonly sessions: SessionName.Sessions
  /** The store that has it. */
  readonly store: SessionStore.Service
  /** The command that resumes this session, `run` or `chat`; none while there is nothing to resume. */
  readonly resumeCommand: (command: "run" | "chat") => Effect.Effect<string | undefined>
  /** What is said where the input ends at a question of it. */
  readonly atEnd: string
  /** What becomes of a question of it where the program is ended. */
  readonly left: string
  /** All that is kept of it; undefined before its first words. */
  readonly loaded: Effect.Effect<SessionStore.Loaded | undefined, { readonly message: string }>
  /** Where it is kept what files were before tools changed them; with a store in memory, there too. */
  readonly checkpoints: Checkpoints.Service
  /** Forks it at the end of a turn. It goes on as it is. */
  readonly fork: (
    turn: number
  ) => Effect.Effect<Forked, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path>
  /** Gives this session back and takes another of the store instead. Its agent has ended before. */
  readonly follow: (
    id: SessionId
  ) => Effect.Effect<Kept, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path>
  /**
   * Keeps the model, the address and the profile that flags named for the next time the session goes on. Run it once it is
   * known that there are such.
   */
  readonly keepGiven: Effect.Effect<void>
}

/** Whether the flags name a session to go on with. */
export const isResuming = (flags: Selection): boolean => flags.resume !== undefined || flags.continue === true

/** Opens the store and takes the session's lease until the scope closes. */
export const open = (
  flags: Selection,
  settings: Settings.Settings
): Effect.Effect<Kept, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path | Scope.Scope> =>
  Effect.gen(function* () {
    const place = yield* StoreLocation.of(flags, settings)
    if (isResuming(flags) && place === StoreLocation.memory)
      return yield* ConfigurationInvalid.make("A store in memory has no sessions to resume.")
    if (flags.resume !== undefined && flags.continue === true) {
      return yield* ConfigurationInvalid.make(
        "--resume names a session and --continue takes the last one; leave one of them out."
      )
    }
    const { workspace } = settings
    if (!isResuming(flags)) {
      yield* StoreLocation.prepare(place, settings)
      const store = yield* StoreLocation.open(place)
      return yield* held({ flags, place, settings, store }, Persistence.begin(store, { workspace }))
    }
    const store = yield* StoreLocation.openExisting(place)
    const hint = settings.store === undefined ? hintFor(flags, settings) : Effect.succeed("")
    if (store === undefined) return yield* ConfigurationInvalid.make(`There are no sessions in ${place}.${yield* hint}`)
    const id = yield* chosen(store, flags.resume, place, workspace, hint)
    return yield* held({ flags, place, settings, store }, Persistence.resume(store, id, { workspace }))
  }).pipe(Effect.catchTags({ ...StoreLocation.refusals, SessionElsewhere: StoreLocation.refuse }))

/** The sessions in the store, until the scope closes, without taking one; none where there is no store. */
export const look = (flags: Selection, settings: Settings.Settings) =>
  Effect.gen(function* () {
    const store = yield* StoreLocation.openExisting(yield* StoreLocation.of(flags, settings))
    return store ?? none
  }).pipe(Effect.mapError(StoreLocation.refuse))

/** A session to be held, and where it is stored. */
export interface Opened {
  readonly flags: Selection
  readonly place: StoreLocation.Place
  readonly settings: Settings.Settings
  readonly store: SessionStore.Service
  /** The model of the caller who gave the flags. Default: the session's. */
  readonly own?: string | undefined
}

/** Holds a session until the scope closes, or a fork of it is followed. */
export const held = <E>(
  opened: Opened,
  take: Effect.Effect<Persistence.Persistence, E, Scope.Scope>
): Effect.Effect<Kept, E, FileSystem.FileSystem | Path.Path | Scope.Scope> =>
  Effect.gen(function* () {
    const { flags, own, place, settings, store } = opened
    const outer = yield* Effect.scope
    const scope = yield* Scope.fork(outer, ExecutionStrategy.sequential)
    const persistence = yield* Scope.extend(take, scope)
    const { restored, rootSessionId } = persistence
    const checkpoints =
      place === StoreLocation.memory ? Checkpoints.makeMemory() : yield* SessionForking.checkpoints(settings)
    const before = restored && SessionSnapshot.get(restored, rootSessionId)?.opened
    const last = before === undefined ? undefined : GivenFlags.read(settings, rootSessionId)
    const model = before === undefined ? settings.model : (flags.model ?? before.model)
    const given = GivenFlags.addressed(flags["base-url"], own ?? model, model)
    const baseUrls = { ...last?.baseUrls, ...given }
    const profile = flags.profile === undefined ? last?.profile : (settings.profile ?? null)
    // The journal of a new session says its model and profile.
    const isOther = before !== undefined && flags.model !== undefined && flags.model !== before.model
    const isGiven = flags["base-url"] !== undefined || (before !== undefined && flags.profile !== undefined)
    const keepGiven = Effect.gen(function* () {
      if (isOther) yield* Effect.ignore(persistence.journal.write([{ _tag: "ModelChosen", model }]))
      if (isGiven && place !== StoreLocation.memory)
        yield* GivenFlags.write(settings, rootSessionId, { baseUrls, profile })
    })
    const thinking = isOther ? undefined : before?.thinking
    const asBefore = (settings: Settings.Settings): Settings.Settings =>
      before === undefined
        ? Settings.addressed(settings, flags, own)
        : {
            ...settings,
            model,
            models: thinking === undefined ? settings.models : Settings.withThinking(settings.models, model, thinking),
            baseUrls: { ...settings.baseUrls, ...baseUrls },
            profile: profile === undefined ? before.profile : (profile ?? undefined)
          }
    return {
      persistence,
      store,
      files: filesOf(place),
      settings: asBefore(settings),
      asBefore,
      keepGiven,
      loaded: Effect.catchTag(store.load(rootSessionId), "SessionUnknown", () => Effect.succeed(undefined)),
      checkpoints,
      fork: (at) => SessionForking.fork(store, settings, { id: rootSessionId, at }),
      follow: (id) =>
        Effect.zipRight(
          Scope.close(scope, Exit.void),
          // What was asked for at the start does not count before what the fork has.
          held(
            { ...opened, flags: { ...flags, model: undefined, profile: undefined, "base-url": undefined } },
            Persistence.resume(store, id, { workspace: settings.workspace })
          )
        ).pipe(Effect.provideService(Scope.Scope, outer), Effect.mapError(StoreLocation.refuse)),
      ...afterwards(flags, place, store, persistence)
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: SessionName.Sessions = { page: () => Effect.succeed({ sessions: [] }) }

const afterwards = (
  flags: Selection,
  place: StoreLocation.Place,
  store: SessionStore.Service,
  { rootSessionId }: Persistence.Persistence
): Pick<Kept, "atEnd" | "left" | "sessions" | "resumeCommand"> => {
  const isKept = place !== StoreLocation.memory
  const sessions = isKept ? store : none
  const again = StoreLocation.command(flags, "chat", "--continue")
  const answer = StoreLocation.command(flags, "sessions", `answer ${rootSessionId}`)
  const left = isKept
    ? `The question stays open: ${again} asks again, and ${answer} takes an answer.`
    : "Assent does not store this session."
  return {
    sessions,
    left,
    atEnd: `The input ended before this was answered. ${left}`,
    resumeCommand: (name) =>
      Effect.orElseSucceed(
        Effect.map(SessionName.get(sessions, rootSessionId), (own) =>
          own !== undefined && own.turns > 0
            ? StoreLocation.command(flags, name, `--resume ${rootSessionId}`)
            : undefined
        ),
        () => undefined
      )
  }
}

/** The database and the files that SQLite keeps beside it. */
export const filesOf = (place: StoreLocation.Place): ReadonlyArray<string> =>
  place === StoreLocation.memory || typeof place !== "string"
    ? []
    : ["", "-wal", "-shm", "-journal"].map((suffix) => `${place}${suffix}`)

/** Where the session is that flags want, if it is kept of another workspace; a sentence behind another one, or nothing. */
const hintFor = ({ resume }: Selection, settings: Settings.Settings) =>
  Effect.gen(function* () {
    const SessionTransfer = yield* Effect.promise(() => import("./SessionTransfer.js"))
    const elsewhere = resume === undefined || resume === "" ? undefined : yield* SessionTransfer.find(settings, resume)
    const found =
      elsewhere === undefined ? yield* SessionTransfer.leftBehind(settings) : SessionTransfer.whereabouts(elsewhere)
    return found === undefined ? "" : ` ${found}`
  })

const chosen = <E, R>(
  store: SessionStore.Service,
  id: string | undefined,
  place: StoreLocation.Place,
  here: string,
  hint: Effect.Effect<string, E, R>
) =>
  Effect.gen(function* () {
    const found =
      id === undefined
        ? (yield* store.page({ workspace: here, limit: 1 })).sessions[0]
        : yield* Either.mapLeft(yield* SessionName.find(store, id), ConfigurationInvalid.make)
    if (found !== undefined) return found.rootSessionId
    if (id === undefined) return yield* ConfigurationInvalid.make(`There are no sessions in ${place}.${yield* hint}`)
    const known = (yield* store.page({ limit: 5 })).sessions.map(({ rootSessionId }) => rootSessionId)
    if (id === "")
      return yield* ConfigurationInvalid.make(
        `--resume without a session is for a chat at a terminal. ${known.length === 0 ? "There are none." : `The last ones: ${known.join(", ")}.`}`
      )
    return yield* ConfigurationInvalid.make(
      `There is no session ${visible(id)} in ${place}. ${known.length === 0 ? "It holds none." : `The last ones: ${known.join(", ")}.`}${yield* hint}`
    )
  })
