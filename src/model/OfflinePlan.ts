/**
 * How the offline model works in plan mode: what was refused there becomes a plan, and is done once a person has approved
 * that. It remembers nothing, so it reads both out of the conversation:
 *
 * ```
 *  calls ─► refused: plan mode ─► propose_plan ─► approved ─► the same calls
 *                                             └─► sent back: what the person says next decides
 * ```
 */
import { isRecord } from "effect/Predicate"
import type * as Prompt from "@effect/ai/Prompt"
import * as OfflineReport from "./OfflineReport.js"
import type * as OfflineRequest from "./OfflineRequest.js"

/** The tool that ends plan mode. */
export const proposer = "propose_plan"

/** A request that shows plan mode. */
export const example = "/plan write notes.txt: remember the milk"

export interface Next {
  readonly text: string
  readonly calls: ReadonlyArray<OfflineRequest.Request>
}

/** What plan mode makes it do next; nothing where that mode has no part in it. */
export const next = (prompt: Prompt.Prompt, tools: ReadonlySet<string>): Next | undefined => {
  if (!tools.has(proposer)) return undefined
  const steps = stepsOf(prompt)
  const last = steps.at(-1)
  // Somebody said something: that counts.
  if (last === undefined || last.isOver) return undefined
  const refused = refusedOf(last)
  if (refused.length > 0) {
    const others = [...last.results.values()].filter(({ id }) => !refused.some((call) => call.id === id))
    const text = [...others.map(OfflineReport.describe), said].join("\n\n")
    return { text, calls: [{ tool: proposer, params: { plan: planOf(refused) }, intent: "" }] }
  }
  const isApproved = last.calls.some(({ id, name }) => name === proposer && last.results.get(id)?.isFailure === false)
  const planned = isApproved ? refusedOf(steps.at(-2)) : []
  return planned.length === 0
    ? undefined
    : {
        text: "You approved the plan. I begin with it.",
        calls: planned.map(({ name, params }) => ({ tool: name, params, intent: "" }))
      }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Call {
  readonly id: string
  readonly name: string
  readonly params: { readonly [name: string]: unknown }
}

interface Step {
  readonly calls: ReadonlyArray<Call>
  readonly results: Map<string, Prompt.ToolResultPart>
  /** Words came after it. */
  isOver: boolean
}

const said = "Plan mode is on: I change nothing before you approve a plan. This is my plan."

const stepsOf = (prompt: Prompt.Prompt): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  for (const message of prompt.content) {
    if (message.role === "assistant") {
      const calls = message.content.flatMap((part) =>
        part.type === "tool-call" && isRecord(part.params)
          ? [{ id: part.id, name: part.name, params: part.params }]
          : []
      )
      steps.push({ calls, results: new Map(), isOver: false })
    }
    const step = steps.at(-1)
    if (step === undefined) continue
    if (message.role === "tool") for (const result of message.content) step.results.set(result.id, result)
    if (message.role === "user") step.isOver = true
  }
  return steps
}

const refusedOf = (step: Step | undefined): ReadonlyArray<Call> =>
  step?.calls.filter(({ id, name }) => {
    const result = step.results.get(id)
    return (
      name !== proposer &&
      result?.isFailure === true &&
      String(result.result).startsWith("Permission denied: plan mode:")
    )
  }) ?? []

const planOf = (calls: ReadonlyArray<Call>): string =>
  [
    "# What you asked for",
    "",
    ...calls.map(({ name, params: { command, path } }, index) => {
      const what = typeof command === "string" ? `run ${code(command)}` : `${name} ${code(String(path ?? ""))}`
      return `${index + 1}. ${name === "write_file" ? `write ${code(String(path ?? ""))}` : what}`
    }),
    "",
    "The offline stand-in does exactly this when you say yes."
  ].join("\n")

/** As code in Markdown, whatever it holds. */
const code = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.includes("`") ? `\`\` ${line} \`\`` : `\`${line}\``
}
