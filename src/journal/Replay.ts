/**
 * A journal told again as the events that were shown, with the times they had.
 *
 * ```
 *  entries ──► teller, a state for each session ──► events ──► (pauses as they were) ──► whoever watches
 * ```
 *
 * A journal keeps what happened, not every step on the way: words come a block at a time and not in the pieces in which
 * they streamed, at the moment when they were complete; what a tool printed is in its result alone; attempts of a model
 * call that failed and questions of a form one by one are not told. What a broken-off journal does not end has no end here
 * either.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { SessionId } from "../core/Id.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import type { Written } from "./JournalEntry.js"
import { EventProjection } from "./EventProjection.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Gives the events of the next entry; none for an entry that nothing was shown of. */
export type Teller = (written: Written) => ReadonlyArray<AgentEvent>

/** How fast a journal is told. */
export interface Options {
  /** How many times as fast as it was: 1 by default, `Infinity` for no pauses at all. More than 0. */
  readonly speed?: number | undefined
  /** No pause is longer, at any speed: a night between two turns is not waited for. Default: 2 seconds. */
  readonly longestPause?: Duration.DurationInput | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Tells the entries of one tree, given in order and each once. */
export const teller = (): Teller => {
  const sessions = new Map<SessionId, EventProjection>()
  const told: Array<AgentEvent> = []
  return ({ at, entry, sessionId }) => {
    if (entry._tag === "SessionOpened" && !sessions.has(sessionId)) {
      sessions.set(sessionId, new EventProjection(entry, (event) => told.push(event)))
    }
    // As for whoever resumes: entries of a session that was never opened say nothing.
    sessions.get(sessionId)?.apply(entry, at)
    return told.splice(0)
  }
}

/** All events at once. */
export const events = (entries: Iterable<Written>): ReadonlyArray<AgentEvent> => {
  const tell = teller()
  return Array.from(entries).flatMap(tell)
}

/** The events with pauses between them, on the clock. Their own times are the ones they had. */
export const stream = (
  entries: Iterable<Written>,
  { longestPause = "2 seconds", speed = 1 }: Options = {}
): Stream.Stream<AgentEvent> =>
  Stream.suspend(() => {
    const tell = teller()
    const longest = Duration.toMillis(longestPause)
    let last: number | undefined
    return Stream.fromIterable(entries).pipe(
      Stream.mapEffect((written) => {
        const told = tell(written)
        if (told.length === 0) return Effect.succeed(told)
        // A clock that was set back is no pause.
        const pause = Math.min(Math.max(0, written.at - (last ?? written.at)) / speed, longest)
        last = written.at
        return pause > 0 ? Effect.as(Effect.sleep(pause), told) : Effect.succeed(told)
      }),
      Stream.mapConcat((told) => told)
    )
  })
