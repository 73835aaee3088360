/** Fibers that outlive whoever starts them. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"

/**
 * Starts an effect in a fiber of its own that nobody supervises, with the values of the starting fiber. It begins whatever
 * comes before, and can be interrupted only where it says so.
 *
 * As `Effect.forkDaemon`, but what that starts holds its dead parent for as long as it lives, with all that the parent had:
 * two kilobytes for each child of an agent, which a tool call starts and which stays.
 */
export const fork = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Fiber.RuntimeFiber<A, E>> =>
  Effect.withFiberRuntime((fiber, status) => {
    const runtimeFlags = RuntimeFlags.disable(status.runtimeFlags, RuntimeFlags.Interruption)
    const runtime = Runtime.make({ context: fiber.currentContext, runtimeFlags, fiberRefs: fiber.getFiberRefs() })
    return Effect.succeed(Runtime.runFork(runtime, effect, { immediate: false }))
  })
