import * as Effect from "effect/Effect"
import type { Service } from "../../../src/tui/console/ConsoleScreen.js"
import * as Worded from "../../../src/tui/process/Worded.js"

/** What a sentence of our own is on a screen of that width. */
export const printed = (text: string, columns: number): string => {
  let out = ""
  const screen = {
    columns: Effect.succeed(columns),
    printLine: (text: string) => Effect.sync(() => void (out = text))
  } as unknown as Service
  Effect.runSync(Worded.of(screen).printLine(text))
  return out
}
