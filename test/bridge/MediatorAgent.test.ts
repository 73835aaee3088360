import { assert, describe, it } from "@effect/vitest"
import * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as MediatorAgent from "../../src/bridge/MediatorAgent.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import type * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import { settle } from "../kit/Recorder.js"
import { resultsOf } from "../kit/session.js"

const { calls, delegate, work } = Family

/** A question as the mediating model sees it. */
interface Shown {
  readonly id: string
  readonly xml: string
  /** All that it is given. */
  readonly prompt: string
}

type Reply = (shown: Shown, index: number) => ScriptedModel.Step

const rest = Effect.zipRight(settle, settle)

const textOf = (message: Prompt.Message): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.map((part) => (part.type === "text" ? part.text : JSON.stringify(part))).join("")

/** Plays the script, and as a mediator replies to each question by what it says. */
const mediating = (script: ScriptedModel.Script["agents"], reply: Reply) => {
  const shown: Array<Shown> = []
  const usual = ScriptedModel.make({ agents: script })
  const busy = { now: 0, most: 0 }
  const model: Model.Service = {
    id: usual.id,
    stream: (prompt, tools, asking) => {
      if (!asking.agent.endsWith("/mediator")) return usual.stream(prompt, tools, asking)
      const xml = textOf(prompt.content[prompt.content.length - 1] ?? Prompt.systemMessage({ content: "" }))
      const question = {
        xml,
        id: /request_id="([^"]*)"/.exec(xml)?.[1] ?? "",
        prompt: prompt.content.map(textOf).join("\n")
      }
      const step = reply(question, shown.push(question) - 1)
      const model = ScriptedModel.make({ agents: { mediator: [step] } })
      busy.most = Math.max(busy.most, ++busy.now)
      return Stream.ensuring(
        model.stream(Prompt.fromMessages([Prompt.userMessage({ content: [] })]), tools, asking),
        Effect.sync(() => busy.now--)
      )
    }
  }
  return { model, shown, busy }
}

const respond = (id: string, decision: unknown, more: object = {}): ScriptedModel.ToolUse => ({
  name: "respond_to_request",
  params: { request_id: id, decision, ...more }
})

const script = { main: [calls(delegate("helper", "tidy up")), { text: "done" }], helper: [work("a"), { text: "ok" }] }

const start = (reply: Reply, options: Partial<Family.Options> = {}) =>
  Effect.gen(function* () {
    const mediator = mediating(options.script ?? script, reply)
    const family = yield* Family.start({
      script,
      person: () => "y",
      ...options,
      subagents: { mediation: "agent", ...options.subagents },
      agent: { model: mediator.model }
    })
    return { ...family, ...mediator }
  })

const told = (family: Family.Family, path: string) =>
  Effect.map(family.agent.agents, (nodes) => {
    const node = nodes.find(({ origin }) => origin.agent === path)
    return node === undefined ? [] : resultsOf(node.session.history.messages)
  })

describe("a parent's model that mediates", () => {
  for (const [decision, more, text] of [
    ["yes", {}, "a"],
    ["no", {}, "Permission denied: main said no"],
    ["comment", { comment: "look at the log first" }, "Tool not executed. User comment: look at the log first"],
    ["no", { comment: "too risky" }, "Tool not executed. User comment: too risky"]
  ] as const) {
    it.scoped(`answers ${decision}${"comment" in more ? " with words" : ""}, and the person is not asked`, () =>
      Effect.gen(function* () {
        const family = yield* start(({ id }) => calls(respond(id, decision, more)))
        yield* family.agent.run("please tidy up")
        assert.deepStrictEqual(yield* told(family, "main/helper"), [text])
        assert.deepStrictEqual(yield* family.person.shown, [])
        const [question] = family.shown
        assert.include(question?.xml, "<permission_request")
        assert.include(question?.prompt, "please tidy up", "it is reminded of what it works on")
        const all = yield* family.events
        assert.deepStrictEqual(
          Family.ofTag(all, "InteractionAnswered").map(({ agent, by }) => [agent, by]),
          [["main/helper", "main"]]
        )
        assert.strictEqual(Family.ofTag(all, "InteractionRequested").length, 1)
        assert.notInclude(
          family.agent.history.messages.map(textOf).join("\n"),
          "respond_to_request",
          "its own conversation does not see it"
        )
      })
    )
  }

  const forwards: Readonly<Record<string, Reply>> = {
    "asks the user": ({ id }) => calls(respond(id, "ask_user")),
    "names another request": () => calls(respond("req_0", "yes")),
    "calls twice": ({ id }) => calls(respond(id, "yes"), respond(id, "yes")),
    "only talks": ({ id }) => ({
      text: `<permission_response request_id="${id}"><decision>yes</decision></permission_response>`
    }),
    "says nothing": () => ({}),
    "gives an unknown decision": ({ id }) => calls(respond(id, "always")),
    "gives a decision of another kind": ({ id }) => calls(respond(id, { decision: "yes" })),
    "comments without words": ({ id }) => calls(respond(id, "comment", { comment: "  " })),
    "adds a field": ({ id }) => calls(respond(id, "yes", { scope: "all" })),
    "calls another tool": ({ id }) => calls({ name: "delegate", params: { request_id: id, decision: "yes" } }),
    "fails for a moment": () => ({ error: "overloaded" }),
    "fails for good": () => ({ error: "bad_output" })
  }
  for (const [what, reply] of Object.entries(forwards)) {
    it.scoped(`${what}: the person is asked`, () =>
      Effect.gen(function* () {
        const family = yield* start(reply, { person: ["c: no"] })
        yield* family.agent.run("go")
        assert.deepStrictEqual(Family.shown(yield* family.person.shown), ["main/helper: work a"])
        assert.deepStrictEqual(yield* told(family, "main/helper"), ["Tool not executed. User comment: no"])
        assert.strictEqual(family.shown.length, 1)
        const answered = Family.ofTag(yield* family.events, "InteractionAnswered")
        assert.deepStrictEqual(
          answered.map(({ by }) => by),
          ["person"]
        )
      })
    )
  }

  it.scoped("does not answer within a minute: the person is asked", () =>
    Effect.gen(function* () {
      const family = yield* start(({ id }) => ({ ...calls(respond(id, "yes")), delay: "1 hour" }), { person: ["n"] })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* rest
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(yield* family.person.shown, [])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(running)
      assert.deepStrictEqual(yield* told(family, "main/helper"), ["Permission denied: person said no"])
      assert.strictEqual(family.busy.now, 0)
    })
  )

  it.scoped("thinks longer than the child waits: the question is taken back from it", () =>
    Effect.gen(function* () {
      const family = yield* start(({ id }) => ({ ...calls(respond(id, "yes")), delay: "1 hour" }), {
        subagents: { timeouts: { permission: "10 seconds" } }
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* rest
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(running)
      assert.deepStrictEqual(yield* told(family, "main/helper"), [
        "Permission denied: Nobody answered at main within 10 s."
      ])
      assert.strictEqual(family.busy.now, 0)
      assert.deepStrictEqual(yield* family.person.shown, [])
    })
  )

  it.scoped("is asked one thing after the other, and knows what it said before", () =>
    Effect.gen(function* () {
      const family = yield* start(
        ({ id }, index) => ({ ...calls(respond(id, index === 1 ? "no" : "yes")), delay: "10 seconds" }),
        {
          script: {
            ...script,
            main: [calls(delegate("helper"), delegate("helper"), delegate("helper")), { text: "done" }]
          }
        }
      )
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* rest
      for (const count of [1, 2, 3]) {
        assert.strictEqual(family.shown.length, count)
        yield* TestClock.adjust("10 seconds")
      }
      yield* Fiber.join(running)
      assert.strictEqual(family.busy.most, 1)
      assert.deepStrictEqual(
        family.shown.map(({ prompt }) => prompt.split("Done.").length - 1),
        [0, 1, 2]
      )
      assert.strictEqual(family.worked.length, 2)
    })
  )

  it.scoped("is not asked what the person has decided meanwhile", () =>
    Effect.gen(function* () {
      const family = yield* start(({ id }) => ({ ...calls(respond(id, "ask_user")), delay: "10 seconds" }), {
        script: { ...script, main: [calls(delegate("helper"), delegate("helper")), { text: "done" }] },
        person: ["all"]
      })
      // The second question stands in line for the model while the first is put to the person.
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* rest
      yield* family.agent.permissions("suspend all")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(running)
      assert.strictEqual(family.shown.length, 1)
      assert.strictEqual(family.worked.length, 2)
      assert.deepStrictEqual(yield* family.person.shown, [], "nor is the person")
    })
  )

  it.scoped("has its tokens in the ledger, as its parent's", () =>
    Effect.gen(function* () {
      const family = yield* start(({ id }) => ({ ...calls(respond(id, "yes")), usage: { input: 1_000, output: 7 } }))
      yield* family.agent.run("go")
      const { calls: count, inputTokens, outputTokens } = family.agent.ledger.totals()
      assert.deepStrictEqual([count, inputTokens, outputTokens], [5, 1_000, 7])
      assert.strictEqual(family.agent.ledger.of(family.agent.id)?.inputTokens, 1_000)
    })
  )

  it.scoped("is not asked about forms and envelopes: they go to the person", () =>
    Effect.gen(function* () {
      const family = yield* start(({ id }) => calls(respond(id, "yes")), {
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [
            calls({ name: "ask_user", params: { prompt: "Name?" } }),
            calls({
              name: "request_clarification",
              params: { context: "", questions: [{ text: "Why?", question_type: "free_text", choices: [] }] }
            }),
            calls({ name: "delegate", params: { task: "x", plugins: ["work"] } }),
            { text: "ok" }
          ]
        },
        person: ({ interaction }) => {
          switch (interaction._tag) {
            case "Approve":
              return "y"
            case "approveSubagentEnvelope":
              return "deny"
            case "Clarify":
              return "because"
            default:
              return "Ada"
          }
        },
        subagents: { inline: { allowed: true, plugins: ["work"] } },
        runtime: { policy: undefined }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(Family.shown(yield* family.person.shown).slice(1), [
        "main/helper: Ask",
        "main/helper: Clarify",
        "main/helper: approveSubagentEnvelope"
      ])
      assert.deepStrictEqual(family.shown, [])
    })
  )

  it.effect("knows nothing about any kind but permissions and confirmations", () =>
    Effect.gen(function* () {
      const { model, shown } = mediating({}, ({ id }) => calls(respond(id, "yes")))
      const strategy = yield* MediatorAgent.make({
        model: Effect.succeed(model),
        origin: Origin.outside,
        redactor: Redaction.shapesOnly,
        conversation: () => []
      })
      for (const kind of InteractionSample.kinds) {
        const request = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
        const answer = yield* strategy(request, Effect.succeed(false))
        const known = kind === "Approve" || kind === "Confirm"
        assert.strictEqual(Option.isSome(answer), known, kind)
        assert.strictEqual(shown.length, known ? 1 : 0, kind)
        shown.length = 0
      }
    })
  )
})

describe("a policy that mediates", () => {
  const strategies: Readonly<Record<string, readonly [Mediator.Strategy, decides: boolean]>> = {
    answers: [Mediator.decide(() => Option.some({ decision: "allow", scope: "once" })), true],
    "answers after a while": [
      Mediator.decide(() => Effect.delay(Effect.succeedSome({ decision: "allow", scope: "turn" }), "1 second")),
      true
    ],
    "knows nothing": [Mediator.decide(() => Option.none()), false],
    throws: [
      Mediator.decide(() => {
        throw new Error("broken")
      }),
      false
    ],
    dies: [Mediator.decide(() => Effect.dieMessage("broken")), false],
    "interrupts itself": [Mediator.decide(() => Effect.interrupt), false],
    "answers what is no answer": [Mediator.decide(() => Option.some({ decision: "allow" })), false],
    "answers another kind": [Mediator.decide(() => Option.some(true)), false],
    "hands back nothing at all": [Mediator.decide(() => Option.some(undefined)), false]
  }
  for (const [what, [mediation, decides]] of Object.entries(strategies)) {
    it.scoped(`${what}: ${decides ? "it has decided" : "the person is asked"}`, () =>
      Effect.gen(function* () {
        const family = yield* Family.start({ script, person: () => TestInteractor.type("y"), subagents: { mediation } })
        const running = yield* Effect.fork(family.agent.run("go"))
        yield* rest
        yield* TestClock.adjust("1 second")
        assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "done")
        assert.strictEqual(family.worked.length, 1)
        assert.strictEqual((yield* family.person.shown).length, decides ? 0 : 1)
        const answered = Family.ofTag(yield* family.events, "InteractionAnswered")
        assert.deepStrictEqual(
          answered.map(({ by }) => by),
          [decides ? "main" : "person"]
        )
      })
    )
  }
})
