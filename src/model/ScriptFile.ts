/**
 * A script for {@link ScriptedModel} as a file, in YAML or JSON:
 *
 * ```yaml
 * version: 1
 * agents:
 *   main:
 *     - text: Let me look.
 *       tools:
 *         - { name: list_files, params: { path: src } }
 *     - expect: { contains: index.ts }
 *       text: There is an index.
 *       chunks: 3
 *       chunkDelay: 100ms
 * ```
 *
 * Durations are milliseconds, or a number with a unit: `250ms`, `2s`, `1 minute`.
 */
import * as Duration from "effect/Duration"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Yaml from "yaml"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as UntrustedYaml from "../core/UntrustedYaml.js"
import * as ScriptedModel from "./ScriptedModel.js"

const DurationText = Schema.transformOrFail(Schema.Unknown, Schema.DurationFromSelf, {
  strict: true,
  decode: (input, _, ast) =>
    Option.match(toDuration(input), {
      onNone: () => ParseResult.fail(new ParseResult.Type(ast, input, "a duration such as 250ms or 2s is expected")),
      onSome: ParseResult.succeed
    }),
  encode: (duration) => ParseResult.succeed(Duration.toMillis(duration))
})

// Exact, so that a wrong value is one problem and not also "expected undefined".
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const ErrorKind = Schema.Literal(...ScriptedModel.errors).annotations({
  message: (issue) => ({
    message: `one of ${ScriptedModel.errors.join(", ")} is expected, not ${JSON.stringify(issue.actual)}`,
    override: true
  })
})

const ToolUse = Schema.Struct({
  name: Schema.NonEmptyString,
  params: optional(Schema.Unknown),
  id: optional(Schema.NonEmptyString)
}).annotations({ identifier: "a tool call such as {name: list_files, params: {}}" })

const Step = Schema.Struct({
  text: optional(Schema.String),
  thinking: optional(Schema.String),
  tools: optional(Schema.Array(ToolUse)),
  delay: optional(DurationText),
  chunks: optional(Schema.Int.pipe(Schema.positive())),
  chunkDelay: optional(DurationText),
  usage: optional(Schema.Struct({ input: Schema.NonNegativeInt, output: Schema.NonNegativeInt })),
  error: optional(ErrorKind),
  expect: optional(Schema.Struct({ contains: Schema.NonEmptyString }))
}).annotations({ identifier: "a step such as {text: hello}" })

/** The file's content. Tool call ids are unique per agent. */
export const ScriptFile = Schema.Struct({
  version: Schema.Literal(1),
  agents: Schema.Record({ key: Schema.String, value: Schema.Array(Step) }).annotations({
    identifier: "steps by agent such as {main: [{text: hello}]}"
  })
}).pipe(
  Schema.annotations({ identifier: "a script such as {version: 1, agents: {main: [{text: hello}]}}" }),
  Schema.filter(({ agents }) =>
    Object.entries(agents).flatMap(([agent, steps]) => {
      const seen = new Set<string>()
      return steps.flatMap((step, index) =>
        (step.tools ?? []).flatMap(({ id }, call) => {
          if (id === undefined || !seen.has(id)) {
            if (id !== undefined) seen.add(id)
            return []
          }
          return [{ path: ["agents", agent, index, "tools", call, "id"], message: `${id} is used twice` }]
        })
      )
    })
  )
)

/** The text is not a script. Every problem is listed, with its path and line. */
export class ScriptInvalid extends Schema.TaggedError<ScriptInvalid>("assent/model/ScriptInvalid")("ScriptInvalid", {
  /** The name of the text for people, such as a file name. */
  source: Schema.String,
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return [
      `${this.source} is not a script:`,
      ...UntrustedJson.few(this.problems).map((problem) => `  ${problem}`)
    ].join("\n")
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Reads a script from YAML or JSON. `source` names it in errors. */
export const parse = (text: string, source = "The text"): Either.Either<ScriptedModel.Script, ScriptInvalid> => {
  const refusal = UntrustedYaml.textRefusal(text, { yaml: Yaml })
  if (refusal !== undefined) return Either.left(new ScriptInvalid({ source, problems: [`it ${refusal.message}`] }))
  const lines = new Yaml.LineCounter()
  const document = UntrustedYaml.parse(Yaml, text, { lineCounter: lines })
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ message }) => (message.split("\n")[0] ?? message).replace(/:$/, ""))
    return Either.left(new ScriptInvalid({ source, problems }))
  }
  return Either.flatMap(toValue(document), (value) => decode(value, { errors: "all", onExcessProperty: "error" })).pipe(
    Either.mapLeft((failure) => {
      const problems =
        typeof failure === "string"
          ? [failure]
          : ParseResult.ArrayFormatter.formatErrorSync(failure).map((issue) => problem(document, lines, issue))
      return new ScriptInvalid({ source, problems: [...new Set(problems)] })
    })
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decode = Schema.decodeUnknownEither(ScriptFile)

/** Aliases are resolved here, and a document that explodes through them is refused. */
const toValue = (document: Yaml.Document): Either.Either<unknown, string> =>
  Either.flatMap(
    Either.try({ try: (): unknown => document.toJS({ maxAliasCount: 100 }), catch: (error) => String(error) }),
    (value) => {
      const refusal = UntrustedJson.refusal(value)
      return refusal === undefined ? Either.right(value) : Either.left(`it ${refusal.message}`)
    }
  )

const problem = (document: Yaml.Document, lines: Yaml.LineCounter, issue: ParseResult.ArrayFormatterIssue): string => {
  const path = issue.path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("")
  const line = lineOf(document, lines, issue.path)
  return `${path === "" ? "the script" : path.replace(/^\./, "")}${line === undefined ? "" : ` (line ${line})`}: ${issue.message}`
}

/** The line of the value; for a missing value, of the nearest one around it. */
const lineOf = (
  document: Yaml.Document,
  lines: Yaml.LineCounter,
  path: ReadonlyArray<PropertyKey>
): number | undefined => {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    if (Yaml.isNode(node) && node.range) return lines.linePos(node.range[0]).line
  }
  return undefined
}

const units: { readonly [unit: string]: Duration.Unit } = { ms: "millis", s: "seconds", m: "minutes", h: "hours" }

const toDuration = (input: unknown): Option.Option<Duration.Duration> => {
  if (typeof input === "number") return Option.filter(Option.some(Duration.millis(input)), () => isUsable(input))
  if (typeof input !== "string") return Option.none()
  const short = /^([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h)$/.exec(input.trim())
  const text = short === null ? input.trim() : `${short[1]} ${units[short[2] ?? ""]}`
  // Effect reads a negative duration as zero.
  if (text.startsWith("-")) return Option.none()
  return Option.filter(Duration.decodeUnknown(text), (duration) => isUsable(Duration.toMillis(duration)))
}

const isUsable = (millis: number): boolean => Number.isFinite(millis) && millis >= 0
