/**
 * A policy tried on decisions of the past: what it would have decided otherwise.
 *
 * An audit keeps of a call's arguments their digest alone. So a rule on names is told for certain, and one on arguments
 * where somebody else still has them and their digest proves it. What depends on more is counted as not told, never
 * guessed: every possible outcome is followed, and one is told when all of them agree.
 */
import { isUndecided, type Decided } from "../audit/AuditRecord.js"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Policy } from "./CompiledPolicy.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as Approvals from "./Approvals.js"
import * as ApprovalWords from "./ApprovalWords.js"
import * as CommandScope from "./CommandScope.js"
import * as NeedWords from "../interaction/NeedWords.js"
import * as PermissionRule from "./PermissionRule.js"
import { PermissionState } from "./PermissionState.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * How a call ends at a policy: it runs, it is refused, or somebody is asked.
 *
 * @since 0.1.0
 * @category models
 */
export type Outcome = "allow" | "deny" | "ask"

/**
 * A decision of the past, as the audit has it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Past extends Decided {
  /**
   * The call's arguments, or what may be them, from elsewhere, such as a journal. Only those with the digest of the record
   * are used: where secrets were masked they are others.
   */
  readonly arguments?: ReadonlyArray<unknown> | undefined
}

/**
 * What a trial knows beside the policy.
 *
 * @since 0.1.0
 * @category models
 */
export interface TrialOptions {
  /** The tools that were called; of others neither traits nor arguments are known. */
  readonly tools?: ToolRegistry.Service | undefined
}

/**
 * Decisions that one rule changes in the same way.
 *
 * @since 0.1.0
 * @category models
 */
export interface Change {
  readonly was: Outcome
  readonly would: Outcome
  /** The rule that would decide, as written, or a sentence. */
  readonly rule: string
  readonly count: number
  /** Of those, the calls that were refused, by a person too: a policy that allows them deserves a look. */
  readonly refused: number
  /** How often each tool was called, most often first. */
  readonly tools: ReadonlyArray<readonly [tool: string, count: number]>
}

/**
 * Decisions about which nothing is told.
 *
 * @since 0.1.0
 * @category models
 */
export interface Untold {
  readonly why: string
  readonly count: number
  readonly tools: ReadonlyArray<readonly [tool: string, count: number]>
}

/**
 * What a policy would have decided.
 *
 * @since 0.1.0
 * @category models
 */
export interface Trial {
  /** Decisions about calls of tools; those about other questions do not count. */
  readonly decisions: number
  readonly same: number
  /** Those that allow what was refused first, then those that concern most calls. */
  readonly changes: ReadonlyArray<Change>
  readonly untold: ReadonlyArray<Untold>
  /** Sentences about what no trial sees. */
  readonly remarks: ReadonlyArray<string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Tries a policy on decisions of the past. Nothing runs, and nobody is asked.
 *
 * @example
 * ```ts
 * import { AuditTrail, Policy } from "assent"
 * import { Effect } from "effect"
 *
 * export const trial = Effect.gen(function* () {
 *   const { decisions } = yield* AuditTrail.AuditMemory
 *   return Policy.simulate(Policy.make({ whitelist: { tools: ["search"] } }), yield* decisions)
 * })
 * ```
 *
 * @since 0.1.0
 * @category operations
 */
export const simulate = (policy: Policy, records: Iterable<Past>, options: TrialOptions = {}): Trial => {
  const tally = new Tally(policy, options)
  for (const record of records) tally.take(record)
  return tally.trial
}

/** As {@link simulate}, one record after the other: a long past need not be in memory. */
export class Tally {
  private readonly changes = new Groups<{ readonly was: Outcome; readonly would: Outcome; readonly rule: string }>()
  private readonly untold = new Groups<{ readonly why: string }>()
  private decisions = 0
  private same = 0

  constructor(
    private readonly policy: Policy,
    private readonly options: TrialOptions
  ) {}

  take(record: Past): void {
    const { outcome, tool } = record
    if (record.class !== "permission" || tool === undefined || isUndecided(outcome)) return
    this.decisions++
    const was = outcomeOf(record)
    if (typeof was !== "string") return this.untold.add({ why: was.why }, tool, outcome)
    const found = judged(this.policy, record, tool, this.options)
    if ("why" in found) this.untold.add({ why: found.why }, tool, outcome)
    else if (was === found.would) this.same++
    else this.changes.add({ was, would: found.would, rule: found.rule }, tool, outcome)
  }

  get trial(): Trial {
    const { changes, decisions, policy, same, untold } = this
    return {
      decisions,
      same,
      changes: changes.all.sort((a, b) => dangerOf(b) - dangerOf(a) || b.count - a.count),
      untold: untold.all.map(({ count, tools, why }) => ({ count, tools, why })).sort((a, b) => b.count - a.count),
      remarks: remarks(policy)
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Told {
  readonly would: Outcome
  readonly rule: string
}

type Found = Told | { readonly why: string }

const noArguments = "its rules look at arguments, and these were not kept, or only with secrets masked"
const noTool = "what is known of the tool decides, and it is not among the tools of today"
const noGuard = "a guard refused it, and guards are not tried"
const noDecision = "it was never decided: the work was cancelled, or its check failed"

const askedMethods: ReadonlySet<string> = new Set(
  "user_approved user_denied user_comment timeout cancelled unavailable no_channel yolo edit_incomplete".split(" ")
)

const dangerOf = ({ refused, would }: Change): number => (would === "allow" ? refused : 0)

/** How it ended then. A person's answer is a question. */
const outcomeOf = ({ method = "", outcome, requestId }: Past): Outcome | { readonly why: string } => {
  if (method === "check_failed" || (method === "cancelled" && requestId === undefined)) return { why: noDecision }
  // Looked at once more after somebody was asked.
  if (method === "guard") return "deny"
  if (requestId !== undefined || askedMethods.has(method)) return "ask"
  return outcome === "granted" ? "allow" : "deny"
}

const judged = (policy: Policy, record: Past, tool: string, { tools }: TrialOptions): Found => {
  const { method = "", reason = "" } = record
  // Decided before any policy is looked at.
  if (method === "pre_validation") return { would: "deny", rule: reason }
  const entry = tools?.get(tool)
  const call = new Call(policy, tool, entry, entry === undefined ? undefined : argumentsOf(record))
  const hard = call.deniedBy(policy.deny) ?? call.unsafe
  if (typeof hard === "string") return { would: "deny", rule: hard }
  if (method === "guard" && !reason.startsWith("forbidden by rule ")) return { why: noGuard }
  const reserved = call.reserved
  if (reserved !== undefined && reserved !== maybe) return reservedCall(policy, call, reserved)
  const found = reserved === undefined ? ruled(policy, record, call) : call.unknown
  return hard === undefined || ("would" in found && found.would === "deny") ? found : call.unknown
}

/** Nothing but a list that denies stands beside an approval. */
const reservedCall = (policy: Policy, call: Call, rule: string): Found => {
  const denied = call.deniedBy(policy.blacklist)
  if (denied === undefined) return { would: "ask", rule }
  return denied === maybe ? call.unknown : { would: "deny", rule: denied }
}

/** After the guards. */
const ruled = (policy: Policy, record: Past, call: Call): Found => {
  const { method = "", outcome, reason = "" } = record
  // Before the lists an authority, a suspension or a person's denial for the session decides.
  if (beforeLists.has(method))
    return outcome === "granted" ? call.stillAllowed(reason) : { would: "deny", rule: reason }
  const denied = call.deniedBy(policy.blacklist)
  if (typeof denied === "string") return { would: "deny", rule: denied }
  const found = method === "session_whitelist" ? call.stillAllowed(reason) : call.ruled(record.sandbox)
  return denied === undefined || ("would" in found && found.would === "deny") ? found : call.unknown
}

const beforeLists: ReadonlySet<string> = new Set(
  "stage_grant envelope turn_suspension idle_suspension allow_all session_blacklist".split(" ")
)

/** Those that the audit's digest proves. */
const argumentsOf = ({ argsDigest, arguments: candidates = [] }: Past): { readonly value: unknown } | undefined => {
  if (argsDigest === undefined) return undefined
  for (const value of [...candidates, {}]) {
    try {
      if (Digest.digest(value) === argsDigest) return { value }
    } catch {
      // What has no JSON has no digest, and was no call's.
    }
  }
  return undefined
}

/** One call under a policy. A rule, nothing for none, or `maybe` where the arguments would be needed. */
class Call {
  private readonly subject: PermissionRule.Subject | undefined

  constructor(
    private readonly policy: Policy,
    private readonly tool: string,
    private readonly entry: ToolRegistry.Entry | undefined,
    params: { readonly value: unknown } | undefined
  ) {
    this.subject =
      params === undefined || entry === undefined ? undefined : CompiledPolicy.subject(policy, entry, params.value)
  }

  get unknown(): Found {
    return { why: this.entry === undefined ? noTool : noArguments }
  }

  deniedBy(rules: PermissionRule.Compiled): string | typeof maybe | undefined {
    if (this.subject !== undefined) return PermissionRule.denies(rules, this.subject)
    return PermissionRule.named(rules, this.tool) ?? (this.mayMean(rules) ? maybe : undefined)
  }

  /** What the policy's approvals demand. */
  get reserved(): string | typeof maybe | undefined {
    const { policy, subject, tool } = this
    const { approvals } = policy
    if (approvals === undefined) return undefined
    if (subject !== undefined) {
      const needs = Approvals.needsOf(approvals, subject)
      return needs && ApprovalWords.describe(needs)
    }
    const named = approvals.find(({ rules }) => PermissionRule.named(rules, tool) !== undefined)
    if (named !== undefined) return NeedWords.describe(named.need)
    return approvals.some(({ rules }) => this.mayMean(rules)) ? maybe : undefined
  }

  /** What the sanitizer says of the command alone. */
  get unsafe(): string | typeof maybe | undefined {
    const { dangerousCommands, metacharacters } = this.policy.sanitize
    if (!metacharacters && dangerousCommands === false) return undefined
    if (this.subject === undefined) return this.isCommand ? maybe : undefined
    const found = CommandScope.violations(this.subject, this.policy.sanitize)
    return found.length === 0 ? undefined : CommandScope.reason(found)
  }

  /** What people allowed holds, unless it cannot be told what a command runs: then its very text may be covered. */
  stillAllowed(rule: string): Found {
    const { policy, subject } = this
    if (subject === undefined) return this.mayBeDoubted ? this.unknown : { would: "allow", rule }
    return new PermissionState().doubt(policy, subject) === undefined ? { would: "allow", rule } : { why: noReading }
  }

  /** After the lists that deny. `ran` is how its command ran, if it did. */
  ruled(ran: string | undefined): Found {
    const { entry, policy, subject } = this
    const isOpen = policy.whitelistSandboxed && entry?.sandboxed === true && ran === undefined
    if (subject === undefined || entry === undefined) return this.byName(isOpen, ran === "confined")
    const { autoApproved, readonly } = entry
    const decide = (confined: boolean): Told => {
      const traits = { autoApproved, readonly, confined }
      const { decision, rule } = new PermissionState().evaluate(policy, subject, traits, anySession)
      return { would: decision, rule }
    }
    const found = decide(ran === "confined")
    return isOpen && decide(true).would !== found.would ? { why: noSandbox } : found
  }

  /** Commands that a rule may deny are not told at all: see `judged` and `ruled`. */
  private byName(isOpen: boolean, confined: boolean): Found {
    const { entry, policy } = this
    const named = PermissionRule.named(policy.whitelist, this.tool)
    if (named !== undefined) return { would: "allow", rule: named }
    if (policy.defaultPolicy === "allow") return byDefault("allow")
    if (this.mayMean(policy.whitelist)) return this.unknown
    if (entry === undefined) return { why: noTool }
    if (entry.autoApproved) return { would: "allow", rule: "the tool asks nobody" }
    if (policy.whitelistSandboxed && confined) return { would: "allow", rule: "commands that run in a sandbox" }
    if (isOpen) return { why: noSandbox }
    if (policy.whitelistReadonly && this.isCommand) return this.unknown
    if (policy.whitelistReadonly && entry.readonly) return { would: "allow", rule: "tools that only read" }
    return byDefault(policy.defaultPolicy)
  }

  /** Of a tool that is not known, nobody can tell. */
  private get isCommand(): boolean {
    return this.entry === undefined || this.entry.shellCommand !== undefined
  }

  private get mayBeDoubted(): boolean {
    const { blacklist, deny, sanitize } = this.policy
    if (!this.isCommand) return false
    const isSanitized = sanitize.metacharacters || sanitize.dangerousCommands !== false
    return isSanitized || this.concernsCommands(deny) || this.concernsCommands(blacklist)
  }

  private concernsCommands(rules: PermissionRule.Compiled): boolean {
    const { entry, tool } = this
    return entry === undefined
      ? !rules.namesOnly
      : PermissionRule.concernsCommands(rules, { commandField: entry.shellCommand, takes: entry.tool, tool })
  }

  /** Some rule may be about a call of this tool, whatever its arguments. */
  private mayMean({ arguments: words, patterns }: PermissionRule.Compiled): boolean {
    if (words.length > 0) return true
    if (this.isCommand) return patterns.length > 0
    // The text of its calls is its name, and its arguments in parentheses.
    const start = `${this.tool}(`
    return patterns.some(({ glob: { head } }) => start.startsWith(head) || head.startsWith(start))
  }
}

const maybe = Symbol("assent/permission/PolicyTrial/maybe")
const anySession = Origin.outside.sessionId
const noReading = "what its command runs cannot be told, and what people had allowed may cover its very text"
const noSandbox = "it depends on whether the command would have run in a sandbox"

const byDefault = (would: Outcome): Told => ({ would, rule: `the default is ${would}` })

const remarks = ({ sanitize }: Policy): ReadonlyArray<string> => [
  ...(sanitize.pathScope === false
    ? []
    : [
        "The path scope was not tried: it looks at files, which may have changed. Paths were taken as they counted then."
      ]),
  "Guards were not tried, nor the questions that they want of their own; a call that they refused stays refused.",
  "What people allowed or denied for a session counts where it decided then, and nowhere else."
]

/** Counts decisions alike, by what they have in common. */
class Groups<Key> {
  private readonly found = new Map<
    string,
    { readonly key: Key; count: number; refused: number; tools: Map<string, number> }
  >()

  add(key: Key, tool: string, outcome: Past["outcome"]): void {
    const name = JSON.stringify(key)
    const group = this.found.get(name) ?? { key, count: 0, refused: 0, tools: new Map<string, number>() }
    group.count++
    if (outcome === "denied") group.refused++
    group.tools.set(tool, (group.tools.get(tool) ?? 0) + 1)
    this.found.set(name, group)
  }

  get all() {
    return Array.from(this.found.values(), ({ count, key, refused, tools }) => ({
      ...key,
      count,
      refused,
      tools: [...tools].sort(([, a], [, b]) => b - a)
    }))
  }
}
