/**
 * An agent as one executor drives it: words go into a bounded queue, events come out of a bounded stream.
 *
 * ```
 *  executor ──offer──► input (10) ──at once──► inboxes ──► turns ──► events (10, waits) ──► executor
 *           ──interrupt, shutdown─────────────────────────►                      done ──►
 * ```
 *
 * The agent waits for an executor that is slow to read. The executor is never kept waiting by the agent: what it offers is
 * taken out of the queue at once, whatever the agent does, and what it has to say urgently goes past the queue. So neither
 * can wait for the other in a circle. Words that were in the queue when the agent was shut down are gone, like those that
 * are offered later: an offer then yields `false`.
 *
 * An `Agent` has the same events and the same end; what a handle adds is the queue, the narrow streams, and that there is
 * one: an agent that already has a handle does not get another.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as EventBus from "../event/EventBus.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { TurnEnd } from "../turn/Turn.js"
import * as Agent from "./Agent.js"
import type { AgentRuntime } from "./AgentRuntime.js"

/** What an executor puts into the queue. */
export type Input = Data.TaggedEnum<{
  /** See `Agent.send`. An unknown target, or a journal that cannot be written, becomes an `AgentError`. */
  readonly Send: { readonly text: string; readonly target?: string | undefined }
  /** See `Agent.enqueue`. */
  readonly Enqueue: { readonly text: string }
}>
/** Constructors of an {@link Input}. */
export const { Send, Enqueue, $match: match } = Data.taggedEnum<Input>()

/** The agent is driven by somebody else. */
export class AgentAlreadyDriven extends Schema.TaggedError<AgentAlreadyDriven>("assent/runtime/AgentAlreadyDriven")(
  "AgentAlreadyDriven",
  { agent: Schema.String }
) {
  override get message(): string {
    return `Agent ${this.agent} already has an executor; use its handle, subscribe to its events, or start another agent.`
  }
}

/** An agent driven through queues. */
export interface AgentHandle {
  readonly agent: Agent.Agent
  /** Written by the executor, read by the agent; whoever offers waits while it is full. It is shut down with the agent. */
  readonly input: Queue.Enqueue<Input>
  /** All events from the start. One reader. The agent waits for it. */
  readonly events: EventBus.Subscription
  /** Past the queue; see `Agent.interrupt`. */
  readonly interrupt: Agent.Agent["interrupt"]
  /** Past the queue; see `Agent.shutdown`. */
  readonly shutdown: Effect.Effect<void>
  /** How the last turn ended, once nothing of the agent is left. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

/** How many inputs wait; a full queue makes its writer wait. */
export interface Options {
  /** Words the queue holds. Default: 10. */
  readonly input?: number | undefined
}

/** How many events wait for an executor before the agent does. */
export const eventCapacity = 10

/** Starts an agent and drives it; its events wait for the executor, ten at most unless the options say otherwise. */
export const start: Agent.Start<AgentHandle, AgentRuntime | Interactor.Interactor | Scope.Scope, Options> = (
  options: Agent.Options & Options = {}
) => {
  const events = options.events ?? { capacity: eventCapacity, whenFull: "wait" }
  // As in `Agent.start`: a plain one does not fail.
  const kept = { ...options, events } as Agent.Plain
  return Effect.flatMap(Agent.start(kept), (agent) => Effect.orDie(drive(agent, options)))
}

/** Drives an agent that was started; how its events wait was decided there. Once for each agent. */
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
    // Ends with the agent: `AgentStopped` is its last word.
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

/** Those that have a handle. */
const driven = new WeakSet<Agent.Agent>()
