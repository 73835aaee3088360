/** `assent audit`: what was decided in this workspace, and whether the record of it is whole. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type { SessionId } from "../../core/Id.js"
import * as IdName from "../../core/IdName.js"
import * as AuditArchive from "../../audit/AuditArchive.js"
import type { AuditBroken } from "../../audit/AuditBroken.js"
import type * as AuditChain from "../../audit/AuditChain.js"
import * as AuditReport from "../../audit/AuditReport.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"
import * as AuditLocation from "../../host/local/AuditLocation.js"
import * as StoreAddress from "../../host/local/StoreAddress.js"
import * as StoreLocation from "../../host/StoreLocation.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Output from "../../tui/process/Output.js"
import * as Settings from "../../host/Settings.js"
import * as Remedy from "../../host/Remedy.js"

/** Exit code 0 when every requested trail is whole, 1 when one is broken or cannot be read. */
export const run = ({ flags, words }: Pick<Arguments.Invocation, "flags" | "words">) =>
  Effect.gen(function* () {
    const [verb = "list", id, ...rest] = words
    if (CommandTable.verbOf("audit", words) === undefined || rest.length > 0 || (verb === "list" && id !== undefined)) {
      return yield* new Arguments.UsageError({ message: CommandTable.takes("audit", words) })
    }
    const settings = yield* Settings.load(flags)
    const key = settings.auditKey
    const sources = yield* sourcesOf(flags, settings)
    const trails = (yield* Effect.forEach(sources, (source) =>
      Effect.map(AuditArchive.sessions(source), (ids) => ids.map((id): Trail => ({ id, source })))
    )).flat()
    const known = [...new Set(trails.map(({ id }) => id))]
    const where = sources.map(({ name }) => name).join(" and in ")
    const named = id === undefined ? [] : IdName.found(id, known, "ses_")
    if (id !== undefined && named.length > 1) {
      return yield* new Arguments.UsageError({
        message: `${named.length} sessions begin with ${AuditReport.visible(id)}: ${named.slice(0, 5).join(", ")}${named.length > 5 ? ", …" : ""}.`
      })
    }
    const [only] = named
    if (id !== undefined && only === undefined) {
      return yield* new Arguments.UsageError({
        message: `There is no audit of session ${id} in ${where}. ${among(known)}`
      })
    }
    const chosen = only === undefined ? trails : trails.filter(({ id }) => id === only)
    if (verb === "show") {
      const ids = new Set(chosen.map(({ id }) => id))
      if (ids.size === 1) return Math.max(...(yield* Effect.forEach(chosen, (trail) => show(trail, key))))
      return yield* new Arguments.UsageError({ message: `assent audit show needs a session. ${among(known)}` })
    }
    if (known.length === 0) {
      yield* Output.notice(`no decision was recorded in ${where} yet.`)
      return ExitCode.completed
    }
    if (verb === "verify") return yield* verify(chosen, key)
    for (const source of sources) yield* say(yield* AuditReport.list(source))
    return ExitCode.completed
  }).pipe(
    Effect.scoped,
    Effect.catchTag("AuditBroken", (broken) => Effect.as(Output.notice(Remedy.said(broken)), ExitCode.failed))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A trail and the place where it is kept. */
interface Trail {
  readonly id: SessionId
  readonly source: AuditArchive.Source
}

/** The database, if sessions are kept in one, and the files of the workspace. */
const sourcesOf = (flags: Arguments.Flags, settings: Settings.Settings) =>
  Effect.gen(function* () {
    const files = yield* AuditArchive.sourceOf(AuditLocation.archive(settings))
    const store = yield* Settings.databaseOf(flags)
    const database = store === undefined ? undefined : yield* StoreAddress.parse(Redacted.value(store))
    const inDatabase = database === undefined ? undefined : yield* StoreLocation.auditIn(database)
    return inDatabase === undefined ? [files] : [inDatabase, files]
  }).pipe(Effect.catchIf(Predicate.isString, (message) => new Arguments.UsageError({ message })))

type Platform = FileSystem.FileSystem | Path.Path

/** Shows entries, with a warning when they may have been tampered with. */
const show = ({ id, source }: Trail, key: AuditChain.Key | undefined): Effect.Effect<number, AuditBroken, Platform> =>
  Effect.gen(function* () {
    yield* AuditReport.show(source, id, say)
    const verified = yield* Effect.either(AuditArchive.verifyStreamed(source, id, key))
    if (Either.isRight(verified)) return ExitCode.completed
    yield* Output.notice(`not verified: ${Remedy.said(verified.left)}`)
    return verified.left.problem === "keyNeeded" ? ExitCode.completed : ExitCode.failed
  })

/** Verifies every trail, also after a broken one. */
const verify = (
  trails: ReadonlyArray<Trail>,
  key: AuditChain.Key | undefined
): Effect.Effect<number, never, Platform> =>
  Effect.map(
    Effect.forEach(trails, ({ id, source }) =>
      Effect.matchEffect(AuditArchive.verifyStreamed(source, id, key), {
        onFailure: (broken) => Effect.as(say([`${id}: ${labelOf(broken)}. ${Remedy.said(broken)}`]), false),
        onSuccess: (chain) => Effect.as(say(AuditReport.verdict(chain)), true)
      })
    ),
    (good) => (good.every(Boolean) ? ExitCode.completed : ExitCode.failed)
  )

/** Damage that a crash explains has a label of its own. */
const labelOf = ({ problem }: AuditBroken): string =>
  problem === "unsealed" ? "UNSEALED" : problem === "keyNeeded" ? "NOT VERIFIED" : "BROKEN"

const say = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Output.write("stdout", lines.map((line) => `${AuditReport.visible(line)}\n`).join(""))

const among = (known: ReadonlyArray<SessionId>): string =>
  known.length === 0 ? "No decision was recorded there yet." : `There are: ${AuditReport.visible(known.join(", "))}.`
