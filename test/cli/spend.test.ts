/** Limits of money on the command line: of a run, of a session, and of a day that several processes share. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

const million = { input: 1_000_000, output: 0 }

const begin = (max_cost: unknown) =>
  Effect.gen(function* () {
    const at = yield* Program.place
    const model = yield* at.write("model.json", {
      version: 1,
      agents: {
        main: [
          { tools: [{ name: "list_files", params: {} }], usage: million },
          { tools: [{ name: "list_files", params: {} }], usage: million },
          { text: "Done.", usage: million }
        ]
      }
    })
    const reference = `script:${model}`
    yield* at.write("config/config.json", {
      limits: { max_cost },
      currency: "EUR",
      price_table: { [reference]: { input: 2, output: 1 } }
    })
    const run = (...flags: ReadonlyArray<string>) => at.call(["run", "--model", reference, ...flags, "go"])
    return { at, reference, run }
  })

describe.concurrent("a limit of money", () => {
  it.scopedLive("halts a run that has reached it where nobody can be asked, and the answer goes on", () =>
    Effect.gen(function* () {
      const { at, run } = yield* begin({ run: 4 })
      const halted = yield* run()
      assert.strictEqual(halted.code, 3, halted.stderr)
      const session = /ses_\w+/.exec(halted.stderr)?.[0] ?? ""
      const waiting = yield* at.call(["sessions", "show", session])
      assert.include(waiting.stdout, "This run has cost 4.00 EUR of 4.00 EUR. Allow another 4.00 EUR?")
      const answered = yield* at.call(["sessions", "answer", session, /req_[\w-]+/.exec(halted.stderr)?.[0] ?? "", "y"])
      assert.strictEqual(answered.code, 0, answered.stderr)
    })
  )

  it.scopedLive("of a day counts what other processes of the workspace spent, also without a store", () =>
    Effect.gen(function* () {
      const { run } = yield* begin({ day: 10 })
      assert.strictEqual((yield* run("--store", ":memory:")).stdout, "Done.\n")
      const second = yield* run("--store", ":memory:")
      assert.strictEqual(second.code, 3, second.stderr)
      const third = yield* run("--yolo", "--store", ":memory:")
      assert.strictEqual(third.stdout, "Done.\n", third.stderr)
    })
  )

  it.scopedLive("counts what subagents spend", () =>
    Effect.gen(function* () {
      const { at } = yield* begin({ session: 3 })
      const model = yield* at.write("tree.json", {
        version: 1,
        agents: {
          main: [{ tools: [{ name: "explore", params: { task: "look" } }], usage: million }, { text: "Done." }],
          explore: [{ tools: [{ name: "list_files", params: {} }], usage: million }, { text: "Seen." }]
        }
      })
      yield* at.write("config/config.json", {
        limits: { max_cost: { session: 3 } },
        price_table: { [`script:${model}`]: { input: 2, output: 1 } }
      })
      yield* at.write("config/permissions.json", { whitelist: { tools: ["explore"] } })
      const { code, stderr } = yield* at.call(["run", "--model", `script:${model}`, "go"])
      assert.strictEqual(code, 3, stderr)
      assert.include(stderr, "Confirm")
    })
  )

  it.scopedLive("says before the work that a model has no price, and what to do", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", { limits: { max_cost: { day: 1 } } })
      const doctor = yield* at.call(["doctor", "--model", "ollama/unheard-of"])
      assert.include(doctor.stdout + doctor.stderr, "The limit of money does not count ollama/unheard-of")
      const shown = yield* at.call(["permissions"])
      assert.notInclude(shown.stderr, "limit of money")
      yield* at.write("config/config.json", { limits: { max_cost: { day: 1 } }, model: "ollama/unheard-of" })
      assert.include((yield* at.call(["permissions"])).stderr, "Set its price in the price table")
    })
  )
})
