/**
 * The rules that a person gave for one workspace at prompts, in a file with the person's own state. Each of them, and its
 * end, is in the audit.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import type * as AuditChain from "../../audit/AuditChain.js"
import type { AuditOutcome } from "../../audit/AuditRecord.js"
import * as Lazy from "../../core/Lazy.js"
import * as Origin from "../../core/Origin.js"
import type { ProjectRules } from "../../permission/ProjectRules.js"
import * as SessionRule from "../../permission/SessionRule.js"
import * as AuditLocation from "./AuditLocation.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

export interface ProjectFile extends ProjectRules {
  /** Keeps an entry; fails with a sentence, and then nothing is kept. */
  readonly keep: (entry: string) => Effect.Effect<void, string>
}

/** Whose rules they are, and where their audit is. */
export interface Place extends UserLocation.Folder {
  readonly configDirectory: string
  readonly auditKey: AuditChain.Key | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Reads them. A file that cannot be read is an error: to write another one would lose rules unseen. */
export const open = (
  place: Place
): Effect.Effect<ProjectFile, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const file = path.join(place.folder, "project-rules.json")
    let seen = stampOf(file)
    let rules = yield* Either.mapLeft(rulesIn(file), invalid)
    const refresh = (): void => {
      const now = stampOf(file)
      if (now === seen) return
      seen = now
      // Another session may have taken one back. What cannot be read allows nothing.
      rules = Either.getOrElse(rulesIn(file), () => new Set<string>())
    }
    const change = (next: (present: ReadonlySet<string>) => ReadonlySet<string>) =>
      Effect.gen(function* () {
        yield* Effect.mapError(UserLocation.prepare(place), ({ message }) => message)
        const after = next(yield* rulesIn(file))
        yield* Effect.try({
          try: () => {
            const value = { version: 1, workspace: place.workspace, rules: [...after] }
            UserLocation.replace(file, `${JSON.stringify(value, undefined, 2)}\n`)
          },
          catch: (error) => `The rules of this project cannot be written: ${UserLocation.reasonOf(error)}.`
        })
        seen = stampOf(file)
        rules = after
      })
    const recorded = (outcome: AuditOutcome, reason: string) =>
      Effect.provide(Effect.scoped(Effect.mapError(record(place, outcome, reason), ({ message }) => message)), platform)
    return {
      file,
      entries: () => {
        if (rules.size > 0) refresh()
        return rules
      },
      // The audit comes first: a rule that cannot be recorded allows nothing.
      keep: (entry) =>
        SessionRule.of("allow", entry).pipe(
          Either.mapLeft(({ message }) => message),
          Effect.zipRight(recorded("granted", `always in this project: ${entry}`)),
          Effect.zipRight(change((present) => new Set([...present, entry])))
        ),
      revoke: (entry) =>
        change((present) => new Set([...present].filter((one) => one !== entry))).pipe(
          Effect.zipRight(recorded("done", `no longer in this project: ${entry}`))
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decode = Lazy.make(() =>
  Schema.decodeUnknownOption(
    Schema.parseJson(
      Schema.Struct({ version: Schema.Literal(1), workspace: Schema.String, rules: Schema.Array(Schema.String) })
    )
  )
)

const rulesIn = (file: string): Either.Either<ReadonlySet<string>, string> => {
  const content = OwnFile.read(file, OwnFile.maxSettings)
  if (content._tag === "Absent") return Either.right(new Set<string>())
  if (content._tag === "Refused") return Either.left(`${file} ${content.reason}.`)
  return Option.match(decode(content.text), {
    onNone: () => Either.left(`${file} does not hold the rules of a project. Mend it, or remove it to be asked again.`),
    onSome: ({ rules }) => Either.right(new Set(rules.filter((rule) => Either.isRight(SessionRule.of("allow", rule)))))
  })
}

/** Differs when the file was replaced, which is the only way in which it is written. */
const stampOf = (file: string): string => {
  try {
    const { ino, mtimeMs, size } = fs.statSync(file)
    return `${ino} ${mtimeMs} ${size}`
  } catch {
    return ""
  }
}

/** In a trail of its own, as trust in a directory: it belongs to no session. */
const record = (place: Place, outcome: AuditOutcome, reason: string) =>
  Effect.gen(function* () {
    const AuditFile = yield* Effect.promise(() => import("../../audit/AuditFile.js"))
    const trail = yield* AuditFile.make({ ...AuditLocation.archive(place), key: place.auditKey })
    const { agent, rootSessionId, sessionId } = Origin.outside
    yield* trail.record({
      class: "permission",
      kind: "Approve",
      method: "project",
      outcome,
      rootSessionId,
      sessionId,
      agent,
      by: "console",
      reason: `${place.workspace}: ${reason}`,
      answeredAt: yield* Clock.currentTimeMillis
    })
  })
