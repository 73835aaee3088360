/**
 * What people decided at prompts for the tree of a root session: remembered entries, suspensions and the mode.
 *
 * `session` and `all` belong to the whole tree; `turn` and `idle` to the session that asked. Plain mutable state,
 * written in synchronous sections only; it ends with the tree.
 *
 * @since 0.1.0
 */
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { SessionId } from "../core/Id.js"
import type { Privileges } from "../core/Origin.js"
import type { Allowing } from "../shell/CommandLine.js"
import type { ApproveAnswer } from "../interaction/Interaction.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import type { ToolDefinition, Written } from "../tool/ToolDefinition.js"
import * as PermissionRule from "./PermissionRule.js"
import type { ProjectRules } from "./ProjectRules.js"
import type * as AgentEvent from "../event/AgentEvent.js"

/**
 * How a session decides about calls. `ask`: Assent asks about calls that no rule decides. `plan`: it only reads, until a person
 * has approved a plan. `deny`: Assent denies what it would ask. `allow`: what no rule covers is allowed; what guards
 * and approvals reserve is asked about.
 *
 * @since 0.1.0
 * @category models
 */
export type Mode = "ask" | "plan" | "deny" | "allow"

/**
 * All of them.
 *
 * @since 0.1.0
 * @category constants
 */
export const modes: readonly [Mode, ...ReadonlyArray<Mode>] = ["ask", "plan", "deny", "allow"]

/**
 * What happens to a call that no rule covers, also beneath plan mode.
 *
 * @since 0.1.0
 * @category models
 */
export type Default = Exclude<Mode, "plan">
/**
 * How long everything is allowed.
 *
 * @since 0.1.0
 * @category models
 */
export type Suspension = "turn" | "idle" | "all"

/**
 * What the rules say about a call.
 *
 * @since 0.1.0
 * @category models
 */
export interface Decision {
  readonly decision: "allow" | "deny" | "ask"
  readonly method: AgentEvent.PermissionMethod
  /** The rule that decided, as written. */
  readonly rule: string
  /**
   * The call would be allowed if it could be told what the command runs. With nobody to ask, this is the reason for the
   * refusal.
   */
  readonly doubt?: string
  /** Which parts of a command some rule allows, and which part none does: a sentence. */
  readonly part?: string
  /**
   * A command is allowed only because it reads: it runs where it can change nothing.
   *
   * @internal
   */
  readonly reading?: true
}

/**
 * Why a rule that denies may mean a call.
 *
 * @since 0.1.0
 * @category models
 */
export interface Doubt {
  /** A sentence for the approver. */
  readonly reason: string
  /** Something forbids commands. Otherwise only files are in reach that run later. */
  readonly forbidden: boolean
}

/**
 * The tool's traits that the evaluation needs beside the call's subject.
 *
 * @since 0.1.0
 * @category models
 */
export interface Traits {
  readonly readonly: boolean
  readonly autoApproved: boolean
}

/**
 * What holds now, for a person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Status {
  readonly mode: Mode
  readonly suspension: Suspension | undefined
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
}

/**
 * The whole state, to be restored elsewhere.
 *
 * @since 0.1.0
 * @category models
 */
export interface Snapshot {
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
  /** The mode, as far as somebody chose one; beneath plan mode the one before. */
  readonly default?: Default | undefined
  /** It is in plan mode. */
  readonly plan?: true | undefined
  /** Digests of the allowed definitions of servers' tools, by name. */
  readonly definitions?: { readonly [tool: string]: string } | undefined
  readonly all: boolean
  /** Sessions that may do everything until their turn ends. */
  readonly turn: ReadonlyArray<SessionId>
  /** Sessions that may do everything until they are idle. */
  readonly idle: ReadonlyArray<SessionId>
  /** True: entries show whether they were remembered or written by a person. Journals of version 0.1 do not show it. */
  readonly told?: true | undefined
}

/**
 * What people decided at prompts of one tree of sessions: remembered calls, suspensions, the mode. It is changed in
 * place, in synchronous steps.
 *
 * @since 0.1.0
 * @category models
 */
export class PermissionState {
  /** Called after every change, in the same step. */
  changed: (() => void) | undefined
  private allowed: Set<string> = empty
  private denied: Set<string> = empty
  /** It is in plan mode. The gate reads it for each call. */
  isPlanning = false
  /** What somebody chose; beneath plan mode what it was before. */
  private chosen: Default | undefined
  /** What it began with. */
  private initial: Default | undefined
  private all = false
  private turn: Set<SessionId> = empty
  private idle: Set<SessionId> = empty
  /** The definitions for which calls were allowed, by the names of tools of servers; of a restored one only the digest. */
  private definitions: ReadonlyMap<string, Allowed> = noDefinitions

  /**
   * Suspension, then session blacklist, blacklist, session whitelist, rules of the project, whitelist, mode,
   * default: the first that decides wins. Guards, grants and envelopes come before; the gate checks them.
   *
   * A suspension, a mode or a tool's name has not looked at the command. If something forbids commands and nothing
   * confines this one, its programs have to be spelled out by rules too, else a person is asked.
   */
  evaluate(
    policy: CompiledPolicy.Policy,
    subject: PermissionRule.Subject,
    traits: Traits,
    sessionId: SessionId
  ): Decision {
    const decision = this.decide(policy, subject, traits, sessionId)
    if (decision.decision !== "allow") return decision
    const doubt = this.doubt(policy, subject)
    if (doubt === undefined) return decision
    if (!this.all) return { decision: "ask", method: "default", rule: doubt.reason, doubt: doubt.reason }
    // Who allowed everything is not asked. What a rule may forbid is not run then.
    return doubt.forbidden ? { decision: "deny", method: "allow_all", rule: doubt.reason } : decision
  }

  /** Why it is unclear whether a denying rule covers this call; `undefined` if it is clear. */
  doubt(policy: CompiledPolicy.Policy, subject: PermissionRule.Subject): Doubt | undefined {
    const { call, command, doubt, spoken } = subject
    const changed = call.definition === undefined ? undefined : this.change(policy, call.definition)
    if (changed !== undefined) return { reason: changed, forbidden: false }
    if (spoken === undefined) return doubt === undefined ? undefined : { reason: doubt, forbidden: true }
    if (subject.confined) return undefined
    const { dangerousCommands } = policy.sanitize
    const forbidden =
      PermissionRule.concernsCommands(policy.deny, call) ||
      PermissionRule.concernsCommands(policy.blacklist, call) ||
      PermissionRule.entriesConcernCommands(this.denied, call) ||
      policy.approvals?.some(({ rules }) => PermissionRule.concernsCommands(rules, call)) === true ||
      policy.paths.entries.length > 0 ||
      dangerousCommands !== false
    if (!forbidden && !CompiledPolicy.isBesideGuarded(policy, subject)) return undefined
    const entries = this.allowing(policy)
    if (PermissionRule.remembersExactly(entries, subject) || PermissionRule.spellsExactly(policy.whitelist, subject))
      return undefined
    const known = PermissionRule.together(subject, { entries, compiled: policy.whitelist, readers: true })
    const [missing = command] = known?.missing ?? []
    if (known?.missing.length === 0) return undefined
    const part = UntrustedJson.echo(missing ?? "")
    const reason = forbidden
      ? (subject.unresolved ??
        `Assent cannot tell what ${part} runs. No sandbox confines it, and rules forbid some commands. To run it unasked, add a rule that allows it.`)
      : `Assent cannot tell what ${part} changes. No sandbox confines it, and it can reach .git or .assent: files there run later.`
    return { reason, forbidden }
  }

  /** A sentence about a tool of a server whose definition differs from the allowed one. */
  private change(policy: CompiledPolicy.Policy, definition: ToolDefinition): string | undefined {
    const { digest, name } = definition
    const known = this.allowedDefinition(policy, name)
    if (known === undefined || known.digest === digest) return undefined
    const since = definition.since("schema" in known ? known : undefined)
    return `The server changed ${name} after it was allowed.${since === "" ? "" : ` ${since}`}`
  }

  private allowedDefinition({ definitions }: CompiledPolicy.Policy, name: string): Allowed | undefined {
    const own = this.definitions.get(name)
    const before = own !== undefined && "schema" in own ? undefined : definitions?.get(name)
    return own === undefined || own.digest === before?.digest ? (before ?? own) : own
  }

  /** From now on permissions for the tool hold for this definition. Unless `again`, the first one stays. */
  noteDefinition(policy: CompiledPolicy.Policy, definition: ToolDefinition, again: boolean): void {
    const { digest, name } = definition
    const known = this.allowedDefinition(policy, name)
    if (known === undefined ? false : known.digest === digest ? this.definitions.has(name) : !again) return
    if (policy.definitions?.get(name)?.digest !== digest) policy.definitions?.note(definition)
    this.definitions = new Map(this.definitions).set(name, definition)
    this.changed?.()
  }

  /** The rule that leaves a call to a model too; nothing if a rule that denies may mean the call. */
  delegation(policy: CompiledPolicy.Policy, subject: PermissionRule.Subject): string | undefined {
    if (policy.delegated === PermissionRule.empty || subject.doubt !== undefined) return undefined
    return PermissionRule.allows(policy.delegated, subject)
  }

  /** The entry that denies a call by name or pattern, in this session's list or the policy's; no default counts. */
  denial(policy: CompiledPolicy.Policy, subject: PermissionRule.Subject): Decision | undefined {
    const sessionDeny = this.sessionDeny(subject)
    if (sessionDeny !== undefined) return { decision: "deny", method: "session_blacklist", rule: sessionDeny }
    const deny = PermissionRule.denies(policy.blacklist, subject)
    return deny === undefined ? undefined : { decision: "deny", method: "blacklist", rule: deny }
  }

  private decide(
    policy: CompiledPolicy.Policy,
    subject: PermissionRule.Subject,
    traits: Traits,
    sessionId: SessionId
  ): Decision {
    // Permissions that end with a turn, or with a time of work, do not cover what goes on after that.
    if (!subject.lasting) {
      if (this.turn.has(sessionId)) return suspended.turn
      if (this.idle.has(sessionId)) return suspended.idle
    }
    if (this.all) return suspended.all
    const denied = this.denial(policy, subject)
    if (denied !== undefined) return denied
    if (this.isReading(policy, subject)) return readingAllowed
    const sessionAllow = this.sessionAllow(subject)
    if (sessionAllow !== undefined) return { decision: "allow", method: "session_whitelist", rule: sessionAllow }
    const project = policy.project === undefined ? undefined : this.projectAllow(policy.project, subject)
    if (project !== undefined) return { decision: "allow", method: "whitelist", rule: `${project} (in this project)` }
    const allow = PermissionRule.allows(policy.whitelist, subject)
    if (allow !== undefined) return { decision: "allow", method: "whitelist", rule: allow }
    if (traits.autoApproved) return autoApproved
    const { confined } = subject
    if (policy.whitelistSandboxed === true && confined) return sandboxedAllowed
    if (policy.whitelistReadonly && subject.command === undefined && traits.readonly) return readonlyAllowed
    const known = PermissionRule.together(subject, {
      entries: this.allowing(policy),
      compiled: policy.whitelist,
      readers: policy.whitelistReadonly || (confined && policy.whitelistSandboxed === "reading")
    })
    const rule = known && PermissionRule.whole(known)
    if (rule !== undefined) return { decision: "allow", method: "whitelist", rule }
    const decision = this.chosen === undefined ? defaults[policy.defaultPolicy] : byMode[this.chosen]
    const { repository } = subject.call
    if (typeof repository === "object" && !confined && decision.decision !== "allow")
      return { ...decision, part: repository.reason }
    return known === undefined || known.allowed.length === 0 || decision.decision === "allow"
      ? decision
      : { ...decision, part: partOf(known) }
  }

  /** A confined command that only reads, and that no rule allows to do more. */
  private isReading(policy: CompiledPolicy.Policy, subject: PermissionRule.Subject): boolean {
    if (subject.spoken === undefined || !subject.confined) return false
    if (policy.whitelistSandboxed !== "reading" && !policy.whitelistReadonly) return false
    return PermissionRule.reads(subject) && (this.isPlanning || !this.spells(policy, subject))
  }

  /** Rules allow the command by its name. A rule about the whole tool does not. */
  private spells(policy: CompiledPolicy.Policy, subject: PermissionRule.Subject): boolean {
    return PermissionRule.spells(subject, this.allowing(policy), policy.whitelist)
  }

  /**
   * What an allowed command may do beside running. `by`: a person who saw this very call, a rule, or an authority that allows
   * whatever a tool is called with.
   *
   * @internal
   */
  privileges(
    policy: CompiledPolicy.Policy,
    subject: PermissionRule.Subject,
    by: "person" | "rule" | "authority",
    reading = false
  ): Privileges | undefined {
    if (subject.spoken === undefined) return undefined
    const readOnly = reading || this.isPlanning
    const isNamed = by === "person" || (by === "rule" && !readOnly && this.spells(policy, subject))
    return { readOnly, git: !readOnly && PermissionRule.isGit(subject, isNamed), askpass: !readOnly && isNamed }
  }

  private allowing({ project }: CompiledPolicy.Policy): ReadonlyArray<string> {
    return project === undefined ? [...this.allowed] : [...this.allowed, ...project.entries()]
  }

  /** All entries of its lists. */
  get entries(): ReadonlyArray<string> {
    return [...this.denied, ...this.allowed]
  }

  /** The decision that allows every call of every agent, while it holds. */
  get blanket(): Decision | undefined {
    return this.all ? suspended.all : undefined
  }

  /** Applies an answer that reaches beyond its call. `key` is the text that `always` and `never` remember. */
  apply(answer: ApproveAnswer, key: string, sessionId: SessionId): void {
    if (answer.decision === "edit") return
    switch (answer.scope) {
      case "session":
        return answer.decision === "allow" ? this.allow(key) : this.deny(key)
      case "turn":
      case "idle":
      case "all":
        return this.suspend(answer.scope, sessionId)
    }
  }

  /** The later entry wins: it is removed from the other list. */
  allow(entry: string): void {
    forget(this.denied, entry)
    this.allowed = having(this.allowed, entry)
    this.changed?.()
  }

  deny(entry: string): void {
    forget(this.allowed, entry)
    this.denied = having(this.denied, entry)
    this.changed?.()
  }

  /** Removes an entry from either list; false if no list has it. */
  remove(entry: string): boolean {
    const isAllowed = this.allowed.delete(entry)
    if (!this.denied.delete(entry) && !isAllowed) return false
    this.changed?.()
    return true
  }

  /** The mode of a new session, and of a resumed one that is to have another than before. */
  begin(mode: Mode): void {
    this.setMode(mode)
    this.initial = this.chosen
  }

  setMode(mode: Mode): void {
    this.isPlanning = mode === "plan"
    if (mode !== "plan") this.chosen = mode
    this.changed?.()
  }

  /** After plan mode it is as before, but asks at least. */
  endPlan(policy: Pick<CompiledPolicy.Policy, "defaultPolicy">): void {
    if (!this.isPlanning) return
    this.setMode((this.chosen ?? policy.defaultPolicy) === "deny" ? "deny" : "ask")
  }

  mode({ defaultPolicy }: Pick<CompiledPolicy.Policy, "defaultPolicy">): Mode {
    return this.isPlanning ? "plan" : (this.chosen ?? defaultPolicy)
  }

  /** True if a person or program chose the mode; false for the policy's default. */
  get isChosen(): boolean {
    return this.isPlanning || this.chosen !== undefined
  }

  /** True if a person or program chose to deny every question. A policy's default covers only calls without a rule. */
  get asksNobody(): boolean {
    return this.chosen === "deny"
  }

  suspend(scope: Suspension, sessionId: SessionId): void {
    if (scope === "all") this.all = true
    else this[scope] = having(this[scope], sessionId)
    this.changed?.()
  }

  /** Ends every suspension. */
  resume(): void {
    this.all = false
    this.turn.clear()
    this.idle.clear()
    this.changed?.()
  }

  /** Forgets the lists, and a mode that was chosen since the beginning; plan mode and suspensions stay. */
  clear(): void {
    this.allowed.clear()
    this.denied.clear()
    if (!this.isPlanning) this.chosen = this.initial
    this.changed?.()
  }

  /** True when a suspension ended. */
  endTurn(sessionId: SessionId): boolean {
    return this.ended(this.turn, sessionId)
  }

  /** True when that ended a suspension. */
  becomeIdle(sessionId: SessionId): boolean {
    return this.ended(this.idle, sessionId)
  }

  status(policy: CompiledPolicy.Policy, sessionId: SessionId): Status {
    return {
      mode: this.mode(policy),
      suspension: this.turn.has(sessionId) ? "turn" : this.idle.has(sessionId) ? "idle" : this.all ? "all" : undefined,
      allow: [...this.allowed],
      deny: [...this.denied]
    }
  }

  /**
   * What is told when something of it has changed. `before`: the mode until then.
   *
   * @internal
   */
  told(policy: CompiledPolicy.Policy, sessionId: SessionId, before?: Mode): AgentEvent.Body {
    const { mode, suspension } = this.status(policy, sessionId)
    return {
      _tag: "PermissionStatusChanged",
      mode,
      ...(before === undefined || before === mode ? {} : { before }),
      ...(suspension === undefined ? {} : { suspension })
    }
  }

  snapshot(): Snapshot {
    return {
      allow: [...this.allowed],
      deny: [...this.denied],
      ...(this.chosen === undefined ? {} : { default: this.chosen }),
      ...(this.isPlanning ? { plan: true as const } : {}),
      ...(this.definitions.size === 0
        ? {}
        : { definitions: Object.fromEntries([...this.definitions].map(([name, { digest }]) => [name, digest])) }),
      all: this.all,
      turn: [...this.turn],
      idle: [...this.idle],
      told: true
    }
  }

  /** Restores a snapshot into a state without entries. It does not restore `allow`: a person must choose that again. */
  restore(snapshot: Snapshot): void {
    for (const entry of snapshot.allow) {
      this.allowed = having(this.allowed, snapshot.told === true ? entry : PermissionRule.ofOlder(entry))
    }
    for (const entry of snapshot.deny) this.denied = having(this.denied, entry)
    for (const sessionId of snapshot.turn) this.turn = having(this.turn, sessionId)
    for (const sessionId of snapshot.idle) this.idle = having(this.idle, sessionId)
    this.chosen = snapshot.default === "allow" ? undefined : snapshot.default
    this.isPlanning = snapshot.plan === true
    if (snapshot.definitions !== undefined)
      this.definitions = new Map(Object.entries(snapshot.definitions).map(([name, digest]) => [name, { digest }]))
    this.all = snapshot.all
  }

  private ended(sessions: Set<SessionId>, sessionId: SessionId): boolean {
    if (!sessions.delete(sessionId)) return false
    this.changed?.()
    return true
  }

  private sessionDeny(subject: PermissionRule.Subject): string | undefined {
    if (this.denied.size === 0) return undefined
    const exactlyAllowed = this.allowed.has(subject.tool)
    for (const entry of this.denied) {
      const match = PermissionRule.entryMatches(entry, subject, "deny")
      // An allowing entry with the tool's exact name lifts patterns on names, never those on signatures.
      if (match !== undefined && !(match === "name" && exactlyAllowed)) return entry
    }
    return undefined
  }

  /** A compound may need entries of both. */
  private projectAllow(rules: ProjectRules, subject: PermissionRule.Subject): string | undefined {
    const entries = rules.entries()
    return entries.size === 0 ? undefined : PermissionRule.entriesAllow([...this.allowed, ...entries], subject)
  }

  private sessionAllow(subject: PermissionRule.Subject): string | undefined {
    return this.allowed.size === 0 ? undefined : PermissionRule.entriesAllow(this.allowed, subject)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Shared by all states without entries, which are nearly all; {@link having} copies before it adds. */
const empty = new Set<never>()

type Allowed = Written | Pick<Written, "digest">

const noDefinitions: ReadonlyMap<string, Allowed> = new Map()

/** Removes the entry, and the remembered program that it is all about. */
const forget = (entries: Set<string>, entry: string): void => {
  if (entries.size === 0) return
  entries.delete(entry)
  entries.delete(PermissionRule.alsoMeant(entry) ?? entry)
}

const having = <A>(entries: Set<A>, entry: A): Set<A> => (entries === empty ? new Set([entry]) : entries.add(entry))

const suspended: { readonly [Scope in Suspension]: Decision } = {
  turn: { decision: "allow", method: "turn_suspension", rule: "everything until the turn ends" },
  idle: { decision: "allow", method: "idle_suspension", rule: "everything until the agent is idle" },
  all: { decision: "allow", method: "allow_all", rule: "everything until resumed" }
}

const partOf = ({ allowed, missing, rules }: Allowing): string => {
  const texts = (all: ReadonlyArray<string>) =>
    UntrustedJson.few(
      all.map((text) => UntrustedJson.echo(text, 100)),
      3
    ).join(", ")
  return `${texts(allowed)}: allowed by ${rules.join(" + ")}. ${texts(missing)}: no rule allows it.`
}

const autoApproved: Decision = { decision: "allow", method: "auto_approved", rule: "the tool asks nobody" }
const sandboxedAllowed: Decision = { decision: "allow", method: "whitelist", rule: "commands that run in a sandbox" }
const readingAllowed: Decision = {
  decision: "allow",
  method: "whitelist",
  rule: PermissionRule.readingPrograms,
  reading: true
}
const readonlyAllowed: Decision = { decision: "allow", method: "whitelist", rule: "tools that only read" }

const byMode: { readonly [D in Default]: Decision } = {
  allow: { decision: "allow", method: "mode", rule: "the mode is allow" },
  deny: { decision: "deny", method: "mode", rule: "the mode is deny" },
  ask: { decision: "ask", method: "mode", rule: "the mode is ask" }
}

const defaults: { readonly [D in Default]: Decision } = {
  allow: { decision: "allow", method: "default", rule: "the default is allow" },
  deny: { decision: "deny", method: "default", rule: "the default is deny" },
  ask: { decision: "ask", method: "default", rule: "the default is ask" }
}
