/**
 * What the gate would say about a call that nobody has made: the same checks in the same order, without asking anybody
 * or publishing events.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SessionId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import type { Redactor } from "../core/Redaction.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as Approvals from "./Approvals.js"
import * as Guard from "./Guard.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as PermissionRule from "./PermissionRule.js"
import * as PlanMode from "./PlanMode.js"
import type { PermissionState } from "./PermissionState.js"

export interface Options {
  readonly policy: CompiledPolicy.Policy
  readonly state: PermissionState
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly sessionId: SessionId
  /** Masks the log text of a guard that crashes. Default: by the shapes of tokens alone. */
  readonly redactor?: Redactor | undefined
}

/**
 * What would become of a call. `method` is the one that would be recorded; `invalid` for arguments that do not decode.
 *
 * @since 0.1.0
 * @category models
 */
export interface Foreseen {
  readonly decision: "allow" | "deny" | "ask"
  readonly method: string
  /** The rule or sentence that decides. */
  readonly rule: string
  /** The rule by which a model may be asked before a person; present where one is. */
  readonly delegated?: string | undefined
}

/**
 * `params` are encoded, as a model writes them. A crash denies, as in the gate.
 *
 * The agent's present stage and envelope are not considered: a stage asks for the tools that it does not name, and an
 * envelope allows a subagent's tools. Both are temporary.
 */
export const foresee = (
  { guards, policy, redactor = Redaction.shapesOnly, sessionId, state }: Options,
  entry: ToolRegistry.Entry,
  params: unknown
): Effect.Effect<Foreseen> => {
  const denied = (method: string, rule: string): Foreseen => ({ decision: "deny", method, rule })
  const looked = Effect.gen(function* () {
    const decoded = entry.decode(params)
    if (Either.isLeft(decoded)) return denied("invalid", decoded.left)
    const tooLong = PermissionRule.tooLong(entry.shellCommand, params)
    if (tooLong !== undefined) return denied("pre_validation", tooLong)
    if (entry.validate !== undefined) {
      const valid = yield* Effect.either(ApprovalForm.within(entry.validate(decoded.right), entry.context))
      if (Either.isLeft(valid)) return denied("pre_validation", valid.left)
    }
    const plain = CompiledPolicy.subject(policy, entry, params)
    const subject = yield* CompiledPolicy.led(policy, state, plain) ?? Effect.succeed(plain)
    if (entry.kind === "switch_mode") {
      const rule = PlanMode.refusalToEnd(state.isPlanning, 0)
      return rule === undefined
        ? (state.denial(policy, subject) ??
            ({ decision: "ask", method: "guard", rule: PlanMode.question.reason } as const))
        : denied("mode", rule)
    }
    const beyond = state.isPlanning ? PlanMode.refusal(entry, subject) : undefined
    if (beyond !== undefined) return denied("mode", beyond)
    const found = yield* Guard.objection(policy.deny, guards, { tool: entry.name, params, subject, entry }, redactor)
    if (typeof found === "string") return denied("guard", found)
    const needs = policy.approvals && Approvals.needsOf(policy.approvals, subject)
    if (needs !== undefined) {
      const rule = Approvals.describe(needs)
      if (state.asksNobody) return denied("mode", rule)
      return state.denial(policy, subject) ?? ({ decision: "ask", method: "approvals", rule } as const)
    }
    const decision = state.evaluate(policy, subject, entry, sessionId)
    if (state.asksNobody && decision.decision === "ask") return denied("mode", PlanMode.nobodyAsked)
    if (found === undefined) {
      if (decision.decision !== "ask" || decision.doubt !== undefined) return decision
      const delegated = state.delegation(policy, subject)
      return delegated === undefined ? decision : { ...decision, delegated }
    }
    if (decision.decision !== "allow") return decision
    const covering = found.coveredBy === "all" ? state.blanket : undefined
    if (covering === undefined && state.asksNobody) return denied("mode", PlanMode.nobodyAsked)
    return covering ?? ({ decision: "ask", method: "guard", rule: found.reason } as const)
  })
  return Effect.catchAllCause(looked, () => Effect.succeed(denied("check_failed", "Permission check failed")))
}
