/**
 * The children that work under a session's tool calls right now: what a user's words may be meant for.
 *
 * ```
 *  open ──► executing ──(its task is done)──► completing ──close──►
 * ```
 *
 * A child that is completing does not read any more. Written by whoever delegates, read by `Interjection`.
 */
import type { ToolCallId } from "../core/Id.js"
import type { Service as Session } from "./Session.js"

export interface Delegation {
  readonly toolCallId: ToolCallId
  /** Of the tool: the lowest is heard first. */
  readonly precedence: number
  readonly session: Session
  state: "executing" | "completing"
}

export class Delegations {
  private readonly open = new Set<Delegation>()

  /** Most recent last. */
  get running(): ReadonlyArray<Delegation> {
    return [...this.open]
  }

  add(delegation: Delegation): void {
    this.open.add(delegation)
  }

  delete(delegation: Delegation): void {
    this.open.delete(delegation)
  }

  /** The one that hears a user's words before all others: by precedence, then the most recent. */
  first(): Delegation | undefined {
    let found: Delegation | undefined
    for (const delegation of this.open) {
      if (delegation.state === "completing") continue
      if (found === undefined || delegation.precedence <= found.precedence) found = delegation
    }
    return found
  }
}
