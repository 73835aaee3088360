/**
 * A table on a terminal: columns as wide as what is in them, narrower ones where there is no room, and, where there is
 * none at all, each row as lines of `header: value`. All pure.
 */
import * as StyledText from "./StyledText.js"
import { weights, type Run } from "./StyledText.js"

type Cell = ReadonlyArray<Run>

export interface Table {
  readonly header: ReadonlyArray<Cell>
  readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
  readonly align: ReadonlyArray<"center" | "left" | "right" | null>
  readonly columns: number
  /** The style of the lines between cells. */
  readonly line: number
  /** The widths of its columns above: the rows are the rest of a table that was begun with them. */
  readonly above?: ReadonlyArray<number> | undefined
}

export interface Drawn {
  readonly rows: ReadonlyArray<string>
  readonly widths: ReadonlyArray<number>
}

export const rows = (table: Table): Drawn => {
  const widths = table.above ?? widthsOf(table)
  const between = StyledText.line([StyledText.run(" │ ", table.line)])
  if (widths.length === 0) return { rows: listed(table), widths }
  const drawn = (cells: ReadonlyArray<Cell>): ReadonlyArray<string> => {
    const columns = widths.map((width, index) => StyledText.measured(cells[index] ?? [], width))
    const height = Math.max(...columns.map(({ length }) => length))
    return Array.from({ length: height }, (_, row) =>
      columns
        .map((texts, index) => aligned(texts[row] ?? nothing, widths[index] ?? 0, table.align[index] ?? "left"))
        .join(between)
        .trimEnd()
    )
  }
  const rule = StyledText.line([StyledText.run(widths.map((width) => "─".repeat(width)).join("─┼─"), table.line)])
  const head = table.above === undefined ? [...drawn(table.header), rule] : []
  return { rows: [...head, ...table.rows.flatMap(drawn)], widths }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Columns that are narrower cut too many words. */
const narrowest = 6
const gap = 3

const plain = (cell: Cell): string => cell.map(({ text }) => text).join("")

/** None when the columns do not fit side by side. */
const widthsOf = ({ columns, header, rows }: Table): ReadonlyArray<number> => {
  const natural = header.map((_, index) =>
    [header, ...rows].reduce((most, cells) => Math.max(most, StyledText.widthOf(plain(cells[index] ?? []))), 1)
  )
  const room = columns - gap * (natural.length - 1)
  if (natural.reduce((sum, width) => sum + Math.min(width, narrowest), 0) > room) return []
  // The widest columns give way first: no column is wider than the limit at which all fit.
  let low = narrowest
  let high = Math.max(narrowest, ...natural)
  const total = (limit: number) => natural.reduce((sum, width) => sum + Math.min(width, limit), 0)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (total(middle) <= room) low = middle
    else high = middle - 1
  }
  const widths = natural.map((width) => Math.min(width, low))
  let spare = room - widths.reduce((sum, width) => sum + width, 0)
  return widths.map((width, index) => {
    const more = Math.min(spare, (natural[index] ?? width) - width)
    spare -= more
    return width + more
  })
}

const nothing = { text: "", width: 0 }

const aligned = (
  { text, width: taken }: StyledText.Measured,
  width: number,
  align: "center" | "left" | "right"
): string => {
  const spare = Math.max(0, width - taken)
  const before = align === "right" ? spare : align === "center" ? Math.floor(spare / 2) : 0
  return " ".repeat(before) + text + " ".repeat(spare - before)
}

/** Where columns do not fit: `header: value` lines, with an empty row between the rows. */
const listed = ({ above, columns, header, rows }: Table): ReadonlyArray<string> => {
  const one = (cells: ReadonlyArray<Cell>): ReadonlyArray<string> =>
    header.flatMap((name, index) => {
      const value = cells[index] ?? []
      if (plain(value) === "") return []
      const label = plain(name) === "" ? [] : [...name, StyledText.run(": ", name[0]?.style ?? weights.bold)]
      return StyledText.rows([...label, ...value], columns)
    })
  const all = rows.map(one)
  if (all.length === 0)
    return above === undefined
      ? StyledText.rows(
          header.flatMap((name) => [...name, StyledText.run(" ")]),
          columns
        )
      : []
  return all.flatMap((lines, index) => (index === 0 && above === undefined ? lines : ["", ...lines]))
}
