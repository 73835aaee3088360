/** What stands before the next words of a person. */
import * as Effect from "effect/Effect"
import * as FiberHandle from "effect/FiberHandle"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as Display from "../terminal/Display.js"
import type * as AgentOutline from "../view/AgentOutline.js"
import * as ChatCommand from "./ChatCommand.js"

/**
 * Shows the prompt as it is now. It names the receiver of the next words when there are several agents and one works or was
 * selected. Where none is drawn, it says whose turn it is: the person's, when nothing works.
 */
export const make = (
  agent: SessionHandle,
  screen: Screen,
  outline: AgentOutline.AgentOutline
): Effect.Effect<Effect.Effect<void>, never, Scope.Scope> =>
  Effect.map(FiberHandle.make<void>(), (resting) => {
    let shown: string | undefined
    const sign = screen.signs === "said" ? "> " : " › "
    // What an agent has done is told a little later than it happens, and the end of a turn a little before the agent rests.
    const invite = Effect.suspend(() =>
      screen.invite === undefined || outline.working().length > 0 ? Effect.void : screen.invite
    )
    return Effect.gen(function* () {
      const agents = yield* agent.agents
      const isIdle = yield* agent.isIdle
      const isPlain = agents.length === 1 || (isIdle && Option.isNone(yield* agent.selected))
      const { origin } = (yield* agent.receiver).agent
      const label = ChatCommand.labelOf(outline, origin)
      const next = isPlain ? undefined : `${Display.truncate(label, Math.floor((yield* screen.columns) / 3))}${sign}`
      if (next !== shown) yield* screen.setPrompt(next)
      shown = next
      if (isIdle) yield* invite
      else if (screen.invite !== undefined)
        yield* FiberHandle.run(resting, Effect.zipRight(agent.awaitIdle, invite), { onlyIfMissing: true })
    })
  })
