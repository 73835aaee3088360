/** What one agent has of its runtime: tools, a policy and guards. */
import type * as Effect from "effect/Effect"
import * as CompiledPolicy from "../permission/CompiledPolicy.js"
import type * as Guard from "../permission/Guard.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as AgentRuntime from "./AgentRuntime.js"
import type { Rules } from "./UnmetRules.js"

type Runtime = AgentRuntime.Service

export interface Options {
  readonly name?: string | undefined
  readonly tools?: ReadonlyArray<string> | undefined
  readonly policy?: CompiledPolicy.Policy | undefined
  readonly guards?: ReadonlyArray<Guard.Guard> | undefined
}

/**
 * Fails for names that the runtime does not know, and for rules that can match no call. Says in the log what else in the rules
 * is about no tool of it.
 */
export const checked = (
  runtime: Runtime,
  options: Options,
  remembered: Rules["remembered"]
): Effect.Effect<void, ToolRegistry.ToolsUnknown | CompiledPolicy.PolicyInvalid> =>
  unknownIn(runtime, options) ??
  AgentRuntime.checked(runtime.tools, `agent ${options.name ?? "main"}`, runtime.redactor, {
    policy: options.policy,
    guards: options.guards,
    remembered
  })

export const toolsOf = ({ tools: registry }: Runtime, { tools }: Options): ToolRegistry.Service =>
  tools === undefined ? registry : ToolRegistry.subset(registry, tools).tools

export const policyOf = (
  runtime: Pick<Runtime, "policy">,
  { policy }: Pick<Options, "policy">
): CompiledPolicy.Policy => (policy === undefined ? runtime.policy : CompiledPolicy.within(runtime.policy, policy))

/** The runtime's first: they can only be added to. */
export const guardsOf = (runtime: Runtime, { guards, policy }: Options): ReadonlyArray<Guard.Guard> => {
  const sanitize = policy?.source.guards?.sanitize
  if (guards === undefined && sanitize === undefined) return runtime.guards
  const sanitizer = policy === undefined || sanitize === undefined ? [] : [sanitizerOf(runtime, policy)]
  return [...runtime.guards, ...sanitizer, ...(guards ?? [])]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const unknownIn = (
  { tools: registry }: Runtime,
  { name = "main", policy, tools = [] }: Options
): ToolRegistry.ToolsUnknown | undefined => {
  const known = ToolRegistry.namesIn(registry)
  const unknown = tools.filter((tool) => !known.has(tool) && !ToolRegistry.isOfServer(registry, tool))
  if (unknown.length > 0) return problem(`agent ${name}`, unknown, known)
  const names = registry.entries.map((entry) => entry.name)
  const inPolicy =
    policy === undefined ? [] : CompiledPolicy.unknownTools(policy, names).filter((name) => !name.startsWith("mcp__"))
  return inPolicy.length === 0 ? undefined : problem(`the policy of agent ${name}`, inPolicy, names)
}

const sanitizerOf = ({ sanitizer }: Runtime, policy: CompiledPolicy.Policy): Guard.Guard =>
  sanitizer(CompiledPolicy.mentioned(policy))

const problem = (by: string, unknown: ReadonlyArray<string>, known: Iterable<string>): ToolRegistry.ToolsUnknown =>
  new ToolRegistry.ToolsUnknown({ by, unknown: [...new Set(unknown)], known: [...known] })
