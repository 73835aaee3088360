/**
 * A queue that commits concurrent writes together, so that they share the cost of the `fsync`.
 *
 * ```
 *  write ─► room ─► waiting ─► writer: commit all that wait ─► write returns
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"

export interface Options<Job, E> {
  /** Writes all jobs in order, and yields one exit for each. Runs are never concurrent and never interrupted. */
  readonly commit: (jobs: ReadonlyArray<Job>) => Effect.Effect<ReadonlyArray<Exit.Exit<void, E>>>
  /** The most jobs that wait or are being written. When it is full, `write` waits (back-pressure). */
  readonly capacity: number
  /** The error of a write after the scope was closed. */
  readonly closed: () => E
}

/** Adds a job and waits until it is written. An interrupt withdraws the job unless it is being written already. */
export type Write<Job, E> = (job: Job) => Effect.Effect<void, E>

/** Closing the scope writes what waits. */
export const make = <Job, E>(options: Options<Job, E>): Effect.Effect<Write<Job, E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const room = yield* Effect.makeSemaphore(options.capacity)
    const one = yield* Effect.makeSemaphore(1)
    // Filled by writers, taken as a whole by the one fiber that commits. Bounded by `room`.
    let waiting: Array<Waiting<Job, E>> = []
    let wake: (() => void) | undefined
    let closed = false

    const flush = Effect.suspend(() => {
      const batch = waiting
      waiting = []
      if (batch.length === 0) return Effect.void
      return Effect.map(Effect.exit(options.commit(batch.map(({ job }) => job))), (exits) => {
        for (const [index, { resume }] of batch.entries()) {
          resume(Exit.isSuccess(exits) ? (exits.value[index] ?? Exit.void) : exits)
        }
      })
    }).pipe(one.withPermits(1), Effect.uninterruptible)

    const awaitWork = Effect.async<void>((resume) => {
      if (waiting.length > 0) return resume(Effect.void)
      wake = () => {
        wake = undefined
        resume(Effect.void)
      }
      return Effect.sync(() => {
        wake = undefined
      })
    })

    // Yields first: fibers that are ready to run can add their jobs to the same commit.
    yield* Effect.forkScoped(Effect.forever(awaitWork.pipe(Effect.zipRight(Effect.yieldNow()), Effect.zipRight(flush))))
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closed = true
        return flush
      })
    )

    return (job) =>
      Effect.async<void, E>((resume) => {
        if (closed) return resume(Effect.fail(options.closed()))
        const mine = { job, resume }
        waiting.push(mine)
        wake?.()
        return Effect.sync(() => {
          waiting = waiting.filter((other) => other !== mine)
        })
      }).pipe(room.withPermits(1))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Waiting<Job, E> {
  readonly job: Job
  readonly resume: (effect: Effect.Effect<void, E>) => void
}
