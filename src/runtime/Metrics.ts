/**
 * Metrics of what agents do, in Effect's own registry: whatever exports a program's metrics exports these.
 *
 * They are off until {@link layer} is provided around the making of a runtime or the start of an agent; then they are
 * taken of the agent's events, also of those of its subagents. They hold counts, times and names of models, tools and
 * kinds; never words of people, models or tools.
 *
 * | metric | tags |
 * |---|---|
 * | {@link turns} | `end`: how it ended |
 * | {@link modelCalls} | `gen_ai.request.model`; `outcome`: `ended` or `interrupted` |
 * | {@link modelCallDuration} | `gen_ai.operation.name`, `gen_ai.request.model` |
 * | {@link tokens} | `gen_ai.operation.name`, `gen_ai.request.model`, `gen_ai.token.type`: `input` or `output` |
 * | {@link retries} | `gen_ai.request.model` |
 * | {@link toolCalls} | `gen_ai.tool.name`, `outcome` |
 * | {@link openQuestions} | – |
 * | {@link timeToAnswer} | `kind`; `outcome`: `answered`, `cancelled`, `timed_out`, `unavailable` |
 * | {@link compactions} | `reason` |
 *
 * @example
 * ```ts
 * import { Metrics } from "assent"
 * import { Effect, Metric } from "effect"
 *
 * const completed = Metric.tagged(Metrics.turns, "end", "completed")
 * const program = Effect.gen(function* () {
 *   const { count } = yield* Metric.value(completed)
 *   return count
 * }).pipe(Effect.provide(Metrics.layer))
 * ```
 *
 * @since 0.1.0
 */
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricKey from "effect/MetricKey"
import * as MetricLabel from "effect/MetricLabel"
import type { RequestId, SessionId } from "../core/Id.js"
import type { AgentEvent, Usage } from "../event/AgentEvent.js"
import * as EventBus from "../event/EventBus.js"
import { Metrics } from "./MetricsTaking.js"

export { Metrics, type Taking } from "./MetricsTaking.js"

// -----------------------------------------------------------------------------------------------------------------
// metrics
// -----------------------------------------------------------------------------------------------------------------

type Key =
  | { readonly _tag: "counter"; readonly key: MetricKey.MetricKey.Counter<number> }
  | { readonly _tag: "histogram"; readonly key: MetricKey.MetricKey.Histogram }

/** The keys of the metrics below, for the same ones with tags. */
const keys = new WeakMap<object, Key>()

const counter = (name: string, description: string): Metric.Metric.Counter<number> => {
  const metric = Metric.counter(name, { description, incremental: true })
  keys.set(metric, { _tag: "counter", key: MetricKey.counter(name, { description, incremental: true }) })
  return metric
}

const histogram = (name: string, boundaries: MetricBoundaries.MetricBoundaries, description: string) => {
  const metric = Metric.histogram(name, boundaries, description)
  keys.set(metric, { _tag: "histogram", key: MetricKey.histogram(name, boundaries, description) })
  return metric
}

/** The boundaries that OpenTelemetry's conventions for generative AI recommend: seconds. */
const seconds = MetricBoundaries.fromIterable([
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
])

/**
 * Turns that ended.
 *
 * @since 0.1.0
 * @category constants
 */
export const turns = counter("assent.turns", "Turns that ended.")

/**
 * Model calls that ended, each with all its attempts.
 *
 * @since 0.1.0
 * @category constants
 */
export const modelCalls = counter("assent.model_calls", "Model calls that ended.")

/**
 * How long model calls took, with all their attempts, in seconds.
 *
 * @since 0.1.0
 * @category constants
 */
export const modelCallDuration = histogram(
  "gen_ai.client.operation.duration",
  seconds,
  "Seconds that a model call took."
)

/**
 * Tokens of each model call, as far as its provider reports them; summaries of a compaction count too.
 *
 * @since 0.1.0
 * @category constants
 */
export const tokens = histogram(
  "gen_ai.client.token.usage",
  MetricBoundaries.fromIterable(Array.from({ length: 14 }, (_, power) => 4 ** power)),
  "Input and output tokens of a model call."
)

/**
 * Attempts of model calls after the first.
 *
 * @since 0.1.0
 * @category constants
 */
export const retries = counter("assent.model_retries", "Attempts of model calls after the first.")

/**
 * Tool calls that a model proposed, by what became of them.
 *
 * @since 0.1.0
 * @category constants
 */
export const toolCalls = counter("assent.tool_calls", "Tool calls by outcome.")

/**
 * Questions that wait for an answer now.
 *
 * @since 0.1.0
 * @category constants
 */
export const openQuestions = Metric.counter("assent.open_questions", { description: "Questions that wait now." })

/**
 * From the moment a question was asked until it was settled, in seconds.
 *
 * @since 0.1.0
 * @category constants
 */
export const timeToAnswer = histogram(
  "assent.time_to_answer",
  MetricBoundaries.fromIterable([0.1, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800]),
  "Seconds from a question to its answer."
)

/**
 * Compactions of histories.
 *
 * @since 0.1.0
 * @category constants
 */
export const compactions = counter("assent.compactions", "Compactions of histories.")

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * Takes metrics of the agents whose runtime is made, or which are started, on this layer.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Metrics> = Layer.succeed(Metrics, {
  of: (bus) => EventBus.observed(bus, new Observer())
})

/**
 * Takes none; the default. Around a start it counts before the runtime's.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOff: Layer.Layer<Metrics> = Layer.succeed(Metrics, undefined)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Takes the metrics of one tree. */
class Observer implements EventBus.Observer {
  /** When each question was asked. A child's question comes by every agent above it, under one id. */
  private readonly asked = new Map<RequestId, number>()
  private readonly called = new Map<SessionId, number>()

  take(event: AgentEvent): void {
    switch (event._tag) {
      case "TurnEnded":
        return turnsOf(event.reason).unsafeUpdate(1, none)
      case "ModelCallStarted":
        return void this.called.set(event.sessionId, event.at)
      case "ModelCallEnded":
        return this.modelCallEnded(event)
      case "ModelRetried":
        return ofModel(event.model).retries.unsafeUpdate(1, none)
      case "ToolCallEnded":
        return toolCallsOf(event.tool)(event.outcome).unsafeUpdate(1, none)
      case "InteractionRequested":
        if (this.asked.has(event.requestId)) return
        this.asked.set(event.requestId, event.at)
        return openQuestions.unsafeUpdate(1, none)
      case "InteractionAnswered":
        return this.settled(event, "answered")
      case "InteractionCancelled":
        return this.settled(event, "cancelled")
      case "InteractionTimedOut":
        return this.settled(event, "timed_out")
      case "InteractionUnavailable":
        return this.settled(event, "unavailable")
      case "CompactionEnded":
        if (event.usage !== undefined) used(event.usage, ofNoModel)
        return compactionsOf(event.reason).unsafeUpdate(1, none)
    }
  }

  /** Nobody answers any more what is open in a tree that has ended. */
  close(): void {
    if (this.asked.size > 0) openQuestions.unsafeUpdate(-this.asked.size, none)
    this.asked.clear()
  }

  private modelCallEnded({
    at,
    interrupted,
    model: id,
    sessionId,
    usage
  }: Extract<AgentEvent, { _tag: "ModelCallEnded" }>) {
    const began = this.called.get(sessionId)
    this.called.delete(sessionId)
    const metrics = ofModel(id)
    const calls = interrupted === true ? metrics.interrupted : metrics.ended
    calls.unsafeUpdate(1, none)
    if (began !== undefined) metrics.duration.unsafeUpdate((at - began) / 1_000, none)
    used(usage, metrics)
  }

  private settled({ at, kind, requestId }: { at: number; kind: string; requestId: RequestId }, outcome: string): void {
    const since = this.asked.get(requestId)
    if (since === undefined) return
    this.asked.delete(requestId)
    openQuestions.unsafeUpdate(-1, none)
    timeToAnswerOf(kind)(outcome).unsafeUpdate((at - since) / 1_000, none)
  }
}

const none: ReadonlyArray<never> = []
const model = "gen_ai.request.model"
const chat = ["gen_ai.operation.name", "chat"] as const
const type = "gen_ai.token.type"

type Tagged = Pick<Metric.Metric.Counter<number>, "unsafeUpdate">

const used = ({ inputTokens, outputTokens }: Usage, { input, output }: Pick<OfModel, "input" | "output">): void => {
  if (inputTokens !== undefined) input.unsafeUpdate(inputTokens, none)
  if (outputTokens !== undefined) output.unsafeUpdate(outputTokens, none)
}

/**
 * A metric of a key with tags: one of `Metric.tagged` looks itself up at every update, which made a turn nearly twice as
 * long. It enters the registry with its first update.
 */
const tagged = (metric: object, ...tags: ReadonlyArray<string>): Tagged => {
  const labels: Array<MetricLabel.MetricLabel> = []
  for (let index = 0; index + 1 < tags.length; index += 2) {
    labels.push(MetricLabel.make(tags[index] ?? "", tags[index + 1] ?? ""))
  }
  const key = keys.get(metric)
  if (key === undefined) throw new Error("A metric without a key is not a metric of this module.")
  return key._tag === "counter"
    ? Metric.fromMetricKey(MetricKey.taggedWithLabels(key.key, labels))
    : Metric.fromMetricKey(MetricKey.taggedWithLabels(key.key, labels))
}

/** What is made for a word at its first use. */
const known = <Word extends string, A>(make: (word: Word) => A): ((word: Word) => A) => {
  const all = new Map<Word, A>()
  return (word) => {
    const found = all.get(word)
    if (found !== undefined) return found
    const made = make(word)
    all.set(word, made)
    return made
  }
}

interface OfModel {
  readonly ended: Tagged
  readonly interrupted: Tagged
  readonly retries: Tagged
  readonly duration: Tagged
  readonly input: Tagged
  readonly output: Tagged
}

/** Together: a turn updates four of them at each model call. */
const ofModel = known((id: string): OfModel => ({
  ended: tagged(modelCalls, model, id, "outcome", "ended"),
  interrupted: tagged(modelCalls, model, id, "outcome", "interrupted"),
  retries: tagged(retries, model, id),
  duration: tagged(modelCallDuration, ...chat, model, id),
  input: tagged(tokens, ...chat, model, id, type, "input"),
  output: tagged(tokens, ...chat, model, id, type, "output")
}))

const ofNoModel = {
  input: tagged(tokens, ...chat, type, "input"),
  output: tagged(tokens, ...chat, type, "output")
}

const turnsOf = known((end: string) => tagged(turns, "end", end))
const compactionsOf = known((reason: string) => tagged(compactions, "reason", reason))
const toolCallsOf = known((tool: string) =>
  known((outcome: string) => tagged(toolCalls, "gen_ai.tool.name", tool, "outcome", outcome))
)
const timeToAnswerOf = known((kind: string) =>
  known((outcome: string) => tagged(timeToAnswer, "kind", kind, "outcome", outcome))
)
