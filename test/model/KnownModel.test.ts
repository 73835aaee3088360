import { assert, describe, it } from "@effect/vitest"
import * as KnownModel from "../../src/model/KnownModel.js"
import { providers } from "../../src/model/ProviderName.js"

describe("known models", () => {
  it("each name the page and the day that they are from", () => {
    assert.isAbove(KnownModel.refs().length, 10)
    for (const ref of KnownModel.refs()) {
      const { source } = KnownModel.of(ref) ?? assert.fail(ref)
      assert.strictEqual(new URL(source.page).protocol, "https:", ref)
      assert.match(source.read, /^20\d\d-\d\d-\d\d$/, ref)
      assert.include(providers, ref.split("/")[0] ?? "")
    }
  })

  it("make sense: a reply fits into the window, reading a cache is cheaper than writing it, long calls cost more", () => {
    for (const ref of KnownModel.refs()) {
      const { output, price, window } = KnownModel.of(ref) ?? assert.fail(ref)
      assert.isBelow(output, window, ref)
      for (const one of price === undefined ? [] : [price, ...(price.long === undefined ? [] : [price.long])]) {
        assert.isBelow(one.input, one.output, ref)
        assert.isBelow(one.cached ?? 0, one.input, ref)
        if (one.written !== undefined) assert.isAbove(one.written, one.input, ref)
      }
      const { long } = price ?? {}
      if (price !== undefined && long !== undefined) {
        assert.isBelow(long.above, window, ref)
        assert.isAbove(long.input, price.input, ref)
        assert.isAbove(long.output, price.output, ref)
      }
    }
  })

  it("are found by their name and by that of a snapshot, and by nothing that is only alike", () => {
    const known = KnownModel.of("anthropic/claude-haiku-4-5")
    assert.isDefined(known)
    assert.strictEqual(KnownModel.of("anthropic/claude-haiku-4-5-20251001"), known)
    assert.strictEqual(KnownModel.of("openai/gpt-6-sol-2026-09-22"), KnownModel.of("openai/gpt-6-sol"))
    const others = [
      "claude-haiku-4-5",
      "anthropic/claude-haiku-4",
      "anthropic/claude-haiku-4-5-fast",
      "anthropic/claude-haiku-4-5-2025",
      "openrouter/anthropic/claude-haiku-4-5",
      "constructor",
      "__proto__",
      ""
    ]
    for (const ref of others) assert.isUndefined(KnownModel.of(ref), ref)
  })
})
