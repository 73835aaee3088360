/**
 * Limits what a subagent in an envelope may delegate without a question: only what its envelope covers.
 *
 * ```
 *  call of an approved tool ─┬─ makes no subagent, or one within the envelope ──► runs
 *                            └─ makes one that goes beyond, or asks nobody itself ─► the rules, and the question
 * ```
 *
 * Below an envelope, an auto-approved profile counts only where the rules, or a person, allowed exactly that
 * delegation. So it makes no difference which tool makes the subagent.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import type { ToolCallId } from "../core/Id.js"
import * as Grant from "../permission/Grant.js"
import type { Authority } from "../permission/PermissionGate.js"
import * as DelegationRequest from "./DelegationRequest.js"

/** The tools that a subagent may use for its life. */
export interface Envelope {
  readonly subagentId: string
  /** Names of tools. */
  readonly tools: ReadonlyArray<string>
}

export class Confines {
  /** Decides about the subagent's calls. */
  readonly authority: Authority
  private readonly tools: ReadonlySet<string>
  /** Requests beyond the envelope, by the call that was left to the rules. */
  private readonly left = new Map<ToolCallId, string>()

  /** `recipeOf` gives the recipe of a delegation request of the subagent. */
  constructor(
    envelope: Envelope,
    recipeOf: (order: DelegationRequest.Wanted) => Effect.Effect<DelegationRequest.Recipe, string>
  ) {
    this.tools = new Set(envelope.tools)
    const within = Grant.envelope(envelope)
    const authority: Authority = (proposal, gate) => {
      const order = DelegationRequest.wanted(proposal.call)
      if (Option.isNone(order)) return within(proposal, gate)
      return Effect.matchEffect(recipeOf(order.value), {
        // The tool's own validation tells the model.
        onFailure: () => within(proposal, gate),
        onSuccess: (recipe) => {
          if (this.beyond(recipe).length === 0) return within(proposal, gate)
          this.letPass(order.value, proposal.call.id)
          return Effect.succeedNone
        }
      })
    }
    this.authority = authority
  }

  /** The parts of a recipe that the envelope does not cover, in sentences for the person who decides. */
  beyond({ autoApproved, model, tools }: DelegationRequest.Recipe): ReadonlyArray<string> {
    const more = tools.entries.flatMap(({ name }) => (this.tools.has(name) ? [] : [name]))
    return [
      ...(autoApproved ? ["Its parent may use these tools, but not start this subagent."] : []),
      ...(more.length > 0 ? [`Its parent was not allowed ${more.join(", ")} beforehand.`] : []),
      ...(model === undefined ? [] : [`Its parent was not allowed the model ${model} beforehand.`])
    ]
  }

  /** Notes that the rules decide this call. */
  letPass(order: DelegationRequest.Wanted, callId: ToolCallId): void {
    this.left.set(callId, Digest.digest(order))
  }

  /** Whether the rules decided exactly this request of this call. True once. */
  passed(order: DelegationRequest.Wanted, callId: ToolCallId | undefined): boolean {
    const digest = callId === undefined ? undefined : this.left.get(callId)
    if (callId === undefined || digest === undefined) return false
    this.left.delete(callId)
    return digest === Digest.digest(order)
  }
}
