/**
 * A call that another process allowed, about to run in this one. The world may be another by now: the mode, the rules, the
 * stage that it belonged to. What allowed it has to hold still; a person's answer does, unless a list denies such calls now.
 */
import * as Effect from "effect/Effect"
import type { Authority } from "./Authority.js"
import { noWarnings, type CheckState } from "./CheckState.js"
import type * as HeldCall from "./HeldCall.js"
import * as ReservedCall from "./ReservedCall.js"
import * as Interactor from "../interaction/Interactor.js"
import type { Allowed, Resolution, Verdict } from "./Verdict.js"

/** What a journal says of such a call. */
export interface Past extends Allowed {
  /** How it was allowed. Undefined: it had begun, and only goes on. */
  readonly method: Resolution["method"] | undefined
}

/** What this needs of a gate. */
export interface Gate extends Pick<ReservedCall.Gate, "deny" | "options"> {
  readonly unlessTakenBack: (
    now: CheckState,
    by: HeldCall.AllowedBy,
    next: () => Effect.Effect<Verdict>
  ) => Effect.Effect<Verdict>
  readonly guard: (entry: CheckState["entry"], encoded: unknown) => Effect.Effect<string | undefined>
}

/** The same arguments as before, or a denial. */
export const settle = (
  gate: Gate,
  now: Pick<CheckState, "call" | "check" | "entry">,
  { method, ...allowed }: Past,
  authority: Authority | undefined
): Effect.Effect<Verdict> => {
  const { call, check, entry } = now
  const { edited, encoded, params } = allowed
  const again: CheckState = {
    call: { ...call, params: encoded },
    entry,
    params,
    authority,
    edited,
    warnings: noWarnings,
    own: undefined,
    edits: 0,
    held: false,
    check
  }
  const looked = check.after(gate.guard(entry, encoded), (reason) => {
    if (reason !== undefined) return gate.deny(again, { granted: false, method: "guard", reason })
    if (method === undefined) return Effect.succeed(allowed)
    return ReservedCall.unlessDenied(gate, again, authority, () =>
      gate.unlessTakenBack(again, allowedBy(method), () => Effect.succeed(allowed))
    )
  })
  return Effect.provideService(looked, Interactor.Interactor, Interactor.of(check.fiber))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Who had a reserved call in front of them cannot be told from this; what nobody answered, only the rules allow. */
const allowedBy = (method: Resolution["method"]): HeldCall.AllowedBy => {
  switch (method) {
    case "user_approved":
    case "timeout":
    case "yolo":
      return "votes"
    case "stage_grant":
    case "envelope":
      return "authority"
    default:
      return "rule"
  }
}
