/** Options and interface of a session; it is made in `Session`. */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { AnySpan } from "effect/Tracer"
import type { MessageId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import type * as Spans from "../core/Spans.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type * as Inbox from "../inbox/Inbox.js"
import type { Message, Source } from "../inbox/Message.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type * as PermissionFile from "../permission/PermissionFile.js"
import type * as Guard from "../permission/Guard.js"
import type * as PermissionGate from "../permission/PermissionGate.js"
import type { PermissionState } from "../permission/PermissionState.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as Compaction from "../turn/Compaction.js"
import type { CompactionConfig } from "../conversation/CompactionConfig.js"
import type { CompactionFailed } from "../conversation/CompactionStrategy.js"
import type { Delegations } from "../turn/Delegation.js"
import type * as History from "../conversation/History.js"
import type { RunningCalls } from "../turn/RunningCalls.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type { Limits } from "../turn/Limits.js"
import type { OneShot } from "../internal/OneShot.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import type * as Turn from "../turn/Turn.js"

export interface Options {
  readonly origin: Origin.Origin
  readonly model: Model.Service
  readonly tools: ToolRegistry.Service
  /** System message; none when empty. */
  readonly instructions: string
  /** The interactor that this session asks. */
  readonly interactor: Interactor.Service
  readonly policy: PermissionFile.Policy
  readonly permissions: PermissionState
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly authority?: PermissionGate.Authority | undefined
  /** See `PermissionGate.Options`. */
  readonly insteadOfAsking?: PermissionGate.Authority | undefined
  readonly audit?: AuditTrail.Service | undefined
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly limits?: Partial<Limits> | undefined
  /**
   * When and how the history is made shorter. Without it, only a history that a provider refuses loses its oldest
   * turns.
   */
  readonly compaction?: CompactionConfig | undefined
  /** The ledger of the tree: counts the usage of model calls, and may stop them. */
  readonly ledger?: TokenLedger.Service | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
  /** Its inbox, when that had to exist before the session. */
  readonly inbox?: Inbox.Service | undefined
  /** Called with a user's words that a turn has not read at its end. Default: they stay, and begin the next turn. */
  readonly unread?: ((message: Message) => void) | undefined
  /** Records entries that must outlive the process; the {@link inbox} already uses it. */
  readonly journal?: SessionRecorder | undefined
  /** Its state from another process. */
  readonly restored?: SessionSnapshot.SessionSnapshot | undefined
  /** Further services for its tools; called once, when the first tool runs. */
  readonly ambient?: ((session: Service) => Context.Context<never>) | undefined
}

/** Options of one turn. */
export interface TurnOptions {
  /**
   * Decides about this turn's calls before the session's own authority; also about calls of children that work for the
   * turn.
   */
  readonly authority?: PermissionGate.Authority | undefined
  /** The source of the words. Default: `user`. */
  readonly source?: Source | undefined
  /** Called synchronously when the words are filed. */
  readonly filed?: ((message: Message) => void) | undefined
  /** The cancel reason when the waiting fiber is interrupted. Default: `user`. */
  readonly reason?: CancelReason | undefined
  /** Called synchronously when the turn ends. */
  readonly ended?: ((end: Turn.TurnEnd) => void) | undefined
}

/** A requested turn. */
export interface Order {
  readonly message: Message
  /** The turn's end. */
  readonly end: OneShot<Turn.TurnEnd>
  /** Withdraws the words, or cancels the turn when that has begun. */
  readonly giveUp: Effect.Effect<void>
}

export interface Service {
  readonly origin: Origin.Origin
  readonly history: History.History
  readonly tools: ToolRegistry.Service
  readonly inbox: Inbox.Service
  /** The children that work under its tool calls. */
  readonly delegations: Delegations
  /** Its running tool calls. */
  readonly calls: RunningCalls
  /** The loop; interrupt it to end the session. */
  readonly run: Effect.Effect<never>
  /**
   * Sends a user's words: a turn when idle; an interjection when busy, which interrupts the running generation.
   * Deciding and filing are one step. Without an `id` the message gets a fresh one.
   */
  readonly send: (text: string, parentId?: string, id?: MessageId) => Effect.Effect<Message>
  /**
   * Interjects if a turn runs or is about to begin; none when no turn does, or when it has decided to end. Synchronous:
   * deciding and filing are one step.
   */
  readonly interject: (text: string, parentId: string, id?: MessageId) => Option.Option<Message>
  /** Whether {@link interject} would succeed now. */
  readonly isReceiving: () => boolean
  /** As {@link send}, synchronously, for words that another session has not read. They keep their id. */
  readonly forward: (message: Message) => void
  /** Takes back the user's unread words, oldest first. Queued words stay. */
  readonly takeBack: () => ReadonlyArray<Message>
  /** Files words of the parent synchronously: read at the next step of the turn that runs or is about to begin. */
  readonly note: (text: string) => Message
  /** Files words for the next turn. */
  readonly enqueue: (text: string, id?: MessageId) => Effect.Effect<Message>
  /**
   * Files words for a turn of their own and waits for its end. An interrupt withdraws the words, or cancels the turn
   * when that has begun. One turn runs at a time, so a tool that waits for a turn of its own session waits for ever.
   */
  readonly turn: (text: string, options?: TurnOptions) => Effect.Effect<Turn.TurnEnd>
  /**
   * As {@link turn}, synchronously, for a caller that must decide and file in one step; none once the session has
   * ended.
   */
  readonly order: (
    text: string,
    options?: TurnOptions & { readonly span?: AnySpan | undefined; readonly id?: MessageId | undefined }
  ) => Option.Option<Order>
  /**
   * As {@link order}, for words that another process filed and whose turn has not ended. Call it before {@link run}.
   */
  readonly rejoin: (id: MessageId) => Pick<Order, "end" | "giveUp">
  /** The authority of the running turn: it holds also for tasks that the turn gives to children. */
  readonly bound: () => PermissionGate.Authority | undefined
  /** Cancels the running turn, or the one about to begin, and waits for its end; none when idle. */
  readonly cancel: (reason: CancelReason) => Effect.Effect<Option.Option<Turn.TurnEnd>>
  /** Ends the running turn as halted, because nobody can answer. */
  readonly halt: (detail: string) => Effect.Effect<void>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and the inbox is empty, or {@link run} has ended; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<Turn.TurnEnd>>
  /** Keeps the session busy until the result is called, for work beside its turns. */
  readonly retain: () => () => void
  /**
   * Makes the history as short as the configuration allows: now when idle, else before the next model call. A tool that
   * waits for this in its own session waits for ever. An interrupt does not stop a compaction that has begun.
   */
  readonly compact: Effect.Effect<Compaction.Compacted, CompactionFailed>
  /** Turns begun so far. */
  readonly turns: () => number
  readonly model: Effect.Effect<Model.Service>
  /** The model of the next model call. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
}
