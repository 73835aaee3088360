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
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { IdGenerator, type CorrelationId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import type * as EventBus from "../event/EventBus.js"
import * as Inbox from "../inbox/Inbox.js"
import type { Message } from "../inbox/Message.js"
import * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as PermissionFile from "../permission/PermissionFile.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import type { PermissionState } from "../permission/PermissionState.js"
import { ToolOutput } from "../tool/ToolOutput.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as History from "./History.js"
import { defaultLimits, emit, setStatus, tell, type Limits, type SessionContext } from "./SessionContext.js"
import * as Turn from "./Turn.js"

export interface Options {
  readonly origin: Origin.Origin
  readonly model: Model.Service
  readonly tools: ToolRegistry.Service
  /** System message; nothing when empty. */
  readonly instructions: string
  /** Whom this session asks. */
  readonly interactor: Interactor.Service
  readonly policy: PermissionFile.Policy
  readonly permissions: PermissionState
  readonly guards: ReadonlyArray<PermissionGate.Guard>
  readonly authority?: PermissionGate.Authority | undefined
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly limits?: Partial<Limits> | undefined
}

export interface Service {
  readonly origin: Origin.Origin
  readonly history: History.History
  readonly tools: ToolRegistry.Service
  readonly inbox: Inbox.Service
  /** Takes turns for ever; interrupt it to end the session. */
  readonly run: Effect.Effect<never>
  /**
   * Hands in a user's words: a turn when idle, an interjection when busy, which stops the running generation. Deciding and
   * filing are one step.
   */
  readonly send: (text: string, parentId?: string) => Effect.Effect<Message>
  /** Hands in words for the next turn. */
  readonly enqueue: (text: string) => Effect.Effect<Message>
  /** Cancels the running turn and waits for its end; nothing when idle. */
  readonly cancel: (reason: CancelReason) => Effect.Effect<Option.Option<Turn.TurnEnd>>
  /** Ends the running turn as halted, because nobody can answer. */
  readonly halt: (detail: string) => Effect.Effect<void>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and the inbox is empty; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<Turn.TurnEnd>>
  /** Turns begun so far. */
  readonly turns: () => number
  readonly model: Effect.Effect<Model.Service>
  /** The model of the next model call. */
  readonly setModel: (model: Model.Service) => Effect.Effect<void>
}

export const make = (options: Options): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    const clock = yield* Effect.clock
    const inbox = yield* Inbox.make
    const { origin, permissions } = options
    let model = options.model
    let running: { readonly fiber: Fiber.RuntimeFiber<void>; readonly stop: Turn.StopSignal } | undefined
    let stopNext: Turn.StopSignal["reason"]
    let lastEnd: Option.Option<Turn.TurnEnd> = Option.none()
    // Busy from the moment a message is filed, not from the moment its turn begins: admission must not race the loop.
    let busy = false
    let turns = 0
    let idleWaiters: Array<Deferred.Deferred<Option.Option<Turn.TurnEnd>>> = []

    const session: SessionContext = {
      origin,
      history: History.make(),
      inbox,
      model: () => model,
      tools: options.tools,
      gate: PermissionGate.make({
        policy: options.policy,
        state: permissions,
        bus: options.bus,
        redactor: options.redactor,
        guards: options.guards,
        authority: options.authority
      }),
      interactor: options.interactor,
      bus: options.bus,
      redactor: options.redactor,
      limits: { ...defaultLimits, ...options.limits },
      contextOf: contexts(options, (chunk) =>
        Effect.flatMap(Origin.current, ({ toolCallId }) =>
          toolCallId === undefined
            ? Effect.void
            : tell(session, {
                _tag: "ToolOutput",
                toolCallId,
                stream: chunk.stream,
                text: options.redactor.text(chunk.text)
              })
        )
      ),
      now: () => clock.unsafeCurrentTimeMillis(),
      state: { correlationId: undefined, generation: undefined, status: "idle" }
    }
    session.history.setSystem(options.instructions)

    const port = inbox.port("user")

    const turn = (input: ReadonlyArray<Message>) =>
      Effect.gen(function* () {
        const correlationId = ids.unsafeNext("turn") as CorrelationId
        session.state.correlationId = correlationId
        turns++
        const text = options.redactor.text(input.map((message) => message.text).join("\n\n"))
        yield* tell(session, { _tag: "TurnStarted", input: text })
        const stop: Turn.StopSignal = { reason: stopNext, end: undefined }
        stopNext = undefined
        session.history.appendInput(input)
        const fiber = yield* Effect.fork(
          Turn.run(session, input, stop).pipe(
            Interactor.withInteractor(session.interactor),
            Origin.withOrigin({ ...origin, correlationId }),
            Effect.uninterruptible
          )
        )
        running = { fiber, stop }
        if (stop.reason !== undefined) yield* Fiber.interruptFork(fiber)
        yield* Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber))
        running = undefined
        const end = Turn.endOf(stop)
        permissions.endTurn(origin.sessionId)
        lastEnd = Option.some(end)
        const detail = detailOf(end)
        yield* tell(session, {
          _tag: "TurnEnded",
          reason: Turn.endReason(end),
          steps: end.steps,
          ...(detail === undefined ? {} : { detail })
        })
        session.state.correlationId = undefined
      })

    const becomeIdle = Effect.suspend(() => {
      busy = false
      permissions.becomeIdle(origin.sessionId)
      setStatus(session, "idle")
      const waiters = idleWaiters
      idleWaiters = []
      return Effect.forEach(waiters, (waiter) => Deferred.succeed(waiter, lastEnd), { discard: true })
    })

    const run = Effect.forever(
      Effect.gen(function* () {
        yield* inbox.awaitWork
        busy = true
        yield* turn(inbox.takeTurn())
        if (inbox.isEmpty()) yield* becomeIdle
      })
    )

    const interruptGeneration = Effect.suspend(() => {
      const { generation } = session.state
      return generation === undefined ? Effect.void : Effect.asVoid(Fiber.interruptFork(generation))
    })

    const stopTurn = (reason: NonNullable<Turn.StopSignal["reason"]>) =>
      Effect.suspend(() => {
        if (running === undefined) {
          // Admitted, but its turn has not begun: the turn will end as soon as it does.
          if (busy) stopNext ??= reason
          return Effect.succeed(Option.none<Turn.TurnEnd>())
        }
        const { fiber, stop } = running
        stop.reason ??= reason
        return Effect.map(Fiber.interrupt(fiber), () => Option.some(Turn.endOf(stop)))
      })

    return {
      origin,
      history: session.history,
      tools: options.tools,
      inbox,
      run,
      send: (text, parentId = "root") =>
        Effect.suspend(() => {
          if (!busy) {
            busy = true
            return port.send(text)
          }
          return Effect.tap(port.send(text, { interjection: { parentId } }), (message) => {
            emit(session, {
              _tag: "UserInterjected",
              messageId: message.id,
              message: options.redactor.text(text),
              targetAgent: origin.agent,
              parentId
            })
            return interruptGeneration
          })
        }),
      enqueue: (text) =>
        Effect.suspend(() => {
          busy = true
          return port.send(text, { delivery: "queue" })
        }),
      cancel: (reason) => stopTurn({ cancel: reason }),
      halt: (detail) => Effect.asVoid(stopTurn({ halt: detail })),
      isIdle: Effect.sync(() => !busy && inbox.isEmpty()),
      awaitIdle: Effect.suspend(() => {
        if (!busy && inbox.isEmpty()) return Effect.succeed(lastEnd)
        const waiter = Deferred.unsafeMake<Option.Option<Turn.TurnEnd>>(FiberId.none)
        idleWaiters.push(waiter)
        return Deferred.await(waiter)
      }),
      turns: () => turns,
      model: Effect.sync(() => model),
      setModel: (next) =>
        Effect.sync(() => {
          model = next
        })
    } satisfies Service
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A handler's context, merged once per tool. */
const contexts = (
  options: Options,
  sink: Context.Tag.Service<typeof ToolOutput>
): ((entry: ToolRegistry.Entry) => Context.Context<never>) => {
  const ambient = Context.make(Interactor.Interactor, options.interactor).pipe(Context.add(ToolOutput, sink))
  const merged = new Map<ToolRegistry.Entry, Context.Context<never>>()
  return (entry) => {
    const known = merged.get(entry)
    if (known !== undefined) return known
    const context: Context.Context<never> = Context.merge(entry.context, ambient)
    merged.set(entry, context)
    return context
  }
}

const detailOf = Turn.match({
  Completed: (): string | undefined => undefined,
  Cancelled: ({ reason }) => reason,
  TurnLimit: ({ steps }) => `the limit of ${steps} model calls was reached`,
  Halted: ({ detail }) => detail,
  Failed: ({ error }) => error
})
