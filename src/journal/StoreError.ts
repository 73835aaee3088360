/**
 * Errors of a session store. Each is named for a state of affairs, and says what to do about it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { RequestId, SessionId } from "../core/Id.js"

/**
 * A process that runs sessions.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Holder = Schema.Struct({
  pid: Schema.Number,
  host: Schema.String
})
export type Holder = typeof Holder.Type

// -----------------------------------------------------------------------------------------------------------------
// the whole store
// -----------------------------------------------------------------------------------------------------------------

/**
 * The store cannot be used, and nothing in it was touched.
 *
 * @since 0.1.0
 * @category errors
 */
export class StoreUnusable extends Schema.TaggedError<StoreUnusable>("assent/journal/StoreUnusable")("StoreUnusable", {
  /** Such as the file's path. */
  store: Schema.String,
  problem: Schema.Literal("newer", "foreign", "unreadable", "unavailable"),
  /** The reason, without a full stop. */
  reason: Schema.String,
  /** A sentence that says what to do, where the store knows better than this error. */
  remedy: Schema.optional(Schema.String)
}) {
  override get message(): string {
    return `The session store ${this.store} cannot be used, and was left as it is: ${this.reason}. ${this.remedy ?? remedies[this.problem]}`
  }
}

/**
 * Nothing was written: a full disk, a directory that is not writable, a server that is gone, a store that is closed.
 *
 * @since 0.1.0
 * @category errors
 */
export class StoreUnwritable extends Schema.TaggedError<StoreUnwritable>("assent/journal/StoreUnwritable")(
  "StoreUnwritable",
  {
    store: Schema.String,
    /** The reason, without a full stop. */
    reason: Schema.String,
    /** A sentence that says what to do, where the store knows better than this error. */
    remedy: Schema.optional(Schema.String),
    /**
     * The same may succeed soon, and until then the store does not know whether it is written: a line was cut, a server is
     * slow. A running session repeats it.
     */
    passing: Schema.optional(Schema.Boolean)
  }
) {
  override get message(): string {
    return `The session store ${this.store} cannot be written to, and it holds no half-written entry: ${this.reason}. ${this.remedy ?? "Free space, or make it writable, or choose another store."}`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// one session
// -----------------------------------------------------------------------------------------------------------------

/**
 * Another process runs this session.
 *
 * @since 0.1.0
 * @category errors
 */
export class SessionLocked extends Schema.TaggedError<SessionLocked>("assent/journal/SessionLocked")("SessionLocked", {
  rootSessionId: SessionId,
  holder: Holder,
  /** The holder's last heartbeat, in milliseconds since the epoch. */
  heartbeat: Schema.Number
}) {
  override get message(): string {
    const { pid, host } = this.holder
    return `Session ${this.rootSessionId} is run by process ${pid} on ${host}. Use it there, or end that process first.`
  }
}

/**
 * Another process took the session over, because this one had sent no heartbeat for too long. Its unwritten entries are
 * lost.
 *
 * @since 0.1.0
 * @category errors
 */
export class SessionTakenOver extends Schema.TaggedError<SessionTakenOver>("assent/journal/SessionTakenOver")(
  "SessionTakenOver",
  { rootSessionId: SessionId, holder: Schema.optional(Holder) }
) {
  override get message(): string {
    const by = this.holder === undefined ? "" : ` by process ${this.holder.pid} on ${this.holder.host}`
    return `Session ${this.rootSessionId} was taken over${by} while this process stood still. Use it there, and end this one.`
  }
}

/**
 * The session works in another workspace.
 *
 * @since 0.1.0
 * @category errors
 */
export class SessionElsewhere extends Schema.TaggedError<SessionElsewhere>("assent/journal/SessionElsewhere")(
  "SessionElsewhere",
  {
    rootSessionId: SessionId,
    /** Real path of its workspace. */
    workspace: Schema.String
  }
) {
  override get message(): string {
    return `Session ${this.rootSessionId} works in ${this.workspace} only. Resume it with that workspace.`
  }
}

/**
 * The store already has this session, and did not change it.
 *
 * @since 0.1.0
 * @category errors
 */
export class SessionPresent extends Schema.TaggedError<SessionPresent>("assent/journal/SessionPresent")(
  "SessionPresent",
  { rootSessionId: SessionId }
) {
  override get message(): string {
    return `Session ${this.rootSessionId} is in this store already, and was left as it is. Delete it first, or choose another store.`
  }
}

/**
 * There is no such session in this store.
 *
 * @since 0.1.0
 * @category errors
 */
export class SessionUnknown extends Schema.TaggedError<SessionUnknown>("assent/journal/SessionUnknown")(
  "SessionUnknown",
  { rootSessionId: Schema.String }
) {
  override get message(): string {
    return `There is no session ${this.rootSessionId} in this store. List its sessions.`
  }
}

/**
 * A session has no such place to go back to.
 *
 * @since 0.1.0
 * @category errors
 */
export class PositionUnknown extends Schema.TaggedError<PositionUnknown>("assent/journal/PositionUnknown")(
  "PositionUnknown",
  {
    rootSessionId: SessionId,
    /** Such as `turn 7`. */
    position: Schema.String,
    /** Number of turns that have ended. */
    turns: Schema.Number,
    /** Number of entries of its journal; absent when it has none. */
    entries: Schema.optional(Schema.Number),
    /** The first turn that an agent in memory can still go back to: its history was made shorter. */
    since: Schema.optional(Schema.Number)
  }
) {
  override get message(): string {
    const { entries, position, rootSessionId, since, turns } = this
    const there = turns === 1 ? "1 turn of it has ended" : `${turns} turns of it have ended`
    if (since !== undefined) {
      return `Session ${rootSessionId} has no ${position}: its history was shortened and begins at the end of turn ${since}; ${there}.`
    }
    const far = entries !== undefined && position.startsWith("entry") ? `, and its last entry is ${entries}` : ""
    return `Session ${rootSessionId} has no ${position}: ${there}${far}; 0 is its beginning.`
  }
}

/**
 * The store has no such position: the cursor belongs to another store, or somebody restored an older copy.
 *
 * @since 0.1.0
 * @category errors
 */
export class CursorUnknown extends Schema.TaggedError<CursorUnknown>("assent/journal/CursorUnknown")("CursorUnknown", {
  cursor: Schema.String
}) {
  override get message(): string {
    return `This store has no place ${JSON.stringify(this.cursor)}. Look at its sessions anew, and read on from its end.`
  }
}

/**
 * An entry of a journal cannot be read: damaged, or written by a newer version.
 *
 * @since 0.1.0
 * @category errors
 */
export class JournalUnreadable extends Schema.TaggedError<JournalUnreadable>("assent/journal/JournalUnreadable")(
  "JournalUnreadable",
  {
    rootSessionId: SessionId,
    /** Sequence number of the first unreadable entry. */
    seq: Schema.Number,
    reason: Schema.String
  }
) {
  override get message(): string {
    return `The journal of session ${this.rootSessionId} cannot be read from entry ${this.seq} on: ${this.reason}. It was left as it is; use a program of the version that wrote it, or a copy of the store.`
  }
}

/**
 * The store does not have this content: no session refers to it, or the store is damaged.
 *
 * @since 0.1.0
 * @category errors
 */
export class ContentUnknown extends Schema.TaggedError<ContentUnknown>("assent/journal/ContentUnknown")(
  "ContentUnknown",
  { sha256: Schema.String }
) {
  override get message(): string {
    return `There is no content ${this.sha256.slice(0, 12)} in this store. Attach the file again.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// answers
// -----------------------------------------------------------------------------------------------------------------

/**
 * An answer was refused; the request is unchanged.
 *
 * @since 0.1.0
 * @category errors
 */
export class AnswerRefused extends Schema.TaggedError<AnswerRefused>("assent/journal/AnswerRefused")("AnswerRefused", {
  requestId: RequestId,
  problem: Schema.Literal("notOpen", "answered", "misfit", "secret", "reserved", "once"),
  reason: Schema.String
}) {
  override get message(): string {
    return `Request ${this.requestId} does not take this answer: ${this.reason}.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const remedies = {
  newer: "Use a newer version of this program, or another store.",
  foreign: "Choose another file.",
  unreadable: "Restore it from a copy, or choose another file.",
  unavailable: "Check the disk, its free space and the permissions."
} as const
