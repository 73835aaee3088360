/**
 * Patterns over names and signatures: `*` any text (spaces, slashes and newlines included), `?` one character, `[abc]`,
 * `[a-z]`, `[!a]` one character of a class. Anchored at both ends, always case-sensitive, no escapes: `[*]` is a star.
 */

export interface Glob {
  /** As written. */
  readonly pattern: string
  /** The text before the first wildcard. */
  readonly head: string
  /** False: the pattern is its own only match. */
  readonly wild: boolean
  /** Internal to this file. */
  readonly steps: ReadonlyArray<Step>
}

export const compile = (pattern: string): Glob => {
  const steps: Array<Step> = []
  let head: string | undefined
  let at = 0
  while (at < pattern.length) {
    const code = pattern.codePointAt(at) ?? 0
    const set = code === bracket ? classAt(pattern, at) : undefined
    if (set !== undefined || code === star || code === question) head ??= pattern.slice(0, at)
    if (set !== undefined) {
      steps.push(set.step)
      at = set.end
      continue
    }
    if (code !== star) steps.push(code === question ? anyOne : { _tag: "One", code })
    else if (steps.at(-1) !== anyText) steps.push(anyText)
    at += width(code)
  }
  return { pattern, head: head ?? pattern, wild: head !== undefined, steps }
}

/** Takes time proportional to pattern × text at the very worst, never more: only the last star is ever retried. */
export const matches = (glob: Glob, text: string): boolean => {
  if (!glob.wild) return text === glob.pattern
  if (!text.startsWith(glob.head)) return false
  const { steps } = glob
  let step = 0
  let at = 0
  let starStep = -1
  let starAt = 0
  while (at < text.length) {
    const next = steps[step]
    if (next?._tag === "Any") {
      starStep = step++
      starAt = at
      continue
    }
    const code = text.codePointAt(at) ?? 0
    if (next !== undefined && accepts(next, code)) {
      step++
      at += width(code)
      continue
    }
    if (starStep < 0) return false
    // The last star takes one more character; an earlier star could only take what this one can take as well.
    starAt += width(text.codePointAt(starAt) ?? 0)
    at = starAt
    step = starStep + 1
  }
  while (steps[step]?._tag === "Any") step++
  return step === steps.length
}

/** Matches a pattern that is used once. */
export const test = (pattern: string, text: string): boolean => matches(compile(pattern), text)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Step =
  | { readonly _tag: "Any" }
  | { readonly _tag: "AnyOne" }
  | { readonly _tag: "One"; readonly code: number }
  | { readonly _tag: "Class"; readonly negated: boolean; readonly ranges: ReadonlyArray<readonly [number, number]> }

const anyText: Step = { _tag: "Any" }
const anyOne: Step = { _tag: "AnyOne" }
const star = 0x2a
const question = 0x3f
const bracket = 0x5b

const width = (code: number): number => (code > 0xffff ? 2 : 1)

const accepts = (step: Exclude<Step, { _tag: "Any" }>, code: number): boolean => {
  if (step._tag === "One") return step.code === code
  if (step._tag === "AnyOne") return true
  return step.ranges.some(([low, high]) => low <= code && code <= high) !== step.negated
}

// A bracket that is never closed is a plain character; `]` right after the opening belongs to the class.
const classAt = (pattern: string, from: number): { readonly step: Step; readonly end: number } | undefined => {
  const negated = pattern[from + 1] === "!"
  const start = from + (negated ? 2 : 1)
  const end = pattern.indexOf("]", start + 1)
  if (end < 0) return undefined
  const codes = Array.from(pattern.slice(start, end), (char) => char.codePointAt(0) ?? 0)
  const ranges: Array<readonly [number, number]> = []
  for (let i = 0; i < codes.length; i++) {
    const low = codes[i] ?? 0
    const high = codes[i + 2]
    if (codes[i + 1] === 0x2d && high !== undefined) {
      ranges.push([low, high])
      i += 2
    } else ranges.push([low, low])
  }
  return { step: { _tag: "Class", negated, ranges }, end: end + 1 }
}
