/** Fibers that outlive the fiber that starts them. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as World from "../core/World.js"

/**
 * Starts an effect in a fiber of its own that nobody supervises, in the world of the starting fiber. The effect
 * begins even if it is interrupted at once, and can be interrupted only where it says so.
 *
 * Unlike a fiber of `Effect.forkDaemon`, it does not hold its ended parent in memory: two kilobytes for each child of
 * an agent, because a tool call starts the child and ends before it.
 */
export const fork = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Fiber.RuntimeFiber<A, E>> =>
  Effect.withFiberRuntime((fiber, status) => {
    const runtimeFlags = RuntimeFlags.disable(status.runtimeFlags, RuntimeFlags.Interruption)
    const runtime = Runtime.make({
      context: World.around(fiber.currentContext),
      runtimeFlags,
      fiberRefs: fiber.getFiberRefs()
    })
    return Effect.succeed(Runtime.runFork(runtime, effect, { immediate: false }))
  })
