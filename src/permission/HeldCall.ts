/**
 * A call that is allowed and waits for room. Meanwhile a person may take back what allowed it, and calls before it may change
 * links: the rules are asked again, before the guards look at it as at every call.
 */
import * as Effect from "effect/Effect"
import * as Region from "../internal/Region.js"
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
  readonly allow: (now: CheckState, resolution: Resolution, by: AllowedBy) => Effect.Effect<Verdict>
  readonly deny: (now: CheckState, resolution: Resolution) => Effect.Effect<Verdict>
}

/**
 * What allowed a call, which says what has to hold when it runs.
 *
 * - `rule`: a rule, or a mode or suspension that holds where no rule says otherwise. It still has to.
 * - `answer`: an answer to a question. No list may deny it by now, as none did when it was asked.
 * - `authority`: a stage or an envelope, which come before the lists.
 */
export type AllowedBy = "rule" | "answer" | "authority"

export const make = (gate: Gate, now: CheckState, resolution: Resolution, by: AllowedBy): Verdict => {
  const { check } = now
  const settle = Effect.withFiberRuntime<Verdict>((fiber, status) => {
    check.moveTo(fiber, status.runtimeFlags)
    return Effect.uninterruptible(Region.once(check.step(() => settled(gate, { ...now, held: false }, resolution, by))))
  })
  const breakOff = Effect.suspend(() =>
    check.resolved === undefined ? Effect.asVoid(check.breakOff(PermissionCheck.cancelled)) : Effect.void
  )
  return { ...allowedOf(now), pending: { settle, breakOff, leave: () => check.leave(), writeLeft: check.writeLeft } }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** It has room now. */
const settled = (gate: Gate, now: CheckState, resolution: Resolution, by: AllowedBy): Effect.Effect<Verdict> => {
  if (by === "authority") return gate.allow(now, resolution, by)
  const { policy, state } = gate.options
  const ruled = (subject: PermissionRule.Subject) =>
    holds(gate, now, subject, by)
      ? gate.allow(now, resolution, by)
      : gate.deny(now, { ...resolution, granted: false, method: "guard", reason: elsewhere })
  const subject = CompiledPolicy.subject(policy, now.entry, now.call.params)
  const led = CompiledPolicy.led(policy, state, subject)
  return led === undefined ? ruled(subject) : now.check.after(led, ruled)
}

const holds = ({ options }: Gate, now: CheckState, subject: PermissionRule.Subject, by: "rule" | "answer"): boolean => {
  const { decision } = Ruling.evaluate(options, now, subject)
  if (by === "rule") return decision === "allow"
  return decision !== "deny" || options.state.denial(options.policy, subject) === undefined
}

const elsewhere = "what allowed it does not hold any more, now that it would run; propose the call again"
