/** What the journals of a database say was decided, and what its audit says: a decision is in both or in none. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AuditArchive from "../../src/audit/AuditArchive.js"
import type { SessionId } from "../../src/core/Id.js"

/** No trail here is a file. */
export const noFiles = Layer.merge(FileSystem.layerNoop({}), Path.layer)

interface Entry {
  readonly root: SessionId
  readonly tag: string
  readonly body: string
}

/** Each in a comparable form, and in the order of its session. Fails if an audit does not verify. */
export const both = (sql: SqlClient.SqlClient, source: AuditArchive.Source) =>
  Effect.gen(function* () {
    const entries = yield* sql<Entry>`SELECT root, tag, body FROM assent_entry
      WHERE tag IN ('CallDecided', 'InteractionSettled', 'VoteGiven') ORDER BY root, seq`
    const raised = yield* sql<Entry>`SELECT root, tag, body FROM assent_entry WHERE tag = 'InteractionRaised'`
    const kinds = new Map(
      raised.map(({ body }) => {
        const { request } = JSON.parse(body)
        return [request.requestId, request.interaction._tag]
      })
    )
    const journaled = entries.flatMap(({ body, root, tag }) => {
      const entry = JSON.parse(body)
      if (tag === "CallDecided") return [`${root} ${entry.granted ? "granted" : "refused"} ${entry.toolCallId}`]
      // A gate records what people say about calls.
      if (kinds.get(entry.requestId) === "Approve" && tag === "InteractionSettled") return []
      return [`${root} ${tag === "VoteGiven" ? "voted" : "answered"} ${entry.requestId}`]
    })
    const audited: Array<string> = []
    for (const root of yield* source.sessions) {
      yield* AuditArchive.verifyStreamed(source, root)
      yield* AuditArchive.peekEach(source, root, (record) =>
        Effect.sync(() => {
          if (record?._tag !== "Decided" || record.class === "session" || record.outcome === "edited") return
          const { outcome, requestId, toolCallId } = record
          audited.push(
            record.class === "permission" && outcome !== "voted"
              ? `${root} ${outcome === "granted" ? "granted" : "refused"} ${toolCallId}`
              : `${root} ${outcome === "voted" ? "voted" : "answered"} ${requestId}`
          )
        })
      )
    }
    return { journaled, audited }
  }).pipe(Effect.provide(noFiles))
