/**
 * Gives way to the event loop: timers, sockets and signals have their turn.
 *
 * Effect continues in microtasks, which run before all of them. Work that never waits for anything outside would keep
 * every timeout from firing, its own included. A loop therefore checks once a round whether it is due, and gives way
 * when it is.
 * ```
 *  the loop goes round ─► work begins ─► 8 ms later it still goes on ─► gives way ─► the loop goes round
 *                               └─► waits for something ─► the loop goes round, and nothing is due
 * ```
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"

/** Milliseconds that work may go on before it gives way. */
const longest = 8

/** Since when one worker runs without a pause. */
export interface LoopTurn {
  /** In which round of the loop. */
  round: number
  /** Milliseconds, by the worker's clock. */
  since: number
}

/** The state of a worker that has done nothing yet. */
export const fresh: Readonly<LoopTurn> = { round: -1, since: 0 }

/**
 * Whether it is time to {@link yieldToEventLoop}. Never under a test clock: under it only what a test triggers may happen, and
 * work is expected to come to rest without the event loop.
 */
export const isDue = (self: LoopTurn, clock: Clock.Clock): boolean => {
  if (clock !== live) return false
  const now = clock.unsafeCurrentTimeMillis()
  countRound()
  if (self.round === round && now >= self.since) return now - self.since >= longest
  self.round = round
  self.since = now
  return false
}

/** Resumes when the event loop has gone round. */
export const yieldToEventLoop: Effect.Effect<void> = Effect.async((resume) => {
  later(() => resume(Effect.void))
})

/** Calls back when the event loop has gone round, with all others that wait for it at once. */
export const afterRound = (then: () => void): void => {
  countRound()
  awaiting.push(then)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const live: Clock.Clock = Context.get(DefaultServices.liveServices, Clock.Clock)

/** How often the event loop has gone round, counting only rounds in which somebody worked. */
let round = 0
/** Whether the end of this round will be counted. */
let isCounted = false
let awaiting: Array<() => void> = []

const countRound = (): void => {
  if (isCounted) return
  isCounted = true
  later(() => {
    isCounted = false
    round++
    const all = awaiting
    awaiting = []
    for (const then of all) then()
  })
}

/** Where there is no `setImmediate`, a timer has to do. */
const later = (then: () => void): void => {
  if (typeof setImmediate === "function") setImmediate(then)
  else setTimeout(then, 0)
}
