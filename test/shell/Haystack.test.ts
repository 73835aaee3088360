/** Short texts are searched without the help that long ones have, and both find the same. */
import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Glob from "../../src/core/Glob.js"
import * as Haystack from "../../src/shell/Haystack.js"
import { WordLists } from "../../src/shell/WordLists.js"

const word = FastCheck.stringMatching(/^[ab/]{1,4}$/)
const words = FastCheck.array(word, { minLength: 1, maxLength: 4 })
const pattern = FastCheck.tuple(FastCheck.stringMatching(/^[ab/ *?]{0,5}$/), word).map((parts) => parts.join(""))

/** Holds nothing that a pattern could mean, and is long. */
const filler = "\u00ff".repeat(5_000)

const listOf = (words: ReadonlyArray<string>): Haystack.List => ({
  words,
  text: words.join(" "),
  loose: words.every((word) => !word.includes(" "))
})

describe("a search for patterns", () => {
  it("finds in a short text what it finds there beside a long one", () => {
    FastCheck.assert(
      FastCheck.property(words, pattern, (text, pattern) => {
        const needle = Haystack.needle(pattern)
        const whole = text.join(" ")
        const few = new Haystack.Pairs([whole])
        const many = new Haystack.Pairs([whole, filler])
        assert.strictEqual(
          new Haystack.Haystack([whole]).finds(needle),
          new Haystack.Haystack([whole, filler]).finds(needle)
        )
        assert.strictEqual(
          new WordLists([listOf(text)], few).finds(needle),
          new WordLists([listOf(text), listOf([filler])], many).finds(needle)
        )
        assert.strictEqual(
          new Haystack.WordRows([listOf(text)], [], few).finds([pattern]),
          new Haystack.WordRows([listOf(text), listOf([filler])], [], many).finds([pattern])
        )
      }),
      { numRuns: 2_000 }
    )
  })

  it("finds in lists of words what begins at one of them and goes on to the end", () => {
    const letters = FastCheck.stringMatching(/^[ab\u{1f600} ]{1,4}$/u)
    const lists = FastCheck.array(FastCheck.array(letters, { minLength: 1, maxLength: 4 }), { maxLength: 4 })
    const shape = FastCheck.stringMatching(/^[ab?][ab\u{1f600}?[\]*]{0,5}$/u)
    FastCheck.assert(
      FastCheck.property(lists, shape, (lists, pattern) => {
        const glob = Glob.compile(pattern)
        const expected = lists.some((words) =>
          words.some((_, at) => Glob.matches(glob, words.slice(at).join("\u0001")))
        )
        const found = new WordLists(lists.map(listOf), new Haystack.Pairs([])).finds(Haystack.needle(pattern))
        assert.strictEqual(found, expected)
      }),
      { numRuns: 5_000 }
    )
  })
})
