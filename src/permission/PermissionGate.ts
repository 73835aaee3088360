/**
 * May this tool call run? One question, one resolution.
 *
 * ```
 *  examine ─► judge ──────────────────┬─► allow, grant: the last look of the guards, the record, the event
 *  (guards)   (authority of the stage, ├─► deny: the record, the event
 *      ▲       envelope, then rules)   └─► ask: the current interactor ──► its answer, allow or deny
 *      └────────────────────────────────── edited arguments ◄──────────────┘
 * ```
 *
 * `insteadOfAsking` goes before the interactor: a delegation asks for its envelope there, and not for the call.
 *
 * A call that the policy's approvals reserve leaves this way behind the guards: the people whom the rule names are asked, and
 * later steps may only deny it: see `ReservedCall`.
 *
 * Guards run in every mode, before anybody is asked and again on the final arguments just before execution. When a
 * guard wants a question of its own, the later steps may deny the call but not allow it. Any failure in the gate
 * denies.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { RequestId } from "../core/Id.js"
import type { Restore } from "../core/Interruption.js"
import * as LazyModule from "../core/LazyModule.js"
import type { Origin } from "../core/Origin.js"
import * as Region from "../core/Region.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as Spans from "../core/Spans.js"
import * as Immediate from "../internal/Immediate.js"
import { isImmediate } from "../internal/Immediate.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Ballot from "../interaction/Ballot.js"
import type { Approve, ApproveAnswer } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as PermissionOption from "../interaction/PermissionOption.js"
import * as DelegatingTool from "../tool/DelegatingTool.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as Approvals from "./Approvals.js"
import type { Authority, Proposal } from "./Authority.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import * as Guard from "./Guard.js"
import * as PermissionRecord from "./PermissionRecord.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import * as PlanMode from "./PlanMode.js"
import * as Ruling from "./Ruling.js"
import {
  allowed,
  answered,
  denied,
  spanEnd,
  unanswered,
  withdrawnBy,
  type Allowed,
  type Asked,
  type Past,
  type Resolution,
  type Verdict
} from "./Verdict.js"

export type { Allowed, Denied, Pending, Resolution, Verdict } from "./Verdict.js"
export { isRefusal, unanswered } from "./Verdict.js"
export type { Authority, Proposal } from "./Authority.js"
export { orElse } from "./Authority.js"
export type { Options as CheckOptions } from "./PermissionRecord.js"

/**
 * The rules, guards and authorities that decide.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends PermissionRecord.Options {
  readonly policy: CompiledPolicy.Policy
  /** One state for the whole tree. */
  readonly state: PermissionState
  /** In order; the first that fails decides. */
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly authority?: Authority | undefined
  /** When the rules say to ask: decides in place of the question, or leaves the question to be asked. */
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
   * The paths that its policy denies to everybody.
   *
   * @internal
   */
  readonly denied: ReadonlyArray<string>
  /**
   * Decides about a call whose arguments decode. Asks the current interactor when the rules say so. An authority given
   * here replaces the gate's own.
   */
  readonly check: (
    proposal: Proposal,
    authority?: Authority | undefined
  ) => Effect.Effect<Verdict, never, Interactor.Interactor>
  /**
   * Opens a check for a caller that may have to abandon it. A call that is `held` has to wait before it runs, and is
   * settled after that.
   *
   * @internal
   */
  readonly open: (
    proposal: Proposal,
    options: { readonly authority: Authority | undefined; readonly held: boolean }
  ) => OpenCheck
  /**
   * The last look at a call that another process allowed. The reason for which it was allowed has to hold still. A refusal
   * is published and recorded.
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
 * A check that its caller may abandon. Made in the fiber that runs it.
 *
 * @internal
 */
export interface OpenCheck {
  readonly verdict: Effect.Effect<Verdict, never, Interactor.Interactor>
  /** Publishes at once that the call does not run. */
  readonly leave: () => void
  /** Records that the call was abandoned. */
  readonly writeLeft: Effect.Effect<void>
}

/**
 * A gate for one session.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Service => new Gate(options)

/**
 * Loads the rules about reserved calls, if the policy reserves any: later no call waits for that.
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
const reservedCall = LazyModule.getter(() => import("./ReservedCall.js"))

/** The call in its present form. An edit makes another. */
interface Candidate extends Proposal, Ruling.Called {
  readonly call: Proposal["call"]
  readonly origin: Origin
  readonly edited: boolean
  /** Votes on exactly these arguments: those people wanted them in place of others. */
  readonly votes: ReadonlyArray<Ballot.Cast>
}

/** A candidate to which no guard objects. */
interface Examined extends Candidate, Ruling.Passed {}

/** Neither an authority nor a rule decides: somebody is asked. */
interface Open {
  readonly _tag: "Open"
  readonly why: Why
}

/** An answer that wants other arguments. */
interface Edited {
  readonly _tag: "Edited"
  readonly changes: { readonly [name: string]: unknown }
  readonly asked: Asked & Pick<Resolution, "votes">
  readonly votes: ReadonlyArray<Ballot.Cast>
}

/**
 * Why a call was allowed. It says what has to hold when the call runs.
 *
 * - `rule`: a rule, or a mode or suspension that holds if no rule says otherwise. It still has to.
 * - `answer`: an answer to a question. No list may deny the call by now, and its paths lead to the places that were shown.
 * - `authority`: a stage or an envelope, which come before the lists.
 */
type AllowedBy = "rule" | "answer" | "authority"

type Steps<A, R = Interactor.Interactor> = Effect.fn.Return<A, never, R>

/** A class: a session has one, and thousands of sessions may wait for an answer. */
class Gate implements Service {
  constructor(private readonly options: Options) {}

  get denied(): ReadonlyArray<string> {
    return this.options.policy.paths
  }

  check(proposal: Proposal, authority = this.options.authority): Effect.Effect<Verdict, never, Interactor.Interactor> {
    return Effect.suspend(() => new Check(this.options, proposal, authority, false).verdict)
  }

  open(
    proposal: Proposal,
    { authority = this.options.authority, held }: { readonly authority: Authority | undefined; readonly held: boolean }
  ): OpenCheck {
    return new Check(this.options, proposal, authority, held)
  }

  lookAgain(
    proposal: Pick<Proposal, "call" | "entry">,
    past: Past,
    authority = this.options.authority
  ): Effect.Effect<Verdict> {
    const again = { ...proposal, params: past.params }
    return Effect.suspend(() => new Check(this.options, again, authority, false).resume(past))
  }

  guard(entry: ToolRegistry.Entry, encoded: unknown, answered?: Guard.Ask): Effect.Effect<string | undefined> {
    const { options } = this
    return Effect.flatMap(Ruling.resolveLinks(options, entry, encoded), (subject) =>
      Effect.map(Ruling.askGuards(options, entry, encoded, subject), (found) => refusalOf(options, found, answered))
    )
  }
}

/** One call on its way through the gate. All its steps are uninterruptible; only what `wait` is put around can be cut. */
class Check implements OpenCheck {
  private readonly record: PermissionRecord.PermissionRecord
  private readonly fiber: Fiber.RuntimeFiber<unknown, unknown>
  /** Restores the caller's interruptibility. Known once something has to be waited for. */
  private restore: Restore = asItIs

  constructor(
    private readonly options: Options,
    private readonly proposal: Proposal,
    private readonly authority: Authority | undefined,
    private readonly held: boolean
  ) {
    this.fiber = Option.getOrThrow(Fiber.getCurrentFiber())
    this.record = new PermissionRecord.PermissionRecord(options, proposal.call, this.fiber)
  }

  get verdict(): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const { options, proposal, record } = this
    const checked = this.denyOnFailure(this.run())
    if (options.spans === undefined || Spans.areOff(options.spans)) return checked
    return options.spans.within(
      () => ({
        name: "assent.permission",
        attributes: { "gen_ai.tool.name": proposal.call.name },
        ended: () => spanEnd(record.resolved)
      }),
      checked
    )
  }

  leave(): void {
    this.record.leave()
  }

  get writeLeft(): Effect.Effect<void> {
    return this.record.writeLeft
  }

  /** The last look at a call that another process allowed. */
  resume(past: Past): Effect.Effect<Verdict> {
    const looked = this.denyOnFailure(this.lookAgain(past))
    return Effect.provideService(looked, Interactor.Interactor, Interactor.of(this.fiber))
  }

  /** Runs the steps at once as far as nothing has to be waited for: most calls are decided by a rule. */
  private denyOnFailure<R>(steps: Steps<Verdict, R>): Effect.Effect<Verdict, never, R> {
    const checked = Immediate.gen(steps)
    if (isImmediate(checked)) return checked
    return Region.uninterruptibleMask((restore) => {
      this.restore = restore
      return Effect.catchAllCause(checked, (cause) => this.record.fail(cause))
    })
  }

  /** Waits as interruptibly as the caller of the check. */
  private wait<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> | Immediate.Known<A> {
    return isImmediate(effect) ? new Immediate.Known(effect.value) : this.restoring(effect)
  }

  private restoring<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => this.restore(effect))
  }

  /** Examines and decides until an answer wants no other arguments. */
  private *run(): Steps<Verdict> {
    const { options, proposal, record } = this
    // Members are named one by one: a spread costs as much as the rest of the way of a call that a rule allows.
    let call: Candidate = {
      call: proposal.call,
      entry: proposal.entry,
      params: proposal.params,
      context: proposal.context,
      company: proposal.company,
      origin: record.origin,
      warnings: none,
      edited: false,
      votes: none
    }
    /** The form that an answer wanted to change, until its arguments turn out to fit. */
    let shown: { readonly call: Candidate; readonly edit: PermissionRecord.Edit } | undefined
    for (let edits = 0; ;) {
      const examined = yield* this.wait(Ruling.examine(options, call))
      if (examined._tag === "Invalid") {
        yield* this.wait(pendingInterruption)
        if (shown === undefined) {
          yield* record.settle(call, { granted: false, method: "pre_validation", reason: examined.reason })
          return { _tag: "Denied", outcome: "invalid", text: examined.reason }
        }
        call = this.misfit(shown.call, shown.edit, examined.reason)
        shown = undefined
        continue
      }
      if (examined._tag === "Refused")
        return yield* this.deny(call, { granted: false, method: examined.method, reason: examined.reason })
      // The call before its examination is let go: thousands of calls may wait for an answer.
      const now = examinedOf(call, examined)
      call = now
      const judged: Verdict | Edited | Open = yield* this.judge(now)
      const outcome: Verdict | Edited = judged._tag === "Open" ? yield* this.ask(now, judged.why) : judged
      if (outcome._tag !== "Edited") return outcome
      // Edited arguments start from the top. Arguments that do not fit are no answer: the call is shown again.
      edits++
      const { asked, changes, votes } = outcome
      if (edits > maxEdits) {
        const reason = `the arguments were edited ${maxEdits} times without a decision`
        return yield* this.deny(call, { granted: false, method: "edit_incomplete", reason, ...asked })
      }
      const edit = { ...asked, args: call.call.params, newArgs: undefined }
      const changed = this.withChanges(call, changes)
      if (Either.isLeft(changed)) {
        call = this.misfit(call, edit, changed.left)
        continue
      }
      shown = { call, edit }
      call = { ...changed.right, votes }
      record.noteEdit(call, { ...edit, newArgs: call.call.params })
    }
  }

  private withChanges(call: Candidate, changes: Edited["changes"]): Either.Either<Candidate, string> {
    return Either.flatMap(ApprovalForm.edited(call, changes, this.options.redactor), (params) =>
      Either.map(call.entry.decode(params), (decoded) => ({
        ...call,
        call: { ...call.call, params },
        params: decoded,
        edited: true,
        warnings: []
      }))
    )
  }

  /** The call as it was before an edit that does not fit, with the problem. */
  private misfit(call: Candidate, edit: PermissionRecord.Edit, problem: string): Candidate {
    const reason = `The edited arguments do not fit: ${problem}`
    this.record.noteEdit(call, { ...edit, reason })
    return { ...call, votes: [], warnings: [reason] }
  }

  /** Decides, as far as nobody has to be asked. A reserved call is decided by the people for whom it is reserved. */
  private *judge(call: Examined): Steps<Verdict | Edited | Open> {
    const { authority, options } = this
    if (call.reserved !== undefined) return yield* this.askReserved(call, call.reserved)
    if (authority !== undefined) {
      const known = yield* this.wait(authority(call, options))
      if (ends(call, known)) return yield* this.applyAuthority(call, known.value, "authority")
    }
    const decision = Ruling.decide(options, call, call.subject, call.own)
    if (decision.decision !== "ask") return yield* this.applyRule(call, decision)
    const { insteadOfAsking, state } = options
    if (insteadOfAsking !== undefined && !state.asksNobody) {
      const known = yield* this.wait(insteadOfAsking(call, options))
      if (ends(call, known)) return yield* this.applyAuthority(call, known.value, "answer")
    }
    return { _tag: "Open", why: decision }
  }

  // -- asking -------------------------------------------------------------------------------------------------------

  /** `why`: the doubt or the part of a command for which somebody is asked. With nobody there, a doubt is the reason to deny. */
  private *ask(call: Examined, why: Why): Steps<Verdict | Edited> {
    const { fiber, options, record } = this
    const { subject } = call
    if (PlanMode.isSilent(options.state, call.entry)) return yield* this.deny(call, PlanMode.unasked)
    const form = yield* this.wait(formOf(options, call, why))
    const single = InteractionRequest.unsafeMake(form, fiber, askerOf(call))
    const place = call.company?.placeOf(call.call, single.requestId)
    const request = place === undefined ? single : InteractionRequest.inBatch(single, place)
    const upcoming = place === undefined || this.authority !== undefined ? undefined : this.upcoming(call)
    const asked = { requestId: request.requestId, askedAt: request.issuedAt }
    const before = record.asked
    // While this request waited in line, an earlier answer may have decided the call; then that decision is reported.
    let known: Decision | undefined
    const recheck = Effect.sync((): Option.Option<ApproveAnswer> => {
      const found = Ruling.decide(options, call, subject, call.own)
      if (found.decision === "ask") {
        record.asked = asked
        return Option.none()
      }
      known = found
      return Option.some({ decision: found.decision, scope: "once" })
    })
    const unrecorded = yield* this.recordEdit(request.requestId)
    if (unrecorded !== undefined) return yield* this.deny(call, unrecorded)
    const interactor = Interactor.of(fiber)
    const asking = interactor.request(request, upcoming ? { recheck, upcoming } : { recheck })
    const reply = yield* Effect.either(this.restoring(asking))
    if (Either.isLeft(reply)) {
      yield* this.wait(pendingInterruption)
      const reason = options.redactor.text(why.doubt ?? reply.left.message)
      return yield* this.deny(call, { ...asked, ...unansweredBy(reply.left), reason })
    }
    const { answer, at, by, how } = InteractorCall.answered(interactor.id, reply.right)
    if (how === "recheck") {
      // An earlier answer to another request decided it: this request was never shown.
      record.asked = before
      return yield* this.applyRule(call, known ?? Ruling.decide(options, call, subject, call.own))
    }
    const given = { requestId: request.requestId, askedAt: request.issuedAt, answeredAt: at, by, how }
    record.asked = given
    return yield* this.applyAnswer(call, form.onceOnly === true ? PermissionOption.once(answer) : answer, given)
  }

  /** The questions about the other calls of its batch, for a channel that shows them together. */
  private upcoming(call: Examined): Effect.Effect<ReadonlyArray<Interactor.Upcoming>> {
    const questionOf = (candidate: Candidate) =>
      Effect.gen(this, function* () {
        const { options } = this
        const examined = yield* Ruling.examine(options, candidate)
        if (examined._tag !== "Passed" || examined.reserved !== undefined) return Option.none()
        const { own, subject } = examined
        const decision = Ruling.decide(options, candidate, subject, own)
        return decision.decision === "ask"
          ? Option.some(yield* formOf(options, examinedOf(candidate, examined), decision))
          : Option.none()
      })
    return Effect.flatMap(
      Effect.promise(() => import("./Upcoming.js")),
      (Upcoming) => Upcoming.after<Candidate>(call, questionOf)
    )
  }

  /** A call that several people, a role or a person decide. */
  private *askReserved(call: Examined, all: NonNullable<Examined["reserved"]>): Steps<Verdict | Edited> {
    const { fiber, options, record } = this
    const { subject } = call
    const { policy, redactor, state } = options
    const denial = state.denial(policy, subject)
    if (denial !== undefined) return yield* this.applyRule(call, denial)
    const ReservedCall = yield* reservedCall()
    if (PlanMode.isSilent(state, call.entry)) {
      const reason = `${ReservedCall.describe(all)}; the mode is deny`
      return yield* this.deny(call, { granted: false, method: "mode", reason })
    }
    const needs = ReservedCall.needsOf(call.call, all)
    const form = yield* this.wait(ApprovalForm.make({ ...call, needs }, PermissionRule.rememberKey(subject), redactor))
    const reserved = { ...form, needs }
    // The people who wanted exactly these arguments have voted on them already.
    const before = ReservedCall.count(reserved, call.votes)
    if (before._tag !== "Undecided" && record.asked !== undefined)
      return yield* this.applyVotes(call, before, record.asked)
    const request = InteractionRequest.unsafeMake(form, fiber, askerOf(call))
    const asked = { requestId: request.requestId, askedAt: request.issuedAt }
    record.asked = asked
    // A list may deny it while it waits in line; nothing may allow it.
    const recheck = Effect.sync((): Option.Option<ApproveAnswer> =>
      state.denial(policy, subject) === undefined ? Option.none() : Option.some({ decision: "deny", scope: "once" })
    )
    const unrecorded = yield* this.recordEdit(request.requestId)
    if (unrecorded !== undefined) return yield* this.deny(call, unrecorded)
    const reply = yield* Effect.either(
      this.restoring(InteractorCall.ask(Interactor.of(fiber), request, { recheck, votes: call.votes }))
    )
    if (Either.isLeft(reply)) {
      yield* this.wait(pendingInterruption)
      const error = reply.left
      const why = error._tag === "InteractorUnavailable" ? error.reason : error.message
      const reason = redactor.text(`${ReservedCall.describe(all)}: ${why}`)
      return yield* this.deny(call, { ...asked, ...unansweredBy(error), reason })
    }
    const votes = ReservedCall.votesIn(reply.right)
    const outcome = ReservedCall.count(reserved, votes)
    if (outcome._tag !== "Undecided")
      return yield* this.applyVotes(call, outcome, { ...asked, answeredAt: reply.right.at })
    const denialNow = reply.right.how === "recheck" ? state.denial(policy, subject) : undefined
    if (denialNow !== undefined) return yield* this.applyRule(call, denialNow)
    const reason = ReservedCall.missing(all, votes, reply.right)
    return yield* this.deny(call, { granted: false, method: "unavailable", reason, ...asked })
  }

  /** Why nobody can be asked: the edit that led to this request cannot be recorded. */
  private *recordEdit(leadsTo: RequestId): Steps<Resolution | undefined> {
    const recording = this.record.recordEdit(leadsTo)
    if (isImmediate(recording)) return undefined
    const recorded = yield* Effect.either(this.restoring(recording))
    return Either.isRight(recorded)
      ? undefined
      : { granted: false, method: "check_failed", reason: recorded.left.message }
  }

  // -- applying -----------------------------------------------------------------------------------------------------

  private applyRule(
    call: Examined,
    { decision, method, reading, rule }: Decision
  ): Steps<Verdict> | Immediate.Known<Verdict> {
    return decision === "allow"
      ? this.allow(call, { granted: true, method, reason: rule, ...(reading && { reading }) }, "rule")
      : this.deny(call, { granted: false, method, reason: PlanMode.blockedBy(method, rule) })
  }

  /**
   * An authority that allows all calls of a tool has not seen this one: if it cannot be told what the command runs,
   * that does not suffice. A person who was asked has seen the call.
   */
  private *applyAuthority(call: Examined, known: Resolution, by: AllowedBy): Steps<Verdict | Open> {
    const { granted, method, requestId } = known
    if (!granted) return yield* this.deny(call, known)
    const isSeen = requestId !== undefined || method === "stage_grant"
    const doubt = isSeen ? undefined : this.options.state.doubt(this.options.policy, call.subject)
    return doubt === undefined ? yield* this.allow(call, known, by) : { _tag: "Open", why: { doubt: doubt.reason } }
  }

  private *applyAnswer(call: Examined, answer: ApproveAnswer, asked: Required<Asked>): Steps<Verdict | Edited> {
    if (answer.decision === "edit") return { _tag: "Edited", changes: answer.editedArguments, asked, votes: [] }
    const { policy, state } = this.options
    // A rule that allows everything has not looked at the call.
    const isSeen = asked.how === "answered" || answer.decision === "deny"
    const doubt = isSeen ? undefined : state.doubt(policy, call.subject)
    const forbidden = doubt?.forbidden === true ? doubt.reason : isSeen ? undefined : Guard.doubtOf(call.own)
    if (forbidden !== undefined)
      return yield* this.deny(call, { granted: false, method: "unavailable", reason: forbidden, ...asked })
    if (PlanMode.isUnheard(call.entry, asked.how, answer))
      return yield* this.deny(call, { ...PlanMode.unheard, ...asked })
    if (answer.scope !== "once") this.remember(answer, call)
    const { answeredAt, askedAt, by, how, requestId } = asked
    const { granted, method, reason } = answered(answer, by, how)
    // Members are named one by one: a spread would give every resolution a shape of its own.
    const resolution = { granted, method, reason, requestId, askedAt, answeredAt, by, how }
    return resolution.granted ? yield* this.allow(call, resolution, "answer") : yield* this.deny(call, resolution)
  }

  /** A stage and an envelope bound what an agent may do at all: they may still deny what people voted for. */
  private *applyVotes(
    call: Examined,
    outcome: Exclude<ReservedOutcome, { readonly _tag: "Undecided" }>,
    { answeredAt, askedAt, requestId }: Asked
  ): Steps<Verdict | Edited> {
    const { authority, options } = this
    const asked = {
      ...(requestId !== undefined && { requestId }),
      ...(askedAt !== undefined && { askedAt }),
      answeredAt,
      ...outcome.given
    }
    this.record.asked = asked
    if (outcome._tag === "Edited") return { _tag: "Edited", changes: outcome.changes, asked, votes: outcome.votes }
    const { answer, voters } = outcome
    if (answer.decision === "deny") {
      if (answer.scope === "session") this.remember(answer, call)
      return yield* this.deny(call, { ...answered(answer, asked.by, "answered"), ...asked })
    }
    for (const bound of [authority, options.insteadOfAsking]) {
      if (bound === undefined) continue
      const known = yield* this.wait(bound(call, options))
      if (Option.isSome(known) && !known.value.granted) return yield* this.deny(call, known.value)
    }
    const reason = `allowed (once) by ${asked.by}`
    return yield* this.allow(call, { granted: true, method: "user_approved", reason, ...asked, voters }, "answer")
  }

  private remember(answer: ApproveAnswer, { subject }: Examined): void {
    const { policy, state } = this.options
    const { sessionId } = this.record.origin
    const before = state.status(policy, sessionId).suspension
    const { definition } = subject.call
    if (definition !== undefined && answer.decision === "allow") state.noteDefinition(policy, definition, true)
    state.apply(answer, PermissionRule.rememberKey(subject), sessionId)
    const { suspension } = state.status(policy, sessionId)
    if (suspension !== undefined && suspension !== before) this.record.publishEvent(state.told(policy, sessionId))
  }

  /** A call that has to wait is settled when there is room: until then a person may take back the reason that allowed it. */
  private allow(call: Examined, resolution: Resolution, by: AllowedBy): Steps<Verdict> | Immediate.Known<Verdict> {
    if (this.held) return new Immediate.Known(this.hold(call, resolution, by))
    // A dialog may have been open for long. A rule was asked just now.
    const isOld = by === "answer" || resolution.requestId !== undefined
    return this.grant(call, resolution, isOld ? by : undefined)
  }

  private hold(call: Examined, resolution: Resolution, by: AllowedBy): Verdict {
    const { record } = this
    const pending = {
      settle: Effect.suspend(() => this.denyOnFailure(this.grant(call, resolution, by))),
      breakOff: Effect.suspend(() =>
        record.resolved === undefined ? Effect.asVoid(record.breakOff(PermissionRecord.cancelled)) : Effect.void
      ),
      leave: () => record.leave(),
      writeLeft: record.writeLeft
    }
    return allowed(call, call.subject.call.places, { pending })
  }

  /**
   * The last look, after any delay: guards see the arguments that will run, and the call runs at the places that this look
   * saw. If `by` is given, the reason that allowed the call has to hold still.
   */
  private *grant(call: Examined, given: Resolution, by: AllowedBy | undefined): Steps<Verdict, never> {
    const { options, record } = this
    const { entry, own } = call
    const { params } = call.call
    const subject = yield* this.wait(Ruling.resolveLinks(options, entry, params))
    const { places } = subject.call
    const isSame = ResolvedPath.areSamePlaces(call.subject.call.places, places)
    if (by !== undefined && !holds(options, call, subject, { by, isSame, voters: given.voters }))
      return yield* this.deny(call, { ...given, granted: false, method: "guard", reason: elsewhere })
    const reason = refusalOf(options, yield* this.wait(Ruling.askGuards(options, entry, params, subject)), own)
    if (reason !== undefined) return yield* this.deny(call, { ...given, granted: false, method: "guard", reason })
    if (by === undefined && !isSame)
      return yield* this.deny(call, { ...given, granted: false, method: "guard", reason: elsewhere })
    if (entry.definition !== undefined) options.state.noteDefinition(options.policy, entry.definition, false)
    const privileges = options.state.privileges(options.policy, subject, grantedBy(given), given.reading)
    const how = entry.runs?.(params)
    const sandbox = how === "confined" && privileges?.readOnly === true ? "reading" : how
    const inForce = yield* Immediate.step(record.settle(call, sandbox === undefined ? given : { ...given, sandbox }))
    const byPerson = inForce.method === "user_approved"
    return inForce.granted ? allowed(call, places, { byPerson, privileges }) : denied(inForce)
  }

  private *deny(call: PermissionRecord.Subject, resolution: Resolution): Steps<Verdict, never> {
    return denied(yield* Immediate.step(this.record.settle(call, resolution)))
  }

  /** The world may be another by now: the mode, the rules, the stage that the call belonged to. */
  private *lookAgain({ decided, ...past }: Past): Steps<Verdict> {
    const { authority, options, proposal, record } = this
    const { entry } = proposal
    const again = { ...proposal, call: { ...proposal.call, params: past.encoded }, edited: past.edited }
    const subject = yield* this.wait(Ruling.resolveLinks(options, entry, past.encoded))
    const reason = refusalOf(options, yield* this.wait(Ruling.askGuards(options, entry, past.encoded, subject)))
    if (reason !== undefined) return yield* this.deny(again, { granted: false, method: "guard", reason })
    const { places } = subject.call
    const at: Allowed = places === undefined ? past : { ...past, paths: places }
    if (decided === undefined) return at
    const known = authority === undefined ? Option.none() : yield* this.wait(authority(again, options))
    if (Option.isSome(known) && !known.value.granted) return yield* this.deny(again, known.value)
    const isByPerson = isAnswered(decided)
    const by =
      Option.isSome(known) && !isByPerson
        ? "authority"
        : isByPerson || isEnvelope(decided, entry.name)
          ? "answer"
          : "rule"
    // A yes without votes is that of one person, whom the journal does not name here.
    const voters = decided.voters ?? (isByPerson ? [{ by: "" }] : [])
    const call = { entry, origin: record.origin, own: undefined, warnings: [] }
    if (!holds(options, call, subject, { by, isSame: true, voters }))
      return yield* this.deny(again, { granted: false, method: "guard", reason: elsewhere, voters })
    const reading = by === "rule" && Ruling.decide(options, call, subject, undefined).reading === true
    const privileges = options.state.privileges(options.policy, subject, grantedBy(decided), reading)
    return privileges === undefined ? at : { ...at, privileges }
  }
}

const none: ReadonlyArray<never> = []

const asItIs: Restore = (effect) => effect

const examinedOf = (
  { call, company, context, edited, entry, origin, params, votes, warnings }: Candidate,
  { _tag, own, reserved, subject }: Ruling.Passed
): Examined => ({
  call,
  entry,
  params,
  context,
  company,
  origin,
  warnings,
  edited,
  votes,
  _tag,
  subject,
  own,
  reserved
})

/** Who asks about the call. A model that proposes its calls by itself waits for the answer in this process alone. */
const askerOf = ({ entry, origin }: Pick<Examined, "entry" | "origin">): Origin =>
  ToolRegistry.isOffered(entry.tool) ? origin : { ...origin, once: true }

/** An interruption that arrived while something failed ends the check here. */
const pendingInterruption = Effect.suspend(() => Effect.void)

type ReservedOutcome = import("./ReservedCall.js").Outcome

/** Why a person is asked about a call, if there is more to say than that no rule allows it. */
type Why = Pick<Decision, "doubt" | "part">

/** The question about a call that the rules want to be asked about. */
const formOf = (
  { policy, redactor, state }: Ruling.Rules,
  call: Examined,
  { doubt, part }: Why
): Effect.Effect<Approve> => {
  const { context, entry, own, params, subject } = call
  const delegated = own === undefined && doubt === undefined && state.delegation(policy, subject) !== undefined
  const why = doubt ?? part
  const warnings = why === undefined ? call.warnings : [...call.warnings, why]
  // Members are named one by one: a spread of the call costs as much as its form.
  const about = { call: call.call, entry, params, context, own, warnings, delegated }
  return ApprovalForm.make(about, PermissionRule.rememberKey(subject), redactor)
}

/** Whether the resolution of an authority ends the call's way through the gate. */
const ends = ({ own }: Examined, known: Option.Option<Resolution>): known is Option.Some<Resolution> =>
  Option.isSome(known) && (own === undefined || !known.value.granted)

/** Why guards refuse a call that was allowed. `answered`: their question that a person has answered. */
const refusalOf = (
  { state }: Ruling.Rules,
  found: Guard.Objection | undefined,
  answered?: Guard.Ask
): string | undefined => {
  if (found === undefined || typeof found === "string") return found
  const isSettled = found.isWithin(answered) || (found.coveredBy === "all" && state.blanket !== undefined)
  return isSettled ? undefined : `${found.reason} That was never asked. Propose the call again.`
}

/** Why a call was allowed, and whether its paths still lead to the places that were looked at. */
interface Reason {
  readonly by: AllowedBy
  readonly isSame: boolean
  readonly voters: ReadonlyArray<Ballot.Voter> | undefined
}

/** Whether the reason that allowed a call holds at the places where it would run now. */
const holds = (
  { policy, state }: Ruling.Rules,
  call: Pick<Examined, "entry" | "origin" | "own" | "warnings">,
  subject: PermissionRule.Subject,
  { by, isSame, voters = [] }: Reason
): boolean => {
  // A person answered for the places that were shown. A rule or an authority answers for the places of this look.
  if (by === "answer" && !isSame) return false
  const needs = policy.approvals && Approvals.needsOf(policy.approvals, subject)
  if (needs !== undefined && !Ballot.suffices(needs, voters)) return false
  if (by === "authority") return true
  const { decision } = Ruling.decide({ policy, state }, call, subject, call.own)
  if (by === "rule") return decision === "allow"
  return decision !== "deny" || state.denial(policy, subject) === undefined
}

/** Why a call that was allowed does not run. */
const elsewhere = "its permission ended before it ran; propose the call again"

/** How a question ended to which nobody answered. */
const unansweredBy = (error: InteractionError): Omit<Resolution, "reason"> => ({
  granted: false,
  method: unanswered(error),
  ...withdrawnBy(error)
})

/** A person who saw the call allowed it, or a rule did, or neither has looked at its arguments. */
const grantedBy = ({ how, method }: NonNullable<Past["decided"]>): "person" | "rule" | "authority" => {
  switch (method) {
    case "stage_grant":
      return "person"
    case "user_approved":
      return how === undefined || how === "answered" ? "person" : "authority"
    case "session_whitelist":
    case "whitelist":
      return "rule"
    default:
      return "authority"
  }
}

/** A person answered. A stage, an envelope and the rules are no person. */
const isAnswered = ({ how, method }: NonNullable<Past["decided"]>): boolean =>
  method === "user_approved" && how !== "model"

/** A person answers for the envelope of a subagent before the call that makes it. */
const isEnvelope = ({ method }: NonNullable<Past["decided"]>, tool: string): boolean =>
  method === "envelope" && DelegatingTool.is(tool)
