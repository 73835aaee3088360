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
import * as ApprovalWords from "./ApprovalWords.js"
import type * as Guard from "./Guard.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import * as PlanMode from "./PlanMode.js"
import type { PermissionState } from "./PermissionState.js"
import * as Ruling from "./Ruling.js"

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
  /** Which parts of a command some rule allows, and which part none does: a sentence. */
  readonly part?: string | undefined
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
    const origin = { sessionId, depth: 0 }
    const called = { call: { params }, entry, params: decoded.right, origin, warnings: [] }
    const rules = { guards, policy, redactor, state }
    const examined = yield* Ruling.examine(rules, called)
    if (examined._tag === "Invalid") return denied("pre_validation", examined.reason)
    if (examined._tag === "Refused") return denied(examined.method, examined.reason)
    const { own, reserved, subject } = examined
    const isSilent = PlanMode.isSilent(state, entry)
    if (reserved !== undefined) {
      const rule = ApprovalWords.describe(reserved)
      const otherwise: Foreseen = isSilent ? denied("mode", rule) : { decision: "ask", method: "approvals", rule }
      return state.denial(policy, subject) ?? otherwise
    }
    const decision = Ruling.decide(rules, called, subject, own)
    if (decision.decision !== "ask") return decision
    if (isSilent) return denied("mode", PlanMode.nobodyAsked)
    if (own !== undefined) return { ...decision, method: "guard", rule: own.reason }
    if (decision.doubt !== undefined) return decision
    const delegated = state.delegation(policy, subject)
    return delegated === undefined ? decision : { ...decision, delegated }
  })
  return Effect.catchAllCause(looked, () => Effect.succeed(denied("check_failed", "Permission check failed")))
}
