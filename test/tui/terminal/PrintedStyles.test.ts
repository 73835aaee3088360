import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as PrintedStyles from "../../../src/tui/terminal/PrintedStyles.js"
import * as StyledText from "../../../src/tui/terminal/StyledText.js"
import * as TerminalText from "../../../src/core/TerminalText.js"
import * as Runs from "../../kit/Runs.js"

const read = (pieces: ReadonlyArray<string>, color = true): string => {
  const styles = PrintedStyles.make(color)
  return pieces.map((piece) => styles.take(piece)).join("")
}
/** With the sequences as words between brackets. */
const told = (text: string) => read([text]).replaceAll(/\x1b\[(\d*)m/g, "[$1]")

const joined = (runs: ReadonlyArray<StyledText.Run>): ReadonlyArray<StyledText.Run> =>
  runs.reduce<ReadonlyArray<StyledText.Run>>((before, run) => {
    const last = before.at(-1)
    return last?.style === run.style
      ? [...before.slice(0, -1), { text: last.text + run.text, style: run.style }]
      : [...before, run]
  }, [])

describe("PrintedStyles", () => {
  it("keeps colours and weights, and closes them on each line", () => {
    assert.strictEqual(told("\x1b[31mred\nstill\x1b[m plain"), "[31]red[0]\n[31]still[0] plain")
    assert.strictEqual(told("\x1b[1;4;32mthree\x1b[22;24m green\x1b[39m."), "[1][4][32]three[0][32] green[0].")
    assert.strictEqual(told("\x1b[91mbright\x1b[0;90mgrey"), "[91]bright[0][2]grey[0]")
    assert.strictEqual(told("\x9b33myellow"), "[33]yellow[0]")
  })

  it("takes the nearest hue of many colours, and a background for its inverse", () => {
    assert.strictEqual(
      told("\x1b[38;5;196mred\x1b[38;5;34mgreen\x1b[38;5;240mgrey"),
      "[31]red[0][32]green[0][2]grey[0]"
    )
    assert.strictEqual(told("\x1b[38;2;20;20;200mblue\x1b[38:2::255:80:80mred"), "[34]blue[0][91]red[0]")
    assert.strictEqual(told("\x1b[41;37m FAIL \x1b[0m\x1b[7minverse"), "[7][31] FAIL [0][7]inverse[0]")
  })

  it("hides nothing and lets nothing else pass", () => {
    assert.strictEqual(told("\x1b[8mhidden"), "hidden")
    assert.strictEqual(told("\x1b[30;40mblack on black\x1b[37;47mwhite on white"), "black on blackwhite on white")
    assert.strictEqual(told("\x1b[38;5;0mblack"), "black")
    assert.strictEqual(told("a\x1b[2Jb\x1b]0;title\x07c\x1b[1Ad\x1b[?1049he"), "abcde")
  })

  it("reads the same however it comes in pieces, and lets only our own styles pass", () => {
    const part = fc.constantFrom(
      "\x1b[",
      "31",
      ";",
      "m",
      "\x1b[1m",
      "\x1b[0m",
      "38;5;",
      "200",
      "a",
      "b c",
      "\n",
      "\x1b[2J"
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.array(fc.nat(40), { maxLength: 5 }), (parts, at) => {
        const text = parts.join("")
        const cuts = [0, ...at.map((one) => Math.min(one, text.length)).sort((a, b) => a - b), text.length]
        const pieces = cuts.slice(1).map((end, index) => text.slice(cuts[index], end))
        const whole = read([text])
        assert.strictEqual(TerminalText.printed(whole, true), whole)
        assert.strictEqual(PrintedStyles.bare(read(pieces)), PrintedStyles.bare(whole))
        assert.strictEqual(read(pieces, false), PrintedStyles.bare(whole))
        for (const line of whole.split("\n")) {
          const again = StyledText.line(PrintedStyles.runs(line))
          assert.strictEqual(PrintedStyles.bare(again), PrintedStyles.bare(line))
          assert.deepStrictEqual(PrintedStyles.runs(again), joined(PrintedStyles.runs(line)))
        }
      }),
      { numRuns: Runs.of(2_000) }
    )
  })
})
