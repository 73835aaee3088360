/** Sessions of a cluster, for the API of any node: the node that has the session does what is asked of it. */
import type { AlreadyProcessingMessage, MailboxFull, PersistenceError } from "@effect/cluster/ClusterError"
import type * as Sharding from "@effect/cluster/Sharding"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../event/AgentEvent.js"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import * as Api from "../http/Api.js"
import * as PageRun from "../http/PageRun.js"
import * as Refusal from "../http/Refusal.js"
import type * as Sessions from "../http/Sessions.js"
import type { Stores } from "../http/Stores.js"
import { begun, moving, SessionEntity } from "./SessionEntity.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `stores` say which session asks a request. */
export const make = (stores: Stores): Effect.Effect<Sessions.Sessions, never, Sharding.Sharding> =>
  Effect.gen(function* () {
    const client = yield* SessionEntity.client
    const ids = yield* Id.IdGenerator
    const of = (id: string) => client(id)

    /** The session that made the request, open or settled. */
    const askerOf = (requestId: string) =>
      Effect.gen(function* () {
        const found = yield* Refusal.of(stores.request(requestId))
        if (found !== undefined) return of(found.rootSessionId)
        return yield* new Api.NotFound({ message: `There is no request ${JSON.stringify(requestId.slice(0, 200))}.` })
      })

    return {
      create: ({ id = Id.session(ids), ...wishes }) => reached(of(id).Create(wishes)),
      present: (id) => reached(of(id).Present()),
      // Those that no node has in memory are in the store.
      open: (session) =>
        Effect.gen(function* () {
          const id = session === undefined ? {} : { id: SessionId.make(session) }
          const pages = yield* Effect.forEach(stores.all, (store) =>
            Refusal.of(store.page({ ...id, waiting: true, limit: Infinity }))
          )
          const held = pages.flatMap(({ sessions }) => sessions.filter(({ holder }) => holder !== undefined))
          const open = yield* Effect.forEach(
            held,
            // What a node that is gone was asking is in the store, or nobody asks it again.
            ({ rootSessionId }) =>
              Effect.orElseSucceed(Effect.timeout(of(rootSessionId).Open(), "2 seconds"), () => []),
            { concurrency: 16 }
          )
          return open.flat()
        }),
      models: (id) => reached(of(id).Models()),
      run: (id, page, by) =>
        Effect.gen(function* () {
          let calls = 0
          const texts = of(id)
            .Run({ page, by })
            .pipe(
              // When its node died, the engine asks the next one for the same again. A page has to ask for that itself.
              Stream.mapEffect((text) => (text === begun && ++calls > 1 ? moving : Effect.succeed(text))),
              Stream.mapError((error) => (isEngine(error) ? moving : error))
            )
          const next = yield* Stream.toPull(texts)
          // Begun, or refused, or nothing to see: the page hears of it before its response begins.
          const first = yield* reached(
            Effect.catchAll(
              next,
              Option.match({
                onNone: () => Effect.succeed(Chunk.empty<string>()),
                onSome: (error) => Effect.fail(error)
              })
            )
          )
          if (Chunk.isEmpty(first)) return undefined
          const lines = Stream.concat(Stream.fromChunk(Chunk.drop(first, 1)), Stream.repeatEffectChunkOption(next))
          return Stream.catchAll(lines, ({ message }) => Stream.make(PageRun.farewell(page, message)))
        }),
      send: (id, words) => reached(of(id).Send(words)),
      interrupt: (id, what) => reached(of(id).Interrupt(what)),
      permissions: (id, command, by) => reached(of(id).Permissions({ command, by })),
      setMode: (id, mode, by) => reached(of(id).SetMode({ mode, by })),
      setModel: (id, model, thinking) => reached(of(id).SetModel({ model, thinking })),
      takeBack: (id, target) => reached(of(id).TakeBack({ target })),
      compact: (id) => reached(of(id).Compact()),
      remove: (id) => reached(of(id).Remove()),
      answer: (requestId, given, by) =>
        Effect.flatMap(askerOf(requestId), (asker) => reached(asker.Answer({ requestId, given, by }))),
      cancel: (requestId, by) =>
        Effect.flatMap(askerOf(requestId), (asker) => reached(asker.Cancel({ requestId, by }))),
      events: (id, after) => {
        let calls = 0
        return of(id)
          .Events({ after })
          .pipe(
            Stream.tap((text) => Effect.sync(() => (calls += text === begun ? 1 : 0))),
            // When its node died, the engine asks the next one for the same again: the reader goes on from its own place.
            Stream.takeWhile(() => calls < 2),
            Stream.filter((text) => text !== begun),
            // Our own nodes wrote it.
            Stream.map((text) => JSON.parse(text) as AgentEvent),
            Stream.catchTags({
              MailboxFull: () => Stream.fail(moving),
              AlreadyProcessingMessage: () => Stream.fail(moving),
              PersistenceError: () => Stream.fail(moving)
            })
          )
      }
    }
  })

/** Those of a node that may not take part yet. `current` says why it does not. */
export const later = (current: () => Sessions.Sessions | string): Sessions.Sessions => {
  const there = Effect.suspend(() => {
    const found = current()
    return typeof found === "string" ? new Api.Unavailable({ message: found }) : Effect.succeed(found)
  })
  return {
    create: (wishes) => Effect.flatMap(there, ({ create }) => create(wishes)),
    present: (id) => Effect.flatMap(there, ({ present }) => present(id)),
    open: (of) => Effect.flatMap(there, ({ open }) => open(of)),
    models: (id) => Effect.flatMap(there, ({ models }) => models(id)),
    send: (id, words) => Effect.flatMap(there, ({ send }) => send(id, words)),
    interrupt: (id, what) => Effect.flatMap(there, ({ interrupt }) => interrupt(id, what)),
    permissions: (id, command, by) => Effect.flatMap(there, ({ permissions }) => permissions(id, command, by)),
    setMode: (id, mode, by) => Effect.flatMap(there, ({ setMode }) => setMode(id, mode, by)),
    setModel: (id, model, thinking) => Effect.flatMap(there, ({ setModel }) => setModel(id, model, thinking)),
    takeBack: (id, target) => Effect.flatMap(there, ({ takeBack }) => takeBack(id, target)),
    compact: (id) => Effect.flatMap(there, ({ compact }) => compact(id)),
    remove: (id) => Effect.flatMap(there, ({ remove }) => remove(id)),
    answer: (requestId, given, by) => Effect.flatMap(there, ({ answer }) => answer(requestId, given, by)),
    cancel: (requestId, by) => Effect.flatMap(there, ({ cancel }) => cancel(requestId, by)),
    run: (id, page, by) => Effect.flatMap(there, ({ run }) => run(id, page, by)),
    events: (id, after) => Stream.unwrap(Effect.map(there, ({ events }) => events(id, after)))
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** How long a call waits for a node that has the session: longer than a node that died is missed. */
const patience = "30 seconds"

type Engine = AlreadyProcessingMessage | MailboxFull | PersistenceError

/** What the engine fails with is nothing that a client can change. */
const reached = <A, E extends { readonly _tag: string }, R>(
  call: Effect.Effect<A, E | Engine, R>
): Effect.Effect<A, E | Api.Unavailable, R> =>
  call.pipe(
    Effect.catchAll((error): Effect.Effect<never, E | Api.Unavailable> =>
      isEngine(error) ? Effect.fail(moving) : Effect.fail(error)
    ),
    Effect.timeoutFail({ duration: patience, onTimeout: () => moving })
  )

const isEngine = <E extends { readonly _tag: string }>(error: E | Engine): error is Engine =>
  ["AlreadyProcessingMessage", "MailboxFull", "PersistenceError"].includes(error._tag)
