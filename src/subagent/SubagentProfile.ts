/**
 * The named recipe of a subagent: what it is for, its tools, its model, its instructions and its limits.
 *
 * In a file, only `description` is required:
 *
 * ```yaml
 * description: Looks things up and changes nothing
 * plugins: [files, grep]
 * model: google/gemini-2.5-flash
 * max_turns: 5
 * system_instructions: You work in ${workspaceRoot}.
 * gc: { type: budget, pressure_percent: 0 }
 * ```
 *
 * A null field counts as absent.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import type * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as SchemaProblem from "../core/SchemaProblem.js"
import * as CompactionConfig from "../conversation/CompactionConfig.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Settings by tool or group.
 *
 * @since 0.1.0
 * @category models
 */
export interface PluginConfigs {
  readonly [plugin: string]: { readonly [key: string]: unknown }
}

/**
 * The recipe of a subagent.
 *
 * @since 0.1.0
 * @category models
 */
export interface SubagentProfile {
  readonly name: string
  /** Read by people and by the model that delegates. */
  readonly description: string
  /** Names of tools or groups. Null: all exposed tools. Empty: only the essential ones. */
  readonly plugins: ReadonlyArray<string> | null
  /** See {@link modelRef}. */
  readonly model: string | undefined
  readonly provider: string | undefined
  /** The most model calls for one task. */
  readonly maxTurns: number
  /** Its tools run without a question; guards still hold. */
  readonly autoApproved: boolean
  readonly systemInstructions: string | undefined
  readonly pluginConfigs: PluginConfigs
  /** Absent: the parent's. */
  readonly gc: CompactionConfig.CompactionConfig | undefined
  readonly iconName: string | undefined
  /** Confines the command of an agent of others. Default: nothing confines it. */
  readonly sandbox?: { readonly network: boolean; readonly writable: ReadonlyArray<string> } | undefined
  /**
   * The form of its answers, for profiles made in code. An answer that does not fit goes back to the subagent
   * `Limits.outputRetries` times; then its task has failed, and the agent that gave it is told why.
   */
  readonly outputSchema?: Schema.Schema.AnyNoContext | undefined
  /** Its file, or `built-in`. */
  readonly source: string
}

/**
 * A problem at a path of a file, such as `$.gc.type`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Problem {
  readonly path: string
  readonly message: string
}

const nameRule = /^[\p{L}\p{N}][\p{L}\p{N}_.-]{0,63}$/u

// Exact, so that a wrong value is one problem and not also "expected undefined".
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const Name = Schema.String.pipe(
  Schema.pattern(nameRule, {
    message: () => "a name is up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit"
  })
)

const Settings = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  identifier: "settings such as {key: value}"
})

/**
 * The file's content, with the names of the file format.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ProfileFile = Schema.Struct({
  name: optional(Name),
  description: Schema.String.pipe(Schema.filter((text) => text.trim() !== "" || "a description is expected")),
  plugins: optional(Schema.Array(Schema.NonEmptyString).annotations({ identifier: "names such as [files, grep]" })),
  model: optional(Schema.NonEmptyTrimmedString),
  provider: optional(
    Schema.NonEmptyTrimmedString.pipe(Schema.filter((name) => !name.includes("/") || "a provider has no slash"))
  ),
  command: optional(Schema.NonEmptyTrimmedString),
  sandbox: optional(
    Schema.Struct({ network: optional(Schema.Boolean), writable: optional(Schema.Array(Schema.NonEmptyString)) })
  ),
  max_turns: optional(Schema.Int.pipe(Schema.positive())),
  auto_approved: optional(Schema.Boolean),
  system_instructions: optional(Schema.String),
  plugin_configs: optional(
    Schema.Record({ key: Schema.String, value: Settings }).annotations({
      identifier: "settings by tool or group such as {grep: {key: value}}"
    })
  ),
  gc: optional(CompactionConfig.CompactionFile.annotations({ identifier: "settings such as {type: truncate}" })),
  icon_name: optional(Schema.String)
}).pipe(
  Schema.annotations({ identifier: "a profile such as {description: Looks things up, plugins: [files]}" }),
  Schema.filter(({ command, model, provider, sandbox }) => {
    if (sandbox !== undefined && command === undefined)
      return [{ path: ["sandbox"], message: "it confines an agent of others; name its command" }]
    if (command !== undefined && model !== undefined)
      return [{ path: ["command"], message: "an agent of others brings its model; leave one of them out" }]
    if (provider === undefined) return undefined
    if (model === undefined) return [{ path: ["provider"], message: "a provider needs a model; name one, or neither" }]
    return isSpecial(model)
      ? [{ path: ["provider"], message: `${model} is no provider's; leave provider out` }]
      : undefined
  })
)
export type ProfileFile = typeof ProfileFile.Type

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Defaults of a profile.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaults = {
  plugins: null,
  model: undefined,
  provider: undefined,
  maxTurns: 10,
  autoApproved: false,
  systemInstructions: undefined,
  pluginConfigs: {},
  gc: undefined,
  iconName: undefined,
  source: "built-in"
} satisfies Omit<SubagentProfile, "name" | "description">

/**
 * A profile written in code.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  profile: Pick<SubagentProfile, "name" | "description"> & Partial<SubagentProfile>
): SubagentProfile => ({ ...defaults, ...profile })

/**
 * Decodes a file's content. `name` is used when the content has none; `source` names the file. A left lists every
 * problem. It never throws.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (
  value: unknown,
  { name, source }: { readonly name: string; readonly source: string }
): Either.Either<SubagentProfile, ReadonlyArray<Problem>> => {
  const unfit = unfitFor(value)
  if (unfit !== undefined) return Either.left([unfit])
  const content = withoutNulls(value)
  const decoded = decodeFile(content)
  const problems = [
    ...(Either.isLeft(decoded) ? problemsOf(decoded.left) : []),
    ...(Predicate.hasProperty(content, "name") || nameRule.test(name)
      ? []
      : [
          { path: "$.name", message: `the file's name ${JSON.stringify(name)} cannot be the profile's; write one here` }
        ])
  ]
  return Either.isRight(decoded) && problems.length === 0
    ? Either.right(fromFile(decoded.right, decoded.right.name ?? name, source))
    : Either.left(problems)
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The reference of the profile's model for the registry; undefined when it is the parent's. A model without a provider
 * and without a slash belongs to the parent's provider, if the parent has one.
 *
 * @since 0.1.0
 * @category getters
 */
export const modelRef = (
  profile: Pick<SubagentProfile, "model" | "provider">,
  parentModelId: string
): string | undefined => {
  const { model, provider } = profile
  if (model === undefined) return undefined
  if (provider !== undefined) return `${provider}/${model}`
  const parent = providerIn(parentModelId)
  return providerOf(profile) !== undefined || isSpecial(model) || parent === undefined ? model : `${parent}/${model}`
}

/**
 * The provider that the profile itself names, as a field or in the model's name.
 *
 * @since 0.1.0
 * @category getters
 */
export const providerOf = ({ model, provider }: Pick<SubagentProfile, "model" | "provider">): string | undefined =>
  provider ?? (model === undefined ? undefined : providerIn(model))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Deeper or larger than anybody writes. Without these bounds later walks would be unbounded. */
const maxDepth = 32
const maxValues = 20_000
/** Characters. */
const maxMessage = 300

function isSpecial(ref: string): boolean {
  return ref === "offline" || /^(?:script|command):/.test(ref)
}

const providerIn = (ref: string): string | undefined =>
  isSpecial(ref) || !ref.includes("/") ? undefined : ref.slice(0, ref.indexOf("/"))

const decodeFile = Lazy.make(() =>
  Schema.decodeUnknownEither(ProfileFile, { errors: "all", onExcessProperty: "error" })
)

const fromFile = (file: ProfileFile, name: string, source: string): SubagentProfile => ({
  name,
  description: file.description.trim(),
  plugins: file.plugins === undefined ? defaults.plugins : [...new Set(file.plugins)],
  model: file.command === undefined ? file.model : `command:${file.command}`,
  provider: file.provider,
  maxTurns: file.max_turns ?? defaults.maxTurns,
  autoApproved: file.auto_approved ?? defaults.autoApproved,
  systemInstructions: file.system_instructions,
  pluginConfigs: file.plugin_configs ?? defaults.pluginConfigs,
  gc: file.gc === undefined ? defaults.gc : CompactionConfig.fromFile(file.gc),
  iconName: file.icon_name,
  ...(file.sandbox === undefined
    ? {}
    : { sandbox: { network: file.sandbox.network ?? true, writable: file.sandbox.writable ?? [] } }),
  source
})

/** YAML has values that JSON lacks: a value that contains itself, or binary. */
const unfitFor = (root: unknown): Problem | undefined => {
  let left = maxValues
  const above = new Set<unknown>()
  const visit = (value: unknown, at: ReadonlyArray<PropertyKey>): Problem | undefined => {
    if (--left < 0) return { path: "$", message: `more than ${maxValues} values; make it smaller` }
    if (value === null || ["string", "number", "boolean"].includes(typeof value)) return undefined
    if (typeof value !== "object" || !(Array.isArray(value) || isPlain(value))) {
      return { path: place(at), message: "text, a number, true, false, null, a list or fields are expected" }
    }
    if (above.has(value)) return { path: place(at), message: "it contains itself" }
    if (above.size >= maxDepth) return { path: "$", message: `nested more than ${maxDepth} levels deep` }
    above.add(value)
    for (const [key, inner] of Object.entries(value)) {
      const problem = visit(inner, [...at, Array.isArray(value) ? Number(key) : key])
      if (problem !== undefined) return problem
    }
    above.delete(value)
    return undefined
  }
  return visit(root, [])
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const withoutNulls = (value: unknown): unknown =>
  typeof value !== "object" || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null))

const problemsOf = (error: ParseResult.ParseError): ReadonlyArray<Problem> =>
  SchemaProblem.of(error).map(({ message, path }) => ({
    path: place(path),
    message: message.length > maxMessage ? `${message.slice(0, maxMessage)}…` : message
  }))

const place = (path: ReadonlyArray<PropertyKey>): string => SchemaProblem.place(path, maxMessage)
