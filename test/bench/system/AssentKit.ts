/** An agent as a program would have it, for the rows of Assent: mock models, tools with handlers, rules, a person who says yes. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as QueueChannel from "../../../src/channel/QueueChannel.js"
import type { AgentEvent } from "../../../src/event/AgentEvent.js"
import * as Interactor from "../../../src/interaction/Interactor.js"
import * as Model from "../../../src/model/Model.js"
import * as PermissionFile from "../../../src/permission/PermissionFile.js"
import type * as Agent from "../../../src/runtime/Agent.js"
import * as AgentRuntime from "../../../src/runtime/AgentRuntime.js"
import * as Kit from "../Kit.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"

export interface Options {
  readonly model: Model.Service
  readonly count: Workload.Tally
  /** Called by the tool before it adds. */
  readonly before?: Effect.Effect<void> | undefined
  readonly policy?: PermissionFile.Policy | undefined
  readonly tools?: number | undefined
}

/** Allows `add` by name and asks about everything else. */
export const byRule = PermissionFile.policy({ whitelist: { tools: ["add"] } })

/** What a runtime is made from; its handlers stand ready. */
export const surroundings = ({ model, count, before, tools = 1 }: Options) =>
  Layer.build(
    Layer.mergeAll(...Kit.handlers(tools, count, before), Model.layer(model), FileSystem.layerNoop({}), Path.layer)
  )

/** Makes a runtime from its {@link surroundings}. */
export const making = ({ policy = byRule, tools = 1 }: Pick<Options, "policy" | "tools">) =>
  Effect.orDie(
    AgentRuntime.make({ toolkit: Kit.toolkit(tools), policy, limits: { maxSteps: 1_000, parallelTools: 100 } })
  )

/** A runtime, to be provided once to all that is measured. */
export const runtime = (options: Options) =>
  Effect.scoped(
    Effect.flatMap(surroundings(options), (context) =>
      Effect.map(Effect.provide(making(options), context), (service) =>
        Context.make(AgentRuntime.AgentRuntime, service)
      )
    )
  )

/**
 * A model that answers asynchronously and at once, as those of the other systems do. It counts its own steps, so that the
 * mock costs the same after any history.
 */
export const mock = (script: Script.Script, count: Workload.Tally): Model.Service => {
  const replies = script.map((reply) => Chunk.unsafeFromArray(Kit.streamed(reply)))
  const answer = Effect.promise(async () => replies[count.modelCalls++] ?? Promise.reject(new Error("No more steps.")))
  return Model.fromAnswer({ id: "bench/mock", answer: () => answer })
}

/** The same through a stream. */
export const streaming = (model: Model.Service): Model.Service => ({
  id: model.id,
  stream: (request) => model.stream(request)
})

/** With what its events tell: the end of every call. */
export const expected = (script: Script.Script): Partial<Workload.Tally> => {
  const counted = Workload.ofScript(script)
  return { ...counted, events: counted.toolRuns ?? 0 }
}

/** Reads an agent's events as its owner does; yields when the agent has stopped. */
export const follow = (agent: Agent.Agent, see: (event: AgentEvent) => void) =>
  Effect.fork(
    Effect.gen(function* () {
      for (;;) {
        const batch = yield* agent.events.takeAll
        if (Option.isNone(batch)) return
        for (const event of batch.value) see(event)
      }
    })
  )

/** The owner of the agent reads everything, and the agent waits for it. */
export const owned: Agent.Plain = { events: { whenFull: "wait" } }

export const completes = (agent: Agent.Agent, text: string) =>
  Effect.flatMap(Effect.orDie(agent.run(text)), (end) => Workload.expect("end", end._tag, "Completed"))

export const reset = (count: Workload.Tally) => Effect.sync(() => Object.assign(count, Workload.tally()))

/** Somebody who must not be asked. */
export const nobody = Interactor.make({
  id: "nobody",
  handlers: {
    Approve: () => Effect.dieMessage("Nobody should be asked."),
    grantStageTool: Interactor.declines,
    approveSubagentEnvelope: Interactor.declines,
    Clarify: Interactor.declines,
    Ask: Interactor.declines,
    Select: Interactor.declines,
    Confirm: Interactor.declines,
    Elicit: Interactor.declines,
    "Auth.DeviceCode": Interactor.declines,
    "Auth.Password": Interactor.declines
  }
})

/** Shows every dialog to somebody who says yes at once, in a loop like that of {@link follow}. */
export const approving = (channel: QueueChannel.Service, count: Workload.Tally) =>
  Effect.forkScoped(
    Effect.gen(function* () {
      for (;;) {
        const dialog = yield* channel.take
        if (dialog._tag === "Closed") continue
        count.asked++
        yield* Effect.orDie(channel.answer(dialog.request.requestId, { decision: "allow", scope: "once" }))
      }
    })
  )
