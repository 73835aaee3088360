/**
 * Errors of somebody else's doing, of which there may be very many: what a peer or a model wrote, and nobody can use.
 *
 * To find out where in this program such a one was made costs more than all the rest of it, and tells nobody anything.
 */

/** What `make` gives; errors that are made meanwhile do not say where. It is done when it returns. */
export const untraced = <A>(make: () => A): A => {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return make()
  } finally {
    Error.stackTraceLimit = before
  }
}
