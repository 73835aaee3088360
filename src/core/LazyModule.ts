/**
 * A module that is loaded where it is first needed, and is at hand from then on: many programs never need it.
 *
 * A module that cannot be loaded is a defect of the installation: the effect dies, and whatever needed it does not happen.
 */
import * as Effect from "effect/Effect"

export const make = <A>(load: () => Promise<A>): Effect.Effect<A> => Effect.suspend(getter(load))

/** The same for a place where every step counts: once the module is at hand, the effect is its value and takes none. */
export const getter = <A>(load: () => Promise<A>): (() => Effect.Effect<A>) => {
  let loaded: Effect.Effect<A> | undefined
  const loading = Effect.map(Effect.promise(load), (module) => {
    loaded ??= Effect.succeed(module)
    return module
  })
  return () => loaded ?? loading
}
