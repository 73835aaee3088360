/** Shared by the parts of one session: built once by `Session.make`, read by its turn, generation and tools. */
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { CorrelationId, MessageId, ToolCallId } from "../core/Id.js"
import * as EventLoop from "../internal/EventLoop.js"
import * as Origin from "../core/Origin.js"
import type * as Redaction from "../core/Redaction.js"
import type * as Spans from "../core/Spans.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type * as Inbox from "../inbox/Inbox.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type * as PermissionGate from "../permission/PermissionGate.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { Chunk } from "../tool/ToolOutput.js"
import type * as Compaction from "./Compaction.js"
import type * as History from "../conversation/History.js"
import type { Limits } from "./Limits.js"
import type { RunningCalls } from "./RunningCalls.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"

export interface TurnContext {
  readonly origin: Origin.Origin
  readonly history: History.History
  readonly compaction: Compaction.Service
  readonly inbox: Inbox.Service
  readonly model: () => Model.Service
  readonly tools: ToolRegistry.Service
  readonly gate: PermissionGate.Service
  readonly interactor: Interactor.Service
  readonly bus: EventBus.Service
  readonly redactor: Redaction.Redactor
  readonly limits: Limits
  /** The session's running calls. */
  readonly calls: RunningCalls
  /** The ledger of the session's tree. */
  readonly ledger: TokenLedger.Service | undefined
  readonly spans: Spans.Service
  /** Records entries that must outlive the process; absent: nothing is stored. */
  readonly journal: SessionRecorder | undefined
  /** The context of a tool's handler: the tool's own services, the session's interactor and its output sink. */
  readonly contextOf: (entry: ToolRegistry.Entry) => Context.Context<never>
  readonly clock: Clock.Clock
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Whether it has blocked the event loop for too long. */
  readonly isBreathless: () => boolean
  /** Mutable, owned by the session's fiber. */
  readonly state: SessionState
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
  /** Output of running calls on its way to events: one flow for each call and stream. */
  output: Map<ToolCallId, { readonly [S in Stream]: Redaction.Flow }> | undefined
  status: AgentEvent.AgentStatus
  /** The running turn's own authority, if it has one. */
  authority: PermissionGate.Authority | undefined
  /** The same without the session's own authority: it applies also to children that work for the turn. */
  bound: PermissionGate.Authority | undefined
}

/** The state of a new session. */
export const idle = (model: Model.Service): SessionState => ({
  model,
  correlationId: undefined,
  cut: undefined,
  unseen: [],
  output: undefined,
  status: "idle",
  authority: undefined,
  ...EventLoop.fresh,
  bound: undefined
})

/** Publishes an event as this session. False: the bus is full, and the caller should wait for room. */
export const emit = ({ bus, clock, origin, state }: TurnContext, body: AgentEvent.Body): boolean =>
  EventPublisher.publish(bus, clock, origin, body, state.correlationId)

export const setStatus = (session: TurnContext, status: SessionState["status"]): boolean => {
  if (session.state.status === status) return true
  session.state.status = status
  return emit(session, { _tag: "AgentStatusChanged", status })
}

/** As {@link emit}, with back-pressure: it waits for room when the driver's event stream is full. */
export const tell = (session: TurnContext, body: AgentEvent.Body): Effect.Effect<void> =>
  Effect.suspend(() => (emit(session, body) ? Effect.void : session.bus.awaitRoom))

/** Takes output of the running call. */
export const printed = (session: TurnContext, { stream, text }: Chunk): Effect.Effect<void> =>
  Effect.flatMap(Origin.current, ({ toolCallId }) => {
    // Output of an abandoned or ended call is dropped.
    if (toolCallId === undefined || !session.calls.has(toolCallId)) return Effect.void
    const output = (session.state.output ??= new Map())
    const flows = output.get(toolCallId) ?? {
      stdout: session.redactor.flow(),
      stderr: session.redactor.flow()
    }
    output.set(toolCallId, flows)
    const shown = flows[stream].push(text)
    return shown === "" ? Effect.void : tell(session, { _tag: "ToolOutput", toolCallId, stream, text: shown })
  })

/** Publishes the held-back rest of a call's output, before its end. */
export const flushOutput = (session: TurnContext, toolCallId: ToolCallId): void => {
  const flows = session.state.output?.get(toolCallId)
  if (flows === undefined) return
  session.state.output?.delete(toolCallId)
  for (const stream of ["stdout", "stderr"] as const) {
    const text = flows[stream].end()
    if (text !== "") emit(session, { _tag: "ToolOutput", toolCallId, stream, text })
  }
}
