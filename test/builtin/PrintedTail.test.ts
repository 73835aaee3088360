import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { PrintedTail } from "../../src/builtin/PrintedTail.js"

const pieces = (...units: ReadonlyArray<string>) =>
  FastCheck.array(
    FastCheck.array(FastCheck.constantFrom(...units), { maxLength: 20 }).map((parts) => parts.join("")),
    { maxLength: 30 }
  )

describe("the tail of what was printed", () => {
  it("is the end of all that was printed, and says how much of it is missing", () => {
    FastCheck.assert(
      FastCheck.property(
        pieces("ab", "c", "\n", "\ud83d\ude00"),
        FastCheck.integer({ min: 1, max: 50 }),
        FastCheck.integer({ min: 0, max: 60 }),
        (pieces, capacity, limit) => {
          const tail = new PrintedTail(capacity)
          for (const piece of pieces) tail.push(piece)
          const all = pieces.join("")
          assert.strictEqual(tail.heard, all.length)
          const { leftOut, text } = tail.last(limit)
          assert.strictEqual(text, all.slice(leftOut))
          assert.isAtMost(text.length, limit)
          // What is kept is given, up to the limit.
          assert.isAtLeast(text.length, Math.min(limit, capacity, all.length) - 1)
        }
      )
    )
  })

  it("gives its reader everything once, in order, however often it looks", () => {
    FastCheck.assert(
      FastCheck.property(pieces("ab", "c", "\n"), FastCheck.array(FastCheck.boolean()), (pieces, looks) => {
        const tail = new PrintedTail(100_000)
        let read = ""
        for (const [index, piece] of pieces.entries()) {
          tail.push(piece)
          if (looks[index] === true) read += tail.unseen(Infinity).text
        }
        assert.strictEqual(read + tail.unseen(Infinity).text, pieces.join(""))
        assert.deepStrictEqual(tail.unseen(Infinity), { text: "", leftOut: 0 })
      })
    )
  })

  it("tells its reader how much was lost before it looked, or is more than it wants", () => {
    FastCheck.assert(
      FastCheck.property(
        pieces("ab", "c", "\n"),
        FastCheck.array(FastCheck.boolean()),
        FastCheck.integer({ min: 1, max: 20 }),
        FastCheck.integer({ min: 0, max: 30 }),
        (pieces, looks, capacity, limit) => {
          const tail = new PrintedTail(capacity)
          let length = 0
          const look = () => {
            const { leftOut, text } = tail.unseen(limit)
            assert.isAtMost(text.length, limit)
            length += leftOut + text.length
          }
          for (const [index, piece] of pieces.entries()) {
            tail.push(piece)
            if (looks[index] === true) look()
          }
          look()
          assert.isAtLeast(length, pieces.join("").length)
        }
      )
    )
  })

  it("reads a row that was drawn anew as it stands", () => {
    const tail = new PrintedTail(1_000)
    tail.push("begun\n10 %\r20 %")
    assert.strictEqual(tail.unseen(100).text, "begun\n20 %")
    assert.strictEqual(tail.unseen(100).text, "")
    tail.push("\r30 %\r100 %\nover")
    assert.strictEqual(tail.unseen(100).text, "100 %\nover")
    assert.strictEqual(tail.last(100).text, "begun\n100 %\nover")
  })

  it("keeps no more than twice its capacity", () => {
    const tail = new PrintedTail(10_000)
    for (let round = 0; round < 5_000; round++) {
      tail.push("x".repeat(97))
      const { leftOut, text } = tail.last(Infinity)
      assert.isAtMost(text.length, 30_000)
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
    tail.push("\rfour")
    assert.strictEqual(tail.lastLine, "four")
  })
})
