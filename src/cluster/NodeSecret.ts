/**
 * The secret that the nodes of a cluster share. It is in their database, and no connection carries it: a node that calls
 * another one sends an HMAC of the time and of the address that it calls.
 *
 * ```
 *   first node ─► assent_node_secret ◄─ every node reads it again and again
 *   caller ─ HMAC(secret, time, address of the called node) ─► called node: the same, and of this half minute?
 * ```
 *
 * A proof for one address is worth nothing at another. So a program that listens where a node was does not become a node.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import { randomBytes, timingSafeEqual } from "node:crypto"
import * as Digest from "../core/Digest.js"
import * as Dialect from "../store/Dialect.js"

export interface NodeSecret {
  /** Reads the secret again. */
  readonly read: Effect.Effect<void, SqlError>
  /** What a call to the node of this address carries. */
  readonly proofFor: (address: string) => string
  /** Whether the secret behind a call to this address counts still; undefined if it does not count now. */
  readonly check: (proof: string, address: string) => (() => boolean) | undefined
}

/** Milliseconds after which the former secret counts no more, and in which a proof has to arrive. */
export const expiring = 30_000

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Makes the secret if the database has none. Of nodes that start at once, one makes it. */
export const make = (sql: SqlClient.SqlClient): Effect.Effect<NodeSecret, SqlError> =>
  Effect.gen(function* () {
    // That of the database.
    const clock = yield* Effect.clock
    const now = () => clock.unsafeCurrentTimeMillis()
    let secrets: ReadonlyArray<Secret> = []
    const select = Effect.map(
      sql<Row>`SELECT number, secret, made FROM assent_node_secret ORDER BY number DESC`,
      (rows) => rows.map(({ made, number, secret }) => ({ number: Number(number), secret, made: Number(made) }))
    )
    const first = sql`INSERT INTO assent_node_secret (number, secret, made)
      SELECT 1, ${fresh()}, ${sql.literal(Dialect.clock.pg)} WHERE NOT EXISTS (SELECT 1 FROM assent_node_secret)
      ON CONFLICT (number) DO NOTHING`
    const read = Effect.gen(function* () {
      const found = yield* select
      secrets = found.length > 0 ? found : yield* Effect.zipRight(first, select)
    })
    yield* read
    return {
      read,
      proofFor: (address) => {
        const time = now()
        const secret = secrets.find(({ made }) => made <= time - settling) ?? secrets.at(-1)
        return secret === undefined ? "" : `${time}.${macOf(secret, time, address)}`
      },
      check: (proof, address) => {
        const [, digits, mac] = /^(\d{1,15})\.([0-9a-f]{64})$/.exec(proof) ?? []
        const time = Number(digits)
        if (mac === undefined || Math.abs(now() - time) > expiring) return undefined
        const secret = counting(secrets, now()).find((one) => isSame(macOf(one, time, address), mac))
        return secret && (() => counting(secrets, now()).some(({ number }) => number === secret.number))
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Makes a new secret. Of two rotations at once, one counts. */
export const rotate = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> => {
  const now = sql.literal(Dialect.clock.pg)
  return Effect.zipRight(
    sql`INSERT INTO assent_node_secret (number, secret, made)
      SELECT coalesce(max(number), 0) + 1, ${fresh()}, ${now} FROM assent_node_secret ON CONFLICT (number) DO NOTHING`,
    sql`DELETE FROM assent_node_secret WHERE number <
      (SELECT max(number) FROM assent_node_secret WHERE made <= ${now} - ${sql.literal(String(expiring))})`
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds in which every node reads the secret: a new one is sent after them. */
const settling = 15_000

interface Secret {
  readonly number: number
  readonly secret: string
  /** Milliseconds since the epoch. */
  readonly made: number
}

type Row = { readonly [name in "made" | "number"]: number | string } & Pick<Secret, "secret">

const fresh = () => randomBytes(32).toString("base64url")

const macOf = ({ secret }: Secret, time: number, address: string) =>
  Digest.hmacSha256(secret, `node ${time} ${address}`)

const isSame = (one: string, other: string) => timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** The newest, and each one as long as nodes may send it: they read its follower soon. */
const counting = (secrets: ReadonlyArray<Secret>, now: number): ReadonlyArray<Secret> =>
  secrets.filter((_, index) => {
    const follower = secrets[index - 1]
    return follower === undefined || follower.made > now - expiring
  })
