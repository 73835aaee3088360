/** What a tree of agents does now, in one row: `main executing · explore thinking · code_reviewer waiting for you`. */
import type { AgentStatus } from "../../event/AgentEvent.js"
import type * as AgentOutline from "./AgentOutline.js"

export interface Activity {
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly since: number
  /** What is waited for until then, when that is all that goes on. */
  readonly pause?: { readonly until: number; readonly reason: string } | undefined
}

/** Whether a screen that shows the one need not be told the other. */
export const isSame = (one: Activity | undefined, other: Activity | undefined): boolean =>
  one?.text === other?.text && one?.since === other?.since && one?.pause?.until === other?.pause?.until

/** The activity of all agents that are not idle, with a sign when there is room; undefined when all are idle. */
export const withSign = (
  outline: AgentOutline.AgentOutline,
  columns: number,
  sign: string | undefined
): Activity | undefined => {
  const activity = of(outline, columns)
  if (activity === undefined || sign === undefined) return activity
  const text = `${activity.text} · ${sign}`
  return text.length + around <= columns ? { ...activity, text } : activity
}

/** The activity of all agents that are not idle, as much as fits in `columns`; undefined when all are idle. */
export const of = (outline: AgentOutline.AgentOutline, columns: number): Activity | undefined => {
  const working = outline.working()
  const [first, ...others] = working
  if (first === undefined) return undefined
  const pause = pauseOf(working)
  const pausing = pause === undefined ? {} : { pause }
  if (others.length === 0 && first.depth === 0) return { text: word(first), since: first.since, ...pausing }
  const since = Math.min(...working.map(({ began }) => began))
  // A main agent that only waits for others is left out.
  const below = others.length > 0 && first.depth === 0 && first.asking.size === 0 ? others : working
  const texts = [listed(working), listed(below), `${agents(working)}: ${counted(working)}`, agents(working)]
  return { text: texts.find((text) => text.length + around <= columns) ?? agents(working), since, ...pausing }
}

/** What an agent does, for people. */
export const word = ({
  asking,
  completed,
  status
}: Pick<AgentOutline.Node, "asking" | "completed" | "status">): string => {
  if (asking.size > 0) return "waiting for you"
  if (status !== "idle" || completed === undefined) return status
  if (completed.success) return "finished"
  return completed.error?.startsWith("cancelled (") === true ? "cancelled" : "failed"
}

/** `40 ms`, `3.2 s`, `4 min 5 s`. */
export const duration = (milliseconds: number): string => {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`
  return `${Math.floor(milliseconds / 60_000)} min ${Math.floor((milliseconds % 60_000) / 1_000)} s`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** One agent waits to ask its model again, and all others only wait for it. */
const pauseOf = (working: ReadonlyArray<AgentOutline.Node>): Activity["pause"] => {
  const [one, ...others] = working.filter(({ asking, retry }) => retry !== undefined && asking.size === 0)
  if (one?.retry === undefined || others.length > 0) return undefined
  const above = new Set<AgentOutline.Node>()
  for (let node = one.parent; node !== undefined; node = node.parent) above.add(node)
  if (!working.every((node) => node === one || (above.has(node) && node.asking.size === 0))) return undefined
  const who = one.depth === 0 ? "" : `, ${one.label}`
  const { at, attempt, attempts } = one.retry
  return { until: at, reason: `to try again (${attempt}${attempts === undefined ? "" : ` of ${attempts}`}${who})` }
}

/** Columns of the spinner and the seconds. */
const around = 11

const listed = (nodes: ReadonlyArray<AgentOutline.Node>): string =>
  nodes.map((node) => `${node.label} ${word(node)}`).join(" · ")

const agents = ({ length }: ReadonlyArray<AgentOutline.Node>): string => (length === 1 ? "1 agent" : `${length} agents`)

/** Agents that wait for a person come first. */
const counted = (nodes: ReadonlyArray<AgentOutline.Node>): string => {
  const counts = new Map<AgentStatus | "waiting for you", number>()
  for (const { asking, status } of nodes) {
    const word = asking.size > 0 ? "waiting for you" : status
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return [...counts]
    .sort(([a], [b]) => Number(b === "waiting for you") - Number(a === "waiting for you"))
    .map(([word, count]) => `${count} ${word}`)
    .join(", ")
}
