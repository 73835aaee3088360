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
import * as Mediator from "../bridge/Mediator.js"
import * as MediatorAgent from "../bridge/MediatorAgent.js"
import type { ToolCallId } from "../core/Id.js"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import { EventBus } from "../event/EventBus.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import * as Grant from "../permission/Grant.js"
import type { Authority, Resolution } from "../permission/PermissionGate.js"
import type { Delegation } from "../session/Delegation.js"
import type * as Session from "../session/Session.js"
import type { ToolDisplay } from "../tool/ToolCall.js"
import { ToolSettings } from "../tool/ToolSettings.js"
import type { AgentTree } from "./AgentTree.js"
import * as Subagent from "./Subagent.js"
import * as SubagentOrder from "./SubagentOrder.js"
import type { SubagentProfile } from "./SubagentProfile.js"
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
  readonly profiles: ReadonlyArray<SubagentProfile>
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
export const wired = (options: Options, settings: SubagentProfile["pluginConfigs"] = {}): Subagent.Wiring => {
  const children = new Children(options)
  return {
    ambient: Context.make(Subagents, children as Service).pipe(Context.add(ToolSettings, settings)),
    insteadOfAsking: children.insteadOfAsking
  }
}

/** The tools whose calls may be orders that name tools. */
export const ordering: ReadonlySet<string> = new Set(["delegate", "spawn_subagent"])

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What somebody allowed a child that is about to be made. */
interface Granted {
  readonly id: string
  /** Of the order it was allowed for: a model may use the id of a call again. */
  readonly order: string
  readonly authority: Authority
}

class Children implements Service {
  private readonly children = new Map<string, Subagent.Subagent>()
  /** Paths that were given, also to children that are closed by now: events name them for ever. */
  private readonly paths = new Set<string>()
  /** By the call that asked. */
  private readonly granted = new Map<ToolCallId, Granted>()
  private mediating = false

  constructor(private readonly options: Options) {}

  get profiles(): ReadonlyArray<SubagentProfile> {
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
    Effect.flatMap(this.create(order), (child) => this.work(child, task, precedence))

  readonly spawn = (order: Wanted, task: string): Effect.Effect<{ readonly subagent_id: string }, string> =>
    Effect.flatMap(this.create(order), (child) => Effect.as(child.begin(task), { subagent_id: child.id }))

  readonly ask = (id: string, question: string): Effect.Effect<SubagentResult.SubagentResult, string> =>
    Effect.flatMap(this.child(id), (child) => this.work(child, question, undefined))

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
    if (!ordering.has(call.name)) return Effect.succeedNone
    return Option.match(SubagentOrder.decode(call.params), {
      onNone: () => Effect.succeedNone,
      onSome: (order) =>
        Effect.matchEffect(this.recipe(order), {
          // The tool's own validation tells the model.
          onFailure: () => Effect.succeedNone,
          onSuccess: (recipe) =>
            recipe.envelope === undefined
              ? Effect.succeedNone
              : this.askForEnvelope(call.id, order, recipe, recipe.envelope)
        })
    })
  }

  private askForEnvelope(
    callId: ToolCallId,
    order: SubagentOrder.SubagentOrder,
    recipe: SubagentOrder.Recipe,
    tools: ReadonlyArray<string>
  ): Effect.Effect<Option.Option<Resolution>, never, Interactor.Interactor> {
    const { session, tree } = this.options
    const { bus, redactor } = tree.shared
    return Effect.flatMap(session.model, (own) => {
      const id = tree.nextSubagentId()
      const [providerId = "", ...rest] = (recipe.model ?? own.id).split("/")
      return Grant.requestEnvelope({
        subagentId: id,
        parentSessionId: session.origin.sessionId,
        depth: session.origin.depth + 1,
        tools,
        active: session.tools.entries.map(({ name }) => name),
        promptSummary: Redaction.summarize(order.task, redactor),
        model: { providerId, modelId: rest.join("/") },
        redactor
      }).pipe(
        Effect.provideService(EventBus, bus),
        Effect.match({
          onFailure: (error): Resolution => ({
            granted: false,
            method: error._tag === "EnvelopeInvalid" ? "pre_validation" : methods[error.how],
            reason: error.message
          }),
          onSuccess: (authority): Resolution => {
            this.granted.set(callId, { id, order: Digest.digest(order), authority })
            return { granted: true, method: "envelope", reason: `the envelope of ${id} was approved` }
          }
        }),
        Effect.map(Option.some)
      )
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
        const { scope, session, tree } = this.options
        const { toolCallId } = yield* Origin.current
        const granted = this.takeGranted(order, toolCallId)
        const recipe = yield* this.recipe(order)
        const model = yield* restore(this.model(recipe))
        yield* this.room
        // Others make theirs between this look and the moment at which the child is there.
        tree.making++
        const making = Effect.gen(this, function* () {
          yield* this.mediate
          const id = granted?.id ?? tree.nextSubagentId()
          const authority =
            granted?.authority ??
            (recipe.autoApproved
              ? Grant.envelope({ tools: recipe.tools.entries.map(({ name }) => name), subagentId: id })
              : undefined)
          const child = yield* Subagent.make(
            {
              tree,
              id,
              recipe,
              model,
              parent: session,
              path: this.path(recipe.name),
              toolCallId,
              authority,
              children: (child) => wired({ tree, ...child }, recipe.settings)
            },
            scope
          )
          this.children.set(id, child)
          yield* Scope.addFinalizer(
            child.scope,
            Effect.sync(() => this.children.delete(id))
          )
          return child
        })
        return yield* Effect.ensuring(
          making,
          Effect.sync(() => tree.making--)
        )
      })
    )
  }

  private takeGranted(order: Wanted, callId: ToolCallId | undefined): Granted | undefined {
    const granted = callId === undefined ? undefined : this.granted.get(callId)
    if (callId === undefined || granted === undefined) return undefined
    this.granted.delete(callId)
    return granted.order === Digest.digest(order) ? granted : undefined
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

  private work(
    child: Subagent.Subagent,
    task: string,
    precedence: number | undefined
  ): Effect.Effect<SubagentResult.SubagentResult> {
    const { delegations } = this.options.session
    return Effect.flatMap(Origin.current, ({ toolCallId }) => {
      const working = Effect.map(child.work(task), ({ result }) => result)
      if (toolCallId === undefined) return working
      const delegation: Delegation = { toolCallId, precedence, session: child.session }
      delegations.add(delegation)
      return Effect.ensuring(
        working,
        Effect.sync(() => delegations.delete(delegation))
      )
    })
  }

  /** Started with the first child. */
  private get mediate(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.mediating) return Effect.void
      this.mediating = true
      const { interactor, scope, session, tree } = this.options
      const { audit, bus, redactor } = tree.shared
      return Effect.flatMap(this.strategy(), (strategy) =>
        Mediator.start({
          lane: session.inbox.requests,
          interactor,
          strategy,
          origin: session.origin,
          bus,
          redactor,
          audit
        }).pipe(Scope.extend(scope))
      )
    })
  }

  private strategy(): Effect.Effect<Mediator.Strategy> {
    const { session, tree } = this.options
    const { mediation, shared } = tree
    if (mediation === "forward") return Effect.succeed(Mediator.forward)
    if (mediation !== "agent") return Effect.succeed(mediation)
    const { agent, sessionId } = session.origin
    return MediatorAgent.make({
      model: session.model,
      origin: session.origin,
      redactor: shared.redactor,
      conversation: () => session.history.messages,
      usage: (model, usage) => shared.ledger?.record({ sessionId, agent, model, usage, kind: "call" })
    })
  }
}

const methods: { readonly [How in Grant.EnvelopeDenied["how"]]: Resolution["method"] } = {
  denied: "user_denied",
  cancelled: "cancelled",
  timed_out: "timeout",
  unavailable: "unavailable"
}
