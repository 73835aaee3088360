/** A parent, its children and a person: who asks whom, and what comes of it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"

const { calls, delegate, work } = Family

describe("delegation", () => {
  it.scoped("a child's question reaches the person, named as the child's, and the answer its call", () =>
    Effect.gen(function* () {
      const { agent, events, person, worked } = yield* Family.start({
        script: {
          main: [calls(delegate("helper", "clean up")), { text: "done" }],
          helper: [work("a"), { text: "cleaned" }]
        },
        person: ["y"]
      })
      const end = yield* agent.run("go")
      assert.strictEqual(Family.textOf(end), "done")
      assert.deepStrictEqual(Family.shown(yield* person.shown), ["main/helper: work a"])
      assert.deepStrictEqual(worked, [{ agent: "main/helper", name: "a" }])
      const all = yield* events
      assert.deepStrictEqual(
        Family.ofTag(all, "InteractionRequested").map(({ agent }) => agent),
        ["main/helper"]
      )
      assert.deepStrictEqual(
        Family.ofTag(all, "InteractionAnswered").map(({ agent, by }) => [agent, by]),
        [["main/helper", "person"]]
      )
      const [ended] = Family.ofTag(all, "ToolCallEnded").filter(({ tool }) => tool === "delegate")
      assert.include(ended?.summary, "cleaned")
    })
  )

  it.scoped("each question names the call that asks or is asked about, also a child's and its clarification", () =>
    Effect.gen(function* () {
      const questions = [{ text: "Which?", question_type: "free_text" }]
      const clarify = { name: "request_clarification", params: { context: "c", questions } }
      const { agent, events } = yield* Family.start({
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [calls(clarify, { name: "work", params: { name: "a" } }), { text: "cleaned" }]
        },
        person: ({ interaction }) => (interaction._tag === "Clarify" ? "red" : "y")
      })
      yield* agent.run("go")
      const all = yield* events
      const asked = Family.ofTag(all, "InteractionRequested")
      const calledBy = (id: string | undefined) =>
        Family.ofTag(all, "ToolCallProposed").flatMap(({ agent, tool, toolCallId }) =>
          toolCallId === id ? [`${agent} ${tool}`] : []
        )
      assert.deepStrictEqual(
        asked.flatMap(({ agent, kind, toolCallId }) => [[agent, kind, ...calledBy(toolCallId)]]).sort(),
        [
          ["main/helper", "Approve", "main/helper work"],
          ["main/helper", "Clarify", "main/helper request_clarification"]
        ]
      )
    })
  )

  it.scoped(
    "three calls of a child at once: each answer reaches its own call, and none the root's prompt directly",
    () =>
      Effect.gen(function* () {
        const { agent, person, worked } = yield* Family.start({
          script: {
            main: [calls(delegate("helper")), { text: "done" }],
            helper: [work("a", "b", "c"), { text: "ok" }]
          },
          person: (request) =>
            request.interaction._tag === "Approve" && request.interaction.argumentsSummary === "b" ? "n" : "y"
        })
        yield* agent.run("go")
        assert.deepStrictEqual(
          worked.map(({ name }) => name),
          ["a", "c"]
        )
        assert.strictEqual((yield* person.shown).length, 3)
      })
  )

  it.scoped("a child of a child: the question climbs one level at a time with its whole path", () =>
    Effect.gen(function* () {
      const { agent, person, worked } = yield* Family.start({
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [calls(delegate("nested")), { text: "ok" }],
          nested: [work("deep"), { text: "fine" }]
        },
        person: ["turn"]
      })
      yield* agent.run("go")
      assert.deepStrictEqual(Family.shown(yield* person.shown), ["main/helper/nested: work deep"])
      assert.deepStrictEqual(worked, [{ agent: "main/helper/nested", name: "deep" }])
    })
  )

  it.scoped("cancelling the parent withdraws the child's question and closes the dialog", () =>
    Effect.gen(function* () {
      const { agent, events, person } = yield* Family.start({
        script: { main: [calls(delegate("helper")), { text: "done" }], helper: [work("a"), { text: "ok" }] }
      })
      const running = yield* Effect.fork(agent.run("go"))
      yield* person.next
      yield* agent.cancel("user")
      const end = yield* Fiber.join(running)
      yield* settle
      assert.strictEqual(end._tag, "Cancelled")
      assert.deepStrictEqual(yield* person.open, [])
      const all = yield* events
      assert.strictEqual(Family.ofTag(all, "InteractionCancelled").length, 1)
      assert.deepStrictEqual(
        Family.ofTag(all, "TurnEnded").map(({ agent, detail, reason }) => [agent, reason, detail]),
        [
          ["main/helper", "cancelled", "parent"],
          ["main", "cancelled", "user"]
        ]
      )
    })
  )

  it.scoped("a spawned child works in the background, and its end begins a turn of its idle parent", () =>
    Effect.gen(function* () {
      const { agent, person, worked } = yield* Family.start({
        script: {
          main: [
            calls(Family.spawn("helper", "look")),
            { text: "started" },
            { expect: { contains: "event=COMPLETED" }, text: "it is done" }
          ],
          helper: [work("a"), { text: "looked" }]
        },
        person: ["y"]
      })
      const end = yield* Family.untilIdle(agent, "go")
      assert.strictEqual(Family.textOf(end), "it is done")
      assert.deepStrictEqual(Family.shown(yield* person.shown), ["main/helper: work a"])
      assert.strictEqual(worked.length, 1)
    })
  )
})
