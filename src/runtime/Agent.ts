/**
 * A running root session from outside: an executor (a terminal, a server, a test) drives it.
 *
 * ```ts
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.start()
 *   return yield* agent.run("clean the build")
 * })
 * //    ^? Effect<TurnEnd, NotTaken, AgentRuntime | Interactor | Scope>
 * ```
 *
 * The type says that somebody may be asked: starting an agent needs an `Interactor`.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import * as Id from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as EventBus from "../event/EventBus.js"
import * as InteractionBroker from "../broker/InteractionBroker.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import * as TokenLedger from "../model/TokenLedger.js"
import { PermissionState } from "../permission/PermissionState.js"
import * as JournalWriter from "../journal/JournalWriter.js"
import * as Limits from "../turn/Limits.js"
import type { LimitsInvalid } from "../turn/Limits.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as Session from "../session/Session.js"
import * as SessionRecorder from "../journal/SessionRecorder.js"
import { AgentTree } from "../subagent/AgentTree.js"
import * as AgentTreeControl from "../subagent/AgentTreeControl.js"
import * as Subagents from "../subagent/Subagents.js"
import * as TreeSession from "../subagent/TreeSession.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import { AgentRuntime, type Service as Runtime } from "./AgentRuntime.js"
import type { Agent, Options } from "./AgentService.js"
import { Intake } from "./Intake.js"
import * as Persistence from "./Persistence.js"
import type { PersistenceInUse } from "./Persistence.js"
import { RunningAgent } from "./RunningAgent.js"

export { PersistenceInUse } from "./Persistence.js"
export { AgentStopped, MessageAlreadyTaken } from "./Intake.js"
export { MessageBlank } from "../inbox/Message.js"
export type { NotTaken } from "./Intake.js"
export { LimitsInvalid } from "../turn/Limits.js"
export type { Agent, Options, SendOptions } from "./AgentService.js"
export { CompactionFailed } from "../conversation/CompactionStrategy.js"
export type { JournalFailure } from "../journal/JournalWriter.js"
export type { Delivery, Message, Source } from "../inbox/Message.js"
export type { TurnOptions } from "../session/Session.js"
export type { Compacted } from "../turn/Compaction.js"
export type { Node } from "../subagent/AgentTree.js"
export type { InterruptOptions } from "../subagent/AgentTreeControl.js"
export { ToolCallNotRunning } from "../turn/RunningCalls.js"

/** Options with which starting cannot fail: no persistence, and the runtime's limits. */
export type Plain = Options & { readonly persistence?: undefined; readonly limits?: undefined }

/** Why an agent was not started. */
export type NotStarted = PersistenceInUse | LimitsInvalid

/** The type of functions that start an agent. */
export interface Start<A, R, More = unknown> {
  (options?: Plain & More): Effect.Effect<A, never, R>
  (options: (Options & More) | undefined): Effect.Effect<A, NotStarted, R>
}

/** Starts an agent in the current scope, asking the current interactor. */
export const start: Start<Agent, AgentRuntime | Interactor.Interactor | Scope.Scope> = (options: Options = {}) =>
  // Without persistence and limits it cannot fail; the shared implementation's type cannot express that.
  Effect.flatMap(Interactor.current, (interactor) => startWith([interactor], options as Plain))

/**
 * Starts an agent in the current scope that asks these interactors; the first answer wins. The list may be empty at
 * first.
 */
export const startWith: {
  (
    interactors: ReadonlyArray<Interactor.Service>,
    options?: Plain
  ): Effect.Effect<Agent, never, AgentRuntime | Scope.Scope>
  (
    interactors: ReadonlyArray<Interactor.Service>,
    options: Options | undefined
  ): Effect.Effect<Agent, NotStarted, AgentRuntime | Scope.Scope>
} = (interactors: ReadonlyArray<Interactor.Service>, options: Options = {}) => {
  const { limits, persistence } = options
  const started = (options: Options) =>
    persistence === undefined
      ? startedWith(interactors, options)
      : Effect.zipRight(Persistence.take(persistence), startedWith(interactors, options))
  const checked =
    limits === undefined
      ? started(options)
      : Effect.flatMap(Limits.checked(limits), (limits) => started({ ...options, limits }))
  // As above.
  return checked as Effect.Effect<Agent, never, AgentRuntime | Scope.Scope>
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const startedWith = (
  interactors: ReadonlyArray<Interactor.Service>,
  options: Options
): Effect.Effect<Agent, never, AgentRuntime | Scope.Scope> =>
  // A finalizer of the outer scope closes the inner one; until it is added, no interrupt is allowed.
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const runtime = yield* AgentRuntime
      const trail = yield* AuditTrail.AuditTrail
      const ids = yield* Id.IdGenerator
      const outer = yield* Effect.scope
      const scope = yield* Scope.make(outer.strategy)
      const { persistence } = options
      const bus = yield* EventBus.make
      // This scope is never closed: the subscription ends with the bus, after the last event.
      const events = yield* Scope.extend(bus.subscribe(options.events), yield* Scope.make())
      const tree = treeOf(runtime, options, bus, trail)
      const id = persistence?.rootSessionId ?? Id.session(ids)
      const origin: Origin.Origin = { sessionId: id, rootSessionId: id, agent: options.name ?? "main", depth: 0 }
      const model = options.model ?? runtime.model
      // Before the events of its children, which exist already in a resumed session.
      yield* tree.publish(origin, {
        _tag: "AgentCreated",
        depth: origin.depth,
        model: model.id,
        ...(options.profile === undefined ? {} : { profile: options.profile })
      })
      const { broker, goOn, session } = yield* Scope.extend(
        wired({ runtime, options, tree, origin, model, scope, interactors }),
        scope
      )
      const node = { origin, session, profile: options.profile }
      tree.add(node)
      yield* Effect.onError(restore(goOn), () => Scope.close(scope, Exit.void))
      const loop = yield* DetachedFiber.fork(session.run)
      const agent = new RunningAgent({
        tree,
        session,
        broker,
        events,
        loop,
        scope,
        trail,
        steering: AgentTreeControl.make(tree, node),
        intake: new Intake(origin.agent, tree.journal, persistence?.taken),
        shutdownWithin: options.shutdownWithin ?? "10 seconds"
      })
      yield* Scope.addFinalizerExit(outer, () => agent.end)
      return agent
    })
  )

const treeOf = (
  runtime: Runtime,
  { limits, persistence }: Options,
  bus: EventBus.Service,
  trail: AuditTrail.Service
): AgentTree => {
  const permissions = new PermissionState()
  const ledger = TokenLedger.make(runtime.tokens)
  if (persistence !== undefined) Persistence.restore(persistence, permissions, ledger)
  const shared: Session.Shared = {
    policy: runtime.policy,
    permissions,
    guards: runtime.guards,
    // Without an audit trail no records are made.
    audit: trail === AuditTrail.noop ? undefined : trail,
    bus,
    redactor: runtime.redactor,
    limits: limits === undefined ? runtime.limits : { ...runtime.limits, ...limits },
    compaction: runtime.compaction,
    ledger,
    spans: runtime.spans
  }
  const journal = persistence?.journal ?? JournalWriter.noop
  return new AgentTree(runtime.subagents, shared, journal, Persistence.lastSubagent(persistence?.restored))
}

interface Making {
  readonly runtime: Runtime
  readonly options: Options
  readonly tree: AgentTree
  readonly origin: Origin.Origin
  readonly model: Model.Service
  readonly scope: Scope.Scope
  readonly interactors: ReadonlyArray<Interactor.Service>
}

/** The session and its interactor. `goOn` restores the children of another process, once the session is in the tree. */
const wired = ({ interactors, model, options, origin, runtime, scope, tree }: Making) =>
  Effect.gen(function* () {
    const { journal, shared } = tree
    const { audit, bus, permissions, redactor, spans } = shared
    const { compaction, persistence, profile, settings, whenNobody } = options
    const all = persistence?.restored
    const questions = journal.enabled ? SessionRecorder.interactions(journal, redactor, persistence?.kept) : undefined
    const broker = yield* InteractionBroker.make({
      bus,
      redactor,
      origin,
      audit,
      whenNobody,
      spans,
      journal: questions
    })
    for (const interactor of interactors) yield* broker.attach(interactor)
    const made = yield* TreeSession.make(tree, {
      origin,
      model,
      tools: options.tools === undefined ? runtime.tools : ToolRegistry.subset(runtime.tools, options.tools).tools,
      instructions: [runtime.baseInstructions, options.instructions ?? runtime.instructions],
      limits: undefined,
      compaction,
      restored: all && SessionSnapshot.get(all, origin.sessionId),
      scope,
      interactor: () => broker.interactor,
      wiring: ({ interactor, session }) => Subagents.wired({ tree, session, interactor, scope, settings }),
      opening: (instructions) => Persistence.opening(origin, model, instructions, profile, persistence?.workspace),
      unread: undefined
    })
    if (made.journal !== undefined) keep(permissions, made.journal)
    return { broker, session: made.session, goOn: all === undefined ? Effect.void : goingOn(all, bus, made) }
  })

// Outside of `wired`: closures there would retain everything that is made or restored with the session.
const keep = (permissions: PermissionState, own: SessionRecorder.SessionRecorder): void => {
  permissions.changed = () => own.permissions(permissions.snapshot())
}

const goingOn = (
  all: SessionSnapshot.TreeSnapshot,
  bus: EventBus.Service,
  { journal, wiring }: TreeSession.TreeSession
): Effect.Effect<void> =>
  Effect.suspend(() => {
    journal?.resumed()
    return Effect.zipRight(
      wiring.restore(all),
      Effect.forEach(all.sessions, Persistence.retell(bus), { discard: true })
    )
  })
