/** What a person is told when a model is asked again: why with the first attempt of each kind, later only when. */
import type { SessionId } from "../../core/Id.js"
import type { EventOf } from "../../event/AgentEvent.js"
import * as Activity from "./Activity.js"

/** Sentences about one attempt after the other, of all agents; `shown` makes a reason fit. */
export type Retries = (event: EventOf<"ModelRetried">, shown?: (reason: string) => string) => string

/** Nothing was told yet. */
export const make = (): Retries => {
  const told = new Map<SessionId, string>()
  return ({ attempt, attempts, delay, reason, sessionId }, shown = (text) => text) => {
    const when = `Trying again in ${Activity.duration(delay)} (attempt ${attempt}${attempts === undefined ? "" : ` of ${attempts}`}).`
    const kind = kindOf(reason)
    // The second attempt is the first of its request.
    const isKnown = attempt > 2 && told.get(sessionId) === kind
    told.set(sessionId, kind)
    return isKnown ? when : `${shown(reason)} ${when}`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A reason without what differs each time: times, and the ids of requests. */
const kindOf = (reason: string): string => reason.replace(/\S*\d\S*/g, "")
