/** A wait that ends by itself: interruption does not end it. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"

/**
 * Waits until the callback given to `listen` is called, but no longer than `atMost`. Yields whether it was called.
 *
 * Not `Effect.timeout` in an uninterruptible region: that waits in two child fibers, and interrupting a fiber
 * interrupts its children at once, even when the fiber itself is uninterruptible.
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
