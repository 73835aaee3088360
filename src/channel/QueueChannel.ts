/**
 * An interactor for programs that show dialogs themselves: a terminal UI, a server, an editor, a test. Dialogs come out
 * of a bounded queue, answers go in by request id.
 *
 * The first answer wins. A request that ends before it was taken is never shown, and has no `Closed` either.
 *
 * @example
 * ```ts
 * import { QueueChannel } from "assent"
 * import { Effect, Stream } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const channel = yield* QueueChannel.make()
 *   yield* channel.stream.pipe(
 *     Stream.runForEach((dialog) =>
 *       dialog._tag === "Opened" ? channel.answerText(dialog.request.requestId, "y") : Effect.void
 *     ),
 *     Effect.forkScoped
 *   )
 *   return channel.interactor
 * })
 * ```
 *
 * @since 0.1.0
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
import type * as Field from "../interaction/Field.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import * as Form from "../interaction/Form.js"
import { type Answer, type Interaction, isKind } from "../interaction/Interaction.js"
import {
  type AnswerRejected,
  type InteractionAlreadyAnswered,
  InteractionCancelled,
  type InteractionError,
  InteractionTimedOut,
  MalformedAnswer,
  type UnknownRequest,
  VoteRefused
} from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as FairLock from "../internal/FairLock.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Interactor from "../interaction/Interactor.js"
import * as TypedAnswer from "../interaction/TypedAnswer.js"
import * as Deadlines from "./Deadlines.js"
import * as DialogTable from "./DialogTable.js"
import * as RemoteInteractor from "./RemoteInteractor.js"

export { Closed, type Dialog, is, match, Opened, type Status } from "./DialogTable.js"

/**
 * Dialogs go out in order, answers come in by request id.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** The interactor that asks here. It waits while the queue is full; interrupting it closes the dialog. */
  readonly interactor: Interactor.Service
  /** The next dialog. Several readers share the queue. Interrupts once the channel's scope has closed and all is read. */
  readonly take: Effect.Effect<DialogTable.Dialog>
  /** All dialogs, in order, as many at a time as there are. Ends when the channel's scope has closed and all is read. */
  readonly stream: Stream.Stream<DialogTable.Dialog>
  /**
   * Settles a request with an encoded answer. If an answer does not decode, the channel rejects it and the request stays
   * open. `by` is the person whom the program has signed in, for events and audit, and where it matters who answers;
   * default: the channel's id. Where several have to agree, it files a vote, and returns when that is durable.
   */
  readonly answer: (requestId: string, answer: unknown, by?: string) => Effect.Effect<void, AnswerRejected>
  /** Like `answer`, with what a person typed: see `TypedAnswer`. `cancel` withdraws where it can mean nothing else. */
  readonly answerText: (requestId: string, line: string, by?: string) => Effect.Effect<void, AnswerRejected>
  /**
   * Like `answer`, with what was filled in where the reader shows the request as a form: see `Form.of`. A rejection says
   * what is wrong field by field.
   */
  readonly answerForm: (requestId: string, values: unknown, by?: string) => Effect.Effect<void, AnswerRejected>
  /** Withdraws a request: the asker sees it cancelled. */
  readonly cancel: (
    requestId: string,
    by?: string
  ) => Effect.Effect<void, InteractionAlreadyAnswered | UnknownRequest | VoteRefused>
  /** The requests that can be answered now, oldest first. */
  readonly open: Effect.Effect<ReadonlyArray<InteractionRequest>>
}

/**
 * The channel's id, how many dialogs may wait to be taken, and how long an answer may take.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Default: `queue`. */
  readonly id?: string | undefined
  /** How many requests may wait to be taken before askers wait. At least 1; default: 16. */
  readonly capacity?: number | undefined
  /** Default: one dialog at a time. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /**
   * The time counts from when a reader takes the request. Default: 30 seconds for permission, 60 seconds for each
   * question; a part that is not given keeps its default.
   */
  readonly timeouts?: Interactor.Timeouts | undefined
}

/**
 * The queue that programs read and answer.
 *
 * @since 0.1.0
 * @category services
 */
export class QueueChannel extends Context.Tag("assent/channel/QueueChannel")<QueueChannel, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Opens a channel. Closing the scope cancels everything that is open and ends the dialogs.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Service, never, Scope.Scope> => {
  const id = options.id ?? "queue"
  return Effect.map(
    Effect.acquireRelease(
      Effect.map(Effect.scope, (scope) => {
        const timeouts = Interactor.timeoutsOf(options.timeouts, RemoteInteractor.defaultTimeouts)
        const limits = new Limits(id, timeouts, Deadlines.make<InteractionRequest>(scope))
        const desk = DialogTable.make(id, options.capacity ?? 16, limits)
        limits.desk = desk
        return desk
      }),
      (desk) => Effect.sync(desk.close)
    ),
    (desk): Service => {
      const line = options.dialogs === "unbounded" ? undefined : FairLock.make()
      return {
        interactor: new QueueInteractor(desk, id, line),
        take: desk.take,
        stream: Stream.repeatEffectChunkOption(desk.takeAll),
        answer: (requestId, answer, by = id) =>
          withOpen(desk, requestId, by, (entry) =>
            settle(desk, by, entry, TypedAnswer.decode(entry.request.interaction, answer))
          ),
        answerText: (requestId, line, by = id) =>
          withOpen(desk, requestId, by, (entry) =>
            TypedAnswer.isCancel(entry.request.interaction, line)
              ? withdraw(desk, by, entry)
              : settle(desk, by, entry, TypedAnswer.parse(entry.request.interaction, line))
          ),
        answerForm: (requestId, values, by = id) =>
          withOpen(desk, requestId, by, (entry) => {
            const { interaction } = entry.request
            return Either.match(Form.decode(interaction, values), {
              onLeft: (problems): Effect.Effect<void, AnswerRejected> => misfitting(entry, interaction, problems),
              onRight: (answer) => settle(desk, by, entry, Either.right(answer))
            })
          }),
        cancel: (requestId, by = id) => withOpen(desk, requestId, by, (entry) => withdraw(desk, by, entry)),
        open: Effect.sync(desk.open)
      }
    }
  )
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The channel, which is also the interactor to ask.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: Options): Layer.Layer<QueueChannel | Interactor.Interactor> =>
  Layer.scopedContext(
    Effect.map(make(options), (channel) =>
      Context.make(QueueChannel, channel).pipe(Context.add(Interactor.Interactor, channel.interactor))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Ends dialogs that nobody answers in time. The clock starts when a reader takes the dialog, not before it is seen. */
class Limits implements DialogTable.Watch {
  desk: DialogTable.DialogTable | undefined

  constructor(
    private readonly id: string,
    private readonly timeouts: Interactor.Timeouts,
    private readonly deadlines: Deadlines.Deadlines<InteractionRequest>
  ) {}

  shown(request: InteractionRequest, fiber: Fiber.RuntimeFiber<unknown, unknown>): Effect.Effect<void> {
    const limit = Interactor.millisOf(request.interaction, this.timeouts)
    if (limit === undefined) return Effect.void
    const clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    return this.deadlines.unsafeSet(request, limit, () => this.expire(request, limit), clock)
  }

  left(request: InteractionRequest): void {
    this.deadlines.clear(request)
  }

  /** Does nothing when an answer came first, because that has removed the entry. */
  private expire(
    request: InteractionRequest,
    /** Milliseconds. */
    after: number
  ): void {
    const { desk, id, timeouts } = this
    const { interaction, requestId } = request
    const entry = desk?.find(requestId)
    if (desk === undefined || entry?.request !== request) return
    const allow = timeouts.onTimeout === "allow" && interaction._tag === "Approve"
    desk.settle(
      entry,
      "timed_out",
      id,
      allow
        ? Exit.succeed(InteractorCall.told({ answer: { decision: "allow", scope: "once" }, by: id, how: "timeout" }))
        : Exit.fail(new InteractionTimedOut({ requestId, by: id, after }))
    )
  }
}

class QueueInteractor implements Interactor.Service, InteractorCall.Posting {
  readonly relay = false

  constructor(
    private readonly desk: DialogTable.DialogTable,
    readonly id: string,
    /** Where requests wait for each other when one dialog is shown at a time. */
    private readonly line: FairLock.FairLock | undefined
  ) {
    InteractorCall.posting.bind(this.request, this)
  }

  readonly request = <I extends Interaction>(
    request: InteractionRequest<I>,
    options?: Interactor.Options<I>
  ): Effect.Effect<Interactor.Answered<I>, InteractionError> => {
    if (!isKind(request.interaction._tag)) return Effect.fail(Interactor.declined(this.id, request))
    // An entry is settled with an answer that its own request's kind has decoded.
    // So is what is given to `vote`.
    const vote = options?.vote as DialogTable.Voting | undefined
    const asked = this.desk.ask(request, options?.ended, vote) as Effect.Effect<
      Interactor.Answered<I>,
      InteractionError
    >
    const rechecked = Interactor.rechecked(options, asked)
    return this.line === undefined ? rechecked : this.line.hold(rechecked)
  }

  post(
    request: InteractionRequest,
    settle: InteractorCall.Settle,
    vote?: DialogTable.Voting
  ): ((ended?: Interactor.Ended) => void) | undefined {
    const { desk, line } = this
    if (line === undefined) return desk.post(request, settle, vote)
    // A request in line is rechecked when its turn comes, and that takes a fiber.
    if (!line.tryEnter()) return undefined
    let isHeld = true
    // It leaves the line in the step in which the request ends.
    const leave = () => {
      if (isHeld) line.leave()
      isHeld = false
    }
    const withdraw = desk.post(
      request,
      (exit) => {
        leave()
        settle(exit)
      },
      vote
    )
    return (ended) => {
      withdraw(ended)
      leave()
    }
  }
}

/** A request that waits for room in the lane has not been shown to anybody, so it cannot be answered yet. */
const withOpen = <E>(
  desk: DialogTable.DialogTable,
  requestId: string,
  by: string,
  use: (entry: DialogTable.Entry) => Effect.Effect<void, E>
): Effect.Effect<void, E | InteractionAlreadyAnswered | UnknownRequest> =>
  Effect.suspend((): Effect.Effect<void, E | InteractionAlreadyAnswered | UnknownRequest> => {
    const entry = desk.find(requestId)
    return entry === undefined || entry.place === "waiting" ? Effect.fail(desk.rejection(requestId, by)) : use(entry)
  })

const settle = (
  desk: DialogTable.DialogTable,
  by: string,
  entry: DialogTable.Entry,
  parsed: Either.Either<Answer<Interaction>, string>
): Effect.Effect<void, AnswerRejected> => {
  const { interaction, requestId } = entry.request
  if (Either.isLeft(parsed)) return new MalformedAnswer({ requestId, kind: interaction._tag, reason: parsed.left })
  if (entry.vote !== undefined) return Effect.asVoid(entry.vote({ answer: parsed.right, by }))
  desk.settle(entry, "answered", by, Exit.succeed({ answer: parsed.right, by, how: "answered" }))
  return Effect.void
}

const misfitting = (
  { request }: DialogTable.Entry,
  interaction: Interaction,
  problems: ReadonlyArray<Field.Problem>
): MalformedAnswer =>
  new MalformedAnswer({
    requestId: request.requestId,
    kind: interaction._tag,
    reason: Form.told(interaction, problems),
    problems
  })

const withdraw = (
  desk: DialogTable.DialogTable,
  by: string,
  entry: DialogTable.Entry
): Effect.Effect<void, VoteRefused> => {
  const { interaction, requestId } = entry.request
  const refused = Ballot.isReserved(interaction) ? Tally.refusal(interaction.needs, { by }) : undefined
  if (refused !== undefined) return new VoteRefused({ requestId, by, reason: refused })
  desk.settle(entry, "cancelled", by, Exit.fail(new InteractionCancelled({ requestId: entry.request.requestId, by })))
  return Effect.void
}
