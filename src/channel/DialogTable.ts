/**
 * The open dialogs of a {@link QueueChannel}: who waits, what the reader has not taken yet, what was settled recently.
 *
 * ```
 * asker ──request──► waiting ──room in the lane──► lined ──take──► shown ──┐
 *                       │                            │               │     │ answer, cancel, timeout,
 *                       └──────── asker gone ────────┴───────────────┘     ▼ asker gone, scope closed
 *                                                                       settled, then Closed to the reader
 * ```
 *
 * Every change is one synchronous step, so nothing interleaves. The first to remove an entry from the map has settled it.
 */
import * as Chunk from "effect/Chunk"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { RequestId } from "../core/Id.js"
import type { Interaction } from "../interaction/Interaction.js"
import {
  type AnswerRejected,
  InteractionAlreadyAnswered,
  InteractionCancelled,
  type InteractionError,
  InteractorUnavailable,
  UnknownRequest
} from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { Settle } from "../interaction/InteractorCall.js"
import { RecentSettlements } from "../interaction/RecentSettlements.js"

/**
 * How a dialog ended.
 *
 * @since 0.1.0
 * @category models
 */
export type Status = Interactor.Ended["status"]

/**
 * What the reader is told, in order.
 *
 * @since 0.1.0
 * @category models
 */
export type Dialog = Data.TaggedEnum<{
  /** Show this request. */
  readonly Opened: { readonly request: InteractionRequest }
  /**
   * Close its dialog. `by` names who settled it, here or elsewhere; it is absent when nobody did, because the work that
   * asked was cancelled.
   */
  readonly Closed: { readonly requestId: RequestId; readonly status: Status; readonly by?: string }
}>
/**
 * Constructors and guards of a {@link Dialog}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const { Opened, Closed, $is: is, $match: match } = Data.taggedEnum<Dialog>()

/** The outcome that resumes a waiting asker. */
export type Outcome = Exit.Exit<Interactor.Answered<Interaction>, InteractionError>

export interface Entry {
  readonly request: InteractionRequest
  readonly resume: Settle
  /** Takes answers, where they are votes: the dialog stays open for others. */
  readonly vote: Voting | undefined
  /** Waits for room in the lane, is in it, was taken out of it by a reader, or has ended. */
  place: "waiting" | "lined" | "shown" | "gone"
}

/** Files a vote. */
export type Voting = (reply: Interactor.Reply<Interaction>) => Effect.Effect<Interactor.Filed, AnswerRejected>

/** Is told about the progress of a dialog. */
export interface Watch {
  /** Yields `Effect.void` itself when there is nothing to do. */
  readonly shown: (request: InteractionRequest, fiber: Fiber.RuntimeFiber<unknown, unknown>) => Effect.Effect<void>
  readonly left: (request: InteractionRequest) => void
}

export interface DialogTable {
  /** Opens a dialog and waits for its outcome. Interrupting it closes the dialog; `ended` says why. */
  readonly ask: (
    request: InteractionRequest,
    ended: (() => Interactor.Ended | undefined) | undefined,
    vote?: Voting | undefined
  ) => Effect.Effect<Interactor.Answered<Interaction>, InteractionError>
  /** Like `ask`, without waiting: `resume` gets the outcome, unless the returned function closed the dialog first. */
  readonly post: (
    request: InteractionRequest,
    resume: Settle,
    vote?: Voting | undefined
  ) => (ended?: Interactor.Ended) => void
  readonly take: Effect.Effect<Dialog>
  /** Takes as many dialogs as there are, at least one; fails with none after the end. */
  readonly takeAll: Effect.Effect<Chunk.Chunk<Dialog>, Option.Option<never>>
  /** The request of this id, whatever its place. */
  readonly find: (requestId: string) => Entry | undefined
  /** Why an answer to this id is rejected; a late answer is reported to the asker. */
  readonly rejection: (requestId: string, by: string) => InteractionAlreadyAnswered | UnknownRequest
  readonly settle: (entry: Entry, status: Status, by: string, outcome: Outcome) => void
  /** What can be answered now, oldest first. */
  readonly open: () => ReadonlyArray<InteractionRequest>
  /** Cancels everything and refuses requests from now on. Dialogs that were not taken can still be taken. */
  readonly close: () => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Askers and settling write the lane; `take` reads it. It holds at most `capacity` requests; further askers wait in
 * `line`, in order. Closings are not counted: there is at most one for each dialog that a reader has taken. `watch` is
 * told of every request that a reader takes, in the reader's own fiber, and of every request that is no longer open.
 */
export const make = (id: string, capacity: number, watch: Watch = unwatched): DialogTable => {
  const room = Math.max(1, capacity)
  const entries = new Map<string, Entry>()
  const line = new Set<Entry>()
  const lane = new Lane()
  const readers = new Map<Fiber.RuntimeFiber<unknown, unknown>, () => void>()
  const winners = new RecentSettlements()
  /** How the latest requests that were settled elsewhere ended, to report answers that come after that. */
  const ends = new Map<string, Interactor.Ended>()
  /** From this many readers on, those that are gone are removed. */
  let manyReaders = fewReaders
  let lined = 0
  let closed = false

  // Readers are woken, not handed a dialog: a reader that is interrupted in this moment must not lose it.
  const wake = () => {
    if (readers.size === 0) return
    for (const resume of readers.values()) resume()
    readers.clear()
  }
  const admit = (entry: Entry) => {
    entry.place = "lined"
    lane.add(entry)
    lined++
  }
  const admitNext = () => {
    if (line.size === 0) return
    for (const entry of line) {
      if (lined >= room) return
      line.delete(entry)
      admit(entry)
    }
  }
  const leave = (entry: Entry, status: Status, by?: string, ended?: Interactor.Ended) => {
    const { requestId } = entry.request
    entries.delete(requestId)
    watch.left(entry.request)
    winners.add(requestId, by ?? "somebody else")
    if (ended !== undefined) {
      ends.set(requestId, ended)
      if (ends.size > mostEnds) for (const oldest of ends.keys()) if (ends.delete(oldest)) break
    }
    const { place } = entry
    entry.place = "gone"
    if (place === "waiting") line.delete(entry)
    else if (place === "shown") {
      lane.add(by === undefined ? Closed({ requestId, status }) : Closed({ requestId, status, by }))
      wake()
    } else {
      lane.skip()
      lined--
      admitNext()
    }
  }
  const takeOne = (): Dialog | undefined => {
    const next = lane.take()
    if (next === undefined || "_tag" in next) return next
    next.place = "shown"
    lined--
    admitNext()
    // A request becomes a dialog only here, because many requests end before that.
    return Opened({ request: next.request })
  }
  // A reader that is woken looks again. A reader that is interrupted stays in the map for a while: removing it at once
  // would make every wait cost three times as much, and waking it takes nothing and loses nothing.
  const whenThere = <A, E>(again: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.withFiberRuntime((fiber) =>
      Effect.async((resume) => {
        // Other fibers may have run since the last look.
        if (lane.size > 0 || closed) return resume(again)
        if (readers.size >= manyReaders) forgetReaders()
        readers.set(fiber, () => resume(again))
      })
    )
  const forgetReaders = () => {
    for (const fiber of readers.keys()) if (fiber.unsafePoll() !== null) readers.delete(fiber)
    manyReaders = Math.max(fewReaders, 2 * readers.size)
  }
  // In the same step as the taking: a dialog that is taken is shown, even if its reader is interrupted now.
  const shown = (dialog: Dialog, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<void> =>
    dialog._tag === "Opened" ? watch.shown(dialog.request, fiber) : Effect.void
  const take: Effect.Effect<Dialog> = Effect.withFiberRuntime((fiber) => {
    const dialog = takeOne()
    if (dialog === undefined) return closed ? Effect.interrupt : whenThere(take)
    const told = shown(dialog, fiber)
    return told === Effect.void ? Effect.succeed(dialog) : Effect.as(told, dialog)
  })
  const takeAll: Effect.Effect<Chunk.Chunk<Dialog>, Option.Option<never>> = Effect.withFiberRuntime((fiber) => {
    const dialogs: Array<Dialog> = []
    let told: Effect.Effect<void> = Effect.void
    for (let count = lane.size; count > 0; count--) {
      const dialog = takeOne()
      if (dialog === undefined) continue
      dialogs.push(dialog)
      const next = shown(dialog, fiber)
      if (next !== Effect.void) told = told === Effect.void ? next : Effect.zipRight(told, next)
    }
    if (dialogs.length === 0) return closed ? Effect.fail(Option.none()) : whenThere(takeAll)
    const taken = Chunk.unsafeFromArray(dialogs)
    return told === Effect.void ? Effect.succeed(taken) : Effect.as(told, taken)
  })

  const post: DialogTable["post"] = (request, resume, vote) => {
    const { requestId } = request
    if (closed || entries.has(requestId)) {
      const reason = closed ? "it was closed" : "a request with this id is open there already"
      resume(Exit.fail(new InteractorUnavailable({ requestId, by: id, reason })))
      return () => undefined
    }
    const entry: Entry = { request, resume, vote, place: "waiting" }
    entries.set(requestId, entry)
    winners.forget(requestId)
    ends.delete(requestId)
    if (lined < room) {
      admit(entry)
      wake()
    } else line.add(entry)
    return (ended) => {
      if (entries.get(requestId) === entry) leave(entry, ended?.status ?? "cancelled", ended?.by, ended)
    }
  }

  return {
    take,
    takeAll,
    ask: (request, ended, vote) =>
      Effect.uninterruptibleMask((restore) => {
        let withdraw: ((ended?: Interactor.Ended) => void) | undefined
        const outcome = Effect.async<Interactor.Answered<Interaction>, InteractionError>((resume) => {
          withdraw = post(request, resume, vote)
        })
        return Effect.catchAllCause(restore(outcome), (cause) => {
          withdraw?.(ended?.())
          return Effect.failCause(cause)
        })
      }),
    post,
    find: (requestId) => entries.get(requestId),
    rejection: (requestId, by) => {
      const winner = winners.settledBy(requestId)
      ends.get(requestId)?.late(by)
      return winner === undefined
        ? new UnknownRequest({ requestId })
        : new InteractionAlreadyAnswered({ requestId: RequestId.make(requestId), by: winner })
    },
    settle: (entry, status, by, outcome) => {
      leave(entry, status, by)
      entry.resume(outcome)
    },
    open: () => [...entries.values()].filter(({ place }) => place !== "waiting").map(({ request }) => request),
    close: () => {
      closed = true
      // Nobody enters the lane any more when others leave it.
      line.clear()
      for (const entry of [...entries.values()]) {
        leave(entry, "cancelled", id)
        // This was nobody's decision: others may still answer, so it names no author.
        entry.resume(Exit.fail(new InteractionCancelled({ requestId: entry.request.requestId })))
      }
      wake()
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Ended = Extract<Dialog, { readonly _tag: "Closed" }>

const fewReaders = 16

/** How many requests that were settled elsewhere are remembered, each with the asker to tell. */
const mostEnds = 128

const unwatched: Watch = { shown: () => Effect.void, left: () => undefined }

/** The dialogs to take, in order. An ended entry is skipped in its turn: finding it sooner costs more than the rest. */
class Lane {
  private items: Array<Entry | Ended | undefined> = []
  private taken = 0
  private gone = 0

  /** How many dialogs there are to take. */
  get size(): number {
    return this.items.length - this.taken - this.gone
  }

  add(item: Entry | Ended): void {
    this.items.push(item)
  }

  take(): Entry | Ended | undefined {
    while (this.taken < this.items.length) {
      const next = this.items[this.taken]
      this.items[this.taken++] = undefined
      if (isThere(next)) {
        this.clearAway(this.taken)
        return next
      }
      this.gone--
    }
    return undefined
  }

  /** Counts an entry that has ended. */
  skip(): void {
    this.gone++
    this.clearAway(this.taken + this.gone)
  }

  // It clears when half of them are useless, so that each clearing moves at most one entry for every one it removes.
  private clearAway(useless: number): void {
    if (useless < 32 || useless * 2 < this.items.length) return
    this.items = this.items.filter(isThere)
    this.taken = 0
    this.gone = 0
  }
}

const isThere = (item: Entry | Ended | undefined): item is Entry | Ended =>
  item !== undefined && ("_tag" in item || item.place !== "gone")
