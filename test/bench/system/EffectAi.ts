/** `@effect/ai` alone: `generateText` with a toolkit in a loop. It has no loop, permissions or events of its own. */
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as Cpu from "../Cpu.js"
import * as Kit from "../Kit.js"
import * as Request from "../Request.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"

interface Options {
  readonly before?: Effect.Effect<unknown> | undefined
  readonly tools?: number | undefined
}

/** A loop over a script, with its model and handlers, that starts at a step with what was said so far. */
const looped = (script: Script.Script, count: Workload.Tally, { before, tools = 1 }: Options = {}) =>
  Effect.gen(function* () {
    const toolkit = Kit.toolkit(tools)
    const model = yield* scripted(script, count)
    const context = yield* Layer.build(Layer.mergeAll(...Kit.handlers(tools, count, before)))
    return (history: Array<Prompt.Message>, words = "go") =>
      Effect.gen(function* () {
        history.push(Prompt.userMessage({ content: [Prompt.textPart({ text: words })] }))
        for (;;) {
          const prompt = Prompt.fromMessages(history)
          const response = yield* model.generateText({ prompt, toolkit, concurrency: "unbounded" })
          history.push(...Prompt.fromResponseParts(response.content).content)
          if (response.toolCalls.length === 0) return response.text
        }
      }).pipe(Effect.provide(context), Effect.orDie)
  })

const scripted = (script: Script.Script, count: Workload.Tally) => {
  const replies = script.map(Kit.whole)
  return LanguageModel.make({
    generateText: ({ prompt }) => {
      // By the history, as all agents of a workload share the model.
      const said = prompt.content.filter(({ role }) => role === "assistant").length
      return Effect.promise(async () => {
        count.modelCalls++
        return replies[said] ?? Promise.reject(new Error("The script has no more steps."))
      })
    },
    streamText: () => Stream.empty
  })
}

const reset = (count: Workload.Tally) => Effect.sync(() => Object.assign(count, Workload.tally()))

const run = (script: Script.Script, options: Options = {}) => {
  const count = Workload.tally()
  return Effect.map(looped(script, count, options), (loop) =>
    checked(script, count, saysDone(Effect.suspend(() => loop([]))))
  )
}

const saysDone = (said: Effect.Effect<string>) => Effect.flatMap(said, (text) => Workload.expect("text", text, "done"))

const checked = (script: Script.Script, count: Workload.Tally, run: Effect.Effect<void>) => {
  const expected = Workload.ofScript(script)
  return reset(count).pipe(
    Effect.zipRight(run),
    Effect.zipRight(Effect.suspend(() => Workload.expectTally(count, expected)))
  )
}

const turn = Effect.map(run(Script.turns(50)), (once) => Workload.timed(50, once))

const history = Effect.gen(function* () {
  const after = (size: number) => {
    const script = [...Script.turns(size), ...Script.turns(50, size)]
    const count = Workload.tally()
    return Effect.map(looped(script, count), (loop) =>
      Workload.timedPart(
        50,
        Effect.gen(function* () {
          yield* reset(count)
          const held: Array<Prompt.Message> = []
          yield* loop(held)
          return Effect.zipRight(
            loop(held),
            Effect.suspend(() => Workload.expectTally(count, Workload.ofScript(script)))
          )
        })
      )
    )
  }
  return Workload.growing(yield* after(10), yield* after(200))
})

const tools = Effect.gen(function* () {
  const one = yield* run(Script.turns(50))
  const twenty = yield* run(Script.turns(50), { tools: 20 })
  return Workload.growing(Workload.timed(50, one), Workload.timed(50, twenty))
})

const parallel = Effect.suspend(() => {
  const size = 100
  let crowd = new Script.Crowd(size)
  const joined = Effect.promise(() => crowd.join())
  return Effect.map(run(Script.batch(size), { before: joined }), (once) =>
    Workload.timed(
      size,
      Effect.suspend(() => {
        crowd = new Script.Crowd(size)
        return once
      })
    )
  )
})

/** The handler asks, through a queue as one would write it. */
const asking = (questions: Queue.Queue<Deferred.Deferred<boolean>>) =>
  Effect.gen(function* () {
    const answer = yield* Deferred.make<boolean>()
    yield* Queue.offer(questions, answer)
    return yield* Deferred.await(answer)
  })

const life = (turns: number) => Effect.map(run(Script.turns(turns)), (once) => Workload.timed(1, once))

/** What its agents share: a tool is declared, its handlers are built, and the model is made. */
const make = Effect.sync(() => {
  const count = Workload.tally()
  const shared = Effect.suspend(() =>
    Effect.provide(scripted([], count), Kit.declared().toLayer({ add: ({ a, b }) => Effect.succeed(a + b) }))
  )
  return Workload.timed(1, Effect.asVoid(shared))
})

const server = Effect.gen(function* () {
  const count = Workload.tally()
  const script = Script.turns(1)
  const loop = yield* looped(script, count)
  return Workload.timed(
    1,
    checked(
      script,
      count,
      Request.served((prompt) => loop([], prompt))
    )
  )
})

const approved = (turns: number) =>
  Effect.gen(function* () {
    const questions = yield* Queue.bounded<Deferred.Deferred<boolean>>(16)
    yield* Effect.forkScoped(
      Effect.forever(Effect.flatMap(Queue.take(questions), (answer) => Deferred.succeed(answer, true)))
    )
    return Workload.timed(turns, yield* run(Script.turns(turns), { before: asking(questions) }))
  })

/** A model, its tools, and the first life of a process. */
export const first: Workload.First = () => Effect.runPromise(Effect.scoped(Effect.flatten(run(Script.turns(1)))))

const blocked = (size: number) =>
  Effect.gen(function* () {
    const script = Script.turns(1)
    const count = Workload.tally()
    const questions = yield* Queue.unbounded<Deferred.Deferred<boolean>>()
    const loop = yield* looped(script, count, { before: asking(questions) })
    const workload: Workload.Workload = {
      sample: () =>
        Effect.gen(function* () {
          yield* reset(count)
          const before = Cpu.heapInUse()
          const start = Cpu.now()
          const fibers: Array<Fiber.RuntimeFiber<string>> = []
          for (let i = 0; i < size; i++) fibers.push(yield* Effect.fork(loop([])))
          while ((yield* Queue.size(questions)) < size) yield* Effect.yieldNow()
          const started = Cpu.now() - start
          const heap = Cpu.heapInUse() - before
          const answering = Cpu.now()
          for (const answer of yield* Queue.takeAll(questions)) yield* Deferred.succeed(answer, true)
          for (const fiber of fibers) yield* Fiber.join(fiber)
          const us = (started + Cpu.now() - answering) / size
          yield* Workload.expectTally(count, { modelCalls: 2 * size, toolRuns: size, sum: size })
          return { us, kb: heap / size / 1_024 }
        })
    }
    return workload
  })

const delta = Effect.gen(function* () {
  const pieces = Script.deltas(1_000)
  const length = pieces.join("").length
  const source = Stream.fromIterable(Kit.pieced(pieces)).pipe(Stream.rechunk(1))
  const model = yield* LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => source })
  return Workload.timed(
    pieces.length,
    Effect.suspend(() => {
      let seen = 0
      return model.streamText({ prompt: "go" }).pipe(
        Stream.runForEach((part) =>
          Effect.sync(() => {
            if (part.type === "text-delta") seen += part.delta.length
          })
        ),
        Effect.orDie,
        Effect.zipRight(Effect.suspend(() => Workload.expect("length of the text", seen, length)))
      )
    })
  )
})

export const workloads: Workload.Workloads = {
  turn,
  history,
  tools,
  parallel,
  approval: approved(50),
  "make-layers": make,
  "life-1": life(1),
  "life-3": life(3),
  "life-10": life(10),
  "life-50": life(50),
  "approval-10": approved(10),
  server,
  "blocked-1000": blocked(1_000),
  delta
}
