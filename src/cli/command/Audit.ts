/** `assent audit`: what was decided in this workspace, and whether the record of it is whole. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { SessionId } from "../../core/Id.js"
import * as IdName from "../../core/IdName.js"
import * as AuditArchive from "../../audit/AuditArchive.js"
import type { AuditBroken } from "../../audit/AuditBroken.js"
import type * as AuditChain from "../../audit/AuditChain.js"
import * as AuditReport from "../../audit/AuditReport.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"
import * as AuditLocation from "../../host/local/AuditLocation.js"
import * as ExitCode from "../ExitCode.js"
import * as Output from "../terminal/Output.js"
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
    const archive = AuditLocation.archive(settings)
    const known = yield* AuditArchive.sessions(archive)
    const named = id === undefined ? [] : IdName.found(id, known, "ses_")
    if (id !== undefined && named.length > 1) {
      return yield* new Arguments.UsageError({
        message: `${named.length} sessions begin with ${AuditReport.visible(id)}: ${named.slice(0, 5).join(", ")}${named.length > 5 ? ", …" : ""}.`
      })
    }
    const [only] = named
    const sessionId = only === undefined ? undefined : SessionId.make(only)
    if (id !== undefined && sessionId === undefined) {
      return yield* new Arguments.UsageError({
        message: `There is no audit of session ${id} in ${archive.directory}. ${among(known)}`
      })
    }
    if (verb === "show") {
      const shown = sessionId ?? (known.length === 1 ? known[0] : undefined)
      if (shown !== undefined) return yield* show(archive, shown, key)
      return yield* new Arguments.UsageError({ message: `assent audit show needs a session. ${among(known)}` })
    }
    if (known.length === 0) {
      yield* Output.notice(`no decision was recorded in ${archive.directory} yet.`)
      return ExitCode.completed
    }
    if (verb === "verify") return yield* verify(archive, sessionId === undefined ? known : [sessionId], key)
    yield* say(yield* AuditReport.list(archive))
    return ExitCode.completed
  }).pipe(Effect.catchTag("AuditBroken", (broken) => Effect.as(Output.notice(Remedy.said(broken)), ExitCode.failed)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Platform = FileSystem.FileSystem | Path.Path

/** Shows entries, with a warning when they may have been tampered with. */
const show = (
  archive: AuditArchive.Archive,
  sessionId: SessionId,
  key: AuditChain.Key | undefined
): Effect.Effect<number, AuditBroken, Platform> =>
  Effect.gen(function* () {
    yield* AuditReport.show(archive, sessionId, say)
    const verified = yield* Effect.either(AuditArchive.verifyStreamed(archive, sessionId, key))
    if (Either.isRight(verified)) return ExitCode.completed
    yield* Output.notice(`not verified: ${Remedy.said(verified.left)}`)
    return verified.left.problem === "keyNeeded" ? ExitCode.completed : ExitCode.failed
  })

/** Verifies every trail, also after a broken one. */
const verify = (
  archive: AuditArchive.Archive,
  sessions: ReadonlyArray<SessionId>,
  key: AuditChain.Key | undefined
): Effect.Effect<number, never, Platform> =>
  Effect.map(
    Effect.forEach(sessions, (sessionId) =>
      Effect.matchEffect(AuditArchive.verifyStreamed(archive, sessionId, key), {
        onFailure: (broken) => Effect.as(say([`${sessionId}: ${labelOf(broken)}. ${Remedy.said(broken)}`]), false),
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
