/** A stage: work that is repeated until an assertion holds, with a tool outside its list asked for once. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, ScriptedModel, Stage } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Compile = Tool.make("compile", { success: Schema.String })
const Fetch = Tool.make("fetch", { parameters: { url: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Compile, Fetch)

export const build = Stage.make({
  name: "build",
  allowedTools: ["compile"],
  act: ({ attempt }) => Effect.succeed(attempt === 0 ? "Make it compile." : "It did not compile. Try again."),
  assert: ({ attempts }) => Effect.succeed(attempts.length < 2 ? Stage.retry("red") : Stage.ok("green")),
  retryPolicy: { maxAttempts: 3 }
})

const model = ScriptedModel.layer({
  agents: {
    main: [
      { tools: [{ name: "compile" }] },
      { text: "It fails." },
      { tools: [{ name: "fetch", params: { url: "https://example.com/fix" } }, { name: "compile" }] },
      { text: "It compiles." }
    ]
  }
})

export const program = Effect.flatMap(Agent.start(), (agent) => Stage.run(agent, build)).pipe(
  Effect.scoped,
  Effect.provide(AgentRuntime.layer({ toolkit }))
)

export const live = Layer.mergeAll(
  toolkit.toLayer({
    compile: () => Effect.succeed("done"),
    fetch: ({ url }) => Effect.succeed(`the page at ${url}`)
  }),
  model,
  NodeContext.layer
)
