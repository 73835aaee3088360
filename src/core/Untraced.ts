/**
 * Errors that a peer or a model causes, of which there may be very many.
 *
 * Capturing a stack trace for them costs more than the rest of their handling, and the trace helps nobody: it names our
 * code, not their mistake.
 */

/** The result of `make`; errors made meanwhile have no stack trace. Tracing is back when it returns. */
export const untraced = <A>(make: () => A): A => {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return make()
  } finally {
    Error.stackTraceLimit = before
  }
}
