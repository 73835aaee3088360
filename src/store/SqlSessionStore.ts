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
 * Under `holding: "fence"` an append is one statement, which writes only if the token is still the lease's. A process gives a
 * session back as `left` or as `parked`, so that the others see which sessions to go on with ({@link FencedStore.awake}).
 *
 * @since 0.1.0
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as AuditChain from "../audit/AuditChain.js"
import type * as AuditRecord from "../audit/AuditRecord.js"
import { IdGenerator, type RequestId, type SessionId } from "../core/Id.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionLease from "../journal/SessionLease.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as SessionSummary from "../journal/SessionSummary.js"
import * as StoreError from "../journal/StoreError.js"
import * as AppendOrder from "./AppendOrder.js"
import * as AuditTable from "./AuditTable.js"
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
  /** Seals the audit, which a PostgreSQL store keeps if its leases are fences. */
  readonly auditKey?: AuditChain.Key | undefined
  /** Whether a commit went to the place where it will be read; checked after each commit. Default: true. */
  readonly isThere?: Effect.Effect<boolean> | undefined
}

/**
 * A store whose leases are fences.
 *
 * @since 0.1.0
 * @category models
 */
export interface FencedStore extends SessionStore.Service {
  /**
   * Has the session parked when this process gives it back, unless something is appended before. It stays so until another
   * process takes it. `within`: milliseconds after which a process has to go on with it all the same.
   */
  readonly park: (root: SessionId, within?: number) => Effect.Effect<void>
  /** How many sessions have open requests. */
  readonly waiting: Effect.Effect<number, StoreError.StoreUnusable>
  /**
   * The sessions that a process runs, has to go on with, or ran when it died: all that are not parked, or are overdue. Not
   * those of a process that sends heartbeats, and none that is locked before its first entry: a fork is written whole.
   */
  readonly awake: Effect.Effect<ReadonlyArray<SessionId>, StoreError.StoreUnusable>
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
  FencedStore,
  StoreError.StoreUnusable | StoreError.StoreUnwritable,
  SqlClient.SqlClient | Scope.Scope
> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const ids = yield* IdGenerator
    const { auditKey, process: locker, name = "the database", isThere = Effect.succeed(true) } = options
    const failure = SqlFailure.make(name)
    const contents = ContentTable.make(sql)
    const isFence = locker.holding === "fence"
    /** Leases of this process, for {@link FencedStore.park}. */
    const own = new Map<SessionId, Held>()

    const dialect = Dialect.of(sql)
    if (dialect === undefined) return yield* failure.unknownDatabase
    /** Milliseconds since the epoch, of the database. */
    const clock = sql.literal(Dialect.clock[dialect])
    const audits = isFence && dialect === "pg" ? AuditTable.make(sql, failure, auditKey) : undefined
    const summaries = SummaryTable.make(sql, dialect, failure, locker)
    const version = yield* failure.reading(Migrations.version)
    if (version > Migrations.latest) return yield* failure.newer(version, Migrations.latest)
    if (version < Migrations.latest) yield* failure.migrating(Migrations.run)
    const { adopt, tell, ...order } = yield* AppendOrder.make(sql, dialect, failure)
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
    const requireGone = (root: SessionId, now: number) => {
      const mine = sql`DELETE FROM assent_lock WHERE root = ${root}`
      if (isFence) return Effect.asVoid(mine)
      return Effect.flatMap(requireUnlocked(root, now), (row) =>
        row === undefined
          ? Effect.void
          : Effect.filterOrElse(
              sql`${mine} AND token = ${row.token} AND heartbeat = ${row.heartbeat} RETURNING root`,
              (rows) => rows.length > 0,
              () => lockedBy(root, row)
            )
      )
    }

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

    /** Whether the lease still holds, and will until the transaction ends. */
    const confirm = (held: Held, now: number) =>
      isFence
        ? Effect.map(
            sql`SELECT 1 FROM assent_lock WHERE root = ${held.root} AND token = ${held.token}
              ${sql.literal(dialect === "pg" ? "FOR SHARE" : "")}`,
            (rows) => rows.length > 0
          )
        : beat(held, now)

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
        if (!(yield* confirm(held, now))) return refused(yield* takenOver(held.root))
        const wanted = [...new Set(jobs.flatMap(({ contents }) => contents))]
        const missing = wanted.length === 0 ? undefined : yield* contents.refer(held.root, held.token, wanted)
        if (missing !== undefined) return refused(SessionStore.contentMissing(name, missing))
        // A commit that failed may have reached the database all the same, when only its acknowledgement was lost. It
        // was reported as failed, and whoever heard that writes the same again.
        if (held.isDoubtful) {
          yield* sql`DELETE FROM assent_entry WHERE root = ${held.root} AND seq > ${held.summary.entries}`
          if (held.audited !== undefined) yield* audits?.back(held.root, held.audited) ?? Effect.void
        }
        const rows = EntryRow.number(
          jobs.flatMap(({ rows }) => rows),
          held.root,
          held.summary.entries
        )
        for (const page of EntryRow.pages(rows)) yield* sql`INSERT INTO assent_entry ${sql.insert(page)}`
        const audited = yield* auditOf(held, jobs, now)
        if (audited !== undefined) yield* audited.put
        const summary = summaryAfter(held, jobs)
        yield* summaries.put(summary)
        // Used or not: an answer may hold a secret, and journals mask it.
        if (jobs.some(({ settles }) => settles.length > 0)) yield* forgetAnswers(held.root)
        return Either.right({ summary, audited: audited?.last })
      })

    /** What the jobs add to the audit of the session. The session is ours alone, so the chain ends where we left it. */
    const auditOf = (held: Held, jobs: ReadonlyArray<Job>, now: number) =>
      Effect.gen(function* () {
        const decisions = jobs.flatMap(({ decisions }) => decisions)
        if (audits === undefined || decisions.length === 0) return undefined
        held.audited ??= yield* audits.last(held.root)
        return audits.addition(held.root, held.audited, decisions, now)
      })

    /** The same in one statement, of which PostgreSQL does all or nothing. No row back: the lease holds no more. */
    const writeAtOnce = (held: Held, jobs: ReadonlyArray<Job>, now: number) =>
      Effect.gen(function* () {
        const audited = yield* auditOf(held, jobs, now)
        const summary = summaryAfter(held, jobs)
        const rows = EntryRow.number(
          jobs.flatMap(({ rows }) => rows),
          held.root,
          held.summary.entries
        )
        const settled = jobs.flatMap(({ settles }) => settles)
        const values = rows.map(
          ({ at, body, request, seq, session, tag }) =>
            sql`(${seq}::bigint, ${session}::text, ${at}::bigint, ${tag}::text, ${request}::text, ${body}::text)`
        )
        const forgotten =
          settled.length === 0
            ? sql``
            : sql`, forgotten AS (DELETE FROM assent_answer a USING held
                WHERE a.root = held.root AND ${sql.in("request", settled)})`
        const written = yield* sql`
          WITH held AS (SELECT root FROM assent_lock WHERE root = ${held.root} AND token = ${held.token} FOR SHARE),
            listed AS (INSERT INTO assent_session (root, summary)
              SELECT root, ${JSON.stringify(summary)}::text FROM held
              ON CONFLICT (root) DO UPDATE SET summary = excluded.summary)${forgotten}${audited?.beside ?? sql``}
          INSERT INTO assent_entry (root, seq, session, at, tag, request, body)
            SELECT held.root, e.* FROM held, (VALUES ${sql.csv(values)}) e RETURNING seq`
        return written.length > 0
          ? Either.right({ summary, audited: audited?.last })
          : refused(yield* takenOver(held.root))
      })

    const isAtOnce = ({ isDoubtful }: Held, jobs: ReadonlyArray<Job>) =>
      isFence &&
      dialect === "pg" &&
      !isDoubtful &&
      jobs.every(({ contents }) => contents.length === 0) &&
      isOneStatement(jobs.reduce((sum, { decisions, rows }) => sum + rows.length + decisions.length, 0)) &&
      jobs.some(({ rows }) => rows.length > 0)

    /** What becomes of each lease's part. */
    const written = (leases: ReadonlyArray<Held>, jobs: ReadonlyArray<Job>) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const [first] = leases
        if (first !== undefined && isAtOnce(first, jobs))
          return [[first, yield* writeAtOnce(first, jobs, now)] as const]
        return yield* sql.withTransaction(
          Effect.zipRight(
            jobs.some(({ contents }) => contents.length > 0) ? Dialect.hold(sql, ContentTable.lock) : Effect.void,
            Effect.forEach(leases, (held) =>
              Effect.map(
                writeHeld(
                  held,
                  jobs.filter((job) => job.held === held),
                  now
                ),
                (outcome) => [held, outcome] as const
              )
            )
          )
        )
      })

    const commitAll = (jobs: ReadonlyArray<Job>) =>
      Effect.gen(function* () {
        const leases = [...new Set(jobs.map(({ held }) => held))]
        const attempt = Effect.suspend(() => {
          const isAgain = leases.some(({ isDoubtful }) => isDoubtful)
          return Effect.mapError(failure.writing(written(leases, jobs)), (error) => {
            for (const held of leases) held.isDoubtful = true
            // The commit before succeeded just now, after we looked.
            return isAgain && SqlFailure.isContradiction(error)
              ? new StoreError.StoreUnwritable({ ...error, passing: true })
              : error
          })
        })
        const outcome = yield* (isFence ? Effect.retry(attempt, again) : attempt).pipe(
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
          held.summary = written.right.summary
          held.audited = written.right.audited ?? held.audited
          tell(held.root)
        }
        return jobs.map(({ held }) => {
          const written = outcome.right.get(held)
          return written !== undefined && Either.isLeft(written) ? Exit.fail(written.left) : Exit.void
        })
      })

    /** Fences stand alone: a session whose commit waits or fails does not do that to the others. */
    const commitApart = (jobs: ReadonlyArray<Job>) =>
      Effect.map(
        Effect.forEach(
          new Set(jobs.map(({ held }) => held)),
          (held) => {
            const ours = jobs.filter((job) => job.held === held)
            return Effect.map(commitAll(ours), (exits) => exits.map((exit, index) => [ours[index], exit] as const))
          },
          { concurrency: "unbounded" }
        ),
        (outcomes) => {
          const exits = new Map(outcomes.flat())
          return jobs.map((job) => exits.get(job) ?? Exit.void)
        }
      )

    const write = yield* WriteQueue.make<Job, StoreError.StoreUnwritable | StoreError.SessionTakenOver>({
      commit: isFence ? commitApart : commitAll,
      capacity: 256,
      closed: () => new StoreError.StoreUnwritable({ store: name, reason: "it is closed" })
    })

    const acquire = (root: SessionId, token: string) =>
      Effect.gen(function* () {
        yield* Dialect.hold(sql, root)
        const now = yield* Clock.currentTimeMillis
        const before = isFence ? undefined : yield* requireUnlocked(root, now)
        const row = { root, token, pid: locker.pid, host: locker.host, heartbeat: isFence ? SessionLease.silent : now }
        // Of two processes that saw no lock, one loses here, whatever isolation the client has. So does the one that
        // saw a silent holder, which has sent a heartbeat meanwhile.
        const unchanged = sql`WHERE assent_lock.token = ${before?.token ?? ""}
          AND assent_lock.heartbeat = ${before?.heartbeat ?? 0}`
        const taken = yield* sql`INSERT INTO assent_lock ${sql.insert(row)} ON CONFLICT (root) DO UPDATE SET
          token = excluded.token, pid = excluded.pid, host = excluded.host, heartbeat = excluded.heartbeat
          ${isFence ? sql`` : unchanged} RETURNING token`
        if (taken.length === 0) return yield* lockedBy(root, row)
        const summary = (yield* summaries.get(root)) ?? SessionSummary.empty(root, now)
        const held: Held = {
          root,
          token,
          summary,
          isDoubtful: false,
          hasPut: false,
          isShared: isFence || (before !== undefined && SessionLease.isGivenBack(before)),
          parking: undefined,
          audited: undefined
        }
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
        const before = yield* lockOf(root)
        yield* requireGone(root, at)
        const row = { request: requestId, root, answer: JSON.stringify(answer), author: by, at }
        const kept =
          yield* sql`INSERT INTO assent_answer ${sql.insert(row)} ON CONFLICT (request) DO NOTHING RETURNING request`
        if (kept.length > 0 && (isFence || (before !== undefined && SessionLease.isGivenBack(before)))) {
          const row = { root, token: SessionLease.left, pid: 0, host: locker.host, heartbeat: 0 }
          yield* sql`INSERT INTO assent_lock ${sql.insert(row)}`
        }
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

    /** A session of which something is stored, and which fences hold, says what is to be done with it next. */
    const giveBack = ({ isShared, parking, root, summary, token }: Held) => {
      const mine = sql`WHERE root = ${root} AND token = ${token}`
      if (!isShared || summary.entries === 0) return sql`DELETE FROM assent_lock ${mine}`
      // A turn in which nothing is asked has to go on, whatever its process makes of it.
      if (parking === undefined || (summary.inTurn && summary.open.length === 0))
        return sql`UPDATE assent_lock SET token = ${SessionLease.left}, pid = 0, heartbeat = 0 ${mine}`
      const { within } = parking
      const due = within === undefined ? sql`0` : sql`${clock} + ${Math.max(0, Math.ceil(within))}`
      return sql`UPDATE assent_lock SET token = ${SessionLease.parked}, pid = ${due}, heartbeat = 0 ${mine}`
    }

    const leaseOf = (held: Held): SessionStore.Lease => ({
      rootSessionId: held.root,
      append: Effect.fn("SessionStore.append")(function* (drafts) {
        if (drafts.length === 0) return
        // An agent notes with its next entry that it was resumed, at the latest when it ends.
        if (drafts.some(({ entry }) => entry._tag !== "SessionResumed")) held.parking = undefined
        const at = yield* Clock.currentTimeMillis
        const rows = yield* Either.mapLeft(
          EntryRow.encode(drafts, at),
          (reason) => new StoreError.StoreUnwritable({ store: name, reason })
        )
        yield* write({
          held,
          rows,
          written: drafts.map((draft) => ({ ...draft, at: draft.at ?? at })),
          contents: JournalEntry.contentsIn(drafts.map(({ entry }) => entry)),
          decisions: drafts.flatMap(({ decisions = [] }) => decisions),
          settles: drafts.flatMap(({ entry }) => (entry._tag === "InteractionSettled" ? [entry.requestId] : []))
        })
      }),
      ...(audits === undefined
        ? {}
        : { decide: (decisions) => write({ held, decisions, rows: [], written: [], contents: [], settles: [] }) }),
      putContent: (content) => put(held, content)
    })

    return {
      name,
      audit: audits,
      lock: (root) =>
        Effect.suspend(() => {
          const token = SessionLease.tokenOf(ids.unsafeNext("ses"), locker)
          const held = SessionLease.hold(token, {
            acquire: acquire(root, token),
            // A failed heartbeat is made up for by the next one, or by a write.
            beat: isFence
              ? undefined
              : (held) =>
                  Effect.orElseSucceed(
                    failure.writing(Effect.flatMap(Clock.currentTimeMillis, (now) => beat(held, now))),
                    () => true
                  ),
            release: (held) => {
              if (own.get(root) === held) own.delete(root)
              return Effect.zipRight(
                held.hasPut ? Effect.ignore(failure.writing(changing(contents.release(root, token)))) : Effect.void,
                Effect.ignore(failure.writing(giveBack(held)))
              )
            }
          })
          return Effect.map(held, (held) => {
            own.set(root, held)
            return leaseOf(held)
          })
        }),
      load: Effect.fn("SessionStore.load")(function* (root) {
        return { rootSessionId: root, entries: yield* read(root), answers: yield* answersOf(root) }
      }),
      read: Effect.fn("SessionStore.read")(read),
      ...order,
      park: (root, within) =>
        Effect.sync(() => {
          const held = own.get(root)
          if (held !== undefined) held.parking = { within }
        }),
      waiting: summaries.waiting,
      awake: Effect.map(
        failure.reading(
          sql<
            Pick<EntryRow.EntryRow, "root">
          >`SELECT root FROM assent_lock WHERE token <> ${sql.literal(`'${SessionLease.parked}'`)}
              AND heartbeat <= ${clock} - ${SessionLease.silentAfter}
              AND EXISTS (SELECT 1 FROM assent_session WHERE assent_session.root = assent_lock.root)
            UNION ALL SELECT root FROM assent_lock
              WHERE token = ${sql.literal(`'${SessionLease.parked}'`)} AND pid > 0 AND pid <= ${clock}`
        ),
        (rows) => rows.map(({ root }) => root)
      ),
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
      tally: Effect.fn("SessionStore.tally")(summaries.tally),
      openRequests: Effect.fn("SessionStore.openRequests")(function* (root) {
        const waiting: Array<SessionStore.WaitingRequest> = []
        // Thousands may wait: not a statement for each.
        for (const some of EntryRow.pages(yield* summaries.open(root))) {
          const roots = some.map(({ rootSessionId }) => rootSessionId)
          const ids = some.flatMap(({ open }) => open.map(({ requestId }) => requestId))
          const about = yield* failure.reading(
            sql<EntryRow.Stored & Pick<EntryRow.EntryRow, "root">>`SELECT root, seq, session, at, body FROM assent_entry
              WHERE ${sql.in("root", roots)} AND tag IN ('InteractionRaised', 'VoteGiven') AND ${sql.in("request", ids)}
              ORDER BY seq`
          )
          const answers = yield* failure.reading(
            sql<AnswerRow & Pick<EntryRow.EntryRow, "root">>`SELECT root, request, answer, author, at FROM assent_answer
              WHERE ${sql.in("root", roots)} ORDER BY at, request`
          )
          const [aboutOf, answersOf] = [byRoot(about), byRoot(answers)]
          for (const one of some) {
            const entries = yield* EntryRow.decodeRows(one.rootSessionId, aboutOf(one.rootSessionId))
            const given = yield* Effect.forEach(answersOf(one.rootSessionId), (row) => storedAnswer(failure, row))
            waiting.push(...SessionStore.waitingIn(one, entries, given))
          }
        }
        return waiting.sort(SessionStore.byAge)
      }),
      getContent: Effect.fn("SessionStore.getContent")(function* (sha256) {
        return (yield* failure.reading(contents.get(sha256))) ?? (yield* new StoreError.ContentUnknown({ sha256 }))
      }),
      delete: (root) =>
        Effect.gen(function* () {
          yield* Dialect.hold(sql, ContentTable.lock, root)
          const summary = yield* summaries.get(root)
          if (summary === undefined) return yield* new StoreError.SessionUnknown({ rootSessionId: root })
          // The lock goes first: a holder that comes back waits for it, and then has none to write with.
          const now = yield* Clock.currentTimeMillis
          yield* requireGone(root, now)
          for (const table of ["assent_entry", "assent_answer"])
            yield* sql`DELETE FROM ${sql(table)} WHERE root = ${root}`
          yield* summaries.remove(summary, now)
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
    } satisfies FencedStore
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
  /** The end of its audit as committed, when it is known. */
  audited: AuditChain.Link | undefined
  /** It has put content, so that it may hold some. */
  hasPut: boolean
  /** Processes that hold by fences look after the session. */
  readonly isShared: boolean
  /** It is to be parked when it is given back. */
  parking: { readonly within: number | undefined } | undefined
}

/** One append. */
interface Job {
  readonly held: Held
  readonly rows: ReadonlyArray<EntryRow.Unnumbered>
  readonly written: ReadonlyArray<Omit<JournalEntry.Written, "seq">>
  /** Digests of the content that they refer to. */
  readonly contents: ReadonlyArray<string>
  /** What the audit has of them. */
  readonly decisions: ReadonlyArray<AuditRecord.Decision>
  /** Requests that they settle. */
  readonly settles: ReadonlyArray<RequestId>
}

/** What a lease's journal comes to with these jobs. */
const summaryAfter = ({ summary }: Held, jobs: ReadonlyArray<Job>) =>
  SessionSummary.after(
    summary,
    jobs.flatMap(({ written }) => written).map((entry, index) => ({ ...entry, seq: summary.entries + index + 1 }))
  )

interface AnswerRow {
  readonly request: RequestId
  readonly answer: string
  readonly author: string
  readonly at: number
}

/**
 * A node whose connection is cut writes the same again on another one. What comes too late is refused by the fence. A running
 * session repeats it for as long as it lives; others hear of the failure.
 */
const again = {
  while: ({ passing }: StoreError.StoreUnwritable) => passing === true,
  schedule: Schedule.upTo(Schedule.spaced("250 millis"), "10 seconds")
}

const refused = (
  why: StoreError.SessionTakenOver | StoreError.StoreUnwritable
): Either.Either<Committed, StoreError.SessionTakenOver | StoreError.StoreUnwritable> => Either.left(why)

/** A lease after a commit. */
interface Committed {
  readonly summary: SessionSummary.SessionSummary
  /** Undefined when nothing was decided. */
  readonly audited: AuditChain.Link | undefined
}

const isOneStatement = (rows: number): boolean => rows <= EntryRow.page

/** The rows of each session. */
const byRoot = <Row extends { readonly root: SessionId }>(rows: ReadonlyArray<Row>) => {
  const found = new Map<SessionId, Array<Row>>()
  for (const row of rows) {
    const own = found.get(row.root)
    if (own === undefined) found.set(row.root, [row])
    else own.push(row)
  }
  return (root: SessionId): ReadonlyArray<Row> => found.get(root) ?? []
}

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
