/**
 * The sessions of one node: what the cluster asks of them, how long they stay in memory, and which of them to go on with.
 *
 * ```
 *   words, an answer ─┐                                     ┌─ waits for people for `parkAfter` ─► parked
 *   sweep, each second ┴─► open ─► live, while it works ────┼─ idle for `evictAfter` ────────────► parked
 *       ▲                                                   └─ its shard goes ─► drained ─► left ─┐
 *       └── left, overdue, or of a node that died ◄──────────────────────────────────────────────┘
 * ```
 *
 * The store says which sessions to go on with, and the shards which of them are this node's. So what a node that died was in
 * the middle of goes on without a request, and a session that waits for people costs nothing.
 */
import * as EntityModule from "@effect/cluster/Entity"
import * as EntityId from "@effect/cluster/EntityId"
import * as Sharding from "@effect/cluster/Sharding"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { SessionId } from "../core/Id.js"
import * as Host from "../host/Host.js"
import type * as Sessions from "../http/Sessions.js"
import type * as SqlSessionStore from "../store/SqlSessionStore.js"
import type * as NodeMetrics from "./NodeMetrics.js"
import * as Parked from "./Parked.js"
import { begun, moving, SessionEntity } from "./SessionEntity.js"

/** What a node has. */
export interface Options {
  readonly host: Host.Service
  readonly store: Pick<SqlSessionStore.FencedStore, "awake" | "park">
  /** What the node does with its own sessions. */
  readonly sessions: Sessions.Sessions
  readonly metrics: Pick<NodeMetrics.NodeMetrics, "parked" | "swept">
  /** How long a session whose calls all wait for people stays in memory. */
  readonly parkAfter: Duration.DurationInput
  /** How long an idle session stays in memory. */
  readonly evictAfter: Duration.DurationInput
  /** How long tools may go on that run when their session leaves the node. */
  readonly drainWithin: Duration.DurationInput
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** Takes sessions of its shards until the scope closes, and goes on with those that were cut off. */
export const layer = (options: Options): Layer.Layer<never, never, Sharding.Sharding> => {
  const { drainWithin, host, metrics, sessions, store } = options
  const parkAfter = Duration.toMillis(options.parkAfter)
  const evictAfter = Duration.toMillis(options.evictAfter)
  /** Requests about a session that are under way: it does not leave memory before they end. */
  const asked = new Map<string, number>()
  /** Sessions that are looked after here. */
  const tended = new Set<string>()
  /** Those of a node that died come all at once, and people wait for others meanwhile. */
  const opening = Effect.unsafeMakeSemaphore(8)

  const liveOf = (id: string) => Effect.map(host.live, (all) => all.find((one) => one.id === id))

  /** Ends what runs, gently, and gives the session back. */
  const leave = (id: string) =>
    Effect.gen(function* () {
      const live = yield* liveOf(id)
      if (live !== undefined) yield* live.agent.drain(drainWithin)
      yield* host.close(id)
    })

  const isOurs = (sharding: Sharding.Sharding["Type"], id: string) =>
    sharding.hasShardId(sharding.getShardId(EntityId.make(id), group))

  const untilGone = (sharding: Sharding.Sharding["Type"], id: string) =>
    Effect.repeat(
      Effect.delay(
        Effect.sync(() => isOurs(sharding, id)),
        look
      ),
      { while: (ours) => ours }
    )

  /** Until the session has left the memory of this node. */
  const tend = (sharding: Sharding.Sharding["Type"], session: Host.LiveSession) =>
    Effect.gen(function* () {
      const { agent, closed, id, jobs, lastActivity } = session
      let [waitsSince, isGone] = [Infinity, false]
      yield* Effect.forkScoped(
        Effect.zipRight(
          closed,
          Effect.sync(() => (isGone = true))
        )
      )
      for (;;) {
        yield* Effect.raceFirst(Effect.sleep(look), closed)
        if (isGone) return
        if (!isOurs(sharding, id)) return yield* leave(id)
        const now = yield* Clock.currentTimeMillis
        const works = asked.has(id) || jobs.list(id).some(({ ended }) => ended === undefined)
        const parked = works ? undefined : yield* Parked.of(agent)
        waitsSince = parked !== undefined ? Math.min(waitsSince, now) : Infinity
        const isIdle = !works && (yield* Host.isAtRest(session))
        const rests = isIdle && now - (yield* lastActivity) >= evictAfter
        if (!rests && now - waitsSince < parkAfter) continue
        const { dueAt } = parked ?? { dueAt: undefined }
        yield* store.park(id, dueAt === undefined ? undefined : dueAt - now)
        metrics.parked()
        return yield* leave(id)
      }
    }).pipe(Effect.scoped)

  const wake = (sharding: Sharding.Sharding["Type"], id: string) =>
    Effect.suspend(() => {
      if (tended.has(id)) return Effect.void
      tended.add(id)
      return opening
        .withPermits(1)(host.open(id))
        .pipe(
          Effect.flatMap((session) => tend(sharding, session)),
          Effect.catchAll((error) =>
            Effect.zipRight(
              Effect.logWarning(`Session ${id} does not go on: ${error.message}`),
              // Looked at again later, and not each second.
              Effect.raceFirst(Effect.sleep(afterFailure), untilGone(sharding, id))
            )
          ),
          Effect.ensuring(Effect.sync(() => tended.delete(id)))
        )
    })

  /** A session that leaves memory at this moment takes nothing; it is opened again then. */
  const again =
    (id: string) =>
    <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => asked.set(id, (asked.get(id) ?? 0) + 1)),
        () => Effect.retry(effect, { times: 3, while: ({ _tag }) => _tag === "Unavailable" }),
        () =>
          Effect.sync(() => {
            const others = (asked.get(id) ?? 0) - 1
            if (others > 0) asked.set(id, others)
            else asked.delete(id)
          })
      )

  const handlers = SessionEntity.toLayer(
    Effect.gen(function* () {
      const sharding = yield* Sharding.Sharding
      const { entityId: id } = yield* EntityModule.CurrentAddress
      // The shard goes to another node only then.
      yield* Effect.addFinalizer(() => leave(id))
      return SessionEntity.of({
        Create: ({ payload }) => sessions.create({ ...payload, id }),
        Present: () => sessions.present(id),
        Open: () => sessions.open(id),
        Models: () => again(id)(sessions.models(id)),
        Send: ({ payload }) => again(id)(sessions.send(id, payload)),
        Interrupt: ({ payload }) => sessions.interrupt(id, payload),
        Permissions: ({ payload }) => again(id)(sessions.permissions(id, payload.command, payload.by)),
        SetMode: ({ payload }) => again(id)(sessions.setMode(id, payload.mode, payload.by)),
        SetModel: ({ payload }) => again(id)(sessions.setModel(id, payload.model, payload.thinking)),
        TakeBack: ({ payload }) => again(id)(sessions.takeBack(id, payload.target)),
        Compact: () => again(id)(sessions.compact(id)),
        Remove: () => sessions.remove(id),
        Answer: ({ payload }) => again(id)(sessions.answer(payload.requestId, payload.given, payload.by)),
        Cancel: ({ payload }) => again(id)(sessions.cancel(payload.requestId, payload.by)),
        Events: ({ payload }) =>
          sessions.events(id, payload.after).pipe(
            Stream.mapBoth({
              onFailure: ({ _tag, message }) => ({ _tag, message }),
              onSuccess: (event) => JSON.stringify(event)
            }),
            (events) => Stream.concat(Stream.make(begun), events),
            // A stream must not keep the shard here.
            Stream.interruptWhen(untilGone(sharding, id))
          ),
        Run: ({ payload }) =>
          Stream.unwrapScoped(
            Effect.map(again(id)(sessions.run(id, payload.page, payload.by)), (lines) =>
              lines === undefined ? Stream.empty : Stream.concat(Stream.make(begun), lines)
            )
          ).pipe(Stream.interruptWhen(Effect.zipRight(untilGone(sharding, id), moving))),
        Wake: () => wake(sharding, id)
      })
    }),
    { concurrency: "unbounded", maxIdleTime: idle, mailboxCapacity: "unbounded" }
  )

  const sweeping = Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    const client = yield* SessionEntity.client
    const wakeAll = (ids: ReadonlyArray<SessionId>) =>
      Effect.forEach(
        ids.filter((id) => !tended.has(id) && isOurs(sharding, id)),
        (id) => Effect.ignore(client(id).Wake(undefined, { discard: true })),
        { concurrency: 16, discard: true }
      )
    const sweep = Effect.zipLeft(Effect.flatMap(store.awake, wakeAll), Effect.sync(metrics.swept))
    // A database that cannot be asked now is asked a second later.
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.ignore(sweep), Effect.sleep("1 second"))))
  })

  return Layer.merge(handlers, Layer.scopedDiscard(sweeping))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The engine's name for shards that are not told apart. */
export const group = "default"

/** How often it is looked whether a session may leave memory. */
const look = "250 millis"

/** How long a session is left alone that cannot be opened. */
const afterFailure = "5 seconds"

/** How long the engine remembers a session that nobody asks about. What the session needs is not its to end. */
const idle = "20 seconds"
