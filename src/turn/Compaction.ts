/**
 * Decides when a session's history is made shorter: in the fiber of the turn, between two model calls. What does it is
 * loaded when that comes up: see `CompactionRun`. Most sessions end before.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Cause from "effect/Cause"
import * as FiberId from "effect/FiberId"
import * as LazyModule from "../core/LazyModule.js"
import * as CompactionConfig from "../conversation/CompactionConfig.js"
import { CompactionFailed } from "../conversation/CompactionFailed.js"
import * as TokenEstimate from "../conversation/TokenEstimate.js"
import type { Compacted, Host, Reason, Weighed } from "./CompactionRun.js"

export type { Compacted, Host, Reason } from "./CompactionRun.js"

export interface Service {
  /** The reason to compact now, if there is one. It costs almost nothing. */
  readonly due: (moment: "beforeSend" | "afterTurn") => Reason | undefined
  /**
   * Makes the history shorter. It never fails: a failure is published as an event. With `readSteering` a turn is
   * running: that turn is kept, but for its first steps where nothing else is enough, and an interjection is read before
   * compaction begins again. Without it an interjection ends the compaction with nothing changed.
   */
  readonly run: (reason: Reason, readSteering?: () => void) => Effect.Effect<void>
  /**
   * Shortens a history that a provider refused as too long. `true`: it is shorter now. On the second attempt in a row,
   * or when nothing else helps, the latest turns may be removed too, except for the running one.
   */
  readonly recover: (attempt: number, readSteering: () => void) => Effect.Effect<boolean>
  /** Takes the provider's count of tokens for the present history; 0 is none. */
  readonly reported: (tokens: number) => void
  /**
   * Requests a compaction and waits for it. The request is made when this is called; the loop must {@link run} it when
   * it is due.
   */
  readonly request: () => Effect.Effect<Compacted, CompactionFailed>
  readonly isRequested: () => boolean
  /** Fails all waiting requests as cancelled. */
  readonly dismiss: () => void
  /** Fails all requests: no compaction will run any more. */
  readonly close: () => void
}

/** The context window of a model that does not name one. Tokens. */
export const defaultWindow = 128_000

/** Attempts at one model call that a provider finds too long, after the first. */
export const maxRecoveries = 2

/**
 * Without a configuration nothing is ever due, and a history that is too long for a provider loses its oldest turns.
 */
export const make = (host: Host, configuration: CompactionConfig.CompactionConfig | undefined): Service =>
  new Compaction(host, configuration)

/** Loads what makes histories shorter, where a configuration says that it will be needed. */
export const load = (configuration: CompactionConfig.CompactionConfig | undefined): Effect.Effect<unknown> =>
  configuration === undefined ? Effect.void : loaded

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** After an attempt that was not enough, the next one waits until the history has grown by this much. Percent. */
const growthPercent = 5

class Compaction implements Service, Weighed {
  /** Made at first use; without a configuration it is never used. */
  private weighed: TokenEstimate.TokenEstimate | undefined
  /** The state after an attempt that missed its goal: an immediate retry would miss it too. */
  private settled: { readonly revision: number; readonly turns: number; readonly tokens: number } | undefined
  /** Added by requests, completed by {@link run}. */
  private waiters: Set<Deferred.Deferred<Compacted, CompactionFailed>> | undefined
  private closed = false

  constructor(
    readonly host: Host,
    readonly configuration: CompactionConfig.CompactionConfig | undefined
  ) {}

  due(moment: "beforeSend" | "afterTurn"): Reason | undefined {
    if (this.isRequested()) return "manual"
    const config = this.configuration
    if (config === undefined || !(moment === "beforeSend" ? config.checkBeforeSend : config.autoTrigger)) {
      return undefined
    }
    const reason = this.exceeded(config, moment)
    return reason === undefined || this.isSettled() ? undefined : reason
  }

  run(reason: Reason, readSteering?: () => void): Effect.Effect<void> {
    // An interrupt answers whoever requested it, as later in the work.
    const shortening = Effect.onInterrupt(loaded, () => Effect.sync(() => this.dismiss()))
    return Effect.flatMap(shortening, (shortening) => shortening.run(this, reason, readSteering))
  }

  recover(attempt: number, readSteering: () => void): Effect.Effect<boolean> {
    return Effect.flatMap(loaded, (shortening) => shortening.recover(this, attempt, readSteering))
  }

  reported(tokens: number): void {
    if (this.configuration !== undefined) this.meter.reported(tokens)
  }

  request(): Effect.Effect<Compacted, CompactionFailed> {
    if (this.closed) return Effect.fail(sessionEnded)
    const waiter = Deferred.unsafeMake<Compacted, CompactionFailed>(FiberId.none)
    const waiters = (this.waiters ??= new Set()).add(waiter)
    return Effect.onInterrupt(Deferred.await(waiter), () => Effect.sync(() => waiters.delete(waiter)))
  }

  isRequested(): boolean {
    return this.waiters !== undefined && this.waiters.size > 0
  }

  dismiss(): void {
    this.answer(Exit.fail(cancelled))
  }

  close(): void {
    this.closed = true
    this.answer(Exit.fail(sessionEnded))
  }

  get meter(): TokenEstimate.TokenEstimate {
    return (this.weighed ??= TokenEstimate.make(this.host.history))
  }

  window(): number {
    return this.host.state.model.contextWindow ?? defaultWindow
  }

  private exceeded(config: CompactionConfig.CompactionConfig, moment: "beforeSend" | "afterTurn"): Reason | undefined {
    const percent = (this.meter.tokens() * 100) / this.window()
    if (CompactionConfig.isContinuous(config)) {
      if (moment === "afterTurn" && percent > config.targetPercent) return "threshold"
    } else if (percent >= config.thresholdPercent) {
      return moment === "beforeSend" ? "pre_message" : "threshold"
    }
    const turns = this.meter.turns()
    return turns >= (config.maxTurns ?? Number.POSITIVE_INFINITY) && turns > CompactionConfig.turnsToKeep(config)
      ? "turn_limit"
      : undefined
  }

  settle(): void {
    this.settled = {
      revision: this.host.history.revision(),
      turns: this.meter.turns(),
      tokens: this.meter.tokens()
    }
  }

  private isSettled(): boolean {
    const { settled } = this
    if (settled?.revision !== this.host.history.revision() || settled.turns !== this.meter.turns()) return false
    return this.meter.tokens() < settled.tokens + (this.window() * growthPercent) / 100
  }

  answer(exit: Exit.Exit<Compacted | undefined, CompactionFailed>): void {
    const answer = Exit.matchEffect(exit, {
      onFailure: (cause) => (Cause.isInterrupted(cause) ? Effect.fail(cancelled) : Effect.failCause(cause)),
      onSuccess: (compacted) => (compacted === undefined ? Effect.fail(brokenOff) : Effect.succeed(compacted))
    })
    for (const waiter of this.waiters ?? []) Deferred.unsafeDone(waiter, answer)
    this.waiters?.clear()
  }
}

const loaded = LazyModule.make(() => import("./CompactionRun.js"))

const sessionEnded = new CompactionFailed({
  message: "The session has ended, so there is nothing to compact."
})
const brokenOff = new CompactionFailed({
  message: "Compaction was interrupted, and the conversation is unchanged. Compact again."
})
const cancelled = new CompactionFailed({ message: "Compaction was cancelled, and the conversation is unchanged." })
