/**
 * Everything that can happen to an agent, as one closed union. Events tell; they never ask and never decide.
 *
 * Events carry ids, kinds, redacted summaries and results, never payloads with authority. An event is a plain object. The
 * schemas are for wires and tests: our own events are not decoded.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Attachment } from "../core/Attachment.js"
import { CorrelationId, MessageId, RequestId, SessionId, ToolCallId } from "../core/Id.js"
import * as Lazy from "../core/Lazy.js"
import { Todo } from "../core/Todo.js"
import { ToolKind } from "../core/ToolKind.js"
import { ToolOutcome } from "../core/ToolOutcome.js"

/** What every event carries. */
const common = () => ({
  /** Milliseconds since the epoch. */
  at: Schema.Number,
  sessionId: SessionId,
  /** Agent path such as `main/code_reviewer`. */
  agent: Schema.String,
  /** Present inside a turn. */
  correlationId: Schema.optional(CorrelationId),
  /**
   * Number of the journal's entry, from 1. Present on the last event of each entry that `Agent.events` reads. All events up
   * to this one are stored; a reader that continues `after` it gets none of them again.
   */
  position: Schema.optional(Schema.Number)
})

const event = <Tag extends string, Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.Struct({ _tag: Schema.Literal(tag), ...common(), ...fields }).annotations({ identifier: tag })

/**
 * Tokens of one model call, as far as the provider reported them.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Usage = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    inputTokens: Schema.optional(Schema.Number),
    outputTokens: Schema.optional(Schema.Number),
    cachedInputTokens: Schema.optional(Schema.Number),
    /** Input tokens that the provider wrote into its cache. */
    cacheWriteTokens: Schema.optional(Schema.Number),
    reasoningTokens: Schema.optional(Schema.Number),
    /** What the model says that the call cost, in US dollars. Default: what its tokens cost by their prices. */
    cost: Schema.optional(Schema.Number)
  })
)
export type Usage = typeof Usage.Type

/**
 * What of a model's context window one call took: the tokens of the whole prompt, cached or not, and how many the window
 * has, when that is known.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ContextUse = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({ tokens: Schema.Number, window: Schema.optional(Schema.Number) })
)
export type ContextUse = typeof ContextUse.Type

/**
 * How a turn ended. `denied`: the same call was denied again and again.
 *
 * @since 0.1.0
 * @category schemas
 */
export const EndReason = Schema.Literal("completed", "cancelled", "turn_limit", "halted", "denied", "failed")
export type EndReason = typeof EndReason.Type

/**
 * The activity of an agent. `thinking`: a model call has begun; `streaming`: its text arrives; `executing`: tools run;
 * `waiting`: no turn runs, and work beside the turns goes on, such as a background child; `done`: the session has ended.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AgentStatus = Schema.Literal("idle", "thinking", "streaming", "executing", "waiting", "done")
export type AgentStatus = typeof AgentStatus.Type

/**
 * Why a background job ended: its command exited, a person or agent stopped it, its time was up, or its session ended.
 *
 * @since 0.1.0
 * @category schemas
 */
export const JobEndReason = Schema.Literal("exited", "stopped", "timed_out", "session_ended")
export type JobEndReason = typeof JobEndReason.Type

/**
 * How a permission was decided. `mode`: by the session's mode, such as plan. `no_channel`: no interactor was ever
 * attached; `unavailable`: all attached ones have
 * left. `sanitization` and `unknown` are for authorities of a program's own.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PermissionMethod = Schema.Literal(
  "pre_validation",
  "guard",
  "stage_grant",
  "envelope",
  "turn_suspension",
  "idle_suspension",
  "allow_all",
  "session_blacklist",
  "blacklist",
  "session_whitelist",
  "whitelist",
  "auto_approved",
  "default",
  "mode",
  "user_approved",
  "user_denied",
  "user_comment",
  "timeout",
  "cancelled",
  "unavailable",
  "no_channel",
  "yolo",
  "sanitization",
  "unknown",
  "edit_incomplete",
  "check_failed"
)
export type PermissionMethod = typeof PermissionMethod.Type

/** The files that came with words; absent when there were none. */
const attachments = () => Schema.optional(Schema.Array(Attachment))

const settled = { requestId: RequestId, kind: Schema.String }

/** One person's answer where several have to agree. */
const Vote = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({ by: Schema.String, vote: Schema.Literal("allow", "deny", "edit") })
)

/**
 * The wire form of an event.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AgentEvent = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(
    // agent
    event("AgentCreated", {
      depth: Schema.Number,
      model: Schema.String,
      parentSessionId: Schema.optional(SessionId),
      /** The tool call that made the agent, for a child. */
      parentToolCallId: Schema.optional(ToolCallId),
      /** Names the child to its parent. */
      subagentId: Schema.optional(Schema.String),
      profile: Schema.optional(Schema.String),
      /** The profile's icon, for a UI. */
      icon: Schema.optional(Schema.String)
    }),
    event("AgentStatusChanged", { status: AgentStatus }),
    event("AgentCompleted", {
      success: Schema.Boolean,
      turnsUsed: Schema.Number,
      error: Schema.optional(Schema.String)
    }),
    event("AgentError", { message: Schema.String }),
    event("SessionRestored", { messages: Schema.Number }),
    // turn
    event("TurnStarted", { input: Schema.String, attachments: attachments() }),
    event("TurnEnded", {
      reason: EndReason,
      steps: Schema.Number,
      /** Why it was cancelled, halted, denied or failed. */
      detail: Schema.optional(Schema.String)
    }),
    // step: one model call
    event("ModelCallStarted", { model: Schema.String, step: Schema.Number }),
    event("ModelCallEnded", {
      model: Schema.String,
      step: Schema.Number,
      finishReason: Schema.String,
      usage: Usage,
      /** Present if the provider reported the length of the prompt. */
      context: Schema.optional(ContextUse),
      /** A sentence for people if Assent shortened the answer, or its limit cut it off. */
      remark: Schema.optional(Schema.String),
      /** True when an interjection or a cancellation stopped it. */
      interrupted: Schema.optional(Schema.Boolean)
    }),
    event("ModelRetried", {
      model: Schema.String,
      attempt: Schema.Number,
      /** The attempts that are made at most. */
      attempts: Schema.optional(Schema.Number),
      reason: Schema.String,
      /** Milliseconds until the next attempt. */
      delay: Schema.Number
    }),
    event("BlockStarted", { block: Schema.Literal("text", "thinking") }),
    event("TextDelta", { text: Schema.String }),
    event("ThinkingDelta", { text: Schema.String }),
    event("BlockEnded", { block: Schema.Literal("text", "thinking") }),
    /** The model begins to write a call. Absent for a model that writes its calls whole. */
    event("ToolArgumentsStarted", { toolCallId: ToolCallId, tool: Schema.String }),
    /** Follows the `ToolArgumentsStarted` of its call. */
    event("ToolArgumentsDelta", { toolCallId: ToolCallId, text: Schema.String }),
    // tool
    event("ToolCallProposed", {
      toolCallId: ToolCallId,
      tool: Schema.String,
      summary: Schema.String,
      /** What the tool does to the world; absent where there is no such tool, and in a replay. */
      kind: Schema.optional(ToolKind),
      /** The arguments as the model wrote them, secrets masked. */
      arguments: Schema.optional(Schema.Unknown)
    }),
    event("ToolCallStarted", { toolCallId: ToolCallId, tool: Schema.String, summary: Schema.String }),
    event("ToolOutput", {
      toolCallId: ToolCallId,
      stream: Schema.Literal("stdout", "stderr"),
      /** A carriage return goes back to the beginning of the row, as bars of progress do. */
      text: Schema.String,
      /** The same with its colours and weights, as a terminal takes them (SGR). Absent where it has none of its own. */
      styled: Schema.optional(Schema.String),
      /** By how many lines more was printed before it than was shown, since the piece before: see `ToolOutput.Chunk`. */
      unshown: Schema.optional(Schema.Number)
    }),
    event("ToolCallEnded", {
      toolCallId: ToolCallId,
      tool: Schema.String,
      outcome: ToolOutcome,
      /** Milliseconds from start to end; absent when it never started. */
      duration: Schema.optional(Schema.Number),
      /** The result as a person would say it, such as `12 lines`. */
      summary: Schema.String,
      /** The result as the model reads it: JSON, secrets masked. If it is too long, the beginning of its text. */
      result: Schema.Unknown,
      /** Characters behind that beginning; present when the result is too long. */
      leftOut: Schema.optional(Schema.Number),
      /** The fault of a call that ran to its end, such as `exit 1`. */
      fault: Schema.optional(Schema.String)
    }),
    /** The whole list of what the agent has to do, whenever it writes it anew. */
    event("TodosChanged", { items: Schema.Array(Todo) }),
    /**
     * What the sandbox did when a command had ended, or could not do: files that would act later were set aside. The tool
     * set publishes it.
     */
    event("FilesSetAside", {
      /** Sentences, a few. */
      notices: Schema.Array(Schema.String)
    }),
    /**
     * A tool server is ready, has other tools, or cannot be used. `starting`, `ready`, `reconnecting`, `failed` or `closed`.
     * Tools that come late are offered with the next model call.
     */
    event("McpServerChanged", {
      server: Schema.String,
      state: Schema.Literal("starting", "ready", "reconnecting", "failed", "closed"),
      /** Names of its tools; present when it is ready. */
      tools: Schema.optional(Schema.Array(Schema.String)),
      /** A sentence without its subject: why it cannot be used, or what of it is left out. */
      reason: Schema.optional(Schema.String)
    }),
    // job: a command that goes on beside the turns
    event("JobStarted", {
      jobId: Schema.String,
      /** The call that started it. */
      toolCallId: ToolCallId,
      command: Schema.String
    }),
    event("JobEnded", {
      jobId: Schema.String,
      command: Schema.String,
      /** Why: its command exited, a person or agent stopped it, its time was up, or its session ended. */
      reason: JobEndReason,
      /** Absent when a signal ended it, or when it never ran. */
      exitCode: Schema.optional(Schema.Number),
      signal: Schema.optional(Schema.String),
      /** The agent path, or the person, that stopped it. */
      by: Schema.optional(Schema.String),
      /** Milliseconds from its start. */
      duration: Schema.Number
    }),
    // interaction
    event("InteractionRequested", {
      requestId: RequestId,
      kind: Schema.String,
      summary: Schema.String,
      /** Present if the request belongs to a tool call. */
      toolCallId: Schema.optional(ToolCallId)
    }),
    event("QuestionDisplayed", { requestId: RequestId, index: Schema.Number, total: Schema.Number }),
    event("QuestionAnswered", { requestId: RequestId, index: Schema.Number, summary: Schema.String }),
    event("InteractionAnswered", {
      ...settled,
      status: Schema.Literal("answered"),
      /** The encoded answer; absent for `Auth.*`. */
      value: Schema.optional(Schema.Unknown),
      /** The author of the answer, or all of them if several people had to agree. */
      by: Schema.String,
      how: Schema.String,
      /** The votes, if several people had to agree. */
      votes: Schema.optional(Schema.Array(Vote))
    }),
    /** One of several people who must agree has answered, and the vote is stored. */
    event("InteractionVoted", {
      ...settled,
      ...Vote.fields,
      /** The missing people, such as `1 more of: ops`. The vote that settles the request has none. */
      missing: Schema.optional(Schema.String)
    }),
    event("InteractionCancelled", { ...settled, by: Schema.optional(Schema.String) }),
    event("InteractionTimedOut", { ...settled, by: Schema.String }),
    event("InteractionUnavailable", { ...settled, reason: Schema.String }),
    event("InteractorFailed", { requestId: RequestId, interactor: Schema.String, reason: Schema.String }),
    event("LateAnswer", { requestId: Schema.String, by: Schema.String, winner: Schema.optional(Schema.String) }),
    // permission
    event("PermissionResolved", {
      toolCallId: ToolCallId,
      tool: Schema.String,
      granted: Schema.Boolean,
      method: PermissionMethod,
      /** The rule or sentence that decided. */
      reason: Schema.String,
      /** Present if a question was asked. */
      requestId: Schema.optional(RequestId),
      /** The author of the answer, if a person or a model answered. */
      by: Schema.optional(Schema.String),
      /** `model` if a model answered; see `Interactor.How`. Absent if a person or nobody answered. */
      how: Schema.optional(Schema.String),
      /** Present where several had to agree: what each of them said. */
      votes: Schema.optional(Schema.Array(Vote)),
      edited: Schema.optional(Schema.Boolean),
      /**
       * How an allowed command runs: `confined`; `reading` (confined, and it can change nothing); `network` (confined, with the network); `left` (outside of the sandbox);
       * `open` (this machine has no sandbox).
       */
      sandbox: Schema.optional(Schema.String)
    }),
    event("PermissionStatusChanged", {
      /** `ask`, `plan`, `deny` or `allow`. */
      mode: Schema.String,
      /** The mode before; present when it changed. */
      before: Schema.optional(Schema.String),
      suspension: Schema.optional(Schema.String)
    }),
    event("GrantMinted", { stageExecutionId: Schema.String, attempt: Schema.Number, tool: Schema.String }),
    event("GrantConsumed", { stageExecutionId: Schema.String, attempt: Schema.Number, tool: Schema.String }),
    event("SubagentEnvelopeApproved", { subagentId: Schema.String, note: Schema.optional(Schema.String) }),
    event("SubagentEnvelopeDenied", { subagentId: Schema.String, note: Schema.optional(Schema.String) }),
    // interjection
    event("UserInterjected", {
      messageId: MessageId,
      message: Schema.String,
      targetAgent: Schema.String,
      /** The tool call under whose child the message went, or `root`. */
      parentId: Schema.String,
      attachments: attachments()
    }),
    event("InterjectionAcknowledged", { messageId: MessageId, step: Schema.Number }),
    // compaction
    event("CompactionStarted", {
      reason: Schema.String,
      tokens: Schema.Number,
      /** The event is not shown to people. */
      quiet: Schema.optional(Schema.Boolean)
    }),
    event("CompactionEnded", {
      reason: Schema.String,
      /** Messages that were removed or cut; 0 when nothing changed. */
      removed: Schema.Number,
      tokens: Schema.Number,
      /** Tokens of the model call that wrote a summary. */
      usage: Schema.optional(Usage),
      quiet: Schema.optional(Schema.Boolean)
    }),
    // observers
    event("Lagged", { missed: Schema.Number })
  )
)

/**
 * One event.
 *
 * How the events of other systems map: `thinking_start/content/end` are `BlockStarted`, `ThinkingDelta`, `BlockEnded`,
 * `message_*` the same for text; `tool_call_start/content/end` are `ToolArgumentsStarted`, `ToolArgumentsDelta` and
 * `ToolCallProposed`;
 * `tool_call` is `ToolCallStarted`; `tool_result(_error)` is `ToolCallEnded` by outcome; `no_tool_call` is a
 * `ModelCallEnded` with finish reason `stop`; `api_call_start/end` and `token_usage` are `ModelCallStarted` and
 * `ModelCallEnded`; `update_busy` is `AgentStatusChanged`; `turn_end` is `TurnEnded`; `error` is `AgentError`;
 * `tool_approval_request/granted/rejected/timeout` are `InteractionRequested` and `PermissionResolved` by method;
 * `command_execution_*` and `command_output` are `ToolCallStarted`, `ToolOutput` and `ToolCallEnded` by outcome;
 * `context_summarization_*` are `CompactionStarted`, `CompactionEnded` and, on failure, `AgentError`; `tools_update` is
 * `McpServerChanged`. `notes_data` does not apply (no notes store).
 * `JobStarted` and `JobEnded` have no counterpart. Of a UI's lifecycle hooks,
 * `agent_created`, `agent_status_changed` and `agent_completed` keep their names, `agent_output` is `TextDelta`,
 * `tool_call_start/end` are `ToolCallStarted` and `ToolCallEnded`, `turn_completed` is `TurnEnded`, and
 * `context_updated` is the context in `ModelCallEnded`.
 *
 * @since 0.1.0
 * @category schemas
 */
export type AgentEvent = typeof AgentEvent.Type

/**
 * An event before it is stamped with time and origin.
 *
 * @since 0.1.0
 * @category models
 */
export type Body = AgentEvent extends infer E ? (E extends AgentEvent ? Omit<E, keyof Stamp> : never) : never

/**
 * The fields of every event: time, session, agent and turn. `at` is in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface Stamp {
  readonly at: number
  readonly sessionId: SessionId
  readonly agent: string
  readonly correlationId?: CorrelationId | undefined
  /** Its position in the journal, from 1; see `Agent.events`. */
  readonly position?: number | undefined
}

/**
 * The event of a kind: `EventOf<"TurnEnded">`.
 *
 * @since 0.1.0
 * @category models
 */
export type EventOf<Tag extends AgentEvent["_tag"]> = Extract<AgentEvent, { readonly _tag: Tag }>

/**
 * Completes an event body with the stamp: time and origin.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (stamp: Stamp, body: Body): AgentEvent => {
  const { at, sessionId, agent, correlationId } = stamp
  // The spread comes last: members added behind a spread give each object a shape of its own, at ten times the price.
  return correlationId === undefined
    ? { at, sessionId, agent, ...body }
    : { at, sessionId, agent, correlationId, ...body }
}
