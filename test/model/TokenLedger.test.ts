import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import type { SessionId } from "../../src/core/Id.js"
import type { Usage } from "../../src/event/AgentEvent.js"
import * as TokenLedger from "../../src/model/TokenLedger.js"

const root = "ses_1" as SessionId
const child = "ses_2" as SessionId

const entry = (usage: Usage, other: Partial<TokenLedger.Entry> = {}): TokenLedger.Entry => ({
  sessionId: root,
  agent: "main",
  model: "openai/m",
  usage,
  kind: "call",
  ...other
})
const inChild = { sessionId: child, agent: "main/explore" }

describe("TokenLedger", () => {
  it("adds up calls, summaries, retries and tokens by session, agent and tree", () => {
    const ledger = TokenLedger.make()
    ledger.record(entry({ inputTokens: 100, outputTokens: 20, cachedInputTokens: 40, reasoningTokens: 5 }))
    ledger.record(entry({}, { kind: "retry" }))
    ledger.record(entry({ inputTokens: 7, outputTokens: 3 }, { kind: "summary" }))
    ledger.record(entry({ inputTokens: 50, outputTokens: 1 }, inChild))
    ledger.record(entry({ inputTokens: 1, outputTokens: 1 }, { ...inChild, sessionId: "ses_3" as SessionId }))
    const main = {
      calls: 2,
      summaries: 1,
      retries: 1,
      inputTokens: 107,
      outputTokens: 23,
      cachedTokens: 40,
      unknownCalls: 0,
      cost: undefined,
      unpriced: ["openai/m"]
    }
    assert.deepStrictEqual(ledger.of(root), main)
    assert.deepStrictEqual(ledger.totals(), { ...main, calls: 4, inputTokens: 158, outputTokens: 25 })
    const explore = { ...main, summaries: 0, retries: 0, inputTokens: 51, outputTokens: 2, cachedTokens: 0 }
    assert.deepStrictEqual(
      [...ledger.byAgent()],
      [
        ["main", main],
        ["main/explore", explore]
      ]
    )
  })

  it("knows nothing of a session it never heard of", () => {
    const ledger = TokenLedger.make({ limits: { sessionTokens: 10, treeTokens: 20 } })
    assert.strictEqual(ledger.of(root).calls, 0)
    assert.strictEqual(ledger.of(root).cost, 0)
    assert.isUndefined(ledger.exceeded(root))
    assert.deepStrictEqual(TokenLedger.lines(ledger), ["No model was called yet."])
  })

  it("counts a call that did not report all of its usage as unknown, and invents nothing", () => {
    const ledger = TokenLedger.make({ prices: { "openai/m": { input: 1, output: 1 } } })
    ledger.record(entry({}))
    ledger.record(entry({ inputTokens: 12 }))
    ledger.record(entry({ inputTokens: Number.NaN, outputTokens: -5, cachedInputTokens: Number.POSITIVE_INFINITY }))
    const { calls, inputTokens, outputTokens, unknownCalls } = ledger.totals()
    assert.deepStrictEqual([calls, unknownCalls, inputTokens, outputTokens], [3, 2, 12, 0])
    assert.match(TokenLedger.lines(ledger).join("\n"), /not report all tokens of 2 calls/)
  })

  describe("cost", () => {
    it.each([-3, Number.NaN, -Infinity, Infinity])(
      "is never given back: a model that says %d costs its price",
      (cost) => {
        const prices = { "openai/m": { input: 1, output: 1 } }
        const ledger = TokenLedger.make({ currency: "USD", prices, limits: { treeCost: 2 } })
        ledger.record(entry({ inputTokens: 1_000_000, outputTokens: 0 }))
        ledger.record(entry({ inputTokens: 1_000_000, outputTokens: 0, cost }))
        assert.strictEqual(ledger.totals().cost, 2)
        assert.strictEqual(ledger.exceeded(root)?.limit, "treeCost")
      }
    )

    it("takes the cached part of the input at its own price, where there is one", () => {
      const ledger = TokenLedger.make({
        prices: { "openai/m": { input: 2, output: 10, cached: 0.5 }, "openai/n": { input: 2, output: 10 } }
      })
      ledger.record(entry({ inputTokens: 1_000_000, outputTokens: 100_000, cachedInputTokens: 400_000 }))
      assert.closeTo(ledger.totals().cost ?? -1, 1.2 + 0.2 + 1, 1e-9)
      ledger.record(
        entry({ inputTokens: 1_000_000, outputTokens: 0, cachedInputTokens: 400_000 }, { model: "openai/n" })
      )
      assert.closeTo(ledger.totals().cost ?? -1, 2.4 + 2, 1e-9)
    })

    it("adds what Anthropic read from its cache to the input, and what Google reasoned to the output", () => {
      const prices = { input: 1, output: 10, cached: 0.1 }
      const ledger = TokenLedger.make({ prices: { "anthropic/c": prices, "google/g": prices } })
      const usage = { inputTokens: 200_000, outputTokens: 10_000, cachedInputTokens: 100_000, reasoningTokens: 5_000 }
      ledger.record(entry(usage, { model: "anthropic/c" }))
      const { cost: anthropic, ...first } = ledger.totals()
      assert.deepStrictEqual([first.inputTokens, first.outputTokens, first.cachedTokens], [300_000, 10_000, 100_000])
      assert.closeTo(anthropic ?? -1, 0.2 + 0.01 + 0.1, 1e-9)
      ledger.record(entry(usage, { model: "google/g", ...inChild }))
      const { cost: google, ...second } = ledger.of(child)
      assert.deepStrictEqual([second.inputTokens, second.outputTokens], [200_000, 15_000])
      assert.closeTo(google ?? -1, 0.1 + 0.01 + 0.15, 1e-9)
    })

    it("takes what went into the cache at its own price, beside the input or as a part of it", () => {
      const price = { input: 1, output: 0, cached: 0.1, written: 2 }
      const ledger = TokenLedger.make({ prices: { "anthropic/c": price, "openai/o": price } })
      const usage = { inputTokens: 300_000, outputTokens: 0, cachedInputTokens: 100_000, cacheWriteTokens: 200_000 }
      ledger.record(entry(usage, { model: "anthropic/c" }))
      assert.closeTo(ledger.totals().cost ?? -1, 0.3 + 0.01 + 0.4, 1e-9)
      assert.strictEqual(ledger.totals().inputTokens, 600_000)
      ledger.record(entry(usage, { model: "openai/o", ...inChild }))
      assert.closeTo(ledger.of(child).cost ?? -1, 0 + 0.01 + 0.4, 1e-9)
    })

    it("is that of a long call where its whole input is longer than the limit", () => {
      const long = { above: 100_000, input: 5, output: 20 }
      const ledger = TokenLedger.make({ prices: { "openai/m": { input: 1, output: 10, cached: 0.1, long } } })
      ledger.record(entry({ inputTokens: 100_000, outputTokens: 10_000 }))
      assert.closeTo(ledger.totals().cost ?? -1, 0.1 + 0.1, 1e-9)
      ledger.record(entry({ inputTokens: 100_001, outputTokens: 10_000, cachedInputTokens: 50_000 }, inChild))
      assert.closeTo(
        ledger.of(child).cost ?? -1,
        0.500005 + 0.2,
        1e-9,
        "cached input too, which has no price of its own"
      )
    })

    it("is told once a model was used whose price is found", () => {
      const ledger = TokenLedger.make({
        prices: (model) => (model === "openai/m" ? { input: 1, output: 1 } : undefined),
        currency: "USD"
      })
      ledger.record(entry({ inputTokens: 5, outputTokens: 5 }, { model: "own/x" }))
      assert.isFalse(ledger.priced)
      assert.notInclude(TokenLedger.lines(ledger).join("\n"), "cost")
      ledger.record(entry({ inputTokens: 1_000_000, outputTokens: 0 }, inChild))
      assert.isTrue(ledger.priced)
      assert.strictEqual(ledger.of(child).cost, 1)
    })

    it("is unknown from the first use of a model without a price, and names each such model once", () => {
      const ledger = TokenLedger.make({ prices: { "openai/m": { input: 1, output: 1 } }, currency: "EUR" })
      ledger.record(entry({ inputTokens: 1_000_000, outputTokens: 0 }))
      for (const model of ["x/a", "x/b", "x/a"]) {
        ledger.record(entry({ inputTokens: 1, outputTokens: 1 }, { ...inChild, model }))
      }
      assert.isUndefined(ledger.totals().cost)
      assert.deepStrictEqual(ledger.totals().unpriced, ["x/a", "x/b"])
      assert.strictEqual(ledger.of(root).cost, 1)
      assert.include(TokenLedger.lines(ledger), "No price for x/a, x/b.")
    })

    it("needs no price for what used nothing, and one for what may have used something", () => {
      const ledger = TokenLedger.make()
      ledger.record(entry({ inputTokens: 0, outputTokens: 0 }, { model: "offline" }))
      ledger.record(entry({}, { kind: "retry" }))
      assert.strictEqual(ledger.totals().cost, 0)
      ledger.record(entry({}, { model: "x/silent" }))
      assert.isUndefined(ledger.totals().cost)
      assert.deepStrictEqual(ledger.totals().unpriced, ["x/silent"])
    })
  })

  describe("limits", () => {
    const used = (tokens: number, other: Partial<TokenLedger.Entry> = {}) =>
      entry({ inputTokens: tokens, outputTokens: 0 }, other)

    it("are reached when as much was used as is allowed, by one session or by the tree", () => {
      const ledger = TokenLedger.make({ limits: { sessionTokens: 10, treeTokens: 15 } })
      ledger.record(used(9))
      assert.isUndefined(ledger.exceeded(root))
      ledger.record(used(1))
      const own = { limit: "session", sessionId: root, used: 10, allowed: 10, step: 10 } as const
      assert.deepStrictEqual(ledger.exceeded(root), own)
      assert.isUndefined(ledger.exceeded(child))
      ledger.record(used(5, inChild))
      assert.deepStrictEqual(ledger.exceeded(root), own)
      const tree = { limit: "tree", sessionId: child, used: 15, allowed: 15, step: 15 } as const
      assert.deepStrictEqual(ledger.exceeded(child), tree)
    })

    it("are raised for the session that asked, or for all, and by more than one long call went over", () => {
      const ledger = TokenLedger.make({ limits: { sessionTokens: 10, treeTokens: 1_000 } })
      ledger.record(used(95))
      ledger.record(used(12, inChild))
      const exceeded = ledger.exceeded(root)
      assert(exceeded !== undefined)
      ledger.raise(exceeded, exceeded.step)
      assert.isUndefined(ledger.exceeded(root))
      assert.strictEqual(ledger.exceeded(child)?.limit, "session")
      ledger.record(used(9))
      assert.isUndefined(ledger.exceeded(root))
      ledger.record(used(1))
      assert.deepStrictEqual(ledger.exceeded(root), { ...exceeded, used: 105, allowed: 105 })
      ledger.record(used(900, { sessionId: "ses_9" as SessionId }))
      const tree = ledger.exceeded("ses_8" as SessionId)
      assert(tree?.limit === "tree")
      ledger.raise(tree, 1_000)
      assert.isUndefined(ledger.exceeded("ses_8" as SessionId))
    })

    const price = { input: 1_000_000, output: 0 }
    const day = (name: string) => {
      const spent = new Map<string, number>()
      const shared = {
        name,
        today: () => shared.name,
        spent: () => spent.get(shared.name) ?? 0,
        add: (cost: number) => void spent.set(shared.name, shared.spent() + cost)
      }
      return shared
    }

    it("of money hold for a run, a session and a day, the narrowest first, children and summaries included", () => {
      const shared = day("monday")
      const make = () =>
        TokenLedger.make({ prices: () => price, limits: { runCost: 3, treeCost: 10, dayCost: 15 }, day: shared })
      const ledger = make()
      ledger.record(used(1))
      ledger.record(used(1, { ...inChild, kind: "summary" }))
      assert.isUndefined(ledger.exceeded(root))
      ledger.record(used(1, { ...inChild, kind: "retry" }))
      assert.deepStrictEqual(ledger.exceeded(child), {
        limit: "runCost",
        sessionId: child,
        used: 3,
        allowed: 3,
        step: 3
      })
      ledger.beginRun()
      assert.isUndefined(ledger.exceeded(root))
      ledger.record(used(7))
      const run = ledger.exceeded(root)
      assert(run?.limit === "runCost")
      ledger.raise(run, 5)
      const tree = ledger.exceeded(root)
      assert.deepStrictEqual([tree?.limit, tree?.used], ["treeCost", 10])
      assert(tree !== undefined)
      ledger.raise(tree, 10)
      assert.isUndefined(ledger.exceeded(root))
      // Another process, on the same day.
      const other = make()
      other.record(used(2))
      assert.isUndefined(other.exceeded(root))
      other.record(used(2.5))
      other.record(used(0.5))
      other.beginRun()
      const today = other.exceeded(root)
      assert.deepStrictEqual([today?.limit, today?.used, today?.step], ["dayCost", 15, 15])
      assert.strictEqual(ledger.exceeded(root)?.limit, "dayCost")
      assert(today !== undefined)
      other.raise(today, 15)
      assert.isUndefined(other.exceeded(root))
      shared.name = "tuesday"
      for (const one of [ledger, other]) assert.isUndefined(one.exceeded(root))
      // A raise ends with its day.
      shared.add(15)
      assert.strictEqual(other.exceeded(root)?.limit, "dayCost")
    })

    it("of money count what another process spent for the session alone", () => {
      const shared = day("monday")
      const ledger = TokenLedger.make({
        prices: () => price,
        limits: { runCost: 3, treeCost: 10, dayCost: 5 },
        day: shared
      })
      ledger.record(used(9, { earlier: true }))
      assert.strictEqual(shared.spent(), 0)
      assert.isUndefined(ledger.exceeded(root))
      ledger.record(used(1))
      assert.strictEqual(ledger.exceeded(root)?.limit, "treeCost")
      assert.strictEqual(shared.spent(), 1)
      assert.strictEqual(ledger.totals().cost, 10)
    })

    it("of money do not count a model without a price, which they say", () => {
      const prices = { "openai/m": price }
      const ledger = TokenLedger.make({ prices, limits: { treeCost: 1 } })
      assert.deepStrictEqual([ledger.isUnlimited("openai/m"), ledger.isUnlimited("openai/n")], [false, true])
      ledger.record(used(5, { model: "openai/n" }))
      assert.isUndefined(ledger.exceeded(root))
      ledger.record(used(1))
      assert.strictEqual(ledger.exceeded(root)?.used, 1)
      for (const limits of [{}, { treeTokens: 1 }]) {
        assert.isFalse(TokenLedger.make({ prices, limits }).isUnlimited("openai/n"))
      }
    })
  })

  it("shows a row for each agent, numbers under each other, and a sum when there are several", () => {
    const ledger = TokenLedger.make({ prices: { "openai/m": { input: 3, output: 15 } }, currency: "USD" })
    ledger.record(entry({ inputTokens: 1_234_567, outputTokens: 8_900, cachedInputTokens: 1_000 }))
    assert.deepStrictEqual(TokenLedger.lines(ledger), [
      "agent  calls  retries      input  cached  output      cost",
      "main       1        0  1,234,567   1,000   8,900  3.84 USD"
    ])
    ledger.record(entry({ inputTokens: 10, outputTokens: 2 }, inChild))
    ledger.record(entry({}, { ...inChild, kind: "retry" }))
    assert.deepStrictEqual(TokenLedger.lines(ledger), [
      "agent         calls  retries      input  cached  output        cost",
      "main              1        0  1,234,567   1,000   8,900    3.84 USD",
      "main/explore      1        1         10       0       2  0.0001 USD",
      "total             2        1  1,234,577   1,000   8,902    3.84 USD"
    ])
  })

  it("shows no costs without prices", () => {
    const ledger = TokenLedger.make()
    ledger.record(entry({ inputTokens: 1, outputTokens: 2 }))
    assert.deepStrictEqual(TokenLedger.lines(ledger), [
      "agent  calls  retries  input  cached  output",
      "main       1        0      1       0       2"
    ])
  })

  it("has sums over agents that are those of the tree, whatever was recorded", () => {
    const amount = fc.option(fc.nat(1_000_000), { nil: undefined })
    const entries = fc.array(
      fc.record({
        sessionId: fc.constantFrom(...["ses_1", "ses_2", "ses_3"].map((id) => id as SessionId)),
        agent: fc.constantFrom("main", "main/a"),
        model: fc.constantFrom("openai/m", "anthropic/c", "google/g", "unpriced/u"),
        usage: fc.record({
          inputTokens: amount,
          outputTokens: amount,
          cachedInputTokens: amount,
          cacheWriteTokens: amount,
          reasoningTokens: amount
        }),
        kind: fc.constantFrom("call" as const, "retry" as const, "summary" as const)
      })
    )
    fc.assert(
      fc.property(entries, (all) => {
        const price = { input: 1, output: 2, cached: 0.5 }
        const ledger = TokenLedger.make({ prices: { "openai/m": price, "anthropic/c": price, "google/g": price } })
        for (const one of all) ledger.record(one)
        const total = ledger.totals()
        const agents = [...ledger.byAgent().values()]
        const sum = (of: (totals: TokenLedger.Totals) => number) => agents.reduce((all, totals) => all + of(totals), 0)
        assert.strictEqual(total.calls + total.retries, all.length)
        assert.strictEqual(
          sum(({ calls }) => calls),
          total.calls
        )
        assert.strictEqual(
          sum(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
          total.inputTokens + total.outputTokens
        )
        assert.isAtMost(total.cachedTokens, total.inputTokens)
        assert.strictEqual(total.cost === undefined, total.unpriced.length > 0)
        if (total.cost !== undefined) {
          assert.closeTo(
            sum(({ cost }) => cost ?? Number.NaN),
            total.cost,
            1e-6
          )
        }
        const widths = new Set(
          TokenLedger.lines(ledger)
            .filter((line) => /\d$|\?$/.test(line))
            .map((line) => line.length)
        )
        assert.isAtMost(widths.size, 1)
      })
    )
  })
})
