/** A subagent whose profile says which form its answers have. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Family from "../kit/Family.js"
import { resultsOf } from "../kit/session.js"

const { calls, delegate, spawn, work } = Family

const Report = Schema.Struct({ on: Schema.Date, open: Schema.Int.pipe(Schema.positive()) })
const reporter = Family.profile("helper", { outputSchema: Report })
const subagents = { profiles: [reporter] }

const right = { on: "2026-01-02T00:00:00.000Z", open: 3 }
const answer = (params: unknown) => calls({ name: "final_result", params })

const family = (helper: ReadonlyArray<ReturnType<typeof answer>>, more: Partial<Family.Options> = {}) =>
  Family.start({
    script: { main: [calls(delegate("helper")), { text: "done" }], helper: [...helper] },
    subagents,
    ...more
  })

/** What the parent's model is told. */
const told = ({ agent }: Family.Family) => {
  const [result] = resultsOf(agent.history.messages)
  return result as { readonly [key: string]: unknown }
}

describe("a subagent with an outputSchema", () => {
  it.scoped("gives its parent an answer in that form, in its JSON", () =>
    Effect.gen(function* () {
      const one = yield* family([work("a"), answer(right)], { person: ["y"] })
      yield* one.agent.run("go")
      const { output, response, response_note, success } = told(one)
      assert.deepStrictEqual([success, output, response, response_note], [true, right, undefined, undefined])
    })
  )

  it.scoped("is told what does not fit, and may answer again", () =>
    Effect.gen(function* () {
      const one = yield* family([{ text: "three are open" }, answer({ ...right, open: -1 }), answer(right)])
      yield* one.agent.run("go")
      assert.deepStrictEqual([told(one)["success"], told(one)["output"]], [true, right])
      const ends = Family.ofTag(yield* one.events, "TurnEnded").map(({ agent, reason }) => [agent, reason])
      assert.deepStrictEqual(ends[0], ["main/helper", "completed"])
    })
  )

  it.scoped("fails in words for its parent's model once it has answered nonsense too often", () =>
    Effect.gen(function* () {
      const one = yield* family([{ text: "one" }, { text: "two" }, answer({ ...right, open: 0 }), answer(right)])
      assert.strictEqual(Family.textOf(yield* one.agent.run("go")), "done", "its parent goes on")
      const { error, output, response, success } = told(one)
      assert.deepStrictEqual([success, output], [false, undefined])
      assert.match(String(error), /^The answer does not fit the schema that was asked for: open: .*positive/)
      assert.include(String(response), `"open":0`, "the last answer")
    })
  )

  it.scoped("reports in that form where no call waits for it, and talks freely with a person", () =>
    Effect.gen(function* () {
      const one = yield* Family.start({
        script: {
          main: [calls(spawn("helper")), { text: "started" }, { text: "heard" }, { text: "and again" }],
          helper: [answer(right), { text: "three, as I said" }]
        },
        subagents
      })
      yield* Family.untilIdle(one.agent, "go")
      yield* one.agent.send("how many?", { target: "main/helper" })
      yield* one.agent.awaitIdle
      const messages = JSON.stringify(one.agent.history.messages)
      assert.include(messages, JSON.stringify(JSON.stringify({ output: right })).slice(2, -2))
      assert.include(messages, "three, as I said")
    })
  )

  it.scoped("keeps its form after a restart", () =>
    Effect.gen(function* () {
      const open = yield* SessionStore.makeMemory
      const first = open({ pid: 1, host: "here", isAlive: () => false })
      const second = open({ pid: 2, host: "here", isAlive: () => false })
      const script = {
        main: [calls(delegate("helper")), { text: "done" }],
        helper: [work("a"), { text: "no form" }, answer(right)]
      }
      const dying = yield* Scope.make()
      const persistence = yield* Scope.extend(Persistence.begin(first), dying)
      const before = yield* Scope.extend(Family.start({ script, subagents, agent: { persistence } }), dying)
      const running = yield* Effect.forkDaemon(before.agent.run("go"))
      yield* before.person.next
      yield* persistence.journal.freeze
      const again = yield* Persistence.resume(second, persistence.rootSessionId)
      const after = yield* Family.start({ script, subagents, person: ["y"], agent: { persistence: again } })
      yield* after.agent.awaitIdle
      assert.deepStrictEqual([told(after)["success"], told(after)["output"]], [true, right])
      yield* Fiber.interrupt(running)
      yield* Scope.close(dying, Exit.void)
    })
  )

  it.scoped("is not made where no model could answer in that form", () =>
    Effect.gen(function* () {
      const one = yield* family([answer(right)], {
        subagents: { profiles: [Family.profile("helper", { outputSchema: Schema.declare((_): _ is symbol => false) })] }
      })
      yield* one.agent.run("go")
      assert.include(JSON.stringify(resultsOf(one.agent.history.messages)), "its outputSchema has no JSON Schema")
      assert.deepStrictEqual(
        (yield* one.agent.agents).map(({ origin }) => origin.agent),
        ["main"]
      )
    })
  )
})
