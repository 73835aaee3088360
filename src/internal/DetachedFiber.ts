/** Fibers that outlive the fiber that starts them. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberStatus from "effect/FiberStatus"
import * as Runtime from "effect/Runtime"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as CallerContext from "../core/CallerContext.js"

/** Where fibers are started: the world of one fiber at one moment. */
export type Place = Runtime.Runtime<never>

/** The place where a fiber is now. Fibers that are started there can be interrupted only where they say so. */
const placeOf = (fiber: Fiber.RuntimeFiber<unknown, unknown>, { runtimeFlags }: FiberStatus.Running): Place =>
  Runtime.make({
    context: CallerContext.around(fiber.currentContext),
    runtimeFlags: RuntimeFlags.disable(runtimeFlags, RuntimeFlags.Interruption),
    fiberRefs: fiber.getFiberRefs()
  })

/** The place of the running fiber. */
export const here: Effect.Effect<Place> = Effect.withFiberRuntime((fiber, status) =>
  Effect.succeed(placeOf(fiber, status))
)

/**
 * Starts an effect in a fiber of its own that nobody supervises. It begins after the running code, and even if it is
 * interrupted at once.
 */
export const unsafeFork = <A, E>(place: Place, effect: Effect.Effect<A, E>): Fiber.RuntimeFiber<A, E> =>
  Runtime.runFork(place, effect, { immediate: false })

/**
 * Like {@link unsafeFork}, in the world of the starting fiber.
 *
 * Unlike a fiber of `Effect.forkDaemon`, it does not hold its ended parent in memory: two kilobytes for each child of
 * an agent, because a tool call starts the child and ends before it.
 */
export const fork = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Fiber.RuntimeFiber<A, E>> =>
  Effect.map(here, (place) => unsafeFork(place, effect))
