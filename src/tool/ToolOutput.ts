/** Where a running tool sends what it prints while it runs. An ambient value: outside an agent it goes nowhere. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** A piece of output of the running tool call. */
export interface Chunk {
  readonly stream: "stdout" | "stderr"
  readonly text: string
}

/** Takes chunks of the tool call whose fiber calls it. Never fails; may wait for a slow reader. */
export class ToolOutput extends Context.Reference<ToolOutput>()("assent/tool/ToolOutput", {
  defaultValue: (): ((chunk: Chunk) => Effect.Effect<void>) => () => Effect.void
}) {}

/** Shows output of a tool while it runs. Nothing where nobody looks. */
export const emit = (chunk: Chunk): Effect.Effect<void> => Effect.flatMap(ToolOutput, (sink) => sink(chunk))
