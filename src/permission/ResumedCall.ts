/**
 * A call that another process allowed, about to run in this one. The world may be another by now: the mode, the rules, the
 * stage that it belonged to. What allowed it has to hold still; a person's answer does, unless a list denies such calls now.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as DelegatingTool from "../tool/DelegatingTool.js"
import type { Authority } from "./Authority.js"
import { noWarnings, type CheckState, type LastLook, type LookedAt } from "./CheckState.js"
import type * as HeldCall from "./HeldCall.js"
import type * as ReservedCall from "./ReservedCall.js"
import * as Interactor from "../interaction/Interactor.js"
import type { Allowed, Resolution, Verdict } from "./Verdict.js"

/** What a journal says of such a call. */
export interface Past extends Allowed {
  /** How it was allowed. Undefined: it had begun, and only goes on. */
  readonly decided: Decided | undefined
}

interface Decided {
  readonly method: Resolution["method"]
  readonly how?: Resolution["how"] | undefined
  readonly voters?: Resolution["voters"] | undefined
}

/** What this needs of a gate. */
export interface Gate extends Pick<ReservedCall.Gate, "deny" | "options"> {
  readonly unlessTakenBack: (
    now: CheckState,
    given: Pick<Resolution, "voters">,
    by: HeldCall.AllowedBy,
    next: (now: CheckState) => Effect.Effect<Verdict>
  ) => Effect.Effect<Verdict>
  readonly lastLook: (now: LookedAt) => Effect.Effect<LastLook>
}

/** The same arguments as before, or a denial. */
export const settle = (
  gate: Gate,
  now: Pick<CheckState, "call" | "check" | "entry">,
  { decided, ...allowed }: Past,
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
  const allow = ({ paths }: CheckState) => Effect.succeed(paths === undefined ? allowed : { ...allowed, paths })
  const looked = check.after(gate.lastLook(again), ({ paths, reason }) => {
    if (reason !== undefined) return gate.deny(again, { granted: false, method: "guard", reason })
    const now = paths === undefined ? again : { ...again, paths }
    if (decided === undefined) return allow(now)
    const given = givenIn(decided)
    const run = (by: HeldCall.AllowedBy) => gate.unlessTakenBack(now, given, by, allow)
    const otherwise = () => run(isAnswered(decided) || isEnvelope(decided, call.name) ? "answer" : "rule")
    if (authority === undefined) return otherwise()
    return check.after(authority(again, gate.options), (known) => {
      if (Option.isSome(known) && !known.value.granted) return gate.deny(again, known.value)
      return Option.isSome(known) && !isAnswered(decided) ? run("authority") : otherwise()
    })
  })
  return Effect.provideService(looked, Interactor.Interactor, Interactor.of(check.fiber))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What no person answered, only a stage, an envelope or the rules allow. */
const isAnswered = ({ how, method }: Decided): boolean => method === "user_approved" && how !== "model"

/** A person answers for the envelope of a subagent before the call that makes it. */
const isEnvelope = ({ method }: Decided, tool: string): boolean => method === "envelope" && DelegatingTool.is(tool)

/** A yes without votes is that of one person, whom the journal does not name here. */
const givenIn = (decided: Decided): Required<Pick<Resolution, "voters">> => ({
  voters: decided.voters ?? (isAnswered(decided) ? [{ by: "" }] : [])
})
