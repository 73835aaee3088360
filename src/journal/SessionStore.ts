/**
 * The store's port: one journal for each tree of a root session and its children.
 *
 * A process that runs a tree takes its lease and writes through it. An acknowledged `append` survives the process; an
 * unacknowledged one is stored as a whole or not at all.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as AuditArchive from "../audit/AuditArchive.js"
import type * as AuditRecord from "../audit/AuditRecord.js"
import { IdGenerator, type RequestId, type SessionId } from "../core/Id.js"
import {
  Cursor,
  cursorOf,
  Hints,
  knownRequest,
  limitOfAll,
  numbersIn,
  type Appended,
  type Behind,
  type BehindAll,
  type KnownRequest
} from "./AppendLog.js"
import * as JournalEntry from "./JournalEntry.js"
import * as SessionLease from "./SessionLease.js"
import { paged, tallied, type Page, type Place, type Query, type Tally } from "./SessionPage.js"
import * as SessionSummary from "./SessionSummary.js"
import * as StoreError from "./StoreError.js"
import {
  accepts,
  answeredAlready,
  byAge,
  notOpen,
  waitingIn,
  type StoredAnswer,
  type WaitingRequest
} from "./WaitingRequest.js"

export { Cursor, cursorOf, Hints, knownRequest, limitOfAll, numbersIn }
export type { Appended, Behind, BehindAll, KnownRequest }
export { paged, type Page, type Place, type Query }
export { accepts, answeredAlready, byAge, notOpen, waitingIn, type StoredAnswer, type WaitingRequest }

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * The stored data of a tree.
 *
 * @since 0.1.0
 * @category models
 */
export interface Loaded {
  readonly rootSessionId: SessionId
  /** Entries of all sessions of the tree, in the order of writing. */
  readonly entries: ReadonlyArray<JournalEntry.Written>
  readonly answers: ReadonlyArray<StoredAnswer>
}

/**
 * Bytes that entries refer to by their digest.
 *
 * @since 0.1.0
 * @category models
 */
export interface Content {
  /** SHA-256 of the bytes; lower-case hexadecimal. */
  readonly sha256: string
  readonly bytes: Uint8Array
}

/**
 * The right to write one tree's journal, until its scope closes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Lease {
  readonly rootSessionId: SessionId
  /**
   * Writes all entries or none, after all earlier appends. Durable once it returns. Concurrent appends share the cost
   * of reaching the disk. After an interrupt the entries are written or not, never in part.
   *
   * Cancel and shutdown wait for it too, so a store that waits for others, such as a network, should have a timeout of
   * its own. After 15 seconds without an answer the turn fails, and nothing more is written until the answer comes.
   *
   * Content that the entries refer to (`JournalEntry.contentsIn`) is the session's from then on. Entries that refer to
   * content that is not in the store are not written.
   */
  readonly append: (
    drafts: ReadonlyArray<JournalEntry.Draft>
  ) => Effect.Effect<void, StoreError.StoreUnwritable | StoreError.SessionTakenOver>
  /**
   * Present if the store keeps the audit: writes decisions that have no entry, behind all earlier appends. Those that have
   * one come with it, and are written in one step with it (`Draft.decisions`).
   *
   * @internal
   */
  readonly decide?:
    | ((
        decisions: ReadonlyArray<AuditRecord.Decision>
      ) => Effect.Effect<void, StoreError.StoreUnwritable | StoreError.SessionTakenOver>)
    | undefined
  /**
   * Keeps content for entries to come: put first, append then. Durable once it returns. The same bytes are kept once,
   * however many sessions put them.
   *
   * Until an entry refers to it the lease holds it. What no entry refers to when the lease ends is dropped then; when the
   * process died, with the next lease, deletion or content.
   */
  readonly putContent: (
    content: Content
  ) => Effect.Effect<void, StoreError.StoreUnwritable | StoreError.SessionTakenOver>
}

/**
 * Stores journals. Every failure is typed, and says what to do.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** The store's name in messages, such as its file. */
  readonly name: string
  /**
   * The audit of its sessions, if the store keeps it.
   *
   * @internal
   */
  readonly audit?: AuditArchive.Source | undefined
  /**
   * Takes the one lease of a tree, new or not, and releases it with the scope. Lock before loading: from then on
   * nothing changes. A session without an append leaves no trace.
   */
  readonly lock: (
    rootSessionId: SessionId
  ) => Effect.Effect<
    Lease,
    StoreError.SessionLocked | StoreError.StoreUnwritable | StoreError.StoreUnusable,
    Scope.Scope
  >
  readonly load: (
    rootSessionId: SessionId
  ) => Effect.Effect<Loaded, StoreError.SessionUnknown | StoreError.JournalUnreadable | StoreError.StoreUnusable>
  /** The entries of a tree behind a `seq`, for readers that know what came before. */
  readonly read: (
    rootSessionId: SessionId,
    behind?: Behind
  ) => Effect.Effect<
    ReadonlyArray<JournalEntry.Written>,
    StoreError.SessionUnknown | StoreError.JournalUnreadable | StoreError.StoreUnusable
  >
  /**
   * The entries of all sessions behind a place, those of a session in their order. No entry is ever added before a place
   * that was read, also when several processes append at once. Entries of deleted sessions are left out.
   */
  readonly readAll: (
    behind?: BehindAll
  ) => Effect.Effect<ReadonlyArray<Appended>, StoreError.CursorUnknown | StoreError.StoreUnusable>
  /** The place behind all that can be read now. */
  readonly end: Effect.Effect<Cursor, StoreError.StoreUnusable>
  /**
   * Subscribes to hints: the sessions to which any process appends from now on. A hint comes soon after the append, at
   * times twice, and once for several appends. {@link follow} reads with it.
   */
  readonly appends: Effect.Effect<Stream.Stream<SessionId>, never, Scope.Scope>
  /** A request, open or settled, and how it ended; undefined when no session made it. */
  readonly findRequest: (
    requestId: RequestId
  ) => Effect.Effect<KnownRequest | undefined, StoreError.JournalUnreadable | StoreError.StoreUnusable>
  /** All sessions, last used first. What shows or looks for some of them reads a page. */
  readonly list: Effect.Effect<ReadonlyArray<SessionSummary.Listed>, StoreError.StoreUnusable>
  /** A part of that list. {@link paged} makes it of a whole one. */
  readonly page: (query?: Query) => Effect.Effect<Page, StoreError.StoreUnusable>
  /**
   * What the sessions come to whose ids begin so. Default: counted in the list, without those that were deleted.
   *
   * @internal
   */
  readonly tally?: ((prefix: string) => Effect.Effect<Tally, StoreError.StoreUnusable>) | undefined
  /**
   * What the sessions of this store wait for, or one of them; asked first comes first. Those of a session that ended by
   * itself are left out. One that cannot be read fails the whole: ask for the sessions one by one then.
   */
  readonly openRequests: (
    rootSessionId?: SessionId
  ) => Effect.Effect<ReadonlyArray<WaitingRequest>, StoreError.JournalUnreadable | StoreError.StoreUnusable>
  /** The bytes of this digest, as long as a session refers to them or a lease holds them. */
  readonly getContent: (
    sha256: string
  ) => Effect.Effect<Uint8Array, StoreError.ContentUnknown | StoreError.StoreUnusable>
  /** Deletes a tree that no process runs, and the content that no other one refers to. */
  readonly delete: (
    rootSessionId: SessionId
  ) => Effect.Effect<
    void,
    StoreError.SessionUnknown | StoreError.SessionLocked | StoreError.StoreUnwritable | StoreError.StoreUnusable
  >
  /**
   * Stores an encoded answer to an open request of a session that no process runs; it counts when the session is
   * resumed. A lease whose holder is gone ends with it, so that a holder that comes back does not go on without the
   * answer. The first answer wins. Answers to `Auth.*` are secrets and never stored. An answer to a call that a rule
   * reserves is a vote, and refused here: see `SessionVote`. It is kept as it was given, secrets with it, and forgotten
   * with the entry that settles its request.
   */
  readonly answer: (
    requestId: RequestId,
    answer: unknown,
    by: string
  ) => Effect.Effect<
    void,
    | StoreError.AnswerRefused
    | StoreError.SessionLocked
    | StoreError.JournalUnreadable
    | StoreError.StoreUnwritable
    | StoreError.StoreUnusable
  >
}

// -----------------------------------------------------------------------------------------------------------------
// tag
// -----------------------------------------------------------------------------------------------------------------

/**
 * The store of sessions.
 *
 * @since 0.1.0
 * @category services
 */
export class SessionStore extends Context.Tag("assent/journal/SessionStore")<SessionStore, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A store in memory; the result gives the view of one process on it.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory: Effect.Effect<(process: SessionLease.Process) => Service> = Effect.map(IdGenerator, (ids) => {
  const trees = new Map<SessionId, Tree>()
  const contents = new Map<string, Uint8Array>()
  // Unlike that of any other process: a cursor must not be taken for a place in the store that follows this one.
  const log: Log = { mark: ids.unsafeNext("ses"), appends: [], end: 0, hints: new Hints(), deleted: [] }
  return (locker) => memoryOf(trees, contents, log, locker, () => ids.unsafeNext("ses"))
})

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A store that is lost with the process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<SessionStore> = Layer.effect(
  SessionStore,
  Effect.map(makeMemory, (open) => open({ pid: 0, host: "memory", isAlive: () => true }))
)

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * All entries behind a place, and those to come: every entry once, those of a session in their order.
 *
 * An append whose acknowledgement was lost is written again, so its entries may come twice, under the same `seq`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const follow = (
  store: Pick<Service, "appends" | "readAll">,
  after?: Cursor
): Stream.Stream<Appended, StoreError.CursorUnknown | StoreError.StoreUnusable> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      // Before the first read: an append in between is hinted at.
      const hint = yield* Stream.toPull(yield* store.appends)
      let place = after
      const next: Effect.Effect<
        Chunk.Chunk<Appended>,
        Option.Option<StoreError.CursorUnknown | StoreError.StoreUnusable>
      > = Effect.suspend(() =>
        Effect.flatMap(Effect.mapError(store.readAll({ after: place }), Option.some), (found) => {
          const last = found.at(-1)
          if (last === undefined) return Effect.zipRight(hint, next)
          place = last.cursor
          return Effect.succeed(Chunk.unsafeFromArray(found))
        })
      )
      return Stream.repeatEffectChunkOption(next)
    })
  )

/**
 * A stored tree as JSON-like data, for export, with the content that it refers to: `SessionArchive.load` reads both. A
 * string on the left says what cannot be encoded.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toJson = (
  loaded: Loaded & { readonly contents?: ReadonlyArray<Content> | undefined }
): Either.Either<unknown, string> =>
  Either.map(
    Either.all(
      loaded.entries.map(({ seq, sessionId, at, entry }) =>
        Either.map(JournalEntry.encode(entry), (encoded) => ({ seq, sessionId, at, entry: encoded }))
      )
    ),
    (entries) => ({
      version: JournalEntry.version,
      rootSessionId: loaded.rootSessionId,
      entries,
      answers: loaded.answers,
      ...(loaded.contents === undefined || loaded.contents.length === 0
        ? {}
        : {
            contents: loaded.contents.map(({ bytes, sha256 }) => ({ sha256, base64: Encoding.encodeBase64(bytes) }))
          })
    })
  )

/**
 * Why entries are not written that refer to content of this digest; for stores.
 *
 * @since 0.1.0
 * @category constructors
 */
export const contentMissing = (store: string, sha256: string): StoreError.StoreUnwritable =>
  new StoreError.StoreUnwritable({
    store,
    reason: `an entry refers to missing content (${sha256.slice(0, 12)})`,
    remedy: "Attach the file again."
  })

/**
 * What the sessions come to whose ids begin so.
 *
 * @internal
 */
export const tally = (
  store: Pick<Service, "list" | "tally">,
  prefix: string
): Effect.Effect<Tally, StoreError.StoreUnusable> =>
  store.tally?.(prefix) ??
  Effect.zipWith(store.list, Clock.currentTimeMillis, (all, now) => tallied(all, prefix, SessionSummary.dayOf(now)))

/**
 * Whether an append of this lease never waits, so that nobody has to watch how long it takes.
 *
 * @internal
 */
export const isPrompt = ({ append }: Lease): boolean => prompt.has(append)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Appends that never wait. */
const prompt = new WeakSet<Lease["append"]>()

interface Tree {
  entries: Array<JournalEntry.Written>
  summary: SessionSummary.SessionSummary
  lock: SessionLease.Row | undefined
  readonly answers: Map<RequestId, StoredAnswer>
  /** Digests of the content that entries refer to. */
  readonly contents: Set<string>
  /** Digests of the content that the lease holds beside that. */
  held: Set<string>
}

/** What was appended, to all trees. */
interface Log {
  readonly mark: string
  /** Those of trees that were not deleted, in their order. */
  appends: Array<Append>
  /** Number of the last entry that was appended. */
  end: number
  readonly hints: Hints
  /** Summaries of deleted trees that had tokens today. */
  deleted: ReadonlyArray<SessionSummary.SessionSummary>
}

/** Entries that were appended together. Their numbers are consecutive, and so are their `seq`. */
interface Append {
  readonly tree: Tree
  /** Number of its last entry. */
  readonly last: number
  readonly written: ReadonlyArray<JournalEntry.Written>
}

/** All of it runs in synchronous sections, so nothing comes between check and write. */
const memoryOf = (
  trees: Map<SessionId, Tree>,
  contents: Map<string, Uint8Array>,
  log: Log,
  locker: SessionLease.Process,
  newToken: () => string
): Service => {
  const known = (rootSessionId: SessionId): Either.Either<Tree, StoreError.SessionUnknown> => {
    const tree = trees.get(rootSessionId)
    return tree !== undefined && tree.entries.length > 0
      ? Either.right(tree)
      : Either.left(new StoreError.SessionUnknown({ rootSessionId }))
  }
  const unlocked = (
    rootSessionId: SessionId,
    { lock }: Tree,
    now: number
  ): Either.Either<void, StoreError.SessionLocked> => {
    const holder = SessionLease.holderOf(lock, locker, now)
    return lock === undefined || holder === undefined
      ? Either.void
      : Either.left(new StoreError.SessionLocked({ rootSessionId, holder, heartbeat: lock.heartbeat }))
  }
  const at = <A, E>(f: (now: number) => Either.Either<A, E>): Effect.Effect<A, E> =>
    Effect.flatMap(Effect.clock, (clock) => Effect.suspend(() => f(clock.unsafeCurrentTimeMillis())))

  const acquire = (rootSessionId: SessionId, token: string) =>
    at((now) => {
      const tree: Tree = trees.get(rootSessionId) ?? {
        entries: [],
        summary: SessionSummary.empty(rootSessionId, now),
        lock: undefined,
        answers: new Map(),
        contents: new Set(),
        held: new Set()
      }
      return Either.map(unlocked(rootSessionId, tree, now), () => {
        // Of a holder that died.
        tree.held = new Set()
        sweep(now)
        tree.lock = { token, pid: locker.pid, host: locker.host, heartbeat: now }
        trees.set(rootSessionId, tree)
        return tree
      })
    })

  /** Drops what no session refers to and no living lease holds. */
  const sweep = (now: number): void => {
    if (contents.size === 0) return
    const wanted = new Set<string>()
    for (const tree of trees.values()) {
      if (tree.held.size > 0 && SessionLease.holderOf(tree.lock, locker, now) === undefined) {
        tree.held = new Set()
        // A holder that stood still must not go on without what it had put.
        tree.lock = undefined
      }
      for (const sha256 of [...tree.contents, ...tree.held]) wanted.add(sha256)
    }
    for (const sha256 of [...contents.keys()]) if (!wanted.has(sha256)) contents.delete(sha256)
  }

  const leaseOf = (rootSessionId: SessionId, tree: Tree, token: string): Lease => {
    const whileHeld = <A, E>(f: (lock: SessionLease.Row, now: number) => Either.Either<A, E>) =>
      at((now): Either.Either<A, E | StoreError.SessionTakenOver> => {
        const { lock } = tree
        if (lock?.token === token) return f(lock, now)
        const holder = lock === undefined ? {} : { holder: { pid: lock.pid, host: lock.host } }
        return Either.left(new StoreError.SessionTakenOver({ rootSessionId, ...holder }))
      })
    const append: Lease["append"] = (drafts) =>
      whileHeld((lock, now) => {
        const wanted = JournalEntry.contentsIn(drafts.map(({ entry }) => entry))
        const missing = wanted.find((sha256) => !contents.has(sha256))
        if (missing !== undefined) return Either.left(contentMissing(":memory:", missing))
        for (const sha256 of wanted) {
          tree.contents.add(sha256)
          tree.held.delete(sha256)
        }
        const before = tree.entries.length
        const written = drafts.map(({ at = now, entry, sessionId }, index) => ({
          sessionId,
          entry,
          seq: before + index + 1,
          at
        }))
        tree.lock = { ...lock, heartbeat: now }
        tree.summary = SessionSummary.after(tree.summary, written)
        for (const { entry } of written) if (entry._tag === "InteractionSettled") tree.answers.delete(entry.requestId)
        for (const entry of written) tree.entries.push(entry)
        if (written.length > 0) {
          log.end += written.length
          log.appends.push({ tree, last: log.end, written })
          log.hints.tell(rootSessionId)
        }
        return Either.void
      })
    prompt.add(append)
    const putContent: Lease["putContent"] = ({ bytes, sha256 }) =>
      whileHeld((_, now) => {
        sweep(now)
        tree.held.add(sha256)
        // A copy: nobody else may change what is kept.
        if (!contents.has(sha256)) contents.set(sha256, bytes.slice())
        return Either.void
      })
    return { rootSessionId, append, putContent }
  }

  const page = (query?: Query) =>
    at((now): Either.Either<Page> => {
      const known = Array.from(trees.values(), ({ summary }) => summary).filter(({ entries }) => entries > 0)
      const { sessions, ...rest } = paged(known, query)
      return Either.right({
        sessions: sessions.map((summary) =>
          SessionSummary.listed(summary, SessionLease.holderOf(trees.get(summary.rootSessionId)?.lock, locker, now))
        ),
        ...rest
      })
    })

  return {
    name: ":memory:",
    lock: (rootSessionId) =>
      Effect.suspend(() => {
        const token = newToken()
        const held = SessionLease.hold(token, {
          acquire: acquire(rootSessionId, token),
          beat: (tree) =>
            at((now) => {
              if (tree.lock?.token !== token) return Either.right(false)
              tree.lock = { ...tree.lock, heartbeat: now }
              return Either.right(true)
            }),
          release: (tree) =>
            at((now) => {
              if (tree.lock?.token === token) {
                tree.lock = undefined
                tree.held = new Set()
                if (tree.entries.length === 0) trees.delete(rootSessionId)
                sweep(now)
              }
              return Either.void
            })
        })
        return Effect.map(held, (tree) => leaseOf(rootSessionId, tree, token))
      }),
    load: (rootSessionId) =>
      Effect.suspend(() =>
        Either.map(known(rootSessionId), ({ entries, answers }) => ({
          rootSessionId,
          entries: [...entries],
          answers: [...answers.values()]
        }))
      ),
    read: (rootSessionId, { after = 0, limit = Infinity } = {}) =>
      Effect.suspend(() =>
        Either.map(known(rootSessionId), ({ entries }) => entries.slice(after, Math.max(after, after + limit)))
      ),
    readAll: (behind = {}) =>
      Effect.suspend(() => {
        const [place = 0n] = behind.after === undefined ? [] : (numbersIn(behind.after, log.mark, 1) ?? [-1n])
        if (behind.after !== undefined && (place < 0n || place > BigInt(log.end)))
          return new StoreError.CursorUnknown({ cursor: behind.after })
        const after = Number(place)
        const limit = limitOfAll(behind)
        const found: Array<Appended> = []
        for (let at = firstBehind(log.appends, after); found.length < limit; at++) {
          const append = log.appends[at]
          if (append === undefined) break
          const { last, tree, written } = append
          const first = last - written.length + 1
          for (const [index, entry] of written.entries()) {
            if (first + index <= after || found.length >= limit) continue
            const { rootSessionId } = tree.summary
            found.push({ rootSessionId, cursor: cursorOf(log.mark, first + index), written: Either.right(entry) })
          }
        }
        return Effect.succeed(found)
      }),
    end: Effect.sync(() => cursorOf(log.mark, log.end)),
    appends: log.hints.appends,
    findRequest: (requestId) =>
      Effect.sync(() => {
        for (const [rootSessionId, { entries }] of trees) {
          const found = knownRequest(rootSessionId, requestId, entries)
          if (found !== undefined) return found
        }
        return undefined
      }),
    list: Effect.map(page({ limit: Infinity }), ({ sessions }) => sessions),
    tally: (prefix) =>
      Effect.zipWith(page({ limit: Infinity }), Clock.currentTimeMillis, ({ sessions }, now) => {
        const day = SessionSummary.dayOf(now)
        const { tokens, ...rest } = tallied(sessions, prefix, day)
        return { ...rest, tokens: tokens + tallied(log.deleted, prefix, day).tokens }
      }),
    page,
    openRequests: (rootSessionId) =>
      at((now) =>
        Either.right(
          [...trees]
            .filter(([id]) => rootSessionId === undefined || id === rootSessionId)
            .flatMap(([, { answers, entries, lock, summary }]) =>
              waitingIn(
                SessionSummary.listed(summary, SessionLease.holderOf(lock, locker, now)),
                summary.open.length === 0 ? [] : entries,
                [...answers.values()]
              )
            )
            .sort(byAge)
        )
      ),
    delete: (rootSessionId) =>
      at((now) =>
        Either.gen(function* () {
          const tree = yield* known(rootSessionId)
          yield* unlocked(rootSessionId, tree, now)
          // A suspended holder must not write to a deleted tree.
          tree.lock = undefined
          trees.delete(rootSessionId)
          const day = SessionSummary.dayOf(now)
          log.deleted = [...log.deleted, tree.summary].filter((one) => SessionSummary.spentOn(one, day) > 0)
          log.appends = log.appends.filter((append) => append.tree !== tree)
          sweep(now)
        })
      ),
    getContent: (sha256) =>
      Effect.suspend(() => {
        const bytes = contents.get(sha256)
        return bytes === undefined ? new StoreError.ContentUnknown({ sha256 }) : Effect.succeed(bytes.slice())
      }),
    answer: (requestId, answer, by) =>
      at((now) =>
        Either.gen(function* () {
          const tree = [...trees.values()].find(({ summary }) =>
            summary.open.some((open) => open.requestId === requestId)
          )
          const raised = tree?.entries.find(
            ({ entry }) => entry._tag === "InteractionRaised" && entry.request.requestId === requestId
          )
          if (tree === undefined || raised?.entry._tag !== "InteractionRaised")
            return yield* Either.left(notOpen(requestId))
          yield* accepts(raised.entry.request, answer)
          yield* unlocked(tree.summary.rootSessionId, tree, now)
          const first = tree.answers.get(requestId)
          if (first !== undefined) return yield* Either.left(answeredAlready(requestId, first.by))
          // A holder that stood still must not go on without the answer.
          tree.lock = undefined
          tree.answers.set(requestId, { requestId, answer, by, at: now })
        })
      )
  }
}

/** Index of the first append with an entry behind this number. */
const firstBehind = (appends: ReadonlyArray<Append>, after: number): number => {
  let [low, high] = [0, appends.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((appends[middle]?.last ?? 0) <= after) low = middle + 1
    else high = middle
  }
  return low
}
