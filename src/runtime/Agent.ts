/**
 * A running root session seen from outside: what an executor (a terminal, a server, a test) drives.
 *
 * ```ts
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.start()
 *   return yield* agent.run("clean the build")
 * })
 * //    ^? Effect<TurnEnd, AgentStopped, AgentRuntime | Interactor | Scope>
 * ```
 *
 * Whoever may be asked is in the type: starting an agent needs an `Interactor`.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { IdGenerator, type SessionId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import type * as AgentEvent from "../event/AgentEvent.js"
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
import * as Interjection from "../session/Interjection.js"
import * as Session from "../session/Session.js"
import type { Limits } from "../session/SessionContext.js"
import { Cancelled, is, type TurnEnd } from "../session/Turn.js"
import type * as AgentTree from "../subagent/AgentTree.js"
import type * as Subagent from "../subagent/Subagent.js"
import type { SubagentProfile } from "../subagent/SubagentProfile.js"
import * as Subagents from "../subagent/Subagents.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import { AgentRuntime } from "./AgentRuntime.js"

/** The agent was shut down and takes nothing more. */
export class AgentStopped extends Schema.TaggedError<AgentStopped>("assent/runtime/AgentStopped")("AgentStopped", {
  agent: Schema.String
}) {
  override get message(): string {
    return `Agent ${this.agent} was shut down; start another one.`
  }
}

export interface Agent {
  readonly id: SessionId
  readonly origin: Origin.Origin
  /**
   * Hands in words for whoever hears them; see {@link receiver}. A turn for an idle agent, an interjection for one that
   * works. Returns once they are filed. A `target` is an agent's path, its session's id or its subagent id.
   */
  readonly send: (
    text: string,
    options?: SendOptions
  ) => Effect.Effect<Message, AgentStopped | Interjection.AgentUnknown>
  /** Hands the same words to several agents; to nobody when one of them is unknown. */
  readonly broadcast: (
    text: string,
    targets: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Message>, AgentStopped | Interjection.AgentUnknown>
  /** Who would hear words that name nobody, right now. */
  readonly receiver: Effect.Effect<Interjection.Receiver>
  /** From now on words that name nobody go to this agent, as long as it is there; `undefined`: as if none was selected. */
  readonly select: (target: string | undefined) => Effect.Effect<void, Interjection.AgentUnknown>
  /** Who is selected and still there. */
  readonly selected: Effect.Effect<Option.Option<AgentTree.Node>>
  /** Hands in words for a turn of their own, after the running one. */
  readonly enqueue: (text: string) => Effect.Effect<Message, AgentStopped>
  /** Sends words, waits until the agent is idle, and yields how its last turn ended. */
  readonly run: (text: string) => Effect.Effect<TurnEnd, AgentStopped>
  /**
   * Hands in words for a turn of their own and waits for its end. With an `authority`, that is asked about this turn's
   * calls before the rules: see `Stage`. Interrupting it withdraws the words, or cancels the turn when that has begun.
   */
  readonly turn: (text: string, options?: Session.TurnOptions) => Effect.Effect<TurnEnd, AgentStopped>
  /** Cancels the running turn and waits for its end; nothing when idle. The agent stays usable. */
  readonly cancel: (reason?: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /** Ends the running turn as halted: nobody is there who could answer. */
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
  /** Runs a `permissions` command line, such as `allow git *`. */
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
   * end. Doing it again waits for the same end.
   */
  readonly shutdown: Effect.Effect<void>
  /** Waits until the agent is shut down; yields the last turn's end. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

export interface SendOptions {
  /** Names one agent; see {@link Agent.send}. */
  readonly target?: string | undefined
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
  /** With no interactor attached any more: fail the request, or wait for the next. Default: `fail`. */
  readonly whenNobody?: "fail" | "wait" | undefined
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
    const id = ids.unsafeNext("ses") as SessionId
    const origin: Origin.Origin = { sessionId: id, rootSessionId: id, agent: options.name ?? "main", depth: 0 }
    const bus = yield* EventBus.make
    // Its scope is never closed: it ends with the bus, after the last event.
    const events = yield* Scope.extend(bus.subscribe(options.events), yield* Scope.make())
    const permissions = new PermissionState()
    const { redactor, policy } = runtime
    const ledger = TokenLedger.make(runtime.tokens)
    let subagents = 0
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
      nodes: new Map(),
      making: 0,
      nextSubagentId: () => `subagent_${++subagents}`
    }
    const tools = options.tools === undefined ? runtime.tools : ToolRegistry.subset(runtime.tools, options.tools).tools

    const { broker, node, session } = yield* Effect.gen(function* () {
      const { spans } = runtime
      const { whenNobody } = options
      const broker = yield* InteractionBroker.make({ bus, redactor, origin, audit, whenNobody, spans })
      for (const interactor of interactors) yield* broker.attach(interactor)
      const { interactor } = broker
      let wiring: Subagent.Wiring | undefined
      const wire = (session: Session.Service) =>
        (wiring ??= Subagents.wired({ tree, session, interactor, scope }, options.settings))
      const session: Session.Service = yield* Session.make({
        ...tree.shared,
        origin,
        model: options.model ?? runtime.model,
        tools,
        instructions: [runtime.baseInstructions, options.instructions ?? runtime.instructions]
          .filter((text) => text !== "")
          .join("\n\n"),
        compaction: options.compaction ?? runtime.compaction,
        interactor,
        insteadOfAsking: (proposal, gate) => wire(session).insteadOfAsking(proposal, gate),
        ambient: (own) => wire(own).ambient
      })
      const node: AgentTree.Node = { origin, session, profile: options.profile }
      tree.nodes.set(id, node)
      return { broker, session, node }
    }).pipe(Scope.extend(scope))

    const stamp = Effect.map(Effect.clock, (clock) => ({
      at: clock.unsafeCurrentTimeMillis(),
      sessionId: id,
      agent: origin.agent
    }))
    const publish = (body: AgentEvent.Body) => Effect.map(stamp, (stamp) => bus.unsafePublish({ ...body, ...stamp }))

    yield* publish({
      _tag: "AgentCreated",
      depth: origin.depth,
      model: (options.model ?? runtime.model).id,
      ...(options.profile === undefined ? {} : { profile: options.profile })
    })
    const loop = yield* Effect.forkIn(session.run, scope)
    const done = yield* Deferred.make<Option.Option<TurnEnd>>()
    let stopped = false
    const admitted = <A, E = never>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | AgentStopped> =>
      Effect.suspend((): Effect.Effect<A, E | AgentStopped> =>
        stopped ? new AgentStopped({ agent: origin.agent }) : effect
      )

    const alive = () => [...tree.nodes.values()]
    const find = (target: string) => Effect.suspend(() => Interjection.find(tree.nodes.values(), target))
    let selected: SessionId | undefined
    const selectedNode = () => (selected === undefined ? undefined : tree.nodes.get(selected))
    const scene = (target?: AgentTree.Node): Interjection.Scene => ({
      root: node,
      agents: alive(),
      target,
      selected: selectedNode()
    })
    const deliver = (text: string, target?: AgentTree.Node) =>
      Effect.suspend(() => Interjection.deliver(scene(target), text))

    const stop = Effect.gen(function* () {
      stopped = true
      yield* session.cancel("shutdown")
      yield* Fiber.interrupt(loop)
      yield* Effect.ensuring(Scope.close(scope, Exit.void), ended)
    })
    const ended = Effect.gen(function* () {
      const last = yield* session.awaitIdle
      yield* publish({ _tag: "AgentCompleted", success: Option.exists(last, isCompleted), turnsUsed: session.turns() })
      yield* bus.close
      yield* trail.release(id)
      yield* Deferred.succeed(done, last)
    })
    const shutdown = Effect.uninterruptible(
      Effect.suspend(() => (stopped ? Effect.asVoid(Deferred.await(done)) : stop))
    )
    yield* Scope.addFinalizer(outer, shutdown)

    return {
      id,
      origin,
      send: (text, { target } = {}) =>
        admitted(target === undefined ? deliver(text) : Effect.flatMap(find(target), (found) => deliver(text, found))),
      broadcast: (text, targets) =>
        admitted(
          Effect.flatMap(Effect.forEach(targets, find), (found) =>
            Effect.forEach(new Set(found), (target) => deliver(text, target))
          )
        ),
      receiver: Effect.sync(() => Interjection.receiver(scene())),
      select: (target) =>
        Effect.map(target === undefined ? Effect.succeed(undefined) : find(target), (found) => {
          selected = found?.origin.sessionId
        }),
      selected: Effect.sync(() => Option.fromNullable(selectedNode())),
      enqueue: (text) => admitted(session.enqueue(text)),
      turn: (text, options) => admitted(session.turn(text, options)),
      run: (text) =>
        Effect.map(
          Effect.zipRight(admitted(session.send(text)), session.awaitIdle),
          Option.getOrElse(() => Cancelled({ reason: "shutdown", steps: 0 }))
        ),
      cancel: (reason = "user") => session.cancel(reason),
      halt: session.halt,
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
          return Effect.as(
            publish({
              _tag: "PermissionStatusChanged",
              default: status.default,
              ...(status.suspension === undefined ? {} : { suspension: status.suspension })
            }),
            outcome
          )
        }),
      report: (message) => Effect.asVoid(publish({ _tag: "AgentError", message: redactor.text(message) })),
      history: session.history,
      ledger,
      agents: Effect.sync(alive),
      tools,
      model: session.model,
      setModel: session.setModel,
      shutdown,
      done: Deferred.await(done)
    } satisfies Agent
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isCompleted = is("Completed")
