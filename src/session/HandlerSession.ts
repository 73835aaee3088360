/**
 * What a tool call may leave in its session: work that lives on beside the turns, and ends with the session.
 *
 * Every call runs with the hold of the session that made it. A handler finds it by `Effect.serviceOption`: outside of an
 * agent there is none.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ToolCallId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as History from "../conversation/History.js"
import type * as DetachedFiber from "../internal/DetachedFiber.js"

export interface Service {
  readonly origin: Origin.Origin
  /** Runs this when the session ends, within the time that its shutdown may take. */
  readonly atEnd: (finalizer: Effect.Effect<void>) => Effect.Effect<void>
  /** Where the session stands, for fibers that outlive a call; nothing before its start. */
  readonly place: DetachedFiber.Place | undefined
  readonly redactor: Redaction.Redactor
  /** Whether another process began the session. */
  readonly isRestored: boolean
  readonly history: History.History
  /** Whether the call has not ended, and was not given up. */
  readonly isRunning: (call: ToolCallId) => boolean
  /** Publishes as the session. */
  readonly tell: (body: AgentEvent.Body) => void
  /**
   * Lays a sentence beside what the model reads next; it begins nothing. The result takes it back, where the model has not
   * read it yet.
   */
  readonly note: (text: string) => () => void
}

/** The hold of the session that called the tool. */
export class HandlerSession extends Context.Tag("assent/session/HandlerSession")<HandlerSession, Service>() {}

/** Says to the person and records what the sandbox set aside after a command of a call. */
export class Aside extends Context.Tag("assent/session/Aside")<
  Aside,
  (notices: ReadonlyArray<string>, call: ToolCallId | undefined) => Effect.Effect<void>
>() {}
