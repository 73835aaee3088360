/** What the calls of one step know of each other: which are of one tool, and which of those are still to be decided. */
import * as Either from "effect/Either"
import type { RequestId } from "../core/Id.js"
import type { BatchPlace } from "../interaction/InteractionRequest.js"
import type { Company } from "../permission/Authority.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { TurnContext } from "./TurnContext.js"

/** What this needs of a batch. */
export interface Host {
  readonly session: Pick<TurnContext, "tools">
  readonly calls: ReadonlyArray<ToolCall>
  /** Whether the call at this index is still to be decided. */
  readonly isToCome: (index: number, call: ToolCall) => boolean
}

export class SameTool implements Company {
  /** For each tool the id of the first request about one of its calls. */
  private first: Map<string, RequestId> | undefined

  constructor(private readonly batch: Host) {}

  placeOf({ id, name }: ToolCall, asked: RequestId): BatchPlace | undefined {
    const alike = this.batch.calls.filter((call) => call.name === name)
    const index = alike.findIndex((call) => call.id === id) + 1
    if (alike.length < 2 || index === 0) return undefined
    this.first ??= new Map()
    const first = this.first.get(name) ?? asked
    this.first.set(name, first)
    return { id: first, index, of: alike.length }
  }

  behind({ id, name }: ToolCall): ReturnType<Company["behind"]> {
    const { batch } = this
    const entry = batch.session.tools.get(name)
    const at = batch.calls.findIndex((call) => call.id === id)
    let index = 0
    return batch.calls.flatMap((call, position) => {
      if (call.name !== name) return []
      index++
      if (entry === undefined || position <= at || !batch.isToCome(position, call)) return []
      const decoded = entry.decode(call.params)
      return Either.isLeft(decoded) ? [] : [{ index, proposal: { call, entry, params: decoded.right } }]
    })
  }
}
