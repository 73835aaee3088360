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
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type { Kept } from "../broker/InteractionJournal.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type { PermissionState } from "../permission/PermissionState.js"
import * as JournalWriter from "../journal/JournalWriter.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as StoreError from "../journal/StoreError.js"

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
   * The state from another process; absent for a new session.
   *
   * @internal
   */
  readonly restored: SessionSnapshot.TreeSnapshot | undefined
  /**
   * Stored settlements, used when their question is asked again.
   *
   * @internal
   */
  readonly kept: (requestId: string) => Kept | undefined
  /**
   * Usage of its model calls so far.
   *
   * @internal
   */
  readonly spent: ReadonlyArray<TokenLedger.Entry>
  /**
   * Ids of users' words to it and its children.
   *
   * @internal
   */
  readonly taken: ReadonlySet<string>
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
      journal: yield* JournalWriter.make(lease),
      restored: undefined,
      kept: () => undefined,
      spent: [],
      taken: nothing
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
    const { answers, entries } = yield* store.load(rootSessionId)
    const restored = SessionSnapshot.fold(entries)
    const bound = SessionSnapshot.get(restored, rootSessionId)?.opened.workspace
    if (workspace !== undefined && bound !== undefined && bound !== workspace) {
      return yield* new StoreError.SessionElsewhere({ rootSessionId, workspace: bound })
    }
    const kept = new Map<string, Kept>()
    for (const { answered } of restored.sessions) {
      for (const { request, ...end } of answered) kept.set(request.requestId, end)
    }
    for (const { answer, by, requestId } of answers) kept.set(requestId, { answer, by })
    return {
      rootSessionId,
      workspace,
      journal: yield* JournalWriter.make(lease),
      restored,
      kept: (id) => kept.get(id),
      spent: spentIn(entries),
      taken: takenIn(entries)
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Claims it for one agent, for good.
 *
 * @internal
 */
export const take = ({ journal, rootSessionId }: Persistence): Effect.Effect<void, PersistenceInUse> =>
  Effect.suspend(() => {
    if (taken.has(journal)) return new PersistenceInUse({ rootSessionId })
    taken.add(journal)
    return Effect.void
  })

/**
 * Restores the tree's permissions from prompts, and its usage.
 *
 * @internal
 */
export const restore = (
  { restored, spent }: Persistence,
  permissions: PermissionState,
  ledger: TokenLedger.Service
): void => {
  const former = restored && SessionSnapshot.permissionsOf(restored)
  if (former !== undefined) permissions.restore(former)
  for (const entry of spent) ledger.record(entry)
}

/**
 * The number of the last subagent that the tree made, so that ids stay unique over its whole life.
 *
 * @internal
 */
export const lastSubagent = (tree: SessionSnapshot.TreeSnapshot | undefined): number => {
  const ids = (tree?.sessions ?? []).flatMap((session) => [
    session.opened.subagentId ?? "",
    // Requested children that were not made yet.
    ...SessionSnapshot.requestsOf(session).map(({ interaction }) =>
      interaction._tag === "approveSubagentEnvelope" ? interaction.subagentId : ""
    )
  ])
  return ids.reduce((last, id) => Math.max(last, Number(/^subagent_(\d+)$/.exec(id)?.[1] ?? 0)), 0)
}

/**
 * The first entry of a new root session.
 *
 * @internal
 */
export const opening = (
  origin: Origin.Origin,
  model: Model.Service,
  instructions: string,
  profile: string | undefined,
  workspace: string | undefined
): JournalEntry.SessionOpened => ({
  ...JournalEntry.opening(origin, model.id, instructions),
  ...(workspace === undefined ? {} : { workspace }),
  ...(profile === undefined ? {} : { profile })
})

/**
 * Publishes for UIs that the session was resumed, and the user's interjections before.
 *
 * @internal
 */
export const retell =
  (bus: EventBus.Service) =>
  ({ closed, history, interjections, opened }: SessionSnapshot.SessionSnapshot): Effect.Effect<void> =>
    Effect.map(Effect.clock, (clock) => {
      if (closed) return
      const { agent, sessionId } = opened
      const actor = { sessionId, agent }
      EventPublisher.publish(bus, clock, actor, { _tag: "SessionRestored", messages: history.length })
      for (const { id, interjection, text } of interjections) {
        const parentId = interjection?.parentId ?? "root"
        const heard = { messageId: id, message: text, targetAgent: agent, parentId }
        EventPublisher.publish(bus, clock, actor, { _tag: "UserInterjected", ...heard })
      }
    })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nothing: ReadonlySet<string> = new Set()

/** Keyed by the writer: a copy of a persistence is the same one. */
const taken = new WeakSet<JournalWriter.Service>()

/** Withdrawn words count as taken. */
const takenIn = (entries: ReadonlyArray<JournalEntry.Written>): ReadonlySet<string> =>
  new Set(
    entries.flatMap(({ entry }) =>
      entry._tag === "MessageReceived" && entry.message.source === "user" ? [entry.message.id] : []
    )
  )

const spentIn = (entries: ReadonlyArray<JournalEntry.Written>): ReadonlyArray<TokenLedger.Entry> => {
  const agents = new Map<SessionId, string>()
  return entries.flatMap(({ entry, sessionId }): ReadonlyArray<TokenLedger.Entry> => {
    if (entry._tag === "SessionOpened") agents.set(sessionId, entry.agent)
    if (entry._tag !== "UsageRecorded") return []
    const { model, usage } = entry
    return [{ sessionId, agent: agents.get(sessionId) ?? "", model, usage, kind: "call" }]
  })
}
