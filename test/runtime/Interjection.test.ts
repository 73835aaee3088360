/** Who hears what a user says while agents work. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as History from "../../src/conversation/History.js"
import type { Agent } from "../../src/runtime/Agent.js"
import type { Step, ToolUse } from "../../src/model/ScriptedModel.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { allowAll } from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const { calls, delegate, ofTag, spawn, work } = Family

const use = (name: "agent" | "explore" | "plan", task = "go"): ToolUse => ({ name, params: { task } })

/** A family in which nobody is asked and every piece of work takes until it is let through, by name. */
const start = (script: { readonly [agent: string]: ReadonlyArray<Step> }, options: Partial<Family.Options> = {}) =>
  Effect.gen(function* () {
    const gates = new Map<string, Deferred.Deferred<void>>()
    const gate = (name: string) => {
      const known = gates.get(name) ?? Deferred.unsafeMake<void>(FiberId.none)
      gates.set(name, known)
      return known
    }
    const family = yield* Family.start({
      script,
      worker: (name) => Effect.as(Deferred.await(gate(name)), name),
      runtime: { policy: allowAll },
      subagents: { profiles: ["helper", "nested", "explore", "plan"].map((name) => Family.profile(name)) },
      ...options
    })
    return {
      ...family,
      finish: (name: string) => Effect.zipRight(Deferred.succeed(gate(name), undefined), settle),
      interjected: Effect.map(family.events, (events) =>
        ofTag(events, "UserInterjected").map(({ message, parentId, targetAgent }) => ({
          message,
          targetAgent,
          parentId
        }))
      ),
      acknowledged: Effect.map(family.events, (events) =>
        ofTag(events, "InterjectionAcknowledged").map(({ agent, messageId, step }) => ({ agent, messageId, step }))
      )
    }
  })

const receiver = (agent: Agent) =>
  Effect.map(agent.receiver, ({ agent, parentId }) => [agent.origin.agent, parentId === "root" ? "root" : "call"])

/** What an agent was told by people and other agents, in order. */
const heard = (agent: Agent, path: string) =>
  Effect.map(agent.agents, (agents) =>
    agents
      .filter(({ origin }) => origin.agent === path)
      .flatMap(({ session }) => session.history.messages.filter(({ role }) => role === "user").map(History.textOf))
  )

describe("words that name nobody", () => {
  it.scoped("go to a child that works under explore, plan, agent or delegate, under its call", () =>
    Effect.gen(function* () {
      for (const [tool, path] of [
        [use("explore"), "main/explore"],
        [use("plan"), "main/plan"],
        [use("agent"), "main/agent"],
        [delegate("helper"), "main/helper"]
      ] as const) {
        const name = path.slice("main/".length)
        const family = yield* start({
          main: [calls({ ...tool, id: "call_x" }), { text: "done" }],
          [name]: [{ delay: "1 hour", text: "found" }]
        })
        yield* family.agent.send("go")
        yield* settle
        assert.deepStrictEqual(yield* receiver(family.agent), [path, "call"])
        yield* family.agent.send("look there too")
        yield* settle
        assert.deepStrictEqual(yield* family.interjected, [
          { message: "look there too", targetAgent: path, parentId: "call_x" }
        ])
        assert.deepStrictEqual(yield* heard(family.agent, path), ["go", "look there too"])
        assert.deepStrictEqual(yield* heard(family.agent, "main"), ["go"])
        yield* family.agent.shutdown
      }
    })
  )

  it.scoped("go by precedence, then to the most recent, then deeper", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(delegate("helper"), use("plan"), use("agent"), use("plan")), { text: "done" }],
        helper: [work("h")],
        plan: [work("never")],
        agent: [work("a")]
      })
      yield* family.agent.send("go")
      yield* settle
      assert.deepStrictEqual(yield* receiver(family.agent), ["main/plan-2", "call"])
      yield* family.agent.interrupt({ target: "main/plan-2" })
      assert.deepStrictEqual(yield* receiver(family.agent), ["main/plan", "call"])
      yield* family.agent.interrupt({ target: "main/plan" })
      assert.deepStrictEqual(yield* receiver(family.agent), ["main/agent", "call"])
      yield* family.agent.interrupt({ target: "main/agent" })
      assert.deepStrictEqual(yield* receiver(family.agent), ["main/helper", "call"])
      yield* family.finish("h")
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(yield* receiver(family.agent), ["main", "root"])
    })
  )

  it.scoped("go as deep as delegations go", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(delegate("helper")), { text: "done" }],
        helper: [calls({ ...delegate("nested"), id: "call_deep" }), { text: "ok" }],
        nested: [work("deep"), { expect: { contains: "further down" }, text: "fine" }]
      })
      yield* family.agent.send("go")
      yield* settle
      yield* family.agent.send("further down")
      assert.deepStrictEqual(yield* family.interjected, [
        { message: "further down", targetAgent: "main/helper/nested", parentId: "call_deep" }
      ])
      yield* family.finish("deep")
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(
        (yield* family.acknowledged).map(({ agent, step }) => [agent, step]),
        [["main/helper/nested", 2]]
      )
    })
  )

  it.scoped("never go to a child that is merely asked, or that was spawned", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [
          calls(spawn("helper")),
          calls({ name: "agent_ask", params: { agent_id: "subagent_1", question: "and?" } }),
          { text: "done" }
        ],
        helper: [work("a"), { text: "first" }, work("b"), { text: "second" }]
      })
      yield* family.agent.send("go")
      yield* settle
      assert.deepStrictEqual(yield* receiver(family.agent), ["main", "root"])
      yield* family.finish("a")
      assert.deepStrictEqual(yield* receiver(family.agent), ["main", "root"], "while it is asked")
      yield* family.agent.send("to main")
      assert.deepStrictEqual(yield* family.interjected, [{ message: "to main", targetAgent: "main", parentId: "root" }])
      // By name it hears also then, under the call that asks.
      yield* family.agent.send("to helper", { target: "main/helper" })
      const [, second] = yield* family.interjected
      assert.strictEqual(second?.targetAgent, "main/helper")
      assert.notStrictEqual(second?.parentId, "root")
      yield* family.finish("b")
    })
  )

  it.scoped("begin a turn of main when nothing runs", () =>
    Effect.gen(function* () {
      const family = yield* start({ main: [{ text: "hi" }] })
      assert.deepStrictEqual(yield* receiver(family.agent), ["main", "root"])
      yield* family.agent.send("hello")
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(yield* family.interjected, [])
      assert.deepStrictEqual(yield* heard(family.agent, "main"), ["hello"])
    })
  )
})

describe("words that name somebody", () => {
  it.scoped("go to that agent by path, session or subagent id", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(use("explore"), delegate("helper")), { text: "done" }],
        explore: [work("never")],
        helper: [work("h")]
      })
      yield* family.agent.send("go")
      yield* settle
      const helper = (yield* family.agent.agents).find(({ origin }) => origin.agent === "main/helper")
      const names = ["main/helper", helper?.origin.sessionId, helper?.origin.subagentId, "main", family.agent.id]
      for (const target of names) yield* family.agent.send(`to ${target}`, { target: target ?? "" })
      assert.deepStrictEqual(
        (yield* family.interjected).map(({ targetAgent }) => targetAgent),
        ["main/helper", "main/helper", "main/helper", "main", "main"]
      )
    })
  )

  it.scoped("go to nobody when there is no such agent, and the error names those that are", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(delegate("helper")), { text: "done" }],
        helper: [work("h")]
      })
      yield* family.agent.send("go")
      yield* settle
      const error = yield* Effect.flip(family.agent.send("hm", { target: "main/nobody" }))
      assert.strictEqual(error.message, 'There is no agent "main/nobody". There are: main, main/helper.')
      yield* Effect.flip(family.agent.select("nobody"))
      yield* Effect.flip(family.agent.interrupt({ target: "nobody" }))
      yield* Effect.flip(family.agent.broadcast("all", ["main", "nobody"]))
      assert.deepStrictEqual(yield* family.interjected, [])
    })
  )

  it.scoped("go to each of several once", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(delegate("helper"), delegate("nested")), { text: "done" }],
        helper: [work("h")],
        nested: [work("n")]
      })
      yield* family.agent.send("go")
      yield* settle
      yield* family.agent.broadcast("stop soon", ["main/nested", "main", "subagent_2", "main"])
      assert.deepStrictEqual(
        (yield* family.interjected).map(({ targetAgent }) => targetAgent),
        ["main/nested", "main"]
      )
    })
  )
})

describe("the selected agent", () => {
  const script = {
    main: [calls(spawn("helper"), use("explore")), { text: "started" }, { text: "noted" }, { text: "noted" }],
    helper: [work("h"), { text: "helped" }, { expect: { contains: "more" }, text: "helped more" }],
    explore: [work("never")]
  }

  it.scoped("hears before children that work under a call, until nobody is selected", () =>
    Effect.gen(function* () {
      const { agent } = yield* start(script)
      yield* agent.send("go")
      yield* settle
      assert.deepStrictEqual(yield* receiver(agent), ["main/explore", "call"])
      yield* agent.select("main/helper")
      assert.deepStrictEqual(yield* receiver(agent), ["main/helper", "root"])
      assert.strictEqual(Option.getOrUndefined(yield* agent.selected)?.origin.agent, "main/helper")
      yield* agent.select("main")
      assert.deepStrictEqual(yield* receiver(agent), ["main", "root"])
      yield* agent.select(undefined)
      assert.deepStrictEqual(yield* receiver(agent), ["main/explore", "call"])
    })
  )

  it.scoped("takes words as a turn when it is idle, and its parent is told the end", () =>
    Effect.gen(function* () {
      const family = yield* start({ ...script, main: [calls(spawn("helper")), { text: "started" }, { text: "noted" }] })
      yield* family.agent.send("go")
      yield* settle
      yield* family.finish("h")
      yield* family.agent.awaitIdle
      yield* family.agent.select("main/helper")
      const message = yield* family.agent.send("tell me more")
      assert.strictEqual(message.source, "user")
      assert.isFalse(yield* family.agent.isIdle)
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(yield* family.interjected, [])
      assert.deepStrictEqual(yield* heard(family.agent, "main/helper"), ["go", "tell me more"])
      const told = (yield* heard(family.agent, "main")).at(-1)
      assert.match(told ?? "", /event=COMPLETED[^]*helped more/)
    })
  )

  it.scoped("takes two words of one moment as one turn with an interjection", () =>
    Effect.gen(function* () {
      const family = yield* start({ ...script, main: [calls(spawn("helper")), { text: "started" }, { text: "noted" }] })
      yield* family.agent.send("go")
      yield* settle
      yield* family.finish("h")
      yield* family.agent.awaitIdle
      yield* family.agent.select("main/helper")
      yield* Effect.all([family.agent.send("more"), family.agent.send("and that")], { concurrency: "unbounded" })
      yield* family.agent.awaitIdle
      assert.deepStrictEqual(yield* heard(family.agent, "main/helper"), ["go", "more", "and that"])
      assert.deepStrictEqual(
        (yield* family.interjected).map(({ message, targetAgent }) => [message, targetAgent]),
        [["and that", "main/helper"]]
      )
      const turns = ofTag(yield* family.events, "TurnStarted").filter(({ agent }) => agent === "main/helper")
      assert.deepStrictEqual(
        turns.map(({ input }) => input),
        ["go", "more\n\nand that"]
      )
    })
  )

  it.scoped("is nobody any more once it is closed", () =>
    Effect.gen(function* () {
      const { agent, finish } = yield* start({
        main: [
          calls(spawn("helper")),
          { text: "started" },
          calls({ name: "close_subagent", params: { agent_id: "subagent_1" } }),
          { text: "closed" }
        ],
        helper: [work("h"), { text: "helped" }]
      })
      yield* agent.send("go")
      yield* settle
      yield* agent.select("main/helper")
      yield* finish("h")
      yield* agent.awaitIdle
      assert.deepStrictEqual(yield* receiver(agent), ["main", "root"])
      assert.deepStrictEqual(Option.getOrUndefined(yield* agent.selected), undefined)
    })
  )
})

describe("words for a child", () => {
  it.scoped("filed before it begins its task are read after the task, in the same turn", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(delegate("helper", "the task")), { text: "done" }],
        helper: [{ expect: { contains: "in time" }, text: "both" }]
      })
      yield* family.agent.send("go")
      // From the moment it is there.
      while ((yield* family.agent.agents).length < 2) yield* Effect.yieldNow()
      while ((yield* receiver(family.agent))[0] !== "main/helper") yield* Effect.yieldNow()
      yield* family.agent.send("in time")
      yield* family.agent.awaitIdle
      const turns = ofTag(yield* family.events, "TurnStarted").filter(({ agent }) => agent === "main/helper")
      assert.deepStrictEqual(
        turns.map(({ input }) => input.split("\n\n")[0]),
        ["the task"]
      )
      assert.deepStrictEqual((yield* heard(family.agent, "main/helper")).slice(-1), ["in time"])
    })
  )

  it.scoped("that its turn ends without reading go up to its caller, under the same id", () =>
    Effect.gen(function* () {
      const family = yield* start(
        {
          main: [calls(delegate("helper")), { expect: { contains: "too late" }, text: "heard" }],
          helper: [work("h"), { text: "unreached" }]
        },
        { subagents: { profiles: [Family.profile("helper", { maxTurns: 1 })] } }
      )
      yield* family.agent.send("go")
      yield* settle
      const message = yield* family.agent.send("too late")
      yield* family.finish("h")
      const end = yield* family.agent.awaitIdle
      assert.deepStrictEqual(Option.getOrUndefined(end), { _tag: "Completed", text: "heard", steps: 2 })
      assert.deepStrictEqual(
        (yield* family.interjected).map(({ parentId, targetAgent }) => [targetAgent, parentId === "root"]),
        [
          ["main/helper", false],
          ["main", true]
        ]
      )
      assert.deepStrictEqual(yield* family.acknowledged, [{ agent: "main", messageId: message.id, step: 2 }])
      assert.notInclude(yield* heard(family.agent, "main/helper"), "too late")
    })
  )

  it.scoped("that is cancelled or closed before it read them are not lost", () =>
    Effect.gen(function* () {
      const family = yield* start({
        main: [calls(delegate("helper")), { expect: { contains: "do not lose me" }, text: "heard" }],
        helper: [work("h"), { text: "unreached" }]
      })
      yield* family.agent.send("go")
      yield* settle
      yield* family.agent.send("do not lose me")
      yield* family.agent.interrupt({ target: "main/helper" })
      const end = yield* family.agent.awaitIdle
      assert.strictEqual(Option.getOrUndefined(end)?._tag, "Completed")
      assert.deepStrictEqual(yield* heard(family.agent, "main"), ["go", "do not lose me"])
    })
  )

  it.scoped("reach it while it waits for an answer, and the dialog stays open", () =>
    Effect.gen(function* () {
      const thought = yield* Deferred.make<void>()
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [work("a"), { expect: { contains: "hurry" }, text: "ok" }]
        },
        person: () => ({
          react: (dialog) => Effect.zipRight(Deferred.await(thought), TestInteractor.type("y").react(dialog))
        })
      })
      yield* family.agent.send("go")
      yield* family.person.next
      yield* family.agent.send("hurry")
      yield* settle
      assert.strictEqual((yield* family.person.open).length, 1)
      yield* Deferred.succeed(thought, undefined)
      const end = yield* family.agent.awaitIdle
      assert.strictEqual(Option.getOrUndefined(end)?._tag, "Completed")
      assert.deepStrictEqual(family.worked, [{ agent: "main/helper", name: "a" }])
    })
  )
})
