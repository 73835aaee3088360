/**
 * The end of what a job prints, in bounded memory. Positions count from the first character that was ever printed, so a
 * reader that comes late learns how much it missed.
 */

/** A part of what was printed. */
export interface Part {
  readonly text: string
  /** Characters before it that are not shown. */
  readonly leftOut: number
}

export class PrintedTail {
  private kept = ""
  /** Characters that were printed before those that are kept. */
  private gone = 0

  /** `capacity`: characters that are kept at least, as far as there are so many. */
  constructor(private readonly capacity: number) {}

  /** Characters printed so far. */
  get length(): number {
    return this.gone + this.kept.length
  }

  push(text: string): void {
    this.kept += text
    // Not at every piece: each cut copies what stays.
    if (this.kept.length <= 2 * this.capacity) return
    const cut = this.kept.length - this.capacity
    this.kept = this.kept.slice(cut)
    this.gone += cut
  }

  /** What was printed from this position on: the last `limit` characters of it. */
  since(position: number, limit: number): Part {
    const from = Math.max(position, this.gone, this.length - limit)
    const text = this.kept.slice(from - this.gone)
    // Half a character at the cut says nothing.
    const whole = from > position ? text.replace(/^[\udc00-\udfff]/, "") : text
    return { text: whole, leftOut: from - position + (text.length - whole.length) }
  }

  /** The last line that is not blank. */
  get lastLine(): string {
    const lines = this.kept.slice(-longestLine).trimEnd().split("\n")
    return lines.at(-1)?.trim() ?? ""
  }
}

const longestLine = 1_000
