import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Printed from "../../../src/tui/view/Printed.js"
import { ToolCallId } from "../../../src/core/Id.js"
import * as Runs from "../../kit/Runs.js"

const id = ToolCallId.make("call_1")

/** The tail of a call that printed these pieces and failed, as rows without their indentation. */
const tailOf = (pieces: ReadonlyArray<string>): ReadonlyArray<string> => {
  const printed = Printed.make({ color: false, opens: true })
  printed.begin(id, "run_command x", true)
  for (const piece of pieces) printed.take(id, piece)
  return printed.end(id, 200, true).map((row) => row.slice(4).trimEnd())
}

describe("Printed", () => {
  it("shows the last lines, however they came in pieces", () => {
    const piece = fc.array(fc.constantFrom("\n", " ", "a", "b"), { maxLength: 12 }).map((chars) => chars.join(""))
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("").trimEnd()
        const lines = text.split("\n").map((line) => line.trimEnd())
        const above = lines.length - 12
        const more = above > 0 ? [`… ${above} ${above === 1 ? "line" : "lines"} above · Ctrl-O shows all`] : []
        assert.deepStrictEqual(tailOf(pieces), text === "" ? [] : [...more, ...lines.slice(-12)])
      }),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("shows a bar of progress as it stands", () => {
    assert.deepStrictEqual(tailOf(["begun\n", "10 %\r", "20 %", "\r\x1b[32m30 %\x1b[0m"]), ["begun", "30 %"])
    assert.deepStrictEqual(tailOf(["10 %\r100 %\r\nover\r\n"]), ["100 %", "over"])
  })

  it("shows the beginning of a long row", () => {
    for (const size of [5_000, 20_000]) {
      assert.deepStrictEqual(tailOf(["a\nb", "x".repeat(size), "y".repeat(size), "\nc"])[1]?.slice(0, 5), "bxxxx")
      assert.deepStrictEqual(tailOf(["a\nb", "x".repeat(size), "y"])[1]?.slice(0, 5), "bxxxx")
    }
  })

  it("has as the whole that of the call whose end was shown last, or that has begun since", () => {
    const printed = Printed.make({ color: false, opens: true })
    const begin = (name: string) => {
      const call = ToolCallId.make(name)
      printed.begin(call, name, true)
      printed.take(call, `${name}\n`)
      return () => printed.end(call, 80, false)
    }
    const [one, two] = [begin("one"), begin("two")]
    two()
    one()
    assert.strictEqual(printed.whole()?.title, "one")
    const three = begin("three")
    assert.strictEqual(printed.whole()?.title, "three")
    three()
    // One that printed nothing has nothing to be opened.
    printed.begin(id, "silent", true)
    printed.end(id, 80, false)
    assert.strictEqual(printed.whole()?.title, "three")
  })

  it("keeps the beginning and the end of very much, and says what is missing between", () => {
    const printed = Printed.make({ color: false, opens: true })
    printed.begin(id, "run_command x", true)
    const row = `${"0123456789".repeat(9)}\n`
    for (let count = 0; count < 100; count++) printed.take(id, `${count}\n${row.repeat(1_000)}`)
    printed.take(id, "the last words")
    const rows = printed.whole()?.lines(200).flat() ?? []
    assert.strictEqual(rows[0], "0")
    assert.strictEqual(rows.at(-1), "the last words")
    assert.isBelow(rows.length * 91, 3_200_000)
    const gaps = rows.flatMap((text) => /^\[… (\d+) characters are not shown\]$/.exec(text)?.[1] ?? [])
    assert.lengthOf(gaps, 1)
    const kept = rows.filter((text) => !text.startsWith("[")).reduce((sum, text) => sum + text.length + 1, -1)
    const all = 100 * 91_000 + 290 + "the last words".length
    for (const text of rows.slice(0, -1)) assert.match(text, /^(?:\d{1,2}|(?:0123456789){9}|\[.*\])$/, "half a row")
    // The half of a row that is left out at the gap is not counted.
    assert.isAtMost(Math.abs(kept + Number(gaps[0]) - all), 91)
  })

  it("looks at the last lines only, also behind very many empty ones", () => {
    const printed = Printed.make({ color: false, opens: true })
    printed.begin(id, "run_command x", true)
    printed.take(id, `${"\n".repeat(1_000_000)}x`)
    // To look for the end of each run of empty lines took an hour.
    assert.deepStrictEqual(printed.live(40, 10).at(-1), "    x")
    assert.deepStrictEqual(printed.live(40, 10).length, 5)
  })
})
