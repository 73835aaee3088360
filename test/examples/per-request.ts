/**
 * One agent that serves many requests, and a tool that works for the customer of the request. What a request forgets has
 * no stand-in: the tool fails, and nothing happens.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { Agent, AgentRuntime, Policy, ScriptedModel } from "assent"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Refund = Tool.make("refund", {
  parameters: { cents: Schema.Number },
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return"
})
const toolkit = Toolkit.make(Refund)

/** The customer of this request. A reference has a default, so the runtime asks for none when it is made. */
class Customer extends Context.Reference<Customer>()("Customer", {
  defaultValue: (): string | undefined => undefined
}) {}

const handlers = toolkit.toLayer({
  refund: ({ cents }) =>
    Effect.flatMap(Customer, (customer) =>
      customer === undefined ? Effect.fail("There is no customer.") : Effect.succeed(`${cents} to ${customer}`)
    )
})

/** The handlers of this run, and of the subagents that it starts, see the customer; those of the next run do not. */
export const serve = (agent: Agent.Agent, words: string, customer: string) =>
  agent.run(words).pipe(Effect.provideService(Customer, customer))

export const live = AgentRuntime.layer({ toolkit, policy: Policy.make({ whitelist: { tools: ["refund"] } }) }).pipe(
  Layer.provide(handlers)
)

const refunds = [{ tools: [{ name: "refund", params: { cents: 500 } }] }, { text: "Done." }]

export const model = ScriptedModel.layer({ agents: { main: [...refunds, ...refunds, ...refunds] } })
