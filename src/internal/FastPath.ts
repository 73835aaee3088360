/**
 * A faster way to do what one function does, bound to that very function and no other.
 *
 * The functions of a public port are all that its users write and wrap. A fast path is bound to the function itself,
 * and looked up with the function that stands at the port at that moment. A copy that keeps the function keeps its fast
 * path. A replacement of the function, be it a spread, a subclass, a delegate, `Object.create` or a proxy, is another
 * function without a fast path, and is called.
 */

export interface FastPath<Slow extends object, Fast> {
  /** Binds a fast path to `slow`, and returns `slow`. */
  readonly bind: <S extends Slow>(slow: S, fast: Fast) => S
  /** The fast path of the function at the port; nothing when it has none. */
  readonly of: (slow: Slow) => Fast | undefined
}

export const make = <Slow extends object, Fast>(): FastPath<Slow, Fast> => {
  const known = new WeakMap<Slow, Fast>()
  return {
    bind: (slow, fast) => {
      known.set(slow, fast)
      return slow
    },
    of: (slow) => known.get(slow)
  }
}
