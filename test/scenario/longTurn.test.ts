/** A turn that does more than the model's window holds, and whose process dies at any write. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as History from "../../src/conversation/History.js"
import * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import { violations } from "../kit/historyRules.js"
import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"

const Work = Tool.make("work", { parameters: { name: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Work)
const steps = Array.from({ length: 16 }, (_, at) => ({
  text: `step ${at}`,
  tools: [{ name: "work", id: `call_${at}`, params: { name: `${at}` } }]
}))
const script = ScriptedModel.make({ agents: { main: [...steps, { text: "done" }] } })

const run = (type: CompactionConfig.StrategyName, death?: Mortal.Death) =>
  Effect.gen(function* () {
    const world = yield* Mortal.world
    const started: Array<string> = []
    const handlers = toolkit.toLayer({
      work: ({ name }) =>
        Effect.as(
          Effect.sync(() => started.push(name)),
          `${"x".repeat(450)} ${name}`
        )
    })
    const runtime: Mortal.Options["runtime"] = (ids) =>
      AgentRuntime.layer({
        toolkit,
        policy: PermissionFile.policy({ whitelist: { tools: ["work"] } }),
        compaction: { ...CompactionConfig.defaults, type }
      }).pipe(
        Layer.provide(
          Layer.mergeAll(
            handlers,
            Layer.succeed(Model.Model, { ...script, contextWindow: 1_000 }),
            FileSystem.layerNoop({}),
            Path.layer
          )
        ),
        Layer.provide(ids),
        Layer.merge(ids)
      )
    const live = (at?: Mortal.Death) =>
      Mortal.live(
        world,
        { runtime, person: () => "y" },
        (agent, restored) => Effect.zipRight(restored === undefined ? agent.send("go") : Effect.void, agent.awaitIdle),
        at
      )
    const first = yield* live(death)
    const store = yield* world.open(0)
    // What was never written down leaves nothing to go on with.
    const kept = world.id === undefined ? Option.none() : yield* Effect.option(store.load(world.id))
    if (first.died && (Option.isNone(kept) || kept.value.entries.length === 0)) return undefined
    const last = first.died ? yield* live() : first
    const journal = SessionSnapshot.fold((yield* store.load(world.id ?? assert.fail())).entries)
    return { started, writes: first.writes, history: last.agent.history.messages, journal: journal.sessions[0] }
  }).pipe(Effect.scoped)

/** It dies at each write in the soak, and here at one in three. */
const stride = Runs.isWhole ? 1 : 3

describe("a turn that does more than the window holds", () => {
  for (const type of ["truncate", "hybrid"] as const)
    it.effect(
      `comes to the same end, whenever its process died, with ${type}`,
      () =>
        Effect.gen(function* () {
          const whole = (yield* run(type)) ?? assert.fail()
          assert.isTrue(whole.history.some((message) => History.metadata(message).steps === true))
          let resumed = 0
          for (let at = 1; at <= whole.writes; at += stride) {
            const cut = yield* run(type, { at, written: at % 2 === 0 })
            if (cut === undefined) continue
            resumed++
            const { history, journal, started } = cut
            assert.deepStrictEqual(violations(history), [], `${at}`)
            assert.strictEqual(History.textOf(history.at(-1) ?? assert.fail()), "done", `${at}`)
            assert.deepStrictEqual(started, [...new Set(started)], `${at}: a call ran twice`)
            assert.deepStrictEqual(
              journal?.history.map((message) => [message.role, History.textOf(message)]),
              history.map((message) => [message.role, History.textOf(message)]),
              `${at}: the journal has another history`
            )
          }
          assert.isAbove(resumed, 20 / stride)
        }),
      120_000
    )
})
