/**
 * The directories that a person trusts: what the files of such a directory allow counts. The decision is remembered
 * outside of the directory, after it was written to the audit, and only for the files as they were: changed files need
 * a new decision.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import * as Lazy from "../../core/Lazy.js"
import * as Origin from "../../core/Origin.js"
import type * as AuditChain from "../../audit/AuditChain.js"
import type { AuditEntry } from "../../audit/AuditRecord.js"
import * as AuditLocation from "./AuditLocation.js"
import * as WorkspaceSettings from "./WorkspaceSettings.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as OwnFile from "./OwnFile.js"
import * as StartedFiles from "./StartedFiles.js"
import * as UserLocation from "./UserLocation.js"

/** A directory, and where decisions about it are kept; as in `Settings`. */
export interface Place extends UserLocation.Folder {
  readonly configDirectory: string
  readonly auditKey: AuditChain.Key | undefined
}

/** Who decided, how, and on which request. */
export type Decision = Pick<AuditEntry, "by" | "how" | "reason" | "requestId" | "askedAt"> & {
  readonly trusted: boolean
}

/** The decision of a start with `--trust`. */
export const byFlag: Decision = { trusted: true, by: "command line", reason: "--trust" }

/** What was trusted: the files as they were. */
export interface Remembered {
  readonly digest: string
  /** By path below the workspace. A file that could not be read is missing. */
  readonly files: { readonly [name: string]: string }
}

/** The remembered trust of a workspace; none when it was never trusted. */
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

/** Whether exactly these files are trusted. Files behind a link never are. */
export const isTrusted = (
  place: UserLocation.Folder,
  brought: WorkspaceSettings.WorkspaceSettings
): Effect.Effect<boolean, ConfigurationInvalid> =>
  isTrustable(brought)
    ? Effect.map(remembered(place), (known) => known?.digest === brought.digest)
    : Effect.succeed(false)

export const isTrustable = ({ links }: WorkspaceSettings.WorkspaceSettings): boolean => !links.includes(".assent")

/**
 * Writes the decision to the audit and, when it is a yes, remembers it with its files, those of `changed` programs too. Does
 * nothing when all are already trusted.
 */
export const decide = (
  place: Place,
  brought: WorkspaceSettings.WorkspaceSettings,
  decision: Decision,
  changed: ReadonlyArray<StartedFiles.Changed> = []
): Effect.Effect<void, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    if (changed.length === 0 && (yield* isTrusted(place, brought))) return
    if (decision.trusted && !isTrustable(brought)) {
      return yield* invalid(
        `${place.workspace} cannot be trusted: its .assent is a symbolic link. Put the directory itself there.`
      )
    }
    yield* UserLocation.prepare(place)
    // The audit comes first: a decision that cannot be recorded grants nothing.
    yield* Effect.mapError(Effect.scoped(record(place, brought, decision, changed)), ({ message }) => invalid(message))
    if (!decision.trusted) return
    yield* remember(place, brought)
    if (changed.length > 0) yield* StartedFiles.record(place, changed)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes. The escaped files of one workspace are always smaller. */
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

/** The decision has an audit trail of its own, because it belongs to no session. */
const record = (
  place: Place,
  { digest }: WorkspaceSettings.WorkspaceSettings,
  { reason, trusted, ...decision }: Decision,
  changed: ReadonlyArray<StartedFiles.Changed>
) =>
  Effect.gen(function* () {
    // Loaded on demand: hardly any start decides about trust.
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
      reason: [about, ...changed.map(({ names, program }) => `${program.name} with ${names.join(", ")}`), reason]
        .filter((part) => part !== undefined)
        .join(", "),
      answeredAt: yield* Clock.currentTimeMillis,
      ...decision
    })
  })

const remember = (place: Place, { digest, files }: WorkspaceSettings.WorkspaceSettings) =>
  Effect.try({
    try: () => {
      const texts = Object.fromEntries(
        [...files].flatMap(([name, content]) => (content._tag === "Text" ? [[name, content.text]] : []))
      )
      const { workspace } = place
      UserLocation.replace(fileIn(place), JSON.stringify({ version: 1, workspace, digest, files: texts }, undefined, 2))
    },
    catch: (error) => invalid(`Trust cannot be remembered: ${UserLocation.reasonOf(error)}.`)
  })
