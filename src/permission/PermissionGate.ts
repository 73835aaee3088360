/**
 * May this tool call run? One question, one resolution.
 *
 * ```
 *  validation ─► guards ─► authority ─► rules and suspensions ─► ask ─► apply the answer
 *  (must fail?)  (deny, or  (grants,                              │
 *                 ask)      envelopes)           edited arguments └─► from the top
 * ```
 *
 * A call that the policy's approvals reserve leaves this way behind the guards: it is asked of those whom the rule names, and
 * what comes later may only deny it: see `ReservedCall`.
 *
 * Guards run in every mode, before anybody is asked and again on the final arguments just before execution. When a
 * guard wants a question of its own, the later steps may deny the call but not allow it. Any failure in the gate
 * denies.
 *
 * Its steps continue in a function (continuation passing), not in an `Effect.gen`. A call that a rule decides takes no step
 * of Effect, and an agent that waits for a person holds 4.2 KB instead of 5.9 KB. Every step goes through
 * `PermissionCheck.step` or `PermissionCheck.after`, which deny when it fails.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as RuntimeFlags from "effect/RuntimeFlags"
import * as Region from "../core/Region.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import { isImmediate } from "../internal/Immediate.js"
import type { RequestId } from "../core/Id.js"
import * as LateModule from "../core/LateModule.js"
import type { Approve, ApproveAnswer } from "../interaction/Interaction.js"
import type * as Ballot from "../interaction/Ballot.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Asking from "../interaction/Asking.js"
import * as Interactor from "../interaction/Interactor.js"
import * as PermissionOption from "../interaction/PermissionOption.js"
import * as Recheck from "../interaction/Recheck.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as Approvals from "./Approvals.js"
import type { Authority, Proposal } from "./Authority.js"
import * as HeldCall from "./HeldCall.js"
import type * as ReservedCall from "./ReservedCall.js"
import type { Past } from "./ResumedCall.js"
import type * as Upcoming from "./Upcoming.js"
import { decides, noWarnings, verdictOf, type CheckState, type LastLook, type LookedAt } from "./CheckState.js"
import * as PermissionCheck from "./PermissionCheck.js"
import * as Guard from "./Guard.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as PermissionRule from "./PermissionRule.js"
import * as PlanMode from "./PlanMode.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import * as Ruling from "./Ruling.js"
import { answered, denied, unanswered, withdrawnBy, type Resolution, type Verdict } from "./Verdict.js"

export type { Allowed, Denied, Pending, Resolution, Verdict } from "./Verdict.js"
export { isRefusal, unanswered } from "./Verdict.js"
export type { Authority, Proposal } from "./Authority.js"
export { orElse } from "./Authority.js"
export type { Options as CheckOptions } from "./PermissionCheck.js"

/**
 * The rules, guards and authorities that decide.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends PermissionCheck.Options {
  readonly policy: CompiledPolicy.Policy
  /** One state for the whole tree. */
  readonly state: PermissionState
  /** In order; the first that fails decides. */
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly authority?: Authority | undefined
  /** Where the rules say to ask: decides in place of the question, or leaves the question to be asked. */
  readonly insteadOfAsking?: Authority | undefined
}

/**
 * Decides whether calls run.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /**
   * Decides about a call whose arguments decode. Asks the current interactor where the rules say so. An authority given
   * here replaces the gate's own.
   */
  readonly check: (
    proposal: Proposal,
    authority?: Authority | undefined
  ) => Effect.Effect<Verdict, never, Interactor.Interactor>
  /**
   * Begins a check of this call, for the fiber that is to run the result.
   *
   * @internal
   */
  readonly open: (
    call: ToolCall,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    flags: RuntimeFlags.RuntimeFlags
  ) => PermissionCheck.PermissionCheck
  /**
   * As {@link check}, with an opened check. An exit where nothing has to be waited for, as for most calls. A call that
   * is `held` has to wait before it runs, and is settled after that.
   *
   * @internal
   */
  readonly checkIn: (
    check: PermissionCheck.PermissionCheck,
    proposal: Proposal,
    authority?: Authority | undefined,
    held?: boolean
  ) => Effect.Effect<Verdict, never, Interactor.Interactor>
  /**
   * The last look at a call that another process allowed. What allowed it has to hold still. A refusal is published and
   * recorded.
   *
   * @internal
   */
  readonly lookAgain: (
    proposal: Pick<Proposal, "call" | "entry">,
    past: Past,
    authority?: Authority | undefined
  ) => Effect.Effect<Verdict>
  /**
   * Runs the guards on the final arguments, as just before execution. A sentence is the reason to refuse. `answered` is
   * the guards' question about these arguments that was answered.
   */
  readonly guard: (
    entry: ToolRegistry.Entry,
    encoded: unknown,
    answered?: Guard.Ask | undefined
  ) => Effect.Effect<string | undefined>
}

/**
 * A gate for one session.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Service => new Gate(options)

/**
 * Loads what decides about reserved calls, where there are rules that reserve any: later no call waits for that.
 *
 * @internal
 */
export const load: Effect.Effect<unknown> = Effect.suspend(() => reservedCall())

/** How often in a row a person is asked to correct arguments before the call is denied. */
const maxEdits = 5

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Loaded for the first call that a rule reserves for several people, a role or a person. */
const reservedCall = LateModule.getter(() => import("./ReservedCall.js"))

/** Loaded for the first call that another process allowed. */
const resumedCall = LateModule.getter(() => import("./ResumedCall.js"))

/** Why a person is asked about a call, if there is more to say than that no rule allows it. */
type Why = Pick<Decision, "doubt" | "part">

type Deciding = Effect.Effect<Verdict, never, Interactor.Interactor>

class Gate implements Service, HeldCall.Gate, ReservedCall.Gate, Upcoming.Gate {
  constructor(readonly options: Options) {}

  check(proposal: Proposal, authority = this.options.authority): Deciding {
    return Effect.withFiberRuntime((fiber, status) =>
      this.checkIn(this.open(proposal.call, fiber, status.runtimeFlags), proposal, authority)
    )
  }

  open(
    call: ToolCall,
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    flags: RuntimeFlags.RuntimeFlags
  ): PermissionCheck.PermissionCheck {
    return new PermissionCheck.PermissionCheck(this.options, call, fiber, flags)
  }

  checkIn(
    check: PermissionCheck.PermissionCheck,
    proposal: Proposal,
    authority = this.options.authority,
    held = false
  ): Deciding {
    return check.traced(this.begin(check, proposal, authority, held))
  }

  lookAgain(
    { call, entry }: Pick<Proposal, "call" | "entry">,
    past: Past,
    authority = this.options.authority
  ): Effect.Effect<Verdict> {
    return Effect.withFiberRuntime((fiber, status) => {
      const check = this.open(call, fiber, status.runtimeFlags)
      const looked = check.after(resumedCall(), ({ settle }) => settle(this, { call, check, entry }, past, authority))
      return Effect.uninterruptible(Region.once(looked))
    })
  }

  guard(entry: ToolRegistry.Entry, encoded: unknown, answered?: Guard.Ask): Effect.Effect<string | undefined> {
    return Effect.map(this.lastLook({ entry, call: { params: encoded }, own: answered }), ({ reason }) => reason)
  }

  lastLook(now: LookedAt): Effect.Effect<LastLook> {
    const { policy, state } = this.options
    const subject = CompiledPolicy.subject(policy, now.entry, now.call.params)
    const led = CompiledPolicy.led(policy, state, subject)
    return led === undefined ? this.objectionAt(now, subject) : Effect.flatMap(led, (led) => this.objectionAt(now, led))
  }

  private objectionAt(now: LookedAt, subject: PermissionRule.Subject): Effect.Effect<LastLook> {
    const paths = subject.call.places
    const objection = this.objection(now.entry, now.call.params, subject)
    if (objection === Guard.none) return Effect.succeed({ paths, reason: undefined })
    return Effect.map(objection, (found) => {
      if (found === undefined || typeof found === "string") return { paths, reason: found }
      const isSettled =
        found.isWithin(now.own) || (found.coveredBy === "all" && this.options.state.blanket !== undefined)
      return {
        paths,
        reason: isSettled ? undefined : `${found.reason} Nobody was asked about that; propose the call again.`
      }
    })
  }

  private begin(
    check: PermissionCheck.PermissionCheck,
    { call, company, context, entry, params }: Proposal,
    authority: Authority | undefined,
    held: boolean
  ): Deciding {
    // Members are named one by one: a spread of the proposal costs as much as the rest of an allowed call's way here.
    const now: CheckState = {
      call,
      context,
      company,
      entry,
      params,
      authority,
      edited: false,
      warnings: noWarnings,
      own: undefined,
      edits: 0,
      held,
      check
    }
    const verdict = now.check.step(() => this.validated(now))
    // Most calls are decided by a rule, before an interruption can arrive.
    return check.resolved === undefined ? Effect.uninterruptible(Region.once(verdict)) : verdict
  }

  /** Arguments that are refused here end the call, unless there is something else to do. */
  private validated(now: CheckState, otherwise?: (problem: string) => Deciding): Deciding {
    const { context, entry, params } = now
    // A tool's own check may fail with a value that its type forbids.
    const invalid = (said: unknown): Deciding => {
      const text = typeof said === "string" && said !== "" ? said : `${entry.name} refuses these arguments.`
      if (otherwise !== undefined) return otherwise(text)
      return Effect.as(now.check.settle(now, { granted: false, method: "pre_validation", reason: text }), {
        _tag: "Denied",
        outcome: "invalid",
        text
      } as const)
    }
    const tooLong = PermissionRule.tooLong(entry.shellCommand, now.call.params)
    if (tooLong !== undefined) return invalid(tooLong)
    if (entry.validate === undefined) return this.guarded(now)
    return now.check.after(
      ApprovalForm.within(entry.validate(params), context ?? entry.context),
      () => this.guarded(now),
      invalid
    )
  }

  private guarded(now: CheckState): Deciding {
    const { policy, state } = this.options
    const subject = CompiledPolicy.subject(policy, now.entry, now.call.params)
    const led = CompiledPolicy.led(policy, state, subject)
    return led === undefined
      ? this.looked(now, subject)
      : now.check.after(led, (subject) => this.looked({ ...now, paths: subject.call.places }, subject))
  }

  private looked(now: CheckState, subject: PermissionRule.Subject): Deciding {
    const beyond = PlanMode.beyond(this.options.state, now, subject)
    if (beyond !== undefined) return this.deny(now, { granted: false, method: "mode", reason: beyond })
    return now.check.after(this.objection(now.entry, now.call.params, subject), (found) => {
      if (typeof found === "string") return this.deny(now, { granted: false, method: "guard", reason: found })
      const own = PlanMode.questionOf(now.entry, found)
      const next = own === now.own ? now : { ...now, own }
      const { approvals } = this.options.policy
      return approvals === undefined ? this.authorized(next, subject) : this.reserved(next, subject, approvals)
    })
  }

  private reserved(now: CheckState, subject: PermissionRule.Subject, approvals: Approvals.Approvals): Deciding {
    const all = Approvals.needsOf(approvals, subject)
    return all === undefined
      ? this.authorized(now, subject)
      : now.check.after(reservedCall(), ({ decide }) => decide(this, now, subject, all))
  }

  private authorized(now: CheckState, subject: PermissionRule.Subject): Deciding {
    const { authority } = now
    if (authority === undefined) return this.ruled(now, subject)
    return now.check.after(authority(now, this.options), (known) =>
      decides(now, known) ? this.byAuthority(now, subject, known.value, "authority") : this.ruled(now, subject)
    )
  }

  private ruled(now: CheckState, subject: PermissionRule.Subject): Deciding {
    const decision = Ruling.evaluate(this.options, now, subject)
    if (decision.decision !== "ask") return this.byRule(now, decision)
    const { insteadOfAsking, state } = this.options
    if (insteadOfAsking === undefined || state.asksNobody) return this.ask(now, subject, decision)
    return now.check.after(insteadOfAsking(now, this.options), (known) =>
      decides(now, known) ? this.byAuthority(now, subject, known.value, "answer") : this.ask(now, subject, decision)
    )
  }

  /**
   * An authority that allows all calls of a tool has not seen this one: if it cannot be told what the command runs,
   * that does not suffice. A person who was asked has seen the call.
   */
  private byAuthority(now: CheckState, subject: Guard.Subject, known: Resolution, by: HeldCall.AllowedBy): Deciding {
    const { granted, method, requestId } = known
    const isSeen = !granted || requestId !== undefined || method === "stage_grant"
    const doubt = isSeen ? undefined : this.options.state.doubt(this.options.policy, subject)
    return doubt === undefined ? this.resolve(now, known, by) : this.ask(now, subject, { doubt: doubt.reason })
  }

  byRule(now: CheckState, { decision, method, rule }: Decision): Effect.Effect<Verdict> {
    return decision === "allow"
      ? HeldCall.allow(this, now, { granted: true, method, reason: rule }, "rule")
      : this.deny(now, { granted: false, method, reason: PlanMode.blockedBy(method, rule) })
  }

  /** With nobody there, a doubt is the reason to deny. */
  private ask(now: CheckState, subject: PermissionRule.Subject, why: Why): Deciding {
    if (PlanMode.isSilent(this.options.state, now.entry)) return this.deny(now, PlanMode.unasked)
    const { doubt } = why
    return now.check.after(this.formOf(now, subject, why), (form) => {
      const { fiber, origin, restore } = now.check
      const single = InteractionRequest.unsafeMake(form, fiber, origin)
      const place = now.company?.placeOf(now.call, single.requestId)
      const request = place === undefined ? single : InteractionRequest.inBatch(single, place)
      const upcoming = place === undefined || now.authority !== undefined ? undefined : this.upcoming(now)
      const asked = { requestId: request.requestId, askedAt: request.issuedAt }
      const before = now.check.asked
      // While this request waited in line, an earlier answer may have decided the call; then that decision is reported.
      let known: Decision | undefined
      const recheck = Recheck.make((): Option.Option<ApproveAnswer> => {
        const found = Ruling.evaluate(this.options, now, subject)
        if (found.decision === "ask") {
          now.check.asked = asked
          return Option.none()
        }
        known = found
        return Option.some({ decision: found.decision, scope: "once" })
      })
      const put = () =>
        now.check.await(
          Asking.askMasked(Interactor.of(fiber), request, upcoming ? { recheck, upcoming } : { recheck }, restore),
          ({ answer, at, by, how }) => {
            // An earlier answer to another request decided it: this request was never shown.
            if (how === "recheck") {
              now.check.asked = before
              return this.byRule(now, known ?? Ruling.evaluate(this.options, now, subject))
            }
            const to = { requestId: asked.requestId, askedAt: asked.askedAt, answeredAt: at, by, how }
            return this.answered(now, subject, to, form.onceOnly === true ? PermissionOption.once(answer) : answer)
          },
          (error) => {
            const reason = this.options.redactor.text(doubt ?? error.message)
            return this.deny(now, {
              granted: false,
              method: unanswered(error),
              reason,
              ...asked,
              ...withdrawnBy(error)
            })
          }
        )
      return this.edited(now, asked.requestId, put)
    })
  }

  /** Continues once the edit that led to this request is recorded. */
  edited(now: CheckState, leadsTo: RequestId, next: () => Deciding): Deciding {
    return now.check.after(now.check.recordEdit(leadsTo), next, ({ message }) =>
      this.deny(now, { granted: false, method: "check_failed", reason: message })
    )
  }

  /** The questions about the other calls of its batch, for a channel that shows them together. */
  private upcoming(now: CheckState): Effect.Effect<ReadonlyArray<Interactor.Upcoming>> {
    return Effect.flatMap(
      Effect.promise(() => import("./Upcoming.js")),
      (loaded) => loaded.after(this, now)
    )
  }

  /** What is shown of a call that the rules want to be asked about. */
  formOf(now: CheckState, subject: PermissionRule.Subject, { doubt, part }: Why): Effect.Effect<Approve> {
    const { policy, redactor } = this.options
    const isDelegated =
      now.own === undefined && doubt === undefined && this.options.state.delegation(policy, subject) !== undefined
    const key = PermissionRule.rememberKey(subject)
    const why = doubt ?? part
    const shown = why === undefined ? now : { ...now, warnings: [...now.warnings, why] }
    return ApprovalForm.make(isDelegated ? { ...shown, delegated: true } : shown, key, redactor)
  }

  private answered(
    now: CheckState,
    subject: PermissionRule.Subject,
    asked: Required<PermissionCheck.Asked>,
    answer: ApproveAnswer
  ): Deciding {
    now.check.asked = asked
    if (answer.decision === "edit") return this.withEdits(now, answer.editedArguments, asked)
    // A rule that allows everything has not looked at the call.
    const isSeen = asked.how === "answered" || answer.decision === "deny"
    const doubt = isSeen ? undefined : this.options.state.doubt(this.options.policy, subject)
    if (doubt?.forbidden === true)
      return this.deny(now, { granted: false, method: "unavailable", reason: doubt.reason, ...asked })
    if (PlanMode.isUnheard(now.entry, asked.how, answer)) return this.deny(now, { ...PlanMode.unheard, ...asked })
    if (answer.scope !== "once") this.remember(now, answer, PermissionRule.rememberKey(subject))
    const { answeredAt, askedAt, by, how, requestId } = asked
    const { granted, method, reason } = answered(answer, by, how)
    // Members are named one by one: a spread would give every resolution a shape of its own.
    return this.resolve(now, { granted, method, reason, requestId, askedAt, answeredAt, by, how }, "answer")
  }

  remember(now: CheckState, answer: ApproveAnswer, key: string): void {
    const { state, policy } = this.options
    const { sessionId } = now.check.origin
    const before = state.status(policy, sessionId).suspension
    state.apply(answer, key, sessionId)
    const { suspension } = state.status(policy, sessionId)
    if (suspension !== undefined && suspension !== before) now.check.tell(state.told(policy, sessionId))
  }

  /** Edited arguments start from the top. Those that do not fit are no answer: the call is shown again with the problem. */
  withEdits(
    now: CheckState,
    changes: { readonly [name: string]: unknown },
    asked: PermissionCheck.Asked & Pick<Resolution, "votes">,
    votes?: ReadonlyArray<Ballot.Cast>
  ): Deciding {
    const { call, entry } = now
    const edits = now.edits + 1
    if (edits > maxEdits) {
      const reason = `the arguments were edited ${maxEdits} times without a decision`
      return this.deny(now, { granted: false, method: "edit_incomplete", reason, ...asked })
    }
    const decoded = Either.flatMap(ApprovalForm.edited(now, changes, this.options.redactor), (params) =>
      Either.map(entry.decode(params), (decoded) => ({ call: { ...call, params }, params: decoded }))
    )
    const edit = { ...asked, args: call.params }
    const again = (problem: string): Deciding => {
      const reason = `The edited arguments do not fit: ${problem}`
      now.check.edit(now, { ...edit, newArgs: undefined, reason })
      return this.validated({ ...now, edits, votes: undefined, warnings: [reason] })
    }
    if (Either.isLeft(decoded)) return again(decoded.left)
    const changed = { ...now, ...decoded.right, edited: true, edits, votes, warnings: noWarnings }
    now.check.edit(changed, { ...edit, newArgs: changed.call.params })
    return this.validated(changed, again)
  }

  objection(
    entry: ToolRegistry.Entry,
    params: unknown,
    subject: PermissionRule.Subject
  ): Effect.Effect<Guard.Objection | undefined> {
    const { policy, guards, redactor, state } = this.options
    const refused = state.isPlanning ? PlanMode.refusal(entry, subject) : undefined
    if (refused !== undefined) return Effect.succeed(refused)
    return Guard.objection(policy.deny, guards, { tool: entry.name, params, subject, entry }, redactor)
  }

  resolve(now: CheckState, resolution: Resolution, by: HeldCall.AllowedBy): Effect.Effect<Verdict> {
    return resolution.granted ? HeldCall.allow(this, now, resolution, by) : this.deny(now, resolution)
  }

  /**
   * The guards look at the arguments that will run, after any delay. The call runs at the paths that this look saw. They
   * have to be those that were decided.
   */
  run(now: CheckState, resolution: Resolution): Effect.Effect<Verdict> {
    return now.check.after(this.lastLook(now), ({ paths, reason }) => {
      const objection = reason ?? (ResolvedPath.areSamePlaces(now.paths, paths) ? undefined : HeldCall.elsewhere)
      return objection === undefined
        ? this.grant(paths === undefined ? now : { ...now, paths }, resolution)
        : this.deny(now, { ...resolution, granted: false, method: "guard", reason: objection })
    })
  }

  unlessTakenBack(
    now: CheckState,
    given: Pick<Resolution, "voters">,
    by: HeldCall.AllowedBy,
    next: (now: CheckState) => Effect.Effect<Verdict>
  ): Effect.Effect<Verdict> {
    return HeldCall.unlessTakenBack(this, now, given, by, next)
  }

  // Most calls end here: without a record to write, the verdict is known at once.
  private grant(now: CheckState, given: Resolution): Effect.Effect<Verdict> {
    const runs = now.entry.runs?.(now.call.params)
    const resolution = runs === undefined ? given : { ...given, sandbox: runs }
    const settled = now.check.settle(now, resolution)
    return isImmediate(settled)
      ? Effect.succeed(verdictOf(now, settled.value))
      : Effect.map(settled, (settled) => verdictOf(now, settled))
  }

  deny(now: CheckState, resolution: Resolution): Effect.Effect<Verdict> {
    const settled = now.check.settle(now, resolution)
    return isImmediate(settled) ? Effect.succeed(denied(settled.value)) : Effect.map(settled, denied)
  }
}
