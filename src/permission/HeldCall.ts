/**
 * A call that is allowed and waits for room. Meanwhile a person may take back what allowed it, and calls before it may change
 * links: the rules are asked again, before the guards look at it as at every call. The same goes for a call that was asked
 * about: a dialog may be open for long.
 */
import * as Effect from "effect/Effect"
import * as Region from "../core/Region.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Approvals from "./Approvals.js"
import { allowedOf, type CheckState } from "./CheckState.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as PermissionCheck from "./PermissionCheck.js"
import type * as PermissionRule from "./PermissionRule.js"
import type { PermissionState } from "./PermissionState.js"
import * as Ruling from "./Ruling.js"
import type { Resolution, Verdict } from "./Verdict.js"

/** What this needs of a gate. */
export interface Gate {
  readonly options: { readonly policy: CompiledPolicy.Policy; readonly state: PermissionState }
  readonly run: (now: CheckState, resolution: Resolution) => Effect.Effect<Verdict>
  readonly deny: (now: CheckState, resolution: Resolution) => Effect.Effect<Verdict>
}

/**
 * What allowed a call, which says what has to hold when it runs.
 *
 * - `rule`: a rule, or a mode or suspension that holds where no rule says otherwise. It still has to.
 * - `answer`: an answer to a question. No list may deny it by now, as none did when it was asked.
 * - `authority`: a stage or an envelope, which come before the lists.
 *
 * Where it leads to something by now that is reserved, those who voted for it have to be those for whom it is.
 */
export type AllowedBy = "rule" | "answer" | "authority"

/** What a rule allows runs at once. */
export const allow = (gate: Gate, now: CheckState, resolution: Resolution, by: AllowedBy): Effect.Effect<Verdict> => {
  if (now.held) return Effect.succeed(make(gate, now, resolution, by))
  return by === "answer" || resolution.requestId !== undefined
    ? unlessTakenBack(gate, now, resolution, by, (now) => gate.run(now, resolution))
    : gate.run(now, resolution)
}

const make = (gate: Gate, now: CheckState, resolution: Resolution, by: AllowedBy): Verdict => {
  const { check } = now
  const settle = Effect.withFiberRuntime<Verdict>((fiber, status) => {
    check.moveTo(fiber, status.runtimeFlags)
    const again = { ...now, held: false }
    const run = (now: CheckState) => gate.run(now, resolution)
    return Effect.uninterruptible(Region.once(check.step(() => unlessTakenBack(gate, again, resolution, by, run))))
  })
  const breakOff = Effect.suspend(() =>
    check.resolved === undefined ? Effect.asVoid(check.breakOff(PermissionCheck.cancelled)) : Effect.void
  )
  return allowedOf(now, { settle, breakOff, leave: () => check.leave(), writeLeft: check.writeLeft })
}

/**
 * Asks the rules once more about a call that was allowed, and continues if it may run. A person answered for the places
 * that were shown. A rule or an authority answers for the places of this look.
 */
export const unlessTakenBack = (
  gate: Gate,
  now: CheckState,
  resolution: Omit<Resolution, "granted" | "method" | "reason">,
  by: AllowedBy,
  next: (now: CheckState) => Effect.Effect<Verdict>
): Effect.Effect<Verdict> => {
  const { policy, state } = gate.options
  const judged = (subject: PermissionRule.Subject) =>
    holds(gate.options, now, subject, by, resolution.voters)
      ? next(subject.call.places === undefined ? now : { ...now, paths: subject.call.places })
      : gate.deny(now, { ...resolution, granted: false, method: "guard", reason: elsewhere })
  const subject = CompiledPolicy.subject(policy, now.entry, now.call.params)
  const led = CompiledPolicy.led(policy, state, subject)
  return led === undefined ? judged(subject) : now.check.after(led, judged)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const holds = (
  { policy, state }: Gate["options"],
  now: CheckState,
  subject: PermissionRule.Subject,
  by: AllowedBy,
  voters: ReadonlyArray<Ballot.Voter> = []
): boolean => {
  if (by === "answer" && now.paths !== undefined && !ResolvedPath.areSamePlaces(now.paths, subject.call.places))
    return false
  const needs = policy.approvals && Approvals.needsOf(policy.approvals, subject)
  if (needs !== undefined && !Ballot.suffices(needs, voters)) return false
  if (by === "authority") return true
  const { decision } = Ruling.evaluate({ policy, state }, now, subject)
  if (by === "rule") return decision === "allow"
  return decision !== "deny" || state.denial(policy, subject) === undefined
}

/** Why a call that was allowed does not run. */
export const elsewhere = "what allowed it does not hold any more, now that it would run; propose the call again"
