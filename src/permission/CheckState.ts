/** One call on its way through the gate: what is known of it so far, and its resolution. */
import * as Option from "effect/Option"
import type { ResolvedPaths } from "../core/ResolvedPath.js"
import type * as Ballot from "../interaction/Ballot.js"
import type { Authority, Proposal } from "./Authority.js"
import type * as PermissionCheck from "./PermissionCheck.js"
import type * as Guard from "./Guard.js"
import type { Decision } from "./PermissionState.js"
import { denied, type Allowed, type Resolution, type Verdict } from "./Verdict.js"

/** Edited arguments make a new one. */
export interface CheckState extends Proposal {
  readonly authority: Authority | undefined
  readonly edited: boolean
  /** Shown with the next question. */
  readonly warnings: ReadonlyArray<string>
  /** The questions that guards want to be asked about it. */
  readonly own: Guard.Ask | undefined
  readonly edits: number
  /** Votes on exactly these arguments, which those people wanted in place of others. */
  readonly votes?: ReadonlyArray<Ballot.Cast> | undefined
  /** Where the paths of the call led when it was decided. */
  readonly paths?: ResolvedPaths | undefined
  /** The call has to wait before it runs; the guards look at it once more after that. */
  readonly held: boolean
  /** Shared by all rounds of a call. */
  readonly check: PermissionCheck.PermissionCheck
}

/** The part of a call at which guards look just before it runs. */
export interface LookedAt extends Pick<CheckState, "entry" | "own"> {
  readonly call: Pick<CheckState["call"], "params">
}

/** What that look found: where the paths lead now, and the reason to refuse the call. */
export interface LastLook {
  readonly paths: ResolvedPaths | undefined
  readonly reason: string | undefined
}

export const noWarnings: ReadonlyArray<string> = []

/** The rules' decision for a call whose arguments are being edited. */
export const askAgain: Decision = { decision: "ask", method: "default", rule: "the arguments are being edited" }

/** The rules' decision for a call that a guard wants to be asked about. */
export const ownQuestion: Decision = { decision: "ask", method: "default", rule: "a guard wants it asked" }

/** Whether the known resolution ends the call's way through the gate. */
export const decides = (now: CheckState, known: Option.Option<Resolution>): known is Option.Some<Resolution> =>
  Option.isSome(known) && (now.own === undefined || !known.value.granted)

/** Members are added one by one: behind a spread, they would give every verdict a shape of its own. */
export const allowedOf = ({ call, edited, own, params, paths }: CheckState, pending?: Allowed["pending"]): Allowed => {
  const allowed: { -readonly [K in keyof Allowed]: Allowed[K] } = {
    _tag: "Allowed",
    params,
    encoded: call.params,
    edited
  }
  if (own !== undefined) allowed.answered = own
  if (paths !== undefined) allowed.paths = paths
  if (pending !== undefined) allowed.pending = pending
  return allowed
}

export const verdictOf = (now: CheckState, resolution: Resolution): Verdict =>
  resolution.granted ? allowedOf(now) : denied(resolution)
