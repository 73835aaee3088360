/**
 * An interactor for programs that show dialogs themselves: a terminal UI, a server, an editor, a test. Dialogs come out
 * of a bounded queue, answers go in by request id.
 *
 * The first answer wins. A request that ends before it was taken is never shown, and has no `Closed` either.
 *
 * ```ts
 * const channel = yield* QueueChannel.make()
 * yield* Stream.runForEach(channel.stream, (dialog) => draw(dialog)).pipe(Effect.forkScoped)
 * // later, when somebody typed something into the dialog of `requestId`
 * yield* channel.answerText(requestId, "y")
 * ```
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Answer, Interaction } from "../interaction/Interaction.js"
import {
  type AnswerRejected,
  type InteractionAlreadyAnswered,
  InteractionCancelled,
  type InteractionError,
  InteractionTimedOut,
  MalformedAnswer,
  type UnknownRequest
} from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as DialogQueue from "../interaction/DialogQueue.js"
import * as Interactor from "../interaction/Interactor.js"
import * as TypedAnswer from "../interaction/TypedAnswer.js"
import * as Deadlines from "./Deadlines.js"
import * as DialogDesk from "./DialogDesk.js"
import * as ProgramChannel from "./ProgramChannel.js"

/** What the reader is told, in order. */
export type Dialog = DialogDesk.Dialog
export const { Opened, Closed, is, match } = DialogDesk

export interface Service {
  /** Asks here. Waits while the queue is full; interrupting it closes the dialog. */
  readonly interactor: Interactor.Service
  /** The next dialog. Several readers share the queue. Interrupts once the channel's scope has closed and all is read. */
  readonly take: Effect.Effect<Dialog>
  /** All dialogs, in order, as many at a time as there are. Ends when the channel's scope has closed and all is read. */
  readonly stream: Stream.Stream<Dialog>
  /** Settles a request with an encoded answer. What does not decode is turned away and the request stays open. */
  readonly answer: (requestId: string, answer: unknown) => Effect.Effect<void, AnswerRejected>
  /** The same with what a person typed: see `TypedAnswer`. `cancel` withdraws where it can mean nothing else. */
  readonly answerText: (requestId: string, line: string) => Effect.Effect<void, AnswerRejected>
  /** Withdraws a request: whoever asked sees it cancelled. */
  readonly cancel: (requestId: string) => Effect.Effect<void, InteractionAlreadyAnswered | UnknownRequest>
  /** The requests that can be answered now, oldest first. */
  readonly open: Effect.Effect<ReadonlyArray<InteractionRequest>>
}

export interface Options {
  /** Default: `queue`. */
  readonly id?: string | undefined
  /** How many requests may wait to be taken before askers wait. At least 1; default: 16. */
  readonly capacity?: number | undefined
  /** Default: one dialog at a time. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /** Default: 30 seconds for permission, 60 seconds for each question. */
  readonly timeouts?: Interactor.Timeouts | undefined
}

/** The queue that programs read and answer. */
export class QueueChannel extends Context.Tag("assent/channel/QueueChannel")<QueueChannel, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Opens a channel. Closing the scope cancels everything that is open and ends the dialogs. */
export const make = (options: Options = {}): Effect.Effect<Service, never, Scope.Scope> => {
  const id = options.id ?? "queue"
  return Effect.map(
    Effect.acquireRelease(
      Effect.map(Effect.scope, (scope) => {
        const deadlines = Deadlines.make<InteractionRequest>(scope)
        return { deadlines, desk: DialogDesk.make(id, options.capacity ?? 16, deadlines.clear) }
      }),
      ({ desk }) => Effect.sync(desk.close)
    ),
    ({ deadlines, desk }): Service => {
      const line = options.dialogs === "unbounded" ? undefined : DialogQueue.make()
      const timeouts = options.timeouts ?? ProgramChannel.defaultTimeouts
      return {
        interactor: new QueueInteractor(desk, deadlines, id, timeouts, line),
        take: desk.take,
        stream: Stream.repeatEffectChunkOption(desk.takeAll),
        answer: (requestId, answer) =>
          withOpen(desk, requestId, (entry) =>
            settle(desk, id, entry, TypedAnswer.decode(entry.request.interaction, answer))
          ),
        answerText: (requestId, line) =>
          withOpen(desk, requestId, (entry) =>
            TypedAnswer.isCancel(entry.request.interaction, line)
              ? withdraw(desk, id, entry)
              : settle(desk, id, entry, TypedAnswer.parse(entry.request.interaction, line))
          ),
        cancel: (requestId) => withOpen(desk, requestId, (entry) => withdraw(desk, id, entry)),
        open: Effect.sync(desk.open)
      }
    }
  )
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** The channel, and the same as the interactor to ask. */
export const layer = (options?: Options): Layer.Layer<QueueChannel | Interactor.Interactor> =>
  Layer.scopedContext(
    Effect.map(make(options), (channel) =>
      Context.make(QueueChannel, channel).pipe(Context.add(Interactor.Interactor, channel.interactor))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class QueueInteractor implements Interactor.Service {
  readonly relay = false

  constructor(
    private readonly desk: DialogDesk.DialogDesk,
    private readonly deadlines: Deadlines.Deadlines<InteractionRequest>,
    readonly id: string,
    private readonly timeouts: Interactor.Timeouts,
    /** Where requests wait for each other when one dialog is shown at a time. */
    private readonly line: DialogQueue.DialogQueue | undefined
  ) {}

  readonly request = <I extends Interaction>(
    request: InteractionRequest<I>,
    options?: Interactor.Options<I>
  ): Effect.Effect<Interactor.Answered<I>, InteractionError> => {
    const limited = Effect.withFiberRuntime((fiber) => this.limited(request, fiber))
    // An entry is settled with an answer that was decoded by its own request's kind.
    const asked = Effect.zipRight(limited, this.desk.ask(request)) as Effect.Effect<
      Interactor.Answered<I>,
      InteractionError
    >
    const rechecked = Interactor.rechecked(options, asked)
    return this.line === undefined ? rechecked : this.line.hold(rechecked)
  }

  // Not a field, as `request` is: a copy of this interactor that asks in another way must not have it.
  post(
    request: InteractionRequest,
    settle: Interactor.Settle,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ): Effect.Effect<(() => void) | undefined> {
    const { line } = this
    // Whoever waits in line asks again for what is known when its turn comes, and that takes a fiber.
    if (line?.tryEnter() === false) return Effect.succeed(undefined)
    const limited = this.limited(request, fiber)
    const posted = () =>
      Effect.succeed(line === undefined ? this.desk.post(request, settle) : this.inTurn(line, request, settle))
    return limited === Effect.void ? posted() : Effect.flatMap(limited, posted)
  }

  /** Leaves the line in the step in which the request ends. */
  private inTurn(line: DialogQueue.DialogQueue, request: InteractionRequest, settle: Interactor.Settle): () => void {
    let isHeld = true
    const leave = () => {
      if (isHeld) line.leave()
      isHeld = false
    }
    const withdraw = this.desk.post(request, (exit) => {
      leave()
      settle(exit)
    })
    return () => {
      withdraw()
      leave()
    }
  }

  /** Yields `Effect.void` itself when nothing is to be waited for. */
  private limited(request: InteractionRequest, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<void> {
    const { deadlines, desk, id, timeouts } = this
    const limit = Interactor.millisOf(request.interaction, timeouts)
    if (limit === undefined) return Effect.void
    const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    return deadlines.unsafeSet(request, limit, () => expire(desk, id, request, limit, timeouts.onTimeout), clock)
  }
}

/** Settles the request when its time is up. An answer that came first has removed the entry, and then this does nothing. */
const expire = (
  desk: DialogDesk.DialogDesk,
  id: string,
  request: InteractionRequest,
  /** Milliseconds. */
  limit: number,
  onTimeout: Interactor.Timeouts["onTimeout"]
): void => {
  const entry = desk.find(request.requestId)
  if (entry?.request !== request) return
  const allow = onTimeout === "allow" && request.interaction._tag === "Approve"
  desk.settle(
    entry,
    "timed_out",
    id,
    allow
      ? Exit.succeed({ answer: { decision: "allow", scope: "once" }, by: id, how: "timeout" } as const)
      : Exit.fail(new InteractionTimedOut({ requestId: request.requestId, by: id, after: limit }))
  )
}

/** A request that waits for room in the lane has not been shown to anybody, so it cannot be answered yet. */
const withOpen = <E>(
  desk: DialogDesk.DialogDesk,
  requestId: string,
  use: (entry: DialogDesk.Entry) => Effect.Effect<void, E>
): Effect.Effect<void, E | InteractionAlreadyAnswered | UnknownRequest> =>
  Effect.suspend((): Effect.Effect<void, E | InteractionAlreadyAnswered | UnknownRequest> => {
    const entry = desk.find(requestId)
    return entry === undefined || entry.place === "waiting" ? Effect.fail(desk.rejection(requestId)) : use(entry)
  })

const settle = (
  desk: DialogDesk.DialogDesk,
  id: string,
  entry: DialogDesk.Entry,
  parsed: Either.Either<Answer<Interaction>, string>
): Effect.Effect<void, MalformedAnswer> => {
  const { interaction, requestId } = entry.request
  if (Either.isLeft(parsed)) return new MalformedAnswer({ requestId, kind: interaction._tag, reason: parsed.left })
  desk.settle(entry, "answered", id, Exit.succeed({ answer: parsed.right, by: id, how: "answered" }))
  return Effect.void
}

const withdraw = (desk: DialogDesk.DialogDesk, id: string, entry: DialogDesk.Entry): Effect.Effect<void> => {
  desk.settle(
    entry,
    "cancelled",
    id,
    Exit.fail(new InteractionCancelled({ requestId: entry.request.requestId, by: id }))
  )
  return Effect.void
}
