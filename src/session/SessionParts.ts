/** Assembles the parts of one session. */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as EventLoop from "../internal/EventLoop.js"
import * as Spans from "../core/Spans.js"
import type * as Inbox from "../inbox/Inbox.js"
import * as ResumedRequests from "../interaction/ResumedRequests.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Compaction from "../turn/Compaction.js"
import * as History from "../conversation/History.js"
import type { ResumedQuestions } from "../journal/ResumedQuestions.js"
import { RunningCalls } from "../turn/RunningCalls.js"
import * as Limits from "../turn/Limits.js"
import { emit, idle, printed, type TurnContext } from "../turn/TurnContext.js"
import type { Options } from "./SessionService.js"
import * as IdleCompaction from "./IdleCompaction.js"
import { ToolContexts } from "../turn/ToolContexts.js"

/** Further input beside the options of a session. */
export interface Given {
  readonly clock: Clock.Clock
  readonly inbox: Inbox.Service
  /** Present for a session that another process began. */
  readonly reopening: ResumedQuestions | undefined
  /** Further services for its tools; called once, when the first tool runs. */
  readonly ambient: () => Context.Context<never>
}

export const make = (options: Options, given: Given): TurnContext => new SessionParts(options, given)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionParts implements TurnContext {
  readonly clock
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
    this.clock = given.clock
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
    this.compaction = Compaction.make(IdleCompaction.hostOf(this), options.compaction)
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
    return this.clock.unsafeCurrentTimeMillis()
  }

  isBreathless(): boolean {
    return EventLoop.isDue(this.state, this.clock)
  }

  contextOf(entry: ToolRegistry.Entry): Context.Context<never> {
    this.contexts ??= new ToolContexts({
      interactor: this.interactor,
      sink: (chunk) => printed(this, chunk),
      ambient: () => {
        const { ambient, reopening } = this.given
        return reopening === undefined ? ambient() : Context.add(ambient(), ResumedRequests.ResumedRequests, reopening)
      }
    })
    return this.contexts.of(entry)
  }
}
