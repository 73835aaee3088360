/**
 * An agent that outlives its process: a journal to write, and what another process had written before.
 *
 * ```ts
 * const store = yield* SessionStore.SessionStore
 * const agent = yield* Agent.start({ persistence: yield* Persistence.resume(store, id) })
 * ```
 *
 * The session is locked for as long as the scope, so two processes never go on with the same one.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { IdGenerator, SessionId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import type * as EventBus from "../event/EventBus.js"
import type { Kept } from "../broker/InteractionJournal.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type { PermissionState } from "../permission/PermissionState.js"
import * as JournalWriter from "../journal/JournalWriter.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as StoreError from "../journal/StoreError.js"

/** In which workspace the session works. */
export interface Options {
  /** Real path of the workspace that the session works in. One that works in another is not gone on with. */
  readonly workspace?: string | undefined
}

/** One session that outlives the process, held for one agent. Made with {@link begin} and {@link resume}. */
export interface Persistence extends Options {
  readonly rootSessionId: SessionId
  /** @internal */
  readonly journal: JournalWriter.Service
  /**
   * How far another process had come; absent for a new session.
   *
   * @internal
   */
  readonly restored: SessionSnapshot.TreeSnapshot | undefined
  /**
   * Ends that count as soon as their question is asked again.
   *
   * @internal
   */
  readonly kept: (requestId: string) => Kept | undefined
  /**
   * What its model calls used so far.
   *
   * @internal
   */
  readonly spent: ReadonlyArray<TokenLedger.Entry>
  /**
   * Ids of what users said to it and its children.
   *
   * @internal
   */
  readonly taken: ReadonlySet<string>
}

/** An agent works with this persistence, or has: another would go on from where that one began. */
export class PersistenceInUse extends Schema.TaggedError<PersistenceInUse>("assent/runtime/PersistenceInUse")(
  "PersistenceInUse",
  { rootSessionId: SessionId }
) {
  override get message(): string {
    return `An agent was started with this persistence of session ${this.rootSessionId} already. End that agent and its scope, then resume the session for another.`
  }
}

/** Why a session cannot be kept. */
export type BeginFailure = StoreError.SessionLocked | StoreError.StoreUnwritable | StoreError.StoreUnusable

/** Keeps a new session. It leaves a trace once something is said to it. */
export const begin = (
  store: SessionStore.Service,
  { workspace }: Options = {}
): Effect.Effect<Persistence, BeginFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    const rootSessionId = ids.unsafeNext("ses") as SessionId
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

/** Goes on with a session that no other process runs. */
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
 * Takes it for one agent, for good.
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
 * Brings back what the tree was told at prompts, and what it used.
 *
 * @internal
 */
export const restore = (
  { restored, spent }: Persistence,
  permissions: PermissionState,
  ledger: TokenLedger.Service
): void => {
  const told = restored && SessionSnapshot.permissionsOf(restored)
  if (told !== undefined) permissions.restore(told)
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
    // Asked for, and not made yet.
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
 * What a UI has to know of a session that goes on: that it does, and what the user had said in between.
 *
 * @internal
 */
export const retell =
  (bus: EventBus.Service) =>
  ({ closed, history, interjections, opened }: SessionSnapshot.SessionSnapshot): Effect.Effect<void> =>
    Effect.map(Effect.clock, (clock) => {
      if (closed) return
      const { agent, sessionId } = opened
      const stamp = { at: clock.unsafeCurrentTimeMillis(), sessionId, agent }
      bus.unsafePublish({ _tag: "SessionRestored", messages: history.length, ...stamp })
      for (const { id, interjection, text } of interjections) {
        const parentId = interjection?.parentId ?? "root"
        bus.unsafePublish({
          _tag: "UserInterjected",
          messageId: id,
          message: text,
          targetAgent: agent,
          parentId,
          ...stamp
        })
      }
    })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nothing: ReadonlySet<string> = new Set()

/** By what they write to: a copy of a persistence is the same one. */
const taken = new WeakSet<JournalWriter.Service>()

/** Words that were withdrawn were taken all the same. */
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
