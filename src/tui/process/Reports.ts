/**
 * What a terminal says among the keys: where the mouse is, what it is, keys in a notation that nobody asked for. Another
 * program may have left it so. Node's parser of keys knows a few such sequences, and takes the rest of all others for typed
 * characters: `0;10;5M` stood in the prompt, and a letter of it may answer a question.
 *
 * ```
 *  keys ── ESC [ 0-? ──────► a sequence ── its last letter ──► keys
 *       ── ESC [ M ────────► three characters ───────────────► keys
 *       ── ESC ] or P, 0-9 ► a string ── BEL or ESC \ ───────► keys
 * ```
 *
 * Mutable. Whatever is no part of it ends it, and so does the end of what came at once: nobody loses what they type.
 */

export interface Reports {
  /** Whether this key is part of a report. */
  readonly has: (sequence: string) => boolean
  /** What came at once is over. */
  readonly over: () => void
  readonly isBegun: () => boolean
}

/** None has begun. */
export const make = (): Reports => {
  let state: "keys" | "sequence" | "string" | "opening" | number = "keys"
  const begins = (sequence: string): boolean => {
    const isEnd = state === "string" && sequence === "\x1b\\"
    state = "keys"
    if (sequence === "\x1b]" || sequence === "\x1bP") state = "opening"
    else if (sequence === "\x1b[M") state = 3
    else if (/^\x1b\[[ -?]+$/.test(sequence)) state = "sequence"
    return isEnd || state === 3 || state === "sequence"
  }
  /** Whether a character goes on with what has begun. */
  const goesOn = (character: string): boolean => {
    if (typeof state === "number") {
      state = state === 1 ? "keys" : state - 1
      return true
    }
    const before = state
    if (before === "opening") state = /^[0-9>+!]$/.test(character) ? "string" : "keys"
    else if (before === "sequence") state = /^[ -?]$/.test(character) ? "sequence" : "keys"
    else if (before === "string") state = /^\P{Cc}$/u.test(character) ? "string" : "keys"
    if (before === "sequence") return /^[ -~]$/.test(character)
    return state === "string" || (before === "string" && character === "\x07")
  }
  return {
    has: (sequence) => {
      if (sequence.startsWith("\x1b")) return begins(sequence)
      return state === "keys" ? false : goesOn(sequence)
    },
    over: () => {
      state = "keys"
    },
    isBegun: () => state !== "keys"
  }
}
