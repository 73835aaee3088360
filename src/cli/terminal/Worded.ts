/** A screen that breaks what it is given between words, and not where the terminal's row ends. */
import * as Effect from "effect/Effect"
import type { Service as Screen } from "../../channel/ConsoleScreen.js"
import * as Display from "../../terminal/Display.js"

/** For sentences of our own. What commands print, and rows that are drawn for a width, are not to be broken again. */
export const of = (screen: Screen): Screen => ({
  ...screen,
  printLine: (text) =>
    Effect.flatMap(screen.columns, (columns) => screen.printLine(Display.wrapBelow(text, columns).join("\n")))
})
