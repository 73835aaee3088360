/** A thousand agents on one runtime, each with a policy of its own under the runtime's. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, Policy, ScriptedModel } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Read = Tool.make("read", { parameters: { shelf: Schema.Number }, success: Schema.String })
const toolkit = Toolkit.make(Read)

/** A librarian who may read one shelf. What no rule allows is denied: no person can be asked. */
const librarian = (shelf: number) =>
  Effect.gen(function* () {
    const policy = Policy.make({ defaultPolicy: "deny", whitelist: { patterns: [`read(shelf=${shelf})`] } })
    const agent = yield* Agent.startWith([], { policy })
    yield* agent.run("Read shelf 7.")
    return agent.history.messages.flatMap((message) =>
      message.role === "tool" ? message.content.map(({ result }) => String(result)) : []
    )
  }).pipe(Effect.scoped)

/** What each of them got, shelf by shelf. */
export const program = (shelves: number) =>
  Effect.forEach(
    Array.from({ length: shelves }, (_, shelf) => shelf),
    librarian,
    { concurrency: 100 }
  )

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "read", params: { shelf: 7 } }] }, { text: "Done." }] }
})

export const live = AgentRuntime.layer({ toolkit }).pipe(
  Layer.provide(toolkit.toLayer({ read: ({ shelf }) => Effect.succeed(`shelf ${shelf}`) })),
  Layer.provide(Layer.merge(model, NodeContext.layer))
)
