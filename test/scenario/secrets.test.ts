/** Answers with a secret in them, in processes that die at any write: no journal has it, and nothing runs with its mask. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Clarification from "../../src/builtin/Clarification.js"
import * as Redaction from "../../src/core/Redaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Mortal from "../kit/Mortal.js"

const secret = "hunter2-hunter2"

const text = { parameters: { name: Schema.String }, success: Schema.String }
const Work = Tool.make("work", text).pipe(ToolTrait.editable(["name"]))
const Drop = Tool.make("drop", text)
const own = Toolkit.make(Work, Drop)
const toolkit = Toolkit.merge(own, Clarification.toolkit)

/** A tool that a model made up. */
const madeUp = "sk-abcdefghijklmnop1234"

const use = (name: string, params: object) => ({ name, params })
const script: ScriptedModel.Script["agents"] = {
  main: [
    {
      tools: [
        use("work", { name: "a" }),
        use("ask_user", { prompt: "Which one?" }),
        use("drop", { name: "b" }),
        use(madeUp, {})
      ]
    },
    { text: "done" }
  ]
}

const answerTo = ({ interaction }: InteractionRequest): TestInteractor.Step => {
  if (interaction._tag !== "Approve") return `the one of ${secret}`
  return interaction.tool === "drop"
    ? `c: never, ${secret} is the key`
    : TestInteractor.answer({ decision: "edit", editedArguments: { name: secret } })
}

const run = (death?: Mortal.Death) =>
  Effect.gen(function* () {
    const world = yield* Mortal.world
    const worked: Array<string> = []
    const handlers = Layer.mergeAll(
      own.toLayer({
        work: ({ name }) => Effect.sync(() => void worked.push(name)).pipe(Effect.as("worked")),
        drop: () => Effect.die("it was denied")
      }),
      Clarification.layer
    )
    const runtime: Mortal.Options["runtime"] = (ids) =>
      AgentRuntime.layer({ toolkit, secrets: [Redacted.make(secret)] }).pipe(
        Layer.provide(
          Layer.mergeAll(handlers, ScriptedModel.layer({ agents: script }), FileSystem.layerNoop({}), Path.layer)
        ),
        Layer.provide(ids),
        Layer.merge(ids)
      )
    // Its edit is shown again before it runs.
    let edits = 0
    const person = (request: InteractionRequest): TestInteractor.Step => {
      const { interaction } = request
      const isEdited = interaction._tag === "Approve" && interaction.argumentsSummary === Redaction.mask
      if (isEdited) return "y"
      if (interaction._tag === "Approve" && interaction.tool === "work") edits++
      return answerTo(request)
    }
    const lives: Array<Mortal.Life> = []
    do {
      const drive = (agent: Mortal.Life["agent"]) =>
        Effect.zipRight(
          agent.history.messages.some(({ role }) => role === "user") ? Effect.void : agent.send("go"),
          agent.awaitIdle
        )
      lives.push(yield* Mortal.live(world, { runtime, person }, drive, lives.length === 0 ? death : undefined))
    } while (lives.at(-1)?.died === true)
    assert.isDefined(world.id)
    const { entries } = yield* Effect.orDie((yield* world.open(0)).load(world.id))
    return { worked, edits, entries: JSON.stringify(entries), writes: lives[0]?.writes ?? 0 }
  })

describe("an answer with a secret in it", () => {
  it.effect(
    "is in no journal, and what it changed runs as it was written or not at all, whenever its process dies",
    () =>
      Effect.gen(function* () {
        const whole = yield* run()
        assert.deepStrictEqual(whole.worked, [secret])
        assert.notInclude(whole.entries, secret)
        assert.include(whole.entries, `never, ${Redaction.mask} is the key`)
        assert.notInclude(whole.entries, madeUp)
        let askedAgain = 0
        for (let at = 2; at <= whole.writes; at++) {
          for (const written of [false, true]) {
            const cut = yield* run({ at, written })
            assert.notInclude(cut.entries, secret)
            assert.isTrue(
              cut.worked.every((name) => name === secret),
              `${at}: ${cut.worked.join()}`
            )
            assert.isAtMost(cut.worked.length, 1)
            askedAgain += cut.edits > 1 ? 1 : 0
          }
        }
        assert.isAbove(askedAgain, 0, "no process died between an answer and its use")
      })
  )
})
