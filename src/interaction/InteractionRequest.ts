/**
 * The envelope around an interaction: who asks, under which id, since when.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as Id from "../core/Id.js"
import { CorrelationId, RequestId, SessionId, type ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Form from "./Form.js"
import { Interaction } from "./Interaction.js"
import { ResumedRequests } from "./ResumedRequests.js"

/**
 * Where a call stands among the calls of its tool that the model proposed together. Requests with the same id may be shown
 * side by side; each is answered for itself.
 *
 * @since 0.1.0
 * @category schemas
 */
export const BatchPlace = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    /** The id of the first of these requests. */
    id: RequestId,
    /** 1-based. */
    index: Schema.Number,
    /** How many calls there are; some may be decided without a question. */
    of: Schema.Number
  })
)
export type BatchPlace = typeof BatchPlace.Type

/**
 * An interaction that an agent has asked, with who asks and where.
 *
 * @since 0.1.0
 * @category models
 */
export interface InteractionRequest<I extends Interaction = Interaction> {
  /** Unique; the only key for correlation. */
  readonly requestId: RequestId
  /** The turn that asks. */
  readonly correlationId: CorrelationId
  readonly sessionId: SessionId
  /** Such as `main/code_reviewer`. */
  readonly agentPath: string
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
  /** Present only when a child session asks. */
  readonly parentSessionId?: SessionId | undefined
  /** Present only when a child session asks. */
  readonly subagentId?: string | undefined
  /** Present only for an approval of one of several calls of a tool. It decides nothing. */
  readonly batch?: BatchPlace | undefined
  /** The other party that asks through a call, such as `the server github`. Every surface shows it. */
  readonly origin?: string | undefined
  /** Present when no other process asks it again: its answer counts only here. */
  readonly once?: true | undefined
  /** When the asker's own limit ends it, in milliseconds since the epoch. Another process that asks it again keeps to it. */
  readonly dueAt?: number | undefined
  readonly interaction: I
}

/**
 * The wire form of a request.
 *
 * @since 0.1.0
 * @category schemas
 */
export const InteractionRequest = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    requestId: RequestId,
    correlationId: CorrelationId,
    sessionId: SessionId,
    agentPath: Schema.String,
    issuedAt: Schema.Number,
    parentSessionId: Schema.optional(SessionId),
    subagentId: Schema.optional(Schema.String),
    batch: Schema.optional(BatchPlace),
    origin: Schema.optional(Schema.String),
    once: Schema.optional(Schema.Literal(true)),
    dueAt: Schema.optional(Schema.Number),
    interaction: Interaction
  })
)

/**
 * Wraps an interaction into an envelope that names the running fiber's origin.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <I extends Interaction>(interaction: I): Effect.Effect<InteractionRequest<I>> =>
  Effect.withFiberRuntime((fiber) => Effect.succeed(unsafeMake(interaction, fiber)))

/**
 * Like {@link make}, one step less, for callers that hold the asking fiber; `origin` stands in for the fiber's own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const unsafeMake = <I extends Interaction>(
  interaction: I,
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  origin: Origin.Origin = Origin.of(fiber)
): InteractionRequest<I> => {
  const context = fiber.currentContext
  const { agent, correlationId = noTurn, parentSessionId, sessionId, subagentId, toolCallId } = origin
  const open = Context.get(context, ResumedRequests)?.take(interaction, toolCallId)
  // A resumed question keeps its id, the time at which it was first asked and its limit.
  const { issuedAt, requestId } = open ?? {
    requestId: Id.request(Context.get(context, Id.IdGenerator)),
    issuedAt: Context.get(fiber.currentDefaultServices, Clock.Clock).unsafeCurrentTimeMillis()
  }
  const request: { -readonly [K in keyof InteractionRequest<I>]: InteractionRequest<I>[K] } = {
    requestId,
    correlationId,
    sessionId,
    agentPath: agent,
    issuedAt,
    interaction
  }
  if (parentSessionId !== undefined) request.parentSessionId = parentSessionId
  if (subagentId !== undefined) request.subagentId = subagentId
  if (origin.via !== undefined) request.origin = origin.via
  if (origin.once === true) request.once = true
  if (open?.dueAt) request.dueAt = open.dueAt
  if (open) resumed.add(request)
  return continuedBy(askedBy(request, toolCallId), origin.continuation)
}

/**
 * Whether no other process asks it again: its tool had begun and is not resumable, or no turn asks it.
 *
 * @internal
 */
export const isAskedOnce = ({ correlationId, once }: Pick<InteractionRequest, "correlationId" | "once">): boolean =>
  once === true || correlationId === noTurn

/**
 * Whether a former process raised it. The journal has it then, and it may have an answer that waits.
 *
 * @internal
 */
export const isResumed = (request: InteractionRequest): boolean => resumed.has(request)

/**
 * The same request, as one of a batch.
 *
 * @internal
 */
export const inBatch = <R extends InteractionRequest>(request: R, batch: BatchPlace): R =>
  marked({ ...request, batch }, request)

/**
 * The same request, which ends at this time.
 *
 * @internal
 */
export const until = <R extends InteractionRequest>(request: R, dueAt: number): R =>
  marked({ ...request, dueAt }, request)

/**
 * The call that asks, when one does. Only the journal needs it, so it is not in the envelope.
 *
 * @since 0.1.0
 * @category getters
 */
export const callOf = (request: InteractionRequest): ToolCallId | undefined =>
  calls.get(request) ?? namedBy(request.interaction)

/**
 * The same request, marked as asked by this call.
 *
 * @since 0.1.0
 * @category combinators
 */
export const askedBy = <R extends InteractionRequest>(request: R, toolCallId: ToolCallId | undefined): R => {
  // An entry here costs as much as the request. Most requests are about the very call that asks, and name it.
  if (toolCallId !== undefined && toolCallId !== namedBy(request.interaction)) calls.set(request, toolCallId)
  return request
}

/**
 * What the asking call needs to go on with the answer. Only the journal keeps it: nobody is shown it.
 *
 * @internal
 */
export const continuationOf = (request: InteractionRequest): string | undefined => continuations.get(request)

/**
 * The turn that asks; none for a request from outside of a turn.
 *
 * @internal
 */
export const turnOf = ({ correlationId }: InteractionRequest): CorrelationId | undefined =>
  correlationId === noTurn ? undefined : correlationId

/** The correlation id of a request that no turn asks. */
const noTurn = CorrelationId.make("none")

const namedBy = (interaction: Interaction): ToolCallId | undefined =>
  interaction._tag === "Approve" ? interaction.toolCallId : undefined

/** The same request, of a call that goes on with this. */
const continuedBy = <R extends InteractionRequest>(request: R, continuation: string | undefined): R => {
  if (continuation !== undefined) continuations.set(request, continuation)
  return request
}

/** With all that only the journal needs of the other one. */
const marked = <R extends InteractionRequest>(request: R, from: InteractionRequest): R => {
  if (isResumed(from)) resumed.add(request)
  return continuedBy(askedBy(request, callOf(from)), continuationOf(from))
}

const resumed = new WeakSet<InteractionRequest>()

const calls = new WeakMap<InteractionRequest, ToolCallId>()

const continuations = new WeakMap<InteractionRequest, string>()

const encodeRequest = Lazy.make(() => Schema.encodeSync(InteractionRequest))

/**
 * The request as JSON-like data, for queues to other processes, files and webhooks.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encode = (request: InteractionRequest): typeof InteractionRequest.Encoded => encodeRequest(request)

/**
 * Like {@link encode}, with the request's form beside the rest where it has one: for clients that know nothing of kinds.
 * They answer with what was filled in, as `form` in place of `answer`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const present = (
  request: InteractionRequest
): typeof InteractionRequest.Encoded & { readonly form?: Form.Form } => {
  const form = Form.of(request.interaction)
  return form === undefined ? encode(request) : { ...encode(request), form }
}
