/**
 * A faster way to do what one function does, bound to that very function and no other.
 *
 * The functions of a public port are all that its users write and wrap. A fast path is bound to the function itself,
 * and looked up with the function that stands at the port at that moment. A copy that keeps the function keeps its fast
 * path. A replacement of the function, be it a spread, a subclass, a delegate, `Object.create` or a proxy, is another
 * function without a fast path, and is called.
 *
 * The function itself holds the fast path, with a mark whose it is. A weak map would leave the function as it is, but V8's
 * young collections keep all values of a weak map alive: each agent that had ended was copied out of the young generation,
 * a fifth of all that a short life allocates.
 */

export interface FastPath<Slow extends object, Fast> {
  /** Binds a fast path to `slow`, and returns `slow`. */
  readonly bind: <S extends Slow>(slow: S, fast: Fast) => S
  /** The fast path of the function at the port; nothing when it has none. */
  readonly of: (slow: Slow) => Fast | undefined
}

export const make = <Slow extends object, Fast>(): FastPath<Slow, Fast> => {
  const key = Symbol("assent/internal/FastPath")
  interface Bound {
    /** What a proxy or a heir shows is another's. */
    readonly owner: object
    readonly fast: Fast
  }
  // The type of a port's functions has no place for it.
  const held = (slow: object) => slow as { [key]?: Bound }
  return {
    bind: (slow, fast) => {
      held(slow)[key] = { owner: slow, fast }
      return slow
    },
    of: (slow) => {
      const bound = held(slow)[key]
      return bound?.owner === slow ? bound.fast : undefined
    }
  }
}
