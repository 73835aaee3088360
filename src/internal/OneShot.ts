/**
 * A value that comes once. It is itself the effect that waits for it, for any number of fibers. Code without a fiber
 * observes it by a callback.
 *
 * ```
 * const once = new OneShot<number>()
 * once.observe((n) => seen.push(n))
 * once.complete(1) // every fiber that runs `once` gets 1, now or later
 * ```
 *
 * Like a Deferred, at a tenth of its memory: thousands of sessions may have several each.
 */
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"

export class OneShot<A> extends Effectable.Class<A> {
  private come: readonly [A] | undefined
  /** Waiting fibers and observers, in order of arrival. */
  private readers: Array<(value: A) => void> | undefined

  /** One that is complete from the start. */
  static of<A>(value: A): OneShot<A> {
    const once = new OneShot<A>()
    once.complete(value)
    return once
  }

  /** Completes it; later values are dropped. Observers are called, and waiting fibers woken, before this returns. */
  complete(value: A): void {
    if (this.come !== undefined) return
    this.come = [value]
    const { readers } = this
    this.readers = undefined
    for (const read of readers ?? []) read(value)
  }

  /** Calls `read` with the value when it comes, or at once when it is there. */
  observe(read: (value: A) => void): void {
    if (this.come !== undefined) read(this.come[0])
    else this.add(read)
  }

  override commit(): Effect.Effect<A> {
    if (this.come !== undefined) return Effect.succeed(this.come[0])
    return Effect.async<A>((resume) => {
      // Other fibers may have run since the check above.
      if (this.come !== undefined) return resume(Effect.succeed(this.come[0]))
      const read = (value: A) => resume(Effect.succeed(value))
      this.add(read)
      return Effect.sync(() => {
        this.readers = this.readers?.filter((other) => other !== read)
      })
    })
  }

  private add(read: (value: A) => void): void {
    if (this.readers === undefined) this.readers = [read]
    else this.readers.push(read)
  }
}
