/** The parts of one session, put together. */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Breath from "../core/Breath.js"
import * as Spans from "../core/Spans.js"
import type * as Inbox from "../inbox/Inbox.js"
import * as Reopened from "../interaction/Reopened.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Compaction from "./Compaction.js"
import * as History from "./History.js"
import type { Reopening } from "./Reopening.js"
import { RunningCalls } from "./RunningCalls.js"
import * as Limits from "./Limits.js"
import { emit, idle, printed, type SessionContext } from "./SessionContext.js"
import type { Options } from "./SessionService.js"
import * as Tidying from "./Tidying.js"
import { ToolContexts } from "./ToolContexts.js"

/** What a session is given besides its options. */
export interface Given {
  readonly clock: Clock.Clock
  readonly inbox: Inbox.Service
  /** Present for a session that another process began. */
  readonly reopening: Reopening | undefined
  /** What its tools run with besides; asked once, when the first tool runs. */
  readonly ambient: () => Context.Context<never>
}

export const make = (options: Options, given: Given): SessionContext => new SessionParts(options, given)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionParts implements SessionContext {
  readonly origin
  readonly inbox
  readonly tools
  readonly gate
  readonly interactor
  readonly bus
  readonly redactor
  readonly limits
  readonly calls
  readonly ledger
  readonly spans
  readonly journal
  readonly state
  readonly history: History.History
  readonly compaction: Compaction.Service
  private contexts: ToolContexts | undefined

  constructor(
    options: Options,
    private readonly given: Given
  ) {
    const { bus, interactor, journal, ledger, limits, origin, redactor, restored, spans = Spans.off, tools } = options
    this.origin = origin
    this.inbox = given.inbox
    this.tools = tools
    this.interactor = interactor
    this.bus = bus
    this.redactor = redactor
    this.limits = Limits.withDefaults(limits)
    this.ledger = ledger
    this.spans = spans
    this.journal = journal
    this.state = idle(options.model)
    this.history = History.make(restored?.history ?? [], redactor, () => journal?.replaced("cleared", []))
    this.history.setSystem(options.instructions)
    this.compaction = Compaction.make(Tidying.hostOf(this), options.compaction)
    this.calls = new RunningCalls(this.limits.stopWithin, (message) => {
      emit(this, { _tag: "AgentError", message })
    })
    this.gate = PermissionGate.make({
      policy: options.policy,
      state: options.permissions,
      bus,
      redactor,
      guards: options.guards,
      authority: options.authority,
      insteadOfAsking: options.insteadOfAsking,
      decided: journal?.decided,
      audit: options.audit,
      spans
    })
  }

  model() {
    return this.state.model
  }

  now(): number {
    return this.given.clock.unsafeCurrentTimeMillis()
  }

  isBreathless(): boolean {
    return Breath.isDue(this.state, this.given.clock)
  }

  contextOf(entry: ToolRegistry.Entry): Context.Context<never> {
    this.contexts ??= new ToolContexts({
      interactor: this.interactor,
      sink: (chunk) => printed(this, chunk),
      ambient: () => {
        const { ambient, reopening } = this.given
        return reopening === undefined ? ambient() : Context.add(ambient(), Reopened.Reopened, reopening)
      }
    })
    return this.contexts.of(entry)
  }
}
