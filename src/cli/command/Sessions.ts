/** `assent sessions`: the sessions of this workspace, and which of them can be resumed. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import type { SessionId } from "../../core/Id.js"
import { visible } from "../../audit/AuditReport.js"
import * as AuditTrail from "../../audit/AuditTrail.js"
import type * as Checkpoints from "../../builtin/Checkpoints.js"
import * as RecordedScript from "../../journal/RecordedScript.js"
import * as SessionFork from "../../journal/SessionFork.js"
import * as Replay from "../../journal/Replay.js"
import * as Retention from "../../journal/Retention.js"
import * as SessionArchive from "../../journal/SessionArchive.js"
import * as SessionStore from "../../journal/SessionStore.js"
import type { Listed } from "../../journal/SessionSummary.js"
import * as StoreError from "../../journal/StoreError.js"
import * as Arguments from "../config/Arguments.js"
import * as CommandTable from "../config/CommandTable.js"
import * as ConfigurationInvalid from "../../host/local/ConfigurationInvalid.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Output from "../../tui/process/Output.js"
import * as Person from "../../host/local/Person.js"
import * as Screen from "../../tui/process/Screen.js"
import * as SessionAnswer from "../executor/SessionAnswer.js"
import * as SessionReport from "../../tui/view/SessionReport.js"
import * as SessionForking from "../../host/SessionForking.js"
import * as SessionName from "../../host/SessionName.js"
import * as SessionTransfer from "../../host/SessionTransfer.js"
import * as Settings from "../../host/Settings.js"
import * as StoreLocation from "../../host/StoreLocation.js"
import * as UserLocation from "../../host/local/UserLocation.js"
import * as Transcript from "../../tui/view/Transcript.js"

export const run = ({ flags, words }: Pick<Arguments.Invocation, "flags" | "words">) =>
  Effect.gen(function* () {
    const [verb = "list", id, ...rest] = words
    const [requestId, ...typed] = verb === "answer" ? rest : []
    const tooMany = isOfMany(verb) ? id !== undefined : verb !== "answer" && rest.length > 0
    if (CommandTable.verbOf("sessions", words) === undefined || tooMany) {
      return yield* new Arguments.UsageError({ message: CommandTable.takes("sessions", words) })
    }
    if (flags.all === true && flags.after !== undefined) {
      return yield* new Arguments.UsageError({
        message: "--after names a session of one workspace, and --all lists all workspaces. Remove one of them."
      })
    }
    if (verb === "prune" && flags.unused === undefined && flags.keep === undefined) {
      return yield* new Arguments.UsageError({
        message: "assent sessions prune needs --unused DURATION, --keep NUMBER, or both."
      })
    }
    const pace = yield* paceOf(flags)
    const at = flags.at === undefined ? undefined : yield* Arguments.parseTurn(flags.at)
    const limit =
      flags.limit === undefined ? (flags.json === true ? Infinity : most) : yield* Arguments.parseCount(flags.limit, 1)
    const settings = yield* Settings.load(flags)
    if (verb === "list" && flags.all === true) return yield* listAll(settings, { flags, limit })
    const isOfWorkspaces = settings.store === undefined
    if (verb === "waiting" && isOfWorkspaces) {
      return yield* waiting(yield* SessionTransfer.waiting(settings), flags)
    }
    if (verb === "adopt") {
      yield* Output.notice(yield* SessionTransfer.adopt(flags, settings, id))
      return ExitCode.completed
    }
    if (verb === "import") return yield* takeOver(flags, settings, id)
    const place = yield* StoreLocation.of(flags, settings)
    const store = yield* StoreLocation.openExisting(place)
    if (store === undefined && (verb === "waiting" || verb === "prune")) {
      yield* Output.notice(`no sessions are stored in ${place} yet.`)
      return ExitCode.completed
    }
    if (verb === "waiting") {
      const { remarks, requests } =
        store === undefined ? { remarks: [], requests: [] } : yield* SessionTransfer.waitingIn(store)
      const found = requests.length === 0 ? [] : [{ workspace: undefined, requests }]
      return yield* waiting({ found, remarks }, flags)
    }
    const checkpoints = yield* SessionForking.checkpoints(settings)
    if (verb === "prune") return yield* prune({ store, place, flags, checkpoints })
    if (verb === "list") {
      const left = isOfWorkspaces ? SessionTransfer.leftBehind(settings) : Effect.succeed(undefined)
      return yield* list(store, place, { flags, limit, left })
    }
    const session = store === undefined || id === undefined ? undefined : yield* named(store, id)
    if (session === undefined && id !== undefined && isOfWorkspaces) {
      const elsewhere = yield* SessionTransfer.find(settings, id)
      // A person who has the id of a session may answer and read it from anywhere.
      if (elsewhere !== undefined && verb === "answer")
        return yield* answerIn(elsewhere, settings, flags, requestId, typed)
      if (elsewhere !== undefined && isReading(verb)) {
        const other = yield* StoreLocation.open(StoreLocation.inFolder(elsewhere))
        yield* read(verb, other, elsewhere.session, flags, pace)
        return ExitCode.completed
      }
      if (elsewhere !== undefined)
        return yield* new Arguments.UsageError({ message: SessionTransfer.whereabouts(elsewhere) })
    }
    if (store === undefined || session === undefined) {
      const wrong =
        id === undefined
          ? `assent sessions ${verb} needs a session.`
          : `There is no session ${visible(id)} in ${place}.`
      return yield* new Arguments.UsageError({ message: `${wrong} ${yield* among(store, place)}` })
    }
    const { rootSessionId } = session
    if (verb === "answer") {
      yield* answer({ store, session, requestId, typed, flags, settings, place: flags })
    } else if (verb === "delete") yield* forget(store, checkpoints, rootSessionId)
    else if (verb === "fork") yield* fork({ store, settings, flags, id: rootSessionId, at })
    else if (isReading(verb)) yield* read(verb, store, session, flags, pace)
    return ExitCode.completed
  }).pipe(Effect.scoped, Effect.catchTags({ ...StoreLocation.refusals, SessionTakenOver: StoreLocation.refuse }))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What only looks at a session. */
const readings = ["show", "turns", "replay", "script", "export"] as const

const isReading = (verb: string): verb is (typeof readings)[number] => readings.some((reading) => reading === verb)

const read = (
  verb: (typeof readings)[number],
  store: SessionStore.Service,
  session: Listed,
  { json }: Arguments.Flags,
  pace: Replay.Options
) =>
  Effect.gen(function* () {
    const { rootSessionId } = session
    if (verb === "export") return yield* exportAll(store, rootSessionId)
    if (verb === "show") return yield* show(store, session)
    const loaded = yield* store.load(rootSessionId)
    if (verb === "turns") return yield* turns(loaded, json === true)
    return yield* verb === "replay" ? replay(loaded, pace, json === true) : script(loaded)
  })

/** An answer to one of `sessions`, for a command that is run at `place`. A vote is recorded in the audit of its workspace. */
const answer = ({
  flags,
  place,
  requestId,
  session,
  settings,
  store,
  typed
}: {
  readonly store: SessionStore.Service
  readonly session: Listed
  readonly requestId: string | undefined
  readonly typed: ReadonlyArray<string>
  readonly flags: Arguments.Flags
  readonly settings: Settings.Settings
  readonly place: Pick<Arguments.Flags, "store" | "workspace">
}) =>
  Effect.gen(function* () {
    yield* UserLocation.prepare(settings)
    const trail = Effect.mapError(SessionForking.trailOf(settings), StoreLocation.refuse)
    const answered = SessionAnswer.run({
      store,
      session,
      requestId,
      answer: typed.length === 0 ? undefined : typed.join(" "),
      by: yield* Person.name,
      json: flags.json === true,
      resumeCommand: StoreLocation.command(place, "run", `--resume ${session.rootSessionId}`),
      howTo: StoreLocation.command(place, "sessions", `answer ${session.rootSessionId} REQUEST ANSWER`)
    })
    yield* Effect.provideService(answered, AuditTrail.AuditTrail, yield* trail)
  })

const answerIn = (
  elsewhere: UserLocation.Folder & { readonly session: Listed },
  settings: Settings.Settings,
  flags: Arguments.Flags,
  requestId: string | undefined,
  typed: ReadonlyArray<string>
) =>
  Effect.gen(function* () {
    const store = yield* StoreLocation.open(StoreLocation.inFolder(elsewhere))
    const { rootSessionId } = elsewhere.session
    const session = yield* SessionName.get(store, rootSessionId)
    if (session === undefined) return yield* new StoreError.SessionUnknown({ rootSessionId })
    yield* answer({
      store,
      session,
      requestId,
      typed,
      flags,
      settings: { ...settings, ...elsewhere },
      place: within(elsewhere)
    })
    return ExitCode.completed
  })

/** Lines of a list, unless more are asked for. */
const most = 100

const isOfMany = (verb: string): boolean => ["list", "waiting", "prune"].includes(verb)

const within = ({ workspace }: { readonly workspace: string }) => ({ workspace, store: undefined })

/**
 * A line for the workspace, then what is open there and how to answer it; with `json` a line for each request, whole,
 * with its session.
 */
const waiting = (
  {
    found,
    remarks
  }: {
    readonly found: ReadonlyArray<{
      readonly workspace: string | undefined
      readonly requests: ReadonlyArray<SessionStore.WaitingRequest>
    }>
    readonly remarks: ReadonlyArray<string>
  },
  flags: Arguments.Flags
) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const { requests, workspace } of found) {
      if (flags.json === true) {
        for (const one of requests) yield* Output.writeJson("stdout", SessionReport.waitingJson(one, workspace))
        continue
      }
      const place = workspace === undefined ? flags : within({ workspace })
      const lines = requests.flatMap((one) =>
        SessionReport.waiting(one, now, StoreLocation.command(place, "sessions", "answer"))
      )
      yield* say(workspace === undefined ? lines : [visible(workspace), ...lines.map((line) => `  ${line}`)])
    }
    for (const remark of remarks) yield* Output.notice(remark)
    if (found.length === 0 && remarks.length === 0) yield* Output.notice("no session waits for an answer.")
    return ExitCode.completed
  })

/** A line for the workspace, then its sessions; with `json` a line for each session, which names the workspace. */
const listAll = (settings: Settings.Settings, wanted: Wanted) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { found, remarks } = yield* SessionTransfer.everywhere(settings, (store, { workspace }) =>
      Effect.gen(function* () {
        let isFirst = true
        const { count, next } = yield* told(store, wanted, undefined, (sessions) => {
          if (wanted.flags.json === true) return writeAll(sessions.map((one) => ({ ...one, workspace })))
          const heading = isFirst && sessions.length > 0 ? [visible(workspace)] : []
          isFirst = false
          return say([...heading, ...sessions.map((one) => `  ${SessionReport.line(one, now)}`)])
        })
        if (next !== undefined) yield* sayMore(within({ workspace }), wanted.flags, next)
        return count
      })
    )
    for (const remark of remarks) yield* Output.notice(remark)
    if (found.every(({ answer }) => answer === 0) && remarks.length === 0) {
      yield* Output.notice(`no sessions are stored in ${settings.stateDirectory} yet.`)
    }
    return ExitCode.completed
  })

const takeOver = (flags: Arguments.Flags, settings: Settings.Settings, file: string | undefined) =>
  Effect.gen(function* () {
    if (file === undefined)
      return yield* new Arguments.UsageError({ message: "assent sessions import needs a store: import FILE." })
    const taken = yield* SessionTransfer.takeOver(flags, settings, file)
    yield* say(taken.map(({ before, id }) => `${id}  was ${visible(before)}`))
    yield* Output.notice(
      `${taken.length} imported, without permissions and open work. Their audit stays in the old place.`
    )
    return ExitCode.completed
  })

interface Wanted {
  readonly flags: Arguments.Flags
  /** The most sessions of one store. */
  readonly limit: number
}

const list = <R>(
  store: SessionStore.Service | undefined,
  place: StoreLocation.Place,
  { left, ...wanted }: Wanted & { readonly left: Effect.Effect<string | undefined, never, R> }
) =>
  Effect.gen(function* () {
    const { flags } = wanted
    const after = flags.after === undefined ? undefined : store && (yield* named(store, flags.after))
    if (flags.after !== undefined && after === undefined) {
      const wrong = `There is no session ${visible(flags.after)} in ${place}.`
      return yield* new Arguments.UsageError({ message: `${wrong} ${yield* among(store, place)}` })
    }
    const now = yield* Clock.currentTimeMillis
    const { count, next } = yield* told(store, wanted, after, (sessions) =>
      flags.json === true ? writeAll(sessions) : say(sessions.map((one) => SessionReport.line(one, now)))
    )
    if (next !== undefined) yield* sayMore(flags, flags, next)
    else if (count === 0 && flags.json !== true) {
      const none = after === undefined ? `no sessions are stored in ${place} yet` : "that one is the oldest"
      yield* Output.notice(`${none}.`)
      const hint = after === undefined ? yield* left : undefined
      if (hint !== undefined) yield* Output.notice(hint)
    }
    return ExitCode.completed
  })

/** Reads a list page by page and tells each, so that a long one begins at once. Yields how many, and where the rest is. */
const told = (
  store: SessionName.Sessions | undefined,
  { limit }: Wanted,
  after: SessionStore.Place | undefined,
  tell: (sessions: ReadonlyArray<Listed>) => Effect.Effect<void>
) =>
  Effect.gen(function* () {
    let count = 0
    let next = after
    do {
      const page: SessionStore.Page =
        store === undefined
          ? { sessions: [] }
          : yield* store.page({ limit: Math.min(limit - count, 1_000), after: next })
      yield* tell(page.sessions)
      count += page.sessions.length
      next = page.next
    } while (next !== undefined && count < limit)
    return { count, next }
  })

const writeAll = (sessions: ReadonlyArray<Listed>): Effect.Effect<void> =>
  Effect.forEach(sessions, (one) => Output.writeJson("stdout", one), { discard: true })

const sayMore = (
  place: Pick<Arguments.Flags, "store" | "workspace">,
  { json, limit }: Arguments.Flags,
  { rootSessionId }: SessionStore.Place
) => {
  const flags = [...(limit === undefined ? [] : ["--limit", limit]), ...(json === true ? ["--json"] : [])]
  const words = ["list", ...flags, "--after", StoreLocation.quoted(rootSessionId)].join(" ")
  return Output.notice(`there are more: ${StoreLocation.command(place, "sessions", words)}`)
}

/** The session that a word means, if there is one. */
const named = (store: SessionName.Sessions, word: string) =>
  Effect.flatMap(
    SessionName.find(store, word),
    Either.mapLeft((message) => new Arguments.UsageError({ message }))
  )

const show = (store: SessionStore.Service, session: Listed) =>
  Effect.flatMap(Effect.all([store.load(session.rootSessionId), Clock.currentTimeMillis]), ([loaded, now]) =>
    say([SessionReport.line(session, now), "", ...SessionReport.transcript(loaded)])
  )

const turns = (loaded: SessionStore.Loaded, json: boolean) => {
  const all = SessionFork.turns(loaded)
  if (json) return Effect.forEach(all, (turn) => Output.writeJson("stdout", turn), { discard: true })
  return all.length === 0
    ? Output.notice(`session ${loaded.rootSessionId} has no turns yet.`)
    : Effect.flatMap(Clock.currentTimeMillis, (now) => say(SessionReport.turns(all, now)))
}

/** The id of the fork on standard output, and how to go on with it beside. */
const fork = ({
  at,
  flags,
  id,
  settings,
  store
}: {
  readonly store: SessionStore.Service
  readonly settings: Settings.Settings
  readonly flags: Arguments.Flags
  readonly id: SessionId
  readonly at: number | undefined
}) =>
  Effect.gen(function* () {
    const forked = yield* SessionForking.fork(store, settings, { id, at })
    if (flags.json === true) return yield* Output.writeJson("stdout", forked)
    yield* say([forked.rootSessionId])
    const resumeCommand = StoreLocation.command(flags, "chat", `--resume ${forked.rootSessionId}`)
    yield* Output.notice(`${SessionReport.forked(forked, at)} To resume: ${resumeCommand}`)
  })

/** One JSON document with the whole session, to take elsewhere. */
const exportAll = (store: SessionStore.Service, id: SessionId) =>
  Effect.gen(function* () {
    const json = yield* Either.mapLeft(SessionStore.toJson(yield* SessionArchive.load(store, id)), (reason) =>
      ConfigurationInvalid.make(`Session ${id} cannot be exported: ${reason}.`)
    )
    yield* Output.writeJson("stdout", json)
  })

const paceOf = ({ json, pause, speed }: Arguments.Flags): Either.Either<Replay.Options, Arguments.UsageError> =>
  Either.all({
    speed:
      speed !== undefined
        ? Arguments.parseSpeed(speed)
        : Either.right(json !== true && Output.isTerminal("stdout") ? 1 : Infinity),
    longestPause: pause === undefined ? Either.right(undefined) : Arguments.parseLimit(pause)
  })

/** Prints the events as they were shown, at the recorded pace; or as JSON, one a line. */
const replay = (loaded: SessionStore.Loaded, pace: Replay.Options, json: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const events = Replay.stream(loaded.entries, pace)
    if (json) return yield* Stream.runForEach(events, (event) => Output.writeJson("stdout", event))
    const color = yield* Screen.wantsColor("stdout")
    const transcript = Transcript.make({ color, retold: true })
    const columns = Output.columns("stdout")
    let isLineOpen = false
    yield* Stream.runForEach(events, (event) => {
      const text = transcript.show(event, columns).map((piece) => {
        const before = piece.whole && isLineOpen ? "\n" : ""
        isLineOpen = !piece.whole && !piece.text.endsWith("\n")
        return `${before}${piece.text}${piece.whole ? "\n" : ""}`
      })
      return text.length === 0 ? Effect.void : Output.write("stdout", text.join(""), color)
    })
    if (isLineOpen) yield* Output.write("stdout", "\n")
  })

/** A file for `--model script:FILE`. */
const script = (loaded: SessionStore.Loaded): Effect.Effect<void> =>
  Output.write("stdout", RecordedScript.print(RecordedScript.make(loaded)))

/** Deletes what lies too long, and gives its space back. */
const prune = ({
  checkpoints,
  flags,
  place,
  store
}: {
  readonly store: SessionStore.Service | undefined
  readonly place: StoreLocation.Place
  readonly flags: Arguments.Flags
  readonly checkpoints: Checkpoints.Service
}) =>
  Effect.gen(function* () {
    const policy: Retention.Policy = {
      unused: flags.unused === undefined ? undefined : yield* Arguments.parseAge(flags.unused),
      keep: flags.keep === undefined ? undefined : yield* Arguments.parseCount(flags.keep)
    }
    const gone = store === undefined ? [] : yield* Retention.prune(store, policy)
    yield* Effect.forEach(gone, ({ rootSessionId }) => checkpoints.forget(rootSessionId), { discard: true })
    const now = yield* Clock.currentTimeMillis
    if (gone.length > 0) yield* say(gone.map((one) => SessionReport.line(one, now)))
    const room = store === undefined ? "" : yield* StoreLocation.compact(place)
    const what = gone.length === 1 ? "1 session is" : `${gone.length} sessions are`
    yield* Output.notice(`${what} deleted. Their audit stays. ${room}`.trimEnd())
    return ExitCode.completed
  })

const forget = (store: SessionStore.Service, checkpoints: Checkpoints.Service, id: SessionId) =>
  Effect.zipRight(
    Effect.zipRight(store.delete(id), checkpoints.forget(id)),
    Output.notice(`session ${id} is deleted. Its audit stays.`)
  )

const say = (lines: ReadonlyArray<string>): Effect.Effect<void> =>
  Output.say("stdout", lines.map((line) => `${line}\n`).join(""))

const among = (store: SessionName.Sessions | undefined, place: StoreLocation.Place) =>
  Effect.gen(function* () {
    const { next, sessions } = store === undefined ? { sessions: [] } : yield* store.page({ limit: 10 })
    if (sessions.length === 0) return `No sessions are stored in ${place} yet.`
    const shown = sessions.map(({ rootSessionId }) => rootSessionId)
    return `There are: ${visible(shown.join(", "))}${next === undefined ? "" : " and more"}.`
  })
