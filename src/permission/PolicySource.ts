/**
 * The content of a permission file as data, and how a workspace's file joins the user's.
 *
 * Files are merged before they are compiled, because an absent part differs from its default.
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as Principal from "../interaction/Principal.js"
import * as PermissionRule from "./PermissionRule.js"
import * as SanitizerOptions from "./SanitizerOptions.js"

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

/** A person as a channel names them, or a role. */
const Name = Schema.String.pipe(
  Schema.filter(
    (text) =>
      (Principal.keyOf(text) !== "" && text === text.trim()) || "a name is not empty and has no blanks around it"
  )
)
const Names = Schema.Array(Name)

/** Calls that are reserved: they are asked of several people, of those in a role, or just of a person, and nothing else allows them. */
const Approval = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    ...list,
    /** How many different people have to allow it. Default: 1. */
    quorum: Schema.optional(
      Schema.Int.pipe(
        Schema.between(1, 100, {
          message: () => ({ message: "a quorum is a whole number from 1 to 100", override: true })
        })
      )
    ),
    /** They have one of these roles. Default: anybody. */
    roles: Schema.optional(Schema.NonEmptyArray(Name)),
    /** Whether one of them denies it alone, or as many as have to allow it. Default: one. */
    deny: Schema.optional(oneOf("one", "quorum"))
  }).pipe(
    Schema.filter(({ arguments: words, patterns, tools }) =>
      [words, patterns, tools].some((rules) => rules !== undefined && rules.length > 0)
        ? undefined
        : "an approval needs tools, patterns or arguments, which say which calls it covers"
    )
  )
)

/**
 * Calls that are reserved, and for whom.
 *
 * @since 0.1.0
 * @category models
 */
export type Approval = typeof Approval.Type

const Channel = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
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
    timeout: Schema.optional(Schema.Finite),
    /**
     * For a file channel and a webhook: what an answer says of its author counts, because whoever writes the answers there
     * knows people for themselves.
     */
    vouches: Flag
  }).pipe(
    Schema.filter(({ type, endpoint, directory }) =>
      type === "webhook" && endpoint === undefined
        ? { path: ["endpoint"], message: "a webhook needs an endpoint" }
        : type === "file" && directory === undefined
          ? { path: ["directory"], message: "a file channel needs a directory" }
          : undefined
    )
  )
)

/**
 * The content of a permission file.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PolicySource = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
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
                oneOf("ask", "deny", "off"),
                Schema.Struct({
                  outside: Schema.optional(oneOf("ask", "deny")),
                  roots: Texts,
                  allowTmp: Flag,
                  allowHome: Flag,
                  blockAbsolute: Flag
                }).annotations({ identifier: "{ outside?, roots?, allowTmp?, allowHome?, blockAbsolute? }" })
              )
            )
          })
        )
      })
    ),
    /** `paths`: globs from the workspace's root. No tool and no confined command touches what they match. */
    blacklist: Schema.optional(Schema.Struct({ ...list, paths: Rules })),
    /**
     * `readonly`: also every tool that is annotated as reading only. `sandboxed`: also commands that run in a sandbox:
     * those that only read and stay in the workspace (`reading`, the default), all (`true`) or none (`false`).
     */
    whitelist: Schema.optional(
      Schema.Struct({
        ...list,
        readonly: Flag,
        sandboxed: Schema.optional(Schema.Union(Schema.Boolean, oneOf("reading")))
      })
    ),
    approvals: Schema.optional(Schema.Array(Approval)),
    /** Who has a role that `approvals` name: people as channels name them. */
    roles: Schema.optional(Schema.Record({ key: Name, value: Names })),
    /** What a model may allow too, where one is asked: see `Interactors.byModel`. */
    delegated: Schema.optional(Schema.Struct(list)),
    channel: Schema.optional(Channel)
  }).annotations({ identifier: "PermissionFile" })
)
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
  // Who decides is the person's own business: a workspace adds roles that the person has not filled, once it is trusted.
  const isFilling = trusted && workspace.roles !== undefined
  const roles = isFilling ? { ...unfilled(workspace.roles, user.roles), ...user.roles } : user.roles
  const approvals = [...(user.approvals ?? []), ...(workspace.approvals ?? [])]
  const delegated = trusted ? rules(user.delegated, workspace.delegated) : user.delegated
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
    blacklist: {
      ...rules(user.blacklist, workspace.blacklist),
      paths: union(user.blacklist?.paths, workspace.blacklist?.paths)
    },
    whitelist: trusted
      ? {
          ...rules(user.whitelist, workspace.whitelist),
          readonly: user.whitelist?.readonly === true || workspace.whitelist?.readonly === true,
          sandboxed: user.whitelist?.sandboxed ?? workspace.whitelist?.sandboxed
        }
      : user.whitelist,
    ...(approvals.length === 0 ? {} : { approvals }),
    ...(roles === undefined ? {} : { roles }),
    ...(delegated === undefined ? {} : { delegated }),
    ...(channel === undefined ? {} : { channel })
  }
}

/** What cannot be meant by the approvals of a policy that is made in code: types do not see it, and no file is decoded. */
export const approvalProblems = (approvals: ReadonlyArray<Approval>): ReadonlyArray<string> =>
  approvals.flatMap((approval, i) =>
    Either.match(decodeApproval(approval), {
      onLeft: (error) => ParseResult.ArrayFormatter.formatErrorSync(error).map((issue) => said(i, issue)),
      onRight: () => []
    })
  )

/** Why a pattern that names nothing is refused where things are allowed. */
export const everything =
  'A pattern of wildcards would allow everything. If you mean that, write "defaultPolicy": "allow".'

/** Sentences about the parts of an untrusted workspace's file that have no effect. */
export const ignored = ({
  channel,
  defaultPolicy,
  delegated,
  guards,
  roles,
  whitelist
}: PolicySource): ReadonlyArray<string> => {
  const pathScope = SanitizerOptions.scopeOf(guards?.sanitize?.pathScope ?? "ask")
  const milder = pathScope === undefined || pathScope.allowHome === true || (pathScope.roots ?? []).length > 0
  const parts = [
    ...(milder ? ["guards.sanitize.pathScope"] : []),
    ...(whitelist === undefined ? [] : ["whitelist"]),
    ...(defaultPolicy === "allow" ? ["defaultPolicy"] : []),
    ...(roles === undefined ? [] : ["roles"]),
    ...(delegated === undefined ? [] : ["delegated"]),
    ...(channel === undefined ? [] : ["channel"])
  ]
  return parts.length === 0
    ? []
    : [`The workspace is not trusted: ${parts.join(", ")} of its permission file has no effect.`]
}

/** The allowances in a workspace's file, which count only with trust: one line for each rule, as written. */
export const allowances = ({
  channel,
  defaultPolicy,
  delegated,
  guards,
  roles,
  whitelist
}: PolicySource): ReadonlyArray<string> => {
  const pathScope = guards?.sanitize?.pathScope
  return [
    ...(defaultPolicy === "allow" ? ["every call that no rule decides (defaultPolicy: allow)"] : []),
    ...(whitelist?.tools ?? []).map((name) => `the tool ${name}, with any arguments`),
    ...(whitelist?.patterns ?? []).map((pattern) => `calls like ${pattern}`),
    ...(whitelist?.arguments ?? []).map((words) => `calls with the arguments ${words}`),
    ...(whitelist?.readonly === true ? ["every tool that only reads"] : []),
    ...(whitelist?.sandboxed === true ? ["every command that runs in a sandbox"] : []),
    ...Object.entries(roles ?? {}).map(([role, people]) => `the role ${role} is that of ${people.join(", ")}`),
    ...(delegated?.tools ?? []).map((name) => `a model may allow the tool ${name}`),
    ...(delegated?.patterns ?? []).map((pattern) => `a model may allow calls like ${pattern}`),
    ...(delegated?.arguments ?? []).map((words) => `a model may allow calls with the arguments ${words}`),
    ...(channel === undefined ? [] : [`questions go to the channel ${JSON.stringify(channel)}`]),
    ...(typeof pathScope === "object"
      ? [`paths as in ${JSON.stringify(pathScope)}`]
      : pathScope === false || pathScope === "off"
        ? ["paths anywhere outside the workspace"]
        : [])
  ]
}

/** What a workspace's file denies or reserves, which counts without trust: one line for each rule, as written. */
export const denials = ({ approvals, blacklist, defaultPolicy, guards }: PolicySource): ReadonlyArray<string> => {
  const sanitize = guards?.sanitize
  return [
    ...(defaultPolicy === "deny" ? ["every call that no rule decides (defaultPolicy: deny)"] : []),
    ...[guards?.deny, blacklist].flatMap((lists) => [
      ...(lists?.tools ?? []).map((name) => `the tool ${name}`),
      ...(lists?.patterns ?? []).map((pattern) => `calls like ${pattern}`),
      ...(lists?.arguments ?? []).map((words) => `calls with the arguments ${words}`)
    ]),
    ...(blacklist?.paths ?? []).map((glob) => `the path ${glob}`),
    ...(approvals ?? []).map((approval) => `what is reserved by ${JSON.stringify(approval)}`),
    ...(sanitize?.metacharacters === true ? ["metacharacters of a shell"] : []),
    ...(sanitize?.dangerousCommands === undefined || sanitize.dangerousCommands === false
      ? []
      : [`dangerous commands (${JSON.stringify(sanitize.dangerousCommands)})`])
  ]
}

/** Names of tools that there are not, in lists that allow and in lists that deny; `PolicyRemarks` has sentences about them. */
export const unknownNames = (
  source: PolicySource,
  known: ReadonlyArray<string>
): { readonly allowing: ReadonlyArray<string>; readonly denying: ReadonlyArray<string> } => {
  const { allowing, denying } = unknown(source, known)
  return { allowing: allowing.map(({ name }) => name), denying: denying.map(({ name }) => name) }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decodeApproval = Lazy.make(() => Schema.decodeUnknownEither(Approval, { onExcessProperty: "error" }))

const said = (index: number, { message, path }: ParseResult.ArrayFormatterIssue): string =>
  `${["approvals", index, ...path].join(".")}: ${message}`

/** A role is the same in every spelling. */
const unfilled = (added: PolicySource["roles"] = {}, filled: PolicySource["roles"] = {}): PolicySource["roles"] =>
  Object.fromEntries(Object.entries(added).filter(([role]) => !Principal.isAmong(Object.keys(filled), role)))

type Default = NonNullable<PolicySource["defaultPolicy"]>
type Rules = PolicySource["delegated"]
type Sanitize = NonNullable<NonNullable<PolicySource["guards"]>["sanitize"]>

type Lists = Pick<PolicySource, "approvals" | "blacklist" | "delegated" | "guards" | "whitelist">

export const allowingOf = ({ delegated, whitelist }: Lists): Lists => ({ delegated, whitelist })

/** A misspelt name in one of these leaves a tool open, so it is an error. */
export const denyingOf = ({ approvals, blacklist, guards }: Lists): Lists => ({ approvals, blacklist, guards })

/** A tool that a policy names, and where. */
export interface Named {
  readonly path: string
  readonly name: string
}

export const lists = ({ approvals, blacklist, delegated, guards, whitelist }: Lists) => [
  { path: "$.guards.deny", rules: guards?.deny },
  { path: "$.blacklist", rules: blacklist },
  ...(approvals ?? []).map((rules, i) => ({ path: `$.approvals[${i}]`, rules })),
  { path: "$.whitelist", rules: whitelist },
  { path: "$.delegated", rules: delegated }
]

export const named = (source: Lists): ReadonlyArray<Named> =>
  lists(source).flatMap(({ path, rules }) =>
    (rules?.tools ?? []).map((name, i) => ({ path: `${path}.tools[${i}]`, name }))
  )

/** Patterns over the calls of one tool, `pay(amount=*)`, name it as well. */
const namedInPatterns = (source: Lists): ReadonlyArray<Named> =>
  lists(source).flatMap(({ path, rules }) =>
    (rules?.patterns ?? []).flatMap((text, i) => {
      const name = PermissionRule.toolIn(text)
      return name === undefined ? [] : [{ path: `${path}.patterns[${i}]`, name }]
    })
  )

export const unknown = (source: PolicySource, known: ReadonlyArray<string>) => {
  const names = new Set(known)
  const strange = (lists: Lists) =>
    [...named(lists), ...namedInPatterns(lists)].filter(({ name }) => !names.has(name) && !name.startsWith("mcp__"))
  return { allowing: strange(allowingOf(source)), denying: strange(denyingOf(source)) }
}

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
  const [x, y] = [SanitizerOptions.scopeOf(user ?? "ask"), SanitizerOptions.scopeOf(workspace)]
  if (x === undefined) return workspace
  if (y === undefined) return user ?? "ask"
  return {
    outside: x.outside === "deny" || y.outside === "deny" ? "deny" : "ask",
    roots: both(x.roots, y.roots),
    allowTmp: x.allowTmp !== false && y.allowTmp !== false,
    allowHome: x.allowHome === true && y.allowHome === true,
    blockAbsolute: x.blockAbsolute === true || y.blockAbsolute === true
  }
}
