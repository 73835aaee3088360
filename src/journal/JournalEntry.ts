/**
 * What is written down about a session, so that it can go on after its process has died.
 *
 * ```
 *  SessionOpened ─► MessageReceived ─► MessageTaken ─► AssistantAppended ────────────────────────► TurnEnded
 *                        │                 ▲  │                                                       ▲
 *                 MessageWithdrawn         │  └─► CallsProposed ─► per call, in any order: ───┐       │
 *                                          │        CallDecided ─► ToolStarted ─► ToolEnded   │       │
 *                                          └──────────────────── ResultsAppended ◄────────────┘───────┘
 * ```
 *
 * An entry says what has happened already, except `ToolStarted`, which is written before the tool may have an effect: a
 * call that has started and has no end may have run, or not. Whoever writes masks secrets first; what answers an `Auth.*`
 * request is never written.
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Lazy from "../internal/Lazy.js"
import * as Digest from "../core/Digest.js"
import { CorrelationId, MessageId, RequestId, SessionId, ToolCallId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import { ToolOutcome } from "../core/ToolOutcome.js"
import { PermissionMethod, Usage } from "../event/AgentEvent.js"
import { TurnEnd } from "../event/TurnEnd.js"
import * as Interaction from "../interaction/Interaction.js"
import { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as PromptJson from "../conversation/PromptJson.js"

/** Of the entries. A journal names the one it was written with; a newer one is not read. */
export const version = 1

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** A message as it came to the inbox. */
export const Received = Schema.Struct({
  id: MessageId,
  source: Schema.Literal("user", "parent", "child", "system"),
  delivery: Schema.Literal("steer", "queue"),
  text: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Number,
  /** Present on words that came while the agent worked. */
  interjection: Schema.optional(Schema.Struct({ parentId: Schema.String }))
})

/** One call of a batch: the arguments as the model wrote them. */
export const Proposed = Schema.Struct({ id: ToolCallId, name: Schema.String, params: Schema.Unknown })

/** What a tree of sessions was told at prompts. */
export const Permissions = Schema.Struct({
  allow: Schema.Array(Schema.String),
  deny: Schema.Array(Schema.String),
  default: Schema.optional(Schema.Literal("allow", "deny", "ask")),
  /** Everything is allowed until resumed. */
  all: Schema.Boolean,
  /** Sessions that may do everything until their turn ends. */
  turn: Schema.Array(SessionId),
  /** Sessions that may do everything until they are idle. */
  idle: Schema.Array(SessionId),
  /** Entries that were remembered by name differ from what a person wrote. */
  told: Schema.optional(Schema.Literal(true))
})
export type Permissions = typeof Permissions.Type

/** The first entry of every session of a tree. */
export const SessionOpened = Schema.TaggedStruct("SessionOpened", {
  /** Of the entries that follow. */
  version: Schema.Int,
  sessionId: SessionId,
  rootSessionId: SessionId,
  /** Such as `main/code_reviewer`. */
  agent: Schema.String,
  /** 0 for a root. */
  depth: Schema.Number,
  parentSessionId: Schema.optional(SessionId),
  /** The call that made a child. */
  parentToolCallId: Schema.optional(ToolCallId),
  subagentId: Schema.optional(Schema.String),
  profile: Schema.optional(Schema.String),
  /** As it is named to choose it. */
  model: Schema.String,
  /** SHA-256 of the instructions: whether they are still the same. */
  instructions: Schema.String,
  /** Of a root: the real path of the workspace that it works in, where it has one. It goes on nowhere else. */
  workspace: Schema.optional(Schema.String),
  maxSteps: Schema.optional(Schema.Number),
  /** Of a child: what it takes to make it again. */
  child: Schema.optional(
    Schema.Struct({
      name: Schema.String,
      /** Names. */
      tools: Schema.Array(Schema.String),
      instructions: Schema.String,
      /** Names of the tools it may use without asking, for its life. */
      allowed: Schema.optional(Schema.Array(Schema.String)),
      settings: Schema.Record({
        key: Schema.String,
        value: Schema.Record({ key: Schema.String, value: Schema.Unknown })
      })
    })
  )
})
export type SessionOpened = typeof SessionOpened.Type

export const JournalEntry = Schema.Union(
  SessionOpened,
  // messages
  Schema.TaggedStruct("MessageReceived", { message: Received }),
  /** They entered the history, in this order: a turn began with them, or a running one read them before a model call. */
  Schema.TaggedStruct("MessageTaken", {
    messageIds: Schema.Array(MessageId),
    correlationId: CorrelationId,
    /** The model call that sees them first; 1 for a turn's beginning. */
    step: Schema.Number
  }),
  Schema.TaggedStruct("MessageWithdrawn", { messageId: MessageId }),
  // tasks of a child
  /** The words are a task: whoever gave it is told its end, by the result of a call of the parent's, else by a message. */
  Schema.TaggedStruct("TaskGiven", {
    messageId: MessageId,
    toolCallId: Schema.optional(ToolCallId),
    /** It was ordered with what does not outlive the process, such as a stage. */
    bound: Schema.optional(Schema.Literal(true))
  }),
  /** The message that tells the task's end is filed with the parent. */
  Schema.TaggedStruct("TaskTold", { messageId: MessageId }),
  // turns
  /** An answer without calls entered the history. */
  Schema.TaggedStruct("AssistantAppended", {
    content: Schema.Array(PromptJson.AssistantPart),
    /** The generation was stopped before its end. */
    partial: Schema.optional(Schema.Literal(true))
  }),
  Schema.TaggedStruct("UsageRecorded", {
    correlationId: CorrelationId,
    step: Schema.Number,
    model: Schema.String,
    finishReason: Schema.String,
    usage: Usage,
    remark: Schema.optional(Schema.String)
  }),
  Schema.TaggedStruct("TurnEnded", { correlationId: CorrelationId, end: TurnEnd }),
  // calls
  /** What the model said with its calls; it enters the history together with their results. */
  Schema.TaggedStruct("CallsProposed", {
    correlationId: CorrelationId,
    step: Schema.Number,
    content: Schema.Array(PromptJson.AssistantPart),
    calls: Schema.Array(Proposed)
  }),
  Schema.TaggedStruct("CallDecided", {
    toolCallId: ToolCallId,
    granted: Schema.Boolean,
    method: PermissionMethod,
    /** The rule or sentence that decided. */
    reason: Schema.String,
    /** Present when somebody was asked. */
    requestId: Schema.optional(RequestId),
    /** The arguments as a person edited them. */
    params: Schema.optional(Schema.Unknown)
  }),
  /** Written, and on the disk, before the tool begins. */
  Schema.TaggedStruct("ToolStarted", { toolCallId: ToolCallId, tool: Schema.String, params: Schema.Unknown }),
  Schema.TaggedStruct("ToolEnded", { toolCallId: ToolCallId, outcome: ToolOutcome, result: Schema.Unknown }),
  /** The batch is complete: what was proposed and all its results entered the history. */
  Schema.TaggedStruct("ResultsAppended", { correlationId: CorrelationId }),
  // interactions
  Schema.TaggedStruct("InteractionRaised", {
    request: InteractionRequest,
    /** The call that asks, when one does. */
    toolCallId: Schema.optional(ToolCallId)
  }),
  Schema.TaggedStruct("InteractionSettled", {
    requestId: RequestId,
    status: Schema.Literal("answered", "cancelled", "timed_out", "unavailable"),
    /** Encoded; absent for `Auth.*`. */
    answer: Schema.optional(Schema.Unknown),
    by: Schema.optional(Schema.String),
    /** Present when nobody decided, but a rule that somebody had opted for. */
    how: Schema.optional(Schema.Literal("timeout", "yolo"))
  }),
  // state
  Schema.TaggedStruct("PermissionsChanged", { permissions: Permissions }),
  /** The history but for the system message is this from now on: it was shortened, or cleared. */
  Schema.TaggedStruct("HistoryReplaced", { reason: Schema.String, messages: Schema.Array(PromptJson.Message) }),
  /** Another process goes on with it from here; in this workspace, when a person took it over for one. */
  Schema.TaggedStruct("SessionResumed", { workspace: Schema.optional(Schema.String) }),
  /** The session ended by itself; nothing is left to go on with. */
  Schema.TaggedStruct("SessionClosed", { reason: Schema.optional(Schema.String) })
)

/** One entry. Parts and messages are live ones, which a store in memory shares with the history. */
export type JournalEntry = typeof JournalEntry.Type

/** The entry of a kind: `EntryOf<"ToolEnded">`. */
export type EntryOf<Tag extends JournalEntry["_tag"]> = Extract<JournalEntry, { readonly _tag: Tag }>

/** An entry and the session of the tree that it is about. */
export interface Draft {
  readonly sessionId: SessionId
  readonly entry: JournalEntry
  /** When it was, of one that comes from another journal; else it is now. Milliseconds since the epoch. */
  readonly at?: number | undefined
}

/** An entry as it stands in the journal of a tree. */
export interface Written extends Draft {
  /** 1-based over the whole tree: how parent and children interleaved. */
  readonly seq: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** How a request was answered, by whom. What answers a secret kind is left out. */
export const answered = <I extends Interaction.Interaction>(
  { interaction, requestId }: InteractionRequest<I>,
  answer: Interaction.Answer<I>,
  by: string
): EntryOf<"InteractionSettled"> => ({
  _tag: "InteractionSettled",
  requestId,
  status: "answered",
  ...(Interaction.isSecret(interaction._tag) ? {} : { answer: Interaction.encodeAnswer(interaction, answer) }),
  by
})

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The first entry of a session. `model` is how the model is named to choose it. */
export const opening = (
  { agent, depth, rootSessionId, sessionId }: Origin.Origin,
  model: string,
  instructions: string
): SessionOpened => ({
  _tag: "SessionOpened",
  version,
  sessionId,
  rootSessionId,
  agent,
  depth,
  model,
  instructions: Digest.digest(instructions)
})

/** As JSON-like data; a string on the left says why the entry has no such form. */
export const encode = (entry: JournalEntry): Either.Either<unknown, string> =>
  Either.mapLeft(encodeEntry(entry), (error) => ParseResult.TreeFormatter.formatIssueSync(error))

/** From JSON-like data; a string on the left says why it is no entry that this version reads. */
export const decode = (input: unknown): Either.Either<JournalEntry, string> =>
  Either.flatMap(
    Either.mapLeft(decodeEntry(input), (error) => ParseResult.TreeFormatter.formatIssueSync(error)),
    (entry) =>
      entry._tag === "SessionOpened" && entry.version > version
        ? Either.left(`it was written with version ${entry.version} of the journal; this program reads ${version}`)
        : Either.right(entry)
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const encodeEntry = Lazy.make(() => ParseResult.encodeEither(JournalEntry))
const decodeEntry = Lazy.make(() => ParseResult.decodeUnknownEither(JournalEntry))
