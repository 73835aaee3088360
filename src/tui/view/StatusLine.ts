/**
 * What a person keeps an eye on while agents work, in one row below the prompt, and in words:
 *
 * ```
 * anthropic/claude-sonnet-5-5 · git main · ask · context 34% · $0.12 · todos 2/5 · 1 job
 * ```
 *
 * On a narrow terminal what matters less goes first. What nobody knows is not there. Pure.
 */
import type { ContextUse } from "../../event/AgentEvent.js"
import * as Display from "../terminal/Display.js"

export interface Facts {
  /** `provider/model`. */
  readonly model: string
  /** The branch of the repository, or its commit. */
  readonly branch?: string | undefined
  /** What becomes of calls that no rule decides. */
  readonly mode: string
  /** What the main agent's last model call took of its context window. */
  readonly context?: ContextUse | undefined
  /** Of the whole tree so far. */
  readonly cost?: { readonly amount: number; readonly currency: string | undefined } | undefined
  readonly todos?: { readonly done: number; readonly all: number } | undefined
  /** Commands that run in the background. */
  readonly jobs?: number | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** As many of the facts as fit into so many columns, the weightier ones. */
export const row = (facts: Facts, columns: number): string => {
  const parts = partsOf(facts)
  const short = parts.map((part) => (part.fact === "model" ? { ...part, text: bare(facts.model) } : part))
  for (const shown of [parts, short, ...fewer(short)]) {
    const text = shown.map((part) => part.text).join(between)
    if (Display.width(text) <= columns) return text
  }
  return ""
}

/** The same as sentences. */
export const sentences = (facts: Facts): ReadonlyArray<string> => {
  const { branch, context, cost, jobs = 0, mode, model, todos } = facts
  const window = context?.window
  return [
    `Model: ${Display.oneLine(model)}`,
    ...(branch === undefined ? [] : [`Branch: ${Display.oneLine(branch)}`]),
    `Mode: ${mode}`,
    ...(context === undefined
      ? ["Context: unknown until the first answer"]
      : [
          window === undefined
            ? `Context: ${grouped(context.tokens)} tokens; the size of the window is unknown`
            : `Context: ${percent(context.tokens, window)} of the window, ${grouped(context.tokens)} of ${grouped(window)} tokens`
        ]),
    ...(cost === undefined ? [] : [`Cost so far: ${money(cost)}; /cost shows it by agent`]),
    ...(todos === undefined || todos.all === 0 ? [] : [`Todos: ${todos.done} of ${todos.all} done`]),
    ...(jobs === 0 ? [] : [`Background: ${counted(jobs)}`])
  ]
}

/** An amount as people write it: `$0.12`, `0.0031 EUR`. */
export const money = ({ amount, currency }: NonNullable<Facts["cost"]>): string => {
  const digits = amount === 0 || amount >= 0.095 ? amount.toFixed(2) : amount.toPrecision(1)
  const text = amount > 0 && amount < 0.0001 ? "0.0001" : digits
  const sign = amount > 0 && amount < 0.0001 ? "<" : ""
  return currency === "USD"
    ? `${sign}$${text}`
    : `${sign}${text}${currency === undefined ? "" : ` ${Display.oneLine(currency)}`}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Part {
  readonly fact: keyof Facts
  readonly text: string
}

const between = " · "

const partsOf = ({ branch, context, cost, jobs = 0, mode, model, todos }: Facts): ReadonlyArray<Part> => [
  { fact: "model", text: Display.oneLine(model) },
  ...(branch === undefined ? [] : [{ fact: "branch", text: `git ${Display.oneLine(branch, 40)}` } as const]),
  { fact: "mode", text: mode },
  ...(context === undefined ? [] : [{ fact: "context", text: contextText(context) } as const]),
  ...(cost === undefined || cost.amount === 0 ? [] : [{ fact: "cost", text: money(cost) } as const]),
  ...(todos === undefined || todos.all === 0
    ? []
    : [{ fact: "todos", text: `todos ${todos.done}/${todos.all}` } as const]),
  ...(jobs === 0 ? [] : [{ fact: "jobs", text: counted(jobs) } as const])
]

/** What goes first where there is no room. */
const least: ReadonlyArray<keyof Facts> = ["branch", "cost", "todos", "model", "jobs", "context"]

const fewer = (parts: ReadonlyArray<Part>): ReadonlyArray<ReadonlyArray<Part>> =>
  least.map((_, count) => parts.filter(({ fact }) => !least.slice(0, count + 1).includes(fact)))

const bare = (model: string): string => Display.oneLine(model.slice(model.lastIndexOf("/") + 1))

const contextText = ({ tokens, window }: ContextUse): string =>
  window === undefined ? `context ${brief(tokens)}` : `context ${percent(tokens, window)}`

const percent = (tokens: number, window: number): string => {
  const share = (tokens * 100) / window
  return share > 0 && share < 1 ? "<1%" : `${Math.round(share)}%`
}

const brief = (tokens: number): string =>
  tokens < 1_000
    ? String(tokens)
    : tokens < 999_500
      ? `${Math.round(tokens / 1_000)}k`
      : `${(tokens / 1e6).toFixed(1)}M`

const grouped = (amount: number): string => String(Math.round(amount)).replace(/\B(?=(\d{3})+$)/g, ",")

const counted = (jobs: number): string => `${jobs} ${jobs === 1 ? "job" : "jobs"}`
