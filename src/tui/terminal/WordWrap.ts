/**
 * Words that stream onto a terminal where nothing can be drawn again: each is written when it is complete, on the row where
 * it fits. What goes on in a further row begins below the words of its own line, behind a list's mark.
 */
import * as Display from "./Display.js"

export interface WordWrap {
  /** Takes text without control characters; returns what can be written now. */
  readonly push: (text: string, columns: number) => string
  /** Returns what was held back. The next text begins a row. */
  readonly end: (columns: number) => string
}

export const make = (): WordWrap => {
  /** Columns before the further rows of the line. */
  let hang = 0
  /** Columns taken on the row. */
  let used = 0
  /** What is not written yet: a word that may go on, and the blanks before it. */
  let blanks = 0
  let word = ""

  const put = (text: string, columns: number): string => {
    if (text === "") return ""
    const width = Display.width(text)
    const isFirst = used === 0
    // The columns that a row has before the word, unless it is wider than the row.
    const room = width <= columns ? columns - width : columns
    let before = blanks
    let out = ""
    if (isFirst) {
      hang = hangOf(blanks, text, columns)
      before = Math.min(blanks, room)
    } else if (used + blanks + width > columns) {
      out = "\n"
      used = 0
      before = Math.min(hang, room)
    }
    out += " ".repeat(before) + text
    used += before + width
    // The terminal goes on in the next row with what is wider than one.
    if (used > columns) used %= columns
    blanks = 0
    return out
  }
  const flush = (columns: number): string => {
    const text = word
    word = ""
    return put(text, columns)
  }
  const restart = (): void => {
    hang = 0
    used = 0
    blanks = 0
  }
  return {
    push: (text, columns) => {
      let out = ""
      for (const part of text.split(/( +|\n)/)) {
        if (part === "\n") {
          out += `${flush(columns)}\n`
          restart()
        } else if (part.startsWith(" ")) {
          out += flush(columns)
          blanks += part.length
        } else if (isAscii.test(part)) word += part
        else
          for (const cluster of Display.clusters(part)) {
            // Scripts with wide letters have no blanks between words.
            if (Display.width(cluster) > 1) out += flush(columns) + put(cluster, columns)
            else word += cluster
          }
      }
      return out
    },
    end: (columns) => {
      const out = flush(columns)
      restart()
      return out
    }
  }
}

/** The rows of a whole text. */
export const wrapped = (text: string, columns: number): string => {
  const wrap = make()
  return wrap.push(text, columns) + wrap.end(columns)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isAscii = /^[\x20-\x7e]*$/
const listMark = /^(?:[-*+•]|\d{1,3}[.)])$/

const hangOf = (blanks: number, first: string, columns: number): number => {
  const hang = blanks + (listMark.test(first) ? first.length + 1 : 0)
  return hang > columns / 2 ? 0 : hang
}
