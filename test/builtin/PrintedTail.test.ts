import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { PrintedTail } from "../../src/builtin/PrintedTail.js"

describe("the tail of what was printed", () => {
  it("is the end of all that was printed, and says how much of it is missing, wherever a reader stands", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(FastCheck.string({ maxLength: 40 }), { maxLength: 30 }),
        FastCheck.integer({ min: 1, max: 50 }),
        FastCheck.integer({ min: 0, max: 60 }),
        FastCheck.double({ min: 0, max: 1, noNaN: true }),
        (pieces, capacity, limit, where) => {
          const tail = new PrintedTail(capacity)
          for (const piece of pieces) tail.push(piece)
          const all = pieces.join("")
          assert.strictEqual(tail.length, all.length)
          const position = Math.floor(where * all.length)
          const { leftOut, text } = tail.since(position, limit)
          assert.strictEqual(text, all.slice(position + leftOut))
          assert.strictEqual(text.length + leftOut, all.length - position)
          assert.isAtMost(text.length, limit)
          // What is kept is given, up to the limit.
          assert.isAtLeast(text.length, Math.min(limit, capacity, all.length - position) - 1)
        }
      )
    )
  })

  it("keeps no more than twice its capacity", () => {
    const tail = new PrintedTail(1_000)
    for (let round = 0; round < 500; round++) {
      tail.push("x".repeat(97))
      const { leftOut, text } = tail.since(0, Infinity)
      assert.isAtMost(text.length, 2_000)
      assert.strictEqual(text.length + leftOut, 97 * (round + 1))
    }
  })

  it("has a last line, which is not blank as long as something else was printed", () => {
    const tail = new PrintedTail(100)
    assert.strictEqual(tail.lastLine, "")
    tail.push("one\n  two \n\n \n")
    assert.strictEqual(tail.lastLine, "two")
    tail.push("thr")
    assert.strictEqual(tail.lastLine, "thr")
  })
})
