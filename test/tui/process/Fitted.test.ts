import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Fitted from "../../../src/tui/process/Fitted.js"

describe("whole lines of our own at a terminal", () => {
  it("are broken between words, below where their last column begins", () => {
    const help = "      --trust           let this workspace allow things, from now on"
    assert.strictEqual(
      Fitted.lines(help, 50),
      "      --trust           let this workspace allow\n                        things, from now on"
    )
    const mark = "\x1b[32m✓\x1b[0m program  assent, and a word that does not fit here"
    assert.strictEqual(
      Fitted.lines(mark, 30),
      "\x1b[32m✓\x1b[0m program  assent, and a word\n           that does not fit\n           here"
    )
    assert.strictEqual(
      Fitted.lines(mark, 22),
      "\x1b[32m✓\x1b[0m program  assent, and\n    a word that does\n    not fit here"
    )
    assert.strictEqual(Fitted.lines("- store   /tmp/of/somebody, 2 kB", 24), "- store   /tmp/of/somebody,\n    2 kB")
    assert.strictEqual(Fitted.lines("assent: one two three", 12), "assent: one\ntwo three")
    assert.strictEqual(Fitted.lines("  one two three", 9), "  one two\n  three")
  })

  it("are left as they are on a pipe, where a letter may be wide, and where a word is longer than a row", () => {
    assert.strictEqual(Fitted.lines("one two three", undefined), "one two three")
    assert.strictEqual(Fitted.lines("one 漢字漢字 two", 6), "one 漢字漢字 two")
    assert.strictEqual(Fitted.lines("in /home/ada/project now", 10), "in\n/home/ada/project\nnow")
  })

  it("stay whole where they are a command to be copied", () => {
    const command = "  assent sessions answer ses_0uarqzr0wc296p-1 req_0uarqzr0wc296p-2 ANSWER"
    assert.strictEqual(Fitted.lines(`one two\n${command}`, 6), `one\ntwo\n${command}`)
    const help = "  assent sessions waiting  who waits"
    assert.strictEqual(Fitted.lines(help, 30), "  assent sessions waiting  who\n    waits")
  })

  it("lose and gain nothing but blanks, and fit where their words do", () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{1,9}$/)), fc.integer({ min: 1, max: 40 }), (words, columns) => {
        const text = words.join(" ")
        const rows = Fitted.lines(text, columns)
        assert.strictEqual(rows.replace(/\s/g, ""), text.replace(/\s/g, ""))
        for (const row of rows.split("\n")) {
          const isOneWord = !/\S \S/.test(row)
          assert.isTrue(isOneWord || row.length <= columns, row)
        }
      })
    )
  })
})
