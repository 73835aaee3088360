/**
 * The context of a session's handlers: the tool's own services, the session's interactor and output sink, and further
 * services of the session. Merged once per tool.
 */
import * as Context from "effect/Context"
import type * as Interactor from "../interaction/Interactor.js"
import { Interactor as InteractorTag } from "../interaction/Interactor.js"
import { ToolOutput } from "../tool/ToolOutput.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"

export interface Options {
  readonly interactor: Interactor.Service
  readonly sink: Context.Tag.Service<typeof ToolOutput>
  /** Called when the first tool runs. */
  readonly ambient: () => Context.Context<never>
}

export class ToolContexts {
  private shared: Context.Context<never> | undefined
  private readonly merged = new Map<ToolRegistry.Entry, Context.Context<never>>()

  constructor(private readonly options: Options) {}

  of(entry: ToolRegistry.Entry): Context.Context<never> {
    const known = this.merged.get(entry)
    if (known !== undefined) return known
    const { ambient, interactor, sink } = this.options
    this.shared ??= Context.merge(
      ambient(),
      Context.make(InteractorTag, interactor).pipe(Context.add(ToolOutput, sink))
    ) as Context.Context<never>
    const context = Context.merge(entry.context, this.shared)
    this.merged.set(entry, context)
    return context
  }
}
