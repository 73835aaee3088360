/**
 * The requests that wait for an answer, by their id. Each is settled once: whoever removes it from the map settles it.
 *
 * One entry costs a map slot and, once awaited, one suspended fiber; settling costs the same however many are open.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RequestId } from "../core/Id.js"

/** One open request; `A` is what settles it. */
export interface Entry<Request, A, E> {
  readonly request: Request
  /** Waits until the entry is settled. One waiter. Interrupting it does not settle the entry. */
  readonly await: Effect.Effect<A, E>
}

export interface Pending<Request extends { readonly requestId: RequestId }, A, E> {
  /** Opens an entry. An entry of the same id is replaced; ids are unique, so that does not happen. */
  readonly open: (request: Request) => Entry<Request, A, E>
  readonly get: (requestId: string) => Request | undefined
  /** Settles an entry and closes it. False when no such entry is open: then nothing happened. */
  readonly settle: (requestId: string, exit: Exit.Exit<A, E>, by: string) => boolean
  /** Who settled this entry, as long as it is remembered (the last 1,024 are). */
  readonly settledBy: (requestId: string) => string | undefined
  /** Oldest first. */
  readonly list: () => ReadonlyArray<Request>
  readonly size: () => number
}

export const make = <Request extends { readonly requestId: RequestId }, A, E>(): Pending<Request, A, E> => {
  const entries = new Map<string, OpenEntry<Request, A, E>>()
  // Two generations of 512: the older is forgotten when the younger is full.
  let young = new Map<string, string>()
  let old = new Map<string, string>()
  return {
    open: (request) => {
      const entry = new OpenEntry<Request, A, E>(request)
      entries.set(request.requestId, entry)
      return entry
    },
    get: (requestId) => entries.get(requestId)?.request,
    settle: (requestId, exit, by) => {
      const entry = entries.get(requestId)
      if (entry === undefined) return false
      entries.delete(requestId)
      if (young.size >= 512) {
        old = young
        young = new Map()
      }
      young.set(requestId, by)
      entry.settle(exit)
      return true
    },
    settledBy: (requestId) => young.get(requestId) ?? old.get(requestId),
    list: () => Array.from(entries.values(), (entry) => entry.request),
    size: () => entries.size
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class OpenEntry<Request, A, E> implements Entry<Request, A, E> {
  private exit: Exit.Exit<A, E> | undefined
  private resume: ((exit: Exit.Exit<A, E>) => void) | undefined

  constructor(readonly request: Request) {}

  readonly await: Effect.Effect<A, E> = Effect.async<A, E>((resume) => {
    if (this.exit !== undefined) resume(this.exit)
    else this.resume = resume
  })

  settle(exit: Exit.Exit<A, E>): void {
    this.exit = exit
    this.resume?.(exit)
  }
}
