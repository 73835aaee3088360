import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as Pager from "../../../src/tui/terminal/Pager.js"
import { key } from "../../kit/TestTerminal.js"

/** The rows that are read, without those of the foot. */
const shown = (pager: Pager.Pager): ReadonlyArray<string> =>
  pager
    .draw()
    .replace(/^.*\x1b\[2J/s, "")
    .split("\r\n")
    .slice(0, -1)

const open = (lines: ReadonlyArray<string>, columns: number, rows: number) =>
  Pager.make(
    { title: "text", lines: (columns) => lines.map((line) => Display.wrap(line, columns)) },
    { columns, rows },
    { color: false, atEnd: false }
  )

const words = fc.array(
  fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom("a", "b", "é", "漢", "[", "-") }),
  {
    maxLength: 30
  }
)
/** Each word is another one. */
const text = fc
  .array(words, { minLength: 30, maxLength: 60 })
  .map((lines) => lines.map((line, at) => line.map((word, place) => `${at}.${place}${word}`).join(" ")))
const size = fc.record({ columns: fc.integer({ min: 4, max: 60 }), rows: fc.integer({ min: 3, max: 12 }) })

describe("a pager in another size", () => {
  it("has the very rows in the old size", () => {
    fc.assert(
      fc.property(
        text,
        size,
        fc.array(size, { minLength: 1, maxLength: 4 }),
        fc.nat(40),
        (lines, first, others, down) => {
          const pager = open(lines, first.columns, first.rows)
          for (let step = 0; step < down; step++) pager.press(key("down"))
          const before = shown(pager)
          for (const { columns, rows } of [...others, first]) pager.resize(columns, rows)
          assert.deepStrictEqual(shown(pager), before)
        }
      ),
      { numRuns: 50 }
    )
  })

  it("counts no row, but the line and what stands of it above", () => {
    const lines = Array.from({ length: 40 }, (_, line) =>
      Array.from({ length: 9 }, (_, at) => `w${line}.${at}`).join(" ")
    )
    const pager = open(lines, 20, 6)
    for (let step = 0; step < 31; step++) pager.press(key("down"))
    const [top = ""] = shown(pager)
    assert.strictEqual(top, "w10.3 w10.4 w10.5")
    for (const [columns, wanted] of [
      [6, "w10.3"],
      [12, "w10.2 w10.3"],
      [60, lines[10]],
      [20, top]
    ] as const) {
      pager.resize(columns, 6)
      assert.strictEqual(shown(pager)[0], wanted)
    }
  })

  it("still shows what was found, and goes on from there", () => {
    const lines = Array.from({ length: 60 }, (_, line) => `${"word ".repeat(8)}end${line % 7 === 0 ? " found" : ""}`)
    const pager = Pager.make(
      { title: "text", lines: (columns) => lines.map((line) => Display.wrap(line, columns)) },
      { columns: 80, rows: 8 },
      { color: true, atEnd: false }
    )
    for (const pressed of [key("", {}, "/"), ..."found".split("").map((letter) => key(letter, {}, letter))])
      pager.press(pressed)
    pager.press(key("return"))
    pager.press(key("n", {}, "n"))
    const marked = () => shown(pager).filter((row) => row.startsWith("\x1b[33m"))
    assert.lengthOf(marked(), 1)
    pager.resize(20, 8)
    assert.isTrue(shown(pager)[0]?.startsWith("word word word"))
    assert.include(marked()[0], "found")
    pager.press(key("n", {}, "n"))
    assert.include(marked()[0], "found")
    assert.include(shown(pager)[0], "found")
  })
})
