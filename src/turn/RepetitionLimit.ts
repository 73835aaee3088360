/**
 * Ends a turn in which a model repeats a fruitless call: the same tool with the same arguments, or any call that is cut off
 * at the output limit.
 *
 * Errors count only in direct succession. Refusals by a person count until the turn ends, because a person who refused
 * a call must not be asked about it for ever. The two are counted separately: a refusal is no error.
 */
import { canonicalJson } from "../core/CanonicalJson.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import { Denied, Failed, type TurnEnd } from "../event/TurnEnd.js"

/** The calls of a step, with their results in the same order. */
export interface Step {
  readonly calls: ReadonlyArray<ToolCall>
  readonly results: ReadonlyArray<ToolResult>
  /** Whether a person refused the call. */
  readonly isRefused: (index: number) => boolean
  /** The result of the last call, if the output limit cut the call off. */
  readonly cut: string | undefined
}

/** Calls in a row that the output limit may cut off. A model that was told twice writes as much a third time. */
const mostCuts = 3

export class RepetitionLimit {
  private failed: string | undefined
  private failures = 0
  private cuts = 0
  private refusals: Map<string, number> | undefined

  /** `most`: the number of repetitions that ends the turn. */
  constructor(private readonly most: number) {}

  /** The turn's end after this step, if the model repeats itself too often. */
  endAfter({ calls, cut, isRefused, results }: Step, steps: number): TurnEnd | undefined {
    this.cuts = cut === undefined ? 0 : this.cuts + 1
    if (cut !== undefined && this.cuts >= mostCuts) {
      const advice = "Ask for a smaller step, or raise max_output_tokens of the model."
      return Failed({ error: `${this.cuts} calls in a row were cut off. ${cut} ${advice}`, steps })
    }
    for (const [index, { name, outcome, result }] of results.entries()) {
      if (outcome === "succeeded") this.failed = undefined
      if (outcome === "succeeded" || outcome === "cancelled") continue
      const key = `${name} ${canonicalJson(calls[index]?.params)}`
      const refused = isRefused(index)
      const times = refused ? this.refusal(key) : this.failure(key)
      if (times < this.most) continue
      return refused
        ? Denied({ detail: `The same call of ${name} was denied ${times} times.`, steps })
        : Failed({ error: `The same call of ${name} failed ${times} times in a row: ${JSON.stringify(result)}`, steps })
    }
    return undefined
  }

  private failure(key: string): number {
    this.failures = this.failed === key ? this.failures + 1 : 1
    this.failed = key
    return this.failures
  }

  private refusal(key: string): number {
    this.refusals ??= new Map()
    const times = (this.refusals.get(key) ?? 0) + 1
    this.refusals.set(key, times)
    return times
  }
}
