/**
 * Interrupts a fiber, and lets an uninterruptible region that it is in end before that.
 *
 * Effect drops the value of such a region when its fiber was interrupted meanwhile: a transaction that was written
 * would look like one that was broken off.
 */
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as EventLoop from "./EventLoop.js"

/** `isOver`: the fiber need not be interrupted any more. */
export const interrupt = (fiber: Fiber.RuntimeFiber<unknown, unknown>, isOver: () => boolean, looks = 0): void => {
  if (isOver()) return
  if (!isHeld(fiber)) return fiber.unsafeInterruptAsFork(FiberId.none)
  const again = () => interrupt(fiber, isOver, looks + 1)
  // No fiber says when it leaves a region. What has waited for long is looked at less often.
  if (looks < 100) EventLoop.afterRound(again)
  else setTimeout(again, 10)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Whether an interrupt would drop a value: it is in an uninterruptible region, and waits for no child that an interrupt would
 * end, as `Effect.timeout` does. Every fiber has these fields; the type of fibers does not say so.
 */
const isHeld = (fiber: object): boolean => {
  if (!("currentRuntimeFlags" in fiber) || typeof fiber.currentRuntimeFlags !== "number") return false
  if ((fiber.currentRuntimeFlags & RuntimeFlags.Interruption) !== 0 || !("_children" in fiber)) return false
  const { _children: children } = fiber
  if (children === null) return true
  return children instanceof Set && (children.size === 0 || [...children].some(isHeld))
}
