/** What an Assent agent costs that lives for a request: its runtime, its start, and a life of a few turns. Nobody reads its events. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as QueueChannel from "../../../src/channel/QueueChannel.js"
import type * as Interactor from "../../../src/interaction/Interactor.js"
import * as Model from "../../../src/model/Model.js"
import * as PermissionFile from "../../../src/permission/PermissionFile.js"
import * as Agent from "../../../src/runtime/Agent.js"
import * as AgentRuntime from "../../../src/runtime/AgentRuntime.js"
import * as Kit from "../Kit.js"
import * as Request from "../Request.js"
import * as Script from "../Script.js"
import * as Workload from "../Workload.js"
import { approving, byRule, making, mock, nobody, reset, runtime, surroundings } from "./AssentKit.js"

/** Starts an agent, has it do one task, shuts it down; what it said last. */
const life = (interactor: Interactor.Service, prompt = "go") =>
  Effect.scoped(
    Effect.gen(function* () {
      const agent = yield* Agent.startWith([interactor])
      const end = yield* Effect.orDie(agent.run(prompt))
      yield* agent.shutdown
      return end._tag === "Completed" ? end.text : yield* Effect.dieMessage(`The turn ended as ${end._tag}.`)
    })
  )

/** Looks at what was counted in a life. */
const counted = <R>(script: Script.Script, count: Workload.Tally, run: Effect.Effect<void, never, R>) => {
  const expected = Workload.ofScript(script)
  return reset(count).pipe(
    Effect.zipRight(run),
    Effect.zipRight(Effect.suspend(() => Workload.expectTally(count, expected)))
  )
}

const saysDone = <R>(said: Effect.Effect<string, never, R>) =>
  Effect.flatMap(said, (text) => Workload.expect("text", text, "done"))

/** A life of so many turns with one call each. */
const lifeOf = (turns: number) =>
  Effect.gen(function* () {
    const count = Workload.tally()
    const script = Script.turns(turns)
    const context = yield* runtime({ model: mock(script, count), count })
    return Workload.provided(context, Workload.timed(1, counted(script, count, saysDone(life(nobody)))))
  })

const idle = Effect.gen(function* () {
  const count = Workload.tally()
  const context = yield* runtime({ model: mock([], count), count })
  const started = Effect.scoped(Effect.flatMap(Agent.startWith([nobody]), ({ shutdown }) => shutdown))
  return Workload.provided(context, Workload.timed(1, counted([], count, started)))
})

/** The runtime alone: what it is made from stands ready. */
const make = Effect.gen(function* () {
  const count = Workload.tally()
  const context = yield* surroundings({ model: mock([], count), count })
  return Workload.provided(context, Workload.timed(1, hasTool(making({}))))
})

/** As a program begins: a tool is declared, its layers are built, and the runtime is made from them. */
const makeLayers = Effect.sync(() => {
  const count = Workload.tally()
  const model = mock([], count)
  const made = Effect.suspend(() => {
    const toolkit = Kit.declared()
    return AgentRuntime.make({ toolkit, policy: byRule }).pipe(
      Effect.orDie,
      Effect.provide(
        Layer.mergeAll(
          toolkit.toLayer({ add: ({ a, b }) => Effect.succeed(a + b) }),
          Model.layer(model),
          FileSystem.layerNoop({}),
          Path.layer
        )
      )
    )
  })
  return Workload.timed(1, hasTool(made))
})

const hasTool = <R>(made: Effect.Effect<AgentRuntime.Service, never, R>) =>
  Effect.flatMap(made, ({ tools }) => Workload.expect("tools", tools.entries.length, 1))

const approved = (turns: number) =>
  Effect.gen(function* () {
    const count = Workload.tally()
    const script = Script.turns(turns)
    const channel = yield* QueueChannel.make()
    const context = yield* runtime({ model: mock(script, count), count, policy: PermissionFile.defaults })
    yield* approving(channel, count)
    const run = Effect.zipRight(
      counted(script, count, saysDone(life(channel.interactor))),
      Effect.suspend(() => Workload.expect("asked", count.asked, turns))
    )
    return Workload.provided(context, Workload.timed(turns, run))
  })

const server = Effect.gen(function* () {
  const count = Workload.tally()
  const script = Script.turns(1)
  const context = yield* runtime({ model: mock(script, count), count })
  const request = Request.served((prompt) => life(nobody, prompt))
  return Workload.provided(context, Workload.timed(1, counted(script, count, request)))
})

/** The runtime and the first life of a process. */
export const first: Workload.First = () => {
  const count = Workload.tally()
  const script = Script.turns(1)
  return Effect.runPromise(
    Effect.flatMap(runtime({ model: mock(script, count), count }), (context) =>
      Effect.provide(counted(script, count, saysDone(life(nobody))), context)
    )
  )
}

export const workloads: Workload.Workloads = {
  make,
  "make-layers": makeLayers,
  idle,
  "life-1": lifeOf(1),
  "life-3": lifeOf(3),
  "life-10": lifeOf(10),
  "life-50": lifeOf(50),
  "approval-10": approved(10),
  server
}
