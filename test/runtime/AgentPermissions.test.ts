/** What a program allows and denies while its agent runs, and the command line beside it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Redacted from "effect/Redacted"
import * as Policy from "../../src/permission/Policy.js"
import type * as Agent from "../../src/runtime/Agent.js"
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
