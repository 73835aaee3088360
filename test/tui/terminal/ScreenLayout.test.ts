import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as FiberId from "effect/FiberId"
import * as FastCheck from "effect/FastCheck"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as ScreenLayout from "../../../src/tui/terminal/ScreenLayout.js"

const rows = (line: string, columns: number, color = false) =>
  ScreenLayout.content(
    Display.style(color),
    ScreenLayout.open(undefined, { lines: [line], label: "> " }, Deferred.unsafeMake(FiberId.none)),
    columns
  )
const bare = (row: string) => row.replaceAll(/\x1b\[\d*m/g, "")

describe("a line of a dialog that is too long for a row", () => {
  it("goes on beside its number and sign, in a diff and in a list, in its style", () => {
    assert.deepStrictEqual(rows("12 + for (const part of parts) total += Number(part)", 34), [
      "│ 12 + for (const part of parts)",
      "│      total += Number(part)"
    ])
    assert.deepStrictEqual(rows(" 9. run touch made-8 in /home/ada/project", 30), [
      "│  9. run touch made-8 in",
      "│     /home/ada/project"
    ])
    assert.deepStrictEqual(rows("   tools: run_command, job_output, job_stop", 34), [
      "│    tools: run_command,",
      "│    job_output, job_stop"
    ])
    assert.deepStrictEqual(rows("no number, and nothing to stay beside of", 26), [
      "│ no number, and nothing",
      "│ to stay beside of"
    ])
    const styled = rows("\x1b[2m3 \x1b[0m\x1b[31m- let total = one + two + three\x1b[0m", 26, true)
    assert.deepStrictEqual(styled.map(bare), ["│ 3 - let total = one +", "│     two + three"])
    assert.include(styled[1], "\x1b[31mtwo + three")
  })

  it("loses nothing, and is in no row too wide", () => {
    const text = FastCheck.string({ unit: "grapheme", maxLength: 120 })
    const lead = FastCheck.constantFrom("", "1. ", "12 + ", " 3 - ", "100   ", "7 ", "   ", " [x] ")
    FastCheck.assert(
      FastCheck.property(
        lead,
        text,
        FastCheck.integer({ min: 4, max: 80 }),
        FastCheck.boolean(),
        (lead, text, columns, isStyled) => {
          const line = lead + Display.reveal(text).replaceAll("\n", " ")
          const shown = rows(isStyled ? `\x1b[32m${line}\x1b[0m` : line, columns, true).map(bare)
          const letters = (words: string) => words.replaceAll(/\s/g, "")
          // In less, a letter may be wider than what is left of a row, and another stands in its place.
          if (columns >= 16) assert.strictEqual(letters(shown.map((row) => row.slice(2)).join("")), letters(line))
          for (const row of shown) assert.isAtMost(Display.width(row), Math.max(4, columns))
        }
      ),
      // A letter of three columns.
      { examples: [["7 ", "𖿠𝅘𝅥𝅮𝅘𝅥𝅮", 9, true]] }
    )
  })
})
