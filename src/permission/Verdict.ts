/** How a call was decided, for the record, and what comes of it, for whoever wanted to make the call. */
import type * as Effect from "effect/Effect"
import type { RequestId } from "../core/Id.js"
import type * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { ApproveAnswer } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as Guard from "./Guard.js"

/** The call may run, with these arguments, which an approver may have edited. */
export interface Allowed {
  readonly _tag: "Allowed"
  /** Decoded, for the handler. */
  readonly params: unknown
  /** As written, for guards and the record. */
  readonly encoded: unknown
  readonly edited: boolean
  /** What was asked about exactly these arguments for a guard, when one wanted that. */
  readonly answered?: Guard.Ask
  /** Present for a call that has to wait before it runs: nothing is decided until this is settled. */
  readonly pending?: Pending
}

/** A call that is allowed unless a guard objects once it is to run. */
export interface Pending {
  /** The last look of the guards, just before it runs. */
  readonly settle: Effect.Effect<Verdict>
  /** It does not run after all. Does nothing once it is settled. */
  readonly breakOff: Effect.Effect<void>
  /** The same at once, where breaking off does not end. */
  readonly leave: () => void
  /** Writes down that it was left; nothing when its end is written, or being written. */
  readonly writeLeft: Effect.Effect<void>
}

/** The call must not run; `text` is what the model gets to see. */
export interface Denied {
  readonly _tag: "Denied"
  readonly outcome: "denied" | "invalid"
  readonly text: string
  /** Whoever was asked said no, which is an answer and no mistake of the model's. */
  readonly refused?: boolean
}

/** What comes of a call: it runs, or it does not and the model is told why. */
export type Verdict = Allowed | Denied

/** How a call was decided. */
export interface Resolution {
  readonly granted: boolean
  readonly method: AgentEvent.PermissionMethod
  /** The rule or sentence that decided. */
  readonly reason: string
  /** Present when somebody was asked. */
  readonly requestId?: RequestId
  /** Who answered, when somebody did. */
  readonly by?: string
  /** Whether they answered, or a rule did in their place; for the record. */
  readonly how?: Interactor.How
  /** Milliseconds since the epoch, when somebody was asked; for the record. */
  readonly askedAt?: number
  /** How a command that was allowed runs: in a sandbox, outside of the one there is, or with none to be had. */
  readonly sandbox?: ToolRegistry.RunsHow
}

/** What a yes or no comes to. */
export const answered = (
  answer: Exclude<ApproveAnswer, { readonly decision: "edit" }>,
  by: string,
  how: Interactor.How
): Pick<Resolution, "granted" | "method" | "reason"> => {
  if (answer.decision === "allow") {
    const method = how === "timeout" || how === "yolo" ? how : "user_approved"
    const reason = method === "user_approved" ? `allowed (${answer.scope}) by ${by}` : `allowed by ${method}`
    return { granted: true, method, reason }
  }
  if (answer.comment !== undefined) return { granted: false, method: "user_comment", reason: answer.comment }
  return { granted: false, method: "user_denied", reason: `${by === "console" ? "the user" : by} said no` }
}

/** The method to report when a question about a call ended without an answer. */
export const unanswered = (error: InteractionError): "cancelled" | "timeout" | "unavailable" | "no_channel" => {
  switch (error._tag) {
    case "InteractionCancelled":
      return "cancelled"
    case "InteractionTimedOut":
      return "timeout"
    case "NoInteractor":
      return "no_channel"
    case "InteractorUnavailable":
      return "unavailable"
  }
}

/** Whether somebody who was asked said no. */
export const isRefusal = ({ method }: Pick<Resolution, "method">): boolean =>
  method === "user_denied" || method === "user_comment"

/** What the model is told of a denial. */
export const denied = (resolution: Resolution): Denied => {
  const verdict = { _tag: "Denied", outcome: "denied", text: denialOf(resolution) } as const
  return isRefusal(resolution) ? { ...verdict, refused: true } : verdict
}

/** The span of a check. `resolution` is asked at its end: how the call was decided, if it was. */
export const spanOf = (call: ToolCall, resolution: () => Resolution | undefined): Spans.Opening<Verdict, never> => ({
  name: "assent.permission",
  attributes: { "gen_ai.tool.name": call.name },
  ended: () => {
    const { by, granted, method, requestId } = resolution() ?? {}
    return {
      "assent.permission.granted": granted,
      "assent.permission.method": method,
      "assent.permission.by": by,
      "assent.request.id": requestId
    }
  }
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What the model gets to see. */
const denialOf = ({ by, how, method, reason }: Omit<Resolution, "granted">): string => {
  if (method === "check_failed") return reason
  if (method !== "user_comment") return `Permission denied: ${reason}`
  // Who is not a person does not speak as the user.
  return how === "model"
    ? `Tool not executed. Comment of ${by}: ${reason}`
    : `Tool not executed. User comment: ${reason}`
}
