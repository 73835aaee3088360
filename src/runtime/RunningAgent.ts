/**
 * A root session and everything below it, for its driver: see `Agent`.
 *
 * ```
 *  running ──shutdown─────────────────────────► closed to words ─► sessions closed ─► AgentCompleted ─► done
 *     └─────drain ─► closed to words ─► tools end ─┘        (left behind after `shutdownWithin`)
 * ```
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { MessageId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import * as Defect from "../core/Defect.js"
import type { Todo } from "../core/Todo.js"
import * as Region from "../core/Region.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import { OneShot } from "../internal/OneShot.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type * as Input from "../inbox/Input.js"
import type { Message, MessageBlank } from "../inbox/Message.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as InteractionBroker from "../broker/InteractionBroker.js"
import type * as Model from "../model/Model.js"
import type * as Interjection from "../session/Interjection.js"
import type * as Session from "../session/Session.js"
import { is, neverBegun, type TurnEnd } from "../turn/Turn.js"
import * as RunningCalls from "../turn/RunningCalls.js"
import * as TypedOutput from "../turn/TypedOutput.js"
import type { AgentTree, Node } from "../subagent/AgentTree.js"
import type {
  AgentStopped,
  InterruptOptions,
  MessageRouter,
  NotRun,
  NotTaken,
  RunId,
  RunOptions,
  SendOptions
} from "./MessageRouter.js"
import type { EventFeed } from "../journal/EventFeed.js"
import type * as JournalEntry from "../journal/JournalEntry.js"
import * as AgentPermissions from "./AgentPermissions.js"

/** The parts of a running agent. */
export interface Parts {
  readonly tree: AgentTree
  /** The entry of the root in the tree. */
  readonly root: Node
  readonly broker: InteractionBroker.Owned
  readonly events: EventBus.Subscription
  readonly scope: Scope.CloseableScope
  readonly trail: AuditTrail.Service
  readonly router: MessageRouter
  readonly feed: EventFeed | undefined
  readonly halting: Halting
  readonly shutdownWithin: Duration.DurationInput
}

/**
 * Ends the root's turn for an interactor that nobody is behind. The broker holds one, and lives on in the old generation
 * for a while: with the agent behind it, an agent that has ended was copied there, which took a quarter of a short life.
 */
export class Halting implements InteractionBroker.Halting {
  parts: Parts | undefined

  halt(detail: string): Effect.Effect<void> {
    const { parts } = this
    if (parts === undefined) return Effect.void
    return Effect.asVoid(Effect.forkIn(Effect.zipRight(awaitTools(parts), halt(parts, detail)), parts.scope))
  }
}

export class RunningAgent {
  readonly id
  readonly origin
  readonly events
  readonly feed
  readonly broker
  readonly history
  readonly tools
  readonly ledger
  private readonly router
  private readonly session
  private readonly tree
  /** How the last turn ended, once the agent has ended; see `Agent.done`. */
  private last: Option.Option<TurnEnd> | undefined
  /** Made by the first fiber that waits for the end: thousands of agents may wait for an answer. */
  private finished: OneShot<Option.Option<TurnEnd>> | undefined
  private isEnding = false
  private permissionsMemo: AgentPermissions.Permissions | undefined

  constructor(private readonly parts: Parts) {
    const { broker, events, feed, root, router, tree } = parts
    const { origin, session } = root
    this.id = origin.sessionId
    this.origin = origin
    this.events = events
    this.feed = feed
    this.broker = broker
    this.history = session.history
    this.tools = session.tools
    this.ledger = tree.shared.ledger
    this.router = router
    this.session = session
    this.tree = tree
  }

  // ---------------------------------------------------------------------------------------------------------------
  // words
  // ---------------------------------------------------------------------------------------------------------------

  send(
    input: Input.Input,
    { id, target }: SendOptions = {}
  ): Effect.Effect<Message, NotTaken | Interjection.AgentUnknown> {
    const { router } = this
    return Effect.flatMap(
      router.accept(input, () => [router.readerOf(target)]),
      (words) => router.take(words, id, (draft) => router.send(draft, target))
    )
  }

  broadcast(
    input: Input.Input,
    targets: ReadonlyArray<string>
  ): Effect.Effect<ReadonlyArray<Message>, NotTaken | Interjection.AgentUnknown> {
    const { router } = this
    return Effect.flatMap(
      router.accept(input, () => targets.map((target) => router.readerOf(target))),
      (words) => router.take(words, undefined, (draft) => router.broadcast(draft, targets))
    )
  }

  enqueue(input: Input.Input, { id }: Pick<SendOptions, "id"> = {}): Effect.Effect<Message, NotTaken> {
    const { router, session } = this
    return Effect.flatMap(this.accept(input), (words) =>
      router.take(words, id, (draft) => Either.right(session.send(draft, "queue")))
    )
  }

  leaveNote(text: string): Effect.Effect<void> {
    const { router, session } = this
    const file = () => Either.right(session.send({ text, source: "system" }, "along"))
    return Effect.ignore(router.take({ text }, undefined, file))
  }

  turn(text: string, options?: Session.TurnOptions): Effect.Effect<TurnEnd, AgentStopped | MessageBlank>
  turn(input: Input.Input, options?: Session.TurnOptions): Effect.Effect<TurnEnd, NotTaken>
  turn(input: Input.Input, options?: Session.TurnOptions): Effect.Effect<TurnEnd, NotTaken> {
    const { router, session } = this
    return Effect.flatMap(this.accept(input), (words) =>
      router.admit(words, this.unlessParked(session.run(words, { ...options, lasts: this.isKept })))
    )
  }

  run<A, I>(
    input: Input.Input,
    options: RunOptions<A, I> & { readonly id?: undefined }
  ): Effect.Effect<TypedOutput.TypedEnd<A>, NotTaken>
  run<A, I>(input: Input.Input, options: RunOptions<A, I> & RunId): Effect.Effect<TypedOutput.TypedEnd<A>, NotRun>
  run(input: Input.Input, options: RunId): Effect.Effect<TurnEnd, NotRun>
  run(input: Input.Input): Effect.Effect<TurnEnd, NotTaken>
  run<A, I>(
    input: Input.Input,
    { id, output: schema }: { readonly id?: string | undefined; readonly output?: Schema.Schema<A, I> | undefined } = {}
  ): Effect.Effect<TurnEnd | TypedOutput.TypedEnd<A>, NotRun> {
    if (schema === undefined) return this.runOnce(input, id, undefined)
    return Effect.suspend(() => {
      const output = TypedOutput.make(schema)
      return Effect.map(this.runOnce(input, id, output), (end) => output.endOf(end))
    })
  }

  private runOnce(
    input: Input.Input,
    id: string | undefined,
    output: TypedOutput.TypedOutput | undefined
  ): Effect.Effect<TurnEnd, NotRun> {
    const { feed, router, session } = this
    return Effect.flatMap(this.accept(input), (words): Effect.Effect<TurnEnd, NotRun> => {
      if (id === undefined) {
        const run = session.run(words, { kept: router.kept, lasts: this.isKept, output })
        return router.admit(words, this.unlessParked(run))
      }
      const messageId = MessageId.make(id, { disableValidation: true })
      const { parts, text } = words
      const file = () => session.send({ id: messageId, text, parts }, "queue").id
      const run = Effect.flatMap(loadRepeatedRun, (RepeatedRun) =>
        RepeatedRun.run({ feed, router, session }, words, { id: messageId, output, file, neverBegun })
      )
      return router.admit(words, this.unlessParked(run))
    })
  }

  private accept(input: Input.Input) {
    return this.router.accept(input, () => [this.parts.root])
  }

  takeBack(target?: string): Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown> {
    return Effect.suspend(() =>
      Either.map(this.router.those(target), (nodes) => nodes.flatMap(({ session }) => session.takeBack()))
    )
  }

  get receiver(): Effect.Effect<Interjection.Receiver> {
    return Effect.sync(() => this.router.receiver())
  }

  get selected(): Effect.Effect<Option.Option<Node>> {
    return Effect.sync(() => Option.fromNullable(this.router.selected))
  }

  select(target: string | undefined): Effect.Effect<void, Interjection.AgentUnknown> {
    return Effect.suspend(() => this.router.select(target))
  }

  // ---------------------------------------------------------------------------------------------------------------
  // its agents and their turns
  // ---------------------------------------------------------------------------------------------------------------

  get subagentTimeouts(): Interactor.Timeouts | undefined {
    return this.tree.settings.timeouts
  }

  get agents(): Effect.Effect<ReadonlyArray<Node>> {
    return Effect.sync(() => this.tree.nodes)
  }

  todos(target?: string): Effect.Effect<ReadonlyArray<Todo>, Interjection.AgentUnknown> {
    return Effect.suspend(() =>
      target === undefined
        ? Either.right(this.session.todos())
        : Either.map(this.router.find(target), ({ session }) => session.todos())
    )
  }

  interrupt({ reason = "user", target, toolCallId }: InterruptOptions = {}): Effect.Effect<
    Option.Option<TurnEnd>,
    Interjection.AgentUnknown | RunningCalls.ToolCallNotRunning
  > {
    return Effect.gen(this, function* () {
      if (toolCallId === undefined) {
        const { session } = target === undefined ? this.parts.root : yield* this.router.find(target)
        return yield* session.stop({ cancel: reason })
      }
      const nodes = yield* this.router.those(target)
      const running = nodes.flatMap(({ session }) => session.calls.ids)
      for (const { session } of nodes) if (yield* session.calls.cancel(toolCallId)) return Option.none()
      return yield* new RunningCalls.ToolCallNotRunning({ toolCallId, running })
    })
  }

  cancel(reason: CancelReason = "user"): Effect.Effect<Option.Option<TurnEnd>> {
    return this.session.stop({ cancel: reason })
  }

  get awaitTools(): Effect.Effect<void> {
    return awaitTools(this.parts)
  }

  halt(detail: string): Effect.Effect<void> {
    return halt(this.parts, detail)
  }

  get compact(): Session.Session["compact"] {
    return this.session.compact
  }

  get isIdle(): Effect.Effect<boolean> {
    return Effect.sync(() => this.session.isIdle())
  }

  get awaitIdle(): Effect.Effect<Option.Option<TurnEnd>> {
    return this.session.awaitIdle
  }

  get model(): Effect.Effect<Model.Service> {
    return this.session.model
  }

  setModel(model: Model.Service, thinking?: JournalEntry.Thinking): Effect.Effect<void> {
    return this.session.setModel(model, thinking)
  }

  get permissions(): AgentPermissions.Permissions {
    return (this.permissionsMemo ??= AgentPermissions.make(
      this.tree,
      this.session,
      (body) => this.publish(body),
      () => this.router.ended
    ))
  }

  subscribe(policy?: EventBus.Policy): ReturnType<EventBus.Service["subscribe"]> {
    return this.tree.shared.bus.subscribe(policy)
  }

  report(message: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { bus, redactor } = this.tree.shared
      return Effect.zipRight(this.publish({ _tag: "AgentError", message: redactor.text(message) }), bus.awaitRoom)
    })
  }

  private publish(body: AgentEvent.Body): Effect.Effect<void> {
    return this.tree.publish(this.origin, body)
  }

  private get isKept(): boolean {
    return this.tree.journal.enabled
  }

  /** A turn that goes on in the next process has no end here. */
  private unlessParked<E>(end: Effect.Effect<TurnEnd, E>): Effect.Effect<TurnEnd, E> {
    if (!this.isKept) return end
    const isParked = (end: TurnEnd) =>
      end._tag === "Cancelled" && end.reason === "shutdown" && this.tree.journal.isFrozen()
    return Effect.flatMap(end, (end) => (isParked(end) ? Effect.interrupt : Effect.succeed(end)))
  }

  // ---------------------------------------------------------------------------------------------------------------
  // the end
  // ---------------------------------------------------------------------------------------------------------------

  get done(): Effect.Effect<Option.Option<TurnEnd>> {
    return Effect.suspend(() =>
      this.last === undefined ? (this.finished ??= new OneShot()) : Effect.succeed(this.last)
    )
  }

  get shutdown(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.uninterruptible(
        Region.once(
          Effect.suspend(() => {
            if (this.isEnding) return Effect.asVoid(this.done)
            this.isEnding = true
            this.router.close()
            const isAlone = this.tree.size === 0 && !this.broker.isAsking()
            return isAlone && this.session.end() ? this.stopAtRest : this.stop
          })
        )
      )
    )
  }

  drain(within: Duration.DurationInput): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.router.isClosed) return Effect.asVoid(this.done)
      this.router.close()
      const tools = Effect.zipRight(this.tree.journal.hold, this.awaitTools)
      return Effect.ensuring(Effect.asVoid(Effect.timeoutOption(tools, within)), this.end)
    })
  }

  /** The finalizer of the scope that it was started in. */
  get end(): Effect.Effect<void> {
    return Effect.zipRight(Effect.ignore(this.tree.journal.freeze), this.shutdown)
  }

  /** Nothing runs, so nothing can take long: no fiber and no timer, which were 40 of the 104 µs of a life without a turn. */
  private get stopAtRest(): Effect.Effect<void> {
    return Effect.flatMap(this.release, () =>
      Effect.flatMap(this.session.awaitIdle, (last) => this.complete(last, this.parts.shutdownWithin))
    )
  }

  private get stop(): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { session } = this
      const { shutdownWithin } = this.parts
      const began = yield* Clock.currentTimeMillis
      // In a fiber of its own: uninterruptible work is abandoned, and the end is still published.
      const closing = yield* Effect.forkDaemon(
        Effect.zipRight(
          session.close({ cancel: "shutdown" }),
          Effect.suspend(() => this.release)
        )
      )
      yield* GracePeriod.wait((done) => closing.addObserver(done), shutdownWithin)
      const closed = Option.fromNullable(closing.unsafePoll())
      if (Option.isNone(closed)) {
        yield* this.publish({ _tag: "AgentError", message: leftBehind(this.parts) })
        session.abandon()
      }
      const last = Option.isSome(closed) ? yield* session.awaitIdle : Option.some(neverBegun)
      const taken = (yield* Clock.currentTimeMillis) - began
      yield* this.complete(last, Math.max(0, Duration.toMillis(shutdownWithin) - taken))
      yield* Option.getOrElse(closed, () => Exit.void)
    })
  }

  /** The fibers that ask live in the scope: they end before the broker does. */
  private get release(): Effect.Effect<void> {
    return Effect.zipRight(Scope.close(this.parts.scope, Exit.void), this.broker.close)
  }

  private complete(last: Option.Option<TurnEnd>, within: Duration.DurationInput): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const success = Option.exists(last, is("Completed"))
      yield* this.publish({ _tag: "AgentCompleted", success, turnsUsed: this.session.turns() })
      yield* this.tree.shared.bus.close
      yield* this.releaseAudit(within)
      this.parts.halting.parts = undefined
      this.last = last
      this.finished?.complete(last)
    })
  }

  /** A slow audit may delay the end by at most this long. */
  private releaseAudit(within: Duration.DurationInput): Effect.Effect<void> {
    const { trail, tree } = this.parts
    if (trail === AuditTrail.noop) return Effect.void
    const place = { session: this.id, agent: this.origin.agent }
    const released = Effect.catchAllCause(
      Effect.suspend(() => trail.release(this.id)),
      (cause) => Defect.log("The audit", cause, tree.shared.redactor, place)
    )
    return Effect.flatMap(Effect.forkDaemon(released), (fiber) =>
      Effect.asVoid(GracePeriod.wait((done) => fiber.addObserver(done), within))
    )
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const loadRepeatedRun = Effect.promise(() => import("./RepeatedRun.js"))

/** A stored session is resumed in this state, with its question open and its queued words. */
const halt = ({ root: { session }, tree }: Parts, detail: string): Effect.Effect<void> =>
  tree.journal.enabled
    ? Effect.zipRight(Effect.ignore(tree.journal.freeze), session.close({ halt: detail }))
    : Effect.asVoid(session.stop({ halt: detail }))

/**
 * Waits for the running tools of the tree. A call that asks somebody or waits for a subagent is not waited for: the answer
 * may never come. Neither are calls that begin later, so the wait is bounded by the longest tool.
 */
const awaitTools = ({ broker, tree }: Pick<Parts, "broker" | "tree">): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      // Subscribed before the check, so that a call that begins to ask after it is noticed.
      const { takeAll } = yield* tree.shared.bus.subscribe()
      const calls = tree.nodes.flatMap(({ session }) => session.calls.atWork)
      // Each call writes once, when it ends; one unread signal says as much as many.
      const ended = yield* Queue.sliding<void>(1)
      for (const call of calls) call.whenOver(() => ended.unsafeOffer(undefined))
      for (;;) {
        const asking = (yield* broker.open).map((request) => InteractionRequest.callOf(request))
        const delegating = tree.nodes.flatMap(({ session }) => session.delegations.running)
        const waiting = new Set([...asking, ...delegating.map(({ toolCallId }) => toolCallId)])
        if (calls.every(({ call, over }) => over || waiting.has(call.id))) return
        const more = yield* Effect.raceFirst(takeAll, Effect.as(Queue.take(ended), Option.some([])))
        if (Option.isNone(more)) return
      }
    })
  )

/** Sentence about a tree that did not end in time. */
const leftBehind = ({ root, shutdownWithin, tree }: Parts): string => {
  const running = tree.nodes.flatMap(({ origin, session }) => session.calls.ids.map((id) => `${id} of ${origin.agent}`))
  const what =
    running.length > 0
      ? `Tool calls that still run: ${running.join(", ")}.`
      : "A model or an interactor does not let itself be interrupted."
  return `Agent ${root.origin.agent} did not stop within ${Duration.format(shutdownWithin)} and was left behind. ${what}`
}
