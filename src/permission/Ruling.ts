/** What the rules say about a call at this moment: in the gate, and for a call that nobody has made. */
import type { Origin } from "../core/Origin.js"
import { askAgain, ownQuestion, type CheckState } from "./CheckState.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import type * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import * as PlanMode from "./PlanMode.js"

export interface Rules {
  readonly policy: CompiledPolicy.Policy
  readonly state: PermissionState
}

/** A call to which no guard and no approval objects, and who makes it. */
export interface Called extends Pick<CheckState, "entry" | "own" | "warnings"> {
  readonly check: { readonly origin: Pick<Origin, "depth" | "sessionId"> }
}

/** A guard's question turns what rules allow into a question. */
export const evaluate = ({ policy, state }: Rules, now: Called, subject: PermissionRule.Subject): Decision => {
  const { check, entry, own, warnings } = now
  const planned = PlanMode.ruled(policy, state, now, subject)
  if (planned !== undefined) return planned
  const decision = state.evaluate(policy, subject, entry, check.origin.sessionId)
  if (decision.decision !== "allow") return decision
  // The person wanted other arguments, so no later rule allows the present ones.
  if (warnings.length > 0) return askAgain
  if (own === undefined) return decision
  return (own.coveredBy === "all" ? state.blanket : undefined) ?? ownQuestion
}
