/** Errors of the host, its stores and its agents as errors of the API. */
import * as Effect from "effect/Effect"
import type { Holder } from "../journal/StoreError.js"
import * as Api from "./Api.js"

/** What every endpoint may fail with. */
export type Refusal =
  Api.BadRequest | Api.Forbidden | Api.NotFound | Api.Conflict | Api.Unprocessable | Api.Unavailable | Api.ServerFailed

/** An error with a sentence for a person. */
export interface Known {
  readonly _tag: string
  readonly message: string
  readonly problem?: string | undefined
  readonly holder?: Holder | undefined
  readonly unwritten?: boolean | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The same, failing with an error of the API. */
export const of = <A, E extends Known, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Refusal, R> =>
  Effect.mapError(effect, (error) => make(error))

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** What is not listed is the server's fault. */
export const make = (error: Known): Refusal => {
  const { _tag, holder, message, problem, unwritten } = error
  if (_tag === "WorkspaceRefused" && problem !== "relative" && problem !== "noDirectory") {
    return new Api.Forbidden({ message })
  }
  switch (_tag) {
    case "BadRequest":
    case "WorkspaceRefused":
    case "SessionIdInvalid":
    case "MessageBlank":
      return new Api.BadRequest({ message })
    case "SessionUnknown":
    case "AgentUnknown":
      return new Api.NotFound({ message })
    case "SessionLocked":
    case "SessionTakenOver":
    case "SessionElsewhere":
    case "SessionRunning":
    case "MessageDiffers":
    case "ToolCallNotRunning":
      return new Api.Conflict({ message, ...(holder === undefined ? {} : { holder }) })
    case "ModelRefused":
    case "AnswerRefused":
    case "MalformedAnswer":
    case "InputRefused":
    case "CompactionFailed":
    case "PatternRefused":
    case "PositionUnknown":
    case "TrustRefused":
      return new Api.Unprocessable({ message })
    case "VoteRefused":
      return unwritten === true ? new Api.Unavailable({ message }) : new Api.Unprocessable({ message })
    case "StoreUnusable":
      return problem === "unavailable" ? new Api.Unavailable({ message }) : new Api.ServerFailed({ message })
    case "HostClosed":
    case "AgentStopped":
      return new Api.Unavailable({ message })
    default:
      return new Api.ServerFailed({ message })
  }
}
