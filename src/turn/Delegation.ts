/**
 * The children that work under a session's tool calls right now: what a user's words may be meant for.
 *
 * ```
 *  open ──► receiving ──(its turn has decided to end)──► completing ──close──►
 * ```
 *
 * A child that is completing does not read any more; its session knows that before anybody else. Written by whoever
 * delegates, read by `Interjection`.
 */
import type { SessionId, ToolCallId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"

/** What of a child's session this needs. */
export interface Child {
  readonly origin: Origin.Origin
  /** Whether it reads what is said to it now. */
  readonly isReceiving: () => boolean
  readonly delegations: Delegations
}

export interface Delegation {
  readonly toolCallId: ToolCallId
  /** Of the tool: the lowest is heard first. Absent: it hears only what is said to it by name. */
  readonly precedence: number | undefined
  readonly session: Child
}

export class Delegations {
  /** Made with the first: most sessions never delegate. */
  private open: Set<Delegation> | undefined

  /** Most recent last. */
  get running(): ReadonlyArray<Delegation> {
    return this.open === undefined ? none : [...this.open]
  }

  add(delegation: Delegation): void {
    this.open = (this.open ?? new Set()).add(delegation)
  }

  delete(delegation: Delegation): void {
    this.open?.delete(delegation)
  }

  /** The one under which this child works. */
  of(sessionId: SessionId): Delegation | undefined {
    return this.running.findLast(({ session }) => session.origin.sessionId === sessionId)
  }

  /** The one that hears a user's words before all others: by precedence, then the most recent. */
  first(): Delegation | undefined {
    let found: (Delegation & { readonly precedence: number }) | undefined
    for (const delegation of this.open ?? none) {
      const { precedence } = delegation
      if (precedence === undefined || !delegation.session.isReceiving()) continue
      if (found === undefined || precedence <= found.precedence) found = { ...delegation, precedence }
    }
    return found
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: ReadonlyArray<never> = []
