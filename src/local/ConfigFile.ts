/**
 * `config.json`, in the user's directory and in the workspace's `.assent`.
 *
 * ```json
 * { "model": "anthropic/claude-sonnet-4-5",
 *   "limits": { "max_steps": 50, "max_depth": 2, "max_tree_tokens": 500000, "max_cost": { "session": 5, "day": 20 } },
 *   "models": { "ollama/qwen3": { "context_window": 32768, "max_output_tokens": 8192 } },
 *   "price_table": { "anthropic/claude-sonnet-4-5": { "input": 3, "output": 15, "cached": 0.3 } },
 *   "currency": "USD",
 *   "mediator": "forward",
 *   "reviewer": { "model": "anthropic/claude-haiku-4-5", "budget": { "calls": 50 } },
 *   "escalate": { "after": "10m", "to": ["console", "webhook:https://ops.example.com/ask"] },
 *   "allow_inline": true,
 *   "inline_allowed_plugins": ["files", "grep"] }
 * ```
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as CompactionConfig from "../conversation/CompactionConfig.js"
import * as Lazy from "../core/Lazy.js"
import { modes } from "../permission/PermissionState.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import * as ForeignJson from "../core/ForeignJson.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"

/** Who is asked first when a subagent asks: the person, or the parent's model. */
export const mediators = ["forward", "agent"] as const
export type Mediator = (typeof mediators)[number]

// Exact, so that a wrong value is one problem and not also "expected undefined".
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const Count = Schema.Int.pipe(Schema.positive())

const Money = Schema.Number.pipe(Schema.finite(), Schema.positive())

const Amount = Schema.Number.pipe(Schema.finite(), Schema.nonNegative())

/** What a million tokens of a model cost. */
const Price = Schema.Struct({ input: Amount, output: Amount, cached: optional(Amount), written: optional(Amount) })
export type Price = typeof Price.Type

/** What a person says of a model; it goes before what is known of it. */
const ModelSettings = Schema.Struct({
  /** Tokens. */
  context_window: optional(Count),
  /** The most tokens of one reply. */
  max_output_tokens: optional(Count),
  /** Tokens, or how hard: the two ways in which providers take it. Zero is not at all. */
  thinking: optional(
    Schema.Union(Schema.NonNegativeInt, Schema.Literal("minimal", "low", "medium", "high")).annotations({
      message: () => ({ message: "a number of tokens, or minimal, low, medium or high is expected", override: true })
    })
  )
})
export type ModelSettings = typeof ModelSettings.Type

const SandboxMode = Schema.Literal(...Sandbox.modes)
const Paths = Schema.Array(Schema.NonEmptyString)
const SandboxSettings = Schema.Struct({
  mode: optional(SandboxMode),
  /** Commands reach the network, and servers on this machine. */
  network: optional(Schema.Boolean),
  /** Further files and directories that commands see, and directories in which they may write; absolute or `~/…`. */
  readable: optional(Paths),
  writable: optional(Paths)
}).annotations({ identifier: "auto, require, off, or { mode?, network?, readable?, writable? }" })

/** A model that decides about what the policy delegates; alone, or with what it may use, and the seconds that it has for a call. */
const Reviewer = Schema.Struct({
  model: Schema.NonEmptyTrimmedString,
  budget: optional(Schema.Struct({ calls: optional(Count), tokens: optional(Count) })),
  timeout: optional(Schema.Number.pipe(Schema.finite(), Schema.positive())),
  instructions: optional(Schema.NonEmptyString)
}).annotations({ identifier: "a model, or { model, budget?: { calls?, tokens? }, timeout?, instructions? }" })

/** After how long the next channel is asked too, and which channels there are. */
const Escalation = Schema.Struct({
  after: Schema.NonEmptyTrimmedString,
  to: optional(Schema.Array(Schema.NonEmptyTrimmedString))
}).annotations({ identifier: "a time such as 10m, or { after, to?: [channels] }" })

/** The content of the file. Every field is optional; an unknown field is a problem. */
export const ConfigFile = Schema.Struct({
  model: optional(Schema.String),
  /** A file, `postgres://…` or `:memory:`; only in the user's own file. */
  store: optional(Schema.NonEmptyString),
  base_urls: optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  limits: optional(
    Schema.Struct({
      max_steps: optional(Count),
      parallel_tools: optional(Count),
      calls_per_step: optional(Count),
      identical_errors: optional(Count),
      /** Seconds; zero is for ever. */
      model_silence: optional(Amount),
      /** Seconds. */
      retry_within: optional(Amount),
      max_depth: optional(Count),
      max_children: optional(Count),
      max_tokens: optional(Count),
      max_tree_tokens: optional(Count),
      /** In the currency of the prices: of a run, of a session with those below it, of a workspace on a day. */
      max_cost: optional(
        Schema.Struct({ run: optional(Money), session: optional(Money), day: optional(Money) }).annotations({
          identifier: "{ run?, session?, day? }"
        })
      )
    })
  ),
  mode: optional(
    Schema.Literal(...modes).annotations({
      message: (issue) => ({
        message: `one of ${modes.join(", ")} is expected, not ${JSON.stringify(issue.actual)}`,
        override: true
      })
    })
  ),
  mediator: optional(
    Schema.Literal(...mediators).annotations({
      message: (issue) => ({
        message: `one of ${mediators.join(", ")} is expected, not ${JSON.stringify(issue.actual)}`,
        override: true
      })
    })
  ),
  price_table: optional(Schema.Record({ key: Schema.NonEmptyString, value: Price })),
  /** By reference. */
  models: optional(Schema.Record({ key: Schema.NonEmptyString, value: ModelSettings })),
  /** Whether a conversation is made shorter by itself; and when and how, as in profiles. */
  compaction: optional(Schema.Boolean),
  gc: optional(CompactionConfig.CompactionFile),
  /** A line with the model, the context and the money below the prompt. */
  status_line: optional(Schema.Boolean),
  currency: optional(Schema.NonEmptyTrimmedString),
  reviewer: optional(Schema.Union(Schema.NonEmptyTrimmedString, Reviewer)),
  escalate: optional(Schema.Union(Schema.NonEmptyTrimmedString, Escalation)),
  allow_inline: optional(Schema.Boolean),
  /** Names of further variables that commands get. */
  command_environment: optional(Schema.Array(Schema.NonEmptyTrimmedString)),
  inline_allowed_plugins: optional(Schema.Array(Schema.NonEmptyString)),
  /** How commands are confined: the mode alone, or with what they may reach beside the workspace. */
  sandbox: optional(Schema.Union(SandboxMode, SandboxSettings))
})
export type ConfigFile = typeof ConfigFile.Type

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Reads a file's text; `file` names it. The message of a left lists every problem with its path. */
export const decode = (text: string, file: string): Either.Either<ConfigFile, ConfigurationInvalid> =>
  Either.mapLeft(Either.flatMap(ForeignJson.parse(text), decodeValue), (error) => {
    const problems =
      error._tag === "ForeignJsonRefused"
        ? [`  (file): it ${error.message}${error.detail === undefined ? "" : ` (${error.detail})`}`]
        : ParseResult.ArrayFormatter.formatErrorSync(error).map(
            ({ path, message }) => `  ${path.join(".") || "(file)"}: ${message}`
          )
    return invalid([`${file} cannot be used:`, ...problems].join("\n"))
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Merges several files. A later file overrides an earlier one; limits and prices are merged key by key. */
export const merge = (files: ReadonlyArray<ConfigFile>): ConfigFile =>
  files.reduce<ConfigFile>(
    (before, file) => ({
      ...before,
      ...file,
      base_urls: { ...before.base_urls, ...file.base_urls },
      limits: mergedLimits(before.limits, file.limits),
      ...(before.sandbox === undefined && file.sandbox === undefined
        ? {}
        : { sandbox: { ...sandboxOf(before), ...sandboxOf(file) } }),
      price_table: { ...before.price_table, ...file.price_table },
      models: mergedModels(before.models, file.models)
    }),
    {}
  )

/** What a file says of the sandbox, whichever way it says it. */
export const sandboxOf = ({ sandbox = {} }: ConfigFile): typeof SandboxSettings.Type =>
  typeof sandbox === "string" ? { mode: sandbox } : sandbox

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const mergedLimits = (
  before: ConfigFile["limits"] = {},
  after: ConfigFile["limits"] = {}
): NonNullable<ConfigFile["limits"]> =>
  before.max_cost === undefined || after.max_cost === undefined
    ? { ...before, ...after }
    : { ...before, ...after, max_cost: { ...before.max_cost, ...after.max_cost } }

/** Model by model, and of each what it says last. */
const mergedModels = (
  before: ConfigFile["models"] = {},
  after: ConfigFile["models"] = {}
): NonNullable<ConfigFile["models"]> => ({
  ...before,
  ...Object.fromEntries(Object.entries(after).map(([ref, model]) => [ref, { ...before[ref], ...model }]))
})

const decodeValue = Lazy.make(() =>
  Schema.decodeUnknownEither(ConfigFile, { errors: "all", onExcessProperty: "error" })
)
