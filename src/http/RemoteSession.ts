/**
 * A session that another process serves, as a surface drives it.
 *
 * ```
 *   events of the server ─► projection (agents, todos, mode, tokens) ─► bus ─► the surface
 *   InteractionRequested ─► open requests of the server ─► each attached interactor
 *   an answer ─► the server, again under the same id until it says what became of it
 *   settled elsewhere ─► the dialogs close, and the person reads who answered
 * ```
 *
 * The server has the session. Leaving it withdraws nothing. When the server ends, this end connects again, with the id of the
 * last event.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import type { Origin } from "../core/Origin.js"
import type { Todo } from "../core/Todo.js"
import { AgentEvent, type EventOf } from "../event/AgentEvent.js"
import * as EventBus from "../event/EventBus.js"
import * as TurnEnd from "../event/TurnEnd.js"
import type { SessionHandle } from "../host/SessionHandle.js"
import * as Input from "../inbox/Input.js"
import * as InteractorCall from "../interaction/InteractorCall.js"
import * as Interaction from "../interaction/Interaction.js"
import { InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Ended, Service } from "../interaction/InteractorPort.js"
import * as TokenLedger from "../model/TokenLedger.js"
import { modes, type Mode } from "../permission/PermissionState.js"
import * as ApiClient from "./ApiClient.js"
import { InteractionAlreadyAnswered, type SessionSnapshot } from "./Api.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

export interface Options {
  readonly client: ApiClient.ApiClient
  readonly id: string
  /** Says a sentence to the person: that the server is away, or who answered. */
  readonly say: (sentence: string) => Effect.Effect<void>
  /** Shows words that began a turn and were not sent here. */
  readonly heard: (words: string) => Effect.Effect<void>
  /** The past is not among the events, but all of it in `past`. Default: the last turn comes as events first. */
  readonly apart?: boolean | undefined
}

export interface RemoteSession extends SessionHandle {
  /** As it was when it was attached. */
  readonly snapshot: SessionSnapshot
  /** Puts an interactor beside those of the server until the scope closes. What is open is asked at it, too. */
  readonly attach: (interactor: Service) => Effect.Effect<void, never, Scope.Scope>
  readonly setModel: (model: string, thinking?: "low" | "medium" | "high") => Effect.Effect<void, ApiClient.CallFailed>
  /** What it cost so far, by the prices of the server. */
  readonly spent: Effect.Effect<{ readonly amount: number; readonly currency: string | undefined } | undefined>
  /** All that happened before, once it is there. Empty unless it is wanted apart. */
  readonly past: Effect.Effect<ReadonlyArray<AgentEvent>>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Attaches to the session until the scope closes. What it said last comes as events first. */
export const attach = ({
  apart = false,
  client,
  heard,
  id: name,
  say
}: Options): Effect.Effect<RemoteSession, ApiClient.CallFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const id = SessionId.make(name)
    const path = { sessionId: name }
    const call = <A, E>(effect: Effect.Effect<A, E>) => ApiClient.failing(client, effect)
    const snapshotNow = timely(client, call(client.sessions.get({ path })))
    const snapshot = yield* snapshotNow
    const scope = yield* Effect.scope
    const ids = yield* Id.IdGenerator
    const known = new Known(id, snapshot)
    /** Counts changes, for those that wait for one. */
    const changes = yield* SubscriptionRef.make(0)
    const changed = SubscriptionRef.update(changes, (count) => count + 1)
    const { bus, events } = EventBus.owned({ capacity: 4_096, whenFull: "wait" })
    const over = yield* Deferred.make<void>()
    const leave = Effect.zipRight(bus.close, Deferred.succeed(over, undefined))
    yield* Effect.addFinalizer(() => leave)

    // ---------------------------------------------------------------------------------------------------------------
    // questions
    // ---------------------------------------------------------------------------------------------------------------

    const open = new Map<string, Open>()
    const settled = new Map<string, Ended>()
    const attached = new Set<(one: Open) => Effect.Effect<void>>()
    // Written when a question is asked and on each connection; several wishes are one. One fiber reads.
    const wanted = yield* Queue.sliding<void>(1)

    const settle = (requestId: string, end: Ended) =>
      Effect.suspend(() => {
        if (!settled.has(requestId)) settled.set(requestId, end)
        const one = open.get(requestId)
        open.delete(requestId)
        return one === undefined ? Effect.void : Deferred.succeed(one.ended, end)
      })

    const look = Effect.gen(function* () {
      const { requests } = yield* timely(client, call(client.requests.list({ urlParams: { session: name } })))
      for (const { request: encoded } of requests) {
        const request = Option.getOrUndefined(decodeRequest(encoded))
        if (request === undefined || open.has(request.requestId) || settled.has(request.requestId)) continue
        const one: Open = { request, ended: yield* Deferred.make<Ended>() }
        open.set(request.requestId, one)
        yield* Effect.forEach(attached, (ask) => ask(one), { discard: true })
      }
      const there = new Set(requests.map(({ request }) => request["requestId"]))
      // The event that says how it ended is on its way, unless this end missed it.
      for (const requestId of [...open.keys()].filter((one) => !there.has(one)))
        yield* Effect.forkIn(Effect.delay(settle(requestId, endOf("cancelled", undefined)), "2 seconds"), scope)
    })

    /** Hands an answer over, again under the same id until the server says what became of it. False: ask once more. */
    const give = (request: InteractionRequest, given: { readonly answer: unknown } | "cancel") =>
      Effect.gen(function* () {
        const { requestId } = request
        const key = Id.message(ids)
        const sent =
          given === "cancel"
            ? Effect.as(client.requests.cancel({ path: { requestId }, payload: {} }), undefined)
            : client.requests.answer({ path: { requestId }, payload: { answer: given.answer, id: key } })
        for (let attempt = 0; ; attempt++) {
          const outcome = yield* Effect.either(sent)
          if (Either.isRight(outcome)) {
            if (outcome.right?.status === "voted")
              yield* say(`Your vote counts. Still needed: ${outcome.right.missing}.`)
            return true
          }
          const failure = outcome.left
          if (failure instanceof InteractionAlreadyAnswered) {
            yield* say(`Too late: ${failure.winner} answered first.`)
            return true
          }
          const { _tag, message } = yield* Effect.flip(call(Effect.fail(failure)))
          if (_tag === "Unprocessable" || _tag === "BadRequest") {
            yield* say(message)
            return false
          }
          if (_tag !== ApiClient.unreachable && _tag !== "Unavailable") {
            yield* say(message)
            return true
          }
          if (attempt === 0) yield* say("The server does not take the answer now. Assent sends it again.")
          yield* Effect.sleep(pauseAfter(attempt))
        }
      })

    const ask = (interactor: Service, one: Open): Effect.Effect<void> =>
      Effect.gen(function* () {
        const { ended, request } = one
        for (;;) {
          let end: Ended | undefined
          const asked = yield* Effect.raceFirst(
            Effect.either(InteractorCall.ask(interactor, request, { ended: () => end })),
            Effect.map(Deferred.await(ended), (how) => {
              end = how
              return how
            })
          )
          if (!Either.isEither(asked)) {
            const by = asked.by === undefined ? "" : ` by ${asked.by}`
            return yield* say(`The question was ${words[asked.status]}${by}.`)
          }
          if (Either.isRight(asked)) {
            const answer = Interaction.encodeAnswer(request.interaction, asked.right.answer)
            if (yield* give(request, { answer })) return
            continue
          }
          // The end of input is no decision, and who cannot answer has decided nothing: the question stays open.
          if (asked.left._tag === "InteractionCancelled" && asked.left.by !== undefined) yield* give(request, "cancel")
          return
        }
      })

    // ---------------------------------------------------------------------------------------------------------------
    // events
    // ---------------------------------------------------------------------------------------------------------------

    let position = "0"
    let isAway = false
    let isToldOfEnd = false
    /** What the surface is shown of the past: the last turn. Nothing once the past is over. */
    let past: { readonly created: Array<AgentEvent>; turn: Array<AgentEvent> } | undefined = { created: [], turn: [] }
    const whole = yield* Deferred.make<ReadonlyArray<AgentEvent>>()
    const endPast = Effect.suspend((): Effect.Effect<unknown> => {
      if (past === undefined) return Effect.void
      const { created, turn } = past
      past = undefined
      if (apart) return Deferred.succeed(whole, turn)
      return Effect.forEach([...created, ...turn], (event) => publish(event, false), { discard: true })
    })
    const publish = (event: AgentEvent, isOwn: boolean): Effect.Effect<void> =>
      event._tag === "TurnStarted" && event.sessionId === id && !isOwn
        ? Effect.zipRight(heard(event.input), bus.publish(event))
        : bus.publish(event)
    const take = (event: AgentEvent): Effect.Effect<void> =>
      Effect.gen(function* () {
        const isOwn = known.sent > 0
        known.take(event)
        switch (event._tag) {
          case "InteractionRequested":
            yield* Queue.offer(wanted, undefined)
            break
          case "InteractionAnswered":
            yield* settle(event.requestId, endOf("answered", event.by))
            break
          case "InteractionCancelled":
            yield* settle(event.requestId, endOf("cancelled", event.by))
            break
          case "InteractionTimedOut":
            yield* settle(event.requestId, endOf("timed_out", undefined))
            break
          case "InteractionUnavailable":
            yield* settle(event.requestId, endOf("unavailable", undefined))
        }
        if (past === undefined) yield* publish(event, isOwn)
        else if (apart) past.turn.push(event)
        else if (event._tag === "AgentCreated") past.created.push(event)
        else {
          if (event._tag === "TurnStarted" && event.sessionId === id) past.turn = []
          past.turn.push(event)
        }
        yield* changed
      })
    const read = ({ data, event, id: at }: ApiClient.Piece): Effect.Effect<void> =>
      Effect.gen(function* () {
        switch (event) {
          case "snapshot":
            if (at !== undefined) position = at
            return yield* Queue.offer(wanted, undefined)
          case "goodbye":
            isToldOfEnd = true
            return yield* say("The server ends. Assent connects again when it is back.")
          // The next connection says why.
          case "unauthorized":
            isToldOfEnd = true
            return
          case "failed":
            return yield* say(messageIn(data))
          default: {
            const decoded = Option.getOrUndefined(decodeEvent(data))
            if (decoded !== undefined) yield* take(decoded)
            if (at !== undefined) position = at
            if (past !== undefined && Number(position) >= Number(snapshot.cursor)) yield* endPast
          }
        }
      })
    const connected = Effect.suspend(() => {
      const wasAway = isAway
      isAway = false
      isToldOfEnd = false
      return wasAway ? say("Connected again.") : Effect.void
    })
    const reading = Stream.suspend(() => client.events(`/v1/sessions/${encodeURIComponent(name)}/events`, position))
    const following = Effect.gen(function* () {
      for (let attempt = 0; ; attempt++) {
        const outcome = yield* Effect.either(
          Effect.zipRight(
            Effect.zipRight(snapshotNow, Effect.zipRight(connected, Queue.offer(wanted, undefined))),
            Stream.runForEach(
              Stream.tap(reading, () => Effect.sync(() => (attempt = 0))),
              read
            )
          )
        )
        if (Either.isLeft(outcome) && final.has(outcome.left._tag)) {
          yield* say(outcome.left.message)
          return yield* leave
        }
        if (!isAway && !isToldOfEnd) yield* say("The connection to the server is lost. Assent connects again.")
        isAway = true
        yield* Effect.sleep(pauseAfter(attempt))
      }
    })
    const looking = Effect.forever(
      Effect.zipRight(
        Queue.take(wanted),
        // The next connection looks again.
        Effect.catchAll(look, () => Effect.void)
      )
    )
    yield* Effect.forkScoped(following)
    yield* Effect.forkScoped(looking)
    // An entry at the cursor may be no event.
    yield* Effect.forkScoped(Effect.delay(endPast, snapshot.cursor === "0" ? 0 : "1 second"))

    let chosen: SessionId | undefined
    const nodeOf = (target: string) =>
      known.nodes.find(({ origin }) =>
        [origin.sessionId, origin.agent, origin.subagentId].some((one) => one === target)
      )
    const selected = () => (chosen === undefined ? undefined : nodeOf(chosen))
    const interrupt = (payload: { readonly target?: string | undefined; readonly toolCallId?: string | undefined }) =>
      call(client.sessions.interrupt({ path, payload }))
    const nodes = Effect.sync(() =>
      known.nodes.map(({ origin, turns }) => ({
        origin,
        session: { turns: () => turns, stop: () => Effect.ignore(interrupt({ target: origin.sessionId })) }
      }))
    )
    const isIdle = Effect.sync(() => known.isIdle)
    const permissions: SessionHandle["permissions"] = Object.assign(
      (command: string) =>
        Effect.match(call(client.sessions.permissions({ path, payload: { command } })), {
          onFailure: ({ message }) => Either.left(message),
          onSuccess: ({ lines }) => Either.right({ lines })
        }),
      {
        status: Effect.sync(() => ({ mode: known.mode, suspension: known.suspension, allow: [], deny: [] })),
        setMode: (mode: Mode) => Effect.asVoid(call(client.sessions.mode({ path, payload: { mode } })))
      }
    )

    return {
      id,
      origin: known.root,
      snapshot,
      past: Deferred.await(whole),
      events,
      ledger: known.ledger,
      permissions,
      attach: (interactor) =>
        Effect.gen(function* () {
          const own = yield* Effect.scope
          const begin = (one: Open) => Effect.asVoid(Effect.forkIn(ask(interactor, one), own))
          yield* Effect.acquireRelease(
            Effect.sync(() => attached.add(begin)),
            () => Effect.sync(() => attached.delete(begin))
          )
          yield* Effect.forEach([...open.values()], begin, { discard: true })
        }),
      send: (input, { id: messageId, target } = {}) =>
        Effect.gen(function* () {
          const text = Input.wordsOf(input)
          const files =
            typeof input === "string"
              ? []
              : input.flatMap((part) =>
                  typeof part === "string" || part.type === "text"
                    ? []
                    : [{ base64: part.bytes, name: part.name, mediaType: part.mediaType }]
                )
          const payload = {
            ...(text === "" && files.length > 0 ? {} : { text }),
            ...(files.length === 0 ? {} : { files }),
            target: target ?? selected()?.origin.sessionId,
            id: messageId ?? Id.message(ids)
          }
          known.sent++
          return yield* call(client.sessions.send({ path, payload, headers: {} })).pipe(
            Effect.tapError(() => Effect.sync(() => known.unsent())),
            Effect.map((taken) => ({ id: taken.messageId }))
          )
        }),
      receiver: Effect.sync(() => ({ agent: { origin: selected()?.origin ?? known.root } })),
      select: (target) =>
        Effect.suspend(() => {
          const node = target === undefined ? undefined : nodeOf(target)
          if (target !== undefined && node === undefined)
            return Effect.fail({ _tag: "AgentUnknown", message: `There is no agent ${target}.` })
          chosen = node?.origin.sessionId
          return Effect.void
        }),
      selected: Effect.sync(() => Option.fromNullable(selected())),
      interrupt: (payload = {}) => Effect.as(interrupt(payload), Option.some(undefined)),
      takeBack: (target) =>
        Effect.map(call(client.sessions.takeBack({ path, payload: { target } })), ({ messages }) => {
          known.unsent(messages.length)
          return messages
        }),
      cancel: () =>
        Effect.suspend(() =>
          known.isIdle
            ? Effect.succeed(Option.none())
            : Effect.match(interrupt({}), { onFailure: () => Option.none(), onSuccess: () => Option.some(undefined) })
        ),
      awaitTools: Effect.void,
      isIdle,
      awaitIdle: Effect.raceFirst(
        Deferred.await(over),
        Stream.runHead(Stream.filter(changes.changes, () => known.isIdle))
      ).pipe(Effect.zipRight(Effect.sync(() => known.lastEnd))),
      compact: call(client.sessions.compact({ path, payload: {} })),
      agents: nodes,
      todos: (target) => Effect.sync(() => known.todosOf(target)),
      model: Effect.sync(() => ({ id: known.model, contextWindow: known.contextWindow })),
      spent: Effect.map(Effect.option(snapshotNow), (found) => {
        const { amount, currency } = Option.getOrUndefined(found)?.cost ?? {}
        return amount === undefined ? undefined : { amount, currency }
      }),
      setModel: (model, thinking) =>
        Effect.map(call(client.sessions.model({ path, payload: { model, thinking } })), () => {
          known.model = model
        }),
      shutdown: leave,
      done: Effect.zipRight(
        Deferred.await(over),
        Effect.sync(() => known.lastEnd)
      )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A request that waits, for all interactors here. The reader of events completes `ended`. */
interface Open {
  readonly request: InteractionRequest
  readonly ended: Deferred.Deferred<Ended>
}

const endOf = (status: Ended["status"], by: string | undefined): Ended => ({ status, by, late: () => {} })

const words: { readonly [Status in Ended["status"]]: string } = {
  answered: "answered",
  cancelled: "withdrawn",
  timed_out: "not answered in time",
  unavailable: "not answered"
}

/** A look at the server that takes longer is made again. */
const timely = <A>({ url }: ApiClient.ApiClient, look: Effect.Effect<A, ApiClient.CallFailed>) =>
  Effect.timeoutFail(look, {
    duration: "10 seconds",
    onTimeout: () => new ApiClient.CallFailed({ _tag: ApiClient.unreachable, message: `${url} is too slow.` })
  })

/** After these no later connection goes better. */
const final: ReadonlySet<string> = new Set(["Unauthorized", "NotFound", "Forbidden", "HostRefused"])

/** Milliseconds before the next attempt: soon at first, and at most 5 seconds. */
const pauseAfter = (attempt: number): number => Math.min(5_000, 250 * 2 ** attempt)

const decodeEvent = Schema.decodeUnknownOption(AgentEvent)

const decodeRequest = Schema.decodeUnknownOption(InteractionRequest)

const Message = Schema.Struct({ message: Schema.String })
const messageIn = (data: unknown): string =>
  Schema.is(Message)(data) ? data.message : "The server cannot read its events now."

interface Agent {
  readonly origin: Origin
  turns: number
}

/** What the events say of the session. */
class Known {
  readonly root: Origin
  readonly ledger = TokenLedger.make()
  /** Messages of this end that no event has named yet. */
  sent = 0
  mode: Mode
  suspension: string | undefined
  model: string
  contextWindow: number | undefined
  lastEnd: Option.Option<TurnEnd.TurnEnd> = Option.none()
  private readonly living = new Map<SessionId, Agent>()
  private readonly todos = new Map<SessionId, ReadonlyArray<Todo>>()
  private readonly working = new Set<SessionId>()
  private text = ""

  constructor(id: SessionId, { agents, mode, model }: SessionSnapshot) {
    const [main] = agents
    this.root = { sessionId: id, rootSessionId: id, agent: main?.agent ?? "main", depth: 0 }
    this.living.set(id, { origin: this.root, turns: 0 })
    this.mode = modes.find((one) => one === mode) ?? "ask"
    this.model = model
  }

  get nodes(): ReadonlyArray<Agent> {
    return [...this.living.values()]
  }

  get isIdle(): boolean {
    return this.sent === 0 && !this.working.has(this.root.sessionId)
  }

  unsent(count = 1): void {
    this.sent = Math.max(0, this.sent - count)
  }

  todosOf(target: string | undefined): ReadonlyArray<Todo> {
    const node = this.nodes.find(
      ({ origin }) => target === undefined || origin.sessionId === target || origin.agent === target
    )
    return (node === undefined ? undefined : this.todos.get(node.origin.sessionId)) ?? []
  }

  take(event: AgentEvent): void {
    const { agent, sessionId } = event
    const isRoot = sessionId === this.root.sessionId
    switch (event._tag) {
      case "AgentCreated":
        if (isRoot) this.model = event.model
        else
          this.living.set(sessionId, {
            origin: {
              sessionId,
              rootSessionId: this.root.sessionId,
              agent,
              depth: event.depth,
              ...(event.parentSessionId === undefined ? {} : { parentSessionId: event.parentSessionId }),
              ...(event.subagentId === undefined ? {} : { subagentId: event.subagentId })
            },
            turns: 0
          })
        return
      case "AgentCompleted":
        if (!isRoot) this.living.delete(sessionId)
        return
      case "TurnStarted": {
        const node = this.living.get(sessionId)
        if (node !== undefined) node.turns++
        this.working.add(sessionId)
        if (isRoot) this.sent = 0
        this.text = ""
        return
      }
      case "UserInterjected":
        this.unsent()
        return
      case "TextDelta":
        if (isRoot) this.text += event.text
        return
      case "TurnEnded":
        this.working.delete(sessionId)
        if (isRoot) this.lastEnd = Option.some(endOfTurn(event, this.text))
        return
      case "ModelCallStarted":
        this.text = ""
        return
      case "ModelCallEnded":
        if (isRoot) this.model = event.model
        if (isRoot) this.contextWindow = event.context?.window ?? this.contextWindow
        this.ledger.record({ sessionId, agent, model: event.model, usage: event.usage, kind: "call" })
        return
      case "CompactionEnded":
        if (event.usage !== undefined)
          this.ledger.record({ sessionId, agent, model: this.model, usage: event.usage, kind: "summary" })
        return
      case "TodosChanged":
        this.todos.set(sessionId, event.items)
        return
      case "PermissionStatusChanged":
        this.mode = modes.find((one) => one === event.mode) ?? this.mode
        this.suspension = event.suspension
    }
  }
}

const endOfTurn = ({ detail = "", reason, steps }: EventOf<"TurnEnded">, text: string): TurnEnd.TurnEnd => {
  switch (reason) {
    case "completed":
      return TurnEnd.Completed({ text, steps })
    case "cancelled":
      return TurnEnd.Cancelled({ reason: "user", steps })
    case "turn_limit":
      return TurnEnd.TurnLimit({ text, steps })
    case "halted":
      return TurnEnd.Halted({ detail, steps })
    case "denied":
      return TurnEnd.Denied({ detail, steps })
    case "failed":
      return TurnEnd.Failed({ error: detail, steps })
  }
}
