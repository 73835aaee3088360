import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Display from "../../../src/tui/terminal/Display.js"
import { printed } from "./wordedFixture.js"

describe("sentences of our own", () => {
  it("are broken between words, below where they begin", () => {
    assert.strictEqual(printed("one two three\n  four five six", 9), "one two\nthree\n  four\n  five\n  six")
    assert.strictEqual(printed("\x1b[2m  four five\x1b[0m", 8), "  \x1b[2mfour\x1b[0m\n  \x1b[2mfive\x1b[0m")
    assert.strictEqual(printed("short", 80), "short")
  })

  it("go on in their last column, or below the first one where that takes too much of a row", () => {
    const line = "permissions clear   forget the lists, and go back"
    assert.strictEqual(printed(line, 38), "permissions clear   forget the lists,\n                    and go back")
    assert.strictEqual(printed(line, 30), "permissions clear\n    forget the lists, and go\n    back")
    assert.strictEqual(
      printed(`\x1b[2m${line}\x1b[0m`, 38),
      "\x1b[2mpermissions clear   \x1b[2mforget the lists,\x1b[0m\n                    \x1b[2mand go back\x1b[0m"
    )
    assert.strictEqual(printed("  [x] mend what is wrong", 16), "  [x] mend what\n      is wrong")
  })

  it("are no wider than the terminal, and lose and gain nothing but blanks", () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z \n]*(?:[a-z]+ {2,4}[a-z ]*)?$/),
        fc.integer({ min: 2, max: 30 }),
        (text, columns) => {
          const rows = printed(text, columns)
          for (const row of rows.split("\n")) assert.isAtMost(Display.width(row), columns)
          assert.strictEqual(rows.replace(/\s/g, ""), text.replace(/\s/g, ""))
        }
      )
    )
  })
})
