/**
 * How far a subagent that works in an envelope may hand work on without a question: within what was approved of it.
 *
 * ```
 *  call of an approved tool ─┬─ makes no subagent, or one within the envelope ──► runs
 *                            └─ makes one that goes beyond, or asks nobody itself ─► the rules, and the question
 * ```
 *
 * A profile whose author approved it counts below an envelope only where the rules, or a person, have let exactly that
 * delegation through. So it makes no difference which tool a subagent is made with.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import type { ToolCallId } from "../core/Id.js"
import * as Grant from "../permission/Grant.js"
import type { Authority } from "../permission/PermissionGate.js"
import * as DelegationRequest from "./DelegationRequest.js"

/** What somebody allowed a subagent for its life. */
export interface Envelope {
  readonly subagentId: string
  /** Names of tools. */
  readonly tools: ReadonlyArray<string>
}

export class Confines {
  /** Decides about the subagent's calls. */
  readonly authority: Authority
  private readonly tools: ReadonlySet<string>
  /** Orders that the envelope does not cover, by the call that was left to the rules. */
  private readonly left = new Map<ToolCallId, string>()

  /** `recipeOf` is what an order of the subagent's comes to. */
  constructor(
    envelope: Envelope,
    recipeOf: (order: DelegationRequest.Wanted) => Effect.Effect<DelegationRequest.Recipe, string>
  ) {
    this.tools = new Set(envelope.tools)
    const within = Grant.envelope(envelope)
    this.authority = (proposal, gate) => {
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
  }

  /** What of a recipe was not approved with the envelope, in sentences for whoever decides. */
  beyond({ autoApproved, model, tools }: DelegationRequest.Recipe): ReadonlyArray<string> {
    const more = tools.entries.flatMap(({ name }) => (this.tools.has(name) ? [] : [name]))
    return [
      ...(autoApproved
        ? ["Whoever starts it was itself allowed its tools beforehand, but not to start this one."]
        : []),
      ...(more.length > 0 ? [`Whoever starts it was not allowed ${more.join(", ")} beforehand.`] : []),
      ...(model === undefined ? [] : [`Whoever starts it was not allowed the model ${model} beforehand.`])
    ]
  }

  /** The call is decided by the rules, or was. */
  letPass(order: DelegationRequest.Wanted, callId: ToolCallId): void {
    this.left.set(callId, Digest.digest(order))
  }

  /** Whether exactly this order of this call was for the rules to decide. Once. */
  passed(order: DelegationRequest.Wanted, callId: ToolCallId | undefined): boolean {
    const digest = callId === undefined ? undefined : this.left.get(callId)
    if (callId === undefined || digest === undefined) return false
    this.left.delete(callId)
    return digest === Digest.digest(order)
  }
}
