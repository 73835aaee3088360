/** What in the rules of a policy is probably not meant, by its place. Loaded where somebody is told. */
import type * as Tool from "@effect/ai/Tool"
import * as DeniedPaths from "../core/DeniedPaths.js"
import * as Nearest from "../core/Nearest.js"
import * as CommandText from "../shell/CommandText.js"
import * as PatternFit from "./PatternFit.js"
import * as PermissionRule from "./PermissionRule.js"
import * as PolicySource from "./PolicySource.js"

/** Entries that are well-formed and still cannot be meant. */
export const misread = (source: PolicySource.PolicySource): ReadonlyArray<PolicySource.Problem> => [
  ...(["whitelist", "delegated"] as const).flatMap((part) =>
    (source[part]?.patterns ?? []).flatMap((text, i) =>
      CommandText.namesNothing(text) ? [{ path: `$.${part}.patterns[${i}]`, message: PolicySource.everything }] : []
    )
  ),
  ...unmeant(source),
  ...PolicySource.named(source).flatMap(({ name, path }) =>
    name.includes("*") && !PermissionRule.isServer(name)
      ? [
          {
            path,
            message: `names of tools are exact; a star counts behind mcp__SERVER__ only. Use "patterns" for other stars`
          }
        ]
      : []
  )
]

/** Problems in lists that allow and in lists that deny. */
export interface ByVerb {
  readonly allowing: ReadonlyArray<PolicySource.Problem>
  readonly denying: ReadonlyArray<PolicySource.Problem>
}

/** Names of tools that there are not, in lists that allow and in lists that deny. */
export const unknownTools = (source: PolicySource.PolicySource, known: ReadonlyArray<string>): ByVerb => {
  const { allowing, denying } = PolicySource.unknown(source, known)
  const problem = ({ name, path }: PolicySource.Named): PolicySource.Problem => {
    const near = Nearest.of(name, known)
    const hint = near === undefined ? `Tools: ${known.join(", ")}.` : `Did you mean ${near}?`
    return { path, message: `there is no tool ${JSON.stringify(name)}. ${hint}` }
  }
  return { allowing: allowing.map(problem), denying: denying.map(problem) }
}

/** Patterns that can match no call of these tools. */
export const unmatchable = (source: PolicySource.PolicySource, tools: ReadonlyArray<Tool.Any>): ByVerb => {
  const found = (verb: "allow" | "deny") =>
    patternsIn(source).flatMap(({ allows, path, text }) => {
      const message =
        allows !== (verb === "allow")
          ? undefined
          : (PatternFit.problem(text, verb, tools) ?? (allows ? undefined : PatternFit.bare(text, tools)))
      return message === undefined ? [] : [{ path, message }]
    })
  return { allowing: found("allow"), denying: [...unmeant(source), ...found("deny")] }
}

/** The rules of a policy that are patterns, and which way each is read. */
export const patternsIn = (
  source: PolicySource.PolicySource
): ReadonlyArray<{ readonly path: string; readonly text: string; readonly allows: boolean }> =>
  [PolicySource.denyingOf(source), PolicySource.allowingOf(source)].flatMap((part, i) =>
    PolicySource.lists(part).flatMap(({ path, rules }) =>
      (rules?.patterns ?? []).map((text, at) => ({ path: `${path}.patterns[${at}]`, text, allows: i === 1 }))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Denied paths that can match none of a workspace. */
const unmeant = ({ blacklist }: PolicySource.PolicySource): ReadonlyArray<PolicySource.Problem> =>
  (blacklist?.paths ?? []).flatMap((glob, i) => {
    const message = DeniedPaths.problem(glob)
    return message === undefined ? [] : [{ path: `$.blacklist.paths[${i}]`, message }]
  })
