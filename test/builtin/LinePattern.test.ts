import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "fast-check"
import * as LinePattern from "../../src/builtin/LinePattern.js"
import * as Runs from "../kit/Runs.js"

const matches = (pattern: string, line: string, ignoreCase = false): boolean =>
  Either.getOrThrowWith(LinePattern.make(pattern, { ignoreCase }), (reason) => new Error(reason)).test(line)

const reason = (pattern: string): string =>
  Either.match(LinePattern.make(pattern), { onLeft: (text) => text, onRight: () => "accepted" })

/** Whether the pattern is refused because no line can match it, or an alternative in it. */
const isNever = (pattern: string): boolean => reason(pattern).includes("can match no line")

/** What a word is, for the platform's engine. */
const parts = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
const word = `[${parts}]`

/** What ripgrep and we write, and what the platform's engine is given for it. */
const native: { readonly [ours: string]: string } = {
  "\\w": word,
  "\\W": `[^${parts}]`,
  "\\d": "\\p{Nd}",
  "\\s": "\\p{White_Space}",
  "\\b": `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`,
  "\\B": `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`,
  "\\<": `(?:(?<!${word})(?=${word}))`,
  "\\>": `(?:(?<=${word})(?!${word}))`,
  "\\b{start}": `(?:(?<!${word})(?=${word}))`,
  "\\b{end-half}": `(?:(?!${word}))`,
  "\\A": "^",
  "\\z": "$",
  "{": "\\{",
  "[[:upper:]]": "[A-Z]",
  "[[:^lower:]1]": "(?:[^a-z]|1)",
  "[^[:alpha:]é]": "[^a-zA-Zé]",
  "[]a]": "[\\]a]",
  "[^]b]": "[^\\]b]",
  "[a[b-c]]": "[a-c]",
  "[\\w&&[^ab]]": `(?:(?![ab])${word})`,
  "[a-c--b]": "[ac]",
  "[ab~~bc]": "[ac]",
  "[\\w-.]": `[${parts}\\-.]`,
  "\\p{Lu}": "\\p{Lu}",
  "\\pL": "\\p{L}",
  "\\P{greek}": "\\P{Script=Greek}",
  "\\x61": "\\x61",
  "\\x{e9}": "\\u{e9}"
}
const plain = ["a", "b", "B", ".", "[ab]", "[^a]", "[a-c1]", "^", "$", "-", "é", "\\.", "[\\]b]", "Σ"]

interface Pair {
  readonly ours: string
  readonly native: string
}
const both = (text: string): Pair => ({ ours: text, native: text })
const joined = (pairs: ReadonlyArray<Pair>, between = ""): Pair => ({
  ours: pairs.map(({ ours }) => ours).join(between),
  native: pairs.map(({ native }) => native).join(between)
})

/** Patterns over a small alphabet in which everything can be combined with everything. */
const patterns: FastCheck.Arbitrary<Pair> = FastCheck.letrec<{ readonly term: Pair; readonly pattern: Pair }>(
  (tie) => ({
    term: FastCheck.oneof(
      { maxDepth: 4 },
      FastCheck.constantFrom(...plain.map(both), ...Object.entries(native).map(([ours, native]) => ({ ours, native }))),
      FastCheck.constantFrom("a", "b").map(both),
      tie("pattern").map((inner) => joined([both("("), inner, both(")")])),
      tie("pattern").map((inner) => joined([{ ours: "(?P<n>", native: "(?:" }, inner, both(")")])),
      FastCheck.tuple(
        tie("pattern"),
        FastCheck.constantFrom("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "{0}", "{,2}", "*+", "++")
      ).map(([inner, sign]) =>
        joined([
          both("(?:"),
          inner,
          both(")"),
          { ours: sign, native: sign.replace("{,", "{0,").replace(/[*+]\+$/, (signs) => signs.charAt(0)) }
        ])
      )
    ),
    pattern: FastCheck.oneof(
      { maxDepth: 4 },
      FastCheck.array(tie("term"), { maxLength: 4 }).map((terms) => joined(terms)),
      FastCheck.tuple(tie("term"), tie("term")).map((terms) => joined(terms, "|"))
    )
  })
).pattern

// The platform's engine looks behind from the midst of a character of two halves, so there is none.
const chars = ["a", "b", "B", "c", "1", " ", "-", ".", "é", "É", "ς", "{", "]", "漢"]
const lines = FastCheck.array(FastCheck.constantFrom(...chars), { maxLength: 10 }).map((some) => some.join(""))

/** Steps that one character may take, whatever the pattern. */
const mostOfOne = 30 * 3_000

describe("LinePattern", () => {
  it("agrees with the platform's engine on every pattern and line", () => {
    FastCheck.assert(
      FastCheck.property(patterns, lines, FastCheck.boolean(), (pattern, line, ignoreCase) => {
        const expected = new RegExp(pattern.native, ignoreCase ? "isu" : "su").test(line)
        if (!isNever(pattern.ours)) assert.strictEqual(matches(pattern.ours, line, ignoreCase), expected)
        else if (!pattern.ours.includes("|")) assert.isFalse(expected)
      }),
      { numRuns: Runs.of(16_000) }
    )
  })

  it("reads a line in any parts and with any budget, takes no more steps than it was given, and finds the same", () => {
    const cut = FastCheck.array(FastCheck.integer({ min: 1, max: 7 }), { minLength: 1 })
    FastCheck.assert(
      FastCheck.property(patterns, FastCheck.array(lines), cut, FastCheck.nat(20), ({ ours }, all, sizes, given) => {
        if (isNever(ours)) return
        const pattern = Either.getOrThrow(LinePattern.make(ours))
        const reader = pattern.reader()
        for (const line of all) {
          reader.begin()
          let parts = 0
          for (let at = 0; at < line.length && !reader.found();) {
            const size = sizes[parts++ % sizes.length] ?? 1
            const to = Math.min(line.length, at + size)
            const whole = /[\ud800-\udbff]$/.test(line.slice(at, to)) ? to + 1 : to
            const budget = { left: given }
            const stopped = reader.read(line, at, whole, budget)
            assert.isTrue(stopped > at || reader.found())
            if (stopped < whole && !reader.found()) assert.isAtMost(budget.left, 0)
            assert.isAtLeast(budget.left, -500 * (ours.length + 1))
            at = stopped
          }
          if (!reader.found()) reader.end({ left: given })
          assert.strictEqual(reader.found(), pattern.test(line))
        }
      }),
      { numRuns: 1_000 }
    )
  })

  it("takes no more steps at once than it was given, where hundreds of states are followed", () => {
    const text = FastCheck.constantFrom("ab", "abé漢🙂", "a1 -").chain((letters) =>
      FastCheck.string({ unit: FastCheck.constantFrom(...letters), minLength: 3_000, maxLength: 3_000, size: "max" })
    )
    const hard = FastCheck.tuple(
      FastCheck.constantFrom(".*a.{N}c", "[ab]*a[ab]{N}c", "(?i)\\w*a[^c]{N}q", "(a?|\\w\\b){7}.{0,N}#"),
      FastCheck.integer({ min: 1, max: 700 })
    ).map(([source, count]) => source.replace("N", String(count)))
    FastCheck.assert(
      FastCheck.property(hard, text, (source, text) => {
        const reader = Either.getOrThrow(LinePattern.make(source)).reader()
        reader.begin()
        for (let at = 0; at < text.length && !reader.found();) {
          const budget = { left: 20_000 }
          const before = at
          at = reader.read(text, at, text.length, budget)
          assert.isAbove(at, before)
          assert.isAtLeast(budget.left, -mostOfOne)
        }
      }),
      { numRuns: 10 }
    )
  })

  it("answers at once where backtracking would take years", () => {
    const line = "a".repeat(20_000)
    for (const pattern of ["(a+)+$", "(a|a)*c", "(a*)*(a*)*(a*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){30}a{30}b"]) {
      assert.isFalse(matches(pattern, `${line}-`))
    }
    assert.isTrue(matches("(?:a|b)*a(?:a|b){201}$", "ab".repeat(5_000)))
  })

  it.each([
    ["^[😀x]$", "😀"],
    ["^\\ud83d\\ude00$", "😀"],
    ["^\\p{Lu}\\p{Ll}+$", "Émile"],
    ["^\\w+$", "Émile"],
    ["\\bécole\\b", "une école!"],
    ["(?i)^todo:", "ToDo: this"],
    ["a(?i)b(?-i)c", "aBc"],
    ["(?i:a)b|x", "Ab"],
    ["^(?<year>\\d{4})-\\d\\d", "2024-01"],
    ["function \\w+\\(\\) {", "function main() {"],
    ["{}", "{}"],
    ["\\[[^]]*\\]", "a[b]c"],
    ["\\x{1F600}|\\u{41}|\\U00000042", "B"],
    ["[[:xdigit:]]{4}-\\t?", "beef-"],
    ["\\/\\_\\-\\ \\%", "/_- %"],
    ["\\Afoo\\z", "foo"],
    ["[\\w--\\d]9", "a9"],
    ["(?s-m:a.b)", "a b"]
  ])("understands %s as ripgrep does", (pattern, line) => {
    assert.isTrue(matches(pattern, line))
    assert.isFalse(matches(pattern, ":"))
  })

  it("does not take a letter of another case for the same where that was not said", () => {
    assert.isFalse(matches("^todo:", "ToDo: this"))
    assert.isFalse(matches("a(?i)b(?-i)c", "aBC"))
    assert.isFalse(matches("(?i:a)b", "AB"))
    assert.isFalse(matches("(?i)[^a]", "A"))
    assert.isFalse(matches("(?i)\\P{Lu}", "a"))
    assert.isTrue(matches("^.$", "😀"))
  })

  it.each([
    ["(a)\\1", "backreferences"],
    ["(?P<n>a)(?P=n)", "backreferences"],
    ["(?<n>a)\\k<n>", "backreferences"],
    ["(?<=a)b", "lookahead and lookbehind"],
    ["a(?!b)", "lookahead and lookbehind"],
    ["(?>a)", "Groups are"],
    ["(?#x)a", "Groups are"],
    ["(?x)a b", "the flag x"],
    ["(?-u)\\w", "the flag -u"],
    ["a(", "the ( at character 2 has no )"],
    ["a)", "the ) at character 2 has no ("],
    ["[z-a]", "not a regular expression"],
    ["a{3,1}", "from more to less"],
    ["*.ts", "nothing to repeat"],
    ["(?i)*", "flags cannot be repeated"],
    ["a\\", "single \\"],
    ["((a{1000}){1000}){1000}", "repeats too much"],
    ["a".repeat(3_000), "longer than"],
    ["a\nb", "has a newline"],
    ["a\\nb", "has a newline"],
    ["a|b\\x0a", "has a newline"],
    ["[\\n]", "has a newline"],
    ["[^]*a[^]{1450}c", "Write . for any character"],
    ["[]", "has no ]"],
    ["[a", "has no ]"],
    ["[[abc]", "also in a class"],
    ["[:alpha:]+", "Write [[:alpha:]]"],
    ["[[:letter:]]", "The names are alnum"],
    ["[&&a]", "\\&"],
    ["[a&&]", "\\&"],
    ["[\\b]", "in a class"],
    ["\\h+", "Write [ \\t]"],
    ["\\Qa.b\\E", "Write a \\ before"],
    ["a\\Z", "Write $"],
    ["\\Ka", "leave it out"],
    ["\\R", "write $"],
    ["\\cA", "\\x1b"],
    ["\\0", "\\x00"],
    ["\\y", "which this search does not know"],
    ["\\xg", "two hexadecimal digits"],
    ["\\ud800", "is no character"],
    ["\\x{110000}", "is no character"],
    ["\\p{Nope}", "Categories are written"],
    ["\\b{word}", "Boundaries are"],
    ["$this->x", "Write \\$"],
    ["\\b(that|$this)\\b", "Write \\$"],
    ["a^b", "Write \\$ or \\^"],
    ["foo\\bbar", "can match no line"]
  ])("refuses %s, and says what to do", (pattern, sentence) => {
    assert.include(reason(pattern), sentence)
  })

  it("refuses no pattern of which an assertion is of use", () => {
    for (const pattern of [
      "(^|,)a(,|$)",
      "^$",
      "^\\s*$",
      "\\b",
      "a\\b-",
      "(?:\\b|x)a",
      "\\$x",
      "x{0}$",
      "",
      "[^\\n]",
      "\\s"
    ]) {
      assert.strictEqual(reason(pattern), "accepted", pattern)
    }
  })

  it("matches any text with its escaped form", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.fullUnicodeString({ maxLength: 20 }), (text) => {
        const pattern = LinePattern.make(`^${LinePattern.escape(text)}$`, { newlines: true })
        assert.isTrue(Either.getOrThrow(pattern).test(text))
      })
    )
  })
})
