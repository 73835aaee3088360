/**
 * A running root session seen from outside: what an executor (a terminal, a server, a test) drives.
 *
 * ```ts
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.start()
 *   return yield* agent.run("clean the build")
 * })
 * //    ^? Effect<TurnEnd, NotTaken, AgentRuntime | Interactor | Scope>
 * ```
 *
 * Whoever may be asked is in the type: starting an agent needs an `Interactor`.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { IdGenerator, type SessionId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import * as AgentEvent from "../event/AgentEvent.js"
import * as AuditTrail from "../event/AuditTrail.js"
import * as EventBus from "../event/EventBus.js"
import type { Message } from "../inbox/Message.js"
import * as InteractionBroker from "../interaction/InteractionBroker.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import * as TokenLedger from "../model/TokenLedger.js"
import * as PermissionCommand from "../permission/PermissionCommand.js"
import { PermissionState } from "../permission/PermissionState.js"
import type { CompactionConfig } from "../session/CompactionConfig.js"
import type * as History from "../session/History.js"
import * as Journal from "../session/Journal.js"
import * as Restored from "../session/Restored.js"
import * as SessionJournal from "../session/SessionJournal.js"
import type * as Interjection from "../session/Interjection.js"
import * as Session from "../session/Session.js"
import type { Limits } from "../session/SessionContext.js"
import { Cancelled, is, neverBegun, type TurnEnd } from "../session/Turn.js"
import type * as AgentTree from "../subagent/AgentTree.js"
import type * as Subagent from "../subagent/Subagent.js"
import * as Steering from "../subagent/Steering.js"
import type { SubagentProfile } from "../subagent/SubagentProfile.js"
import * as SubagentOrder from "../subagent/SubagentOrder.js"
import * as Subagents from "../subagent/Subagents.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import { AgentRuntime } from "./AgentRuntime.js"
import { Intake, type AgentStopped, type NotTaken } from "./Intake.js"
import * as Persistence from "./Persistence.js"

export { AgentStopped, MessageAlreadyTaken } from "./Intake.js"
export type { NotTaken } from "./Intake.js"

export interface Agent {
  readonly id: SessionId
  readonly origin: Origin.Origin
  /**
   * Hands in words for whoever hears them; see {@link receiver}. A turn for an idle agent, an interjection for one that
   * works. Returns once they are filed and, where the agent is kept, written down: they are heard also when the process is
   * killed now.
   */
  readonly send: (text: string, options?: SendOptions) => Effect.Effect<Message, NotTaken | Interjection.AgentUnknown>
  /** Hands the same words to several agents; to nobody when one of them is unknown. */
  readonly broadcast: (
    text: string,
    targets: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Message>, NotTaken | Interjection.AgentUnknown>
  /** Who would hear words that name nobody, right now. */
  readonly receiver: Effect.Effect<Interjection.Receiver>
  /** From now on words that name nobody go to this agent, as long as it is there; `undefined`: as if none was selected. */
  readonly select: (target: string | undefined) => Effect.Effect<void, Interjection.AgentUnknown>
  /** Who is selected and still there. */
  readonly selected: Effect.Effect<Option.Option<AgentTree.Node>>
  /**
   * Cancels an agent's turn, or one running call alone: its processes end, its result is `cancelled`, and the turn goes on.
   * Waits for the end; how long that may take is `Limits.stopWithin`. The agent stays usable.
   */
  readonly interrupt: Steering.Service["interrupt"]
  /**
   * Takes the user's words that no turn has read yet out of all inboxes, or one agent's, oldest first: to hand them back as
   * a draft. Without this, what a cancelled turn has not read begins the next one. Words of {@link enqueue} stay.
   */
  readonly takeBack: Steering.Service["takeBack"]
  /** Hands in words for a turn of their own, after the running one. */
  readonly enqueue: (text: string, options?: Pick<SendOptions, "id">) => Effect.Effect<Message, NotTaken>
  /** Sends words, waits until the agent is idle, and yields how its last turn ended. */
  readonly run: (text: string) => Effect.Effect<TurnEnd, NotTaken>
  /**
   * Hands in words for a turn of their own and waits for its end. With an `authority`, that is asked about this turn's
   * calls before the rules: see `Stage`. Interrupting it withdraws the words, or cancels the turn when that has begun.
   */
  readonly turn: (text: string, options?: Session.TurnOptions) => Effect.Effect<TurnEnd, AgentStopped>
  /** Cancels the running turn and waits for its end; nothing when idle. The agent stays usable. */
  readonly cancel: (reason?: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /** Ends the running turn as halted: nobody is there who could answer. One that is kept takes nothing more. */
  readonly halt: (detail: string) => Effect.Effect<void>
  /** Makes the history as short as the configuration allows: at once when idle, else before the next model call. */
  readonly compact: Session.Service["compact"]
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and nothing waits; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<TurnEnd>>
  /** All events from the start, for the executor; how slow it may read is `Options.events`. One reader. */
  readonly events: EventBus.Subscription
  /** Events from now on, for observers; see `EventBus.Policy` for what happens when the reader is slow. */
  readonly subscribe: (policy?: EventBus.Policy) => Effect.Effect<EventBus.Subscription, never, Scope.Scope>
  /** Who answers: attach more interactors, answer or withdraw open requests. */
  readonly broker: InteractionBroker.Service
  /** Runs a `permissions` command line, such as `allow git *`. What it changes is kept once this returns. */
  readonly permissions: (line: string) => Effect.Effect<Either.Either<PermissionCommand.Outcome, string>>
  /** Tells whoever listens that something went wrong around the agent. */
  readonly report: (message: string) => Effect.Effect<void>
  readonly history: History.History
  /** Tokens and costs of the whole tree. */
  readonly ledger: TokenLedger.Service
  /** The root and its subagents that are alive, parents before their children. */
  readonly agents: Effect.Effect<ReadonlyArray<AgentTree.Node>>
  readonly tools: ToolRegistry.Service
  readonly model: Effect.Effect<Model.Service>
  /** The model from the next model call on. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
  /**
   * Stops: nothing more is taken, the running turn is cancelled, everything the agent started ends, the event streams
   * end, also when nobody reads them. Doing it again waits for the same end. Takes no longer than `Options.shutdownWithin`.
   */
  readonly shutdown: Effect.Effect<void>
  /** Waits until the agent is shut down; yields the last turn's end. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

export interface SendOptions {
  /** One agent: its path, its session's id or its subagent id. */
  readonly target?: string | undefined
  /**
   * Becomes the message's id. Of all words that are handed in under one id the first are taken, also by a process that goes
   * on with the session; the others fail as `MessageAlreadyTaken`.
   */
  readonly id?: string | undefined
}

export interface Options {
  /** Instead of the runtime's instructions. */
  readonly instructions?: string | undefined
  /** Names of tools or groups; all of the runtime's tools when absent. Essential tools are always there. */
  readonly tools?: ReadonlyArray<string> | undefined
  readonly limits?: Partial<Limits> | undefined
  /**
   * What happens to the agent's own `events` when nobody reads them fast enough. Default: the last 256 are kept. With
   * `whenFull: "wait"` the agent waits for its executor.
   */
  readonly events?: EventBus.Policy | undefined
  /** How long {@link Agent.shutdown} may take; what has not stopped by then is left behind and told. Default: 10 seconds. */
  readonly shutdownWithin?: Duration.DurationInput | undefined
  /** With no interactor attached any more: fail the request, or wait for the next. Default: `fail`. */
  readonly whenNobody?: "fail" | "wait" | undefined
  /** Where it is kept, so that others go on with it, also with a turn that its scope was closed in. Default: nowhere. */
  readonly persistence?: Persistence.Persistence | undefined
  /** Agent path. Default: `main`. */
  readonly name?: string | undefined
  /** Instead of the runtime's. */
  readonly compaction?: CompactionConfig | undefined
  /** Instead of the runtime's model. */
  readonly model?: Model.Service | undefined
  /** Name of the profile the agent was made by, for its events. */
  readonly profile?: string | undefined
  /** What its profile sets for single tools; see `ToolSettings`. */
  readonly settings?: SubagentProfile["pluginConfigs"] | undefined
}

/** Starts an agent in the current scope, asking the current interactor. */
export const start = (
  options: Options = {}
): Effect.Effect<Agent, never, AgentRuntime | Interactor.Interactor | Scope.Scope> =>
  Effect.flatMap(Interactor.current, (interactor) => startWith([interactor], options))

/** Starts an agent in the current scope that asks these interactors; the first answer wins. None may be attached yet. */
export const startWith = (
  interactors: ReadonlyArray<Interactor.Service>,
  options: Options = {}
): Effect.Effect<Agent, never, AgentRuntime | Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* AgentRuntime
    const trail = yield* AuditTrail.AuditTrail
    // Nothing is spent on records that nobody keeps.
    const audit = trail === AuditTrail.noop ? undefined : trail
    const ids = yield* IdGenerator
    const outer = yield* Effect.scope
    const scope = yield* Scope.fork(outer, outer.strategy)
    const { persistence } = options
    const journal = persistence?.journal ?? Journal.noop
    const id = persistence?.rootSessionId ?? (ids.unsafeNext("ses") as SessionId)
    const tree0 = persistence?.restored
    const restored = tree0 && Restored.get(tree0, id)
    const origin: Origin.Origin = { sessionId: id, rootSessionId: id, agent: options.name ?? "main", depth: 0 }
    const bus = yield* EventBus.make
    // Its scope is never closed: it ends with the bus, after the last event.
    const events = yield* Scope.extend(bus.subscribe(options.events), yield* Scope.make())
    const permissions = new PermissionState()
    const { redactor, policy } = runtime
    const ledger = TokenLedger.make(runtime.tokens)
    if (persistence !== undefined) Persistence.restore(persistence, permissions, ledger)
    let subagents = Persistence.lastSubagent(tree0)
    const tree: AgentTree.AgentTree = {
      ...runtime.subagents,
      shared: {
        policy,
        permissions,
        guards: runtime.guards,
        audit,
        bus,
        redactor,
        limits: { ...runtime.limits, ...options.limits },
        compaction: runtime.compaction,
        ledger,
        spans: runtime.spans
      },
      tools: runtime.tools,
      instructions: runtime.baseInstructions,
      journal,
      nodes: new Map(),
      making: 0,
      nextSubagentId: () => `subagent_${++subagents}`
    }
    const tools = options.tools === undefined ? runtime.tools : ToolRegistry.subset(runtime.tools, options.tools).tools

    const publish = (body: AgentEvent.Body) =>
      Effect.map(Effect.clock, (clock) => {
        const stamp = { at: clock.unsafeCurrentTimeMillis(), sessionId: id, agent: origin.agent }
        return bus.unsafePublish(AgentEvent.make(stamp, body))
      })

    // Before its children, which are there already when it goes on with a session.
    yield* publish({
      _tag: "AgentCreated",
      depth: origin.depth,
      model: (options.model ?? runtime.model).id,
      ...(options.profile === undefined ? {} : { profile: options.profile })
    })

    const { broker, node, session } = yield* Effect.gen(function* () {
      const { spans } = runtime
      const questions = journal.enabled ? SessionJournal.interactions(journal, persistence?.kept) : undefined
      const broker = yield* InteractionBroker.make({
        bus,
        redactor,
        origin,
        audit,
        whenNobody: options.whenNobody,
        spans,
        journal: questions
      })
      for (const interactor of interactors) yield* broker.attach(interactor)
      const { interactor } = broker
      let wiring: Subagent.Wiring | undefined
      const wire = (session: Session.Service) =>
        (wiring ??= Subagents.wired({ tree, session, interactor, scope }, options.settings))
      const model = options.model ?? runtime.model
      const instructions = [runtime.baseInstructions, options.instructions ?? runtime.instructions]
        .filter((text) => text !== "")
        .join("\n\n")
      const own = journal.enabled
        ? new SessionJournal.SessionJournal(
            journal,
            redactor,
            restored === undefined ? Persistence.opening(origin, model, instructions, options.profile) : undefined
          )
        : undefined
      if (own !== undefined) permissions.changed = () => own.permissions(permissions.snapshot())
      const session: Session.Service = yield* Session.make({
        ...tree.shared,
        origin,
        model,
        tools,
        instructions,
        journal: own,
        restored,
        compaction: options.compaction ?? runtime.compaction,
        interactor,
        insteadOfAsking: SubagentOrder.aboutOrders(() => wire(session).insteadOfAsking),
        ambient: (own) => wire(own).ambient
      })
      const node: AgentTree.Node = { origin, session, profile: options.profile }
      tree.nodes.set(id, node)
      if (tree0 !== undefined) {
        own?.resumed()
        yield* wire(session).restore(tree0)
      }
      return { broker, session, node }
    }).pipe(Scope.extend(scope))

    if (tree0 !== undefined) yield* Effect.forEach(tree0.sessions, Persistence.retell(bus), { discard: true })
    const loop = yield* Effect.forkIn(session.run, scope)
    const done = yield* Deferred.make<Option.Option<TurnEnd>>()
    const { shutdownWithin: within = "10 seconds" } = options
    const intake = new Intake(origin.agent, journal, persistence?.taken)
    const steering = Steering.make(tree, node)
    const { interrupt, receiver, select, selected, takeBack } = steering

    const close = Effect.gen(function* () {
      yield* session.cancel("shutdown")
      yield* Fiber.interrupt(loop)
      yield* Scope.close(scope, Exit.void)
    })
    const stop = Effect.gen(function* () {
      intake.close()
      // In a fiber of its own: what does not let itself be interrupted is left behind, and the end is told all the same.
      const closing = yield* Effect.forkDaemon(close)
      const closed = yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(closing)), within)
      if (Option.isNone(closed))
        yield* publish({ _tag: "AgentError", message: Steering.leftBehind(tree, origin.agent, within) })
      const last = Option.isSome(closed) ? yield* session.awaitIdle : Option.some(neverBegun)
      yield* publish({
        _tag: "AgentCompleted",
        success: Option.exists(last, is("Completed")),
        turnsUsed: session.turns()
      })
      yield* bus.close
      yield* trail.release(id)
      yield* Deferred.succeed(done, last)
      yield* Option.getOrElse(closed, () => Exit.void)
    })
    const shutdown = Effect.uninterruptible(
      Effect.suspend(() => (intake.isClosed ? Effect.asVoid(Deferred.await(done)) : stop))
    )
    yield* Scope.addFinalizer(outer, Effect.zipRight(Effect.ignore(journal.freeze), shutdown))

    return {
      id,
      origin,
      send: (text, { id, target } = {}) => intake.take((id) => steering.send(text, { id, target }), id),
      broadcast: (text, targets) => intake.take(() => steering.broadcast(text, targets)),
      receiver,
      select,
      selected,
      interrupt,
      takeBack,
      enqueue: (text, { id } = {}) => intake.take((id) => session.enqueue(text, id), id),
      turn: (text, options) => intake.admit(session.turn(text, options)),
      run: (text) =>
        Effect.map(
          Effect.zipRight(
            intake.take(() => session.send(text)),
            session.awaitIdle
          ),
          Option.getOrElse(() => Cancelled({ reason: "shutdown", steps: 0 }))
        ),
      cancel: (reason = "user") => session.cancel(reason),
      // What is kept is gone on with as it stands, its question open and what is queued still queued.
      halt: (detail) =>
        journal.enabled
          ? Effect.all([Effect.ignore(journal.freeze), session.halt(detail), Fiber.interrupt(loop)], { discard: true })
          : session.halt(detail),
      compact: session.compact,
      isIdle: session.isIdle,
      awaitIdle: session.awaitIdle,
      events,
      subscribe: bus.subscribe,
      broker,
      permissions: (line) =>
        Effect.suspend(() => {
          const said = PermissionCommand.run(line, { state: permissions, policy, tools, sessionId: id })
          const outcome = Either.mapBoth(said, {
            onLeft: redactor.text,
            onRight: ({ changed, lines }) => ({ changed, lines: lines.map(redactor.text) })
          })
          if (Either.isLeft(outcome) || !outcome.right.changed) return Effect.succeed(outcome)
          const status = permissions.status(policy, id)
          const told = publish({
            _tag: "PermissionStatusChanged",
            default: status.default,
            ...(status.suspension === undefined ? {} : { suspension: status.suspension })
          })
          // A process that goes on must not forget what somebody was told here.
          const kept = Effect.match(journal.flush, {
            onFailure: ({ message }) => Either.left(`It counts until this process ends, but is not kept: ${message}`),
            onSuccess: () => outcome
          })
          return Effect.zipRight(told, kept)
        }),
      report: (message) => Effect.asVoid(publish({ _tag: "AgentError", message: redactor.text(message) })),
      history: session.history,
      ledger,
      agents: Effect.sync(() => [...tree.nodes.values()]),
      tools,
      model: session.model,
      setModel: (next) => session.setModel(next),
      shutdown,
      done: Deferred.await(done)
    } satisfies Agent
  })
