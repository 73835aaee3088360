/**
 * Finds the lines of a text that match, in bounded memory however long the text or any of its lines is, and in as many
 * parts of bounded work as its user likes.
 */
import type * as LinePattern from "./LinePattern.js"
import { clip } from "./LineReader.js"

/** A line that matches, and what is shown of it: all of a short one, its beginning, or what is around the match. */
export interface Match {
  /** 1-based. */
  readonly number: number
  readonly text: string
  /** Characters of the line before `text`. */
  readonly before: number
  /** Whether the line goes on behind `text`. */
  readonly isCut: boolean
}

/** `read`: all that was given; `more`: the budget is used up before; `stopped`: `onMatch` wants no more. */
export type Progress = "read" | "more" | "stopped"

export interface LineSearch {
  /** Gives the next piece of the text, when the one before is read. */
  readonly push: (text: string) => void
  /** Reads on, in what was given. */
  readonly run: (budget: LinePattern.Budget) => Progress
  /** Ends the last line; no text follows. False when `onMatch` wants no more. */
  readonly end: (budget: LinePattern.Budget) => boolean
  /** The number of the line that is read. */
  readonly line: () => number
  /** Characters of the piece that are not read yet. */
  readonly left: () => number
}

/** How many steps of a pattern it takes as long as to go to the next line. */
const lineSteps = 10

/** Calls back for each line that matches, in their order, until that returns false. `shown`: characters of a line. */
export const make = (
  pattern: LinePattern.LinePattern,
  shown: number,
  onMatch: (match: Match) => boolean
): LineSearch => {
  const lead = Math.floor((shown * 2) / 3)
  const reader = pattern.reader()
  let text = ""
  let at = 0
  /** Where the line's part that is read ends, and the next line begins; undefined where that was not looked for. */
  let part: { readonly to: number; readonly next: number | undefined } | undefined
  /** Where the line begins in this piece. */
  let from = 0
  /** A carriage return at the end of the piece before: nobody knows whether it ends the line. */
  let held = ""
  let number = 1
  /** Of the line, in the pieces before: how long it is there, its first characters, and its last ones. */
  let length = 0
  let head = ""
  let tail = ""
  /** What is shown of the line, once it matches. */
  let excerpt: { readonly before: number; text: string; isDone: boolean } | undefined
  reader.begin()

  const take = (piece: string): void => {
    text = piece
    at = 0
    from = 0
    part = undefined
  }

  const partHere = () => {
    const newline = text.indexOf("\n", at)
    if (newline < 0) return { to: text.length, next: undefined }
    const isReturn = !pattern.namesReturn && newline > at && text[newline - 1] === "\r"
    return { to: isReturn ? newline - 1 : newline, next: newline + 1 }
  }

  /** The line matches, and what matches ends here. */
  const begunExcerpt = () => {
    const end = length + at - from
    const piece = text.slice(from, at)
    if (end <= shown) return { before: 0, text: head + piece, isDone: false }
    const around = (tail + piece).slice(-lead)
    const isHalf = /^[\udc00-\udfff]/.test(around)
    return { before: end - around.length + (isHalf ? 1 : 0), text: isHalf ? around.slice(1) : around, isDone: false }
  }

  const tell = (before: number, whole: string): boolean => {
    const shownText = clip(whole, shown)
    const isCut = shownText.length < whole.length
    // The carriage return that ends a line is there to be found, not to be shown.
    const text = pattern.namesReturn && !isCut ? shownText.replace(/\r$/, "") : shownText
    return onMatch({ number, text, before, isCut })
  }

  /** Adds to what is shown what stands behind the match; false when that is wanted no more. */
  const show = (to: number, isLast: boolean): boolean => {
    if (excerpt === undefined || excerpt.isDone) return true
    excerpt.text += text.slice(at, Math.min(to, at + shown + 1 - excerpt.text.length))
    // One character more tells that there are more.
    excerpt.isDone = isLast || excerpt.text.length > shown
    return !excerpt.isDone || tell(excerpt.before, excerpt.text)
  }

  const nextLine = (start: number): void => {
    from = start
    at = start
    number++
    length = 0
    head = ""
    tail = ""
    excerpt = undefined
    part = undefined
    reader.begin()
  }

  return {
    push: (more) => {
      const whole = held + more
      held = !pattern.namesReturn && whole.endsWith("\r") ? "\r" : ""
      take(held === "" ? whole : whole.slice(0, -1))
    },
    run: (budget) => {
      while (budget.left > 0) {
        part ??= partHere()
        const { to, next } = part
        if (excerpt === undefined) {
          if (at < to) at = reader.read(text, at, to, budget)
          if (!reader.found() && at < to) return "more"
          if (!reader.found() && next !== undefined) reader.end(budget)
          if (reader.found()) excerpt = begunExcerpt()
        }
        const goesOn = show(to, next !== undefined)
        at = to
        if (!goesOn) return "stopped"
        if (next === undefined) {
          const kept = text.slice(from)
          if (head.length <= shown) head += kept.slice(0, shown + 1 - head.length)
          tail = kept.length >= lead ? kept.slice(-lead) : (tail + kept).slice(-lead)
          length += kept.length
          take("")
          return "read"
        }
        nextLine(next)
        budget.left -= lineSteps
      }
      return "more"
    },
    end: (budget) => {
      if (length === 0 && held === "") return true
      if (excerpt === undefined) {
        reader.end(budget)
        if (reader.found()) excerpt = begunExcerpt()
      }
      return show(0, true)
    },
    line: () => number,
    left: () => text.length - at
  }
}
