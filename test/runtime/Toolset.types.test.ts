/**
 * Names of tools are in the types: what must not compile, and what the rest is.
 *
 * @effect-diagnostics missingEffectContext:skip-file
 * @effect-diagnostics missingEffectError:skip-file
 * @effect-diagnostics floatingEffect:skip-file
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Interactor } from "../../src/interaction/Interactor.js"
import * as Guard from "../../src/permission/Guard.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Toolset from "../../src/runtime/Toolset.js"
import * as Stage from "../../src/session/Stage.js"

const Search = Tool.make("search")
const Pay = Tool.make("pay", { parameters: { amount: Schema.NumberFromString } })
const toolkit = Toolkit.make(Search, Pay)
const shop = Toolset.of(toolkit)
type Needs = AgentRuntime.AgentRuntime | Interactor | Scope.Scope

describe("the names of tools", () => {
  it("are compared where a runtime is given its toolkit and its policy", () => {
    AgentRuntime.layer({ toolkit, policy: Policy.make({ whitelist: { tools: ["pay"] } }) })
    AgentRuntime.layer({ toolkit, policy: Policy.make({ guards: { deny: { tools: ["mcp__bank__*", "search"] } } }) })
    AgentRuntime.layer({ toolkit, policy: Policy.make({ whitelist: { patterns: ["anything *"] } }) })
    AgentRuntime.layer({ toolkit, policy: Policy.defaults })
    // @ts-expect-error: there is no tool of this name.
    AgentRuntime.layer({ toolkit, policy: Policy.make({ whitelist: { tools: ["pya"] } }) })
    // @ts-expect-error: nor for one that denies.
    AgentRuntime.layer({ toolkit, policy: Policy.make({ blacklist: { tools: ["search", "pya"] } }) })
    // @ts-expect-error: nor for a hard rule.
    AgentRuntime.layer({ toolkit, policy: Policy.make({ guards: { deny: { tools: ["pya"] } } }) })
    // @ts-expect-error: nor under the old name.
    AgentRuntime.layer({ toolkit, policy: PermissionFile.policy({ blacklist: { tools: ["pya"] } }) })
    AgentRuntime.layer({
      toolkit,
      policy: Policy.make({ whitelist: { patterns: ["pay(amount=1)", "p*(x)", "$(a)"] } })
    })
    // @ts-expect-error: nor for a pattern over its calls.
    AgentRuntime.layer({ toolkit, policy: Policy.make({ blacklist: { patterns: ["git *", "pya(amount=*)"] } }) })
    // @ts-expect-error: nor for one that reserves them.
    AgentRuntime.layer({ toolkit, policy: Policy.make({ approvals: [{ patterns: ["pya(amount=*)"] }] }) })
    const joint = Policy.make({ whitelist: { tools: ["pay"] }, blacklist: { tools: ["pya"] } })
    // @ts-expect-error: a policy names the tools of all its lists.
    AgentRuntime.make({ toolkit, policy: joint })
    // @ts-expect-error: there is no such field, also where the names are right.
    Policy.make({ whitelst: { tools: ["pay"] } })
    // @ts-expect-error: nor further in.
    Policy.make({ whitelist: { tool: ["pay"] } })
  })

  it("are not compared in a policy that is for several toolkits, or from a file", () => {
    const shared: Policy.Policy = Policy.make({ blacklist: { tools: ["drop"] } })
    AgentRuntime.layer({ toolkit, policy: shared })
    const names: ReadonlyArray<string> = ["drop"]
    AgentRuntime.layer({ toolkit, policy: Policy.make({ blacklist: { tools: names } }) })
    AgentRuntime.layer({ toolkit, policy: Policy.merge(shared, Policy.defaults, { trusted: true }) })
    expectTypeOf(Policy.make({ blacklist: { tools: ["drop"] } })).toExtend<Policy.Policy>()
  })

  it("are compared where an agent is started, and then starting does not fail for them", () => {
    const plain = Agent.start({ tools: ["pya"] })
    expectTypeOf(plain).toEqualTypeOf<Effect.Effect<Agent.Agent, Agent.NotStarted, Needs>>()
    expectTypeOf(Agent.start({ guards: [] })).toEqualTypeOf<Effect.Effect<Agent.Agent, never, Needs>>()
    const typed = shop.start({ tools: ["pay"], policy: shop.policy({ whitelist: { tools: ["pay", "mcp__bank__*"] } }) })
    expectTypeOf(typed).toEqualTypeOf<Effect.Effect<Agent.Agent, never, Needs>>()
    expectTypeOf(shop.start({ tools: [], limits: {} })).toEqualTypeOf<
      Effect.Effect<Agent.Agent, Exclude<Agent.NotStarted, Agent.ToolsUnknown>, Needs>
    >()
    // @ts-expect-error: there is no tool of this name.
    shop.start({ tools: ["pya"] })
    // @ts-expect-error: nor for its policy.
    shop.start({ policy: Policy.make({ whitelist: { tools: ["pya"] } }) })
    // @ts-expect-error: nor where its policy is made.
    shop.policy({ blacklist: { tools: ["pya"] } })
    shop.start({ policy: shop.policy({ whitelist: { tools: ["pay"], patterns: ["search(q=*)"] } }) })
    // @ts-expect-error: nor in a pattern of it.
    shop.start({ policy: shop.policy({ whitelist: { patterns: ["serch(q=*)"] } }) })
    // @ts-expect-error: a group is no tool of the toolkit.
    shop.start({ tools: ["money"] })
    Toolset.of(toolkit, { groups: ["money"] }).start({ tools: ["money", "search"] })
    // @ts-expect-error: and no other group is known.
    Toolset.of(toolkit, { groups: ["money"] }).start({ tools: ["honey"] })
  })

  it("are compared in stages and profiles", () => {
    const stage = {
      name: "pay",
      act: "Pay.",
      assert: () => Effect.succeed(Stage.ok(1)),
      retryPolicy: { maxAttempts: 1 }
    }
    expectTypeOf(shop.stage({ ...stage, allowedTools: ["pay"] })).toEqualTypeOf<Stage.Stage<number>>()
    // @ts-expect-error: there is no tool of this name.
    shop.stage({ ...stage, allowedTools: ["pya"] })
    shop.profile({ name: "buyer", description: "buys", plugins: ["search"] })
    shop.profile({ name: "buyer", description: "buys", plugins: null })
    // @ts-expect-error: nor for a profile.
    shop.profile({ name: "buyer", description: "buys", plugins: ["serch"] })
  })

  it("give a guard the arguments of its tool, decoded", () => {
    Guard.forTool(Pay, (params) => {
      expectTypeOf(params).toEqualTypeOf<{ readonly amount: number }>()
      return Effect.void
    })
    // @ts-expect-error: it has no such argument.
    Guard.forTool(Pay, ({ price }) => (price > 1 ? Effect.fail("too much") : Effect.void))
    assert.isFunction(Guard.forTool(Search, () => Effect.void))
  })
})
