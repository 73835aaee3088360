/** Two clients of one agent: each is asked everything, the first answer counts, and the other dialog is closed. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, QueueChannel, ScriptedModel } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Merge = Tool.make("merge", { parameters: { branch: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Merge)

/** An agent with a client at a terminal. A telephone joins it while it works: see `join`. */
export const start = Effect.gen(function* () {
  const terminal = yield* QueueChannel.make({ id: "terminal" })
  const telephone = yield* QueueChannel.make({ id: "telephone" })
  const agent = yield* Agent.startWith([terminal.interactor])
  return { agent, telephone, terminal, join: agent.broker.attach(telephone.interactor) }
})

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "merge", params: { branch: "main" } }] }, { text: "Merged." }] }
})

export const live = AgentRuntime.layer({ toolkit }).pipe(
  Layer.provide(toolkit.toLayer({ merge: ({ branch }) => Effect.succeed(`${branch} is merged`) })),
  Layer.provide(Layer.merge(model, NodeContext.layer))
)
