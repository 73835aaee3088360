/** What came of a call, for the row at its end, and of a subagent's task. */
import type { EventOf } from "../../event/AgentEvent.js"
import * as PlanMode from "../../permission/PlanMode.js"
import * as Display from "../terminal/Display.js"
import type { Glyphs } from "../terminal/Glyphs.js"
import * as Activity from "./Activity.js"
import type * as AgentOutline from "./AgentOutline.js"
import * as Indent from "./Indent.js"

/** What the row says behind its mark: which call it was, or whose task, how it ended, and what came of it. */
export const words = (
  outline: AgentOutline.AgentOutline,
  event: EventOf<"ToolCallEnded">,
  {
    child,
    named,
    succeeded
  }: {
    /** The agent that worked for the call. */
    readonly child: AgentOutline.Node | undefined
    /** Empty where the beginning of the call stands right above. */
    readonly named: string
    readonly succeeded: boolean
  },
  { signs, style }: { readonly signs: Glyphs; readonly style: Display.Style }
): string => {
  const time = event.duration === undefined ? "" : Activity.duration(event.duration)
  const ended = outcome(event)
  const parts = (): ReadonlyArray<string> => {
    if (child === undefined) {
      const what = succeeded ? named : style.red([named === "" ? event.tool : named, ended].join(" ").trim())
      return [what, ...[time, said(event)].map(style.dim)]
    }
    // A call that waits for its agent ends after it.
    const isBegun = event.outcome === "succeeded" && child.completed === undefined
    const who = [Indent.tint(style, child)(child.label), style.red(ended)].join(" ").trim()
    return [who, style.dim(isBegun ? "works in the background" : figures(outline, child, time, ended === ""))]
  }
  return parts()
    .filter((part) => part !== "")
    .join(style.dim(signs.between))
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

/** How it ended, where that is not as it should be. */
const outcome = ({ fault = "", outcome }: EventOf<"ToolCallEnded">): string =>
  outcome === "succeeded" ? fault : (wordFor[outcome] ?? outcome)

/** Why a call was denied is said once, and what else its model could do is not for people. */
const said = ({ outcome, summary, tool }: EventOf<"ToolCallEnded">): string => {
  // What it says then is for the model, too.
  if (outcome === "succeeded" && tool === proposer) return "approved"
  if ((outcome === "cancelled" || outcome === "interrupted") && cut.test(summary)) return ""
  if (outcome !== "denied") return Display.oneLine(summary, longest)
  const reason = summary.replace(/^Permission denied: /, "")
  return Display.oneLine(PlanMode.forPerson(reason), longest)
}

/** Outcomes that a person would call otherwise. */
const wordFor: { readonly [outcome: string]: string } = { invalid: "not run" }

/** The tool that proposes a plan. */
const proposer = "propose_plan"

/** Says no more than the outcome. */
const cut =
  /^The (?:call was cancelled|user cancelled this call)(?: while it ran\. Whether it took effect is not known)?\.$/

/** Characters. */
const longest = 160
