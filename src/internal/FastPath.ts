/**
 * A faster way to do what a function does, known of that very function and of no other.
 *
 * The functions of a public port are all that its users write and wrap. What we can do faster than through such a
 * function is bound to the function itself, and looked up with the one that stands at the port at that moment. A copy
 * that keeps the function keeps its fast path; whatever replaces the function, be it a spread, a subclass, a delegate,
 * `Object.create` or a proxy, is another function without one, and is called.
 */

export interface FastPath<Slow extends object, Fast> {
  /** Says how to do faster what `slow` does, and hands `slow` back. */
  readonly bind: <S extends Slow>(slow: S, fast: Fast) => S
  /** Nothing when the function at the port is another one. */
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
