/**
 * The content of a permission file as data, and how a workspace's file joins the user's.
 *
 * Files are merged before they are compiled, because an absent part differs from its default.
 */
import * as Schema from "effect/Schema"
import * as Nearest from "../core/Nearest.js"
import * as CommandPattern from "../shell/CommandPattern.js"
import * as PermissionRule from "./PermissionRule.js"

const oneOf = <const L extends readonly [string | number, ...ReadonlyArray<string | number>]>(...literals: L) =>
  Schema.Literal(...literals).annotations({
    message: () => ({
      message: `expected one of ${literals.map((literal) => JSON.stringify(literal)).join(", ")}`,
      override: true
    })
  })

const Rule = Schema.String.pipe(
  Schema.filter((text) => text.trim() !== "" || "a rule must not be empty", { title: "a rule" })
)
const Rules = Schema.optional(Schema.Array(Rule))
const list = { tools: Rules, patterns: Rules, arguments: Rules }
const Flag = Schema.optional(Schema.Boolean)
const Texts = Schema.optional(Schema.Array(Schema.String))

const Channel = Schema.Struct({
  type: oneOf("console", "queue", "webhook", "file", "auto", "halt"),
  /** Where a webhook posts to. */
  endpoint: Schema.optional(
    Schema.String.pipe(
      Schema.filter((url) => /^https?:\/\/\S+$/.test(url) || "an endpoint starts with http:// or https://")
    )
  ),
  /** Where a file channel keeps its requests. */
  directory: Schema.optional(Schema.NonEmptyString),
  /** Seconds; zero or less waits for ever. */
  timeout: Schema.optional(Schema.Finite)
}).pipe(
  Schema.filter(({ type, endpoint, directory }) =>
    type === "webhook" && endpoint === undefined
      ? { path: ["endpoint"], message: "a webhook needs an endpoint" }
      : type === "file" && directory === undefined
        ? { path: ["directory"], message: "a file channel needs a directory" }
        : undefined
  )
)

/**
 * The content of a permission file.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PolicySource = Schema.Struct({
  version: Schema.optional(oneOf(1, "1", "1.0")),
  defaultPolicy: Schema.optional(oneOf("allow", "deny", "ask")),
  /** Refusals that hold in every mode, before anybody is asked. */
  guards: Schema.optional(
    Schema.Struct({
      deny: Schema.optional(Schema.Struct(list)),
      sanitize: Schema.optional(
        Schema.Struct({
          metacharacters: Flag,
          dangerousCommands: Schema.optional(
            Schema.Union(
              Schema.Boolean,
              Schema.Struct({ blocked: Texts, allowed: Texts }).annotations({ identifier: "{ blocked?, allowed? }" })
            )
          ),
          pathScope: Schema.optional(
            Schema.Union(
              Schema.Boolean,
              Schema.Struct({ roots: Texts, allowTmp: Flag, allowHome: Flag, blockAbsolute: Flag }).annotations({
                identifier: "{ roots?, allowTmp?, allowHome?, blockAbsolute? }"
              })
            )
          )
        })
      )
    })
  ),
  blacklist: Schema.optional(Schema.Struct(list)),
  /**
   * `readonly`: also every tool that is annotated as reading only. `sandboxed`: also every command that runs in a
   * sandbox.
   */
  whitelist: Schema.optional(Schema.Struct({ ...list, readonly: Flag, sandboxed: Flag })),
  channel: Schema.optional(Channel)
}).annotations({ identifier: "PermissionFile" })
export type PolicySource = typeof PolicySource.Type

/**
 * Where the file says that questions go.
 *
 * @since 0.1.0
 * @category models
 */
export type Channel = typeof Channel.Type

/**
 * A problem at one place of a file.
 *
 * @since 0.1.0
 * @category models
 */
export interface Problem {
  /** Such as `$.whitelist.tools[0]`. */
  readonly path: string
  readonly message: string
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** One file with the meaning of both. */
export const merge = (user: PolicySource, workspace: PolicySource, trusted: boolean): PolicySource => {
  const channel = (trusted ? workspace.channel : undefined) ?? user.channel
  return {
    version: 1,
    defaultPolicy: defaultOf(user.defaultPolicy, workspace.defaultPolicy, trusted),
    guards: {
      deny: rules(user.guards?.deny, workspace.guards?.deny),
      sanitize: {
        metacharacters:
          user.guards?.sanitize?.metacharacters === true || workspace.guards?.sanitize?.metacharacters === true,
        dangerousCommands: programs(
          user.guards?.sanitize?.dangerousCommands,
          workspace.guards?.sanitize?.dangerousCommands
        ),
        pathScope: scope(user.guards?.sanitize?.pathScope, workspace.guards?.sanitize?.pathScope, trusted)
      }
    },
    blacklist: rules(user.blacklist, workspace.blacklist),
    whitelist: trusted
      ? {
          ...rules(user.whitelist, workspace.whitelist),
          readonly: user.whitelist?.readonly === true || workspace.whitelist?.readonly === true,
          sandboxed: user.whitelist?.sandboxed === true || workspace.whitelist?.sandboxed === true
        }
      : user.whitelist,
    ...(channel === undefined ? {} : { channel })
  }
}

/** Why a pattern that names nothing is refused where things are allowed. */
export const everything =
  'A pattern of wildcards would allow everything; say "defaultPolicy": "allow" if that is meant.'

/** Entries that are well-formed and still cannot be meant. */
export const misread = ({ blacklist, guards, whitelist }: PolicySource): ReadonlyArray<Problem> => [
  ...(whitelist?.patterns ?? []).flatMap((text, i) =>
    CommandPattern.namesNothing(text) ? [{ path: `$.whitelist.patterns[${i}]`, message: everything }] : []
  ),
  ...toolLists({ blacklist, guards, whitelist }).flatMap(({ names, path }) =>
    names.flatMap((name, i) =>
      name.includes("*") && !PermissionRule.isServer(name)
        ? [
            {
              path: `${path}[${i}]`,
              message: `names of tools are exact; a star is read behind mcp__SERVER__ only, and for others "patterns" is the place`
            }
          ]
        : []
    )
  )
]

/** Unknown tool names, in lists that allow and in lists that deny. */
export const unknownTools = (
  source: PolicySource,
  known: ReadonlyArray<string>
): { readonly allowing: ReadonlyArray<Problem>; readonly denying: ReadonlyArray<Problem> } => {
  const names = new Set(known)
  const problems = (lists: ReturnType<typeof toolLists>) =>
    lists.flatMap((list) =>
      list.names.flatMap((name, i) => {
        if (names.has(name) || name.startsWith("mcp__")) return []
        const near = Nearest.of(name, known)
        const hint = near === undefined ? `Tools: ${known.join(", ")}.` : `Did you mean ${near}?`
        return [{ path: `${list.path}[${i}]`, message: `there is no tool ${JSON.stringify(name)}. ${hint}` }]
      })
    )
  const { blacklist, guards, whitelist } = source
  return { allowing: problems(toolLists({ whitelist })), denying: problems(toolLists({ blacklist, guards })) }
}

/** Sentences about the parts of an untrusted workspace's file that have no effect. */
export const ignored = ({ whitelist, defaultPolicy, channel, guards }: PolicySource): ReadonlyArray<string> => {
  const pathScope = guards?.sanitize?.pathScope ?? true
  const milder =
    pathScope === false ||
    (pathScope !== true &&
      (pathScope.allowTmp === true || pathScope.allowHome === true || (pathScope.roots ?? []).length > 0))
  const parts = [
    ...(milder ? ["guards.sanitize.pathScope"] : []),
    ...(whitelist === undefined ? [] : ["whitelist"]),
    ...(defaultPolicy === "allow" ? ["defaultPolicy"] : []),
    ...(channel === undefined ? [] : ["channel"])
  ]
  return parts.length === 0
    ? []
    : [`The workspace is not trusted: ${parts.join(", ")} of its permission file has no effect.`]
}

/** The allowances in a workspace's file, which count only with trust: one line for each rule, as written. */
export const allowances = ({ channel, defaultPolicy, guards, whitelist }: PolicySource): ReadonlyArray<string> => {
  const pathScope = guards?.sanitize?.pathScope
  return [
    ...(defaultPolicy === "allow" ? ["whatever no rule is about (defaultPolicy: allow)"] : []),
    ...(whitelist?.tools ?? []).map((name) => `the tool ${name}, whatever its arguments`),
    ...(whitelist?.patterns ?? []).map((pattern) => `calls like ${pattern}`),
    ...(whitelist?.arguments ?? []).map((words) => `calls with the arguments ${words}`),
    ...(whitelist?.readonly === true ? ["every tool that only reads"] : []),
    ...(whitelist?.sandboxed === true ? ["every command that runs in a sandbox"] : []),
    ...(channel === undefined ? [] : [`questions go to the channel ${JSON.stringify(channel)}`]),
    ...(pathScope === undefined || pathScope === true
      ? []
      : [pathScope === false ? "paths anywhere outside the workspace" : `paths as in ${JSON.stringify(pathScope)}`])
  ]
}

/** The names themselves, as in {@link unknownTools}. */
export const unknownNames = (
  { blacklist, guards, whitelist }: PolicySource,
  known: ReadonlyArray<string>
): { readonly allowing: ReadonlyArray<string>; readonly denying: ReadonlyArray<string> } => {
  const names = new Set(known)
  const unknown = (lists: ReturnType<typeof toolLists>) =>
    lists.flatMap((list) => list.names.filter((name) => !names.has(name) && !name.startsWith("mcp__")))
  return { allowing: unknown(toolLists({ whitelist })), denying: unknown(toolLists({ blacklist, guards })) }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Default = NonNullable<PolicySource["defaultPolicy"]>
type Rules = PolicySource["blacklist"]
type Sanitize = NonNullable<NonNullable<PolicySource["guards"]>["sanitize"]>

const toolLists = ({ blacklist, guards, whitelist }: Pick<PolicySource, "blacklist" | "guards" | "whitelist">) =>
  [
    { path: "$.guards.deny.tools", names: guards?.deny?.tools ?? [] },
    { path: "$.blacklist.tools", names: blacklist?.tools ?? [] },
    { path: "$.whitelist.tools", names: whitelist?.tools ?? [] }
  ] as const

const severity: { readonly [D in Default]: number } = { allow: 0, ask: 1, deny: 2 }

const defaultOf = (user: Default | undefined, workspace: Default | undefined, trusted: boolean): Default => {
  const own = user ?? "ask"
  if (workspace === undefined) return own
  return trusted || severity[workspace] > severity[own] ? workspace : own
}

const union = (a: ReadonlyArray<string> | undefined, b: ReadonlyArray<string> | undefined): ReadonlyArray<string> => [
  ...new Set([...(a ?? []), ...(b ?? [])])
]

const both = (a: ReadonlyArray<string> | undefined, b: ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  (a ?? []).filter((item) => b?.includes(item) === true)

const rules = (a: Rules, b: Rules) => ({
  tools: union(a?.tools, b?.tools),
  patterns: union(a?.patterns, b?.patterns),
  arguments: union(a?.arguments, b?.arguments)
})

// An exception counts only when both files make it; a program that one file blocks by name stays blocked.
const programs = (
  a: Sanitize["dangerousCommands"],
  b: Sanitize["dangerousCommands"]
): Sanitize["dangerousCommands"] => {
  if (a === undefined || a === false) return b ?? a
  if (b === undefined || b === false) return a
  const [x, y] = [a === true ? {} : a, b === true ? {} : b]
  return { blocked: union(x.blocked, y.blocked), allowed: both(x.allowed, y.allowed) }
}

// A scope that no file mentions is on. A trusted workspace may widen what its user left unset, not what the user set.
const scope = (
  user: Sanitize["pathScope"],
  workspace: Sanitize["pathScope"],
  trusted: boolean
): Sanitize["pathScope"] => {
  if (workspace === undefined) return user
  if (user === undefined && trusted) return workspace
  const [a, b] = [user ?? true, workspace]
  if (a === false) return b
  if (b === false) return a
  const [x, y] = [a === true ? {} : a, b === true ? {} : b]
  return {
    roots: both(x.roots, y.roots),
    allowTmp: x.allowTmp === true && y.allowTmp === true,
    allowHome: x.allowHome === true && y.allowHome === true,
    blockAbsolute: x.blockAbsolute === true || y.blockAbsolute === true
  }
}
