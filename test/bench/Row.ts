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
  /** Each sample is the first use of its system by a process of its own. */
  readonly firstUse?: true
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
  /** What our figure must and should be at most, as a part of the AI SDK's in the same run. */
  readonly besideAiSdk?: { readonly must: number; readonly aim?: number } | undefined
  /** Also shows the least sample, and the first run of the process, before anything was warm. */
  readonly detailed?: true
  /** Default: less is better. */
  readonly more?: true
  /** A time follows the machine's speed, a rate its inverse; a size or a ratio does not. */
  readonly scale: "time" | "rate" | "none"
}

/** With `quick`, everything is smaller and less exact. */
export const plans = (quick: boolean): ReadonlyArray<Plan> => {
  const three: ReadonlyArray<System> = ["ours", "limit", "effect-ai"]
  const all: ReadonlyArray<System> = [...three, "ai-sdk", "openai-agents"]
  const base = quick ? { warmUp: 600, budget: 150, samples: 3 } : { warmUp: 1_500, budget: 300, samples: 5 }
  const once = { warmUp: 0, budget: 0, samples: quick ? 1 : 2 }
  const crowd = { warmUp: 1, budget: 0, samples: quick ? 2 : 5 }
  return [
    {
      ...base,
      workload: "make",
      systems: ["ours", "openai-agents"],
      rows: [
        {
          title: "AgentRuntime.make, one tool",
          figure: "us",
          unit: "µs",
          must: 60,
          detailed: true,
          scale: "time"
        }
      ]
    },
    {
      ...base,
      workload: "make-layers",
      systems: three,
      rows: [
        { title: "… its tool declared, its layers built", figure: "us", unit: "µs", detailed: true, scale: "time" }
      ]
    },
    {
      ...base,
      workload: "idle",
      systems: ["ours"],
      rows: [
        {
          title: "start and shutdown, no turn",
          figure: "us",
          unit: "µs",
          must: 50,
          detailed: true,
          scale: "time"
        }
      ]
    },
    ...lives.map(({ aim, must, turns }): Plan => ({
      ...base,
      workload: `life-${turns}`,
      systems: all,
      rows: [
        {
          title: `whole life, ${turns} turn${turns === 1 ? "" : "s"}, one call each`,
          figure: "us",
          unit: "µs",
          besideAiSdk: aim === undefined ? { must } : { must, aim },
          detailed: true,
          scale: "time"
        }
      ]
    })),
    {
      ...base,
      workload: "approval-10",
      systems: all,
      rows: [
        {
          title: "an approved turn, run of 10, whole life",
          figure: "us",
          unit: "µs",
          besideAiSdk: { must: 0.5, aim: 0.25 },
          detailed: true,
          scale: "time"
        }
      ]
    },
    {
      ...base,
      workload: "server",
      systems: all,
      rows: [{ title: "a server's request, agent and JSON", figure: "us", unit: "µs", detailed: true, scale: "time" }]
    },
    {
      warmUp: 0,
      budget: 0,
      samples: quick ? 3 : 9,
      firstUse: true,
      workload: "first-use",
      systems: all,
      rows: [
        {
          title: "first use: runtime and first life, CPU",
          figure: "cpu",
          unit: "ms",
          must: 25,
          detailed: true,
          scale: "time"
        },
        { title: "… on the clock", figure: "wall", unit: "ms", must: 25, detailed: true, scale: "time" }
      ]
    },
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
    addition(base, "chat-structured", "… with a typed result, structured output", 1.15),
    addition(base, "chat-typed", "… with a typed result, by a tool", 1.15),
    addition(base, "chat-metrics", "… with metrics", 1.15),
    addition(base, "chat-traced", "… with the program's tracer", 1.6),
    {
      ...base,
      workload: "history",
      systems: three,
      rows: [
        { title: "… after 10 turns", figure: "few", unit: "µs", scale: "time" },
        { title: "… after 200 turns", figure: "many", unit: "µs", scale: "time" },
        { title: "… growth, 10 → 200 turns", figure: "growth", unit: "×", must: 1.15, aim: 1, scale: "none" }
      ]
    },
    {
      ...base,
      workload: "tools",
      systems: ["ours", "effect-ai"],
      rows: [{ title: "… growth, 1 → 20 tools", figure: "growth", unit: "×", must: 1.15, aim: 1, scale: "none" }]
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
          besideAiSdk: { must: 1, aim: 0.5 },
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
      ...base,
      workload: "quorum",
      systems: ["ours"],
      rows: [
        { title: "… approved by three who have to agree", figure: "many", unit: "µs", scale: "time" },
        { title: "… and what that costs in approvals", figure: "growth", unit: "×", must: 3, scale: "none" }
      ]
    },
    {
      ...crowd,
      workload: "blocked-1000",
      systems: all,
      rows: [
        {
          title: "1,000 starts that block: heap each",
          figure: "kb",
          unit: "KB",
          reference: 15,
          besideAiSdk: { must: 1 },
          aim: 12,
          scale: "none"
        },
        {
          title: "… start and answer, each",
          figure: "us",
          unit: "µs",
          reference: 169,
          besideAiSdk: { must: 1, aim: 0.4 },
          detailed: true,
          scale: "time"
        }
      ]
    },
    ...(quick ? [] : [tenThousand({ ...once, workload: "blocked-10000" })]),
    {
      ...crowd,
      workload: "children-1000",
      systems: ["ours", "limit", "ai-sdk"],
      rows: [
        { title: "1,000 blocked children: heap each", figure: "kb", unit: "KB", must: 30, scale: "none" },
        {
          title: "… start, answer, report, each",
          figure: "us",
          unit: "µs",
          besideAiSdk: { must: 1.3, aim: 0.8 },
          detailed: true,
          scale: "time"
        }
      ]
    },
    {
      ...base,
      workload: "long-command",
      systems: ["ours"],
      rows: [
        {
          title: "decision over 100 kB, worst shape",
          figure: "ms",
          unit: "ms",
          must: 20,
          detailed: true,
          scale: "time"
        }
      ]
    },
    {
      ...base,
      workload: "markdown",
      systems: ["ours"],
      rows: [
        { title: "a megabyte of mixed Markdown, drawn", figure: "ms", unit: "ms", scale: "time" },
        { title: "… beside its parser and highlighter alone", figure: "times", unit: "×", must: 2, scale: "none" }
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
      systems: three,
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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Lives of so many turns, and what each must come out at beside the AI SDK. */
const lives: ReadonlyArray<{ readonly turns: number; readonly must: number; readonly aim?: number }> = [
  { turns: 1, must: 0.7, aim: 0.4 },
  { turns: 3, must: 0.6 },
  { turns: 10, must: 0.35 },
  { turns: 50, must: 0.25, aim: 0.1 }
]

/** What something adds to a message, as a ratio. */
const addition = (
  plan: Pick<Plan, "warmUp" | "budget" | "samples">,
  workload: string,
  title: string,
  must: number
): Plan => ({
  ...plan,
  workload,
  systems: ["ours"],
  rows: [{ title, figure: "growth", unit: "×", must, scale: "none" }]
})

const tenThousand = (plan: Pick<Plan, "workload" | "warmUp" | "budget" | "samples">): Plan => ({
  ...plan,
  systems: ["ours", "limit"],
  rows: [
    {
      title: "10,000 blocked agents: heap each",
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
})
