/**
 * Turns that a caller waits for. Each one begins with a message of its own and settles once, with its own end.
 *
 * ```
 *  queued ──► working ──► its end
 *     │          └─ given up ──► cancelled
 *     ├─ given up ──► withdrawn
 *     └─ the session ends ──► withdrawn; the end says that the turn never began
 * ```
 *
 * The session writes and reads them in synchronous sections only.
 */
import * as Effect from "effect/Effect"
import type * as FiberRefs from "effect/FiberRefs"
import type { MessageId, ToolCallId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import { neverBegun, type TurnEnd } from "../event/TurnEnd.js"
import type * as Inbox from "../inbox/Inbox.js"
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

/** What a caller wants of the turn that it waits for. */
export interface Wanted extends TurnOptions {
  /** The world of the caller: see `CallerContext`. Default: the one around the session's start. */
  readonly world?: FiberRefs.FiberRefs | undefined
  /** The typed result of the turn. */
  readonly output?: TypedOutput | undefined
  /** Present for a task of the parent: the call that waits for its end, if one does. */
  readonly task?: { readonly toolCallId: ToolCallId | undefined } | undefined
}

/** A turn that a caller waits for. */
export interface RequestedTurn {
  /** The message that begins it. */
  readonly id: MessageId
  /** The turn's end. In a session that has ended, it is there at once. */
  readonly end: OneShot<TurnEnd>
  /** Withdraws the words. When the turn has begun, cancels it and waits for its end. */
  readonly giveUp: Effect.Effect<void>
}

export class TurnRequest implements RequestedTurn {
  readonly end = new OneShot<TurnEnd>()

  constructor(
    private readonly requests: TurnRequests,
    readonly id: MessageId,
    readonly wanted: Omit<Wanted, "world">,
    private world: FiberRefs.FiberRefs | undefined
  ) {}

  /** The world of the caller, once: a turn that has begun has entered it, and may work for long. */
  takeWorld(): FiberRefs.FiberRefs | undefined {
    const { world } = this
    this.world = undefined
    return world
  }

  get giveUp(): Effect.Effect<void> {
    return Effect.suspend(() => this.requests.giveUp(this))
  }
}

/** The open requests of one session. */
export class TurnRequests {
  /** Made with the first request: many sessions never have one. */
  private open: Map<MessageId, TurnRequest> | undefined
  private isClosed = false

  /** `cancel` cancels the running turn of the session, and waits for its end. */
  constructor(
    private readonly inbox: Pick<Inbox.Service, "withdraw">,
    private readonly cancel: (reason: CancelReason) => Effect.Effect<unknown>
  ) {}

  /** Waits for the turn of this message. */
  add(id: MessageId, { world, ...wanted }: Wanted): TurnRequest {
    const request = new TurnRequest(this, id, wanted, world)
    ;(this.open ??= new Map()).set(id, request)
    if (this.isClosed) this.close()
    return request
  }

  /** The open request of this message. */
  get(id: MessageId | undefined): TurnRequest | undefined {
    return id === undefined ? undefined : this.open?.get(id)
  }

  fulfil(request: TurnRequest, end: TurnEnd): void {
    this.open?.delete(request.id)
    request.end.complete(end)
  }

  /**
   * No turn begins any more. Withdraws the words, because their callers learn that no turn began: a process that resumes
   * the session must not begin them. A frozen journal records no withdrawal, and the next process continues with them.
   */
  close(): void {
    this.isClosed = true
    for (const request of [...(this.open?.values() ?? [])]) {
      this.inbox.withdraw(request.id)
      this.fulfil(request, neverBegun)
    }
  }

  giveUp({ id, wanted: { reason = "user" } }: TurnRequest): Effect.Effect<void> {
    if (this.inbox.withdraw(id)) {
      this.open?.delete(id)
      return Effect.void
    }
    return this.open?.has(id) === true ? Effect.asVoid(this.cancel(reason)) : Effect.void
  }
}
