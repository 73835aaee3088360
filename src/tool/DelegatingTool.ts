/** The tools whose calls describe or name the subagent to make. */

const names: ReadonlySet<string> = new Set(["delegate", "spawn_subagent"])

export const is = (tool: string): boolean => names.has(tool)
