/**
 * One check of one call: who acts, and the one resolution it comes to, however many rounds of edits that takes.
 *
 * The decision is written down before it counts, and told in the step in which it is made.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import type * as FiberStatus from "effect/FiberStatus"
import * as Option from "effect/Option"
import * as RuntimeFlags from "effect/RuntimeFlags"
import type { Restore } from "../core/Interruption.js"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import * as AgentEvent from "../event/AgentEvent.js"
import * as AuditRecord from "../event/AuditRecord.js"
import type * as AuditTrail from "../event/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { Resolution } from "./Verdict.js"

export interface Options {
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  /** Told every decision, in the step in which it is made; `params` are what somebody made of the arguments. */
  readonly decided?: ((call: ToolCall, resolution: Resolution, params: unknown) => void) | undefined
  /** Where every decision is written down before it counts. Default: nowhere. */
  readonly audit?: AuditTrail.Service | undefined
}

/** The call as it stands. */
export interface Subject {
  readonly call: ToolCall
  /** Whether somebody changed its arguments. */
  readonly edited: boolean
}

export class Check {
  /** Of whoever acts; known from the start, so that deciding and telling are one step. */
  readonly origin: Origin.Origin
  /** Set in the step in which it is told. */
  resolved: Resolution | undefined
  private readonly clock: Clock.Clock
  /** Makes waiting interruptible again, where whoever checks lets it be interrupted. */
  readonly restore: Restore

  constructor(
    private readonly options: Options,
    /** As it was proposed. */
    private readonly call: ToolCall,
    readonly fiber: Fiber.RuntimeFiber<unknown, unknown>,
    { runtimeFlags }: FiberStatus.Running
  ) {
    this.origin = Origin.ofCall(Origin.of(fiber), call.id)
    this.resolved = undefined
    this.clock = Context.get(fiber.currentDefaultServices, Clock.Clock)
    this.restore = RuntimeFlags.interruption(runtimeFlags) ? Effect.interruptible : asItIs
  }

  /** Whether the fiber that checks was told to stop, and does. */
  isInterrupted(): boolean {
    return this.restore !== asItIs && !Cause.isEmpty(this.fiber.getFiberRef(FiberRef.interruptedCause))
  }

  /**
   * Writes the decision down and tells it, as one step that nothing interrupts; at once, as an exit, where nothing is to be
   * written. Yields what is in force: nothing is granted that could not be recorded.
   */
  settle(subject: Subject, resolution: Resolution): Effect.Effect<Resolution> {
    const { audit } = this.options
    if (audit === undefined) return Effect.succeed(this.publish(subject, resolution))
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if (this.resolved !== undefined) return Effect.succeed(resolution)
        const { call } = subject
        const answeredAt = this.clock.unsafeCurrentTimeMillis()
        const decision = { tool: call.name, toolCallId: call.id, args: call.params, answeredAt, ...resolution }
        return Effect.matchCause(audit.record(AuditRecord.permission(this.origin, decision)), {
          onFailure: (cause) =>
            this.publish(subject, resolution.granted ? unrecorded(Cause.failureOption(cause)) : resolution),
          onSuccess: () => this.publish(subject, resolution)
        })
      })
    )
  }

  /** The same for a check that came to no decision: of the call as it was proposed. */
  breakOff(resolution: Resolution): Effect.Effect<Resolution> {
    return this.settle({ call: this.call, edited: false }, resolution)
  }

  tell(body: AgentEvent.Body): void {
    const { agent, correlationId, sessionId } = this.origin
    const at = this.clock.unsafeCurrentTimeMillis()
    this.options.bus.unsafePublish(AgentEvent.make({ at, sessionId, agent, correlationId }, body))
  }

  private publish({ call, edited }: Subject, resolution: Resolution): Resolution {
    if (this.resolved !== undefined) return resolution
    this.resolved = resolution
    this.options.decided?.(call, resolution, edited ? call.params : undefined)
    const { granted, method, requestId, by } = resolution
    const reason = this.options.redactor.text(resolution.reason)
    // Added one by one: a spread for each would give every event a shape of its own.
    const body: Resolved = { _tag: "PermissionResolved", toolCallId: call.id, tool: call.name, granted, method, reason }
    if (requestId !== undefined) body.requestId = requestId
    if (by !== undefined) body.by = by
    if (edited) body.edited = edited
    this.tell(body)
    return resolution
  }
}

/** What a check comes to in which something broke. */
export const failed: Resolution = { granted: false, method: "check_failed", reason: "Permission check failed" }

/** What a check comes to that nobody waits for any more. */
export const cancelled: Resolution = { granted: false, method: "cancelled", reason: "the work was cancelled" }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const asItIs: Restore = (effect) => effect

type Told = Extract<AgentEvent.Body, { readonly _tag: "PermissionResolved" }>
type Resolved = { -readonly [K in keyof Told]: Told[K] }

const unrecorded = (failure: Option.Option<AuditTrail.AuditUnwritable>): Resolution =>
  Option.isSome(failure) ? { ...failed, reason: failure.value.message } : failed
