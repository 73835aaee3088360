/** A team's own toolkit, an agent that uses it, a policy, and a person who is asked. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, Policy, ScriptedModel } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Deploy = Tool.make("deploy", { parameters: { target: Schema.String }, success: Schema.String })
export const toolkit = Toolkit.make(Deploy)
export const handlers = toolkit.toLayer({ deploy: ({ target }) => Effect.succeed(`${target} is live`) })

export const policy = Policy.make({ blacklist: { patterns: ["deploy(target=production)"] } })
const runtime = AgentRuntime.layer({ toolkit, policy })

/** The caller provides the interactor: a console, a queue, a webhook. The type requires one. */
export const program = Effect.gen(function* () {
  const agent = yield* Agent.start()
  return yield* agent.run("deploy to staging")
}).pipe(Effect.scoped, Effect.provide(runtime))

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "deploy", params: { target: "staging" } }] }, { text: "Deployed." }] }
})

export const live = Layer.mergeAll(handlers, model, NodeContext.layer)
