/**
 * What the handlers of one session run with: what each tool was built with, the session's interactor and output sink, and
 * whatever else belongs to this session. Merged once per tool.
 */
import * as Context from "effect/Context"
import type * as Interactor from "../interaction/Interactor.js"
import { Interactor as InteractorTag } from "../interaction/Interactor.js"
import { ToolOutput } from "../tool/ToolOutput.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"

export interface Options {
  readonly interactor: Interactor.Service
  readonly sink: Context.Tag.Service<typeof ToolOutput>
  /** Asked when the first tool runs. */
  readonly ambient: () => Context.Context<never>
}

export const make = ({
  ambient,
  interactor,
  sink
}: Options): ((entry: ToolRegistry.Entry) => Context.Context<never>) => {
  let shared: Context.Context<never> | undefined
  let merged: Map<ToolRegistry.Entry, Context.Context<never>> | undefined
  return (entry) => {
    const known = merged?.get(entry)
    if (known !== undefined) return known
    shared ??= Context.merge(
      ambient(),
      Context.make(InteractorTag, interactor).pipe(Context.add(ToolOutput, sink))
    ) as Context.Context<never>
    const context = Context.merge(entry.context, shared)
    merged ??= new Map()
    merged.set(entry, context)
    return context
  }
}
