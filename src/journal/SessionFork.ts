/**
 * A new session that goes on from another one, as it was at the end of a turn.
 *
 * ```
 *  parent   opened ─ turn 1 ─ turn 2 ─ turn 3 ─ …              not touched
 *                              │ at: 2
 *  fork     opened ─ turn 1 ─ turn 2 ─ resumed ─ other words ─ …
 * ```
 *
 * A fork has the history, the counters, the profile and the model of its parent there. It has what was denied, nothing that was
 * allowed, nothing that is open, no subagents, and ids of its own for messages: words with an id of the parent are new to it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import type { AuditEntry } from "../audit/AuditRecord.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as Id from "../core/Id.js"
import type { CorrelationId, MessageId, SessionId } from "../core/Id.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import * as History from "../conversation/History.js"
import { wordsOf } from "../inbox/Message.js"
import * as JournalEntry from "./JournalEntry.js"
import { SessionReading } from "./JournalReading.js"
import * as JournalAudit from "./JournalAudit.js"
import type * as SessionStore from "./SessionStore.js"
import * as StoreError from "./StoreError.js"

/**
 * A place in a session: the number of a turn, which means its end, or of an entry of its journal. What is inside of a
 * turn means the end of the turn before; 0 is the beginning, before anything was said.
 *
 * @since 0.1.0
 * @category models
 */
export type Position = number | { readonly entry: number }

/**
 * A turn of a session's root.
 *
 * @since 0.1.0
 * @category models
 */
export interface Turn {
  /** From 1. */
  readonly number: number
  readonly correlationId: CorrelationId
  /** The words that began it. */
  readonly words: string
  /** Milliseconds since the epoch. */
  readonly began: number
  /** Sequence number of its first entry. */
  readonly first: number
  /** Its last entry, and how it ended; absent while it runs. */
  readonly ended?: { readonly entry: number; readonly at: number; readonly end: TurnEnd } | undefined
}

/** The place that a position means. */
export interface Place {
  /** The last whole turn. */
  readonly turn: number
  /** The last entry of the parent that counts; 0: none. */
  readonly entry: number
}

export interface Options {
  /** Default: the end. A turn that runs is not taken. */
  readonly at?: Position | undefined
  /** Who wanted it, for the audit. Default: `program`. */
  readonly by?: string | undefined
}

/** What was made. */
export interface Forked extends Place {
  readonly rootSessionId: SessionId
  readonly parent: SessionId
}

/**
 * Why no fork is made. Nothing is left of it then.
 *
 * @since 0.1.0
 * @category errors
 */
export type ForkFailure =
  | StoreError.SessionUnknown
  | StoreError.PositionUnknown
  | StoreError.JournalUnreadable
  | StoreError.StoreUnusable
  | StoreError.StoreUnwritable
  | StoreError.SessionLocked
  | StoreError.SessionTakenOver
  | AuditTrail.AuditUnwritable

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Forks a stored session, whether a process runs it or not. Its journal is read and not changed. */
export const fork = (
  store: SessionStore.Service,
  parent: SessionId,
  options: Options = {}
): Effect.Effect<Forked, ForkFailure> =>
  Effect.gen(function* () {
    const { drafts, forked } = yield* planned(yield* store.load(parent), options)
    yield* Effect.scoped(write(store, forked, drafts, options))
    return forked
  })

/** The journal of a fork, which is not written yet. */
export const planned = (
  loaded: SessionStore.Loaded,
  { at }: Options
): Effect.Effect<
  { readonly forked: Forked; readonly drafts: ReadonlyArray<JournalEntry.Draft> },
  StoreError.PositionUnknown
> =>
  Effect.gen(function* () {
    const ids = yield* Id.IdGenerator
    const place = yield* placeOf(loaded, at)
    const forked = {
      rootSessionId: Id.sessionBeside(ids, loaded.rootSessionId),
      parent: loaded.rootSessionId,
      ...place
    }
    return { forked, drafts: draftsOf(loaded, forked, ids) }
  })

/**
 * Writes a fork whole or not at all, and holds it until the scope closes. Its audit comes first: a fork that has no
 * record of where it came from must not be.
 */
export const write = (
  store: SessionStore.Service,
  forked: Forked,
  drafts: ReadonlyArray<JournalEntry.Draft>,
  { by }: Options
): Effect.Effect<
  SessionStore.Lease,
  | AuditTrail.AuditUnwritable
  | StoreError.StoreUnusable
  | StoreError.StoreUnwritable
  | StoreError.SessionLocked
  | StoreError.SessionTakenOver,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const lease = yield* store.lock(forked.rootSessionId)
    const audited = yield* entryOf(forked, by)
    yield* JournalAudit.append(lease, drafts, audited)
    return lease
  })

/** Records where a fork came from, as the first record of its trail. */
export const record = (
  forked: Forked,
  by: string | undefined,
  agent: string
): Effect.Effect<void, AuditTrail.AuditUnwritable> => Effect.flatMap(entryOf(forked, by, agent), AuditTrail.record)

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The number of a turn in what a person typed; 0 is the beginning. */
export const turnNumber = (text: string): number | undefined =>
  /^\d{1,9}$/.test(text.trim()) ? Number(text) : undefined

/**
 * The turns of a session's root, oldest first.
 *
 * @since 0.1.0
 * @category getters
 */
export const turns = ({ entries, rootSessionId }: SessionStore.Loaded): ReadonlyArray<Turn> => {
  const found: Array<Turn> = []
  const reading = new SessionReading()
  for (const { at, entry, seq, sessionId } of entries) {
    if (sessionId !== rootSessionId) continue
    const fact = reading.read(entry, at)
    if (fact._tag === "MessageTaken" && fact.begins) {
      const { correlationId } = fact.entry
      const words = wordsOf(fact.messages)
      found.push({ number: found.length + 1, correlationId, words, began: at, first: seq })
    }
    const last = found.at(-1)
    if (fact._tag === "TurnEnded" && fact.turn !== undefined && last !== undefined)
      found[found.length - 1] = { ...last, ended: { entry: seq, at, end: fact.entry.end } }
  }
  return found
}

/** Where a position is; without one, the end. */
export const placeOf = (
  loaded: SessionStore.Loaded,
  at: Position | undefined
): Either.Either<Place, StoreError.PositionUnknown> => {
  const { entries, rootSessionId } = loaded
  const all = turns(loaded)
  const last = typeof at === "number" ? all.length : entries.length
  const wanted = typeof at === "number" ? at : (at?.entry ?? last)
  if (!Number.isSafeInteger(wanted) || wanted < 0 || wanted > last) {
    return Either.left(
      new StoreError.PositionUnknown({
        rootSessionId,
        position: typeof at === "number" ? `turn ${at}` : `entry ${wanted}`,
        turns: all.filter(({ ended }) => ended !== undefined).length,
        entries: entries.length
      })
    )
  }
  if (typeof at !== "number") return Either.right(endOf(loaded, wanted))
  // One that has no end is gone back behind.
  const turn = all.findLast(({ ended, number }) => number <= at && ended !== undefined)
  return Either.right({ turn: turn?.number ?? 0, entry: turn?.ended?.entry ?? 0 })
}

/**
 * The end of the last whole turn up to an entry, and what became of the history between it and the next turn: it may have
 * been cleared or made shorter.
 */
export const endOf = (loaded: SessionStore.Loaded, upTo: number = loaded.entries.length): Place => {
  const { entries, rootSessionId } = loaded
  const all = turns(loaded)
  const turn = all.findLast(({ ended }) => ended !== undefined && ended.entry <= upTo)
  const end = turn?.ended?.entry ?? 0
  const next = all.find(({ first }) => first > end)?.first ?? Infinity
  const replaced = entries.findLast(
    ({ entry, seq, sessionId }) =>
      sessionId === rootSessionId && entry._tag === "HistoryReplaced" && seq > end && seq <= upTo && seq < next
  )
  return { turn: turn?.number ?? 0, entry: replaced?.seq ?? end }
}

/**
 * What the root said and did up to an entry, and nothing that decides: an allow list, so that a kind of entry that is
 * new is not taken before it is named here.
 */
export const told = (
  { entries, rootSessionId }: SessionStore.Loaded,
  upTo: number
): ReadonlyArray<JournalEntry.Written> => {
  const whole = entries.filter(
    ({ entry, seq, sessionId }) => sessionId === rootSessionId && (seq <= upTo || entry._tag === "SessionOpened")
  )
  const taken = new Set(
    whole.flatMap(({ entry }): ReadonlyArray<MessageId> => (entry._tag === "MessageTaken" ? entry.messageIds : []))
  )
  // A message that no turn took would begin one.
  return whole.filter(
    ({ entry }) => telling.has(entry._tag) && (entry._tag !== "MessageReceived" || taken.has(entry.message.id))
  )
}

/**
 * The permissions of a fork: nothing that was allowed; what was denied, and a mode that only takes away. Undefined: there is none
 * of that.
 */
export const bounds = ({
  default: chosen,
  deny,
  plan
}: JournalEntry.Permissions): JournalEntry.Permissions | undefined => {
  if (plan !== true && chosen !== "deny" && deny.length === 0) return undefined
  const mode = { ...(chosen === "deny" ? { default: chosen } : {}), ...(plan && { plan }) }
  return { allow: [], deny, all: false, turn: [], idle: [], told: true, ...mode }
}

/** The workspace of a session: where a person moved it last. */
export const workspaceIn = ({
  entries,
  rootSessionId
}: Pick<SessionStore.Loaded, "entries" | "rootSessionId">): string | undefined => {
  let workspace: string | undefined
  for (const { entry, sessionId } of entries) {
    if (sessionId !== rootSessionId) continue
    if (entry._tag === "SessionOpened" || entry._tag === "SessionResumed") workspace = entry.workspace ?? workspace
  }
  return workspace
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const entryOf = (
  { entry, parent, rootSessionId, turn }: Forked,
  by = "program",
  agent = "main"
): Effect.Effect<AuditEntry> =>
  Effect.map(Clock.currentTimeMillis, (answeredAt) => ({
    class: "session",
    kind: "fork",
    outcome: "done",
    rootSessionId,
    sessionId: rootSessionId,
    agent,
    reason: `from ${parent}, at the end of turn ${turn}${entry === 0 ? "" : ` (entry ${entry})`}`,
    by,
    answeredAt,
    forkOf: { sessionId: parent, turn, entry }
  }))

const telling: ReadonlySet<JournalEntry.JournalEntry["_tag"]> = new Set([
  "SessionOpened",
  "MessageReceived",
  "MessageTaken",
  "AssistantAppended",
  "UsageRecorded",
  "TokensSpent",
  "TurnEnded",
  "CallsProposed",
  "ToolEnded",
  "ResultsAppended",
  "HistoryReplaced"
])

const draftsOf = (
  loaded: SessionStore.Loaded,
  { entry: upTo, parent, rootSessionId, turn }: Forked,
  ids: Id.Generator
): ReadonlyArray<JournalEntry.Draft> => {
  const renames = new Map<MessageId, MessageId>()
  const idOf = (before: MessageId): MessageId => {
    const id = renames.get(before) ?? Id.message(ids)
    renames.set(before, id)
    return id
  }
  const forkOf = { rootSessionId: parent, turn, entry: upTo, ...countersOf(loaded, upTo) }
  const workspace = workspaceIn(loaded)
  const now = {
    sessionId: rootSessionId,
    rootSessionId,
    forkOf,
    ...(workspace === undefined ? {} : { workspace }),
    ...modelOf(loaded, upTo)
  }
  const copied = [...told(loaded, upTo), ...notesIn(loaded, upTo)].map(({ at, entry }) => ({
    sessionId: rootSessionId,
    at,
    entry: entry._tag === "SessionOpened" ? { ...entry, ...now } : withIds(entry, idOf)
  }))
  const mode = boundsIn(loaded)
  // With the time of now: an old session was used when it was forked, and so was its fork.
  return [
    ...copied,
    ...(mode === undefined ? [] : [{ sessionId: rootSessionId, entry: mode }]),
    { sessionId: rootSessionId, entry: { _tag: "SessionResumed" } }
  ]
}

/**
 * What the program told of the world, and what is not in the history that is taken: a fork goes back in what was said,
 * and files do not. A note begins no turn.
 */
const notesIn = (
  { entries, rootSessionId }: SessionStore.Loaded,
  upTo: number
): ReadonlyArray<JournalEntry.Written> => {
  const over = new Set<MessageId>()
  for (const { entry, seq, sessionId } of entries) {
    if (sessionId !== rootSessionId) continue
    if (entry._tag === "MessageWithdrawn") over.add(entry.messageId)
    if (entry._tag === "MessageTaken" && seq <= upTo) for (const id of entry.messageIds) over.add(id)
  }
  return entries.filter(
    ({ entry, sessionId }) =>
      sessionId === rootSessionId &&
      entry._tag === "MessageReceived" &&
      entry.message.source === "system" &&
      entry.message.delivery === "along" &&
      !over.has(entry.message.id)
  )
}

const boundsIn = ({ entries }: SessionStore.Loaded): JournalEntry.EntryOf<"PermissionsChanged"> | undefined => {
  const last = entries.findLast(({ entry }) => entry._tag === "PermissionsChanged")?.entry
  const permissions = last?._tag === "PermissionsChanged" ? bounds(last.permissions) : undefined
  return permissions && { _tag: "PermissionsChanged", permissions }
}

const withIds = (
  entry: JournalEntry.JournalEntry,
  idOf: (before: MessageId) => MessageId
): JournalEntry.JournalEntry => {
  switch (entry._tag) {
    case "MessageReceived":
      return { ...entry, message: { ...entry.message, id: idOf(entry.message.id) } }
    case "MessageTaken":
      return { ...entry, messageIds: entry.messageIds.map(idOf) }
    case "HistoryReplaced":
      return { ...entry, messages: entry.messages.map((message) => History.withMessageId(message, idOf)) }
    default:
      return entry
  }
}

/** Ids of subagents stay unique, and tokens are spent, also when those who had them are not taken. */
const countersOf = (
  { entries, rootSessionId }: SessionStore.Loaded,
  upTo: number
): Pick<JournalEntry.ForkOf, "subagents" | "spent"> => {
  const agents = new Map<SessionId, string>()
  const spent: Array<JournalEntry.ForkOf["spent"][number]> = []
  let subagents = 0
  for (const { entry, seq, sessionId } of entries) {
    if (entry._tag === "SessionOpened" && sessionId === rootSessionId && entry.forkOf !== undefined) {
      spent.push(...entry.forkOf.spent)
      subagents = Math.max(subagents, entry.forkOf.subagents)
    }
    if (seq > upTo) continue
    if (entry._tag === "SessionOpened") agents.set(sessionId, entry.agent)
    if ((entry._tag === "UsageRecorded" || entry._tag === "TokensSpent") && sessionId !== rootSessionId) {
      spent.push({ sessionId, agent: agents.get(sessionId) ?? "", model: entry.model, usage: entry.usage })
    }
    subagents = Math.max(subagents, JournalEntry.subagentIn(entry))
  }
  return { subagents, spent }
}

/** The model that was chosen last, as the origin has it now; else the one that worked last in what is taken. */
const modelOf = (
  { entries, rootSessionId }: SessionStore.Loaded,
  upTo: number
): Partial<Omit<JournalEntry.EntryOf<"ModelChosen">, "_tag">> => {
  const lastOf = (tag: JournalEntry.JournalEntry["_tag"], upTo: number) =>
    entries.findLast(({ entry, seq, sessionId }) => sessionId === rootSessionId && seq <= upTo && entry._tag === tag)
      ?.entry
  const last = lastOf("ModelChosen", Infinity) ?? lastOf("UsageRecorded", upTo)
  if (last?._tag === "ModelChosen") return { model: last.model, thinking: last.thinking }
  return last?._tag === "UsageRecorded" ? { model: last.model } : {}
}
