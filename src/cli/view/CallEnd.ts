/** What came of a call, for the row at its end, and of a subagent's task. */
import type { EventOf } from "../../event/AgentEvent.js"
import * as PlanMode from "../../permission/PlanMode.js"
import * as Display from "../../terminal/Display.js"
import type * as AgentOutline from "./AgentOutline.js"

/** How it ended, where that is not as it should be. */
export const outcome = ({ fault = "", outcome }: EventOf<"ToolCallEnded">): string =>
  outcome === "succeeded" ? fault : (wordFor[outcome] ?? outcome)

/** Why a call was denied is said once, and what else its model could do is not for people. */
export const said = ({ outcome, summary, tool }: EventOf<"ToolCallEnded">): string => {
  // What it says then is for the model, too.
  if (outcome === "succeeded" && tool === proposer) return "approved"
  if (outcome === "cancelled" && cancelled.test(summary)) return ""
  if (outcome !== "denied") return Display.oneLine(summary, longest)
  const reason = summary.replace(/^Permission denied: /, "")
  return Display.oneLine(PlanMode.forPerson(reason), longest)
}

/** What a subagent has taken for its task: model calls, tokens with those below it, time. */
export const figures = (
  outline: AgentOutline.AgentOutline,
  child: AgentOutline.Node,
  time: string,
  withError = true
): string => {
  const { completed } = child
  const turns = completed === undefined ? [] : [count(completed.turnsUsed, "turn")]
  const error = completed?.error === undefined || !withError ? [] : [Display.oneLine(completed.error, longest)]
  const tokens = outline.tokens(child)
  const below = outline.nodes().some(({ parent }) => parent === child) ? " with its subagents" : ""
  return [...error, ...turns, ...(tokens === undefined ? [] : [`${count(tokens, "token")}${below}`]), time]
    .filter((part) => part !== "")
    .join(", ")
}

/** A number of things, in thousands. */
export const count = (amount: number, what: string): string =>
  `${String(amount).replace(/\B(?=(\d{3})+$)/g, ",")} ${what}${amount === 1 ? "" : "s"}`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Outcomes that a person would call otherwise. */
const wordFor: { readonly [outcome: string]: string } = { invalid: "not run" }

/** The tool that proposes a plan. */
const proposer = "propose_plan"

/** Says no more than the outcome. */
const cancelled = /^The (?:call was cancelled|user cancelled this call)\.$/

/** Characters. */
const longest = 160
