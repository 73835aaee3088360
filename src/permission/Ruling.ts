/**
 * What guards and rules say of a call before anybody is asked: for the gate, for a call that nobody has made, and for the
 * calls that are proposed beside the one that is asked about.
 *
 * ```
 *  examine: validation ─► links ─► plan mode ─► guards        waits for code of tools and guards
 *  decide:  plan mode ─► lists, mode, suspensions             a plain function, repeated whenever a call had to wait
 * ```
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import * as Immediate from "../internal/Immediate.js"
import type * as Interaction from "../interaction/Interaction.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as Approvals from "./Approvals.js"
import type { Proposal } from "./Authority.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as Guard from "./Guard.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import * as PlanMode from "./PlanMode.js"

/** What decides. */
export interface Rules {
  readonly policy: CompiledPolicy.Policy
  readonly state: PermissionState
  readonly guards: ReadonlyArray<Guard.Guard>
  /** Masks the log text of a guard that crashes. */
  readonly redactor: Redaction.Redactor
}

/** A proposed call, and the agent that makes it. */
export interface Called extends Pick<Proposal, "context" | "entry" | "params"> {
  /** Encoded, as a model writes them. */
  readonly call: { readonly params: unknown }
  readonly origin: Pick<Origin.Origin, "depth" | "sessionId">
  /** What was wrong with the last edit. Shown with the next question. */
  readonly warnings: ReadonlyArray<string>
}

export type Examined = Invalid | Refused | Passed

/** The tool refuses the arguments. */
export interface Invalid {
  readonly _tag: "Invalid"
  readonly reason: string
}

/** The mode or a guard refuses the call. */
export interface Refused {
  readonly _tag: "Refused"
  readonly method: "guard" | "mode"
  readonly reason: string
}

/** Nothing refuses the call. The rules decide, or the people for whom it is reserved. */
export interface Passed {
  readonly _tag: "Passed"
  readonly subject: PermissionRule.Subject
  /** The questions that guards want to be asked. */
  readonly own: Guard.Ask | undefined
  /** What approvals demand for the call. Undefined for a call that is not reserved. */
  readonly reserved: readonly [Interaction.Need, ...ReadonlyArray<Interaction.Need>] | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// examining
// -----------------------------------------------------------------------------------------------------------------

/** To be run at once. An exit when no tool and no guard has to be waited for. */
export const examine = (rules: Rules, called: Called): Effect.Effect<Examined> => Immediate.gen(steps(rules, called))

/** The call as rules see it, at the places to which its paths lead now. */
export const resolveLinks = (
  { policy, state }: Pick<Rules, "policy" | "state">,
  entry: ToolRegistry.Entry,
  encoded: unknown
): Effect.Effect<PermissionRule.Subject> => {
  const subject = CompiledPolicy.subject(policy, entry, encoded)
  return CompiledPolicy.led(policy, state, subject) ?? Effect.succeed(subject)
}

/** The first refusal, or all questions of guards as one. */
export const askGuards = (
  { guards, policy, redactor, state }: Rules,
  entry: ToolRegistry.Entry,
  encoded: unknown,
  subject: PermissionRule.Subject
): Effect.Effect<Guard.Objection | undefined> => {
  const refused = state.isPlanning ? PlanMode.refusal(entry, subject) : undefined
  if (refused !== undefined) return Effect.succeed(refused)
  return Guard.objection(policy.deny, guards, { tool: entry.name, params: encoded, subject, entry }, redactor)
}

// -----------------------------------------------------------------------------------------------------------------
// deciding
// -----------------------------------------------------------------------------------------------------------------

/** A guard's question turns what rules allow into a question. */
export const decide = (
  { policy, state }: Pick<Rules, "policy" | "state">,
  called: Pick<Called, "entry" | "origin" | "warnings">,
  subject: PermissionRule.Subject,
  own: Guard.Ask | undefined
): Decision => {
  const planned = PlanMode.ruled(policy, state, called, subject)
  if (planned !== undefined) return planned
  const decision = state.evaluate(policy, subject, called.entry, called.origin.sessionId)
  if (decision.decision !== "allow") return decision
  // The person wanted other arguments, so no later rule allows the present ones.
  if (called.warnings.length > 0) return askAgain
  if (own === undefined) return decision
  const doubt = state.blanket && Guard.doubtOf(own)
  if (doubt !== undefined) return { decision: "deny", method: "allow_all", rule: doubt }
  return (own.coveredBy === "all" ? state.blanket : undefined) ?? PlanMode.ownQuestion
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

function* steps(rules: Rules, called: Called): Effect.fn.Return<Examined> {
  const { policy, state } = rules
  const { call, entry } = called
  const checked = within(policy, validate(called))
  const reason = PermissionRule.tooLong(entry.shellCommand, call.params) ?? (yield* Immediate.step(checked))
  if (reason !== undefined && policy.paths.length === 0) return { _tag: "Invalid", reason }
  const subject = yield* Immediate.step(resolveLinks(rules, entry, call.params))
  if (reason !== undefined) {
    // A tool that refuses a denied path repeats what the policy says.
    const denied = yield* Immediate.step(askGuards(rules, entry, call.params, subject))
    return typeof denied === "string"
      ? { _tag: "Refused", method: "guard", reason: denied }
      : { _tag: "Invalid", reason }
  }
  const beyond = PlanMode.beyond(state, called, subject)
  if (beyond !== undefined) return { _tag: "Refused", method: "mode", reason: beyond }
  const found = yield* Immediate.step(askGuards(rules, entry, call.params, subject))
  if (typeof found === "string") return { _tag: "Refused", method: "guard", reason: found }
  const reserved = policy.approvals && Approvals.needsOf(policy.approvals, subject)
  return { _tag: "Passed", subject, own: PlanMode.questionOf(entry, found), reserved }
}

/** The tool's own check knows what the policy denies to everybody. */
const within = <A, E, R>({ paths }: CompiledPolicy.Policy, check: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  paths.length === 0 ? check : Origin.withDecision({ denied: paths })(check)

/** Why the tool's own check refuses the arguments. */
const validate = ({ context, entry, params }: Called): Effect.Effect<string | undefined> =>
  entry.validate === undefined
    ? fits
    : Effect.map(Effect.either(ApprovalForm.within(entry.validate(params), context ?? entry.context)), (valid) =>
        Either.isRight(valid) ? undefined : sentenceOf(valid.left, entry)
      )

const fits: Effect.Effect<undefined> = Effect.succeed(undefined)

/** A tool's own check may fail with a value that its type forbids. */
const sentenceOf = (said: unknown, { name }: ToolRegistry.Entry): string =>
  typeof said === "string" && said !== "" ? said : `${name} refuses these arguments.`

/** The rules' decision for a call whose arguments are being edited. */
const askAgain: Decision = { decision: "ask", method: "default", rule: "the arguments are being edited" }
