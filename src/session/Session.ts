/**
 * The inside of one agent: its inbox, history, tools and scope, and the loop that takes its turns.
 *
 * Everything the session starts lives in the scope it was made in. One turn runs at a time.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Generator, MessageId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type * as Origin from "../core/Origin.js"
import type { CompactionFailed } from "../conversation/CompactionStrategy.js"
import type * as History from "../conversation/History.js"
import { neverBegun, type TurnEnd } from "../event/TurnEnd.js"
import type * as Inbox from "../inbox/Inbox.js"
import type { Message } from "../inbox/Message.js"
import * as ResumedRequests from "../interaction/ResumedRequests.js"
import * as ResumedQuestions from "../journal/ResumedQuestions.js"
import type * as Model from "../model/Model.js"
import type * as PermissionGate from "../permission/PermissionGate.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Compacted } from "../turn/Compaction.js"
import { Delegations } from "../turn/Delegation.js"
import type { RunningCalls } from "../turn/RunningCalls.js"
import * as TurnContext from "../turn/TurnContext.js"
import { TurnLoop, type Given, type Own as LoopOwn } from "./TurnLoop.js"
import type { Order, OrderOptions, TurnOptions } from "./TurnRequest.js"

export type { Shared } from "../turn/TurnContext.js"
export type { Order, OrderOptions, TurnOptions } from "./TurnRequest.js"

/** Options of one session. */
export interface Own extends LoopOwn {
  /** Further services for its tools; called once, when the first tool runs. */
  readonly ambient: ((session: Service) => Context.Context<never>) | undefined
}

/** Where a session is made. */
export interface Surroundings {
  readonly ids: Generator
  readonly clock: Clock.Clock
  /** Everything that the session starts ends with it. */
  readonly scope: Scope.Scope
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
  readonly turn: (text: string, options?: TurnOptions) => Effect.Effect<TurnEnd>
  /**
   * As {@link turn}, synchronously, for a caller that must decide and file in one step; none once the session has
   * ended.
   */
  readonly order: (text: string, options?: OrderOptions) => Option.Option<Order>
  /**
   * As {@link order}, for words that another process filed and whose turn has not ended. Call it before {@link run}.
   */
  readonly rejoin: (id: MessageId) => Pick<Order, "end" | "giveUp">
  /** The authority of the running turn: it holds also for tasks that the turn gives to children. */
  readonly bound: () => PermissionGate.Authority | undefined
  /** Cancels the running turn, or the one about to begin, and waits for its end; none when idle. */
  readonly cancel: (reason: CancelReason) => Effect.Effect<Option.Option<TurnEnd>>
  /** Ends the session if nothing runs in it, and says whether it did; interrupt {@link run} then, and wait for nothing. */
  readonly end: () => boolean
  /** Ends the running turn as halted, because nobody can answer. */
  readonly halt: (detail: string) => Effect.Effect<void>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and the inbox is empty, or {@link run} has ended; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<TurnEnd>>
  /** Keeps the session busy until the result is called, for work beside its turns. */
  readonly retain: () => () => void
  /**
   * Makes the history as short as the configuration allows: now when idle, else before the next model call. A tool that
   * waits for this in its own session waits for ever. An interrupt does not stop a compaction that has begun.
   */
  readonly compact: Effect.Effect<Compacted, CompactionFailed>
  /** Turns begun so far. */
  readonly turns: () => number
  readonly model: Effect.Effect<Model.Service>
  /** The model of the next model call. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
}

/** A session of a tree. It takes no turn before {@link Service.run}. */
export const make = (shared: TurnContext.Shared, own: Own, { clock, ids, scope }: Surroundings): Service => {
  const reopening = own.restored === undefined ? undefined : ResumedQuestions.make(own.restored)
  return new Session(shared, own, clock, { ids, scope, reopening })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Session implements Service {
  readonly delegations = new Delegations()
  private readonly loop: TurnLoop

  constructor(shared: TurnContext.Shared, own: Own, clock: Clock.Clock, given: Given) {
    const ambient = () => {
      const context = own.ambient?.(this) ?? Context.empty()
      const { reopening } = given
      return reopening === undefined ? context : Context.add(context, ResumedRequests.ResumedRequests, reopening)
    }
    this.loop = new TurnLoop(shared, own, TurnContext.make(shared, own, clock, ambient), given)
  }

  get origin() {
    return this.loop.session.origin
  }

  get history() {
    return this.loop.session.history
  }

  get tools() {
    return this.loop.session.tools
  }

  get inbox() {
    return this.loop.session.inbox
  }

  get calls() {
    return this.loop.session.calls
  }

  get run() {
    return this.loop.run
  }

  send(text: string, parentId = "root", id?: MessageId): Effect.Effect<Message> {
    return Effect.sync(() => this.loop.admission.send(text, parentId, id))
  }

  interject(text: string, parentId: string, id?: MessageId): Option.Option<Message> {
    return this.loop.admission.interject(text, parentId, id)
  }

  isReceiving(): boolean {
    return this.loop.admission.isReceiving()
  }

  forward(message: Message): void {
    this.loop.admission.forward(message)
  }

  takeBack(): ReadonlyArray<Message> {
    return this.loop.admission.takeBack()
  }

  note(text: string): Message {
    return this.loop.admission.note(text)
  }

  enqueue(text: string, id?: MessageId): Effect.Effect<Message> {
    return Effect.sync(() => this.loop.admission.enqueue(text, id))
  }

  turn(text: string, options?: TurnOptions): Effect.Effect<TurnEnd> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(this.loop.session.spans.current, (span) =>
        Option.match(this.loop.order(text, { ...options, span }), {
          onNone: () => Effect.succeed(neverBegun),
          onSome: ({ end, giveUp }) => {
            if (options?.ended !== undefined) end.observe(options.ended)
            return Effect.onInterrupt(restore(end), () => giveUp)
          }
        })
      )
    )
  }

  bound() {
    return this.loop.session.state.bound
  }

  order(text: string, options?: OrderOptions): Option.Option<Order> {
    return this.loop.order(text, options)
  }

  rejoin(id: MessageId): Pick<Order, "end" | "giveUp"> {
    return this.loop.placed({ id, authority: undefined, span: undefined }, "parent")
  }

  cancel(reason: CancelReason): Effect.Effect<Option.Option<TurnEnd>> {
    return this.loop.stopTurn({ cancel: reason })
  }

  end(): boolean {
    return this.loop.end()
  }

  halt(detail: string): Effect.Effect<void> {
    return this.loop.halt(detail)
  }

  get isIdle(): Effect.Effect<boolean> {
    return Effect.sync(() => this.loop.rests())
  }

  get awaitIdle(): Effect.Effect<Option.Option<TurnEnd>> {
    return this.loop.awaitIdle
  }

  retain(): () => void {
    return this.loop.retain()
  }

  get compact(): Service["compact"] {
    return this.loop.compact
  }

  turns(): number {
    return this.loop.count
  }

  get model(): Service["model"] {
    return Effect.sync(() => this.loop.session.model())
  }

  setModel(next: Model.Service): Effect.Effect<void> {
    return Effect.sync(() => {
      this.loop.session.state.model = next
    })
  }
}
