/** What a message of a person costs that is answered after one call, and what a typed result, metrics and spans add to it. */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import * as Model from "../../../src/model/Model.js"
import * as Agent from "../../../src/runtime/Agent.js"
import type { AgentRuntime } from "../../../src/runtime/AgentRuntime.js"
import * as Metrics from "../../../src/runtime/Metrics.js"
import * as Kit from "../Kit.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"
import { completes, mock, nobody, reset, runtime } from "./AssentKit.js"

/** So many messages a run, to one agent. */
const size = 50

const script = Array.from({ length: size }, () => Script.turns(1)).flat()

/** A run: the agent is started, gets all messages, and its scope ends. */
const conversation = (
  model: (count: Workload.Tally) => Model.Service,
  message: (agent: Agent.Agent) => Effect.Effect<void>,
  around: <A>(run: Effect.Effect<A, never, AgentRuntime>) => Effect.Effect<A, never, AgentRuntime> = (run) => run
) =>
  Effect.gen(function* () {
    const count = Workload.tally()
    const context = yield* runtime({ model: model(count), count })
    const run = Effect.scoped(
      Effect.gen(function* () {
        const agent = yield* Agent.startWith([nobody])
        for (let i = 0; i < size; i++) yield* message(agent)
      })
    )
    const expected = { modelCalls: 2 * size, toolRuns: size, sum: size }
    return Workload.provided(
      context,
      Workload.timed(
        size,
        reset(count).pipe(
          Effect.zipRight(around(run)),
          Effect.zipRight(Effect.suspend(() => Workload.expectTally(count, expected)))
        )
      )
    )
  })

const said = (agent: Agent.Agent) => completes(agent, "go")

const plain = conversation((count) => mock(script, count), said)

/** The same conversation without and with something. */
const beside = (other: typeof plain, without = plain) => Effect.zipWith(without, other, Workload.growing)

const Result = Schema.Struct({ text: Schema.String, total: Schema.Number })
const result: typeof Result.Type = { text: "done", total: 1 }

const typed = (agent: Agent.Agent) =>
  Effect.flatMap(Effect.orDie(agent.run("go", { output: Result })), (end) =>
    Workload.expect("result", end._tag === "Completed" ? end.value.total : end._tag, result.total)
  )

/** The same words from all of them: what is compared is what it costs to read them. */
const replies = script.map(({ calls, text }) => ({ calls, text: text === "" ? "" : JSON.stringify(result) }))

/** A model that has structured output: its last words are the result. */
const structured = (count: Workload.Tally): Model.Service => ({ ...mock(replies, count), outputSchemas: "always" })

const untyped = conversation((count) => mock(replies, count), said)

/** A model that has none: it calls the tool for the result. */
const calling = (count: Workload.Tally): Model.Service => {
  const called = replies.map((reply, i) =>
    Chunk.unsafeFromArray<Model.Part>(
      reply.text === "" ? Kit.streamed(reply) : Kit.calling({ id: `result_${i}`, name: "final_result", params: result })
    )
  )
  const answer = Effect.promise(async () => called[count.modelCalls++] ?? Promise.reject(new Error("No more steps.")))
  return Model.fromAnswer({ id: "bench/mock", answer: () => answer })
}

/** The tracer of a program, which keeps nothing: what is measured is the making of the spans. */
const tracer = Tracer.make({
  context: (run) => run(),
  span: (name, parent, context, links, startTime, kind): Tracer.Span => ({
    _tag: "Span",
    name,
    spanId: "1",
    traceId: Option.match(parent, { onNone: () => "1", onSome: ({ traceId }) => traceId }),
    parent,
    context,
    links,
    kind,
    sampled: true,
    status: { _tag: "Started", startTime },
    attributes: new Map(),
    addLinks: () => undefined,
    attribute: () => undefined,
    event: () => undefined,
    end: () => undefined
  })
})

export const workloads: Workload.Workloads = {
  chat: plain,
  "chat-structured": beside(conversation(structured, typed), untyped),
  "chat-typed": beside(conversation(calling, typed), untyped),
  "chat-metrics": beside(conversation((count) => mock(script, count), said, Effect.provide(Metrics.layer))),
  "chat-traced": beside(conversation((count) => mock(script, count), said, Effect.withTracer(tracer)))
}
