/** The end of what a job prints, in bounded memory, for people and for one reader who learns how much it missed. */
import { PrintedRows } from "../tool/PrintedRows.js"

/** A part of what was printed. */
export interface Part {
  readonly text: string
  /** Characters before it that are not shown. */
  readonly leftOut: number
}

export class PrintedTail {
  /** Characters that were ever taken. */
  heard = 0
  private readonly rows = new PrintedRows()
  /** Rows that have ended. */
  private kept = ""
  /** Characters of rows before those that are kept. */
  private gone = 0
  /** Up to where the reader has seen them, counted from the first one ever. */
  private seen = 0
  /** What the reader has seen of the row that was open then. */
  private seenOpen = ""

  /** `capacity`: characters that are kept at least, as far as there are so many. */
  constructor(private readonly capacity: number) {}

  push(text: string): void {
    this.heard += text.length
    this.kept += this.rows.push(text)
    // Not at every piece: each cut copies what stays.
    if (this.kept.length <= 2 * this.capacity) return
    const cut = this.kept.length - this.capacity
    this.kept = this.kept.slice(cut)
    this.gone += cut
  }

  /** The last characters of it. */
  last(limit: number): Part {
    return end(this.kept + this.rows.open, this.gone, limit)
  }

  /** What the reader has not seen yet, which it has seen then: the last characters of it. */
  unseen(limit: number): Part {
    const { open } = this.rows
    const text = this.kept.slice(Math.max(0, this.seen - this.gone)) + open
    const before = Math.max(0, this.gone - this.seen)
    // A row that was drawn anew is read anew.
    const known = before === 0 && text.startsWith(this.seenOpen) ? this.seenOpen.length : 0
    this.seen = this.gone + this.kept.length
    this.seenOpen = open
    return end(text.slice(known), before, limit)
  }

  /** The last line that is not blank. */
  get lastLine(): string {
    const lines = (this.kept.slice(-longestLine) + this.rows.open).slice(-longestLine).trimEnd().split("\n")
    return lines.at(-1)?.trim() ?? ""
  }
}

const longestLine = 1_000

/** Half a character at the cut says nothing. */
const end = (text: string, before: number, limit: number): Part => {
  const from = Math.max(0, text.length - limit)
  const last = text.slice(from)
  const whole = before + from > 0 ? last.replace(/^[\udc00-\udfff]/, "") : last
  return { text: whole, leftOut: before + text.length - whole.length }
}
