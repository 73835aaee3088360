/**
 * Plan mode: an agent reads, asks and proposes, and changes nothing until a person has approved its plan.
 *
 * It is an allow list. What runs is a tool that says of itself that it reads, or that it only arranges the agent's own
 * work, and a command that only reads. A page of the web may be read as in the mode
 * `ask`: by the rules, else a person is asked. Everything else is refused beside the guards: no grant, envelope,
 * suspension, list or answer gets past it, and it binds a whole tree, subagents too.
 *
 * Its end is a call too: of a tool of the kind `switch_mode`. A person decides about it, whatever the rules say.
 */
import * as Tool from "@effect/ai/Tool"
import * as Context from "effect/Context"
import type { Origin } from "../core/Origin.js"
import type { ApproveAnswer } from "../interaction/Interaction.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Policy } from "./CompiledPolicy.js"
import * as Guard from "./Guard.js"
import * as PermissionRule from "./PermissionRule.js"
import type { Decision, PermissionState } from "./PermissionState.js"

/** A call, and how deep in the tree the agent stands that makes it. */
interface Called {
  readonly entry: ToolRegistry.Entry
  readonly origin: Pick<Origin, "depth">
}

/** Why a call is not run, nor asked about, in this mode; nothing for one that may be. */
export const beyond = (
  { isPlanning }: Pick<PermissionState, "isPlanning">,
  { entry, origin }: Called,
  subject: PermissionRule.Subject
): string | undefined =>
  entry.kind === "switch_mode"
    ? refusalToEnd(isPlanning, origin.depth)
    : isPlanning
      ? refusal(entry, subject)
      : undefined

/** The rules' decision for a call that a guard wants to be asked about. */
export const ownQuestion: Decision = { decision: "ask", method: "default", rule: "a guard wants it asked" }

/** What the mode says before all rules, at any moment of a call: it may have changed while the call waited. */
export const ruled = (
  policy: Policy,
  state: PermissionState,
  now: Called,
  subject: PermissionRule.Subject
): Decision | undefined => {
  const rule = beyond(state, now, subject)
  if (rule !== undefined) return { decision: "deny", method: "mode", rule }
  return now.entry.kind === "switch_mode" ? (state.denial(policy, subject) ?? ownQuestion) : undefined
}

/** Why the call does not run in plan mode; nothing for one that does. */
export const refusal = (entry: ToolRegistry.Entry, subject: PermissionRule.Subject): string | undefined => {
  if (entry.shellCommand !== undefined) {
    return PermissionRule.reads(subject)
      ? undefined
      : `plan mode: only commands that just read may run, such as ls, grep or git log. ${instead}`
  }
  return reads(entry) ? undefined : `plan mode: ${entry.name} is not run, because it may change something. ${instead}`
}

/** Why a call does not even ask to end plan mode; nothing for one that asks. */
const refusalToEnd = (isPlanning: boolean, depth: number): string | undefined =>
  !isPlanning
    ? "plan mode is off: do the work. Assent asks about calls that need approval"
    : depth > 0
      ? "only the main agent proposes a plan to the user: report yours as your result"
      : undefined

/** What is asked about the end of plan mode: no rule answers it. */
export const question = Guard.ask({
  reason:
    "`yes` ends plan mode and starts the work. A comment sends the plan back. `never` denies every plan of this session; " +
    "then only another mode ends plan mode."
})

/** The questions of guards, and that of a call that would end plan mode. */
export const questionOf = ({ kind }: ToolRegistry.Entry, found: Guard.Ask | undefined): Guard.Ask | undefined =>
  kind === "switch_mode" ? Guard.also(question, found) : found

/** The end of plan mode was allowed by a rule, a model or a time that ran out. */
export const isUnheard = ({ kind }: ToolRegistry.Entry, how: Interactor.How, { decision }: ApproveAnswer): boolean =>
  kind === "switch_mode" && how !== "answered" && decision === "allow"

/** An answer that no person gave does not end plan mode. */
const nobody =
  "only a person approves a plan, and no person can answer here. Change nothing: end your turn with the plan as your answer"

export const unheard = { granted: false, method: "unavailable", reason: nobody } as const

/** In the mode `deny` nothing is asked, except about the end of plan mode. */
export const isSilent = ({ asksNobody }: Pick<PermissionState, "asksNobody">, { kind }: ToolRegistry.Entry): boolean =>
  asksNobody && kind !== "switch_mode"

/** Why nothing is asked about in the mode `deny`. */
export const nobodyAsked = "in mode deny Assent asks nobody"

export const unasked = { granted: false, method: "mode", reason: nobodyAsked } as const

/** What the mode says of a call, without what its model could do instead. */
export const forPerson = (rule: string): string => /^plan mode: .*?\.(?=\s|$)/s.exec(rule)?.[0] ?? rule

/** The reason of a denial by a rule. What the mode says is a sentence. */
export const blockedBy = (method: Decision["method"], rule: string): string =>
  method === "mode" ? rule : `blocked by ${method.replaceAll("_", " ")}: ${rule}`

/** What a model is told beside the next words when plan mode has begun or ended. */
export const note = (isPlanning: boolean, depth: number): string => {
  if (!isPlanning) return "[Plan mode is over. Do the work. Assent asks about calls that need approval.]"
  const end =
    depth > 0
      ? "Report what you found."
      : "Look at what matters, ask what is unclear, and call propose_plan with the whole plan. Without that tool, end with the plan as your answer."
  return `[Plan mode: nothing is changed yet. Only tools that read run, and commands that just read. ${end}]`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const instead =
  "Nothing is changed before the user has approved a plan. Read what you need; then call propose_plan, or, without that " +
  "tool, end with your plan as your answer."

/** Its kind or its annotation says so, and neither contradicts the other. */
const reads = ({ kind, readonly, tool, webAddress }: ToolRegistry.Entry): boolean => {
  switch (kind) {
    case "read":
    case "search":
    case "think":
      return !denies(tool)
    case "other":
      return readonly && !isDestructive(tool)
    case "switch_mode":
      return true
    case "fetch":
      // What it sends is an address, which rules and people see whole; it says of itself that this changes nothing.
      return webAddress !== undefined && said(tool, Tool.Destructive) === false && !denies(tool)
    case "edit":
    case "execute":
      return false
  }
}

const denies = (tool: Tool.Any): boolean => isDestructive(tool) || said(tool, Tool.Readonly) === false

/** It was said of the tool; the default says it of every tool. */
const isDestructive = (tool: Tool.Any): boolean => said(tool, Tool.Destructive) === true

// Provider-defined tools have no annotations, though their type says so.
const said = <Id>({ annotations }: Tool.Any, trait: Context.Reference<Id, boolean>): unknown =>
  (annotations as Context.Context<never> | undefined)?.unsafeMap.get(trait.key)
