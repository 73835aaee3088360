/** Waiting that ends by itself, and by nothing else. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

/**
 * Waits until what `listen` is given is called, but no longer than this. Yields whether it was.
 *
 * Not `Effect.timeout` in an uninterruptible region: that waits in two child fibers, and whoever interrupts a fiber
 * interrupts its children at once, whether it can be interrupted itself or not.
 */
export const wait = (listen: (done: () => void) => void, atMost: Duration.DurationInput): Effect.Effect<boolean> =>
  Effect.uninterruptible(
    Effect.flatMap(Effect.forkDaemon(Effect.interruptible(Effect.sleep(atMost))), (timer) =>
      Effect.async<boolean>((resume) => {
        timer.addObserver(() => resume(Effect.succeed(false)))
        listen(() => {
          resume(Effect.succeed(true))
          timer.unsafeInterruptAsFork(FiberId.none)
        })
      })
    )
  )
