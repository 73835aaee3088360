import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as Model from "../../src/model/Model.js"
import * as Kit from "../kit/session.js"

const finish = (outputTokens?: number): Model.Part => {
  const done = Kit.finish("length")
  if (done.type !== "finish" || outputTokens === undefined) return done
  const usage = { inputTokens: 1, outputTokens, totalTokens: outputTokens + 1 }
  return { ...done, usage }
}

/** A reply that the output limit ends within the arguments of its last call. */
const cut = (args: unknown, outputTokens?: number) => Stream.make(Kit.call("work", args), finish(outputTokens))

describe("a call that the output limit cuts off", () => {
  it.scoped("does not run, and its result names the limit and what to do", () =>
    Effect.gen(function* () {
      const table = [
        [cut('{"name":"a', 32_000), "The output limit of 32000 tokens cut this call off, so it did not run."],
        [cut("", undefined), "The output limit cut this call off, so it did not run."],
        [cut({}, 8), "The output limit of 8 tokens cut this call off, so it did not run."]
      ] as const
      for (const [reply, said] of table) {
        const { heard, model } = Kit.replies(reply, { text: "shorter" })
        const kit = yield* Kit.start({ model })
        assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
        const told = JSON.stringify(heard[1])
        assert.include(told, `${said} Write less in one call: make several smaller calls.`)
      }
    })
  )

  it.scoped("runs when its arguments are whole, and so do the calls before it", () =>
    Effect.gen(function* () {
      const whole = Stream.make(Kit.call("work", { name: "a" }), finish(8))
      const kit = yield* Kit.start({ model: Kit.replies(whole, { text: "done" }).model })
      yield* kit.agent.run("go")
      assert.deepStrictEqual(
        (yield* kit.of("ToolCallEnded")).map(({ outcome }) => outcome),
        ["succeeded"]
      )
      const before = Stream.make(Kit.call("work", { name: "a" }), Kit.call("work", '{"na'), finish(8))
      const other = yield* Kit.start({ model: Kit.replies(before, { text: "done" }).model })
      yield* other.agent.run("go")
      assert.sameMembers(
        (yield* other.of("ToolCallEnded")).map(({ outcome }) => outcome),
        ["succeeded", "invalid"]
      )
    })
  )

  it.scoped("ends the turn the third time in a row, alike or not", () =>
    Effect.gen(function* () {
      const cuts = ['{"name":"a', '{"name":"b', '{"na'].map((args) => cut(args, 100))
      const kit = yield* Kit.start({ model: Kit.replies(...cuts, { text: "never said" }).model })
      const end = yield* kit.agent.run("go")
      const error =
        "3 calls in a row were cut off. The output limit of 100 tokens cut this call off, so it did not run. Write less in " +
        "one call: make several smaller calls. Ask for a smaller step, or raise max_output_tokens of the model."
      assert.deepStrictEqual(end, { _tag: "Failed", error, steps: 3 } as typeof end)
      const [first, second, third] = cuts.map(() => cut("{", 100))
      const between = { tools: [{ name: "work", params: { name: "a" } }] }
      const other = yield* Kit.start({ model: Kit.replies(first!, second!, between, third!, { text: "done" }).model })
      assert.strictEqual((yield* other.agent.run("go"))._tag, "Completed")
    })
  )
})
