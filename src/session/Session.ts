/**
 * One agent from the inside: its inbox, history, tools and scope, and the loop that drains the inbox turn by turn.
 *
 * ```
 *  idle ──message──► turn ──TurnEnd──► (more messages? ──► turn) ──► idle
 * ```
 *
 * Everything the session starts lives in the scope it was made in. One turn runs at a time.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { IdGenerator, type CorrelationId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import * as Origin from "../core/Origin.js"
import * as Spans from "../core/Spans.js"
import * as Inbox from "../inbox/Inbox.js"
import type { Message } from "../inbox/Message.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Reopened from "../interaction/Reopened.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import { Admission } from "./Admission.js"
import * as Compaction from "./Compaction.js"
import { Delegations } from "./Delegation.js"
import * as History from "./History.js"
import * as Reopening from "./Reopening.js"
import * as Restored from "./Restored.js"
import { defaultLimits, emit, idle, printed, setStatus, type SessionContext } from "./SessionContext.js"
import type { Options, Service } from "./SessionService.js"
import { RunningCalls } from "./RunningCalls.js"
import * as SessionSpan from "./SessionSpan.js"
import * as Tidying from "./Tidying.js"
import * as TokenBudget from "./TokenBudget.js"
import * as ToolContexts from "./ToolContexts.js"
import * as Turn from "./Turn.js"
import * as TurnOrder from "./TurnOrder.js"
import { Waiters } from "./Waiters.js"

export type { Options, Order, Service, TurnOptions } from "./SessionService.js"

export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    const clock = yield* Effect.clock
    const { journal, restored } = options
    const inbox =
      options.inbox ??
      (yield* Inbox.make({
        filed: journal?.received,
        withdrawn: journal?.withdrawn,
        messages: restored?.waiting
      }))
    const { origin, permissions, spans = Spans.off } = options
    let model = options.model
    // The state below is read and written in synchronous sections only, so deciding and acting are one step.
    // Busy from the moment a message is filed, not from the moment its turn begins: admission must not race the loop.
    let busy = restored?.turn !== undefined
    let ended = false
    let turns = restored?.turns ?? 0
    /** Of the running turn, else of the next: whoever cancels before a turn has begun cancels it. */
    let stop = Turn.fresh()
    let fiber: Fiber.RuntimeFiber<void> | undefined
    let lastEnd: Option.Option<Turn.TurnEnd> = Option.fromNullable(restored?.lastEnd)
    /** Works beside the turns, such as a child in the background. */
    let retained = 0
    const turnWaiters = new Waiters()
    const idleWaiters = new Waiters()
    const delegations = new Delegations()
    const orders = TurnOrder.make()
    /** Of the running turn, when somebody waits for it. */
    let order: TurnOrder.TurnOrder | undefined

    const limits = { ...defaultLimits, ...options.limits }
    const history = History.make(restored?.history ?? [], options.redactor, () => journal?.replaced("cleared", []))
    const compaction = Compaction.make(
      Tidying.hostOf(history, () => session),
      options.compaction
    )
    const scope = yield* Effect.scope

    const session: SessionContext = {
      origin,
      history,
      compaction,
      inbox,
      model: () => model,
      tools: options.tools,
      gate: PermissionGate.make({
        policy: options.policy,
        state: permissions,
        bus: options.bus,
        redactor: options.redactor,
        guards: options.guards,
        authority: options.authority,
        insteadOfAsking: options.insteadOfAsking,
        decided: journal?.decided,
        audit: options.audit,
        spans
      }),
      interactor: options.interactor,
      bus: options.bus,
      redactor: options.redactor,
      limits,
      calls: new RunningCalls(limits.stopWithin, (message) => {
        emit(session, { _tag: "AgentError", message })
      }),
      ledger: options.ledger,
      spans,
      journal,
      contextOf: ToolContexts.make({
        interactor: options.interactor,
        sink: (chunk) => printed(session, chunk),
        ambient: () => Context.merge(options.ambient?.(service) ?? Context.empty(), reopened)
      }),
      now: () => clock.unsafeCurrentTimeMillis(),
      state: idle()
    }
    history.setSystem(options.instructions)
    const reopening = restored === undefined ? undefined : Reopening.make(restored)
    const reopened = reopening === undefined ? Context.empty() : Context.make(Reopened.Reopened, reopening)

    const begin = (input: ReadonlyArray<Message>): CorrelationId => {
      busy = true
      turns++
      const correlationId = ids.unsafeNext("turn") as CorrelationId
      session.state.correlationId = correlationId
      order = orders.of(input)
      session.state.authority = order?.authority
      session.history.appendInput(input, { beginsTurn: true })
      journal?.taken(input, correlationId, 1)
      TokenBudget.begin(session, input)
      const text = options.redactor.text(input.map((message) => message.text).join("\n\n"))
      emit(session, { _tag: "TurnStarted", input: text })
      return correlationId
    }

    const finish = () => {
      const end = Turn.endOf(stop)
      lastEnd = Option.some(end)
      stop = Turn.fresh()
      fiber = undefined
      session.state.output.clear()
      const suspended = permissions.endTurn(origin.sessionId)
      const { detail, ...told } = Turn.report(end)
      emit(session, {
        _tag: "TurnEnded",
        ...told,
        ...(detail === undefined ? {} : { detail: options.redactor.text(detail) })
      })
      session.state.correlationId = undefined
      giveBack()
      if (suspended) tellPermissions()
      if (inbox.isEmpty() && !compaction.isRequested()) becomeIdle()
      turnWaiters.wake(lastEnd)
      if (order !== undefined) orders.fulfil(order, end)
    }

    const becomeIdle = () => {
      busy = false
      if (retained === 0) rest()
      else setStatus(session, "waiting")
    }

    const rest = () => {
      if (permissions.becomeIdle(origin.sessionId)) tellPermissions()
      setStatus(session, "idle")
      idleWaiters.wake(lastEnd)
    }

    const isIdle = () => !busy && retained === 0 && inbox.isEmpty()

    const tellPermissions = () => {
      const { default: fallback, suspension } = permissions.status(options.policy, origin.sessionId)
      emit(session, {
        _tag: "PermissionStatusChanged",
        default: fallback,
        ...(suspension === undefined ? {} : { suspension })
      })
    }

    const giveBack = () => {
      if (options.unread !== undefined) admission.takeBack().forEach(options.unread)
    }

    const placeOrder: Service["order"] = (text, { authority, filed, reason = "user", source = "user", span } = {}) => {
      if (ended) return Option.none()
      busy = true
      const message = inbox.port(source).unsafeSend(text, { delivery: "queue" })
      filed?.(message)
      const own = authority && PermissionGate.orElse(options.authority)(authority)
      return Option.some({ message, ...placed({ id: message.id, authority: own, span }, reason) })
    }

    const placed = (wanted: Omit<TurnOrder.TurnOrder, "end">, reason: CancelReason) => {
      const stop = Effect.suspend(() => stopTurn({ cancel: reason }))
      return orders.handle(orders.place(wanted), (id) => inbox.withdraw(id), stop)
    }

    const skip = () => {
      stop = Turn.fresh()
      becomeIdle()
      turnWaiters.wake(Option.none())
    }

    /** Waits for work in a fiber of its own, which can be cancelled alone. Not interruptible but where it waits. */
    const cancellable = (started: Effect.Effect<Fiber.RuntimeFiber<void>>, restore: Tidying.Restore) =>
      Effect.flatMap(started, (work) => {
        fiber = work
        if (stop.reason !== undefined) work.unsafeInterruptAsFork(FiberId.none)
        return Effect.catchAllCause(restore(Turn.exitOf(work)), (cause) =>
          Effect.zipRight(Fiber.interrupt(work), Effect.failCause(cause))
        )
      })

    const tidying = Tidying.make(compaction, {
      begun: () => {
        busy = true
        setStatus(session, "thinking")
      },
      cancellable: (work, restore) => cancellable(Effect.fork(work), restore),
      isStopped: () => stop.reason !== undefined || ended,
      isQuiet: () => inbox.isEmpty() && !ended,
      ended: () => {
        fiber = undefined
        if (inbox.isEmpty() && !ended) skip()
      }
    })

    // Only waiting is interruptible: a turn that has begun ends, and says so, also when the session does.
    const turn = Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        // Words may have been withdrawn since they woke the session.
        if (inbox.isEmpty()) return tidying.isRunning() ? Effect.void : Effect.sync(skip)
        const input = admission.takeTurn()
        return input.length === 0 ? Effect.sync(skip) : take(input, begin(input), restore)
      })
    )

    const take = (
      input: ReadonlyArray<Message>,
      correlationId: CorrelationId,
      restore: Tidying.Restore,
      begun?: Turn.Begun
    ) => {
      // Made as it begins: whoever waits for the turn need not hold what it was begun with.
      const taken = Effect.suspend(() =>
        cancellable(
          Turn.run(session, input, stop, begun).pipe(
            SessionSpan.turn(session, { input, parent: order?.span, ended: () => Turn.report(Turn.endOf(stop)) }),
            Effect.fork,
            // Around the fork: the fiber has them from its start, and holds nothing to put them back at its end.
            Interactor.withInteractor(session.interactor),
            Origin.withOrigin(Object.assign({}, origin, { correlationId }))
          ),
          restore
        )
      )
      return Effect.matchCauseEffect(taken, {
        onFailure: (cause) => Effect.zipRight(close, Effect.failCause(cause)),
        onSuccess: () => close
      })
    }

    /** The end is on the disk when others hear of it, or it is another end. */
    const close =
      journal === undefined
        ? Effect.sync(finish)
        : Effect.suspend(() => {
            const { correlationId } = session.state
            if (correlationId !== undefined) journal.turnEnded(correlationId, Turn.endOf(stop))
            const unsaved = (message: string) =>
              Effect.sync(() => {
                emit(session, { _tag: "AgentError", message })
                stop.end = Turn.unsaved(Turn.endOf(stop), message)
              })
            return Effect.zipRight(Effect.catchAll(journal.flush, unsaved), Effect.sync(finish))
          })

    /** What was open and is asked by nobody is not open any more. */
    const reopeningOver = () => journal?.dropped(reopening?.end() ?? [])

    /** The turn that another process began. */
    const resumed = Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        if (restored?.turn === undefined) return Effect.sync(reopeningOver)
        const { correlationId, input, step } = restored.turn
        session.state.correlationId = correlationId
        order = orders.of(input.map((id) => ({ id })))
        emit(session, { _tag: "TurnStarted", input: Restored.inputOf(restored) })
        const work = take([], correlationId, restore, { step, batch: restored.batch, caughtUp: reopeningOver })
        return Effect.zipRight(Effect.provideService(work, Reopened.Reopened, reopening), Effect.sync(reopeningOver))
      })
    )

    const admission = new Admission({
      session,
      isBusy: () => busy && !ended,
      wake: () => {
        busy = true
      },
      stop: () => stop,
      isTidying: () => tidying.isRunning()
    })

    // What was asked for in a turn and not done in it is done before the next.
    const work = Effect.suspend(() =>
      compaction.isRequested() && !tidying.isRunning()
        ? tidying.begin()
        : Effect.zipRight(inbox.awaitWork, tidying.settled)
    )
    const run = Effect.zipRight(resumed, Effect.forever(Effect.zipRight(work, turn))).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          ended = true
          giveBack()
          if (!inbox.isEmpty()) lastEnd = Turn.unread(lastEnd)
          turnWaiters.wake(lastEnd)
          busy = false
          rest()
          orders.close(Turn.neverBegun)
          compaction.close()
        })
      )
    )

    const stopTurn = (reason: NonNullable<Turn.StopSignal["reason"]>) =>
      Effect.suspend(() => {
        if (!busy || ended) return Effect.succeed(Option.none<Turn.TurnEnd>())
        stop.reason ??= reason
        fiber?.unsafeInterruptAsFork(FiberId.none)
        return turnWaiters.wait()
      })

    const service: Service = {
      origin,
      history: session.history,
      tools: options.tools,
      inbox,
      delegations,
      calls: session.calls,
      run,
      send: (text, parentId = "root") => Effect.sync(() => admission.send(text, parentId)),
      interject: admission.interject,
      isReceiving: admission.isReceiving,
      forward: admission.forward,
      takeBack: admission.takeBack,
      enqueue: (text) => Effect.sync(() => admission.enqueue(text)),
      turn: (text, options) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(spans.current, (span) =>
            Option.match(placeOrder(text, { ...options, span }), {
              onNone: () => Effect.succeed(Turn.neverBegun),
              onSome: ({ end, giveUp }) => Effect.onInterrupt(restore(end), () => giveUp)
            })
          )
        ),
      order: placeOrder,
      rejoin: (id) => placed({ id, authority: undefined, span: undefined }, "parent"),
      cancel: (reason) => stopTurn({ cancel: reason }),
      halt: (detail) =>
        Effect.suspend(() => {
          // A child asks that nobody waits for.
          if (!busy && !ended) lastEnd = Option.some(Turn.Halted({ detail, steps: 0 }))
          return Effect.asVoid(stopTurn({ halt: detail }))
        }),
      isIdle: Effect.sync(isIdle),
      awaitIdle: Effect.suspend(() => {
        if (ended) return Effect.succeed(inbox.isEmpty() ? lastEnd : Turn.unread(lastEnd))
        return isIdle() ? Effect.succeed(lastEnd) : idleWaiters.wait()
      }),
      retain: () => {
        retained++
        let released = false
        return () => {
          if (released) return
          released = true
          retained--
          if (!ended && isIdle()) rest()
        }
      },
      compact: Effect.suspend(() => {
        const compacted = compaction.request()
        if (busy || ended) return compacted
        return Effect.zipRight(Effect.forkIn(tidying.begin(), scope), compacted)
      }),
      turns: () => turns,
      model: Effect.sync(() => model),
      setModel: (next) =>
        Effect.sync(() => {
          model = next
        })
    }
    return service
  })
