import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "fast-check"
import * as LinePattern from "../../src/builtin/LinePattern.js"
import * as LineSearch from "../../src/builtin/LineSearch.js"

/** What is found in a text that comes in these pieces, where each part of the work has so many steps. */
const search = (source: string, pieces: ReadonlyArray<string>, shown: number, steps = Infinity, most = Infinity) => {
  const found: Array<LineSearch.Match> = []
  const lines = LineSearch.make(Either.getOrThrow(LinePattern.make(source)), shown, (match) => {
    found.push(match)
    return found.length < most
  })
  for (const piece of pieces) {
    lines.push(piece)
    for (let done = lines.run({ left: steps }); done !== "read"; done = lines.run({ left: steps })) {
      if (done === "stopped") return found
    }
  }
  lines.end({ left: steps })
  return found
}

/** The lines of a text as everybody counts them, without their ends. */
const linesOf = (text: string): ReadonlyArray<string> => {
  const all = text.split("\n").map((line) => line.replace(/\r$/, ""))
  return text.endsWith("\n") || text === "" ? all.slice(0, -1) : all
}

describe("LineSearch", () => {
  it("finds each line that matches, in whatever pieces the text comes, and shows where", () => {
    const piece = FastCheck.string({
      unit: FastCheck.constantFrom("a", "b", "a", "\n", "\r", "\r\n", "🙂", "x"),
      maxLength: 12
    })
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(piece, { maxLength: 8 }),
        FastCheck.constantFrom("ab", "a$", "^b", "x+a", "^$", "[ax]b|🙂x", "^.*b"),
        FastCheck.integer({ min: 6, max: 12 }),
        FastCheck.integer({ min: 1, max: 30 }),
        (pieces, source, shown, steps) => {
          const whole = linesOf(pieces.join(""))
          const found = search(source, pieces, shown, steps)
          assert.deepStrictEqual(
            found.map(({ number }) => number),
            whole.flatMap((line, index) => (new RegExp(source, "su").test(line) ? [index + 1] : []))
          )
          for (const { before, isCut, number, text } of found) {
            const line = whole[number - 1] ?? ""
            assert.isTrue(line.startsWith(text, before))
            assert.isAtMost(text.length, shown)
            assert.strictEqual(isCut, before + text.length < line.length)
            assert.isFalse(/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(text))
            if (line.length <= shown) assert.deepStrictEqual([before, isCut], [0, false])
            if (source === "ab") assert.include(text, "ab")
          }
        }
      ),
      { numRuns: 3_000 }
    )
  })

  it("shows the beginning of a long line, or what is around the match", () => {
    const [match] = search("needle", ["x".repeat(50_000), `${"x".repeat(50_000)}nee`, `dle${"y".repeat(70_000)}`], 30)
    assert.deepStrictEqual(match, {
      number: 1,
      text: `${"x".repeat(14)}needle${"y".repeat(10)}`,
      before: 99_986,
      isCut: true
    })
    assert.deepStrictEqual(search("needle", [`needle${"y".repeat(70_000)}`], 9), [
      { number: 1, text: "needleyyy", before: 0, isCut: true }
    ])
  })

  it("takes the carriage return for a part of the line where the pattern asks for it", () => {
    const text = "a\r\nb\nc\r\n\r"
    const numbers = (source: string) => search(source, [text], 10).map(({ number }) => number)
    assert.deepStrictEqual(numbers("\\r$"), [1, 3, 4])
    assert.deepStrictEqual(numbers("[a-c]\\r?$"), [1, 2, 3])
    assert.deepStrictEqual(numbers("[\\r]"), [1, 3, 4])
    assert.deepStrictEqual(numbers("^[^\\r\\n]$"), [1, 2, 3])
    assert.deepStrictEqual(numbers("\\s$"), [])
    assert.deepStrictEqual(search("a\\r", ["a\r\n"], 10), [{ number: 1, text: "a", before: 0, isCut: false }])
  })

  it("reads no further than it is wanted to", () => {
    assert.lengthOf(search("a", ["a\na\na\n"], 10, Infinity, 2), 2)
  })
})
