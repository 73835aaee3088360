/**
 * Content in a SQL database: the bytes once, and who wants them.
 *
 * ```
 *  assent_content    sha256, bytes
 *  assent_reference  root, sha256, token      no token: an entry refers to it; a token: that lease holds it
 * ```
 *
 * Content is there exactly as long as a reference to it is: both are changed in one transaction, and whoever changes
 * them holds {@link lock} before anything else. So a deletion never takes away what another session has just put.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import * as SessionLease from "../journal/SessionLease.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as Dialect from "./Dialect.js"

/** What whoever changes content holds: see `Dialect.hold`. */
export const lock = "assent_content"

export interface ContentTable {
  /** Undefined when there is none. */
  readonly get: (sha256: string) => Effect.Effect<Uint8Array | undefined, SqlError>
  /** Keeps content for a lease. */
  readonly put: (content: SessionStore.Content, root: SessionId, token: string) => Effect.Effect<void, SqlError>
  /** The entries of the session refer to it from now on, and the lease need not hold it. Yields a digest that is missing. */
  readonly refer: (
    root: SessionId,
    token: string,
    digests: ReadonlyArray<string>
  ) => Effect.Effect<string | undefined, SqlError>
  /** What this lease holds. */
  readonly release: (root: SessionId, token: string) => Effect.Effect<void, SqlError>
  /** What earlier leases of the session held. */
  readonly releaseOthers: (root: SessionId, token: string) => Effect.Effect<void, SqlError>
  readonly isHeld: (root: SessionId) => Effect.Effect<boolean, SqlError>
  /** The session is gone. */
  readonly forget: (root: SessionId) => Effect.Effect<void, SqlError>
  /** Drops what leases held whose process is gone. Such a lease ends: its process must not go on without the content. */
  readonly sweep: (locker: SessionLease.Process, now: number) => Effect.Effect<void, SqlError>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (sql: SqlClient.SqlClient): ContentTable => {
  /** Drops the content that these references were the last to. */
  const dropped = (references: Effect.Effect<ReadonlyArray<Reference>, SqlError>) =>
    Effect.flatMap(references, (gone) =>
      Effect.forEach(
        new Set(gone.map(({ sha256 }) => sha256)),
        (sha256) =>
          sql`DELETE FROM assent_content WHERE sha256 = ${sha256}
            AND NOT EXISTS (SELECT 1 FROM assent_reference WHERE sha256 = ${sha256})`,
        { discard: true }
      )
    )
  const release = (root: SessionId, token: string) =>
    dropped(sql<Reference>`DELETE FROM assent_reference WHERE root = ${root} AND token = ${token} RETURNING sha256`)
  const refer = (root: SessionId, sha256: string, token: string) =>
    sql`INSERT INTO assent_reference ${sql.insert({ root, sha256, token })} ON CONFLICT DO NOTHING`
  // A process that writes at this moment is not gone, and it waits for what is held here.
  const unlessBusy = sql.literal(Dialect.of(sql) === "pg" ? "FOR UPDATE SKIP LOCKED" : "")

  return {
    get: (sha256) =>
      Effect.map(
        sql<{ readonly bytes: ArrayBuffer }>`SELECT bytes FROM assent_content WHERE sha256 = ${sha256}`,
        // One client gives a buffer, the other a view of one.
        ([row]) => row && new Uint8Array(row.bytes)
      ),
    put: ({ bytes, sha256 }, root, token) =>
      Effect.zipRight(
        sql`INSERT INTO assent_content ${sql.insert({ sha256, bytes })} ON CONFLICT (sha256) DO NOTHING`,
        refer(root, sha256, token)
      ),
    refer: (root, token, digests) =>
      Effect.gen(function* () {
        for (const sha256 of digests) {
          const found = yield* sql`SELECT 1 FROM assent_content WHERE sha256 = ${sha256}`
          if (found.length === 0) return sha256
        }
        for (const sha256 of digests) {
          yield* refer(root, sha256, "")
          yield* sql`DELETE FROM assent_reference WHERE root = ${root} AND sha256 = ${sha256} AND token = ${token}`
        }
        return undefined
      }),
    release,
    releaseOthers: (root, token) =>
      dropped(
        sql<Reference>`DELETE FROM assent_reference WHERE root = ${root} AND token <> '' AND token <> ${token}
          RETURNING sha256`
      ),
    isHeld: (root) =>
      Effect.map(
        sql`SELECT 1 FROM assent_reference WHERE root = ${root} AND token <> '' LIMIT 1`,
        (rows) => rows.length > 0
      ),
    forget: (root) => dropped(sql<Reference>`DELETE FROM assent_reference WHERE root = ${root} RETURNING sha256`),
    sweep: (locker, now) =>
      Effect.gen(function* () {
        const held = yield* sql<Held>`
          SELECT DISTINCT r.root, r.token AS holder, l.token, l.pid, l.host, l.heartbeat
          FROM assent_reference r LEFT JOIN assent_lock l ON l.root = r.root AND l.token = r.token WHERE r.token <> ''`
        for (const { heartbeat, holder, host, pid, root, token } of held) {
          if (token !== null) {
            const row = { token, pid: Number(pid), host: host ?? "", heartbeat: Number(heartbeat) }
            if (SessionLease.isHeld(row, locker, now)) continue
            const ended = yield* sql`DELETE FROM assent_lock WHERE root IN
              (SELECT root FROM assent_lock WHERE root = ${root} AND token = ${token} AND heartbeat = ${row.heartbeat} ${unlessBusy})
              RETURNING root`
            if (ended.length === 0) continue
          }
          yield* release(root, holder)
        }
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Reference {
  readonly sha256: string
}

/** What a lease holds, and its lock, if it has that still. */
interface Held {
  readonly root: SessionId
  readonly holder: string
  readonly token: string | null
  readonly pid: number | string | null
  readonly host: string | null
  readonly heartbeat: number | string | null
}
