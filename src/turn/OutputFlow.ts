/** What a running call prints, on its way to events: with secrets masked, and in the styles that it was printed with. */
import type * as Redaction from "../core/Redaction.js"

export interface Shown {
  readonly text: string
  readonly styled?: string | undefined
  readonly unshown?: number | undefined
}

/** One stream of one call. */
export class OutputFlow {
  private readonly flow: Redaction.Flow
  /**
   * With styles, what is not shown yet. Absent once something was masked, because nobody knows where styles would stand then,
   * or once it is too much.
   */
  private waiting: string | undefined = ""
  /** Something was shown with styles, and they may be open. */
  private isStyled = false
  /** Lines that were not shown, to be told with the next text. */
  private unshown = 0

  constructor(redactor: Redaction.Redactor) {
    this.flow = redactor.flow()
  }

  /** Takes the next piece; returns what can be shown now, which may be empty. */
  push({ styled, text, unshown = 0 }: Shown): Shown {
    this.unshown += unshown
    if (this.waiting !== undefined) this.waiting += styled ?? text
    const shown = this.counted(this.flow.push(text))
    if (this.waiting !== undefined && this.waiting.length > mostWaiting) this.waiting = undefined
    return shown
  }

  /** Returns what was held back. */
  end(): Shown {
    return this.counted(this.flow.end())
  }

  private counted(text: string): Shown {
    const shown = this.shown(text)
    if (text === "" || this.unshown === 0) return shown
    const { unshown } = this
    this.unshown = 0
    return { ...shown, unshown }
  }

  private shown(text: string): Shown {
    if (text === "") return { text }
    const styled = this.waiting === undefined ? undefined : begun(this.waiting, text)
    this.waiting = styled === undefined ? undefined : this.waiting?.slice(styled.length)
    if (styled === undefined) {
      if (!this.isStyled) return { text }
      this.isStyled = false
      return { text, styled: `\x1b[0m${text}` }
    }
    if (styled === text) return { text }
    this.isStyled = true
    return { text, styled }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters. A call that prints styles and hardly any text goes on without them. */
const mostWaiting = 100_000

/** The beginning of a text with styles that is this text without them. Undefined where none is. */
const begun = (styled: string, text: string): string | undefined => {
  let end = 0
  let seen = 0
  for (const [index, part] of styled.split(/(\x1b\[[\d;:]*m)/).entries()) {
    if (seen === text.length) break
    if (index % 2 === 1) end += part.length
    else {
      const next = part.slice(0, text.length - seen)
      if (!text.startsWith(next, seen)) return undefined
      seen += next.length
      end += next.length
    }
  }
  return seen === text.length ? styled.slice(0, end) : undefined
}
