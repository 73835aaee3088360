import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { SessionId } from "../../src/core/Id.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as EventBus from "../../src/event/EventBus.js"
import * as Recorder from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"

/** The n-th event. */
const event = (n: number): AgentEvent => ({
  _tag: "TextDelta",
  at: n,
  sessionId: "ses_1" as SessionId,
  agent: "main",
  text: String(n)
})

/** Events by number, and what was missed as a text. */
const numbers = (events: Iterable<AgentEvent>): ReadonlyArray<number | string> =>
  Array.from(events, (each) => (each._tag === "Lagged" ? `missed ${each.missed}` : each.at))

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)

const publishAll = (bus: EventBus.Service, from: number, to: number) =>
  Effect.forEach(range(from, to), (n) => bus.publish(event(n)), { discard: true })

const take = (subscription: EventBus.Subscription) =>
  Effect.map(subscription.takeAll, (batch) => numbers(Option.getOrElse(batch, () => [])))

const isDone = (fiber: Fiber.RuntimeFiber<unknown, unknown>) =>
  Effect.zipRight(Recorder.settle, Effect.map(Fiber.poll(fiber), Option.isSome))

describe("a subscriber", () => {
  it.scoped("gets everything from now on, in order, in batches", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      yield* publishAll(bus, 1, 3)
      const subscription = yield* bus.subscribe()
      yield* publishAll(bus, 4, 6)
      assert.deepStrictEqual(yield* take(subscription), [4, 5, 6])
      yield* publishAll(bus, 7, 7)
      assert.deepStrictEqual(yield* take(subscription), [7])
    })
  )

  it.scoped("waits for the next event when there is none", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const subscription = yield* bus.subscribe()
      const waiting = yield* Effect.fork(take(subscription))
      assert.isFalse(yield* isDone(waiting))
      yield* publishAll(bus, 1, 2)
      assert.deepStrictEqual(yield* Fiber.join(waiting), [1, 2])
    })
  )

  it.scoped("loses nothing when its reader is interrupted, even in the step in which it is woken", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const subscription = yield* bus.subscribe()
      const idle = yield* Effect.fork(subscription.takeAll)
      yield* Recorder.settle
      yield* Fiber.interrupt(idle)
      const woken = yield* Effect.fork(subscription.takeAll)
      yield* Recorder.settle
      yield* Effect.zipRight(
        Effect.sync(() => bus.unsafePublish(event(1))),
        Fiber.interruptFork(woken)
      )
      const exit = yield* Fiber.await(woken)
      yield* publishAll(bus, 2, 2)
      const before = Exit.isSuccess(exit) ? numbers(Option.getOrElse(exit.value, () => [])) : []
      assert.deepStrictEqual([...before, ...(yield* take(subscription))], [1, 2])
    })
  )

  it.scoped("drops the oldest when it is slow, and is told how many at the start of the next batch", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const subscription = yield* bus.subscribe({ capacity: 3 })
      yield* publishAll(bus, 1, 3)
      assert.deepStrictEqual(yield* take(subscription), [1, 2, 3], "full is not too full")
      yield* publishAll(bus, 4, 10)
      const batch = Option.getOrThrow(yield* subscription.takeAll)
      assert.deepStrictEqual(numbers(batch), ["missed 4", 8, 9, 10])
      assert.deepStrictEqual(batch[0], {
        _tag: "Lagged",
        at: 8,
        sessionId: "ses_1" as SessionId,
        agent: "main",
        missed: 4
      })
      yield* publishAll(bus, 11, 11)
      assert.deepStrictEqual(yield* take(subscription), [11], "it is told once")
    })
  )

  it.scoped.each([0, -5, 1, 1.9])("holds at least one event with a capacity of %s", (capacity) =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const subscription = yield* bus.subscribe({ capacity })
      yield* publishAll(bus, 1, 3)
      assert.deepStrictEqual(yield* take(subscription), ["missed 2", 3])
    })
  )

  it.scoped("holds everything without a bound", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const subscription = yield* bus.subscribe({ capacity: Number.POSITIVE_INFINITY, whenFull: "wait" })
      yield* publishAll(bus, 1, 1000)
      assert.deepStrictEqual(yield* take(subscription), range(1, 1000))
      yield* publishAll(bus, 1001, 1002)
      assert.deepStrictEqual(yield* take(subscription), [1001, 1002])
    })
  )

  it.scoped("never slows down another one, nor takes anything from it", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const slow = yield* bus.subscribe({ capacity: 2 })
      const fast = yield* bus.subscribe({ capacity: 2 })
      for (const n of range(1, 5)) {
        yield* bus.publish(event(n))
        assert.deepStrictEqual(yield* take(fast), [n])
      }
      assert.deepStrictEqual(yield* take(slow), ["missed 3", 4, 5])
    })
  )

  it.scoped("ends with its scope, and the others go on", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const scope = yield* Scope.make()
      const leaving = yield* Scope.extend(bus.subscribe(), scope)
      const staying = yield* bus.subscribe()
      yield* publishAll(bus, 1, 2)
      const reading = yield* Effect.fork(Effect.zipRight(leaving.takeAll, leaving.takeAll))
      yield* Recorder.settle
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Fiber.join(reading), Option.none())
      yield* publishAll(bus, 3, 3)
      assert.deepStrictEqual(yield* take(staying), [1, 2, 3])
    })
  )
})

describe("back-pressure", () => {
  it.scoped("makes publishers wait while the owner is full, and keeps their order", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const owner = yield* bus.subscribe({ capacity: 2, whenFull: "wait" })
      const observer = yield* bus.subscribe({ capacity: 10 })
      const publisher = yield* Effect.fork(publishAll(bus, 1, 5))
      assert.isFalse(yield* isDone(publisher))
      assert.deepStrictEqual(yield* take(observer), [1, 2], "nobody sees an event before the owner can")
      assert.deepStrictEqual(yield* take(owner), [1, 2])
      assert.isFalse(yield* isDone(publisher), "3 and 4 went in, 5 waits")
      assert.deepStrictEqual(yield* take(owner), [3, 4])
      yield* Fiber.join(publisher)
      assert.deepStrictEqual(yield* take(owner), [5])
      assert.deepStrictEqual(yield* take(observer), [3, 4, 5])
    })
  )

  it.scoped("lets several publishers through in the order in which they came", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const owner = yield* bus.subscribe({ capacity: 1, whenFull: "wait" })
      yield* bus.publish(event(0))
      const publishers = []
      for (const n of range(1, 20)) {
        publishers.push(yield* Effect.fork(bus.publish(event(n))))
        yield* Recorder.settle
      }
      const received: Array<number | string> = []
      while (received.length < 21) received.push(...(yield* take(owner)))
      assert.deepStrictEqual(received, range(0, 20))
      yield* Fiber.joinAll(publishers)
    })
  )

  it.scoped("does not lose the event of a publisher that is interrupted while it waits", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const owner = yield* bus.subscribe({ capacity: 1, whenFull: "wait" })
      yield* bus.publish(event(1))
      const publisher = yield* Effect.fork(bus.publish(event(2)))
      yield* Recorder.settle
      yield* Fiber.interrupt(publisher)
      const next = yield* Effect.fork(bus.publish(event(3)))
      yield* Recorder.settle
      assert.deepStrictEqual([yield* take(owner), yield* take(owner), yield* take(owner)], [[1], [2], [3]])
      yield* Fiber.join(next)
    })
  )

  it.scoped("takes an event at once from whoever must not wait, and says that there is a line", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const owner = yield* bus.subscribe({ capacity: 2, whenFull: "wait" })
      assert.deepStrictEqual(
        range(1, 4).map((n) => bus.unsafePublish(event(n))),
        [true, true, false, false]
      )
      const waiting = yield* Effect.fork(bus.awaitRoom)
      const given = yield* Effect.fork(bus.awaitRoom)
      assert.isFalse(yield* isDone(waiting))
      yield* Fiber.interrupt(given)
      assert.deepStrictEqual(yield* take(owner), [1, 2])
      assert.isTrue(yield* isDone(waiting), "3 and 4 are in, nothing stands in line")
      assert.isFalse(bus.unsafePublish(event(5)))
      assert.deepStrictEqual([yield* take(owner), yield* take(owner)], [[3, 4], [5]])
      yield* bus.awaitRoom
    })
  )

  it.scoped("waits for the slowest of two owners", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const one = yield* bus.subscribe({ capacity: 1, whenFull: "wait" })
      const two = yield* bus.subscribe({ capacity: 3, whenFull: "wait" })
      const publisher = yield* Effect.fork(publishAll(bus, 1, 4))
      assert.isFalse(yield* isDone(publisher))
      for (const n of [1, 2, 3]) assert.deepStrictEqual(yield* take(one), [n])
      assert.isFalse(yield* isDone(publisher), "now it waits for the other one")
      assert.deepStrictEqual(yield* take(two), [1, 2, 3])
      yield* Fiber.join(publisher)
      assert.deepStrictEqual([yield* take(one), yield* take(two)], [[4], [4]])
    })
  )

  it.scoped("ends when the full owner goes away", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const scope = yield* Scope.make()
      yield* Scope.extend(bus.subscribe({ capacity: 1, whenFull: "wait" }), scope)
      const observer = yield* bus.subscribe()
      const publisher = yield* Effect.fork(publishAll(bus, 1, 4))
      assert.isFalse(yield* isDone(publisher))
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(publisher)
      assert.deepStrictEqual(yield* take(observer), [1, 2, 3, 4])
    })
  )
})

describe("closing", () => {
  it.scoped("hands over what is held and what stands in line, frees the publishers, and ends", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const owner = yield* bus.subscribe({ capacity: 2, whenFull: "wait" })
      const observer = yield* bus.subscribe({ capacity: 1 })
      const publishers = []
      for (const n of range(1, 6)) publishers.push(yield* Effect.fork(bus.publish(event(n))))
      yield* Recorder.settle
      yield* bus.close
      yield* Fiber.joinAll(publishers)
      assert.deepStrictEqual(yield* take(owner), range(1, 6))
      assert.deepStrictEqual(yield* owner.takeAll, Option.none())
      assert.deepStrictEqual(yield* take(observer), ["missed 1", 2, 3, 4, 5, 6])
      assert.deepStrictEqual(yield* observer.takeAll, Option.none())
      assert.deepStrictEqual(yield* observer.takeAll, Option.none(), "and stays at its end")
    })
  )

  it.scoped("ends a reader that waits, and may be done twice", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const subscription = yield* bus.subscribe()
      const waiting = yield* Effect.fork(subscription.takeAll)
      yield* Recorder.settle
      yield* bus.close
      assert.deepStrictEqual(yield* Fiber.join(waiting), Option.none())
      yield* bus.close
    })
  )

  it.scoped("leaves nothing to publish to or to subscribe to, and blocks nobody", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      yield* bus.close
      const late = yield* bus.subscribe({ capacity: 1, whenFull: "wait" })
      yield* publishAll(bus, 1, 10)
      assert.isTrue(bus.unsafePublish(event(11)))
      yield* bus.awaitRoom
      assert.deepStrictEqual(yield* late.takeAll, Option.none())
    })
  )

  it.scoped("ends the streams, each after what it holds", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.make
      const read = (subscription: EventBus.Subscription) =>
        Effect.fork(Effect.map(Stream.runCollect(subscription.stream), Chunk.toReadonlyArray))
      const early = yield* read(yield* bus.subscribe())
      const late = yield* bus.subscribe()
      yield* Recorder.settle
      yield* publishAll(bus, 1, 5)
      yield* Recorder.settle
      yield* bus.close
      assert.deepStrictEqual(numbers(yield* Fiber.join(early)), range(1, 5))
      assert.deepStrictEqual(numbers(yield* Effect.flatMap(read(late), Fiber.join)), range(1, 5))
    })
  )
})

describe("any order of doing things", () => {
  type Deed =
    | { readonly do: "publish" | "publish and wait" | "interrupt a publisher" | "close" }
    | { readonly do: "subscribe"; readonly capacity: number; readonly waits: boolean }
    | { readonly do: "take" | "leave"; readonly which: number }

  const which = FastCheck.nat(9)
  const deeds = FastCheck.array(
    FastCheck.oneof(
      { weight: 6, arbitrary: FastCheck.constantFrom<Deed>({ do: "publish" }, { do: "publish and wait" }) },
      { weight: 1, arbitrary: FastCheck.constant<Deed>({ do: "interrupt a publisher" }) },
      {
        weight: 2,
        arbitrary: FastCheck.record({
          do: FastCheck.constant("subscribe" as const),
          capacity: FastCheck.integer({ min: 1, max: 4 }),
          waits: FastCheck.boolean()
        })
      },
      { weight: 4, arbitrary: FastCheck.record({ do: FastCheck.constant("take" as const), which }) },
      { weight: 1, arbitrary: FastCheck.record({ do: FastCheck.constant("leave" as const), which }) }
    ),
    { maxLength: 60 }
  )

  interface Reader {
    readonly subscription: EventBus.Subscription
    readonly scope: Scope.CloseableScope
    readonly waits: boolean
    /** The number of the first event that was published after it subscribed. */
    readonly from: number
    /** The number of the last event that was published before it left. */
    until: number | undefined
    readonly received: Array<number | string>
  }

  it.effect.prop(
    "an owner gets every event once and in order; an observer too, but for what it is told that it missed",
    [deeds],
    ([todo]) =>
      Effect.gen(function* () {
        const bus = yield* EventBus.make
        const readers: Array<Reader> = []
        const publishers: Array<Fiber.RuntimeFiber<void>> = []
        let published = 0
        for (const deed of todo) {
          switch (deed.do) {
            case "publish":
              bus.unsafePublish(event(++published))
              break
            case "publish and wait":
              publishers.push(yield* Effect.fork(bus.publish(event(++published))))
              yield* Recorder.settle
              break
            case "interrupt a publisher":
              yield* Fiber.interrupt(publishers.pop() ?? Fiber.void)
              break
            case "subscribe": {
              const scope = yield* Scope.make()
              const policy: EventBus.Policy = { capacity: deed.capacity, whenFull: deed.waits ? "wait" : "slide" }
              const subscription = yield* Scope.extend(bus.subscribe(policy), scope)
              readers.push({
                subscription,
                scope,
                waits: deed.waits,
                from: published + 1,
                until: undefined,
                received: []
              })
              break
            }
            case "take": {
              const reader = readers[deed.which % Math.max(1, readers.length)]
              if (reader === undefined) break
              const taking = yield* Effect.fork(take(reader.subscription))
              yield* Recorder.settle
              const exit = yield* Fiber.poll(taking)
              if (Option.isNone(exit)) yield* Fiber.interrupt(taking)
              else reader.received.push(...(yield* exit.value))
              break
            }
            case "leave": {
              const reader = readers[deed.which % Math.max(1, readers.length)]
              if (reader === undefined || reader.until !== undefined) break
              reader.until = published
              yield* Scope.close(reader.scope, Exit.void)
              break
            }
          }
        }
        yield* bus.close
        yield* Fiber.joinAll(publishers)
        yield* bus.awaitRoom
        for (const reader of readers) {
          for (let batch = yield* take(reader.subscription); batch.length > 0;) {
            reader.received.push(...batch)
            batch = yield* take(reader.subscription)
          }
          const seen = reader.received.filter((entry) => typeof entry === "number")
          const gaps = reader.received.filter((entry) => typeof entry === "string")
          if (reader.waits) assert.deepStrictEqual(gaps, [], "an owner misses nothing")
          // What stood in line when it subscribed may come as well, so that its first event may be an earlier one.
          let expected = seen[0] === undefined ? reader.from : Math.min(reader.from, seen[0])
          for (const entry of reader.received) {
            if (typeof entry === "string") expected += Number(entry.slice("missed ".length))
            else assert.strictEqual(entry, expected++)
          }
          if (reader.until === undefined) assert.strictEqual(expected, published + 1, "up to the very last one")
          else assert.isAtMost(expected - 1, published)
          yield* Scope.close(reader.scope, Exit.void)
        }
      }),
    { fastCheck: { numRuns: Runs.of(600) } }
  )
})
