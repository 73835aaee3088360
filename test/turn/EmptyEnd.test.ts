/** A model that ends its turn without a word. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { TurnEnd } from "../../src/event/TurnEnd.js"
import type * as Model from "../../src/model/Model.js"
import * as RecordedScript from "../../src/journal/RecordedScript.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Family from "../kit/Family.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const work = { tools: [{ name: "work", params: { name: "a" } }] }
const empty = "The model's answer was empty. Ask again."

describe("an answer without a word", () => {
  it.scoped("completes a turn behind a tool's result, and the next turn works", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ text: "I work.", ...work }, {}, { text: "fine" })
      const kit = yield* Kit.start({ model })
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Completed", text: "", steps: 2 } as TurnEnd)
      assert.deepStrictEqual(yield* kit.agent.run("on"), { _tag: "Completed", text: "fine", steps: 1 } as TurnEnd)
      assert.strictEqual(heard.length, 3)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("completes it also behind a failed call and a note of the system", () =>
    Effect.gen(function* () {
      const kit: Kit.Started = yield* Kit.start({
        model: Kit.replies(work, {}).model,
        worker: () => Effect.zipRight(kit.agent.leaveNote("a note"), Effect.die("broken"))
      })
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Completed", text: "", steps: 2 } as TurnEnd)
    })
  )

  it.scoped("is asked for once more when it is the first one", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Kit.replies({}, { text: "hello" }).model })
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Completed", text: "hello", steps: 2 } as TurnEnd)
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: go", "assistant: hello"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("fails the turn the second time, and within one allowed step the first time", () =>
    Effect.gen(function* () {
      const twice = yield* Kit.start({ model: Kit.replies({}, {}, { text: "late" }).model })
      assert.deepStrictEqual(yield* twice.agent.run("go"), { _tag: "Failed", error: empty, steps: 2 } as TurnEnd)
      const once = yield* Kit.start({
        model: Kit.replies({}, { text: "late" }).model,
        agent: { limits: { maxSteps: 1 } }
      })
      assert.deepStrictEqual(yield* once.agent.run("go"), { _tag: "Failed", error: empty, steps: 1 } as TurnEnd)
    })
  )

  it.scoped("owes an answer to words that came behind the result", () =>
    Effect.gen(function* () {
      const kit: Kit.Started = yield* Kit.start({
        model: Kit.replies(work, {}, { text: "heard" }).model,
        worker: () => Effect.orDie(kit.agent.send("and b"))
      })
      assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Completed", text: "heard", steps: 3 } as TurnEnd)
    })
  )

  it.scoped("does not complete a turn whose answer was cut off at its limit", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Kit.replies(work, Stream.make(Kit.finish("length"))).model })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Failed")
    })
  )

  it.scoped("fails the turn when it holds thoughts alone, and completes it behind a result", () =>
    Effect.gen(function* () {
      const thoughts = () =>
        Stream.make<Array<Model.Part>>(
          { type: "reasoning-start", id: "1" },
          { type: "reasoning-delta", id: "1", delta: "Hm." },
          { type: "reasoning-end", id: "1" },
          Kit.finish("stop")
        )
      const blank = () => Stream.make(Kit.text(" \n"), Kit.finish("stop"))
      const error = "The model's answer holds thoughts and no words. Ask again."
      for (const reply of [thoughts, blank]) {
        const kit = yield* Kit.start({ model: Kit.replies(reply(), { text: "fine" }).model })
        assert.deepStrictEqual(yield* kit.agent.run("go"), { _tag: "Failed", error, steps: 1 } as TurnEnd)
        assert.strictEqual((yield* kit.agent.run("again"))._tag, "Completed")
        const worked = yield* Kit.start({ model: Kit.replies(work, reply()).model })
        assert.deepStrictEqual(yield* worked.agent.run("go"), { _tag: "Completed", text: "", steps: 2 } as TurnEnd)
      }
    })
  )

  it.scoped("is no typed result", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Kit.replies(work, {}, { text: '"yes"' }).model })
      const end = yield* kit.agent.run("go", { output: Schema.String })
      assert.deepStrictEqual(end._tag === "Completed" && end.value, "yes")
    })
  )

  it.scoped("of a subagent is a success for its parent", () =>
    Effect.gen(function* () {
      const { calls, delegate, work } = Family
      const script = { main: [calls(delegate("helper")), { text: "done" }], helper: [work("a"), {}] }
      const { agent } = yield* Family.start({ script, person: ["y"] })
      assert.strictEqual(Family.textOf(yield* agent.run("go")), "done")
      assert.deepInclude(Kit.resultsOf(agent.history.messages)[0] as object, { success: true })
    })
  )

  it.scoped("is completed in a store too, and a recorded script says that it cannot play it", () =>
    Effect.gen(function* () {
      const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => false })
      const persistence = yield* Persistence.begin(store)
      const kit = yield* Kit.start({ model: Kit.replies(work, {}).model, agent: { persistence } })
      yield* kit.agent.run("go")
      yield* settle
      const { remarks } = RecordedScript.make(yield* store.load(kit.agent.id))
      assert.deepStrictEqual(remarks, ["main ended a turn without words; a script cannot do that."])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})
