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
  readonly add: (input: UserInput) => void
  /** What has come since the last time: keys come one by one, and a long text is inserted at once. */
  readonly take: () => { readonly to: Target | "nowhere"; readonly text: string } | undefined
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
  return {
    isOpen: () => target !== undefined,
    begin: (to) => {
      isLost = false
      target = to
    },
    add: ({ input, key }) => {
      text += key.name === "return" || key.name === "enter" ? "\n" : Option.getOrElse(input, () => "")
    },
    take: () => {
      if (text === "" || target === undefined) return undefined
      const taken = { to: target, text }
      text = ""
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
