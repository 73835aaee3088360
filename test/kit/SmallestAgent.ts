/** The smallest agent, for what it weighs: one tool, a scripted model and no store. It is bundled, and never run. */
import { Tool, Toolkit } from "@effect/ai"
import { Agent, AgentRuntime, AutoChannel, ScriptedModel } from "assent"
import { Effect, Layer } from "effect"

const Now = Toolkit.make(Tool.make("now"))

const Runtime = AgentRuntime.layer({ toolkit: Now }).pipe(
  Layer.provide([Now.toLayer({ now: () => Effect.void }), ScriptedModel.layer({ agents: {} })])
)

export const program = Effect.gen(function* () {
  const agent = yield* Agent.start()
  return yield* agent.run("What time is it?")
}).pipe(Effect.scoped, Effect.provide([Runtime, AutoChannel.layer()]))
