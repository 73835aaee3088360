/**
 * The API over a host: layers that a server mounts, with an authentication of its own.
 *
 * @since 0.1.0
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpRouter from "@effect/platform/HttpRouter"
import type { HttpServerRequest } from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { SessionId } from "../core/Id.js"
import * as Host from "../host/Host.js"
import type { LookFailure } from "../host/Host.js"
import * as OwnFile from "../host/local/OwnFile.js"
import * as Ballot from "../interaction/Ballot.js"
import * as SessionFork from "../journal/SessionFork.js"
import type { Place } from "../journal/SessionStore.js"
import type { Listed } from "../journal/SessionSummary.js"
import type { StoreUnusable } from "../journal/StoreError.js"
import * as Admission from "./Admission.js"
import * as AllEvents from "./AllEvents.js"
import * as Answers from "./Answers.js"
import * as Api from "./Api.js"
import * as EventStream from "./EventStream.js"
import * as PageRun from "./PageRun.js"
import * as Parting from "./Parting.js"
import * as Present from "./Present.js"
import * as Refusal from "./Refusal.js"
import * as RouteTable from "./RouteTable.js"
import * as SessionEvents from "./SessionEvents.js"
import * as Sessions from "./Sessions.js"
import * as Share from "./Share.js"
import * as Stores from "./Stores.js"
import * as Tenancy from "./Tenancy.js"

/**
 * What a server may do.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Absolute directories in which clients may begin sessions; the first one is the default. */
  readonly workspaces: ReadonlyArray<string>
  /** Event streams and runs of one caller at once. Default: 64. */
  readonly streams?: number | undefined
  /** Completes when the server ends: it takes no more words, and streams say goodbye. Default: never. */
  readonly ending?: Effect.Effect<void> | undefined
  /**
   * Who does what clients ask of a session, and goes on with those that were cut off. Default: this process.
   *
   * @internal
   */
  readonly sessions?: Sessions.Sessions | undefined
  /**
   * Why requests are better sent elsewhere, as a sentence. Default: nothing.
   *
   * @internal
   */
  readonly unready?: Effect.Effect<string | undefined> | undefined
  /**
   * Metrics in the text format of Prometheus, instead of the number of open requests, which reads their sessions.
   *
   * @internal
   */
  readonly metrics?: Effect.Effect<string> | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The whole API, for `HttpApiBuilder.serve` or `HttpApiBuilder.httpApp`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<HttpApi.Api, LookFailure | StoreUnusable, Host.Host | Api.Authentication> =>
  HttpApiBuilder.api(Api.Api).pipe(
    Layer.provide([sessions, requests, runs, control, health, metrics]),
    Layer.provide(Admission.layer),
    Layer.provide(Layer.scoped(Desk, makeDesk(options)))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What the handlers share. */
class Desk extends Context.Tag("assent/http/Desk")<Desk, Effect.Effect.Success<ReturnType<typeof makeDesk>>>() {}

/** Makes a response that ends before its source does if it has to. */
type Respond = (parting: Effect.Effect<EventStream.Parting>) => HttpServerResponse.HttpServerResponse

/** Streams of all callers together. */
const mostStreams = 512

const makeDesk = ({
  ending = Effect.never,
  metrics,
  sessions: elsewhere,
  streams = 64,
  unready = Effect.succeed(undefined),
  workspaces
}: Options) =>
  Effect.gen(function* () {
    const host = yield* Host.Host
    const stores = yield* Stores.make(host)
    const sessions = elsewhere ?? Sessions.ofHost(host, stores)
    const authentication = yield* Api.Authentication
    const room = Share.make({ all: Math.max(mostStreams, 2 * streams), each: streams })
    const goodbye = Effect.as(ending, EventStream.goodbye)

    const list = (query: Host.Query) => Refusal.of(host.list(query))
    const behind = { sessions, stores, list }
    const mine = Effect.map(Api.Caller, (person) => Tenancy.view(behind, person))
    const allOf = ({ list }: Pick<Tenancy.View, "list">) =>
      Effect.map(list({ limit: 1_000 }), ({ sessions }) => ({ sessions: sessions.map(summary) }))
    const events = yield* AllEvents.make(stores.all)
    /** A caller of a tenant gets no event and no session of another one. */
    const eventsOf = (view: Tenancy.View, after: string | undefined) =>
      events.read(after, { sees: view.sees, snapshot: allOf(view) })
    // What a former process was in the middle of goes on. One that cannot is left as it is, and says why when it is opened.
    if (elsewhere === undefined)
      yield* Effect.forkScoped(
        Effect.flatMap(stores.interrupted, (ids) =>
          Effect.forEach(ids, (id) => Effect.ignore(host.open(id)), { concurrency: 4, discard: true })
        )
      )

    const known = workspaces.map((directory) => OwnFile.realDirectory(directory) ?? directory)

    return {
      host,
      stores,
      mine,
      unready,
      metrics,
      eventsOf,
      workspaces: known,
      /** Other processes serve the same sessions. */
      isShared: elsewhere !== undefined,
      /** The real path of a directory that the server was started with. */
      permitted: (workspace: string) =>
        Effect.suspend(() => {
          const real = OwnFile.realDirectory(workspace) ?? workspace
          return known.includes(real)
            ? Effect.succeed(real)
            : new Api.Forbidden({
                message: `This server does not work in ${JSON.stringify(workspace)}. Use one of the directories that it was started with.`
              })
        }),
      /** A response of events, if there is room for one more; else nothing is begun. */
      streaming: <E, R>(begin: Effect.Effect<Respond, E, R>) =>
        Effect.gen(function* () {
          const caller = yield* Api.Caller
          const { route } = yield* HttpRouter.RouteContext
          const context = yield* Effect.context<HttpRouter.HttpRouter.Provided>()
          // Held until the response is over.
          yield* Effect.catchAll(room.hold(caller, 1), noRoom)
          const respond = yield* begin
          const rule = RouteTable.ruleOf(route)
          const left = rule === undefined ? Effect.never : Parting.ofCaller(authentication, caller, rule)
          return respond(Effect.raceFirst(goodbye, Effect.provide(left, context)))
        }),
      streamsOpen: room.held
    }
  })

const noRoom = (full: Share.Full): Effect.Effect<never, Api.TooManyRequests | Api.Unavailable> =>
  full === "caller"
    ? Tenancy.tooMany("You have as many streams open as one caller may. Close one, or wait.", 5)
    : new Api.Unavailable({ message: "This server has no room for more streams. Close one, or wait." })

/** A process holds a session between its turns, too. */
const statusOf = ({ inTurn, state }: Host.Stored): Api.SessionSummary["status"] =>
  state === "running" && !inTurn ? "idle" : state

const summary = (stored: Host.Stored): Api.SessionSummary => ({
  sessionId: stored.rootSessionId,
  status: statusOf(stored),
  isLive: stored.isLive,
  title: stored.title,
  workspace: stored.workspace,
  model: stored.model,
  turns: stored.turns,
  created: stored.created,
  lastActivity: stored.lastActivity,
  open: stored.open.map(({ requestId }) => requestId),
  holder: stored.holder
})

const snapshotOf = ({ found, sessions }: Tenancy.View, id: string) =>
  Effect.gen(function* () {
    const { listed } = yield* found(id)
    return snapshot(listed, yield* sessions.present(id))
  })

const snapshot = (stored: Listed, present: Present.Present | undefined): Api.SessionSnapshot => {
  const { position = stored.entries, ...rest } = present ?? { todos: [], jobs: [], agents: [] }
  return { ...summary({ ...stored, isLive: present !== undefined }), cursor: String(position), ...rest }
}

const done = { ok: true } as const

const sessions = HttpApiBuilder.group(Api.Api, "sessions", (handlers) =>
  Effect.map(Desk, ({ eventsOf, mine, permitted, streaming, workspaces }) => {
    const mySessions = Effect.map(mine, ({ sessions }) => sessions)
    return handlers
      .handle("create", ({ payload: { id, model, profile, workspace } }) =>
        Effect.gen(function* () {
          const [first] = workspaces
          if (workspace === undefined && first === undefined)
            return yield* new Api.Forbidden({ message: "This server begins no sessions." })
          const real = yield* permitted(workspace ?? first ?? "")
          return yield* (yield* mySessions).create({ workspace: real, id, model, profile })
        })
      )
      .handle("list", ({ urlParams: { after, limit, workspace } }) =>
        Effect.gen(function* () {
          const place = after === undefined ? undefined : placeIn(after)
          if (place !== undefined && Option.isNone(place))
            return yield* new Api.BadRequest({ message: '"after" is no "next" of a page of sessions.' })
          const { next, remarks, sessions } = yield* (yield* mine).list({
            workspace,
            limit,
            after: Option.getOrUndefined(place ?? Option.none())
          })
          return { sessions: sessions.map(summary), remarks, ...(next === undefined ? {} : { next: wordOf(next) }) }
        })
      )
      .handle("get", ({ path }) => Effect.flatMap(mine, (view) => snapshotOf(view, path.sessionId)))
      .handle("send", ({ headers, path, payload: { delivery, files = [], id, target, text } }) =>
        Effect.gen(function* () {
          if (text === undefined && files.length === 0)
            return yield* new Api.BadRequest({ message: 'Give "text" or "files".' })
          const key = id ?? headers["idempotency-key"]
          if (id !== undefined && headers["idempotency-key"] !== undefined && headers["idempotency-key"] !== id)
            return yield* new Api.BadRequest({ message: '"id" and the header Idempotency-Key differ.' })
          if (delivery === "queue" && target !== undefined)
            return yield* new Api.BadRequest({ message: 'Words that are queued have no "target". Leave it out.' })
          return yield* (yield* mySessions).send(path.sessionId, { text, files, target, delivery, id: key })
        })
      )
      .handle("interrupt", ({ path, payload }) =>
        Effect.flatMap(mySessions, ({ interrupt }) => Effect.as(interrupt(path.sessionId, payload), done))
      )
      .handle("takeBack", ({ path, payload: { target } }) =>
        Effect.flatMap(mySessions, ({ takeBack }) => takeBack(path.sessionId, target))
      )
      .handle("compact", ({ path }) => Effect.flatMap(mySessions, ({ compact }) => compact(path.sessionId)))
      .handle("permissions", ({ path, payload }) =>
        Effect.gen(function* () {
          const { name } = yield* Api.Caller
          return yield* (yield* mySessions).permissions(path.sessionId, payload.command, name)
        })
      )
      .handle("mode", ({ path, payload }) =>
        Effect.gen(function* () {
          const { name } = yield* Api.Caller
          yield* (yield* mySessions).setMode(path.sessionId, payload.mode, name)
          return done
        })
      )
      .handle("model", ({ path, payload: { model, thinking } }) =>
        Effect.flatMap(mySessions, ({ setModel }) => Effect.as(setModel(path.sessionId, model, thinking), done))
      )
      .handle("remove", ({ path }) =>
        Effect.flatMap(mySessions, ({ remove }) => Effect.as(remove(path.sessionId), done))
      )
      .handleRaw("events", ({ path, request }) =>
        Effect.gen(function* () {
          const view = yield* mine
          const { listed, store } = yield* view.found(path.sessionId)
          const id = listed.rootSessionId
          const source = { sessions: view.sessions, store, id, snapshot: snapshotOf(view, id) }
          const pieces = EventStream.ofPieces(SessionEvents.make(source, request.headers["last-event-id"]))
          return yield* streaming(Effect.succeed((parting) => EventStream.response(pieces, parting)))
        })
      )
      .handleRaw("allEvents", ({ request }) =>
        Effect.gen(function* () {
          const view = yield* mine
          const events = eventsOf(view, request.headers["last-event-id"])
          return yield* streaming(Effect.succeed((parting) => EventStream.response(events, parting)))
        })
      )
  })
)

const requests = HttpApiBuilder.group(Api.Api, "requests", (handlers) =>
  Effect.map(Desk, ({ mine, stores }) => {
    const votes = Answers.votes(stores)
    return handlers
      .handle("list", ({ urlParams: { session } }) =>
        Effect.gen(function* () {
          const { openRequests, sessions } = yield* mine
          const { remarks, waiting } = yield* openRequests(session)
          const seen = new Set(waiting.map(({ request }) => String(request.requestId)))
          const asked: Array<Api.OpenRequest> = yield* Effect.forEach(
            waiting,
            ({ answer, holder, request, rootSessionId, title, workspace }) =>
              Effect.map(
                Ballot.isReserved(request.interaction) ? votes(request.requestId) : Effect.succeed(undefined),
                (open) => ({
                  ...Present.encode(request),
                  sessionId: String(rootSessionId),
                  title,
                  workspace,
                  ...open,
                  answeredBy: answer?.by,
                  holder
                })
              )
          )
          // Those that no other process asks again are at their brokers only.
          for (const open of yield* sessions.open(session))
            if (!seen.has(String(open.request["requestId"]))) asked.push(open)
          return { requests: asked, remarks }
        })
      )
      .handle("answer", ({ path, payload, request }) =>
        Effect.gen(function* () {
          const isPrivate = Option.exists(request.remoteAddress, isLoopback)
          const { sessions } = yield* mine
          return yield* sessions.answer(path.requestId, { ...payload, isPrivate }, yield* Api.Caller)
        })
      )
      .handle("cancel", ({ path }) =>
        Effect.gen(function* () {
          const { sessions } = yield* mine
          yield* sessions.cancel(path.requestId, yield* Api.Caller)
          return done
        })
      )
  })
)

const runs = HttpApiBuilder.group(Api.Api, "runs", (handlers) =>
  Effect.map(Desk, ({ mine, streaming }) => {
    const run = (id: string, page: PageRun.Page, request: HttpServerRequest) =>
      Effect.gen(function* () {
        const isPrivate = Option.exists(request.remoteAddress, isLoopback)
        const { sessions } = yield* mine
        const lines = yield* sessions.run(id, page, { person: yield* Api.Caller, isPrivate })
        return (parting: Effect.Effect<EventStream.Parting>) =>
          lines === undefined ? HttpServerResponse.empty() : PageRun.response(page, lines, parting)
      })
    return handlers
      .handle("agui", ({ path, payload, request }) =>
        streaming(run(path.sessionId, { _tag: "AgUi", input: payload }, request))
      )
      .handle("ai", ({ path, payload, request }) =>
        streaming(run(path.sessionId, { _tag: "AiSdk", input: payload }, request))
      )
      .handle("aiStream", ({ path: { chatId, sessionId }, request }) =>
        streaming(run(sessionId, { _tag: "AiSdkAgain", chat: chatId }, request))
      )
  })
)

const control = HttpApiBuilder.group(Api.Api, "control", (handlers) =>
  Effect.map(Desk, ({ host, isShared, mine, permitted, workspaces }) =>
    handlers
      .handle("about", () => Effect.map(Api.Caller, ({ name }) => ({ person: name, workspaces })))
      .handle("workspaces", () =>
        Effect.gen(function* () {
          const [failed, found] = yield* Effect.partition(workspaces, host.trust)
          return { workspaces: found, remarks: failed.map(({ message }) => message) }
        })
      )
      .handle("trust", ({ payload: { digest, workspace } }) =>
        Effect.gen(function* () {
          if (isShared) return yield* new Api.BadRequest({ message: startWithTrust })
          const real = yield* permitted(workspace)
          const { name } = yield* Api.Caller
          const given = yield* Effect.either(host.giveTrust(real, { digest, by: name }))
          const trust = yield* Refusal.of(host.trust(real))
          if (Either.isRight(given)) return trust
          const { left } = given
          if (left._tag === "TrustRefused" && left.problem === "changed")
            return yield* new Api.WorkspaceChanged({ message: left.message, trust })
          return yield* Refusal.make(left)
        })
      )
      .handle("turns", ({ path }) =>
        Effect.gen(function* () {
          const { listed, store } = yield* (yield* mine).found(path.sessionId)
          const turns = SessionFork.turns(yield* Refusal.of(store.load(listed.rootSessionId)))
          return {
            turns: turns.map(({ began, correlationId, ended, number, words }) => ({
              number,
              correlationId,
              words,
              began,
              ended: ended?.at
            }))
          }
        })
      )
      .handle("fork", ({ path, payload: { turn } }) =>
        Effect.gen(function* () {
          const { found, room } = yield* mine
          const { listed } = yield* found(path.sessionId)
          yield* room
          const { name } = yield* Api.Caller
          const { forked, words } = yield* Refusal.of(host.fork(listed.rootSessionId, { at: turn, by: name }))
          return { sessionId: String(forked.rootSessionId), turn: forked.turn, words }
        })
      )
      .handle("models", ({ path }) =>
        Effect.gen(function* () {
          return { models: yield* (yield* mine).sessions.models(path.sessionId) }
        })
      )
      .handle("audit", ({ path }) =>
        Effect.gen(function* () {
          const { listed } = yield* (yield* mine).found(path.sessionId)
          const { before, records, verdict, verified } = yield* Refusal.of(host.audit(listed.rootSessionId))
          return { verified, verdict, records: records.map(asRecord), before }
        })
      )
  )
)

/** Whether only this machine reaches the address. */
const isLoopback = (address: string): boolean => /^(?:::1|(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/.test(address)

const asRecord = (value: unknown): { readonly [key: string]: unknown } => ({ ...Object(value) })

const health = HttpApiBuilder.group(Api.Api, "health", (handlers) =>
  Effect.map(Desk, ({ unready }) =>
    handlers
      .handle("healthz", () => Effect.succeed({ ok: true }))
      .handle("readyz", () =>
        Effect.flatMap(unready, (message) =>
          message === undefined ? Effect.succeed({ ok: true }) : new Api.Unavailable({ message })
        )
      )
  )
)

const metrics = HttpApiBuilder.group(Api.Api, "metrics", (handlers) =>
  Effect.map(Desk, ({ host, metrics, stores, streamsOpen }) =>
    handlers.handle("metrics", () =>
      Effect.gen(function* () {
        const { heapUsed, rss } = process.memoryUsage()
        const { system, user } = process.cpuUsage()
        return [
          gauge("assent_sessions_live", "Sessions that this process runs.", (yield* host.live).length),
          gauge("assent_event_streams", "Event streams that are open.", streamsOpen()),
          counter("process_cpu_seconds_total", "Processor time of the process.", (user + system) / 1_000_000),
          gauge("process_resident_memory_bytes", "Resident memory of the process.", rss),
          gauge("nodejs_heap_size_used_bytes", "Memory that the heap uses.", heapUsed),
          yield* metrics ?? Effect.map(stores.openCount, requestsOpen)
        ].join("")
      })
    )
  )
)

const startWithTrust =
  "Each node of a cluster reads trust when it starts. Trust the directory on each of them, and start them again."

const metric = (type: "counter" | "gauge") => (name: string, help: string, value: number) =>
  `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`
const counter = metric("counter")
const gauge = metric("gauge")

const requestsOpen = (count: number) =>
  gauge("assent_requests_open", "Requests that wait for an answer, in all sessions.", count)

/** A place in the list as a word, and back. */
const Word = Schema.compose(
  Schema.StringFromBase64Url,
  Schema.parseJson(Schema.Struct({ lastActivity: Schema.Number, rootSessionId: SessionId }))
)
const placeIn = Schema.decodeUnknownOption(Word)
const wordOf = (place: Place): string => Schema.encodeSync(Word)(place)
