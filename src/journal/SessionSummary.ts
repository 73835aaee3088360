/**
 * A summary of a tree of sessions, from which a person picks one. It is updated entry by entry.
 *
 * A store updates it at every append and holds no history for that, so it shares with the other projections only where a
 * turn begins: `JournalReading.begins`.
 *
 * @since 0.1.0
 */
import { isRecord } from "effect/Predicate"
import * as Schema from "effect/Schema"
import { CorrelationId, RequestId, SessionId } from "../core/Id.js"
import type { EntryOf, Written } from "./JournalEntry.js"
import { begins } from "./JournalReading.js"
import { Holder } from "./StoreError.js"
import * as TokenUsage from "../model/TokenUsage.js"

/**
 * Stored beside a journal, so that a list need not read the journal.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionSummary = Schema.Struct({
  rootSessionId: SessionId,
  /** Milliseconds since the epoch. */
  created: Schema.Number,
  /** Milliseconds since the epoch. */
  lastActivity: Schema.Number,
  /** The first words of the first message, on one line; empty before there is one. */
  title: Schema.String,
  /** Turns of the root. */
  turns: Schema.Number,
  /** The root's first model. */
  model: Schema.String,
  /** The root's workspace, if it has one. */
  workspace: Schema.optional(Schema.String),
  /** The session that it was forked from, and the last turn that it took. */
  forkOf: Schema.optional(Schema.Struct({ rootSessionId: SessionId, turn: Schema.Number })),
  /** Number of sessions of the tree, with the root. */
  sessions: Schema.Number,
  entries: Schema.Number,
  /** Open requests, oldest first. */
  open: Schema.Array(Schema.Struct({ requestId: RequestId, kind: Schema.String })),
  /** The root is in a turn; when no process runs the session, that turn was interrupted. */
  inTurn: Schema.Boolean,
  /** That turn, or the last one. Absent in summaries of version 0.1.0. */
  turn: Schema.optional(CorrelationId),
  closed: Schema.Boolean,
  /** Tokens of its model calls on the last day that had some, input and output together. Days are of UTC, since the epoch. */
  spent: Schema.optional(Schema.Struct({ day: Schema.Number, tokens: Schema.Number }))
})
export type SessionSummary = typeof SessionSummary.Type

/**
 * `running`: a process holds it. The others can be resumed: `waiting` for an answer, `interrupted` in a turn, `idle`;
 * `closed` has ended by itself.
 *
 * @since 0.1.0
 * @category models
 */
export type State = "running" | "waiting" | "interrupted" | "idle" | "closed"

/**
 * A summary as a row of the list.
 *
 * @since 0.1.0
 * @category models
 */
export interface Listed extends SessionSummary {
  readonly state: State
  /** The process that runs it. */
  readonly holder?: Holder | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The summary of an empty journal.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty = (rootSessionId: SessionId, at: number): SessionSummary => ({
  rootSessionId,
  created: at,
  lastActivity: at,
  title: "",
  turns: 0,
  model: "",
  sessions: 0,
  entries: 0,
  open: [],
  inTurn: false,
  closed: false
})

/**
 * Reads what a store has written; undefined when it is damaged. It accepts what the schema accepts, member by member: a
 * list holds very many, and decoding by the schema took six times as long.
 *
 * @internal
 */
export const parse = (text: string): SessionSummary | undefined => {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(found)) return undefined
  const { closed, created, entries, forkOf, inTurn, lastActivity, model, open, spent } = found
  const { rootSessionId, sessions, title, turn, turns, workspace } = found
  if (typeof rootSessionId !== "string" || typeof title !== "string" || typeof model !== "string") return undefined
  if (typeof created !== "number" || typeof lastActivity !== "number" || typeof turns !== "number") return undefined
  if (typeof sessions !== "number" || typeof entries !== "number") return undefined
  if (typeof inTurn !== "boolean" || typeof closed !== "boolean") return undefined
  if (turn !== undefined && typeof turn !== "string") return undefined
  if (workspace !== undefined && typeof workspace !== "string") return undefined
  if (forkOf !== undefined && !isFork(forkOf)) return undefined
  if (spent !== undefined && !isSpent(spent)) return undefined
  if (!Array.isArray(open) || !open.every(isOpen)) return undefined
  // It has all members with their types; brands are no more than that, which the type does not follow.
  return found as unknown as SessionSummary
}

/**
 * Reads what a store has written for a list. What was read is nobody else's, so the rest is added to it: a copy of each
 * took ten times as long.
 *
 * @internal
 */
export const parseListed = (text: string, holder: Holder | undefined): Listed | undefined => {
  const found = parse(text)
  if (found === undefined) return undefined
  const listed: { -readonly [K in keyof Listed]: Listed[K] } = Object.assign(found, { state: "idle" as const })
  listed.state = stateOf(found, holder)
  if (holder !== undefined) listed.holder = holder
  return listed
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The summary after these entries.
 *
 * @since 0.1.0
 * @category combinators
 */
export const after = (self: SessionSummary, written: ReadonlyArray<Written>): SessionSummary => {
  const last = written.at(-1)
  if (last === undefined) return self
  const counted = { ...self, entries: last.seq, lastActivity: last.at }
  return written.reduce(step, counted)
}

/**
 * The entry of a session in a list; `holder` runs it now.
 *
 * @since 0.1.0
 * @category getters
 */
export const listed = (self: SessionSummary, holder: Holder | undefined): Listed => ({
  ...self,
  state: stateOf(self, holder),
  ...(holder === undefined ? {} : { holder })
})

/**
 * Compares for a list in which the tree that was used last comes first.
 *
 * @since 0.1.0
 * @category combinators
 */
export const byActivity = (
  a: Pick<SessionSummary, "lastActivity" | "rootSessionId">,
  b: Pick<SessionSummary, "lastActivity" | "rootSessionId">
): number =>
  b.lastActivity - a.lastActivity ||
  (a.rootSessionId < b.rootSessionId ? -1 : a.rootSessionId > b.rootSessionId ? 1 : 0)

/**
 * The day of a time in milliseconds since the epoch, in UTC.
 *
 * @internal
 */
export const dayOf = (at: number): number => Math.floor(at / day)

/**
 * When a day begins, in milliseconds since the epoch.
 *
 * @internal
 */
export const beginOf = (days: number): number => days * day

/**
 * The tokens of a session on this day, if it is the last one that had some.
 *
 * @internal
 */
export const spentOn = ({ spent }: Pick<SessionSummary, "spent">, day: number): number =>
  spent?.day === day ? spent.tokens : 0

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds. */
const day = 86_400_000

const isOpen = (value: unknown): value is SessionSummary["open"][number] =>
  isRecord(value) && typeof value["requestId"] === "string" && typeof value["kind"] === "string"

const isFork = (value: unknown): value is NonNullable<SessionSummary["forkOf"]> =>
  isRecord(value) && typeof value["rootSessionId"] === "string" && typeof value["turn"] === "number"

const isSpent = (value: unknown): value is NonNullable<SessionSummary["spent"]> =>
  isRecord(value) && typeof value["day"] === "number" && typeof value["tokens"] === "number"

const longestTitle = 80

const titleOf = (text: string): string => {
  const line = text
    .slice(0, 4 * longestTitle)
    .replace(/\s+/g, " ")
    .trim()
  return line.length <= longestTitle ? line : `${line.slice(0, longestTitle - 1)}…`
}

/** Files without words are a title too. */
const wordsOf = ({ parts = [], text }: EntryOf<"MessageReceived">["message"]): string =>
  text === "" ? parts.flatMap((part) => (part.type === "file" ? [part.file.name] : [])).join(", ") : text

/** A summary that was stored without its turn means the turn that goes on. */
const runningIn = ({ inTurn, turn }: SessionSummary, { correlationId }: EntryOf<"MessageTaken">) =>
  inTurn ? (turn ?? correlationId) : undefined

const step = (self: SessionSummary, { at, sessionId, entry }: Written): SessionSummary => {
  const isRoot = sessionId === self.rootSessionId
  switch (entry._tag) {
    case "SessionOpened":
      return {
        ...self,
        sessions: self.sessions + 1,
        ...(isRoot ? { model: entry.model } : {}),
        ...(isRoot && entry.workspace !== undefined ? { workspace: entry.workspace } : {}),
        ...(isRoot && entry.forkOf !== undefined
          ? { forkOf: { rootSessionId: entry.forkOf.rootSessionId, turn: entry.forkOf.turn } }
          : {})
      }
    case "ModelChosen":
      return isRoot ? { ...self, model: entry.model } : self
    case "SessionResumed":
      return isRoot ? { ...self, closed: false, workspace: entry.workspace ?? self.workspace } : self
    case "MessageReceived":
      return self.title === "" && isRoot ? { ...self, title: titleOf(wordsOf(entry.message)) } : self
    case "MessageTaken":
      return isRoot && begins(runningIn(self, entry), entry)
        ? { ...self, inTurn: true, turn: entry.correlationId, turns: self.turns + 1 }
        : self
    case "TurnEnded":
      return isRoot ? { ...self, inTurn: false } : self
    case "TokensSpent":
    case "UsageRecorded": {
      // A fork has entries of the session that it comes from, which counts their tokens.
      if (at < self.created) return self
      const { input, output } = TokenUsage.of(entry.model, entry.usage)
      const day = dayOf(at)
      return { ...self, spent: { day, tokens: spentOn(self, day) + input + output } }
    }
    case "InteractionRaised": {
      const { requestId, interaction } = entry.request
      if (self.open.some((open) => open.requestId === requestId)) return self
      return { ...self, open: [...self.open, { requestId, kind: interaction._tag }] }
    }
    case "InteractionSettled":
      return { ...self, open: self.open.filter((open) => open.requestId !== entry.requestId) }
    case "SessionClosed":
      return isRoot ? { ...self, closed: true } : self
    default:
      return self
  }
}

const stateOf = (self: SessionSummary, holder: Holder | undefined): State => {
  if (holder !== undefined) return "running"
  if (self.closed) return "closed"
  if (self.open.length > 0) return "waiting"
  return self.inTurn ? "interrupted" : "idle"
}
