/** The audit in words: one line for a trail, one line for a record. Lines hold no control characters. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import * as AuditArchive from "./AuditArchive.js"
import { AuditBroken } from "./AuditBroken.js"
import type { AuditRecord, Decided, ForkOf } from "./AuditRecord.js"

/** One line for each trail: session, number of records, first and last time. Nothing is verified. */
export const list = (
  archive: AuditArchive.Archive | AuditArchive.Source
): Effect.Effect<ReadonlyArray<string>, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    return yield* Effect.forEach(yield* AuditArchive.sessions(archive), (sessionId) =>
      Effect.map(AuditArchive.extent(archive, sessionId), (extent) =>
        visible(`${sessionId}  ${extent === undefined ? "gone" : summary(extent)}`)
      )
    )
  })

/** Prints one line for each record of a trail, in batches. Nothing is verified; a line that is no record is marked. */
export const show = (
  archive: AuditArchive.Archive | AuditArchive.Source,
  sessionId: SessionId,
  say: (lines: ReadonlyArray<string>) => Effect.Effect<void>
): Effect.Effect<void, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    let count = 0
    let held: Array<string> = []
    const sayHeld = Effect.suspend(() => {
      const lines = held
      held = []
      return say(lines)
    })
    const isThere = yield* AuditArchive.peekEach(archive, sessionId, (record) => {
      count++
      held.push(record === undefined ? `${number(count)}  not a record` : line(record))
      return held.length < together ? Effect.void : sayHeld
    })
    if (!isThere) {
      const { trail } = (yield* AuditArchive.sourceOf(archive)).files(sessionId)
      return yield* new AuditBroken({ file: trail, problem: "missing" })
    }
    yield* sayHeld
  })

/** Lines printed at once. */
const together = 200

/** The report on a verified trail: the first line is the verdict, then remarks for its readers. */
export const verdict = ({ keyed, last, open, reopened, sessionId }: AuditArchive.Verified): ReadonlyArray<string> => [
  visible(`${sessionId}: ${count(last.seq)}, whole and in order${keyed ? ", written with this key" : ""}.`),
  ...reopened.map(
    (record) =>
      `  Note: when the session was resumed at record ${record.seq}, ${[
        ...(record.unsealed === 0 ? [] : [`the ${count(record.unsealed)} before it had not been sealed`]),
        ...(record.torn === 0 ? [] : [`${record.torn} bytes of a half-written record were cut off`])
      ].join(" and ")}. A process that died while writing leaves that.${
        record.unsealed === 0 || keyed ? "" : " So does somebody who added them."
      }`
  ),
  ...open.map(({ kind, requestId, seq, tool }) =>
    visible(
      `  Note: the question ${requestId} about ${tool ?? kind} was left open at record ${seq}. Resume the session to go on with it.`
    )
  )
]

/** A record in one line. */
export const line = (record: AuditRecord): string => {
  const place = number(record.seq)
  switch (record._tag) {
    case "Opened":
      return visible(
        `${place}  ${time(record.at)}  opened     session ${record.sessionId}${forked(record.forkOf)}${keyed(record.key)}`
      )
    case "Reopened":
      return `${place}  ${time(record.at)}  reopened${found(record)}`
    case "Decided":
      return visible(
        `${place}  ${time(record.answeredAt)}  ${record.outcome.replace("_", " ").padEnd(11)}${account(record)}`
      )
  }
}

/** Foreign text for a terminal: characters that it would obey or hide are spelled out. */
export const visible = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (hidden) => `\\u{${hidden.codePointAt(0)?.toString(16)}}`)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const account = (decided: Decided): string => {
  const { agent, argsDigest, askedAt, answeredAt, by, countedAt, how, kind, leadsTo, method, reason, requestId } =
    decided
  const { newArgsDigest, tool, votes } = decided
  const what = tool ?? kind
  const why = [method, reason].filter((part) => part !== undefined).join(": ")
  const who = by === undefined ? "" : `by ${by}${how === undefined || how === "answered" ? "" : ` (${how})`}`
  const said = votes === undefined ? "" : `votes ${votes.map(({ by, vote }) => `${by}: ${vote}`).join(", ")}`
  const waited = askedAt === undefined ? "" : `after ${((answeredAt - askedAt) / 1_000).toFixed(1)} s`
  const later = countedAt === undefined ? "" : `counted by a later process at ${time(countedAt)}`
  const changed = newArgsDigest === undefined ? "" : `arguments changed to ${short(newArgsDigest)}`
  const next = leadsTo === undefined ? "" : `asked again as ${leadsTo}`
  const ids = [
    requestId,
    decided.toolCallId,
    decided.correlationId,
    argsDigest === undefined ? undefined : `args ${short(argsDigest)}`
  ].filter((id) => id !== undefined)
  return [`${decided.class} ${what}`, agent, why, who, said, changed, next, waited, later, `[${ids.join(" ")}]`]
    .filter((part) => part !== "" && part !== "[]")
    .join("  ")
}

/** The beginning of a digest. */
const short = (digest: string): string => digest.slice(0, 12)

/** A trail is opened for its first decision, so the second record may be the earliest. */
const summary = ({ ends, lines }: AuditArchive.Extent): string => {
  const times = ends.map(timeOf)
  return times.length === 0
    ? count(lines)
    : `${count(lines)}  ${time(Math.min(...times))} to ${time(Math.max(...times))}`
}

const timeOf = (record: AuditRecord): number => (record._tag === "Decided" ? record.answeredAt : record.at)

const forked = (from: ForkOf | undefined): string =>
  from === undefined ? "" : `, a fork of ${from.sessionId} at the end of turn ${from.turn}`

/** What was not whole when a trail was opened again. */
const found = ({ torn, unsealed }: Pick<AuditArchive.Verified["reopened"][number], "torn" | "unsealed">): string =>
  unsealed === 0 && torn === 0 ? "" : `   (${unsealed} unsealed, ${torn} bytes torn)`

const keyed = (key: string | undefined): string => (key === undefined ? "" : `, with key ${key}`)

const count = (records: number): string => `${records} ${records === 1 ? "record" : "records"}`

const number = (seq: number): string => String(seq).padStart(5)

/** UTC. A trail that is not verified may hold any number. */
const time = (millis: number): string => {
  const date = new Date(millis)
  return Number.isNaN(date.getTime()) ? "(no time)" : date.toISOString().replace("T", " ")
}
