/**
 * An agent in memory as it was at the end of a turn: cut out of its history, because it has no journal.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Id from "../core/Id.js"
import type { MessageId, SessionId } from "../core/Id.js"
import * as Todo from "../core/Todo.js"
import type * as Origin from "../core/Origin.js"
import * as History from "../conversation/History.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionFork from "../journal/SessionFork.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import * as StoreError from "../journal/StoreError.js"
import type * as Model from "../model/Model.js"
import type { Snapshot } from "../permission/PermissionState.js"
import type * as Interjection from "../session/Interjection.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import * as TokenUsage from "../model/TokenUsage.js"
import type { Node } from "../subagent/AgentTree.js"

/**
 * What is read of an agent that is forked in memory; an `Agent.Agent` is one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Live {
  readonly id: SessionId
  readonly origin: Origin.Origin
  readonly history: Pick<History.History, "messages">
  readonly ledger: Pick<TokenLedger.Service, "totals">
  readonly agents: Effect.Effect<ReadonlyArray<Node>>
  readonly model: Effect.Effect<Model.Service>
  /** @internal */
  readonly permissions: { readonly snapshot: Effect.Effect<Snapshot> }
  readonly todos: () => Effect.Effect<ReadonlyArray<Todo.Todo>, Interjection.AgentUnknown>
}

/** Turns are counted from 1; of `begun` turns the last one has no end yet when `ended` is less. */
export interface Counted {
  readonly at: number | undefined
  readonly begun: number
  readonly ended: number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The messages up to the end of a turn. A compaction may have taken it and those before it away. */
export const placeOf = (
  { history, id }: Live,
  { at, begun, ended }: Counted
): Effect.Effect<
  { readonly turn: number; readonly messages: ReadonlyArray<Prompt.Message> },
  StoreError.PositionUnknown
> =>
  Effect.suspend(() => {
    const messages = history.messages.filter(({ role }) => role !== "system")
    const beginnings = messages.flatMap((message, index) => (History.beginsTurn(message) ? [index] : []))
    /** Where a turn begins: the last of them is the last that begins in the history. */
    const beginningOf = (turn: number) => beginnings[beginnings.length - 1 - (begun - turn)]
    const turn = Math.min(at ?? ended, ended)
    const end = turn === begun ? messages.length : beginningOf(turn + 1)
    if ((at !== undefined && (!Number.isSafeInteger(at) || at < 0 || at > begun)) || end === undefined) {
      const first = begun - beginnings.length
      return new StoreError.PositionUnknown({
        rootSessionId: id,
        position: `turn ${at ?? ended}`,
        turns: ended,
        ...(end === undefined && first > 0 ? { since: first } : {})
      })
    }
    return Effect.succeed({ turn, messages: messages.slice(0, end) })
  })

/** What the fork begins with, as if another process had written it. */
export const snapshot = (
  { origin }: Live,
  {
    forked: { parent, rootSessionId, turn },
    ids,
    messages,
    model,
    permissions,
    profile,
    todos
  }: {
    readonly forked: SessionFork.Forked
    readonly ids: Id.Generator
    readonly messages: ReadonlyArray<Prompt.Message>
    readonly model: string
    /** Those that the agent has. */
    readonly permissions: Snapshot
    readonly profile: string | undefined
    readonly todos: ReadonlyArray<Todo.Todo>
  }
): SessionSnapshot.TreeSnapshot => {
  const renames = new Map<MessageId, MessageId>()
  const idOf = (before: MessageId): MessageId => {
    const id = renames.get(before) ?? Id.message(ids)
    renames.set(before, id)
    return id
  }
  const opened: JournalEntry.SessionOpened = {
    ...JournalEntry.opening({ ...origin, sessionId: rootSessionId, rootSessionId }, model, ""),
    forkOf: { rootSessionId: parent, turn, entry: 0, subagents: lastSubagent(messages), spent: [] },
    ...(profile === undefined ? {} : { profile })
  }
  const history = messages.map((message) => History.withMessageId(message, idOf))
  return {
    seq: 0,
    permissions: SessionFork.bounds(permissions),
    sessions: [{ ...SessionSnapshot.begun(opened), history, todos, turns: turn }]
  }
}

/** The list that the last of these messages wrote; nothing where none did, as after a compaction. */
export const todosIn = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Todo.Todo> | undefined => {
  const succeeded = new Set(
    messages.flatMap((message) =>
      message.role === "tool" ? message.content.flatMap((part) => (part.isFailure ? [] : [part.id])) : []
    )
  )
  return messages
    .flatMap((message) => (message.role === "assistant" ? message.content : []))
    .flatMap((part) => {
      const todos =
        part.type === "tool-call" && succeeded.has(part.id) ? Todo.written(part.name, part.params) : undefined
      return todos === undefined ? [] : [todos]
    })
    .at(-1)
}

/** Which call used what is not known any more. */
export const spent = ({ ledger }: Live, sessionId: SessionId, model: string): ReadonlyArray<TokenLedger.Entry> => {
  const { cachedTokens, calls, inputTokens, outputTokens } = ledger.totals()
  if (calls === 0) return []
  const usage = TokenUsage.reported(model, { cached: cachedTokens, input: inputTokens, output: outputTokens })
  return [{ sessionId, agent: "main", model, usage, kind: "call" }]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The highest number of a subagent that the history speaks of: the model must not take a new one for it. */
const lastSubagent = (messages: ReadonlyArray<Prompt.Message>): number =>
  Array.from(JSON.stringify(messages, withoutBytes).matchAll(/\bsubagent_(\d{1,9})\b/g), ([, number]) =>
    Number(number)
  ).reduce((last, number) => Math.max(last, number), 0)

/** Files name no subagents, and as JSON they would be many times as long. */
const withoutBytes = (_: string, value: unknown): unknown => (value instanceof Uint8Array ? undefined : value)
