/**
 * Something of a server that its callers share, such as streams or bytes. A caller has no more than an own limit, and no more
 * than is left for the others, so that the next caller finds room.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Api from "./Api.js"

/** Why there is no room: the caller has much of it, or all callers together. */
export type Full = "caller" | "server"

export interface Share {
  /** Holds so much until the scope closes. */
  readonly hold: (caller: Api.Person, amount: number) => Effect.Effect<void, Full, Scope.Scope>
  readonly held: () => number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `all`: of the server. `each`: of one caller at most. */
export const make = ({ all, each }: { readonly all: number; readonly each: number }): Share => {
  const own = new Map<string, number>()
  let sum = 0
  const add = (key: string, amount: number) => {
    sum += amount
    const now = (own.get(key) ?? 0) + amount
    if (now === 0) own.delete(key)
    else own.set(key, now)
  }
  return {
    held: () => sum,
    hold: (caller, amount) => {
      const key = keyOf(caller)
      return Effect.acquireRelease(
        Effect.suspend((): Effect.Effect<void, Full> => {
          const mine = own.get(key) ?? 0
          const left = all - sum
          if (mine + amount > each || (mine > 0 && mine + amount > left)) return Effect.fail("caller")
          if (amount > left) return Effect.fail("server")
          return Effect.sync(() => add(key, amount))
        }),
        () => Effect.sync(() => add(key, -amount))
      )
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** One caller, whichever of their keys they use. */
export const keyOf = ({ name, tenant }: Api.Person): string => JSON.stringify([tenant ?? null, name])
