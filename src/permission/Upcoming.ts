/**
 * The questions that the gate will ask about the other calls of a tool that were proposed together with the one that is being
 * asked about, as they would be now. An interactor may show them beside it.
 *
 * Nothing is decided by this: each of these calls takes its own way through the gate when its turn comes, with its own checks,
 * request and record. A call is left out when it would not come to a plain question: when it would be refused, is reserved, or
 * a rule decides it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Origin from "../core/Origin.js"
import type { Approve } from "../interaction/Interaction.js"
import type { Upcoming } from "../interaction/InteractorPort.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as Approvals from "./Approvals.js"
import { noWarnings, type CheckState } from "./CheckState.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as Guard from "./Guard.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import * as Ruling from "./Ruling.js"

/** What this needs of a gate. */
export interface Gate {
  readonly options: { readonly policy: CompiledPolicy.Policy; readonly state: PermissionState }
  readonly objection: (
    entry: ToolRegistry.Entry,
    params: unknown,
    subject: PermissionRule.Subject
  ) => Effect.Effect<Guard.Objection | undefined>
  readonly formOf: (
    now: CheckState,
    subject: PermissionRule.Subject,
    why: Pick<Decision, "doubt" | "part">
  ) => Effect.Effect<Approve>
}

/** More than these nobody looks at together. */
export const most = 20

/** How long the dialog of a call waits for what will come after it: its question must not depend on a slow guard. */
const patience = "1 second"

/** The questions behind this one, where no stage and no envelope decides first: those may ask for themselves. */
export const after = (gate: Gate, now: CheckState): Effect.Effect<ReadonlyArray<Upcoming>> =>
  Effect.suspend(() => {
    const found: Array<Upcoming> = []
    const look = Effect.forEach(
      (now.company?.behind(now.call) ?? []).slice(0, most - 1),
      ({ index, proposal }) => {
        const origin = Origin.ofCall(now.check.origin, proposal.call.id)
        return formOf(gate, {
          ...proposal,
          context: now.context,
          authority: undefined,
          edited: false,
          warnings: noWarnings,
          own: undefined,
          edits: 0,
          held: false,
          check: now.check
        }).pipe(
          Origin.withOrigin(origin),
          Effect.catchAllCause(() => Effect.succeedNone),
          Effect.map((form) => {
            if (Option.isSome(form)) found.push({ index, interaction: form.value })
          })
        )
      },
      { discard: true }
    )
    // What is slow is shown alone, when its turn comes.
    return Effect.map(Effect.timeoutOption(Effect.disconnect(look), patience), () => [...found])
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const formOf = (gate: Gate, one: CheckState): Effect.Effect<Option.Option<Approve>> =>
  Effect.gen(function* () {
    const { call, context, entry, params } = one
    const { policy, state } = gate.options
    // A plan is looked at for itself.
    if (entry.kind === "switch_mode") return Option.none()
    if (PermissionRule.tooLong(entry.shellCommand, call.params) !== undefined) return Option.none()
    if (entry.validate !== undefined) {
      const valid = yield* Effect.either(ApprovalForm.within(entry.validate(params), context ?? entry.context))
      if (valid._tag === "Left") return Option.none()
    }
    const plain = CompiledPolicy.subject(policy, entry, call.params)
    const subject = yield* CompiledPolicy.led(policy, state, plain) ?? Effect.succeed(plain)
    const found = yield* gate.objection(entry, call.params, subject)
    if (typeof found === "string") return Option.none()
    if (policy.approvals !== undefined && Approvals.needsOf(policy.approvals, subject) !== undefined)
      return Option.none()
    const asked = { ...one, own: found }
    const decision = Ruling.evaluate(gate.options, asked, subject)
    return decision.decision === "ask" ? Option.some(yield* gate.formOf(asked, subject, decision)) : Option.none()
  })
