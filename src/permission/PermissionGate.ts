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
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { RequestId, SessionId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import { canonicalJson } from "../core/Digest.js"
import * as Redaction from "../core/Redaction.js"
import * as AgentEvent from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"
import { Approve, type ApproveAnswer } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as PermissionOption from "../interaction/PermissionOption.js"
import type { ToolCall, ToolDisplay } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as PermissionFile from "./PermissionFile.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"

/** The call may run, with these arguments, which an approver may have edited. */
export interface Allowed {
  readonly _tag: "Allowed"
  /** Decoded, for the handler. */
  readonly params: unknown
  /** As written, for guards and the record. */
  readonly encoded: unknown
  readonly edited: boolean
}

/** The call must not run; `text` is what the model gets to see. */
export interface Denied {
  readonly _tag: "Denied"
  readonly outcome: "denied" | "invalid"
  readonly text: string
}

export type Verdict = Allowed | Denied

/** One proposed call with everything the gate looks at. */
export interface Proposal {
  readonly call: ToolCall
  readonly entry: ToolRegistry.Entry
  /** Decoded. */
  readonly params: unknown
}

/** A hard check: fails with the reason why the call must not run. It can only deny; a crash denies too. */
export type Guard = (call: {
  readonly tool: string
  readonly params: unknown
  readonly subject: PermissionRule.Subject
  readonly entry: ToolRegistry.Entry
}) => Effect.Effect<void, string>

/** Something that already allows a call: a stage's grant, a subagent's envelope. */
export type Authority = (proposal: Proposal) => Option.Option<{
  readonly method: "stage_grant" | "envelope"
  readonly reason: string
}>

export interface Options {
  readonly policy: PermissionFile.Policy
  /** Shared by the tree. */
  readonly state: PermissionState
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  /** In order; the first that fails decides. */
  readonly guards: ReadonlyArray<Guard>
  readonly authority?: Authority | undefined
}

export interface Service {
  /** Decides about a call whose arguments decode. Asks the current interactor where the rules say so. */
  readonly check: (proposal: Proposal) => Effect.Effect<Verdict, never, Interactor.Interactor>
  /** Runs the guards on the final arguments, just before execution. A sentence is the reason to refuse. */
  readonly guard: (entry: ToolRegistry.Entry, encoded: unknown) => Effect.Effect<string | undefined>
}

export const make = (options: Options): Service => {
  const gate = new Gate(options)
  return { check: gate.check, guard: gate.guard }
}

/** Someone who corrects arguments is asked this often in a row before the call is denied. */
const maxEdits = 5

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Resolution {
  readonly granted: boolean
  readonly method: AgentEvent.PermissionMethod
  readonly reason: string
  readonly requestId?: RequestId
  readonly by?: string
}

/** One call on its way through the gate; edited arguments make a new one. */
interface Case extends Proposal {
  readonly edited: boolean
  /** Shown with the next question. */
  readonly warnings: ReadonlyArray<string>
  readonly edits: number
  /** Set when the call's one resolution was published; shared by all rounds of a call. */
  readonly once: { resolved: boolean }
}

class Gate {
  constructor(private readonly options: Options) {}

  readonly check = (proposal: Proposal): Effect.Effect<Verdict, never, Interactor.Interactor> =>
    Effect.suspend(() => {
      const first: Case = { ...proposal, edited: false, warnings: [], edits: 0, once: { resolved: false } }
      return this.validated(first).pipe(
        Effect.onInterrupt(() =>
          this.resolve(first, { granted: false, method: "cancelled", reason: "the work was cancelled" })
        ),
        // A fiber that is interrupted does not get here; whatever else went wrong denies.
        Effect.catchAllCause(() => this.deny(first, { method: "check_failed", reason: "Permission check failed" }))
      )
    })

  readonly guard = (entry: ToolRegistry.Entry, encoded: unknown): Effect.Effect<string | undefined> =>
    this.violation(entry, encoded, subjectOf(entry, encoded))

  private validated(now: Case): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const { validate, context } = now.entry
    if (validate === undefined) return this.guarded(now)
    return Effect.flatMap(Effect.either(within(validate(now.params), context)), (valid) =>
      Either.isRight(valid)
        ? this.guarded(now)
        : Effect.as(this.resolve(now, { granted: false, method: "pre_validation", reason: valid.left }), {
            _tag: "Denied",
            outcome: "invalid",
            text: valid.left
          } as const)
    )
  }

  private guarded(now: Case): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const subject = subjectOf(now.entry, now.call.params)
    return Effect.flatMap(
      this.violation(now.entry, now.call.params, subject),
      (violation): Effect.Effect<Verdict, never, Interactor.Interactor> => {
        if (violation !== undefined) return this.deny(now, { method: "guard", reason: violation })
        const authority = this.options.authority?.(now) ?? Option.none()
        if (Option.isSome(authority)) return this.allow(now, authority.value)
        return Effect.flatMap(Origin.current, ({ sessionId }) => {
          const evaluate = (): Decision => {
            const decision = this.options.state.evaluate(this.options.policy, subject, now.entry, sessionId)
            // Somebody wanted other arguments than these, so no rule of a later moment lets these through.
            return decision.decision === "allow" && now.warnings.length > 0 ? askAgain : decision
          }
          const decision = evaluate()
          return decision.decision === "ask"
            ? this.ask(now, PermissionRule.rememberKey(subject), evaluate, sessionId)
            : this.byRule(now, decision)
        })
      }
    )
  }

  private byRule(now: Case, { decision, method, rule }: Decision): Effect.Effect<Verdict> {
    return decision === "allow"
      ? this.allow(now, { method, reason: rule })
      : this.deny(now, { method, reason: `blocked by ${method.replaceAll("_", " ")}: ${rule}` })
  }

  private ask(
    now: Case,
    key: string,
    evaluate: () => Decision,
    sessionId: SessionId
  ): Effect.Effect<Verdict, never, Interactor.Interactor> {
    // Whoever waited in line may find that an earlier answer decided this call too; that decision is the one to report.
    let known: Decision | undefined
    const recheck = Effect.sync((): Option.Option<ApproveAnswer> => {
      const found = evaluate()
      if (found.decision === "ask") return Option.none()
      known = found
      return Option.some({ decision: found.decision, scope: "once" })
    })
    return Effect.gen(this, function* () {
      const interaction = yield* this.question(now, key)
      const interactor = yield* Interactor.current
      const request = yield* InteractionRequest.make(interaction)
      const exit = yield* Effect.exit(interactor.request(request, { recheck }))
      const { requestId } = request
      if (Exit.isFailure(exit)) {
        const failure = Cause.failureOption(exit.cause)
        if (Option.isNone(failure)) return yield* Effect.failCause(Cause.stripFailures(exit.cause))
        const reason = this.options.redactor.text(failure.value.message)
        return yield* this.deny(now, { method: unanswered(failure.value), reason, requestId })
      }
      const { answer, by, how } = exit.value
      if (how === "recheck") return yield* this.byRule(now, known ?? evaluate())
      if (answer.decision === "edit") return yield* this.withEdits(now, answer.editedArguments, { requestId, by })
      yield* this.remember(answer, key, sessionId)
      if (answer.decision === "allow") {
        const method = how === "timeout" || how === "yolo" ? how : "user_approved"
        const reason = method === "user_approved" ? `allowed (${answer.scope}) by ${by}` : `allowed by ${method}`
        return yield* this.allow(now, { method, reason, requestId, by })
      }
      if (answer.comment === undefined) {
        const who = by === "console" ? "the user" : by
        return yield* this.deny(now, { method: "user_denied", reason: `${who} said no`, requestId, by })
      }
      const reason = answer.comment
      yield* this.resolve(now, { granted: false, method: "user_comment", reason, requestId, by })
      return { _tag: "Denied", outcome: "denied", text: `Tool not executed. User comment: ${reason}` } as const
    })
  }

  private remember(answer: ApproveAnswer, key: string, sessionId: SessionId): Effect.Effect<void> {
    const { state, policy } = this.options
    const before = state.status(policy, sessionId).suspension
    state.apply(answer, key, sessionId)
    const { default: fallback, suspension } = state.status(policy, sessionId)
    return suspension === undefined || suspension === before
      ? Effect.void
      : this.tell({ _tag: "PermissionStatusChanged", default: fallback, suspension })
  }

  private question(now: Case, key: string): Effect.Effect<Approve> {
    const { call, entry } = now
    const { redactor } = this.options
    return Effect.map(
      this.display(now),
      (display) =>
        new Approve(
          {
            toolCallId: call.id,
            tool: call.name,
            argumentsSummary: Redaction.summarize(call.params, redactor),
            approvalKey: redactor.text(key),
            options: PermissionOption.offered({ editable: entry.editable !== undefined }),
            ...(entry.editable === undefined
              ? {}
              : { editable: editableOf(entry.editable, redactor.value(call.params)) }),
            display
          },
          { disableValidation: true }
        )
    )
  }

  /** Edited arguments start from the top; those that do not decode are shown again with what is wrong. */
  private withEdits(
    now: Case,
    changes: { readonly [name: string]: unknown },
    asked: { readonly requestId: RequestId; readonly by: string }
  ): Effect.Effect<Verdict, never, Interactor.Interactor> {
    const { call, entry } = now
    const edits = now.edits + 1
    if (edits > maxEdits) {
      const reason = `the arguments were edited ${maxEdits} times without a decision`
      return this.deny(now, { method: "edit_incomplete", reason, ...asked })
    }
    const decoded = Either.flatMap(this.edited(now, changes), (params) =>
      Either.map(entry.decode(params), (decoded) => ({ call: { ...call, params }, params: decoded }))
    )
    return this.validated(
      Either.isLeft(decoded)
        ? { ...now, edits, warnings: [`The edited arguments do not fit: ${decoded.left}`] }
        : { ...now, ...decoded.right, edited: true, edits, warnings: [] }
    )
  }

  /** Whoever edits was shown masked values: one that was left as it was stands for what it masks. */
  private edited(
    { call, entry }: Case,
    changes: { readonly [name: string]: unknown }
  ): Either.Either<{ readonly [name: string]: unknown }, string> {
    const before = isRecord(call.params) ? call.params : {}
    const params: { [name: string]: unknown } = { ...before }
    for (const [name, value] of Object.entries(changes)) {
      if (entry.editable?.parameters.includes(name) !== true) return Either.left(`${name} cannot be edited`)
      const shown = canonicalJson(this.options.redactor.value(before[name]))
      const written = canonicalJson(value)
      if (written === shown) continue
      if (written.includes(Redaction.mask) && shown.includes(Redaction.mask)) {
        return Either.left(`${name} still holds ${Redaction.mask}; leave it as it was, or write out what is masked`)
      }
      params[name] = value
    }
    return Either.right(params)
  }

  private display({ call, entry, params, warnings }: Case): Effect.Effect<ToolDisplay> {
    if (entry.preview === undefined) return Effect.succeed(this.masked(withWarnings(plainDisplay(call), warnings)))
    return within(entry.preview(params), entry.context).pipe(
      Effect.catchAllCause((cause) => {
        const failure = Cause.failureOption(cause)
        const reason = Option.getOrElse(failure, () => "it crashed")
        return Effect.succeed(withWarnings(plainDisplay(call), [`No preview: ${reason}`]))
      }),
      Effect.map((display) => this.masked(withWarnings(display, warnings)))
    )
  }

  private masked(display: ToolDisplay): ToolDisplay {
    return this.options.redactor.value(display) as ToolDisplay
  }

  private violation(
    entry: ToolRegistry.Entry,
    params: unknown,
    subject: PermissionRule.Subject
  ): Effect.Effect<string | undefined> {
    const rule = PermissionRule.denies(this.options.policy.deny, subject)
    if (rule !== undefined) return Effect.succeed(`forbidden by rule ${rule}`)
    const { guards } = this.options
    if (guards.length === 0) return noViolation
    const checks = Effect.forEach(guards, (guard) => guard({ tool: entry.name, params, subject, entry }), {
      discard: true
    })
    return Effect.catchAllCause(Effect.as(checks, undefined), (cause) =>
      Effect.succeed(Option.getOrElse(Cause.failureOption(cause), () => "a guard failed"))
    )
  }

  private allow(now: Case, how: Omit<Resolution, "granted">): Effect.Effect<Verdict> {
    const { params, call, edited } = now
    return Effect.as(this.resolve(now, { granted: true, ...how }), {
      _tag: "Allowed",
      params,
      encoded: call.params,
      edited
    } as const)
  }

  private deny(now: Case, how: Omit<Resolution, "granted">): Effect.Effect<Verdict> {
    const text = how.method === "check_failed" ? how.reason : `Permission denied: ${how.reason}`
    return Effect.as(this.resolve(now, { granted: false, ...how }), {
      _tag: "Denied",
      outcome: "denied",
      text
    } as const)
  }

  private resolve({ call, edited, once }: Case, resolution: Resolution): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (once.resolved) return Effect.void
      once.resolved = true
      return this.tell({
        _tag: "PermissionResolved",
        toolCallId: call.id,
        tool: call.name,
        ...resolution,
        ...(edited ? { edited } : {}),
        reason: this.options.redactor.text(resolution.reason)
      })
    })
  }

  private tell(body: AgentEvent.Body): Effect.Effect<void> {
    return Effect.zipWith(Origin.current, Clock.currentTimeMillis, ({ sessionId, agent, correlationId }, at) => {
      const stamp = { at, sessionId, agent, ...(correlationId === undefined ? {} : { correlationId }) }
      this.options.bus.unsafePublish(AgentEvent.make(stamp, body))
    })
  }
}

const askAgain: Decision = { decision: "ask", method: "default", rule: "the arguments are being edited" }

const noViolation: Effect.Effect<undefined> = Effect.succeed(undefined)

const subjectOf = (entry: ToolRegistry.Entry, params: unknown): PermissionRule.Subject =>
  PermissionRule.subject({ tool: entry.name, params, commandField: entry.shellCommand })

/** Runs what a tool brought along in the context the tool was built with. */
const within = <A, E>(effect: Effect.Effect<A, E>, context: Context.Context<never>): Effect.Effect<A, E> =>
  Effect.mapInputContext(effect, (_: Context.Context<never>) => context)

const unanswered = (error: InteractionError): AgentEvent.PermissionMethod => {
  switch (error._tag) {
    case "InteractionCancelled":
      return "cancelled"
    case "InteractionTimedOut":
      return "timeout"
    default:
      return "unavailable"
  }
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const editableOf = (editable: NonNullable<ToolRegistry.Entry["editable"]>, params: unknown) => ({
  ...editable,
  current: isRecord(params)
    ? Object.fromEntries(editable.parameters.filter((name) => name in params).map((name) => [name, params[name]]))
    : {}
})

const plainDisplay = (call: ToolCall): ToolDisplay => {
  const details = JSON.stringify(call.params, null, 2) ?? ""
  return details.length <= 4_000
    ? { details, format: "json" }
    : { details: details.slice(0, 4_000), format: "json", truncated: true }
}

const withWarnings = (display: ToolDisplay, warnings: ReadonlyArray<string>): ToolDisplay =>
  warnings.length === 0 ? display : { ...display, warnings: [...(display.warnings ?? []), ...warnings] }
