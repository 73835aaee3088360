/** The kit for crashes: an agent goes on wherever its process dies, and a tool is not run twice. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as CrashTest from "../../src/testing/CrashTest.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import { violations } from "../kit/historyRules.js"

const Deploy = Tool.make("deploy", { parameters: { to: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Deploy)
const script = [{ text: "I will.", tools: [{ name: "deploy", params: { to: "eu" } }] }, { text: "Done." }]

describe("an agent that dies", () => {
  it.effect("at any write goes on and ends, and deploys once at most", () => {
    let deploys = 0
    const counts: Array<number> = []
    return CrashTest.everywhere("deploy").pipe(
      Effect.map((lives) => {
        assert.isAtLeast(lives.length, 9)
        for (const { end, loaded } of lives) {
          assert.deepStrictEqual(end, { _tag: "Completed", text: "Done.", steps: 2 })
          const [main] = SessionSnapshot.fold(loaded.entries).sessions
          assert.deepStrictEqual(violations(main?.history ?? []), [])
          assert.strictEqual(main?.turns, 1)
          const started = loaded.entries.filter(({ entry }) => entry._tag === "ToolStarted").length
          const decided = loaded.entries.filter(({ entry }) => entry._tag === "ToolEnded").length
          assert.isAtMost(started, 1)
          assert.strictEqual(decided, 1)
          counts.push(started)
        }
        assert.deepStrictEqual(
          lives.map(({ diedAt }) => diedAt),
          [...Array.from({ length: (lives.length - 1) / 2 }, (_, at) => [at + 1, at + 1]).flat(), undefined]
        )
        assert.isAtMost(deploys, lives.length)
      }),
      Effect.provide(
        TestAgent.layer({ toolkit, script, person: () => "y" }).pipe(
          Layer.provide(toolkit.toLayer({ deploy: () => Effect.sync(() => `deployed ${++deploys}`) }))
        )
      )
    )
  })
})
