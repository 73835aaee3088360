/**
 * Sessions in a `KeyValueStore` of `@effect/platform`: a directory, a browser's storage, memory.
 *
 * ```
 *  sessions/0 │ sessions/1            the ids of all sessions
 *  session:ID/0 │ session:ID/1        one session: its lock, summary, answers, and how many batches count
 *  batch:0:ID, batch:1:ID, …          a batch of entries each, and the number of its append
 *  append:1, append:2, …              which batch of which session; one of a deleted session stays, and says nothing
 *  content:SHA-256                    bytes; which sessions want them is with the sessions
 * ```
 *
 * Such a store replaces values one by one, and may leave half of one when its process dies. So a value that is replaced
 * has two places, and the older one is written; a batch counts when its session says so.
 *
 * It has no way to compare and replace in one step. The stores of one process take turns; two processes at once are told
 * apart by the lock that each reads before it writes, but not when both write in the same moment. Use a database for
 * those.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { globalValue } from "effect/GlobalValue"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Digest from "../core/Digest.js"
import * as FileFailure from "../core/FileFailure.js"
import { IdGenerator, RequestId, SessionId } from "../core/Id.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionLease from "../journal/SessionLease.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as SessionSummary from "../journal/SessionSummary.js"
import * as StoreError from "../journal/StoreError.js"
import * as EntryRow from "./EntryRow.js"

/**
 * Who uses the store, and what it is called.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The process that takes leases here. */
  readonly process: SessionLease.Process
  /** The store's name in messages. Default: `of keys and values`. */
  readonly name?: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Keeps sessions in the store of the context. An append is as durable as that store makes a value.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<SessionStore.Service, never, KeyValueStore.KeyValueStore> =>
  Effect.gen(function* () {
    const { name = "of keys and values", process: locker } = options
    const ids = yield* IdGenerator
    const values = yield* KeyValueStore.KeyValueStore
    const shared = sharedAt(values)
    const inTurn = shared.turns.withPermits(1)

    const reading = <A, E>(effect: Effect.Effect<A, E>) =>
      catchPlatform(effect, (reason) => new StoreError.StoreUnusable({ store: name, problem: "unavailable", reason }))
    const writing = <A, E>(effect: Effect.Effect<A, E>) =>
      // What was begun is finished: half of a deletion would have to be told from half of a session.
      Effect.uninterruptible(catchPlatform(effect, (reason) => new StoreError.StoreUnwritable({ store: name, reason })))
    const damaged = (reason: string) => new StoreError.StoreUnusable({ store: name, problem: "unreadable", reason })

    const index = twoPlaces(values, "sessions", Schema.Array(SessionId), damaged)
    const sessionAt = (root: SessionId) => twoPlaces(values, `session:${root}`, Session, damaged)
    const batchAt = (root: SessionId, batch: number) => `batch:${batch}:${root}`

    /** A session with entries that was not deleted. */
    const known = (root: SessionId) =>
      Effect.flatMap(sessionAt(root).read, (found) =>
        found === undefined || found.summary.entries === 0
          ? new StoreError.SessionUnknown({ rootSessionId: root })
          : Effect.succeed(found)
      )

    const unlocked = (root: SessionId, lock: SessionLease.Row | undefined, now: number) => {
      const holder = SessionLease.holderOf(lock, locker, now)
      return lock === undefined || holder === undefined
        ? Effect.void
        : new StoreError.SessionLocked({ rootSessionId: root, holder, heartbeat: lock.heartbeat })
    }

    const takenOver = (root: SessionId, lock: SessionLease.Row | undefined) => {
      const holder = lock === undefined ? {} : { holder: { pid: lock.pid, host: lock.host } }
      return new StoreError.SessionTakenOver({ rootSessionId: root, ...holder })
    }

    /** The batches of a session from one on; a batch that is gone is damage too: those behind it would move up. */
    const rowsOf = (root: SessionId, { batches }: Pick<Session, "batches">) =>
      Effect.gen(function* () {
        const rows: Array<EntryRow.Unnumbered> = []
        for (let batch = 0; batch < batches; batch++) {
          const found = yield* batchOf(root, batch)
          if (found === undefined) {
            return yield* new StoreError.JournalUnreadable({
              rootSessionId: root,
              seq: rows.length + 1,
              reason: "it is damaged"
            })
          }
          for (const row of found.rows) rows.push({ tag: "", request: null, ...row })
        }
        return EntryRow.number(rows, root, 0)
      })

    const batchOf = (root: SessionId, batch: number) =>
      Effect.map(values.get(batchAt(root, batch)), (text) =>
        Option.getOrUndefined(decodeBatch(Option.getOrElse(text, () => "")))
      )

    const entriesOf = (root: SessionId, session: Session) =>
      Effect.flatMap(rowsOf(root, session), (rows) => EntryRow.decodeAll(root, rows))

    /** The number of the last append: from the one that is known, in steps that grow. */
    const lastAppend = Effect.gen(function* () {
      let step = 1
      while (yield* values.has(appendAt(shared.last + step))) {
        shared.last += step
        step *= 2
      }
      for (step /= 2; step >= 1; step /= 2) {
        if (yield* values.has(appendAt(shared.last + step))) shared.last += step
      }
      return shared.last
    })

    /** Begins an append: it counts once its batch has its number, and its session has the batch. */
    const beginAppend = (root: SessionId, batch: number) =>
      Effect.gen(function* () {
        const number = (yield* lastAppend) + 1
        yield* values.set(appendAt(number), encodeAppend({ root, batch }))
        return number
      })

    /** Gives the batches numbers that a version wrote which knew of none. */
    const ordered = (root: SessionId, session: Session) =>
      Effect.gen(function* () {
        if (session.ordered !== undefined) return session
        const first = (yield* lastAppend) + 1
        for (let batch = 0; batch < session.batches; batch++) yield* beginAppend(root, batch)
        return { ...session, ordered: { first, batches: session.batches } }
      })

    const orderAll = Effect.gen(function* () {
      if (shared.isOrdered) return
      for (const root of (yield* index.read) ?? []) {
        const session = yield* sessionAt(root).read
        if (session !== undefined && session.ordered === undefined)
          yield* sessionAt(root).write(yield* ordered(root, session))
      }
      shared.isOrdered = true
    })

    /** What tells the cursors of this store from those of another: nothing, as long as it is empty. */
    const mark = Effect.map(values.get(appendAt(1)), (first) =>
      Option.match(first, { onNone: () => "0", onSome: (text) => Digest.sha256(text).slice(0, 8) })
    )

    /** The rows of an append; none when it does not count. */
    const rowsOfAppend = (number: number) =>
      Effect.gen(function* () {
        const found = decodeAppend(Option.getOrElse(yield* values.get(appendAt(number)), () => ""))
        if (Option.isNone(found)) return []
        const { batch, root } = found.value
        const session = yield* sessionAt(root).read
        if (session === undefined || batch >= session.batches) return []
        const { first = 0, batches = 0 } = session.ordered ?? {}
        const isOlder = batch < batches
        const stored = yield* batchOf(root, batch)
        if (stored === undefined)
          return yield* new StoreError.JournalUnreadable({
            rootSessionId: root,
            seq: session.summary.entries,
            reason: "a part of it is damaged"
          })
        const { append, rows, seq } = stored
        if (isOlder ? number !== first + batch : number !== append) return []
        if (seq !== undefined) {
          return EntryRow.number(
            rows.map((row) => ({ tag: "", request: null, ...row })),
            root,
            seq - 1
          )
        }
        return (yield* rowsOf(root, { batches: batch + 1 })).slice(-rows.length)
      })

    const readAll = (behind: SessionStore.BehindAll = {}) =>
      Effect.gen(function* () {
        const { after } = behind
        const limit = SessionStore.limitOfAll(behind)
        yield* orderAll
        const [own, last] = [yield* mark, yield* lastAppend]
        const place = after === undefined || after === nowhere ? [0n, 0n] : SessionStore.numbersIn(after, own, 2)
        const [number = 0, index = 0] = (place ?? []).map(Number)
        if (place === undefined || number > last) return yield* new StoreError.CursorUnknown({ cursor: after ?? "" })
        const found: Array<SessionStore.Appended> = []
        for (let at = Math.max(number, 1); at <= last && found.length < limit; at++) {
          const rows = yield* Effect.map(rowsOfAppend(at), Either.right).pipe(
            Effect.catchTag("JournalUnreadable", (damage) => Effect.succeed(Either.left(damage)))
          )
          if (Either.isLeft(rows)) {
            const { rootSessionId } = rows.left
            if (at > number || index === 0)
              found.push({ rootSessionId, cursor: SessionStore.cursorOf(own, at, 1), written: Either.left(rows.left) })
            continue
          }
          for (const [row, stored] of rows.right.entries()) {
            if ((at === number && row < index) || found.length >= limit) continue
            const cursor = SessionStore.cursorOf(own, at, row + 1)
            found.push({ rootSessionId: stored.root, cursor, written: EntryRow.decode(stored.root, stored) })
          }
        }
        return found
      }).pipe(inTurn, reading)

    const append = (held: Held, rows: ReadonlyArray<EntryRow.Unnumbered>, written: ReadonlyArray<JournalEntry.Draft>) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const { root } = held
        const place = sessionAt(root)
        const before = yield* place.read
        const lock = before?.lock
        if (before === undefined || lock?.token !== held.token) return yield* takenOver(root, lock)
        const { batches, summary } = held
        const wanted = JournalEntry.contentsIn(written.map(({ entry }) => entry))
        for (const sha256 of wanted) {
          if ((yield* contentOf(sha256)) === undefined) return yield* SessionStore.contentMissing(name, sha256)
        }
        if (summary.entries === 0) yield* indexed(root)
        const body = rows.map(({ at, body, session }) => ({ at, body, session }))
        const number = yield* beginAppend(root, batches)
        yield* values.set(
          batchAt(root, batches),
          JSON.stringify({ append: number, seq: summary.entries + 1, rows: body })
        )
        const after = SessionSummary.after(
          summary,
          written.map((draft, at) => ({ ...draft, at: draft.at ?? now, seq: summary.entries + at + 1 }))
        )
        yield* place.write({
          ...before,
          summary: after,
          answers: answersIn(before.answers, after),
          batches: batches + 1,
          lock: { ...lock, heartbeat: now },
          ...(wanted.length === 0
            ? {}
            : {
                contents: [...new Set([...(before.contents ?? []), ...wanted])],
                held: (before.held ?? []).filter((sha256) => !wanted.includes(sha256))
              })
        })
        // What this lease knows decides, not what the store has: a batch that was reported as failed does not count.
        held.summary = after
        held.batches = batches + 1
        shared.hints.tell(root)
      })

    /** Before anything of it counts: what is not in the list is never found again. */
    const indexed = (root: SessionId) =>
      Effect.flatMap(index.read, (roots = []) => (roots.includes(root) ? Effect.void : index.write([...roots, root])))

    /** Undefined also for half of it, which a process left that died. */
    const contentOf = (sha256: string) =>
      Effect.map(values.getUint8Array(contentAt(sha256)), (found) =>
        Option.getOrUndefined(Option.filter(found, (bytes) => Digest.sha256(bytes) === sha256))
      )

    /**
     * Drops what this session's lease held, where nobody else wants it. Before the session forgets that: nobody could
     * find what a process left that died in between.
     */
    const dropHeld = (owner: SessionId, { held: left = [] }: Pick<Session, "held">) =>
      Effect.gen(function* () {
        if (left.length === 0) return
        const wanted = new Set<string>()
        for (const root of (yield* index.read) ?? []) {
          const { contents = [], held = [] } = (yield* sessionAt(root).read) ?? {}
          for (const sha256 of contents) wanted.add(sha256)
          if (root !== owner) for (const sha256 of held) wanted.add(sha256)
        }
        for (const sha256 of left) if (!wanted.has(sha256)) yield* remove(values, contentAt(sha256))
      })

    /** What is left of a session without its lease. */
    const unheld = (root: SessionId, { held: _, lock: __, ...left }: Session) =>
      left.summary.entries > 0
        ? sessionAt(root).write(left)
        : Effect.gen(function* () {
            const roots = (yield* index.read) ?? []
            if (roots.includes(root)) yield* index.write(roots.filter((one) => one !== root))
            yield* sessionAt(root).remove
          })

    /** Drops what leases held whose process is gone. Such a lease ends: its process must not go on without the content. */
    const sweep = (now: number) =>
      Effect.gen(function* () {
        for (const root of (yield* index.read) ?? []) {
          const session = yield* sessionAt(root).read
          if (session?.held === undefined || session.held.length === 0) continue
          if (SessionLease.holderOf(session.lock, locker, now) !== undefined) continue
          yield* dropHeld(root, session)
          yield* unheld(root, session)
        }
      })

    const put = ({ root, token }: Held, { bytes, sha256 }: SessionStore.Content) =>
      Effect.gen(function* () {
        yield* sweep(yield* Clock.currentTimeMillis)
        const place = sessionAt(root)
        const before = yield* place.read
        if (before?.lock?.token !== token) return yield* takenOver(root, before?.lock)
        const { contents = [], held = [] } = before
        if (!contents.includes(sha256) && !held.includes(sha256)) {
          yield* indexed(root)
          yield* place.write({ ...before, held: [...held, sha256] })
        }
        if ((yield* contentOf(sha256)) === undefined) yield* values.set(contentAt(sha256), bytes)
      }).pipe(writing, inTurn)

    const acquire = (root: SessionId, token: string) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const place = sessionAt(root)
        const found: Session = (yield* place.read) ?? {
          summary: SessionSummary.empty(root, now),
          batches: 0,
          answers: []
        }
        yield* unlocked(root, found.lock, now)
        // Of a holder that died.
        yield* dropHeld(root, found)
        const { held: _, ...left } = yield* ordered(root, found)
        const before = { ...left, answers: answersIn(left.answers, left.summary) }
        yield* place.write({ ...before, lock: { token, pid: locker.pid, host: locker.host, heartbeat: now } })
        const held: Held = { root, token, summary: before.summary, batches: before.batches }
        return held
      }).pipe(writing, inTurn)

    /** Changes the session as long as the token holds; yields whether it does. */
    const whileHeld = (
      { root, token }: Held,
      change: (session: Session) => Effect.Effect<void, PlatformError | StoreError.StoreUnusable>
    ) =>
      Effect.flatMap(sessionAt(root).read, (session) =>
        session?.lock?.token === token ? Effect.as(change(session), true) : Effect.succeed(false)
      ).pipe(writing, inTurn)

    const listed = Effect.gen(function* () {
      const found: Array<Session> = []
      for (const root of (yield* index.read) ?? []) {
        const session = yield* sessionAt(root).read
        if (session !== undefined && session.summary.entries > 0) found.push(session)
      }
      return found
    })

    /** It has no order of its own: every page reads all sessions. */
    const page = (query?: SessionStore.Query) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        return SessionStore.paged(
          (yield* listed).map(({ lock, summary }) =>
            SessionSummary.listed(summary, SessionLease.holderOf(lock, locker, now))
          ),
          query
        )
      }).pipe(inTurn, reading)

    /** The sessions to which other processes append; asked once a second. */
    const elsewhere = (begun: number) => {
      let seen = begun
      const look = Effect.gen(function* () {
        const last = yield* lastAppend
        const roots = new Set<SessionId>()
        while (seen < last) for (const { root } of yield* rowsOfAppend(++seen)) roots.add(root)
        return Chunk.unsafeFromArray([...roots])
      }).pipe(inTurn)
      return Stream.repeatEffectChunk(
        Effect.orElseSucceed(Effect.delay(look, "1 second"), () => Chunk.empty<SessionId>())
      )
    }

    return {
      name,
      lock: (root) =>
        Effect.suspend(() => {
          const token = SessionLease.tokenOf(ids.unsafeNext("ses"), locker)
          const held = SessionLease.hold(token, {
            acquire: acquire(root, token),
            // A failed heartbeat is made up for by the next one, or by a write.
            beat: (held) =>
              Effect.flatMap(Clock.currentTimeMillis, (heartbeat) =>
                Effect.orElseSucceed(
                  whileHeld(held, (session) =>
                    sessionAt(root).write({ ...session, lock: session.lock && { ...session.lock, heartbeat } })
                  ),
                  () => true
                )
              ),
            release: (held) =>
              Effect.ignore(
                whileHeld(held, (session) => Effect.zipRight(dropHeld(root, session), unheld(root, session)))
              )
          })
          return Effect.map(held, (held): SessionStore.Lease => ({
            rootSessionId: root,
            append: (drafts) =>
              Effect.gen(function* () {
                if (drafts.length === 0) return
                const rows = yield* Either.mapLeft(
                  EntryRow.encode(drafts, yield* Clock.currentTimeMillis),
                  (reason) => new StoreError.StoreUnwritable({ store: name, reason })
                )
                yield* append(held, rows, drafts).pipe(writing, inTurn, Effect.catchTag("StoreUnusable", unreadable))
              }),
            putContent: (content) => Effect.catchTag(put(held, content), "StoreUnusable", unreadable)
          }))
        }),
      load: (root) =>
        Effect.gen(function* () {
          const session = yield* known(root)
          return { rootSessionId: root, entries: yield* entriesOf(root, session), answers: session.answers }
        }).pipe(inTurn, reading),
      /** It keeps batches in no order that could be looked into: all of them are read. */
      read: (root, { after = 0, limit = Infinity } = {}) =>
        Effect.gen(function* () {
          const rows = yield* rowsOf(root, yield* known(root))
          return yield* EntryRow.decodeAll(root, rows.slice(after, Math.max(after, after + limit)), after)
        }).pipe(inTurn, reading),
      readAll,
      end: Effect.map(Effect.all([mark, Effect.zipRight(orderAll, lastAppend)]), ([own, last]) =>
        last === 0 ? nowhere : SessionStore.cursorOf(own, last, Number.MAX_SAFE_INTEGER)
      ).pipe(inTurn, reading),
      appends: Effect.map(shared.hints.appends, (own) => Stream.merge(own, elsewhere(shared.last))),
      findRequest: (requestId) =>
        Effect.gen(function* () {
          for (const session of yield* listed) {
            const root = session.summary.rootSessionId
            const found = SessionStore.knownRequest(root, requestId, yield* entriesOf(root, session))
            if (found !== undefined) return found
          }
          return undefined
        }).pipe(inTurn, reading),
      list: Effect.map(page({ limit: Infinity }), ({ sessions }) => sessions),
      page,
      openRequests: (root) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const found = (yield* listed).filter(
            ({ summary }) => summary.open.length > 0 && (root === undefined || summary.rootSessionId === root)
          )
          const waiting = yield* Effect.forEach(found, (session) => {
            const { answers, lock, summary } = session
            const one = SessionSummary.listed(summary, SessionLease.holderOf(lock, locker, now))
            return Effect.map(entriesOf(summary.rootSessionId, session), (entries) =>
              SessionStore.waitingIn(one, entries, answers)
            )
          })
          return waiting.flat().sort(SessionStore.byAge)
        }).pipe(inTurn, reading),
      getContent: (sha256) =>
        Effect.flatMap(contentOf(sha256), (bytes) =>
          bytes === undefined ? Effect.fail(new StoreError.ContentUnknown({ sha256 })) : Effect.succeed(bytes)
        ).pipe(inTurn, reading),
      delete: (root) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const session = yield* known(root)
          yield* unlocked(root, session.lock, now)
          const place = sessionAt(root)
          // From here on nobody knows it, and a holder that stood still has no lock to write with.
          const { contents = [], held = [] } = session
          const ended: Session = {
            summary: SessionSummary.empty(root, now),
            batches: 0,
            answers: [],
            held: [...contents, ...held]
          }
          yield* place.write(ended)
          for (let batch = 0; batch < session.batches; batch++) yield* remove(values, batchAt(root, batch))
          yield* dropHeld(root, ended)
          yield* unheld(root, ended)
          yield* sweep(now)
        }).pipe(writing, inTurn),
      answer: (requestId, answer, by) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const session = (yield* listed).find(({ summary }) =>
            summary.open.some((open) => open.requestId === requestId)
          )
          if (session === undefined) return yield* SessionStore.notOpen(requestId)
          const root = session.summary.rootSessionId
          const raised = (yield* entriesOf(root, session)).find(
            ({ entry }) => entry._tag === "InteractionRaised" && entry.request.requestId === requestId
          )
          if (raised?.entry._tag !== "InteractionRaised") return yield* SessionStore.notOpen(requestId)
          yield* SessionStore.accepts(raised.entry.request, answer)
          yield* unlocked(root, session.lock, now)
          const first = session.answers.find((kept) => kept.requestId === requestId)
          if (first !== undefined) return yield* SessionStore.answeredAlready(requestId, first.by)
          // Without the lock: a holder that stood still must not go on without the answer.
          const { lock: _, ...unheld } = session
          yield* sessionAt(root).write({
            ...unheld,
            answers: [...session.answers, { requestId, answer, by, at: now }]
          })
        }).pipe(writing, inTurn)
    } satisfies SessionStore.Service
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A session store in the key-value store of the context; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<SessionStore.SessionStore, never, KeyValueStore.KeyValueStore> =>
  Layer.effect(SessionStore.SessionStore, make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Those to requests that are open. Used or not, others are forgotten: one may hold a secret, and journals mask it. */
const answersIn = (answers: Session["answers"], { open }: SessionSummary.SessionSummary): Session["answers"] =>
  answers.filter((answer) => open.some(({ requestId }) => requestId === answer.requestId))

/** The internal state of a lease. */
interface Held {
  readonly root: SessionId
  readonly token: string
  summary: SessionSummary.SessionSummary
  batches: number
}

const Session = Schema.Struct({
  summary: SessionSummary.SessionSummary,
  /** Batches of entries that count. */
  batches: Schema.Number,
  /** Those that a version wrote which knew of no numbers; their appends have numbers from `first` on. */
  ordered: Schema.optional(Schema.Struct({ first: Schema.Number, batches: Schema.Number })),
  answers: Schema.Array(
    Schema.Struct({ requestId: RequestId, answer: Schema.Unknown, by: Schema.String, at: Schema.Number })
  ),
  /** Digests of the content that entries refer to. */
  contents: Schema.optional(Schema.Array(Schema.String)),
  /** Digests of the content that the lease holds beside that. */
  held: Schema.optional(Schema.Array(Schema.String)),
  lock: Schema.optional(
    Schema.Struct({ token: Schema.String, pid: Schema.Number, host: Schema.String, heartbeat: Schema.Number })
  )
})
type Session = typeof Session.Type

const contentAt = (sha256: string) => `content:${sha256}`

const Row = Schema.Struct({ session: SessionId, at: Schema.Number, body: Schema.String })

/** Earlier versions wrote the rows alone. */
const Batch = Schema.Union(
  Schema.Struct({ append: Schema.Number, seq: Schema.Number, rows: Schema.Array(Row) }),
  Schema.Array(Row)
)

const decodeBatch = (text: string) =>
  Option.map(Schema.decodeUnknownOption(Schema.parseJson(Batch))(text), (batch): LooseBatch =>
    "rows" in batch ? batch : { rows: batch }
  )

interface LooseBatch {
  readonly append?: number
  /** Of its first entry. */
  readonly seq?: number
  readonly rows: ReadonlyArray<typeof Row.Type>
}

const appendAt = (number: number) => `append:${number}`

const Append = Schema.parseJson(Schema.Struct({ root: SessionId, batch: Schema.Number }))
const encodeAppend = Schema.encodeSync(Append)
const decodeAppend = Schema.decodeUnknownOption(Append)

/** The end of an empty store. */
const nowhere = SessionStore.cursorOf("0", 0, 0)

/** What the stores of one process have in common. */
interface Shared {
  /** First come, first served; held for one operation. */
  readonly turns: Effect.Semaphore
  readonly hints: SessionStore.Hints
  /** Number of the last append that is known; another process may have made more. */
  last: number
  /** All batches have numbers. */
  isOrdered: boolean
}

const shares = globalValue(
  "assent/store/KeyValueSessionStore/shares",
  () => new WeakMap<KeyValueStore.KeyValueStore, Shared>()
)

const sharedAt = (values: KeyValueStore.KeyValueStore): Shared => {
  const known = shares.get(values) ?? {
    turns: Effect.unsafeMakeSemaphore(1),
    hints: new SessionStore.Hints(),
    last: 0,
    isOrdered: false
  }
  shares.set(values, known)
  return known
}

/** A value in two places: the older one is written, so that the newer one is whole whenever a process dies. */
const twoPlaces = <A, I>(
  values: KeyValueStore.KeyValueStore,
  key: string,
  schema: Schema.Schema<A, I>,
  damaged: (reason: string) => StoreError.StoreUnusable
) => {
  const Numbered = Schema.parseJson(Schema.Struct({ number: Schema.Number, value: schema }))
  const decode = Schema.decodeUnknownOption(Numbered)
  const encode = Schema.encode(Numbered)
  const places = [`${key}/0`, `${key}/1`]
  const newest = Effect.flatMap(
    Effect.forEach(places, (place) => Effect.map(values.get(place), (text) => ({ place, text }))),
    (both) => {
      const [first] = both
        .flatMap(({ place, text }) =>
          Option.toArray(Option.map(Option.flatMap(text, decode), (found) => ({ place, ...found })))
        )
        .sort((a, b) => b.number - a.number)
      // Half of the only one is left of a first write that nobody heard of.
      const isLost = first === undefined && both.every(({ text }) => Option.isSome(text))
      return isLost ? damaged(`what it keeps as ${key} is damaged`) : Effect.succeed({ first })
    }
  )
  return {
    read: Effect.map(newest, ({ first }) => first?.value),
    write: (value: A) =>
      Effect.flatMap(newest, ({ first }) => {
        const place = places.find((place) => place !== first?.place) ?? key
        const text = Effect.orDie(encode({ number: (first?.number ?? 0) + 1, value }))
        return Effect.flatMap(text, (text) => values.set(place, text))
      }),
    /** The older one first: it must not come back. */
    remove: Effect.flatMap(newest, ({ first }) => {
      const older = places.filter((place) => place !== first?.place)
      const inOrder = [...older, ...places.filter((place) => place === first?.place)]
      return Effect.forEach(inOrder, (place) => remove(values, place), { discard: true })
    })
  }
}

/** Some stores fail when there is nothing to remove. */
const remove = (values: KeyValueStore.KeyValueStore, key: string): Effect.Effect<void, PlatformError> =>
  Effect.flatMap(values.has(key), (isThere) => (isThere ? values.remove(key) : Effect.void))

const isPlatformError = (error: unknown): error is PlatformError =>
  Predicate.isTagged(error, "BadArgument") || Predicate.isTagged(error, "SystemError")

const catchPlatform = <A, E, F>(
  effect: Effect.Effect<A, E>,
  make: (reason: string) => F
): Effect.Effect<A, Exclude<E, PlatformError> | F> =>
  Effect.catchIf(
    effect,
    (error): error is E & PlatformError => isPlatformError(error),
    (error) => Effect.fail(make(FileFailure.reason(error)))
  ) as Effect.Effect<A, Exclude<E, PlatformError> | F>

/** Where it cannot be read, nothing is written either. */
const unreadable = ({ reason, store }: StoreError.StoreUnusable) => new StoreError.StoreUnwritable({ store, reason })
