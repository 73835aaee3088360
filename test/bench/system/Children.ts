/** A parent with many children in the background, each waiting for a person's approval. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Delegate from "../../../src/builtin/Delegate.js"
import * as QueueChannel from "../../../src/channel/QueueChannel.js"
import * as Model from "../../../src/model/Model.js"
import * as PermissionFile from "../../../src/permission/PermissionFile.js"
import * as Agent from "../../../src/runtime/Agent.js"
import * as AgentRuntime from "../../../src/runtime/AgentRuntime.js"
import * as SubagentProfile from "../../../src/subagent/SubagentProfile.js"
import * as Cpu from "../Cpu.js"
import * as Workload from "../Workload.js"

/** Heap and time of a child that is blocked: made, asking, answered, and its end told to its parent. */
export const blocked = (size: number): Effect.Effect<Workload.Workload> =>
  Effect.sync(() => ({
    sample: () =>
      Effect.scoped(
        Effect.gen(function* () {
          const count = Workload.tally()
          const layer = yield* runtime(size, count)
          const channel = yield* QueueChannel.make({ capacity: size, dialogs: "unbounded", timeouts: {} })
          const agent = yield* Effect.provide(Agent.startWith([channel.interactor]), layer)
          const before = Cpu.heapInUse()
          const start = Cpu.now()
          yield* Effect.orDie(agent.send("go"))
          let dialog = yield* channel.take
          // One is asked at a time; the others stand in line once they have said that they begin to ask.
          const patience = Date.now() + 60_000
          while (count.modelCalls < size + 2) {
            if (Date.now() > patience) return yield* Effect.dieMessage(`Only ${count.modelCalls} models were called.`)
            yield* Effect.yieldNow()
          }
          // The last of them have been answered by their models, and ask, once the event loop has gone round.
          for (let rounds = 0; rounds < 10; rounds++) yield* Effect.promise(() => new Promise(setImmediate))
          const started = Cpu.now() - start
          const heap = Cpu.heapInUse() - before
          const answering = Cpu.now()
          for (let answered = 0; answered < size; dialog = yield* channel.take) {
            if (dialog._tag === "Closed") continue
            yield* Effect.orDie(channel.answer(dialog.request.requestId, { decision: "allow", scope: "once" }))
            if (++answered === size) break
          }
          yield* agent.awaitIdle
          const us = (started + Cpu.now() - answering) / size
          yield* Workload.expectTally(count, { toolRuns: size })
          return { us, kb: heap / size / 1_024 }
        })
      )
  }))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const Work = Tool.make("work", { success: Schema.String })
const own = Toolkit.make(Work)
const toolkit = Toolkit.merge(own, Delegate.toolkit)

/** The parent spawns them all in one step; each works once and says that it did. */
const model = (size: number, count: Workload.Tally): Model.Service => {
  const finish: Model.Part = {
    type: "finish",
    reason: "stop",
    usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
  }
  const say = (text: string): ReadonlyArray<Model.Part> => [{ type: "text-delta", id: "1", delta: text }, finish]
  const call = (id: string, name: string, params: unknown): Model.Part => ({ type: "tool-call", id, name, params })
  const spawning = Array.from({ length: size }, (_, i) =>
    call(`spawn_${i}`, "spawn_subagent", { task: "work", profile: "worker" })
  )
  const answer = ({ agent, prompt: { content } }: Model.Request): ReadonlyArray<Model.Part> => {
    const answered = content.at(-1)?.role === "tool"
    if (agent !== "main") return answered ? say("done") : [call("work_1", "work", {}), finish]
    return content.some(({ role }) => role === "tool") ? say("seen") : [...spawning, finish]
  }
  return Model.fromAnswer({
    id: "bench/mock",
    answer: (request) =>
      Effect.promise(async () => {
        count.modelCalls++
        return Chunk.unsafeFromArray([...answer(request)])
      })
  })
}

const runtime = (size: number, count: Workload.Tally) =>
  AgentRuntime.make({
    toolkit,
    policy: PermissionFile.policy({ whitelist: { tools: ["spawn_subagent"] } }),
    limits: { parallelTools: 8, callsPerStep: size, maxSteps: 2 * size },
    subagents: {
      profiles: [SubagentProfile.make({ name: "worker", description: "works", plugins: ["work"] })],
      timeouts: { permission: 0, clarification: 0 }
    }
  }).pipe(
    Effect.orDie,
    Effect.provide(
      Layer.mergeAll(
        own.toLayer({
          work: () =>
            Effect.sync(() => {
              count.toolRuns++
              return "worked"
            })
        }),
        Delegate.layer,
        Model.layer(model(size, count)),
        FileSystem.layerNoop({}),
        Path.layer
      )
    ),
    Effect.map((service) => Layer.succeed(AgentRuntime.AgentRuntime, service))
  )
