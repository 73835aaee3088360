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

export const make = <Request extends { readonly requestId: RequestId }, A, E>(): Pending<Request, A, E> =>
  new OpenEntries()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// What is remembered is made when there is something to remember: thousands of brokers may have nothing settled yet.
class OpenEntries<Request extends { readonly requestId: RequestId }, A, E> implements Pending<Request, A, E> {
  private readonly entries = new Map<string, OpenEntry<Request, A, E>>()
  // Two generations of 512: the older is forgotten when the younger is full.
  private young: Map<string, string> | undefined
  private old: Map<string, string> | undefined

  open(request: Request): Entry<Request, A, E> {
    const entry = new OpenEntry<Request, A, E>(request)
    this.entries.set(request.requestId, entry)
    return entry
  }

  get(requestId: string): Request | undefined {
    return this.entries.get(requestId)?.request
  }

  settle(requestId: string, exit: Exit.Exit<A, E>, by: string): boolean {
    const entry = this.entries.get(requestId)
    if (entry === undefined) return false
    this.entries.delete(requestId)
    if (this.young === undefined || this.young.size >= 512) {
      this.old = this.young
      this.young = new Map()
    }
    this.young.set(requestId, by)
    entry.settle(exit)
    return true
  }

  settledBy(requestId: string): string | undefined {
    return this.young?.get(requestId) ?? this.old?.get(requestId)
  }

  list(): ReadonlyArray<Request> {
    return Array.from(this.entries.values(), (entry) => entry.request)
  }

  size(): number {
    return this.entries.size
  }
}

class OpenEntry<Request, A, E> implements Entry<Request, A, E> {
  private exit: Exit.Exit<A, E> | undefined
  private resume: ((exit: Exit.Exit<A, E>) => void) | undefined

  constructor(readonly request: Request) {}

  get await(): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) => {
      if (this.exit !== undefined) resume(this.exit)
      else this.resume = resume
    })
  }

  settle(exit: Exit.Exit<A, E>): void {
    this.exit = exit
    this.resume?.(exit)
  }
}
