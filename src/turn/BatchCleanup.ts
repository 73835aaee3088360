/**
 * What is to be done when a fiber is done with the calls of a step: it gets back what it had, so that nothing that was set
 * for a call, or by its tool, is seen after it; crashes are logged, and what was left behind is written down.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Defect from "../core/Defect.js"
import type { Pending } from "../permission/PermissionGate.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { TurnContext } from "./TurnContext.js"

type Left = Pick<Pending, "writeLeft">

export class BatchCleanup {
  private outer: { readonly id: FiberId.Single; readonly refs: FiberRefs.FiberRefs } | undefined
  private crashes: Array<readonly [ToolCall, Cause.Cause<unknown>]> | undefined
  private left: Array<Left> | undefined

  constructor(private readonly session: TurnContext) {}

  /** Remembers what the fiber had; the first that is handed in. */
  keep(id: FiberId.Single, refs: FiberRefs.FiberRefs): void {
    this.outer ??= { id, refs }
  }

  /** A call crashed where nothing can be logged. */
  crashed(call: ToolCall, cause: Cause.Cause<unknown>): void {
    this.crashes ??= []
    this.crashes.push([call, cause])
  }

  /** A check was left behind, and its end is not written down yet. */
  leftBehind(check: Left): void {
    this.left ??= []
    this.left.push(check)
  }

  /** Logs that a tool crashed. */
  log({ id, name }: ToolCall, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const { origin, redactor } = this.session
    return Defect.log(name, cause, redactor, { session: origin.sessionId, agent: origin.agent, tool: name, call: id })
  }

  /** Puts back what was there; not in another leg of the turn, which never had it. */
  back(): Effect.Effect<void> {
    const { outer } = this
    if (outer === undefined) return Effect.void
    this.outer = undefined
    return Effect.updateFiberRefs((id, refs) => {
      if (id !== outer.id) return refs
      // Being told to stop is such a value too, and must not be forgotten.
      const interrupted = FiberRefs.getOrDefault(refs, FiberRef.interruptedCause)
      if (Cause.isEmpty(interrupted)) return outer.refs
      return FiberRefs.updateAs(outer.refs, { fiberId: id, fiberRef: FiberRef.interruptedCause, value: interrupted })
    })
  }

  /** All that is to be done. */
  done(): Effect.Effect<void> {
    const { crashes, left } = this
    if (crashes === undefined && left === undefined) return this.back()
    this.crashes = undefined
    this.left = undefined
    const logged = Effect.forEach(crashes ?? [], ([call, cause]) => this.log(call, cause), { discard: true })
    // Nobody waits for it: what hangs may be the audit.
    const written = Effect.forkDaemon(Effect.forEach(left ?? [], (check) => check.writeLeft, { discard: true }))
    return Effect.zipRight(Effect.zipRight(logged, written), this.back())
  }
}
