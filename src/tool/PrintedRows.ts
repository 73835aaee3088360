/**
 * What a command printed, row by row, as it stands in the end: a carriage return goes back to the beginning of a row, and
 * what comes then stands in its place. A bar of progress is one row, however often it was drawn.
 */
export class PrintedRows {
  /** What stands in the row that has no end yet. */
  open = ""
  /** A carriage return came, and nothing behind it. */
  private isBack = false
  /** The beginning of the open row was given away. */
  private isBegun = false

  /** Takes the next piece; returns the rows that have ended with it. */
  push(text: string): string {
    if (!this.isBack && !text.includes("\r")) return this.take(text)
    let ended = ""
    for (const part of text.split(/(\r|\n)/)) {
      if (part === "") continue
      if (part === "\r") {
        this.isBack = true
        continue
      }
      if (this.isBack && part !== "\n") {
        if (this.isBegun) ended += this.take("\n")
        this.open = ""
      }
      this.isBack = false
      ended += this.take(part)
    }
    return ended
  }

  /** The row that has no end. */
  end(): string {
    const { open } = this
    this.open = ""
    this.isBack = this.isBegun = false
    return open
  }

  private take(text: string): string {
    const all = this.open + text
    const end = all.lastIndexOf("\n") + 1
    // What is so long is no bar of progress.
    const given = all.length - end > longestRow ? all.length : end
    if (given > 0) this.isBegun = given > end
    this.open = all.slice(given)
    return all.slice(0, given)
  }
}

/** Characters. */
const longestRow = 8_192
