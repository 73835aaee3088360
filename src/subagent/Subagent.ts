/**
 * A child: a session of its own, wired to its parent.
 *
 * ```
 *  parent's scope ⊃ child's scope ⊃ child's turns, its own children
 *  child's tools ─► its gate ─► bridge ─► parent's mediator ─► …
 * ```
 *
 * It ends when it has reported all that it was given. One that is kept lives until it is closed or its parent ends. Only
 * the turn of a task is bound to the call that waits for it.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as ParentBridgedChannel from "../bridge/ParentBridgedChannel.js"
import * as Id from "../core/Id.js"
import type { ToolCallId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import type * as ChildRequestQueue from "../inbox/ChildRequestQueue.js"
import type * as Model from "../model/Model.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import * as Session from "../session/Session.js"
import type { Limits } from "../turn/Limits.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import type { AgentTree, Node } from "./AgentTree.js"
import * as TreeSession from "./TreeSession.js"
import type { Envelope } from "./Confines.js"
import type * as DelegationRequest from "./DelegationRequest.js"
import { ChildTasks, type Tell } from "./ChildTasks.js"

export interface Options {
  readonly tree: AgentTree
  readonly family: Family
  readonly id: string
  readonly recipe: DelegationRequest.Recipe
  readonly model: Model.Service
  readonly parent: Session.Session
  /** Path of the child, distinct from siblings of the same name. */
  readonly path: string
  /** The call that makes it, if any. */
  readonly toolCallId: ToolCallId | undefined
  /** Names of the tools it may use without asking, for its life. */
  readonly allowed: ReadonlyArray<string> | undefined
  /** It stays after its report. Absent: nobody decided, it is from an older journal. */
  readonly keep: boolean | undefined
  /** Its state from another process. */
  readonly restored?: SessionSnapshot.SessionSnapshot | undefined
  /** The snapshot of the tree, which contains its own children. */
  readonly all?: SessionSnapshot.TreeSnapshot | undefined
}

/** The family of a child: its parent's children. */
export interface Family {
  /** Wires a child. The session exists by the time the function is called. */
  readonly wire: (
    recipe: DelegationRequest.Recipe,
    child: TreeSession.Wired,
    /** Tools that it may use without asking. */
    envelope: Envelope | undefined
  ) => TreeSession.Wiring
  readonly limitsOf: (recipe: DelegationRequest.Recipe) => Partial<Limits>
  /** Called when a child has ended. */
  readonly ended: (id: string) => void
}

export interface Subagent {
  readonly id: string
  readonly recipe: DelegationRequest.Recipe
  readonly session: Session.Session
  readonly tasks: ChildTasks
  readonly keep: boolean | undefined
  /** Cancels what it does and ends it. */
  readonly close: Effect.Effect<void>
  /** Closes it when it is idle, unless it is kept. Its own children may still work. */
  readonly retire: () => Effect.Effect<void>
}

/**
 * Makes a child in its parent's scope and starts it. Not a generator: V8 keeps the function of each in the old generation,
 * with all that it holds.
 */
export const make = (options: Options, parentScope: Scope.Scope): Effect.Effect<Subagent> =>
  Effect.flatMap(surroundings(parentScope), (surroundings) => {
    const { all, parent } = options
    const { child, wiring } = making(options, surroundings)
    const started = Effect.as(child.start(parent), child)
    // Before it resumes: the call that waits for one of them must find it.
    return all === undefined ? started : Effect.zipRight(wiring.restore(all), started)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Surroundings extends Session.Surroundings {
  readonly scope: Scope.CloseableScope
}

/** Where a child is made: in a scope of its own below its parent's. */
const surroundings = (parentScope: Scope.Scope): Effect.Effect<Surroundings> =>
  Effect.flatMap(Id.IdGenerator, (ids) =>
    Effect.flatMap(Scope.fork(parentScope, parentScope.strategy), (scope) =>
      Effect.clockWith((clock) => Effect.succeed({ ids, clock, scope }))
    )
  )

/** A child in its tree, before it takes a task. */
const making = (options: Options, surroundings: Surroundings): { child: Child; wiring: TreeSession.Wiring } => {
  const { family, id, model, parent, path, recipe, restored, tree } = options
  const { clock, ids, scope } = surroundings
  const origin: Origin.Origin = {
    sessionId: restored?.opened.sessionId ?? Id.session(ids),
    rootSessionId: parent.origin.rootSessionId,
    agent: path,
    depth: parent.origin.depth + 1,
    parentSessionId: parent.origin.sessionId,
    subagentId: id
  }
  const tell = telling(tree.shared.bus, clock, origin)
  const envelope = options.allowed && { subagentId: id, tools: options.allowed }
  const own: TreeSession.Own = {
    origin,
    model,
    tools: recipe.tools,
    instructions: [tree.settings.instructions, recipe.instructions],
    limits: family.limitsOf(recipe),
    compaction: recipe.compaction,
    restored,
    interactor: ParentBridgedChannel.make({
      parent: parent.origin.agent,
      port: parent.inbox.childPort,
      timeouts: tree.settings.timeouts,
      late: lateTo(tell)
    }),
    wiring: (wired) => family.wire(recipe, wired, envelope),
    opening: (instructions) => openedAs(options, origin, instructions),
    unread: (message) => parent.send(message, "steer", { parentId: "root" })
  }
  const { journal, session, wiring } = TreeSession.make(tree, own, surroundings)
  const child = new Child(options, { session, journal, scope, tell })
  tree.add(child.node)
  tell(createdAs(options, origin))
  return { child, wiring }
}

interface Parts {
  readonly session: Session.Session
  readonly journal: SessionRecorder | undefined
  readonly scope: Scope.CloseableScope
  readonly tell: Tell
}

class Child implements Subagent {
  readonly id: string
  readonly recipe: DelegationRequest.Recipe
  readonly tasks: ChildTasks
  readonly keep: boolean | undefined
  private readonly tree: AgentTree
  private readonly family: Family

  constructor(
    { family, id, keep, parent, recipe, restored, tree }: Options,
    private readonly parts: Parts
  ) {
    const { journal, session, tell } = parts
    this.id = id
    this.keep = keep
    this.recipe = recipe
    this.tree = tree
    this.family = family
    const { lacking, output } = recipe
    this.tasks = new ChildTasks({ id, parent, tree, session, journal, tell, output, lacking }, restored?.tasks)
  }

  get session() {
    return this.parts.session
  }

  /** Its entry in the tree. */
  get node(): Node {
    const { recipe, session, tasks } = this
    const begin: Node["begin"] = (draft) => tasks.give(draft)
    return { origin: session.origin, session, profile: recipe.profile?.name, begin }
  }

  /**
   * Takes tasks from now on, until its scope is closed. It stands in its parent's world, not in that of the call which
   * made it: a later task, of another caller, has nothing of the first one's.
   */
  start(parent: Pick<Session.Session, "place">): Effect.Effect<void> {
    return Effect.flatMap(DetachedFiber.here, (here) => {
      // The children of a restored session are there before it starts.
      this.session.start(parent.place ?? here)
      return Scope.addFinalizerExit(this.parts.scope, () => this.end)
    })
  }

  get close(): Effect.Effect<void> {
    const { journal, scope, session } = this.parts
    return Effect.uninterruptible(
      Effect.suspend(() => {
        this.tasks.silence()
        return Effect.flatMap(session.close({ cancel: "parent" }), () => {
          journal?.closed()
          return Scope.close(scope, Exit.void)
        })
      })
    )
  }

  retire(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { keep, session } = this
      if (keep !== false || session.isOver()) return Effect.void
      if (session.isIdle()) return this.close
      const { place } = session
      if (place !== undefined) session.whenIdle(() => void DetachedFiber.unsafeFork(place, this.retire()))
      return Effect.void
    })
  }

  /** Its tasks end first: the turn of a cancelled task has an end, and the session must report it. */
  private get end(): Effect.Effect<void> {
    const { session } = this
    return Effect.map(Effect.zipRight(this.tasks.giveUp, session.close({ cancel: "shutdown" })), () => {
      this.tree.delete(this.session.origin.sessionId)
      this.parts.tell({ _tag: "AgentStatusChanged", status: "done" })
      this.family.ended(this.id)
    })
  }
}

// Outside of `make`: a closure there would retain everything that is made with the child.
const telling =
  (bus: EventBus.Service, clock: Clock.Clock, origin: Origin.Origin): Tell =>
  (body) => {
    EventPublisher.publish(bus, clock, origin, body)
  }

const lateTo =
  (tell: Tell) =>
  ({ by, requestId, winner }: ChildRequestQueue.Late): void =>
    tell({ _tag: "LateAnswer", requestId, by, winner })

const createdAs = (
  { id, model, parent, recipe: { profile }, toolCallId }: Options,
  { depth }: Origin.Origin
): AgentEvent.Body => ({
  _tag: "AgentCreated",
  depth,
  model: model.id,
  parentSessionId: parent.origin.sessionId,
  subagentId: id,
  ...(toolCallId === undefined ? {} : { parentToolCallId: toolCallId }),
  ...(profile === undefined ? {} : { profile: profile.name }),
  ...(profile?.iconName === undefined ? {} : { icon: profile.iconName })
})

const openedAs = (
  { allowed, id, keep, model, parent, recipe, toolCallId }: Options,
  origin: Origin.Origin,
  instructions: string
): JournalEntry.SessionOpened => ({
  ...JournalEntry.opening(origin, model.id, instructions),
  parentSessionId: parent.origin.sessionId,
  ...(toolCallId === undefined ? {} : { parentToolCallId: toolCallId }),
  subagentId: id,
  ...(recipe.profile === undefined ? {} : { profile: recipe.profile.name }),
  maxSteps: recipe.maxTurns,
  child: {
    name: recipe.name,
    tools: recipe.tools.entries.map(({ name }) => name),
    instructions: recipe.instructions,
    ...(allowed === undefined ? {} : { allowed }),
    ...(keep === undefined ? {} : { keep }),
    settings: recipe.settings
  }
})
