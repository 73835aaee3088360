/** The rows of the table: which figure of which workload, and what it must and should come out at. */
import type { System } from "./Worker.js"

/** One piece of work, measured once for all the rows that show a figure of it. */
export interface Plan {
  readonly workload: string
  readonly systems: ReadonlyArray<System>
  /** Milliseconds on a core before the first sample, and for each. */
  readonly warmUp: number
  readonly budget: number
  readonly samples: number
  readonly rows: ReadonlyArray<Row>
}

export interface Row {
  readonly title: string
  /** Name of the figure in the workload's samples. */
  readonly figure: string
  readonly unit: string
  /** What the limit came out at where the targets were set. */
  readonly reference?: number | undefined
  readonly must?: number | undefined
  readonly aim?: number | undefined
  /** Default: less is better. */
  readonly more?: true
  /** A time follows the machine's speed, a rate its inverse; a size or a ratio does not. */
  readonly scale: "time" | "rate" | "none"
}

/** With `quick`, everything is smaller and less exact. */
export const plans = (quick: boolean): ReadonlyArray<Plan> => {
  const all: Array<System> = ["ours", "limit", "ai"]
  const base = quick ? { warmUp: 600, budget: 150, samples: 3 } : { warmUp: 1_500, budget: 300, samples: 5 }
  const agents = quick ? 1_000 : 10_000
  const once = { warmUp: 0, budget: 0, samples: quick ? 1 : 2 }
  return [
    {
      ...base,
      workload: "turn",
      systems: all,
      rows: [
        {
          title: "a turn with one call, run of 50",
          figure: "us",
          unit: "µs",
          reference: 6.5,
          must: 75,
          aim: 20,
          scale: "time"
        }
      ]
    },
    {
      ...base,
      workload: "turn-streamed",
      systems: ["ours"],
      rows: [{ title: "… its answers streamed", figure: "us", unit: "µs", scale: "time" }]
    },
    {
      ...base,
      workload: "chat",
      systems: ["ours"],
      rows: [{ title: "a message, one call, an answer", figure: "us", unit: "µs", scale: "time" }]
    },
    {
      ...base,
      workload: "history",
      systems: all,
      rows: [
        { title: "… after 10 turns", figure: "few", unit: "µs", scale: "time" },
        { title: "… after 200 turns", figure: "many", unit: "µs", scale: "time" },
        { title: "… growth, 10 → 200 turns", figure: "growth", unit: "×", must: 1.1, aim: 1, scale: "none" }
      ]
    },
    {
      ...base,
      workload: "tools",
      systems: ["ours", "ai"],
      rows: [{ title: "… growth, 1 → 20 tools", figure: "growth", unit: "×", must: 1.1, aim: 1, scale: "none" }]
    },
    {
      ...base,
      workload: "parallel",
      systems: all,
      rows: [
        {
          title: "one of 100 parallel calls",
          figure: "us",
          unit: "µs",
          reference: 15,
          must: 35,
          aim: 17,
          scale: "time"
        }
      ]
    },
    {
      ...base,
      workload: "approval",
      systems: all,
      rows: [
        {
          title: "a turn with one call, approved",
          figure: "us",
          unit: "µs",
          reference: 63,
          must: 150,
          aim: 45,
          scale: "time"
        }
      ]
    },
    {
      ...once,
      workload: `blocked-${agents}`,
      systems: ["ours", "limit"],
      rows: [
        {
          title: `${agents} blocked agents: heap each`,
          figure: "kb",
          unit: "KB",
          reference: 15,
          must: 26,
          aim: 12,
          scale: "none"
        },
        {
          title: "… start and answer, each",
          figure: "us",
          unit: "µs",
          reference: 169,
          must: 400,
          aim: 200,
          scale: "time"
        }
      ]
    },
    {
      ...once,
      workload: "children-1000",
      systems: ["ours"],
      rows: [
        {
          title: "1000 blocked children: heap each",
          figure: "kb",
          unit: "KB",
          must: 26,
          aim: 12,
          scale: "none"
        },
        { title: "… start, answer, report, each", figure: "us", unit: "µs", must: 400, aim: 200, scale: "time" }
      ]
    },
    {
      ...once,
      workload: "blocked-200",
      systems: ["ai"],
      rows: [
        { title: "(200 blocked agents: heap each)", figure: "kb", unit: "KB", scale: "none" },
        { title: "(… start and answer, each)", figure: "us", unit: "µs", scale: "time" }
      ]
    },
    {
      ...base,
      workload: "match",
      systems: ["ours", "limit"],
      rows: [
        {
          title: "match of a request id, 100 open",
          figure: "few",
          unit: "µs",
          reference: 14,
          must: 14,
          aim: 6,
          scale: "time"
        },
        { title: "… 10,000 open", figure: "many", unit: "µs", reference: 14, must: 14, aim: 6, scale: "time" }
      ]
    },
    {
      ...base,
      workload: "match-channel",
      systems: ["ours"],
      rows: [
        { title: "… through QueueChannel, 100 open", figure: "few", unit: "µs", must: 14, aim: 6, scale: "time" },
        { title: "… 10,000 open", figure: "many", unit: "µs", must: 14, aim: 6, scale: "time" }
      ]
    },
    {
      ...base,
      workload: "events",
      systems: ["ours", "limit"],
      rows: [
        {
          title: "events to each of 3 subscribers",
          figure: "rate",
          unit: "M/s",
          reference: 1.4,
          must: 4,
          aim: 10,
          more: true,
          scale: "rate"
        }
      ]
    },
    {
      ...once,
      workload: "day-of-events",
      systems: ["ours"],
      rows: [
        { title: "1,000,000 events, 3 observers: heap", figure: "mb", unit: "MB", must: 16, aim: 2, scale: "none" }
      ]
    },
    {
      ...base,
      workload: "turn-on-disk",
      systems: ["ours"],
      rows: [{ title: "a turn with the journal on disk", figure: "us", unit: "µs", scale: "time" }]
    },
    {
      ...once,
      workload: "resume-10000",
      systems: ["ours"],
      rows: [{ title: "resume 10,000 messages", figure: "us", unit: "ms", must: 800, aim: 300, scale: "time" }]
    },
    {
      ...base,
      workload: "append",
      systems: ["ours"],
      rows: [
        { title: "append one message to a session of 10", figure: "few", unit: "µs", scale: "time" },
        { title: "… to a session of 10,000", figure: "many", unit: "µs", scale: "time" },
        { title: "… growth, 10 → 10,000 messages", figure: "growth", unit: "×", must: 2, aim: 1, scale: "none" }
      ]
    },
    {
      ...base,
      workload: "delta",
      systems: all,
      rows: [
        { title: "a streamed text delta", figure: "us", unit: "µs", reference: 1.2, must: 4, aim: 1.3, scale: "time" }
      ]
    },
    ...[1, 3, 10].map((size): Plan => ({
      ...base,
      workload: `fan-out-${size}`,
      systems: ["ours"],
      rows: [
        { title: `a question to ${size} interactor${size === 1 ? "" : "s"}`, figure: "us", unit: "µs", scale: "time" }
      ]
    }))
  ]
}
