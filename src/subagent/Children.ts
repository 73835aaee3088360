/** The children of one session. It is loaded with the first of them: see `LazyChildren`. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as LazyModule from "../core/LazyModule.js"
import type { ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import type * as Model from "../model/Model.js"
import * as Mediator from "../bridge/Mediator.js"
import * as Region from "../core/Region.js"
import type * as MediatorAgent from "../bridge/MediatorAgent.js"
import * as History from "../conversation/History.js"
import type { Authority } from "../permission/PermissionGate.js"
import * as Compaction from "../turn/Compaction.js"
import * as Limits from "../turn/Limits.js"
import type { Delegation } from "../turn/Delegation.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as Session from "../session/Session.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import { ToolSettings } from "../tool/ToolSettings.js"
import type { AgentTree } from "./AgentTree.js"
import { Confines, type Envelope } from "./Confines.js"
import { EnvelopeApprovals } from "./EnvelopeApprovals.js"
import { Subagents, type Listed, type Service } from "./Subagents.js"
import { AgentPaths } from "./AgentPaths.js"
import * as ReturningSubagent from "./ReturningSubagent.js"
import * as Subagent from "./Subagent.js"
import type * as TreeSession from "./TreeSession.js"
import * as DelegationRequest from "./DelegationRequest.js"
import type * as SubagentProfile from "./SubagentProfile.js"
import type * as SubagentResult from "./SubagentResult.js"
import type { Done } from "./ChildTasks.js"

export interface Options extends TreeSession.Wired {
  readonly tree: AgentTree
  /** Settings of the session's own profile. */
  readonly settings: SubagentProfile.PluginConfigs | undefined
  /** Tools that the session itself may use without asking. */
  readonly envelope?: Envelope | undefined
}

// Most children never have a child of their own: fields are made with the first one.
export class Children implements Service, TreeSession.Wiring, Subagent.Family {
  private children: Map<string, Subagent.Subagent> | undefined
  private names: AgentPaths | undefined
  private granted: EnvelopeApprovals | undefined
  /** Children from another process, by the call that was running with them. */
  private left: Map<ToolCallId, Subagent.Subagent> | undefined
  private mediating: Effect.Effect<void> | undefined
  /** By the model calls of a turn: if each child had its own, they would be 0.4 KB of it. */
  private limits: Map<number, Partial<Limits.Limits>> | undefined
  private readonly confines: Confines | undefined

  constructor(private readonly options: Options) {
    const { envelope } = options
    this.confines = envelope && new Confines(envelope, (order) => this.recipe(order))
  }

  get authority(): Authority | undefined {
    return this.confines?.authority
  }

  private get session(): Session.Session {
    return this.options.session()
  }

  private get paths(): AgentPaths {
    return (this.names ??= new AgentPaths(this.session.origin.agent))
  }

  private get envelopes(): EnvelopeApprovals {
    return (this.granted ??= new EnvelopeApprovals({ tree: this.options.tree, session: this.session }))
  }

  private get mediation(): Effect.Effect<void> {
    if (this.mediating !== undefined) return this.mediating
    const { session } = this
    const { interactor, scope, tree } = this.options
    const { audit, bus, redactor } = tree.shared
    const { inbox, origin, place } = session
    const options = { requests: inbox.requests, interactor, origin, bus, redactor, audit, place }
    return (this.mediating = Mediator.once(options, strategyOf(tree, session), scope))
  }

  get profiles(): ReadonlyArray<SubagentProfile.SubagentProfile> {
    return [...this.options.tree.settings.profiles.values()]
  }

  readonly ambient = (): Context.Context<never> =>
    Context.make(Subagents, this as Service).pipe(Context.add(ToolSettings, this.options.settings ?? noSettings))

  validate(order: DelegationRequest.Wanted): Effect.Effect<void, string> {
    return Effect.flatMap(this.recipe(order), (recipe) =>
      Effect.flatMap(this.model(recipe), () =>
        this.crowded === undefined || this.yielding !== undefined ? Effect.void : Effect.fail(this.crowded)
      )
    )
  }

  describe(order: DelegationRequest.Wanted, task: string): Effect.Effect<ToolDisplay, string> {
    const { confines } = this
    return Effect.map(this.recipe(order), (recipe) =>
      DelegationRequest.display(recipe, task, confines === undefined ? [] : confines.beyond(recipe))
    )
  }

  delegate(
    order: DelegationRequest.Wanted,
    task: string,
    precedence?: number
  ): Effect.Effect<SubagentResult.SubagentResult, string> {
    return Effect.flatMap(this.leftBy, (child) =>
      child === undefined
        ? Effect.flatMap(this.create(order), (made) => this.reported(made, made.tasks.work(task), precedence))
        : this.reported(child, child.tasks.workOn(task), precedence)
    )
  }

  spawn(order: DelegationRequest.Wanted, task: string): Effect.Effect<{ readonly agent_id: string }, string> {
    return Effect.flatMap(this.leftBy, (child) =>
      child === undefined
        ? Effect.flatMap(this.create(order), (made) => begun(made, made.tasks.begin(task)))
        : begun(child, child.tasks.beginOnce(task))
    )
  }

  ask(id: string, question: string): Effect.Effect<SubagentResult.SubagentResult, string> {
    return Effect.flatMap(this.child(id), (child) =>
      Effect.flatMap(this.leftBy, (left) => {
        const { tasks } = child
        return this.reported(child, left === child ? tasks.workOn(question) : tasks.work(question), undefined)
      })
    )
  }

  send(id: string, message: string): Effect.Effect<string, string> {
    const delivered = ({ tasks }: Subagent.Subagent) =>
      Effect.map(tasks.hear(message), (when) => `${id} ${heard[when]}`)
    return Effect.flatMap(this.child(id), delivered)
  }

  cancel(id: string): Effect.Effect<string, string> {
    return Effect.flatMap(this.child(id), (child) =>
      Effect.flatMap(child.session.stop({ cancel: "parent" }), (end) =>
        Option.isNone(end)
          ? Effect.fail(`${id} is idle; there is nothing to cancel. Use close_subagent to end it.`)
          : Effect.succeed(
              `${id} was cancelled${child.keep === false ? " and ends." : ". It can be given another task."}`
            )
      )
    )
  }

  close(id: string): Effect.Effect<string, string> {
    return Effect.flatMap(this.child(id), (child) => {
      return Effect.as(this.shut(child), `${id} is closed.`)
    })
  }

  get list(): Effect.Effect<ReadonlyArray<Listed>> {
    return Effect.sync(() =>
      Array.from(this.children?.values() ?? [], ({ id, recipe, session }) => ({
        agent_id: id,
        name: recipe.name,
        status: session.isIdle() ? ("idle" as const) : ("working" as const),
        turns: session.turns()
      }))
    )
  }

  readonly insteadOfAsking: Authority = ({ call }) =>
    Option.match(DelegationRequest.written(call), {
      onNone: () => Effect.succeedNone,
      onSome: (order) =>
        Effect.matchEffect(this.recipe(order), {
          // The tool's own validation reports it to the model.
          onFailure: () => Effect.succeedNone,
          onSuccess: (recipe) => this.envelopes.ask(call.id, order, recipe)
        })
    })

  /** A call without a result finds its child again; other children continue on their own. */
  restore(all: SessionSnapshot.TreeSnapshot): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { session } = this
      const { settings } = this.options.tree
      const own = SessionSnapshot.get(all, session.origin.sessionId)
      const waiting = (own?.batch?.calls ?? []).filter(({ ended }) => ended === undefined)
      const isWaiting = (id: ToolCallId | undefined) => waiting.some(({ call }) => call.id === id)
      for (const request of SessionSnapshot.requestsOf(own)) this.envelopes.remember(request)
      yield* this.envelopes.regrant(waiting, (order) => this.recipe(order))
      for (const { call, decided } of waiting) {
        // Delegations beyond the envelope were decided by the rules.
        if (decided?.granted !== true || decided.method === "envelope") continue
        Option.map(DelegationRequest.wanted(call), (order) => this.confines?.letPass(order, call.id))
      }
      for (const restored of all.sessions) {
        const { closed, opened } = restored
        if (opened.parentSessionId !== session.origin.sessionId) continue
        this.paths.occupy(opened.agent)
        const returning = closed ? undefined : ReturningSubagent.make(opened, session.tools, settings)
        if (returning === undefined) continue
        const model = yield* this.modelOf(opened.model)
        yield* this.mediation
        const { agent: path, parentToolCallId: toolCallId } = opened
        const child = yield* this.adopt({ ...returning, model, path, toolCallId, restored, all })
        const left = (this.left ??= new Map())
        for (const id of [opened.parentToolCallId, ...restored.tasks.map(({ toolCallId }) => toolCallId)]) {
          if (id !== undefined && isWaiting(id)) left.set(id, child)
        }
        yield* child.tasks.resumeLeft
        // The call that waits for it ends it.
        if (![...left.values()].includes(child)) yield* child.retire()
      }
    })
  }

  /** The child that this call had in another process. It is given once. */
  private get leftBy(): Effect.Effect<Subagent.Subagent | undefined> {
    return Effect.map(Origin.current, ({ toolCallId }) => {
      const { left } = this
      if (left === undefined || toolCallId === undefined) return undefined
      const child = left.get(toolCallId)
      left.delete(toolCallId)
      return child
    })
  }

  private recipe(order: DelegationRequest.Wanted): Effect.Effect<DelegationRequest.Recipe, string> {
    const { session } = this
    const { tree } = this.options
    return Effect.flatMap(session.model, ({ id }) => {
      const parent = { tree, tools: session.tools, depth: session.origin.depth, modelId: id }
      return order === "agent" ? DelegationRequest.general(parent) : DelegationRequest.recipe(order, parent)
    })
  }

  private child(id: string): Effect.Effect<Subagent.Subagent, string> {
    const child = this.children?.get(id)
    if (child !== undefined) return Effect.succeed(child)
    const known = [...(this.children?.keys() ?? [])].join(", ")
    return Effect.fail(
      `You have no subagent ${JSON.stringify(id)}. ${known === "" ? "You have none." : `You have: ${known}.`} ` +
        "A subagent ends with its report. To ask it more, start it with keep: true."
    )
  }

  private create(order: DelegationRequest.Wanted): Effect.Effect<Subagent.Subagent, string> {
    return Region.uninterruptibleMask((restore) =>
      Effect.flatMap(Origin.current, ({ toolCallId }) => {
        const { confines, session } = this
        // The call's turn has ended without it, so the child would work for another turn.
        if (toolCallId !== undefined && !session.calls.has(toolCallId)) return Effect.fail(givenUp)
        const granted = this.granted?.take(order, toolCallId)
        return Effect.flatMap(this.recipe(order), (recipe) =>
          Effect.flatMap(restore(this.model(recipe)), (model) => {
            const { crowded, yielding } = this
            if (crowded !== undefined && yielding === undefined) return Effect.fail(crowded)
            const { tree } = this.options
            // Counted now: other fibers may make children between this check and the moment at which this child is a
            // node.
            tree.making++
            // Its place in the count is free before anything waits.
            const room = crowded === undefined || yielding === undefined ? Effect.void : this.shut(yielding)
            const making = Effect.flatMap(Effect.zipRight(room, this.mediation), () => {
              const id = granted?.id ?? tree.nextSubagentId()
              const counts = recipe.autoApproved && (confines === undefined || confines.passed(order, toolCallId))
              const every = counts ? recipe.tools.entries.map(({ name }) => name) : undefined
              const allowed = granted?.tools ?? every
              const keep = order !== "agent" && order.keep === true
              return this.adopt({ id, recipe, model, path: this.paths.next(recipe.name), toolCallId, allowed, keep })
            })
            return Effect.matchCauseEffect(making, {
              onFailure: (cause) => {
                tree.making--
                return Effect.failCause(cause)
              },
              onSuccess: (child) => {
                tree.making--
                return Effect.succeed(child)
              }
            })
          })
        )
      })
    )
  }

  private adopt(
    child: Pick<
      Subagent.Options,
      "id" | "recipe" | "model" | "path" | "toolCallId" | "allowed" | "keep" | "restored" | "all"
    >
  ): Effect.Effect<Subagent.Subagent> {
    const { scope, tree } = this.options
    const options: Subagent.Options = {
      tree,
      family: this,
      id: child.id,
      recipe: child.recipe,
      model: child.model,
      parent: this.session,
      path: child.path,
      toolCallId: child.toolCallId,
      allowed: child.allowed,
      keep: child.keep,
      restored: child.restored,
      all: child.all
    }
    const making = Effect.zipRight(Compaction.load(child.recipe.compaction), Subagent.make(options, scope))
    return Effect.map(making, (made) => {
      this.children = (this.children ?? new Map()).set(made.id, made)
      return made
    })
  }

  wire(
    { settings }: DelegationRequest.Recipe,
    { interactor, scope, session }: TreeSession.Wired,
    envelope: Envelope | undefined
  ): TreeSession.Wiring {
    return new Children({ tree: this.options.tree, session, interactor, scope, settings, envelope })
  }

  /** A deeper agent gives up earlier on a call that does not stop, so that the report names the innermost one. */
  limitsOf({ maxTurns: maxSteps }: DelegationRequest.Recipe): Partial<Limits.Limits> {
    const known = this.limits?.get(maxSteps)
    if (known !== undefined) return known
    const shared = this.options.tree.shared.limits
    const { stopWithin } = Limits.withDefaults(shared)
    const depth = this.session.origin.depth + 1
    const limits = { ...shared, maxSteps, stopWithin: Duration.times(stopWithin, 0.9 ** depth) }
    this.limits = (this.limits ?? new Map()).set(maxSteps, limits)
    return limits
  }

  ended(id: string): void {
    this.children?.delete(id)
  }

  /** The model it had, else its parent's. */
  private modelOf(id: string): Effect.Effect<Model.Service> {
    const { resolveModel } = this.options.tree.settings
    return Effect.flatMap(this.session.model, (own) =>
      own.id === id ? Effect.succeed(own) : Effect.orElseSucceed(resolveModel(id), () => own)
    )
  }

  private model(recipe: DelegationRequest.Recipe): Effect.Effect<Model.Service, string> {
    return recipe.model === undefined ? this.session.model : this.options.tree.settings.resolveModel(recipe.model)
  }

  /** The reason why there is no room for another child. */
  private get crowded(): string | undefined {
    const { settings, size } = this.options.tree
    return settings.maxChildren !== undefined && size >= settings.maxChildren
      ? `There are ${size} subagents already, and no more are allowed. Wait until one has reported, or close one that is kept.`
      : undefined
  }

  /** An idle child that gives its room to another: nobody decided to keep it, or this session has no tool to close it. */
  private get yielding(): Subagent.Subagent | undefined {
    const closes = this.session.tools.get("close_subagent") !== undefined
    for (const child of this.children?.values() ?? []) {
      if (child.session.isIdle() && !(closes && child.keep === true)) return child
    }
    return undefined
  }

  private shut(child: Subagent.Subagent): Effect.Effect<void> {
    this.children?.delete(child.id)
    return child.close
  }

  /** The result of a child's task. Then the child ends, if it has no more to do. */
  private reported(
    child: Subagent.Subagent,
    work: Effect.Effect<Done>,
    precedence: number | undefined
  ): Effect.Effect<SubagentResult.SubagentResult> {
    return Effect.ensuring(this.during(child, work, precedence), child.retire())
  }

  /** While the child works, it may receive the user's words. */
  private during(
    child: Subagent.Subagent,
    work: Effect.Effect<Done>,
    precedence: number | undefined
  ): Effect.Effect<SubagentResult.SubagentResult> {
    const { delegations } = this.session
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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Ends the child after the task that it has begun. */
const begun = (child: Subagent.Subagent, begin: Effect.Effect<void>): Effect.Effect<{ readonly agent_id: string }> =>
  Effect.as(Effect.zipRight(begin, child.retire()), { agent_id: child.id })

/** How the questions of this session's children are answered. */
const strategyOf = (
  { settings: { mediation }, shared: { redactor } }: AgentTree,
  session: Session.Session
): Effect.Effect<Mediator.Strategy> => {
  if (mediation === "forward") return Effect.succeed(Mediator.forward)
  if (mediation !== "agent") return Effect.succeed(mediation)
  // Few trees have a model that answers, and it brings the XML of questions with it.
  return Effect.flatMap(loadMediatorAgent, (MediatorAgent) =>
    MediatorAgent.make({
      model: session.model,
      origin: session.origin,
      redactor,
      conversation: () => spokenIn(session.history),
      usage: (model, usage) => session.spent(model, usage)
    })
  )
}

const loadMediatorAgent = LazyModule.make(() => import("../bridge/MediatorAgent.js"))

/** The words of a conversation with their speakers. */
const spokenIn = ({ messages }: History.History): ReadonlyArray<MediatorAgent.Spoken> =>
  messages.flatMap((message) => {
    const text = message.role === "user" || message.role === "assistant" ? History.textOf(message) : ""
    return text === "" ? [] : [{ from: speakerOf(message), text }]
  })

const speakerOf = (message: Parameters<typeof History.metadata>[0]): MediatorAgent.Spoken["from"] => {
  if (message?.role === "assistant") return "you"
  const { source, summary } = History.metadata(message)
  if (summary === true) return "summary"
  return source === "child" ? "subagent" : (source ?? "user")
}

const givenUp = "This call was cancelled. It starts no more subagents."

const heard = {
  now: "has begun. Its end comes as a message.",
  later: "is working and begins this after that. Its end comes as a message.",
  reads: "is working and reads this at its next step."
}

const noSettings: SubagentProfile.PluginConfigs = {}
