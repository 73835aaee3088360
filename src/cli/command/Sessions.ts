/** `assent sessions`: what was said and done in this workspace, and what of it can be gone on with. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SessionId } from "../../core/Id.js"
import { visible } from "../../event/AuditReport.js"
import * as SessionStore from "../../session/SessionStore.js"
import type { Listed } from "../../session/SessionSummary.js"
import * as Arguments from "../Arguments.js"
import * as ConfigurationInvalid from "../ConfigurationInvalid.js"
import * as ExitCode from "../ExitCode.js"
import * as Output from "../Output.js"
import * as SessionReport from "../SessionReport.js"
import * as Settings from "../Settings.js"
import * as StorePlace from "../StorePlace.js"

export const run = ({ flags, words }: Pick<Arguments.Invocation, "flags" | "words">) =>
  Effect.gen(function* () {
    const [verb = "list", id, ...rest] = words
    if (!Object.hasOwn(verbs, verb) || rest.length > 0 || (verb === "list" && id !== undefined)) {
      return yield* new Arguments.UsageError({ message: `assent sessions takes: ${Object.values(verbs).join("; ")}.` })
    }
    const place = yield* StorePlace.of(flags, yield* Settings.load(flags))
    const store = yield* StorePlace.openExisting(place)
    const sessions = store === undefined ? [] : yield* store.list
    if (verb === "list") return yield* list(sessions, place, flags.json === true)
    const session = sessions.find(({ rootSessionId }) => rootSessionId === id)
    if (store === undefined || session === undefined) {
      const wrong =
        id === undefined
          ? `assent sessions ${verb} needs a session.`
          : `There is no session ${visible(id)} in ${place}.`
      return yield* new Arguments.UsageError({ message: `${wrong} ${among(sessions, place)}` })
    }
    if (verb === "delete") yield* forget(store, session.rootSessionId)
    else if (verb === "show") yield* show(store, session)
    else yield* exportAll(store, session.rootSessionId)
    return ExitCode.completed
  }).pipe(
    Effect.scoped,
    Effect.catchTags({
      SessionLocked: refuse,
      SessionUnknown: refuse,
      StoreUnusable: refuse,
      StoreUnwritable: refuse,
      JournalUnreadable: refuse
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const verbs = {
  list: "list [--json]",
  show: "show SESSION",
  export: "export SESSION",
  delete: "delete SESSION"
}

const refuse = (error: { readonly message: string }) => ConfigurationInvalid.make(error.message)

const list = (sessions: ReadonlyArray<Listed>, place: string, json: boolean): Effect.Effect<number> =>
  Effect.gen(function* () {
    if (json) yield* Effect.forEach(sessions, (one) => Output.writeJson(process.stdout, one), { discard: true })
    else if (sessions.length > 0) yield* say(sessions.map(SessionReport.line))
    else yield* Output.write(process.stderr, `assent: no sessions are kept in ${place} yet.\n`)
    return ExitCode.completed
  })

const show = (store: SessionStore.Service, session: Listed) =>
  Effect.flatMap(store.load(session.rootSessionId), (loaded) =>
    say([SessionReport.line(session), "", ...SessionReport.transcript(loaded)])
  )

/** One JSON document: all there is, to take elsewhere. */
const exportAll = (store: SessionStore.Service, id: SessionId) =>
  Effect.gen(function* () {
    const json = yield* Either.mapLeft(SessionStore.toJson(yield* store.load(id)), (reason) =>
      ConfigurationInvalid.make(`Session ${id} cannot be exported: ${reason}.`)
    )
    yield* Output.writeJson(process.stdout, json)
  })

const forget = (store: SessionStore.Service, id: SessionId) =>
  Effect.zipRight(
    store.delete(id),
    Output.write(process.stderr, `assent: session ${id} is deleted; its audit stays.\n`)
  )

const say = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Output.write(process.stdout, lines.map((line) => `${line}\n`).join(""))

const among = (sessions: ReadonlyArray<Listed>, place: string): string => {
  if (sessions.length === 0) return `No sessions are kept in ${place} yet.`
  const shown = sessions.slice(0, 10).map(({ rootSessionId }) => rootSessionId)
  const more = sessions.length > shown.length ? ` and ${sessions.length - shown.length} more` : ""
  return `There are: ${visible(shown.join(", "))}${more}.`
}
