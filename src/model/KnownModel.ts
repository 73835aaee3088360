/**
 * What vendors say of their models: the context window, the longest reply, how thinking is asked for, and prices.
 *
 * Each vendor's rows name the page they were read from and the day. A model that is not listed is simply unknown:
 * nothing is derived from a similar name, except for a dated snapshot of a listed model. A person's own table and a
 * program's own options win over this one.
 *
 * @example
 * ```ts
 * import * as KnownModel from "assent/model/KnownModel"
 * import * as TokenLedger from "assent/model/TokenLedger"
 *
 * const ledger = TokenLedger.make({ prices: KnownModel.priceOf, currency: KnownModel.currency })
 * ```
 *
 * @since 0.1.0
 */
import type { Price } from "./TokenLedger.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * The page of the vendor, and the day of its reading.
 *
 * @since 0.1.0
 * @category models
 */
export interface Source {
  readonly page: string
  /** Such as `2026-11-23`. */
  readonly read: string
}

/**
 * One model.
 *
 * @since 0.1.0
 * @category models
 */
export interface KnownModel {
  /** The context window in tokens. */
  readonly window: number
  /** The most tokens of one reply. */
  readonly output: number
  /** `effort`: a word sets how much the model thinks, and it refuses a budget of tokens. Absent: unknown. */
  readonly thinking?: "budget" | "effort" | undefined
  /** Standard prices of a million tokens in {@link currency}. */
  readonly price?: Price | undefined
  readonly source: Source
}

/**
 * The currency of the prices.
 *
 * @since 0.1.0
 * @category constants
 */
export const currency = "USD"

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/**
 * The row of a model such as `anthropic/claude-sonnet-5-5`, or of a dated snapshot of that model.
 *
 * @since 0.1.0
 * @category getters
 */
export const of = (ref: string): KnownModel | undefined => models.get(ref) ?? models.get(ref.replace(day, ""))

/**
 * The price of a model, where one is known.
 *
 * @since 0.1.0
 * @category getters
 */
export const priceOf = (ref: string): Price | undefined => of(ref)?.price

/**
 * The references of all listed models, newest of each vendor first.
 *
 * @since 0.1.0
 * @category getters
 */
export const refs = (): ReadonlyArray<string> => [...models.keys()]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** `-20251001`, or `-2026-04-23`. */
const day = /-20\d\d(?:\d{4}|-\d\d-\d\d)$/

type Row = readonly [name: string, facts: Omit<KnownModel, "source">]

const million = 1_000_000

/** Cache writes are those that live for five minutes, the only ones we ask for. */
const claude: ReadonlyArray<Row> = [
  ["claude-fable-5-1", large("effort", { input: 10, output: 50, cached: 0.25, written: 12.5 })],
  ["claude-opus-5-5", large("effort", { input: 4, output: 20, cached: 0.2, written: 5 })],
  ["claude-sonnet-5-5", large("effort", { input: 2, output: 10, cached: 0.2, written: 2.5 })],
  [
    "claude-haiku-5-5",
    large("effort", {
      input: 0.1,
      output: 0.5,
      cached: 0.01,
      written: 0.125,
      long: { above: 100_000, input: 0.5, output: 2.5, cached: 0.05, written: 0.625 }
    })
  ],
  ["claude-fable-5", large("effort", { input: 10, output: 50, cached: 1, written: 12.5 })],
  ["claude-opus-5", large("effort", opus())],
  ["claude-sonnet-5", large("effort", { input: 2, output: 10, cached: 0.2, written: 2.5 })],
  ["claude-opus-4-8", large("effort", opus())],
  ["claude-opus-4-7", large("effort", opus())],
  ["claude-opus-4-6", large("budget", opus())],
  ["claude-sonnet-4-6", large("budget", sonnet())],
  ["claude-opus-4-5", small(opus())],
  ["claude-sonnet-4-5", small(sonnet())],
  ["claude-haiku-4-5", small({ input: 1, output: 5, cached: 0.1, written: 1.25 })]
]

/** Above 272,000 tokens of input all of a request costs more: twice for input, half as much again for output. */
const gpt = (input: number, output: number, cached: number, written: number): Omit<KnownModel, "source"> => ({
  window: 1_050_000,
  output: 128_000,
  thinking: "effort",
  price: {
    input,
    output,
    cached,
    written,
    long: { above: 272_000, input: 2 * input, output: 1.5 * output, cached: 2 * cached, written: 2 * written }
  }
})

const openai: ReadonlyArray<Row> = [
  ["gpt-6.2-sol", gpt(2, 10, 0.1, 2.5)],
  ["gpt-6-sol", gpt(2, 10, 0.2, 2.5)],
  ["gpt-6-luna", gpt(0.1, 0.5, 0.01, 0.125)]
]

const gemini: ReadonlyArray<Row> = [
  ["gemini-3.1-pro-preview", { window: 1_048_576, output: 65_536 }],
  ["gemini-3-flash-preview", { window: 1_048_576, output: 65_536, price: { input: 0.5, output: 3, cached: 0.05 } }]
]

const models: ReadonlyMap<string, KnownModel> = new Map([
  ...listed(
    "anthropic",
    { page: "https://platform.claude.com/docs/en/about-claude/pricing", read: "2026-11-23" },
    claude
  ),
  ...listed("openai", { page: "https://developers.openai.com/api/docs/pricing", read: "2026-11-23" }, openai),
  ...listed("google", { page: "https://ai.google.dev/gemini-api/docs/pricing", read: "2026-07-04" }, gemini)
])

function large(thinking: "budget" | "effort", price: Price): Omit<KnownModel, "source"> {
  return { window: million, output: 128_000, thinking, price }
}

function small(price: Price): Omit<KnownModel, "source"> {
  return { window: 200_000, output: 64_000, thinking: "budget", price }
}

function opus(): Price {
  return { input: 5, output: 25, cached: 0.5, written: 6.25 }
}

function sonnet(): Price {
  return { input: 3, output: 15, cached: 0.3, written: 3.75 }
}

function listed(
  provider: string,
  source: Source,
  rows: ReadonlyArray<Row>
): ReadonlyArray<readonly [string, KnownModel]> {
  return rows.map(([name, facts]) => [`${provider}/${name}`, { ...facts, source }])
}
