/** What a model asks for when it delegates: the parameters of the delegating tools, and what they come to. */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Codec from "../core/Codec.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as CompactionConfig from "../session/CompactionConfig.js"
import type { AgentTree } from "./AgentTree.js"
import * as SubagentProfile from "./SubagentProfile.js"

/** Parameters of `delegate` and `spawn_subagent`. */
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
  })
}

export interface SubagentOrder {
  readonly task: string
  readonly profile?: string | undefined
  readonly plugins?: ReadonlyArray<string> | undefined
  readonly system_instructions?: string | undefined
  readonly max_turns?: number | undefined
  readonly model?: string | undefined
  readonly context?: string | undefined
}

/** Who delegates. */
export interface Parent {
  readonly tree: AgentTree
  readonly tools: ToolRegistry.Service
  readonly depth: number
  readonly modelId: string
}

/** A subagent ready to be made. */
export interface Recipe {
  /** Last segment of its path, and its name in scripts. */
  readonly name: string
  readonly profile: SubagentProfile.SubagentProfile | undefined
  readonly tools: ToolRegistry.Service
  /** Names of the tools that somebody has to allow for its whole life, when the order names tools itself. */
  readonly envelope: ReadonlyArray<string> | undefined
  /** Its profile's author has allowed all its tools. */
  readonly autoApproved: boolean
  readonly instructions: string
  /** Another model than its parent's. */
  readonly model: string | undefined
  readonly maxTurns: number
  readonly compaction: CompactionConfig.CompactionConfig | undefined
  readonly settings: SubagentProfile.PluginConfigs
}

/** What an order comes to; a left is a sentence for the model. Nobody is asked and nothing is made. */
export const recipe = (order: SubagentOrder, parent: Parent): Either.Either<Recipe, string> => {
  if (order.task.trim() === "") return Either.left("There is no task. Say what the subagent is to do.")
  const tooDeep = depthOf(parent)
  if (tooDeep !== undefined) return Either.left(tooDeep)
  return order.profile === undefined ? inline(order, parent) : profiled(order, order.profile, parent)
}

/** The recipe of a profile that is there. */
export const ofProfile = (profile: SubagentProfile.SubagentProfile, parent: Parent): Recipe => ({
  name: profile.name,
  profile,
  tools: parent.tree.settings.toolsOf(profile),
  envelope: undefined,
  autoApproved: profile.autoApproved,
  instructions: profile.systemInstructions ?? "",
  model: SubagentProfile.modelRef(profile, parent.modelId),
  maxTurns: profile.maxTurns,
  compaction: profile.gc,
  settings: profile.pluginConfigs
})

/** A subagent that can do what its parent can, and asks as its parent does. */
export const general = (parent: Parent): Either.Either<Recipe, string> => {
  const tooDeep = depthOf(parent)
  return tooDeep === undefined
    ? Either.right({ ...plain, name: "agent", instructions: defaultInstructions, tools: parent.tools })
    : Either.left(tooDeep)
}

/** What the subagent is told to do. */
export const instruction = ({ context, task }: SubagentOrder): string =>
  context === undefined || context.trim() === "" ? task : `${task}\n\nContext:\n${context}`

/** What approving a recipe means. */
export const display = ({ autoApproved, maxTurns, model, name, tools }: Recipe, task: string): ToolDisplay => {
  const lines = [
    `tools: ${tools.entries.map((entry) => entry.name).join(", ")}`,
    ...(model === undefined ? [] : [`model: ${model}`]),
    `at most ${maxTurns} model calls`,
    "",
    task
  ]
  return {
    summary: `start subagent ${name}`,
    details: lines.join("\n"),
    format: "text",
    ...(autoApproved ? { warnings: ["Its profile lets it use all of these without asking."] } : {})
  }
}

/** The parameters of a proposed call as an order; none for what is no order. */
export const decode = (params: unknown): Option.Option<SubagentOrder> => decodeParameters(params)

/** The tools whose calls may be orders that name tools. */
export const ordering: ReadonlySet<string> = new Set(["delegate", "spawn_subagent"])

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decodeParameters = Codec.lazy(() => Schema.decodeUnknownOption(Schema.Struct(parameters)))

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
  envelope: undefined,
  autoApproved: false,
  model: undefined,
  maxTurns: SubagentProfile.defaults.maxTurns,
  compaction: undefined,
  settings: {}
} satisfies Partial<Recipe>

const profiled = (order: SubagentOrder, name: string, parent: Parent): Either.Either<Recipe, string> => {
  const { profiles } = parent.tree.settings
  const profile = profiles.get(name)
  if (profile === undefined) {
    const known = [...profiles.keys()].join(", ")
    return Either.left(`There is no profile ${JSON.stringify(name)}. Profiles: ${known === "" ? "none" : known}.`)
  }
  const own = (["plugins", "system_instructions", "max_turns", "model"] as const).filter(
    (field) => order[field] !== undefined
  )
  return own.length === 0
    ? Either.right(ofProfile(profile, parent))
    : Either.left(`A profile says all of that itself: give either profile, or ${own.join(", ")}.`)
}

const inline = (order: SubagentOrder, parent: Parent): Either.Either<Recipe, string> => {
  const { inline, profiles } = parent.tree.settings
  if (!inline.allowed) {
    const known = [...profiles.keys()].join(", ")
    return Either.left(`Subagents without a profile are not allowed here (allow_inline). Name a profile: ${known}.`)
  }
  const allowed = ToolRegistry.subset(parent.tools, inline.plugins).tools
  const made = { ...plain, name: "subagent", model: order.model, maxTurns: order.max_turns ?? plain.maxTurns }
  const instructions = order.system_instructions ?? defaultInstructions
  if (order.plugins === undefined) return Either.right({ ...made, instructions, tools: allowed })
  // Against all of the parent's first: who lacks a tool and who may not pass it on are told different things.
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
