/**
 * The names of a toolkit's tools, for the compiler: whatever names tools is written with them, and a wrong name does not
 * compile.
 *
 * @example
 * ```ts
 * import { Tool, Toolkit } from "@effect/ai"
 * import { Toolset } from "assent"
 * import { Effect } from "effect"
 *
 * const shop = Toolset.of(Toolkit.make(Tool.make("search"), Tool.make("pay")))
 *
 * export const program = Effect.gen(function* () {
 *   const agent = yield* shop.start({
 *     tools: ["search", "pay"],
 *     policy: shop.policy({ whitelist: { tools: ["search"] } })
 *   })
 *   return yield* agent.run("Find a bicycle and pay for it.")
 * })
 * ```
 *
 * @since 0.1.0
 */
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Interactor } from "../interaction/Interactor.js"
import * as CompiledPolicy from "../permission/CompiledPolicy.js"
import * as Stage from "../session/Stage.js"
import * as SubagentProfile from "../subagent/SubagentProfile.js"
import type { ToolsUnknown } from "../tool/ToolRegistry.js"
import * as Agent from "./Agent.js"
import type { AgentRuntime } from "./AgentRuntime.js"

/**
 * Like `Agent.Options`, with names of known tools.
 *
 * @since 0.1.0
 * @category models
 */
export type Options<Names extends string, Groups extends string> = Omit<Agent.Options, "tools" | "policy"> & {
  readonly tools?: ReadonlyArray<Names | Groups> | undefined
  readonly policy?: CompiledPolicy.Of<Names> | undefined
}

/**
 * Like `Stage.Stage`, with names of known tools.
 *
 * @since 0.1.0
 * @category models
 */
export type StageOptions<Names extends string, A, E, R> = Omit<Stage.Stage<A, E, R>, "allowedTools"> & {
  readonly allowedTools: ReadonlyArray<Names>
}

/**
 * As what `SubagentProfile.make` takes, with names of known tools and groups.
 *
 * @since 0.1.0
 * @category models
 */
export type ProfileOptions<Names extends string> = Omit<Parameters<typeof SubagentProfile.make>[0], "plugins"> & {
  readonly plugins?: ReadonlyArray<Names> | null
}

/**
 * The names of a toolkit's tools.
 *
 * @since 0.1.0
 * @category models
 */
export interface Toolset<Names extends string, Groups extends string = never> {
  /**
   * Like `Agent.start`. The runtime must be one of this toolkit, or of one that it was merged into: starting dies where
   * it is not.
   */
  readonly start: {
    (
      options?: Options<Names, Groups> & { readonly persistence?: undefined; readonly limits?: undefined }
    ): Effect.Effect<Agent.Agent, never, AgentRuntime | Interactor | Scope.Scope>
    (
      options: Options<Names, Groups> | undefined
    ): Effect.Effect<Agent.Agent, Exclude<Agent.NotStarted, ToolsUnknown>, AgentRuntime | Interactor | Scope.Scope>
  }
  /** Like `Policy.make`. */
  readonly policy: <const Patterns extends string = never>(
    source: CompiledPolicy.Source<Names | `mcp__${string}`, Patterns>
  ) => CompiledPolicy.Of<Names | CompiledPolicy.NamedIn<Patterns>>
  /** Like `Stage.make`. */
  readonly stage: <A, E = never, R = never>(stage: StageOptions<Names, A, E, R>) => Stage.Stage<A, E, R>
  /** Like `SubagentProfile.make`. */
  readonly profile: (profile: ProfileOptions<Names | Groups>) => SubagentProfile.SubagentProfile
}

/**
 * A toolkit's names. Groups that its tools are annotated with are not in its type; name those that you use.
 *
 * @since 0.1.0
 * @category constructors
 */
export const of = <Tools extends Record<string, Tool.Any>, const Groups extends string = never>(
  _toolkit: Toolkit.Toolkit<Tools>,
  _options?: { readonly groups?: ReadonlyArray<Groups> | undefined }
): Toolset<keyof Tools & string, Groups> => ({
  start: (options?: Options<keyof Tools & string, Groups>) =>
    // The compiler knows the names, so only a runtime of another toolkit does not. Plain options cannot fail, which the
    // shared implementation cannot say.
    Effect.catchTag(Agent.start(options), "ToolsUnknown", Effect.die) as Effect.Effect<
      Agent.Agent,
      never,
      AgentRuntime | Interactor | Scope.Scope
    >,
  policy: CompiledPolicy.make,
  stage: Stage.make,
  profile: SubagentProfile.make
})
