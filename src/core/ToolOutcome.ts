/** How a proposed tool call ended: in results, events and records. */
import * as Schema from "effect/Schema"

/**
 * A call that is `denied`, `invalid`, `cancelled` or `interrupted` never ran to its end.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolOutcome = Schema.Literal("succeeded", "failed", "denied", "invalid", "cancelled", "interrupted")
export type ToolOutcome = typeof ToolOutcome.Type
