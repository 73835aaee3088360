/**
 * The children that work under a session's running tool calls: possible receivers of a user's words.
 *
 * ```
 *  open ──► receiving ──(its turn has decided to end)──► completing ──close──►
 * ```
 *
 * A completing child reads no more; only its own session knows that in time. Written by delegating tools, read by
 * `MessageRouter`.
 */
import type { SessionId, ToolCallId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"

/** The part of a child's session that this needs. */
export interface Child {
  readonly origin: Origin.Origin
  /** Whether it still reads words that are filed now. */
  readonly isReceiving: () => boolean
  readonly delegations: Delegations
}

export interface Delegation {
  readonly toolCallId: ToolCallId
  /** The tool's precedence: the lowest receives words first. Absent: it receives only words that name it. */
  readonly precedence: number | undefined
  readonly session: Child
}

export class Delegations {
  /** Made with the first delegation: most sessions never delegate. */
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

  /** The delegation under which this child works. */
  of(sessionId: SessionId): Delegation | undefined {
    return this.running.findLast(({ session }) => session.origin.sessionId === sessionId)
  }

  /** The first receiver of a user's words: by precedence, then the most recent. */
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
