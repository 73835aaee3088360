/**
 * Makes the sessions of a tree. What a root and a child have in common is made here, once; what they differ in they are
 * given: whom they ask, what may decide ahead of the rules, and what becomes of words that they did not read.
 *
 * ```
 *  recorder ─► inbox ─► whom it asks ─► children's wiring ─► session
 * ```
 */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Inbox from "../inbox/Inbox.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as JournalEntry from "../journal/JournalEntry.js"
import type * as JournalWriter from "../journal/JournalPort.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type { Authority } from "../permission/PermissionGate.js"
import * as Session from "../session/Session.js"
import type { AgentTree } from "./AgentTree.js"

/** Connects a session to its own children. */
export interface Wiring {
  /** Further services for its tools. */
  readonly ambient: () => Context.Context<never>
  /** The authority that decides before the rules. */
  readonly authority: Authority | undefined
  readonly insteadOfAsking: Authority
  /** Makes the children from another process again. */
  readonly restore: (tree: SessionSnapshot.TreeSnapshot) => Effect.Effect<void>
}

/** The session that {@link Wiring} is made for. */
export interface Wired {
  /** The session itself; it exists by the time this is called. */
  readonly session: () => Session.Session
  /** The session's own interactor. */
  readonly interactor: Interactor.Service
  /** The session's own scope. */
  readonly scope: Scope.Scope
}

/** What one session has of its own. */
export interface Own extends Pick<
  Session.Own,
  "origin" | "model" | "tools" | "limits" | "compaction" | "restored" | "unread"
> {
  /** What it is told, piece by piece; blank ones do not count. */
  readonly instructions: ReadonlyArray<string>
  /** Whom it asks. */
  readonly interactor: Interactor.Service
  readonly wiring: (wired: Wired) => Wiring
  /** How its journal begins, if it has one. */
  readonly opening: ((instructions: string) => JournalEntry.SessionOpened) | undefined
}

export interface TreeSession {
  readonly session: Session.Session
  readonly wiring: Wiring
  /** Where it notes what it does, when the tree is kept. */
  readonly journal: SessionRecorder | undefined
}

/**
 * Makes a session in its scope. It is synchronous, because this is what starting an agent costs: as effects, its parts
 * took 30 µs of the 104 that a start and a shutdown took.
 */
export const make = (tree: AgentTree, own: Own, surroundings: Session.Surroundings): TreeSession => {
  const { compaction, interactor, limits, model, origin, restored, tools, unread } = own
  const instructions = own.instructions.filter((text) => text !== "").join("\n\n")
  const journal = recorder(tree, own, instructions)
  const filing = {
    filed: journal?.received,
    withdrawn: journal?.withdrawn,
    messages: restored?.waiting
  }
  const inbox = Inbox.unsafeMake(surroundings.ids, surroundings.clock, filing)
  const made = cell()
  const wiring = own.wiring({ session: made.get, interactor, scope: surroundings.scope })
  const { ambient, authority, insteadOfAsking } = wiring
  const session = new Session.Session(
    tree.shared,
    {
      origin,
      model,
      tools,
      instructions,
      interactor,
      inbox,
      authority,
      insteadOfAsking,
      limits,
      compaction,
      journal,
      restored,
      unread,
      ambient
    },
    surroundings
  )
  made.set(session)
  return { session, wiring, journal }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// A cell, and no variable that functions share: those would hold all that is made beside the session.
const cell = (): { readonly get: () => Session.Session; readonly set: (session: Session.Session) => void } => {
  let value: Session.Session
  return {
    get: () => value,
    set: (session) => {
      value = session
    }
  }
}

/** A session that was restored has its beginning in the journal. */
const recorder = (
  { journal, record, shared: { redactor } }: AgentTree,
  { opening, origin, restored }: Own,
  instructions: string
): SessionRecorder | undefined => {
  if (!journal.enabled || opening === undefined) return undefined
  const own: JournalWriter.Service = journal.of(origin.sessionId)
  if (restored !== undefined) return record(own, redactor)
  const opened = opening(instructions)
  // A root that nobody ever spoke to leaves no trace; a child is there for a task, and its parent's entries name it.
  if (origin.depth === 0) return record(own, redactor, opened)
  own.note(opened)
  return record(own, redactor)
}
