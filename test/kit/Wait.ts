/** Waits for what comes true soon. A limit of time ends what hangs, and the error shows what was seen last. */
import * as Data from "effect/Data"
import type { DurationInput } from "effect/Duration"
import * as Effect from "effect/Effect"

/**
 * Half of what a test has, so that a test that waits in vain says what is missing. It ends what hangs, and is no measure:
 * a step that takes a second may take twenty beside other work.
 */
export const patience = "60 seconds"

/** What has not come true in time. */
export class Late extends Data.TaggedError("Late")<{ readonly message: string }> {}

/** Looks again and again until it holds, and yields what it found. The limit ends a look that does not return, too. */
export const until = <A, E, R>(
  look: Effect.Effect<A, E, R>,
  holds: (found: A) => boolean,
  within: DurationInput = patience
): Effect.Effect<A, E | Late, R> =>
  Effect.suspend(() => {
    let seen: A | undefined
    return Effect.gen(function* () {
      for (let pause = 10; ; pause = Math.min(100, 2 * pause)) {
        seen = yield* look
        if (holds(seen)) return seen
        yield* Effect.sleep(pause)
      }
    }).pipe(
      Effect.timeoutFail({
        duration: within,
        onTimeout: () =>
          new Late({ message: `It has not come true. Seen last: ${String(JSON.stringify(seen)).slice(0, 2_000)}` })
      })
    )
  })
