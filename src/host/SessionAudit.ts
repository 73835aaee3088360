/** The audit of one session as data: its last records, and whether somebody changed them. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as AuditArchive from "../audit/AuditArchive.js"
import type * as AuditChain from "../audit/AuditChain.js"
import type { AuditRecord } from "../audit/AuditRecord.js"
import * as AuditReport from "../audit/AuditReport.js"
import type { SessionId } from "../core/Id.js"
import * as Remedy from "./Remedy.js"

export interface SessionAudit {
  readonly verified: "whole" | "broken" | "unknown"
  /** Sentences: the verdict, then remarks. */
  readonly verdict: ReadonlyArray<string>
  /** The last ones, oldest first. Records that nobody can read are left out. */
  readonly records: ReadonlyArray<AuditRecord>
  /** Records before these. */
  readonly before: number
}

/** Records that are held at once. */
const most = 1_000

/** A session without a decision has no trail, which is no damage. */
export const read = (
  from: AuditArchive.Archive | AuditArchive.Source,
  id: SessionId,
  key?: AuditChain.Key
): Effect.Effect<SessionAudit, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    let records: Array<AuditRecord> = []
    let before = 0
    const isThere = yield* AuditArchive.peekEach(from, id, (record) =>
      Effect.sync(() => {
        if (record !== undefined) records.push(record)
        if (records.length <= 2 * most) return
        before += records.length - most
        records = records.slice(-most)
      })
    )
    before += Math.max(0, records.length - most)
    records = records.slice(-most)
    const verdict = yield* Effect.either(AuditArchive.verifyStreamed(from, id, key))
    if (Either.isRight(verdict))
      return { verified: "whole" as const, verdict: AuditReport.verdict(verdict.right), records, before }
    const { left } = verdict
    if (!isThere && left.problem === "missing" && left.records === undefined)
      return { verified: "unknown" as const, verdict: ["Nothing was decided in this session yet."], records, before }
    return {
      verified: left.problem === "keyNeeded" ? ("unknown" as const) : ("broken" as const),
      verdict: [AuditReport.visible(Remedy.said(left))],
      records,
      before
    }
  }).pipe(
    Effect.catchTag("AuditBroken", (broken) =>
      Effect.succeed({ verified: "broken" as const, verdict: [Remedy.said(broken)], records: [], before: 0 })
    )
  )
