/** What a child asks, while its parent does this and that: it is answered or taken back, and by nobody but whom it was put to. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { settle } from "../kit/Recorder.js"
import * as Shuffled from "../kit/Shuffled.js"
import { resultsOf } from "../kit/session.js"

const { calls, delegate, spawn, work } = Family

const question = (text: string) => ({
  name: "request_clarification",
  params: { context: "", questions: [{ text, question_type: "free_text", choices: [] }] }
})

const summaryOf = ({ interaction }: InteractionRequest): string =>
  interaction._tag === "Approve" ? interaction.argumentsSummary : interaction._tag

/** What an agent's model was told of its calls last. */
const told = (family: Family.Family, path: string) =>
  Effect.map(family.agent.agents, (nodes) => {
    const node = nodes.find(({ origin }) => origin.agent === path)
    return node === undefined ? [] : resultsOf(node.session.history.messages)
  })

const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}.`)

describe("parallel calls of a child", () => {
  for (const count of [3, 50]) {
    it.scoped(`${count} at once go through the parent's mediator, one by one, and none crosses another`, () =>
      Effect.gen(function* () {
        const asked: Array<Interactor.Service> = []
        const mediated: Array<InteractionRequest> = []
        // The service that is asked where no fiber has one of its own; no tool of a session may ever get to see it.
        const nobody = Interactor.make({
          id: "nobody",
          handlers: {
            Approve: "declines",
            grantStageTool: "declines",
            approveSubagentEnvelope: "declines",
            Clarify: "declines",
            Ask: "declines",
            Select: "declines",
            Confirm: "declines",
            Elicit: "declines",
            "Auth.DeviceCode": "declines",
            "Auth.Password": "declines"
          }
        })
        const denied = (name: string) => Number(name.slice(1, -1)) % 3 === 1
        const family = yield* Family.start({
          script: {
            main: [calls(delegate("helper")), { text: "done" }],
            helper: [work(...names(count)), { text: "ok" }]
          },
          person: (request) => (denied(summaryOf(request)) ? `c: not ${summaryOf(request)}` : "y"),
          worker: (name) =>
            Interactor.current.pipe(
              Effect.provideService(Interactor.Interactor, nobody),
              Effect.map((interactor) => {
                asked.push(interactor)
                return `did ${name}`
              })
            ),
          subagents: {
            mediation: (request) =>
              Effect.sync(() => {
                mediated.push(request)
                return Option.none()
              })
          },
          agent: { limits: { parallelTools: 50, callsPerStep: 1_000 } }
        })
        yield* family.agent.run("go")

        assert.deepStrictEqual(mediated.map(summaryOf), names(count), "in order of proposal")
        const shown = yield* family.person.shown
        assert.deepStrictEqual(
          shown.map(({ requestId }) => requestId),
          mediated.map(({ requestId }) => requestId),
          "nothing came to the person past the mediator"
        )
        assert.isTrue(
          shown.every(({ agentPath, subagentId }) => agentPath === "main/helper" && subagentId !== undefined)
        )
        assert.deepStrictEqual(
          yield* told(family, "main/helper"),
          names(count).map((name) => (denied(name) ? `Tool not executed. User comment: not ${name}` : `did ${name}`))
        )
        assert.deepStrictEqual(
          asked.map(({ id, relay }) => [id, relay]),
          names(count)
            .filter((name) => !denied(name))
            .map(() => ["main", true]),
          "each tool's fiber asks its parent"
        )
      })
    )
  }
})

describe("a child's question is answered", () => {
  const helper = [work("a"), { text: "ok" }]

  it.scoped("while its parent waits for it, and others at its side", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("helper"), delegate("helper"), delegate("nested")), { text: "done" }],
          helper,
          nested: helper
        },
        person: () => "y"
      })
      assert.strictEqual(Family.textOf(yield* family.agent.run("go")), "done")
      assert.deepStrictEqual(family.worked.map(({ agent }) => agent).toSorted(), [
        "main/helper",
        "main/helper-2",
        "main/nested"
      ])
    })
  )

  it.scoped("while its parent's model speaks", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [
            calls(spawn("helper")),
            { text: "one two three", chunks: 3, chunkDelay: "1 second" },
            { text: "heard" }
          ],
          helper
        },
        person: () => "y"
      })
      const running = yield* Effect.fork(Family.untilIdle(family.agent, "go"))
      yield* settle
      yield* settle
      assert.strictEqual(family.worked.length, 1, "before the parent has spoken its words")
      assert.isFalse(yield* family.agent.isIdle)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "heard")
    })
  )

  it.scoped("while its parent asks something itself", () =>
    Effect.gen(function* () {
      const later = yield* Deferred.make<TestInteractor.Step>()
      const family = yield* Family.start({
        script: {
          main: [calls(spawn("helper")), calls(question("what next?")), { text: "done" }, { text: "heard" }],
          helper
        },
        person: {
          dialogs: "unbounded",
          script: ({ interaction }) =>
            interaction._tag === "Clarify" ? TestInteractor.wait(Deferred.await(later)) : "y"
        }
      })
      const running = yield* Effect.fork(Family.untilIdle(family.agent, "go"))
      yield* settle
      yield* settle
      assert.deepStrictEqual((yield* family.person.open).map(summaryOf), ["Clarify"])
      assert.strictEqual(family.worked.length, 1)
      yield* Deferred.succeed(later, "nothing")
      yield* Fiber.join(running)
      assert.deepStrictEqual(yield* family.person.open, [])
    })
  )

  it.scoped("after its parent's own, where both want the same slot", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: { main: [calls(spawn("helper"), { name: "work", params: { name: "own" } }), { text: "done" }], helper },
        person: () => TestInteractor.delay("1 minute", "y")
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      for (const open of ["main: work own", "main/helper: work a"]) {
        yield* settle
        yield* settle
        assert.deepStrictEqual(Family.shown(yield* family.person.open), [open], "one at a time")
        yield* TestClock.adjust("1 minute")
      }
      yield* Fiber.join(running)
      assert.deepStrictEqual(
        family.worked.map(({ name }) => name),
        ["own", "a"]
      )
    })
  )

  it.scoped("while its parent is idle", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(spawn("helper")), { text: "started" }, { text: "heard" }],
          helper: [{ ...work("a"), delay: "1 minute" }, { text: "ok" }]
        },
        person: () => "y"
      })
      const running = yield* Effect.fork(Family.untilIdle(family.agent, "go"))
      yield* settle
      yield* settle
      assert.include(
        Family.ofTag(yield* family.events, "TurnEnded").map(({ agent }) => agent),
        "main"
      )
      assert.strictEqual(family.worked.length, 0)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "heard")
      assert.strictEqual(family.worked.length, 1)
    })
  )

  it.scoped("also when the turn that spawned it was cancelled, for it goes on", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: { main: [calls(spawn("helper")), { text: "never", delay: "1 day" }, { text: "heard" }], helper },
        person: () => TestInteractor.delay("1 minute", "y")
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* settle
      yield* settle
      yield* family.agent.cancel()
      assert.deepStrictEqual(Family.shown(yield* family.person.open), ["main/helper: work a"])
      yield* TestClock.adjust("1 minute")
      yield* TestClock.adjust("1 day")
      yield* Fiber.join(running)
      assert.strictEqual(family.worked.length, 1)
    })
  )

  it.scoped("or taken back, when its parent stops waiting for it, and those of its own children with it", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(delegate("helper")), { text: "done" }],
          helper: [calls(delegate("nested"), { name: "work", params: { name: "own" } }), { text: "ok" }],
          nested: [calls(question("a?"), question("b?")), { text: "ok" }]
        },
        person: { dialogs: "unbounded" }
      })
      const running = yield* Effect.fork(family.agent.run("go"))
      yield* settle
      yield* settle
      assert.strictEqual((yield* family.person.open).length, 3)
      yield* family.agent.cancel()
      yield* Fiber.join(running)
      yield* settle
      assert.deepStrictEqual(yield* family.person.open, [])
      assert.deepStrictEqual(yield* family.agent.broker.open, [])
      const all = yield* family.events
      assert.strictEqual(Family.ofTag(all, "InteractionCancelled").length, 3)
      for (const { origin, session } of yield* family.agent.agents) {
        assert.deepStrictEqual(session.calls.ids, [], origin.agent)
      }
      // And all are as good as new.
      assert.isTrue(yield* family.agent.isIdle)
    })
  )

  it.scoped("or taken back, when the whole tree ends: nothing is left", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [calls(spawn("helper"), spawn("helper")), { text: "started" }],
          helper: [calls(delegate("nested")), { text: "ok" }],
          nested: [calls(question("a?")), { text: "ok" }]
        },
        person: { dialogs: "unbounded" }
      })
      yield* Effect.fork(family.agent.run("go"))
      yield* settle
      yield* settle
      const askers = (yield* family.agent.agents).map(({ session }) => session.calls)
      assert.strictEqual(askers.length, 5)
      assert.strictEqual((yield* family.person.open).length, 2)
      yield* family.agent.shutdown
      assert.deepStrictEqual(yield* family.person.open, [])
      assert.deepStrictEqual(
        askers.flatMap((calls) => calls.ids),
        []
      )
      assert.strictEqual((yield* family.agent.agents).length <= 1, true)
      const all = yield* family.events
      assert.strictEqual(Family.ofTag(all, "InteractionRequested").length, 2)
      assert.strictEqual(Family.ofTag(all, "InteractionCancelled").length, 2)
      assert.strictEqual(
        all.filter((event) => event._tag === "AgentStatusChanged" && event.status === "done").length,
        4
      )
    })
  )
})

describe("in a tree", () => {
  for (const depth of [1, 2, 5, 20]) {
    it.scoped(`${depth} deep, a question climbs to the person and its answer comes back`, () =>
      Effect.gen(function* () {
        const level = (n: number) => `d${n}`
        const levels = Array.from({ length: depth }, (_, index) => index + 1)
        const script = Object.fromEntries(
          levels.map((n) => [
            level(n),
            [n === depth ? work("deep", "er") : calls(delegate(level(n + 1))), { text: `of ${n}` }]
          ])
        )
        const mediated: Array<string> = []
        const family = yield* Family.start({
          script: { ...script, main: [calls(delegate("d1")), { text: "done" }] },
          person: (request) => (summaryOf(request) === "deep" ? "y" : "c: no deeper"),
          subagents: {
            profiles: levels.map((n) => Family.profile(level(n))),
            mediation: ({ requestId }) =>
              Effect.sync(() => {
                mediated.push(requestId)
                return Option.none()
              })
          }
        })
        assert.strictEqual(Family.textOf(yield* family.agent.run("go")), "done")
        const path = ["main", ...levels.map(level)].join("/")
        assert.deepStrictEqual(Family.shown(yield* family.person.shown), [`${path}: work deep`, `${path}: work er`])
        assert.deepStrictEqual(yield* told(family, path), ["deep", "Tool not executed. User comment: no deeper"])
        assert.strictEqual(mediated.length, 2 * depth, "one level at a time")
        assert.strictEqual(new Set(mediated).size, 2, "the same id at every level")
        const settled = Family.ofTag(yield* family.events, "InteractionAnswered")
        assert.strictEqual(settled.length, 2, "one settling event each")
        assert.isTrue(settled.every(({ by }) => by === "person"))
      })
    )
  }

  for (const count of [1, 10, 1_000]) {
    it.scoped(`${count} children with a question each: answered in any order, each gets its own answer`, () =>
      Effect.gen(function* () {
        const family = yield* Family.start({
          script: {
            main: [calls(...Array.from({ length: count }, () => delegate("helper"))), { text: "done" }],
            helper: [calls(question("who am I?")), { text: "ok" }]
          },
          person: { dialogs: "unbounded" },
          agent: { limits: { parallelTools: count, callsPerStep: count } }
        })
        const running = yield* Effect.fork(family.agent.run("go"))
        const asking: Effect.Effect<ReadonlyArray<InteractionRequest>> = Effect.flatMap(
          family.agent.broker.open,
          (open) => (open.length === count ? Effect.succeed(open) : Effect.zipRight(Effect.yieldNow(), asking))
        )
        const random = Shuffled.random(count)
        const open = (yield* asking).map((request) => ({ request, rank: random() })).sort((a, b) => a.rank - b.rank)
        for (const { request } of open) {
          yield* family.agent.broker.answer(request.requestId, "test", { "1": { value: request.agentPath } })
        }
        assert.strictEqual(Family.textOf(yield* Fiber.join(running)), "done")
        const children = (yield* family.agent.agents).filter(({ origin }) => origin.depth > 0)
        assert.strictEqual(children.length, count)
        for (const { origin, session } of children) {
          assert.deepStrictEqual(resultsOf(session.history.messages), [{ "1": { value: origin.agent } }])
        }
      })
    )
  }
})
