/**
 * The data of one proposed tool call and of its end.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type { ToolCallId } from "../core/Id.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"

export { ToolKind } from "../core/ToolKind.js"
export type { ToolOutcome } from "../core/ToolOutcome.js"

/**
 * One call a model proposed: the name and the arguments exactly as it wrote them.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolCall {
  readonly id: ToolCallId
  readonly name: string
  readonly params: unknown
}

/**
 * The end of one proposed call: what the model gets to see.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolResult {
  readonly id: ToolCallId
  readonly name: string
  readonly outcome: ToolOutcome
  /** JSON-like; for anything but `succeeded` a sentence or the tool's encoded failure. */
  readonly result: unknown
}

/**
 * The parts of a call that an approval shows to a person.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolDisplay = Schema.Struct({
  /** One line: what will happen. */
  summary: Schema.optional(Schema.String),
  /** The body, in the given format. */
  details: Schema.optional(Schema.String),
  format: Schema.optional(Schema.Literal("text", "diff", "json", "code", "markdown")),
  /** Programming language of `details` when its format is `code`. */
  language: Schema.optional(Schema.String),
  /** True when `details` leaves something out. */
  truncated: Schema.optional(Schema.Boolean),
  warnings: Schema.optional(Schema.Array(Schema.String)),
  /**
   * The file that the call would change, for surfaces that show changes themselves. The path is absolute; `before` is
   * absent for a new file. Absent where the texts are longer than 100,000 characters together.
   */
  change: Schema.optional(
    Schema.Struct({ path: Schema.String, before: Schema.optional(Schema.String), after: Schema.String })
  )
}).annotations({ identifier: "ToolDisplay" })
export type ToolDisplay = typeof ToolDisplay.Type
