/**
 * The ways to make a history shorter. Each takes a snapshot and yields the shorter history.
 *
 * | strategy    | what goes, oldest first, until the goal is met                                                |
 * |-------------|-----------------------------------------------------------------------------------------------|
 * | `truncate`  | turns                                                                                         |
 * | `summarize` | all old turns; one summary takes their place                                                  |
 * | `hybrid`    | the same, and of the turns before the middle ones the summary is told the words alone         |
 * | `budget`    | long results and files, then calls with results, then, when room is nearly used up, turns     |
 *
 * The system message, earlier summaries, pinned turns, the latest turns and a running turn stay as they are. A new summary
 * comes after the earlier ones.
 *
 * Where that is not enough ({@link thorough}) what was done in the latest turns goes too, oldest first: one turn may do more
 * than a window holds. What was said stays, and so do the last steps of the last turn.
 */
import * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import { canonicalJson } from "../core/CanonicalJson.js"
import type { Usage } from "../event/AgentEvent.js"
import type { CompactionConfig, StrategyName } from "./CompactionConfig.js"
import * as AttachedFile from "./AttachedFile.js"
import type { CompactionFailed } from "./CompactionFailed.js"
import * as History from "./History.js"
import * as HistorySegment from "./HistorySegment.js"
import * as PromptMessage from "./PromptMessage.js"
import * as TranscriptText from "./TranscriptText.js"
import * as TokenEstimate from "./TokenEstimate.js"

export { CompactionFailed } from "./CompactionFailed.js"

type Messages = ReadonlyArray<Prompt.Message>

/** Input of a strategy. All sizes are in tokens. */
export interface Snapshot {
  readonly messages: Messages
  readonly config: CompactionConfig
  /** The model's context window. */
  readonly window: number
  /** The present size of the messages. */
  readonly tokens: number
  /** Nothing is removed once the history is no longer than this. */
  readonly goal: { readonly tokens: number; readonly turns: number }
  /** The last turn is still running, so it stays. */
  readonly running: boolean
  /** It must become shorter, or the session cannot go on. */
  readonly forced: boolean
  /** What may go are steps of turns that stay, and nothing else. */
  readonly steps?: true
  readonly summarise: (request: SummaryRequest) => Effect.Effect<Summary, CompactionFailed>
}

/** What to summarise. */
export interface SummaryRequest {
  /** Older messages: only their words go into the summary, not their calls. They come before the others. */
  readonly words: Messages
  readonly all: Messages
  /** Characters of the summary, at most. */
  readonly limit: number
}

export interface Summary {
  readonly text: string
  readonly usage: Usage
}

/** The shorter history. */
export interface Truncated {
  readonly messages: Messages
  /** Messages that were removed or cut; 0: the history is unchanged. */
  readonly removed: number
  readonly tokens: number
  /** Usage of the model call that made the summary. */
  readonly usage?: Usage | undefined
}

export type Strategy = (snapshot: Snapshot) => Effect.Effect<Truncated, CompactionFailed>

/** What a provider should take after it refused more, in percent of the window. */
export const cutPercent = 80

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

const truncate: Strategy = (snapshot) =>
  Effect.sync(() => {
    const draft = new Draft(snapshot)
    for (const slot of draft.old()) draft.drop(slot)
    return draft.end()
  })

const summarize: Strategy = (snapshot) => summarised(snapshot, Number.POSITIVE_INFINITY)

const hybrid: Strategy = (snapshot) => summarised(snapshot, snapshot.config.summarizeMiddleTurns)

export const budget: Strategy = (snapshot) =>
  Effect.sync(() => {
    const draft = new Draft(snapshot)
    for (const slot of draft.old()) draft.noteResults(slot)
    for (const slot of draft.old()) draft.noteFiles(slot)
    for (const slot of draft.old()) draft.dropWork(slot)
    const { pressurePercent } = snapshot.config
    const pressed = pressurePercent > 0 && snapshot.tokens >= (snapshot.window * pressurePercent) / 100
    const mayDrop = pressed || snapshot.forced || snapshot.goal.turns < Number.POSITIVE_INFINITY
    for (const slot of mayDrop ? draft.old() : []) draft.drop(slot)
    return draft.end()
  })

export const strategies: { readonly [S in StrategyName]: Strategy } = { truncate, summarize, hybrid, budget }

/**
 * The strategy of this name, and then, where the history is longer than `most` tokens still, steps of the turns that stay:
 * a summary or a note takes their place. Without `most` steps go where no turn could.
 */
export const thorough =
  (name: StrategyName, most: number | undefined): Strategy =>
  (snapshot) =>
    Effect.flatMap(strategies[name](snapshot), (first) => {
      const rest = stepsOf({ ...snapshot, messages: first.messages, tokens: first.tokens })
      const isEnough = most === undefined ? first.removed > 0 : first.tokens <= most
      if (isEnough || !hasOld(rest)) return Effect.succeed(first)
      const isTold = name === "summarize" || name === "hybrid"
      return Effect.map(isTold ? summarised(rest, Number.POSITIVE_INFINITY) : withoutSteps(rest), (second) => ({
        ...second,
        removed: first.removed + second.removed,
        usage: first.usage === undefined ? second.usage : sum(first.usage, second.usage ?? {})
      }))
    })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Cuts tool results, the longest first, those of a running turn too, and then drops files, but not those of the last
 * turn, until the goal is met. The last resort.
 */
export const cutResults = (snapshot: Snapshot): Truncated => {
  const draft = new Draft(snapshot)
  for (const keep of [4_000, 400]) draft.cutResults(keep)
  draft.noteFilesOfEarlierTurns()
  return draft.end()
}

/** What some strategy may touch. */
export const hasOld = (snapshot: Snapshot): boolean => slotsOf(snapshot).some((slot) => !slot.stays)

/** Whether {@link thorough} would find steps, where turns are not enough. */
export const hasSteps = (snapshot: Snapshot): boolean => hasOld(stepsOf(snapshot))

/** The same history, of which nothing but steps may go. */
const stepsOf = (snapshot: Snapshot): Snapshot => ({
  ...snapshot,
  steps: true,
  goal: { tokens: snapshot.goal.tokens, turns: Number.POSITIVE_INFINITY }
})

/** Cuts tool results when a strategy did not bring the history below the provider's window. */
export const cutToFit =
  (snapshot: Snapshot) =>
  (shortened: Truncated): Truncated => {
    const goal = { tokens: (snapshot.window * cutPercent) / 100, turns: Number.POSITIVE_INFINITY }
    const { messages, removed, tokens, usage } = shortened
    if (tokens <= goal.tokens) return shortened
    const cut = cutResults({ ...snapshot, messages, tokens, goal })
    return { ...cut, removed: removed + cut.removed, usage }
  }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Slot {
  readonly unit: HistorySegment.HistorySegment
  stays: boolean
  messages: Messages
}

/** The most characters of a summary. */
const maxSummary = 12_000
/** Turns with fewer tokens are not worth a summary. */
const leastSummarised = 100
/** A result with fewer characters is not replaced by a note. */
const longResult = 400

const summaryHeader = "[Summary of earlier turns, written by the model]\n"
const stepsHeader = "[Summary of what was done before this, written by the model]\n"

/** The last steps stay up to this share of the window, in percent; one that the model has not read yet always does. */
const latestPercent = 20

const slotsOf = (snapshot: Snapshot): Array<Slot> => {
  const { config, messages, running } = snapshot
  const units = HistorySegment.cut(messages)
  const turns = units.filter((unit) => unit._tag === "Turn").length
  const recent = turns - Math.max(config.preserveRecentTurns, running ? 1 : 0)
  let index = 0
  const slots = units.flatMap((unit): ReadonlyArray<Slot> => {
    if (unit._tag !== "Turn") return [{ unit, stays: true, messages: unit.messages }]
    const isPinned = config.pinnedTurnIndices.includes(unit.number)
    const isRecent = index++ >= recent
    if (snapshot.steps === undefined) return [{ unit, stays: isPinned || isRecent, messages: unit.messages }]
    if (isPinned || !isRecent) return [{ unit, stays: true, messages: unit.messages }]
    return HistorySegment.pieces(unit.messages).map((piece) => ({
      unit,
      stays: !piece.isWork,
      messages: piece.messages
    }))
  })
  if (snapshot.steps !== undefined) keepLatest(snapshot, slots)
  return slots
}

/** The model goes on with what it did last. */
const keepLatest = ({ messages, tokens, window }: Snapshot, slots: ReadonlyArray<Slot>): void => {
  const reply = messages.findLast(({ role }) => role === "assistant")
  let room = ((window * latestPercent) / 100) * (TokenEstimate.estimate(messages) / Math.max(1, tokens))
  for (const slot of slots.filter(({ stays }) => !stays).reverse()) {
    room -= TokenEstimate.estimate(slot.messages)
    const isUnread = reply !== undefined && slot.messages.includes(reply)
    if (!isUnread && room < 0) return
    slot.stays = true
  }
}

/** Cuts long results, oldest first, then removes calls with their results, and notes what they were. */
const withoutSteps: Strategy = (snapshot) =>
  Effect.sync(() => {
    const draft = new Draft(snapshot)
    for (const slot of draft.old()) draft.noteResults(slot)
    const old = [...draft.old()].flatMap(({ messages }) => messages)
    if (TokenEstimate.estimate(old) < leastSummarised) return draft.end()
    const gone: Array<Slot> = []
    const messages: Array<Prompt.Message> = []
    for (const slot of draft.old()) {
      gone.push(slot)
      messages.push(...slot.messages)
      draft.drop(slot)
    }
    draft.replace(
      gone,
      messages,
      `[Removed to make room: ${callsIn(messages)}. Call a tool again if you need its result.]`
    )
    return draft.end()
  })

const summarised = (snapshot: Snapshot, middle: number): Effect.Effect<Truncated, CompactionFailed> =>
  Effect.suspend(() => {
    const draft = new Draft(snapshot)
    const old = [...draft.old()]
    const messages = old.flatMap((slot) => slot.messages)
    const weight = TokenEstimate.estimate(messages)
    if (weight < leastSummarised) return Effect.succeed(draft.end())
    const ancient = Math.max(0, old.length - middle)
    const request: SummaryRequest = {
      words: old.slice(0, ancient).flatMap((slot) => slot.messages),
      all: old.slice(ancient).flatMap((slot) => slot.messages),
      limit: Math.min(maxSummary, Math.floor(weight / 2) * TokenEstimate.charactersPerToken)
    }
    return Effect.map(snapshot.summarise(request), ({ text, usage }) => {
      const header = snapshot.steps === undefined ? summaryHeader : stepsHeader
      draft.replace(old, messages, header + text + filesIn(old))
      return { ...draft.end(), usage }
    })
  })

class Draft {
  private readonly slots: Array<Slot>
  /** The provider's tokens per estimated token. */
  private readonly scale: number
  private tokens: number
  private removed = 0

  constructor(private readonly snapshot: Snapshot) {
    this.slots = slotsOf(snapshot)
    const estimated = TokenEstimate.estimate(snapshot.messages)
    this.scale = estimated === 0 ? 1 : snapshot.tokens / estimated
    this.tokens = snapshot.tokens
  }

  end(): Truncated {
    const { removed, slots } = this
    const messages = removed === 0 ? this.snapshot.messages : slots.flatMap((slot) => slot.messages)
    return { messages, removed, tokens: this.tokens }
  }

  isLong(): boolean {
    return this.tokens > this.snapshot.goal.tokens
  }

  /** Turns that may be changed, until the goal is met. */
  *old(): Generator<Slot> {
    for (const slot of this.slots) {
      if (!this.isLong() && this.turns() <= this.snapshot.goal.turns) return
      if (!slot.stays && slot.messages.length > 0) yield slot
    }
  }

  drop(slot: Slot): void {
    this.removed += slot.messages.length
    this.put(slot, [])
  }

  /** Replaces long results with short notes, the longest first. */
  noteResults(slot: Slot): void {
    for (const part of longest(resultsOf(slot), longResult)) {
      if (!this.isLong()) return
      const length = TokenEstimate.lengthOf(part.result)
      this.exchange(slot, part, `[This result of ${length} characters was removed to make room. Call again if needed.]`)
    }
  }

  /** Replaces files with notes of them, oldest first. */
  noteFiles(slot: Slot): void {
    for (const message of slot.messages.filter(AttachedFile.isIn)) {
      if (!this.isLong()) return
      this.removed++
      const noted = AttachedFile.noted(message)
      this.put(
        slot,
        slot.messages.map((other) => (other === message ? noted : other))
      )
    }
  }

  noteFilesOfEarlierTurns(): void {
    const { pinnedTurnIndices } = this.snapshot.config
    const turns = this.slots.filter(({ messages, unit }) => unit._tag === "Turn" && messages.length > 0)
    for (const slot of turns.slice(0, -1)) {
      if (slot.unit._tag === "Turn" && !pinnedTurnIndices.includes(slot.unit.number)) this.noteFiles(slot)
    }
  }

  /** Drops calls with their results; people's words and answers stay. */
  dropWork(slot: Slot): void {
    for (const piece of HistorySegment.pieces(slot.messages)) {
      if (!this.isLong()) return
      if (!piece.isWork) continue
      this.removed += piece.messages.length
      this.put(
        slot,
        slot.messages.filter((message) => !piece.messages.includes(message))
      )
    }
  }

  /** Cuts results of all turns to their beginning and end, the longest first. */
  cutResults(keep: number): void {
    const { pinnedTurnIndices } = this.snapshot.config
    const slots = this.slots.filter(({ unit }) => unit._tag === "Turn" && !pinnedTurnIndices.includes(unit.number))
    const slotOf = new Map(slots.flatMap((slot) => resultsOf(slot).map((part) => [part, slot] as const)))
    for (const part of longest([...slotOf.keys()], keep + 200)) {
      const slot = slotOf.get(part)
      if (!this.isLong() || slot === undefined) return
      const text = typeof part.result === "string" ? part.result : canonicalJson(part.result)
      const left = `\n[… ${text.length - keep} characters were removed to make room …]\n`
      this.exchange(slot, part, TranscriptText.head(text, keep / 2) + left + TranscriptText.tail(text, keep / 2))
    }
  }

  /** Puts a text in the place of turns, never before an earlier summary; of steps, where the last of them was. */
  replace(old: ReadonlyArray<Slot>, messages: Messages, text: string): void {
    const isOfTurns = this.snapshot.steps === undefined
    const first = this.slots.findIndex((slot) => old.includes(slot))
    const last = this.slots.findLastIndex((slot) => (isOfTurns ? slot.unit._tag === "Summary" : old.includes(slot)))
    const replies = repliesIn(messages)
    for (const slot of old) this.drop(slot)
    const slot: Slot = { unit: { _tag: "Summary", messages: [] }, stays: true, messages: [] }
    this.slots.splice(isOfTurns ? Math.max(first, last + 1) : last, 0, slot)
    this.put(slot, [isOfTurns ? History.summaryMessage(text, replies) : stepsMessage(text, replies)])
  }

  private turns(): number {
    return this.slots.filter(({ messages, unit }) => unit._tag === "Turn" && messages.length > 0).length
  }

  private exchange(slot: Slot, part: Prompt.ToolResultPart, result: string): void {
    this.removed++
    const { id, isFailure, name, options, providerExecuted } = part
    const exchanged = Prompt.toolResultPart({ id, name, isFailure, providerExecuted, result, options })
    this.put(
      slot,
      slot.messages.map((message) =>
        message.role === "tool" && message.content.includes(part)
          ? Prompt.toolMessage({
              content: message.content.map((other) => (other === part ? exchanged : other)),
              options: message.options
            })
          : message
      )
    )
  }

  private put(slot: Slot, messages: Messages): void {
    this.tokens -= this.scale * (TokenEstimate.estimate(slot.messages) - TokenEstimate.estimate(messages))
    slot.messages = messages
  }
}

/** A note of each file that goes with these turns, whatever the summary says of it. */
const filesIn = (slots: ReadonlyArray<Slot>): string => {
  const notes = slots
    .flatMap(({ messages }) => messages)
    .flatMap(({ content }) => (typeof content === "string" ? [] : content))
    .flatMap((part) => (part.type === "file" ? [AttachedFile.note(part)] : []))
  const more = notes.length - mostNotes
  return ["", ...notes.slice(0, mostNotes), ...(more > 0 ? [`[and ${more} more]`] : [])].join("\n")
}

/** A message that replaces what was done in turns whose words stay. */
const stepsMessage = (text: string, replies: number): Prompt.Message =>
  PromptMessage.user([PromptMessage.text(text)], { assent: { summary: true, steps: true, replies } })

/** Also those that were replaced before. */
const repliesIn = (messages: Messages): number =>
  messages.reduce(
    (sum, message) => sum + (message.role === "assistant" ? 1 : (History.metadata(message).replies ?? 0)),
    0
  )

/** What was called, and how often. */
const callsIn = (messages: Messages): string => {
  const counts = new Map<string, number>()
  for (const { content } of messages) {
    for (const part of typeof content === "string" ? [] : content)
      if (part.type === "tool-call") counts.set(part.name, (counts.get(part.name) ?? 0) + 1)
  }
  const calls = [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`))
  return calls.length === 0 ? "earlier steps" : `the calls of ${calls.join(", ")} and their results`
}

const sum = (one: Usage, other: Usage): Usage => {
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])] as Array<keyof Usage>
  return Object.fromEntries(keys.map((key) => [key, (one[key] ?? 0) + (other[key] ?? 0)]))
}

/** Of files in one summary. */
const mostNotes = 50

const resultsOf = (slot: Slot): ReadonlyArray<Prompt.ToolResultPart> =>
  slot.messages.flatMap((message) => (message.role === "tool" ? message.content : []))

/** Results of more than `length` characters, the longest first. */
const longest = (parts: ReadonlyArray<Prompt.ToolResultPart>, length: number): ReadonlyArray<Prompt.ToolResultPart> =>
  parts
    .map((part) => ({ part, length: TokenEstimate.lengthOf(part.result) }))
    .filter((measured) => measured.length > length)
    .sort((a, b) => b.length - a.length)
    .map(({ part }) => part)
