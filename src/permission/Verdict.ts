/** How a call was decided, for the record, and the result for the caller. */
import type * as Effect from "effect/Effect"
import type { RequestId } from "../core/Id.js"
import type { Privileges } from "../core/Origin.js"
import type { ResolvedPaths } from "../core/ResolvedPath.js"
import type * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as Ballot from "../interaction/Ballot.js"
import type { ApproveAnswer, Voted } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as Guard from "./Guard.js"

/**
 * The call may run, with these arguments, which an approver may have edited.
 *
 * @since 0.1.0
 * @category models
 */
export interface Allowed {
  readonly _tag: "Allowed"
  /** Decoded, for the handler. */
  readonly params: unknown
  /** As written, for guards and the record. */
  readonly encoded: unknown
  readonly edited: boolean
  /** The guards' question about exactly these arguments that was answered, if there was one. */
  readonly answered?: Guard.Ask
  /**
   * A person allowed it, and the journal has that: nothing but a person or the end of the process stops it now.
   *
   * @internal
   */
  readonly byPerson?: boolean
  /**
   * Where its paths led when it was decided.
   *
   * @internal
   */
  readonly paths?: ResolvedPaths
  /**
   * What the command of the call may do.
   *
   * @internal
   */
  readonly privileges?: Privileges
  /**
   * What the call goes on with that another process began.
   *
   * @internal
   */
  readonly continuation?: string
  /** Present for a call that has to wait before it runs: nothing is decided until it is settled. */
  readonly pending?: Pending
}

/**
 * A call that is allowed unless a guard objects when it is about to run.
 *
 * @since 0.1.0
 * @category models
 */
export interface Pending {
  /** The last look of the guards, just before it runs. */
  readonly settle: Effect.Effect<Verdict>
  /** The call does not run after all. Does nothing once it is settled. */
  readonly breakOff: Effect.Effect<void>
  /** The same at once, for a {@link breakOff} that does not end in time. */
  readonly leave: () => void
  /** Records that it was abandoned; nothing when its end is recorded, or being recorded. */
  readonly writeLeft: Effect.Effect<void>
}

/**
 * What a journal says of a call that another process allowed.
 *
 * @internal
 */
export interface Past extends Allowed {
  /** How it was allowed. Undefined: it had begun, and only goes on. */
  readonly decided:
    | {
        readonly method: Resolution["method"]
        readonly how?: Resolution["how"] | undefined
        readonly voters?: Resolution["voters"] | undefined
      }
    | undefined
}

/**
 * The call must not run; `text` is the sentence for the model.
 *
 * @since 0.1.0
 * @category models
 */
export interface Denied {
  readonly _tag: "Denied"
  readonly outcome: "denied" | "invalid"
  readonly text: string
  /** A person refused, which is an answer and no mistake of the model. */
  readonly refused?: boolean
}

/**
 * What comes of a call: it runs, or it does not and the model is told why.
 *
 * @since 0.1.0
 * @category models
 */
export type Verdict = Allowed | Denied

/**
 * How a call was decided.
 *
 * @since 0.1.0
 * @category models
 */
export interface Resolution {
  readonly granted: boolean
  readonly method: AgentEvent.PermissionMethod
  /** The rule or sentence that decided. */
  readonly reason: string
  /** Present when somebody was asked. */
  readonly requestId?: RequestId
  /** Who answered, when somebody did. */
  readonly by?: string
  /** Whether that person answered, or a rule did in their place; for the record. */
  readonly how?: Interactor.How
  /** Present where several had to agree: what each of them said. */
  readonly votes?: ReadonlyArray<Voted>
  /**
   * Who allowed exactly this call, where it was reserved.
   *
   * @internal
   */
  readonly voters?: ReadonlyArray<Ballot.Voter>
  /** Milliseconds since the epoch, when somebody was asked; for the record. */
  readonly askedAt?: number
  /** Milliseconds since the epoch, when an earlier process had the answer; for the record. */
  readonly answeredAt?: number | undefined
  /** How an allowed command runs: in a sandbox, with the network or not, outside of an available one, or with none available. */
  readonly sandbox?: ToolRegistry.RunsHow
  /**
   * The command was allowed only because it reads.
   *
   * @internal
   */
  readonly reading?: true | undefined
}

/** Who was asked about a call, and when. */
export type Asked = Pick<Resolution, "requestId" | "askedAt" | "answeredAt" | "by" | "how">

/** The resolution that a yes or no leads to. */
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

/**
 * The method to report when a question about a call ended without an answer.
 *
 * @since 0.1.0
 * @category getters
 */
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

/** Who withdrew a question about a call, and when, if a person did. */
export const withdrawnBy = (error: InteractionError): Pick<Resolution, "answeredAt" | "by"> =>
  error._tag === "InteractionCancelled" && error.by !== undefined ? { answeredAt: error.at, by: error.by } : {}

/**
 * Whether a person who was asked refused.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isRefusal = ({ method }: Pick<Resolution, "method">): boolean =>
  method === "user_denied" || method === "user_comment"

/** The call runs with these arguments, at these places. */
export const allowed = (
  call: {
    readonly call: { readonly params: unknown }
    readonly params: unknown
    readonly edited: boolean
    readonly own: Guard.Ask | undefined
  },
  places: ResolvedPaths | undefined,
  {
    byPerson = false,
    pending,
    privileges
  }: {
    readonly byPerson?: boolean
    readonly pending?: Pending
    readonly privileges?: Privileges | undefined
  } = {}
): Allowed => {
  // Members are added one by one: behind a spread, each verdict has a shape of its own.
  const verdict: { -readonly [K in keyof Allowed]: Allowed[K] } = {
    _tag: "Allowed",
    params: call.params,
    encoded: call.call.params,
    edited: call.edited
  }
  if (call.own !== undefined) verdict.answered = call.own
  if (places !== undefined) verdict.paths = places
  if (privileges !== undefined) verdict.privileges = privileges
  if (byPerson) verdict.byPerson = byPerson
  if (pending !== undefined) verdict.pending = pending
  return verdict
}

/** The sentence for the model about a denial. */
export const denied = (resolution: Resolution): Denied => {
  const verdict = { _tag: "Denied", outcome: "denied", text: denialOf(resolution) } as const
  return isRefusal(resolution) ? { ...verdict, refused: true } : verdict
}

/** What the span of a check shows at its end. */
export const spanEnd = ({ by, granted, method, requestId }: Partial<Resolution> = {}): Spans.Attributes => ({
  "assent.permission.granted": granted,
  "assent.permission.method": method,
  "assent.permission.by": by,
  "assent.request.id": requestId
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The sentence that the model gets. */
const denialOf = ({ by, how, method, reason }: Omit<Resolution, "granted">): string => {
  if (method === "check_failed") return reason
  if (method !== "user_comment") return `Permission denied: ${reason}`
  // Only a person speaks as the user.
  return how === "model"
    ? `Tool not executed. Comment of ${by}: ${reason}`
    : `Tool not executed. User comment: ${reason}`
}
