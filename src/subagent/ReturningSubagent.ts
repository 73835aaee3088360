/**
 * The recipe of a subagent from another process: never with more rights than it had, nor with more than its parent and
 * its profile's author give now.
 */
import type { SessionOpened } from "../journal/JournalEntry.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Settings } from "./AgentTree.js"
import { lacking, type Recipe } from "./DelegationRequest.js"
import * as SubagentProfile from "./SubagentProfile.js"

export interface ReturningSubagent {
  readonly id: string
  readonly recipe: Recipe
  /** Names of the tools it may use without asking. */
  readonly allowed: ReadonlyArray<string> | undefined
  readonly keep: boolean | undefined
}

/**
 * From the first entry of its journal; `parents` are its parent's present tools. None for a subagent that cannot be
 * made again.
 */
export const make = (
  { child, maxSteps, model, profile: name, subagentId }: SessionOpened,
  parents: ToolRegistry.Service,
  settled: Pick<Settings, "profiles" | "tools" | "toolsOf">
): ReturningSubagent | undefined => {
  if (child === undefined || subagentId === undefined) return undefined
  const { allowed, instructions, settings, tools: had } = child
  const { profiles, toolsOf } = settled
  const profile = name === undefined ? undefined : profiles.get(name)
  const tools = ToolRegistry.named(parents, had)
  // A person's approval holds for its life. An author's approval holds while the author still gives it and is trusted.
  const approved = name === undefined ? tools : profile?.autoApproved === true ? toolsOf(profile, parents) : undefined
  const recipe: Recipe = {
    name: child.name,
    profile,
    tools,
    lacking: profile === undefined ? [] : lacking(profile, parents, settled),
    envelope: undefined,
    autoApproved: false,
    instructions,
    model,
    maxTurns: maxSteps ?? SubagentProfile.defaults.maxTurns,
    compaction: profile?.gc,
    settings,
    output: profile?.outputSchema
  }
  return {
    id: subagentId,
    recipe,
    keep: child.keep,
    allowed: approved && allowed?.filter((tool) => tools.get(tool) !== undefined && approved.get(tool) !== undefined)
  }
}
