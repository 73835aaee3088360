/**
 * May this tool call run? One question, one resolution.
 *
 * ```
 *  validation ─► guards ─► authority ─► rules and suspensions ─► ask ─► apply the answer
 *  (must fail?)  (deny, or  (grants,                              │
 *                 ask)      envelopes)           edited arguments └─► from the top
 * ```
 *
 * Guards run in every mode, before anybody is asked and again on the final arguments just before execution. Where one wants
 * a question of its own, what follows may deny the call but not allow it. Whatever goes wrong in here denies.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Fiber from "effect/Fiber"
import type * as FiberStatus from "effect/FiberStatus"
import * as Option from "effect/Option"
import { isKnown } from "../core/Known.js"
import * as Spans from "../core/Spans.js"
import type { ApproveAnswer } from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import type { Authority, Proposal } from "./Authority.js"
import * as Check from "./Check.js"
import * as Guard from "./Guard.js"
import * as PermissionFile from "./PermissionFile.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import { answered, denied, spanOf, unanswered, type Resolution, type Verdict } from "./Verdict.js"

export type { Allowed, Denied, Resolution, Verdict } from "./Verdict.js"
export { unanswered } from "./Verdict.js"
export type { Authority, Proposal } from "./Authority.js"
export { orElse } from "./Authority.js"

export interface Options extends Check.Options {
  readonly policy: PermissionFile.Policy
  /** Shared by the tree. */
  readonly state: PermissionState
  /** In order; the first that fails decides. */
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly authority?: Authority | undefined
  /** Where the rules say to ask: decides in place of the question, or leaves it to be put. */
  readonly insteadOfAsking?: Authority | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
}

export interface Service {
  /**
   * Decides about a call whose arguments decode. Asks the current interactor where the rules say so. An authority given
   * here stands in for the gate's own.
   */
  readonly check: (
    proposal: Proposal,
    authority?: Authority | undefined
  ) => Effect.Effect<Verdict, never, Interactor.Interactor>
  /**
   * As {@link check}, for whoever holds the fiber that is to run the result: an exit where nothing has to be waited for, as
   * for most calls.
   */
  readonly checkIn: (
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    status: FiberStatus.Running,
    proposal: Proposal,
    authority?: Authority | undefined
  ) => Effect.Effect<Verdict, never, Interactor.Interactor>
  /**
   * Runs the guards on the final arguments, just before execution. A sentence is the reason to refuse. `answered` is what was
   * asked about these arguments for a guard.
   */
  readonly guard: (
    entry: ToolRegistry.Entry,
    encoded: unknown,
    answered?: Guard.Ask | undefined
  ) => Effect.Effect<string | undefined>
}

export const make = (options: Options): Service => new Gate(options)

/** Someone who corrects arguments is asked this often in a row before the call is denied. */
const maxEdits = 5

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** One call on its way through the gate; edited arguments make a new one. */
interface Case extends Proposal {
  readonly authority: Authority | undefined
  readonly edited: boolean
  /** Shown with the next question. */
  readonly warnings: ReadonlyArray<string>
  /** What the guards want to be asked about it. */
  readonly own: Guard.Ask | undefined
  readonly edits: number
  /** Shared by all rounds of a call. */
  readonly check: Check.Check
}

/** Whom a call was put to, and when. */
type Asked = Pick<Resolution, "requestId" | "askedAt" | "by" | "how">

type Deciding = Effect.Effect<Verdict, never, Interactor.Interactor>

class Gate implements Service {
  constructor(private readonly options: Options) {}

  check(proposal: Proposal, authority = this.options.authority): Deciding {
    return Effect.withFiberRuntime((fiber, status) => this.checkIn(fiber, status, proposal, authority))
  }

  checkIn(
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    status: FiberStatus.Running,
    proposal: Proposal,
    authority = this.options.authority
  ): Deciding {
    const { call } = proposal
    const { spans = Spans.off } = this.options
    const check = new Check.Check(this.options, call, fiber, status)
    if (spans === Spans.off) return this.begin(check, proposal, authority)
    const begun = Effect.suspend(() => this.begin(check, proposal, authority))
    return spans.within(() => spanOf(call, () => check.resolved), begun)
  }

  guard(entry: ToolRegistry.Entry, encoded: unknown, answered?: Guard.Ask): Effect.Effect<string | undefined> {
    const objection = this.objection(entry, encoded, PermissionFile.subject(this.options.policy, entry, encoded))
    if (objection === Guard.none) return Guard.none
    return Effect.map(objection, (found) => {
      if (found === undefined || typeof found === "string") return found
      const isSettled =
        found.isWithin(answered) || (found.coveredBy === "all" && this.options.state.blanket !== undefined)
      return isSettled ? undefined : `${found.reason} Nobody was asked about that; propose the call again.`
    })
  }

  private begin(
    check: Check.Check,
    { call, context, entry, params }: Proposal,
    authority: Authority | undefined
  ): Deciding {
    // Named one by one: a spread of the proposal costs as much as the rest of an allowed call's way through here.
    const now: Case = {
      call,
      context,
      entry,
      params,
      authority,
      edited: false,
      warnings: noWarnings,
      own: undefined,
      edits: 0,
      check
    }
    const verdict = this.step(now, () => this.validated(now))
    // Most calls are decided by a rule, before anything can interrupt them.
    return check.resolved === undefined ? Effect.uninterruptible(verdict) : verdict
  }

  /** Waits for what may take its time, then goes on; only the waiting is interruptible. Whatever goes wrong denies. */
  private after<A, E>(
    now: Case,
    waiting: Effect.Effect<A, E, Interactor.Interactor>,
    goOn: (value: A) => Deciding,
    failed?: (error: E) => Deciding
  ): Deciding {
    return isKnown(waiting) ? goOn(waiting.value) : this.then(now, now.check.restore(waiting), goOn, failed)
  }

  private then<A, E>(
    now: Case,
    waiting: Effect.Effect<A, E, Interactor.Interactor>,
    goOn: (value: A) => Deciding,
    failed?: (error: E) => Deciding
  ): Deciding {
    return Effect.matchCauseEffect(waiting, {
      onFailure: (cause) => this.step(now, () => this.broken(now, cause, failed)),
      onSuccess: (value) => this.step(now, () => goOn(value))
    })
  }

  private step(now: Case, goOn: () => Deciding): Deciding {
    try {
      return goOn()
    } catch {
      return this.crashed(now)
    }
  }

  private broken<E>(now: Case, cause: Cause.Cause<E>, failed: ((error: E) => Deciding) | undefined): Deciding {
    const failure = Cause.failureOption(cause)
    if (failed !== undefined && Option.isSome(failure) && !now.check.isInterrupted()) return failed(failure.value)
    if (!Cause.isInterrupted(cause)) return this.crashed(now)
    // Nobody hears the verdict if it was the whole check that was interrupted.
    return Effect.map(now.check.breakOff(Check.cancelled), () => denied(Check.failed))
  }

  private crashed({ check }: Case): Effect.Effect<Verdict> {
    return Effect.map(check.breakOff(Check.failed), denied)
  }

  private validated(now: Case): Deciding {
    const { context, entry, params } = now
    const invalid = (reason: string) =>
      Effect.as(now.check.settle(now, { granted: false, method: "pre_validation", reason }), {
        _tag: "Denied",
        outcome: "invalid",
        text: reason
      } as const)
    const tooLong = PermissionRule.tooLong(entry.shellCommand, now.call.params)
    if (tooLong !== undefined) return invalid(tooLong)
    if (entry.validate === undefined) return this.guarded(now)
    return this.after(
      now,
      ApprovalForm.within(entry.validate(params), context ?? entry.context),
      () => this.guarded(now),
      invalid
    )
  }

  private guarded(now: Case): Deciding {
    const subject = PermissionFile.subject(this.options.policy, now.entry, now.call.params)
    return this.after(now, this.objection(now.entry, now.call.params, subject), (found) => {
      if (typeof found === "string") return this.deny(now, { granted: false, method: "guard", reason: found })
      return this.authorized(found === now.own ? now : { ...now, own: found }, subject)
    })
  }

  private authorized(now: Case, subject: PermissionRule.Subject): Deciding {
    const { authority } = now
    if (authority === undefined) return this.ruled(now, subject)
    return this.after(now, authority(now, this.options), (known) =>
      decides(now, known) ? this.byAuthority(now, subject, known.value) : this.ruled(now, subject)
    )
  }

  private ruled(now: Case, subject: PermissionRule.Subject): Deciding {
    const decision = this.evaluate(now, subject)
    if (decision.decision !== "ask") return this.byRule(now, decision)
    const { insteadOfAsking } = this.options
    const { doubt } = decision
    if (insteadOfAsking === undefined) return this.ask(now, subject, doubt)
    return this.after(now, insteadOfAsking(now, this.options), (known) =>
      decides(now, known) ? this.byAuthority(now, subject, known.value) : this.ask(now, subject, doubt)
    )
  }

  /** Who allows all calls of a tool has not seen this one, and what it runs cannot be told; who was asked has. */
  private byAuthority(now: Case, subject: PermissionRule.Subject, resolution: Resolution): Deciding {
    const { granted, method, requestId } = resolution
    const doubt = granted && requestId === undefined && method !== "stage_grant" ? this.doubt(subject) : undefined
    return doubt === undefined ? this.resolve(now, resolution) : this.ask(now, subject, doubt)
  }

  private doubt(subject: PermissionRule.Subject): string | undefined {
    return subject.command === undefined ? undefined : this.options.state.doubt(this.options.policy, subject)
  }

  private evaluate(now: Case, subject: PermissionRule.Subject): Decision {
    const { policy, state } = this.options
    const decision = state.evaluate(policy, subject, now.entry, now.check.origin.sessionId)
    if (decision.decision !== "allow") return decision
    // Somebody wanted other arguments than these, so no rule of a later moment lets these through.
    if (now.warnings.length > 0) return askAgain
    if (now.own === undefined) return decision
    return (now.own.coveredBy === "all" ? state.blanket : undefined) ?? ownQuestion
  }

  private byRule(now: Case, { decision, method, rule }: Decision): Effect.Effect<Verdict> {
    return decision === "allow"
      ? this.allow(now, { granted: true, method, reason: rule })
      : this.deny(now, { granted: false, method, reason: `blocked by ${method.replaceAll("_", " ")}: ${rule}` })
  }

  /** `doubt`: why a call is put to a person that would be allowed without one; with nobody there, the reason to deny it. */
  private ask(now: Case, subject: PermissionRule.Subject, doubt?: string): Deciding {
    const key = PermissionRule.rememberKey(subject)
    return this.after(now, ApprovalForm.make(now, key, this.options.redactor), (form) => {
      const { fiber, origin, restore } = now.check
      const request = InteractionRequest.unsafeMake(form, fiber, origin)
      const asked = { requestId: request.requestId, askedAt: request.issuedAt }
      // Whoever waited in line may find that an earlier answer decided this call too; that decision is the one to report.
      let known: Decision | undefined
      const recheckNow = (): Option.Option<ApproveAnswer> => {
        const found = this.evaluate(now, subject)
        if (found.decision === "ask") return Option.none()
        known = found
        return Option.some({ decision: found.decision, scope: "once" })
      }
      const interactor = Interactor.of(fiber)
      const options = { recheck: Effect.sync(recheckNow), recheckNow }
      return this.then(
        now,
        interactor.requestMasked?.(request, options, restore) ?? restore(interactor.request(request, options)),
        ({ answer, by, how }) =>
          how === "recheck"
            ? this.byRule(now, known ?? this.evaluate(now, subject))
            : this.answered(now, subject, { requestId: asked.requestId, askedAt: asked.askedAt, by, how }, answer),
        (error) => {
          const reason = this.options.redactor.text(doubt ?? error.message)
          return this.deny(now, { granted: false, method: unanswered(error), reason, ...asked })
        }
      )
    })
  }

  private answered(now: Case, subject: PermissionRule.Subject, asked: Required<Asked>, given: ApproveAnswer): Deciding {
    if (given.decision === "edit") return this.withEdits(now, given.editedArguments, asked)
    // A rule that says yes to everything has looked at nothing.
    const doubt = asked.how === "answered" || given.decision === "deny" ? undefined : this.doubt(subject)
    if (doubt !== undefined) return this.deny(now, { granted: false, method: "unavailable", reason: doubt, ...asked })
    // What a guard wants to be asked is asked each time, whatever was answered.
    const answer = now.own !== undefined && given.decision === "allow" ? allowOnce : given
    if (answer.scope !== "once") this.remember(now, answer, PermissionRule.rememberKey(subject))
    const { askedAt, by, how, requestId } = asked
    const { granted, method, reason } = answered(answer, by, how)
    // Named one by one: fields behind a spread give every resolution a shape of its own, which outlives many collections.
    return this.resolve(now, { granted, method, reason, requestId, askedAt, by, how })
  }

  private remember(now: Case, answer: ApproveAnswer, key: string): void {
    const { state, policy } = this.options
    const { sessionId } = now.check.origin
    const before = state.status(policy, sessionId).suspension
    state.apply(answer, key, sessionId)
    const { default: fallback, suspension } = state.status(policy, sessionId)
    if (suspension !== undefined && suspension !== before) {
      now.check.tell({ _tag: "PermissionStatusChanged", default: fallback, suspension })
    }
  }

  /** Edited arguments start from the top; those that do not decode are shown again with what is wrong. */
  private withEdits(now: Case, changes: { readonly [name: string]: unknown }, asked: Asked): Deciding {
    const { call, entry } = now
    const edits = now.edits + 1
    if (edits > maxEdits) {
      const reason = `the arguments were edited ${maxEdits} times without a decision`
      return this.deny(now, { granted: false, method: "edit_incomplete", reason, ...asked })
    }
    const decoded = Either.flatMap(ApprovalForm.edited(now, changes, this.options.redactor), (params) =>
      Either.map(entry.decode(params), (decoded) => ({ call: { ...call, params }, params: decoded }))
    )
    return this.validated(
      Either.isLeft(decoded)
        ? { ...now, edits, warnings: [`The edited arguments do not fit: ${decoded.left}`] }
        : { ...now, ...decoded.right, edited: true, edits, warnings: noWarnings }
    )
  }

  private objection(
    entry: ToolRegistry.Entry,
    params: unknown,
    subject: PermissionRule.Subject
  ): Effect.Effect<Guard.Objection | undefined> {
    const { policy, guards } = this.options
    return Guard.objection(policy.deny, guards, { tool: entry.name, params, subject, entry })
  }

  private resolve(now: Case, resolution: Resolution): Effect.Effect<Verdict> {
    return resolution.granted ? this.allow(now, resolution) : this.deny(now, resolution)
  }

  // Most calls end here: without a record to write, the verdict is known at once.
  private allow(now: Case, resolution: Resolution): Effect.Effect<Verdict> {
    const settled = now.check.settle(now, resolution)
    return isKnown(settled)
      ? Effect.succeed(verdictOf(now, settled.value))
      : Effect.map(settled, (settled) => verdictOf(now, settled))
  }

  private deny(now: Case, resolution: Resolution): Effect.Effect<Verdict> {
    const settled = now.check.settle(now, resolution)
    return isKnown(settled) ? Effect.succeed(denied(settled.value)) : Effect.map(settled, denied)
  }
}

const noWarnings: ReadonlyArray<string> = []

const askAgain: Decision = { decision: "ask", method: "default", rule: "the arguments are being edited" }

const ownQuestion: Decision = { decision: "ask", method: "default", rule: "a guard wants it asked" }

const allowOnce = { decision: "allow", scope: "once" } as const

/** Whether that ends the call's way through the gate. */
const decides = (now: Case, known: Option.Option<Resolution>): known is Option.Some<Resolution> =>
  Option.isSome(known) && (now.own === undefined || !known.value.granted)

const verdictOf = ({ call, edited, own, params }: Case, resolution: Resolution): Verdict => {
  if (!resolution.granted) return denied(resolution)
  const allowed = { _tag: "Allowed", params, encoded: call.params, edited } as const
  return own === undefined ? allowed : { ...allowed, answered: own }
}
