/**
 * Persistence of an agent: its journal, and the state that another process has written before.
 *
 * The lease is held until the scope closes, so two processes never resume the same session.
 *
 * @example
 * ```ts
 * import { Agent, type Id, Persistence, SessionStore } from "assent"
 * import { Effect } from "effect"
 *
 * const resumed = (id: Id.SessionId) =>
 *   Effect.gen(function* () {
 *     const store = yield* SessionStore.SessionStore
 *     return yield* Agent.start({ persistence: yield* Persistence.resume(store, id) })
 *   })
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Id from "../core/Id.js"
import { type RequestId, SessionId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import type { Redactor } from "../core/Redaction.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type { InteractionJournal, Kept } from "../broker/InteractionJournal.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import { RecentSettlements } from "../interaction/RecentSettlements.js"
import type { PermissionState } from "../permission/PermissionState.js"
import { attachmentsOf } from "../inbox/Message.js"
import { EventFeed } from "../journal/EventFeed.js"
import * as JournalAudit from "../journal/JournalAudit.js"
import * as JournalWriter from "../journal/JournalWriter.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionFork from "../journal/SessionFork.js"
import * as SessionRecorder from "../journal/SessionRecorder.js"
import * as RestoredFiles from "../journal/RestoredFiles.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as StoreError from "../journal/StoreError.js"
import * as LiveFork from "./LiveFork.js"
import type { Content } from "./MessageRouter.js"

export { turns, type ForkFailure, type Position, type Turn } from "../journal/SessionFork.js"
export type { Live } from "./LiveFork.js"

/**
 * The workspace of the session.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Real path of the workspace that the session works in. A session of another workspace is not resumed. */
  readonly workspace?: string | undefined
}

/**
 * One session that outlives the process, held for one agent. Made with {@link begin} and {@link resume}.
 *
 * @since 0.1.0
 * @category models
 */
export interface Persistence extends Options {
  readonly rootSessionId: SessionId
  /** @internal */
  readonly journal: JournalWriter.Service
  /**
   * Its events by position; absent for a fork of an agent in memory.
   *
   * @internal
   */
  readonly feed: EventFeed | undefined
  /**
   * The state from another process; absent for a new session.
   *
   * @internal
   */
  readonly restored: SessionSnapshot.TreeSnapshot | undefined
  /**
   * True for a session that {@link open} has just begun: there is nothing to resume but its first entry.
   *
   * @internal
   */
  readonly isNew: boolean
  /**
   * Stored settlements, used when their question is asked again.
   *
   * @internal
   */
  readonly kept: (requestId: string) => Kept | undefined
  /**
   * Who settled a request in a former process.
   *
   * @internal
   */
  readonly settledBy: InteractionJournal["settledBy"]
  /**
   * Stored votes on a request, on exactly these arguments.
   *
   * @internal
   */
  readonly votes: InteractionJournal["votes"]
  /**
   * Usage of its model calls so far.
   *
   * @internal
   */
  readonly spent: ReadonlyArray<TokenLedger.Entry>
  /**
   * Users' words to it and its children, by their ids.
   *
   * @internal
   */
  readonly taken: ReadonlyMap<string, Content>
  /**
   * What an agent does with it: it comes with the value, so that an agent that is not kept brings none of it.
   *
   * @internal
   */
  readonly ways: Ways
}

/** @internal */
export type Ways = typeof ways

/**
 * The position of a fork, and its author.
 *
 * @since 0.1.0
 * @category models
 */
export interface ForkOptions {
  /** Default: the end. A turn that runs is not taken. */
  readonly at?: SessionFork.Position | undefined
  /** The author, for the audit. Default: `program`. */
  readonly by?: string | undefined
}

/**
 * An agent uses this persistence, or has used it: a second one would resume from an outdated state.
 *
 * @since 0.1.0
 * @category errors
 */
export class PersistenceInUse extends Schema.TaggedError<PersistenceInUse>("assent/runtime/PersistenceInUse")(
  "PersistenceInUse",
  { rootSessionId: SessionId }
) {
  override get message(): string {
    return `An agent was started with this persistence of session ${this.rootSessionId} already. End that agent and its scope, then resume the session for another.`
  }
}

/**
 * Why a session cannot be stored.
 *
 * @since 0.1.0
 * @category errors
 */
export type BeginFailure = StoreError.SessionLocked | StoreError.StoreUnwritable | StoreError.StoreUnusable

/**
 * Stores a new session. It leaves a trace only after its first message.
 *
 * @since 0.1.0
 * @category constructors
 */
export const begin = (
  store: SessionStore.Service,
  { workspace }: Options = {}
): Effect.Effect<Persistence, BeginFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const ids = yield* Id.IdGenerator
    const rootSessionId = Id.session(ids)
    const lease = yield* store.lock(rootSessionId)
    return {
      rootSessionId,
      workspace,
      ...(yield* journalOf(store, lease, 0)),
      restored: undefined,
      kept: () => undefined,
      settledBy: () => undefined,
      isNew: false,
      votes: () => [],
      spent: [],
      taken: nothing,
      ways
    }
  })

/**
 * Resumes a session that no other process runs.
 *
 * @since 0.1.0
 * @category constructors
 */
export const resume = (
  store: SessionStore.Service,
  rootSessionId: SessionId,
  { workspace }: Options = {}
): Effect.Effect<
  Persistence,
  BeginFailure | StoreError.SessionUnknown | StoreError.SessionElsewhere | StoreError.JournalUnreadable,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const lease = yield* store.lock(rootSessionId)
    return yield* resumed(store, lease, yield* store.load(rootSessionId), workspace)
  })

/**
 * Settings of a session before its agent starts.
 *
 * @since 0.1.0
 * @category models
 */
export interface OpenOptions extends Options {
  /** The id of the model that the session begins with. Default: empty, which lists show as unknown. */
  readonly model?: string | undefined
  /** The name of the profile that the session begins with. */
  readonly profile?: string | undefined
  /** The path of the agent that the session begins with. Default: `main`. */
  readonly name?: string | undefined
}

/**
 * Resumes the session of this id, or begins it. The caller may choose the id. When this returns, the session is on disk: a
 * list shows it, and another process resumes it, also when nobody has spoken to it.
 *
 * The options of a beginning do not change a session that exists.
 *
 * @since 0.1.0
 * @category constructors
 */
export const open = (
  store: SessionStore.Service,
  rootSessionId: SessionId,
  { model = "", name = "main", profile, workspace }: OpenOptions = {}
): Effect.Effect<
  Persistence,
  BeginFailure | StoreError.SessionTakenOver | StoreError.SessionElsewhere | StoreError.JournalUnreadable,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const lease = yield* store.lock(rootSessionId)
    const found = yield* known(store, rootSessionId)
    if (found !== undefined) return yield* resumed(store, lease, found, workspace)
    const origin = { sessionId: rootSessionId, rootSessionId, agent: name, depth: 0 }
    const entry = { ...JournalEntry.opening(origin, model, ""), ...placeOf({ workspace, profile }) }
    const draft = { sessionId: rootSessionId, entry }
    yield* lease.append([draft])
    const entries = [{ seq: 1, at: yield* Clock.currentTimeMillis, ...draft }]
    const begun = yield* resumed(store, lease, { rootSessionId, entries, answers: [] }, workspace)
    return { ...begun, isNew: true }
  })

/**
 * Forks a stored session, whether a process runs it or not, and holds the fork: the one to go on with. Its parent stays as
 * it is. See {@link Position} for where, and `AuditTrail` around this for the record.
 *
 * @example
 * ```ts
 * import { Agent, type Id, Persistence, SessionStore } from "assent"
 * import { Effect } from "effect"
 *
 * const otherwise = (id: Id.SessionId) =>
 *   Effect.gen(function* () {
 *     const store = yield* SessionStore.SessionStore
 *     const agent = yield* Agent.start({ persistence: yield* Persistence.fork(store, id, { at: 3 }) })
 *     return yield* agent.run("take the other way")
 *   })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fork = (
  store: SessionStore.Service,
  parent: SessionId,
  { workspace, ...options }: Options & ForkOptions = {}
): Effect.Effect<Persistence, SessionFork.ForkFailure | StoreError.SessionElsewhere, Scope.Scope> =>
  Effect.gen(function* () {
    const loaded = yield* store.load(parent)
    yield* requireHere(loaded, workspace)
    const { drafts, forked } = yield* SessionFork.planned(loaded, options)
    const lease = yield* SessionFork.write(store, forked, drafts, options)
    return yield* resumed(store, lease, yield* store.load(forked.rootSessionId), workspace)
  })

/**
 * Forks a running agent that is kept in memory. Fork a stored agent in its store instead. An agent in memory has no
 * turn before its last compaction, and counts the tokens of the whole tree.
 *
 * The agent goes on as it is. The fork is lost with its process, as the agent is.
 *
 * @since 0.1.0
 * @category constructors
 */
export const forkAgent = (
  agent: LiveFork.Live,
  { at, by }: { readonly at?: number | undefined; readonly by?: string | undefined } = {}
): Effect.Effect<Persistence, StoreError.PositionUnknown | AuditTrail.AuditUnwritable> =>
  Effect.gen(function* () {
    const ids = yield* Id.IdGenerator
    const root = (yield* agent.agents).find(({ origin }) => origin.sessionId === agent.id)
    const begun = root?.session.turns() ?? 0
    const place = yield* LiveFork.placeOf(agent, {
      at,
      begun,
      ended: root?.session.inTurn() === true ? begun - 1 : begun
    })
    const forked = { rootSessionId: Id.session(ids), parent: agent.id, turn: place.turn, entry: 0 }
    yield* SessionFork.record(forked, by, agent.origin.agent)
    const model = yield* agent.model
    const written = LiveFork.todosIn(place.messages)
    return {
      rootSessionId: forked.rootSessionId,
      // A copy: each persistence has a writer of its own.
      journal: { ...JournalWriter.noop },
      feed: undefined,
      restored: LiveFork.snapshot(agent, {
        forked,
        ids,
        messages: place.messages,
        model: model.id,
        permissions: yield* agent.permissions.snapshot,
        profile: root?.profile,
        todos: written ?? (place.turn < begun ? [] : yield* Effect.orDie(agent.todos()))
      }),
      kept: () => undefined,
      settledBy: () => undefined,
      isNew: false,
      votes: () => [],
      spent: LiveFork.spent(agent, forked.rootSessionId, model.id),
      taken: nothing,
      ways
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Claims it for one agent, for good.
 */
const take = ({ journal, rootSessionId }: Persistence): Effect.Effect<void, PersistenceInUse> =>
  Effect.suspend(() => {
    if (taken.has(journal)) return new PersistenceInUse({ rootSessionId })
    taken.add(journal)
    return Effect.void
  })

/**
 * Restores the tree's permissions from prompts, and its usage.
 */
const restore = ({ restored, spent }: Persistence, permissions: PermissionState, ledger: TokenLedger.Service): void => {
  const former = restored && SessionSnapshot.permissionsOf(restored)
  if (former !== undefined) permissions.restore(former)
  for (const entry of spent) ledger.record({ ...entry, earlier: true })
}

/**
 * The number of the last subagent that the tree made, so that ids stay unique over its whole life.
 */
const lastSubagent = (tree: SessionSnapshot.TreeSnapshot | undefined): number =>
  (tree?.sessions ?? [])
    .flatMap((session) => [
      JournalEntry.subagentIn(session.opened),
      session.opened.forkOf?.subagents ?? 0,
      // Requested children that were not made yet.
      ...SessionSnapshot.requestsOf(session).map((request) =>
        JournalEntry.subagentIn({ _tag: "InteractionRaised", request })
      )
    ])
    .reduce((last, number) => Math.max(last, number), 0)

/**
 * The first entry of a new root session.
 */
const opening =
  (
    { workspace }: Persistence,
    root: { readonly origin: Origin.Origin; readonly model: Model.Service; readonly profile: string | undefined }
  ) =>
  (instructions: string): JournalEntry.SessionOpened => ({
    ...JournalEntry.opening(root.origin, root.model.id, instructions),
    ...placeOf({ workspace, profile: root.profile })
  })

const placeOf = ({ profile, workspace }: Pick<OpenOptions, "profile" | "workspace">) => ({
  ...(workspace === undefined ? {} : { workspace }),
  ...(profile === undefined ? {} : { profile })
})

/** What the store has of a session; undefined before its first entry. */
const known = (store: SessionStore.Service, id: SessionId) =>
  Effect.catchTag(store.load(id), "SessionUnknown", () => Effect.succeed(undefined))

/**
 * Publishes for UIs that the session was resumed, the user's interjections before, and what is to be done.
 */
const retell =
  (bus: EventBus.Service) =>
  ({ closed, history, interjections, opened, todos }: SessionSnapshot.SessionSnapshot): Effect.Effect<void> =>
    Effect.map(Effect.clock, (clock) => {
      if (closed) return
      const { agent, sessionId } = opened
      const actor = { sessionId, agent }
      EventPublisher.publish(bus, clock, actor, { _tag: "SessionRestored", messages: history.length })
      for (const message of interjections) {
        const { id, interjection, text } = message
        const parentId = interjection?.parentId ?? "root"
        const heard = { messageId: id, message: text, targetAgent: agent, parentId, ...attachmentsOf([message]) }
        EventPublisher.publish(bus, clock, actor, { _tag: "UserInterjected", ...heard })
      }
      if (todos.length > 0) EventPublisher.publish(bus, clock, actor, { _tag: "TodosChanged", items: todos })
    })

/** The journal of a session with `from` entries, and the feed of what is written there. */
const journalOf = (
  store: SessionStore.Service,
  lease: SessionStore.Lease,
  from: number,
  raised: ReadonlyArray<RequestId> = []
): Effect.Effect<Pick<Persistence, "feed" | "journal">, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { rootSessionId } = lease
    const feed: EventFeed = new EventFeed({
      root: rootSessionId,
      from,
      load: store.load(rootSessionId).pipe(
        Effect.map(({ entries }) => entries),
        Effect.catchTag("SessionUnknown", () => Effect.succeed([]))
      ),
      flush: Effect.suspend(() => journal.flush)
    })
    const journal: JournalWriter.Service = yield* JournalWriter.make(lease, { observer: feed, raised })
    return { feed, journal }
  })

/** The bus of its agent, whose events its feed sees. */
const feeding = ({ feed }: Persistence, bus: EventBus.Service): EventBus.Service =>
  feed === undefined ? bus : EventBus.observed(bus, feed)

const ways = {
  take,
  feeding,
  restore,
  lastSubagent,
  opening,
  retell,
  audit: JournalAudit.of,
  stateOf: SessionSnapshot.get,
  interactions: SessionRecorder.interactions,
  recorder: (
    journal: JournalWriter.Service,
    redactor: Redactor,
    opened?: JournalEntry.SessionOpened
  ): SessionRecorder.SessionRecorder => new SessionRecorder.SessionRecorder(journal, redactor, opened)
}

const nothing: ReadonlyMap<string, Content> = new Map()

const resumed = (
  store: SessionStore.Service,
  lease: SessionStore.Lease,
  loaded: SessionStore.Loaded,
  workspace: string | undefined
): Effect.Effect<Persistence, StoreError.SessionElsewhere | StoreError.StoreUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const { answers, entries, rootSessionId } = loaded
    yield* requireHere(loaded, workspace)
    const restored = yield* RestoredFiles.load(store, SessionSnapshot.fold(entries))
    const kept = new Map<string, Kept>()
    for (const { answered } of restored.sessions) {
      for (const { request, ...end } of answered) kept.set(request.requestId, end)
    }
    for (const { answer, at, by, requestId } of answers) kept.set(requestId, { answer, at, by })
    return {
      rootSessionId,
      workspace,
      ...(yield* journalOf(
        store,
        lease,
        entries.at(-1)?.seq ?? 0,
        restored.sessions.flatMap(({ open }) => open.map(({ requestId }) => requestId))
      )),
      restored,
      kept: (id) => kept.get(id),
      settledBy: settlersIn(loaded),
      isNew: false,
      votes: (id, digest) =>
        restored.sessions.flatMap(({ votes }) =>
          votes.filter((vote) => vote.requestId === id && vote.digest === digest)
        ),
      spent: spentIn(entries),
      taken: takenIn(entries),
      ways
    }
  })

const requireHere = (
  { entries, rootSessionId }: SessionStore.Loaded,
  workspace: string | undefined
): Effect.Effect<void, StoreError.SessionElsewhere> =>
  Effect.suspend(() => {
    const bound = SessionFork.workspaceIn({ entries, rootSessionId })
    return workspace === undefined || bound === undefined || bound === workspace
      ? Effect.void
      : new StoreError.SessionElsewhere({ rootSessionId, workspace: bound })
  })

/** Keyed by the writer: a copy of a persistence is the same one. */
const taken = new WeakSet<JournalWriter.Service>()

/** Who settled the requests of a journal, as far as a broker remembers its own. */
const settlersIn = ({ answers, entries }: SessionStore.Loaded): Persistence["settledBy"] => {
  const settlements = new RecentSettlements()
  for (const { entry } of entries)
    if (entry._tag === "InteractionSettled") settlements.add(entry.requestId, entry.by ?? settlers[entry.status])
  for (const { by, requestId } of answers) settlements.add(requestId, by)
  return (id) => settlements.settledBy(id)
}

const settlers = {
  answered: "somebody",
  cancelled: "the asker",
  timed_out: "its time limit",
  unavailable: "the want of anybody to answer"
}

/** Withdrawn words count as taken. */
const takenIn = (entries: ReadonlyArray<JournalEntry.Written>): ReadonlyMap<string, Content> =>
  new Map(
    entries.flatMap(({ entry }): ReadonlyArray<readonly [string, Content]> => {
      if (entry._tag !== "MessageReceived" || entry.message.source !== "user") return []
      const { id, parts, text } = entry.message
      return [[id, { parts, text }]]
    })
  )

const spentIn = (entries: ReadonlyArray<JournalEntry.Written>): ReadonlyArray<TokenLedger.Entry> => {
  const agents = new Map<SessionId, string>()
  return entries.flatMap(({ entry, sessionId }): ReadonlyArray<TokenLedger.Entry> => {
    if (entry._tag === "SessionOpened") {
      agents.set(sessionId, entry.agent)
      return (entry.forkOf?.spent ?? []).map((spent) => ({ ...spent, kind: "call" }))
    }
    if (entry._tag !== "UsageRecorded" && entry._tag !== "TokensSpent") return []
    const { model, usage } = entry
    const kind = entry._tag === "TokensSpent" ? entry.kind : "call"
    return [{ sessionId, agent: agents.get(sessionId) ?? "", model, usage, kind }]
  })
}
