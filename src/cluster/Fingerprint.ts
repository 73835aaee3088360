/**
 * Whether all nodes of a cluster have the same settings: each one writes digests of its own, part by part, beside the others',
 * and looks again and again.
 *
 * ```
 *   parts ─► own row ─► the rows of nodes that are there ─► those that counted before ─► the oldest: the same parts? ─► joins
 * ```
 *
 * The settings of the nodes that take part count. A node with other ones waits until they are gone; the oldest of those that
 * wait counts then.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Schema from "effect/Schema"
import * as Dialect from "../store/Dialect.js"

/** Digests by the names of what they are of, such as `policy`. */
export type Parts = { readonly [part: string]: string }

/** A node that is there, or was a moment ago. */
export interface Row {
  readonly address: string
  readonly parts: Parts
  /** Milliseconds since the epoch; since when it has these parts. */
  readonly since: number
  /** Its parts counted at its last look. */
  readonly counts: boolean
}

/**
 * How nodes prove to each other that they are nodes. Nodes of a version without it have no such part, so the two never call
 * each other.
 */
export const handshake = "handshake"

export interface Fingerprint {
  /** Looks at the others. Yields why this node does not take part, as a sentence; undefined if its parts count. */
  readonly look: Effect.Effect<string | undefined, SqlError>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `parts` are made anew for each look. Closing the scope takes the node's row away. */
export const make = (
  sql: SqlClient.SqlClient,
  address: string,
  parts: Effect.Effect<Parts>
): Effect.Effect<Fingerprint, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = sql.literal(Dialect.clock.pg)
    let known: Parts | undefined
    let seen = 0
    let counts = false
    yield* Effect.addFinalizer(() => Effect.ignore(sql`DELETE FROM assent_node WHERE address = ${address}`))
    return {
      look: Effect.gen(function* () {
        const own = yield* parts
        const [time] = yield* sql<{ readonly now: string }>`SELECT ${clock} AS now`
        const now = Number(time?.now ?? 0)
        // Others may have counted while it stood still.
        const isNew = known === undefined || difference(own, known) !== undefined || now - seen > gone
        if (isNew) counts = false
        known = own
        const row = { address, parts: JSON.stringify(own), since: now, seen: now, counts: counts ? 1 : 0 }
        yield* sql`INSERT INTO assent_node ${sql.insert(row)} ON CONFLICT (address) DO UPDATE SET
          parts = excluded.parts, seen = excluded.seen, counts = excluded.counts,
          since = ${isNew ? sql`excluded.since` : sql`assent_node.since`}`
        seen = now
        const rows =
          yield* sql<Stored>`SELECT address, parts, since, counts FROM assent_node WHERE seen > ${now - gone}`
        const found = judge(rows.map(rowOf), address)
        const isNewlyCounting = found === undefined && !counts
        counts = found === undefined
        if (isNewlyCounting) yield* sql`UPDATE assent_node SET counts = 1 WHERE address = ${address}`
        return found
      })
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Why the node of this address does not take part among these; undefined if it does. */
export const judge = (rows: ReadonlyArray<Row>, address: string): string | undefined => {
  const own = rows.find((row) => row.address === address)
  const counting = rows.filter(({ counts }) => counts)
  const [oldest] = [...(counting.length > 0 ? counting : rows)].sort(
    (a, b) => a.since - b.since || (a.address < b.address ? -1 : 1)
  )
  if (own === undefined || oldest === undefined) return undefined
  const part = difference(own.parts, oldest.parts)
  return part === undefined
    ? undefined
    : `This node differs from ${oldest.address} in its ${part}. It takes no part until all nodes with the settings of ${oldest.address} have ended. ${part === handshake ? "Upgrade all nodes to the same version." : "Give all nodes the same settings."}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds after which a node that says nothing is gone. */
const gone = 15_000

interface Stored {
  readonly address: string
  readonly parts: string
  readonly since: number | string
  readonly counts: number | string
}

/** The first part that is not the same. */
const difference = (one: Parts, other: Parts): string | undefined =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].sort().find((part) => one[part] !== other[part])

const decode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.String })))

const rowOf = ({ address, counts, parts, since }: Stored): Row => {
  const found = decode(parts)
  return {
    address,
    parts: found._tag === "Some" ? found.value : { settings: parts },
    since: Number(since),
    counts: Number(counts) === 1
  }
}
