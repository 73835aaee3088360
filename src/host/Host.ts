/**
 * The live sessions of a process, in any number of workspaces. All doors (command line, HTTP, editors, a cluster) begin,
 * resume and close sessions here.
 *
 * ```
 *   create, open ─► settings ─► store ─► lock ─► shared runtime ─► agent      one scope a session
 *                   └─ environment, read once ─┘   └─ one for each workspace and profile
 * ```
 *
 * A session runs in the world around the host, not in that of the caller who opened it: it outlives the caller. Closing the
 * host closes all its sessions. They stay in their stores.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Hash from "effect/Hash"
import * as Layer from "effect/Layer"
import * as RcMap from "effect/RcMap"
import * as Redacted from "effect/Redacted"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isAbsolute } from "node:path"
import type * as AuditTrail from "../audit/AuditTrail.js"
import * as Checkpoints from "../builtin/Checkpoints.js"
import * as EditorFiles from "../builtin/EditorFiles.js"
import type * as Jobs from "../builtin/Jobs.js"
import type * as WorkspaceRoot from "../builtin/WorkspaceRoot.js"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type * as ServerPrompts from "../mcp/ServerPrompts.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as SessionFork from "../journal/SessionFork.js"
import * as SessionStore from "../journal/SessionStore.js"
import type { Listed } from "../journal/SessionSummary.js"
import * as StoreError from "../journal/StoreError.js"
import type { Mode } from "../permission/PermissionState.js"
import type * as Agent from "../runtime/Agent.js"
import * as AgentRuntime from "../runtime/AgentRuntime.js"
import * as Persistence from "../runtime/Persistence.js"
import type { Servers } from "../tool/ServerSettings.js"
import * as Environment from "./Environment.js"
import * as HostError from "./HostError.js"
import * as Launch from "./Launch.js"
import { make as invalid, type ConfigurationInvalid } from "./local/ConfigurationInvalid.js"
import * as OwnFile from "./local/OwnFile.js"
import * as Trust from "./local/Trust.js"
import * as UserLocation from "./local/UserLocation.js"
import * as ModelList from "./ModelList.js"
import * as NodeFiles from "./NodeFiles.js"
import type { Overrides } from "./Overrides.js"
import * as AuditLocation from "./local/AuditLocation.js"
import * as SessionAudit from "./SessionAudit.js"
import * as SessionForking from "./SessionForking.js"
import * as SessionName from "./SessionName.js"
import * as SessionSelection from "./SessionSelection.js"
import * as Settings from "./Settings.js"
import * as StoreLocation from "./StoreLocation.js"
import type { WorkspaceTrust } from "./WorkspaceTrust.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Options of a host. */
export interface Options {
  /** Default: the variables of the process, as they are when the host is made. */
  readonly environment?: ConfigProvider.ConfigProvider | undefined
  /** Absolute directories in which sessions may work, with all below them. Default: any. */
  readonly workspaces?: ReadonlyArray<string> | undefined
  /**
   * What holds for all sessions, before environment and files; what a caller says counts before it. The model and the profile
   * are those of new sessions.
   */
  readonly overrides?: Omit<Overrides, "workspace"> | undefined
  /** Whether sessions have tools for files and commands. Default: true. */
  readonly hasWorkspace?: boolean | undefined
  /**
   * How long a session in which nothing happens, and to which nobody is attached, stays in memory. It is opened again when
   * somebody asks for it. Default: until it is closed.
   */
  readonly evictAfter?: Duration.DurationInput | undefined
  /** Opens the stores of sessions. Default: each host its own. */
  readonly openStore?: typeof StoreLocation.open | undefined
  /** Takes sentences for the person who runs the process. Default: the log. */
  readonly notify?: Launch.Notify | undefined
}

/** What a caller may say of a session. */
export interface Wishes {
  /** `PROVIDER/MODEL` or `offline`. Default: what settings say; of a resumed session, what it had. */
  readonly model?: string | undefined
  /** `none` is no profile. Default: none; of a resumed session, what it had. */
  readonly profile?: string | undefined
  /** How calls are decided. Default: what settings say; of a resumed session, what it had. */
  readonly mode?: Mode | undefined
  /** Further directories that the agent may work in: absolute, and permitted as workspaces are. */
  readonly addDirs?: ReadonlyArray<string> | undefined
  /** Tool servers of the caller, who may start programs: never what a client of a door says. */
  readonly servers?: Servers | undefined
  /** The editor in which the person has files open. Default: the disk counts alone. */
  readonly editor?: EditorFiles.Service | undefined
  /** Attached from the start. Others come with {@link LiveSession.attach}. */
  readonly interactors?: ReadonlyArray<Interactor.Service> | undefined
}

/** What begins a session. */
export interface Create extends Wishes {
  /** Absolute. */
  readonly workspace: string
  /** Chosen by the caller. A session of this id that exists goes on. Default: a new id. */
  readonly id?: string | undefined
}

/** A session whose agent this process runs. */
export interface LiveSession {
  readonly id: SessionId
  /** Real path. */
  readonly workspace: string
  readonly agent: Agent.Agent
  /** Puts an interactor beside the others until the scope closes. What is open is asked at it, too. */
  readonly attach: (interactor: Interactor.Service) => Effect.Effect<void, never, Scope.Scope>
  /** The record of what was decided. */
  readonly trail: AuditTrail.Service
  /** Its workspace's files would allow something that does not count here: nobody trusted them when it was opened. */
  readonly wantsTrust: boolean
  /** What runs in the background. */
  readonly jobs: Jobs.Service
  /** The directories that its file tools may touch. */
  readonly files: WorkspaceRoot.Options
  /** Masks what its settings keep secret, for doors that show requests. */
  readonly redactor: Redaction.Redactor
  /** The prompts of its tool servers. Default: there are none. */
  readonly prompts?: ServerPrompts.ServerPrompts | undefined
  /** The models that can be chosen, as far as they are known without asking a server. */
  readonly models: ReadonlyArray<string>
  /** Takes a model from the next model call on, and when the session is resumed. The thinking is kept with the model. */
  readonly setModel: (
    model: string,
    thinking?: "low" | "medium" | "high"
  ) => Effect.Effect<void, HostError.ModelRefused>
  /** When something happened in it, or it was asked for, last; in milliseconds since the epoch. */
  readonly lastActivity: Effect.Effect<number>
  /** Ends the agent and gives the session back. It stays in its store. */
  readonly close: Effect.Effect<void>
  /** Waits until it is closed, by whatever. */
  readonly closed: Effect.Effect<void>
}

/** A session in a store. */
export interface Stored extends Listed {
  /** This process runs it. */
  readonly isLive: boolean
}

/** Stored sessions, last used first. */
export interface Page {
  readonly sessions: ReadonlyArray<Stored>
  /** Where the next page begins; absent when nothing follows. */
  readonly next?: SessionStore.Place | undefined
  /** Stores that cannot be read, as sentences. */
  readonly remarks: ReadonlyArray<string>
}

/** Which stored sessions are listed, and how many. */
export interface Query {
  /** Absolute. Default: those of all workspaces. */
  readonly workspace?: string | undefined
  /** Only those whose id begins so. */
  readonly prefix?: string | undefined
  /** `next` of the page before. */
  readonly after?: SessionStore.Place | undefined
  /** Default: 100. */
  readonly limit?: number | undefined
}

/** Why a session is not run. */
export type OpenFailure =
  | HostError.WorkspaceRefused
  | HostError.ModelRefused
  | HostError.SessionIdInvalid
  | HostError.HostClosed
  | StoreError.SessionUnknown
  | StoreError.SessionLocked
  | StoreError.SessionElsewhere
  | StoreError.SessionTakenOver
  | StoreError.JournalUnreadable
  | StoreError.StoreUnusable
  | StoreError.StoreUnwritable
  | ConfigurationInvalid

export type LookFailure = HostError.WorkspaceRefused | StoreError.StoreUnusable | ConfigurationInvalid

/** What a caller has prepared who selects sessions in its own way. */
export interface Prepared {
  readonly sharing: Launch.Sharing
  readonly interactors: ReadonlyArray<Interactor.Service>
  readonly options: Agent.Options
}

export interface Service {
  /** Begins a session, or goes on with the one of that id. It is in its store when this returns. */
  readonly create: (options: Create) => Effect.Effect<LiveSession, OpenFailure>
  /** The live session of this id, else the stored one, resumed. Wishes do not change a live one. */
  readonly open: (
    id: string,
    options?: Wishes & { readonly workspace?: string | undefined }
  ) => Effect.Effect<LiveSession, OpenFailure>
  /** Those that this process runs. */
  readonly live: Effect.Effect<ReadonlyArray<LiveSession>>
  /** Those that are stored, live or not. */
  readonly list: (query?: Query) => Effect.Effect<Page, LookFailure>
  /**
   * The stores of the permitted workspaces, or of all that are known, until the scope closes. For a permitted workspace a
   * store is made.
   */
  readonly stores: Effect.Effect<ReadonlyArray<SessionStore.Service>, LookFailure, Scope.Scope>
  /** The stored session of exactly this id. */
  readonly find: (id: string) => Effect.Effect<Stored | undefined, LookFailure>
  /** Ends the session, if this process runs it. */
  readonly close: (id: string) => Effect.Effect<void>
  /** Deletes a stored session that nobody runs. */
  readonly delete: (
    id: string
  ) => Effect.Effect<
    void,
    | LookFailure
    | HostError.SessionRunning
    | StoreError.SessionUnknown
    | StoreError.SessionLocked
    | StoreError.StoreUnwritable
  >
  /** Forks a stored session at the end of a turn. The fork is stored, and not run. `words`: what came next. */
  readonly fork: (
    id: string,
    options: { readonly at: number | undefined; readonly by: string }
  ) => Effect.Effect<
    { readonly forked: SessionFork.Forked; readonly words: string },
    OpenFailure | SessionFork.ForkFailure
  >
  /** What the files of a workspace would allow, and whether a person trusts them. */
  readonly trust: (workspace: string) => Effect.Effect<WorkspaceTrust, LookFailure | HostError.ModelRefused>
  /** Trusts the files of exactly this digest, and records it. It counts for sessions that are opened later. */
  readonly giveTrust: (
    workspace: string,
    decision: { readonly digest: string; readonly by: string }
  ) => Effect.Effect<void, LookFailure | HostError.ModelRefused | HostError.TrustRefused>
  /** What was decided in a stored session. */
  readonly audit: (id: string) => Effect.Effect<SessionAudit.SessionAudit, OpenFailure>
  /**
   * Starts the agent of a session that the caller has selected and holds, in the caller's scope and world. It is live
   * until that scope closes.
   */
  readonly start: (
    prepared: Prepared
  ) => Effect.Effect<Launch.Started, ConfigurationInvalid, Launch.Platform | Scope.Scope>
}

export class Host extends Context.Tag("assent/host/Host")<Host, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Takes the keys out of the process's environment. Closing the scope closes all sessions. */
export const make = (options: Options = {}): Effect.Effect<Service, never, Launch.Platform | Scope.Scope> =>
  Effect.gen(function* () {
    const { hasWorkspace } = options
    const environment = options.environment ?? (yield* Environment.take)
    yield* Environment.hideKeys
    yield* NodeFiles.directLinks
    const scope = yield* Effect.scope
    // Without the scope of the host: what sessions share ends after the last of them.
    const home = yield* Effect.mapInputContext(
      Effect.withConfigProvider(Effect.runtime<Launch.Platform>(), environment),
      (context: Context.Context<Launch.Platform | Scope.Scope>) => Context.omit(Scope.Scope)(context)
    )
    const ids = yield* Id.IdGenerator
    const said = new Set<string>()
    const notify = (sentence: string): void => {
      if (said.has(sentence)) return
      said.add(sentence)
      if (options.notify === undefined) Runtime.runSync(home)(Effect.logWarning(sentence))
      else options.notify(sentence)
    }

    const runtimes = yield* RcMap.make({
      lookup: ({ value }: Keyed<Launch.Sharing>) => Effect.provide(Launch.share(value, notify), home),
      idleTimeToLive: unusedFor
    })
    // What is kept in memory is lost with its store.
    const stores = yield* RcMap.make({
      lookup: ({ value }: Keyed<StoreLocation.Place>) =>
        Effect.provide((options.openStore ?? StoreLocation.open)(value), home),
      idleTimeToLive: ({ value }) => (value === StoreLocation.memory ? Duration.infinity : unusedFor)
    })
    const checkpoints = yield* RcMap.make({
      lookup: ({ value: { folder, place } }: Keyed<Where>) =>
        place === StoreLocation.memory
          ? Effect.sync(() => Checkpoints.makeMemory())
          : Effect.provide(SessionForking.checkpoints({ folder }), home),
      idleTimeToLive: Duration.infinity
    })
    const storeAt = (place: StoreLocation.Place) => RcMap.get(stores, new Keyed(nameOf(place), place))
    const checkpointsOf = (where: Where) =>
      RcMap.get(checkpoints, new Keyed(`${where.folder} ${nameOf(where.place)}`, where))
    const runtimeOf = (sharing: Launch.Sharing) => RcMap.get(runtimes, new Keyed(Launch.keyOf(sharing), sharing))

    const directory = new Directory<Launch.Platform>(scope)
    yield* Effect.addFinalizer(() => directory.closeAll)
    if (options.evictAfter !== undefined)
      yield* Effect.forkIn(evicting(directory, Duration.decode(options.evictAfter)), scope)

    const permitted = (workspace: string) =>
      Effect.suspend(() => {
        const refused = (problem: HostError.WorkspaceRefused["problem"]) =>
          Effect.fail(new HostError.WorkspaceRefused({ workspace, problem }))
        if (!isAbsolute(workspace)) return refused("relative")
        const real = OwnFile.realDirectory(workspace)
        if (real === undefined) return refused("noDirectory")
        return isPermitted(options.workspaces, real) ? Effect.succeed(real) : refused("notPermitted")
      })

    const settingsFor = (workspace: string, { addDirs, mode, model, profile, servers }: Wishes, tenant?: string) =>
      Effect.gen(function* () {
        if (model !== undefined) yield* offered(model)
        const added = addDirs === undefined ? undefined : yield* Effect.forEach(addDirs, permitted)
        const places = yield* Effect.all([UserLocation.stateDirectory, UserLocation.configDirectory])
        if (places.some((place) => OwnFile.isWithin(OwnFile.realDirectory(place) ?? place, workspace)))
          return yield* new HostError.WorkspaceRefused({ workspace, problem: "holdsState" })
        const flags: Overrides = {
          ...options.overrides,
          workspace,
          tenant,
          ...(profile === undefined ? {} : { profile }),
          ...(mode === undefined ? {} : { mode }),
          ...(servers === undefined ? {} : { servers }),
          ...(added === undefined ? {} : { "add-dir": added })
        }
        const settings = yield* Settings.load(flags)
        return { flags, own: settings.model, settings: { ...settings, model: model ?? settings.model } }
      })

    const start: Service["start"] = ({ interactors, options, sharing }) =>
      Effect.gen(function* () {
        const shared = yield* Effect.catchTag(runtimeOf(sharing), "ModelRefused", ({ message }) => invalid(message))
        return yield* Launch.start(shared, sharing, interactors, { ...options, notify })
      })

    /** A new or stored session, until the scope closes. */
    const begin = (id: SessionId, workspace: string, wishes: Wishes, as: "chosen" | "new" | "stored") =>
      Effect.gen(function* () {
        const { flags, own, settings } = yield* settingsFor(workspace, wishes, tenantOf(id))
        const place = yield* StoreLocation.of(flags, settings)
        if (as !== "stored") yield* StoreLocation.prepare(place, settings)
        else if (!isThere(place)) return yield* new StoreError.SessionUnknown({ rootSessionId: id })
        const store = yield* storeAt(place)
        const places = yield* checkpointsOf({ folder: settings.folder, place })
        const sharingOf = (settings: Settings.Settings) =>
          Effect.map(Launch.profiles(settings), (profiles): Launch.Sharing => ({
            settings,
            profiles,
            attended: true,
            halts: false,
            outOfReach: SessionSelection.filesOf(place),
            checkpoints: places,
            outputStreamed: false,
            hasWorkspace
          }))
        const isNew = as === "new" || (as === "chosen" && (yield* SessionName.get(store, id)) === undefined)
        // The runtime comes first: a session that cannot run leaves no trace.
        const ofNew = isNew ? yield* sharingOf(Settings.addressed(settings, flags, own)) : undefined
        if (ofNew !== undefined) yield* runtimeOf(ofNew)
        const { model, profile } = settings
        const taken: Effect.Effect<Persistence.Persistence, OpenFailure, Scope.Scope> = isNew
          ? Persistence.open(store, id, { workspace, model, profile })
          : Persistence.resume(store, id, { workspace })
        // The host's own choices are for new sessions. Another one has what it had, unless the caller wishes otherwise.
        const wished = { ...flags, model: wishes.model, profile: wishes.profile }
        const kept = yield* SessionSelection.held({ flags: wished, own, place, settings, store }, taken)
        const { persistence } = kept
        const sharing = persistence.isNew && ofNew !== undefined ? ofNew : yield* sharingOf(kept.settings)
        const shared = yield* runtimeOf(sharing)
        const { servers } = Context.get(shared.context, AgentRuntime.AgentRuntime)
        // No person may look at this session now.
        if (servers.length > 0) {
          const Servers = yield* Effect.promise(() => import("./Servers.js"))
          yield* Servers.follow(servers, notify)
        }
        yield* kept.keepGiven
        const { profiles } = sharing
        const wantsTrust = settings.wantsTrust || profiles.wantTrust
        const remarks = [
          ...settings.warnings,
          ...(wantsTrust ? [untrusted(workspace)] : []),
          ...Launch.unmet(sharing.settings, profiles),
          ...profiles.remarks
        ]
        remarks.forEach(notify)
        const options = { persistence, whenNobody: "wait" as const, notify }
        const started = yield* EditorFiles.withEditor(wishes.editor)(
          Launch.start(shared, sharing, wishes.interactors ?? [], options)
        )
        const setModel: LiveSession["setModel"] = (model, thinking) => {
          const { models } = kept.settings
          const chosen = thinking === undefined ? models : Settings.withThinking(models, model, thinking)
          return Effect.zipRight(offered(model), Launch.resolveModel({ ...kept.settings, models: chosen }, model)).pipe(
            Effect.mapError(({ message }) => new HostError.ModelRefused({ model, message })),
            Effect.flatMap((resolved) => started.agent.setModel(resolved, thinking)),
            Effect.provide(home)
          )
        }
        const models = [...ModelList.named(kept.settings), "offline/offline"]
        return { ...started, workspace, setModel, models, wantsTrust }
      })

    const opened = (
      id: string,
      begun: (id: SessionId) => Effect.Effect<Begun, OpenFailure, Launch.Platform | Scope.Scope>
    ): Effect.Effect<LiveSession, OpenFailure> => {
      if (!isSessionId(id)) return Effect.fail(new HostError.SessionIdInvalid({ id }))
      const own = SessionId.make(id)
      return directory.open(own, home, begun(own))
    }

    /** The stores in which sessions may be. */
    const placesOf = (workspace: string | undefined) =>
      Effect.gen(function* () {
        const { stateDirectory, store } = yield* Settings.storage(options.overrides ?? {})
        const here =
          workspace === undefined ? undefined : { workspace, folder: UserLocation.folderOf(stateDirectory, workspace) }
        if (store !== undefined) {
          const { folder, workspace } = here ?? { workspace: stateDirectory, folder: stateDirectory }
          const place = yield* StoreLocation.of({}, { folder, workspace, stateDirectory, store, trusted: true })
          return [{ place, folder, workspace: undefined }]
        }
        const folders = here === undefined ? yield* UserLocation.folders(stateDirectory) : [here]
        return folders.map(({ folder, workspace }) => ({
          folder,
          workspace,
          place: StoreLocation.inFolder({ folder })
        }))
      })

    const ask = <A, E extends { readonly message: string }>(
      workspace: string | undefined,
      question: (store: SessionStore.Service) => Effect.Effect<A, E>
    ) =>
      Effect.gen(function* () {
        const remarks: Array<string> = []
        const found: Array<Where & { readonly answer: A; readonly workspace: string | undefined }> = []
        for (const where of yield* placesOf(workspace)) {
          if (!isThere(where.place)) continue
          const answer = yield* Effect.either(Effect.scoped(Effect.flatMap(storeAt(where.place), question)))
          if (Either.isLeft(answer)) remarks.push(answer.left.message)
          else found.push({ ...where, answer: answer.right })
        }
        return { found, remarks }
      })

    const storedOf = (listed: Listed, workspace: string | undefined): Stored => ({
      ...listed,
      workspace: listed.workspace ?? workspace,
      isLive: directory.has(listed.rootSessionId)
    })

    /** With where it is stored. */
    const lookFor = (id: string) =>
      Effect.map(
        ask(undefined, (store) => SessionName.get(store, id)),
        ({ found }) =>
          found.flatMap(({ answer, workspace, ...where }) =>
            answer === undefined ? [] : [{ ...where, stored: storedOf(answer, workspace) }]
          )[0]
      )

    /** Where a stored session is, with the settings of its workspace. */
    const whereOf = (id: string) =>
      Effect.gen(function* () {
        const found = yield* lookFor(id)
        const workspace = found?.stored.workspace
        if (found === undefined || workspace === undefined)
          return yield* new StoreError.SessionUnknown({ rootSessionId: id })
        return { place: found.place, settings: (yield* settingsFor(yield* permitted(workspace), {})).settings }
      })

    return {
      create: ({ id, workspace, ...wishes }) =>
        Effect.flatMap(permitted(workspace), (real) =>
          within(
            real,
            opened(id ?? Id.session(ids), (own) => begin(own, real, wishes, id === undefined ? "new" : "chosen"))
          )
        ),
      open: (id, { workspace, ...wishes } = {}) =>
        workspace === undefined
          ? opened(id, (id) =>
              Effect.gen(function* () {
                const where = (yield* lookFor(id))?.stored.workspace
                if (where === undefined) return yield* new StoreError.SessionUnknown({ rootSessionId: id })
                return yield* begin(id, yield* permitted(where), wishes, "stored")
              })
            )
          : Effect.flatMap(permitted(workspace), (real) =>
              within(
                real,
                opened(id, (id) => begin(id, real, wishes, "stored"))
              )
            ),
      live: Effect.sync(() => directory.live),
      list: ({ after, limit = 100, prefix, workspace } = {}) =>
        Effect.gen(function* () {
          const real = workspace === undefined ? undefined : yield* permitted(workspace)
          const { found, remarks } = yield* ask(real, (store) =>
            store.page({ after, prefix, workspace: real, limit: limit + 1 })
          )
          const all = found.flatMap(({ answer, workspace }) =>
            answer.sessions.map((listed) => storedOf(listed, workspace))
          )
          const known = new Map<string, boolean>()
          const seen = all.filter(({ workspace }) => {
            if (workspace === undefined) return true
            const isSeen = known.get(workspace) ?? isPermitted(options.workspaces, workspace)
            known.set(workspace, isSeen)
            return isSeen
          })
          return { ...SessionStore.paged(seen, { limit, after }), remarks }
        }).pipe(Effect.provide(home)),
      stores: Effect.gen(function* () {
        const { workspaces } = options
        const places =
          workspaces === undefined
            ? yield* placesOf(undefined)
            : (yield* Effect.forEach(workspaces, (one) => Effect.flatMap(permitted(one), placesOf))).flat()
        const { stateDirectory } = yield* Settings.storage(options.overrides ?? {})
        const found = new Map<string, SessionStore.Service>()
        for (const { folder, place, workspace } of places) {
          if (found.has(nameOf(place)) || (workspaces === undefined && !isThere(place))) continue
          if (workspace !== undefined)
            yield* StoreLocation.prepare(place, { folder, workspace, stateDirectory, trusted: true })
          found.set(nameOf(place), yield* storeAt(place))
        }
        return [...found.values()]
      }).pipe(Effect.provide(home)),
      find: (id) =>
        Effect.provide(
          Effect.map(lookFor(id), (found) => found?.stored),
          home
        ),
      close: (id) => directory.close(id),
      delete: (id) =>
        Effect.gen(function* () {
          const rootSessionId = SessionId.make(id)
          if (directory.has(id)) return yield* new HostError.SessionRunning({ rootSessionId })
          const found = yield* lookFor(id)
          if (found === undefined) return yield* new StoreError.SessionUnknown({ rootSessionId })
          const store = yield* storeAt(found.place)
          yield* store.delete(rootSessionId)
          yield* (yield* checkpointsOf(found)).forget(rootSessionId)
        }).pipe(Effect.scoped, Effect.provide(home)),
      fork: (id, { at, by }) =>
        Effect.gen(function* () {
          const { place, settings } = yield* whereOf(id)
          const store = yield* storeAt(place)
          const rootSessionId = SessionId.make(id)
          const turns = SessionFork.turns(yield* store.load(rootSessionId))
          const forked = yield* SessionForking.forkBy(store, settings, { id: rootSessionId, at, by })
          return { forked, words: turns.find(({ number }) => number === forked.turn + 1)?.words ?? "" }
        }).pipe(Effect.scoped, Effect.provide(home)),
      trust: (workspace) =>
        Effect.gen(function* () {
          const { settings } = yield* settingsFor(yield* permitted(workspace), {})
          return yield* (yield* loadWorkspaceTrust).of(settings)
        }).pipe(Effect.provide(home)),
      giveTrust: (workspace, { by, digest }) =>
        Effect.gen(function* () {
          const { settings } = yield* settingsFor(yield* permitted(workspace), {})
          const { brought } = settings
          const WorkspaceTrust = yield* loadWorkspaceTrust
          const { programs } = yield* WorkspaceTrust.wanted(settings)
          const refused = (problem: HostError.TrustRefused["problem"]) =>
            new HostError.TrustRefused({ workspace: settings.workspace, problem })
          if (WorkspaceTrust.digestOf(settings, programs) !== digest) return yield* refused("changed")
          if (!Trust.isTrustable(brought)) return yield* refused("link")
          yield* Trust.decide(settings, brought, { trusted: true, by }, programs)
        }).pipe(Effect.provide(home)),
      audit: (id) =>
        Effect.gen(function* () {
          const { place, settings } = yield* whereOf(id)
          const { audit = AuditLocation.archive(settings) } = yield* storeAt(place)
          return yield* SessionAudit.read(audit, SessionId.make(id), settings.auditKey)
        }).pipe(Effect.scoped, Effect.provide(home)),
      start
    }
  })

export const layer = (options: Options = {}): Layer.Layer<Host, never, Launch.Platform> =>
  Layer.scoped(Host, make(options))

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** Whether nothing works in it: no agent, no background command, and no question is open. */
export const isAtRest = ({ agent, id, jobs }: LiveSession): Effect.Effect<boolean> =>
  Effect.zipWith(
    agent.agents,
    agent.broker.open,
    (agents, open) =>
      open.length === 0 &&
      agents.every(({ session }) => session.isIdle()) &&
      jobs.list(id).every(({ ended }) => ended !== undefined)
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Closes sessions in which nothing has happened for so long. Agents of others forget, so theirs stay. */
const evicting = (directory: Pick<Directory<never>, "alone">, after: Duration.Duration): Effect.Effect<never> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const session of directory.alone) {
      if (now - (yield* session.lastActivity) < Duration.toMillis(after)) continue
      const { id } = yield* session.agent.model
      if (!id.startsWith("command:") && (yield* isAtRest(session))) yield* Effect.ignoreLogged(session.close)
    }
  }).pipe(Effect.delay(Duration.times(after, 0.1)), Effect.forever)

/** How long a store or a runtime stays without a session. */
const unusedFor = Duration.seconds(10)

/** Chosen ids become names of files and parts of addresses. A dot ends the name of a tenant. */
export const isSessionId = (id: string): boolean => /^(?:[a-z0-9][a-z0-9_-]{0,31}\.)?[\w-]{1,128}$/.test(id)

/** Whose session it is. */
export const tenantOf = (id: string): string | undefined => /^([^.]+)\./.exec(id)?.[1]

/** Where sessions of a workspace are stored, and what belongs to them. */
interface Where {
  readonly place: StoreLocation.Place
  readonly folder: string
}

/** A value that is the same as another one of its key. */
class Keyed<A> implements Equal.Equal {
  constructor(
    readonly key: string,
    readonly value: A
  ) {}
  [Equal.symbol](that: Equal.Equal): boolean {
    return that instanceof Keyed && that.key === this.key
  }
  [Hash.symbol](): number {
    return Hash.string(this.key)
  }
}

const nameOf = (place: StoreLocation.Place): string => (typeof place === "string" ? place : Redacted.value(place.url))

const loadWorkspaceTrust = Effect.promise(() => import("./WorkspaceTrust.js"))

const untrusted = (workspace: string): string =>
  `What ${workspace}/.assent allows does not count until you trust it: assent chat --trust there, or POST /v1/workspaces/trust at a server.`

/** A database is always there. */
const isThere = (place: StoreLocation.Place): boolean =>
  place === StoreLocation.memory || typeof place !== "string" || OwnFile.isThere(place)

/** A client of a door names a model. It does not name a file or a program of this machine. */
const offered = (model: string): Effect.Effect<void, HostError.ModelRefused> =>
  /^(?:script|command):/.test(model)
    ? Effect.fail(
        new HostError.ModelRefused({
          model,
          message: `A session takes no ${model.replace(/:.*/s, "")} of this machine as its model. Name PROVIDER/MODEL, or start Assent with --model.`
        })
      )
    : Effect.void

const isPermitted = (workspaces: Options["workspaces"], real: string): boolean =>
  workspaces === undefined ||
  workspaces.some((directory) => OwnFile.isWithin(OwnFile.realDirectory(directory) ?? directory, real))

/** A live session may work in another workspace than the one that is named. */
const within = <E>(real: string, opened: Effect.Effect<LiveSession, E>) =>
  Effect.filterOrFail(
    opened,
    ({ workspace }) => workspace === real,
    ({ id, workspace }) => new StoreError.SessionElsewhere({ rootSessionId: id, workspace })
  )

/** A session's parts, before it is live. */
export type Begun = Launch.Started & Pick<LiveSession, "models" | "setModel" | "wantsTrust" | "workspace">

/** A session from the moment in which it is asked for until it is gone. */
interface Entry {
  readonly scope: Scope.CloseableScope
  readonly ready: Deferred.Deferred<LiveSession, OpenFailure>
  readonly gone: Deferred.Deferred<void>
  isClosing: boolean
  session: LiveSession | undefined
  /** When it was asked for last. */
  askedAt: number
  /** Interactors that came after its start. */
  attached: number
}

/**
 * The sessions of a host by id.
 *
 * ```
 *   opening ─► live ─► closing ─► gone
 *      └─ failed ──────────────────┘       who asks for one that is closing waits, and opens it anew
 * ```
 */
export class Directory<R> {
  private readonly entries = new Map<string, Entry>()
  private isClosed = false

  constructor(private readonly scope: Scope.Scope) {}

  has(id: string): boolean {
    return this.entries.has(id)
  }

  get live(): ReadonlyArray<LiveSession> {
    return [...this.entries.values()].flatMap(({ isClosing, session }) =>
      session === undefined || isClosing ? [] : [session]
    )
  }

  /** Live ones to which nobody is attached. */
  get alone(): ReadonlyArray<LiveSession> {
    return this.live.filter(({ id }) => this.entries.get(id)?.attached === 0)
  }

  /** All who ask for one id at once get one session. An interrupt of one of them ends only the waiting. */
  open(
    id: SessionId,
    home: Runtime.Runtime<R>,
    begun: Effect.Effect<Begun, OpenFailure, R | Scope.Scope>
  ): Effect.Effect<LiveSession, OpenFailure> {
    return Effect.suspend(() => {
      if (this.isClosed) return Effect.fail(new HostError.HostClosed())
      const known = this.entries.get(id)
      if (known?.isClosing === true) return Effect.zipRight(Deferred.await(known.gone), this.open(id, home, begun))
      if (known !== undefined)
        return Effect.flatMap(Clock.currentTimeMillis, (now) => {
          known.askedAt = now
          return Deferred.await(known.ready)
        })
      return Effect.flatMap(
        Effect.all([
          Scope.make(),
          Deferred.make<LiveSession, OpenFailure>(),
          Deferred.make<void>(),
          Clock.currentTimeMillis
        ]),
        ([scope, ready, gone, askedAt]) =>
          Effect.suspend(() => {
            const entry: Entry = { scope, ready, gone, isClosing: false, session: undefined, askedAt, attached: 0 }
            this.entries.set(id, entry)
            Runtime.runFork(home, this.begin(id, entry, begun), { scope: this.scope })
            return Deferred.await(ready)
          })
      )
    })
  }

  close(id: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const entry = this.entries.get(id)
      return entry === undefined ? Effect.void : this.end(id, entry)
    })
  }

  get closeAll(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.isClosed = true
      return Effect.forEach([...this.entries], ([id, entry]) => this.end(id, entry), {
        concurrency: "unbounded",
        discard: true
      })
    })
  }

  private begin(
    id: SessionId,
    entry: Entry,
    begun: Effect.Effect<Begun, OpenFailure, R | Scope.Scope>
  ): Effect.Effect<void, never, Exclude<R, Scope.Scope>> {
    return begun.pipe(
      Effect.flatMap((session) => liveOf(session, entry, this.end(id, entry))),
      Scope.extend(entry.scope),
      Effect.onExit((exit) => {
        if (Exit.isSuccess(exit)) {
          entry.session = exit.value
          return Deferred.succeed(entry.ready, exit.value)
        }
        entry.isClosing = true
        // Only the end of the host interrupts it.
        const cause = Cause.isInterruptedOnly(exit.cause) ? Cause.fail(new HostError.HostClosed()) : exit.cause
        return Effect.zipRight(this.leave(id, entry), Deferred.failCause(entry.ready, cause))
      }),
      Effect.flatMap(({ agent }) => agent.done),
      Effect.zipRight(this.end(id, entry)),
      Effect.ignoreLogged
    )
  }

  private end(id: string, entry: Entry): Effect.Effect<void> {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if (entry.isClosing) return Deferred.await(entry.gone)
        entry.isClosing = true
        return Effect.zipRight(Effect.exit(Deferred.await(entry.ready)), this.leave(id, entry))
      })
    )
  }

  private leave(id: string, entry: Entry): Effect.Effect<void> {
    return Effect.suspend(() => Scope.close(entry.scope, Exit.void)).pipe(
      Effect.ensuring(
        Effect.suspend(() => {
          if (this.entries.get(id) === entry) this.entries.delete(id)
          return Deferred.succeed(entry.gone, undefined)
        })
      )
    )
  }
}

const liveOf = (
  { agent, files, jobs, models, prompts, redactor, review, setModel, trail, wantsTrust, workspace }: Begun,
  entry: Entry,
  close: Effect.Effect<void>
): Effect.Effect<LiveSession, never, Scope.Scope> =>
  Effect.gen(function* () {
    let last = yield* Clock.currentTimeMillis
    const { stream } = yield* agent.subscribe()
    yield* Effect.forkScoped(Stream.runForEach(stream, ({ at }) => Effect.sync(() => (last = at))))
    return {
      id: agent.id,
      workspace,
      agent,
      attach: (interactor) =>
        Effect.zipRight(
          Effect.acquireRelease(
            Effect.sync(() => entry.attached++),
            () => Effect.sync(() => entry.attached--)
          ),
          agent.broker.attach(review(interactor))
        ),
      trail,
      wantsTrust,
      jobs,
      files,
      redactor,
      prompts,
      models,
      setModel,
      lastActivity: Effect.sync(() => Math.max(last, entry.askedAt)),
      close,
      closed: Deferred.await(entry.gone)
    }
  })
