/**
 * An agent with one executor: words go into a bounded queue, events come out of a bounded stream.
 *
 * ```
 *  executor ──offer──► input (10) ──at once──► inboxes ──► turns ──► events (10, waits) ──► executor
 *           ──interrupt, shutdown─────────────────────────►                      done ──►
 * ```
 *
 * The agent waits for a slow executor (back-pressure). The executor never waits for the agent: its input is taken out
 * of the queue at once, whatever the agent does, and urgent commands bypass the queue. So there is no deadlock between
 * the two. Words still in the queue at the shutdown are lost, and so are later ones: an offer then yields `false`.
 *
 * An `Agent` has the same events and the same end. A handle adds the queue and the bounded streams, and it is
 * exclusive: an agent with a handle does not get another.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as EventBus from "../event/EventBus.js"
import type { Input as Words } from "../inbox/Input.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { TurnEnd } from "../turn/Turn.js"
import * as Agent from "./Agent.js"
import type { AgentRuntime } from "./AgentRuntime.js"

/**
 * An element of the input queue.
 *
 * @since 0.1.0
 * @category models
 */
export type Input = Data.TaggedEnum<{
  /** See `Agent.send`. An unknown target, or a journal that cannot be written, becomes an `AgentError`. */
  readonly Send: { readonly text: Words; readonly target?: string | undefined }
  /** See `Agent.enqueue`. */
  readonly Enqueue: { readonly text: Words }
}>
/**
 * Constructors of an {@link Input}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const { Send, Enqueue, $match: match } = Data.taggedEnum<Input>()

/**
 * The agent already has a handle.
 *
 * @since 0.1.0
 * @category errors
 */
export class AgentAlreadyDriven extends Schema.TaggedError<AgentAlreadyDriven>("assent/runtime/AgentAlreadyDriven")(
  "AgentAlreadyDriven",
  { agent: Schema.String }
) {
  override get message(): string {
    return `Agent ${this.agent} already has an executor; use its handle, subscribe to its events, or start another agent.`
  }
}

/**
 * An agent driven through queues.
 *
 * @since 0.1.0
 * @category models
 */
export interface AgentHandle {
  readonly agent: Agent.Agent
  /** Written by the executor, read by the agent; an offer waits while it is full. It is shut down with the agent. */
  readonly input: Queue.Enqueue<Input>
  /** All events from the start. One reader. The agent waits for it. */
  readonly events: EventBus.Subscription
  /** Bypasses the queue; see `Agent.interrupt`. */
  readonly interrupt: Agent.Agent["interrupt"]
  /** Bypasses the queue; see `Agent.shutdown`. */
  readonly shutdown: Effect.Effect<void>
  /** The last turn's end, once the agent has ended. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

/**
 * Capacity of the input queue.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Words the queue holds. Default: 10. */
  readonly input?: number | undefined
}

/**
 * Events that are buffered before the agent waits for the executor.
 *
 * @since 0.1.0
 * @category constants
 */
export const eventCapacity = 10

/**
 * Starts an agent and drives it; its events wait for the executor, ten at most unless the options say otherwise.
 *
 * @since 0.1.0
 * @category constructors
 */
export const start: Agent.Start<AgentHandle, AgentRuntime | Interactor.Interactor | Scope.Scope, Options> = (
  options: Agent.Options & Options = {}
) => {
  const events = options.events ?? { capacity: eventCapacity, whenFull: "wait" }
  // As in `Agent.start`: plain options cannot fail.
  const kept = { ...options, events } as Agent.Plain
  return Effect.flatMap(Agent.start(kept), (agent) => Effect.orDie(drive(agent, options)))
}

/**
 * Drives a started agent, whose event policy was set at its start. Once for each agent.
 *
 * @since 0.1.0
 * @category constructors
 */
export const drive = (
  agent: Agent.Agent,
  { input: capacity = 10 }: Options = {}
): Effect.Effect<AgentHandle, AgentAlreadyDriven, Scope.Scope> =>
  Effect.gen(function* () {
    if (driven.has(agent)) return yield* new AgentAlreadyDriven({ agent: agent.origin.agent })
    driven.add(agent)
    const input = yield* Effect.acquireRelease(Queue.bounded<Input>(Math.max(1, Math.floor(capacity))), Queue.shutdown)
    const file = match({
      Send: ({ text, target }) => Effect.asVoid(agent.send(text, { target })),
      Enqueue: ({ text }) => Effect.asVoid(agent.enqueue(text))
    })
    const take = Effect.flatMap(Queue.take(input), (next) =>
      Effect.catchAll(file(next), (error) =>
        error._tag === "AgentStopped" ? Effect.fail(error) : agent.report(error.message)
      )
    )
    // Ends with the agent, through `AgentStopped`.
    const reading = Effect.ignore(Effect.forever(take))
    yield* Effect.forkScoped(
      Effect.ensuring(Effect.raceFirst(reading, Effect.asVoid(agent.done)), Queue.shutdown(input))
    )
    return {
      agent,
      input,
      events: agent.events,
      interrupt: (options) => agent.interrupt(options),
      shutdown: Effect.zipRight(agent.shutdown, Queue.shutdown(input)),
      done: agent.done
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Agents that have a handle. */
const driven = new WeakSet<Agent.Agent>()
