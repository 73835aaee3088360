import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Model from "../../src/model/Model.js"
import * as History from "../../src/conversation/History.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as EventRules from "../kit/eventRules.js"
import * as Family from "../kit/Family.js"
import * as HistoryRules from "../kit/historyRules.js"
import { settle } from "../kit/Recorder.js"
import { outline, resultsOf } from "../kit/session.js"

const { calls, delegate, spawn, work } = Family

const rest = Effect.zipRight(settle, settle)

const use = (name: string, params: object = {}): ScriptedModel.ToolUse => ({ name, params })
const ask = (id: string, question: string) => use("agent_ask", { agent_id: id, question })
const send = (id: string, message: string) => use("send_to_subagent", { agent_id: id, message })
const cancel = (id: string) => use("cancel_subagent", { agent_id: id })
const close = (id: string) => use("close_subagent", { agent_id: id })

const none = (sentence: string) =>
  `${sentence} A subagent ends with its report. To ask it more, start it with keep: true.`

const sessionOf = (family: Family.Family, path: string) =>
  Effect.map(family.agent.agents, (nodes) => nodes.find(({ origin }) => origin.agent === path)?.session)

const told = (family: Family.Family, path = "main") =>
  Effect.map(sessionOf(family, path), (session) => (session === undefined ? [] : resultsOf(session.history.messages)))

/** Everything a parent was told, in order, one entry a call. */
const allTold = (family: Family.Family) =>
  family.agent.history.messages.flatMap((message) =>
    message.role === "tool" ? message.content.map(({ result }) => result) : []
  )

/** What is wrong with the events of each agent and with each history; nothing once all are idle. */
const wrong = (family: Family.Family) =>
  Effect.map(Effect.zip(family.events, family.agent.agents), ([events, nodes]) => [
    ...EventRules.familyViolations(events),
    ...nodes.flatMap(({ session }) => HistoryRules.violations(session.history.messages))
  ])

describe("a subagent", () => {
  it.scoped("that has finished can be asked more, and remembers what it did", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("helper", "read it")), calls(ask("subagent_1", "and who wrote it?")), { text: "done" }],
          helper: [{ text: "It is about whales." }, { text: "Melville." }]
        }
      })
      yield* family.agent.run("go")
      const child = yield* sessionOf(family, "main/helper")
      assert.deepStrictEqual(child === undefined ? [] : outline(child.history.messages).slice(-4), [
        "user: read it",
        "assistant: It is about whales.",
        "user: and who wrote it?",
        "assistant: Melville."
      ])
      assert.deepStrictEqual(yield* told(family), [
        { success: true, response: "Melville.", turns_used: 1, agent_id: "subagent_1", output_streamed: false }
      ])
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("that has finished can be sent more: it works in the background and reports", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(delegate("helper")),
            calls(send("subagent_1", "go on")),
            { text: "sent" },
            { expect: { contains: "event=COMPLETED" }, text: "heard" }
          ],
          helper: [{ text: "one" }, { text: "two" }]
        }
      })
      const end = yield* Family.untilIdle(family.agent, "go")
      assert.strictEqual(Family.textOf(end), "heard")
      assert.strictEqual(allTold(family)[1], "subagent_1 has begun. Its end comes as a message.")
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("that works reads what it is sent at its next step", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(spawn("helper", "first")),
            calls(send("subagent_1", "second")),
            { text: "sent" },
            { text: "heard" }
          ],
          helper: [
            { ...work("a"), delay: "1 minute" },
            { expect: { contains: "second" }, text: "both" }
          ]
        },
        person: ["y"]
      })
      const running = yield* Effect.fork(Family.untilIdle(family.agent, "go"))
      yield* rest
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "heard")
      assert.strictEqual(allTold(family)[1], "subagent_1 is working and reads this at its next step.")
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("that is idle has nothing to cancel, and that is said", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("helper")), calls(cancel("subagent_1")), { text: "done" }],
          helper: [{ text: "ok" }]
        }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(yield* told(family), [
        "subagent_1 is idle; there is nothing to cancel. Use close_subagent to end it."
      ])
    })
  )

  it.scoped("that works can be cancelled: its parent is told, and it can be asked again", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(spawn("helper")),
            { ...calls(cancel("subagent_1")), delay: "1 second" },
            { text: "cancelled" },
            { expect: { contains: "event=CANCELLED" }, ...calls(ask("subagent_1", "still there?")) },
            { text: "done" }
          ],
          helper: [work("a"), { text: "here" }]
        }
      })
      const running = yield* Effect.fork(Family.untilIdle(family.agent, "go"))
      yield* rest
      assert.deepStrictEqual(Family.shown(yield* family.person.open), ["main/helper: work a"])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "done")
      assert.strictEqual(allTold(family)[1], "subagent_1 was cancelled. It can be given another task.")
      assert.deepStrictEqual(yield* family.person.open, [])
      const completed = Family.ofTag(yield* family.events, "AgentCompleted")
      assert.deepStrictEqual(
        completed.map(({ success, error, turnsUsed }) => [success, error, turnsUsed]),
        [
          [false, "cancelled (parent)", 1],
          [true, undefined, 1]
        ]
      )
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("that works is cancelled before it is closed, and its question taken back", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(spawn("helper")),
            { ...calls(close("subagent_1")), delay: "1 second" },
            calls(ask("subagent_1", "still there?"), use("list_subagents")),
            { text: "done" },
            { text: "heard" }
          ],
          helper: [work("a"), { text: "here" }]
        }
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* rest
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(running)
      assert.deepStrictEqual(allTold(family).slice(1), [
        "subagent_1 is closed.",
        none('You have no subagent "subagent_1". You have none.'),
        []
      ])
      const all = yield* family.events
      const about = all.flatMap((event) =>
        event.agent !== "main/helper"
          ? []
          : event._tag === "InteractionCancelled" || event._tag === "AgentCompleted"
            ? [event._tag]
            : event._tag === "TurnEnded"
              ? [`turn ${event.reason}`]
              : event._tag === "AgentStatusChanged" && event.status === "done"
                ? ["done"]
                : []
      )
      assert.deepStrictEqual(about, ["InteractionCancelled", "turn cancelled", "AgentCompleted", "done"])
      yield* rest
      const words = outline(family.agent.history.messages).filter((line) => line.includes("[SUBAGENT"))
      assert.deepStrictEqual(words, [], "who closes a child is told nothing more of it")
      assert.deepStrictEqual(yield* family.person.open, [])
      assert.strictEqual((yield* family.agent.agents).length, 1)
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("tells the end of a task that was stopped, and not of one that was taken back before it began", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(spawn("helper"), delegate("nested")), calls(ask("subagent_1", "hurry")), { text: "heard" }],
          helper: [{ delay: "4 minutes", text: "ok" }],
          nested: [work("a"), { text: "ok" }]
        },
        person: () => "y",
        worker: () => Effect.never
      })
      const completed = Effect.map(family.events, (events) =>
        Family.ofTag(events, "AgentCompleted").map(({ agent, error, turnsUsed }) => [agent, error, turnsUsed])
      )
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* rest
      yield* family.agent.cancel()
      yield* rest
      assert.deepStrictEqual(yield* completed, [["main/nested", "cancelled (parent)", 1]])
      // Now its parent stops waiting for an answer that stands behind the first task.
      yield* family.agent.send("go on")
      yield* rest
      yield* family.agent.cancel()
      yield* rest
      assert.strictEqual((yield* completed).length, 1)
      yield* TestClock.adjust("4 minutes")
      yield* Fiber.join(running)
      assert.deepStrictEqual((yield* completed).slice(1), [["main/helper", undefined, 1]])
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("is its parent's only: nobody else sees it or reaches it, and ids are unique in the tree", () =>
    Effect.gen(function* () {
      const reach = ["subagent_1", "subagent_2", "subagent_3"]
      const family = yield* Family.start({
        script: {
          main: [
            calls(delegate("helper"), delegate("helper")),
            calls(use("list_subagents"), ...reach.map((id) => ask(id, "you?")), cancel("subagent_9")),
            { text: "done" }
          ],
          helper: [
            calls(delegate("nested")),
            calls(use("list_subagents"), ...reach.map((id) => send(id, "hi"))),
            { text: "ok" },
            { text: "asked" }
          ],
          nested: [{ text: "fine" }, { text: "fine" }]
        },
        agent: { limits: { parallelTools: 1 } }
      })
      yield* family.agent.run("go")
      const ids = (yield* family.agent.agents).map(({ origin }) => [origin.agent, origin.subagentId])
      assert.deepStrictEqual(ids, [
        ["main", undefined],
        ["main/helper", "subagent_1"],
        ["main/helper/nested", "subagent_2"],
        ["main/helper-2", "subagent_3"],
        ["main/helper-2/nested", "subagent_4"]
      ])
      const results = yield* told(family)
      assert.deepStrictEqual(results[0], [
        // It heard of its own child's end in a turn of its own.
        { agent_id: "subagent_1", name: "helper", status: "idle", turns: 2 },
        { agent_id: "subagent_3", name: "helper", status: "idle", turns: 1 }
      ])
      assert.strictEqual(results[2], none('You have no subagent "subagent_2". You have: subagent_1, subagent_3.'))
      assert.strictEqual(results[4], none('You have no subagent "subagent_9". You have: subagent_1, subagent_3.'))
      const child = yield* sessionOf(family, "main/helper")
      const seen = child?.history.messages.flatMap((message) =>
        message.role === "tool" ? message.content.map(({ result }) => result) : []
      )
      assert.strictEqual(seen?.[2], none('You have no subagent "subagent_1". You have: subagent_2.'))
      assert.strictEqual(seen?.[4], none('You have no subagent "subagent_3". You have: subagent_2.'))
      assert.deepStrictEqual(yield* wrong(family), [])
    })
  )

  it.scoped("never shares its path with another one, whatever the profiles are called", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: { main: [calls(delegate("a-2"), delegate("a"), delegate("a"), delegate("a")), { text: "done" }] },
        subagents: { profiles: [Family.profile("a"), Family.profile("a-2")] }
      })
      yield* family.agent.run("go")
      const paths = (yield* family.agent.agents).map(({ origin }) => origin.agent)
      assert.strictEqual(new Set(paths).size, 5, paths.join(" "))
    })
  )

  it.scoped("is listed with its profiles", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({ script: { main: [calls(use("list_profiles")), { text: "done" }] } })
      yield* family.agent.run("go")
      assert.deepStrictEqual(yield* told(family), [
        [
          { name: "helper", description: "does helper" },
          { name: "nested", description: "does nested" }
        ]
      ])
    })
  )
})

describe("a subagent's task ends", () => {
  it.scoped("at its turn limit: no success, and what it said is kept", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [{ ...work("a"), text: "so far" }, { ...work("b"), text: "nearly" }, { text: "never said" }]
        },
        person: () => "y",
        subagents: { profiles: [Family.profile("helper", { maxTurns: 2 })] }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(yield* told(family), [
        {
          success: false,
          response: "so far\n\nnearly",
          turns_used: 2,
          error: "turn limit",
          agent_id: "subagent_1",
          output_streamed: false
        }
      ])
      assert.deepStrictEqual(
        Family.ofTag(yield* family.events, "AgentCompleted").map(({ success, turnsUsed, error }) => [
          success,
          turnsUsed,
          error
        ]),
        [[false, 2, "turn limit"]]
      )
    })
  )

  const everyResult = (family: Family.Family) =>
    family.agent.history.messages.flatMap((message) =>
      message.role === "tool" ? message.content.map(({ result }) => Object(result) as object) : []
    )

  const failing = (script: ScriptedModel.Script["agents"], at: number): Model.Service => {
    const usual = ScriptedModel.make({ agents: script })
    let asked = 0
    return {
      id: usual.id,
      stream: (request) =>
        request.agent.startsWith("main/") && ++asked === at
          ? Stream.fail(new Model.Unauthorized({ model: usual.id, message: "the key is not valid" }))
          : usual.stream(request)
    }
  }

  it.scoped("with all that was said in that task, when it fails, and nothing of an earlier one", () =>
    Effect.gen(function* () {
      const script = {
        main: [calls(delegate("helper")), calls(ask("subagent_1", "more?")), { text: "done" }],
        helper: [
          { ...work("a"), text: "first" },
          { text: "first answer" },
          { ...work("b"), text: "second" },
          { ...work("c"), text: "so far" },
          { text: "never" }
        ]
      }
      const family = yield* Family.start({ script, person: () => "y", agent: { model: failing(script, 5) } })
      yield* family.agent.run("go")
      const [first, second] = everyResult(family)
      assert.deepInclude(first, { success: true, response: "first answer" })
      assert.deepInclude(second, { success: false, error: "the key is not valid", response: "second\n\nso far" })
    })
  )

  it.scoped("with nothing, when it failed before it said a word of that task", () =>
    Effect.gen(function* () {
      const script = {
        main: [calls(delegate("helper")), calls(ask("subagent_1", "more?")), { text: "done" }],
        helper: [{ text: "first answer" }]
      }
      const family = yield* Family.start({ script, agent: { model: failing(script, 2) } })
      yield* family.agent.run("go")
      const [first, second] = everyResult(family)
      assert.deepInclude(first, { success: true, response: "first answer" })
      assert.deepInclude(second, { success: false, response: "" })
    })
  )

  it.scoped("with what was said so far, when it is cancelled in the middle of a call", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(delegate("helper")),
            calls(use("send_to_subagent", { agent_id: "subagent_1", message: "again" })),
            { text: "waiting" },
            calls(use("cancel_subagent", { agent_id: "subagent_1" })),
            { text: "done" }
          ],
          helper: [{ text: "old answer" }, { ...work("b"), text: "new" }, { ...work("hang"), text: "newer" }]
        },
        person: () => "y",
        worker: (name) => (name === "hang" ? Effect.never : Effect.succeed(name))
      })
      yield* Effect.fork(family.agent.run("go"))
      yield* settle
      yield* Effect.fork(family.agent.run("stop it"))
      yield* settle
      yield* family.agent.awaitIdle
      const ends = family.agent.history.messages
        .map(History.textOf)
        .filter((text) => text.startsWith("[SUBAGENT"))
        .map((text): object => JSON.parse(text.slice(text.indexOf("\n"))))
      assert.deepInclude(ends.at(-1) ?? {}, { response: "new\n\nnewer", error: "cancelled (parent)" })
    })
  )

  it.scoped("when its model fails: no success, and why", () =>
    Effect.gen(function* () {
      const broken: Model.Service = {
        id: "other/large",
        stream: () => Stream.fail(new Model.Unauthorized({ model: "other/large", message: "the key is not valid" }))
      }
      const family = yield* Family.start({
        script: { main: [calls(delegate("helper")), { text: "done" }] },
        subagents: {
          profiles: [Family.profile("helper", { model: "large", provider: "other" })],
          resolveModel: (ref) => (ref === "other/large" ? Effect.succeed(broken) : Effect.fail(`no ${ref}`))
        }
      })
      assert.strictEqual(Family.textOf(yield* family.agent.run("go")), "done")
      const [result] = yield* told(family)
      assert.deepInclude(result, { success: false, error: "the key is not valid", agent_id: "subagent_1" })
    })
  )

  it.scoped("with a model of another provider, when its profile says so", () =>
    Effect.gen(function* () {
      const refs: Array<string> = []
      const other = ScriptedModel.make(
        { agents: { helper: [{ text: "from afar", usage: { input: 3, output: 2 } }] } },
        { id: "other/large" }
      )
      const family = yield* Family.start({
        script: { main: [calls(delegate("helper")), { text: "done" }] },
        subagents: {
          profiles: [Family.profile("helper", { model: "large", provider: "other" })],
          resolveModel: (ref) => {
            refs.push(ref)
            return Effect.succeed(other)
          }
        }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual([...new Set(refs)], ["other/large"])
      assert.deepStrictEqual(yield* told(family), [
        {
          success: true,
          response: "from afar",
          turns_used: 1,
          token_usage: { input: 3, output: 2 },
          agent_id: "subagent_1",
          output_streamed: false
        }
      ])
      const [, made] = Family.ofTag(yield* family.events, "AgentCreated")
      assert.strictEqual(made?.model, "other/large")
    })
  )

  it.scoped("with a note instead of its words, where people have read them already", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: { main: [calls(delegate("helper")), { text: "done" }], helper: [{ text: "said aloud" }] },
        subagents: { outputStreamed: true }
      })
      yield* family.agent.run("go")
      const [result] = yield* told(family)
      assert.deepInclude(result, { output_streamed: true, success: true })
      assert.notProperty(result, "response")
      assert.match(JSON.stringify(result), /Do not repeat it/)
    })
  )

  it.scoped("in an order that events tell, with who made it and by which call", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls({ ...delegate("helper"), id: "call_d" }), { text: "done" }],
          helper: [{ text: "ok" }]
        },
        subagents: { profiles: [Family.profile("helper", { iconName: "broom" })] }
      })
      yield* family.agent.run("go")
      yield* family.agent.shutdown
      const all = (yield* family.events).filter(({ agent }) => agent === "main/helper")
      const [made] = Family.ofTag(all, "AgentCreated")
      assert.deepInclude(made, {
        depth: 1,
        parentSessionId: family.agent.id,
        subagentId: "subagent_1",
        parentToolCallId: "call_d" as never,
        profile: "helper",
        icon: "broom"
      })
      const tags = all.map((event) => (event._tag === "AgentStatusChanged" ? event.status : event._tag))
      assert.strictEqual(tags[0], "AgentCreated")
      assert.strictEqual(tags.at(-1), "done")
      assert.isBelow(tags.indexOf("TurnEnded"), tags.indexOf("AgentCompleted"))
      assert.isTrue(all.every(({ sessionId }) => sessionId === made?.sessionId))
    })
  )
})
