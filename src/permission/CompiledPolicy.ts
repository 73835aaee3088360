/**
 * A policy as the gate evaluates it, made in code or from files.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Known } from "../tool/ToolDefinition.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Approvals from "./Approvals.js"
import * as CommandText from "../shell/CommandText.js"
import * as PermissionRule from "./PermissionRule.js"
import type { ProjectRules } from "./ProjectRules.js"
import * as PolicySource from "./PolicySource.js"
import * as Sanitizer from "./SanitizerOptions.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * What an agent may do unasked, what it is asked about, and what it must not do: what the gate evaluates.
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
  /**
   * What nobody touches. It holds as the hard refusals do.
   *
   * @internal
   */
  readonly paths: ReadonlyArray<string>
  /** @internal */
  readonly whitelist: PermissionRule.Compiled
  /**
   * Calls that are reserved; absent where none is.
   *
   * @internal
   */
  readonly approvals: Approvals.Approvals | undefined
  /**
   * What a model may allow too.
   *
   * @internal
   */
  readonly delegated: PermissionRule.Compiled
  /** Tools annotated as only reading are allowed. */
  readonly whitelistReadonly: boolean
  /** Commands that run in a sandbox are allowed: all of them, or those that only read. */
  readonly whitelistSandboxed: boolean | "reading"
  readonly sanitize: Sanitizer.Options
  readonly channel?: PolicySource.Channel
  /** Absolute: where relative paths of calls begin. Set by the program that runs agents with the policy. */
  readonly workspace?: string
  /**
   * Finds out where the paths of calls lead when links are followed. Set by the program that runs agents with the policy;
   * without it, paths count as written.
   *
   * @internal
   */
  readonly destinations?: Destinations | undefined
  /**
   * Looks at the repository around a directory, which is relative to the workspace: `harmless` if its own settings let git
   * run no program and read nothing elsewhere. Set by the program that knows the files.
   *
   * @internal
   */
  readonly repositories?: Repositories | undefined
  /**
   * A `.git` or `.assent` is in reach of commands that run in the workspace. Set by the program that knows the files: a
   * function, if its file system tells at once.
   *
   * @internal
   */
  readonly isBesideGuarded?: (() => boolean) | Effect.Effect<boolean> | undefined
  /**
   * What a person allows in this workspace beside the policy, whenever it is asked. Set by the program that keeps it.
   *
   * @internal
   */
  readonly project?: ProjectRules | undefined
  /**
   * The definitions of servers' tools that a person allowed before this session.
   *
   * @internal
   */
  readonly definitions?: Known | undefined
  /** Sentences for the author of the file. */
  readonly warnings: ReadonlyArray<string>
  /** The data from which the policy was made. */
  readonly source: PolicySource.PolicySource
  /** The files it was read from, with each file's own content. */
  readonly files: ReadonlyArray<{
    readonly path: string
    readonly source: PolicySource.PolicySource
    /** What the file allows does not count, because the person does not trust its workspace. Default: it counts. */
    readonly ignored?: boolean | undefined
  }>
}

/**
 * The entries of a session's lists.
 *
 * @internal
 */
export interface Entries {
  readonly entries: ReadonlyArray<string>
}

/**
 * The call with the places to which its paths lead; nothing where no rule looks at its arguments.
 *
 * @internal
 */
export type Destinations = (
  subject: PermissionRule.Subject,
  policy: Policy,
  state: Entries
) => Effect.Effect<PermissionRule.Subject> | undefined

/** @internal */
export type Repositories = (directory: string) => Effect.Effect<NonNullable<PermissionRule.Call["repository"]>>

/**
 * A policy made in code whose rules name these tools. Where the toolkit is known, as in `AgentRuntime.layer`, one that
 * names another tool does not compile. A plain {@link Policy} is not compared: annotate one so that is shared by several
 * toolkits.
 *
 * @since 0.1.0
 * @category models
 */
export interface Of<out Names extends string> extends Policy {
  /** For the compiler alone: never set. */
  readonly "~names"?: Names
}

/**
 * What a policy says, with the names of tools that it may use, and its patterns. The tools of MCP servers,
 * `mcp__SERVER__TOOL`, are known to nobody while code is compiled, so any may be named.
 *
 * @since 0.1.0
 * @category models
 */
export type Source<Names extends string = string, Patterns extends string = string> = PolicySource.PolicySource & {
  readonly blacklist?: Lists<Names, Patterns> | undefined
  readonly whitelist?: Lists<Names, Patterns> | undefined
  readonly approvals?: ReadonlyArray<PolicySource.Approval & Lists<Names, Patterns>> | undefined
  readonly delegated?: Lists<Names, Patterns> | undefined
  readonly guards?: { readonly deny?: Lists<Names, Patterns> | undefined } | undefined
}

interface Lists<Names, Patterns> {
  readonly tools?: ReadonlyArray<Names> | undefined
  readonly patterns?: ReadonlyArray<Patterns> | undefined
}

/**
 * The tools that patterns name: `pay(amount=*)` is about calls of `pay`. A command, and a name with a star, name none.
 *
 * @since 0.1.0
 * @category models
 */
export type NamedIn<Patterns extends string> = Patterns extends `${infer Name}(${string}`
  ? Name extends "" | `${string}${Sign}${string}`
    ? never
    : Name
  : never

/** What no tool's name has. */
type Sign =
  | (" " | "\t" | "\n" | "*" | "?" | "[" | "]" | "{" | "}" | "<" | ">" | "$" | "`" | "'" | '"' | "\\" | "/")
  | (";" | "|" | "&" | "=" | "." | "," | ":" | "!" | "#" | "~" | "@" | "%" | "^" | "+")

/** What remains to be compared: the tools of servers come later, and names that were put together are only texts. */
type Compared<Names extends string> = string extends Names ? never : Exclude<Names, `mcp__${string}`>

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A policy has rules that can match no call of the tools that they name, such as one with an unknown parameter. In a file
 * that was written for several programs, a rule that allows may be so.
 *
 * @since 0.1.0
 * @category errors
 */
export class PolicyInvalid extends Schema.TaggedError<PolicyInvalid>("assent/permission/PolicyInvalid")(
  "PolicyInvalid",
  {
    /** What has the policy, such as `agent main`. */
    by: Schema.String,
    /** All of them; `path` such as `policy.blacklist.patterns[0]`. */
    problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
  }
) {
  override get message(): string {
    const lines = this.problems.map(({ path, message }) => `  ${path}: ${message}`)
    return [`The policy of ${this.by} has rules that can match no call; correct them:`, ...lines].join("\n")
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A policy written in code. Its type knows the tools that it names. It throws where an approval can be meant by nobody: one that
 * names no calls, or whose quorum is no whole number from 1 to 100.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Names extends string = never, const Patterns extends string = never>(
  source: Source<Names, Patterns>
): Of<Compared<Names> | Compared<NamedIn<Patterns>>> => {
  const file: PolicySource.PolicySource = source
  const { defaultPolicy = "ask", guards, blacklist, whitelist, channel, approvals = [] } = file
  const [problem] = approvals.length === 0 ? [] : PolicySource.approvalProblems(approvals)
  // What is to be reserved would be open: no agent may begin with it.
  if (problem !== undefined) throw new Error(`The policy cannot be used: ${problem}.`)
  return {
    defaultPolicy,
    deny: compile(guards?.deny),
    blacklist: compile(blacklist),
    paths: blacklist?.paths ?? [],
    whitelist: compile(whitelist),
    approvals: Approvals.make(file),
    delegated: compile(file.delegated),
    whitelistReadonly: whitelist?.readonly === true,
    whitelistSandboxed: whitelist?.sandboxed ?? "reading",
    sanitize: {
      metacharacters: guards?.sanitize?.metacharacters ?? Sanitizer.defaults.metacharacters,
      dangerousCommands: guards?.sanitize?.dangerousCommands ?? Sanitizer.defaults.dangerousCommands,
      pathScope: guards?.sanitize?.pathScope ?? Sanitizer.defaults.pathScope
    },
    ...(channel === undefined ? {} : { channel }),
    warnings: [...contradictions(file), ...narrow(file), ...unfilled(file)],
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
export const defaults: Policy = make({})

/**
 * A call of a tool as the policy's rules see it; `params` are its encoded arguments.
 *
 * @since 0.1.0
 * @category constructors
 */
export const subject = (
  policy: Policy,
  {
    definition,
    name,
    outlives,
    paths,
    runs,
    shellCommand,
    tool,
    webAddress
  }: Pick<
    ToolRegistry.Entry,
    "definition" | "name" | "outlives" | "paths" | "runs" | "shellCommand" | "tool" | "webAddress"
  >,
  params: unknown
): PermissionRule.Subject =>
  PermissionRule.subject({
    tool: name,
    params,
    commandField: shellCommand,
    quotes: ToolRegistry.quotesOf(tool),
    pathFields: paths,
    webField: webAddress,
    lastingField: outlives,
    workspace: policy.workspace,
    takes: tool,
    confined: runs && (() => runs(params) === "confined"),
    linked: policy.destinations !== undefined,
    denied: policy.paths,
    definition
  })

/**
 * The call with what only the file system knows: where its paths lead, the repository that its git reads, or whether its
 * command can reach a `.git`. Nothing if that does not matter.
 *
 * @internal
 */
export const led = (policy: Policy, state: Entries, subject: PermissionRule.Subject): ReturnType<Destinations> => {
  if (subject.open && subject.doubt === undefined) return policy.destinations?.(subject, policy, state)
  const { isBesideGuarded, repositories } = policy
  if (subject.spoken === undefined || subject.confined) return undefined
  const directories =
    repositories === undefined || subject.call.repository !== undefined ? [] : PermissionRule.gitDirectories(subject)
  const isLooked = Effect.isEffect(isBesideGuarded)
  if (directories.length === 0 && !isLooked) return undefined
  return Effect.gen(function* () {
    let call = subject.call
    if (repositories !== undefined && directories.length > 0) {
      const found = yield* Effect.forEach(directories, repositories)
      call = { ...call, repository: found.find((one) => one !== "harmless") ?? "harmless" }
    }
    if (isLooked) call = { ...call, isBesideGuarded: yield* isBesideGuarded }
    return PermissionRule.subject(call)
  })
}

/**
 * Whether a `.git` or `.assent` is in reach of the call. It is, unless somebody looked.
 *
 * @internal
 */
export const isBesideGuarded = (policy: Policy, { call }: PermissionRule.Subject): boolean => {
  if (policy.isBesideGuarded === undefined) return false
  return Effect.isEffect(policy.isBesideGuarded) ? call.isBesideGuarded !== false : policy.isBesideGuarded()
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Joins the user's policy with a workspace's. Guards, blacklists and approvals add up. A workspace's allowances (its whitelist, a
 * milder default, a milder sanitizer) and its channel count only when the person trusted the workspace; until then it
 * can only take away.
 *
 * @since 0.1.0
 * @category combinators
 */
export const merge = (user: Policy, workspace: Policy, options: { readonly trusted: boolean }): Policy => {
  const merged = make(PolicySource.merge(user.source, workspace.source, options.trusted))
  const ignored = options.trusted ? [] : PolicySource.ignored(workspace.source)
  const warnings = new Set([...user.warnings, ...workspace.warnings, ...merged.warnings, ...ignored])
  const brought = options.trusted ? workspace.files : workspace.files.map((file) => ({ ...file, ignored: true }))
  return { ...merged, warnings: [...warnings], files: [...user.files, ...brought] }
}

/**
 * The policy of one agent of a runtime. It replaces the runtime's, except what no agent may do: the hard rules of both
 * hold, and a sanitizer that either chose. What a person saw of servers' tools holds for all agents.
 *
 * @internal
 */
export const within = (runtime: Policy, own: Policy): Policy => {
  const [a, b] = [runtime.sanitize, mentioned(own)]
  const { definitions, destinations, isBesideGuarded, repositories, workspace } = runtime
  return {
    ...own,
    deny: PermissionRule.union(runtime.deny, own.deny),
    paths: own.paths.length === 0 ? runtime.paths : [...runtime.paths, ...own.paths],
    approvals: Approvals.union(runtime.approvals, own.approvals),
    sanitize: {
      metacharacters: a.metacharacters || b.metacharacters,
      // Only whether there is one counts here: the guards of both look at calls.
      dangerousCommands: a.dangerousCommands === false ? b.dangerousCommands : a.dangerousCommands,
      pathScope: Sanitizer.stricter(a.pathScope, b.pathScope)
    },
    ...(workspace === undefined ? {} : { workspace }),
    destinations,
    repositories,
    isBesideGuarded,
    definitions
  }
}

/**
 * The sanitizer that a policy speaks of; what it does not mention is off.
 *
 * @internal
 */
export const mentioned = ({ sanitize, source }: Policy): Sanitizer.Options => {
  const said = source.guards?.sanitize
  return {
    metacharacters: said?.metacharacters === undefined ? false : sanitize.metacharacters,
    dangerousCommands: said?.dangerousCommands === undefined ? false : sanitize.dangerousCommands,
    pathScope: said?.pathScope === undefined ? "off" : sanitize.pathScope
  }
}

/**
 * The tools that a policy names and that are not there. In a file, only those that it denies: what a file allows may be
 * for another program.
 *
 * @internal
 */
export const unknownTools = (
  { files, source }: Pick<Policy, "files" | "source">,
  known: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const { allowing, denying } = PolicySource.unknownNames(source, known)
  return files.length > 0 ? denying : [...denying, ...allowing]
}

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

type List = { readonly [K in keyof PermissionRule.RuleSet]?: PermissionRule.RuleSet[K] | undefined }

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

/** Remarks about roles that nobody could fill, as far as the policy knows. */
function unfilled({ approvals, roles }: PolicySource.PolicySource): ReadonlyArray<string> {
  return (approvals ?? []).flatMap(({ quorum = 1, roles: wanted }) => {
    if (wanted === undefined) return []
    const members = Approvals.membersOf(roles ?? {}, wanted)
    const those = members.length === 0 ? "nobody" : `only ${members.join(", ")}`
    return members.length >= quorum
      ? []
      : [`An approval needs ${quorum} of: ${wanted.join(", ")}, and "roles" names ${those} there.`]
  })
}

/** Remarks about whitelist entries that allow less than their author may expect. */
function narrow({ whitelist }: PolicySource.PolicySource): ReadonlyArray<string> {
  const remarks = (whitelist?.patterns ?? []).map((text) =>
    CommandText.namesNothing(text) ? PolicySource.everything : CommandText.remark(text)
  )
  return [...new Set(remarks.filter((remark) => remark !== undefined))]
}
