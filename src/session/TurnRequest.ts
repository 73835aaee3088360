/**
 * Turns that a caller waits for: each begins with a message of its own, may have an authority, and is settled with its
 * end.
 *
 * Written and read by the session in synchronous sections only.
 */
import * as Effect from "effect/Effect"
import type { AnySpan } from "effect/Tracer"
import type { MessageId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type { Message, Source } from "../inbox/Message.js"
import type { Authority } from "../permission/PermissionGate.js"
import { OneShot } from "../internal/OneShot.js"
import type { TurnEnd } from "../turn/Turn.js"

/**
 * Options of one turn.
 *
 * @since 0.1.0
 * @category models
 */
export interface TurnOptions {
  /**
   * Decides about this turn's calls before the session's own authority; also about calls of children that work for the
   * turn.
   */
  readonly authority?: Authority | undefined
  /** The source of the words. Default: `user`. */
  readonly source?: Source | undefined
  /** Called synchronously when the words are filed. */
  readonly filed?: ((message: Message) => void) | undefined
  /** The cancel reason when the waiting fiber is interrupted. Default: `user`. */
  readonly reason?: CancelReason | undefined
  /** Called synchronously when the turn ends. */
  readonly ended?: ((end: TurnEnd) => void) | undefined
}

/** As {@link TurnOptions}, for a caller that must decide and file in one step. */
export interface OrderOptions extends TurnOptions {
  /** The span of the request. */
  readonly span?: AnySpan | undefined
  /** The id of its message. Default: a fresh one. */
  readonly id?: MessageId | undefined
}

/** A requested turn. */
export interface Order {
  readonly message: Message
  /** The turn's end. */
  readonly end: OneShot<TurnEnd>
  /** Withdraws the words, or cancels the turn when that has begun. */
  readonly giveUp: Effect.Effect<void>
}

export interface TurnRequest {
  /** The message that begins the turn. */
  readonly id: MessageId
  /** Decides about this turn's calls before the session's own authority. */
  readonly authority: Authority | undefined
  /** The span of the request: parent of the turn's span. */
  readonly span: AnySpan | undefined
  /** Settled by the session; read by the caller. */
  readonly end: OneShot<TurnEnd>
}

/** The open requests of one session. */
export interface TurnRequests {
  readonly place: (order: Omit<TurnRequest, "end">) => TurnRequest
  /** The request that this input begins. Such words are queued, and each queued message begins a turn of its own. */
  readonly of: (input: ReadonlyArray<Pick<Message, "id">>) => TurnRequest | undefined
  /**
   * The caller's handle. `giveUp` withdraws the words with `withdraw` or, when a turn has taken them, stops that turn
   * with `stop`.
   */
  readonly handle: (
    order: TurnRequest,
    withdraw: (id: MessageId) => boolean,
    stop: Effect.Effect<unknown>
  ) => { readonly end: OneShot<TurnEnd>; readonly giveUp: Effect.Effect<void> }
  readonly fulfil: (order: TurnRequest, end: TurnEnd) => void
  /** Settles all open requests. */
  readonly close: (end: TurnEnd) => void
}

export const make = (): TurnRequests => new SessionOrders()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionOrders implements TurnRequests {
  /** Made with the first request: most sessions never have one. */
  private orders: Map<MessageId, TurnRequest> | undefined

  place({ authority, id, span }: Omit<TurnRequest, "end">): TurnRequest {
    const order: TurnRequest = { id, authority, span, end: new OneShot() }
    const orders = (this.orders ??= new Map())
    orders.set(id, order)
    return order
  }

  of([first]: ReadonlyArray<Pick<Message, "id">>): TurnRequest | undefined {
    return first === undefined ? undefined : this.orders?.get(first.id)
  }

  handle({ end, id }: TurnRequest, withdraw: (id: MessageId) => boolean, stop: Effect.Effect<unknown>) {
    const giveUp = Effect.suspend(() => {
      if (withdraw(id)) {
        this.orders?.delete(id)
        return Effect.void
      }
      return this.orders?.has(id) === true ? Effect.asVoid(stop) : Effect.void
    })
    return { end, giveUp }
  }

  fulfil(order: TurnRequest, end: TurnEnd): void {
    this.orders?.delete(order.id)
    order.end.complete(end)
  }

  close(end: TurnEnd): void {
    for (const order of [...(this.orders?.values() ?? [])]) this.fulfil(order, end)
  }
}
