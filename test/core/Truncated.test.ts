import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Truncated from "../../src/core/Truncated.js"
import * as Runs from "../kit/Runs.js"

describe("a long text", () => {
  it("is its head, what is between, and its tail, and never more than asked for", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string({ maxLength: 30 }), fc.constantFrom("😀", "\n", "é")), { maxLength: 60 }),
        fc.nat(60),
        fc.nat(60),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 8 }),
        (parts, head, tail, headLines, tailLines) => {
          const text = parts.join("")
          const limits = { head, tail, headLines, tailLines }
          const shortened = Truncated.make(text, limits)
          const lines = text.split("\n").length
          if (text.length <= head + tail && lines <= headLines + tailLines)
            return assert.strictEqual(shortened, undefined)
          if (shortened === undefined) return
          const between = text.slice(shortened.head.length, text.length - shortened.tail.length)
          assert.strictEqual(shortened.head + between + shortened.tail, text)
          assert.strictEqual(shortened.characters, between.length)
          assert.strictEqual(shortened.lines, between.split("\n").length - 1)
          assert.isAtMost(shortened.head.length, head)
          assert.isAtMost(shortened.tail.length, tail + 1)
          const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/
          if (!half.test(text)) for (const part of [shortened.head, shortened.tail]) assert.notMatch(part, half)
        }
      ),
      { numRuns: Runs.of(2_000) }
    )
  })
})
