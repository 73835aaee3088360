/**
 * The keys of a cluster, in its database: who calls, for which tenant, and what they may do. Of a key's text its SHA-256 is
 * kept, and nothing else.
 *
 * ```
 *   request ─► key ─► SHA-256 ─► a node's memory, at most 10 seconds old ─► assent_key, assent_tenant ─► Person
 * ```
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Cache from "effect/Cache"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { randomBytes } from "node:crypto"
import * as Digest from "../core/Digest.js"
import * as NodeProcess from "../host/NodeProcess.js"
import * as Api from "../http/Api.js"
import type { StoreUnusable, StoreUnwritable } from "../journal/StoreError.js"
import * as PostgresConnection from "../store/PostgresConnection.js"
import * as PostgresStore from "../store/PostgresStore.js"
import * as SqlFailure from "../store/SqlFailure.js"
import * as NodeSecret from "./NodeSecret.js"

/** A key without its text. */
export interface Key {
  readonly id: string
  readonly tenant: string
  /** Who answers with it. */
  readonly subject: string
  readonly roles: ReadonlyArray<string>
  readonly may: ReadonlyArray<Api.Permit>
  /** Milliseconds since the epoch. */
  readonly created: number
  readonly revoked: number | undefined
}

export interface Keys {
  /** Makes a key. Its text is not kept. */
  readonly add: (
    key: Pick<Key, "may" | "roles" | "subject" | "tenant">
  ) => Effect.Effect<{ readonly key: Key; readonly text: Redacted.Redacted }, StoreUnwritable>
  /** Oldest first, also those that were revoked. */
  readonly list: Effect.Effect<ReadonlyArray<Key>, StoreUnusable>
  /** Yields the key; undefined if there is none, or if it was revoked before. */
  readonly revoke: (id: string) => Effect.Effect<Key | undefined, StoreUnwritable>
  readonly limits: (tenant: string) => Effect.Effect<Api.Limits, StoreUnusable>
  /** Of several tenants, by their names. What is missing has no limits. */
  readonly limitsOf: (tenants: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Api.Limits>, StoreUnusable>
  readonly limit: (tenant: string, limits: Api.Limits) => Effect.Effect<void, StoreUnwritable>
  /** Makes a new secret for the nodes among themselves. */
  readonly rotateNodeSecret: Effect.Effect<void, StoreUnwritable>
  /** Whether there was ever a key: else the token of the server counts. */
  readonly areUsed: Effect.Effect<boolean, StoreUnusable>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The keys of this database, which gets its tables if they are missing. */
export const open = (url: Redacted.Redacted): Effect.Effect<Keys, StoreUnusable | StoreUnwritable, Scope.Scope> =>
  Effect.gen(function* () {
    const name = PostgresStore.nameOf(url)
    const failure = SqlFailure.make(name)
    const sql = yield* failure.reading(PostgresConnection.open({ url, maxConnections: 1 }))
    const process = { ...NodeProcess.self, holding: "fence" as const }
    yield* Effect.provideService(PostgresStore.over({ process, name }), SqlClient.SqlClient, sql)
    return make(sql, failure)
  })

export const make = (sql: SqlClient.SqlClient, failure: SqlFailure.SqlFailure): Keys => ({
  add: ({ may, roles, subject, tenant }) =>
    Effect.gen(function* () {
      const created = yield* Clock.currentTimeMillis
      const text = `assent_${randomBytes(24).toString("base64url")}`
      const key: Key = {
        id: `key_${randomBytes(5).toString("hex")}`,
        tenant,
        subject,
        roles,
        may,
        created,
        revoked: undefined
      }
      const row = {
        id: key.id,
        digest: Digest.sha256(text),
        tenant,
        subject,
        roles: JSON.stringify(roles),
        may: JSON.stringify(may),
        created
      }
      yield* failure.writing(sql`INSERT INTO assent_key ${sql.insert(row)}`)
      return { key, text: Redacted.make(text) }
    }),
  list: Effect.map(failure.reading(sql<Row>`SELECT * FROM assent_key ORDER BY created, id`), (rows) => rows.map(keyOf)),
  revoke: (id) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const [row] = yield* failure.writing(
        sql<Row>`UPDATE assent_key SET revoked = ${now} WHERE id = ${id} AND revoked IS NULL RETURNING *`
      )
      return row && keyOf(row)
    }),
  limits: (tenant) =>
    Effect.map(failure.reading(sql<Limited>`SELECT limits FROM assent_tenant WHERE tenant = ${tenant}`), ([row]) =>
      limitsOf(row?.limits ?? null)
    ),
  limitsOf: (tenants) =>
    Effect.map(
      failure.reading(
        sql<Limited & { readonly tenant: string }>`SELECT tenant, limits FROM assent_tenant
          WHERE ${sql.in("tenant", tenants)}`
      ),
      (rows) => new Map(rows.map(({ limits, tenant }) => [tenant, limitsOf(limits)]))
    ),
  limit: (tenant, limits) =>
    Effect.asVoid(
      failure.writing(sql`INSERT INTO assent_tenant ${sql.insert({ tenant, limits: JSON.stringify(limits) })}
        ON CONFLICT (tenant) DO UPDATE SET limits = excluded.limits`)
    ),
  rotateNodeSecret: failure.writing(NodeSecret.rotate(sql)),
  areUsed: Effect.map(
    failure.reading(sql<{ readonly used: boolean }>`SELECT EXISTS (SELECT 1 FROM assent_key) AS used`),
    ([row]) => row?.used === true
  )
})

/**
 * Knows callers by their keys. As long as there is no key in the database, `otherwise` knows them. A key that is revoked
 * counts nowhere after 10 seconds, and its streams end within 30.
 */
export const authentication = (
  sql: SqlClient.SqlClient,
  otherwise: Api.Authentication["Type"]
): Effect.Effect<Api.Authentication["Type"]> =>
  Effect.map(
    Cache.makeWith({
      capacity: remembered,
      lookup: (digest: string) =>
        Effect.map(
          sql<Found>`SELECT k.*, t.limits, EXISTS (SELECT 1 FROM assent_key) AS used
            FROM (SELECT 1) one LEFT JOIN assent_key k ON k.digest = ${digest}
              LEFT JOIN assent_tenant t ON t.tenant = k.tenant`,
          ([row]) => row
        ),
      timeToLive: Exit.match({
        onFailure: () => Duration.zero,
        onSuccess: (row) => (row?.id == null ? afterNone : afterKey)
      })
    }),
    (known) => ({
      token: (given) =>
        Effect.flatMap(
          Effect.mapError(known.get(Digest.sha256(Redacted.value(given))), () => unasked),
          (row): ReturnType<Api.Authentication["Type"]["token"]> => {
            if (row === undefined || !row.used) return otherwise.token(given)
            if (row.id === null) return refused("The key is missing or wrong")
            const { may, revoked, roles, subject, tenant } = keyOf(row)
            if (revoked !== undefined) return refused("This key was revoked")
            return Effect.succeed({ name: subject, roles, tenant, may, limits: limitsOf(row.limits) })
          }
        )
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Keys that a node remembers. */
const remembered = 10_000

const afterKey = Duration.seconds(10)

/** A key that was just made counts soon. */
const afterNone = Duration.seconds(1)

interface Row {
  readonly id: string
  readonly tenant: string
  readonly subject: string
  readonly roles: string
  readonly may: string
  readonly created: number | string
  readonly revoked: number | string | null
}

interface Limited {
  readonly limits: string | null
}

type Found = { readonly used: boolean } & Limited & (Row | { readonly id: null })

const keyOf = ({ created, id, may, revoked, roles, subject, tenant }: Row): Key => ({
  id,
  tenant,
  subject,
  roles: decodeRoles(roles),
  may: decodeMay(may),
  created: Number(created),
  revoked: revoked === null ? undefined : Number(revoked)
})

// What is damaged permits nothing.
const listOf = <A>(member: Schema.Schema<A>) => {
  const decode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(member)))
  return (text: string): ReadonlyArray<A> => {
    const found = decode(text)
    return found._tag === "Some" ? found.value : []
  }
}
const decodeRoles = listOf(Schema.String)
const decodeMay = listOf(Api.Permit)

const decodeLimits = Schema.decodeUnknownOption(Schema.parseJson(Api.Limits))

/** Limits that are damaged permit nothing. */
const limitsOf = (text: string | null): Api.Limits => {
  if (text === null) return {}
  const found = decodeLimits(text)
  return found._tag === "Some" ? found.value : { sessions: 0, turns: 0, tokens: 0, requests: 0 }
}

const refused = (why: string) =>
  new Api.Unauthorized({ message: `${why}. Send a key that counts as "Authorization: Bearer …".` })

const unasked = new Api.Unavailable({
  message: "The database does not say whose key this is. Try again in a moment."
})
