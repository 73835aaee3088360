/**
 * A paste as it arrives: key by key, between two keys that mark it. Its target is fixed at its beginning; dialogs that
 * open or close meanwhile do not change it. Mutable; every function is one step.
 */
import type { UserInput } from "@effect/platform/Terminal"
import * as Option from "effect/Option"

export interface Paste<Target> {
  /** Whether keys belong to it. */
  readonly isOpen: () => boolean
  /** A paste into nowhere is dropped. */
  readonly begin: (to: Target | "nowhere") => void
  /** A key of it, and the time since the key before. */
  readonly add: (input: UserInput, gap: number) => void
  /**
   * What has come and was not taken: all of a paste that is over. Of one that is not, only where keys come slowly, as when
   * its end was lost: a terminal hands on a long paste in pieces, and it is to be one text.
   */
  readonly take: (isOver: boolean) => { readonly to: Target | "nowhere"; readonly text: string } | undefined
  readonly end: () => void
  /** It was interrupted and may never end: what is left of it is dropped, up to the first pause. */
  readonly lose: () => void
  /** Nothing has come for a while. */
  readonly pause: () => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** There is no paste yet. */
export const make = <Target>(): Paste<Target> => {
  let target: Target | "nowhere" | undefined
  let text = ""
  let isLost = false
  let isSlow = false
  return {
    isOpen: () => target !== undefined,
    begin: (to) => {
      isLost = false
      isSlow = false
      target = to
    },
    add: ({ input, key }, gap) => {
      if (text !== "" && gap >= slowly) isSlow = true
      text += key.name === "return" || key.name === "enter" ? "\n" : Option.getOrElse(input, () => "")
    },
    take: (isOver) => {
      if (text === "" || target === undefined || !(isOver || isSlow)) return undefined
      const taken = { to: target, text }
      text = ""
      isSlow = false
      return taken
    },
    end: () => {
      target = undefined
    },
    lose: () => {
      isLost = true
      target = "nowhere"
    },
    pause: () => {
      if (isLost) target = undefined
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds between two keys after which nobody waits for the end of a paste. */
const slowly = 1_000
