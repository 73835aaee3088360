/**
 * Calls of a webhook about questions that wait: one call a question, with what it is and how old, and never with what it
 * asks.
 *
 * ```
 * POST <webhook>                       {"kind": "Approve", "session": "ses_…", "age": 31,
 * idempotency-key: <requestId>         "link": "http://127.0.0.1:4096/#/session/ses_…"}
 * ```
 *
 * A status of 2xx takes it. Failures that may pass are retried with a limit, as long as the question is open. Redirects are
 * not followed. Which calls were made is kept, so that the next process makes none of them again: in a file, or in the database
 * of a cluster.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as Host from "../host/Host.js"
import * as OwnFile from "../host/local/OwnFile.js"
import * as UserLocation from "../host/local/UserLocation.js"
import * as Stores from "./Stores.js"

export interface Options {
  readonly webhook: URL
  /** How long a question waits before the call. */
  readonly after: Duration.DurationInput
  /** The address of the web console, to which the links lead. */
  readonly console: string
  readonly fetch: typeof fetch
  /** Takes a sentence about a call that failed for good. It has nothing of the webhook's path, which may be secret. */
  readonly warn: (sentence: string) => void
  /** Default: eight times, within some three minutes. */
  readonly retry?: Schedule.Schedule<unknown> | undefined
}

/** An open question. */
export interface Waiting {
  readonly kind: string
  readonly session: string
  /** Milliseconds since the epoch. */
  readonly since: number
}

/** The questions, and which of them were called for. */
export interface Questions {
  /** Those that are open and were not called for, by request id. Undefined when that is not known now. */
  readonly waiting: Effect.Effect<ReadonlyMap<string, Waiting> | undefined>
  /** After a call, or after the last one that failed. */
  readonly called: (requestId: string) => Effect.Effect<void>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Calls about the questions of a host until the scope closes. `file` keeps the ids of those that were called for and are open. */
export const run = (
  host: Host.Service,
  { file, ...options }: Options & { readonly file: string }
): Effect.Effect<void, Effect.Effect.Error<ReturnType<typeof Stores.make>>, Scope.Scope> =>
  Effect.gen(function* () {
    const stores = yield* Stores.make(host)
    const called = idsIn(file)
    const keep = Effect.ignoreLogged(Effect.try(() => UserLocation.replace(file, JSON.stringify([...called]))))
    yield* call(options, {
      waiting: Effect.gen(function* () {
        const open = yield* openIn(host, stores)
        const over = [...called].filter((id) => !open.has(id))
        over.forEach((id) => called.delete(id))
        if (over.length > 0) yield* keep
        return new Map([...open].filter(([id]) => !called.has(id)))
      }),
      called: (id) =>
        Effect.suspend(() => {
          called.add(id)
          return keep
        })
    })
  })

/** Calls until the scope closes. */
export const call = (options: Options, questions: Questions): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const calls = yield* FiberMap.make<string>()
    // A webhook that hangs holds few connections.
    const room = yield* Effect.makeSemaphore(4)
    const after = Duration.toMillis(options.after)
    /** Calls that were made and that the questions may not know of yet. */
    const made = new Set<string>()

    const callFor = (id: string, waiting: Waiting) =>
      post(options, id, waiting).pipe(
        room.withPermits(1),
        Effect.retry({ while: ({ isTransient }) => isTransient, schedule: options.retry ?? retries }),
        Effect.catchAll(({ reason }) =>
          Effect.sync(() =>
            options.warn(
              `The webhook at ${options.webhook.host} did not take that a question waits: ${reason}. Look at "notify" in your config.json.`
            )
          )
        ),
        Effect.zipRight(Effect.sync(() => made.add(id))),
        Effect.zipRight(questions.called(id))
      )

    /** Begins the calls that are due, and yields the time until the next look. */
    const look = Effect.gen(function* () {
      const waiting = yield* questions.waiting
      if (waiting === undefined) return after / 4
      const now = yield* Clock.currentTimeMillis
      for (const [id] of calls) if (!waiting.has(id)) yield* FiberMap.remove(calls, id)
      for (const id of made) if (!waiting.has(id)) made.delete(id)
      let next = after / 4
      for (const [id, question] of waiting) {
        if (made.has(id) || (yield* FiberMap.has(calls, id))) continue
        const due = question.since + after - now
        if (due <= 0) yield* FiberMap.run(calls, id, callFor(id, question))
        else next = Math.min(next, due)
      }
      return next
    })
    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(look, (next) => Effect.sleep(next))))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** By request id: those of the stores, and those that are at the brokers of this process alone. */
const openIn = (host: Host.Service, stores: Stores.Stores): Effect.Effect<ReadonlyMap<string, Waiting>> =>
  Effect.gen(function* () {
    const open = new Map<string, Waiting>()
    for (const { agent, id } of yield* host.live)
      for (const { interaction, issuedAt, requestId } of yield* agent.broker.open)
        open.set(requestId, { kind: interaction._tag, session: id, since: issuedAt })
    const { waiting } = yield* stores.openRequests()
    for (const { answer, request, rootSessionId } of waiting) {
      const { interaction, issuedAt, requestId } = request
      if (answer === undefined) open.set(requestId, { kind: interaction._tag, session: rootSessionId, since: issuedAt })
    }
    return open
  })

/** Why a call failed. */
interface Failure {
  readonly reason: string
  readonly isTransient: boolean
}

const post = (
  { console, fetch, webhook }: Options,
  id: string,
  { kind, session, since }: Waiting
): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const age = Math.round(((yield* Clock.currentTimeMillis) - since) / 1_000)
    const body = JSON.stringify({ kind, session, age, link: `${console}/#/session/${encodeURIComponent(session)}` })
    const headers = { "content-type": "application/json", "idempotency-key": id }
    const status = yield* Effect.tryPromise({
      try: async (signal) => {
        // A redirect would carry the call to an address that nobody named.
        const answer = await fetch(webhook, { method: "POST", headers, body, redirect: "manual", signal })
        await answer.body?.cancel()
        return answer.status
      },
      catch: (): Failure => ({ reason: "it cannot be reached", isTransient: true })
    })
    if (status >= 200 && status < 300) return
    const isTransient = status === 408 || status === 429 || status >= 500
    yield* Effect.fail<Failure>({ reason: `it answered with the status ${status}`, isTransient })
  }).pipe(
    Effect.timeoutFail({
      duration: "10 seconds",
      onTimeout: (): Failure => ({ reason: "it did not answer within 10 seconds", isTransient: true })
    })
  )

const retries = Schedule.exponential("1 second").pipe(
  Schedule.union(Schedule.spaced("1 minute")),
  Schedule.jittered,
  Schedule.intersect(Schedule.recurs(8))
)

const idsIn = (file: string): Set<string> => {
  const content = OwnFile.read(file, 10_000_000)
  try {
    const ids: unknown = content._tag === "Text" ? JSON.parse(content.text) : []
    return new Set(Array.isArray(ids) ? ids.map(String) : [])
  } catch {
    return new Set()
  }
}
