/**
 * Carries the events of one tree of agents to its subscribers.
 *
 * Every subscriber has a ring of its own. The owner of the agent subscribes with back-pressure: when its ring is full,
 * publishers wait. Everybody else slides: the oldest events are dropped and counted, and the next batch starts with
 * `Lagged`. So no observer can stall an agent.
 *
 * ```
 *  publish ──► ring (owner, waits when full)  ──takeAll──► executor
 *          ├─► ring (observer, slides)        ──takeAll──► transcript
 *          └─► line: events that wait for the owner, in order
 * ```
 *
 * Publishing is a plain call that puts the event into each ring; only a full owner's ring makes it wait. Readers take
 * whole batches, because waking a fiber costs more than a hundred events.
 *
 * @since 0.1.0
 */
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "./AgentEvent.js"

/**
 * The behaviour when a subscriber's ring is full.
 *
 * @since 0.1.0
 * @category models
 */
export interface Policy {
  /** Events the ring holds, at least 1; `Infinity` holds all. Default: 256. */
  readonly capacity?: number | undefined
  /** Make publishers wait, or drop the oldest and count. Default: `slide`. */
  readonly whenFull?: "wait" | "slide" | undefined
}

/**
 * One reader's end.
 *
 * @since 0.1.0
 * @category models
 */
export interface Subscription {
  /**
   * Waits for at least one event and takes all there are, oldest first; nothing once the bus is closed and everything
   * was taken. One reader at a time.
   */
  readonly takeAll: Effect.Effect<Option.Option<ReadonlyArray<AgentEvent>>>
  readonly stream: Stream.Stream<AgentEvent>
}

/**
 * Publishes to all who subscribed; what a slow reader costs is their policy's to say.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** Publishes, waiting while a back-pressured subscriber is full. Interrupting the wait does not lose the event. */
  readonly publish: (event: AgentEvent) => Effect.Effect<void>
  /**
   * Publishes at once. False: the event waits for a full subscriber, and the publisher should wait for {@link
   * awaitRoom} before its next event. Never loses an event; the line is as long as there are publishers that did not
   * wait.
   */
  readonly unsafePublish: (event: AgentEvent) => boolean
  /** Waits until nothing stands in line. */
  readonly awaitRoom: Effect.Effect<void>
  /** Everything published from now on, until the scope or the bus closes. */
  readonly subscribe: (policy?: Policy) => Effect.Effect<Subscription, never, Scope.Scope>
  /** Ends every subscription after the events it still holds. Events in line are handed over regardless of capacity. */
  readonly close: Effect.Effect<void>
}

/**
 * The events of one tree of agents.
 *
 * @since 0.1.0
 * @category services
 */
export class EventBus extends Context.Tag("assent/event/EventBus")<EventBus, Service>() {}

/**
 * A bus without readers.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Service> = Effect.sync(() => new Bus())

/**
 * A bus with its owner's subscription, which lasts as long as the bus: it needs no scope to end it.
 *
 * @internal
 */
export const owned = (policy?: Policy): { readonly bus: Service; readonly events: Subscription } => {
  const bus = new Bus()
  return { bus, events: bus.join(policy) }
}

/**
 * Called with every event in the step in which it is published. It must be quick, and must not throw.
 *
 * @internal
 */
export interface Observer {
  readonly take: (event: AgentEvent) => void
  /** The bus closes. */
  readonly close: () => void
}

/**
 * A bus that shows an observer every event before it is published: without a ring, a fiber or a wait.
 *
 * @internal
 */
export const observed = (bus: Service, observer: Observer): Service => ({
  publish: (event) =>
    Effect.suspend(() => {
      observer.take(event)
      return bus.publish(event)
    }),
  unsafePublish: (event) => {
    observer.take(event)
    return bus.unsafePublish(event)
  },
  get awaitRoom() {
    return bus.awaitRoom
  },
  subscribe: (policy) => bus.subscribe(policy),
  get close() {
    return Effect.suspend(() => {
      observer.close()
      return bus.close
    })
  }
})

/**
 * A bus of its own; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<EventBus> = Layer.effect(EventBus, make)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Resume = (effect: Effect.Effect<void>) => void

type Batch = Option.Option<ReadonlyArray<AgentEvent>>

/** Shared, because most buses have one subscriber and no waiting publisher. */
const none: ReadonlyArray<never> = []

class Bus implements Service {
  // Written and read only inside synchronous sections, so no lock is needed.
  private subscribers: ReadonlyArray<Ring> = none
  private readonly line: Array<AgentEvent> = []
  private waiters: ReadonlyArray<Resume> = none
  private closed = false

  unsafePublish(event: AgentEvent): boolean {
    if (this.line.length > 0 || this.isFull()) {
      this.line.push(event)
      return false
    }
    this.deliver(event)
    return true
  }

  get awaitRoom(): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.line.length === 0
        ? Effect.void
        : Effect.async<void>((resume) => {
            // Other fibers may have run since the check above.
            if (this.line.length === 0) return resume(Effect.void)
            this.waiters = [...this.waiters, resume]
            return Effect.sync(() => {
              this.waiters = this.waiters.filter((waiter) => waiter !== resume)
            })
          })
    )
  }

  publish(event: AgentEvent): Effect.Effect<void> {
    return Effect.suspend(() => (this.unsafePublish(event) ? Effect.void : this.awaitRoom))
  }

  join({ capacity = 256, whenFull }: Policy = {}): Ring {
    const ring = new Ring(Math.max(1, Math.floor(capacity)), whenFull === "wait", this)
    if (this.closed) ring.close()
    // Its exact length: a spread reserves room for sixteen more.
    else this.subscribers = this.subscribers.concat(ring)
    return ring
  }

  subscribe(policy?: Policy): Effect.Effect<Subscription, never, Scope.Scope> {
    return Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => this.join(policy)),
        (ring) =>
          Effect.sync(() => {
            this.subscribers = this.subscribers.filter((other) => other !== ring)
            ring.close()
            this.pump()
          })
      ),
      (ring): Subscription => ring
    )
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.closed = true
      for (const ring of this.subscribers) ring.unbound()
      this.pump()
      for (const ring of this.subscribers) ring.close()
      this.subscribers = none
    })
  }

  /** Moves events from the line into the rings, as far as there is room; then wakes waiting publishers. */
  pump(): void {
    let moved = 0
    while (moved < this.line.length && !this.isFull()) this.deliver(this.line[moved++] as AgentEvent)
    if (moved > 0) this.line.splice(0, moved)
    if (this.line.length > 0 || this.waiters.length === 0) return
    const waiters = this.waiters
    this.waiters = none
    for (const resume of waiters) resume(Effect.void)
  }

  private isFull(): boolean {
    for (const ring of this.subscribers) if (ring.makesWait()) return true
    return false
  }

  private deliver(event: AgentEvent): void {
    for (const ring of this.subscribers) ring.push(event)
  }
}

class Ring implements Subscription {
  // The first `dropped` events are gone already. A batch is handed out as this very array, so it costs the same at any
  // length.
  private events: Array<AgentEvent> = []
  private dropped = 0
  private missed = 0
  private closed = false
  private reader: ((events: Effect.Effect<Batch>) => void) | undefined
  // Made at the first read, which most rings never have, and then used for every batch.
  private reading: Effect.Effect<Batch> | undefined
  private waiting: Effect.Effect<Batch> | undefined

  constructor(
    private capacity: number,
    private waits: boolean,
    private readonly bus: Pick<Bus, "pump">
  ) {}

  makesWait(): boolean {
    return this.waits && this.events.length >= this.capacity
  }

  /** Lets the ring grow from now on: used once, when the bus closes. */
  unbound(): void {
    this.capacity = Number.POSITIVE_INFINITY
    this.waits = false
  }

  push(event: AgentEvent): void {
    if (this.events.length - this.dropped >= this.capacity) {
      this.missed++
      // Dropped events are cleared away when they are as many as the live ones, so each event is moved once at most.
      if (++this.dropped === this.capacity) this.clearAway()
    }
    this.events.push(event)
    if (this.reader !== undefined) this.wake()
  }

  close(): void {
    this.closed = true
    if (this.reader !== undefined) this.wake()
  }

  get takeAll(): Effect.Effect<Batch> {
    return (this.reading ??= Effect.suspend(() => {
      if (this.events.length > 0) return Effect.succeed(this.take())
      return this.closed ? Effect.succeedNone : (this.waiting ??= this.wait())
    }))
  }

  private wait(): Effect.Effect<Batch> {
    return Effect.async<Batch>((resume) => {
      // Other fibers may have run since the check above.
      if (this.events.length > 0 || this.closed) return resume(this.takeAll)
      // The reader stays registered when it is interrupted: waking an interrupted reader takes nothing and loses
      // nothing, and a way to remove it would make every wait three times as expensive.
      this.reader = resume
    })
  }

  get stream(): Stream.Stream<AgentEvent> {
    return streamOf(this)
  }

  private wake(): void {
    const resume = this.reader
    this.reader = undefined
    // The reader takes the batch when it runs: a reader interrupted before that loses nothing.
    resume?.(this.takeAll)
  }

  private take(): Batch {
    if (this.dropped > 0) this.clearAway()
    const { events, missed } = this
    const [first] = events
    if (missed > 0 && first !== undefined) {
      const { at, sessionId, agent } = first
      events.unshift({ _tag: "Lagged", at, sessionId, agent, missed })
    }
    this.events = []
    this.missed = 0
    this.bus.pump()
    return Option.some(events)
  }

  private clearAway(): void {
    this.events = this.events.slice(this.dropped)
    this.dropped = 0
  }
}

const streamOf = (ring: Ring): Stream.Stream<AgentEvent> =>
  Stream.repeatEffectChunkOption(
    Effect.flatMap(
      ring.takeAll,
      Option.match({
        onNone: () => Effect.fail(Option.none()),
        onSome: (events) => Effect.succeed(Chunk.unsafeFromArray(events))
      })
    )
  )
