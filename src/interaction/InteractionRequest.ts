/** The envelope around an interaction: who asks, under which id, since when. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { CorrelationId, IdGenerator, RequestId, SessionId } from "../core/Id.js"
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
  Effect.map(
    Effect.zip(Effect.zip(Origin.current, IdGenerator), Effect.zip(Clock.currentTimeMillis, Reopened)),
    ([[origin, ids], [now, reopened]]) => {
      const { toolCallId } = origin
      const open = toolCallId === undefined ? undefined : reopened?.take(toolCallId, interaction._tag)
      return {
        requestId: open?.requestId ?? (ids.unsafeNext("req") as RequestId),
        correlationId: origin.correlationId ?? ("none" as CorrelationId),
        sessionId: origin.sessionId,
        agentPath: origin.agent,
        issuedAt: open?.issuedAt ?? now,
        ...(origin.parentSessionId === undefined ? {} : { parentSessionId: origin.parentSessionId }),
        ...(origin.subagentId === undefined ? {} : { subagentId: origin.subagentId }),
        interaction
      }
    }
  )

const encodeRequest = Schema.encodeSync(InteractionRequest)

/** The request as JSON-like data, for queues to other processes, files and webhooks. */
export const encode = (request: InteractionRequest): typeof InteractionRequest.Encoded => encodeRequest(request)
