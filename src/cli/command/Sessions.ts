/** `assent sessions`: what was said and done in this workspace, and what of it can be gone on with. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { SessionId } from "../../core/Id.js"
import * as SessionStore from "../../session/SessionStore.js"
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
    const known = isVerb(verb)
    if (!known || rest.length > 0 || (verb === "list" && id !== undefined)) {
      return yield* new Arguments.UsageError({ message: `assent sessions takes: ${Object.values(verbs).join("; ")}.` })
    }
    const place = yield* StorePlace.of(flags, yield* Settings.load(flags))
    const store = yield* StorePlace.openExisting(place)
    const sessions = store === undefined ? [] : yield* store.list
    if (verb === "list") {
      if (flags.json === true) {
        yield* Effect.forEach(sessions, (session) => Output.writeJson(process.stdout, session), { discard: true })
        return ExitCode.completed
      }
      if (sessions.length === 0) yield* Output.write(process.stderr, `assent: no sessions are kept in ${place} yet.\n`)
      yield* say(sessions.map(SessionReport.line))
      return ExitCode.completed
    }
    const session = sessions.find(({ rootSessionId }) => rootSessionId === id)
    if (store === undefined || session === undefined) {
      const what = id === undefined ? `assent sessions ${verb} needs a session.` : `There is no session ${id} in ${place}.`
      return yield* new Arguments.UsageError({ message: `${what} ${among(sessions.map((one) => one.rootSessionId))}` })
    }
    yield* verbActions[verb](store, session)
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
} as const
