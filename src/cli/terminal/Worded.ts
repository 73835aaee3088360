/** A screen that breaks what it is given between words, and not where the terminal's row ends. */
import * as Effect from "effect/Effect"
import type { Service as Screen } from "../../channel/ConsoleScreen.js"
import * as Display from "../../terminal/Display.js"

/** For sentences of our own. What commands print, and rows that are drawn for a width, are not to be broken again. */
export const of = (screen: Screen): Screen => ({
  ...screen,
  printLine: (text) =>
    Effect.flatMap(screen.columns, (columns) =>
      screen.printLine(
        text
          .split("\n")
          .flatMap((line) => rowsOf(line, columns))
          .join("\n")
      )
    )
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What begins with blanks goes on below them. */
const rowsOf = (line: string, columns: number): ReadonlyArray<string> => {
  const [all = "", styles = "", blanks = ""] = /^((?:\x1b\[[\d;]*m)*)( *)/.exec(line) ?? []
  if (blanks.length > columns / 2) return Display.wrap(line, columns)
  return Display.wrap(styles + line.slice(all.length), columns - blanks.length).map((row) => blanks + row)
}
