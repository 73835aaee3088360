/**
 * Shared by all sessions of a program: the model, the tools with their handlers, the policy and its guards, secrets.
 *
 * Built once as a layer; creating a session from it costs microseconds and opens nothing. Sessions of different roots
 * share no approvals, no suspensions and no broker.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as LazyModule from "../core/LazyModule.js"
import * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import type * as Interactors from "../interaction/Interactor.js"
import type { McpServer } from "../mcp/McpServer.js"
import * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import * as BuiltInGuards from "../permission/BuiltInGuards.js"
import * as CompiledPolicy from "../permission/CompiledPolicy.js"
import type * as Guard from "../permission/Guard.js"
import * as SandboxGuard from "../permission/SandboxGuard.js"
import type * as Sanitizer from "../permission/SanitizerOptions.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import type { CompactionConfig } from "../conversation/CompactionConfig.js"
import * as Compaction from "../turn/Compaction.js"
import * as SessionLimits from "../turn/Limits.js"
import type { Limits } from "../turn/Limits.js"
import type * as AgentTree from "../subagent/AgentTree.js"
import * as InteractionBroker from "../broker/InteractionBroker.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import * as LazyChildren from "../subagent/LazyChildren.js"
import type { SubagentProfile } from "../subagent/SubagentProfile.js"
import type { Subagents } from "../subagent/Subagents.js"
import type { Agenda } from "../tool/Agenda.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import { Metrics, type Taking } from "./MetricsTaking.js"
import type { Rules } from "./UnmetRules.js"

export type { Limits, Unchanged } from "../turn/Limits.js"
export type { Mediation, Settings as SubagentSettings } from "../subagent/AgentTree.js"

/**
 * The checked values that agents share.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly model: Model.Service
  readonly tools: ToolRegistry.Service
  readonly servers: ReadonlyArray<McpServer>
  readonly policy: CompiledPolicy.Policy
  /** The sanitizer first, then the program's own. */
  readonly guards: ReadonlyArray<Guard.Guard>
  /**
   * The sanitizer with other options.
   *
   * @internal
   */
  readonly sanitizer: (options: Sanitizer.Options) => Guard.Guard
  readonly redactor: Redaction.Redactor
  /** For root sessions only. */
  readonly instructions: string
  /** For every session. */
  readonly baseInstructions: string
  readonly limits: Partial<Limits>
  readonly compaction: CompactionConfig | undefined
  readonly tokens: TokenLedger.Options
  readonly spans: Spans.Service
  /** The audit trail around the making of the runtime; one around an agent's start counts before it. */
  readonly audit: AuditTrail.Service
  /** Records metrics of its agents, unless another one is set around their start. */
  readonly metrics: Taking | undefined
  readonly subagents: AgentTree.Settings
}

/**
 * Settings for children of the runtime's agents.
 *
 * @since 0.1.0
 * @category models
 */
export interface SubagentOptions {
  /** Default: the ones that ship with Assent. */
  readonly profiles?: Iterable<SubagentProfile> | undefined
  /** Resolves a model that a profile or a delegation names; fails with a sentence. Default: only the parent's model. */
  readonly resolveModel?: ((ref: string) => Effect.Effect<Model.Service, string>) | undefined
  /** Whether subagents without a profile are allowed, and the tools or groups that they may have. Default: none. */
  readonly inline?: AgentTree.Settings["inline"] | undefined
  /** How questions of subagents are answered. Default: `forward`. */
  readonly mediation?: AgentTree.Mediation | undefined
  /** How long a subagent waits for an answer. Default: 300 seconds; zero or negative is for ever. */
  readonly timeouts?: Interactors.Timeouts | undefined
  /** How deep subagents may be nested. Default: no limit. */
  readonly maxDepth?: number | undefined
  /** How many may work or be kept in one tree; ended ones do not count. Default: no limit. */
  readonly maxChildren?: number | undefined
  /** People see subagents' words while they stream. Then parents get the answers with a note not to repeat them. */
  readonly outputStreamed?: boolean | undefined
}

/**
 * The runtime of a program: the values that its agents share.
 *
 * @since 0.1.0
 * @category services
 */
export class AgentRuntime extends Context.Tag("assent/runtime/AgentRuntime")<AgentRuntime, Service>() {}

/**
 * Options of a runtime.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<Tools extends Record<string, Tool.Any>> {
  /** Merge several toolkits with `Toolkit.merge`. */
  readonly toolkit: Toolkit.Toolkit<Tools>
  /** Servers with further tools, such as those of `McpServer.make`. Their tools may change while agents run. */
  readonly servers?: ReadonlyArray<McpServer> | undefined
  /**
   * Default: ask about every call of a tool that is not known to be harmless. One made in code may name the toolkit's tools
   * only. Types cannot check a plain `Policy`, guards of a tool and profiles. When the runtime is made, it logs names
   * and patterns that fit no tool.
   */
  readonly policy?: CompiledPolicy.Of<NoInfer<keyof Tools & string>> | undefined
  /** System message of every root session. */
  readonly instructions?: string | undefined
  /** Comes before the own instructions of every session, subagents included. */
  readonly baseInstructions?: string | undefined
  /** Further guards of the program; they deny a call, or require a question. */
  readonly guards?: ReadonlyArray<Guard.Guard> | undefined
  /** The directory for relative paths of tools. Default: the file system's current directory. */
  readonly workspace?: string | undefined
  /** Absolute paths that no tool may touch. */
  readonly protectedPaths?: ReadonlyArray<string> | undefined
  /** The directory of `~`, for guards on paths. Absent: `~` is unknown and outside of everything. */
  readonly home?: string | undefined
  /** The system's temp directories, which paths may name unless a policy says otherwise. Default: `/tmp`. */
  readonly temporary?: ReadonlyArray<string> | undefined
  /** Values that must never be shown, logged or written. They do not count beside a {@link redactor}. */
  readonly secrets?: Iterable<Redacted.Redacted> | undefined
  /** Masks texts, in place of a redactor for the `secrets`: declare every secret to it. */
  readonly redactor?: Redaction.Redactor | undefined
  readonly limits?: Partial<Limits> | undefined
  /** When and how histories are made shorter. Default: only when a model says that one is too long. */
  readonly compaction?: CompactionConfig | undefined
  /** Prices and limits; counted for each root session and its tree. */
  readonly tokens?: TokenLedger.Options | undefined
  /** The receiver of spans; see `Spans.make`. Default: the program's own tracer, if it has one: see `Spans`. */
  readonly spans?: Spans.Service | undefined
  readonly subagents?: SubagentOptions | undefined
}

/**
 * What a toolkit needs from the program; the session provides `Interactor`, `Subagents` and `Agenda`.
 *
 * Services in the `dependencies` of tools are required here, where handlers are looked up, and not by `run`. A service
 * around `run` counts before them: see `Agent.start`. A service that belongs to a request is better no dependency: take a
 * `Context.Reference` or a `FiberRef` whose default grants nothing, and provide it around `run`.
 *
 * @since 0.1.0
 * @category models
 */
export type Requirements<Tools extends Record<string, Tool.Any>> =
  Tool.HandlersFor<Tools> | Exclude<Tool.Requirements<Tools[keyof Tools]>, Interactors.Interactor | Subagents | Agenda>

/**
 * A toolkit with its handlers, as sessions use it.
 *
 * @since 0.1.0
 * @category constructors
 */
export const registry = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
): Effect.Effect<ToolRegistry.Service, ToolRegistry.Refusal<Tools>, Requirements<Tools>> =>
  // The session provides `Interactor`, `Subagents` and `Agenda` to every call; the type of the registry cannot know that.
  ToolRegistry.make(toolkit) as Effect.Effect<ToolRegistry.Service, ToolRegistry.Refusal<Tools>, Requirements<Tools>>

type Needs = Model.Model | FileSystem.FileSystem | Path.Path
type Refusal<Tools extends Record<string, Tool.Any>> =
  ToolRegistry.Refusal<Tools> | SessionLimits.LimitsInvalid | CompiledPolicy.PolicyInvalid

/** Options without limits and without a policy: they cannot be wrong. */
interface Plain extends SessionLimits.Unchanged {
  readonly policy?: undefined
}

/**
 * A runtime: checks the options and looks up the handlers of all tools, once for all its agents. Fails for invalid limits,
 * for a policy with rules that can match no call, and for tools that cannot be registered.
 *
 * @since 0.1.0
 * @category constructors
 */
export function make<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools> & Plain
): Effect.Effect<Service, ToolRegistry.Refusal<Tools>, Needs | Requirements<Tools>>
/** With a policy, which may have rules that can match no call: then it fails as `PolicyInvalid`. */
export function make<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools> & SessionLimits.Unchanged
): Effect.Effect<Service, Exclude<Refusal<Tools>, SessionLimits.LimitsInvalid>, Needs | Requirements<Tools>>
/** With limits, too, which may be out of range: then it fails as `LimitsInvalid`. */
export function make<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools>
): Effect.Effect<Service, Refusal<Tools>, Needs | Requirements<Tools>>
export function make<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools>
): Effect.Effect<Service, Refusal<Tools>, Needs | Requirements<Tools>> {
  // The diagnostic does not see that the types of a toolkit that is not known yet are the same; the compiler does.
  // @effect-diagnostics-next-line missingEffectContext:off missingEffectError:off
  return Effect.gen(function* () {
    const model = yield* Model.Model
    const sandbox = Option.getOrElse(yield* Effect.serviceOption(Sandbox.Sandbox), () =>
      Sandbox.none(Sandbox.turnedOff)
    )
    const registered = yield* registry(options.toolkit)
    // No question is needed when it is turned off.
    const fixed =
      sandbox.mode === "off" ? registered : ToolRegistry.fromEntries(SandboxGuard.informed(registered, sandbox))
    const { servers = [] } = options
    const tools = ToolRegistry.withServers(fixed, servers)
    const path = yield* Path.Path
    const policy = options.policy ?? CompiledPolicy.defaults
    const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const workspace = path.resolve(options.workspace ?? ".")
    const { home, protectedPaths, temporary } = options
    const surroundings = { workspace, protectedPaths, home, temporary, platform }
    const sanitizer = BuiltInGuards.sanitizer(surroundings)
    yield* BuiltInGuards.load(tools.entries)
    yield* LazyChildren.load(tools.entries)
    if (policy.approvals !== undefined) yield* Effect.zipRight(PermissionGate.load, InteractionBroker.load)
    yield* Compaction.load(options.compaction)
    const { subagents } = options
    // It may be iterated only once.
    const profiles = subagents?.profiles === undefined ? undefined : [...subagents.profiles]
    const redactor = options.redactor ?? Redaction.make(options.secrets)
    yield* checked(tools, "this runtime", redactor, {
      policy: options.policy,
      guards: options.guards,
      profiles,
      inline: subagents?.inline?.plugins
    })
    return {
      model,
      tools,
      servers,
      policy: BuiltInGuards.placed(policy, surroundings),
      guards: [
        ...(sandbox.mode === "off" ? [] : [SandboxGuard.make(sandbox)]),
        sanitizer(policy.sanitize),
        BuiltInGuards.git(surroundings),
        ...(options.guards ?? [])
      ],
      sanitizer,
      redactor,
      instructions: options.instructions ?? "",
      baseInstructions: options.baseInstructions ?? "",
      limits: yield* SessionLimits.checked(options.limits),
      compaction: options.compaction,
      tokens: options.tokens ?? {},
      spans: options.spans ?? (yield* Spans.Spans),
      audit: yield* AuditTrail.AuditTrail,
      metrics: yield* Metrics,
      subagents: subagentSettings(
        { ...subagents, profiles: profiles ?? (yield* shippedProfiles).all },
        tools,
        options.baseInstructions ?? ""
      )
    }
  })
}

/**
 * Like {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export function layer<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools> & Plain
): Layer.Layer<AgentRuntime, ToolRegistry.Refusal<Tools>, Needs | Requirements<Tools>>
/** With a policy, which may have rules that can match no call: then it fails as `PolicyInvalid`. */
export function layer<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools> & SessionLimits.Unchanged
): Layer.Layer<AgentRuntime, Exclude<Refusal<Tools>, SessionLimits.LimitsInvalid>, Needs | Requirements<Tools>>
/** With limits, too, which may be out of range: then it fails as `LimitsInvalid`. */
export function layer<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools>
): Layer.Layer<AgentRuntime, Refusal<Tools>, Needs | Requirements<Tools>>
export function layer<Tools extends Record<string, Tool.Any>>(
  options: Options<Tools>
): Layer.Layer<AgentRuntime, Refusal<Tools>, Needs | Requirements<Tools>> {
  // @effect-diagnostics-next-line missingLayerContext:off
  return Layer.effect(AgentRuntime, make(options))
}

/**
 * The guards that every runtime has: the sanitizer, and the question about what git would run.
 *
 * @since 0.1.0
 * @category constructors
 */
export const builtInGuards = (
  options: Pick<Options<never>, "protectedPaths" | "home" | "temporary"> & {
    /** Absolute. */
    readonly workspace: string
    readonly policy: CompiledPolicy.Policy
  },
  platform: Context.Context<FileSystem.FileSystem | Path.Path>
): ReadonlyArray<Guard.Guard> => {
  const surroundings = { ...options, platform }
  return [BuiltInGuards.sanitizer(surroundings)(options.policy.sanitize), BuiltInGuards.git(surroundings)]
}

/**
 * The policy as a runtime has it: it knows the files of the workspace.
 *
 * @internal
 */
export const placed = (
  policy: CompiledPolicy.Policy,
  workspace: string,
  platform: Context.Context<FileSystem.FileSystem | Path.Path>
): CompiledPolicy.Policy => BuiltInGuards.placed(policy, { workspace, platform })

/**
 * Fails for a policy with rules that can match no call. Says in the log what else in the rules has no effect with these tools.
 *
 * @internal
 */
export const checked = (
  tools: ToolRegistry.Service,
  whose: string,
  redactor: Pick<Redaction.Redactor, "text">,
  rules: Rules
): Effect.Effect<void, CompiledPolicy.PolicyInvalid> => {
  const { guards, inline, policy, profiles, remembered } = rules
  return guards === undefined &&
    inline === undefined &&
    profiles === undefined &&
    remembered === undefined &&
    (policy ?? CompiledPolicy.defaults) === CompiledPolicy.defaults
    ? Effect.void
    : Effect.flatMap(unmet, ({ check }) => check(tools, whose, rules, redactor))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const unmet = LazyModule.make(() => import("./UnmetRules.js"))

const noOtherModels = (ref: string) =>
  Effect.fail(`The model ${ref} is not to be had here. Leave model out to use your own.`)

/** Their instructions are long, and a program with profiles of its own has no use for them. */
const shippedProfiles = LazyModule.make(() => import("../subagent/DefaultProfiles.js"))

const subagentSettings = (
  options: SubagentOptions & { readonly profiles: Iterable<SubagentProfile> },
  tools: ToolRegistry.Service,
  instructions: string
): AgentTree.Settings => ({
  tools,
  profiles: new Map(Array.from(options.profiles, (profile) => [profile.name, profile])),
  toolsOf: toolsOf(),
  resolveModel: options.resolveModel ?? noOtherModels,
  instructions,
  inline: options.inline ?? { allowed: false, plugins: [] },
  mediation: options.mediation ?? "forward",
  timeouts: options.timeouts,
  maxDepth: options.maxDepth,
  maxChildren: options.maxChildren,
  outputStreamed: options.outputStreamed ?? false
})

const toolsOf = (): AgentTree.Settings["toolsOf"] => {
  const known = new WeakMap<ToolRegistry.Service, Map<SubagentProfile, ToolRegistry.Service>>()
  return (profile, among) => {
    const chosen = known.get(among) ?? new Map<SubagentProfile, ToolRegistry.Service>()
    const tools = chosen.get(profile) ?? ToolRegistry.subset(among, profile.plugins).tools
    known.set(among, chosen.set(profile, tools))
    return tools
  }
}
