/** A person's yes is for what was shown, whenever the process dies between that and the call's begin. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Mortal from "../kit/Mortal.js"

/** What the tool would replace; somebody else changes it while no process runs. */
let content = ""

const Replace = Tool.make("replace", { parameters: { text: Schema.String }, success: Schema.String }).pipe(
  ToolTrait.preview(() => Effect.sync(() => ({ summary: "replace it", details: content })))
)
const toolkit = Toolkit.make(Replace)
const agents: ScriptedModel.Script["agents"] = {
  main: [{ tools: [{ name: "replace", params: { text: "new" } }] }, { text: "done" }]
}

const run = (changes: boolean, death?: Mortal.Death) =>
  Effect.gen(function* () {
    content = "old"
    const world = yield* Mortal.world
    const seen: Array<string | undefined> = []
    const replaced: Array<string> = []
    const handlers = toolkit.toLayer({
      replace: () => Effect.sync(() => void replaced.push(content)).pipe(Effect.as("done"))
    })
    const runtime: Mortal.Options["runtime"] = (ids) =>
      AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(Layer.mergeAll(handlers, ScriptedModel.layer({ agents }), FileSystem.layerNoop({}), Path.layer)),
        Layer.provide(ids),
        Layer.merge(ids)
      )
    const person = ({ interaction }: InteractionRequest) => {
      if (interaction._tag === "Approve") seen.push(interaction.display?.details)
      return "y"
    }
    const lives: Array<Mortal.Life> = []
    do {
      if (lives.length > 0 && changes) content = "of somebody else"
      const drive = (agent: Mortal.Life["agent"]) =>
        Effect.zipRight(
          agent.history.messages.some(({ role }) => role === "user") ? Effect.void : agent.send("go"),
          agent.awaitIdle
        )
      lives.push(yield* Mortal.live(world, { runtime, person }, drive, lives.length === 0 ? death : undefined))
    } while (lives.at(-1)?.died === true)
    return { seen, replaced, writes: lives[0]?.writes ?? 0 }
  })

describe("what was shown before a process died", () => {
  it.effect("is what an answer to it allows, once, and is asked about again where it is another by now", () =>
    Effect.gen(function* () {
      const { writes } = yield* run(false)
      let again = 0
      for (const changes of [false, true])
        for (let at = 2; at <= writes; at++)
          for (const written of [false, true]) {
            const { replaced, seen } = yield* run(changes, { at, written })
            const where = `${at} ${written} ${changes}`
            assert.isAtMost(replaced.length, 1, where)
            for (const before of replaced) assert.include(seen, before, where)
            if (changes && seen.length > 1) again++
          }
      assert.isAbove(again, 0)
    })
  )
})
