/** The measured table as text. */
import type { Row } from "./Row.js"

export interface Measured {
  readonly row: Row
  readonly ours: number | undefined
  readonly limit: number | undefined
  readonly ai: number | undefined
  /** How many times faster the machine was than the one the targets were set on. */
  readonly speed: number
}

/** What became of a target. */
export type Mark = "aim" | "must" | "missed" | "none"

/** A target as it is on this machine. */
export const here = (target: number, { row, speed }: Measured): number =>
  row.scale === "time" ? target / speed : row.scale === "rate" ? target * speed : target

export const mark = (measured: Measured): Mark => {
  const { row, ours } = measured
  if (ours === undefined || row.must === undefined) return "none"
  const holds = (target: number) =>
    row.more === true ? ours >= here(target, measured) : ours <= here(target, measured)
  // A ratio of equals comes out at one give or take what the machine does meanwhile.
  if (row.aim !== undefined && holds(row.unit === "×" ? row.aim + 0.05 : row.aim)) return "aim"
  return holds(row.must) ? "must" : "missed"
}

export const heading = (): string =>
  [line(["work", "", "ours", "limit", "@effect/ai", "÷ limit", "÷ ai", "must", "aim", "must here", "aim here", ""])]
    .concat("-".repeat(widths.reduce((sum, width) => sum + width + 1, 0)))
    .join("\n")

export const show = (measured: Measured): string => {
  const { row, ours, limit, ai } = measured
  const target = (value: number | undefined) => (value === undefined ? "" : number(here(value, measured)))
  return line([
    row.title,
    row.unit,
    number(ours),
    number(limit),
    number(ai),
    ratio(ours, limit),
    ratio(ours, ai),
    number(row.must),
    number(row.aim),
    row.scale === "none" ? "" : target(row.must),
    row.scale === "none" ? "" : target(row.aim),
    { aim: "✓ aim", must: "✓", missed: "✗", none: "" }[mark(measured)]
  ])
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const widths = [36, 4, 8, 8, 10, 8, 8, 7, 7, 9, 9, 6]

const line = (cells: ReadonlyArray<string>): string =>
  cells
    .map((cell, i) => (i < 2 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
    .join(" ")
    .trimEnd()

const number = (value: number | undefined): string =>
  value === undefined ? "" : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

const ratio = (value: number | undefined, other: number | undefined): string =>
  value === undefined || other === undefined ? "" : `${number(value / other)}×`
