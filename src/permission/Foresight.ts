/**
 * What the gate would say about a call that nobody has made: the same checks in the same order, without asking anybody
 * or publishing events.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { CorrelationId, ToolCallId, type SessionId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import type { Redactor } from "../core/Redaction.js"
import { NoInteractor } from "../interaction/InteractionError.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalText from "./ApprovalText.js"
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
  /** The session that would make the call. Without one, a check that needs its session fails, and the call is denied. */
  readonly session?: Session | undefined
  /** Masks the log text of a guard that crashes. Default: by the shapes of tokens alone. */
  readonly redactor?: Redactor | undefined
}

/**
 * What checks of tools and guards see of the session whose call they look at.
 *
 * @since 0.1.0
 * @category models
 */
export interface Session {
  readonly origin: Origin.Origin
  readonly contextOf: (entry: ToolRegistry.Entry, outer: Context.Context<never>) => Context.Context<never>
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
 * `params` are encoded, as a model writes them. A crash denies, as in the gate. If a check of the tool or a
 * guard would ask somebody, the call is asked about.
 *
 * The agent's present stage and envelope are not considered: a stage asks for the tools that it does not name, and an
 * envelope allows a subagent's tools. Both are temporary.
 */
export const foresee = (
  { guards, policy, redactor = Redaction.shapesOnly, session, sessionId, state }: Options,
  entry: ToolRegistry.Entry,
  params: unknown
): Effect.Effect<Foreseen> => {
  const denied = (method: string, rule: string): Foreseen => ({ decision: "deny", method, rule })
  let isAsked = false
  const nobody: Interactor.Service = {
    id: "nobody",
    relay: false,
    principal: undefined,
    request: ({ requestId }) => {
      isAsked = true
      return Effect.fail(new NoInteractor({ requestId }))
    }
  }
  const looked = Effect.gen(function* () {
    const decoded = entry.decode(params)
    if (Either.isLeft(decoded)) return denied("invalid", decoded.left)
    const outer = yield* Effect.context<never>()
    const context = Context.add(session?.contextOf(entry, outer) ?? entry.context, Interactor.Interactor, nobody)
    const origin = { sessionId, depth: session?.origin.depth ?? 0 }
    const called = { call: { params }, context, entry, origin, params: decoded.right, warnings: [] }
    const rules = { guards, policy, redactor, state }
    const examined = yield* Ruling.examine(rules, called)
    if (examined._tag === "Invalid") return denied("pre_validation", examined.reason)
    if (examined._tag === "Refused") return denied(examined.method, examined.reason)
    const { own, reserved, subject } = examined
    const isSilent = PlanMode.isSilent(state, entry)
    if (reserved !== undefined) {
      const rule = ApprovalText.describe(reserved)
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
  return asCallOf(session?.origin ?? Origin.outside, looked).pipe(
    Interactor.withInteractor(nobody),
    Effect.catchAllCause(() => Effect.succeed(denied("check_failed", "Permission check failed"))),
    Effect.map((foreseen) =>
      isAsked ? { decision: "ask", method: "pre_validation", rule: `${entry.name} asks before it decides` } : foreseen
    )
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** As in a turn of the session: the call has ids, which are of no other call. */
const asCallOf = (origin: Origin.Origin, check: Effect.Effect<Foreseen>): Effect.Effect<Foreseen> =>
  Origin.withOrigin(Origin.ofCall(Origin.inTurn(origin, CorrelationId.make("foreseen")), ToolCallId.make("foreseen")))(
    check
  )
