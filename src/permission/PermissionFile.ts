/**
 * The permission file, and the policy it becomes.
 *
 * ```json
 * { "version": 1,
 *   "defaultPolicy": "ask",
 *   "guards": { "deny": { "patterns": ["rm -rf *"] }, "sanitize": { "pathScope": { "allowTmp": true } } },
 *   "blacklist": { "arguments": ["--force"] },
 *   "whitelist": { "tools": ["list_files"], "patterns": ["git status*"], "readonly": true },
 *   "channel": { "type": "console", "timeout": 30 } }
 * ```
 *
 * Every part is optional. A file with any problem is refused as a whole, and all its problems are reported: half a
 * policy is worse than none.
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Lazy from "../internal/Lazy.js"
import * as ForeignJson from "../core/ForeignJson.js"
import * as RegularFile from "../core/RegularFile.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as CommandPattern from "../shell/CommandPattern.js"
import * as PermissionRule from "./PermissionRule.js"
import * as PolicySource from "./PolicySource.js"
import * as Sanitizer from "./Sanitizer.js"

export type { Channel, PolicySource, Problem } from "./PolicySource.js"
export type { Options as PathScopeOptions } from "./PathScope.js"
export type { Options as SanitizerOptions } from "./Sanitizer.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * A permission file ready for use: what the gate evaluates.
 *
 * @since 0.1.0
 * @category models
 */
export interface Policy {
  readonly defaultPolicy: "allow" | "deny" | "ask"
  /**
   * Hard refusals.
   *
   * @internal
   */
  readonly deny: PermissionRule.Compiled
  /** @internal */
  readonly blacklist: PermissionRule.Compiled
  /** @internal */
  readonly whitelist: PermissionRule.Compiled
  /** Tools annotated as only reading are allowed. */
  readonly whitelistReadonly: boolean
  /** Commands that run in a sandbox are allowed. */
  readonly whitelistSandboxed: boolean
  readonly sanitize: Sanitizer.Options
  readonly channel?: PolicySource.Channel
  /** Absolute: where relative paths of calls begin. Set by the program that runs agents with the policy. */
  readonly workspace?: string
  /** Sentences for the author of the file. */
  readonly warnings: ReadonlyArray<string>
  /** The data from which the policy was made. */
  readonly source: PolicySource.PolicySource
  /** The files it was read from, with each file's own content. */
  readonly files: ReadonlyArray<{ readonly path: string; readonly source: PolicySource.PolicySource }>
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The file's content is not a policy.
 *
 * @since 0.1.0
 * @category errors
 */
export class PermissionFileInvalid extends Schema.TaggedError<PermissionFileInvalid>(
  "assent/permission/PermissionFileInvalid"
)("PermissionFileInvalid", {
  path: Schema.String,
  /** All of them; `path` such as `$.whitelist.tools[0]`. */
  problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
}) {
  override get message(): string {
    const lines = this.problems.map(({ path, message }) => `  ${path}: ${message}`)
    return [`The permission file ${this.path} is not valid; correct it:`, ...lines].join("\n")
  }
}

/**
 * The file cannot be read.
 *
 * @since 0.1.0
 * @category errors
 */
export class PermissionFileUnreadable extends Schema.TaggedError<PermissionFileUnreadable>(
  "assent/permission/PermissionFileUnreadable"
)("PermissionFileUnreadable", {
  path: Schema.String,
  /** The platform's word for it, such as `NotFound` or `PermissionDenied`. */
  reason: Schema.String
}) {
  override get message(): string {
    return `The permission file ${this.path} cannot be read (${this.reason}); name one that exists and is readable.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A policy written in code.
 *
 * @since 0.1.0
 * @category constructors
 */
export const policy = (file: PolicySource.PolicySource): Policy => {
  const { defaultPolicy = "ask", guards, blacklist, whitelist, channel } = file
  return {
    defaultPolicy,
    deny: compile(guards?.deny),
    blacklist: compile(blacklist),
    whitelist: compile(whitelist),
    whitelistReadonly: whitelist?.readonly === true,
    whitelistSandboxed: whitelist?.sandboxed === true,
    sanitize: {
      metacharacters: guards?.sanitize?.metacharacters ?? Sanitizer.defaults.metacharacters,
      dangerousCommands: guards?.sanitize?.dangerousCommands ?? Sanitizer.defaults.dangerousCommands,
      pathScope: guards?.sanitize?.pathScope ?? Sanitizer.defaults.pathScope
    },
    ...(channel === undefined ? {} : { channel }),
    warnings: [...contradictions(file), ...narrow(file)],
    source: file,
    files: []
  }
}

/**
 * Asks about everything; the path scope is the only active guard.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaults: Policy = policy({})

/**
 * Reads a file's text. `path` only names it in the error.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (text: string, path: string): Either.Either<Policy, PermissionFileInvalid> =>
  Either.mapLeft(
    Either.flatMap(parseJson(text), (json) =>
      Either.flatMap(Either.mapLeft(decodeFile(json), problemsOf), (source) => {
        const problems = PolicySource.misread(source)
        return problems.length > 0
          ? Either.left(problems)
          : Either.right({ ...policy(source), files: [{ path, source }] })
      })
    ),
    (problems) => new PermissionFileInvalid({ path, problems })
  )

/**
 * Reads a file. A missing file is a failure too, with `reason` `NotFound`.
 *
 * @since 0.1.0
 * @category operations
 */
export const load = (
  path: string
): Effect.Effect<Policy, PermissionFileInvalid | PermissionFileUnreadable, FileSystem.FileSystem> =>
  FileSystem.FileSystem.pipe(
    Effect.flatMap((fs) => RegularFile.read(fs, path, maxBytes)),
    Effect.mapError(
      (error) =>
        new PermissionFileUnreadable({
          path,
          reason:
            error._tag === "FileUnfit"
              ? `it ${error.reason}`
              : error._tag === "SystemError"
                ? error.reason
                : (error.description ?? error._tag)
        })
    ),
    Effect.flatMap((text) => decode(text, path))
  )

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Joins the user's policy with a workspace's. Guards and blacklists add up. A workspace's allowances (its whitelist, a
 * milder default, a milder sanitizer) and its channel count only when the person trusted the workspace; until then it
 * can only take away.
 *
 * @since 0.1.0
 * @category combinators
 */
export const merge = (user: Policy, workspace: Policy, options: { readonly trusted: boolean }): Policy => {
  const merged = policy(PolicySource.merge(user.source, workspace.source, options.trusted))
  const ignored = options.trusted ? [] : PolicySource.ignored(workspace.source)
  const warnings = new Set([...user.warnings, ...workspace.warnings, ...merged.warnings, ...ignored])
  return { ...merged, warnings: [...warnings], files: [...user.files, ...workspace.files] }
}

/**
 * Compares the tool names in the files with the existing tools. An unknown name is an error in a list that denies,
 * because it denies nothing, and a remark in a list that allows. Tools of MCP servers are known later.
 *
 * @since 0.1.0
 * @category operations
 */
export const checkTools = (
  { files }: Policy,
  known: ReadonlyArray<string>
): Either.Either<ReadonlyArray<PolicySource.Problem & { readonly file: string }>, PermissionFileInvalid> => {
  const remarks: Array<PolicySource.Problem & { readonly file: string }> = []
  for (const { path: file, source } of files) {
    const { allowing, denying } = PolicySource.unknownTools(source, known)
    if (denying.length > 0) return Either.left(new PermissionFileInvalid({ path: file, problems: denying }))
    remarks.push(...allowing.map(({ message, path }) => ({ file, message, path })))
  }
  return Either.right(remarks)
}

/**
 * A call of a tool as the policy's rules see it; `params` are its encoded arguments.
 *
 * @since 0.1.0
 * @category constructors
 */
export const subject = (
  { workspace }: Policy,
  { name, paths, shellCommand, tool }: Pick<ToolRegistry.Entry, "name" | "paths" | "shellCommand" | "tool">,
  params: unknown
): PermissionRule.Subject =>
  PermissionRule.subject({ tool: name, params, commandField: shellCommand, pathFields: paths, workspace, takes: tool })

/**
 * Whether the policy has parts that count only for a trusted workspace.
 *
 * @since 0.1.0
 * @category predicates
 */
export const widens = ({ source }: Policy): boolean => PolicySource.ignored(source).length > 0

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes. No handwritten file is longer. */
const maxBytes = 1_000_000

type List = { readonly [K in keyof PermissionRule.RuleSet]?: PermissionRule.RuleSet[K] | undefined }

type Problem = PolicySource.Problem

// Function declarations, because `defaults` needs them while the module loads.
function compile(rules: List | undefined): PermissionRule.Compiled {
  if (rules === undefined) return PermissionRule.empty
  return PermissionRule.compile({
    tools: rules.tools ?? [],
    patterns: rules.patterns ?? [],
    arguments: rules.arguments ?? []
  })
}

function contradictions({ guards, blacklist, whitelist }: PolicySource.PolicySource): ReadonlyArray<string> {
  return (["tools", "patterns", "arguments"] as const).flatMap((kind) => {
    const allowed = new Set(whitelist?.[kind])
    const both = (denied: ReadonlyArray<string> | undefined, name: string) =>
      [...new Set(denied)]
        .filter((entry) => allowed.has(entry))
        .map((entry) => `${JSON.stringify(entry)} is in whitelist.${kind} and in ${name}.${kind}: it is denied.`)
    return [...both(guards?.deny?.[kind], "guards.deny"), ...both(blacklist?.[kind], "blacklist")]
  })
}

/** Remarks about whitelist entries that allow less than their author may expect. */
function narrow({ whitelist }: PolicySource.PolicySource): ReadonlyArray<string> {
  const remarks = (whitelist?.patterns ?? []).map((text) =>
    CommandPattern.isStars(text) ? PolicySource.everything : CommandPattern.remark(text)
  )
  return [...new Set(remarks.filter((remark) => remark !== undefined))]
}

const parseJson = (text: string): Either.Either<unknown, ReadonlyArray<Problem>> =>
  Either.mapLeft(ForeignJson.parse(text.replace(/^\ufeff/, "")), ({ detail, message }) => [
    { path: "$", message: detail === undefined ? `it ${message}` : `not JSON: ${detail}` }
  ])

const decodeFile = Lazy.make(() =>
  Schema.decodeUnknownEither(PolicySource.PolicySource, { errors: "all", onExcessProperty: "error" })
)

const problemsOf = (error: ParseResult.ParseError): ReadonlyArray<Problem> => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
    // Each optional field also reports that `undefined` was expected.
    .filter(({ message }) => !message.startsWith("Expected undefined"))
    .map(({ path, message }) => ({
      path: path.reduce<string>((at, key) => at + step(key), "$"),
      message: message.startsWith("is unexpected") ? "there is no such field here" : message
    }))
  // The members of a union may report the same problem.
  return [...new Map(issues.map((issue) => [`${issue.path} ${issue.message}`, issue])).values()]
}

const step = (key: PropertyKey): string => {
  const name = String(key)
  if (typeof key === "number") return `[${name}]`
  return /^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
}
