/** A screen that breaks what it is given between words, and not where the terminal's row ends. */
import * as Effect from "effect/Effect"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import * as Display from "../terminal/Display.js"
import * as CopiedWords from "./CopiedWords.js"

/** For sentences of our own. What commands print, and rows that are drawn for a width, are not to be broken again. */
export const of = (screen: Screen): Screen => ({
  ...screen,
  printLine: (text) =>
    Effect.flatMap(screen.columns, (columns) =>
      screen.printLine(
        text
          .split("\n")
          .map((line) => broken(line, columns))
          .join("\n")
      )
    )
})

/** One sentence of our own, whole where a program reads it. */
export const say = (screen: Screen, sentence: string): Effect.Effect<void> =>
  (screen.source === "person" ? of(screen) : screen).printLine(sentence)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** In columns, what does not fit in the last one goes on there. */
const columned = { columned: true }

const broken = (line: string, columns: number): string => {
  if (Display.width(line) <= columns) return line
  const indent = Display.indentOf(line, columns, columned)
  const rows: Array<string> = []
  let words: Array<string> = []
  const end = () => {
    const text = words.join(" ")
    words = []
    if (text === "") return
    if (rows.length === 0) rows.push(...Display.wrapBelow(text, columns, columned))
    else rows.push(...Display.wrap(text, columns - indent).map((row) => " ".repeat(indent) + row))
  }
  for (const word of CopiedWords.joined(line).split(CopiedWords.blank)) {
    const isWide = CopiedWords.isJoined(word) && Display.width(word.trimStart()) > columns - indent
    if (isWide) {
      end()
      // The terminal breaks what is wider than a row, and has no end of a line in it.
      rows.push(word)
    } else words.push(word)
  }
  end()
  return CopiedWords.parted(rows.join("\n"))
}
