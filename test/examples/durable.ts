/** A session that outlives its process: it halts at a question, and another process goes on when somebody is there. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, HaltChannel, type Id, Persistence, ScriptedModel, SessionStore } from "assent"
import { LibsqlStore } from "assent/sql"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Pay = Tool.make("pay", { parameters: { amount: Schema.Number }, success: Schema.String })
const toolkit = Toolkit.make(Pay)

/** Nobody is there, so it halts at the first question, which stays open. */
export const begin = (task: string) =>
  Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    const persistence = yield* Persistence.begin(store)
    const agent = yield* Agent.start({ persistence })
    yield* agent.run(task, { id: "bill" })
    return persistence.rootSessionId
  }).pipe(Effect.scoped, Effect.provide(HaltChannel.layer))

/**
 * Another process, another day: the question is asked again under its id, and what was done is not done again. The same words
 * under the same id wait for, or get, the end of their one run.
 */
export const goOn = (id: Id.SessionId, task: string) =>
  Effect.gen(function* () {
    const store = yield* SessionStore.SessionStore
    const agent = yield* Agent.start({ persistence: yield* Persistence.resume(store, id) })
    return yield* agent.run(task, { id: "bill" })
  }).pipe(Effect.scoped)

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "pay", params: { amount: 20 } }] }, { text: "Paid." }] }
})

export const live = (file: string, paid: Array<number>) =>
  AgentRuntime.layer({ toolkit }).pipe(
    Layer.provide(toolkit.toLayer({ pay: ({ amount }) => Effect.sync(() => `${paid.push(amount)} paid`) })),
    Layer.provide(model),
    Layer.merge(LibsqlStore.layer({ file, process: { pid: process.pid, host: "here", isAlive: () => true } })),
    Layer.provideMerge(NodeContext.layer)
  )
