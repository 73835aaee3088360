/** Tests of an own toolkit: a scripted person answers its questions, and its process dies at each write. */
import { assert, it } from "@effect/vitest"
import { CrashTest, TestAgent } from "assent/testing"
import * as Effect from "effect/Effect"
import { handlers, policy, toolkit } from "./own-toolkit.js"

/** The model calls the tool, and then says so. */
const script = (target: string) => [{ tools: [{ name: "deploy", params: { target } }] }, { text: "Done." }]

it.scoped("deploys after a person said yes", () =>
  Effect.gen(function* () {
    const { agent, person } = yield* TestAgent.start()
    const end = yield* agent.run("ship it")
    assert.strictEqual(end._tag, "Completed")
    const [question] = yield* person.shown
    assert(question?.interaction._tag === "Approve")
    assert.strictEqual(question.interaction.tool, "deploy")
  }).pipe(
    Effect.provide(TestAgent.layer({ toolkit, policy, script: script("staging"), person: ["y"] })),
    Effect.provide(handlers)
  )
)

it.scoped("never deploys to production, and asks nobody", () =>
  Effect.gen(function* () {
    const { agent, events, person } = yield* TestAgent.start()
    yield* agent.run("ship it")
    assert.deepStrictEqual(yield* person.shown, [])
    assert.notInclude(
      (yield* events).map((event) => event._tag),
      "ToolCallStarted"
    )
  }).pipe(Effect.provide(TestAgent.layer({ toolkit, policy, script: script("production") })), Effect.provide(handlers))
)

it.effect("completes, whenever its process dies", () =>
  Effect.gen(function* () {
    const lives = yield* CrashTest.everywhere("ship it")
    for (const { end } of lives) assert.strictEqual(end._tag, "Completed")
  }).pipe(
    Effect.provide(TestAgent.layer({ toolkit, policy, script: script("staging"), person: () => "y" })),
    Effect.provide(handlers)
  )
)
