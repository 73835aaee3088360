/**
 * A call that is allowed and waits for room. Calls before it may change links meanwhile: what a rule over its arguments allowed
 * is compared again, before the guards look at it as at every call.
 */
import * as Effect from "effect/Effect"
import * as Region from "../internal/Region.js"
import { allowedOf, type CheckState } from "./CheckState.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as PermissionCheck from "./PermissionCheck.js"
import type { PermissionState } from "./PermissionState.js"
import * as Ruling from "./Ruling.js"
import type { Resolution, Verdict } from "./Verdict.js"

/** What this needs of a gate. */
export interface Gate {
  readonly options: { readonly policy: CompiledPolicy.Policy; readonly state: PermissionState }
  readonly allow: (now: CheckState, resolution: Resolution) => Effect.Effect<Verdict>
  readonly deny: (now: CheckState, resolution: Resolution) => Effect.Effect<Verdict>
}

/** `byRules`: a rule decided, or a mode or suspension that holds where no rule says otherwise. */
export const make = (gate: Gate, now: CheckState, resolution: Resolution, byRules: boolean): Verdict => {
  const { check } = now
  const settle = Effect.withFiberRuntime<Verdict>((fiber, status) => {
    check.moveTo(fiber, status.runtimeFlags)
    return Effect.uninterruptible(
      Region.once(check.step(() => settled(gate, { ...now, held: false }, resolution, byRules)))
    )
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
const settled = (gate: Gate, now: CheckState, resolution: Resolution, byRules: boolean): Effect.Effect<Verdict> => {
  const { policy, state } = gate.options
  const subject = CompiledPolicy.subject(policy, now.entry, now.call.params)
  const led = byRules ? CompiledPolicy.led(policy, state, subject) : undefined
  if (led === undefined) return gate.allow(now, resolution)
  return now.check.after(led, (subject) =>
    Ruling.evaluate(gate.options, now, subject).decision === "allow"
      ? gate.allow(now, resolution)
      : gate.deny(now, { ...resolution, granted: false, method: "guard", reason: elsewhere })
  )
}

const elsewhere = "what allowed it does not hold any more, now that it would run; propose the call again"
