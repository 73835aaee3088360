/**
 * Sessions in a `KeyValueStore` of `@effect/platform`: a directory, a browser's storage, memory.
 *
 * ```
 *  sessions/0 │ sessions/1            the ids of all sessions
 *  session:ID/0 │ session:ID/1        one session: its lock, summary, answers, and how many batches count
 *  batch:0:ID, batch:1:ID, …          a batch of entries each
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
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { globalValue } from "effect/GlobalValue"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
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
    const inTurn = turnsAt(values).withPermits(1)

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

    const entriesOf = (root: SessionId, { batches }: Session) =>
      Effect.gen(function* () {
        const rows: Array<EntryRow.Unnumbered> = []
        for (let batch = 0; batch < batches; batch++) {
          const text = yield* values.get(batchAt(root, batch))
          // A batch that is gone is damage too: without it the entries behind it would move up.
          const decoded = decodeBatch(Option.getOrElse(text, () => ""))
          if (Either.isLeft(decoded)) {
            return yield* new StoreError.JournalUnreadable({
              rootSessionId: root,
              seq: rows.length + 1,
              reason: "it is damaged"
            })
          }
          for (const row of decoded.right) rows.push({ tag: "", request: null, ...row })
        }
        return yield* EntryRow.decodeAll(root, EntryRow.number(rows, root, 0))
      })

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
        yield* values.set(batchAt(root, batches), JSON.stringify(body))
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
        const found = (yield* place.read) ?? { summary: SessionSummary.empty(root, now), batches: 0, answers: [] }
        yield* unlocked(root, found.lock, now)
        // Of a holder that died.
        yield* dropHeld(root, found)
        const { held: _, ...left } = found
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
          const ended = {
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

const decodeBatch = Schema.decodeUnknownEither(
  Schema.parseJson(Schema.Array(Schema.Struct({ session: SessionId, at: Schema.Number, body: Schema.String })))
)

/** One for each store, first come, first served; held for one operation. */
const turns = globalValue(
  "assent/store/KeyValueSessionStore/turns",
  () => new WeakMap<KeyValueStore.KeyValueStore, Effect.Semaphore>()
)

const turnsAt = (values: KeyValueStore.KeyValueStore): Effect.Semaphore => {
  const known = turns.get(values) ?? Effect.unsafeMakeSemaphore(1)
  turns.set(values, known)
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
