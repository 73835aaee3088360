import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as StatusLine from "../../../src/tui/view/StatusLine.js"
import * as Display from "../../../src/tui/terminal/Display.js"

const all: StatusLine.Facts = {
  model: "anthropic/claude-sonnet-5-5",
  branch: "main",
  mode: "ask",
  context: { tokens: 340_000, window: 1_000_000 },
  cost: { amount: 0.123, currency: "USD" },
  todos: { done: 2, all: 5 },
  jobs: 1
}

describe("the status line", () => {
  it("loses what weighs less where there is less room", () => {
    const widths = [120, 84, 70, 60, 50, 40, 30, 20, 10, 5, 2, 0]
    assert.deepStrictEqual(
      [...new Set(widths.map((columns) => StatusLine.row(all, columns)))],
      [
        "anthropic/claude-sonnet-5-5 · git main · ask · context 34% · $0.12 · todos 2/5 · 1 job",
        "claude-sonnet-5-5 · git main · ask · context 34% · $0.12 · todos 2/5 · 1 job",
        "claude-sonnet-5-5 · ask · context 34% · $0.12 · todos 2/5 · 1 job",
        "claude-sonnet-5-5 · ask · context 34% · todos 2/5 · 1 job",
        "claude-sonnet-5-5 · ask · context 34% · 1 job",
        "ask · context 34% · 1 job",
        "ask · context 34%",
        "ask",
        ""
      ]
    )
  })

  it("says nothing of what nobody knows or has", () => {
    const little = { model: "offline/offline", mode: "ask" }
    assert.strictEqual(StatusLine.row(little, 80), "offline/offline · ask")
    const none = { ...little, cost: { amount: 0, currency: "USD" }, todos: { done: 0, all: 0 }, jobs: 0 }
    assert.strictEqual(StatusLine.row(none, 80), "offline/offline · ask")
    assert.strictEqual(
      StatusLine.row({ ...little, context: { tokens: 12_345 } }, 80),
      "offline/offline · ask · context 12k"
    )
    assert.deepStrictEqual(StatusLine.sentences(little), [
      "Model: offline/offline",
      "Mode: ask",
      "Context: unknown until the first answer"
    ])
  })

  it("says the same in words", () => {
    assert.deepStrictEqual(StatusLine.sentences(all), [
      "Model: anthropic/claude-sonnet-5-5",
      "Branch: main",
      "Mode: ask",
      "Context: 34% of the window, 340,000 of 1,000,000 tokens",
      "Cost so far: $0.12; /cost shows it by agent",
      "Todos: 2 of 5 done",
      "Background: 1 job"
    ])
  })

  it("never breaks its row, whatever a model, a branch or a currency is called", () => {
    const text = fc.oneof(fc.string(), fc.fullUnicodeString(), fc.constantFrom("\x1b[2J", "a\nb", "日本/語", "🏳️‍🌈"))
    const facts = fc.record({
      model: text,
      mode: fc.constantFrom("ask", "deny"),
      branch: fc.option(text, { nil: undefined }),
      context: fc.option(
        fc.record({ tokens: fc.nat(), window: fc.option(fc.integer({ min: 1 }), { nil: undefined }) }),
        {
          nil: undefined
        }
      ),
      cost: fc.option(
        fc.record({
          amount: fc.double({ min: 0, max: 1e6, noNaN: true }),
          currency: fc.option(text, { nil: undefined })
        }),
        {
          nil: undefined
        }
      ),
      jobs: fc.nat(9)
    })
    fc.assert(
      fc.property(facts, fc.integer({ min: 0, max: 140 }), (one, columns) => {
        const row = StatusLine.row(one as StatusLine.Facts, columns)
        assert.isAtMost(Display.width(row), columns)
        assert.notMatch([row, ...StatusLine.sentences(one as StatusLine.Facts)].join(""), /\p{Cc}/u)
      })
    )
  })

  it("writes money as people do", () => {
    const usd = (amount: number) => StatusLine.money({ amount, currency: "USD" })
    assert.deepStrictEqual([0, 0.000_01, 0.0004, 0.0123, 0.0949, 0.095, 0.5, 12.345, 1234.5].map(usd), [
      "$0.00",
      "<$0.0001",
      "$0.0004",
      "$0.01",
      "$0.09",
      "$0.10",
      "$0.50",
      "$12.35",
      "$1234.50"
    ])
    assert.strictEqual(StatusLine.money({ amount: 2, currency: "EUR" }), "2.00 EUR")
    assert.strictEqual(StatusLine.money({ amount: 2, currency: undefined }), "2.00")
  })
})
