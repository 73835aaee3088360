/**
 * What a command prints, for those who look while it runs: all of it at first. Of one that prints very much only the end
 * is passed on, a few times a second, so that what is seen is what it prints now and nobody is buried in it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as ToolOutput from "../tool/ToolOutput.js"
import * as PrintedOutput from "./PrintedOutput.js"

export interface LiveOutput {
  /** Takes the next piece, as `PrintedOutput.reader` gives it. */
  readonly push: (styled: string) => Effect.Effect<void, never, Scope.Scope>
  /** Passes on what is held back. */
  readonly end: Effect.Effect<void>
}

export const make = (): LiveOutput => {
  let passed = 0
  let held = ""
  let leftOut = 0
  let linesLeftOut = 0
  /** Whether what was passed on ends in the middle of a line. */
  let isMidLine = false
  /** Somebody will pass on what is held. */
  let isWaiting = false

  const hold = (styled: string): void => {
    held += styled
    if (held.length <= 2 * mostHeld) return
    const cut = cutOf(held, held.length - mostHeld)
    const gone = PrintedOutput.bare(held.slice(0, cut))
    leftOut += gone.length
    linesLeftOut += PrintedOutput.breaksIn(gone)
    held = held.slice(cut)
  }
  const pass = Effect.suspend(() => {
    isWaiting = false
    if (held === "") return Effect.void
    // The words themselves are a line more, and two where they end the one above, which goes on behind them.
    const lead = isMidLine ? "\n" : ""
    const words = leftOut === 0 ? "" : `\x1b[0m${lead}[… ${leftOut} characters are not shown here]\n`
    const unshown = linesLeftOut - PrintedOutput.breaksIn(words)
    const styled = words + held
    held = ""
    leftOut = 0
    linesLeftOut = 0
    return passOn(styled, unshown)
  })
  const passOn = (styled: string, unshown = 0): Effect.Effect<void> => {
    isMidLine = !styled.endsWith("\n")
    return emit(styled, unshown)
  }

  return {
    push: (styled) =>
      Effect.suspend(() => {
        if (styled === "") return Effect.void
        // Styles count too: a command may print nothing else.
        if (passed < most) {
          passed += styled.length
          return passOn(styled)
        }
        hold(styled)
        if (isWaiting) return Effect.void
        isWaiting = true
        return Effect.asVoid(Effect.forkScoped(Effect.delay(pass, pause)))
      }),
    end: pass
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters that are passed on as they come, and that are held after that. */
const most = 1_000_000
const mostHeld = 8_000
const pause = "200 millis"

const emit = (styled: string, unshown: number): Effect.Effect<void> => {
  const text = PrintedOutput.bare(styled)
  const more = unshown === 0 ? {} : { unshown }
  return ToolOutput.emit({ stream: "stdout", text, ...(styled === text ? {} : { styled }), ...more })
}

/** Where a text can be cut, at this place or soon after: at a row, and never in a style. */
const cutOf = (styled: string, at: number): number => {
  const row = styled.indexOf("\n", at) + 1
  if (row > 0) return row
  const style = styled.lastIndexOf("\x1b", at)
  return style < 0 ? at : Math.max(at, style + (/^\x1b\[[\d;:]*m/.exec(styled.slice(style))?.[0].length ?? 0))
}
