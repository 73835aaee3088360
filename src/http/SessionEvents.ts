/**
 * The events of one session behind a position: from its agent while this process runs it, else from its store.
 *
 * ```
 *   live: the agent's feed (durable events and pieces) ──ends──► stored: the journal, then wait for an append ─┐
 *     ▲                                                                                                       │
 *     └───────────────────────────────────────────────────────────────────────────────────────────────────────┘
 * ```
 *
 * An id is the number of an entry. The last event of the entry has it.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { SessionId } from "../core/Id.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import * as EventFeed from "../journal/EventFeed.js"
import type * as SessionStore from "../journal/SessionStore.js"
import type * as EventStream from "./EventStream.js"
import type * as Sessions from "./Sessions.js"

/** Where the events come from. */
export interface Source {
  readonly sessions: Pick<Sessions.Sessions, "events">
  readonly store: SessionStore.Service
  readonly id: string
  /** What a client shows that knows nothing yet, and the position behind which events follow. */
  readonly snapshot: Effect.Effect<{ readonly cursor: string }, { readonly message: string }>
}

/** `after`: the id that the client has last; undefined for all events; an id that the session has not gives a snapshot. */
export const make = (source: Source, after: string | undefined): Stream.Stream<EventStream.Piece> => {
  const { id, sessions, snapshot, store } = source
  let position = 0

  const piece = (event: AgentEvent): EventStream.Piece => {
    if (event.position === undefined) return { data: event }
    position = Math.max(position, event.position)
    return { id: String(event.position), data: event }
  }

  const anew = Stream.fromEffect(
    Effect.map(snapshot, (data): EventStream.Piece => {
      position = Number(data.cursor)
      return { id: data.cursor, event: "snapshot", data }
    })
  )

  /** From its agent while a process runs it, else from its journal. */
  const again: Stream.Stream<EventStream.Piece, { readonly message: string }> = Stream.suspend(() => {
    let isLive = false
    const live = Stream.map(sessions.events(id, position), (event) => {
      isLive = true
      return piece(event)
    })
    return Stream.concat(
      Stream.catchAll(live, (error) => {
        if (error._tag !== "PositionAhead") return Stream.fail(error)
        // A session that ran at a reader's last look may have been put back since.
        isLive = true
        return anew
      }),
      Stream.suspend(() => (isLive ? again : Stream.concat(stored, again)))
    )
  })

  const stored = Stream.unwrapScoped(
    Effect.gen(function* () {
      // Before the journal is read: an append in between is hinted at.
      const hints = yield* store.appends
      const entries = yield* store.read(SessionId.make(id))
      const last = entries.at(-1)?.seq ?? 0
      if (position > last) return anew
      const pieces = entries.flatMap(EventFeed.teller(position)).map(piece)
      const next = Stream.drain(
        Stream.take(
          Stream.filter(hints, (root) => root === id),
          1
        )
      )
      return Stream.concat(Stream.fromIterable(pieces), next)
    })
  )

  const begun = after === undefined || after === "" ? 0 : /^\d{1,15}$/.test(after) ? Number(after) : undefined
  if (begun !== undefined) position = begun
  return Stream.concat(begun === undefined ? anew : Stream.empty, again).pipe(
    Stream.catchAll(({ message }) => Stream.make<[EventStream.Piece]>({ event: "failed", data: { message } }))
  )
}
