/**
 * A paste that the terminal does not mark, as over a serial line or in an old multiplexer. Its lines would be sent one by
 * one, each into the answer to the one before.
 *
 * Nobody types so many lines within one reading of the terminal: what brings them is pasted, and so is what follows before
 * a pause. Where a program was stopped while somebody typed blindly it is taken for a paste too, which sends nothing.
 */

export interface UnmarkedPaste {
  /** What came at once, before any key of it. */
  readonly read: (text: string) => void
  /** Nothing comes any more. */
  readonly end: () => void
}

/** `tell` is called where a paste begins, and where it has ended. */
export const make = (tell: (name: "paste-start" | "paste-end") => void): UnmarkedPaste => {
  let pause: NodeJS.Timeout | undefined
  const end = () => {
    if (pause === undefined) return
    clearTimeout(pause)
    pause = undefined
    tell("paste-end")
  }
  return {
    read: (text) => {
      if (text.includes(mark)) return end()
      if (pause === undefined) {
        if (linesIn(text) < fewest) return
        tell("paste-start")
      }
      clearTimeout(pause)
      pause = setTimeout(end, quiet)
    },
    end
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The terminal marks it. */
const mark = "\x1b[200~"

/** Lines in one reading. A few may be typed while the program was slow, or be handed to it by a script. */
const fewest = 10

/** Milliseconds without a key, after which a paste is over. A terminal hands on a long one in pieces. */
const quiet = 100

const linesIn = (text: string): number => text.split(/\r\n|\r|\n/).length - 1
