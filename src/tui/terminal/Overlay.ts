/**
 * What lies over a screen: a pager, or the programs of others, which may have the terminal also while a pager is open. What
 * is printed meanwhile waits. Mutable; every function is one step.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as TerminalHandover from "./TerminalHandover.js"
import * as Pager from "./Pager.js"

interface Size {
  readonly columns: number
  readonly rows: number
}

export interface Overlay<Target> {
  /** How the terminal is left to others. */
  readonly door: TerminalHandover.Door<Target>
  readonly isPaging: () => boolean
  /** Whether nothing of the screen can be seen. */
  readonly isShut: () => boolean
  readonly open: (text: Pager.Text, size: Size, options: { readonly color: boolean; readonly atEnd: boolean }) => void
  /** The pager as it is now, where there is one; `isAnew` opens it once more, as others may have closed it. */
  readonly draw: (note: string | undefined, isAnew?: boolean) => string
  /** The effect of a key on the pager: false closes it. */
  readonly press: (input: UserInput) => boolean
  readonly resize: (size: Size) => void
  /** Keeps what is printed. */
  readonly hold: (text: string) => void
  /** Whether what waits ends in the middle of a line; nothing where nothing waits. */
  readonly isUnfinished: () => boolean | undefined
  /** Takes it off for a while, so that what is below can be drawn. */
  readonly lift: () => string
  /** Takes it off; yields what waited, too. */
  readonly remove: () => { readonly out: string; readonly text: string }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The screen can be seen. Without `leaves` nobody can leave it. */
export const make = <Target>(leaves: boolean): Overlay<Target> => {
  let pager: Pager.Pager | undefined
  let waiting = ""
  const door = TerminalHandover.make<Target>(leaves)
  const lift = (): string => pager?.close() ?? ""
  return {
    door,
    isPaging: () => pager !== undefined,
    isShut: () => pager !== undefined || door.departure() !== undefined,
    open: (text, size, options) => {
      pager = Pager.make(text, size, options)
    },
    draw: (note, isAnew = false) => {
      if (pager === undefined || door.departure() !== undefined) return ""
      if (isAnew) pager.reopen()
      return pager.draw(note)
    },
    press: (input) => pager?.press(input) ?? false,
    resize: ({ columns, rows }) => pager?.resize(columns, rows),
    hold: (text) => {
      waiting += text
    },
    isUnfinished: () => (waiting === "" ? undefined : !waiting.endsWith("\n")),
    lift,
    remove: () => {
      const removed = { out: lift(), text: waiting }
      pager = undefined
      waiting = ""
      door.comeBack()
      return removed
    }
  }
}
