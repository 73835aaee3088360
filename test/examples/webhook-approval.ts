/** Approval from a chat app: each question is one POST to its bot, and what the bot responds is the answer. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, ScriptedModel } from "assent"
import * as WebhookChannel from "assent/channel/WebhookChannel"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Refund = Tool.make("refund", { parameters: { order: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Refund)

/** The bot keeps the connection open until somebody has pressed a button, at most for an hour. */
const bot = Layer.unwrapEffect(
  Effect.gen(function* () {
    const url = yield* Config.string("BOT_URL")
    const token = yield* Config.redacted("BOT_TOKEN")
    return WebhookChannel.layer({ url, token, timeouts: { permission: "1 hour" } })
  })
).pipe(Layer.provide(FetchHttpClient.layer))

export const program = Effect.gen(function* () {
  const agent = yield* Agent.start()
  return yield* agent.run("Mrs. Lovelace wants her money back for order 17.")
}).pipe(Effect.scoped)

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "refund", params: { order: "17" } }] }, { text: "She has it back." }] }
})

export const live = Layer.mergeAll(
  bot,
  AgentRuntime.layer({ toolkit }).pipe(
    Layer.provide(toolkit.toLayer({ refund: ({ order }) => Effect.succeed(`order ${order} is refunded`) })),
    Layer.provide(Layer.merge(model, NodeContext.layer))
  )
)
