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
 *   "notify": { "webhook": "https://ops.example.com/waiting", "after": "30s" },
 *   "allow_inline": true,
 *   "inline_allowed_plugins": ["files", "grep"] }
 * ```
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as CompactionConfig from "../../conversation/CompactionConfig.js"
import * as Lazy from "../../core/Lazy.js"
import * as SchemaProblem from "../../core/SchemaProblem.js"
import { modes } from "../../permission/PermissionState.js"
import * as Sandbox from "../../sandbox/Sandbox.js"
import * as ServerSettings from "../../tool/ServerSettings.js"
import * as UntrustedJson from "../../core/UntrustedJson.js"
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
}).annotations({ identifier: "{ mode?, network?, readable?, writable? }" })

/** A model that decides about what the policy delegates; alone, or with what it may use, and the seconds that it has for a call. */
const Reviewer = Schema.Struct({
  model: Schema.NonEmptyTrimmedString,
  budget: optional(Schema.Struct({ calls: optional(Count), tokens: optional(Count) })),
  timeout: optional(Schema.Number.pipe(Schema.finite(), Schema.positive())),
  instructions: optional(Schema.NonEmptyString)
}).annotations({ identifier: "{ model, budget?: { calls?, tokens? }, timeout?, instructions? }" })

/** After how long the next channel is asked too, and which channels there are. */
const Escalation = Schema.Struct({
  after: Schema.NonEmptyTrimmedString,
  to: optional(Schema.Array(Schema.NonEmptyTrimmedString))
}).annotations({ identifier: "{ after, to?: [channels] }" })

const oneOf = <const L extends readonly [string, ...ReadonlyArray<string>]>(...literals: L) =>
  Schema.Literal(...literals).annotations({
    message: (issue) => ({
      message: `one of ${literals.join(", ")} is expected, not ${JSON.stringify(issue.actual)}`,
      override: true
    })
  })

/** An optional field. `assent help settings` prints the description. */
const field = <A, I>(description: string, schema: Schema.Schema<A, I>) => optional(schema).annotations({ description })

/** The content of the file. Every field is optional; an unknown field is a problem. */
export const ConfigFile = Schema.Struct({
  model: field("the model: PROVIDER/MODEL, script:FILE or offline; ASSENT_MODEL", Schema.String),
  store: field("a file, postgres://… or :memory:; only in your own config.json; ASSENT_STORE", Schema.NonEmptyString),
  base_urls: field(
    "addresses by provider, without credentials; ANTHROPIC_BASE_URL and so on",
    Schema.Record({ key: Schema.String, value: Schema.String })
  ),
  limits: optional(
    Schema.Struct({
      max_steps: field("model calls in one turn", Count),
      parallel_tools: field("calls that run at once; 8", Count),
      calls_per_step: field("calls of one step that are read; 128", Count),
      identical_errors: field("errors of the same call in a row that end the turn; 5", Count),
      model_silence: field("seconds of silence before Assent retries a model call; 300; 0 waits for ever", Amount),
      retry_within: field("seconds that a provider may make a call wait; 120", Amount),
      max_depth: field("how deep subagents nest", Count),
      max_children: field("how many subagents of one tree work or are kept", Count),
      max_tokens: field("tokens of one session", Count),
      max_tree_tokens: field("tokens of a session and all below it", Count),
      max_cost: field(
        "money of a run, a session or a day, in currency: { run, session, day }",
        Schema.Struct({ run: optional(Money), session: optional(Money), day: optional(Money) }).annotations({
          identifier: "{ run?, session?, day? }"
        })
      )
    })
  ),
  mode: field("how calls are decided: ask, plan, deny or allow; ASSENT_MODE", oneOf(...modes)),
  mediator: field(
    "who answers a subagent first: forward (you) or agent (its parent's model); ASSENT_MEDIATOR",
    oneOf(...mediators)
  ),
  price_table: field(
    "the price of a million tokens, by model: { input, output, cached, written }",
    Schema.Record({ key: Schema.NonEmptyString, value: Price })
  ),
  models: field(
    "facts by model: { context_window, max_output_tokens, thinking }",
    Schema.Record({ key: Schema.NonEmptyString, value: ModelSettings })
  ),
  compaction: field("false: never shorten a conversation without /compact", Schema.Boolean),
  gc: field("when and how to shorten a conversation; see the guide about sessions", CompactionConfig.CompactionFile),
  status_line: field("false: no line below the prompt; ASSENT_STATUS_LINE", Schema.Boolean),
  currency: field("the currency of price_table and max_cost; USD", Schema.NonEmptyTrimmedString),
  reviewer: field(
    "a model that decides delegated calls, or { model, budget: { calls, tokens }, timeout, instructions }",
    Schema.Union(Schema.NonEmptyTrimmedString, Reviewer)
  ),
  escalate: field(
    "the time after which the next channel is asked, or { after, to: [channels] }",
    Schema.Union(Schema.NonEmptyTrimmedString, Escalation)
  ),
  notify: field(
    "a webhook for questions that wait: { webhook, after }; 30s; only in your own config.json",
    Schema.Struct({
      /** An http or https address. */
      webhook: Schema.NonEmptyTrimmedString,
      /** How long a question waits before the webhook is called. */
      after: optional(Schema.NonEmptyTrimmedString)
    }).annotations({ identifier: "{ webhook, after? }" })
  ),
  allow_inline: field("true: a model may describe a subagent without a profile", Schema.Boolean),
  inline_allowed_plugins: field("the tools that such a subagent may get", Schema.Array(Schema.NonEmptyString)),
  command_environment: field(
    "further environment variables that commands get",
    Schema.Array(Schema.NonEmptyTrimmedString)
  ),
  mcp: optional(
    Schema.Struct({
      required: field("true: no session starts without each of its tool servers", Schema.Boolean),
      wait: field(
        "seconds that a model call waits for tool servers that start; 5",
        Schema.Number.pipe(Schema.between(0, 600))
      )
    })
  ),
  mcp_servers: field("tool servers by name: { command, args } or { url }; see the guide", ServerSettings.Servers),
  sandbox: field(
    "auto, require, off, or { mode, network, readable, writable }; ASSENT_SANDBOX",
    Schema.Union(SandboxMode, SandboxSettings)
  )
})
export type ConfigFile = typeof ConfigFile.Type

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Reads a file's text; `file` names it. The message of a left lists every problem with its path. */
export const decode = (text: string, file: string): Either.Either<ConfigFile, ConfigurationInvalid> =>
  Either.mapLeft(Either.flatMap(UntrustedJson.parse(text), decodeValue), (error) => {
    const problems =
      error._tag === "ForeignJsonRefused"
        ? [`  (file): it ${error.message}${error.detail === undefined ? "" : ` (${error.detail})`}`]
        : SchemaProblem.of(error).map(({ path, message }) => `  ${path.map(String).join(".") || "(file)"}: ${message}`)
    return invalid(
      [`${file} is not valid. Correct it; \`assent help settings\` lists the settings:`, ...problems].join("\n")
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** Each setting by its path, such as `limits.max_steps`, with what it means. */
export const described = (
  { ast }: Schema.Schema.AnyNoContext = ConfigFile,
  within = ""
): ReadonlyArray<readonly [path: string, meaning: string]> =>
  SchemaAST.getPropertySignatures(ast).flatMap((property) => {
    const path = `${within}${String(property.name)}`
    return Option.match(SchemaAST.getDescriptionAnnotation(property), {
      onNone: () => described(Schema.make(property.type), `${path}.`),
      onSome: (meaning) => [[path, meaning] as const]
    })
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
      ...(before.mcp === undefined && file.mcp === undefined ? {} : { mcp: { ...before.mcp, ...file.mcp } }),
      mcp_servers: { ...before.mcp_servers, ...file.mcp_servers },
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
