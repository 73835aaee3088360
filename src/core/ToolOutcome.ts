/** How a proposed tool call ended: in results, events and records. */
import * as Schema from "effect/Schema"

/**
 * A call that is `denied`, `invalid` or `cancelled` never began. One that is `interrupted` began and has no end of its own:
 * whether it took effect is not known.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolOutcome = Schema.Literal("succeeded", "failed", "denied", "invalid", "cancelled", "interrupted")
export type ToolOutcome = typeof ToolOutcome.Type

/** The result of a call that is `interrupted`. */
export const unknownEffect = (what: string): string => `${what} Whether it took effect is not known.`

/** What happened to a call that had begun. */
export const cut = (what: string): string => `${what} while it ran.`

/** The result of a call whose process ended. */
export const lost = unknownEffect("The program ended while this call was under way.")
