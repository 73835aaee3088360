/**
 * How fast this machine is right now, next to the one on which the targets were set: the price of a few primitives of
 * Effect, over the price they had there.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Cpu from "../Cpu.js"
import type * as Workload from "../Workload.js"

/** With the nanoseconds that one took there. */
const primitives: ReadonlyArray<readonly [Effect.Effect<unknown>, number]> = [
  [Effect.void, 87],
  [Effect.promise(() => Promise.resolve()), 1_148],
  [Effect.flatMap(Effect.fork(Effect.void), Fiber.join), 10_383],
  [Deferred.make<void>(), 4_247],
  [Effect.unsafeMakeSemaphore(1).withPermits(1)(Effect.void), 6_016],
  [Effect.scoped(Effect.acquireRelease(Effect.void, () => Effect.void)), 44_700],
  [Effect.race(Effect.void, Effect.never), 39_109]
]

/** Microseconds of a few hundred of one, the least of three. */
const priceOf = (primitive: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const times = 500
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < 3; round++) {
      const start = Cpu.now()
      for (let i = 0; i < times; i++) yield* primitive
      least = Math.min(least, (Cpu.now() - start) / times)
    }
    return least
  })

const speed: Workload.Workload = {
  sample: () =>
    Effect.map(
      Effect.forEach(primitives, ([primitive, nanos]) =>
        Effect.map(priceOf(primitive), (micros) => Math.log(nanos / 1_000 / micros))
      ),
      (logs) => ({ speed: Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length) })
    )
}

export const workloads: Workload.Workloads = { speed: Effect.succeed(speed) }
