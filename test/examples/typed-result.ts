/** A run that yields a value: the model is given a schema, and what it answers is decoded. */
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { Agent, AgentRuntime, AutoChannel, ScriptedModel } from "assent"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Invoice = Schema.Struct({ number: Schema.String, due: Schema.Date, cents: Schema.Int })

/** The invoice, or a sentence that says why there is none. */
export const read = (mail: string) =>
  Effect.gen(function* () {
    const agent = yield* Agent.start()
    const end = yield* agent.run(`Read the invoice in this mail:\n${mail}`, { output: Invoice })
    switch (end._tag) {
      case "Completed":
        return end.value
      case "Failed":
        return yield* Effect.fail(end.invalid?.issues.join("; ") ?? end.error)
      default:
        return yield* Effect.fail(`It ended as ${end._tag}.`)
    }
  }).pipe(Effect.scoped)

/** The first answer does not fit; the model is told what is wrong with it. */
const model = ScriptedModel.layer({
  agents: {
    main: [
      { text: '{ "number": "A-17", "due": "soon", "cents": 1250 }' },
      { expect: { contains: "due" }, text: '{ "number": "A-17", "due": "2026-12-01", "cents": 1250 }' }
    ]
  }
})

export const live = AgentRuntime.layer({ toolkit: Toolkit.empty }).pipe(
  Layer.provide(model),
  Layer.provide(NodeContext.layer),
  Layer.merge(AutoChannel.layer())
)
