/** From a program that does not know Effect: an agent behind promises, with a function that is asked for approval. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, QueueChannel, ScriptedModel } from "assent"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const Mail = Tool.make("mail", { parameters: { to: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Mail)

const model = ScriptedModel.layer({
  agents: { main: [{ tools: [{ name: "mail", params: { to: "ada@example.com" } }] }, { text: "It is on its way." }] }
})

const live = AgentRuntime.layer({ toolkit }).pipe(
  Layer.provide(toolkit.toLayer({ mail: ({ to }) => Effect.succeed(`sent to ${to}`) })),
  Layer.provide(Layer.merge(model, NodeContext.layer))
)

class NotDone extends Data.TaggedError("NotDone")<{ readonly message: string }> {}

/** Resolves to what the agent said; rejects with the reason when it could not. */
export interface Assistant {
  readonly ask: (text: string, options?: { readonly signal?: AbortSignal }) => Promise<string>
  readonly close: () => Promise<void>
}

/** `approve` gets the tool and its arguments in words. What it throws is a no. */
export const makeAssistant = (approve: (tool: string, summary: string) => Promise<boolean>): Assistant => {
  const runtime = ManagedRuntime.make(live)
  const task = (text: string) =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded" })
      const agent = yield* Agent.startWith([channel.interactor])
      yield* Effect.forkScoped(
        Stream.runForEach(channel.stream, (dialog) => {
          if (dialog._tag !== "Opened" || dialog.request.interaction._tag !== "Approve") return Effect.void
          const { argumentsSummary, tool } = dialog.request.interaction
          return Effect.tryPromise(() => approve(tool, argumentsSummary)).pipe(
            Effect.orElseSucceed(() => false),
            Effect.flatMap((yes) => channel.answerText(dialog.request.requestId, yes ? "y" : "n")),
            // It is refused when the time was up.
            Effect.ignore
          )
        })
      )
      const end = yield* agent.run(text)
      return end._tag === "Completed" ? end.text : yield* new NotDone({ message: `The agent ended: ${end._tag}.` })
    }).pipe(Effect.scoped)
  return {
    ask: (text, options) => runtime.runPromise(task(text), options),
    close: () => runtime.dispose()
  }
}
