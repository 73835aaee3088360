/**
 * Sessions in a SQL database, SQLite or PostgreSQL: every entry a row, in the order in which it was written.
 *
 * ```
 *  append ─► WriteQueue ─► one transaction: the lock still ours? + entries + summary ─► append returns
 * ```
 *
 * A process has one writer, and each write checks the lease's token in its own transaction. So two processes never
 * write to one tree. Whatever looks at the lock first and writes then (taking the lease, an answer, a deletion) holds
 * the session meanwhile ({@link Dialect.hold}): otherwise an answer could be acknowledged beside a process that has
 * just loaded the session without it.
 *
 * @since 0.1.0
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { IdGenerator, type RequestId, type SessionId } from "../core/Id.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionLease from "../journal/SessionLease.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as SessionSummary from "../journal/SessionSummary.js"
import * as StoreError from "../journal/StoreError.js"
import * as AppendOrder from "./AppendOrder.js"
import * as ContentTable from "./ContentTable.js"
import * as Dialect from "./Dialect.js"
import * as EntryRow from "./EntryRow.js"
import * as Migrations from "./Migrations.js"
import * as SqlFailure from "./SqlFailure.js"
import * as SummaryTable from "./SummaryTable.js"
import * as WriteQueue from "./WriteQueue.js"

/**
 * How long a session's lock outlives its process.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The process that takes leases here. */
  readonly process: SessionLease.Process
  /** The store's name in messages. Default: `the database`. */
  readonly name?: string | undefined
  /** Whether a commit went to the place where it will be read; checked after each commit. Default: true. */
  readonly isThere?: Effect.Effect<boolean> | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Makes the tables if they are missing. Durability depends on the client; `LibsqlStore` and `PostgresStore` have it.
 * Fails when a newer version made the tables, and when the client's database is neither SQLite nor PostgreSQL.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<
  SessionStore.Service,
  StoreError.StoreUnusable | StoreError.StoreUnwritable,
  SqlClient.SqlClient | Scope.Scope
> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const ids = yield* IdGenerator
    const { process: locker, name = "the database", isThere = Effect.succeed(true) } = options
    const failure = SqlFailure.make(name)
    const contents = ContentTable.make(sql)

    const dialect = Dialect.of(sql)
    if (dialect === undefined) return yield* failure.unknownDatabase
    const summaries = SummaryTable.make(sql, dialect, failure, locker)
    const version = yield* failure.reading(Migrations.version)
    if (version > Migrations.latest) return yield* failure.newer(version, Migrations.latest)
    if (version < Migrations.latest) yield* failure.migrating(Migrations.run)
    const { adopt, tell, ...order } = AppendOrder.make(sql, dialect, failure)
    yield* failure.writing(adopt)

    const gone = new StoreError.StoreUnwritable({
      store: name,
      reason: "it was removed or replaced while it was open, and what is written would be lost",
      remedy: "Open the session again."
    })

    const lockOf = (root: SessionId) =>
      Effect.map(
        sql<SessionLease.Row>`SELECT token, pid, host, heartbeat FROM assent_lock WHERE root = ${root}`,
        ([row]) => row && numbers(row)
      )

    const requireUnlocked = (root: SessionId, now: number) =>
      Effect.flatMap(lockOf(root), (row) => {
        const holder = SessionLease.holderOf(row, locker, now)
        return row === undefined || holder === undefined
          ? Effect.succeed(row)
          : Effect.fail(new StoreError.SessionLocked({ rootSessionId: root, holder, heartbeat: row.heartbeat }))
      })

    /**
     * Takes the lock of a holder that is gone away from it: whoever comes back after all must not go on as if nothing
     * had happened. Fails when it came back meanwhile.
     */
    const requireGone = (root: SessionId, now: number) =>
      Effect.flatMap(requireUnlocked(root, now), (row) =>
        row === undefined
          ? Effect.void
          : Effect.filterOrElse(
              sql`DELETE FROM assent_lock WHERE root = ${root} AND token = ${row.token}
                AND heartbeat = ${row.heartbeat} RETURNING root`,
              (rows) => rows.length > 0,
              () => lockedBy(root, row)
            )
      )

    const lockedBy = (root: SessionId, otherwise: SessionLease.Row) =>
      Effect.flatMap(lockOf(root), (found) => {
        const { heartbeat, host, pid } = found ?? otherwise
        return new StoreError.SessionLocked({ rootSessionId: root, holder: { pid, host }, heartbeat })
      })

    const takenOver = (root: SessionId) =>
      Effect.map(lockOf(root), (row) => {
        const holder = row === undefined ? {} : { holder: { pid: row.pid, host: row.host } }
        return new StoreError.SessionTakenOver({ rootSessionId: root, ...holder })
      })

    const beat = (held: Held, now: number) =>
      Effect.map(
        sql`UPDATE assent_lock SET heartbeat = ${now} WHERE root = ${held.root} AND token = ${held.token} RETURNING token`,
        (rows) => rows.length > 0
      )

    /** Drops the answers to requests that are settled. */
    const forgetAnswers = (root: SessionId) =>
      sql`DELETE FROM assent_answer WHERE root = ${root} AND EXISTS (SELECT 1 FROM assent_entry
        WHERE assent_entry.request = assent_answer.request AND assent_entry.tag = 'InteractionSettled')`

    /**
     * Writes the part of a commit that belongs to one lease. Yields the lease's state after the commit, or why nothing
     * is written.
     */
    const writeHeld = (held: Held, jobs: ReadonlyArray<Job>, now: number) =>
      Effect.gen(function* () {
        if (!(yield* beat(held, now))) return refused(yield* takenOver(held.root))
        const wanted = [...new Set(jobs.flatMap(({ contents }) => contents))]
        const missing = wanted.length === 0 ? undefined : yield* contents.refer(held.root, held.token, wanted)
        if (missing !== undefined) return refused(SessionStore.contentMissing(name, missing))
        // A commit that failed may have reached the database all the same, when only its acknowledgement was lost. It
        // was reported as failed, and whoever heard that writes the same again.
        if (held.isDoubtful) {
          yield* sql`DELETE FROM assent_entry WHERE root = ${held.root} AND seq > ${held.summary.entries}`
        }
        const rows = EntryRow.number(
          jobs.flatMap(({ rows }) => rows),
          held.root,
          held.summary.entries
        )
        for (const page of EntryRow.pages(rows)) yield* sql`INSERT INTO assent_entry ${sql.insert(page)}`
        const summary = SessionSummary.after(
          held.summary,
          jobs
            .flatMap(({ written }) => written)
            .map((entry, index) => ({ ...entry, seq: held.summary.entries + index + 1 }))
        )
        yield* summaries.put(summary)
        // Used or not: an answer may hold a secret, and journals mask it.
        if (jobs.some(({ written }) => written.some(({ entry }) => entry._tag === "InteractionSettled")))
          yield* forgetAnswers(held.root)
        return Either.right(summary)
      })

    const commit = (jobs: ReadonlyArray<Job>) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const leases = [...new Set(jobs.map(({ held }) => held))]
        const outcome = yield* failure
          .writing(
            sql.withTransaction(
              Effect.zipRight(
                jobs.some(({ contents }) => contents.length > 0) ? Dialect.hold(sql, ContentTable.lock) : Effect.void,
                Effect.forEach(leases, (held) =>
                  Effect.map(
                    writeHeld(
                      held,
                      jobs.filter((job) => job.held === held),
                      now
                    ),
                    (written) => [held, written] as const
                  )
                )
              )
            )
          )
          .pipe(
            Effect.map((written) => new Map(written)),
            Effect.either
          )
        const isGone = Either.isRight(outcome) && !(yield* isThere)
        for (const held of leases) held.isDoubtful = isGone || Either.isLeft(outcome)
        if (Either.isLeft(outcome)) return jobs.map(() => Exit.fail(outcome.left))
        if (isGone) return jobs.map(() => Exit.fail(gone))
        // After the commit: only now may the next batch build on it.
        for (const [held, written] of outcome.right) {
          if (Either.isLeft(written)) continue
          held.summary = written.right
          tell(held.root)
        }
        return jobs.map(({ held }) => {
          const written = outcome.right.get(held)
          return written !== undefined && Either.isLeft(written) ? Exit.fail(written.left) : Exit.void
        })
      })

    const write = yield* WriteQueue.make<Job, StoreError.StoreUnwritable | StoreError.SessionTakenOver>({
      commit,
      capacity: 256,
      closed: () => new StoreError.StoreUnwritable({ store: name, reason: "it is closed" })
    })

    const acquire = (root: SessionId, token: string) =>
      Effect.gen(function* () {
        yield* Dialect.hold(sql, root)
        const now = yield* Clock.currentTimeMillis
        const before = yield* requireUnlocked(root, now)
        const row = { root, token, pid: locker.pid, host: locker.host, heartbeat: now }
        // Of two processes that saw no lock, one loses here, whatever isolation the client has. So does the one that
        // saw a silent holder, which has sent a heartbeat meanwhile.
        const taken = yield* sql`INSERT INTO assent_lock ${sql.insert(row)} ON CONFLICT (root) DO UPDATE SET
          token = excluded.token, pid = excluded.pid, host = excluded.host, heartbeat = excluded.heartbeat
          WHERE assent_lock.token = ${before?.token ?? ""} AND assent_lock.heartbeat = ${before?.heartbeat ?? 0}
          RETURNING token`
        if (taken.length === 0) return yield* lockedBy(root, row)
        const summary = (yield* summaries.get(root)) ?? SessionSummary.empty(root, now)
        // Earlier versions left them there.
        yield* forgetAnswers(root)
        const held: Held = { root, token, summary, isDoubtful: false, hasPut: false }
        return { held, isLeft: yield* contents.isHeld(root) }
      }).pipe(
        sql.withTransaction,
        // Of a holder that died.
        Effect.tap(({ isLeft }) => (isLeft ? changing(contents.releaseOthers(root, token)) : Effect.void)),
        Effect.map(({ held }) => held),
        failure.writing
      )

    /** A transaction about content alone. */
    const changing = <A, E>(change: Effect.Effect<A, E>) =>
      sql.withTransaction(Effect.zipRight(Dialect.hold(sql, ContentTable.lock), change))

    const put = (held: Held, content: SessionStore.Content) =>
      Effect.gen(function* () {
        held.hasPut = true
        const now = yield* Clock.currentTimeMillis
        if ((yield* lockOf(held.root))?.token !== held.token) return yield* yield* takenOver(held.root)
        yield* contents.sweep(locker, now)
        yield* contents.put(content, held.root, held.token)
      }).pipe(changing, failure.writing)

    const keep = (root: SessionId, requestId: RequestId, answer: unknown, by: string) =>
      Effect.gen(function* () {
        yield* Dialect.hold(sql, root)
        // Read now, not before: the session may have run meanwhile, and settled it.
        const rows = yield* sql<EntryRow.Stored>`
          SELECT seq, session, at, body FROM assent_entry WHERE request = ${requestId} ORDER BY seq`
        const about = (yield* EntryRow.decodeRows(root, rows)).map(({ entry }) => entry)
        const raised = about.find((entry) => entry._tag === "InteractionRaised")
        if (raised === undefined || about.some((entry) => entry._tag === "InteractionSettled")) {
          return yield* SessionStore.notOpen(requestId)
        }
        yield* SessionStore.accepts(raised.request, answer)
        const at = yield* Clock.currentTimeMillis
        yield* requireGone(root, at)
        const row = { request: requestId, root, answer: JSON.stringify(answer), author: by, at }
        const kept =
          yield* sql`INSERT INTO assent_answer ${sql.insert(row)} ON CONFLICT (request) DO NOTHING RETURNING request`
        if (kept.length > 0) return
        const [first] = yield* sql<AnswerRow>`SELECT author FROM assent_answer WHERE request = ${requestId}`
        return yield* SessionStore.answeredAlready(requestId, first?.author ?? "somebody else")
      })

    const answersOf = (root: SessionId) =>
      Effect.flatMap(
        failure.reading(
          sql<AnswerRow>`SELECT request, answer, author, at FROM assent_answer WHERE root = ${root} ORDER BY at, request`
        ),
        Effect.forEach((row) => storedAnswer(failure, row))
      )

    const read = (root: SessionId, behind: SessionStore.Behind = {}) =>
      Effect.gen(function* () {
        const rows = yield* failure.reading(EntryRow.ofJournal(sql, dialect, root, behind))
        if (rows.length > 0) return yield* EntryRow.decodeAll(root, rows, behind.after)
        const found = yield* failure.reading(sql`SELECT 1 FROM assent_entry WHERE root = ${root} LIMIT 1`)
        return found.length > 0 ? [] : yield* new StoreError.SessionUnknown({ rootSessionId: root })
      })

    const leaseOf = (held: Held): SessionStore.Lease => ({
      rootSessionId: held.root,
      append: Effect.fn("SessionStore.append")(function* (drafts) {
        if (drafts.length === 0) return
        const at = yield* Clock.currentTimeMillis
        const rows = yield* Either.mapLeft(
          EntryRow.encode(drafts, at),
          (reason) => new StoreError.StoreUnwritable({ store: name, reason })
        )
        yield* write({
          held,
          rows,
          written: drafts.map((draft) => ({ ...draft, at: draft.at ?? at })),
          contents: JournalEntry.contentsIn(drafts.map(({ entry }) => entry))
        })
      }),
      putContent: (content) => put(held, content)
    })

    return {
      name,
      lock: (root) =>
        Effect.suspend(() => {
          const token = SessionLease.tokenOf(ids.unsafeNext("ses"), locker)
          const held = SessionLease.hold(token, {
            acquire: acquire(root, token),
            // A failed heartbeat is made up for by the next one, or by a write.
            beat: (held) =>
              Effect.orElseSucceed(
                failure.writing(Effect.flatMap(Clock.currentTimeMillis, (now) => beat(held, now))),
                () => true
              ),
            release: ({ hasPut }) =>
              Effect.zipRight(
                hasPut ? Effect.ignore(failure.writing(changing(contents.release(root, token)))) : Effect.void,
                Effect.ignore(failure.writing(sql`DELETE FROM assent_lock WHERE root = ${root} AND token = ${token}`))
              )
          })
          return Effect.map(held, leaseOf)
        }),
      load: Effect.fn("SessionStore.load")(function* (root) {
        return { rootSessionId: root, entries: yield* read(root), answers: yield* answersOf(root) }
      }),
      read: Effect.fn("SessionStore.read")(read),
      ...order,
      findRequest: Effect.fn("SessionStore.findRequest")(function* (requestId) {
        const rows = yield* failure.reading(
          sql<EntryRow.Stored & Pick<EntryRow.EntryRow, "root">>`
            SELECT root, seq, session, at, body FROM assent_entry WHERE request = ${requestId} ORDER BY seq`
        )
        const [first] = rows
        if (first === undefined) return undefined
        const about = yield* EntryRow.decodeRows(
          first.root,
          rows.filter(({ root }) => root === first.root)
        )
        return SessionStore.knownRequest(first.root, requestId, about)
      }),
      list: summaries.all,
      page: Effect.fn("SessionStore.page")(summaries.page),
      openRequests: Effect.fn("SessionStore.openRequests")(function* (root) {
        const waiting: Array<SessionStore.WaitingRequest> = []
        for (const one of yield* summaries.open(root)) {
          const ids = one.open.map(({ requestId }) => requestId)
          const about = yield* failure.reading(
            sql<EntryRow.Stored>`SELECT seq, session, at, body FROM assent_entry
              WHERE root = ${one.rootSessionId} AND tag IN ('InteractionRaised', 'VoteGiven') AND ${sql.in("request", ids)} ORDER BY seq`
          )
          const entries = yield* EntryRow.decodeRows(one.rootSessionId, about)
          waiting.push(...SessionStore.waitingIn(one, entries, yield* answersOf(one.rootSessionId)))
        }
        return waiting.sort(SessionStore.byAge)
      }),
      getContent: Effect.fn("SessionStore.getContent")(function* (sha256) {
        return (yield* failure.reading(contents.get(sha256))) ?? (yield* new StoreError.ContentUnknown({ sha256 }))
      }),
      delete: (root) =>
        Effect.gen(function* () {
          yield* Dialect.hold(sql, ContentTable.lock, root)
          if ((yield* summaries.get(root)) === undefined)
            return yield* new StoreError.SessionUnknown({ rootSessionId: root })
          // The lock goes first: a holder that comes back waits for it, and then has none to write with.
          const now = yield* Clock.currentTimeMillis
          yield* requireGone(root, now)
          for (const table of ["assent_entry", "assent_answer", "assent_session"]) {
            yield* sql`DELETE FROM ${sql(table)} WHERE root = ${root}`
          }
          yield* contents.forget(root)
          yield* contents.sweep(locker, now)
        }).pipe(sql.withTransaction, failure.writing),
      answer: (requestId, answer, by) =>
        Effect.gen(function* () {
          const [found] = yield* failure.reading(
            sql<{ readonly root: SessionId }>`SELECT root FROM assent_entry WHERE request = ${requestId}`
          )
          if (found === undefined) return yield* SessionStore.notOpen(requestId)
          yield* failure.writing(sql.withTransaction(keep(found.root, requestId, answer, by)))
        })
    } satisfies SessionStore.Service
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * Uses the SQL client of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<SessionStore.SessionStore, StoreError.StoreUnusable | StoreError.StoreUnwritable, SqlClient.SqlClient> =>
  Layer.scoped(SessionStore.SessionStore, make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The internal state of a lease. */
interface Held {
  readonly root: SessionId
  readonly token: string
  /** The committed summary; only the committing fiber writes it. */
  summary: SessionSummary.SessionSummary
  /** The last commit failed, so that nobody knows what the database has of it. */
  isDoubtful: boolean
  /** It has put content, so that it may hold some. */
  hasPut: boolean
}

/** One append. */
interface Job {
  readonly held: Held
  readonly rows: ReadonlyArray<EntryRow.Unnumbered>
  readonly written: ReadonlyArray<Omit<JournalEntry.Written, "seq">>
  /** Digests of the content that they refer to. */
  readonly contents: ReadonlyArray<string>
}

interface AnswerRow {
  readonly request: RequestId
  readonly answer: string
  readonly author: string
  readonly at: number
}

const refused = (
  why: StoreError.SessionTakenOver | StoreError.StoreUnwritable
): Either.Either<SessionSummary.SessionSummary, StoreError.SessionTakenOver | StoreError.StoreUnwritable> =>
  Either.left(why)

/** PostgreSQL gives numbers of 64 bits as text. */
const numbers = <Row extends SessionLease.Row>(row: Row): Row => ({
  ...row,
  pid: Number(row.pid),
  heartbeat: Number(row.heartbeat)
})

const storedAnswer = (failure: SqlFailure.SqlFailure, { request, answer, author, at }: AnswerRow) =>
  Either.mapBoth(
    Either.try((): unknown => JSON.parse(answer)),
    {
      onLeft: () => failure.damaged(`the answer to request ${request} is damaged`),
      onRight: (known): SessionStore.StoredAnswer => ({ requestId: request, answer: known, by: author, at: Number(at) })
    }
  )
