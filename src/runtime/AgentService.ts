/** The interface of an agent for its driver, and the options of its start. */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { SessionId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import type * as EventBus from "../event/EventBus.js"
import type { Message, MessageBlank } from "../inbox/Message.js"
import type * as InteractionBroker from "../broker/InteractionBroker.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type * as PermissionCommand from "../permission/PermissionCommand.js"
import type { CompactionConfig } from "../conversation/CompactionConfig.js"
import type { CompactionFailed } from "../conversation/CompactionStrategy.js"
import type * as History from "../conversation/History.js"
import type * as Interjection from "../session/Interjection.js"
import type * as Session from "../session/Session.js"
import type { Compacted } from "../turn/Compaction.js"
import type { Limits } from "../turn/Limits.js"
import type { TurnEnd } from "../turn/Turn.js"
import type * as AgentTree from "../subagent/AgentTree.js"
import type { InterruptOptions } from "../subagent/AgentTreeControl.js"
import type { ToolCallNotRunning } from "../turn/RunningCalls.js"
import type { SubagentProfile } from "../subagent/SubagentProfile.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { AgentStopped, NotTaken } from "./Intake.js"
import type * as Persistence from "./Persistence.js"

/**
 * Its methods use `this`, and a spread does not copy them. To replace a member: `Object.create(agent, { events: {
 * value: events } })`.
 */
export interface Agent {
  readonly id: SessionId
  readonly origin: Origin.Origin
  /**
   * Sends words to the receiver; see {@link receiver}. They begin a turn of an idle agent, and interject a working one.
   * Returns once they are filed and, with persistence, durable: they are read also when the process is killed now.
   */
  readonly send: (text: string, options?: SendOptions) => Effect.Effect<Message, NotTaken | Interjection.AgentUnknown>
  /** Sends the same words to several agents; to none when one of them is unknown. */
  readonly broadcast: (
    text: string,
    targets: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Message>, NotTaken | Interjection.AgentUnknown>
  /** The present receiver of words without a target. */
  readonly receiver: Effect.Effect<Interjection.Receiver>
  /** Selects the agent for words without a target, as long as it lives; `undefined`: no selection. */
  readonly select: (target: string | undefined) => Effect.Effect<void, Interjection.AgentUnknown>
  /** The selected agent, if it still lives. */
  readonly selected: Effect.Effect<Option.Option<AgentTree.Node>>
  /**
   * Cancels an agent's turn, or one running call alone: its processes end, its result is `cancelled`, and the turn
   * continues. Waits for the end; how long that may take is `Limits.stopWithin`. The agent stays usable.
   */
  readonly interrupt: (
    options?: InterruptOptions
  ) => Effect.Effect<Option.Option<TurnEnd>, Interjection.AgentUnknown | ToolCallNotRunning>
  /**
   * Takes the user's unread words out of all inboxes, or one agent's, oldest first, to give them back as a draft.
   * Without this, words that a cancelled turn has not read begin the next one. Words of {@link enqueue} stay.
   */
  readonly takeBack: (target?: string) => Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown>
  /** Queues words for a turn of their own, after the running one. */
  readonly enqueue: (text: string, options?: Pick<SendOptions, "id">) => Effect.Effect<Message, NotTaken>
  /** Sends words, waits until the agent is idle, and yields how its last turn ended. */
  readonly run: (text: string) => Effect.Effect<TurnEnd, NotTaken>
  /**
   * Queues words for a turn of their own and waits for its end. An `authority` decides about this turn's calls before
   * the rules: see `Stage`. An interrupt withdraws the words, or cancels the turn when that has begun.
   */
  readonly turn: (text: string, options?: Session.TurnOptions) => Effect.Effect<TurnEnd, AgentStopped | MessageBlank>
  /** Cancels the running turn and waits for its end; none when idle. The agent stays usable. */
  readonly cancel: (reason?: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /**
   * Waits until the tools that run now have ended, here and in subagents; not for tools that ask somebody or wait for a
   * subagent. Run it before a halt, so that allowed calls complete.
   */
  readonly awaitTools: Effect.Effect<void>
  /** Ends the running turn as halted, because nobody can answer. A stored agent then takes no more words. */
  readonly halt: (detail: string) => Effect.Effect<void>
  /** Makes the history as short as the configuration allows: at once when idle, else before the next model call. */
  readonly compact: Effect.Effect<Compacted, CompactionFailed>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and no words wait; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<TurnEnd>>
  /** All events from the start, for the executor; `Options.events` sets the policy for a slow one. One reader. */
  readonly events: EventBus.Subscription
  /** Events from now on, for observers; see `EventBus.Policy` for what happens when the reader is slow. */
  readonly subscribe: (policy?: EventBus.Policy) => Effect.Effect<EventBus.Subscription, never, Scope.Scope>
  /** The broker: attach further interactors, answer or withdraw open requests. */
  readonly broker: InteractionBroker.Service
  /** Runs a `permissions` command line, such as `allow git *`. Its change is durable once this returns. */
  readonly permissions: (line: string) => Effect.Effect<Either.Either<PermissionCommand.Outcome, string>>
  /** Publishes that something went wrong around the agent. It waits for a slow executor as the agent does. */
  readonly report: (message: string) => Effect.Effect<void>
  readonly history: History.History
  /** Tokens and costs of the whole tree. */
  readonly ledger: TokenLedger.Service
  /** The root and its living subagents, parents before their children. */
  readonly agents: Effect.Effect<ReadonlyArray<AgentTree.Node>>
  readonly tools: ToolRegistry.Service
  readonly model: Effect.Effect<Model.Service>
  /** The model from the next model call on. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
  /**
   * Stops the agent: it takes no more words, the running turn is cancelled, everything that it started ends, and so do
   * the event streams, also unread ones. A second call waits for the same end. It takes at most
   * `Options.shutdownWithin`.
   */
  readonly shutdown: Effect.Effect<void>
  /** Waits until the agent is shut down; yields the last turn's end. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

/** Target and id of words. */
export interface SendOptions {
  /** One agent: its path, its session's id or its subagent id. */
  readonly target?: string | undefined
  /**
   * Becomes the message's id. Only the first words under an id are taken, also across a resume; others fail as
   * `MessageAlreadyTaken`.
   */
  readonly id?: string | undefined
}

/** Options of one agent beside its runtime's. */
export interface Options {
  /** Instead of the runtime's instructions. */
  readonly instructions?: string | undefined
  /** Names of tools or groups; all of the runtime's tools when absent. Essential tools are always there. */
  readonly tools?: ReadonlyArray<string> | undefined
  /** Override the runtime's limits. Invalid ones fail as `LimitsInvalid`. */
  readonly limits?: Partial<Limits> | undefined
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
