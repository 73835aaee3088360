/** Short texts are searched without the help that long ones have, and both find the same. */
import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Haystack from "../../src/shell/Haystack.js"

const word = FastCheck.stringMatching(/^[ab/]{1,4}$/)
const words = FastCheck.array(word, { minLength: 1, maxLength: 4 })
const pattern = FastCheck.tuple(FastCheck.stringMatching(/^[ab/ *?]{0,5}$/), word).map((parts) => parts.join(""))

/** Holds nothing that a pattern could mean, and is long. */
const filler = "\u00ff".repeat(5_000)

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
          new Haystack.WordLists([text], few).finds(needle),
          new Haystack.WordLists([text, [filler]], many).finds(needle)
        )
        assert.strictEqual(
          new Haystack.WordRows([text], [], few).finds([pattern]),
          new Haystack.WordRows([text, [filler]], [], many).finds([pattern])
        )
      }),
      { numRuns: 2_000 }
    )
  })
})
