/** A family of agents: one that delegates, a profile for another, and a person whom both ask in the same place. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, Delegate, Policy, ScriptedModel, SubagentProfile } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Diff = Tool.make("diff", { success: Schema.String })
const own = Toolkit.make(Diff)
const toolkit = Toolkit.merge(own, Delegate.toolkit)

const reviewer = SubagentProfile.make({
  name: "reviewer",
  description: "Reads a change and says whether it is good",
  plugins: ["diff"],
  maxTurns: 5
})

const runtime = AgentRuntime.layer({
  toolkit,
  policy: Policy.make({ whitelist: { tools: ["delegate"] } }),
  subagents: { profiles: [reviewer], maxDepth: 1 }
})

/** The last answer, and what each agent has used. */
export const program = Effect.gen(function* () {
  const agent = yield* Agent.start()
  const end = yield* agent.run("Is the change good?")
  const tokens = Array.from(agent.ledger.byAgent(), ([name, { inputTokens }]) => `${name} ${inputTokens}`)
  return { end, tokens }
}).pipe(Effect.scoped, Effect.provide(runtime))

const model = ScriptedModel.layer({
  agents: {
    main: [
      { tools: [{ name: "delegate", params: { profile: "reviewer", task: "Review the change." } }] },
      { expect: { contains: "It is good." }, text: "Yes.", usage: { input: 200, output: 5 } }
    ],
    reviewer: [{ tools: [{ name: "diff" }] }, { text: "It is good.", usage: { input: 100, output: 10 } }]
  }
})

export const live = Layer.mergeAll(
  own.toLayer({ diff: () => Effect.succeed("+ one line") }),
  Delegate.layer,
  model,
  NodeContext.layer
)
