/**
 * What a policy, guards and profiles say about tools that a runtime has not got. It has no effect, and the log says so once
 * for each runtime: a policy may be shared by several toolkits. A pattern that can match no call of a tool that there is
 * cannot be meant, and refuses the policy.
 *
 * All tools are known when a runtime is made: its children have some of them, never others. Only those of MCP servers come
 * later, and nothing is said of names that begin as theirs. A pattern may mean a command, or an argument where it denies;
 * what is told is that a name which it spells out, or begins with, is no tool's.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Glob from "../core/Glob.js"
import * as Nearest from "../core/Nearest.js"
import type { Redactor } from "../core/Redaction.js"
import * as CompiledPolicy from "../permission/CompiledPolicy.js"
import * as Guard from "../permission/Guard.js"
import * as PatternFit from "../permission/PatternFit.js"
import * as PermissionRule from "../permission/PermissionRule.js"
import * as PolicyRemarks from "../permission/PolicyRemarks.js"
import type * as PolicySource from "../permission/PolicySource.js"
import type { ProjectRules } from "../permission/ProjectRules.js"
import * as SessionRule from "../permission/SessionRule.js"
import * as DefaultProfiles from "../subagent/DefaultProfiles.js"
import type { SubagentProfile } from "../subagent/SubagentProfile.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"

/** What may name tools. */
export interface Rules {
  readonly policy?: CompiledPolicy.Policy | undefined
  readonly guards?: ReadonlyArray<Guard.Guard> | undefined
  readonly profiles?: Iterable<SubagentProfile> | undefined
  /** The tools and groups that subagents without a profile may have. */
  readonly inline?: ReadonlyArray<string> | undefined
  /** What a resumed session allows and denies, by answers such as `always`. Its tools may have changed since. */
  readonly remembered?: { readonly allow: ReadonlyArray<string>; readonly deny: ReadonlyArray<string> } | undefined
}

/** One sentence for each place. */
export const of = (
  tools: ToolRegistry.Service,
  { guards = [], inline = [], policy, profiles = [], remembered }: Rules
): ReadonlyArray<string> => [
  ...(policy === undefined ? [] : inPolicy(policy, tools)),
  ...guards.flatMap((guard, i) => {
    const tool = Guard.toolOf(guard)
    return tool === undefined || tools.get(tool) !== undefined || isLate(tool)
      ? []
      : [`guards[${i}]: ${missing(tool, namesOf(tools))}`]
  }),
  ...Array.from(profiles).flatMap((profile) => inProfile(profile, tools)),
  ...unknownGroups(inline, tools).map(({ at, problem }) => `subagents.inline.plugins[${at}]: ${problem}`),
  ...(remembered === undefined ? [] : inSession(remembered, tools)),
  ...inProject(policy?.project, tools)
]

/** Patterns that can match no call, unless a file allows them. */
const invalid = (
  { files, source }: CompiledPolicy.Policy,
  tools: ToolRegistry.Service
): ReadonlyArray<PolicySource.Problem> =>
  partsOf({ files, source }).flatMap(({ at, source }) => {
    const { allowing, denying } = unmatchable(source, tools)
    const problems = files.length === 0 ? [...denying, ...allowing] : denying
    return problems.map(({ message, path }) => ({ path: at(path), message }))
  })

/** Fails for a policy that cannot be meant. Writes to the log what else was not written yet for these tools. */
export const check = (
  tools: ToolRegistry.Service,
  whose: string,
  rules: Rules,
  { text }: Pick<Redactor, "text">
): Effect.Effect<void, CompiledPolicy.PolicyInvalid> =>
  Effect.suspend(() => {
    const problems = rules.policy === undefined ? [] : invalid(rules.policy, tools)
    if (problems.length > 0) {
      const masked = problems.map(({ message, path }) => ({ path, message: text(message) }))
      return new CompiledPolicy.PolicyInvalid({ by: whose, problems: masked })
    }
    const told = known.get(tools) ?? new Set<string>()
    known.set(tools, told)
    const news = of(tools, rules).filter((sentence) => !told.has(sentence))
    if (news.length === 0 || told.size > most) return Effect.void
    for (const sentence of news) told.add(sentence)
    const lines = news.map((sentence) => `  ${text(sentence)}`)
    return Effect.logWarning([`Rules of ${whose} do not do what they seem to:`, ...lines].join("\n"))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const known = new WeakMap<ToolRegistry.Service, Set<string>>()

/** Sentences for one runtime. Agents may have policies from anywhere, each with mistakes of its own. */
const most = 1000

const namesOf = (tools: ToolRegistry.Service): ReadonlyArray<string> => tools.entries.map(({ name }) => name)

/** Servers list their tools later. */
const isLate = (name: string): boolean => name.startsWith("mcp__") || name.startsWith("mcp:")

const meant = (near: string | undefined, known: ReadonlyArray<string>): string =>
  near === undefined ? `Tools: ${known.length === 0 ? "none" : known.join(", ")}.` : `Did you mean ${near}?`

const missing = (name: string, known: ReadonlyArray<string>, what = "tool"): string =>
  `there is no ${what} ${JSON.stringify(name)}. ${meant(Nearest.of(name, known), known)}`

/** A policy that was made in code, or each of its files. */
const partsOf = ({ files, source }: Pick<CompiledPolicy.Policy, "files" | "source">) =>
  files.length === 0
    ? [{ at: (path: string) => path.replace("$", "policy"), source }]
    : files.map(({ path: file, source }) => ({ at: (path: string) => `${file}: ${path}`, source }))

const unmatchable = (source: PolicySource.PolicySource, tools: ToolRegistry.Service): PolicyRemarks.ByVerb =>
  PolicyRemarks.unmatchable(
    source,
    tools.entries.map(({ tool }) => tool)
  )

const inPolicy = ({ files, source }: CompiledPolicy.Policy, tools: ToolRegistry.Service): ReadonlyArray<string> => {
  const inCode = files.length === 0
  // What a file allows may be for another program, and whoever reads it is told the rest: see `PolicyFile`.
  return partsOf({ files, source }).flatMap(({ at, source }) => {
    const misread = inCode ? PolicyRemarks.misread(source) : []
    const { allowing, denying } = PolicyRemarks.unknownTools(source, namesOf(tools))
    const unknown = inCode ? [...denying, ...allowing] : denying
    const seen = new Set(misread.map(({ path }) => path))
    const patterns = PolicyRemarks.patternsIn(source).flatMap(({ allows, path, text }) => {
      const problem = inCode || !allows ? unfit(text, allows, tools) : undefined
      return problem === undefined ? [] : [{ path, message: problem }]
    })
    const allowed = inCode ? [] : unmatchable(source, tools).allowing
    return [...misread, ...unknown.filter(({ path }) => !seen.has(path)), ...patterns, ...allowed].map(
      ({ message, path }) => `${at(path)}: ${message}`
    )
  })
}

/** A name with stars, alone or before arguments. */
const named = /^[A-Za-z_][\w*?-]*(?=\(|$)/

/** Why a pattern is about no tool, where that is certain. */
const unfit = (pattern: string, allows: boolean, tools: ToolRegistry.Service): string | undefined => {
  const text = pattern.trim()
  const name = named.exec(text)?.[0]
  // What names a tool exactly was looked at with the names.
  if (name === undefined || PermissionRule.toolIn(text) !== undefined) return undefined
  const names = namesOf(tools)
  const { head } = Glob.compile(text)
  // A star stands for anything, also for what is behind a tool's name.
  if ([...names, "mcp__"].some((tool) => `${tool}(`.startsWith(head)) || isLate(head)) return undefined
  if (names.some((tool) => head.startsWith(`${tool}(`))) return undefined
  const stem = Glob.compile(name).head
  const isCall = name.length < text.length
  if (!isCall && tools.entries.some(({ shellCommand }) => shellCommand !== undefined)) return undefined
  const near = stem.length < 4 ? undefined : Nearest.of(stem, name === stem ? names : beginnings(names, stem.length))
  // Where it denies, a word may be an argument's: only what looks like a tool's name is told.
  if (!isCall && !allows && near === undefined && !stem.includes("_")) return undefined
  return `it fits no tool: ${JSON.stringify(text)}. ${meant(near === undefined || name === stem ? near : `${near}*`, names)}`
}

const beginnings = (names: ReadonlyArray<string>, length: number): ReadonlyArray<string> =>
  [length, length + 1, length - 1].flatMap((length) => names.map((name) => name.slice(0, length)))

/** Those in files were compared when they were read, and those that we ship are for all kinds of tools. */
const inProfile = (profile: SubagentProfile, tools: ToolRegistry.Service): ReadonlyArray<string> => {
  const { name, pluginConfigs, plugins, source } = profile
  if (source !== "built-in" || DefaultProfiles.all.some((shipped) => shipped.plugins === plugins)) return []
  return [
    ...unknownGroups(plugins ?? [], tools).map(({ at, problem }) => `profile ${name}: plugins[${at}]: ${problem}`),
    ...unknownGroups(Object.keys(pluginConfigs), tools).map(
      ({ problem }) => `profile ${name}: pluginConfigs: ${problem}`
    )
  ]
}

const inSession = (remembered: NonNullable<Rules["remembered"]>, tools: ToolRegistry.Service): ReadonlyArray<string> =>
  (["allow", "deny"] as const).flatMap((verb) =>
    remembered[verb].flatMap((entry) =>
      Either.match(SessionRule.of(verb, entry, tools), {
        onLeft: ({ message }) => [`the session's ${verb} ${JSON.stringify(entry)}: ${message}`],
        onRight: () => []
      })
    )
  )

/** They may be for another program of the workspace, with other tools. */
const inProject = (project: ProjectRules | undefined, tools: ToolRegistry.Service): ReadonlyArray<string> =>
  Array.from(project?.entries() ?? []).flatMap((entry) => {
    const problem = PatternFit.problem(
      entry,
      "allow",
      tools.entries.map(({ tool }) => tool)
    )
    return problem === undefined ? [] : [`the project's allow ${JSON.stringify(entry)}: ${problem}`]
  })

const unknownGroups = (
  names: ReadonlyArray<string>,
  tools: ToolRegistry.Service
): ReadonlyArray<{ readonly at: number; readonly problem: string }> => {
  const known = ToolRegistry.namesIn(tools)
  return names.flatMap((name, at) =>
    known.has(name) || isLate(name) ? [] : [{ at, problem: missing(name, [...known], "tool or group") }]
  )
}
