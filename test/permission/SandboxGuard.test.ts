import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Guard from "../../src/permission/Guard.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as SandboxGuard from "../../src/permission/SandboxGuard.js"
import type * as Sandbox from "../../src/sandbox/Sandbox.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as Kit from "../kit/gate.js"

const confined = (network: boolean): Sandbox.State => ({ _tag: "Confined", by: "bubblewrap", writable: [], network })
const unconfined: Sandbox.State = { _tag: "Unconfined", reason: "It is turned off." }

/** A sandbox in this state, which is known before anybody asks, or only then. */
const sandboxOf = (state: Sandbox.State, isKnown: boolean) => {
  let asked = 0
  const sandbox: Sandbox.Service = {
    mode: "auto",
    state: Effect.sync(() => (asked++, state)),
    known: () => (isKnown || asked > 0 ? state : undefined),
    start: () => Effect.fail("nothing is started here")
  }
  return { sandbox, asked: () => asked }
}

const outside = "It runs outside the sandbox"
const network = "It reaches the network and the services of this machine from its sandbox"

/** The arguments; how the call runs where there is no sandbox, in one, and in one with the network; the questions there. */
const calls: ReadonlyArray<readonly [unknown, ReadonlyArray<ToolRegistry.RunsHow>, ReadonlyArray<string | undefined>]> =
  [
    [{ command: "ls" }, ["open", "confined", "confined"], [undefined, undefined, undefined]],
    [undefined, ["open", "confined", "confined"], [undefined, undefined, undefined]],
    [null, ["open", "confined", "confined"], [undefined, undefined, undefined]],
    ["ls", ["open", "confined", "confined"], [undefined, undefined, undefined]],
    [
      { sandbox: "network", reason: " it downloads " },
      ["open", "network", "confined"],
      [undefined, `${network}: it downloads`, undefined]
    ],
    [
      { sandbox: "off", reason: "it installs" },
      ["open", "left", "left"],
      [undefined, `${outside}: it installs`, `${outside}: it installs`]
    ],
    ...[{ sandbox: "whatever" }, { sandbox: true, reason: "  " }, { sandbox: null, reason: 7 }].map(
      (params) =>
        [
          params,
          ["open", "left", "left"],
          [undefined, `${outside}: no reason is given`, `${outside}: no reason is given`]
        ] as const
    )
  ]
const states = [unconfined, confined(false), confined(true)]

const look = (sandbox: Sandbox.Service, entry: ToolRegistry.Entry, params: unknown) =>
  SandboxGuard.make(sandbox)({
    tool: entry.name,
    params,
    entry,
    subject: PermissionRule.subject({ tool: entry.name, params })
  })

describe("a command tool with a sandbox", () => {
  for (const isKnown of [true, false]) {
    it.effect(`asks about calls that leave it or want the network, known before: ${isKnown}`, () =>
      Effect.gen(function* () {
        const tools = yield* Kit.registry
        const [boxed, plain] = [tools.get("boxed"), tools.get("shell")]
        assert(boxed !== undefined && plain !== undefined)
        for (const [params, hows, questions] of calls) {
          for (const [at, state] of states.entries()) {
            const { asked, sandbox } = sandboxOf(state, isKnown)
            const informed = ToolRegistry.fromEntries(SandboxGuard.informed(tools, sandbox))
            assert.strictEqual(informed.get("shell"), plain)
            const runs = () => informed.get("boxed")?.runs?.(params)
            assert.strictEqual(runs(), isKnown ? hows[at] : undefined)
            assert.isUndefined(yield* look(sandbox, plain, params))
            assert.strictEqual(asked(), 0)
            const found = yield* look(sandbox, boxed, params)
            assert.strictEqual(found?.reason, questions[at], JSON.stringify([params, state]))
            if (found !== undefined) assert.isTrue(found instanceof Guard.Ask && found.coveredBy === "all")
            assert.strictEqual(asked(), isKnown ? 0 : 1)
            assert.strictEqual(runs(), hows[at])
          }
        }
      })
    )
  }
})
