/** Tools, policy and guards of one agent beside its runtime's. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Id from "../../src/core/Id.js"
import * as Foresight from "../../src/permission/Foresight.js"
import * as Guard from "../../src/permission/Guard.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import * as Policy from "../../src/permission/Policy.js"
import * as PolicyFile from "../../src/permission/PolicyFile.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as AgentHandle from "../../src/runtime/AgentHandle.js"
import * as OwnRules from "../../src/runtime/OwnRules.js"
import * as Toolset from "../../src/runtime/Toolset.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Family from "../kit/Family.js"
import * as Kit from "../kit/session.js"

const Pay = Tool.make("pay", { parameters: { amount: Schema.NumberFromString }, success: Schema.String })
const Shell = Tool.make("shell", { parameters: { command: Schema.String }, success: Schema.String }).annotate(
  ToolTrait.ShellCommand,
  "command"
)
const toolkit = Toolkit.make(Pay, Shell)
const handlers = toolkit.toLayer({ pay: () => Effect.succeed("paid"), shell: () => Effect.succeed("ran") })

const shell = (command: string) => ({ name: "shell", params: { command } })
const pay = (amount: string) => ({ name: "pay", params: { amount } })

const registry = Effect.provide(ToolRegistry.make(toolkit), handlers)
const sessionId = Id.SessionId.make("s")

/** The results of these calls, by an agent with these options. Nobody answers. */
const resultsOf = (
  runtime: PolicySource,
  options: Parameters<typeof TestAgent.start>[0],
  ...calls: ReadonlyArray<{ readonly name: string; readonly params: unknown }>
) =>
  Effect.gen(function* () {
    const { agent } = yield* Effect.orDie(TestAgent.start(options))
    yield* agent.run("go")
    return Kit.resultsOf(agent.history.messages).map(String)
  }).pipe(
    Effect.scoped,
    Effect.provide(
      TestAgent.layer({
        toolkit,
        script: [{ tools: calls }, { text: "done" }],
        policy: Policy.make(runtime),
        person: ["n"]
      })
    ),
    Effect.provide(handlers)
  )

describe("the tools of an agent", () => {
  it.scoped("must be there: an unknown name is a failure that says what was meant, and nothing is started", () =>
    Effect.gen(function* () {
      const start = (agent: Parameters<typeof TestAgent.start>[0]) => Effect.flip(TestAgent.start(agent))
      const unknown = yield* start({ tools: ["pay", "shel"] })
      assert.deepInclude(unknown, { _tag: "ToolsUnknown", unknown: ["shel"] })
      assert.strictEqual(
        unknown.message,
        'There is no tool "shel" (did you mean shell?), which agent main names. There are: pay, shell.'
      )
      const denied = yield* start({ name: "clerk", policy: Policy.make({ blacklist: { tools: ["pays"] } }) })
      assert.match(
        denied.message,
        /^There is no tool "pays" \(did you mean pay\?\), which the policy of agent clerk names/
      )
      const allowed = yield* start({ policy: Policy.make({ whitelist: { tools: ["pya"] } }) })
      assert.strictEqual(allowed._tag, "ToolsUnknown")
      yield* TestAgent.start({ policy: Policy.make({ blacklist: { tools: ["mcp__bank__*"] } }) })
      // A pattern over the calls of a tool names it too. Others are about commands, or about several tools.
      const pattern = yield* start({
        policy: Policy.make({ blacklist: { patterns: ["pay(amount=*)", "pya(amount=*)"] } })
      })
      assert.deepInclude(pattern, { _tag: "ToolsUnknown", unknown: ["pya"] })
      const patterns = ["pay(amount=*)", "p*(amount=*)", "pya *", "(pya)", "$(pya)", "mcp__bank__pay(amount=*)"]
      yield* TestAgent.start({ policy: Policy.make({ blacklist: { patterns } }) })
      // A file may allow what another program has, but what it denies must be there.
      const inFile = (list: "blacklist" | "whitelist", rules: object) =>
        Either.getOrThrow(PolicyFile.decode(JSON.stringify({ [list]: rules }), "policy.json"))
      for (const rules of [{ tools: ["pya"] }, { patterns: ["pya(amount=1)"] }]) {
        yield* TestAgent.start({ policy: inFile("whitelist", rules) })
        assert.strictEqual((yield* start({ policy: inFile("blacklist", rules) }))._tag, "ToolsUnknown")
      }
      assert.strictEqual((yield* Effect.flip(AgentHandle.start({ tools: ["pya"] })))._tag, "ToolsUnknown")
    }).pipe(Effect.provide(TestAgent.layer({ toolkit, script: [] })), Effect.provide(handlers))
  )

  it.scoped("with types, are those of the runtime, or there is a mistake in its layers", () =>
    Effect.gen(function* () {
      const other = Toolset.of(Toolkit.make(Tool.make("fly")))
      const exit = yield* Effect.exit(other.start({ tools: ["fly"] }))
      assert.match(String(Exit.isFailure(exit) && Cause.squash(exit.cause)), /There is no tool "fly"/)
      const agent = yield* Toolset.of(toolkit).start({ tools: ["pay"] })
      assert.deepStrictEqual(
        agent.tools.entries.map(({ name }) => name),
        ["pay"]
      )
    }).pipe(Effect.provide(TestAgent.layer({ toolkit, script: [] })), Effect.provide(handlers))
  )
})

describe("the policy of an agent", () => {
  it.effect("replaces lists and default of the runtime's, and keeps its hard rules", () =>
    Effect.gen(function* () {
      const runtime = {
        defaultPolicy: "deny",
        whitelist: { patterns: ["ls*"] },
        blacklist: { tools: ["pay"] },
        guards: { deny: { patterns: ["git push*"] }, sanitize: { dangerousCommands: true } }
      } as const
      const own = Policy.make({ defaultPolicy: "allow", whitelist: { patterns: ["git*", "sudo*", "make"] } })
      const calls = [pay("1"), shell("git push --force"), shell("sudo ls"), shell("make")]
      assert.deepStrictEqual(yield* resultsOf(runtime, { policy: own }, ...calls), [
        "paid",
        "Permission denied: forbidden by rule git push*",
        "Permission denied: The program sudo is forbidden by the policy.",
        "ran"
      ])
      const denied = yield* resultsOf(runtime, {}, ...calls)
      assert.isTrue(denied.every((result) => result.startsWith("Permission denied:")))
    })
  )

  it.effect(
    "adds hard rules and a sanitizer of its own, and a sanitizer that it does not mention is the runtime's",
    () =>
      Effect.gen(function* () {
        const open = { defaultPolicy: "allow", guards: { sanitize: { pathScope: false } } } as const
        const calls = [shell(`cat ${"../".repeat(20)}x`), shell("curl x"), shell("git push")]
        const own = (guards: PolicySource["guards"]) => Policy.make({ defaultPolicy: "allow", guards })
        assert.deepStrictEqual(yield* resultsOf(open, { policy: own({}) }, ...calls), ["ran", "ran", "ran"])
        assert.deepStrictEqual(
          yield* resultsOf(
            open,
            { policy: own({ deny: { arguments: ["push"] }, sanitize: { dangerousCommands: true } }) },
            ...calls
          ),
          [
            "ran",
            "Permission denied: The program curl is forbidden by the policy.",
            "Permission denied: forbidden by rule push"
          ]
        )
        const [outside] = yield* resultsOf(open, { policy: own({ sanitize: { pathScope: true } }) }, ...calls)
        assert.match(String(outside), /^Permission denied: The path \.\.\/.* leads outside/)
      })
  )

  it("never lets anything past the runtime's hard rules, whatever it says and whatever was allowed since", () => {
    const names = ["pay", "shell", "fly"]
    const texts = FastCheck.constantFrom("*", "git*", "git push*", "pay*", "rm -rf *", "make", "--force")
    const list = FastCheck.record(
      {
        tools: FastCheck.subarray(names),
        patterns: FastCheck.array(texts, { maxLength: 3 }),
        arguments: FastCheck.array(texts, { maxLength: 2 })
      },
      { requiredKeys: [] }
    )
    const source = FastCheck.record(
      {
        defaultPolicy: FastCheck.constantFrom("allow" as const, "ask" as const, "deny" as const),
        whitelist: list,
        blacklist: list,
        guards: FastCheck.record({ deny: list }, { requiredKeys: [] })
      },
      { requiredKeys: [] }
    )
    const command = FastCheck.constantFrom("git push", "git status; rm -rf x", "make --force", "ls")
    return Effect.runPromise(
      Effect.gen(function* () {
        const known = yield* registry
        FastCheck.assert(
          FastCheck.property(source, source, command, FastCheck.boolean(), (runtime, own, command, all) => {
            const [base, mine] = [Policy.make(runtime), Policy.make(own)]
            const policy = OwnRules.policyOf({ policy: base }, { policy: mine })
            const state = new PermissionState()
            if (all) state.suspend("all", sessionId)
            for (const { name, params } of [shell(command), pay("1")]) {
              const entry = known.get(name)
              assert(entry !== undefined)
              const foreseen = (policy: Policy.Policy) =>
                Effect.runSync(Foresight.foresee({ policy, state, guards: [], sessionId: sessionId }, entry, params))
              const before = [base, mine].filter((each) => foreseen(each).method === "guard")
              assert.strictEqual(foreseen(policy).method === "guard", before.length > 0)
            }
          })
        )
      })
    )
  })

  it.scoped("is its subagents' too, and so are its guards", () =>
    Effect.gen(function* () {
      const family = yield* Family.start({
        script: {
          main: [Family.calls(Family.delegate("helper")), { text: "done" }],
          helper: [Family.work("a", "b"), { text: "worked" }]
        },
        agent: {
          policy: Policy.make({ whitelist: { tools: ["delegate", "work"] } }),
          guards: [({ params }) => (JSON.stringify(params).includes("b") ? Effect.fail("not b") : Effect.void)]
        }
      })
      yield* family.agent.run("go")
      assert.deepStrictEqual(family.worked, [{ agent: "main/helper", name: "a" }])
      assert.deepStrictEqual(
        Family.ofTag(yield* family.events, "PermissionResolved").map(({ agent, granted, method }) => [
          agent,
          granted,
          method
        ]),
        [
          ["main", true, "whitelist"],
          ["main/helper", true, "whitelist"],
          ["main/helper", false, "guard"]
        ]
      )
    })
  )

  it.effect("is no other agent's of the same runtime", () =>
    Effect.gen(function* () {
      const { policy } = yield* Effect.scoped(
        Effect.gen(function* () {
          const mine = yield* Effect.orDie(TestAgent.start({ policy: Policy.make({ defaultPolicy: "allow" }) }))
          const other = yield* TestAgent.start()
          return {
            policy: [(yield* mine.agent.permissions.status).mode, (yield* other.agent.permissions.status).mode]
          }
        }).pipe(Effect.provide(TestAgent.layer({ toolkit, script: [] })), Effect.provide(handlers))
      )
      assert.deepStrictEqual(policy, ["allow", "ask"])
    })
  )
})

describe("the guards of an agent", () => {
  it.effect("are added to the runtime's, which come first", () =>
    Effect.gen(function* () {
      const limit = Guard.forTool(Pay, ({ amount }) =>
        amount > 100 ? Effect.fail(`${amount + 0} is too much`) : Effect.void
      )
      const own = { guards: [limit] }
      assert.deepStrictEqual(
        yield* resultsOf(
          { defaultPolicy: "allow", guards: { deny: { arguments: ["7"] } } },
          own,
          pay("7"),
          pay("101"),
          pay("99")
        ),
        ["Permission denied: forbidden by rule 7", "Permission denied: 101 is too much", "paid"]
      )
    })
  )

  it("look at one tool's calls, and refuse arguments that are not its own", () => {
    const seen: Array<number> = []
    const guard = Guard.forTool(Pay, ({ amount }) => Effect.sync(() => void seen.push(amount)))
    return Effect.runPromise(
      Effect.gen(function* () {
        const known = yield* registry
        const look = (name: string, params: unknown) => {
          const entry = known.get(name)
          assert(entry !== undefined)
          const subject = Policy.subject(Policy.defaults, entry, params)
          return Effect.option(Effect.flip(guard({ tool: name, params, subject, entry })))
        }
        assert.deepStrictEqual(yield* look("pay", { amount: "5" }), Option.none())
        assert.deepStrictEqual(yield* look("shell", { command: "pay" }), Option.none())
        assert.match(String(yield* look("pay", { amount: [] })), /a guard of pay cannot read the arguments/)
        assert.match(String(yield* look("pay", undefined)), /a guard of pay cannot read the arguments/)
        assert.deepStrictEqual(seen, [5])
      })
    )
  })
})
