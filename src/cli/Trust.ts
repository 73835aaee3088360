/**
 * Which directories a person trusts: what their own files allow counts. Remembered outside of them, once the audit of that
 * directory says who decided so.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Codec from "../core/Codec.js"
import * as Origin from "../core/Origin.js"
import type * as AuditChain from "../event/AuditChain.js"
import type { AuditEntry } from "../event/AuditRecord.js"
import * as AuditPlace from "./AuditPlace.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"

/** A directory, and where what is decided about it is kept; as in `Settings`. */
export interface Place {
  readonly workspace: string
  readonly configDirectory: string
  readonly auditKey: AuditChain.Key | undefined
}

/** Who said yes or no, and to which request. */
export type Decision = Pick<AuditEntry, "by" | "how" | "reason" | "requestId" | "askedAt"> & {
  readonly trusted: boolean
}

/** Whoever starts the program with `--trust`. */
export const byFlag: Decision = { trusted: true, by: "command line", reason: "--trust" }

export const isTrusted = ({
  configDirectory,
  workspace
}: Pick<Place, "configDirectory" | "workspace">): Effect.Effect<
  boolean,
  ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path
> => Effect.map(Effect.flatMap(fileIn(configDirectory), known), (directories) => directories.includes(workspace))

/** Writes the decision down in the audit and, when it is a yes, remembers it; nothing for a directory that is trusted. */
export const decide = (
  place: Place,
  decision: Decision
): Effect.Effect<void, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    if (yield* isTrusted(place)) return
    // First: what could not be written down is not granted.
    yield* Effect.mapError(Effect.scoped(record(place, decision)), ({ message }) => invalid(message))
    if (decision.trusted) yield* remember(place)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const fileIn = (configDirectory: string) => Effect.map(Path.Path, (path) => path.join(configDirectory, "trust.json"))

const decode = Codec.lazy(() => Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(Schema.String))))

/** None when there is no such file, or nonsense in it; one that cannot be read is an error. */
const known = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fileSystem) => fileSystem.readFileString(file)).pipe(
    Effect.map((text) => Option.getOrElse(decode(text), (): ReadonlyArray<string> => [])),
    Effect.catchAll((error) =>
      error._tag === "SystemError" && error.reason === "NotFound"
        ? Effect.succeed<ReadonlyArray<string>>([])
        : Effect.fail(invalid(`${file} cannot be read: ${error.message}`))
    )
  )

/** In a trail of its own: no session decides this. */
const record = (place: Place, { reason, trusted, ...decision }: Decision) =>
  Effect.gen(function* () {
    // On demand: hardly any start decides about trust.
    const AuditFile = yield* Effect.promise(() => import("../event/AuditFile.js"))
    const trail = yield* AuditFile.make({ ...(yield* AuditPlace.archive(place)), key: place.auditKey })
    const { agent, rootSessionId, sessionId } = Origin.outside
    yield* trail.record({
      class: "trust",
      kind: "Confirm",
      outcome: trusted ? "granted" : "denied",
      rootSessionId,
      sessionId,
      agent,
      reason: [place.workspace, reason].filter((part) => part !== undefined).join(", "),
      answeredAt: yield* Clock.currentTimeMillis,
      ...decision
    })
  })

const remember = ({ configDirectory, workspace }: Place) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const file = yield* fileIn(configDirectory)
    const directories = [...(yield* known(file)), workspace]
    yield* fileSystem.makeDirectory(configDirectory, { recursive: true })
    yield* fileSystem.writeFileString(`${file}.new`, JSON.stringify(directories, null, 2), { mode: 0o600 })
    yield* fileSystem.rename(`${file}.new`, file)
  }).pipe(
    Effect.catchTags({
      BadArgument: (error) => invalid(`Trust cannot be remembered: ${error.message}`),
      SystemError: (error) => invalid(`Trust cannot be remembered: ${error.message}`)
    })
  )
