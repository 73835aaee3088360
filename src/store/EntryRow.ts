/** One entry of a journal as a row of the database. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SessionId } from "../core/Id.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as StoreError from "../journal/StoreError.js"
import type * as Dialect from "./Dialect.js"

/** A row before it has its sequence number. A type, not an interface: statements take records. */
export type Unnumbered = {
  readonly session: SessionId
  readonly at: number
  readonly tag: string
  /** The request id of an entry about an interaction. */
  readonly request: string | null
  readonly body: string
}

export type EntryRow = Unnumbered & { readonly root: SessionId; readonly seq: number }

/** The columns that are read back. */
export type Stored = Pick<EntryRow, "seq" | "session" | "at" | "body">

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** A string on the left says which entry has no JSON, and why. */
export const encode = (
  drafts: ReadonlyArray<JournalEntry.Draft>,
  at: number
): Either.Either<ReadonlyArray<Unnumbered>, string> =>
  Either.all(drafts.map((draft) => encodeOne(draft, draft.at ?? at)))

/** Numbers rows that follow `last`. */
export const number = (rows: ReadonlyArray<Unnumbered>, root: SessionId, last: number): ReadonlyArray<EntryRow> =>
  rows.map((row, index) => ({ root, seq: last + index + 1, ...row }))

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Rows of one statement: SQLite binds 32,766 values in one. */
export const page = 1_000

/** As many rows at once as one statement can bind. */
export const pages = <Row>(rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<Row>> =>
  Array.from({ length: Math.ceil(rows.length / page) }, (_, index) => rows.slice(index * page, (index + 1) * page))

/**
 * The rows of a journal behind a `seq`, in their order.
 *
 * SQLite gives them in few texts: its client makes an object of every row, which takes twice as long as all the rest.
 */
export const ofJournal = (
  sql: SqlClient.SqlClient,
  dialect: Dialect.Dialect,
  root: SessionId,
  { after = 0, limit = Infinity }: SessionStore.Behind = {}
): Effect.Effect<ReadonlyArray<Stored>, SqlError> => {
  const wanted = sql`root = ${root} AND seq > ${after} AND seq <= ${Math.min(after + limit, Number.MAX_SAFE_INTEGER)}`
  return dialect === "sqlite"
    ? Effect.map(
        sql<{ readonly rows: string }>`SELECT json_group_array(json_array(seq, session, at, body)) AS rows
          FROM assent_entry WHERE ${wanted} GROUP BY seq / ${sql.literal(String(inText))}`,
        (texts) =>
          texts
            .flatMap(({ rows }) => {
              // What the statement makes.
              const parsed = JSON.parse(rows) as ReadonlyArray<readonly [number, SessionId, number, string]>
              return parsed.map(([seq, session, at, body]) => ({ seq, session, at, body }))
            })
            // A group has no order.
            .sort((a, b) => a.seq - b.seq)
      )
    : sql<Stored>`SELECT seq, session, at, body FROM assent_entry WHERE ${wanted} ORDER BY seq`
}

/** Decodes what follows `after`; a gap is an error. */
export const decodeAll = (
  root: SessionId,
  rows: ReadonlyArray<Stored>,
  after = 0
): Effect.Effect<ReadonlyArray<JournalEntry.Written>, StoreError.JournalUnreadable> => {
  const gap = rows.findIndex(({ seq }, index) => Number(seq) !== after + index + 1)
  return gap < 0
    ? decodeRows(root, rows)
    : Effect.fail(
        new StoreError.JournalUnreadable({ rootSessionId: root, seq: after + gap + 1, reason: "it is missing" })
      )
}

export const decodeRows = (
  root: SessionId,
  rows: ReadonlyArray<Stored>
): Effect.Effect<ReadonlyArray<JournalEntry.Written>, StoreError.JournalUnreadable> =>
  Effect.suspend(() => Either.all(rows.map((row) => decode(root, row))))

export const decode = (
  root: SessionId,
  { at, body, seq, session }: Stored
): Either.Either<JournalEntry.Written, StoreError.JournalUnreadable> =>
  Either.mapBoth(
    Either.flatMap(
      Either.mapLeft(
        Either.try(() => JSON.parse(body) as unknown),
        () => "it is no JSON"
      ),
      JournalEntry.decode
    ),
    {
      onLeft: (reason) => new StoreError.JournalUnreadable({ rootSessionId: root, seq: Number(seq), reason }),
      onRight: (entry) => ({ seq: Number(seq), sessionId: session, at: Number(at), entry })
    }
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Rows in one text: few enough for one string, however long their bodies are. */
const inText = 250

const encodeOne = ({ sessionId, entry }: JournalEntry.Draft, at: number): Either.Either<Unnumbered, string> =>
  Either.flatMap(JournalEntry.encode(entry), (encoded) =>
    Either.mapBoth(
      Either.try(() => JSON.stringify(encoded)),
      {
        onLeft: () => `a ${entry._tag} holds something that JSON cannot say`,
        onRight: (body) => ({ session: sessionId, at, tag: entry._tag, request: requestOf(entry), body })
      }
    )
  )

const requestOf = (entry: JournalEntry.JournalEntry): string | null => {
  if (entry._tag === "InteractionRaised") return entry.request.requestId
  return entry._tag === "InteractionSettled" || entry._tag === "VoteGiven" ? entry.requestId : null
}
