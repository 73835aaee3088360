/** `assent permissions try FILE`: what a policy would have decided otherwise in this workspace. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SessionId, ToolCallId } from "../../core/Id.js"
import * as AuditArchive from "../../audit/AuditArchive.js"
import type { Written } from "../../journal/JournalEntry.js"
import type * as SessionStore from "../../journal/SessionStore.js"
import * as PolicyFile from "../../permission/PolicyFile.js"
import * as PolicyTrial from "../../permission/PolicyTrial.js"
import type * as Arguments from "../config/Arguments.js"
import * as AuditLocation from "../../local/AuditLocation.js"
import * as ConfigurationInvalid from "../../local/ConfigurationInvalid.js"
import * as ExitCode from "../ExitCode.js"
import * as Output from "../terminal/Output.js"
import * as Settings from "../config/Settings.js"
import * as StoreLocation from "../config/StoreLocation.js"
import * as Tools from "../config/Tools.js"
import * as Remedy from "../config/Remedy.js"
import * as TrialReport from "../view/TrialReport.js"

/** The file alone is tried, as `--policy FILE` would count alone. Nothing is changed, and nothing runs. */
export const run = (flags: Arguments.Flags, settings: Settings.Settings, file: string) =>
  Effect.gen(function* () {
    const policy = yield* Settings.requirePolicy(file)
    const tools = yield* Tools.registry(settings.workspace)
    const remarks = yield* Either.mapLeft(
      PolicyFile.checkTools(
        policy,
        tools.entries.map(({ tool }) => tool)
      ),
      ({ message }) => ConfigurationInvalid.make(message)
    )
    for (const { message, path } of remarks) yield* Output.notice(`${file}: ${path}: ${message}`)
    const archive = AuditLocation.archive(settings)
    const store = yield* storeOf(flags, settings)
    const tally = new PolicyTrial.Tally({ ...policy, workspace: settings.workspace }, { tools })
    let damaged = 0
    for (const session of yield* AuditArchive.sessions(archive)) {
      const calls = yield* argumentsOf(store, session)
      yield* AuditArchive.peekEach(archive, session, (record) =>
        Effect.sync(() => {
          if (record === undefined) damaged++
          else if (record._tag === "Decided") {
            tally.take({ ...record, arguments: calls.get(keyOf(record.sessionId, record.toolCallId)) })
          }
        })
      )
    }
    if (damaged > 0) {
      const lines = damaged === 1 ? "1 line of the audit is no record" : `${damaged} lines of the audit are no records`
      yield* Output.notice(`${lines}; assent audit verify says more.`)
    }
    yield* Output.write("stdout", `${TrialReport.lines(tally.trial).join("\n")}\n`)
    return ExitCode.completed
  }).pipe(
    Effect.catchTag("AuditBroken", (broken) => Effect.as(Output.notice(Remedy.said(broken)), ExitCode.failed)),
    Effect.scoped
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Calls = ReadonlyMap<string, ReadonlyArray<unknown>>

const none: Calls = new Map()

const keyOf = (sessionId: SessionId, callId: ToolCallId | undefined): string => JSON.stringify([sessionId, callId])

/** Journals have the arguments of calls. Without them a trial tells less. */
const storeOf = (flags: Arguments.Flags, settings: Settings.Settings) =>
  Effect.catchAll(Effect.flatMap(StoreLocation.of(flags, settings), StoreLocation.openExisting), ({ message }) =>
    Effect.as(Output.notice(`The sessions cannot be read, so no arguments are known: ${message}`), undefined)
  )

/** By call, as they were proposed, edited and run: the audit's digest says which of them were decided about. */
const argumentsOf = (store: SessionStore.Service | undefined, session: SessionId): Effect.Effect<Calls> =>
  store === undefined
    ? Effect.succeed(none)
    : Effect.match(store.load(session), {
        // A session that was deleted, or never kept, leaves its audit.
        onFailure: () => none,
        onSuccess: ({ entries }) => callsIn(entries)
      })

const callsIn = (entries: ReadonlyArray<Written>): Calls => {
  const calls = new Map<string, Array<unknown>>()
  for (const { entry, sessionId } of entries) {
    const add = (id: ToolCallId, params: unknown) => {
      const key = keyOf(sessionId, id)
      calls.set(key, [...(calls.get(key) ?? []), params])
    }
    if (entry._tag === "CallsProposed") for (const { id, params } of entry.calls) add(id, params)
    else if (entry._tag === "CallDecided" && entry.params !== undefined) add(entry.toolCallId, entry.params)
    else if (entry._tag === "ToolStarted") add(entry.toolCallId, entry.params)
  }
  return calls
}
