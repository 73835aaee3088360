/** Fibers of calls that run beside each other: each in the world of the turn, with the FiberRefs of its call. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberId from "effect/FiberId"
import * as FiberRefs from "effect/FiberRefs"
import * as Runtime from "effect/Runtime"
import * as Origin from "../core/Origin.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import type { ToolCall } from "../tool/ToolCall.js"

/** Where calls are started: the world of a fiber at one moment. */
export interface Place {
  readonly world: Runtime.Runtime<never>
  /** Whose FiberRefs these are. */
  readonly id: FiberId.Single
}

/** The place of the running fiber; what is started there can be interrupted where that fiber can. */
export const here: Effect.Effect<Place> = Effect.fiberIdWith((id) =>
  Effect.map(Effect.runtime(), (world) => ({ world, id }))
)

/** Starts a call, with the services of its tool. It begins after the running code. */
export const start = (
  { id, world: { fiberRefs, runtimeFlags } }: Place,
  call: ToolCall,
  context: Context.Context<never>,
  run: () => Effect.Effect<void>
): Fiber.RuntimeFiber<void> => {
  const own = FiberRefs.updateManyAs(fiberRefs, { entries: [Origin.inCall(call.id, id, fiberRefs)] })
  return DetachedFiber.unsafeFork(Runtime.make({ context, fiberRefs: own, runtimeFlags }), Effect.suspend(run))
}

/** The first step of a run, in the fiber of its turn: it is made where it is asked for. */
export const begun = (run: () => Effect.Effect<void>): Effect.Effect<void> => {
  try {
    return run()
  } catch (thrown) {
    return Effect.die(thrown)
  }
}
