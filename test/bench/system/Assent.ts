/** Assent as a program uses it: an agent with a mock model, its tools, its gate, its events, everything in memory. */
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as QueueChannel from "../../../src/channel/QueueChannel.js"
import type { RequestId, SessionId } from "../../../src/core/Id.js"
import type { AgentEvent } from "../../../src/event/AgentEvent.js"
import * as EventBus from "../../../src/event/EventBus.js"
import { Confirm } from "../../../src/interaction/Interaction.js"
import * as InteractionBroker from "../../../src/broker/InteractionBroker.js"
import * as InteractionRequest from "../../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../../src/interaction/Interactor.js"
import { OneShot } from "../../../src/internal/OneShot.js"
import * as Model from "../../../src/model/Model.js"
import * as PermissionFile from "../../../src/permission/PermissionFile.js"
import * as Agent from "../../../src/runtime/Agent.js"
import * as Cpu from "../Cpu.js"
import * as Kit from "../Kit.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"
import * as Durable from "./Durable.js"
import * as Children from "./Children.js"
import { approving, completes, expected, follow, mock, nobody, owned, reset, runtime, streaming } from "./AssentKit.js"
import * as Drawing from "./Drawing.js"
import * as Judgement from "./Judgement.js"
import * as Messages from "./Messages.js"
import * as ShortLives from "./ShortLives.js"

/** Starts an agent, runs the script as one turn, stops it, and looks at what came of it. */
const whole = (script: Script.Script, count: Workload.Tally, ...interactors: ReadonlyArray<Interactor.Service>) =>
  Effect.zipRight(
    reset(count),
    Effect.scoped(
      Effect.gen(function* () {
        const agent = yield* Effect.orDie(Agent.startWith(interactors, owned))
        const reader = yield* follow(agent, (event) => {
          if (event._tag === "ToolCallEnded" && event.outcome === "succeeded") count.events++
        })
        yield* completes(agent, "go")
        yield* agent.shutdown
        yield* Fiber.join(reader)
      })
    )
  ).pipe(Effect.zipRight(Effect.suspend(() => Workload.expectTally(count, expected(script)))))

interface Run {
  readonly tools?: number
  readonly crowd?: number
  readonly streaming?: boolean
}

const runOf = (script: Script.Script, options: Run = {}) =>
  Effect.gen(function* () {
    const count = Workload.tally()
    let crowd = new Script.Crowd(options.crowd ?? 1)
    const model = mock(script, count)
    const context = yield* runtime({
      model: options.streaming === true ? streaming(model) : model,
      count,
      tools: options.tools,
      before: options.crowd === undefined ? undefined : Effect.promise(() => crowd.join())
    })
    return Effect.suspend(() => {
      crowd = new Script.Crowd(options.crowd ?? 1)
      return whole(script, count, nobody)
    }).pipe(Effect.provide(context))
  })

const turn = Effect.map(runOf(Script.turns(50)), (run) => Workload.timed(50, run))

const streamedTurn = Effect.map(runOf(Script.turns(50), { streaming: true }), (run) => Workload.timed(50, run))

const history = Effect.gen(function* () {
  const after = (size: number) =>
    Effect.gen(function* () {
      const script = [...Script.turns(size), ...Script.turns(50, size)]
      const count = Workload.tally()
      const context = yield* runtime({ model: mock(script, count), count })
      return Workload.timedPart(
        50,
        Effect.gen(function* () {
          yield* reset(count)
          const scope = yield* Scope.make()
          const agent = yield* Scope.extend(Effect.orDie(Agent.startWith([nobody], owned)), scope)
          yield* follow(agent, () => undefined)
          yield* completes(agent, "go")
          return completes(agent, "go on").pipe(
            Effect.zipRight(
              Effect.suspend(() => Workload.expect("messages", agent.history.messages.length, 2 * (size + 50) + 4))
            ),
            Effect.zipRight(Scope.close(scope, Exit.void))
          )
        }).pipe(Effect.provide(context))
      )
    })
  return Workload.growing(yield* after(10), yield* after(200))
})

const tools = Effect.gen(function* () {
  const one = yield* runOf(Script.turns(50))
  const twenty = yield* runOf(Script.turns(50), { tools: 20 })
  return Workload.growing(Workload.timed(50, one), Workload.timed(50, twenty))
})

const parallel = Effect.map(runOf(Script.batch(100), { crowd: 100 }), (run) => Workload.timed(100, run))

/** Each call is allowed by all of so many people, each at a channel of their own. */
const approvedBy = (people: number) =>
  Effect.gen(function* () {
    const script = Script.turns(50)
    const count = Workload.tally()
    const channels = yield* Effect.forEach(Array.from({ length: people }), (_, at) =>
      QueueChannel.make({ id: at === 0 ? "queue" : `queue ${at}` })
    )
    const policy =
      people === 1
        ? PermissionFile.defaults
        : PermissionFile.policy({ approvals: [{ patterns: ["*(*"], quorum: people }] })
    const context = yield* runtime({ model: mock(script, count), count, policy })
    for (const channel of channels) yield* approving(channel, count)
    return Workload.timed(
      50,
      whole(script, count, ...channels.map(({ interactor }) => interactor)).pipe(
        Effect.zipRight(Effect.suspend(() => Workload.expect("asked", count.asked, 50 * people))),
        Effect.provide(context)
      )
    )
  })

const approval = approvedBy(1)

const quorum = Effect.zipWith(approvedBy(1), approvedBy(3), Workload.growing)

/** Each agent is a root session of its own; all ask the same channel, which waits for ever. */
const blocked = (size: number) =>
  Effect.gen(function* () {
    const count = Workload.tally()
    const [call, words] = Script.turns(1).map((reply) => Chunk.unsafeFromArray(Kit.streamed(reply)))
    const model = Model.fromAnswer({
      id: "bench/mock",
      answer: ({ prompt: { content } }) =>
        Effect.promise(async () => {
          count.modelCalls++
          return (content.at(-1)?.role === "tool" ? words : call) ?? Chunk.empty<Model.Part>()
        })
    })
    const context = yield* runtime({ model, count, policy: PermissionFile.defaults })
    return Workload.provided(context, {
      sample: () =>
        Effect.scoped(
          Effect.gen(function* () {
            yield* reset(count)
            const channel = yield* QueueChannel.make({ capacity: size, dialogs: "unbounded", timeouts: {} })
            const before = Cpu.heapInUse()
            const start = Cpu.now()
            const agents: Array<Agent.Agent> = []
            for (let i = 0; i < size; i++) {
              const agent = yield* Agent.startWith([channel.interactor])
              yield* Effect.orDie(agent.send("go"))
              agents.push(agent)
            }
            const asked: Array<RequestId> = []
            while (asked.length < size) {
              const dialog = yield* channel.take
              if (dialog._tag === "Opened") asked.push(dialog.request.requestId)
            }
            const started = Cpu.now() - start
            const heap = Cpu.heapInUse() - before
            const answering = Cpu.now()
            for (const id of asked) yield* Effect.orDie(channel.answer(id, { decision: "allow", scope: "once" }))
            for (const agent of agents) {
              const end = yield* agent.awaitIdle
              yield* Workload.expect("end", Option.map(end, ({ _tag }) => _tag).pipe(Option.getOrNull), "Completed")
            }
            const us = (started + Cpu.now() - answering) / size
            yield* Workload.expectTally(count, { modelCalls: 2 * size, toolRuns: size, sum: size })
            return { us, kb: heap / size / 1_024 }
          })
        )
    })
  })

const request = (id: string) =>
  Effect.map(InteractionRequest.make(new Confirm({ prompt: "Go on?", default: false })), (envelope) => ({
    ...envelope,
    requestId: id as RequestId
  }))

const match = Effect.sync(() => {
  const open = (size: number) => {
    const order = Workload.shuffled(size)
    return Workload.timedPart(
      size,
      Effect.gen(function* () {
        const pending = new Map<string, OneShot<number>>()
        const finished = yield* Deferred.make<void>()
        let sum = 0
        let left = size
        let waiting = 0
        for (let i = 0; i < size; i++) {
          const end = new OneShot<number>()
          pending.set(`req_${i}`, end)
          yield* Effect.fork(
            Effect.flatMap(
              Effect.zipRight(
                Effect.sync(() => waiting++),
                end
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
            yield* Effect.sync(() => {
              pending.get(`req_${i}`)?.complete(i)
              pending.delete(`req_${i}`)
            })
          }
          yield* Deferred.await(finished)
          yield* Workload.expect("sum of the answers", sum, (size * (size - 1)) / 2)
          yield* Workload.expect("open", pending.size, 0)
        })
      })
    )
  }
  return Workload.growing(open(100), open(10_000))
})

/** The same through a channel's door: the answer is decoded, the dialog closed, the asker resumed. */
const matchChannel = Effect.sync(() => {
  const open = (size: number) => {
    const order = Workload.shuffled(size)
    return Workload.timedPart(
      size,
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const channel = yield* Scope.extend(
          QueueChannel.make({ capacity: size, dialogs: "unbounded", timeouts: {} }),
          scope
        )
        const finished = yield* Deferred.make<void>()
        let yes = 0
        let left = size
        for (let i = 0; i < size; i++) {
          const asked = channel.interactor.request(yield* request(`req_${i}`))
          yield* Effect.fork(
            Effect.flatMap(Effect.orDie(asked), ({ answer }) => {
              if (answer === true) yes++
              return --left === 0 ? Deferred.succeed(finished, undefined) : Effect.void
            })
          )
        }
        while ((yield* channel.open).length < size) yield* Effect.yieldNow()
        return Effect.gen(function* () {
          for (const i of order) yield* Effect.orDie(channel.answer(`req_${i}`, true))
          yield* Deferred.await(finished)
          yield* Workload.expect("answers", yes, size)
          yield* Scope.close(scope, Exit.void)
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
        const bus = yield* EventBus.make
        const readers: Array<Fiber.RuntimeFiber<number>> = []
        for (let i = 0; i < 3; i++) {
          const { takeAll } = yield* bus.subscribe({ capacity: 256, whenFull: "wait" })
          readers.push(
            yield* Effect.fork(
              Effect.gen(function* () {
                let seen = 0
                while (seen < size) {
                  const batch = yield* takeAll
                  if (Option.isNone(batch)) return seen
                  seen += batch.value.length
                }
                return seen
              })
            )
          )
        }
        for (let i = 0; i < size; i++) if (!bus.unsafePublish(event)) yield* bus.awaitRoom
        for (const reader of readers) yield* Workload.expect("events", yield* Fiber.join(reader), size)
      })
    )
  )
})

/** A million events to three observers that read as they can: how much more heap than before is in use on the way. */
const dayOfEvents = Effect.sync((): Workload.Workload => ({
  sample: () =>
    Effect.scoped(
      Effect.gen(function* () {
        const size = 1_000_000
        const bus = yield* EventBus.make
        let seen = 0
        for (let i = 0; i < 3; i++) {
          const { takeAll } = yield* bus.subscribe({ capacity: 256 })
          const read = Effect.map(takeAll, (batch) => {
            seen += Option.isNone(batch) ? 0 : batch.value.length
            return Option.isSome(batch)
          })
          yield* Effect.forkScoped(Effect.repeat(read, { while: (more) => more }))
        }
        const before = Cpu.heapInUse()
        let most = 0
        for (let i = 1; i <= size; i++) {
          bus.unsafePublish({ ...event, at: i })
          if (i % 200 === 0) yield* Effect.yieldNow()
          if (i % 250_000 === 0) most = Math.max(most, Cpu.heapInUse() - before)
        }
        yield* Workload.expect("events to observers", seen > size, true)
        return { mb: most / 1_048_576 }
      })
    )
}))

const event: AgentEvent = { _tag: "TextDelta", text: "word", at: 0, sessionId: "ses_1" as SessionId, agent: "main" }

const delta = Effect.gen(function* () {
  const pieces = Script.deltas(1_000)
  const length = pieces.join("").length
  const count = Workload.tally()
  const source = Stream.fromChunks(...Kit.pieced(pieces).map(Chunk.of))
  const context = yield* runtime({ model: { id: "bench/mock", stream: () => source }, count })
  return Workload.timed(
    pieces.length,
    Effect.scoped(
      Effect.gen(function* () {
        let seen = 0
        const agent = yield* Effect.orDie(Agent.startWith([nobody], owned))
        const reader = yield* follow(agent, (event) => {
          if (event._tag === "TextDelta") seen += event.text.length
        })
        yield* completes(agent, "go")
        yield* agent.shutdown
        yield* Fiber.join(reader)
        yield* Workload.expect("length of the text", seen, length)
      })
    ).pipe(Effect.provide(context))
  )
})

/** All but the last interactor show the dialog and wait; the last answers at once. */
const fanOut = (size: number) =>
  Effect.gen(function* () {
    const bus = yield* EventBus.make
    const broker = yield* InteractionBroker.make({ bus })
    let shown = 0
    let closed = 0
    const silent: Interactor.Service = {
      id: "silent",
      relay: false,
      request: () =>
        Effect.async(() => {
          shown++
          return Effect.sync(() => {
            closed++
          })
        })
    }
    const answering: Interactor.Service = {
      ...nobody,
      request: (request) => {
        shown++
        return Effect.succeed({ answer: true as never, by: "answering", how: "answered" as const, request })
      }
    }
    for (let i = 1; i < size; i++) yield* broker.attach(silent)
    yield* broker.attach(answering)
    const requests = 100
    return Workload.timed(
      requests,
      Effect.gen(function* () {
        shown = 0
        closed = 0
        for (let i = 0; i < requests; i++) {
          const { answer } = yield* Effect.orDie(broker.interactor.request(yield* request(`req_${i}`)))
          yield* Workload.expect("answer", answer, true)
        }
        // The dialogs close in fibers of their own.
        while (closed < requests * (size - 1)) yield* Effect.yieldNow()
        yield* Workload.expect("dialogs shown", shown, requests * size)
        yield* Workload.expect("open", (yield* broker.open).length, 0)
      })
    )
  })

/** Runs a script in agents that are kept on the disk. */
const durable = (script: Script.Script) =>
  Effect.map(
    Effect.suspend(() => {
      const count = Workload.tally()
      return Effect.map(runtime({ model: mock(script, count), count }), (context) => ({ count, context }))
    }),
    ({ count, context }): Durable.Bench => ({
      context,
      interactor: nobody,
      reset: reset(count),
      completes: (agent) =>
        Effect.zipRight(
          completes(agent, "go"),
          Effect.suspend(() => Workload.expect("model calls", count.modelCalls, script.length))
        )
    })
  )

const answer = Script.turns(0)

export const first = ShortLives.first

export const workloads: Workload.Workloads = {
  turn,
  "turn-streamed": streamedTurn,
  ...Messages.workloads,
  history,
  tools,
  parallel,
  approval,
  quorum,
  ...ShortLives.workloads,
  "blocked-1000": blocked(1_000),
  "blocked-10000": blocked(10_000),
  "children-1000": Children.blocked(1_000),
  "long-command": Judgement.longest,
  markdown: Drawing.markdown,
  match,
  "match-channel": matchChannel,
  events,
  "day-of-events": dayOfEvents,
  "turn-on-disk": Effect.flatMap(durable(Script.turns(50)), (bench) => Durable.turns(50, bench)),
  "resume-10000": Effect.flatMap(durable(answer), (bench) => Durable.resume(10_000, bench)),
  append: Effect.flatMap(durable(answer), (bench) =>
    Effect.zipWith(Durable.append(10, bench), Durable.append(10_000, bench), Workload.growing)
  ),
  delta,
  "fan-out-1": fanOut(1),
  "fan-out-3": fanOut(3),
  "fan-out-10": fanOut(10)
}
