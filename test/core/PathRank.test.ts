import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as PathRank from "../../src/core/PathRank.js"

const paths = ["README.md", "docs/read.md", "src/README.ts", "src/a.ts", "src/reader/index.ts", "test/thread.ts"]
const find = PathRank.make(paths)

describe("the paths that somebody means", () => {
  it("have the name before its parts, names before directories, and letters in order last", () => {
    assert.deepStrictEqual(find("a.ts", 2), ["src/a.ts", "src/README.ts"])
    assert.deepStrictEqual(find("read", 9), [
      "README.md",
      "docs/read.md",
      "src/README.ts",
      "test/thread.ts",
      "src/reader/index.ts"
    ])
    assert.deepStrictEqual(find("README.md", 9), ["README.md"])
    assert.deepStrictEqual(find("src/r", 9), ["src/README.ts", "src/reader/index.ts"])
    assert.deepStrictEqual(find("sidx", 9), ["src/reader/index.ts"])
    assert.deepStrictEqual(find("", 2), ["README.md", "docs/read.md"])
    assert.deepStrictEqual(find("zz", 9), [])
    assert.deepStrictEqual(PathRank.make(["source.ts", "x/src/", "src/a.ts", "src/"])("src", 9), [
      "src/",
      "x/src/",
      "src/a.ts",
      "source.ts"
    ])
  })

  it("are the same letter by letter, back and forth, as at once", () => {
    const find = PathRank.make(paths)
    for (const query of ["r", "re", "rea", "read", "re", "s", "sr", "src/r", "", "x", "a", "a.t", "a.ts"])
      assert.deepStrictEqual(find(query, 9), PathRank.make(paths)(query, 9), query)
  })

  it("are of those there are, once each, and have the letters", () => {
    const name = fc
      .array(fc.constantFrom(..."abAB/."), { minLength: 1, maxLength: 8 })
      .map((letters) => letters.join(""))
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 20 }), name, fc.integer({ min: 0, max: 5 }), (all, query, most) => {
        const found = PathRank.make(all)(query, most)
        const letters = new RegExp([...query].map((letter) => (letter === "." ? "\\." : letter)).join(".*"), "i")
        const fitting = all.filter((path) => letters.test(path))
        assert.strictEqual(found.length, Math.min(most, fitting.length))
        assert.strictEqual(new Set(found).size, found.length)
        assert.includeMembers(fitting, [...found])
      })
    )
  })
})
