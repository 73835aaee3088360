/**
 * The `permissions` command: what a person may see and change while an agent runs. One parser for every executor.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { SessionId } from "../core/Id.js"
import type { Redactor } from "../core/Redaction.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as CommandText from "../shell/CommandText.js"
import * as RememberedText from "../shell/RememberedText.js"
import * as Approvals from "./Approvals.js"
import * as ApprovalText from "./ApprovalText.js"
import * as Foresight from "./Foresight.js"
import * as JsonFault from "../core/JsonFault.js"
import * as Glob from "../core/Glob.js"
import type * as Guard from "./Guard.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import * as Nearest from "../core/Nearest.js"
import * as PermissionRule from "./PermissionRule.js"
import { modes, type Mode, type PermissionState } from "./PermissionState.js"
import * as PlanMode from "./PlanMode.js"
import * as SanitizerOptions from "./SanitizerOptions.js"
import * as SessionRule from "./SessionRule.js"

export type { Foreseen, Session } from "./Foresight.js"
export { PatternRefused } from "./SessionRule.js"

/**
 * What a command reads and changes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Target {
  readonly state: PermissionState
  readonly policy: CompiledPolicy.Policy
  readonly tools: ToolRegistry.Service
  readonly sessionId: SessionId
}

/**
 * The command's output, and whether it changed anything.
 *
 * @since 0.1.0
 * @category models
 */
export interface Outcome {
  readonly lines: ReadonlyArray<string>
  readonly changed: boolean
}

/**
 * The lines of its help.
 *
 * @since 0.1.0
 * @category constants
 */
export const usage: ReadonlyArray<string> = [
  "permissions show                          the rules in force, and their origin",
  "permissions status                        the mode and what is suspended",
  "permissions check TOOL [ARGUMENTS]        how Assent decides a call: arguments as JSON, or a command",
  "permissions why TOOL [ARGUMENTS]          the same as a sentence",
  "permissions allow|deny PATTERN            remember for this session",
  "permissions remove RULE                   remove a rule of this session or of this project",
  "permissions mode [ask|plan|deny|allow]    how this session decides; permissions default is the same",
  "permissions suspend [turn|idle|all]       ask nothing until then; default: idle",
  "permissions resume                        ask again",
  "permissions clear                         clear this session's rules, and restore its first mode"
]

/**
 * Whether a line only asks, and changes nothing.
 *
 * @since 0.1.0
 * @category operations
 */
export const isQuestion = (line: string): boolean => /^\s*(?:(?:show|status|check|why)?(?:\s|$)|mode\s*$)/.test(line)

/**
 * The mode that a line sets, if it sets one.
 *
 * @internal
 */
export const modeIn = (line: string): Mode | undefined =>
  modeOf(/^\s*(?:mode|default)\s+(\S+)\s*$/.exec(line)?.[1] ?? "")

/**
 * What a mode means, in one sentence.
 *
 * @internal
 */
export const modeSaid = (mode: Mode): string => `The mode is ${mode}: ${meanings[mode]}`

/**
 * Like {@link run}, with the gate's own judgement of calls.
 *
 * @since 0.1.0
 * @category operations
 */
export const answer = (
  line: string,
  target: Target & {
    readonly guards: ReadonlyArray<Guard.Guard>
    readonly redactor?: Redactor | undefined
    readonly session?: Foresight.Session | undefined
  }
): Effect.Effect<Either.Either<Outcome, string>> => {
  const removed = /^\s*remove\s+([^]+)$/.exec(line)?.[1]?.trim()
  const { project } = target.policy
  if (removed !== undefined && project?.entries().has(removed) === true) {
    return Effect.match(project.revoke(removed), {
      onFailure: (why) => Either.left(why),
      // A session may remember the same.
      onSuccess: () => (target.state.remove(removed) ? changed : said)([`Removed this project's rule: ${removed}`])
    })
  }
  const asked = /^\s*(check|why)\s+(\S+)\s*([^]*)$/.exec(line)
  const entry = target.tools.get(asked?.[2] ?? "")
  if (asked === null || entry === undefined) return Effect.sync(() => run(line, target))
  const params = paramsOf(entry, CommandText.trim(asked[3] ?? ""))
  if (Either.isLeft(params)) return Effect.succeed(Either.left(params.left))
  return Effect.map(Foresight.foresee(target, entry, params.right), (foreseen) => {
    const { delegated, method, rule } = foreseen
    if (asked[3] === "" && method === "invalid") return Either.left(without(`${asked[1]} ${entry.name}`, entry, rule))
    const model = delegated === undefined ? [] : [`a model may decide it first: ${delegated}`]
    return said([...(asked[1] === "why" ? inWords : inShort)(foreseen, target), ...cautions(foreseen), ...model])
  })
}

/**
 * Runs one command line without the leading word. A left says what is wrong with the line. A call is judged by the
 * rules alone; {@link answer} judges by everything.
 *
 * @since 0.1.0
 * @category operations
 */
export const run = (line: string, target: Target): Either.Either<Outcome, string> => {
  const text = CommandText.trim(line)
  const [verb = "show", ...rest] = CommandText.words(text)
  const argument = CommandText.trim(text.slice(verb.length))
  const { state, policy, sessionId } = target
  switch (verb) {
    case "show":
      return said(show(target))
    case "status":
      return said(status(target))
    case "check":
    case "why": {
      const [name] = rest
      const foreseen = check(verb, target, name, CommandText.trim(argument.slice(name?.length ?? 0)))
      return Either.flatMap(foreseen, (found) =>
        said([...(verb === "why" ? inWords : inShort)(found, target), ...cautions(found)])
      )
    }
    case "allow":
    case "deny":
      return Either.mapBoth(SessionRule.of(verb, argument, target.tools), {
        onLeft: ({ message }) => message,
        onRight: (entry) => remember(verb, entry, target)
      })
    case "remove":
      if (argument === "") return Either.left("permissions remove needs a rule, as permissions show lists it.")
      return state.remove(argument)
        ? changed([`Forgotten: ${argument}`])
        : Either.left(
            `This session and this project have no rule ${UntrustedJson.echo(argument)}. permissions show lists them; rules of a policy are changed in its file.`
          )
    case "mode":
    case "default": {
      if (argument === "" && verb === "mode") return said([`mode: ${state.mode(policy)}`])
      const mode = modeOf(argument)
      if (mode === undefined) return Either.left(`permissions ${verb} takes ${modes.join(", ")}.`)
      state.setMode(mode)
      return changed([modeSaid(mode)])
    }
    case "suspend": {
      const scope = argument === "" ? "idle" : argument
      if (scope !== "turn" && scope !== "idle" && scope !== "all") {
        return Either.left("permissions suspend takes turn, idle or all.")
      }
      state.suspend(scope, sessionId)
      return changed([
        `Assent asks nothing ${scope === "all" ? "until you resume" : `until the ${scope === "turn" ? "turn ends" : "agent is idle"}`}. Guards and lists of hard rules still hold.`
      ])
    }
    case "resume":
      state.resume()
      return changed(status({ ...target, policy }))
    case "clear":
      state.clear()
      return changed(["This session's rules are cleared.", ...status(target)])
    default:
      return Either.left([`There is no "permissions ${UntrustedJson.echo(verb)}".`, ...usage].join("\n"))
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const modeOf = (text: string): Mode | undefined => modes.find((mode) => mode === text)

const meanings: { readonly [M in Mode]: string } = {
  ask: "Assent asks about calls that no rule decides.",
  plan: "it only reads, until you approve a plan.",
  deny: "Assent denies what it would ask.",
  allow: "calls that no rule decides run. Guards and approvals still ask."
}

const said = (lines: ReadonlyArray<string>): Either.Either<Outcome, string> => Either.right({ lines, changed: false })
const changed = (lines: ReadonlyArray<string>): Either.Either<Outcome, string> => Either.right({ lines, changed: true })

const remember = (verb: "allow" | "deny", entry: string, { state, tools }: Target): Outcome => {
  state[verb](entry)
  const isTool = tools.entries.some(({ name }) => Glob.test(entry, name))
  const remark = verb === "deny" || isTool ? undefined : (CommandText.remark(entry) ?? RememberedText.caution(entry))
  const said = `${verb === "allow" ? "Allowed" : "Denied"} for this session: ${RememberedText.describe(entry, verb) ?? entry}`
  return { lines: remark === undefined ? [said] : [said, remark], changed: true }
}

const status = ({ state, policy, sessionId }: Target): ReadonlyArray<string> => {
  const { mode, suspension } = state.status(policy, sessionId)
  return [`mode: ${mode}`, `suspended: ${suspension ?? "no"}`]
}

const show = (target: Target): ReadonlyArray<string> => {
  const { state, policy, sessionId, tools } = target
  const { allow, deny } = state.status(policy, sessionId)
  const { approvals, project } = policy
  const silent = tools.entries.filter((entry) => entry.autoApproved).map((entry) => entry.name)
  return [
    ...status(target),
    ...list(
      "guards",
      rules(policy, policy.deny, ({ guards }) => guards?.deny)
    ),
    ...list("reserved", approvals === undefined ? [] : reserved(policy, approvals)),
    ...list(
      "denied in this session",
      deny.map((entry) => worded(entry, "deny"))
    ),
    ...list("denied by policy", [
      ...rules(policy, policy.blacklist, ({ blacklist }) => blacklist),
      ...policy.paths.map((text) =>
        cited(
          `path ${text}`,
          filesThat(policy, ({ blacklist }) => blacklist?.paths?.includes(text) === true)
        )
      )
    ]),
    ...list(
      "allowed in this session",
      allow.map((entry) => worded(entry))
    ),
    ...list(
      "allowed in this project, in every session",
      [...(project?.entries() ?? [])].map((entry) =>
        cited(worded(entry), project?.file === undefined ? [] : [project.file])
      )
    ),
    ...list(
      "allowed by policy",
      rules(policy, policy.whitelist, ({ whitelist }) => whitelist, "allows")
    ),
    ...list(
      "a model may allow too",
      rules(policy, policy.delegated, ({ delegated }) => delegated, "allows")
    ),
    ...list("never ask", silent),
    ...list("settings of the policy", settings(policy))
  ]
}

type Source = CompiledPolicy.Policy["source"]

/** A line with the files that say it. */
const cited = (line: string, files: ReadonlyArray<string>): string =>
  files.length === 0 ? line : `${line} (${files.join(", ")})`

const filesThat = (
  { files }: CompiledPolicy.Policy,
  says: (source: Source) => boolean,
  what?: "allows"
): ReadonlyArray<string> =>
  files.filter(({ ignored, source }) => says(source) && !(what === "allows" && ignored)).map(({ path }) => path)

const rules = (
  policy: CompiledPolicy.Policy,
  compiled: PermissionRule.Compiled,
  of: (source: Source) => Source["blacklist"],
  what?: "allows"
): ReadonlyArray<string> => {
  const says = (line: string) => (source: Source) => {
    const { arguments: words = [], patterns = [], tools = [] } = of(source) ?? {}
    return PermissionRule.describe({ rules: { arguments: words, patterns, tools } }).includes(line)
  }
  return PermissionRule.describe(compiled).map((line) => cited(line, filesThat(policy, says(line), what)))
}

const reserved = (policy: CompiledPolicy.Policy, approvals: Approvals.Approvals): ReadonlyArray<string> => {
  const rolesOf = policy.source.roles
  const says = (line: string) => (source: Source) =>
    ApprovalText.list(Approvals.make({ ...source, roles: rolesOf }) ?? []).includes(line)
  return ApprovalText.list(approvals).map((line) => cited(line, filesThat(policy, says(line))))
}

/** What the policy says beside its lists, by the names that it has in a file. */
const settings = (policy: CompiledPolicy.Policy): ReadonlyArray<string> => {
  const { channel, defaultPolicy, sanitize, whitelistReadonly: readonly, whitelistSandboxed: sandboxed } = policy
  const all: ReadonlyArray<readonly [name: string, value: unknown, of: (source: Source) => unknown]> = [
    ["defaultPolicy", defaultPolicy, (source) => source.defaultPolicy],
    ["whitelist.readonly", readonly, ({ whitelist }) => whitelist?.readonly],
    ["whitelist.sandboxed", sandboxed, ({ whitelist }) => whitelist?.sandboxed],
    ["guards.sanitize.metacharacters", sanitize.metacharacters, ({ guards }) => guards?.sanitize?.metacharacters],
    [
      "guards.sanitize.dangerousCommands",
      sanitize.dangerousCommands,
      ({ guards }) => guards?.sanitize?.dangerousCommands
    ],
    ["guards.sanitize.pathScope", scopeSaid(sanitize.pathScope), ({ guards }) => guards?.sanitize?.pathScope],
    ["roles", policy.source.roles, ({ roles }) => roles],
    ["channel", channel, (source) => source.channel]
  ]
  return all.flatMap(([name, value, of]) => {
    const isSame = (source: Source) => JSON.stringify(of(source)) === JSON.stringify(of(policy.source))
    const isIn = (source: Source) => of(source) !== undefined
    // A merged source says what no file does. An ignored file may still take away, and a merged value may be in no file.
    const files = [
      filesThat(policy, (source) => isIn(source) && isSame(source), "allows"),
      filesThat(policy, (source) => isIn(source) && isSame(source)),
      filesThat(policy, isIn, "allows")
    ].find(({ length }) => length > 0)
    const isSaid = policy.files.length === 0 ? isIn(policy.source) : files !== undefined
    if (!isSaid && (value === undefined || value === false)) return []
    return [cited(`${name}: ${JSON.stringify(value)}`, isSaid ? (files ?? []) : ["default"])]
  })
}

/** In the shortest form that a file may have. */
const scopeSaid = (scope: SanitizerOptions.PathScope): SanitizerOptions.PathScope => {
  const known = SanitizerOptions.scopeOf(scope)
  if (known === undefined) return "off"
  const { outside = "ask", roots = [], ...others } = known
  if (roots.length === 0 && Object.keys(others).length === 0) return outside
  return { outside, ...(roots.length === 0 ? {} : { roots }), ...others }
}

/** What was remembered, in words; behind them its text, which `remove` takes, where it does not stand in the words. */
const worded = (entry: string, verb: "allow" | "deny" = "allow"): string => {
  const words = RememberedText.describe(entry, verb)
  if (words === undefined || words.includes(`\`${entry}\``)) return words ?? entry
  return `${words}, kept as ${entry}`
}

const list = (title: string, entries: ReadonlyArray<string>): ReadonlyArray<string> =>
  entries.length === 0 ? [] : [`${title}:`, ...entries.map((entry) => `  ${entry}`)]

const check = (
  verb: "check" | "why",
  { state, policy, tools, sessionId }: Target,
  name: string | undefined,
  text: string
): Either.Either<Foresight.Foreseen, string> => {
  const entry = name === undefined ? undefined : tools.get(name)
  if (entry === undefined) return Either.left(unknownTool(verb, tools, name, text))
  const params = paramsOf(entry, text)
  if (Either.isLeft(params)) return Either.left(params.left)
  const tooLong = PermissionRule.tooLong(entry.shellCommand, params.right)
  if (tooLong !== undefined) return foreseen("deny", "pre_validation", tooLong)
  const subject = CompiledPolicy.subject(policy, entry, params.right)
  const guard = PermissionRule.denies(policy.deny, subject)
  if (guard !== undefined) return foreseen("deny", "guard", guard)
  const needs = policy.approvals && Approvals.needsOf(policy.approvals, subject)
  if (needs !== undefined) {
    const denial = state.denial(policy, subject)
    return denial === undefined ? foreseen("ask", "approvals", ApprovalText.describe(needs)) : Either.right(denial)
  }
  return Either.right(state.evaluate(policy, subject, entry, sessionId))
}

/** Some tools can be called without arguments, and this one cannot. */
const without = (asked: string, { shellCommand }: ToolRegistry.Entry, missing: string): string =>
  shellCommand === undefined
    ? `permissions ${asked} needs the arguments of the call behind it, as JSON: ${missing}.`
    : `permissions ${asked} needs a command behind it, such as: permissions ${asked} git status`

/** Whoever asks about a command may leave out the tool that runs it. */
const unknownTool = (verb: string, tools: ToolRegistry.Service, name: string | undefined, text: string): string => {
  const all = tools.entries.map((known) => known.name)
  if (name === undefined) return `permissions ${verb} needs a tool: ${all.join(", ")}.`
  const none = `There is no tool ${UntrustedJson.echo(name)}.`
  const nearest = Nearest.of(name, all)
  if (nearest !== undefined) return `${none} Did you mean ${nearest}?`
  const runner = tools.entries.find(({ shellCommand }) => shellCommand !== undefined)
  const command = UntrustedJson.echo(`${name} ${text}`.trim())
  return [
    `${none} There are: ${all.join(", ")}.`,
    ...(runner === undefined ? [] : [`For a command: permissions ${verb} ${runner.name} ${command}`])
  ].join(" ")
}

const foreseen = (
  decision: Foresight.Foreseen["decision"],
  method: string,
  rule: string
): Either.Either<Foresight.Foreseen, string> => Either.right({ decision, method, rule })

type Rendering = (found: Foresight.Foreseen, target: Target) => ReadonlyArray<string>

/** For programs and logs: the words are those of records. */
const inShort: Rendering = ({ decision, method, rule }) => [`${decision} (${method}): ${rule}`]

const inWords: Rendering = ({ decision, method, rule }, { policy, state }) => {
  const verdict = { allow: "Allowed", deny: "Denied", ask: "Asked about" }[decision]
  switch (method) {
    case "session_whitelist":
      return [`${verdict} by a rule of this session: ${RememberedText.ofRule(rule, state.entries, "allow")}`]
    case "session_blacklist":
      return [`${verdict} by a rule of this session: ${RememberedText.ofRule(rule, state.entries, "deny")}`]
    case "whitelist": {
      const [, own] = /^([^]*) \(in this project\)$/.exec(rule) ?? []
      const kept = own === undefined ? undefined : RememberedText.ofRule(own, policy.project?.entries() ?? [], "allow")
      return [kept === undefined ? `${verdict} by a rule: ${rule}` : `${verdict} by a rule of this project: ${kept}`]
    }
    case "blacklist":
      return [`${verdict} by a rule: ${rule}`]
    case "guard":
      return [decision === "deny" ? `Denied, and no rule can allow it: ${rule}` : `${verdict}: ${rule}`]
    case "approvals":
      return [`Asked, and reserved: ${rule}`]
    case "invalid":
      return ["The arguments do not fit the tool:", ...rule.split("\n")]
    case "pre_validation":
      return [`Not possible: ${rule}`]
    case "mode":
      return [`${verdict}: ${PlanMode.forPerson(rule)}`]
    default:
      return [`${verdict}: ${rule}`]
  }
}

/** About the patterns that allow a command. */
const cautions = ({ decision, method, rule }: Foresight.Foreseen): ReadonlyArray<string> => {
  if (decision !== "allow" || !method.endsWith("whitelist")) return []
  return [...new Set(rule.split(" + ").flatMap((pattern) => RememberedText.caution(pattern) ?? []))]
}

const paramsOf = (entry: ToolRegistry.Entry, text: string): Either.Either<unknown, string> => {
  if (text === "") return Either.right({})
  // A group of commands begins with a brace and a blank. No JSON object can begin like this.
  if (entry.shellCommand !== undefined && (!text.startsWith("{") || /^\{\s+[^"\s}]/.test(text))) {
    return Either.right({ [entry.shellCommand.name]: text })
  }
  return Either.mapLeft(UntrustedJson.parse(text), ({ message }) => `The arguments ${JsonFault.of(text) ?? message}.`)
}
