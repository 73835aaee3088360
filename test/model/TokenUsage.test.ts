import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as TokenUsage from "../../src/model/TokenUsage.js"

describe("the usage of a call", () => {
  it("is the whole prompt, whether a provider counts its cached part beside it or within", () => {
    const usage = { inputTokens: 10, cachedInputTokens: 900, cacheWriteTokens: 50, outputTokens: 1 }
    assert.strictEqual(TokenUsage.of("anthropic/m", usage).input, 960)
    assert.strictEqual(TokenUsage.of("openai/m", usage).input, 960, "more cached than there is: it was counted apart")
    const within = { inputTokens: 950, cachedInputTokens: 900, cacheWriteTokens: 50, outputTokens: 1 }
    assert.strictEqual(TokenUsage.of("openai/m", within).input, 950)
    assert.strictEqual(TokenUsage.of("anthropic/m", { ...within, cachedInputTokens: 9 }).input, 1_009)
  })

  it("takes of a context window what the prompt takes, and nothing where nobody told", () => {
    assert.deepStrictEqual(TokenUsage.contextOf("openai/m", { inputTokens: 7 }, 100), { tokens: 7, window: 100 })
    assert.deepStrictEqual(TokenUsage.contextOf("openai/m", { inputTokens: 7 }, undefined), { tokens: 7 })
    for (const usage of [{}, { inputTokens: 0, outputTokens: 3 }, { inputTokens: Number.NaN }])
      assert.isUndefined(TokenUsage.contextOf("openai/m", usage, 100))
  })

  it("is reported again as it was, without what cannot be known any more", () => {
    for (const model of ["anthropic/a", "openai/o", "google/g"]) {
      const usage = { inputTokens: 950, cachedInputTokens: 900, outputTokens: 7, reasoningTokens: 2 }
      const { cached, input, output } = TokenUsage.of(model, usage)
      const again = TokenUsage.of(model, TokenUsage.reported(model, { cached, input, output }))
      assert.deepInclude(again, { cached, input, output }, model)
    }
  })

  it("has parts that are no more than the whole, whatever a server reports", () => {
    const amount = fc.option(fc.oneof(fc.integer({ min: -5, max: 1_000 }), fc.constantFrom(Number.NaN, Infinity)), {
      nil: undefined
    })
    const reported = fc.record({
      inputTokens: amount,
      outputTokens: amount,
      cachedInputTokens: amount,
      cacheWriteTokens: amount,
      reasoningTokens: amount
    })
    fc.assert(
      fc.property(reported, fc.constantFrom("anthropic/a", "openai/o", "google/g"), (usage, model) => {
        const { cached, input, output, written } = TokenUsage.of(model, usage)
        assert.isAtLeast(Math.min(cached, input, output, written), 0)
        assert.isAtMost(cached + written, input)
      })
    )
  })
})
