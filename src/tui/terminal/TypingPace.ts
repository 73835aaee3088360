/**
 * When keys come: what a pause, or the lack of one, says about whom they are meant for. Milliseconds. Mutable; every
 * function is one step.
 */

/** After so long a key counts for what is on the screen; and so long is a pause. */
export const guard = 200

/** Within so long a key was pressed twice. */
export const twice = 600

/** The letters of a word come closer together. */
export const alone = 300

/** Without a key for so long somebody is called to a question. */
const quiet = 10_000

/** Without a key for so long nothing turns in front of a question. */
const still = 60_000

/** How long keys are dropped that may be the rest of a secret. */
const secret = 10 * guard

export interface Beat {
  /** Time since the key before. */
  readonly gap: number
  readonly isSecondEscape: boolean
  /** The key belongs to a secret for which nobody asks any more. */
  readonly isDropped: boolean
  /** An Enter belongs to a question that is gone. */
  readonly isHasty: boolean
}

export interface TypingPace {
  /** Nothing for what the terminal sends and no person: a change of size, the second half of an Enter. */
  readonly press: (name: string, now: number) => Beat | undefined
  /** Whether keys are coming without a pause. */
  readonly isRunning: (now: number) => boolean
  /** A question is gone to which an answer was half typed: up to a pause, what comes is meant for it. */
  readonly cutOff: (isSecret: boolean) => void
  /** How long until somebody should be called. */
  readonly silence: (now: number) => number
  /** Whether the last key has stayed alone for so long that no word goes on behind it. */
  readonly isAlone: (now: number) => boolean
  /** Whether nobody has typed for so long, since then, that nobody looks. */
  readonly isStill: (since: number, now: number) => boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): TypingPace => {
  let last = { name: "", at: -Infinity }
  let dropping = 0
  let isHasty = false
  return {
    press: (name, now) => {
      const gap = now - last.at
      if (name === "resize" || (name === "enter" && last.name === "return" && gap < guard / 2)) return undefined
      const isSecondEscape = last.name === "escape" && gap < twice
      last = { name, at: now }
      if (gap >= dropping) dropping = 0
      if (gap >= guard) isHasty = false
      return { gap, isSecondEscape, isDropped: dropping > 0, isHasty: isHasty && name === "return" }
    },
    isRunning: (now) => now - last.at < guard,
    cutOff: (isSecret) => {
      if (isSecret) dropping = secret
      else isHasty = true
    },
    silence: (now) => Math.max(0, last.at + quiet - now),
    isAlone: (now) => now - last.at >= alone,
    isStill: (since, now) => now - Math.max(since, last.at) >= still
  }
}
