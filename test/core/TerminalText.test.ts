/** What models say, made harmless for a terminal, whole and piece by piece. */
import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as TerminalText from "../../src/core/TerminalText.js"
import * as Runs from "../kit/Runs.js"

const units = [
  ...["a", "é", "\u{1f600}", "\n", "\r", "\t", "[", "m", "0;t", "\\", ";"],
  ...["\x1b", "\x1b[31m", "\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;u\x1b\\", "\x1b(B", "\x1b[?25l", "\x1bM"],
  ...["\x07", "\x9b", "\x9d", "\x9c", "\x90", "\u202e", "\u2028"]
]
const text = FastCheck.array(FastCheck.constantFrom(...units), { maxLength: 20 }).map((parts) => parts.join(""))

describe("what models say", () => {
  it("has no sequence left, and nothing of a complete one", () => {
    assert.strictEqual(
      TerminalText.sanitize("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x \x1b]8;;http://u\x1b\\y"),
      "red x y"
    )
    assert.strictEqual(TerminalText.sanitize("\x1b]0;no end\nthe next line"), "0;no end\nthe next line")
    FastCheck.assert(
      FastCheck.property(text, (text) => {
        assert.notMatch(TerminalText.sanitize(text), /[\0-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]/)
      })
    )
  })

  it("is the same however it comes in pieces", () => {
    FastCheck.assert(
      FastCheck.property(text, FastCheck.array(FastCheck.nat(60), { maxLength: 6 }), (text, cuts) => {
        // What the text does not end is another thing.
        const all = `${text}\x1b\\ end`
        const borders = [0, ...cuts.map((at) => at % (all.length + 1)).sort((a, b) => a - b), all.length]
        const words = TerminalText.sanitizer()
        const shown = borders.slice(1).map((to, index) => words.push(all.slice(borders[index], to)))
        assert.strictEqual(shown.join("") + words.end(), TerminalText.sanitize(all))
      }),
      { numRuns: Runs.of(3_000) }
    )
  })

  it("is held back no further than to the end of a sequence, and loses no words at its end", () => {
    const words = TerminalText.sanitizer()
    assert.strictEqual(words.push("plain"), "plain")
    assert.strictEqual(words.push("red\x1b[3"), "red")
    assert.strictEqual(words.push("1m"), "")
    assert.strictEqual(words.push("\x1b]0;a title without an end"), "")
    assert.strictEqual(words.push("\nand on"), "0;a title without an end\nand on")
    assert.strictEqual(words.push("\x1b]words"), "")
    assert.strictEqual(words.end(), "words")
    assert.strictEqual(words.push("\x1b["), "")
    assert.strictEqual(words.end(), "")
    assert.strictEqual(words.push(`\x1b]${"x".repeat(5_000)}`), "x".repeat(5_000))
  })
})
