/**
 * Cleans up when a fiber has finished the calls of a step. Its FiberRefs are restored, so that no value of a call or
 * its tool is seen later; crashes are logged, and abandoned checks are recorded.
 */
import type * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Defect from "../core/Defect.js"
import * as Origin from "../core/Origin.js"
import * as World from "../core/World.js"
import type { Pending } from "../permission/PermissionGate.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { TurnContext } from "./TurnContext.js"

type Left = Pick<Pending, "writeLeft">

export class BatchCleanup {
  private outer: World.Kept | undefined
  private crashes: Array<readonly [ToolCall, Cause.Cause<unknown>]> | undefined
  private left: Array<Left> | undefined

  constructor(private readonly session: TurnContext) {}

  /**
   * The FiberRefs of a call in the turn's fiber: its identity and the tool's own context. Keeps those that the fiber had
   * before its first call.
   */
  entered(
    call: ToolCall,
    id: FiberId.Single,
    refs: FiberRefs.FiberRefs,
    context: Context.Context<never> | undefined
  ): FiberRefs.FiberRefs {
    this.outer ??= { id, refs }
    const origin = Origin.inCall(call.id, id, refs)
    return FiberRefs.updateManyAs(refs, {
      entries: context === undefined ? [origin] : [origin, [FiberRef.currentContext, [[id, context]]]]
    })
  }

  /** Records a crash in a place that cannot log. */
  crashed(call: ToolCall, cause: Cause.Cause<unknown>): void {
    this.crashes ??= []
    this.crashes.push([call, cause])
  }

  /** A check was abandoned, and its end is not recorded yet. */
  leftBehind(check: Left): void {
    this.left ??= []
    this.left.push(check)
  }

  /** Logs that a tool crashed. */
  log(call: ToolCall, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return this.logOf(call.name, call, cause)
  }

  /** Logs that a tool returned what its schema does not allow. */
  misfit(call: ToolCall, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    return this.logOf(`Encoding what ${call.name} returned`, call, cause)
  }

  private logOf(what: string, { id, name }: ToolCall, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { origin, redactor } = this.session
    return Defect.log(what, cause, redactor, { session: origin.sessionId, agent: origin.agent, tool: name, call: id })
  }

  /** Restores the FiberRefs; not in another leg of the turn, which never had them. */
  back(): Effect.Effect<void> {
    const { outer } = this
    if (outer === undefined) return Effect.void
    this.outer = undefined
    return World.back(outer)
  }

  /** Runs the whole cleanup. */
  done(): Effect.Effect<void> {
    const { crashes, left } = this
    if (crashes === undefined && left === undefined) return this.back()
    this.crashes = undefined
    this.left = undefined
    const logged = Effect.forEach(crashes ?? [], ([call, cause]) => this.log(call, cause), { discard: true })
    // In a daemon fiber: the audit itself may be what hangs.
    const written = Effect.forkDaemon(Effect.forEach(left ?? [], (check) => check.writeLeft, { discard: true }))
    return Effect.zipRight(Effect.zipRight(logged, written), this.back())
  }
}
