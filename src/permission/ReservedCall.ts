/**
 * A call that the policy's approvals reserve, on its way through the gate behind the guards.
 *
 * ```
 *  guards ─► denied by a list? ─► asked of those who decide ─► votes counted ─► stage, envelope: may only deny ─► runs
 *                                       ▲                          │
 *                                       └── other arguments, ◄─────┘
 *                                           from the top
 * ```
 *
 * Nobody is believed: whatever comes back, the votes in it are counted again here, against the rules of this gate. So an
 * interactor that answers alone, a parent that mediates, a time that ran out and `--yolo` allow nothing. An allowance holds
 * for this call only.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import type { RequestId } from "../core/Id.js"
import * as Asking from "../interaction/Asking.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import type * as Interaction from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Needs from "../interaction/Needs.js"
import * as NeedWords from "../interaction/NeedWords.js"
import * as Recheck from "../interaction/Recheck.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as ApprovalWords from "./ApprovalWords.js"
import type { Authority } from "./Authority.js"
import type { CheckState } from "./CheckState.js"
import type * as HeldCall from "./HeldCall.js"
import type * as PermissionCheck from "./PermissionCheck.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import { answered, unanswered, withdrawnBy, type Resolution, type Verdict } from "./Verdict.js"

type Deciding = Effect.Effect<Verdict, never, Interactor.Interactor>

/** What this needs of a gate. */
export interface Gate {
  readonly options: PermissionCheck.Options & {
    readonly policy: CompiledPolicy.Policy
    readonly state: PermissionState
    readonly insteadOfAsking?: Authority | undefined
  }
  readonly byRule: (now: CheckState, decision: Decision) => Effect.Effect<Verdict>
  readonly resolve: (now: CheckState, resolution: Resolution, by: HeldCall.AllowedBy) => Effect.Effect<Verdict>
  readonly deny: (now: CheckState, resolution: Resolution) => Effect.Effect<Verdict>
  readonly remember: (now: CheckState, answer: Interaction.ApproveAnswer, key: string) => void
  readonly withEdits: (
    now: CheckState,
    changes: { readonly [name: string]: unknown },
    asked: PermissionCheck.Asked & Pick<Resolution, "votes">,
    votes: ReadonlyArray<Ballot.Cast>
  ) => Deciding
  readonly edited: (now: CheckState, leadsTo: RequestId, next: () => Deciding) => Deciding
}

/** Decides about a call for which the rules demand all of this. */
export const decide = (
  gate: Gate,
  now: CheckState,
  subject: PermissionRule.Subject,
  all: readonly [Interaction.Need, ...ReadonlyArray<Interaction.Need>]
): Deciding => {
  const { policy, redactor, state } = gate.options
  const denial = state.denial(policy, subject)
  if (denial !== undefined) return gate.byRule(now, denial)
  if (state.asksNobody && now.entry.kind !== "switch_mode")
    return gate.deny(now, {
      granted: false,
      method: "mode",
      reason: `${ApprovalWords.describe(all)}; the mode is deny`
    })
  const { name, params } = now.call
  // A vote counts for exactly this tool and these arguments.
  const needs: Needs.Needs = { digest: Digest.digest({ tool: name, params: params ?? null }), all, votes: [] }
  const key = PermissionRule.rememberKey(subject)
  return now.check.after(ApprovalForm.make({ ...now, needs }, key, redactor), (form) => {
    const reserved = { ...form, needs }
    // Those who wanted exactly these arguments have voted on them already.
    const given = now.votes ?? []
    if (given.length > 0 && now.check.asked !== undefined) {
      const before = Tally.standing(reserved, given)
      if (before._tag === "Decided") return apply(gate, now, reserved, key, before, given, now.check.asked)
    }
    const { fiber, origin, restore } = now.check
    const request = InteractionRequest.unsafeMake(form, fiber, origin)
    const asked = { requestId: request.requestId, askedAt: request.issuedAt }
    now.check.asked = asked
    // A list may deny it while it waits in line; nothing may allow it.
    const recheck = Recheck.make((): Option.Option<Interaction.ApproveAnswer> =>
      state.denial(policy, subject) === undefined ? Option.none() : Option.some({ decision: "deny", scope: "once" })
    )
    const put = () =>
      now.check.await(
        Asking.askMasked(Interactor.of(fiber), request, { recheck, votes: given }, restore),
        (reply) => {
          const votes = votesOf(reply)
          const standing = Tally.standing(reserved, votes)
          if (standing._tag === "Decided")
            return apply(gate, now, reserved, key, standing, votes, { ...asked, answeredAt: reply.at })
          const known = state.denial(policy, subject)
          if (reply.how === "recheck" && known !== undefined) return gate.byRule(now, known)
          const reason = [
            ApprovalWords.describe(all),
            NeedWords.describeVotes(Needs.votedOf(votes)) ??
              (reply.how === "answered" ? undefined : `${reply.how} is nobody`)
          ].filter((part) => part !== undefined)
          return gate.deny(now, { granted: false, method: "unavailable", reason: reason.join("; "), ...asked })
        },
        (error) => {
          const why = error._tag === "InteractorUnavailable" ? error.reason : error.message
          const reason = redactor.text(`${ApprovalWords.describe(all)}: ${why}`)
          return gate.deny(now, { granted: false, method: unanswered(error), reason, ...asked, ...withdrawnBy(error) })
        }
      )
    return gate.edited(now, request.requestId, put)
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** One person's answer is one vote. What nobody gave is none. */
const votesOf = ({
  answer,
  by,
  how,
  roles,
  votes
}: Interactor.Answered<Interaction.Approve>): ReadonlyArray<Ballot.Cast> =>
  how === "answered" ? (votes ?? [{ answer, by, ...(roles && { roles }) }]) : []

/** A stage and an envelope bound what an agent may do at all. What they grant is not needed any more. */
const unlessDenied = (gate: Gate, now: CheckState, authority: Authority | undefined, next: () => Deciding): Deciding =>
  authority === undefined
    ? next()
    : now.check.after(authority(now, gate.options), (known) =>
        Option.isSome(known) && !known.value.granted ? gate.deny(now, known.value) : next()
      )

const apply = (
  gate: Gate,
  now: CheckState,
  reserved: Ballot.Reserved,
  key: string,
  { answer, by }: Extract<Tally.Standing, { readonly _tag: "Decided" }>,
  cast: ReadonlyArray<Ballot.Cast>,
  { answeredAt, askedAt, requestId }: PermissionCheck.Asked
): Deciding => {
  const votes = Needs.votedOf(cast)
  const who: PermissionCheck.Asked & Pick<Resolution, "votes"> = {
    ...(requestId === undefined ? {} : { requestId }),
    ...(askedAt === undefined ? {} : { askedAt }),
    answeredAt,
    by,
    how: "answered",
    votes
  }
  now.check.asked = who
  if (answer.decision === "edit") {
    // Whoever wanted exactly these arguments allows them; whoever wanted others does not.
    const same = Tally.agreeing(reserved, cast, answer).map((vote): Ballot.Cast => ({
      ...vote,
      answer: { decision: "allow", scope: "once" }
    }))
    return gate.withEdits(now, answer.editedArguments, who, same)
  }
  if (answer.decision === "deny") {
    if (answer.scope === "session") gate.remember(now, answer, key)
    return gate.deny(now, { ...answered(answer, by, "answered"), ...who })
  }
  const voters = Tally.agreeing(reserved, cast, answer).map(({ by, roles }): Ballot.Voter =>
    roles === undefined ? { by } : { by, roles }
  )
  const reason = `allowed (once) by ${by}`
  const allowed: Resolution = { granted: true, method: "user_approved", reason, ...who, voters }
  return unlessDenied(gate, now, now.authority, () =>
    unlessDenied(gate, now, gate.options.insteadOfAsking, () => gate.resolve(now, allowed, "answer"))
  )
}
