/** What came of a call, for the row at its end. */
import type { EventOf } from "../../event/AgentEvent.js"
import * as Display from "../../terminal/Display.js"

/** Why a call was denied is said once, and what else its model could do is not for people. */
export const said = ({ outcome, summary, tool }: EventOf<"ToolCallEnded">): string => {
  // What it says then is for the model, too.
  if (outcome === "succeeded" && tool === proposer) return "approved"
  if (outcome === "cancelled" && cancelled.test(summary)) return ""
  if (outcome !== "denied") return Display.oneLine(summary, longest)
  const reason = summary.replace(/^Permission denied: /, "")
  return Display.oneLine(/^plan mode: .*?\.(?=\s|$)/s.exec(reason)?.[0] ?? reason, longest)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The tool that proposes a plan. */
const proposer = "propose_plan"

/** Says no more than the outcome. */
const cancelled = /^The (?:call was cancelled|user cancelled this call)\.$/

/** Characters. */
const longest = 160
