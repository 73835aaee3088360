/** Code that arrives line by line: each line is coloured and drawn once, with as much of what is above it as it takes. */
import { longest, type Colors } from "./CodeColors.js"
import * as StyledText from "./StyledText.js"
import type { Run } from "./StyledText.js"

export type Line = ReadonlyArray<Run>

/** The lines of one piece of code, from its first one on. */
export interface CodeLines {
  /** The next whole lines, coloured. */
  readonly take: (lines: ReadonlyArray<string>) => ReadonlyArray<Line>
  /** A line that is still being written. */
  readonly peek: (line: string) => ReadonlyArray<Line>
}

/** Without colours the lines are plain; so are they from the line on at which the code gets too long, or takes too long. */
export const make = (language: string, colors: Colors | undefined): CodeLines => {
  let isPlain = colors === undefined
  let length = 0
  /** The lines above that may still have something open. */
  let context: ReadonlyArray<string> = []
  const colored = (lines: ReadonlyArray<string>) => {
    const found = isPlain || length > longest ? undefined : colors?.([...context, ...lines].join("\n"), language)
    isPlain = found === undefined
    return found
  }
  return {
    take: (lines) => {
      length += lines.reduce((sum, line) => sum + line.length + 1, 0)
      const found = colored([...lines, ""])
      if (found === undefined) return lines.map(plainLine)
      const above = context.length
      context = [...context, ...lines].slice(found.restart)
      // A text or a comment that is longer loses its colour in the middle, which costs less than to look at all of it
      // again for each line.
      if (context.reduce((sum, line) => sum + line.length, 0) > longestContext) context = []
      return found.lines.slice(above, above + lines.length)
    },
    peek: (line) => colored([line])?.lines.slice(context.length) ?? [plainLine(line)]
  }
}

export const plain = (code: string): ReadonlyArray<Line> => code.split("\n").map(plainLine)

/** Rows behind a margin of two columns; a line that is too long goes on in the next row. */
export const rows = (lines: ReadonlyArray<Line>, columns: number): ReadonlyArray<string> =>
  lines.flatMap((line) => StyledText.rows(line, columns, { exact: true, margin }))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters. */
const longestContext = 4_096

const plainLine = (text: string): Line => [{ text, style: 0 }]

const margin = { first: StyledText.run("  "), rest: StyledText.run("  ") }
