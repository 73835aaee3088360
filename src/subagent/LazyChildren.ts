/**
 * The children of a root session, which has none yet, and mostly never will: what makes children and talks with them is
 * loaded with the first one.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import * as LazyModule from "../core/LazyModule.js"
import type { Authority } from "../permission/PermissionGate.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import { ToolSettings } from "../tool/ToolSettings.js"
import type { Children, Options } from "./Children.js"
import * as DelegatingTool from "../tool/DelegatingTool.js"
import type * as DelegationRequest from "./DelegationRequest.js"
import type * as SubagentProfile from "./SubagentProfile.js"
import type * as SubagentResult from "./SubagentResult.js"
import { Subagents, type Listed, type Service } from "./Subagents.js"
import type * as TreeSession from "./TreeSession.js"

/** A root has no envelope. */
export const make = (options: Omit<Options, "envelope">): TreeSession.Wiring => new LazyChildren(options)

/** Loads what makes children, where one of the tools deals with them: later no call waits for that. */
export const load = (entries: Iterable<ToolRegistry.Entry>): Effect.Effect<unknown> => {
  for (const { groups } of entries) if (groups.includes("subagent")) return loaded
  return Effect.void
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const loaded = LazyModule.make(() => import("./Children.js"))

class LazyChildren implements Service, TreeSession.Wiring {
  private made: Children | undefined
  readonly authority = undefined

  constructor(private readonly options: Options) {}

  /** One for the whole session, also when two calls want it at once. */
  private get children(): Effect.Effect<Children> {
    return this.made === undefined
      ? Effect.map(loaded, ({ Children }) => (this.made ??= new Children(this.options)))
      : Effect.succeed(this.made)
  }

  get profiles(): ReadonlyArray<SubagentProfile.SubagentProfile> {
    return [...this.options.tree.settings.profiles.values()]
  }

  readonly ambient = (): Context.Context<never> =>
    Context.make(Subagents, this as Service).pipe(Context.add(ToolSettings, this.options.settings ?? noSettings))

  validate(order: DelegationRequest.Wanted): Effect.Effect<void, string> {
    return Effect.flatMap(this.children, (children) => children.validate(order))
  }

  describe(order: DelegationRequest.Wanted, task: string): Effect.Effect<ToolDisplay, string> {
    return Effect.flatMap(this.children, (children) => children.describe(order, task))
  }

  delegate(
    order: DelegationRequest.Wanted,
    task: string,
    precedence?: number
  ): Effect.Effect<SubagentResult.SubagentResult, string> {
    return Effect.flatMap(this.children, (children) => children.delegate(order, task, precedence))
  }

  spawn(order: DelegationRequest.Wanted, task: string): Effect.Effect<{ readonly agent_id: string }, string> {
    return Effect.flatMap(this.children, (children) => children.spawn(order, task))
  }

  ask(id: string, question: string): Effect.Effect<SubagentResult.SubagentResult, string> {
    return Effect.flatMap(this.children, (children) => children.ask(id, question))
  }

  send(id: string, message: string): Effect.Effect<string, string> {
    return Effect.flatMap(this.children, (children) => children.send(id, message))
  }

  cancel(id: string): Effect.Effect<string, string> {
    return Effect.flatMap(this.children, (children) => children.cancel(id))
  }

  close(id: string): Effect.Effect<string, string> {
    return Effect.flatMap(this.children, (children) => children.close(id))
  }

  get list(): Effect.Effect<ReadonlyArray<Listed>> {
    return Effect.suspend(() => (this.made === undefined ? Effect.succeed([]) : this.made.list))
  }

  // Called for each call that a person would be asked about.
  readonly insteadOfAsking: Authority = (proposal, options) =>
    DelegatingTool.is(proposal.call.name)
      ? Effect.flatMap(this.children, (children) => children.insteadOfAsking(proposal, options))
      : Effect.succeedNone

  restore(all: SessionSnapshot.TreeSnapshot): Effect.Effect<void> {
    return Effect.flatMap(this.children, (children) => children.restore(all))
  }
}

const noSettings: SubagentProfile.PluginConfigs = {}
