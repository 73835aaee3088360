/** Whole lines of our own for a terminal: broken between words, below where their last column begins. All pure. */
import * as CopiedWords from "./CopiedWords.js"

/** Nothing is broken where there is no width, nor in a line with letters that may be wider than one column. */
export const lines = (text: string, columns: number | undefined): string =>
  columns === undefined || columns < 1
    ? text
    : text
        .split("\n")
        .map((line) => broken(line, columns))
        .join("\n")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Columns of words below which they go on further to the left. */
const leastBeside = 16

const bare = (text: string): string => text.replace(/\x1b\[\d*m/g, "")

const isNarrow = (text: string): boolean => /^[\x20-\x7e·–—‘’“”…✓✗]*$/.test(text)

const broken = (line: string, columns: number): string => {
  const text = bare(line)
  if (text.length <= columns || !isNarrow(text)) return line
  const lead = (/^ *\S.*? {2,}(?=\S)/.exec(text) ?? /^ */.exec(text) ?? [""])[0].length
  const indent = columns - lead < leastBeside ? Math.min(4, lead) : lead
  const rows: Array<string> = []
  let row = ""
  let width = 0
  for (const word of CopiedWords.joined(line).split(CopiedWords.blank)) {
    const length = bare(word).length
    const isFirst = row === ""
    if ((rows.length > 0 || width > lead) && width + 1 + length > columns) {
      rows.push(row)
      // A terminal that breaks a command itself has no end of a line in it; the fewer are broken, the better.
      const before = Math.max(0, Math.min(indent, columns - length))
      row = " ".repeat(before) + word
      width = before + length
    } else {
      row += isFirst ? word : ` ${word}`
      width += isFirst ? length : length + 1
    }
  }
  return CopiedWords.parted([...rows, row].join("\n"))
}
