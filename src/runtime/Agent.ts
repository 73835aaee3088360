/**
 * A running root session from outside: an executor (a terminal, a server, a test) drives it.
 *
 * The type says that somebody may be asked: starting an agent needs an `Interactor`.
 *
 * @example
 * ```ts
 * import { Agent } from "assent"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.start()
 *   return yield* agent.run("clean the build")
 * })
 * //    ^? Effect<TurnEnd, NotTaken, AgentRuntime | Interactor | Scope>
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { SessionId } from "../core/Id.js"
import * as Id from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import type { Todo } from "../core/Todo.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type { McpServer } from "../mcp/McpServer.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import * as Interactor from "../interaction/Interactor.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import * as InteractionBroker from "../broker/InteractionBroker.js"
import type { Policy, PolicyInvalid } from "../permission/CompiledPolicy.js"
import type { Mode } from "../permission/PermissionState.js"
import type * as Guard from "../permission/Guard.js"
import type { Input } from "../inbox/Input.js"
import type { Message, MessageBlank } from "../inbox/Message.js"
import type { CompactionConfig } from "../conversation/CompactionConfig.js"
import type { CompactionFailed } from "../conversation/CompactionFailed.js"
import type * as History from "../conversation/History.js"
import type * as EventFeed from "../journal/EventFeed.js"
import type * as JournalEntry from "../journal/JournalEntry.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import * as Compaction from "../turn/Compaction.js"
import type { Compacted } from "../turn/Compaction.js"
import * as Limits from "../turn/Limits.js"
import type { ToolCallNotRunning } from "../turn/RunningCalls.js"
import type { TurnEnd } from "../turn/Turn.js"
import type { TypedEnd } from "../turn/TypedOutput.js"
import type * as Interjection from "../session/Interjection.js"
import type * as Session from "../session/Session.js"
import type { AgentTree, Node } from "../subagent/AgentTree.js"
import type { SubagentProfile } from "../subagent/SubagentProfile.js"
import * as LazyChildren from "../subagent/LazyChildren.js"
import * as TreeSession from "../subagent/TreeSession.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Permissions } from "./AgentPermissions.js"
import { AgentRuntime } from "./AgentRuntime.js"
import {
  MessageRouter,
  type AgentStopped,
  type InterruptOptions,
  type NotRun,
  type NotTaken,
  type RunId,
  type RunOptions,
  type SendOptions
} from "./MessageRouter.js"
import * as OwnRules from "./OwnRules.js"
import type * as Persistence from "./Persistence.js"
import * as RootTree from "./RootTree.js"
import { Halting, RunningAgent, type Parts } from "./RunningAgent.js"

export { PersistenceInUse } from "./Persistence.js"
export type { By, Permissions } from "./AgentPermissions.js"
export {
  AgentStopped,
  MessageAlreadyTaken,
  MessageDiffers,
  type InterruptOptions,
  type NotRun,
  type NotTaken,
  type RunId,
  type RunOptions,
  type SendOptions
} from "./MessageRouter.js"
export { InputRefused } from "../inbox/Input.js"
export { OutputInvalid, type TypedEnd } from "../turn/TypedOutput.js"
export { LimitsInvalid } from "../turn/Limits.js"
export { ToolsUnknown } from "../tool/ToolRegistry.js"
export { CompactionFailed } from "../conversation/CompactionFailed.js"
export { PositionAhead, ReaderLagged, type Options as ReadOptions, type ReadFailure } from "../journal/EventFeed.js"
export type { JournalFailure } from "../journal/JournalPort.js"
export { type Delivery, type Message, MessageBlank, type Part, type Source } from "../inbox/Message.js"
export type { TurnOptions } from "../session/Session.js"
export type { Compacted } from "../turn/Compaction.js"
export type { Node } from "../subagent/AgentTree.js"
export { ToolCallNotRunning } from "../turn/RunningCalls.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * A running agent, as its driver holds it. Its methods use `this`, and a spread does not copy them. To replace a member: `Object.create(agent, { events: {
 * value: events } })`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Agent {
  readonly id: SessionId
  readonly origin: Origin.Origin
  /**
   * Sends words, also with files (`Input`), to the receiver; see {@link receiver}. They begin a turn of an idle agent, and interject a working one.
   * Returns once they are filed and, with persistence, durable: they are read also when the process is killed now.
   */
  readonly send: (input: Input, options?: SendOptions) => Effect.Effect<Message, NotTaken | Interjection.AgentUnknown>
  /**
   * Lays a sentence beside what the model reads next, and begins nothing with it. Kept with the session; lost where the agent stopped.
   *
   * @internal
   */
  readonly leaveNote: (text: string) => Effect.Effect<void>
  /** Sends the same words to several agents; to none when one of them is unknown. */
  readonly broadcast: (
    input: Input,
    targets: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Message>, NotTaken | Interjection.AgentUnknown>
  /** The present receiver of words without a target. */
  readonly receiver: Effect.Effect<Interjection.Receiver>
  /** Selects the agent for words without a target, as long as it lives; `undefined`: no selection. */
  readonly select: (target: string | undefined) => Effect.Effect<void, Interjection.AgentUnknown>
  /** The selected agent, if it still lives. */
  readonly selected: Effect.Effect<Option.Option<Node>>
  /**
   * Cancels an agent's turn, or one running call alone: its processes end, and the turn continues. A call that had not
   * begun is `cancelled`. One that had begun is `interrupted`, unless it ended by itself. Waits for the end, at most
   * `Limits.stopWithin`. The agent stays usable.
   */
  readonly interrupt: (
    options?: InterruptOptions
  ) => Effect.Effect<Option.Option<TurnEnd>, Interjection.AgentUnknown | ToolCallNotRunning>
  /**
   * Withdraws the user's unread words from all inboxes, or from one agent's, oldest first. A draft can show them again.
   * Without this they begin the next turn. Words of {@link enqueue} stay.
   */
  readonly takeBack: (target?: string) => Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown>
  /** Queues words for a turn of their own, after the running one. */
  readonly enqueue: (input: Input, options?: Pick<SendOptions, "id">) => Effect.Effect<Message, NotTaken>
  /**
   * Runs words as a turn of their own, after those that were asked for before, and yields its end. The turn belongs to
   * its caller: two runs never share one. An interrupt withdraws the words, or cancels the turn when that has begun. A
   * run whose turn has not begun when the agent ends, ends as `Cancelled`, and its words are withdrawn.
   *
   * Of a stored agent an interrupt ends only the waiting: processes end by interrupts. The turn goes on, in this process
   * or in the one that resumes the session; {@link cancel} cancels it. When just the scope of a stored agent closes, its
   * runs end as interrupted. `Completed` is in the journal before the caller gets it.
   *
   * It does not wait for subagents in the
   * background: {@link awaitIdle} does. A tool that waits for a run of its own agent waits for ever. It runs in the world
   * of its caller: see {@link start}.
   */
  readonly run: {
    /**
     * With a typed result: the schema is given to the model, and what it answers is decoded. A model whose answer does
     * not fit is told so `Limits.outputRetries` times; then the turn has failed, and `invalid` says why. The schema must
     * have a JSON form; one that has none is a defect. Decoding must not wait for anything: no answer fits a schema that
     * does, and the turn fails at once and says so.
     */
    <A, I>(input: Input, options: RunOptions<A, I> & { readonly id?: undefined }): Effect.Effect<TypedEnd<A>, NotTaken>
    /**
     * With an id it may be said again: the same words under the same id wait for, or get, the end of that run, also in
     * another process over the same store, after a kill. Other words under that id fail as `MessageDiffers`. Words that
     * {@link enqueue} took under it are that run. A turn that another process began has the typed result if its caller says so
     * before the model's answer ends.
     */
    <A, I>(input: Input, options: RunOptions<A, I> & RunId): Effect.Effect<TypedEnd<A>, NotRun>
    (input: Input, options: RunId): Effect.Effect<TurnEnd, NotRun>
    (input: Input): Effect.Effect<TurnEnd, NotTaken>
  }
  /**
   * Like {@link run}, with options. An `authority` decides about its calls before the rules: see `Stage`. Not durable
   * first.
   */
  readonly turn: {
    (text: string, options?: Session.TurnOptions): Effect.Effect<TurnEnd, AgentStopped | MessageBlank>
    (input: Input, options?: Session.TurnOptions): Effect.Effect<TurnEnd, NotTaken>
  }
  /** Cancels the running turn and waits for its end; none when idle. The agent stays usable. */
  readonly cancel: (reason?: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /**
   * Waits until running tools have ended, here and in subagents. It does not wait for tools that ask a person or wait for
   * a subagent. Run it before a halt, so that allowed calls complete.
   */
  readonly awaitTools: Effect.Effect<void>
  /** Ends the running turn as `Halted`, because nobody can answer. A stored agent then accepts no more words. */
  readonly halt: (detail: string) => Effect.Effect<void>
  /** Makes the history as short as the configuration allows: at once when idle, else before the next model call. */
  readonly compact: Effect.Effect<Compacted, CompactionFailed>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and no words wait; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<TurnEnd>>
  /** All events from the start, for the executor; `Options.events` sets the policy for a slow one. One reader. */
  readonly events: EventBus.Subscription
  /**
   * What {@link events} reads; absent when the agent is not stored.
   *
   * @internal
   */
  readonly feed: EventFeed.EventFeed | undefined
  /** Events from now on, for observers; see `EventBus.Policy` for what happens when the reader is slow. */
  readonly subscribe: (policy?: EventBus.Policy) => Effect.Effect<EventBus.Subscription, never, Scope.Scope>
  /** The broker: attach further interactors, answer or withdraw open requests. */
  readonly broker: InteractionBroker.Service
  /** The permissions of the agent, which you can read and change while it runs. */
  readonly permissions: Permissions
  /** Publishes that something went wrong around the agent. It waits for a slow executor as the agent does. */
  readonly report: (message: string) => Effect.Effect<void>
  readonly history: History.History
  /** Tokens and costs of the whole tree. */
  readonly ledger: TokenLedger.Service
  /** The root and its living subagents, parents before their children. */
  readonly agents: Effect.Effect<ReadonlyArray<Node>>
  /**
   * How long its subagents wait for an answer.
   *
   * @internal
   */
  readonly subagentTimeouts: Interactor.Timeouts | undefined
  /** The todo list of the main agent or of another one; see `Planning`. `TodosChanged` announces a change. */
  readonly todos: (target?: string) => Effect.Effect<ReadonlyArray<Todo>, Interjection.AgentUnknown>
  readonly tools: ToolRegistry.Service
  readonly model: Effect.Effect<Model.Service>
  /**
   * The model from the next model call on. The journal of a stored session has its id, and `thinking` as it was chosen, for
   * a host that resumes it.
   */
  readonly setModel: (model: Model.Service, thinking?: JournalEntry.Thinking) => Effect.Effect<void>
  /**
   * Stops the agent: it takes no more words, the running turn is cancelled, everything that it started ends, and so do
   * the event streams, also unread ones. A second call waits for the same end. It takes at most
   * `Options.shutdownWithin`.
   */
  readonly shutdown: Effect.Effect<void>
  /**
   * Ends the agent gently, for a deployment: it takes no more words, begins no more tools, waits for those that run, at most
   * for this long, and ends. With persistence the results are stored, and open questions, allowed calls and the turn
   * wait for the process that resumes the session. Without persistence the turn is cancelled. If it is interrupted, it
   * waits no longer, and ends the agent.
   */
  readonly drain: (within: Duration.DurationInput) => Effect.Effect<void>
  /** Waits until the agent is shut down; yields the last turn's end. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

/**
 * Options of one agent beside its runtime's.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Instead of the runtime's instructions. */
  readonly instructions?: string | undefined
  /**
   * Names of tools or groups; all of the runtime's tools when absent. Essential tools are always there. One that the
   * runtime has not got fails as `ToolsUnknown`; with `Toolset` it does not compile.
   */
  readonly tools?: ReadonlyArray<string> | undefined
  /**
   * Instead of the runtime's policy, for the agent and its subagents. What no agent may do stays: hard rules
   * (`guards.deny`) and sanitizers of both hold, and a sanitizer that this policy does not mention is the runtime's. The
   * runtime's lists and default are replaced, its blacklist too. A resumed agent has the policy that it is started with
   * then. Unknown names fail as `ToolsUnknown`, patterns that can match no call of their tool as `PolicyInvalid`.
   */
  readonly policy?: Policy | undefined
  /**
   * How it decides about calls: see `Permissions.setMode`. A resumed agent has the mode that it had, except `allow`, unless one
   * is given here. Default: the policy's default.
   */
  readonly mode?: Mode | undefined
  /** Further guards for the agent and its subagents, after the runtime's: guards are only ever added. */
  readonly guards?: ReadonlyArray<Guard.Guard> | undefined
  /** Override the runtime's limits. Invalid ones fail as `LimitsInvalid`. */
  readonly limits?: Partial<Limits.Limits> | undefined
  /**
   * Policy of the agent's own `events` for a slow reader. Default: the last 256 are kept. With `whenFull: "wait"` the
   * agent waits for its executor.
   */
  readonly events?: EventBus.Policy | undefined
  /**
   * How long {@link Agent.shutdown} may take; work that has not stopped by then is abandoned and reported. Default: 10
   * seconds.
   */
  readonly shutdownWithin?: Duration.DurationInput | undefined
  /** Without an attached interactor: fail the request, or wait for one. Default: `fail`. */
  readonly whenNobody?: "fail" | "wait" | undefined
  /**
   * Stores the agent, so that another process can resume it, also a turn that was running when its scope closed.
   * Default: not stored.
   */
  readonly persistence?: Persistence.Persistence | undefined
  /** Agent path. Default: `main`. */
  readonly name?: string | undefined
  /** Instead of the runtime's. */
  readonly compaction?: CompactionConfig | undefined
  /** Instead of the runtime's model. */
  readonly model?: Model.Service | undefined
  /** Name of the agent's profile, for its events. */
  readonly profile?: string | undefined
  /** Its profile's settings for single tools; see `ToolSettings`. */
  readonly settings?: SubagentProfile["pluginConfigs"] | undefined
}

/**
 * Options with which starting cannot fail: no persistence, and the runtime's limits, tools and policy.
 *
 * @since 0.1.0
 * @category models
 */
export type Plain = Options & {
  readonly persistence?: undefined
  readonly limits?: undefined
  readonly tools?: undefined
  readonly policy?: undefined
}

/**
 * Why an agent was not started.
 *
 * @since 0.1.0
 * @category errors
 */
export type NotStarted = Persistence.PersistenceInUse | Limits.LimitsInvalid | ToolRegistry.ToolsUnknown | PolicyInvalid

/**
 * The agent is not stored, so that its events have no positions.
 *
 * @since 0.1.0
 * @category errors
 */
export class EventsNotStored extends Schema.TaggedError<EventsNotStored>("assent/runtime/EventsNotStored")(
  "EventsNotStored",
  { agent: Schema.String }
) {
  override get message(): string {
    return `Agent ${this.agent} is not stored, so its events have no positions. Start it with Persistence.begin; a store in memory will do.`
  }
}

/**
 * The type of functions that start an agent.
 *
 * @since 0.1.0
 * @category models
 */
export interface Start<A, R, More = unknown> {
  (options?: Plain & More): Effect.Effect<A, never, R>
  (options: (Options & More) | undefined): Effect.Effect<A, NotStarted, R>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Starts an agent in the current scope, asking the current interactor.
 *
 * Its turns run in the world around the start: its FiberRefs (loggers, clock, tracer, settings, your own), its services
 * and `Context.Reference`s, and its parent span. A turn of {@link Agent.run} and {@link Agent.turn} runs also in the world
 * around that call, and what this one has of its own counts first; a FiberRef at its initial value is not its own. Models,
 * guards and handlers see both. A handler sees what it was built with where the caller has nothing; a value of the
 * caller counts before it, as with `@effect/ai`. Whom the agent asks is always its own interactor.
 *
 * Words of `send` and `enqueue` carry no world. Runs that wait in line keep theirs apart. A subagent works in the world of
 * the call that gave it the task; a resumed session in the one around the start that resumes it. Nothing that a turn sets
 * with `FiberRef.set` is seen after it.
 *
 * The audit trail, `Spans` and `Metrics` around the start count, else those around the making of the runtime.
 *
 * @since 0.1.0
 * @category constructors
 */
export const start: Start<Agent, AgentRuntime | Interactor.Interactor | Scope.Scope> = (options: Options = {}) =>
  // Plain options cannot fail; the shared implementation's type cannot express that.
  Effect.flatMap(Interactor.current, (interactor) => startWith([interactor], options as Plain))

/**
 * Starts an agent in the current scope that asks these interactors; the first answer wins. The list may be empty at
 * first.
 *
 * @since 0.1.0
 * @category constructors
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
  const { compaction, guards, limits, persistence, policy, tools } = options
  const remembered = persistence?.restored?.permissions
  const started = (options: Options) =>
    persistence === undefined
      ? startedWith(interactors, options)
      : Effect.zipRight(persistence.ways.take(persistence), startedWith(interactors, options))
  const checked =
    limits === undefined
      ? started(options)
      : Effect.flatMap(Limits.checked(limits), (limits) => started({ ...options, limits }))
  const loaded = compaction === undefined ? checked : Effect.zipRight(Compaction.load(compaction), checked)
  const known =
    tools === undefined && policy === undefined && guards === undefined && remembered === undefined
      ? loaded
      : Effect.zipRight(
          Effect.flatMap(AgentRuntime, (runtime) => OwnRules.checked(runtime, options, remembered)),
          loaded
        )
  // As above.
  return known as Effect.Effect<Agent, never, AgentRuntime | Scope.Scope>
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The events of a stored agent behind a position, for a page that comes and goes. First those in the journal, then what
 * running answers have said so far, then all that follows, without gap or double, until the agent ends.
 *
 * An event with a `position` is stored; read on `after` it. The others are live: pieces of answers, output, statuses. A
 * position also stands for the live pieces before it. `ModelCallStarted` begins an answer anew: what its session's unended
 * call had said before is void. So is what a `ModelRetried` follows.
 *
 * Each reader has a queue of its own. The agent waits for none: one that is too slow fails as `ReaderLagged`, with the
 * position to go on from.
 *
 * @since 0.1.0
 * @category combinators
 */
export const events = (
  self: Agent,
  options: EventFeed.Options = {}
): Stream.Stream<AgentEvent, EventFeed.ReadFailure | EventsNotStored> =>
  self.feed?.read(options) ?? Stream.fail(new EventsNotStored({ agent: self.origin.agent }))

/**
 * The position of the last event that is stored: the end of what {@link events} replays.
 *
 * @since 0.1.0
 * @category getters
 */
export const position = (self: Agent): Effect.Effect<number, EventsNotStored> =>
  Effect.suspend(() =>
    self.feed === undefined ? new EventsNotStored({ agent: self.origin.agent }) : Effect.succeed(self.feed.position)
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const startedWith = (
  interactors: ReadonlyArray<Interactor.Service>,
  options: Options
): Effect.Effect<Agent, never, AgentRuntime | Scope.Scope> =>
  // A finalizer of the outer scope ends the agent; until it is added, no interrupt is allowed.
  Effect.uninterruptibleMask((restore) =>
    Effect.contextWithEffect((context: Context.Context<AgentRuntime | Scope.Scope>) => {
      const outer = Context.get(context, Scope.Scope)
      return Effect.flatMap(Scope.make(outer.strategy), (scope) =>
        FiberRef.getWith(DefaultServices.currentServices, (services) => {
          const ids = Context.get(context, Id.IdGenerator)
          const clock = Context.get(services, Clock.Clock)
          const { resumption, parts } = made(context, interactors, options, { ids, clock, scope, services })
          const begun = Effect.flatMap(DetachedFiber.here, (place) => {
            parts.root.session.start(place)
            const ended = endedWith(outer, new RunningAgent(parts))
            const { servers } = Context.get(context, AgentRuntime)
            return servers.length === 0 ? ended : Effect.zipRight(join(servers, parts, clock), ended)
          })
          if (resumption === undefined) return begun
          const { servers } = Context.get(context, AgentRuntime)
          const restored = servers.length === 0 ? resumption : Effect.zipRight(present(servers, options), resumption)
          const undone = () => Effect.zipRight(Scope.close(scope, Exit.void), parts.broker.close)
          return Effect.zipRight(Effect.onError(restore(restored), undone), begun)
        })
      )
    })
  )

/** How long a resumed session waits for a server that has to go on with a call. */
const patience = "30 seconds"

/** Waits for the servers of calls that the session was about when it was left. */
const present = (servers: ReadonlyArray<McpServer>, { persistence }: Options): Effect.Effect<void> => {
  const calls = (persistence?.restored?.sessions ?? []).flatMap(({ batch }) => batch?.calls ?? [])
  const open = calls.filter(({ ended }) => ended === undefined)
  const wanted = servers.filter((server) => open.some(({ call }) => server.gone(call.name) !== undefined))
  return Effect.forEach(wanted, ({ settled }) => Effect.timeoutOption(settled, patience), {
    concurrency: "unbounded",
    discard: true
  })
}

/** Tool servers reach the people of this tree until it ends, and their states are events of the root. */
const join = (
  servers: ReadonlyArray<McpServer>,
  { broker, root, scope, tree }: Parts,
  clock: Clock.Clock
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { origin } = root
    const leave = servers.flatMap((server) => {
      const publish = (state: ToolRegistry.ServerState) =>
        void EventPublisher.publish(tree.shared.bus, clock, origin, { _tag: "McpServerChanged", ...state })
      publish(server.state())
      return [
        server.watch(publish),
        server.join({
          rootSessionId: origin.rootSessionId,
          interactor: broker.interactor,
          attach: (...given) =>
            Effect.flatMap(
              Effect.promise(() => import("../subagent/ResultFiles.js")),
              ({ attach }) => attach(tree, ...given)
            )
        })
      ]
    })
    return Scope.addFinalizer(
      scope,
      Effect.sync(() => leave.forEach((end) => end()))
    )
  })

// Outside of `startedWith`: a closure there would retain everything that the agent is made of.
const endedWith = (outer: Scope.Scope, agent: RunningAgent): Effect.Effect<Agent> =>
  Effect.as(
    Scope.addFinalizerExit(outer, () => agent.end),
    agent
  )

/**
 * Everything of an agent but its loop, and what restores its children from another process. Synchronous: of the 104 µs
 * that a start with a shutdown took, two thirds were the effects of making and closing these parts.
 */
const made = (
  context: Context.Context<AgentRuntime>,
  interactors: ReadonlyArray<Interactor.Service>,
  options: Options,
  surroundings: Session.Surroundings & {
    readonly scope: Scope.CloseableScope
    readonly services: Context.Context<DefaultServices.DefaultServices>
  }
): { readonly parts: Parts; readonly resumption: Effect.Effect<void> | undefined } => {
  const runtime = Context.get(context, AgentRuntime)
  const { clock, ids, scope, services } = surroundings
  const { persistence, profile, settings } = options
  const id = persistence?.rootSessionId ?? Id.session(ids)
  const origin: Origin.Origin = { sessionId: id, rootSessionId: id, agent: options.name ?? "main", depth: 0 }
  const model = options.model ?? runtime.model
  const { bus: owned, events } = EventBus.owned(options.events)
  const around = RootTree.receiversAround(context, services, owned)
  const receivers =
    persistence === undefined ? around : { ...around, bus: persistence.ways.feeding(persistence, around.bus) }
  const { bus, trail } = receivers
  const tree = RootTree.make(runtime, options, receivers)
  const { shared } = tree
  // Before the events of its children, which exist already in a resumed session.
  EventPublisher.publish(bus, clock, origin, {
    _tag: "AgentCreated",
    depth: origin.depth,
    model: model.id,
    ...(profile === undefined ? {} : { profile })
  })
  const { permissions, policy } = shared
  const lost = RootTree.lostMode(options)
  if (permissions.isChosen || lost !== undefined)
    EventPublisher.publish(bus, clock, origin, permissions.told(policy, id, lost))
  const halting = new Halting()
  const broker = brokerOf(tree, origin, options, scope, interactors, halting)
  const own: TreeSession.Own = {
    origin,
    model,
    tools: OwnRules.toolsOf(runtime, options),
    instructions: [runtime.baseInstructions, options.instructions ?? runtime.instructions],
    limits: undefined,
    compaction: options.compaction,
    restored: persistence?.restored && persistence.ways.stateOf(persistence.restored, id),
    interactor: broker.interactor,
    wiring: ({ interactor, session }) => LazyChildren.make({ tree, session, interactor, scope, settings }),
    opening: persistence?.ways.opening(persistence, { origin, model, profile }),
    unread: undefined
  }
  const member = TreeSession.make(tree, own, surroundings)
  const { session } = member
  if (member.journal !== undefined) RootTree.keep(shared.permissions, member.journal, options)
  const root = { origin, session, profile }
  tree.add(root)
  const parts: Parts = {
    tree,
    root,
    broker,
    events,
    scope,
    trail,
    router: new MessageRouter(tree, root, persistence?.taken),
    feed: persistence?.feed,
    halting,
    shutdownWithin: options.shutdownWithin ?? "10 seconds"
  }
  halting.parts = parts
  return {
    parts,
    resumption:
      persistence?.restored === undefined || persistence.isNew
        ? undefined
        : resumptionOf(persistence.ways, persistence.restored, bus, member)
  }
}

const brokerOf = (
  { journal, shared: { audit, bus, redactor, spans } }: AgentTree,
  origin: Origin.Origin,
  { persistence, whenNobody }: Options,
  scope: Scope.Scope,
  interactors: ReadonlyArray<Interactor.Service>,
  halting: Halting
): InteractionBroker.Owned => {
  const questions =
    persistence !== undefined && journal.enabled
      ? persistence.ways.interactions(journal, redactor, persistence.kept, persistence.votes, persistence.settledBy)
      : undefined
  return InteractionBroker.owned(
    { bus, redactor, origin, audit, whenNobody, spans, journal: questions, halting },
    scope,
    interactors
  )
}

const resumptionOf = (
  ways: Persistence.Ways,
  all: SessionSnapshot.TreeSnapshot,
  bus: EventBus.Service,
  { journal, wiring }: TreeSession.TreeSession
): Effect.Effect<void> =>
  Effect.suspend(() => {
    journal?.resumed()
    return Effect.zipRight(wiring.restore(all), Effect.forEach(all.sessions, ways.retell(bus), { discard: true }))
  })
