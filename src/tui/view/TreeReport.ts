/** The agents that are there and what they have used, as lines for a person. */
import * as Option from "effect/Option"
import * as Display from "../terminal/Display.js"
import type { SessionId } from "../../core/Id.js"
import * as TokenLedger from "../../model/TokenLedger.js"
import type { Node } from "../../subagent/AgentTree.js"
import * as Activity from "./Activity.js"
import type * as AgentOutline from "./AgentOutline.js"

export interface Options {
  /** Those that are alive, parents before their children. */
  readonly agents: ReadonlyArray<Pick<Node, "origin"> & { readonly session: Pick<Node["session"], "turns"> }>
  readonly outline: AgentOutline.AgentOutline
  readonly ledger: TokenLedger.Service
  /** Absent: lines are as long as they are. */
  readonly columns: number | undefined
  /** The name of the agent that receives typed words, when it is not obvious. */
  readonly receiver?: string | undefined
}

/** The tree: each agent's name, status, tasks, turns (model calls), tokens and id. */
export const agents = (options: Options): ReadonlyArray<string> => {
  const entries = rowsOf(options)
  const heading = ["agent", "state", "tasks", "turns", "tokens", "id"]
  const table = aligned([heading, ...entries.map(({ bar, cells, name }) => [bar + name, ...cells])])
  const receiver = options.receiver === undefined ? [] : [`What you type goes to ${options.receiver}.`]
  if (fits(table, options.columns)) return [...table, ...receiver]
  const narrow = entries.flatMap(({ bar, cells: [state = "", tasks = "", turns = "", tokens = ""], name, rest }) => [
    `${bar}${name}`,
    ...[state, `tasks: ${tasks}, turns: ${turns}`, `tokens: ${tokens}`].map((line) => `${rest}  ${line}`)
  ])
  return [...narrow, ...receiver]
}

/** Usage: a row for each agent, and the sum. */
export const cost = ({ columns, ledger }: Pick<Options, "columns" | "ledger">): ReadonlyArray<string> => {
  const table = TokenLedger.lines(ledger)
  if (fits(table, columns)) return table
  const entry = (name: string, { calls, cost, inputTokens, outputTokens }: TokenLedger.Totals) => [
    name,
    `  calls: ${grouped(calls)}`,
    `  tokens: ${grouped(inputTokens)} in, ${grouped(outputTokens)} out`,
    ...(ledger.priced
      ? [`  ${[cost === undefined ? "?" : cost.toFixed(4), ledger.currency ?? ""].join(" ").trim()}`]
      : [])
  ]
  const byAgent = [...ledger.byAgent()]
  const sum = byAgent.length > 1 ? entry("total", ledger.totals()) : []
  return [...byAgent.flatMap(([name, totals]) => entry(name, totals)), ...sum]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Row {
  /** The tree's bars before the name. */
  readonly bar: string
  /** The same below the name. */
  readonly rest: string
  readonly name: string
  readonly cells: ReadonlyArray<string>
}

const rowsOf = ({ agents, ledger, outline }: Options): ReadonlyArray<Row> => {
  const alive = new Set(agents.map(({ origin }) => origin.sessionId))
  const below = (parent: SessionId | undefined) =>
    agents.filter(({ origin }) => {
      // A child whose parent has ended is shown at the top.
      const above = origin.parentSessionId !== undefined && alive.has(origin.parentSessionId)
      return parent === undefined ? !above : above && origin.parentSessionId === parent
    })
  const walk = (parent: SessionId | undefined, before: string): ReadonlyArray<Row> => {
    const here = below(parent)
    return here.flatMap((agent, index) => {
      const { agent: path, sessionId, subagentId } = agent.origin
      const isLast = index === here.length - 1
      const [bar, rest] = parent === undefined ? ["", ""] : isLast ? ["└ ", "  "] : ["├ ", "│ "]
      const node = Option.getOrUndefined(outline.of(sessionId))
      const used = ledger.of(sessionId)
      const tokens = used.inputTokens + used.outputTokens
      const row: Row = {
        bar: before + bar,
        rest: before + rest,
        name: Display.oneLine(node?.label ?? path),
        cells: [
          node === undefined ? "" : Activity.word(node),
          grouped(agent.session.turns()),
          grouped(used.calls - used.summaries),
          tokens === 0 && used.unknownCalls > 0 ? "?" : grouped(tokens),
          subagentId ?? ""
        ]
      }
      return [row, ...walk(sessionId, before + rest)]
    })
  }
  return walk(undefined, "")
}

const grouped = (amount: number): string => String(Math.round(amount)).replace(/\B(?=(\d{3})+$)/g, ",")

const fits = (lines: ReadonlyArray<string>, columns: number | undefined): boolean =>
  columns === undefined || lines.every((line) => Display.width(line) <= columns)

/** Names and states to the left, numbers to the right. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const width = (column: number) => Math.max(...rows.map((row) => Display.width(row[column] ?? "")))
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const space = " ".repeat(width(column) - Display.width(cell))
        return column >= 2 && column <= 4 ? space + cell : cell + space
      })
      .join("  ")
      .trimEnd()
  )
}
