/** The envelope around an interaction: who asks, under which id, since when. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { CorrelationId, IdGenerator, RequestId, SessionId, type ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import { Interaction } from "./Interaction.js"
import { Reopened } from "./Reopened.js"

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
  readonly interaction: I
}

/** The wire form of a request. */
export const InteractionRequest = Schema.Struct({
  requestId: RequestId,
  correlationId: CorrelationId,
  sessionId: SessionId,
  agentPath: Schema.String,
  issuedAt: Schema.Number,
  parentSessionId: Schema.optional(SessionId),
  subagentId: Schema.optional(Schema.String),
  interaction: Interaction
})

/** Wraps an interaction into an envelope that names the running fiber's origin. */
export const make = <I extends Interaction>(interaction: I): Effect.Effect<InteractionRequest<I>> =>
  Effect.flatMap(Origin.current, ({ agent, correlationId, parentSessionId, sessionId, subagentId, toolCallId }) =>
    Effect.flatMap(IdGenerator, (ids) =>
      Effect.flatMap(Reopened, (reopened) =>
        Effect.clockWith((clock) => {
          const open = reopened?.take(interaction, toolCallId)
          const request = {
            requestId: open?.requestId ?? (ids.unsafeNext("req") as RequestId),
            correlationId: correlationId ?? ("none" as CorrelationId),
            sessionId,
            agentPath: agent,
            issuedAt: open?.issuedAt ?? clock.unsafeCurrentTimeMillis(),
            ...(parentSessionId === undefined ? {} : { parentSessionId }),
            ...(subagentId === undefined ? {} : { subagentId }),
            interaction
          }
          return Effect.succeed(askedBy(request, toolCallId))
        })
      )
    )
  )

/** The call that asks, when one does. It is nobody's business but the journal's, and so not in the envelope. */
export const callOf = (request: InteractionRequest): ToolCallId | undefined => calls.get(request)

/** The same request, as that of this call. */
export const askedBy = <R extends InteractionRequest>(request: R, toolCallId: ToolCallId | undefined): R => {
  if (toolCallId !== undefined) calls.set(request, toolCallId)
  return request
}

const calls = new WeakMap<InteractionRequest, ToolCallId>()

const encodeRequest = Schema.encodeSync(InteractionRequest)

/** The request as JSON-like data, for queues to other processes, files and webhooks. */
export const encode = (request: InteractionRequest): typeof InteractionRequest.Encoded => encodeRequest(request)
