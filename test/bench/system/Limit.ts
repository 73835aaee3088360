/**
 * How cheap it can be: the bare loop over Effect's own primitives, written the plain way. No permissions, no events, no
 * schemas, no history but an array.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as Cpu from "../Cpu.js"
import * as Kit from "../Kit.js"
import * as Request from "../Request.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"

type Tool = (call: Script.Call) => Effect.Effect<number>

/** A run: model, calls, model, …, until the model has nothing to call. */
const loop = (script: Script.Script, count: Workload.Tally, tool: Tool, history: Array<unknown>, from = 0) =>
  Effect.gen(function* () {
    for (let step = from; ; step++) {
      const reply = yield* Effect.promise(() => model(script, step, count))
      history.push(reply)
      const [only] = reply.calls
      if (only === undefined) return reply.text
      if (reply.calls.length === 1) {
        history.push(yield* tool(only))
        continue
      }
      const fibers: Array<Fiber.RuntimeFiber<number>> = []
      for (const call of reply.calls) fibers.push(yield* Effect.fork(tool(call)))
      for (const fiber of fibers) history.push(yield* Fiber.join(fiber))
    }
  })

const model = async (script: Script.Script, step: number, count: Workload.Tally): Promise<Script.Reply> => {
  count.modelCalls++
  const reply = script[step]
  if (reply === undefined) throw new Error("The script has no more steps.")
  return reply
}

const add =
  (count: Workload.Tally): Tool =>
  ({ a, b }) =>
    Effect.sync(() => {
      count.toolRuns++
      count.sum += a + b
      return a + b
    })

const run = (script: Script.Script, toolOf: (count: Workload.Tally) => Tool) => {
  const expected = Workload.ofScript(script)
  return Effect.suspend(() => {
    const count = Workload.tally()
    return Effect.zipRight(
      Effect.flatMap(loop(script, count, toolOf(count), []), (text) => Workload.expect("text", text, "done")),
      Effect.suspend(() => Workload.expectTally(count, expected))
    )
  })
}

const turn = Effect.sync(() => Workload.timed(50, run(Script.turns(50), add)))

const history = Effect.sync(() => {
  const after = (size: number) => {
    const earlier = Script.turns(size)
    const script = [...earlier, ...Script.turns(50, size)]
    return Workload.timedPart(
      50,
      Effect.gen(function* () {
        const count = Workload.tally()
        const held: Array<unknown> = []
        yield* loop(script, count, add(count), held)
        return Effect.zipRight(
          loop(script, count, add(count), held, earlier.length),
          Effect.suspend(() => Workload.expectTally(count, Workload.ofScript(script)))
        )
      })
    )
  }
  return Workload.growing(after(10), after(200))
})

const parallel = Effect.sync(() => {
  const size = 100
  return Workload.timed(
    size,
    run(Script.batch(size), (count) => {
      const crowd = new Script.Crowd(size)
      return (call) => Effect.zipRight(Effect.promise(crowd.join), add(count)(call))
    })
  )
})

/** Asks through a queue and waits for the answer. */
const asking =
  (questions: Queue.Queue<Deferred.Deferred<boolean>>, tool: Tool): Tool =>
  (call) =>
    Effect.gen(function* () {
      const answer = yield* Deferred.make<boolean>()
      yield* Queue.offer(questions, answer)
      return (yield* Deferred.await(answer)) ? yield* tool(call) : 0
    })

const life = (turns: number) => Effect.sync(() => Workload.timed(1, run(Script.turns(turns), add)))

/** A tool, and as many layers as a runtime is made from, provided to nothing. */
const layers = Effect.sync(() => {
  const model = Context.GenericTag<string>("bench/model")
  const made = Effect.suspend(() =>
    Effect.provide(
      Effect.void,
      Layer.mergeAll(
        Kit.declared().toLayer({ add: ({ a, b }) => Effect.succeed(a + b) }),
        Layer.succeed(model, "mock"),
        FileSystem.layerNoop({}),
        Path.layer
      )
    )
  )
  return Workload.timed(1, made)
})

const server = Effect.sync(() => {
  const script = Script.turns(1)
  const count = Workload.tally()
  const expected = Workload.ofScript(script)
  const request = Request.served((prompt) => loop(script, count, add(count), [prompt]))
  return Workload.timed(
    1,
    Effect.suspend(() => {
      Object.assign(count, Workload.tally())
      return Effect.zipRight(
        request,
        Effect.suspend(() => Workload.expectTally(count, expected))
      )
    })
  )
})

const approved = (turns: number) =>
  Effect.gen(function* () {
    const questions = yield* Queue.bounded<Deferred.Deferred<boolean>>(16)
    yield* Effect.forkScoped(
      Effect.forever(Effect.flatMap(Queue.take(questions), (answer) => Deferred.succeed(answer, true)))
    )
    return Workload.timed(
      turns,
      run(Script.turns(turns), (count) => asking(questions, add(count)))
    )
  })

/** A parent that calls so many children at once, each of which asks once. */
const children = (size: number) =>
  Effect.sync((): Workload.Workload => ({
    sample: () =>
      Effect.gen(function* () {
        const count = Workload.tally()
        const questions = yield* Queue.unbounded<Deferred.Deferred<boolean>>()
        const one = Script.turns(1)
        const work = asking(questions, add(count))
        const child: Tool = () => Effect.as(loop(one, count, work, []), 0)
        const before = Cpu.heapInUse()
        const start = Cpu.now()
        const parent = yield* Effect.fork(loop(Script.batch(size), count, child, []))
        while ((yield* Queue.size(questions)) < size) yield* Effect.yieldNow()
        const started = Cpu.now() - start
        const heap = Cpu.heapInUse() - before
        const answering = Cpu.now()
        for (const answer of yield* Queue.takeAll(questions)) yield* Deferred.succeed(answer, true)
        yield* Workload.expect("text", yield* Fiber.join(parent), "done")
        const us = (started + Cpu.now() - answering) / size
        yield* Workload.expectTally(count, { modelCalls: 2 * size + 2, toolRuns: size })
        return { us, kb: heap / size / 1_024 }
      })
  }))

/** The first life of a process. */
export const first: Workload.First = () => Effect.runPromise(run(Script.turns(1), add))

const blocked = (size: number) =>
  Effect.sync((): Workload.Workload => {
    const script = Script.turns(1)
    return {
      sample: () =>
        Effect.gen(function* () {
          const count = Workload.tally()
          const questions = yield* Queue.unbounded<Deferred.Deferred<boolean>>()
          const tool = asking(questions, add(count))
          const before = Cpu.heapInUse()
          const start = Cpu.now()
          const fibers: Array<Fiber.RuntimeFiber<string>> = []
          for (let i = 0; i < size; i++) fibers.push(yield* Effect.fork(loop(script, count, tool, [])))
          while ((yield* Queue.size(questions)) < size) yield* Effect.yieldNow()
          const started = Cpu.now() - start
          const heap = Cpu.heapInUse() - before
          const answering = Cpu.now()
          const asked = yield* Queue.takeAll(questions)
          for (const answer of asked) yield* Deferred.succeed(answer, true)
          for (const fiber of fibers) yield* Fiber.join(fiber)
          const us = (started + Cpu.now() - answering) / size
          yield* Workload.expectTally(count, { modelCalls: 2 * size, toolRuns: size, sum: size })
          return { us, kb: heap / size / 1_024 }
        })
    }
  })

const match = Effect.sync(() => {
  const open = (size: number) => {
    const order = Workload.shuffled(size)
    return Workload.timedPart(
      size,
      Effect.gen(function* () {
        const entries = new Map<string, Deferred.Deferred<number>>()
        const finished = yield* Deferred.make<void>()
        let sum = 0
        let left = size
        let waiting = 0
        for (let i = 0; i < size; i++) {
          const answer = yield* Deferred.make<number>()
          entries.set(`req_${i}`, answer)
          yield* Effect.fork(
            Effect.flatMap(
              Effect.zipRight(
                Effect.sync(() => waiting++),
                Deferred.await(answer)
              ),
              (value) => {
                sum += value
                return --left === 0 ? Deferred.succeed(finished, undefined) : Effect.void
              }
            )
          )
        }
        while (waiting < size) yield* Effect.yieldNow()
        return Effect.gen(function* () {
          for (const i of order) {
            const id = `req_${i}`
            const answer = entries.get(id)
            if (answer === undefined) continue
            entries.delete(id)
            yield* Deferred.succeed(answer, i)
          }
          yield* Deferred.await(finished)
          yield* Workload.expect("sum of the answers", sum, (size * (size - 1)) / 2)
        })
      })
    )
  }
  return Workload.growing(open(100), open(10_000))
})

const events = Effect.sync(() => {
  const size = 100_000
  return Workload.rated(
    size,
    Effect.scoped(
      Effect.gen(function* () {
        const bus = yield* PubSub.bounded<number>(256)
        const readers: Array<Fiber.RuntimeFiber<number>> = []
        for (let i = 0; i < 3; i++) {
          const events = yield* PubSub.subscribe(bus)
          readers.push(
            yield* Effect.fork(
              Effect.gen(function* () {
                let seen = 0
                while (seen < size) seen += Chunk.size(yield* Queue.takeBetween(events, 1, 256))
                return seen
              })
            )
          )
        }
        for (let i = 0; i < size; i++) yield* PubSub.publish(bus, i)
        for (const reader of readers) yield* Workload.expect("events", yield* Fiber.join(reader), size)
      })
    )
  )
})

const delta = Effect.sync(() => {
  const pieces = Script.deltas(1_000)
  const length = pieces.join("").length
  const source = Stream.fromChunks(...pieces.map(Chunk.of))
  return Workload.timed(
    pieces.length,
    Effect.gen(function* () {
      const lane = yield* Queue.bounded<string>(256)
      const reader = yield* Effect.fork(
        Effect.gen(function* () {
          let seen = 0
          while (seen < length) for (const text of yield* Queue.takeBetween(lane, 1, 256)) seen += text.length
          return seen
        })
      )
      yield* Stream.runForEachChunk(source, (chunk) => Queue.offerAll(lane, chunk))
      yield* Workload.expect("length of the text", yield* Fiber.join(reader), length)
    })
  )
})

export const workloads: Workload.Workloads = {
  turn,
  history,
  parallel,
  approval: approved(50),
  "make-layers": layers,
  "life-1": life(1),
  "life-3": life(3),
  "life-10": life(10),
  "life-50": life(50),
  "approval-10": approved(10),
  server,
  "children-1000": children(1_000),
  "blocked-1000": blocked(1_000),
  "blocked-10000": blocked(10_000),
  match,
  events,
  delta
}
