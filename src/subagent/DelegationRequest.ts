/**
 * A model's request to delegate: the parameters of the delegating tools, and the recipe that results.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import { isBlank } from "../inbox/Message.js"
import type { ToolCall, ToolDisplay } from "../tool/ToolCall.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as TypedOutput from "../turn/TypedOutput.js"
import type * as CompactionConfig from "../conversation/CompactionConfig.js"
import type { AgentTree, Settings } from "./AgentTree.js"
import * as DelegatingTool from "../tool/DelegatingTool.js"
import * as SubagentProfile from "./SubagentProfile.js"

/**
 * Parameters of `delegate` and `spawn_subagent`.
 *
 * @internal
 */
export const parameters = {
  task: Schema.NonEmptyString.annotations({
    description: "What the subagent is to do. It sees nothing else of this conversation: say all it needs to know."
  }),
  profile: Schema.optional(Schema.String).annotations({
    description: "Name of a profile; list_profiles tells which there are. Leave it out to describe the subagent here."
  }),
  plugins: Schema.optional(Schema.Array(Schema.String)).annotations({
    description: "Without a profile: the tools or groups of tools the subagent may use without asking."
  }),
  system_instructions: Schema.optional(Schema.String).annotations({
    description: "Without a profile: its instructions."
  }),
  max_turns: Schema.optional(Schema.Int.pipe(Schema.positive())).annotations({
    description: "Without a profile: the most model calls for this task. Default: 10."
  }),
  model: Schema.optional(Schema.String).annotations({
    description: "Without a profile: provider/model, when it should differ from yours."
  }),
  context: Schema.optional(Schema.String).annotations({
    description: "Material for the task: findings, excerpts, notes."
  }),
  keep: Schema.optional(Schema.Boolean).annotations({
    description:
      "Keeps the subagent and its background commands after the report, for more questions. Otherwise it ends."
  })
}

/**
 * What a delegating call asks for, as the model writes it.
 *
 * @since 0.1.0
 * @category models
 */
export interface DelegationRequest {
  readonly task: string
  readonly profile?: string | undefined
  readonly plugins?: ReadonlyArray<string> | undefined
  readonly system_instructions?: string | undefined
  readonly max_turns?: number | undefined
  readonly model?: string | undefined
  readonly context?: string | undefined
  /** It stays after its report, until it is closed. Default: false. */
  readonly keep?: boolean | undefined
}

/**
 * Which subagent to make; `agent` has the tools of its parent.
 *
 * @since 0.1.0
 * @category models
 */
export type Wanted = DelegationRequest | "agent"

/**
 * The agent that delegates.
 *
 * @internal
 */
export interface Parent {
  readonly tree: AgentTree
  /** All of its own tools; its children get only some of them. */
  readonly tools: ToolRegistry.Service
  readonly depth: number
  readonly modelId: string
}

/**
 * A subagent ready to be made.
 *
 * @internal
 */
export interface Recipe {
  /** Last segment of its path, and its name in scripts. */
  readonly name: string
  readonly profile: SubagentProfile.SubagentProfile | undefined
  readonly tools: ToolRegistry.Service
  /** Names of tools of its profile that it lacks because its parent lacks them. */
  readonly lacking: ReadonlyArray<string>
  /** Names of the tools that a person must allow for its whole life, when the request itself names tools. */
  readonly envelope: ReadonlyArray<string> | undefined
  /** Its profile's author approved all its tools. */
  readonly autoApproved: boolean
  readonly instructions: string
  /** Its model, when it is not the parent's. */
  readonly model: string | undefined
  readonly maxTurns: number
  readonly compaction: CompactionConfig.CompactionConfig | undefined
  readonly settings: SubagentProfile.PluginConfigs
  /** The form of its answers. */
  readonly output: SubagentProfile.SubagentProfile["outputSchema"]
}

/**
 * The recipe of a request; a left is a sentence for the model. Pure: nobody is asked and nothing is made.
 *
 * @internal
 */
export const recipe = (order: DelegationRequest, parent: Parent): Either.Either<Recipe, string> => {
  if (isBlank(order.task)) return Either.left("There is no task. Say what the subagent is to do.")
  const tooDeep = depthOf(parent)
  if (tooDeep !== undefined) return Either.left(tooDeep)
  return order.profile === undefined ? inline(order, parent) : profiled(order, order.profile, parent)
}

/**
 * A subagent with its parent's tools, whose calls are asked about as its parent's are.
 *
 * @internal
 */
export const general = (parent: Parent): Either.Either<Recipe, string> => {
  const tooDeep = depthOf(parent)
  return tooDeep === undefined
    ? Either.right({ ...plain, name: "agent", instructions: defaultInstructions, tools: parent.tools })
    : Either.left(tooDeep)
}

/**
 * The subagent's task as text.
 *
 * @internal
 */
export const instruction = ({ context, task }: DelegationRequest): string =>
  context === undefined || context.trim() === "" ? task : `${task}\n\nContext:\n${context}`

/**
 * Names of the tools of a profile that its parent, with these tools, cannot pass on.
 *
 * @internal
 */
export const lacking = (
  profile: SubagentProfile.SubagentProfile,
  parents: ToolRegistry.Service,
  { tools, toolsOf }: Pick<Settings, "tools" | "toolsOf">
): ReadonlyArray<string> =>
  parents === tools
    ? []
    : toolsOf(profile, tools).entries.flatMap(({ name }) => (parents.get(name) === undefined ? [name] : []))

/**
 * Shows what approving a recipe means; `beyond` lists what its parent may not do without asking.
 *
 * @internal
 */
export const display = (
  { autoApproved, lacking, maxTurns, model, name, tools }: Recipe,
  task: string,
  beyond: ReadonlyArray<string>
): ToolDisplay => {
  const lines = [
    `tools: ${tools.entries.map((entry) => entry.name).join(", ")}`,
    ...(lacking.length === 0 ? [] : [`without ${lacking.join(", ")}, which its parent does not have`]),
    ...(model === undefined ? [] : [`model: ${model}`]),
    `at most ${maxTurns} model calls`,
    "",
    task
  ]
  const warnings = [...(autoApproved ? ["Its profile lets it use all of these without asking."] : []), ...beyond]
  return {
    summary: `start subagent ${name}`,
    details: lines.join("\n"),
    format: "text",
    ...(warnings.length > 0 ? { warnings } : {})
  }
}

/**
 * The request of a proposed call that describes or names the subagent; none for any other call.
 *
 * @internal
 */
export const written = ({ name, params }: Pick<ToolCall, "name" | "params">): Option.Option<DelegationRequest> =>
  DelegatingTool.is(name) ? decodeParameters(params) : Option.none()

/**
 * The subagent that a proposed call wants; none for a call that makes no subagent.
 *
 * @internal
 */
export const wanted = (call: Pick<ToolCall, "name" | "params">): Option.Option<Wanted> =>
  isShorthand(call.name) ? Option.map(decodeTask(call.params), ({ task }) => shorthand(call.name, task)) : written(call)

/**
 * The request of a tool that takes only a task: the profile of the tool's name, or an agent like its caller.
 *
 * @internal
 */
export const shorthand = (tool: string, task: string): Wanted => (tool === "agent" ? tool : { task, profile: tool })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const shorthands: ReadonlySet<string> = new Set(["explore", "plan", "agent"])
const isShorthand = (tool: string): boolean => shorthands.has(tool)

const decodeParameters = Lazy.make(() => Schema.decodeUnknownOption(Schema.Struct(parameters)))
const decodeTask = Lazy.make(() => Schema.decodeUnknownOption(Schema.Struct({ task: Schema.NonEmptyString })))

const defaultInstructions =
  "You are a subagent: you work for another agent, which sees nothing but your final answer. Do the task with your tools " +
  "and then report what you did and found, completely and briefly."

const depthOf = ({
  depth,
  tree: {
    settings: { maxDepth }
  }
}: Parent): string | undefined =>
  maxDepth !== undefined && depth >= maxDepth
    ? `Subagents may be nested ${maxDepth} deep, and you are as deep as that. Do the task yourself.`
    : undefined

const plain = {
  profile: undefined,
  lacking: [],
  envelope: undefined,
  autoApproved: false,
  model: undefined,
  maxTurns: SubagentProfile.defaults.maxTurns,
  compaction: undefined,
  settings: {},
  output: undefined
} satisfies Partial<Recipe>

const profiled = (order: DelegationRequest, name: string, parent: Parent): Either.Either<Recipe, string> => {
  const { profiles } = parent.tree.settings
  const profile = profiles.get(name)
  if (profile === undefined) {
    const known = [...profiles.keys()].join(", ")
    return Either.left(`There is no profile ${JSON.stringify(name)}. Profiles: ${known === "" ? "none" : known}.`)
  }
  const own = (["plugins", "system_instructions", "max_turns", "model"] as const).filter(
    (field) => order[field] !== undefined
  )
  if (own.length === 0) return answerable(ofProfile(profile, parent))
  return Either.left(`A profile says all of that itself: give either profile, or ${own.join(", ")}.`)
}

/** No model could give an answer in a form that has no JSON Schema. */
const answerable = (recipe: Recipe): Either.Either<Recipe, string> => {
  const { name, output } = recipe
  if (output === undefined) return Either.right(recipe)
  return Either.mapBoth(
    Either.try(() => TypedOutput.make<unknown, unknown>(output)),
    {
      onLeft: () =>
        `The profile ${name} cannot be used: its outputSchema has no JSON Schema, so no model could answer it.`,
      onRight: () => recipe
    }
  )
}

/** Restricted to the parent's tools: a profile never adds one. */
const ofProfile = (profile: SubagentProfile.SubagentProfile, { modelId, tools: own, tree }: Parent): Recipe => {
  return {
    name: profile.name,
    profile,
    tools: tree.settings.toolsOf(profile, own),
    lacking: lacking(profile, own, tree.settings),
    envelope: undefined,
    autoApproved: profile.autoApproved,
    instructions: profile.systemInstructions ?? "",
    model: SubagentProfile.modelRef(profile, modelId),
    maxTurns: profile.maxTurns,
    compaction: profile.gc,
    settings: profile.pluginConfigs,
    output: profile.outputSchema
  }
}

const inline = (order: DelegationRequest, parent: Parent): Either.Either<Recipe, string> => {
  const { inline, profiles } = parent.tree.settings
  if (!inline.allowed) {
    const known = [...profiles.keys()].join(", ")
    return Either.left(`Subagents without a profile are not allowed here (allow_inline). Name a profile: ${known}.`)
  }
  const allowed = ToolRegistry.subset(parent.tools, inline.plugins).tools
  const made = { ...plain, name: "subagent", model: order.model, maxTurns: order.max_turns ?? plain.maxTurns }
  const instructions = order.system_instructions ?? defaultInstructions
  if (order.plugins === undefined) return Either.right({ ...made, instructions, tools: allowed })
  // Checked against all tools of the parent first: a tool that the parent lacks and a tool that it may not pass on have
  // different messages.
  const wanted = ToolRegistry.subset(parent.tools, order.plugins)
  if (wanted.unknown.length > 0) {
    const names = parent.tools.entries.map((entry) => entry.name).join(", ")
    return Either.left(`You do not have ${wanted.unknown.join(", ")} yourself. You have: ${names}.`)
  }
  const refused = wanted.tools.entries.filter(({ essential, name }) => !essential && allowed.get(name) === undefined)
  if (refused.length > 0) {
    const names = inline.plugins.join(", ")
    return Either.left(
      `${refused.map(({ name }) => name).join(", ")} may not be given to a subagent without a profile. ` +
        `Allowed (inline_allowed_plugins): ${names === "" ? "none" : names}.`
    )
  }
  const tools = wanted.tools
  return Either.right({ ...made, instructions, tools, envelope: tools.entries.map(({ name }) => name) })
}
