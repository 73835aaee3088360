/**
 * The API over a host: layers that a server mounts, with an authentication of its own.
 *
 * @since 0.1.0
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
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
import * as Input from "../inbox/Input.js"
import * as Form from "../interaction/Form.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { Place } from "../journal/SessionStore.js"
import type { StoreUnusable } from "../journal/StoreError.js"
import * as AllEvents from "./AllEvents.js"
import * as Answers from "./Answers.js"
import * as Api from "./Api.js"
import * as EventStream from "./EventStream.js"
import * as Refusal from "./Refusal.js"
import * as SessionEvents from "./SessionEvents.js"
import * as Stores from "./Stores.js"

/**
 * What a server may do.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Absolute directories in which clients may begin sessions; the first one is the default. */
  readonly workspaces: ReadonlyArray<string>
  /** Event streams at once. Default: 64. */
  readonly streams?: number | undefined
  /** Completes when the server ends: it takes no more words, and streams say goodbye. Default: never. */
  readonly ending?: Effect.Effect<void> | undefined
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
    Layer.provide([sessions, requests, health, metrics]),
    Layer.provide(Layer.scoped(Desk, makeDesk(options)))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What the handlers share. */
class Desk extends Context.Tag("assent/http/Desk")<Desk, Effect.Effect.Success<ReturnType<typeof makeDesk>>>() {}

const makeDesk = ({ ending = Effect.never, streams = 64, workspaces }: Options) =>
  Effect.gen(function* () {
    const host = yield* Host.Host
    const stores = yield* Stores.make(host)
    const answers = Answers.make(host, stores)
    let open = 0

    const liveOf = (id: string) => Effect.map(host.live, (all) => all.find((one) => one.id === id))

    const foundOf = (id: string) =>
      Effect.gen(function* () {
        const found = yield* Refusal.of(stores.session(id))
        if (found === undefined)
          return yield* new Api.NotFound({ message: `There is no session ${JSON.stringify(id.slice(0, 200))}.` })
        return found
      })

    const snapshotOf = (id: string) =>
      Effect.gen(function* () {
        const { listed } = yield* foundOf(id)
        const live = yield* liveOf(id)
        return yield* snapshot({ ...listed, isLive: live !== undefined }, live)
      })

    const list = (query: Host.Query) => Refusal.of(host.list(query))
    const all = Effect.map(list({ limit: 1_000 }), ({ sessions }) => ({ sessions: sessions.map(summary) }))
    const events = yield* AllEvents.make(stores.all, all)
    // What a former process was in the middle of goes on. One that cannot is left as it is, and says why when it is opened.
    yield* Effect.forkScoped(
      Effect.flatMap(stores.interrupted, (ids) =>
        Effect.forEach(ids, (id) => Effect.ignore(host.open(id)), { concurrency: 4, discard: true })
      )
    )

    return {
      host,
      stores,
      answers,
      events,
      workspaces: workspaces.map((directory) => OwnFile.realDirectory(directory) ?? directory),
      list,
      liveOf,
      foundOf,
      snapshotOf,
      /** A response of events, if there is room for one more. */
      streaming: (pieces: Parameters<typeof EventStream.response>[0]) =>
        Effect.suspend(() => {
          if (open >= streams) {
            return Effect.fail(
              new Api.Unavailable({ message: `This server has ${streams} streams open already. Close one, or wait.` })
            )
          }
          const counted = Effect.acquireRelease(
            Effect.sync(() => open++),
            () => Effect.sync(() => open--)
          )
          return Effect.succeed(EventStream.response(pieces, ending, counted))
        }),
      streamsOpen: () => open
    }
  })

const summary = (stored: Host.Stored): Api.SessionSummary => ({
  sessionId: stored.rootSessionId,
  status: stored.state,
  isLive: stored.isLive,
  title: stored.title,
  workspace: stored.workspace,
  model: stored.model,
  created: stored.created,
  lastActivity: stored.lastActivity,
  open: stored.open.map(({ requestId }) => requestId),
  holder: stored.holder
})

const snapshot = (stored: Host.Stored, live: Host.LiveSession | undefined): Effect.Effect<Api.SessionSnapshot> =>
  Effect.gen(function* () {
    const rest = { ...summary(stored), cursor: String(stored.entries), todos: [], jobs: [], agents: [] }
    if (live === undefined) return rest
    const { agent, jobs } = live
    const { cost, inputTokens, outputTokens } = agent.ledger.totals()
    const { currency } = agent.ledger
    return {
      ...rest,
      cursor: String(agent.feed?.position ?? stored.entries),
      mode: (yield* agent.permissions.status).mode,
      todos: (yield* Effect.orElseSucceed(agent.todos(), () => [])).map((todo) => ({ ...todo })),
      jobs: jobs.list(agent.id).map((job) => ({ ...job })),
      agents: (yield* agent.agents).map(({ origin, profile, session }) => ({
        agent: origin.agent,
        sessionId: origin.sessionId,
        profile,
        isIdle: session.isIdle()
      })),
      cost: { inputTokens, outputTokens, amount: cost, currency }
    }
  })

const done = { ok: true } as const

const sessions = HttpApiBuilder.group(Api.Api, "sessions", (handlers) =>
  Effect.gen(function* () {
    const desk = yield* Desk
    const { host, liveOf, foundOf, snapshotOf } = desk

    /** The live session, resumed if nobody runs it. */
    const opened = (id: string) => Effect.zipRight(foundOf(id), Refusal.of(host.open(id)))

    return handlers
      .handle("create", ({ payload: { id, model, profile, workspace } }) =>
        Effect.gen(function* () {
          const [first = ""] = desk.workspaces
          const real = workspace === undefined ? first : (OwnFile.realDirectory(workspace) ?? workspace)
          if (!desk.workspaces.includes(real)) {
            return yield* new Api.Forbidden({
              message: `This server does not work in ${JSON.stringify(workspace)}. Use one of the directories that it was started with.`
            })
          }
          const session = yield* Refusal.of(host.create({ workspace: real, id, model, profile }))
          return { sessionId: session.id }
        })
      )
      .handle("list", ({ urlParams: { after, limit, workspace } }) =>
        Effect.gen(function* () {
          const place = after === undefined ? undefined : placeIn(after)
          if (place !== undefined && Option.isNone(place))
            return yield* new Api.BadRequest({ message: '"after" is no "next" of a page of sessions.' })
          const { next, remarks, sessions } = yield* desk.list({
            workspace,
            limit,
            after: Option.getOrUndefined(place ?? Option.none())
          })
          return { sessions: sessions.map(summary), remarks, ...(next === undefined ? {} : { next: wordOf(next) }) }
        })
      )
      .handle("get", ({ path }) => snapshotOf(path.sessionId))
      .handle("send", ({ headers, path, payload: { files = [], id, target, text } }) =>
        Effect.gen(function* () {
          if (text === undefined && files.length === 0)
            return yield* new Api.BadRequest({ message: 'Give "text" or "files".' })
          const key = id ?? headers["idempotency-key"]
          if (id !== undefined && headers["idempotency-key"] !== undefined && headers["idempotency-key"] !== id)
            return yield* new Api.BadRequest({ message: '"id" and the header Idempotency-Key differ.' })
          const { agent } = yield* opened(path.sessionId)
          const input: Input.Input =
            files.length === 0 ? (text ?? "") : [text ?? "", ...files.map((file) => Input.fromBytes(file.base64, file))]
          return yield* Effect.map(agent.send(input, { id: key, target }), (message) => ({
            messageId: message.id
          })).pipe(
            Effect.catchTag("MessageAlreadyTaken", ({ messageId }) =>
              Effect.succeed({ messageId, again: true as const })
            ),
            Refusal.of
          )
        })
      )
      .handle("interrupt", ({ path, payload: { target, toolCallId } }) =>
        Effect.gen(function* () {
          yield* foundOf(path.sessionId)
          const live = yield* liveOf(path.sessionId)
          if (live !== undefined) yield* Refusal.of(live.agent.interrupt({ target, toolCallId }))
          return done
        })
      )
      .handle("permissions", ({ path, payload }) =>
        Effect.gen(function* () {
          const { name } = yield* Api.Caller
          const { agent } = yield* opened(path.sessionId)
          const outcome = yield* agent.permissions(payload.command, { by: name })
          if (Either.isLeft(outcome)) return yield* new Api.Unprocessable({ message: outcome.left })
          return { lines: outcome.right.lines }
        })
      )
      .handle("mode", ({ path, payload }) =>
        Effect.gen(function* () {
          const { name } = yield* Api.Caller
          const { agent } = yield* opened(path.sessionId)
          yield* Refusal.of(agent.permissions.setMode(payload.mode, { by: name }))
          return done
        })
      )
      .handle("model", ({ path, payload }) =>
        Effect.gen(function* () {
          const session = yield* opened(path.sessionId)
          yield* Refusal.of(session.setModel(payload.model))
          return done
        })
      )
      .handle("remove", ({ path }) =>
        Effect.gen(function* () {
          yield* foundOf(path.sessionId)
          const live = yield* liveOf(path.sessionId)
          if (live !== undefined && !(yield* live.agent.isIdle)) {
            return yield* new Api.Conflict({
              message: `Session ${path.sessionId} is at work. Interrupt it first.`
            })
          }
          yield* host.close(path.sessionId)
          yield* Refusal.of(host.delete(path.sessionId))
          return done
        })
      )
      .handleRaw("events", ({ path, request }) =>
        Effect.gen(function* () {
          const { store } = yield* foundOf(path.sessionId)
          const source = { host, store, id: path.sessionId, snapshot: snapshotOf(path.sessionId) }
          return yield* desk.streaming(SessionEvents.make(source, request.headers["last-event-id"]))
        })
      )
      .handleRaw("allEvents", ({ request }) => desk.streaming(desk.events.read(request.headers["last-event-id"])))
  })
)

const requests = HttpApiBuilder.group(Api.Api, "requests", (handlers) =>
  Effect.map(Desk, ({ answers, host, stores }) =>
    handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { remarks, waiting } = yield* stores.openRequests
          const seen = new Set(waiting.map(({ request }) => String(request.requestId)))
          const asked = waiting.map(({ answer, holder, request, rootSessionId, title, workspace }) => ({
            ...encoded(request),
            sessionId: String(rootSessionId),
            title,
            workspace,
            answeredBy: answer?.by,
            holder
          }))
          // Those that no other process asks again are at their brokers only.
          for (const { agent, id, redactor, workspace } of yield* host.live) {
            for (const request of yield* agent.broker.open) {
              if (seen.has(request.requestId)) continue
              asked.push({
                ...encoded(request, (value) => redactor.value(value)),
                sessionId: id,
                title: "",
                workspace,
                answeredBy: undefined,
                holder: undefined
              })
            }
          }
          return { requests: asked, remarks }
        })
      )
      .handle("answer", ({ path, payload, request }) =>
        Effect.flatMap(Api.Caller, (person) => {
          const isPrivate = Option.exists(request.remoteAddress, isLoopback)
          return answers.answer(path.requestId, { ...payload, isPrivate }, person)
        })
      )
      .handle("cancel", ({ path }) =>
        Effect.flatMap(Api.Caller, (person) => Effect.as(answers.cancel(path.requestId, person), done))
      )
  )
)

/** Whether only this machine reaches the address. */
const isLoopback = (address: string): boolean => /^(?:::1|(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3})$/.test(address)

/** As `--jsonl` writes it. */
const encoded = (
  request: InteractionRequest.InteractionRequest,
  mask: (value: unknown) => unknown = (value) => value
) => {
  const form = Form.of(request.interaction)
  return {
    _tag: "InteractionRequest" as const,
    request: asRecord(mask(InteractionRequest.encode(request))),
    form: form === undefined ? undefined : asRecord(mask(form))
  }
}

const asRecord = (value: unknown): { readonly [key: string]: unknown } => ({ ...Object(value) })

const health = HttpApiBuilder.group(Api.Api, "health", (handlers) =>
  handlers.handle("healthz", () => Effect.succeed({ ok: true }))
)

const metrics = HttpApiBuilder.group(Api.Api, "metrics", (handlers) =>
  Effect.map(Desk, ({ host, stores, streamsOpen }) =>
    handlers.handle("metrics", () =>
      Effect.gen(function* () {
        const { waiting } = yield* stores.openRequests
        const { heapUsed, rss } = process.memoryUsage()
        return [
          gauge("assent_sessions_live", "Sessions that this process runs.", (yield* host.live).length),
          gauge("assent_requests_open", "Requests that wait for an answer, in all sessions.", waiting.length),
          gauge("assent_event_streams", "Event streams that are open.", streamsOpen()),
          gauge("process_resident_memory_bytes", "Resident memory of the process.", rss),
          gauge("nodejs_heap_size_used_bytes", "Memory that the heap uses.", heapUsed)
        ].join("")
      })
    )
  )
)

const gauge = (name: string, help: string, value: number) =>
  `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`

/** A place in the list as a word, and back. */
const Word = Schema.compose(
  Schema.StringFromBase64Url,
  Schema.parseJson(Schema.Struct({ lastActivity: Schema.Number, rootSessionId: SessionId }))
)
const placeIn = Schema.decodeUnknownOption(Word)
const wordOf = (place: Place): string => Schema.encodeSync(Word)(place)
