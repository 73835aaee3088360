/** How a proposed tool call ended: in results, events and records. */
import * as Schema from "effect/Schema"

/** `denied`, `invalid`, `cancelled` and `interrupted` never ran to their end. */
export const ToolOutcome = Schema.Literal("succeeded", "failed", "denied", "invalid", "cancelled", "interrupted")
export type ToolOutcome = typeof ToolOutcome.Type
