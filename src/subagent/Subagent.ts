/**
 * A child: a session of its own, wired to its parent.
 *
 * ```
 *  parent's scope ⊃ child's scope ⊃ child's loop, its turns, its own children
 *  child's tools ─► its gate ─► bridge ─► parent's mediator ─► …
 * ```
 *
 * It lives until it is closed or its parent ends; only the turn of a task is bound to the call that waits for it.
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as ParentBridgedChannel from "../bridge/ParentBridgedChannel.js"
import { IdGenerator, type MessageId, type SessionId, type ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as Inbox from "../inbox/Inbox.js"
import type { Message, Source } from "../inbox/Message.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import * as Grant from "../permission/Grant.js"
import type { Authority } from "../permission/PermissionGate.js"
import * as History from "../session/History.js"
import * as JournalEntry from "../session/JournalEntry.js"
import type * as Restored from "../session/Restored.js"
import * as Session from "../session/Session.js"
import { defaultLimits } from "../session/SessionContext.js"
import { SessionJournal } from "../session/SessionJournal.js"
import * as Turn from "../session/Turn.js"
import type { AgentTree } from "./AgentTree.js"
import * as SubagentOrder from "./SubagentOrder.js"
import * as SubagentResult from "./SubagentResult.js"

export interface Options {
  readonly tree: AgentTree
  readonly id: string
  readonly recipe: SubagentOrder.Recipe
  readonly model: Model.Service
  readonly parent: Session.Service
  /** Of the child; told apart from its siblings of the same name. */
  readonly path: string
  /** The call that makes it, when one does. */
  readonly toolCallId: ToolCallId | undefined
  /** Names of the tools it may use without asking, for its life. */
  readonly allowed: ReadonlyArray<string> | undefined
  /** How far another process had come with it. */
  readonly restored?: Restored.RestoredSession | undefined
  /** Asked once, when the child's first tool is about to run. */
  readonly children: (child: {
    readonly session: Session.Service
    readonly interactor: Interactor.Service
    readonly scope: Scope.Scope
  }) => Wiring
}

/** What a session is made with to have children of its own. */
export interface Wiring {
  /** What its tools run with besides. */
  readonly ambient: Context.Context<never>
  readonly insteadOfAsking: Authority
  /** Makes the session's children again that another process left. */
  readonly restore: (tree: Restored.Restored) => Effect.Effect<void>
}

export interface Subagent {
  readonly id: string
  readonly recipe: SubagentOrder.Recipe
  readonly session: Session.Service
  readonly scope: Scope.CloseableScope
  /** Gives it a task and waits for the end. Interrupting it cancels the task. */
  readonly work: (task: string) => Effect.Effect<Done>
  /** Gives it a task and does not wait. The parent is not idle meanwhile, and is told the end as a message. */
  readonly begin: (task: string) => Effect.Effect<void>
  /** As {@link work}, for a call that gave it the task already in another process: waits for that one's end. */
  readonly workOn: (task: string) => Effect.Effect<Done>
  /** As {@link begin}, unless it was given a task before a restart. */
  readonly beginOnce: (task: string) => Effect.Effect<void>
  /** The tasks of another process that no call waits for: the parent is told their ends. */
  readonly goOn: Effect.Effect<void>
  /** Cancels what it does and ends it. */
  readonly close: Effect.Effect<void>
}

/** A task that has ended. */
export interface Done {
  readonly end: Turn.TurnEnd
  readonly result: SubagentResult.SubagentResult
}

/** Makes a child in its parent's scope and starts it. */
export const make = (options: Options, parentScope: Scope.Scope): Effect.Effect<Subagent> =>
  Effect.gen(function* () {
    const { id, model, parent, path, recipe, restored, toolCallId, tree } = options
    const { shared } = tree
    const ids = yield* IdGenerator
    const clock = yield* Effect.clock
    const scope = yield* Scope.fork(parentScope, parentScope.strategy)
    const sessionId = restored?.opened.sessionId ?? (ids.unsafeNext("ses") as SessionId)
    const origin: Origin.Origin = {
      sessionId,
      rootSessionId: parent.origin.rootSessionId,
      agent: path,
      depth: parent.origin.depth + 1,
      parentSessionId: parent.origin.sessionId,
      subagentId: id
    }
    const tell = (body: AgentEvent.Body) =>
      shared.bus.unsafePublish({ ...body, at: clock.unsafeCurrentTimeMillis(), sessionId, agent: path })
    const instructions = [tree.instructions, recipe.instructions].filter((text) => text !== "").join("\n\n")
    const own = tree.journal.of(sessionId)
    const journal = own.enabled ? new SessionJournal(own, shared.redactor) : undefined
    if (own.enabled && restored === undefined) own.note(openedAs(options, origin, instructions))
    const inbox = yield* Inbox.make({
      filed: journal?.received,
      withdrawn: journal?.withdrawn,
      messages: restored?.waiting,
      late: ({ by, requestId, winner }) =>
        tell({ _tag: "LateAnswer", requestId, by, ...(winner === undefined ? {} : { winner }) })
    })
    const bridge = ParentBridgedChannel.make({
      parent: parent.origin.agent,
      door: inbox.door,
      port: parent.inbox.childPort,
      timeouts: tree.timeouts
    })
    let wiring: Wiring | undefined
    const wire = (child: Session.Service) =>
      (wiring ??= options.children({ session: child, interactor: bridge, scope }))
    const session: Session.Service = yield* Session.make({
      ...shared,
      origin,
      model,
      tools: recipe.tools,
      instructions,
      interactor: bridge,
      authority: options.allowed && Grant.envelope({ tools: options.allowed, subagentId: id }),
      insteadOfAsking: SubagentOrder.aboutOrders(() => wire(session).insteadOfAsking),
      limits: {
        ...shared.limits,
        maxSteps: recipe.maxTurns,
        stopWithin: Duration.times(shared.limits?.stopWithin ?? defaultLimits.stopWithin, 0.9 ** origin.depth)
      },
      ...(recipe.compaction === undefined ? {} : { compaction: recipe.compaction }),
      inbox,
      journal,
      restored,
      unread: (message) => parent.forward(message),
      ambient: (child) => wire(child).ambient
    }).pipe(Scope.extend(scope))
    tree.nodes.set(sessionId, {
      origin,
      session,
      profile: recipe.profile?.name,
      begin: (text, id) =>
        Effect.suspend(() => {
          const interjected = session.interject(text, "root", id)
          return Option.isSome(interjected) ? Effect.succeed(interjected) : begin(text, "user", id)
        })
    })
    yield* Scope.addFinalizer(
      scope,
      Effect.sync(() => {
        tree.nodes.delete(sessionId)
        tell({ _tag: "AgentStatusChanged", status: "done" })
      })
    )
    tell({
      _tag: "AgentCreated",
      depth: origin.depth,
      model: model.id,
      parentSessionId: parent.origin.sessionId,
      subagentId: id,
      ...(toolCallId === undefined ? {} : { parentToolCallId: toolCallId }),
      ...(recipe.profile === undefined ? {} : { profile: recipe.profile.name }),
      ...(recipe.profile?.iconName === undefined ? {} : { icon: recipe.profile.iconName })
    })
    const left = (restored?.tasks ?? []).map(({ end, messageId, toolCallId }) => ({
      messageId,
      toolCallId,
      order: end === undefined ? session.rejoin(messageId) : { end: Effect.succeed(end), giveUp: Effect.void }
    }))
    yield* Effect.forkIn(Effect.interruptible(session.run), scope)

    const doneWith = (end: Turn.TurnEnd): Done => {
      const usage = tree.shared.ledger?.of(sessionId)
      const result = SubagentResult.make({
        agentId: id,
        end,
        text: textOf(session, end),
        // What no provider reported is not nothing, and is not told as nothing.
        usage:
          usage === undefined || usage.unknownCalls === usage.calls
            ? undefined
            : { input: usage.inputTokens, output: usage.outputTokens },
        outputStreamed: tree.outputStreamed
      })
      const { error, success, turns_used: turnsUsed } = result
      tell({ _tag: "AgentCompleted", success, turnsUsed, ...(error === undefined ? {} : { error }) })
      return { end, result }
    }

    /** A task that is stopped has an end too, and it is told; not that of one which was taken back before it began. */
    const ended = (end: Effect.Effect<Turn.TurnEnd>, before = session.turns()): Effect.Effect<Done> => {
      const stopped = Effect.flatMap(session.isIdle, (idle) =>
        idle && session.turns() > before ? Effect.map(session.awaitIdle, Option.map(doneWith)) : Effect.void
      )
      return Effect.map(
        Effect.onInterrupt(end, () => stopped),
        doneWith
      )
    }

    /** Nobody waits: the parent is not idle until it is told. */
    const alone = (
      messageId: MessageId,
      { end, giveUp }: Pick<Session.Order, "end" | "giveUp">
    ): Effect.Effect<void> => {
      const release = parent.retain()
      const told = ended(Effect.onInterrupt(Effect.interruptible(end), () => giveUp)).pipe(
        Effect.map((done) => {
          parent.inbox.childPort.tell(SubagentResult.announce(done.result, done.end))
          journal?.told(messageId)
        }),
        Effect.ensuring(Effect.sync(release))
      )
      return Effect.asVoid(Effect.forkIn(told, scope))
    }

    const begin = (task: string, source: Source, id?: MessageId): Effect.Effect<Option.Option<Message>> =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          const filed = ({ id }: Message) => journal?.given(id)
          const order = session.order(task, { source, reason: "parent", filed, id })
          if (Option.isNone(order)) return Effect.succeedNone
          const { message } = order.value
          return Effect.as(alone(message.id, order.value), Option.some(message))
        })
      )

    const work = (task: string) =>
      Effect.flatMap(Origin.current, ({ toolCallId }) => {
        const filed = ({ id }: Message) => journal?.given(id, toolCallId)
        return ended(session.turn(task, { source: "parent", reason: "parent", filed }))
      })

    return {
      id,
      recipe,
      session,
      scope,
      work,
      workOn: (task) =>
        Effect.flatMap(Origin.current, ({ toolCallId }) => {
          const given = left.find((task) => task.toolCallId === toolCallId)
          if (given === undefined) return work(task)
          const { end, giveUp } = given.order
          return ended(Effect.onInterrupt(end, () => giveUp))
        }),
      beginOnce: (task) => (left.length > 0 ? Effect.void : Effect.asVoid(begin(task, "parent"))),
      goOn: Effect.forEach(
        left.filter(({ toolCallId }) => toolCallId === undefined),
        ({ messageId, order }) => alone(messageId, order),
        { discard: true }
      ),
      begin: (task) => Effect.asVoid(begin(task, "parent")),
      close: Effect.uninterruptible(
        Effect.zipRight(
          session.cancel("parent"),
          Effect.suspend(() => {
            journal?.closed()
            return Scope.close(scope, Exit.void)
          })
        )
      )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const openedAs = (
  { allowed, id, model, parent, recipe, toolCallId }: Options,
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
    settings: recipe.settings
  }
})

/** What it said last, also when it was stopped. */
const textOf = ({ history }: Session.Service, end: Turn.TurnEnd): string => {
  if (end._tag === "Completed" || end._tag === "TurnLimit") return end.text
  const last = history.messages.findLast((message) => message.role === "assistant" && History.textOf(message) !== "")
  return Option.match(Option.fromNullable(last), { onNone: () => "", onSome: History.textOf })
}
