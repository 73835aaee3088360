/** A real model, and a person at this terminal who is asked. The key and the model's name come from the environment. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { ConsoleChannel } from "assent"
import * as AnthropicMessages from "assent/model/AnthropicMessages"
import { Screen } from "assent/node"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as OwnToolkit from "./own-toolkit.js"

export const model = AnthropicMessages.layerConfig({
  model: Config.withDefault(Config.string("MODEL"), "claude-sonnet-4-5"),
  apiKey: Config.redacted("ANTHROPIC_API_KEY")
})
const person = ConsoleChannel.layer().pipe(Layer.provide(Screen.layer({ output: "stderr" })))

/** For `NodeRuntime.runMain`. */
export const main = OwnToolkit.program.pipe(
  Effect.flatMap((end) => Console.log(end._tag === "Completed" ? end.text : end)),
  Effect.provide([OwnToolkit.handlers, Layer.provide(model, FetchHttpClient.layer), person, NodeContext.layer])
)
