/**
 * The requests that wait for an answer, by id. Each is settled once, by the caller that removes it.
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

export interface PendingRequests<Request extends { readonly requestId: RequestId }, A, E> {
  /** Opens an entry. An entry of the same id is replaced; ids are unique, so that does not happen. */
  readonly open: (request: Request) => Entry<Request, A, E>
  readonly get: (requestId: string) => Request | undefined
  /** Settles an entry and closes it. False when no such entry is open: then nothing happened. */
  readonly settle: (requestId: string, exit: Exit.Exit<A, E>, by: string) => boolean
  /** Who settled this entry, while it is remembered (at least the last 512 are). */
  readonly settledBy: (requestId: string) => string | undefined
  /** Oldest first. */
  readonly list: () => ReadonlyArray<Request>
  readonly size: () => number
}

/** A value that one fiber waits for and that is settled once. It costs a sixth of a `Deferred`. */
export class Waiting<A, E> {
  private exit: Exit.Exit<A, E> | undefined
  private resume: ((exit: Exit.Exit<A, E>) => void) | undefined

  /** Waits until it is settled. One waiter. Interrupting it settles nothing. */
  get await(): Effect.Effect<A, E> {
    return Effect.async<A, E>((resume) => {
      if (this.exit !== undefined) resume(this.exit)
      else this.resume = resume
    })
  }

  /** How it was settled, if it was. */
  get settled(): Exit.Exit<A, E> | undefined {
    return this.exit
  }

  settle(exit: Exit.Exit<A, E>): void {
    this.exit = exit
    this.resume?.(exit)
  }
}

/** Who settled which request, for at least the last 512: this tells a late answer from a wrong one. */
export class RecentSettlements {
  // Two generations: the older is forgotten when the younger is full. Created with the first settlement, because
  // thousands of these may have none yet.
  private young: Map<string, string> | undefined
  private old: Map<string, string> | undefined

  add(requestId: string, by: string): void {
    if (this.young === undefined || this.young.size >= 512) {
      this.old = this.young
      this.young = new Map()
    }
    this.young.set(requestId, by)
  }

  settledBy(requestId: string): string | undefined {
    return this.young?.get(requestId) ?? this.old?.get(requestId)
  }

  /** Forgets a request that is open again. */
  forget(requestId: string): void {
    this.young?.delete(requestId)
    this.old?.delete(requestId)
  }
}

export const make = <Request extends { readonly requestId: RequestId }, A, E>(): PendingRequests<Request, A, E> =>
  new OpenEntries()

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class OpenEntries<Request extends { readonly requestId: RequestId }, A, E>
  extends RecentSettlements
  implements PendingRequests<Request, A, E>
{
  // Created with the first entry: every session has one of these, and few ask.
  private entries: Map<string, OpenEntry<Request, A, E>> | undefined

  open(request: Request): Entry<Request, A, E> {
    const entry = new OpenEntry<Request, A, E>(request)
    this.entries ??= new Map()
    this.entries.set(request.requestId, entry)
    return entry
  }

  get(requestId: string): Request | undefined {
    return this.entries?.get(requestId)?.request
  }

  settle(requestId: string, exit: Exit.Exit<A, E>, by: string): boolean {
    const entry = this.entries?.get(requestId)
    if (entry === undefined) return false
    this.entries?.delete(requestId)
    this.add(requestId, by)
    entry.settle(exit)
    return true
  }

  list(): ReadonlyArray<Request> {
    return Array.from(this.entries?.values() ?? [], (entry) => entry.request)
  }

  size(): number {
    return this.entries?.size ?? 0
  }
}

class OpenEntry<Request, A, E> extends Waiting<A, E> implements Entry<Request, A, E> {
  constructor(readonly request: Request) {
    super()
  }
}
