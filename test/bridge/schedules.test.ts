/**
 * Parent, child, person, clock, withdrawal and end in random order, down to the single steps of the fibers. Whatever the
 * order, nobody is stuck and every question has one end: see `BridgeWorld` for all that must be true.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as BridgeWorld from "../kit/BridgeWorld.js"

type Action = BridgeWorld.Action

const ask: fc.Arbitrary<Action> = fc.record({
  do: fc.constant("ask" as const),
  who: fc.nat(3),
  kind: fc.constantFrom(...BridgeWorld.kinds)
})
const react: fc.Arbitrary<Action> = fc.record({
  do: fc.constant("react" as const),
  dialog: fc.nat(3),
  deed: fc.constantFrom(...BridgeWorld.deeds)
})
const outside: fc.Arbitrary<Action> = fc.record({
  do: fc.constant("outside" as const),
  request: fc.nat(3),
  what: fc.constantFrom("answer" as const, "withdraw" as const, "garbage" as const)
})
const tick: fc.Arbitrary<Action> = fc.record({ do: fc.constant("tick" as const), millis: fc.constantFrom(0, 1, 5, 10) })
const interrupt: fc.Arbitrary<Action> = fc.record({ do: fc.constant("interrupt" as const), asking: fc.nat(3) })
const close: fc.Arbitrary<Action> = fc.record({ do: fc.constant("close" as const), who: fc.nat(2) })
const turn: fc.Arbitrary<Action> = fc.record({ do: fc.constantFrom("leave", "return", "all") })
const end: fc.Arbitrary<Action> = fc.constant({ do: "end" })

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: ask },
  { weight: 6, arbitrary: react },
  { weight: 2, arbitrary: outside },
  { weight: 3, arbitrary: tick },
  { weight: 3, arbitrary: interrupt },
  { weight: 1, arbitrary: close },
  { weight: 2, arbitrary: turn },
  { weight: 1, arbitrary: end }
)

const planOf = (tree: BridgeWorld.Plan["tree"], policies: boolean): fc.Arbitrary<BridgeWorld.Plan> =>
  fc.record({
    tree: fc.constant(tree),
    timeout: fc.constantFrom(0, 0, 5, 10),
    onTimeout: fc.constantFrom("deny" as const, "deny" as const, "allow" as const),
    dialogs: fc.constantFrom("one" as const, "unbounded" as const),
    whenNobody: fc.constantFrom("fail" as const, "wait" as const),
    policy: policies
      ? fc.record({ does: fc.constantFrom(...BridgeWorld.policies), after: fc.constantFrom(0, 3) })
      : fc.constant(undefined),
    actions: fc
      .tuple(ask, fc.array(action, { minLength: 2, maxLength: 7, size: "max" }))
      .map(([first, rest]) => [first, ...rest]),
    seed: fc.integer()
  })

/** Every kind of thing happened so often that the search is worth its name. */
const explore = (options: {
  readonly tree: BridgeWorld.Plan["tree"]
  readonly policies?: boolean
  readonly runs: number
  readonly often: { readonly [what: string]: number }
}) => {
  const counts = new Map<string, number>()
  const seen = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1)
  fc.assert(
    fc.property(planOf(options.tree, options.policies ?? false), (plan) => {
      const wrong = BridgeWorld.play(plan, seen)
      if (wrong.length > 0) assert.fail(wrong.join("\n"))
    }),
    { numRuns: options.runs }
  )
  for (const [what, often] of Object.entries(options.often)) {
    assert.isAtLeast(counts.get(what) ?? 0, often, `${what}, of ${JSON.stringify(Object.fromEntries(counts))}`)
  }
  return counts
}

describe("the bridge, in any order", () => {
  it("one child and its parent", () => {
    const counts = explore({ tree: "child", runs: Number(process.env["RUNS"] ?? 1000), often: {} })
    console.log(counts)
  })
  it("a child and its own child", () => {
    const counts = explore({ tree: "nested", runs: Number(process.env["RUNS"] ?? 1000), often: {} })
    console.log(counts)
  })
  it("a family under policies", () => {
    const counts = explore({ tree: "family", policies: true, runs: Number(process.env["RUNS"] ?? 1000), often: {} })
    console.log(counts)
  })
})
