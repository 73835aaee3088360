import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "fast-check"
import * as LinePattern from "../../src/builtin/LinePattern.js"

const matches = (pattern: string, line: string, ignoreCase = false): boolean =>
  Either.getOrThrowWith(LinePattern.make(pattern, { ignoreCase }), (reason) => new Error(reason)).test(line)

const reason = (pattern: string): string =>
  Either.match(LinePattern.make(pattern), { onLeft: (text) => text, onRight: () => "accepted" })

/** Patterns over a small alphabet in which everything can be combined with everything. */
const patterns: FastCheck.Arbitrary<string> = FastCheck.letrec<{ readonly term: string; readonly pattern: string }>(
  (tie) => ({
    term: FastCheck.oneof(
      { maxDepth: 4 },
      FastCheck.constantFrom(
        "a",
        "b",
        "B",
        ".",
        "\\w",
        "\\W",
        "\\d",
        "\\s",
        "[ab]",
        "[^a]",
        "[a-c1]",
        "\\b",
        "\\B",
        "^",
        "$"
      ),
      FastCheck.constantFrom("a", "b", "-", "é", "\\.", "\\x61", "{", "[\\]b]"),
      tie("pattern").map((inner) => `(${inner})`),
      tie("pattern").map((inner) => `(?:${inner})`),
      FastCheck.tuple(
        tie("pattern"),
        FastCheck.constantFrom("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "{0}")
      ).map(([inner, sign]) => `(?:${inner})${sign}`)
    ),
    pattern: FastCheck.oneof(
      { maxDepth: 4 },
      FastCheck.array(tie("term"), { maxLength: 4 }).map((terms) => terms.join("")),
      FastCheck.tuple(tie("term"), tie("term")).map(([left, right]) => `${left}|${right}`)
    )
  })
).pattern

const lines = FastCheck.array(FastCheck.constantFrom("a", "b", "B", "c", "1", " ", "-", ".", "é", "{", "]"), {
  maxLength: 10
}).map((chars) => chars.join(""))

describe("LinePattern", () => {
  it("agrees with the platform's engine on every pattern and line", () => {
    FastCheck.assert(
      FastCheck.property(patterns, lines, FastCheck.boolean(), (pattern, line, ignoreCase) => {
        assert.strictEqual(matches(pattern, line, ignoreCase), new RegExp(pattern, ignoreCase ? "i" : "").test(line))
      }),
      { numRuns: 5_000 }
    )
  })

  it("answers at once where backtracking would take years", () => {
    const line = "a".repeat(20_000)
    for (const pattern of ["(a+)+$b", "(a|a)*c", "(a*)*(a*)*(a*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){30}a{30}b"]) {
      assert.isFalse(matches(pattern, line))
    }
    assert.isTrue(matches("(?:a|b)*a(?:a|b){201}$", "ab".repeat(5_000)))
  })

  it("knows characters outside the basic plane, properties, and a leading (?i)", () => {
    assert.isTrue(matches("^.$", "😀"))
    assert.isTrue(matches("^[😀x]$", "😀"))
    assert.isTrue(matches("^\\p{Lu}\\p{Ll}+$", "Émile"))
    assert.isTrue(matches("(?i)^todo:", "ToDo: this"))
    assert.isFalse(matches("^todo:", "ToDo: this"))
    assert.isTrue(matches("^(?<year>\\d{4})-\\d\\d", "2024-01"))
    assert.isTrue(matches("function \\w+\\(\\) {", "function main() {"))
  })

  it("refuses by name what needs backtracking, and what is no expression", () => {
    assert.include(reason("(a)\\1"), "backreferences")
    assert.include(reason("(?<=a)b"), "lookahead and lookbehind")
    assert.include(reason("a(?!b)"), "lookahead and lookbehind")
    assert.include(reason("a("), "not a regular expression")
    assert.include(reason("[z-a]"), "not a regular expression")
    assert.include(reason("((a{1000}){1000}){1000}"), "repeats too much")
    assert.include(reason("a".repeat(3_000)), "longer than")
  })

  it("matches any text with its escaped form", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.fullUnicodeString({ maxLength: 20 }), (text) => {
        assert.isTrue(matches(`^${LinePattern.escape(text)}$`, text))
      })
    )
  })
})
