/**
 * The children of one session: made, given work, asked again, cancelled and closed. A session sees and controls only its
 * own.
 *
 * Every tool call runs with the `Subagents` of the session that made it, so the tools themselves are built once.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type { Authority } from "../permission/PermissionGate.js"
import type { Delegation } from "../session/Delegation.js"
import * as Restored from "../session/Restored.js"
import type * as Session from "../session/Session.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import { ToolSettings } from "../tool/ToolSettings.js"
import type { AgentTree } from "./AgentTree.js"
import { Envelopes } from "./Envelopes.js"
import * as Mediation from "./Mediation.js"
import * as Subagent from "./Subagent.js"
import * as SubagentOrder from "./SubagentOrder.js"
import * as SubagentProfile from "./SubagentProfile.js"
import * as SubagentResult from "./SubagentResult.js"

/** Which subagent to make. */
export type Wanted = SubagentOrder.SubagentOrder | "agent"

/** One child as its parent may see it. */
export interface Listed {
  readonly subagent_id: string
  readonly name: string
  readonly status: "idle" | "working"
  readonly turns: number
}

/** All failures are sentences for the model. */
export interface Service {
  readonly profiles: ReadonlyArray<SubagentProfile.SubagentProfile>
  /** Whether the order can be carried out, before anybody is asked. */
  readonly validate: (order: Wanted) => Effect.Effect<void, string>
  /** What approving the order means. */
  readonly describe: (order: Wanted, task: string) => Effect.Effect<ToolDisplay, string>
  /** Makes a child, gives it its task and waits. With a `precedence` it may receive the user's words meanwhile. */
  readonly delegate: (
    order: Wanted,
    task: string,
    precedence?: number
  ) => Effect.Effect<SubagentResult.SubagentResult, string>
  /** Makes a child, gives it its task and does not wait. Its end comes as a message. */
  readonly spawn: (order: Wanted, task: string) => Effect.Effect<{ readonly subagent_id: string }, string>
  /** Asks a living child something and waits for the answer. */
  readonly ask: (id: string, question: string) => Effect.Effect<SubagentResult.SubagentResult, string>
  /** Words for a living child: read at its next step, or begun as a task whose end comes as a message. */
  readonly send: (id: string, message: string) => Effect.Effect<string, string>
  readonly cancel: (id: string) => Effect.Effect<string, string>
  readonly close: (id: string) => Effect.Effect<string, string>
  readonly list: Effect.Effect<ReadonlyArray<Listed>>
}

/** The children of the session that a tool was called by. */
export class Subagents extends Context.Tag("assent/subagent/Subagents")<Subagents, Service>() {}

export interface Options {
  readonly tree: AgentTree
  readonly session: Session.Service
  /** Whom the session itself asks. */
  readonly interactor: Interactor.Service
  /** The session's own. */
  readonly scope: Scope.Scope
}

/** A session's children, as the session is made with them. `settings` are those of its own profile. */
export const wired = (options: Options, settings: SubagentProfile.PluginConfigs = {}): Subagent.Wiring => {
  const children = new Children(options)
  return {
    ambient: Context.make(Subagents, children as Service).pipe(Context.add(ToolSettings, settings)),
    insteadOfAsking: children.insteadOfAsking,
    restore: children.restore
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Children implements Service {
  private readonly children = new Map<string, Subagent.Subagent>()
  /** Paths that were given, also to children that are closed by now: events name them for ever. */
  private readonly paths = new Set<string>()
  private readonly envelopes: Envelopes
  /** Left by another process, by the call that was under way with them. */
  private readonly left = new Map<ToolCallId, Subagent.Subagent>()

  private readonly mediation: Effect.Effect<void>

  constructor(private readonly options: Options) {
    this.mediation = Mediation.once(options)
    this.envelopes = new Envelopes(options)
  }

  get profiles(): ReadonlyArray<SubagentProfile.SubagentProfile> {
    return [...this.options.tree.profiles.values()]
  }

  readonly validate = (order: Wanted): Effect.Effect<void, string> =>
    Effect.asVoid(Effect.zipLeft(Effect.flatMap(this.recipe(order), this.model), this.room))

  readonly describe = (order: Wanted, task: string): Effect.Effect<ToolDisplay, string> =>
    Effect.map(this.recipe(order), ({ autoApproved, maxTurns, model, name, tools }) => {
      const lines = [
        `tools: ${tools.entries.map((entry) => entry.name).join(", ")}`,
        ...(model === undefined ? [] : [`model: ${model}`]),
        `at most ${maxTurns} model calls`,
        "",
        task
      ]
      return {
        summary: `start subagent ${name}`,
        details: lines.join("\n"),
        format: "text",
        ...(autoApproved ? { warnings: ["Its profile lets it use all of these without asking."] } : {})
      }
    })

  readonly delegate = (
    order: Wanted,
    task: string,
    precedence?: number
  ): Effect.Effect<SubagentResult.SubagentResult, string> =>
    Effect.flatMap(this.leftBy, (child) =>
      child === undefined
        ? Effect.flatMap(this.create(order), (made) => this.during(made, made.work(task), precedence))
        : this.during(child, child.workOn(task), precedence)
    )

  readonly spawn = (order: Wanted, task: string): Effect.Effect<{ readonly subagent_id: string }, string> =>
    Effect.flatMap(this.leftBy, (child) =>
      child === undefined
        ? Effect.flatMap(this.create(order), (made) => Effect.as(made.begin(task), { subagent_id: made.id }))
        : Effect.as(child.beginOnce(task), { subagent_id: child.id })
    )

  readonly ask = (id: string, question: string): Effect.Effect<SubagentResult.SubagentResult, string> =>
    Effect.flatMap(this.child(id), (child) =>
      Effect.flatMap(this.leftBy, (left) =>
        this.during(child, left === child ? child.workOn(question) : child.work(question), undefined)
      )
    )

  readonly send = (id: string, message: string): Effect.Effect<string, string> =>
    Effect.flatMap(this.child(id), (child) =>
      Effect.flatMap(child.session.isIdle, (idle) => {
        if (idle) return Effect.as(child.begin(message), `${id} has begun. Its end comes as a message.`)
        return Effect.as(
          child.session.inbox.port("parent").send(message),
          `${id} is working and reads this at its next step.`
        )
      })
    )

  readonly cancel = (id: string): Effect.Effect<string, string> =>
    Effect.flatMap(this.child(id), (child) =>
      Effect.flatMap(child.session.cancel("parent"), (end) =>
        Option.isNone(end)
          ? Effect.fail(`${id} is idle; there is nothing to cancel. Use close_subagent to end it.`)
          : Effect.succeed(`${id} was cancelled. It can be given another task.`)
      )
    )

  readonly close = (id: string): Effect.Effect<string, string> =>
    Effect.flatMap(this.child(id), (child) => {
      this.children.delete(id)
      return Effect.as(child.close, `${id} is closed.`)
    })

  readonly list: Effect.Effect<ReadonlyArray<Listed>> = Effect.suspend(() =>
    Effect.forEach([...this.children.values()], ({ id, recipe, session }) =>
      Effect.map(session.isIdle, (idle) => ({
        subagent_id: id,
        name: recipe.name,
        status: idle ? ("idle" as const) : ("working" as const),
        turns: session.turns()
      }))
    )
  )

  readonly insteadOfAsking: Authority = ({ call }) => {
    if (!SubagentOrder.ordering.has(call.name)) return Effect.succeedNone
    return Option.match(SubagentOrder.decode(call.params), {
      onNone: () => Effect.succeedNone,
      onSome: (order) =>
        Effect.matchEffect(this.recipe(order), {
          // The tool's own validation tells the model.
          onFailure: () => Effect.succeedNone,
          onSuccess: (recipe) => this.envelopes.ask(call.id, order, recipe)
        })
    })
  }

  /** The child that the running call was under way with in another process, once. */
  private get leftBy(): Effect.Effect<Subagent.Subagent | undefined> {
    return Effect.map(Origin.current, ({ toolCallId }) => {
      const child = toolCallId === undefined ? undefined : this.left.get(toolCallId)
      if (toolCallId !== undefined) this.left.delete(toolCallId)
      return child
    })
  }

  private recipe(order: Wanted): Effect.Effect<SubagentOrder.Recipe, string> {
    const { session, tree } = this.options
    return Effect.flatMap(session.model, ({ id }) => {
      const parent = { tree, tools: session.tools, depth: session.origin.depth, modelId: id }
      return order === "agent" ? SubagentOrder.general(parent) : SubagentOrder.recipe(order, parent)
    })
  }

  private child(id: string): Effect.Effect<Subagent.Subagent, string> {
    const child = this.children.get(id)
    if (child !== undefined) return Effect.succeed(child)
    const known = [...this.children.keys()].join(", ")
    return Effect.fail(
      `You have no subagent ${JSON.stringify(id)}. ${known === "" ? "You have none." : `You have: ${known}.`}`
    )
  }

  private create(order: Wanted): Effect.Effect<Subagent.Subagent, string> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(this, function* () {
        const { tree } = this.options
        const { toolCallId } = yield* Origin.current
        const granted = this.envelopes.take(order, toolCallId)
        const recipe = yield* this.recipe(order)
        const model = yield* restore(this.model(recipe))
        yield* this.room
        // Others make theirs between this look and the moment at which the child is there.
        tree.making++
        const making = Effect.gen(this, function* () {
          yield* this.mediation
          const id = granted?.id ?? tree.nextSubagentId()
          const every = recipe.autoApproved ? recipe.tools.entries.map(({ name }) => name) : undefined
          const allowed = granted?.tools ?? every
          return yield* this.adopt({ id, recipe, model, path: this.path(recipe.name), toolCallId, allowed })
        })
        return yield* Effect.ensuring(
          making,
          Effect.sync(() => tree.making--)
        )
      })
    )
  }

  private adopt(
    child: Pick<Subagent.Options, "id" | "recipe" | "model" | "path" | "toolCallId" | "allowed" | "restored">
  ): Effect.Effect<Subagent.Subagent> {
    const { scope, session, tree } = this.options
    const children = (own: Omit<Options, "tree">) => wired({ tree, ...own }, child.recipe.settings)
    return Effect.tap(Subagent.make({ ...child, tree, parent: session, children }, scope), (made) => {
      this.children.set(child.id, made)
      return Scope.addFinalizer(
        made.scope,
        Effect.sync(() => this.children.delete(child.id))
      )
    })
  }

  /** Calls that are still to have their results find the children they were under way with; the others go on alone. */
  readonly restore = (all: Restored.Restored): Effect.Effect<void> =>
    Effect.gen(this, function* () {
      const { session, tree } = this.options
      const own = Restored.get(all, session.origin.sessionId)
      const waiting = (own?.batch?.calls ?? []).filter(({ ended }) => ended === undefined)
      const isWaiting = (id: ToolCallId | undefined) => waiting.some(({ call }) => call.id === id)
      for (const request of Restored.requestsOf(own)) this.envelopes.remember(request)
      yield* this.regrant(waiting)
      for (const restored of all.sessions) {
        const { opened } = restored
        if (opened.parentSessionId !== session.origin.sessionId) continue
        this.paths.add(opened.agent)
        if (restored.closed || opened.child === undefined || opened.subagentId === undefined) continue
        const { allowed, ...made } = opened.child
        const profile = opened.profile === undefined ? undefined : tree.profiles.get(opened.profile)
        const model = yield* this.modelOf(opened.model)
        yield* this.mediation
        const child = yield* this.adopt({
          id: opened.subagentId,
          recipe: {
            ...made,
            tools: ToolRegistry.subset(tree.tools, made.tools).tools,
            profile,
            envelope: undefined,
            autoApproved: false,
            model: opened.model,
            maxTurns: opened.maxSteps ?? SubagentProfile.defaults.maxTurns,
            compaction: profile?.gc
          },
          model,
          path: opened.agent,
          toolCallId: opened.parentToolCallId,
          allowed,
          restored
        })
        for (const id of [opened.parentToolCallId, ...restored.tasks.map(({ toolCallId }) => toolCallId)]) {
          if (id !== undefined && isWaiting(id)) this.left.set(id, child)
        }
        yield* child.goOn
      }
    })

  /** What somebody allowed children that were not made yet. */
  private regrant(calls: ReadonlyArray<Restored.RestoredCall>): Effect.Effect<void> {
    return Effect.forEach(
      calls,
      ({ call, decided }) => {
        const order =
          decided?.method === "envelope" && decided.granted ? SubagentOrder.decode(call.params) : Option.none()
        if (Option.isNone(order)) return Effect.void
        // An order that cannot be carried out any more is refused where it is carried out.
        return Effect.ignore(
          Effect.map(this.recipe(order.value), (recipe) => this.envelopes.grant(call.id, order.value, recipe))
        )
      },
      { discard: true }
    )
  }

  /** The one it had, else its parent's. */
  private modelOf(id: string): Effect.Effect<Model.Service> {
    const { session, tree } = this.options
    return Effect.flatMap(session.model, (own) =>
      own.id === id ? Effect.succeed(own) : Effect.orElseSucceed(tree.resolveModel(id), () => own)
    )
  }

  private readonly model = (recipe: SubagentOrder.Recipe): Effect.Effect<Model.Service, string> =>
    recipe.model === undefined ? this.options.session.model : this.options.tree.resolveModel(recipe.model)

  private get room(): Effect.Effect<void, string> {
    return Effect.suspend(() => {
      const { making, maxChildren, nodes } = this.options.tree
      const alive = nodes.size - 1 + making
      return maxChildren !== undefined && alive >= maxChildren
        ? Effect.fail(`There are ${alive} subagents already, and no more are allowed. Close one first.`)
        : Effect.void
    })
  }

  private path(name: string): string {
    const plain = `${this.options.session.origin.agent}/${name}`
    let path = plain
    for (let number = 2; this.paths.has(path); number++) path = `${plain}-${number}`
    this.paths.add(path)
    return path
  }

  /** While it works, the user's words may be meant for it. */
  private during(
    child: Subagent.Subagent,
    work: Effect.Effect<Subagent.Done>,
    precedence: number | undefined
  ): Effect.Effect<SubagentResult.SubagentResult> {
    const { delegations } = this.options.session
    return Effect.flatMap(Origin.current, ({ toolCallId }) => {
      const working = Effect.map(work, ({ result }) => result)
      if (toolCallId === undefined) return working
      const delegation: Delegation = { toolCallId, precedence, session: child.session }
      delegations.add(delegation)
      return Effect.ensuring(
        working,
        Effect.sync(() => delegations.delete(delegation))
      )
    })
  }
}
