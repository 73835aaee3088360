/**
 * Replays a journal as events, with their recorded times.
 *
 * ```
 *  entries ──► teller, a projection for each session ──► events ──► (pauses as they were) ──► whoever watches
 * ```
 *
 * A journal keeps results, not every intermediate step. Words come as one block when they were complete, not in
 * streamed pieces; a tool's output is only in its result; failed attempts of a model call and the single questions of a
 * form are missing. What has no end in an incomplete journal has none here either.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../event/AgentEvent.js"
import type { Written } from "./JournalEntry.js"
import { EventProjection } from "./EventProjection.js"
import { TreeReading } from "./JournalReading.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Gives the events of the next entry; none for an entry without events.
 *
 * @since 0.1.0
 * @category models
 */
export type Teller = (written: Written) => ReadonlyArray<AgentEvent>

/**
 * The pace of a replay.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Speed factor: 1 by default, `Infinity` for no pauses. More than 0. */
  readonly speed?: number | undefined
  /** The longest pause at any speed: a night between two turns is not waited for. Default: 2 seconds. */
  readonly longestPause?: Duration.DurationInput | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Converts the entries of one tree, given in order and each once.
 *
 * @since 0.1.0
 * @category constructors
 */
export const teller = (): Teller => {
  const published: Array<AgentEvent> = []
  const tree = new TreeReading((opened) => new EventProjection(opened, (event) => published.push(event)))
  return (written) => {
    const read = tree.read(written)
    read?.state.apply(read.fact, written.at)
    return published.splice(0)
  }
}

/**
 * All events at once.
 *
 * @since 0.1.0
 * @category conversions
 */
export const events = (entries: Iterable<Written>): ReadonlyArray<AgentEvent> => {
  const project = teller()
  return Array.from(entries).flatMap(project)
}

/**
 * The events with pauses between them, on the clock. The events keep their recorded times.
 *
 * @since 0.1.0
 * @category conversions
 */
export const stream = (
  entries: Iterable<Written>,
  { longestPause = "2 seconds", speed = 1 }: Options = {}
): Stream.Stream<AgentEvent> =>
  Stream.suspend(() => {
    const project = teller()
    const longest = Duration.toMillis(longestPause)
    let last: number | undefined
    return Stream.fromIterable(entries).pipe(
      Stream.mapEffect((written) => {
        const published = project(written)
        if (published.length === 0) return Effect.succeed(published)
        // A clock that was set back gives no pause.
        const pause = Math.min(Math.max(0, written.at - (last ?? written.at)) / speed, longest)
        last = written.at
        return pause > 0 ? Effect.as(Effect.sleep(pause), published) : Effect.succeed(published)
      }),
      Stream.mapConcat((published) => published)
    )
  })
