/**
 * One page of a store's list of sessions: a list may be too long to be read whole.
 *
 * All of this is used under the name `SessionStore`.
 */
import type { SessionId } from "../core/Id.js"
import * as SessionSummary from "./SessionSummary.js"

/**
 * Which sessions, and how many.
 *
 * @since 0.1.0
 * @category models
 */
export interface Query {
  /** At most so many, and at least 1; `Infinity` is the whole list. Default: 100. */
  readonly limit?: number | undefined
  /** Those that come behind this place: `next` of the page before. Default: from the beginning. */
  readonly after?: Place | undefined
  /** Only those that may go on in this workspace: those of it, and those of none. */
  readonly workspace?: string | undefined
  /** Only this session. */
  readonly id?: SessionId | undefined
  /** Only those whose id begins so. */
  readonly prefix?: string | undefined
  /** Only those that wait for an answer and did not end by themselves, also while a process runs them. Default: all. */
  readonly waiting?: boolean | undefined
}

/**
 * A place in the list: behind the session that stood there.
 *
 * It names no row, so it stays when that session is used or deleted. A session that is used moves to the beginning:
 * who reads page by page sees no session twice but for that, and misses none that was left alone.
 *
 * @since 0.1.0
 * @category models
 */
export interface Place {
  /** Milliseconds since the epoch. */
  readonly lastActivity: number
  readonly rootSessionId: SessionId
}

/**
 * Sessions, last used first.
 *
 * @since 0.1.0
 * @category models
 */
export interface Page {
  readonly sessions: ReadonlyArray<SessionSummary.Listed>
  /** Where the next page begins; absent when nothing follows. */
  readonly next?: Place | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The page of a list that is known whole; for stores that have no index.
 *
 * @since 0.1.0
 * @category combinators
 */
export const paged = <S extends SessionSummary.SessionSummary>(
  all: Iterable<S>,
  query: Query = {}
): { readonly sessions: ReadonlyArray<S>; readonly next?: Place | undefined } => {
  const { after, id, prefix = "", waiting = false, workspace } = query
  const found: Array<S> = []
  for (const one of all) {
    if (after !== undefined && !(SessionSummary.byActivity(after, one) < 0)) continue
    if ((id !== undefined && one.rootSessionId !== id) || !one.rootSessionId.startsWith(prefix)) continue
    if (workspace !== undefined && one.workspace !== undefined && one.workspace !== workspace) continue
    if (waiting && (one.open.length === 0 || one.closed)) continue
    found.push(one)
  }
  found.sort(SessionSummary.byActivity)
  const limit = limitOf(query)
  const sessions = found.slice(0, limit)
  return { sessions, ...following(sessions, found.length > limit) }
}

/** What sessions whose ids begin so come to. */
export interface Tally {
  /** Kept ones. */
  readonly sessions: number
  /** Those that work and wait for nobody. */
  readonly turns: number
  /** What their model calls used today, those of deleted sessions with it. */
  readonly tokens: number
}

/** The tally of a list that is known whole. */
export const tallied = (all: Iterable<SessionSummary.SessionSummary>, prefix: string, day: number): Tally => {
  let [sessions, turns, tokens] = [0, 0, 0]
  for (const summary of all) {
    if (!summary.rootSessionId.startsWith(prefix)) continue
    sessions++
    if (summary.inTurn && summary.open.length === 0) turns++
    tokens += SessionSummary.spentOn(summary, day)
  }
  return { sessions, turns, tokens }
}

/** How many the page has at most. */
export const limitOf = ({ limit = 100 }: Query): number => (limit >= 1 ? Math.floor(limit) : 1)

/** Where the page after these sessions begins, if there is more. */
export const following = (sessions: ReadonlyArray<Place>, isMore: boolean): Pick<Page, "next"> => {
  const last = sessions.at(-1)
  return isMore && last !== undefined
    ? { next: { lastActivity: last.lastActivity, rootSessionId: last.rootSessionId } }
    : {}
}
