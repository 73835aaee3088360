/**
 * Which directories a person trusts: what their own files allow counts. Remembered outside of them, once the audit of that
 * directory says who decided so, and for the files as they were: changed ones are nobody's decision yet.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import * as Lazy from "../../internal/Lazy.js"
import * as Origin from "../../core/Origin.js"
import type * as AuditChain from "../../audit/AuditChain.js"
import type { AuditEntry } from "../../audit/AuditRecord.js"
import * as AuditLocation from "./AuditLocation.js"
import * as Brought from "./Brought.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

/** A directory, and where what is decided about it is kept; as in `Settings`. */
export interface Place extends UserLocation.Folder {
  readonly configDirectory: string
  readonly auditKey: AuditChain.Key | undefined
}

/** Who said yes or no, and to which request. */
export type Decision = Pick<AuditEntry, "by" | "how" | "reason" | "requestId" | "askedAt"> & {
  readonly trusted: boolean
}

/** Whoever starts the program with `--trust`. */
export const byFlag: Decision = { trusted: true, by: "command line", reason: "--trust" }

/** What was trusted: the files as they were. */
export interface Remembered {
  readonly digest: string
  /** By path below the workspace; one that could not be read has no text. */
  readonly files: { readonly [name: string]: string }
}

/** What is remembered of a workspace; none when nobody ever trusted it. */
export const remembered = (place: UserLocation.Folder): Effect.Effect<Remembered | undefined, ConfigurationInvalid> =>
  Effect.suspend(() => {
    const file = fileIn(place)
    const content = OwnFile.read(file, maxSize)
    switch (content._tag) {
      case "Absent":
        return Effect.succeed(undefined)
      case "Refused":
        return invalid(`${file} ${content.reason}.`)
      case "Text": {
        const found = Option.getOrUndefined(decode(content.text))
        return Effect.succeed(found?.workspace === place.workspace ? found : undefined)
      }
    }
  })

/** Whether these very files are trusted. What a link stands in for never is. */
export const isTrusted = (
  place: UserLocation.Folder,
  brought: Brought.Brought
): Effect.Effect<boolean, ConfigurationInvalid> =>
  isTrustable(brought)
    ? Effect.map(remembered(place), (known) => known?.digest === brought.digest)
    : Effect.succeed(false)

export const isTrustable = ({ links }: Brought.Brought): boolean => !links.includes(".assent")

/**
 * Writes the decision down in the audit and, when it is a yes, remembers it with the files that it is about; nothing when
 * they are trusted.
 */
export const decide = (
  place: Place,
  brought: Brought.Brought,
  decision: Decision
): Effect.Effect<void, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    if (yield* isTrusted(place, brought)) return
    if (decision.trusted && !isTrustable(brought)) {
      return yield* invalid(
        `${place.workspace} cannot be trusted: its .assent is a symbolic link. Put the directory itself there.`
      )
    }
    yield* UserLocation.prepare(place)
    // First: what could not be written down is not granted.
    yield* Effect.mapError(Effect.scoped(record(place, brought, decision)), ({ message }) => invalid(message))
    if (decision.trusted) yield* remember(place, brought)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes. All that a workspace can bring, escaped, is far less than what would be a burden. */
const maxSize = 50_000_000

const fileIn = ({ folder }: UserLocation.Folder): string => path.join(folder, "trust.json")

const decode = Lazy.make(() =>
  Schema.decodeUnknownOption(
    Schema.parseJson(
      Schema.Struct({
        version: Schema.Literal(1),
        workspace: Schema.String,
        digest: Schema.String,
        files: Schema.Record({ key: Schema.String, value: Schema.String })
      })
    )
  )
)

/** In a trail of its own: no session decides this. */
const record = (place: Place, { digest }: Brought.Brought, { reason, trusted, ...decision }: Decision) =>
  Effect.gen(function* () {
    // On demand: hardly any start decides about trust.
    const AuditFile = yield* Effect.promise(() => import("../../audit/AuditFile.js"))
    const trail = yield* AuditFile.make({ ...AuditLocation.archive(place), key: place.auditKey })
    const { agent, rootSessionId, sessionId } = Origin.outside
    const about = `${place.workspace} as of ${digest.slice(0, 16)}`
    yield* trail.record({
      class: "trust",
      kind: "Confirm",
      outcome: trusted ? "granted" : "denied",
      rootSessionId,
      sessionId,
      agent,
      reason: [about, reason].filter((part) => part !== undefined).join(", "),
      answeredAt: yield* Clock.currentTimeMillis,
      ...decision
    })
  })

const remember = (place: Place, { digest, files }: Brought.Brought) =>
  Effect.try({
    try: () => {
      const texts = Object.fromEntries(
        [...files].flatMap(([name, content]) => (content._tag === "Text" ? [[name, content.text]] : []))
      )
      const { workspace } = place
      UserLocation.replace(fileIn(place), JSON.stringify({ version: 1, workspace, digest, files: texts }, undefined, 2))
    },
    catch: (error) => invalid(`Trust cannot be remembered: ${error instanceof Error ? error.message : String(error)}`)
  })
