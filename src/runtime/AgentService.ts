/** An agent as whoever drives it sees it, and what one is started with. */
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
 * Its methods know their agent by what they are called on, and are not copied by a spread. To put something of one's own in
 * the place of a part: `Object.create(agent, { events: { value: events } })`.
 */
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
  readonly interrupt: (
    options?: InterruptOptions
  ) => Effect.Effect<Option.Option<TurnEnd>, Interjection.AgentUnknown | ToolCallNotRunning>
  /**
   * Takes the user's words that no turn has read yet out of all inboxes, or one agent's, oldest first: to hand them back as
   * a draft. Without this, what a cancelled turn has not read begins the next one. Words of {@link enqueue} stay.
   */
  readonly takeBack: (target?: string) => Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown>
  /** Hands in words for a turn of their own, after the running one. */
  readonly enqueue: (text: string, options?: Pick<SendOptions, "id">) => Effect.Effect<Message, NotTaken>
  /** Sends words, waits until the agent is idle, and yields how its last turn ended. */
  readonly run: (text: string) => Effect.Effect<TurnEnd, NotTaken>
  /**
   * Hands in words for a turn of their own and waits for its end. With an `authority`, that is asked about this turn's
   * calls before the rules: see `Stage`. Interrupting it withdraws the words, or cancels the turn when that has begun.
   */
  readonly turn: (text: string, options?: Session.TurnOptions) => Effect.Effect<TurnEnd, AgentStopped | MessageBlank>
  /** Cancels the running turn and waits for its end; nothing when idle. The agent stays usable. */
  readonly cancel: (reason?: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /**
   * Waits until the tools that run now have ended, here and in subagents; not for those that ask somebody or wait for a
   * subagent. Whoever is about to halt waits for them, so that what was allowed is done.
   */
  readonly awaitTools: Effect.Effect<void>
  /** Ends the running turn as halted: nobody is there who could answer. One that is kept takes nothing more. */
  readonly halt: (detail: string) => Effect.Effect<void>
  /** Makes the history as short as the configuration allows: at once when idle, else before the next model call. */
  readonly compact: Effect.Effect<Compacted, CompactionFailed>
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
  /** Tells whoever listens that something went wrong around the agent. Waits where the agent would for its executor. */
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

/** Whom the words are for, and under which id. */
export interface SendOptions {
  /** One agent: its path, its session's id or its subagent id. */
  readonly target?: string | undefined
  /**
   * Becomes the message's id. Of all words that are handed in under one id the first are taken, also by a process that goes
   * on with the session; the others fail as `MessageAlreadyTaken`.
   */
  readonly id?: string | undefined
}

/** What one agent has that its runtime does not say. */
export interface Options {
  /** Instead of the runtime's instructions. */
  readonly instructions?: string | undefined
  /** Names of tools or groups; all of the runtime's tools when absent. Essential tools are always there. */
  readonly tools?: ReadonlyArray<string> | undefined
  /** Over the runtime's. What makes no sense is `LimitsInvalid`. */
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
