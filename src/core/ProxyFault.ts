/**
 * A proxy that cannot be reached, or that refused a request. HTTP clients have errors of their own, with this one as their
 * cause.
 */
import * as Predicate from "effect/Predicate"

export class ProxyFault extends Error {
  override readonly name = "ProxyFault"
  constructor(
    /** Says what happened, then what to do. Holds no credentials. */
    message: string,
    /** A later request may succeed. */
    readonly transient: boolean,
    /** HTTP status, if the proxy sent one. */
    readonly status?: number
  ) {
    super(message)
  }
}

/** The fault in a chain of causes. */
export const within = (error: unknown): ProxyFault | undefined => {
  let current = error
  for (let depth = 0; depth < 8 && Predicate.isRecord(current); depth++) {
    if (current instanceof ProxyFault) return current
    current = current.cause
  }
  return undefined
}
