/** An agent seen by the program's own tracer and metrics: whatever exports those exports this too. */
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, Metrics, ScriptedModel } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"

/** Its spans are below `checkout`: `invoke_agent main`, and `chat script/script` below that. */
export const program = Effect.gen(function* () {
  const agent = yield* Agent.startWith([])
  return yield* agent.run("What is left in the basket?")
}).pipe(Effect.scoped, Effect.withSpan("checkout"))

/** How many turns have completed since the program began. */
export const completed = Effect.map(
  Metric.value(Metric.tagged(Metrics.turns, "end", "completed")),
  ({ count }) => count
)

/** Put a tracer beside it, such as `NodeSdk.layer` of `@effect/opentelemetry`. */
export const live = Layer.mergeAll(
  Metrics.layer,
  AgentRuntime.layer({ toolkit: Toolkit.empty }).pipe(
    Layer.provide(Layer.merge(ScriptedModel.layer({ agents: { main: [{ text: "A pear." }] } }), NodeContext.layer))
  )
)
