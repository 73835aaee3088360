/** What stands before the next words of a person. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Service as Screen } from "../../channel/ConsoleScreen.js"
import type * as Agent from "../../runtime/Agent.js"
import * as Display from "../../terminal/Display.js"
import type * as AgentOutline from "../view/AgentOutline.js"
import * as ChatCommand from "./ChatCommand.js"

/** The prompt names the receiver of the next words when there are several agents and one works or was selected. */
export const make = (agent: Agent.Agent, screen: Screen, outline: AgentOutline.AgentOutline): Effect.Effect<void> => {
  let shown: string | undefined
  return Effect.gen(function* () {
    const agents = yield* agent.agents
    const isPlain = agents.length === 1 || ((yield* agent.isIdle) && Option.isNone(yield* agent.selected))
    const { origin } = (yield* agent.receiver).agent
    const label = ChatCommand.labelOf(outline, origin)
    const next = isPlain ? undefined : `${Display.truncate(label, Math.floor((yield* screen.columns) / 3))} › `
    if (next === shown) return
    shown = next
    yield* screen.setPrompt(next)
  })
}
