/**
 * The record of one decision: who acts, who was asked, which arguments people changed, and the one resolution.
 *
 * A resolution is written to the audit before it counts, and published in the step in which it counts. Later
 * resolutions of the same call are ignored.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Defect from "../core/Defect.js"
import type { RequestId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import type * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as AuditRecord from "../audit/AuditRecord.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type { ToolCall } from "../tool/ToolCall.js"
import { denied, type Asked, type Denied, type Resolution } from "./Verdict.js"

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

/** An answer that wants other arguments. */
export interface Edit extends Asked, Pick<Resolution, "votes"> {
  /** The arguments that the question was about. */
  readonly args: unknown
  /** The arguments that the answer wants. Undefined when they do not fit. */
  readonly newArgs: unknown
  /** Why they do not fit. */
  readonly reason?: string
}

/** The call in its present form. */
export interface Subject {
  readonly call: ToolCall
  /** Whether a person changed its arguments. */
  readonly edited: boolean
}

export class PermissionRecord {
  readonly origin: Origin.Origin
  /** Set in the step in which the resolution is published. */
  resolved: Resolution | undefined
  /** Set when a person is asked: the resolution then names them in any case. */
  asked: Asked | undefined
  private subject: Subject
  /** The last answer that wanted other arguments. */
  private change: Change | undefined
  /** Edits that are recorded with the decision. */
  private edits: ReadonlyArray<AuditRecord.AuditEntry> = none
  /** The decision was handed to the audit. */
  private isRecording = false
  private readonly clock: Clock.Clock

  constructor(
    private readonly options: Options,
    call: ToolCall,
    fiber: Fiber.RuntimeFiber<unknown, unknown>
  ) {
    this.origin = Origin.ofCall(Origin.of(fiber), call.id)
    this.subject = { call, edited: false }
    this.clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
  }

  /** Records and publishes the decision. Yields the resolution in force: nothing is granted that could not be recorded. */
  settle(subject: Subject, decided: Resolution): Effect.Effect<Resolution> {
    const { audit } = this.options
    const resolution =
      this.asked === undefined || decided.requestId !== undefined ? decided : { ...decided, ...this.asked }
    if (audit === undefined || audit.note) return Effect.succeed(this.publish(subject, resolution))
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if (this.resolved !== undefined) return Effect.succeed(this.resolved)
        // Another fiber is recording already: an interruption meanwhile makes no second decision.
        if (this.isRecording) return Effect.succeed(cancelled)
        this.isRecording = true
        return Effect.matchCauseEffect(this.write(audit, subject, resolution), {
          onFailure: (cause) => {
            const inForce = this.publish(subject, resolution.granted ? unrecorded(resolution, cause) : resolution)
            return Defect.isIn(cause) ? Effect.as(this.log("The audit", cause), inForce) : Effect.succeed(inForce)
          },
          onSuccess: () => Effect.succeed(this.publish(subject, resolution))
        })
      })
    )
  }

  /** Like {@link settle}, for a check that ended without a decision: about the call in its present form. */
  breakOff(resolution: Resolution): Effect.Effect<Resolution> {
    return this.settle(this.subject, resolution)
  }

  /** Ends a check that was interrupted or failed. A defect goes to the log. */
  fail(cause: Cause.Cause<unknown>): Effect.Effect<Denied> {
    // When the whole check was interrupted, nobody receives the verdict.
    if (Cause.isInterrupted(cause)) return Effect.as(this.breakOff(cancelled), denied(failed))
    const resolved = Effect.map(this.breakOff(failed), denied)
    return Defect.isIn(cause) ? Effect.zipRight(this.log("The permission check", cause), resolved) : resolved
  }

  /** Notes an answer that wants `subject`, or whose arguments do not fit. The edit is recorded with what follows. */
  noteEdit(subject: Subject, edit: Edit): void {
    this.subject = subject
    this.change = { edit, from: edit.requestId, to: undefined }
  }

  /** Records the edit that led to this request, before anybody is asked. */
  recordEdit(leadsTo: RequestId): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    const { audit } = this.options
    if (this.change === undefined) return Effect.void
    this.change.to = leadsTo
    return audit === undefined ? Effect.void : Effect.uninterruptible(this.writeEdit(audit))
  }

  /** Publishes at once that the call does not run. The check itself does not stop, and its caller continues without it. */
  leave(): void {
    if (this.resolved === undefined) this.publish(this.subject, { ...cancelled, ...this.asked })
  }

  /** Records that the call was abandoned, unless the blocked fiber is recording. */
  get writeLeft(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { audit } = this.options
      if (audit === undefined || audit.note || this.isRecording) return Effect.void
      this.isRecording = true
      return Effect.ignore(this.write(audit, this.subject, { ...cancelled, ...this.asked }))
    })
  }

  publishEvent(body: AgentEvent.Body): void {
    EventPublisher.publish(this.options.bus, this.clock, this.origin, body)
  }

  /** The causes of crashes go to the log only. */
  private log(what: string, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { agent, sessionId } = this.origin
    const { id, name } = this.subject.call
    return Defect.log(what, cause, this.options.redactor, { session: sessionId, agent, tool: name, call: id })
  }

  /** Writes a decision down, behind the edit that led to it. */
  private write(
    audit: AuditTrail.Service,
    subject: Subject,
    resolution: Resolution
  ): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    const record = Effect.suspend(() => audit.record(this.decisionOf(subject, resolution)))
    return this.change?.edit === undefined ? record : Effect.zipRight(this.writeEdit(audit), record)
  }

  private writeEdit(audit: AuditTrail.Service): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    const { change } = this
    if (change?.edit === undefined) return Effect.void
    const { answeredAt, ...answer } = change.edit
    const entry = this.entryOf(answeredAt, {
      ...answer,
      ...undecided("edited"),
      ...(change.to && { leadsTo: change.to })
    })
    change.edit = undefined
    if (audit.note === undefined) return Effect.suspend(() => audit.record(entry))
    // The journal has the edited answer until it has the decision.
    this.edits = [...this.edits, entry]
    return Effect.void
  }

  /** Notes the decision and its edits beside the journal's entry, which `publish` notes. Yields the resolution in force. */
  private noted(audit: AuditTrail.Service, subject: Subject, resolution: Resolution): Resolution {
    void this.writeEdit(audit)
    const failure = audit.note?.([...this.edits, this.decisionOf(subject, resolution)])
    return failure && resolution.granted ? unrecorded(resolution, Cause.fail(failure)) : resolution
  }

  private decisionOf(
    { call }: Subject,
    { answeredAt, askedAt, requestId, voters: _, ...resolution }: Resolution
  ): AuditRecord.AuditEntry {
    const { change } = this
    // The request that an edit answered was about the arguments before.
    const isBefore = change !== undefined && change.from === requestId
    const asked = isBefore ? { requestId: change.to } : { requestId, askedAt }
    const isOpen = this.options.journal?.isFrozen === true
    const entry = { ...(isOpen ? leftOpen : resolution), ...asked, args: call.params }
    return this.entryOf(isOpen ? undefined : answeredAt, entry)
  }

  private entryOf(
    answeredAt: number | undefined,
    entry: Omit<AuditRecord.OnCall, "answeredAt" | "tool" | "toolCallId">
  ): AuditRecord.AuditEntry {
    const { id, name } = this.subject.call
    const now = this.clock.unsafeCurrentTimeMillis()
    const when = answeredAt === undefined ? { answeredAt: now } : { answeredAt, countedAt: now }
    return AuditRecord.permission(this.origin, { tool: name, toolCallId: id, ...entry, ...when })
  }

  private publish(subject: Subject, given: Resolution): Resolution {
    if (this.resolved !== undefined) return this.resolved
    const { audit } = this.options
    const { call, edited } = subject
    const resolution = audit?.note ? this.noted(audit, subject, given) : given
    this.resolved = resolution
    this.options.decided?.(call, resolution, edited ? call.params : undefined)
    const { by, granted, how, method, requestId, sandbox, votes } = resolution
    // Members are added one by one: behind spreads, each event has a shape of its own.
    const event: Resolved = {
      _tag: "PermissionResolved",
      toolCallId: call.id,
      tool: call.name,
      granted,
      method,
      reason: this.options.redactor.text(resolution.reason)
    }
    if (requestId !== undefined) event.requestId = requestId
    if (by !== undefined) event.by = by
    if (how !== undefined && how !== "answered") event.how = how
    if (votes !== undefined) event.votes = votes
    if (edited) event.edited = edited
    if (sandbox !== undefined) event.sandbox = sandbox
    this.publishEvent(event)
    return resolution
  }
}

/** The resolution of a check whose caller is gone. */
export const cancelled: Resolution = { granted: false, method: "cancelled", reason: "the work was cancelled" }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: ReadonlyArray<never> = []

type Event = Extract<AgentEvent.Body, { readonly _tag: "PermissionResolved" }>
type Resolved = { -readonly [K in keyof Event]: Event[K] }

interface Change {
  /** Undefined once it is in the audit. */
  edit: Edit | undefined
  /** The request that the edit answered. */
  readonly from: RequestId | undefined
  /** The request about the arguments that the edit wants. */
  to: RequestId | undefined
}

/** The resolution of a check in which something failed. */
const failed: Resolution = { granted: false, method: "check_failed", reason: "Permission check failed" }

const undecided = (outcome: AuditRecord.AuditOutcome) => ({ outcome, granted: false, method: undefined })

const leftOpen = { ...undecided("left_open"), reason: AuditRecord.leftOpen }

/** A grant that could not be recorded. The resolution still names the person who was asked. */
const unrecorded = (resolution: Resolution, cause: Cause.Cause<AuditTrail.AuditUnwritable>): Resolution => ({
  ...resolution,
  ...failed,
  reason: Option.match(Cause.failureOption(cause), { onNone: () => failed.reason, onSome: ({ message }) => message })
})
