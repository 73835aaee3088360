import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Printed from "../../../src/cli/view/Printed.js"
import { ToolCallId } from "../../../src/core/Id.js"

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
      { numRuns: 2_000 }
    )
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
