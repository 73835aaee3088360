import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as FoldedName from "../../src/core/FoldedName.js"
import * as Runs from "../kit/Runs.js"

describe("a folded name", () => {
  it("is the same for what some file system takes for the same", () => {
    for (const name of [
      ".ASSENT",
      ".a\u017f\u017fent",
      ".as\u200csent",
      ".\u00e0ssent",
      ".a\u0300ssent",
      "\uff0e\uff41ssent"
    ])
      assert.strictEqual(FoldedName.of(name), ".assent", name)
    assert.strictEqual(FoldedName.of("Stra\u00dfe"), FoldedName.of("STRASSE"))
  })

  it("of a path has the same parts, and leads upward where the path does", () => {
    const part = fc.oneof(
      fc.string({ unit: "binary", maxLength: 6 }),
      fc
        .array(fc.constantFrom(".", "\u2024", "\u2025", "\uff0e", "\uff0f", "\u200c", "\u0300", "a", "\u017f"), {
          maxLength: 4
        })
        .map((characters) => characters.join(""))
    )
    const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
    fc.assert(
      fc.property(path, (path) => {
        const parts = path.split("/")
        const folded = FoldedName.of(path).split("/")
        assert.lengthOf(folded, parts.length)
        for (const [at, name] of folded.entries()) {
          assert.strictEqual(name, FoldedName.of(parts[at] ?? ""))
          if (/^\.{0,2}$/.test(name)) assert.strictEqual(parts[at], name)
        }
      }),
      { numRuns: Runs.of(2_000) }
    )
  })
})
