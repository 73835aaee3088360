/**
 * Turns that somebody waits for. Each begins with a message of its own, may have an authority, and is settled with its
 * own end, once.
 *
 * ```
 *  queued ──► working ──► its end
 *     │          └─ given up ──► cancelled
 *     ├─ given up ──► withdrawn
 *     └─ the session ends ──► withdrawn; the end says that it never began
 * ```
 *
 * Written and read by the session in synchronous sections only.
 */
import * as Effect from "effect/Effect"
import type * as FiberRefs from "effect/FiberRefs"
import type { MessageId, ToolCallId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import { neverBegun, type TurnEnd } from "../event/TurnEnd.js"
import type { Message } from "../inbox/Message.js"
import { OneShot } from "../internal/OneShot.js"
import type { Authority } from "../permission/PermissionGate.js"
import type { TypedOutput } from "../turn/TypedOutput.js"

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
  /** The cancel reason when the turn is given up. Default: `user`. */
  readonly reason?: CancelReason | undefined
}

/** Under what somebody waits for a turn. */
export interface Wanted extends TurnOptions {
  /** The world of the caller: see `World`. Default: the one around the session's start. */
  readonly world?: FiberRefs.FiberRefs | undefined
  /** The typed result that the turn is to have. */
  readonly output?: TypedOutput | undefined
  /** Present for a task of the parent: the call that waits for its end, if one does. */
  readonly task?: { readonly toolCallId: ToolCallId | undefined } | undefined
}

/** A turn that somebody waits for. */
export interface RequestedTurn {
  /** The message that begins it. */
  readonly id: MessageId
  /** The turn's end; in a session that has ended, at once. */
  readonly end: OneShot<TurnEnd>
  /** Withdraws the words or, when the turn has begun, cancels it and waits for its end. */
  readonly giveUp: Effect.Effect<void>
}

/** The part of a session that this needs. */
export interface Host {
  /** Withdraws an unread message; false when it was read. */
  readonly withdraw: (id: MessageId) => boolean
  readonly stop: (reason: CancelReason) => Effect.Effect<unknown>
}

export class TurnRequest implements RequestedTurn {
  readonly end = new OneShot<TurnEnd>()

  constructor(
    private readonly requests: TurnRequests,
    readonly id: MessageId,
    private readonly wanted: Omit<Wanted, "world">,
    private world: FiberRefs.FiberRefs | undefined
  ) {}

  get authority(): Authority | undefined {
    return this.wanted.authority
  }

  get output(): TypedOutput | undefined {
    return this.wanted.output
  }

  /** The world of the caller, once: a turn that has begun has entered it, and may work for long. */
  takeWorld(): FiberRefs.FiberRefs | undefined {
    const { world } = this
    this.world = undefined
    return world
  }

  get giveUp(): Effect.Effect<void> {
    return Effect.suspend(() => this.requests.giveUp(this.id, this.wanted.reason ?? "user"))
  }
}

/** The open requests of one session. */
export class TurnRequests {
  /** Made with the first request: many sessions never have one. */
  private open: Map<MessageId, TurnRequest> | undefined
  private isClosed = false

  constructor(private readonly host: Host) {}

  /** Waits for the turn of this message. */
  add(id: MessageId, { world, ...wanted }: Wanted): TurnRequest {
    const request = new TurnRequest(this, id, wanted, world)
    ;(this.open ??= new Map()).set(id, request)
    if (this.isClosed) this.close()
    return request
  }

  /** The open request of this message. */
  get(id: MessageId): TurnRequest | undefined {
    return this.open?.get(id)
  }

  /** The request that this input begins. Its words begin their turn, alone or with interjections behind them. */
  of([first]: ReadonlyArray<Pick<Message, "id">>): TurnRequest | undefined {
    return first === undefined ? undefined : this.open?.get(first.id)
  }

  fulfil(request: TurnRequest, end: TurnEnd): void {
    this.open?.delete(request.id)
    request.end.complete(end)
  }

  /**
   * No turn begins any more. Words whose caller is told so are withdrawn: a process that resumes the session must not
   * begin them. Where the journal is frozen, because a scope closes or a question halts, nothing is written down of that, and
   * another process goes on with all of it.
   */
  close(): void {
    this.isClosed = true
    for (const request of [...(this.open?.values() ?? [])]) {
      this.host.withdraw(request.id)
      this.fulfil(request, neverBegun)
    }
  }

  giveUp(id: MessageId, reason: CancelReason): Effect.Effect<void> {
    if (this.host.withdraw(id)) {
      this.open?.delete(id)
      return Effect.void
    }
    return this.open?.has(id) === true ? Effect.asVoid(this.host.stop(reason)) : Effect.void
  }
}
