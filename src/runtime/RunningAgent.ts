/** A root session and everything below it, for its driver: see `Agent`. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { MessageId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import * as Defect from "../core/Defect.js"
import type { Todo } from "../core/Todo.js"
import * as Region from "../core/Region.js"
import * as GracePeriod from "../internal/GracePeriod.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import type * as EventBus from "../event/EventBus.js"
import type * as Input from "../inbox/Input.js"
import type { Taken } from "../inbox/InputTaking.js"
import type { Draft, Message, MessageBlank } from "../inbox/Message.js"
import type * as Participants from "../broker/Participants.js"
import type * as InteractionBroker from "../broker/InteractionBroker.js"
import type * as Model from "../model/Model.js"
import { OneShot } from "../internal/OneShot.js"
import * as Interjection from "../session/Interjection.js"
import * as Session from "../session/Session.js"
import { is, neverBegun, type TurnEnd } from "../turn/Turn.js"
import * as Limits from "../turn/Limits.js"
import * as TypedOutput from "../turn/TypedOutput.js"
import type { AgentTree } from "../subagent/AgentTree.js"
import * as AgentTreeControl from "../subagent/AgentTreeControl.js"
import type { AgentStopped, Intake, NotRun, NotTaken, RunId, RunOptions, SendOptions } from "./Intake.js"
import type { EventFeed } from "../journal/EventFeed.js"
import * as AgentPermissions from "./AgentPermissions.js"
import * as ToolsAtWork from "./ToolsAtWork.js"

/** The parts of a running agent. */
export interface Parts {
  readonly tree: AgentTree
  readonly session: Session.Service
  readonly broker: InteractionBroker.Owned
  readonly events: EventBus.Subscription
  readonly scope: Scope.CloseableScope
  readonly trail: AuditTrail.Service
  readonly control: AgentTreeControl.Service
  readonly intake: Intake
  readonly feed: EventFeed | undefined
  readonly halting: Halting
  readonly shutdownWithin: Duration.DurationInput
}

/**
 * Ends the root's turn for an interactor that nobody is behind; what that takes is made when it is needed. The broker holds
 * one, and lives on in the old generation for a while: with the agent behind it, an agent that has ended was copied there,
 * which took a quarter of a short life.
 */
export class Halting implements Participants.Halting {
  parts: Parts | undefined

  halt(detail: string): Effect.Effect<void> {
    const { parts } = this
    if (parts === undefined) return Effect.void
    const agent = new RunningAgent(parts)
    return Effect.asVoid(Effect.forkIn(Effect.zipRight(agent.awaitTools, agent.halt(detail)), parts.scope))
  }
}

export class RunningAgent {
  /** Settled at its end; see `Agent.done`. */
  private readonly finished = new OneShot<Option.Option<TurnEnd>>()
  private isEnding = false
  private permissionsMemo: AgentPermissions.Permissions | undefined

  constructor(private readonly parts: Parts) {}

  get id() {
    return this.origin.sessionId
  }

  get origin() {
    return this.parts.session.origin
  }

  get events() {
    return this.parts.events
  }

  get feed() {
    return this.parts.feed
  }

  get broker() {
    return this.parts.broker
  }

  get history() {
    return this.parts.session.history
  }

  get tools() {
    return this.parts.session.tools
  }

  todos(target?: string): Effect.Effect<ReadonlyArray<Todo>, Interjection.AgentUnknown> {
    const { session, tree } = this.parts
    return target === undefined
      ? Effect.sync(() => session.todos())
      : Effect.map(
          Effect.suspend(() => Interjection.find(tree.nodes, target)),
          ({ session }) => session.todos()
        )
  }

  get ledger() {
    return this.parts.tree.shared.ledger
  }

  send(input: Input.Input, { id, target }: SendOptions = {}) {
    const { intake, control } = this.parts
    return this.given(
      input,
      (draft) => intake.take(draft, (id) => control.send(named(draft, id), target), id),
      () => control.modelOf(target)
    )
  }

  leaveNote(text: string): Effect.Effect<void> {
    const { intake, session } = this.parts
    const draft = { text, source: "system" } as const
    return Effect.ignore(intake.take(draft, () => Effect.sync(() => session.send(draft, "along"))))
  }

  broadcast(input: Input.Input, targets: ReadonlyArray<string>) {
    const { intake, control } = this.parts
    return this.given(
      input,
      (draft) => intake.take(draft, () => control.broadcast(draft, targets)),
      ...targets.map((target) => () => control.modelOf(target))
    )
  }

  enqueue(input: Input.Input, { id }: Pick<SendOptions, "id"> = {}): Effect.Effect<Message, NotTaken> {
    const { intake, session } = this.parts
    const queued = (draft: Taken["draft"]) =>
      intake.take(draft, (id) => Effect.sync(() => session.send(named(draft, id), "queue")), id)
    return this.given(input, queued, () => session.model)
  }

  turn(text: string, options?: Session.TurnOptions): Effect.Effect<TurnEnd, AgentStopped | MessageBlank>
  turn(input: Input.Input, options?: Session.TurnOptions): Effect.Effect<TurnEnd, NotTaken>
  turn(input: Input.Input, options?: Session.TurnOptions): Effect.Effect<TurnEnd, NotTaken> {
    const { intake, session } = this.parts
    return this.given(
      input,
      (draft) =>
        intake.admit(draft, this.unlessParked(Session.run(session, draft, { ...options, lasts: this.isKept }))),
      () => session.model
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
    const { intake, session } = this.parts
    const ended = (output?: TypedOutput.TypedOutput): Effect.Effect<TurnEnd, NotRun> =>
      this.given<TurnEnd, NotRun>(
        input,
        (draft) => {
          if (id !== undefined) {
            const messageId = MessageId.make(id, { disableValidation: true })
            const file = () => session.send(named(draft, messageId), "queue").id
            const once = Effect.flatMap(loadRepeatedRun, ({ run }) =>
              run(this.parts, draft, { id: messageId, output, file, neverBegun })
            )
            return intake.admit(draft, this.unlessParked(once))
          }
          const { kept } = intake
          return intake.admit(
            draft,
            this.unlessParked(Session.run(session, draft, { kept, lasts: this.isKept, output }))
          )
        },
        () => session.model
      )
    if (schema === undefined) return ended()
    return Effect.suspend(() => {
      const output = TypedOutput.make(schema)
      return Effect.map(ended(output), (end) => output.endOf(end))
    })
  }

  get receiver() {
    return this.parts.control.receiver
  }

  get selected() {
    return this.parts.control.selected
  }

  select(target: string | undefined) {
    return this.parts.control.select(target)
  }

  interrupt(options?: AgentTreeControl.InterruptOptions) {
    return this.parts.control.interrupt(options)
  }

  takeBack(target?: string) {
    return this.parts.control.takeBack(target)
  }

  cancel(reason: CancelReason = "user") {
    return this.parts.session.stop({ cancel: reason })
  }

  get awaitTools() {
    return ToolsAtWork.awaitEnd(this.parts.tree, this.parts.broker)
  }

  // A stored session is resumed in this state, with its question open and its queued words.
  halt(detail: string): Effect.Effect<void> {
    const { session, tree } = this.parts
    if (!tree.journal.enabled) return Effect.asVoid(session.stop({ halt: detail }))
    return Effect.zipRight(Effect.ignore(tree.journal.freeze), session.close({ halt: detail }))
  }

  get compact() {
    return this.parts.session.compact
  }

  get isIdle() {
    return Effect.sync(() => this.parts.session.isIdle())
  }

  get awaitIdle() {
    return this.parts.session.awaitIdle
  }

  subscribe(policy?: EventBus.Policy) {
    return this.parts.tree.shared.bus.subscribe(policy)
  }

  get agents() {
    return Effect.sync(() => this.parts.tree.nodes)
  }

  get model() {
    return this.parts.session.model
  }

  setModel(model: Model.Service) {
    return this.parts.session.setModel(model)
  }

  get permissions(): AgentPermissions.Permissions {
    return (this.permissionsMemo ??= AgentPermissions.make(
      this.parts.tree,
      this.parts.session,
      (body) => this.publish(body),
      () => this.parts.intake.ended
    ))
  }

  report(message: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { bus, redactor } = this.parts.tree.shared
      return Effect.zipRight(this.publish({ _tag: "AgentError", message: redactor.text(message) }), bus.awaitRoom)
    })
  }

  get shutdown(): Effect.Effect<void> {
    return Effect.suspend(() =>
      Effect.uninterruptible(
        Region.once(
          Effect.suspend(() => {
            if (this.isEnding) return Effect.asVoid(this.finished)
            this.isEnding = true
            this.parts.intake.close()
            return this.isAlone && this.parts.session.end() ? this.stopAtRest : this.stop
          })
        )
      )
    )
  }

  drain(within: Duration.DurationInput): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.parts.intake.isClosed) return Effect.asVoid(this.finished)
      this.parts.intake.close()
      const { journal } = this.parts.tree
      const ended = Effect.flatMap(Effect.forkDaemon(Effect.zipRight(journal.hold, this.awaitTools)), (tools) =>
        Effect.zipRight(
          GracePeriod.wait((done) => tools.addObserver(done), within),
          Fiber.interruptFork(tools)
        )
      )
      return Effect.uninterruptible(Effect.zipRight(ended, this.end))
    })
  }

  get done(): Effect.Effect<Option.Option<TurnEnd>> {
    return this.finished
  }

  /** The finalizer of the scope that it was started in. */
  get end(): Effect.Effect<void> {
    return Effect.zipRight(Effect.ignore(this.parts.tree.journal.freeze), this.shutdown)
  }

  private get isKept(): boolean {
    return this.parts.tree.journal.enabled
  }

  /** A turn that goes on in the next process has no end here. */
  private unlessParked<E>(end: Effect.Effect<TurnEnd, E>): Effect.Effect<TurnEnd, E> {
    if (!this.isKept) return end
    const isParked = (end: TurnEnd) =>
      end._tag === "Cancelled" && end.reason === "shutdown" && this.parts.tree.journal.isFrozen()
    return Effect.flatMap(end, (end) => (isParked(end) ? Effect.interrupt : Effect.succeed(end)))
  }

  private get isAlone(): boolean {
    return this.parts.tree.size === 0 && !this.parts.broker.isAsking()
  }

  /** Nothing runs, so nothing can take long: no fiber and no timer, which were 40 of the 104 µs of a life without a turn. */
  private get stopAtRest(): Effect.Effect<void> {
    const { session } = this.parts
    return Effect.flatMap(this.released, () =>
      Effect.flatMap(session.awaitIdle, (last) => this.ended(last, this.parts.shutdownWithin))
    )
  }

  private get stop(): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { session, shutdownWithin, tree } = this.parts
      const began = yield* Clock.currentTimeMillis
      // In a fiber of its own: uninterruptible work is abandoned, and the end is still published.
      const closing = yield* Effect.forkDaemon(this.close)
      yield* GracePeriod.wait((done) => closing.addObserver(done), shutdownWithin)
      const closed = Option.fromNullable(closing.unsafePoll())
      if (Option.isNone(closed)) {
        const message = AgentTreeControl.leftBehind(tree, this.origin.agent, shutdownWithin)
        yield* this.publish({ _tag: "AgentError", message })
        session.abandon()
      }
      const last = Option.isSome(closed) ? yield* session.awaitIdle : Option.some(neverBegun)
      const taken = (yield* Clock.currentTimeMillis) - began
      yield* this.ended(last, Math.max(0, Duration.toMillis(shutdownWithin) - taken))
      yield* Option.getOrElse(closed, () => Exit.void)
    })
  }

  private ended(last: Option.Option<TurnEnd>, within: Duration.DurationInput): Effect.Effect<void> {
    const { session, tree } = this.parts
    const completed = this.publish({
      _tag: "AgentCompleted",
      success: Option.exists(last, is("Completed")),
      turnsUsed: session.turns()
    })
    return Effect.flatMap(completed, () =>
      Effect.flatMap(tree.shared.bus.close, () =>
        Effect.map(this.release(within), () => {
          this.parts.halting.parts = undefined
          this.finished.complete(last)
        })
      )
    )
  }

  /** A slow audit may delay the end by at most this long. */
  private release(within: Duration.DurationInput): Effect.Effect<void> {
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

  private get close(): Effect.Effect<void> {
    return Effect.zipRight(
      Effect.suspend(() => this.parts.session.close({ cancel: "shutdown" })),
      Effect.suspend(() => this.released)
    )
  }

  /** The fibers that ask live in the scope: they end before the broker does. */
  private get released(): Effect.Effect<void> {
    const { broker, scope } = this.parts
    return Effect.zipRight(Scope.close(scope, Exit.void), broker.close)
  }

  /** Words as they are; files are looked at, by those who will read them too, and kept first. */
  private given<A, E>(
    input: Input.Input,
    use: (draft: Taken["draft"]) => Effect.Effect<A, E>,
    ...readers: ReadonlyArray<() => Effect.Effect<Model.Service>>
  ): Effect.Effect<A, E | NotTaken> {
    if (typeof input === "string") return use({ text: input })
    const { intake, tree } = this.parts
    return Effect.gen(function* () {
      const { limits, redactor } = tree.shared
      const InputTaking = yield* loadTaking
      const { contents, draft } = yield* InputTaking.take(input, Limits.withDefaults(limits), redactor)
      if (contents.length > 0) {
        for (const reader of readers) {
          const refusal = InputTaking.notTaken(draft, yield* reader())
          if (refusal !== undefined) return yield* refusal
        }
        yield* intake.keep(contents)
      }
      return yield* use(draft)
    })
  }

  private publish(body: AgentEvent.Body): Effect.Effect<void> {
    return this.parts.tree.publish(this.origin, body)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Not a spread with the id behind it: V8 makes a shape for each of those. */
const named = ({ parts, text }: Taken["draft"], id: MessageId | undefined): Draft => ({ id, text, parts })

const loadRepeatedRun = Effect.promise(() => import("./RepeatedRun.js"))

const loadTaking = Effect.promise(() => import("../inbox/InputTaking.js"))
