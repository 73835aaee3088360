/**
 * Counts the usage of a tree of sessions (tokens, calls, retries and, with known prices, money) and holds its limits.
 *
 * One ledger for a root session and all sessions below it. Nothing is estimated: unreported usage is counted and shown
 * as a call with unknown usage.
 *
 * @example
 * ```ts
 * import { TokenLedger } from "assent"
 *
 * const ledger = TokenLedger.make({
 *   prices: { "anthropic/claude-sonnet-4-5": { input: 3, output: 15, cached: 0.3 } },
 *   limits: { treeTokens: 500_000 }
 * })
 * ```
 *
 * @since 0.1.0
 */
import type { SessionId } from "../core/Id.js"
import type { Usage } from "../event/AgentEvent.js"
import * as TokenUsage from "./TokenUsage.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Prices of a million tokens, in the ledger's currency.
 *
 * @since 0.1.0
 * @category models
 */
export interface Price {
  readonly input: number
  readonly output: number
  /** Price of input from the provider's cache. Default: as other input. */
  readonly cached?: number | undefined
  /** Price of input that the provider puts into its cache. Default: as other input. */
  readonly written?: number | undefined
  /** Prices of a call whose input has more than `above` tokens. Default: the prices of other calls. */
  readonly long?: (Omit<Price, "long"> & { readonly above: number }) | undefined
}

/**
 * Tokens, input and output together, or money in the ledger's currency, after which no model call begins. Absent: no limit.
 * A limit of money does not count the calls of a model without a price.
 *
 * @since 0.1.0
 * @category models
 */
export interface Limits {
  /** For each session alone. */
  readonly sessionTokens?: number | undefined
  /** For all sessions of the tree together. */
  readonly treeTokens?: number | undefined
  /** For all sessions of the tree since a person last began a turn of the root. */
  readonly runCost?: number | undefined
  /** For all sessions of the tree together. */
  readonly treeCost?: number | undefined
  /** For all that {@link Options.day} counts. */
  readonly dayCost?: number | undefined
}

/**
 * The spend of one day, by all ledgers that share it; in the ledger's currency.
 *
 * @since 0.1.0
 * @category models
 */
export interface Day {
  /** A name of the day that it is now. */
  readonly today: () => string
  readonly spent: () => number
  readonly add: (cost: number) => void
}

/**
 * Prices by model with their currency, and limits. Without prices there are no costs; without limits, no refusals.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** By `provider/model`, or found for one: `KnownModel.priceOf` finds those of vendors. */
  readonly prices?: { readonly [model: string]: Price } | ((model: string) => Price | undefined) | undefined
  /** Shown beside costs, such as `USD`. */
  readonly currency?: string | undefined
  readonly limits?: Limits | undefined
  /** The counter of a day's limit. Default: all that this ledger spends. */
  readonly day?: Day | undefined
}

/**
 * One model call or attempt.
 *
 * @since 0.1.0
 * @category models
 */
export interface Entry {
  readonly sessionId: SessionId
  /** Agent path such as `main/code_reviewer`. */
  readonly agent: string
  /** `provider/model`. */
  readonly model: string
  readonly usage: Usage
  /** `retry`: an attempt that failed and is made again. `summary`: a call that shortens a history. */
  readonly kind: "call" | "retry" | "summary"
  /** Another process made the call: it counts for the tree, and for no run and no day. Default: false. */
  readonly earlier?: boolean | undefined
}

/**
 * Sums over some sessions.
 *
 * @since 0.1.0
 * @category models
 */
export interface Totals {
  /** Model calls, those for summaries included, failed attempts not. */
  readonly calls: number
  readonly summaries: number
  readonly retries: number
  /** Input tokens, cached or not. */
  readonly inputTokens: number
  /** Output tokens, reasoning included. */
  readonly outputTokens: number
  /** The cached part of the input. */
  readonly cachedTokens: number
  /** Calls with incomplete usage; the missing counts are in no number here. */
  readonly unknownCalls: number
  /** Cost of the reported usage, in the ledger's currency; unknown as soon as a model without a price was used. */
  readonly cost: number | undefined
  /** Used models without a price, in order of first use. */
  readonly unpriced: ReadonlyArray<string>
}

/**
 * A limit that is reached.
 *
 * @since 0.1.0
 * @category models
 */
export interface Exceeded {
  readonly limit: "session" | "tree" | "runCost" | "treeCost" | "dayCost"
  /** The session with the next call, which must wait. */
  readonly sessionId: SessionId
  readonly used: number
  /** The limit in force. */
  readonly allowed: number
  /** The configured limit, which is also the amount of one raise. */
  readonly step: number
}

/**
 * Counts tokens and money by agent and model.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly currency: string | undefined
  /** Whether any model has a price: among the listed models, else among the used ones. */
  readonly priced: boolean
  readonly record: (entry: Entry) => void
  /** Totals of the whole tree. */
  readonly totals: () => Totals
  readonly of: (sessionId: SessionId) => Totals
  /** By agent path, in order of first use. Sessions of the same path are added up. */
  readonly byAgent: () => ReadonlyMap<string, Totals>
  /** The limit that stops the session's next call; its own before the tree's, tokens before money. */
  readonly exceeded: (sessionId: SessionId) => Exceeded | undefined
  /** Allows `by` more than was used or allowed so far. A raise of a day ends with the day, and holds for this ledger. */
  readonly raise: (exceeded: Exceeded, by: number) => void
  /** Why no session of the tree may call its model, as somebody outside of the tree said it. Nobody in it is asked for more. */
  readonly halted: string | undefined
  /** Halts the tree with a sentence. Undefined lets it go on. */
  readonly halt: (reason: string | undefined) => void
  /** A person began a turn of the root: the limit of a run counts from here. */
  readonly beginRun: () => void
  /** Whether a limit of money ignores the calls of this model, because the model has no price. */
  readonly isUnlimited: (model: string) => boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A ledger without entries.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Service => new Ledger(options)

// -----------------------------------------------------------------------------------------------------------------
// showing
// -----------------------------------------------------------------------------------------------------------------

/**
 * A ledger as lines for a person: a row for each agent, the sum, and the unknown numbers.
 *
 * @since 0.1.0
 * @category conversions
 */
export const lines = (ledger: Service): ReadonlyArray<string> => {
  const agents = [...ledger.byAgent()]
  const total = ledger.totals()
  if (agents.length === 0) return ["No model was called yet."]
  const costs = (cell: string) => (ledger.priced ? [cell] : [])
  const heading = ["agent", "calls", "retries", "input", "cached", "output", ...costs("cost")]
  const row = (name: string, { cachedTokens, calls, cost, inputTokens, outputTokens, retries }: Totals) => [
    name,
    ...[calls, retries, inputTokens, cachedTokens, outputTokens].map(grouped),
    ...costs(cost === undefined ? "?" : money(cost, ledger.currency))
  ]
  const rows = agents.map(([agent, totals]) => row(agent, totals))
  const sum = agents.length > 1 ? [row("total", total)] : []
  const unpriced = ledger.priced && total.unpriced.length > 0 ? [`No price for ${total.unpriced.join(", ")}.`] : []
  return [...aligned([heading, ...rows, ...sum]), ...unreported(total), ...unpriced]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const million = 1_000_000

type Money = "runCost" | "treeCost" | "dayCost"

/** The narrowest first: a person is asked about that. */
const monies: ReadonlyArray<Money> = ["runCost", "treeCost", "dayCost"]

const noLimits: Limits = {}
const noPrices = () => undefined

// A class with lazy tables: each tree has a ledger, and thousands may wait before their first call.
class Ledger implements Service {
  readonly currency: string | undefined
  private readonly day: Day | undefined
  priced: boolean
  halted: string | undefined
  private readonly tree = new Count()
  private sessions: Map<SessionId, Account> | undefined
  /** The raised limits of sessions. */
  private raised: Map<SessionId, number> | undefined
  private readonly priceOf: (model: string) => Price | undefined
  private readonly limits: Limits
  private treeAllowed: number | undefined
  /** What the tree cost before the run. */
  private runFrom = 0
  private own = 0
  /** The raised limits of money, each with the run or the day for which it was raised. */
  private more: { [L in Money]?: { readonly allowed: number; readonly of: string } } | undefined

  constructor({ currency, day, limits = noLimits, prices = noPrices }: Options) {
    this.currency = currency
    this.day = day
    this.priceOf = typeof prices === "function" ? prices : listed(prices)
    this.priced = typeof prices !== "function" && Object.keys(prices).length > 0
    this.limits = limits
    this.treeAllowed = limits.treeTokens
  }

  record(entry: Entry): void {
    const { agent, kind, model, usage } = entry
    const account = this.account(entry.sessionId, agent)
    const tokens = TokenUsage.of(model, usage)
    const price = this.priceOf(model)
    const said = this.currency === "USD" ? (usage.cost ?? -1) : -1
    // A model can say anything; no call gives money back.
    const known = said >= 0 && said < Infinity ? said : price && costOf(price, tokens)
    if (known !== undefined) this.priced = true
    this.tree.add(kind, model, tokens, known)
    account.count.add(kind, model, tokens, known)
    const cost = known ?? 0
    if (entry.earlier === true) this.runFrom += cost
    else if (cost > 0) {
      this.own += cost
      this.day?.add(cost)
    }
  }

  totals(): Totals {
    return this.tree.totals()
  }

  of(sessionId: SessionId): Totals {
    return (this.sessions?.get(sessionId)?.count ?? new Count()).totals()
  }

  byAgent(): ReadonlyMap<string, Totals> {
    const counts = new Map<string, Count>()
    for (const { agent, count } of this.sessions?.values() ?? []) {
      const sum = counts.get(agent) ?? new Count()
      sum.merge(count)
      counts.set(agent, sum)
    }
    return new Map(Array.from(counts, ([agent, count]) => [agent, count.totals()]))
  }

  exceeded(sessionId: SessionId): Exceeded | undefined {
    const { sessionTokens, treeTokens } = this.limits
    if (sessionTokens !== undefined) {
      const used = this.sessions?.get(sessionId)?.count.tokens ?? 0
      const allowed = this.raised?.get(sessionId) ?? sessionTokens
      if (used >= allowed) return { limit: "session", sessionId, used, allowed, step: sessionTokens }
    }
    const { treeAllowed, tree } = this
    if (treeTokens !== undefined && treeAllowed !== undefined && tree.tokens >= treeAllowed) {
      return { limit: "tree", sessionId, used: tree.tokens, allowed: treeAllowed, step: treeTokens }
    }
    for (const limit of monies) {
      const step = this.limits[limit]
      if (step === undefined) continue
      const raised = this.more?.[limit]
      const allowed = raised?.of === this.spanOf(limit) ? raised.allowed : step
      const used = this.spent(limit)
      if (used >= allowed) return { limit, sessionId, used, allowed, step }
    }
    return undefined
  }

  halt(reason: string | undefined): void {
    this.halted = reason
  }

  beginRun(): void {
    this.runFrom = this.tree.money
  }

  isUnlimited(model: string): boolean {
    return monies.some((limit) => this.limits[limit] !== undefined) && this.priceOf(model) === undefined
  }

  private spent(limit: Money): number {
    if (limit === "dayCost") return this.day?.spent() ?? this.own
    return this.tree.money - (limit === "runCost" ? this.runFrom : 0)
  }

  /** The time for which a raise holds. */
  private spanOf(limit: Money): string {
    if (limit === "dayCost") return this.day?.today() ?? ""
    return limit === "runCost" ? String(this.runFrom) : ""
  }

  // Counted from the usage and not from the limit: one long call can exceed the limit so far that the raise would allow
  // nothing.
  raise({ allowed, limit, sessionId, used }: Exceeded, by: number): void {
    const raised = Math.max(allowed, used) + by
    if (limit === "tree") this.treeAllowed = raised
    else if (limit === "session") (this.raised ??= new Map()).set(sessionId, raised)
    else (this.more ??= {})[limit] = { allowed: raised, of: this.spanOf(limit) }
  }

  private account(sessionId: SessionId, agent: string): Account {
    const sessions = (this.sessions ??= new Map<SessionId, Account>())
    const known = sessions.get(sessionId)
    if (known !== undefined) return known
    const account: Account = { agent, count: new Count() }
    sessions.set(sessionId, account)
    return account
  }
}

interface Account {
  readonly agent: string
  readonly count: Count
}

class Count {
  private calls = 0
  private summaries = 0
  private retries = 0
  private input = 0
  private output = 0
  private cached = 0
  private unknown = 0
  private cost = 0
  // An array, because a tree uses few models and a set takes 200 bytes in each of its sessions.
  private unpriced: ReadonlyArray<string> | undefined

  get money(): number {
    return this.cost
  }

  get tokens(): number {
    return this.input + this.output
  }

  add(kind: Entry["kind"], model: string, tokens: TokenUsage.TokenUsage, cost: number | undefined): void {
    if (kind === "retry") this.retries++
    else {
      this.calls++
      if (kind === "summary") this.summaries++
      if (!tokens.complete) this.unknown++
    }
    const { cached, input, output } = tokens
    this.input += input
    this.output += output
    this.cached += cached
    if (cost !== undefined) {
      this.cost += cost
      // Zero tokens cost nothing without a price: a model in this process, or an attempt without an answer.
    } else if (input + output > 0 || (kind !== "retry" && !tokens.complete)) this.named(model)
  }

  merge(other: Count): void {
    this.calls += other.calls
    this.summaries += other.summaries
    this.retries += other.retries
    this.input += other.input
    this.output += other.output
    this.cached += other.cached
    this.unknown += other.unknown
    this.cost += other.cost
    for (const model of other.unpriced ?? []) this.named(model)
  }

  totals(): Totals {
    return {
      calls: this.calls,
      summaries: this.summaries,
      retries: this.retries,
      inputTokens: this.input,
      outputTokens: this.output,
      cachedTokens: this.cached,
      unknownCalls: this.unknown,
      cost: this.unpriced === undefined ? this.cost : undefined,
      unpriced: [...(this.unpriced ?? [])]
    }
  }

  private named(model: string): void {
    const names = this.unpriced ?? []
    // Its exact length: an array that is pushed to or spread into reserves room for sixteen more.
    if (!names.includes(model)) this.unpriced = names.concat(model)
  }
}

/** A map, as a model may be called like something that every object has. */
const listed = (prices: { readonly [model: string]: Price }): ((model: string) => Price | undefined) => {
  const all = new Map(Object.entries(prices))
  return (model) => all.get(model)
}

const costOf = (price: Price, { cached, input, output, written }: TokenUsage.TokenUsage): number => {
  const at = price.long !== undefined && input > price.long.above ? price.long : price
  const fresh = input - cached - written
  const { cached: read = at.input, written: write = at.input } = at
  return (fresh * at.input + cached * read + written * write + output * at.output) / million
}

const grouped = (amount: number): string => String(Math.round(amount)).replace(/\B(?=(\d{3})+$)/g, ",")

/**
 * An amount of money for people.
 *
 * @internal
 */
export const money = (amount: number, currency: string | undefined): string =>
  [amount.toFixed(amount === 0 || amount >= 1 ? 2 : 4), ...(currency === undefined ? [] : [currency])].join(" ")

/** The first column to the left, numbers to the right. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(width(0)) : cell.padStart(width(column)))).join("  ")
  )
}

const unreported = ({ unknownCalls }: Totals): ReadonlyArray<string> => {
  if (unknownCalls === 0) return []
  const which = unknownCalls === 1 ? "1 call" : `${unknownCalls} calls`
  return [`The provider did not report all tokens of ${which}; the numbers here leave out the rest.`]
}
