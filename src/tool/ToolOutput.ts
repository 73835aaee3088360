/**
 * The receiver of a running tool's output. An ambient value: outside an agent it drops the output.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/**
 * A piece of output of the running tool call.
 *
 * @since 0.1.0
 * @category models
 */
export interface Chunk {
  readonly stream: "stdout" | "stderr"
  /** A carriage return goes back to the beginning of the row, as bars of progress do. */
  readonly text: string
  /** The same with its colours and weights, as a terminal takes them (SGR). Absent where it has none of its own. */
  readonly styled?: string | undefined
  /**
   * By how many lines more was printed before it than was shown, since the piece before. Below zero where the words that tell
   * of what is missing stand in the midst of a line. Absent where all was shown.
   */
  readonly unshown?: number | undefined
}

/**
 * Takes chunks of output, from the fiber of the tool call they belong to. Never fails; may wait for a slow reader.
 *
 * @since 0.1.0
 * @category services
 */
export class ToolOutput extends Context.Reference<ToolOutput>()("assent/tool/ToolOutput", {
  defaultValue: (): ((chunk: Chunk) => Effect.Effect<void>) => () => Effect.void
}) {}

/**
 * Shows output of a running tool. Does nothing without a receiver.
 *
 * @since 0.1.0
 * @category operations
 */
export const emit = (chunk: Chunk): Effect.Effect<void> => Effect.flatMap(ToolOutput, (sink) => sink(chunk))
