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
import type { RequestId } from "../core/Id.js"
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
  /** When it is frozen, another process goes on from here: what was not decided by now stays open. Default: none. */
  readonly journal?: { readonly isFrozen: boolean } | undefined
  /** Receives every decision, in the step in which it is made; `params` are the edited arguments. */
  readonly decided?: ((call: ToolCall, resolution: Resolution, params: unknown) => void) | undefined
  /** Where every decision is recorded before it counts. Default: nowhere. */
  readonly audit?: AuditTrail.Service | undefined
  /** Default: none. */
  readonly spans?: Spans.Service | undefined
}

/** Who was asked about a call, and when. */
export type Asked = Pick<Resolution, "requestId" | "askedAt" | "answeredAt" | "by" | "how">

/** An answer that wants other arguments. */
export interface Edit extends Asked, Pick<Resolution, "votes"> {
  /** What the question was about. */
  readonly args: unknown
  /** What the answer put in its place. Undefined when that does not fit. */
  readonly newArgs: unknown
  /** Why it does not fit. */
  readonly reason?: string
}

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
  /** Whether a person changed the arguments of the call. */
  private isEdited: boolean
  /** The last answer that wanted other arguments. */
  private change: Change | undefined
  /** The decision was handed to the audit. */
  private recording: boolean
  private readonly clock: Clock.Clock
  /** Makes waiting interruptible again, if the caller was interruptible. */
  restore: Restore

  constructor(
    private readonly options: Options,
    /** The call in its present form. */
    private call: ToolCall,
    public fiber: Fiber.RuntimeFiber<unknown, unknown>,
    flags: RuntimeFlags.RuntimeFlags
  ) {
    this.origin = Origin.ofCall(Origin.of(fiber), call.id)
    this.resolved = undefined
    this.asked = undefined
    this.isEdited = false
    this.change = undefined
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
        return Effect.matchCauseEffect(this.recorded(audit, subject, resolution), {
          onFailure: (cause) => {
            const told = this.publish(subject, resolution.granted ? unrecorded(resolution, cause) : resolution)
            return Defect.isIn(cause) ? Effect.as(this.log("The audit", cause), told) : Effect.succeed(told)
          },
          onSuccess: () => Effect.succeed(this.publish(subject, resolution))
        })
      })
    )
  }

  /** As {@link settle}, for a check that ended without a decision: about the call in its present form. */
  breakOff(resolution: Resolution): Effect.Effect<Resolution> {
    return this.settle(this.now, resolution)
  }

  /** An answer wants this call, or what it wants does not fit. It is recorded with what follows. */
  edit({ call, edited }: Subject, edit: Edit): void {
    this.call = call
    this.isEdited = edited
    this.change = { edit, from: edit.requestId, to: undefined }
  }

  /** Records the edit that led to this request, before anybody is asked. */
  recordEdit(leadsTo: RequestId): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    const { audit } = this.options
    if (this.change === undefined) return Effect.void
    this.change.to = leadsTo
    return audit === undefined ? Effect.void : Effect.uninterruptible(this.editRecorded(audit))
  }

  /**
   * Publishes at once that the call does not run. The check itself does not stop, and its caller continues without it.
   */
  leave(): void {
    if (this.resolved === undefined) this.publish(this.now, { ...cancelled, ...this.asked })
  }

  /** Records that the call was abandoned, unless the blocked fiber is recording. */
  get writeLeft(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { audit } = this.options
      if (audit === undefined || this.recording) return Effect.void
      this.recording = true
      return Effect.ignore(this.recorded(audit, this.now, { ...cancelled, ...this.asked }))
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

  /** Writes a decision down, behind the edit that led to it. */
  private recorded(
    audit: AuditTrail.Service,
    { call }: Subject,
    { answeredAt, askedAt, requestId, voters: _, ...resolution }: Resolution
  ): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    const { change } = this
    // The request that an edit answered was about the arguments before.
    const isBefore = change !== undefined && change.from === requestId
    const asked = isBefore ? { requestId: change.to } : { requestId, askedAt }
    const record = Effect.suspend(() => {
      const isOpen = this.options.journal?.isFrozen === true
      const entry = { ...(isOpen ? leftOpen : resolution), ...asked, args: call.params }
      return audit.record(this.entryOf(isOpen ? undefined : answeredAt, entry))
    })
    return change?.edit === undefined ? record : Effect.zipRight(this.editRecorded(audit), record)
  }

  private get now(): Subject {
    return { call: this.call, edited: this.isEdited }
  }

  private editRecorded(audit: AuditTrail.Service): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    const { change } = this
    if (change?.edit === undefined) return Effect.void
    const { answeredAt, ...answer } = change.edit
    const entry = this.entryOf(answeredAt, {
      ...answer,
      ...undecided("edited"),
      ...(change.to && { leadsTo: change.to })
    })
    change.edit = undefined
    return Effect.suspend(() => audit.record(entry))
  }

  private entryOf(
    answeredAt: number | undefined,
    entry: Omit<AuditRecord.OnCall, "answeredAt" | "tool" | "toolCallId">
  ): AuditRecord.AuditEntry {
    const { id, name } = this.call
    const now = this.clock.unsafeCurrentTimeMillis()
    const when = answeredAt === undefined ? { answeredAt: now } : { answeredAt, countedAt: now }
    return AuditRecord.permission(this.origin, { tool: name, toolCallId: id, ...entry, ...when })
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

interface Change {
  /** Undefined once it is in the audit. */
  edit: Edit | undefined
  /** The request that the edit answered. */
  readonly from: RequestId | undefined
  /** The request about what the edit wants. */
  to: RequestId | undefined
}

const undecided = (outcome: AuditRecord.AuditOutcome) => ({ outcome, granted: false, method: undefined })

const leftOpen = { ...undecided("left_open"), reason: AuditRecord.leftOpen }

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
