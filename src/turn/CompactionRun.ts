/**
 * Makes the history of a session shorter: in the fiber of the turn, between two model calls.
 *
 * ```
 *  due? ─► snapshot ─► strategy ─┬─ shortened ─► history.replace, at once
 *            ▲                   ├─ failed or cancelled: the history stays as it is
 *            └── interjection ◄──┘
 * ```
 *
 * An interjection interrupts the model call that writes a summary; the words are read, and compaction begins again with
 * the new history. A history is never shortened while tools run or a model answers.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import type { Origin } from "../core/Origin.js"
import * as Todo from "../core/Todo.js"
import type { Redactor } from "../core/Redaction.js"
import type * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as Inbox from "../inbox/Inbox.js"
import type * as Model from "../model/Model.js"
import * as CompactionConfig from "../conversation/CompactionConfig.js"
import { CompactionFailed } from "../conversation/CompactionFailed.js"
import * as CompactionStrategy from "../conversation/CompactionStrategy.js"
import * as History from "../conversation/History.js"
import * as Summarizer from "../conversation/Summarizer.js"
import * as TokenEstimate from "../conversation/TokenEstimate.js"
import type * as Limits from "./Limits.js"

/** The reason for a compaction. */
export type Reason =
  /** Too long after a turn. */
  | "threshold"
  /** Too long before a model call. */
  | "pre_message"
  /** Too many turns. */
  | "turn_limit"
  /** A provider refused the history as too long. */
  | "context_limit"
  /** Requested by a caller. */
  | "manual"

/** The part of a session that compaction needs. */
export interface Host {
  readonly origin: Origin
  readonly history: History.History
  readonly inbox: Pick<Inbox.Service, "hasSteering">
  readonly redactor: Redactor
  /** The model that writes summaries, and the todo list, which the shorter history says once. */
  readonly state: { readonly model: Model.Service; readonly todos: ReadonlyArray<Todo.Todo> }
  /** How long the model may be silent. */
  readonly limits: Pick<Limits.Limits, "modelSilence">
  readonly emit: (body: AgentEvent.Body) => void
  readonly spans: Spans.Service
  /** Sets the fiber that an interjection interrupts; undefined once it has ended. */
  readonly hold: (fiber: Fiber.RuntimeFiber<unknown, unknown> | undefined) => void
  readonly spent: (model: string, usage: AgentEvent.Usage, kind: "summary") => void
  /** Called after the history was replaced, in the same synchronous section. */
  readonly replaced: (reason: Reason, messages: ReadonlyArray<Prompt.Message>) => void
}

/**
 * The result of a compaction.
 *
 * @since 0.1.0
 * @category models
 */
export interface Compacted {
  /** Messages that were removed or cut. */
  readonly removed: number
  /** Size of the history now. */
  readonly tokens: number
}

/** The compaction of one session, as this sees it. */
export interface Weighed {
  readonly host: Host
  readonly configuration: CompactionConfig.CompactionConfig | undefined
  readonly meter: TokenEstimate.TokenEstimate
  /** The model's context window. */
  readonly window: () => number
  /** An attempt missed its goal: an immediate retry would miss it too. */
  readonly settle: () => void
  /** Answers whoever has requested a compaction. */
  readonly answer: (exit: Exit.Exit<Compacted | undefined, CompactionFailed>) => void
}

/** See `Compaction.Service.run`. */
export const run = (self: Weighed, reason: Reason, readSteering: (() => void) | undefined): Effect.Effect<void> =>
  new CompactionRun(self).run(reason, readSteering)

/** See `Compaction.Service.recover`. */
export const recover = (self: Weighed, attempt: number, readSteering: () => void): Effect.Effect<boolean> =>
  new CompactionRun(self).recover(attempt, readSteering)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** After so many interjections during summaries the history is truncated instead. */
const maxRestarts = 3

type Snapshot = CompactionStrategy.Snapshot
type Truncated = CompactionStrategy.Truncated

/** One compaction. */
class CompactionRun {
  constructor(private readonly self: Weighed) {}

  run(reason: Reason, readSteering?: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      const goal = this.goalOf(reason)
      const running = readSteering !== undefined
      const snapshot = () =>
        this.snapshot({ goal, running, forced: false, config: this.config, window: this.self.window() })
      const most = reason === "manual" ? undefined : this.most
      if (!this.isAnythingToGo(snapshot(), most)) return Effect.sync(() => this.self.settle())
      const work = this.shortened(this.config.type, most, snapshot, readSteering)
      return Effect.ignore(
        Effect.onExit(this.told(reason, work), (exit) =>
          Effect.sync(() => {
            // An interjection ended it: the request stays open.
            if (Exit.isSuccess(exit) && exit.value === undefined) return
            if (this.meter.tokens() > goal.tokens || this.meter.turns() > goal.turns) this.self.settle()
            this.self.answer(exit)
          })
        )
      )
    })
  }

  recover(attempt: number, readSteering: () => void): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      // The provider refused this size, so its window is smaller.
      const window = Math.min(this.self.window(), this.meter.tokens())
      const goal = { tokens: (window * this.config.targetPercent) / 100, turns: Number.POSITIVE_INFINITY }
      const snapshot = (config: CompactionConfig.CompactionConfig) => () =>
        this.snapshot({ goal, running: true, forced: true, config, window })
      const gentle = snapshot(this.config)
      const harsh = snapshot({ ...this.config, preserveRecentTurns: 1 })
      const most = (window * CompactionStrategy.cutPercent) / 100
      const truncate = CompactionStrategy.thorough("truncate", most)
      const last = Effect.suspend(() => Effect.map(truncate(harsh()), CompactionStrategy.cutToFit(harsh())))
      const first = this.shortened(this.config.type, most, gentle, readSteering).pipe(
        Effect.catchAll((failure) => {
          this.host.emit({ _tag: "AgentError", message: failure.message })
          return truncate(gentle())
        }),
        Effect.map((shortened) => shortened && CompactionStrategy.cutToFit(gentle())(shortened)),
        Effect.flatMap((shortened) => (shortened?.removed === 0 ? last : Effect.succeed(shortened)))
      )
      const work = attempt === 1 ? first : last
      return Effect.match(this.told("context_limit", work), {
        onFailure: () => false,
        onSuccess: (compacted) => compacted !== undefined && compacted.removed > 0
      })
    })
  }

  private get config(): CompactionConfig.CompactionConfig {
    return this.self.configuration ?? CompactionConfig.defaults
  }

  private get host(): Host {
    return this.self.host
  }

  private get meter(): TokenEstimate.TokenEstimate {
    return this.self.meter
  }

  /** How long a history may be before steps of turns that stay have to go. Tokens. */
  private get most(): number {
    const { config } = this
    const percent = CompactionConfig.isContinuous(config) ? config.targetPercent : config.thresholdPercent
    return (this.self.window() * percent) / 100
  }

  private isAnythingToGo(snapshot: Snapshot, most: number | undefined): boolean {
    if (most === undefined || CompactionStrategy.hasOld(snapshot)) return true
    return snapshot.tokens >= most && CompactionStrategy.hasSteps(snapshot)
  }

  private goalOf(reason: Reason): Snapshot["goal"] {
    // A requested compaction removes as much as possible.
    if (reason === "manual") return { tokens: 0, turns: Number.POSITIVE_INFINITY }
    return {
      tokens: (this.self.window() * this.config.targetPercent) / 100,
      turns: reason === "turn_limit" ? CompactionConfig.turnsToKeep(this.config) : Number.POSITIVE_INFINITY
    }
  }

  private snapshot(options: Pick<Snapshot, "goal" | "running" | "forced" | "config" | "window">): Snapshot {
    const { history, limits, origin, redactor, state } = this.host
    const { model } = state
    const silence = limits.modelSilence
    const window = this.self.window()
    return {
      ...options,
      messages: [...history.messages],
      tokens: this.meter.tokens(),
      summarise: (request) =>
        Effect.tap(Summarizer.summarise({ model, origin, redactor, window, silence }, request), ({ usage }) =>
          Effect.sync(() => this.host.spent(model.id, usage, "summary"))
        )
    }
  }

  /** The shortened history; undefined when an interjection must be read first. */
  private shortened(
    strategy: CompactionConfig.StrategyName,
    most: number | undefined,
    snapshot: () => Snapshot,
    readSteering: (() => void) | undefined,
    restarts = 0
  ): Effect.Effect<Truncated | undefined, CompactionFailed> {
    return Effect.suspend(() => {
      const { history, inbox } = this.host
      const revision = history.revision()
      const work = Effect.suspend(() => CompactionStrategy.thorough(strategy, most)(snapshot()))
      return Effect.flatMap(this.attempt(this.sound(work)), (exit) => {
        if (Exit.isSuccess(exit)) {
          return history.revision() === revision ? Effect.succeed(exit.value) : Effect.fail(historyChanged)
        }
        if (!Cause.isInterruptedOnly(exit.cause)) return Effect.failCause(exit.cause)
        if (!inbox.hasSteering()) return Effect.fail(brokenOff)
        if (readSteering === undefined) return Effect.succeed(undefined)
        readSteering()
        const next = restarts + 1 < maxRestarts ? strategy : "truncate"
        return this.shortened(next, most, snapshot, readSteering, restarts + 1)
      })
    })
  }

  /** A defect fails only the compaction, not the turn. */
  private sound<A>(work: Effect.Effect<A, CompactionFailed>): Effect.Effect<A, CompactionFailed> {
    return Effect.catchAllDefect(work, (defect) => {
      const why = defect instanceof Error ? defect.message : String(defect)
      return because(this.host.redactor.text(`Compaction crashed, and the conversation is unchanged: ${why}`))
    })
  }

  /** In a fiber of its own, so that an interjection can interrupt it alone. */
  private attempt<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<Exit.Exit<A, E>> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.fork(Effect.interruptible(effect)), (fiber) => {
        this.host.hold(fiber)
        // Words may have come before there was a fiber to interrupt.
        if (this.host.inbox.hasSteering()) fiber.unsafeInterruptAsFork(FiberId.none)
        return restore(Fiber.await(fiber)).pipe(
          Effect.onInterrupt(() => Fiber.interrupt(fiber)),
          Effect.ensuring(Effect.sync(() => this.host.hold(undefined)))
        )
      })
    )
  }

  /** Runs a compaction, replaces the history, and publishes begin and end. */
  private told(
    reason: Reason,
    work: Effect.Effect<Truncated | undefined, CompactionFailed>
  ): Effect.Effect<Compacted | undefined, CompactionFailed> {
    const { host } = this
    const { spans } = host
    const quiet = this.config.notifyOnGc ? {} : { quiet: true }
    const ended = (removed: number, usage?: AgentEvent.Usage) => {
      const tokens = Math.round(this.meter.tokens())
      host.emit({
        _tag: "CompactionEnded",
        reason,
        removed,
        tokens,
        ...(usage === undefined ? {} : { usage }),
        ...quiet
      })
      return { removed, tokens }
    }
    const span = (): Spans.Opening<Compacted | undefined, CompactionFailed> => ({
      name: "assent.compaction",
      attributes: { "assent.compaction.reason": reason, "assent.compaction.strategy": this.config.type },
      ended: (exit) =>
        Exit.isSuccess(exit)
          ? { "assent.compaction.removed": exit.value?.removed, "assent.compaction.tokens": exit.value?.tokens }
          : {}
    })
    const compacting = Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        host.emit({ _tag: "CompactionStarted", reason, tokens: Math.round(this.meter.tokens()), ...quiet })
        return Effect.flatMap(Effect.exit(restore(this.sound(work))), (exit) => {
          if (Exit.isSuccess(exit)) {
            const shortened = exit.value
            if (shortened !== undefined && shortened.removed > 0) this.replace(reason, shortened)
            const compacted = ended(shortened?.removed ?? 0, shortened?.usage)
            return Effect.succeed(shortened && compacted)
          }
          const failure = Cause.failureOption(exit.cause)
          if (Option.isSome(failure)) host.emit({ _tag: "AgentError", message: failure.value.message })
          ended(0)
          return Effect.failCause(exit.cause)
        })
      })
    )
    return spans.within(span, compacting)
  }

  private replace(reason: Reason, shortened: Truncated): void {
    const { messages, tokens } = withReminder(shortened, this.host.state.todos)
    this.host.history.replace(messages)
    this.meter.reset(tokens)
    this.host.replaced(reason, messages)
  }
}

/** The reminder stands behind the summaries, in the place of an earlier one. */
const withReminder = ({ messages, tokens }: Truncated, todos: ReadonlyArray<Todo.Todo>): Truncated => {
  const rest = messages.filter((message) => History.metadata(message).reminder !== true)
  if (todos.length === 0 && rest.length === messages.length) return { messages, removed: 0, tokens }
  const reminder = todos.length === 0 ? [] : [History.reminderMessage(Todo.reminder(todos))]
  const found = rest.findIndex((message) => message.role !== "system" && History.metadata(message).summary !== true)
  const at = found < 0 ? rest.length : found
  const next = [...rest.slice(0, at), ...reminder, ...rest.slice(at)]
  const grown = TokenEstimate.estimate(next) - TokenEstimate.estimate(messages)
  return { messages: next, removed: 0, tokens: Math.max(0, tokens + grown) }
}

const because = (message: string) => new CompactionFailed({ message })
const historyChanged = because("The conversation changed meanwhile. Compact again if it is still long.")
const brokenOff = because("Compaction was interrupted, and the conversation is unchanged. Compact again.")
