/** A regular expression for one line at a time, in linear time, for a machine without ripgrep. The syntax is that of RE2. */
import * as Effect from "effect/Effect"

export interface LinePattern {
  /** How many characters of a line are searched: fewer for a large pattern. */
  readonly longest: number
  /** Where the first match in a line begins; -1 for none. */
  readonly find: (line: string) => number
}

/** Fails with what is wrong with the pattern. */
export const make = (pattern: string, ignoreCase: boolean): Effect.Effect<LinePattern, string> =>
  Effect.gen(function* () {
    if (pattern.length * repeats(pattern) > maxSize) {
      return yield* Effect.fail("Without ripgrep the pattern is too large. Use a shorter one, with smaller counts.")
    }
    const { RE2JS } = yield* Effect.promise(() => import("re2js"))
    const compiled = yield* Effect.try({
      try: () => RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0),
      catch: (error) =>
        `The pattern is not a regular expression: ${error instanceof Error ? error.message : "unknown"}.`
    })
    const longest = Math.min(mostCharacters, Math.max(fewestCharacters, Math.floor(work / compiled.programSize())))
    return {
      longest,
      find: (line) => {
        if (!compiled.test(line)) return -1
        const matcher = compiled.matcher(line)
        return matcher.find() ? matcher.start() : -1
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters times counts: what takes 50 ms to compile. */
const maxSize = 6_000
const mostCharacters = 10_000
const fewestCharacters = 300
/** Instructions times characters: what takes some 20 ms. */
const work = 200_000

/** How often parts are repeated by counts such as `{2,30}`. A count may stand in another. */
const repeats = (pattern: string): number => {
  const counts = Array.from(pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g), ([, low, high]) => Number(high || low))
  const isNested = counts.length > 1 && pattern.includes("){")
  const all = isNested ? counts.reduce((product, count) => product * count, 1) : counts.reduce((sum, n) => sum + n, 1)
  return Math.min(1_000, all)
}
