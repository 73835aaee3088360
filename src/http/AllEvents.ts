/**
 * The durable events of all sessions of all stores, in one stream that many clients share.
 *
 * ```
 *  store ─► SessionStore.follow ─► one projection for all clients ─► ring of the last items ─► each client's queue
 *                                                                        a client that is behind the ring reads the store
 * ```
 *
 * A cursor names a place in every store, so it is longer than that of one session; it stays valid when the server starts
 * again.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { SessionId } from "../core/Id.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import * as Replay from "../journal/Replay.js"
import * as SessionStore from "../journal/SessionStore.js"
import type * as StoreError from "../journal/StoreError.js"
import type * as EventStream from "./EventStream.js"

/** The events of one entry. */
interface Item {
  readonly rootSessionId: SessionId
  readonly cursor: SessionStore.Cursor
  readonly seq: number
  readonly events: ReadonlyArray<AgentEvent>
}

export interface AllEvents {
  /** The place behind all that is there now. */
  readonly end: Effect.Effect<string, StoreError.StoreUnusable>
  /** Events behind this id. A client without an id, or with one that no store knows, gets a snapshot first. */
  readonly read: (after: string | undefined) => Stream.Stream<EventStream.Piece>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `snapshot` is what a client shows that knows nothing. Follows the stores until the scope closes. */
export const make = (
  stores: ReadonlyArray<SessionStore.Service>,
  snapshot: Effect.Effect<object, { readonly message: string }>
): Effect.Effect<AllEvents, StoreError.StoreUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const hubs = yield* Effect.forEach(stores, makeHub)
    const end = Effect.map(
      Effect.forEach(stores, (store) => store.end),
      (places) => places.join(between)
    )

    const placesOf = (after: string): ReadonlyArray<SessionStore.Cursor> | undefined => {
      const cursors = after.split(between)
      return cursors.length === hubs.length ? cursors.map((cursor) => SessionStore.Cursor.make(cursor)) : undefined
    }

    const from = (places: ReadonlyArray<SessionStore.Cursor>): Stream.Stream<EventStream.Piece, Failure> => {
      const known = [...places]
      const streams = hubs.map((hub, index) =>
        Stream.map(hub.read(places[index]), (item) => {
          known[index] = item.cursor
          return { ...item, id: known.join(between) }
        })
      )
      return Stream.mapConcat(
        Stream.mergeAll(streams, { concurrency: "unbounded", bufferSize: 1 }),
        ({ events, id, rootSessionId }) =>
          events.map((event, at): EventStream.Piece => ({
            ...(at === events.length - 1 ? { id } : {}),
            data: { ...event, rootSessionId }
          }))
      )
    }

    const anew: Stream.Stream<EventStream.Piece, Failure> = Stream.unwrap(
      Effect.gen(function* () {
        // Before the snapshot: what happens in between is in both, and not in neither.
        const place = yield* end
        const data = { ...(yield* snapshot), cursor: place }
        return Stream.concat(
          Stream.make<[EventStream.Piece]>({ id: place, event: "snapshot", data }),
          from(placesOf(place) ?? [])
        )
      })
    )

    return {
      end,
      read: (after) => {
        const places = after === undefined || after === "" ? undefined : placesOf(after)
        const isUnknown = ({ _tag }: Failure) => _tag === "CursorUnknown" || _tag === "CursorOld"
        return (places === undefined ? anew : from(places)).pipe(
          Stream.catchAll((failure) => (isUnknown(failure) ? anew : Stream.fail(failure))),
          Stream.catchAll(({ message }) => Stream.make<[EventStream.Piece]>({ event: "failed", data: { message } }))
        )
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const between = "~"

type Failure = { readonly _tag?: string; readonly message: string }

interface Hub {
  readonly read: (after: SessionStore.Cursor | undefined) => Stream.Stream<Item, Failure>
}

/** A stream to a client. The hub writes, the stream reads; when it is full, the client is dropped. */
interface Client {
  readonly queue: Queue.Queue<Item>
}

/** Items that are kept for clients that come back soon. */
const kept = 4_096

/** Items that wait for one client; with more it is dropped, and comes back from its last id. */
const capacity = 1_024

/** Entries that a client may be behind; with more it gets a snapshot. */
const furthest = 10_000

const old: Failure = { _tag: "CursorOld", message: "The place is too far behind." }

const lagged: Failure = {
  _tag: "Lagged",
  message: "This client reads too slowly and was dropped. Connect again with the last id."
}

const makeHub = (store: SessionStore.Service): Effect.Effect<Hub, StoreError.StoreUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const begun = yield* store.end
    const project = projection(store)
    let ring: Array<Item> = []
    const clients = new Set<Client>()
    const publish = (item: Item) =>
      Effect.sync(() => {
        ring.push(item)
        if (ring.length > 2 * kept) ring = ring.slice(-kept)
        // A client gets what it has taken by then, and the error after that.
        for (const client of clients) if (!client.queue.unsafeOffer(item)) clients.delete(client)
      })
    const following = Stream.runForEach(
      Stream.mapEffect(
        Stream.suspend(() => SessionStore.follow(store, ring.at(-1)?.cursor ?? begun)),
        project
      ),
      (item) => (item === undefined ? Effect.void : publish(item))
    )
    // A store that cannot be read now is read later.
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.ignore(following), Effect.sleep("1 second"))))

    return {
      read: (after) =>
        Stream.unwrapScoped(
          Effect.gen(function* () {
            const queue = yield* Queue.dropping<Item>(capacity)
            const client: Client = { queue }
            yield* Effect.acquireRelease(
              Effect.sync(() => clients.add(client)),
              () =>
                Effect.zipRight(
                  Effect.sync(() => clients.delete(client)),
                  Queue.shutdown(queue)
                )
            )
            const at = ring.findIndex(({ cursor }) => cursor === after)
            const isAtBegin = after === begun && ring.length < kept
            const missed = at >= 0 ? ring.slice(at + 1) : isAtBegin ? [...ring] : yield* catchUp(store, after)
            const sent = new Map(missed.map(({ rootSessionId, seq }) => [rootSessionId, seq]))
            const next: Effect.Effect<Item, Failure> = Effect.suspend(() =>
              clients.has(client) || Option.exists(queue.unsafeSize(), (size) => size > 0)
                ? Queue.take(queue)
                : Effect.fail(lagged)
            )
            return Stream.concat(
              Stream.fromIterable(missed),
              Stream.filter(Stream.repeatEffect(next), ({ rootSessionId, seq }) => seq > (sent.get(rootSessionId) ?? 0))
            )
          })
        )
    }
  })

/** What is stored behind a place, as far as the store goes now. */
const catchUp = (store: SessionStore.Service, after: SessionStore.Cursor | undefined) =>
  Effect.gen(function* () {
    const project = projection(store)
    const found: Array<Item> = []
    let place = after
    for (let count = 0; ;) {
      const some: ReadonlyArray<SessionStore.Appended> = yield* store.readAll({ after: place })
      const last = some.at(-1)
      if (last === undefined) return found
      place = last.cursor
      count += some.length
      if (count > furthest) return yield* Effect.fail(old)
      for (const one of some) {
        const item = yield* project(one)
        if (item !== undefined) found.push(item)
      }
    }
  })

/** Sessions whose history is kept for the next of their entries. */
const remembered = 256

/** Makes events of entries. What an entry means depends on those before it; they are read once. */
const projection = (store: SessionStore.Service) => {
  const tellers = new Map<SessionId, { readonly tell: Replay.Teller; seq: number }>()
  const tellerOf = (root: SessionId, seq: number) =>
    Effect.gen(function* () {
      const known = tellers.get(root)
      tellers.delete(root)
      if (known !== undefined && known.seq === seq - 1) return known
      const tell = Replay.teller()
      const before = seq === 1 ? [] : yield* store.read(root, { limit: seq - 1 })
      for (const written of before) tell(written)
      return { tell, seq: seq - 1 }
    })
  return ({ cursor, rootSessionId, written }: SessionStore.Appended): Effect.Effect<Item | undefined> =>
    Either.isLeft(written)
      ? Effect.succeed(undefined)
      : Effect.match(tellerOf(rootSessionId, written.right.seq), {
          // Deleted or damaged meanwhile: there is nothing to tell of it.
          onFailure: () => undefined,
          onSuccess: (teller): Item => {
            const { seq } = written.right
            const events = teller.tell(written.right)
            teller.seq = seq
            tellers.set(rootSessionId, teller)
            const [oldest] = tellers.keys()
            if (tellers.size > remembered && oldest !== undefined) tellers.delete(oldest)
            return { rootSessionId, cursor, seq, events }
          }
        })
}
