/**
 * One check of one call: the acting agent, and the one resolution of the call, after any number of edits.
 *
 * The decision is recorded before it counts, and published in the step in which it is made.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as Defect from "../core/Defect.js"
import type { Restore } from "../core/Interruption.js"
import { isImmediate } from "../internal/Immediate.js"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as AuditRecord from "../audit/AuditRecord.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type { ToolCall } from "../tool/ToolCall.js"
import { denied, spanEnd, type Resolution, type Verdict } from "./Verdict.js"

/**
 * What every check of a session shares.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  /** Receives every decision, in the step in which it is made; `params` are the edited arguments. */
  readonly decided?: ((call: ToolCall, resolution: Resolution, params: unknown) => void) | undefined
  /** Where every decision is recorded before it counts. Default: nowhere. */
  readonly audit?: AuditTrail.Service | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
}

/** Who was asked about a call, and when. */
export type Asked = Pick<Resolution, "requestId" | "askedAt" | "by" | "how">

/** The call in its present form. */
export interface Subject {
  readonly call: ToolCall
  /** Whether a person changed its arguments. */
  readonly edited: boolean
}

export class PermissionCheck {
  /** The acting agent's origin, known from the start, so that deciding and publishing are one step. */
  readonly origin: Origin.Origin
  /** Set in the step in which the resolution is published. */
  resolved: Resolution | undefined
  /** Set when a person is asked: the resolution then names them in any case. */
  asked: Asked | undefined
  /** The decision was handed to the audit. */
  private recording: boolean
  private readonly clock: Clock.Clock
  /** Makes waiting interruptible again, if the caller was interruptible. */
  restore: Restore

  constructor(
    private readonly options: Options,
    /** The call as it was proposed. */
    private readonly call: ToolCall,
    public fiber: Fiber.RuntimeFiber<unknown, unknown>,
    flags: RuntimeFlags.RuntimeFlags
  ) {
    this.origin = Origin.ofCall(Origin.of(fiber), call.id)
    this.resolved = undefined
    this.asked = undefined
    this.recording = false
    this.clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    this.restore = restoreOf(flags)
  }

  /** From now on this fiber runs the check. */
  moveTo(fiber: Fiber.RuntimeFiber<unknown, unknown>, flags: RuntimeFlags.RuntimeFlags): void {
    this.fiber = fiber
    this.restore = restoreOf(flags)
  }

  /** Whether the checking fiber was interrupted and is interruptible. */
  isInterrupted(): boolean {
    return this.restore !== asItIs && !Cause.isEmpty(this.fiber.getFiberRef(FiberRef.interruptedCause))
  }

  /** Shows it as a span. What a rule decides has been decided, and its span has nothing to run. */
  traced<R>(begun: Effect.Effect<Verdict, never, R>): Effect.Effect<Verdict, never, R> {
    const { spans = Spans.off } = this.options
    if (Spans.areOff(spans)) return begun
    const beginning = (): Spans.Beginning => ({
      name: "assent.permission",
      attributes: { "gen_ai.tool.name": this.call.name }
    })
    if (!isImmediate(begun)) {
      return spans.within(() => ({ ...beginning(), ended: () => spanEnd(this.resolved) }), begun)
    }
    spans.open(beginning, this.fiber)?.end(begun, spanEnd(this.resolved))
    return begun
  }

  /** Waits for an effect, then continues; only the wait is interruptible. Any failure denies. */
  after<A, E, R>(
    waiting: Effect.Effect<A, E, R>,
    next: (value: A) => Effect.Effect<Verdict, never, R>,
    recover?: (error: E) => Effect.Effect<Verdict, never, R>
  ): Effect.Effect<Verdict, never, R> {
    return isImmediate(waiting) ? next(waiting.value) : this.await(this.restore(waiting), next, recover)
  }

  await<A, E, R>(
    waiting: Effect.Effect<A, E, R>,
    next: (value: A) => Effect.Effect<Verdict, never, R>,
    recover?: (error: E) => Effect.Effect<Verdict, never, R>
  ): Effect.Effect<Verdict, never, R> {
    return Effect.matchCauseEffect(waiting, {
      onFailure: (cause) => this.step(() => this.broken(cause, recover)),
      onSuccess: (value) => this.step(() => next(value))
    })
  }

  step<R>(next: () => Effect.Effect<Verdict, never, R>): Effect.Effect<Verdict, never, R> {
    try {
      return next()
    } catch (thrown) {
      return this.crashed(Cause.die(thrown))
    }
  }

  private broken<E, R>(
    cause: Cause.Cause<E>,
    recover: ((error: E) => Effect.Effect<Verdict, never, R>) | undefined
  ): Effect.Effect<Verdict, never, R> {
    const failure = Cause.failureOption(cause)
    if (recover !== undefined && Option.isSome(failure) && !this.isInterrupted()) return recover(failure.value)
    if (!Cause.isInterrupted(cause)) return this.crashed(cause)
    // When the whole check was interrupted, nobody receives the verdict.
    return Effect.map(this.breakOff(cancelled), () => denied(failed))
  }

  private crashed(cause: Cause.Cause<unknown>): Effect.Effect<Verdict> {
    const resolved = Effect.map(this.breakOff(failed), denied)
    return Defect.isIn(cause) ? Effect.zipRight(this.log("The permission check", cause), resolved) : resolved
  }

  /**
   * Records the decision and publishes it, as one uninterruptible step; at once, as an exit, where nothing has to be
   * recorded. Yields the resolution in force: nothing is granted that could not be recorded.
   */
  settle(subject: Subject, decided: Resolution): Effect.Effect<Resolution> {
    const { audit } = this.options
    const resolution =
      this.asked === undefined || decided.requestId !== undefined ? decided : { ...decided, ...this.asked }
    if (audit === undefined) return Effect.succeed(this.publish(subject, resolution))
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if (this.resolved !== undefined) return Effect.succeed(this.resolved)
        // Another fiber is recording already: an interruption meanwhile makes no second decision.
        if (this.recording) return Effect.succeed(cancelled)
        this.recording = true
        const decision = { ...this.decisionOn(subject.call), ...resolution }
        const record = Effect.suspend(() => audit.record(AuditRecord.permission(this.origin, decision)))
        return Effect.matchCauseEffect(record, {
          onFailure: (cause) => {
            const told = this.publish(subject, resolution.granted ? unrecorded(resolution, cause) : resolution)
            return Defect.isIn(cause) ? Effect.as(this.log("The audit", cause), told) : Effect.succeed(told)
          },
          onSuccess: () => Effect.succeed(this.publish(subject, resolution))
        })
      })
    )
  }

  /** As {@link settle}, for a check that ended without a decision: about the call as it was proposed. */
  breakOff(resolution: Resolution): Effect.Effect<Resolution> {
    return this.settle(this.proposed, resolution)
  }

  /**
   * Publishes at once that the call does not run. The check itself does not stop, and its caller continues without it.
   */
  leave(): void {
    if (this.resolved === undefined) this.publish(this.proposed, { ...cancelled, ...this.asked })
  }

  /** Records that the call was abandoned, unless the blocked fiber is recording. */
  get writeLeft(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { audit } = this.options
      if (audit === undefined || this.recording) return Effect.void
      this.recording = true
      const decision = { ...this.decisionOn(this.call), ...cancelled, ...this.asked }
      return Effect.ignore(audit.record(AuditRecord.permission(this.origin, decision)))
    })
  }

  /** The causes of crashes go to the log only. */
  log(what: string, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { agent, sessionId } = this.origin
    const { id, name } = this.call
    return Defect.log(what, cause, this.options.redactor, { session: sessionId, agent, tool: name, call: id })
  }

  tell(body: AgentEvent.Body): void {
    EventPublisher.publish(this.options.bus, this.clock, this.origin, body)
  }

  private decisionOn({ id, name, params }: ToolCall) {
    return { tool: name, toolCallId: id, args: params, answeredAt: this.clock.unsafeCurrentTimeMillis() }
  }

  private get proposed(): Subject {
    return { call: this.call, edited: false }
  }

  private publish({ call, edited }: Subject, resolution: Resolution): Resolution {
    if (this.resolved !== undefined) return this.resolved
    this.resolved = resolution
    this.options.decided?.(call, resolution, edited ? call.params : undefined)
    const { granted, method, requestId, by, how, sandbox, votes } = resolution
    const reason = this.options.redactor.text(resolution.reason)
    // Members are added one by one: spreads would give every event a shape of its own.
    const body: Resolved = { _tag: "PermissionResolved", toolCallId: call.id, tool: call.name, granted, method, reason }
    if (requestId !== undefined) body.requestId = requestId
    if (by !== undefined) body.by = by
    if (how !== undefined && how !== "answered") body.how = how
    if (votes !== undefined) body.votes = votes
    if (edited) body.edited = edited
    if (sandbox !== undefined) body.sandbox = sandbox
    this.tell(body)
    return resolution
  }
}

/** The resolution of a check in which something failed. */
export const failed: Resolution = { granted: false, method: "check_failed", reason: "Permission check failed" }

/** The resolution of a check whose caller is gone. */
export const cancelled: Resolution = { granted: false, method: "cancelled", reason: "the work was cancelled" }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const asItIs: Restore = (effect) => effect

type Told = Extract<AgentEvent.Body, { readonly _tag: "PermissionResolved" }>
type Resolved = { -readonly [K in keyof Told]: Told[K] }

const restoreOf = (flags: RuntimeFlags.RuntimeFlags): Restore =>
  RuntimeFlags.interruption(flags) ? Effect.interruptible : asItIs

/** A grant that could not be recorded. The resolution still names the person who was asked. */
const unrecorded = (resolution: Resolution, cause: Cause.Cause<AuditTrail.AuditUnwritable>): Resolution => ({
  ...resolution,
  ...failed,
  reason: Option.match(Cause.failureOption(cause), { onNone: () => failed.reason, onSome: ({ message }) => message })
})
