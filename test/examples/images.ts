/** A picture with a question: read from a file, checked, and shown to a model that takes pictures. */
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, AutoChannel, Input, Model } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** What the model sees, or a sentence that says why the file is not taken. */
export const look = (path: string) =>
  Effect.gen(function* () {
    const agent = yield* Agent.start()
    const screenshot = yield* Input.read(path)
    const end = yield* agent.run(["What is wrong here?", screenshot])
    return end._tag === "Completed" ? end.text : `It ended as ${end._tag}.`
  }).pipe(
    Effect.scoped,
    Effect.catchTag("InputRefused", ({ message }) => Effect.succeed(message))
  )

/** Stands for a model behind a provider, and takes images only. */
const model = Model.layer(
  Model.fromAnswer({
    id: "example/eyes",
    inputs: ["image/*"],
    answer: ({ prompt }) =>
      Effect.sync(() => {
        const parts = prompt.content.flatMap(({ content, role }) => (role === "user" ? content : []))
        const seen = parts.flatMap((part) => (part.type === "file" ? [`${part.fileName}, ${part.mediaType}`] : []))
        return [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: `I see ${seen.join(" and ")}.` },
          { type: "text-end", id: "1" },
          { type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }
        ]
      })
  })
)

export const live = AgentRuntime.layer({ toolkit: Toolkit.empty }).pipe(
  Layer.provide(model),
  Layer.merge(AutoChannel.layer()),
  Layer.provideMerge(NodeContext.layer)
)
