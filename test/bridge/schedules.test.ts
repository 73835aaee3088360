/**
 * Parent, child, person, clock, withdrawal and end in random order, down to the single steps of the fibers. Whatever the
 * order, nobody is stuck and every question has one end: see `BridgeWorld` for all that must be true.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as BridgeWorld from "../kit/BridgeWorld.js"
import * as Runs from "../kit/Runs.js"

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
  { weight: 4, arbitrary: turn },
  { weight: 1, arbitrary: end }
)

const round = fc
  .tuple(ask, fc.array(action, { minLength: 2, maxLength: 7, size: "max" }))
  .map(([first, rest]) => [first, ...rest])

const planOf = (tree: BridgeWorld.Plan["tree"], policies: boolean): fc.Arbitrary<BridgeWorld.Plan> =>
  fc
    .record({
      tree: fc.constant(tree),
      timeout: fc.constantFrom(0, 0, 5, 10),
      onTimeout: fc.constantFrom("deny" as const, "deny" as const, "allow" as const),
      dialogs: fc.constantFrom("one" as const, "unbounded" as const),
      whenNobody: fc.constantFrom("fail" as const, "wait" as const),
      policy: policies
        ? fc.record({ does: fc.constantFrom(...BridgeWorld.policies), after: fc.constantFrom(0, 3) })
        : fc.constant(undefined),
      rounds: fc.array(round, { minLength: 1, maxLength: 12, size: "max" }),
      seed: fc.integer()
    })
    .map((plan) => (plan.policy?.does === "hangs" && plan.timeout === 0 ? { ...plan, timeout: 5 } : plan))

/**
 * At least a share of so many schedules, and in them every kind of thing so often that the search is worth its name.
 */
const explore = async (
  trees: ReadonlyArray<BridgeWorld.Plan["tree"]>,
  options: { readonly policies: boolean; readonly schedules: number; readonly often: Readonly<Record<string, number>> }
) => {
  const schedules = Runs.of(options.schedules)
  const counts = new Map<string, number>()
  const seen = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1)
  const property = fc.property(fc.oneof(...trees.map((tree) => planOf(tree, options.policies))), (plan) => {
    const wrong = BridgeWorld.play(plan, seen)
    if (wrong.length > 0) assert.fail(wrong.join("\n"))
  })
  // Failures are kept and told by thousands; what they were needs no stack of its own.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    while ((counts.get("schedules") ?? 0) < schedules) {
      fc.assert(property, { numRuns: 50 })
      // Lets vitest speak to its worker.
      await new Promise(setImmediate)
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  // Of few schedules half the share: what is rare may be there once more or less.
  const least = (often: number) => (schedules < 10_000 ? Math.floor((often * schedules) / 20_000) : often)
  const rare = Object.entries(options.often).filter(([what, often]) => (counts.get(what) ?? 0) < least(often))
  assert.deepStrictEqual(rare, [], JSON.stringify(Object.fromEntries(counts), undefined, 2))
}

/** In ten thousand schedules, far less than there are: nothing of it may go missing. */
const common = {
  "an asker is interrupted": 1_000,
  "a dialog is dismissed": 1_000,
  "a child is closed with an open question": 200,
  "the root ends with an open question": 200,
  "the person leaves an open dialog": 80,
  "from outside: answer": 100,
  "from outside: answer, not open": 100,
  "from outside: withdraw": 100,
  "from outside: garbage": 100,
  "the person: cancel": 100,
  "the person: crash": 100,
  "the person: nonsense": 100,
  "ends answered at depth 1": 2_000,
  "ends recheck at depth 1": 50,
  "ends timeout at depth 1": 8,
  "ends as InteractionTimedOut": 50,
  "ends as InteractionCancelled": 200,
  "ends as InteractorUnavailable": 200,
  "a reply comes too late": 20
}

const deep = {
  ...common,
  "ends answered at depth 2": 500,
  "ends recheck at depth 2": 20,
  "ends timeout at depth 2": 5
}

describe("the bridge, in any order", () => {
  it(
    "one child and its parent",
    () => explore(["child"], { policies: false, schedules: 35_000, often: common }),
    120_000
  )

  it(
    "a child and its own child",
    () => explore(["nested"], { policies: false, schedules: 30_000, often: deep }),
    120_000
  )

  it(
    "siblings, and families of four",
    () => explore(["siblings", "family", "deep"], { policies: false, schedules: 15_000, often: common }),
    120_000
  )

  it(
    "families whose mediators decide, crash, talk nonsense and never end",
    () =>
      explore(["child", "nested", "family"], {
        policies: true,
        schedules: 20_000,
        often: {
          ...common,
          "a policy answers": 2_000,
          "a policy knows nothing": 2_000,
          "a policy misfits": 2_000,
          "a policy crashes": 2_000,
          "a policy hangs": 2_000
        }
      }),
    120_000
  )
})
