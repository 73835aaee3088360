import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Display from "../../../src/terminal/Display.js"
import { printed } from "./wordedFixture.js"

describe("sentences of our own", () => {
  it("are broken between words, below where they begin", () => {
    assert.strictEqual(printed("one two three\n  four five six", 9), "one two\nthree\n  four\n  five\n  six")
    assert.strictEqual(printed("\x1b[2m  four five\x1b[0m", 8), "  \x1b[2mfour\x1b[0m\n  \x1b[2mfive\x1b[0m")
    assert.strictEqual(printed("short", 80), "short")
  })

  it("are no wider than the terminal, and lose and gain nothing but blanks", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z \n]*$/), fc.integer({ min: 2, max: 30 }), (text, columns) => {
        const rows = printed(text, columns)
        for (const row of rows.split("\n")) assert.isAtMost(Display.width(row), columns)
        assert.strictEqual(rows.replace(/\s/g, ""), text.replace(/\s/g, ""))
      })
    )
  })
})
