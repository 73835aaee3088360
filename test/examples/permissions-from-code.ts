/** Permissions from code: a policy, a guard of the program's own, and what a running agent is told meanwhile. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, Guard, Policy, ScriptedModel, ToolTrait } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Shell = Tool.make("shell", { parameters: { command: Schema.String }, success: Schema.String }).annotate(
  ToolTrait.ShellCommand,
  "command"
)
const Pay = Tool.make("pay", { parameters: { amount: Schema.Number }, success: Schema.String })
const toolkit = Toolkit.make(Shell, Pay)

const runtime = AgentRuntime.layer({
  toolkit,
  policy: Policy.make({
    defaultPolicy: "deny",
    whitelist: { patterns: ["git status*", "git log*"], tools: ["pay"] },
    guards: { deny: { patterns: ["*--force*"] } }
  }),
  guards: [
    Guard.forTool(Pay, ({ amount }) => (amount > 100 ? Effect.fail("no agent pays more than 100") : Effect.void))
  ]
})

const model = ScriptedModel.layer({
  agents: {
    main: [
      {
        tools: [
          { name: "shell", params: { command: "git status --short" } },
          { name: "shell", params: { command: "git status; rm -rf x" } },
          { name: "pay", params: { amount: 20 } },
          { name: "pay", params: { amount: 2_000 } }
        ]
      },
      { text: "Done." }
    ]
  }
})

/** What became of each call, in order. */
export const program = Effect.gen(function* () {
  const agent = yield* Agent.start()
  yield* agent.permissions.deny("shell")
  yield* agent.permissions.clear
  yield* agent.run("check and pay")
  return agent.history.messages.flatMap((message) =>
    message.role === "tool" ? message.content.map((result) => result.result) : []
  )
}).pipe(Effect.scoped, Effect.provide(runtime))

export const live = Layer.mergeAll(
  toolkit.toLayer({
    shell: ({ command }) => Effect.succeed(`ran ${command}`),
    pay: ({ amount }) => Effect.succeed(`paid ${amount}`)
  }),
  model,
  NodeContext.layer
)
