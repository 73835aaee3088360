import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { PrintedRows } from "../../src/tool/PrintedRows.js"
import * as Runs from "../kit/Runs.js"

/** A row as it stands in the end. */
const last = (row: string): string => row.split("\r").findLast((part) => part !== "") ?? ""

describe("printed rows", () => {
  it("stand as they were drawn last, however they came in pieces", () => {
    const piece = FastCheck.array(FastCheck.constantFrom("ab", "c", "\r", "\n"), { maxLength: 8 }).map((parts) =>
      parts.join("")
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(piece), (pieces) => {
        const rows = new PrintedRows()
        const ended = pieces.map((text) => rows.push(text)).join("")
        const [open = "", ...before] = pieces.join("").split("\n").map(last).reverse()
        assert.strictEqual(
          ended,
          before
            .reverse()
            .map((row) => `${row}\n`)
            .join("")
        )
        assert.strictEqual(rows.open, open)
        assert.strictEqual(rows.end(), open)
        assert.strictEqual(rows.open, "")
      }),
      { numRuns: Runs.of(1_000) }
    )
  })

  it("are given away before their end where they are too long for a bar of progress, and lose nothing", () => {
    const rows = new PrintedRows()
    const long = "x".repeat(10_000)
    assert.strictEqual(rows.push(long), long)
    assert.strictEqual(rows.push("y\rz"), "y\n")
    assert.strictEqual(rows.end(), "z")
    let given = ""
    for (let count = 0; count < 100_000; count++) {
      given += rows.push("xyz")
      assert.isAtMost(rows.open.length, 8_192)
    }
    assert.strictEqual(given + rows.end(), "xyz".repeat(100_000))
  })
})
