/**
 * What Assent knows of a tool beyond its schema: annotations beside `@effect/ai`'s own `Tool.Readonly`,
 * `Tool.Destructive` and `Tool.Idempotent`.
 *
 * @example
 * ```ts
 * import { Tool } from "@effect/ai"
 * import { ToolTrait } from "assent"
 * import { Effect, Schema } from "effect"
 *
 * const Deploy = Tool.make("deploy", { parameters: { target: Schema.String } }).pipe(
 *   ToolTrait.editable(["target"]),
 *   ToolTrait.preview(({ target }) => Effect.succeed({ summary: `deploy to ${target}` }))
 * )
 * ```
 *
 * @since 0.1.0
 */
import type * as Tool from "@effect/ai/Tool"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { ToolDisplay, ToolKind } from "./ToolCall.js"

/**
 * Format in which a person edits a call's arguments.
 *
 * @since 0.1.0
 * @category models
 */
export type EditFormat = "text" | "json"

/**
 * A person who approves the call may edit these parameters, in this format.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Editable extends Context.Reference<Editable>()("assent/tool/Editable", {
  defaultValue: (): { readonly parameters: ReadonlyArray<string>; readonly format: EditFormat } | undefined => undefined
}) {}

/**
 * The tool's child may receive the user's interjections; the lowest precedence wins. `undefined`: never.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Injectable extends Context.Reference<Injectable>()("assent/tool/Injectable", {
  defaultValue: (): number | undefined => undefined
}) {}

/**
 * Every session has the tool, whatever its profile lists.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Essential extends Context.Reference<Essential>()("assent/tool/Essential", {
  defaultValue: () => false
}) {}

/**
 * The tool cannot harm and runs unasked, unless the policy's blacklist denies it.
 *
 * @since 0.1.0
 * @category annotations
 */
export class AutoApproved extends Context.Reference<AutoApproved>()("assent/tool/AutoApproved", {
  defaultValue: () => false
}) {}

/**
 * Names under which profiles can ask for the tool together with others.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Groups extends Context.Reference<Groups>()("assent/tool/Groups", {
  defaultValue: (): ReadonlyArray<string> => []
}) {}

/**
 * Former names of parameters, each with its name now. Calls in older journals have the former ones, and models repeat them.
 *
 * @internal
 */
export class Renamed extends Context.Reference<Renamed>()("assent/tool/Renamed", {
  defaultValue: (): Readonly<Record<string, string>> | undefined => undefined
}) {}

/**
 * A call that another process had begun runs again, and finds its questions and children again. What its handler does before a
 * question runs again, so it must be harmless twice. Without this trait such a call is not run again: its effect is not known,
 * and no answer to its question is taken while no process runs it.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Resumable extends Context.Reference<Resumable>()("assent/tool/Resumable", {
  defaultValue: () => false
}) {}

/**
 * The parameter that holds a shell command: it is parsed for rules, guards and remembering. The directory it runs in, if it
 * is a parameter too, is the first of {@link Paths}: rules cover a command only where it was allowed.
 *
 * @since 0.1.0
 * @category annotations
 */
export class ShellCommand extends Context.Reference<ShellCommand>()("assent/tool/ShellCommand", {
  defaultValue: (): string | undefined => undefined
}) {}

/**
 * The texts among the arguments that may be commands, for a tool that knows its call by the words of others. What denies
 * commands looks at each of them; nothing that allows commands does.
 *
 * @internal
 */
export class Quotes extends Context.Reference<Quotes>()("assent/tool/Quotes", {
  defaultValue: (): ((params: unknown) => ReadonlyArray<string>) | undefined => undefined
}) {}

/**
 * The tool runs its {@link ShellCommand} through the `Sandbox`, unless its parameter `sandbox` says `off`; with
 * `network` it has the network there. Both are asked about, and a policy may let confined commands run unasked. With `write`
 * a command that looks like one that only reads may change files.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Sandboxed extends Context.Reference<Sandboxed>()("assent/tool/Sandboxed", {
  defaultValue: () => false
}) {}

/**
 * The parameter that lets what a call starts live on beside the turns, as long as its session. A permission that ends
 * sooner, as one for a turn, does not cover a call in which it is set.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Outlives extends Context.Reference<Outlives>()("assent/tool/Outlives", {
  defaultValue: (): string | undefined => undefined
}) {}

/**
 * The parameters that hold paths: guards check them against the workspace.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Paths extends Context.Reference<Paths>()("assent/tool/Paths", {
  defaultValue: (): ReadonlyArray<string> => []
}) {}

/**
 * The parameter that holds an address of the web. Rules see it in its canonical form, and `always` and `never` remember
 * its origin: `fetch_url(url=https://example.com/*)`.
 *
 * @since 0.1.0
 * @category annotations
 */
export class WebAddress extends Context.Reference<WebAddress>()("assent/tool/WebAddress", {
  defaultValue: (): string | undefined => undefined
}) {}

/**
 * What the tool does to the world, for surfaces. Default: `execute` for a tool with a {@link ShellCommand}, `fetch` for one
 * with a {@link WebAddress}, `read` for a `Tool.Readonly` one with {@link Paths}, else `other`.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Kind extends Context.Reference<Kind>()("assent/tool/Kind", {
  defaultValue: (): ToolKind | undefined => undefined
}) {}

/**
 * The longest the handler may run, unless its arguments set another limit. Default: no limit of ours.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Timeout extends Context.Reference<Timeout>()("assent/tool/Timeout", {
  defaultValue: (): Duration.DurationInput | undefined => undefined
}) {}

/**
 * Checks decoded arguments before any question. A failure is a sentence for the model; Assent then asks nobody.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Validate extends Context.Reference<Validate>()("assent/tool/Validate", {
  defaultValue: (): ((params: never) => Effect.Effect<void, string, never>) | undefined => undefined
}) {}

/**
 * Describes what a call with these decoded arguments would do. A failure is shown as a warning, never skips the question.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Preview extends Context.Reference<Preview>()("assent/tool/Preview", {
  defaultValue: (): ((params: never) => Effect.Effect<ToolDisplay, string, never>) | undefined => undefined
}) {}

/**
 * No model is offered the tool: only a model that proposes its calls by itself has any, such as an agent of others. The
 * model waits for such a call in this process, so no other process asks about the call or makes it.
 *
 * @internal
 */
export class Unoffered extends Context.Reference<Unoffered>()("assent/tool/Unoffered", {
  defaultValue: () => false
}) {}

/**
 * Its provider runs the tool, so the gate never sees its calls; the program has allowed that.
 *
 * @since 0.1.0
 * @category annotations
 */
export class Ungated extends Context.Reference<Ungated>()("assent/tool/Ungated", {
  defaultValue: () => false
}) {}

/**
 * Allows a tool that a provider defines and runs itself, such as a web search. Assent does not ask before it runs, and
 * no rule or guard sees its calls.
 *
 * @example
 * ```ts
 * import { Tool, Toolkit } from "@effect/ai"
 * import { ToolTrait } from "assent"
 *
 * const WebSearch = Tool.providerDefined({
 *   id: "anthropic.web_search_20250305",
 *   toolkitName: "AnthropicWebSearch",
 *   providerName: "web_search",
 *   args: {}
 * })
 * const toolkit = Toolkit.make(ToolTrait.ungated(WebSearch({})))
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const ungated = <T extends Tool.Any>(tool: T): T =>
  // `annotate` would make it an ordinary tool of the program. Such tools come without annotations, so none are lost.
  Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, {
    annotations: Context.merge(tool.annotations ?? Context.empty(), Context.make(Ungated, true))
  })

// The combinators below are data-last, for `Tool.make(…).pipe(…)`.

type Config = {
  readonly parameters: Tool.AnyParametersSchema
  readonly success: import("effect/Schema").Schema.Any
  readonly failure: import("effect/Schema").Schema.All
  readonly failureMode: Tool.FailureMode
}

/**
 * A person may edit these parameters before the call runs.
 *
 * @since 0.1.0
 * @category combinators
 */
export const editable =
  (parameters: ReadonlyArray<string>, format: EditFormat = "text") =>
  <N extends string, C extends Config, R>(self: Tool.Tool<N, C, R>): Tool.Tool<N, C, R> =>
    self.annotate(Editable, { parameters, format })

/**
 * The check's requirements become requirements of the tool.
 *
 * @since 0.1.0
 * @category combinators
 */
export const validate =
  <N extends string, C extends Config, R2>(
    check: (params: C["parameters"]["Type"]) => Effect.Effect<void, string, R2>
  ) =>
  <R>(self: Tool.Tool<N, C, R>): Tool.Tool<N, C, R | R2> =>
    // The annotation forgets R2; the returned tool's type keeps it, so the registry demands it.
    self.annotate(Validate, check as never)

/**
 * Like {@link validate}: the preview's requirements become requirements of the tool.
 *
 * @since 0.1.0
 * @category combinators
 */
export const preview =
  <N extends string, C extends Config, R2>(
    show: (params: C["parameters"]["Type"]) => Effect.Effect<ToolDisplay, string, R2>
  ) =>
  <R>(self: Tool.Tool<N, C, R>): Tool.Tool<N, C, R | R2> =>
    self.annotate(Preview, show as never)
