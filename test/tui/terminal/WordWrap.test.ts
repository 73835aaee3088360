import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as WordWrap from "../../../src/tui/terminal/WordWrap.js"

describe("WordWrap", () => {
  it("breaks between words, and goes on below the words of a list", () => {
    assert.strictEqual(WordWrap.wrapped("one two three", 8), "one two\nthree")
    assert.strictEqual(
      WordWrap.wrapped("- one two three\n  1. four five", 10),
      "- one two\n  three\n  1. four\n     five"
    )
    assert.strictEqual(WordWrap.wrapped("one  two", 40), "one  two")
    assert.strictEqual(WordWrap.wrapped("漢字漢字漢字", 7), "漢字漢\n字漢字")
    assert.strictEqual(WordWrap.wrapped("one two three", Infinity), "one two three")
    // A word that fits a row is whole, though less stands before it then.
    assert.strictEqual(WordWrap.wrapped("    12. one", 6), "   12.\none")
    assert.strictEqual(WordWrap.wrapped("   one eleven", 6), "   one\neleven")
  })

  it("writes a word when it is complete", () => {
    const wrap = WordWrap.make()
    assert.strictEqual(wrap.push("one tw", 8), "one")
    assert.strictEqual(wrap.push("o th", 8), " two")
    assert.strictEqual(wrap.push("ree\n", 8), "\nthree\n")
    assert.strictEqual(wrap.push("e", 8), "")
    assert.strictEqual(wrap.end(8), "e")
  })

  it("loses nothing, is the same however it comes in pieces, and cuts no word that fits", () => {
    const part = fc.constantFrom("a", "word", "longer", " ", "  ", "\n", "- ", "12. ", "é", "漢字", "😀")
    fc.assert(
      fc.property(
        fc.array(fc.array(part, { maxLength: 8 }), { maxLength: 6 }),
        fc.integer({ min: 3, max: 30 }),
        (parts, columns) => {
          const pieces = parts.map((some) => some.join(""))
          const text = pieces.join("")
          const wrap = WordWrap.make()
          const rows = pieces.map((piece) => wrap.push(piece, columns)).join("") + wrap.end(columns)
          assert.strictEqual(rows, WordWrap.wrapped(text, columns))
          assert.strictEqual(rows.replaceAll(/\s/g, ""), text.replaceAll(/\s/g, ""))
          for (const row of rows.split("\n")) {
            const words = row.trim().split(/ +/)
            // A word that is wider than a row is the terminal's to cut.
            if (words.every((word) => Display.width(word) <= columns)) assert.isAtMost(Display.width(row), columns)
          }
        }
      )
    )
  })
})
