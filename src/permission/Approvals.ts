/**
 * Rules that reserve calls: for several people, for those in a role, or just for a person. They stand directly behind the
 * guards, and nothing else satisfies them.
 *
 * A rule is read as those that deny: what may be meant is enough, also where it cannot be told what a command runs.
 */
import type * as Interaction from "../interaction/Interaction.js"
import * as Principal from "../interaction/Principal.js"
import * as PermissionRule from "./PermissionRule.js"
import type { PolicySource } from "./PolicySource.js"

/** A rule that is ready to be evaluated. */
export interface Approval {
  readonly rules: PermissionRule.Compiled
  readonly need: Omit<Interaction.Need, "rule">
}

/** Rules for the calls of one agent; absent where no call is reserved. */
export type Approvals = ReadonlyArray<Approval>

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

// A function declaration, because the default policy needs it while the module loads.
export function make({ approvals = [], roles = {} }: Pick<PolicySource, "approvals" | "roles">): Approvals | undefined {
  if (approvals.length === 0) return undefined
  return approvals.map(({ arguments: words, deny = "one", patterns, quorum = 1, roles: wanted = [], tools }) => ({
    rules: PermissionRule.compile({ tools: tools ?? [], patterns: patterns ?? [], arguments: words ?? [] }),
    need: {
      quorum,
      roles: wanted,
      members: membersOf(roles, wanted),
      deny
    }
  }))
}

/** The people in these roles; each once. */
export function membersOf(
  roles: NonNullable<PolicySource["roles"]>,
  wanted: ReadonlyArray<string>
): ReadonlyArray<string> {
  const named = Object.entries(roles).flatMap(([role, people]) => (Principal.isAmong(wanted, role) ? people : []))
  return [...new Map(named.map((person) => [Principal.keyOf(person), person])).values()]
}

/** The rules of both. */
export const union = (a: Approvals | undefined, b: Approvals | undefined): Approvals | undefined =>
  a === undefined ? b : b === undefined ? a : [...a, ...b]

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** What the rules demand for a call; nothing where none reserves it. */
export const needsOf = (
  approvals: Approvals,
  subject: PermissionRule.Subject
): readonly [Interaction.Need, ...ReadonlyArray<Interaction.Need>] | undefined => {
  const [first, ...others] = approvals.flatMap(({ need, rules }) => {
    const rule = PermissionRule.denies(rules, subject) ?? doubtful(rules, subject)
    return rule === undefined ? [] : [{ ...need, rule }]
  })
  return first === undefined ? undefined : [first, ...others]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The rules are about commands, and it cannot be told which programs this one runs. */
const doubtful = (rules: PermissionRule.Compiled, subject: PermissionRule.Subject): string | undefined => {
  const { call, doubt, unresolved } = subject
  const isAbout = subject.spoken !== undefined && !subject.confined && PermissionRule.concernsCommands(rules, call)
  const why = doubt ?? (isAbout ? unresolved : undefined)
  return why === undefined ? undefined : `${PermissionRule.describe(rules).join(", ")}: ${why}`
}
