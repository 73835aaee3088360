/** The measured table as text. */
import type { Row } from "./Row.js"
import type { System } from "./Worker.js"

/** What one system came out at. */
export interface Figures {
  readonly median: number
  readonly least: number
  /** The first run of the process, before anything was warm. */
  readonly first: number | undefined
}

export interface Measured {
  readonly row: Row
  /** Nothing of systems that cannot do the work, or are not installed. */
  readonly of: (system: System) => Figures | undefined
  /** How many times faster the machine was than the one the targets were set on. */
  readonly speed: number
}

/** What became of a target. */
export type Mark = "aim" | "must" | "missed" | "none"

/** A target as it is on this machine. */
export const here = (target: number, { row, speed }: Measured): number =>
  row.scale === "time" ? target / speed : row.scale === "rate" ? target * speed : target

export const mark = (measured: Measured): Mark => {
  const { row } = measured
  const ours = measured.of("ours")?.median
  if (ours === undefined || row.must === undefined) return "none"
  const holds = (target: number) =>
    row.more === true ? ours >= here(target, measured) : ours <= here(target, measured)
  // A ratio of equals comes out at one give or take what the machine does meanwhile.
  if (row.aim !== undefined && holds(row.unit === "×" ? row.aim + 0.05 : row.aim)) return "aim"
  return holds(row.must) ? "must" : "missed"
}

export const heading = (): string =>
  ruled(line([...columns.map(([title]) => title), "÷ limit", "÷ SDK", "must", "aim", "must here", "aim here", ""]))

export const show = (measured: Measured): string => {
  const { row } = measured
  const figures = (of: (figures: Figures) => number | undefined) =>
    shown.map((system) => {
      const measuredOf = measured.of(system)
      return measuredOf === undefined ? undefined : of(measuredOf)
    })
  const cells = (title: string, unit: string, of: (figures: Figures) => number | undefined) => {
    const [ours, limit, effectAi, sdk, agents] = figures(of)
    const values = [ours, limit, effectAi, sdk, agents].map(number)
    return [title, unit, ...values, ratio(ours, limit), ratio(ours, sdk)]
  }
  const target = (value: number | undefined) =>
    value === undefined || row.scale === "none" ? "" : number(here(value, measured))
  const lines = [
    line([
      ...cells(row.title, row.unit, ({ median }) => median),
      number(row.must),
      number(row.aim),
      target(row.must),
      target(row.aim),
      marks[mark(measured)]
    ])
  ]
  if (row.detailed === true) {
    lines.push(line(cells("    least", "", ({ least }) => least)))
    const firsts = figures(({ first }) => first)
    if (firsts.some((first) => first !== undefined)) {
      lines.push(line(cells("    first run", "", ({ first }) => first)))
    }
  }
  return lines.join("\n")
}

/** A limit of ours that is a part of what the AI SDK took in the same run. */
export interface Beside {
  readonly row: Row
  readonly median: number
  readonly least: number
  readonly mark: Mark
}

/** Of all that is measured, what is limited by the AI SDK's figure. Empty when it is not installed. */
export const besides = (all: ReadonlyArray<Measured>): ReadonlyArray<Beside> =>
  all.flatMap(({ of, row }) => {
    const { besideAiSdk: limit } = row
    const ours = of("ours")
    const sdk = of("ai-sdk")
    if (limit === undefined || ours === undefined || sdk === undefined) return []
    const median = ours.median / sdk.median
    const mark = limit.aim !== undefined && median <= limit.aim ? "aim" : median <= limit.must ? "must" : "missed"
    return [{ row, median, least: ours.least / sdk.least, mark }]
  })

export const showBesides = (besides: ReadonlyArray<Beside>): string =>
  [
    ruled(besideLine(["beside the AI SDK, in this run", "medians", "least", "must", "aim", ""])),
    ...besides.map(({ least, mark, median, row }) => {
      const { aim, must } = row.besideAiSdk ?? {}
      return besideLine([row.title, times(median), times(least), times(must), times(aim), told[mark]])
    })
  ].join("\n")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const shown: ReadonlyArray<System> = ["ours", "limit", "effect-ai", "ai-sdk", "openai-agents"]

const columns = [
  ["work", 39],
  ["", 4],
  ["ours", 8],
  ["limit", 8],
  ["@effect/ai", 10],
  ["AI SDK", 8],
  ["OpenAI Ag.", 10]
] as const

const widths = [...columns.map(([, width]) => width), 8, 8, 7, 7, 9, 9, 6]

const besideWidths = [39, 9, 9, 7, 7, 14]

const marks: Record<Mark, string> = { aim: "✓ aim", must: "✓", missed: "✗", none: "" }

const told: Record<Mark, string> = { aim: "held, and aim", must: "held", missed: "not held", none: "" }

const lineOf =
  (widths: ReadonlyArray<number>, left: number) =>
  (cells: ReadonlyArray<string>): string =>
    cells
      .map((cell, i) => (i < left ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join(" ")
      .trimEnd()

const line = lineOf(widths, 2)
const besideLine = lineOf(besideWidths, 1)

const ruled = (heading: string): string => `${heading}\n${"-".repeat(heading.length)}`

const number = (value: number | undefined): string =>
  value === undefined ? "" : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

const times = (value: number | undefined): string => (value === undefined ? "" : `${number(value)}×`)

const ratio = (value: number | undefined, other: number | undefined): string =>
  value === undefined || other === undefined ? "" : times(value / other)
