/** Two of operations decide about production; everybody else asks the desk, and after ten minutes whoever is on call. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, type Interactor, Interactors, Policy, ScriptedModel } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Deploy = Tool.make("deploy", { parameters: { target: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Deploy)
const handlers = toolkit.toLayer({ deploy: ({ target }) => Effect.succeed(`${target} is live`) })

const policy = Policy.make({
  roles: { ops: ["ada", "grace", "linus"] },
  approvals: [{ patterns: ["deploy(target=production*)"], quorum: 2, roles: ["ops"] }]
})
const runtime = AgentRuntime.layer({ toolkit, policy })

/** Who is asked. Who decides about production is in the policy, and nothing here gets past it. */
export const people = (desk: Interactor.Service, onCall: Interactor.Service) =>
  Interactors.escalate({ to: [desk, onCall], after: "10 minutes" })

export const program = (asked: ReadonlyArray<Interactor.Service>) =>
  Effect.gen(function* () {
    const agent = yield* Agent.startWith(asked)
    return yield* agent.run("deploy to production")
  }).pipe(Effect.scoped, Effect.provide(runtime))

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "deploy", params: { target: "production" } }] }, { text: "Deployed." }] }
})

export const live = Layer.mergeAll(handlers, model, NodeContext.layer)
