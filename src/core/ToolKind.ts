/** What a tool does to the world, for the icons and the grouping of surfaces. */
import * as Schema from "effect/Schema"

/**
 * `edit` changes files, `execute` runs a program, `fetch` asks another machine, `think` only arranges the agent's own work,
 * `switch_mode` ends plan mode: a person is asked about it in any case. The names are those of the Agent Client Protocol.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolKind = Schema.Literal("read", "edit", "search", "execute", "fetch", "think", "switch_mode", "other")
export type ToolKind = typeof ToolKind.Type
