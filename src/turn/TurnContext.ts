/**
 * Shared by the parts of one session: built once by each `Session`, read by its turn, generation and tools.
 *
 * ```
 *  Shared (the tree's) ─┐
 *                       ├─► TurnContext: gate, history, compaction, running calls, state
 *  Own (the session's) ─┘
 * ```
 */
import type * as Prompt from "@effect/ai/Prompt"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import type * as Tracer from "effect/Tracer"
import type { CorrelationId, MessageId, ToolCallId } from "../core/Id.js"
import type * as Todo from "../core/Todo.js"
import * as EventLoop from "../internal/EventLoop.js"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import * as Spans from "../core/Spans.js"
import * as CallerContext from "../core/CallerContext.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type * as Inbox from "../inbox/Inbox.js"
import type * as Interactor from "../interaction/Interactor.js"
import { Interactor as InteractorTag } from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as ModelPort from "../model/ModelPort.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type * as Guard from "../permission/Guard.js"
import type * as CompiledPolicy from "../permission/CompiledPolicy.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import type { PermissionState } from "../permission/PermissionState.js"
import type * as Agenda from "../tool/Agenda.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import { ToolOutput, type Chunk } from "../tool/ToolOutput.js"
import type { CompactionConfig } from "../conversation/CompactionConfig.js"
import * as History from "../conversation/History.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import * as Compaction from "./Compaction.js"
import * as Limits from "./Limits.js"
import { OutputFlow } from "./OutputFlow.js"
import { RunningCalls } from "./RunningCalls.js"
import * as TokenBudget from "./TokenBudget.js"

/** Options that all sessions of a tree share. */
export interface Shared {
  readonly policy: CompiledPolicy.Policy
  readonly permissions: PermissionState
  readonly guards: ReadonlyArray<Guard.Guard>
  readonly audit: AuditTrail.Service | undefined
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly limits: Partial<Limits.Limits> | undefined
  /**
   * When and how a history is made shorter. Without it, only a history that a provider refuses loses its oldest turns.
   */
  readonly compaction: CompactionConfig | undefined
  /** Counts the usage of the tree's model calls, and may stop them. */
  readonly ledger: TokenLedger.Service
  /** Default: none. */
  readonly spans: Spans.Service | undefined
}

/** Options of one session. */
export interface Own {
  readonly origin: Origin.Origin
  readonly model: Model.Service
  readonly tools: ToolRegistry.Service
  /** System message; none when empty. */
  readonly instructions: string
  /** The interactor that this session asks. */
  readonly interactor: Interactor.Service
  /** The only way into the session. */
  readonly inbox: Inbox.Service
  readonly authority: PermissionGate.Authority | undefined
  /** See `PermissionGate.Options`. */
  readonly insteadOfAsking: PermissionGate.Authority | undefined
  /** Instead of the tree's. */
  readonly limits: Partial<Limits.Limits> | undefined
  /** Instead of the tree's. */
  readonly compaction: CompactionConfig | undefined
  /** Records entries that must outlive the process; the {@link inbox} already uses it. */
  readonly journal: SessionRecorder | undefined
  /** Its state from another process. */
  readonly restored: SessionSnapshot.SessionSnapshot | undefined
}

export interface TurnContext extends Agenda.Service, ModelPort.DecidingSession {
  readonly origin: Origin.Origin
  readonly history: History.History
  readonly compaction: Compaction.Service
  readonly inbox: Inbox.Service
  readonly tools: ToolRegistry.Service
  readonly gate: PermissionGate.Service
  readonly interactor: Interactor.Service
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly limits: Limits.Limits
  /** The session's running calls. */
  readonly calls: RunningCalls
  /** The ledger of the session's tree. */
  readonly ledger: TokenLedger.Service | undefined
  readonly spans: Spans.Service
  /** Records entries that must outlive the process; absent: nothing is stored. */
  readonly journal: SessionRecorder | undefined
  /** The context of a tool's handler, in the context around its call: what the tool was built with, the world of the caller, then what the session gives every handler. */
  readonly contextOf: (entry: ToolRegistry.Entry, outer: Context.Context<never>) => Context.Context<never>
  /** Publishes and records what the sandbox set aside after a command of this call. */
  readonly tellAside: (notices: ReadonlyArray<string>, call: ToolCallId | undefined) => Effect.Effect<void>
  /** Counts a model call that is no step of a turn. */
  readonly spent: (model: string, usage: AgentEvent.Usage, kind: "call" | "summary") => void
  /** Lets go of the world of a caller. */
  readonly forget: () => void
  readonly clock: Clock.Clock
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Whether it has blocked the event loop for too long. */
  readonly shouldYield: () => boolean
  /** Mutable, owned by the session's fiber. */
  readonly state: SessionState
}

/** A turn that has a span. */
export interface InSpan {
  readonly span: Tracer.Span | undefined
  /** These services without it. */
  readonly outside: (context: Context.Context<never>) => Context.Context<never>
}

type Stream = Chunk["stream"]

export interface SessionState extends EventLoop.LoopTurn {
  /** The model of the next call. */
  model: Model.Service
  /** The running turn; undefined while idle. */
  correlationId: CorrelationId | undefined
  /** Interrupts the running model call, an answer or a summary: called by an interjection. */
  cut: (() => void) | undefined
  /** Interjections that were read but not yet sent to a model; survives a turn that is cancelled in between. */
  readonly unseen: Array<MessageId>
  /** What its model has to do, as it wrote it last. */
  todos: ReadonlyArray<Todo.Todo>
  /** Whether its model was told that it is in plan mode. */
  isToldToPlan: boolean
  /** Output of running calls on its way to events: one flow for each call and stream. */
  output: Map<ToolCallId, { readonly [S in Stream]: OutputFlow }> | undefined
  status: AgentEvent.AgentStatus
  /** The running turn's own authority, if it has one. */
  authority: PermissionGate.Authority | undefined
  /** The same without the session's own authority: it applies also to children that work for the turn. */
  bound: PermissionGate.Authority | undefined
  /** The span of the running turn. */
  span: InSpan | undefined
}

/** `ambient` yields further services for its tools; called once, when the first tool runs. */
export const make = (
  shared: Shared,
  own: Own,
  clock: Clock.Clock,
  ambient: () => Context.Context<never>
): TurnContext => new SessionContext(shared, own, clock, ambient)

/** The state of a new session. */
export const idle = (model: Model.Service): SessionState => ({
  model,
  correlationId: undefined,
  cut: undefined,
  unseen: [],
  todos: none,
  isToldToPlan: false,
  output: undefined,
  status: "idle",
  authority: undefined,
  ...EventLoop.fresh,
  bound: undefined,
  span: undefined
})

const none: ReadonlyArray<never> = []

/** Publishes an event as this session. False: the bus is full, and the caller should wait for room. */
export const emit = ({ bus, clock, origin, state }: TurnContext, body: AgentEvent.Body): boolean =>
  EventPublisher.publish(bus, clock, origin, body, state.correlationId)

export const setStatus = (session: TurnContext, status: SessionState["status"]): boolean => {
  if (session.state.status === status) return true
  session.state.status = status
  return emit(session, { _tag: "AgentStatusChanged", status })
}

/** Like {@link emit}, with back-pressure: it waits for room when the driver's event stream is full. */
export const tell = (session: TurnContext, body: AgentEvent.Body): Effect.Effect<void> =>
  Effect.suspend(() => (emit(session, body) ? Effect.void : session.bus.awaitRoom))

/** Takes output of the running call. */
const printed = (session: TurnContext, chunk: Chunk): Effect.Effect<void> =>
  Effect.flatMap(Origin.current, ({ toolCallId }) => {
    // Output of an abandoned or ended call is dropped.
    if (toolCallId === undefined || !session.calls.has(toolCallId)) return Effect.void
    const output = (session.state.output ??= new Map())
    const flows = output.get(toolCallId) ?? {
      stdout: new OutputFlow(session.redactor),
      stderr: new OutputFlow(session.redactor)
    }
    output.set(toolCallId, flows)
    const { stream } = chunk
    const shown = flows[stream].push(chunk)
    return shown.text === "" ? Effect.void : tell(session, { _tag: "ToolOutput", toolCallId, stream, ...shown })
  })

/** Publishes the held-back rest of a call's output, before its end. */
export const flushOutput = (session: TurnContext, toolCallId: ToolCallId): void => {
  const flows = session.state.output?.get(toolCallId)
  if (flows === undefined) return
  session.state.output?.delete(toolCallId)
  for (const stream of ["stdout", "stderr"] as const) {
    const shown = flows[stream].end()
    if (shown.text !== "") emit(session, { _tag: "ToolOutput", toolCallId, stream, ...shown })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class SessionContext implements TurnContext, Compaction.Host {
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
    private readonly shared: Shared,
    own: Own,
    readonly clock: Clock.Clock,
    private readonly ambient: () => Context.Context<never>
  ) {
    const { audit, bus, guards, ledger, policy, permissions, redactor, spans = Spans.off } = shared
    const { authority, inbox, insteadOfAsking, interactor, journal, origin, tools } = own
    this.origin = origin
    this.inbox = inbox
    this.tools = tools
    this.interactor = interactor
    this.bus = bus
    this.redactor = redactor
    this.limits = Limits.withDefaults(own.limits ?? shared.limits)
    this.ledger = ledger
    this.spans = spans
    this.journal = journal
    this.state = idle(own.model)
    if (own.restored !== undefined) this.state.todos = own.restored.todos
    this.history = History.make(own.restored?.history ?? [], redactor, () => {
      journal?.replaced("cleared", [])
      forgetTodos(this)
    })
    this.history.setSystem(own.instructions)
    this.compaction = Compaction.make(this, own.compaction ?? shared.compaction)
    this.calls = new RunningCalls(this.limits.stopWithin, (message) => {
      emit(this, { _tag: "AgentError", message })
    })
    this.gate = PermissionGate.make({
      policy,
      state: permissions,
      bus,
      redactor,
      guards,
      authority,
      insteadOfAsking,
      decided: journal?.decided,
      audit,
      journal,
      spans
    })
  }

  now(): number {
    return this.clock.unsafeCurrentTimeMillis()
  }

  shouldYield(): boolean {
    return EventLoop.isDue(this.state, this.clock)
  }

  writeTodos(todos: ReadonlyArray<Todo.Todo>): Effect.Effect<void> {
    const items = todos.map(({ content, status }) => ({ content: this.redactor.text(content), status }))
    this.state.todos = items
    return tell(this, { _tag: "TodosChanged", items })
  }

  tellAside(given: ReadonlyArray<string>, toolCallId: ToolCallId | undefined): Effect.Effect<void> {
    const notices = given.map((notice) => this.redactor.text(notice))
    const { agent, rootSessionId, sessionId } = this.origin
    const recorded = this.shared.audit?.record({
      class: "session",
      kind: "files_set_aside",
      outcome: "done",
      rootSessionId,
      sessionId,
      agent,
      reason: notices.join("\n"),
      answeredAt: this.now(),
      ...(toolCallId === undefined ? {} : { toolCallId })
    })
    return Effect.zipRight(
      tell(this, { _tag: "FilesSetAside", notices }),
      Effect.catchAll(recorded ?? Effect.void, ({ message }) => tell(this, { _tag: "AgentError", message }))
    )
  }

  withdraw(toolCallId: string, sentence: string): Effect.Effect<boolean> {
    return this.calls.withdraw(toolCallId, sentence)
  }

  record(act: ModelPort.UndecidedAct): Effect.Effect<boolean> {
    const { audit } = this.shared
    const { agent, rootSessionId, sessionId } = this.origin
    const { correlationId } = this.state
    if (audit === undefined) return Effect.succeed(true)
    const entry = { class: "permission", kind: "Approve", rootSessionId, sessionId, agent, ...act } as const
    return Effect.suspend(() =>
      audit.record({ ...entry, answeredAt: this.now(), ...(correlationId === undefined ? {} : { correlationId }) })
    ).pipe(
      Effect.as(true),
      Effect.catchAll(({ message }) => Effect.as(tell(this, { _tag: "AgentError", message }), false))
    )
  }

  get endPlan(): Effect.Effect<string> {
    return Effect.suspend(() => {
      const { permissions, policy } = this.shared
      const before = permissions.mode(policy)
      permissions.endPlan(policy)
      const mode = permissions.mode(policy)
      if (mode === before) return Effect.succeed(mode)
      this.state.isToldToPlan = false
      return Effect.as(tell(this, permissions.told(policy, this.origin.sessionId, before)), mode)
    })
  }

  contextOf(entry: ToolRegistry.Entry, outer: Context.Context<never>): Context.Context<never> {
    this.contexts ??= new ToolContexts({
      interactor: this.interactor,
      sink: (chunk) => printed(this, chunk),
      ambient: this.ambient
    })
    return this.contexts.of(entry, this.state.span?.outside(outer) ?? outer)
  }

  forget(): void {
    this.contexts?.forget()
  }

  // Implements `Compaction.Host`.

  emit(body: AgentEvent.Body): void {
    emit(this, body)
  }

  hold(fiber: Fiber.RuntimeFiber<unknown, unknown> | undefined): void {
    this.state.cut = fiber && (() => fiber.unsafeInterruptAsFork(FiberId.none))
  }

  replaced(reason: Compaction.Reason, messages: ReadonlyArray<Prompt.Message>): void {
    // What the model was told of plan mode may be gone.
    this.state.isToldToPlan = false
    this.journal?.replaced(reason, messages)
  }

  spent(model: string, usage: AgentEvent.Usage, kind: "call" | "summary"): void {
    TokenBudget.spend(this, { model, usage, kind })
    this.journal?.spent({ model, usage, kind })
  }
}

/** What a model does not remember it has not to do. */
const forgetTodos = (session: TurnContext): void => {
  if (session.state.todos.length === 0) return
  session.state.todos = none
  emit(session, { _tag: "TodosChanged", items: none })
}

interface HandlerOptions {
  readonly interactor: Interactor.Service
  readonly sink: Context.Tag.Service<typeof ToolOutput>
  /** Called when the first tool runs. */
  readonly ambient: () => Context.Context<never>
}

/**
 * The contexts of a session's handlers: what the tool was built with, the world of the caller, then the session's interactor
 * and output sink, and further services of the session. Merged once per tool, as long as the world is the same.
 */
class ToolContexts {
  private own: Context.Context<never> | undefined
  private outer: Context.Context<never> | undefined
  private readonly merged = new Map<ToolRegistry.Entry, Context.Context<never>>()

  constructor(private readonly options: HandlerOptions) {}

  /** `outer`: the context around the call. */
  of(entry: ToolRegistry.Entry, outer: Context.Context<never>): Context.Context<never> {
    if (outer !== this.outer) this.forget()
    this.outer = outer
    const known = this.merged.get(entry)
    if (known !== undefined) return known
    const { ambient, interactor, sink } = this.options
    // The types do not say that these are there for every call.
    this.own ??= Context.merge(
      ambient(),
      Context.make(InteractorTag, interactor).pipe(Context.add(ToolOutput, sink))
    ) as Context.Context<never>
    const context = CallerContext.handlerContext(entry.context, outer, this.own)
    this.merged.set(entry, context)
    return context
  }

  /** Holds nothing of a world that is over. */
  forget(): void {
    this.outer = undefined
    this.merged.clear()
  }
}
