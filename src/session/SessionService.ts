/** What a session is made of, and what it is from the outside; it is made in `Session`. */
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
  /** System message; nothing when empty. */
  readonly instructions: string
  /** Whom this session asks. */
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
  /** When the history is made shorter, and how. Without it only when a provider refuses it: it loses its oldest turns. */
  readonly compaction?: CompactionConfig | undefined
  /** Of the session's tree: counts what its model calls use, and may stop them. */
  readonly ledger?: TokenLedger.Service | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
  /** Where it is written to, when somebody had to know that before. */
  readonly inbox?: Inbox.Service | undefined
  /** Takes the words of a user that a turn ended without reading. Default: they stay, and begin the next turn. */
  readonly unread?: ((message: Message) => void) | undefined
  /** Where it notes what must outlive the process, as its {@link inbox} does already. */
  readonly journal?: SessionRecorder | undefined
  /** How far another process had come with it. */
  readonly restored?: SessionSnapshot.SessionSnapshot | undefined
  /** What its tools run with besides; asked once, when the first tool runs. */
  readonly ambient?: ((session: Service) => Context.Context<never>) | undefined
}

/** Under whose authority a turn runs. */
export interface TurnOptions {
  /** Asked about this turn's calls before the session's own, and about those of children that work for it. */
  readonly authority?: PermissionGate.Authority | undefined
  /** Who hands in the words. Default: `user`. */
  readonly source?: Source | undefined
  /** Told the words in the step in which they are filed. */
  readonly filed?: ((message: Message) => void) | undefined
  /** Why the turn is cancelled when whoever waits for it is interrupted. Default: `user`. */
  readonly reason?: CancelReason | undefined
  /** Told the turn's end in the step in which it ends. */
  readonly ended?: ((end: Turn.TurnEnd) => void) | undefined
}

/** A turn that was ordered. */
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
  /** Its tool calls that run. */
  readonly calls: RunningCalls
  /** Takes turns for ever; interrupt it to end the session. */
  readonly run: Effect.Effect<never>
  /**
   * Hands in a user's words: a turn when idle, an interjection when busy, which stops the running generation. Deciding and
   * filing are one step. Without an `id` the message gets a fresh one.
   */
  readonly send: (text: string, parentId?: string, id?: MessageId) => Effect.Effect<Message>
  /**
   * Interjects if a turn runs, or is about to; nothing when none does, or when it has decided to end. At once: deciding and
   * filing are one step.
   */
  readonly interject: (text: string, parentId: string, id?: MessageId) => Option.Option<Message>
  /** Whether {@link interject} would, now. */
  readonly isReceiving: () => boolean
  /** As {@link send}, at once, for words that were handed to another session and not read there. They keep their id. */
  readonly forward: (message: Message) => void
  /** Takes back the words that the user sent and no turn has read yet, oldest first. Queued words stay. */
  readonly takeBack: () => ReadonlyArray<Message>
  /** Hands in words of the parent, at once: read at the next step, of the turn that runs or is about to begin. */
  readonly note: (text: string) => Message
  /** Hands in words for the next turn. */
  readonly enqueue: (text: string, id?: MessageId) => Effect.Effect<Message>
  /**
   * Hands in words for a turn of their own and waits for its end. Interrupting it withdraws the words, or cancels the turn
   * when that has begun. One turn runs at a time, so a tool that waits for a turn of its own session waits for ever.
   */
  readonly turn: (text: string, options?: TurnOptions) => Effect.Effect<Turn.TurnEnd>
  /** As {@link turn}, for whoever has to decide and file in one step; nothing once the session has ended. */
  readonly order: (
    text: string,
    options?: TurnOptions & { readonly span?: AnySpan | undefined; readonly id?: MessageId | undefined }
  ) => Option.Option<Order>
  /** As {@link order}, for words that another process filed and whose turn has no end yet. Before {@link run}. */
  readonly rejoin: (id: MessageId) => Pick<Order, "end" | "giveUp">
  /** What the running turn was ordered with: the tasks that it gives to children are under it as well. */
  readonly bound: () => PermissionGate.Authority | undefined
  /** Cancels the running turn, or the one about to begin, and waits for its end; nothing when idle. */
  readonly cancel: (reason: CancelReason) => Effect.Effect<Option.Option<Turn.TurnEnd>>
  /** Ends the running turn as halted, because nobody can answer. */
  readonly halt: (detail: string) => Effect.Effect<void>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and the inbox is empty, or {@link run} has ended; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<Turn.TurnEnd>>
  /** Keeps the session from being idle until the result is called: something works for it beside its turns. */
  readonly retain: () => () => void
  /**
   * Makes the history as short as the configuration allows: at once when idle, else before the next model call. A tool that
   * waits for this in its own session waits for ever. Interrupting it leaves a compaction that has begun alone.
   */
  readonly compact: Effect.Effect<Compaction.Compacted, CompactionFailed>
  /** Turns begun so far. */
  readonly turns: () => number
  readonly model: Effect.Effect<Model.Service>
  /** The model of the next model call. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
}
