/** What is said when a limit of tokens or money is reached. */
import { Confirm } from "../interaction/Interaction.js"
import * as TokenLedger from "../model/TokenLedger.js"

/** The question whether more may be used. */
export const question = (exceeded: TokenLedger.Exceeded, ledger: TokenLedger.Service): Confirm => {
  const { allowed, limit, step, used } = exceeded
  const amount = amountOf(exceeded, ledger)
  const { spent } = words[limit]
  return new Confirm({
    prompt: `${spent} ${amount(used, "bare")} of ${amount(allowed)}. Allow another ${amount(step, "bare")}?`,
    default: false
  })
}

/** Why a session must not call its model: a sentence for people and for a parent's model. */
export const refusal = (exceeded: TokenLedger.Exceeded, ledger: TokenLedger.Service, reason: string): string => {
  const { allowed, limit, used } = exceeded
  const amount = amountOf(exceeded, ledger)
  const verb = isMoney(limit) ? "spent" : "used"
  return `The limit of ${amount(allowed)} for ${words[limit].whose} is reached (${amount(used, "bare")} ${verb}), and ${sentence(reason)}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An amount in what the limit counts; `bare`: beside another one. */
const amountOf =
  ({ limit }: TokenLedger.Exceeded, { currency }: TokenLedger.Service) =>
  (amount: number, how?: "bare"): string =>
    isMoney(limit) ? TokenLedger.money(amount, currency) : `${amount}${how === "bare" ? "" : " tokens"}`

const isMoney = (limit: TokenLedger.Exceeded["limit"]): boolean => limit.endsWith("Cost")

const words: {
  readonly [L in TokenLedger.Exceeded["limit"]]: { readonly spent: string; readonly whose: string }
} = {
  session: { spent: "The agent has used", whose: "this session" },
  tree: { spent: "The agent and its subagents have used", whose: "the agent and its subagents together" },
  runCost: { spent: "This run has cost", whose: "one run" },
  treeCost: { spent: "This session has cost", whose: "this session" },
  dayCost: { spent: "The sessions of today have cost", whose: "one day" }
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
