/**
 * The inside of one agent: its inbox, history, tools and scope, and the loop that takes its turns.
 *
 * Everything the session starts lives in the scope it was made in. One turn runs at a time.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { IdGenerator, type MessageId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import * as Inbox from "../inbox/Inbox.js"
import type { Message } from "../inbox/Message.js"
import type * as Model from "../model/Model.js"
import { Delegations } from "../turn/Delegation.js"
import * as ResumedQuestions from "../journal/ResumedQuestions.js"
import * as SessionParts from "./SessionParts.js"
import type { Options, Order, Service, TurnOptions } from "./SessionService.js"
import { neverBegun, type TurnEnd } from "../event/TurnEnd.js"
import { TurnLoop, type Given } from "./TurnLoop.js"

export type { Options, Order, Service, TurnOptions } from "./SessionService.js"

export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.flatMap(IdGenerator, (ids) =>
    Effect.flatMap(Effect.scope, (scope) =>
      Effect.clockWith((clock) => {
        const { journal, restored } = options
        const filed = { filed: journal?.received, withdrawn: journal?.withdrawn, messages: restored?.waiting }
        const reopening = restored === undefined ? undefined : ResumedQuestions.make(restored)
        return Effect.map(
          options.inbox === undefined ? Inbox.make(filed) : Effect.succeed(options.inbox),
          (inbox) => new Session(options, { clock, inbox, ids, scope, reopening })
        )
      })
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Session implements Service {
  readonly delegations = new Delegations()
  private readonly loop: TurnLoop

  constructor(options: Options, given: Given & Pick<SessionParts.Given, "clock" | "inbox">) {
    const { clock, inbox, reopening } = given
    const ambient = () => options.ambient?.(this) ?? Context.empty()
    this.loop = new TurnLoop(options, SessionParts.make(options, { clock, inbox, reopening, ambient }), given)
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

  order(...order: Parameters<Service["order"]>): Option.Option<Order> {
    return this.loop.order(...order)
  }

  rejoin(id: MessageId): Pick<Order, "end" | "giveUp"> {
    return this.loop.placed({ id, authority: undefined, span: undefined }, "parent")
  }

  cancel(reason: CancelReason): Effect.Effect<Option.Option<TurnEnd>> {
    return this.loop.stopTurn({ cancel: reason })
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
