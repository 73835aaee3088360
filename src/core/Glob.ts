/**
 * Patterns over names and signatures: `*` any text (spaces, slashes and newlines included), `?` one character, `[abc]`,
 * `[a-z]`, `[!a]` one character of a class. Anchored at both ends, always case-sensitive, no escapes: `[*]` is a star.
 *
 * A pattern is the pieces between its stars. Each piece is searched once, behind the piece before it. The leftmost
 * place is as good as any other, because a star takes everything in between. So the time of a match grows with the text
 * only.
 */

export interface Glob {
  /** As written. */
  readonly pattern: string
  /** The text before the first wildcard. */
  readonly head: string
  /** False: the pattern matches only itself. */
  readonly wild: boolean
  readonly stars: boolean
  /** The longest literal text of the pattern: every match contains it. */
  readonly needle: string
  /** Internal to this file: the texts between the stars. */
  readonly pieces: ReadonlyArray<Piece>
}

/** The pattern that fits this text alone. */
export const escape = (text: string): string => text.replace(/[*?[]/g, "[$&]")

export const compile = (pattern: string): Glob => of(pattern, partsOf(pattern))

/**
 * One place of a pattern: a character, any character, one of a class. A star is `undefined`.
 *
 * @internal
 */
export type Part = Step | undefined

/**
 * A pattern of another syntax, whose parts are known.
 *
 * @internal
 */
export const of = (pattern: string, parts: ReadonlyArray<Part>): Glob => {
  const pieces: Array<Piece> = []
  let steps: Array<Step> = []
  let text = ""
  let head: string | undefined
  let needle = ""
  let run = ""
  const close = () => pieces.push(steps.every(({ _tag }) => _tag === "One") ? text : steps)
  for (const [at, step] of parts.entries()) {
    if (step?._tag === "One") {
      const char = String.fromCodePoint(step.code)
      steps.push(step)
      text += char
      run += char
      if (run.length > needle.length) needle = run
      continue
    }
    head ??= run
    run = ""
    if (step !== undefined) steps.push(step)
    else if (at === 0 || parts[at - 1] !== undefined) {
      close()
      steps = []
      text = ""
    }
  }
  close()
  return { pattern, head: head ?? run, wild: head !== undefined, stars: pieces.length > 1, needle, pieces }
}

/** Takes time proportional to the text, and at the very worst to pattern × text. */
export const matches = (glob: Glob, text: string): boolean => {
  if (!glob.wild) return text === glob.head
  const { pieces } = glob
  const first = pieces[0] ?? ""
  let at = endAt(first, text, 0)
  if (at < 0) return false
  const last = pieces.length - 1
  if (last === 0) return at === text.length
  for (let i = 1; i < last; i++) {
    at = endOf(pieces[i] ?? "", text, at)
    if (at < 0) return false
  }
  return endsWith(pieces[last] ?? "", text, at)
}

/** The text begins with the piece before the pattern's first star. */
export const begins = ({ pieces }: Glob, text: string): boolean => endAt(pieces[0] ?? "", text, 0) >= 0

/** Matches a pattern that is used once. */
export const test = (pattern: string, text: string): boolean => matches(compile(pattern), text)

/**
 * The places of a pattern at which a match may stand: 0 is its beginning. Behind a star a place counts from the star on.
 *
 * @internal
 */
export interface Track {
  /** The places behind this character. */
  readonly take: (places: ReadonlySet<number>, code: number) => ReadonlySet<number>
  /** The places behind one character that is none of these. */
  readonly takeOther: (places: ReadonlySet<number>, codes: ReadonlyArray<number>) => ReadonlySet<number>
  /** The places behind any text. */
  readonly takeAny: (places: ReadonlySet<number>) => ReadonlySet<number>
  readonly isEnd: (places: ReadonlySet<number>) => boolean
}

/**
 * A pattern as a track, for texts of which only the shape is known: see `TextShape`.
 *
 * @internal
 */
export const track = ({ pieces }: Glob): Track => {
  const steps = pieces.flatMap((piece, i): ReadonlyArray<Step | undefined> => [
    ...(i === 0 ? [] : [undefined]),
    ...(typeof piece === "string" ? Array.from(piece, one) : piece)
  ])
  const moved = (places: ReadonlySet<number>, isTaken: (step: Step) => boolean): ReadonlySet<number> => {
    const next = new Set<number>()
    for (const place of places) {
      // A star takes nothing or more, so what stands behind it is tried too.
      for (let at = place; ; at++) {
        const step = steps[at]
        if (at < steps.length && step === undefined) next.add(at)
        else {
          if (step !== undefined && isTaken(step)) next.add(at + 1)
          break
        }
      }
    }
    return next
  }
  const take: Track["take"] = (places, code) => moved(places, (step) => accepts(step, code))
  const takeOther: Track["takeOther"] = (places, codes) => moved(places, (step) => acceptsOther(step, codes))
  const takeAny: Track["takeAny"] = (places) => {
    const first = Math.min(...places)
    return new Set(Array.from({ length: Math.max(0, steps.length + 1 - first) }, (_, i) => first + i))
  }
  const isEnd: Track["isEnd"] = (places) => {
    for (const place of places) if (steps.slice(place).every((step) => step === undefined)) return true
    return false
  }
  return { take, takeOther, takeAny, isEnd }
}

/** Whether a text holds a wildcard: a star, a question mark, a class that is closed. */
export const isWild = (pattern: string): boolean => compile(pattern).wild

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A literal text, or single characters where some of them are wildcards. */
type Piece = string | ReadonlyArray<Step>

/** A place of a pattern that takes one character. */
export type Step =
  | { readonly _tag: "AnyOne" }
  | { readonly _tag: "One"; readonly code: number }
  | { readonly _tag: "Class"; readonly negated: boolean; readonly ranges: ReadonlyArray<readonly [number, number]> }

const one = (char: string): Step => ({ _tag: "One", code: char.codePointAt(0) ?? 0 })

const anyOne: Step = { _tag: "AnyOne" }
const star = 0x2a
const question = 0x3f
const bracket = 0x5b

const width = (code: number): number => (code > 0xffff ? 2 : 1)

/** The end of the piece when it begins here; -1 when it does not. */
const endAt = (piece: Piece, text: string, at: number): number => {
  if (typeof piece === "string") return text.startsWith(piece, at) ? at + piece.length : -1
  for (const step of piece) {
    if (at >= text.length) return -1
    const code = text.codePointAt(at) ?? 0
    if (!accepts(step, code)) return -1
    at += width(code)
  }
  return at
}

/** The end of the piece's first occurrence. */
const endOf = (piece: Piece, text: string, from: number): number => {
  if (typeof piece === "string") {
    const found = text.indexOf(piece, from)
    return found < 0 ? -1 : found + piece.length
  }
  for (let at = from; at < text.length; at += width(text.codePointAt(at) ?? 0)) {
    const end = endAt(piece, text, at)
    if (end >= 0) return end
  }
  return -1
}

/** The piece stands at the very end, and does not begin before this position. */
const endsWith = (piece: Piece, text: string, from: number): boolean => {
  if (typeof piece === "string") return text.length - piece.length >= from && text.endsWith(piece)
  let at = text.length
  for (let i = piece.length - 1; i >= 0; i--) {
    if (at <= from) return false
    const low = text.charCodeAt(at - 1)
    // The second half of a pair belongs to the character before it.
    const paired = (low & 0xfc00) === 0xdc00 && at - 2 >= from && (text.charCodeAt(at - 2) & 0xfc00) === 0xd800
    at -= paired ? 2 : 1
    const step = piece[i]
    if (step === undefined || !accepts(step, text.codePointAt(at) ?? 0)) return false
  }
  return true
}

const accepts = (step: Step, code: number): boolean => {
  if (step._tag === "One") return step.code === code
  if (step._tag === "AnyOne") return true
  return step.ranges.some(([low, high]) => low <= code && code <= high) !== step.negated
}

/** The step accepts a character that is none of these. */
const acceptsOther = (step: Step, codes: ReadonlyArray<number>): boolean => {
  if (step._tag === "One") return !codes.includes(step.code)
  if (step._tag === "AnyOne" || step.negated) return true
  return step.ranges.some(([low, high]) => high - low >= codes.filter((code) => low <= code && code <= high).length)
}

const partsOf = (pattern: string): ReadonlyArray<Part> => {
  const parts: Array<Part> = []
  for (let at = 0; at < pattern.length;) {
    const code = pattern.codePointAt(at) ?? 0
    const set = code === bracket ? classAt(pattern, at) : undefined
    parts.push(set?.step ?? (code === star ? undefined : code === question ? anyOne : { _tag: "One", code }))
    at = set?.end ?? at + width(code)
  }
  return parts
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
