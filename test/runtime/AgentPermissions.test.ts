/** What a program allows and denies while its agent runs, and the command line beside it. */
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Origin from "../../src/core/Origin.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { Agenda } from "../../src/tool/Agenda.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Agents from "../kit/agents.js"
import * as Kit from "../kit/session.js"

const started = Kit.start({ model: [{ text: "hi" }], runtime: { policy: Policy.make({}) } })

describe("permissions as functions", () => {
  it.scoped("do what the command line does, and are told alike", () =>
    Effect.gen(function* () {
      const [byFunction, byLine] = [yield* started, yield* started]
      type Step = readonly [
        (permissions: Agent.Permissions) => Effect.Effect<void, { readonly message: string }>,
        string
      ]
      const steps: ReadonlyArray<Step> = [
        [({ allow }) => allow("  git   status "), "allow   git   status "],
        [({ deny }) => deny("work"), "deny work"],
        [({ allow }) => allow("work"), "allow work"],
        [({ setMode }) => setMode("deny"), "default deny"],
        [({ setMode }) => setMode("plan"), "mode plan"],
        [({ setMode }) => setMode("ask"), "mode ask"],
        [({ suspend }) => suspend(), "suspend"],
        [({ suspend }) => suspend("all"), "suspend all"],
        [({ allow }) => allow(" "), "allow "],
        [({ allow }) => allow("**"), "allow **"],
        [({ resume }) => resume, "resume"],
        [({ clear }) => clear, "clear"]
      ]
      for (const [change, line] of steps) {
        const one = yield* Effect.either(change(byFunction.agent.permissions))
        const other = yield* byLine.agent.permissions(line)
        assert.strictEqual(Either.isRight(one), Either.isRight(other), line)
        if (Either.isLeft(one)) assert.strictEqual(one.left.message, Either.getOrThrow(Either.flip(other)))
        assert.deepStrictEqual(yield* byFunction.agent.permissions.status, yield* byLine.agent.permissions.status, line)
      }
      const told = (kit: Kit.Started) =>
        Effect.map(kit.of("PermissionStatusChanged"), (events) =>
          events.map(({ before, mode, suspension }) => [before, mode, suspension])
        )
      assert.deepStrictEqual(yield* told(byFunction), yield* told(byLine))
      assert.strictEqual((yield* told(byLine)).length, 10)
    })
  )

  it.scoped("allow and deny what is called then, until they are taken back", () =>
    Effect.gen(function* () {
      const work = { name: "work", params: { name: "a" } }
      const kit = yield* Kit.start({
        model: [{ tools: [work] }, { text: "1" }, { tools: [work] }, { text: "2" }, { tools: [work] }, { text: "3" }],
        runtime: { policy: Policy.make({ defaultPolicy: "deny" }) }
      })
      const { permissions } = kit.agent
      const went = Effect.map(kit.agent.run("go"), () => kit.results()[0])
      yield* permissions.allow("work")
      assert.strictEqual(yield* went, "a")
      yield* permissions.deny("work")
      assert.match(String(yield* went), /session blacklist/)
      yield* permissions.clear
      assert.match(String(yield* went), /the default is deny/)
    })
  )

  it.scoped("take one rule back as the command does, and say whether there was one", () =>
    Effect.gen(function* () {
      const kit = yield* started
      const { permissions } = kit.agent
      yield* permissions.allow("git  status")
      yield* permissions.deny("work")
      assert.isTrue(yield* permissions.remove(" git status "))
      assert.deepInclude(yield* permissions.status, { allow: [], deny: ["work"] })
      assert.isFalse(yield* permissions.remove("git status"))
      assert.isTrue(Either.isLeft(yield* permissions("remove git status")))
      assert.isTrue(yield* permissions.remove("work"))
      assert.deepInclude(yield* permissions.check("work", { name: "a" }), { decision: "ask" })
      // Nothing is told where nothing changed.
      assert.lengthOf(yield* kit.of("PermissionStatusChanged"), 4)
    })
  )

  it.scoped("change nothing once the agent was shut down, and say so", () =>
    Effect.gen(function* () {
      const { agent } = yield* started
      const { permissions } = agent
      yield* permissions.allow("work")
      yield* agent.shutdown
      const doors: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
        permissions.remove("work"),
        permissions.allow("more"),
        permissions.deny("more"),
        permissions.setMode("allow"),
        permissions.suspend("all"),
        permissions.resume,
        permissions.clear
      ]
      for (const door of doors) assert.deepInclude(yield* Effect.flip(door), { _tag: "AgentStopped" })
      for (const line of [
        "allow more",
        "deny more",
        "default allow",
        "mode plan",
        "suspend",
        "resume",
        "clear",
        "remove work"
      ]) {
        assert.match(Either.getOrThrow(Either.flip(yield* permissions(line))), /was shut down/, line)
      }
      for (const line of ["", "show", "status", "mode", 'check work {"name":"a"}'])
        assert.isTrue(Either.isRight(yield* permissions(line)), line)
      assert.deepStrictEqual((yield* permissions.status).allow, ["work"])
    })
  )

  it.scoped("foresee a call as the gate would decide it", () =>
    Effect.gen(function* () {
      const { agent } = yield* started
      assert.deepInclude(yield* agent.permissions.check("work", { name: "a" }), { decision: "ask", method: "default" })
      assert.deepInclude(yield* agent.permissions.check("work"), { decision: "deny", method: "invalid" })
      yield* agent.permissions.suspend("all")
      assert.deepInclude(yield* agent.permissions.check("work", { name: "a" }), { decision: "allow" })
      const { message } = yield* Effect.flip(agent.permissions.check("works"))
      assert.match(message, /^There is no tool "works" \(did you mean work\?\), which a check of agent main names/)
    })
  )

  it.scoped("foresee a call whose checks look at who acts, with what it was built and whom it would ask", () =>
    Effect.gen(function* () {
      class Region extends Context.Tag("test/Region")<Region, string>() {}
      const acting = (name: string, check: Effect.Effect<void, string, Region | Interactor.Interactor>) =>
        Tool.make(name, { success: Schema.String, dependencies: [Region, Interactor.Interactor] }).pipe(
          ToolTrait.validate(() => check)
        )
      const seen: Array<unknown> = []
      const toolkit = Toolkit.make(
        acting(
          "origin",
          Effect.map(Origin.current, ({ agent, correlationId, depth, sessionId, toolCallId }) => {
            seen.push(agent, depth, sessionId, correlationId !== undefined, toolCallId !== undefined)
          })
        ),
        acting(
          "own",
          Effect.filterOrFail(
            Origin.current,
            ({ agent }) => agent === "main",
            () => "only main may"
          ).pipe(Effect.asVoid)
        ),
        acting(
          "other",
          Effect.flatMap(Origin.current, ({ depth }) => (depth > 0 ? Effect.void : Effect.fail("only subagents may")))
        ),
        acting(
          "region",
          Effect.flatMap(Region, (region) => (region === "eu" ? Effect.void : Effect.fail("wrong")))
        ),
        acting("tasks", Effect.asVoid(Effect.orElseFail(Effect.serviceOptional(Agenda), () => "no agenda"))),
        acting(
          "asks",
          Effect.asVoid(Effect.ignore(Interactor.ask(new Interaction.Confirm({ prompt: "Sure?", default: false }))))
        ),
        acting("crashes", Effect.dieMessage("boom"))
      )
      const run = () => Effect.succeed("done")
      const handlers = toolkit.toLayer({
        origin: run,
        own: run,
        other: run,
        region: run,
        tasks: run,
        asks: run,
        crashes: run
      })
      const person = yield* TestInteractor.make({})
      const runtime = AgentRuntime.layer({ toolkit }).pipe(
        Layer.provide(
          Layer.mergeAll(
            handlers,
            ScriptedModel.layer({ agents: { main: [{ text: "hi" }] } }),
            Agents.noFiles,
            Layer.succeed(Region, "eu")
          )
        )
      )
      const agent = yield* Effect.provide(Agent.startWith([person.interactor]), yield* Layer.build(runtime))
      const foreseen = (tool: string) =>
        Effect.map(agent.permissions.check(tool), ({ decision, method }) => `${decision} ${method}`)
      assert.deepStrictEqual(
        yield* Effect.forEach(["origin", "own", "other", "region", "tasks", "asks", "crashes"], foreseen),
        [
          "ask default",
          "ask default",
          "deny pre_validation",
          "ask default",
          "ask default",
          "ask pre_validation",
          "deny check_failed"
        ]
      )
      assert.deepStrictEqual(seen, ["main", 0, agent.id, true, true])
      assert.deepStrictEqual(yield* person.shown, [])
      assert.include(Either.getOrThrow(yield* agent.permissions("why own")).lines.join(), "the default is ask")
    })
  )

  it.scoped("show no secret that was allowed", () =>
    Effect.gen(function* () {
      const { agent } = yield* Kit.start({
        model: [{ text: "hi" }],
        runtime: { secrets: [Redacted.make("hunter2-hunter2")] }
      })
      yield* agent.permissions.allow("curl -H hunter2-hunter2 x")
      assert.deepStrictEqual((yield* agent.permissions.status).allow, ["curl -H [REDACTED] x"])
    })
  )

  it.scoped("take every pattern that is not all stars, and no blank one", () =>
    Effect.gen(function* () {
      const { agent } = yield* started
      for (const pattern of FastCheck.sample(FastCheck.stringMatching(/^[ *?a]{0,4}$/), 200)) {
        const taken = yield* Effect.either(agent.permissions.allow(pattern))
        const said = yield* agent.permissions(`allow ${pattern}`)
        assert.strictEqual(Either.isRight(taken), Either.isRight(said), JSON.stringify(pattern))
        if (pattern.trim() === "" || /^[ *]+$/.test(pattern))
          assert.isTrue(Either.isLeft(taken), JSON.stringify(pattern))
      }
    })
  )
})
