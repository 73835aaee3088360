/**
 * May this tool call run? One question, one resolution.
 *
 * ```
 *  validation ─► guards ─► authority ─► rules and suspensions ─► ask ─► apply the answer
 *  (must fail?)  (can only  (grants,                              │
 *                 deny)      envelopes)          edited arguments └─► from the top
 * ```
 *
 * Guards run in every mode, before anybody is asked and again on the final arguments just before execution. Whatever goes
 * wrong in here denies.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import * as AgentEvent from "../event/AgentEvent.js"
import * as AuditRecord from "../event/AuditRecord.js"
import type * as AuditTrail from "../event/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type { ApproveAnswer } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as ApprovalForm from "./ApprovalForm.js"
import * as Guard from "./Guard.js"
import type * as PermissionFile from "./PermissionFile.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"
import { answered, denied, spanOf, type Resolution, type Verdict } from "./Verdict.js"

export type { Allowed, Denied, Resolution, Verdict } from "./Verdict.js"

/** One proposed call with everything the gate looks at. */
export interface Proposal {
  readonly call: ToolCall
  readonly entry: ToolRegistry.Entry
  /** Decoded. */
  readonly params: unknown
  /** What the tool's validation and preview run with. Default: what the tool was built with. */
  readonly context?: Context.Context<never> | undefined
}

/**
 * Decides about calls ahead of all rules, behind the guards: a stage, which may ask for a grant, or a subagent's envelope.
 * None leaves the call to the rules. It is given the gate's own bus and redactor; whatever goes wrong in it denies.
 */
export type Authority = (
  proposal: Proposal,
  gate: Pick<Options, "bus" | "redactor">
) => Effect.Effect<Option.Option<Resolution>, never, Interactor.Interactor>

export interface Options {
  readonly policy: PermissionFile.Policy
  /** Shared by the tree. */
  readonly state: PermissionState
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  /** In order; the first that fails decides. */
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly authority?: Authority | undefined
  /** Where the rules say to ask: decides in place of the question, or leaves it to be put. */
  readonly insteadOfAsking?: Authority | undefined
  /** Told every decision, in the step in which it is made; `params` are what somebody made of the arguments. */
  readonly decided?: ((call: ToolCall, resolution: Resolution, params: unknown) => void) | undefined
  /** Where every decision is written down before it counts. Default: nowhere. */
  readonly audit?: AuditTrail.Service | undefined
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
  /** Runs the guards on the final arguments, just before execution. A sentence is the reason to refuse. */
  readonly guard: (entry: ToolRegistry.Entry, encoded: unknown) => Effect.Effect<string | undefined>
}

export const make = (options: Options): Service => new Gate(options)

/** The method to report when a question about a call ended without an answer. */
export const unanswered = (error: InteractionError): "cancelled" | "timeout" | "unavailable" => {
  switch (error._tag) {
    case "InteractionCancelled":
      return "cancelled"
    case "InteractionTimedOut":
      return "timeout"
    default:
      return "unavailable"
  }
}

/** Asks one authority, then the other. */
export const orElse =
  (other: Authority | undefined) =>
  (authority: Authority): Authority =>
    other === undefined
      ? authority
      : (proposal, gate) =>
          Effect.flatMap(authority(proposal, gate), (known) =>
            Option.isSome(known) ? Effect.succeed(known) : other(proposal, gate)
          )

/** Someone who corrects arguments is asked this often in a row before the call is denied. */
const maxEdits = 5

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** One call on its way through the gate; edited arguments make a new one. */
interface Case extends Proposal {
  readonly edited: boolean
  readonly authority: Authority | undefined
  /** Shown with the next question. */
  readonly warnings: ReadonlyArray<string>
  readonly edits: number
  /** Set to the call's one resolution when that was published; shared by all rounds of a call. */
  readonly once: { resolved: Resolution | undefined }
  /** Known from the start, so that deciding and telling are one step that nothing interrupts. */
  readonly origin: Origin.Origin
  readonly clock: Clock.Clock
}

/** Whom a call was put to, and when. */
type Asked = Pick<Resolution, "requestId" | "askedAt" | "by" | "how">

class Gate implements Service {
  constructor(private readonly options: Options) {}

  check(proposal: Proposal, authority = this.options.authority): Effect.Effect<Verdict, never, Interactor.Interactor> {
    return Effect.flatMap(Origin.current, (origin) =>
      Effect.clockWith((clock) => {
        const { call, context, entry, params } = proposal
        const once: Case["once"] = { resolved: undefined }
        // Named one by one: a spread of the proposal costs as much as the rest of an allowed call's way through here.
        const first: Case = {
          call,
          context,
          entry,
          params,
          authority,
          edited: false,
          warnings: [],
          edits: 0,
          once,
          origin,
          clock
        }
        const verdict = Effect.suspend(() => {
          const verdict = this.validated(first)
          // Most calls are decided by a rule, before anything can interrupt them.
          return once.resolved !== undefined
            ? verdict
            : Effect.onInterrupt(verdict, () => this.settle(first, cancelled))
        })
        // A fiber that is interrupted does not get here; whatever else went wrong denies.
        const checked = Effect.catchAllCause(verdict, () =>
          this.deny(first, { method: "check_failed", reason: "Permission check failed" })
        )
        return (this.options.spans ?? Spans.off).within(() => spanOf(call, () => once.resolved), checked)
      })
    )
  }

  guard(entry: ToolRegistry.Entry, encoded: unknown): Effect.Effect<string | undefined> {
    return this.violation(entry, encoded, subjectOf(entry, encoded))
  }

  private validated(now: Case): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const { validate } = now.entry
    if (validate === undefined) return this.guarded(now)
    return Effect.flatMap(
      Effect.either(ApprovalForm.within(validate(now.params), now.context ?? now.entry.context)),
      (valid) =>
        Either.isRight(valid)
          ? this.guarded(now)
          : Effect.as(this.settle(now, { granted: false, method: "pre_validation", reason: valid.left }), {
              _tag: "Denied",
              outcome: "invalid",
              text: valid.left
            } as const)
    )
  }

  private guarded(now: Case): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const subject = subjectOf(now.entry, now.call.params)
    const violation = this.violation(now.entry, now.call.params, subject)
    if (violation === Guard.none) return this.authorized(now, subject)
    return Effect.flatMap(violation, (reason) =>
      reason === undefined ? this.authorized(now, subject) : this.deny(now, { method: "guard", reason })
    )
  }

  private authorized(now: Case, subject: PermissionRule.Subject): Effect.Effect<Verdict, never, Interactor.Interactor> {
    return this.decidedBy(now.authority, now, () => this.ruled(now, subject))
  }

  private decidedBy<R>(
    authority: Authority | undefined,
    now: Case,
    otherwise: () => Effect.Effect<Verdict, never, R>
  ): Effect.Effect<Verdict, never, R | Interactor.Interactor> {
    if (authority === undefined) return otherwise()
    return Effect.flatMap(authority(now, this.options), (known) => {
      if (Option.isNone(known)) return otherwise()
      const { granted, ...how } = known.value
      return granted ? this.allow(now, how) : this.deny(now, how)
    })
  }

  private ruled(now: Case, subject: PermissionRule.Subject): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const evaluate = (): Decision => {
      const decision = this.options.state.evaluate(this.options.policy, subject, now.entry, now.origin.sessionId)
      // Somebody wanted other arguments than these, so no rule of a later moment lets these through.
      return decision.decision === "allow" && now.warnings.length > 0 ? askAgain : decision
    }
    const decision = evaluate()
    if (decision.decision !== "ask") return this.byRule(now, decision)
    return this.decidedBy(this.options.insteadOfAsking, now, () =>
      this.ask(now, PermissionRule.rememberKey(subject), evaluate)
    )
  }

  private byRule(now: Case, { decision, method, rule }: Decision): Effect.Effect<Verdict> {
    return decision === "allow"
      ? this.allow(now, { method, reason: rule })
      : this.deny(now, { method, reason: `blocked by ${method.replaceAll("_", " ")}: ${rule}` })
  }

  private ask(now: Case, key: string, evaluate: () => Decision): Effect.Effect<Verdict, never, Interactor.Interactor> {
    // Whoever waited in line may find that an earlier answer decided this call too; that decision is the one to report.
    let known: Decision | undefined
    const recheck = Effect.sync((): Option.Option<ApproveAnswer> => {
      const found = evaluate()
      if (found.decision === "ask") return Option.none()
      known = found
      return Option.some({ decision: found.decision, scope: "once" })
    })
    // Flat, and nothing of it is left on the stack but what goes on with the answer: many may wait here for long.
    const form = Effect.flatMap(ApprovalForm.make(now, key, this.options.redactor), InteractionRequest.make)
    return Effect.flatMap(form, (request) =>
      Effect.flatMap(Interactor.current, (interactor) => {
        const asked = { requestId: request.requestId, askedAt: request.issuedAt }
        return Effect.matchCauseEffect(interactor.request(request, { recheck }), {
          onFailure: (cause) => this.unanswered(now, asked, cause),
          onSuccess: ({ answer, by, how }) => {
            if (how === "recheck") return this.byRule(now, known ?? evaluate())
            return this.answered(now, key, { ...asked, by, how }, answer)
          }
        })
      })
    )
  }

  private unanswered(now: Case, asked: Asked, cause: Cause.Cause<InteractionError>): Effect.Effect<Verdict> {
    const failure = Cause.failureOption(cause)
    if (Option.isNone(failure)) return Effect.failCause(Cause.stripFailures(cause))
    const reason = this.options.redactor.text(failure.value.message)
    return this.deny(now, { method: unanswered(failure.value), reason, ...asked })
  }

  private answered(now: Case, key: string, asked: Required<Asked>, answer: ApproveAnswer) {
    if (answer.decision === "edit") return this.withEdits(now, answer.editedArguments, asked)
    this.remember(now, answer, key)
    const { granted, ...why } = answered(answer, asked.by, asked.how)
    return granted ? this.allow(now, { ...why, ...asked }) : this.deny(now, { ...why, ...asked })
  }

  private remember(now: Case, answer: ApproveAnswer, key: string): void {
    const { state, policy } = this.options
    const { sessionId } = now.origin
    const before = state.status(policy, sessionId).suspension
    state.apply(answer, key, sessionId)
    const { default: fallback, suspension } = state.status(policy, sessionId)
    if (suspension !== undefined && suspension !== before) {
      this.tell(now, { _tag: "PermissionStatusChanged", default: fallback, suspension })
    }
  }

  /** Edited arguments start from the top; those that do not decode are shown again with what is wrong. */
  private withEdits(
    now: Case,
    changes: { readonly [name: string]: unknown },
    asked: Asked
  ): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const { call, entry } = now
    const edits = now.edits + 1
    if (edits > maxEdits) {
      const reason = `the arguments were edited ${maxEdits} times without a decision`
      return this.deny(now, { method: "edit_incomplete", reason, ...asked })
    }
    const decoded = Either.flatMap(ApprovalForm.edited(now, changes, this.options.redactor), (params) =>
      Either.map(entry.decode(params), (decoded) => ({ call: { ...call, params }, params: decoded }))
    )
    return this.validated(
      Either.isLeft(decoded)
        ? { ...now, edits, warnings: [`The edited arguments do not fit: ${decoded.left}`] }
        : { ...now, ...decoded.right, edited: true, edits, warnings: [] }
    )
  }

  private violation(
    entry: ToolRegistry.Entry,
    params: unknown,
    subject: PermissionRule.Subject
  ): Effect.Effect<string | undefined> {
    const { policy, guards } = this.options
    return Guard.violation(policy.deny, guards, { tool: entry.name, params, subject, entry })
  }

  private allow(now: Case, how: Omit<Resolution, "granted">): Effect.Effect<Verdict> {
    const resolution: Resolution = { granted: true, ...how }
    // Most calls end here: without a record to write, the verdict is known at once.
    if (this.options.audit === undefined) return Effect.succeed(verdictOf(now, this.publish(now, resolution)))
    return Effect.map(this.settle(now, resolution), (settled) => verdictOf(now, settled))
  }

  private deny(now: Case, how: Omit<Resolution, "granted">): Effect.Effect<Verdict> {
    return Effect.map(this.settle(now, { granted: false, ...how }), denied)
  }

  /**
   * Writes the decision down and tells it, as one step that nothing interrupts. Yields what is in force: nothing is granted
   * that could not be recorded.
   */
  private settle(now: Case, resolution: Resolution): Effect.Effect<Resolution> {
    const { audit } = this.options
    // At once, so that a decision that waits for nothing is made before anything can interrupt it.
    if (audit === undefined) return Effect.succeed(this.publish(now, resolution))
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if (now.once.resolved !== undefined) return Effect.succeed(resolution)
        const { call, clock, origin } = now
        const answeredAt = clock.unsafeCurrentTimeMillis()
        const decision = { tool: call.name, toolCallId: call.id, args: call.params, answeredAt, ...resolution }
        return Effect.map(Effect.either(audit.record(AuditRecord.permission(origin, decision))), (written) =>
          this.publish(
            now,
            Either.isLeft(written) && resolution.granted
              ? { granted: false, method: "check_failed", reason: written.left.message }
              : resolution
          )
        )
      })
    )
  }

  private publish(now: Case, resolution: Resolution): Resolution {
    const { call, edited, once } = now
    if (once.resolved !== undefined) return resolution
    once.resolved = resolution
    this.options.decided?.(call, resolution, edited ? call.params : undefined)
    const { granted, method, requestId, by } = resolution
    const reason = this.options.redactor.text(resolution.reason)
    this.tell(now, {
      _tag: "PermissionResolved",
      toolCallId: call.id,
      tool: call.name,
      granted,
      method,
      reason,
      ...(requestId === undefined ? {} : { requestId }),
      ...(by === undefined ? {} : { by }),
      ...(edited ? { edited } : {})
    })
    return resolution
  }

  private tell({ clock, origin }: Case, body: AgentEvent.Body): void {
    const { agent, correlationId, sessionId } = origin
    const at = clock.unsafeCurrentTimeMillis()
    this.options.bus.unsafePublish(AgentEvent.make({ at, sessionId, agent, correlationId }, body))
  }
}

const cancelled: Resolution = { granted: false, method: "cancelled", reason: "the work was cancelled" }

const askAgain: Decision = { decision: "ask", method: "default", rule: "the arguments are being edited" }

const verdictOf = ({ call, edited, params }: Case, resolution: Resolution): Verdict =>
  resolution.granted ? { _tag: "Allowed", params, encoded: call.params, edited } : denied(resolution)

const subjectOf = (entry: ToolRegistry.Entry, params: unknown): PermissionRule.Subject =>
  PermissionRule.subject({ tool: entry.name, params, commandField: entry.shellCommand })
