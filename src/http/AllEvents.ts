/**
 * The durable events of all sessions of all stores, in one stream that many clients share.
 *
 * ```
 *  store ─► SessionStore.follow ─► one projection for all clients ─► ring of the last items ─► each client's connection
 *                                                                        a client that is behind the ring reads the store
 * ```
 *
 * A cursor names a place in every store, so it is longer than that of one session; it stays valid when the server starts
 * again.
 */
import * as Arr from "effect/Array"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as RcRef from "effect/RcRef"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { SessionId } from "../core/Id.js"
import * as Replay from "../journal/Replay.js"
import * as SessionStore from "../journal/SessionStore.js"
import type * as StoreError from "../journal/StoreError.js"
import * as EventStream from "./EventStream.js"

/** The events of one entry. */
interface Item {
  readonly rootSessionId: SessionId
  readonly cursor: SessionStore.Cursor
  readonly seq: number
  /** As JSON, made once for all clients. */
  readonly events: ReadonlyArray<string>
  /** The same as it is sent if there is one store: then each client has the same id. */
  readonly bytes: Uint8Array
}

export interface AllEvents {
  /** The place behind all that is there now. */
  readonly end: Effect.Effect<string, StoreError.StoreUnusable>
  /** Events behind this id. A client without an id, or with one that no store knows, gets a snapshot first. */
  readonly read: (after: string | undefined, reader: Reader) => EventStream.Source
}

/** Whom events are for. */
export interface Reader {
  /** What a client shows that knows nothing. */
  readonly snapshot: Effect.Effect<object, { readonly message: string }>
  /** Whether they get the events of this root session. */
  readonly sees: (rootSessionId: SessionId) => boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Follows the stores until the scope closes. */
export const make = (
  stores: ReadonlyArray<SessionStore.Service>
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

    /** Sends what is behind these places, and what comes from then on, as long as the client reads. */
    const from = (
      places: ReadonlyArray<SessionStore.Cursor>,
      { sees }: Reader,
      { push, send }: EventStream.Lines
    ): Effect.Effect<void, Failure> =>
      Effect.gen(function* () {
        const known = [...places]
        const bytesOf = (index: number, { bytes, cursor, events }: Item) => {
          if (hubs.length === 1) return bytes
          known[index] = cursor
          return EventStream.bytesOf(textOf(events, known.join(between)))
        }
        const sendAll = (index: number, items: ReadonlyArray<Item>) =>
          Effect.forEach(
            Arr.chunksOf(items, together),
            (some) => send(Buffer.concat(some.map((item) => bytesOf(index, item)))),
            { discard: true }
          )
        const tooSlow = yield* Deferred.make<never, Failure>()
        let isTooSlow = false
        const drop = () => {
          isTooSlow = true
          Deferred.unsafeDone(tooSlow, Effect.fail(lagged))
        }
        /** What comes while the client gets what it has missed. */
        let early: Array<() => Effect.Effect<void>> | undefined = []
        let earlyBytes = 0
        const missed = yield* Effect.forEach(hubs, (hub, index) =>
          hub.join(places[index], (batch, isNew) => {
            // After the first write that is left out there is no other: the next id would say that it came.
            if (isTooSlow) return
            const wanted = () => batch.items.filter((item) => sees(item.rootSessionId) && isNew(item))
            if (early !== undefined) {
              earlyBytes += batch.bytes.length
              if (earlyBytes > keptBytes) drop()
              else early.push(() => sendAll(index, wanted()))
              return
            }
            const items = wanted()
            const isShared = hubs.length === 1 && items.length === batch.items.length
            if (items.length === 0) return
            if (!push(isShared ? batch.bytes : Buffer.concat(items.map((item) => bytesOf(index, item))))) drop()
          })
        )
        for (const [index, items] of missed.entries())
          yield* sendAll(
            index,
            items.filter(({ rootSessionId }) => sees(rootSessionId))
          )
        while (early.length > 0) {
          const some: typeof early = early
          early = []
          for (const sending of some) yield* sending()
        }
        early = undefined
        yield* Deferred.await(tooSlow)
      }).pipe(Effect.scoped)

    const anew = (reader: Reader, lines: EventStream.Lines): Effect.Effect<void, Failure> =>
      Effect.gen(function* () {
        // Before the snapshot: what happens in between is in both, and not in neither.
        const place = yield* end
        const data = { ...(yield* reader.snapshot), cursor: place }
        yield* lines.send(EventStream.bytesOf(EventStream.encode({ id: place, event: "snapshot", data })))
        yield* from(placesOf(place) ?? [], reader, lines)
      })

    return {
      end,
      read: (after, reader) => ({
        ahead: capacity,
        run: (lines) => {
          const places = after === undefined || after === "" ? undefined : placesOf(after)
          const isUnknown = ({ _tag }: Failure) => _tag === "CursorUnknown" || _tag === "CursorOld"
          return (places === undefined ? anew(reader, lines) : from(places, reader, lines)).pipe(
            Effect.catchIf(isUnknown, () => anew(reader, lines)),
            Effect.catchAll(({ message }) =>
              Effect.asVoid(lines.send(EventStream.bytesOf(EventStream.encode({ event: "failed", data: { message } }))))
            )
          )
        }
      })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const between = "~"

type Failure = { readonly _tag?: string; readonly message: string }

interface Hub {
  /** What is behind a place. What comes from then on, until the scope closes, is for `take`, and so may be some of it again. */
  readonly join: (
    after: SessionStore.Cursor | undefined,
    take: (batch: Batch, isNew: (item: Item) => boolean) => void
  ) => Effect.Effect<ReadonlyArray<Item>, Failure, Scope.Scope>
}

/** What was read together, for all clients. */
interface Batch {
  readonly items: ReadonlyArray<Item>
  readonly bytes: Uint8Array
}

/** Items that are kept for clients that come back soon. */
const kept = 4_096

/** Bytes that are kept for them, and that wait for a client that gets what it has missed: words and results may be long. */
const keptBytes = 8_000_000

const sizeOf = (items: ReadonlyArray<Item>): number => items.reduce((sum, { bytes }) => sum + bytes.length, 0)

/** Writes that wait for one client; with more it is dropped, and comes back from its last id. */
const capacity = 1_024

/** Clients that hold up each other. */
const many = 32

/** Milliseconds that a write to a client takes. */
const writing = 0.03

/** Items of one write to a client that was away. */
const together = 256

/** Entries that a client may be behind; with more it gets a snapshot. */
const furthest = 10_000

const textOf = (events: ReadonlyArray<string>, id: string): string =>
  events.map((json, at) => EventStream.encode(at === events.length - 1 ? { id, json } : { json })).join("")

const old: Failure = { _tag: "CursorOld", message: "The place is too far behind." }

const lagged: Failure = {
  _tag: "Lagged",
  message: "This client reads too slowly and was dropped. Connect again with the last id."
}

const makeHub = (store: SessionStore.Service): Effect.Effect<Hub, never, Scope.Scope> =>
  Effect.gen(function* () {
    let ring: Array<Item> = []
    let size = 0
    let isCut = false
    const keep = (items: ReadonlyArray<Item>): void => {
      ring.push(...items)
      size += sizeOf(items)
      if (ring.length <= 2 * kept && size <= 2 * keptBytes) return
      size = 0
      // The last one stays however long it is: those that come next follow it.
      const last = ring.length - 1
      const over = ring.findLastIndex((item, at) => {
        size += item.bytes.length
        return at < last && (size > keptBytes || at <= last - kept)
      })
      ring = ring.slice(over + 1)
      size = sizeOf(ring)
      isCut = true
    }
    const forget = (): void => {
      ring = []
      size = 0
      isCut = false
    }
    const clients = new Set<(batch: Batch) => void>()
    const publish = (some: ReadonlyArray<Item | undefined>) =>
      Effect.sync(() => {
        const items = some.filter((item) => item !== undefined)
        keep(items)
        const batch = { items, bytes: Buffer.concat(items.map(({ bytes }) => bytes)) }
        for (const take of clients) take(batch)
      })
    /** While there are clients: nobody else needs the events of all sessions. */
    const following = yield* RcRef.make({
      idleTimeToLive: "10 seconds",
      acquire: Effect.gen(function* () {
        const begun = yield* store.end
        const project = projection(store)
        forget()
        // What was appended together reaches a client together.
        const reading = Stream.runForEachChunk(
          Stream.suspend(() => SessionStore.follow(store, ring.at(-1)?.cursor ?? begun)),
          (some) =>
            Effect.forEach(some, project).pipe(
              Effect.flatMap(publish),
              // What is appended meanwhile goes out with the next write, so that many clients do not hold up each other.
              Effect.zipRight(
                Effect.suspend(() => (clients.size < many ? Effect.void : Effect.sleep(clients.size * writing)))
              )
            )
        )
        yield* Effect.addFinalizer(() => Effect.sync(forget))
        // A store that cannot be read now is read later.
        yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.ignore(reading), Effect.sleep("1 second"))))
        return begun
      })
    })

    return {
      join: (after, take) =>
        Effect.gen(function* () {
          let sent: ReadonlyMap<SessionId, number> = new Map()
          const isNew = ({ rootSessionId, seq }: Item) => seq > (sent.get(rootSessionId) ?? 0)
          const client = (batch: Batch) => take(batch, isNew)
          yield* Effect.acquireRelease(
            Effect.sync(() => clients.add(client)),
            () => Effect.sync(() => clients.delete(client))
          )
          // Before the store is read: what is appended in between is published.
          const begun = yield* RcRef.get(following)
          const at = ring.findIndex(({ cursor }) => cursor === after)
          const isAtBegin = after === begun && !isCut
          const missed = at >= 0 ? ring.slice(at + 1) : isAtBegin ? [...ring] : yield* catchUp(store, after)
          sent = new Map(missed.map(({ rootSessionId, seq }) => [rootSessionId, seq]))
          return missed
        })
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
const remembered = 1_024

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
            const events = teller.tell(written.right).map((event) => JSON.stringify({ ...event, rootSessionId }))
            teller.seq = seq
            tellers.set(rootSessionId, teller)
            const [oldest] = tellers.keys()
            if (tellers.size > remembered && oldest !== undefined) tellers.delete(oldest)
            return { rootSessionId, cursor, seq, events, bytes: EventStream.bytesOf(textOf(events, cursor)) }
          }
        })
}
