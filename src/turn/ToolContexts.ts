/**
 * The context of a session's handlers: what the tool was built with, the world of the caller, then the session's
 * interactor and output sink, and further services of the session. Merged once per tool, as long as the world is the
 * same.
 */
import * as Context from "effect/Context"
import * as World from "../core/World.js"
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
  private own: Context.Context<never> | undefined
  private outer: Context.Context<never> | undefined
  private readonly merged = new Map<ToolRegistry.Entry, Context.Context<never>>()

  constructor(private readonly options: Options) {}

  /** `outer`: the context around the call. */
  of(entry: ToolRegistry.Entry, outer: Context.Context<never>): Context.Context<never> {
    if (outer !== this.outer) this.forget()
    this.outer = outer
    const known = this.merged.get(entry)
    if (known !== undefined) return known
    const { ambient, interactor, sink } = this.options
    // The types do not say that these are there for every call.
    this.own ??= Context.merge(
      ambient(),
      Context.make(InteractorTag, interactor).pipe(Context.add(ToolOutput, sink))
    ) as Context.Context<never>
    const context = World.handlerContext(entry.context, outer, this.own)
    this.merged.set(entry, context)
    return context
  }

  /** Holds nothing of a world that is over. */
  forget(): void {
    this.outer = undefined
    this.merged.clear()
  }
}
