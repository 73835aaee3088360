/**
 * Calls that a model makes again and again in one turn though nothing comes of them: the same tool with the same arguments.
 *
 * Errors count that come one after the other, with nothing else between them. What a person refused counts until the turn
 * ends, because somebody who has said no to a call is not to be asked about that very call for ever. The two are counted
 * apart: a refusal is no error.
 */
import { canonicalJson } from "../core/Digest.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import { Denied, Failed, type TurnEnd } from "../event/TurnEnd.js"

/** The calls of a step, with their results in the same order. */
export interface Step {
  readonly calls: ReadonlyArray<ToolCall>
  readonly results: ReadonlyArray<ToolResult>
  /** Whether somebody who was asked refused the call. */
  readonly isRefused: (index: number) => boolean
}

export class RepetitionLimit {
  private failed: string | undefined
  private failures = 0
  private refusals: Map<string, number> | undefined

  /** `most` is how often is too often. */
  constructor(private readonly most: number) {}

  /** How the turn ends after this step, if it does: the model cannot get further. */
  endAfter({ calls, isRefused, results }: Step, steps: number): TurnEnd | undefined {
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
