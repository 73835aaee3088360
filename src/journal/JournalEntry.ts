/**
 * The entries of a session's journal, from which it is resumed after its process has died.
 *
 * ```
 *  SessionOpened ─► MessageReceived ─► MessageTaken ─► AssistantAppended ────────────────────────► TurnEnded
 *                        │                 ▲  │                                                       ▲
 *                 MessageWithdrawn         │  └─► CallsProposed ─► per call, in any order: ───┐       │
 *                                          │        CallDecided ─► ToolStarted ─► ToolEnded   │       │
 *                                          └──────────────────── ResultsAppended ◄────────────┘───────┘
 * ```
 *
 * An entry records what has happened. The exception is `ToolStarted`, which is written before the tool may have an
 * effect: a call with a start and no end may have run, or not. Writers mask secrets first; answers to `Auth.*` requests
 * are never written.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Lazy from "../core/Lazy.js"
import type { Decision } from "../audit/AuditRecord.js"
import { Attachment, digestIn } from "../core/Attachment.js"
import * as Digest from "../core/Digest.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import { CorrelationId, MessageId, RequestId, SessionId, ToolCallId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import { ToolOutcome } from "../core/ToolOutcome.js"
import { PermissionMethod, Usage } from "../event/AgentEvent.js"
import { TurnEnd } from "../event/TurnEnd.js"
import * as Interaction from "../interaction/Interaction.js"
import { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as PromptJson from "../conversation/PromptJson.js"

/**
 * Version of the entries. A journal names its version; a newer one is not read.
 *
 * @since 0.1.0
 * @category constants
 */
export const version = 1

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * A message of the inbox.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Received = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    id: MessageId,
    source: Schema.Literal("user", "parent", "child", "system"),
    delivery: Schema.Literal("steer", "queue", "along"),
    text: Schema.String,
    /** Present on words with files: the words and the files in their order. */
    parts: Schema.optional(
      Schema.Array(
        Schema.Union(
          Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
          Schema.Struct({ type: Schema.Literal("file"), file: Attachment })
        )
      )
    ),
    /** Milliseconds since the epoch. */
    at: Schema.Number,
    /** Present on words that came while the agent worked. */
    interjection: Schema.optional(Schema.Struct({ parentId: Schema.String }))
  })
)

/**
 * One call of a batch: the arguments as the model wrote them.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Proposed = Schema.Struct({ id: ToolCallId, name: Schema.String, params: Schema.Unknown })

/**
 * The permissions that people gave to a tree of sessions at prompts.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Permissions = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    allow: Schema.Array(Schema.String),
    deny: Schema.Array(Schema.String),
    /** The mode, if a person or program chose one. In plan mode, the mode before it. */
    default: Schema.optional(Schema.Literal("allow", "deny", "ask")),
    /** It is in plan mode. */
    plan: Schema.optional(Schema.Literal(true)),
    /** Digests of the allowed definitions of servers' tools, by name. */
    definitions: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String })),
    /** Everything is allowed until resumed. */
    all: Schema.Boolean,
    /** Sessions that may do everything until their turn ends. */
    turn: Schema.Array(SessionId),
    /** Sessions that may do everything until they are idle. */
    idle: Schema.Array(SessionId),
    /** Present when entries that were remembered by name differ from what a person wrote. */
    told: Schema.optional(Schema.Literal(true))
  })
)
export type Permissions = typeof Permissions.Type

/**
 * The parent of a fork, and the counters that continue from the parent's subagents.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ForkOf = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    rootSessionId: SessionId,
    /** The last turn that was taken; 0: none. */
    turn: Schema.Number,
    /** The last entry that was taken; 0: none. */
    entry: Schema.Number,
    /** The highest number of a subagent. */
    subagents: Schema.Number,
    /** The usage of subagents, call by call. */
    spent: Schema.Array(
      Schema.Struct({ sessionId: SessionId, agent: Schema.String, model: Schema.String, usage: Usage })
    )
  })
)
export type ForkOf = typeof ForkOf.Type

/**
 * How much a model thinks before it answers.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Thinking = /* @__PURE__ */ Lazy.schema(() => Schema.Literal("low", "medium", "high"))
export type Thinking = typeof Thinking.Type

/**
 * The first entry of every session of a tree.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionOpened = /* @__PURE__ */ Lazy.schema(() =>
  Schema.TaggedStruct("SessionOpened", {
    /** Version of the following entries. */
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
    /** The model's reference. */
    model: Schema.String,
    /** Chosen for this session. Default: what settings say. */
    thinking: Schema.optional(Thinking),
    /** SHA-256 of the instructions, to detect changes. */
    instructions: Schema.String,
    /** For a root: the real path of its workspace, if it has one. It is resumed only there. */
    workspace: Schema.optional(Schema.String),
    /** For a root that was forked. */
    forkOf: Schema.optional(ForkOf),
    maxSteps: Schema.optional(Schema.Number),
    /** For a child: the data to make it again. */
    child: Schema.optional(
      Schema.Struct({
        name: Schema.String,
        /** Names. */
        tools: Schema.Array(Schema.String),
        instructions: Schema.String,
        /** Names of the tools it may use without asking, for its life. */
        allowed: Schema.optional(Schema.Array(Schema.String)),
        /** It stays after its report. Absent in older journals: it stays until another one needs its room. */
        keep: Schema.optional(Schema.Boolean),
        settings: Schema.Record({
          key: Schema.String,
          value: Schema.Record({ key: Schema.String, value: Schema.Unknown })
        })
      })
    )
  })
)
export type SessionOpened = typeof SessionOpened.Type

/**
 * The stored form of an entry, by its `_tag`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const JournalEntry = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(
    SessionOpened,
    // messages
    Schema.TaggedStruct("MessageReceived", { message: Received }),
    /**
     * The messages entered the history in this order: they began a turn, or a running turn read them before a model call.
     */
    Schema.TaggedStruct("MessageTaken", {
      messageIds: Schema.Array(MessageId),
      correlationId: CorrelationId,
      /** The first model call that sees them; 1 for a turn's beginning. */
      step: Schema.Number
    }),
    Schema.TaggedStruct("MessageWithdrawn", { messageId: MessageId }),
    // tasks of a child
    /**
     * The message is a task. Its end is reported to the parent: as the result of the parent's call, else as a message.
     */
    Schema.TaggedStruct("TaskGiven", {
      messageId: MessageId,
      toolCallId: Schema.optional(ToolCallId),
      /** It was requested with an authority that ends with the process, such as a stage. */
      bound: Schema.optional(Schema.Literal(true))
    }),
    /** The message with the task's end was filed with the parent. */
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
      /** The tokens of the model's context window, when known. */
      window: Schema.optional(Schema.Number),
      remark: Schema.optional(Schema.String)
    }),
    /** A model call that is no step of a turn: a summary, or an answer for a parent. */
    Schema.TaggedStruct("TokensSpent", {
      model: Schema.String,
      usage: Usage,
      kind: Schema.Literal("call", "summary")
    }),
    Schema.TaggedStruct("TurnEnded", { correlationId: CorrelationId, end: TurnEnd }),
    // calls
    /** The model's reply with calls; it enters the history together with their results. */
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
      /** The rule or sentence of the decision. */
      reason: Schema.String,
      /** Present when a person was asked. */
      requestId: Schema.optional(RequestId),
      /** Present when a model answered, and no person. */
      how: Schema.optional(Schema.Literal("model")),
      /** The people who allowed exactly this call, if a rule reserved the call. */
      voters: Schema.optional(
        Schema.Array(Schema.Struct({ by: Schema.String, roles: Schema.optional(Schema.Array(Schema.String)) }))
      ),
      /** The arguments as a person edited them. */
      params: Schema.optional(Schema.Unknown)
    }),
    /** Durable before the tool begins. */
    Schema.TaggedStruct("ToolStarted", { toolCallId: ToolCallId, tool: Schema.String, params: Schema.Unknown }),
    Schema.TaggedStruct("ToolEnded", { toolCallId: ToolCallId, outcome: ToolOutcome, result: Schema.Unknown }),
    /** The batch is complete: the proposal and all results entered the history. */
    Schema.TaggedStruct("ResultsAppended", { correlationId: CorrelationId }),
    // interactions
    Schema.TaggedStruct("InteractionRaised", {
      request: InteractionRequest,
      /** The asking call, if any. */
      toolCallId: Schema.optional(ToolCallId),
      /** That call needs it to go on with the answer. The person who answers does not see it. */
      continuation: Schema.optional(Schema.String)
    }),
    Schema.TaggedStruct("InteractionSettled", {
      requestId: RequestId,
      status: Schema.Literal("answered", "cancelled", "timed_out", "unavailable"),
      /** Encoded; absent for `Auth.*`. */
      answer: Schema.optional(Schema.Unknown),
      by: Schema.optional(Schema.String),
      /** Present when an opted-in rule decided, and no person. */
      how: Schema.optional(Schema.Literal("timeout", "yolo"))
    }),
    /** One person's answer to a request on which several have to agree; durable before they are told that it counts. */
    Schema.TaggedStruct("VoteGiven", {
      requestId: RequestId,
      by: Schema.String,
      /** Those that the channel knew of. */
      roles: Schema.optional(Schema.Array(Schema.String)),
      answer: Interaction.ApproveAnswer,
      /** SHA-256 of the tool and the arguments of the vote; lower-case hexadecimal. */
      digest: Schema.String
    }),
    // state
    Schema.TaggedStruct("PermissionsChanged", { permissions: Permissions }),
    /** The model's reference, from the next model call on and when the session is resumed. */
    Schema.TaggedStruct("ModelChosen", { model: Schema.String, thinking: Schema.optional(Thinking) }),
    /** The history, except the system message, was replaced with this: it was shortened, or cleared. */
    Schema.TaggedStruct("HistoryReplaced", { reason: Schema.String, messages: Schema.Array(PromptJson.Message) }),
    /** Another process resumes it here; with a workspace when a person moved it there. */
    Schema.TaggedStruct("SessionResumed", { workspace: Schema.optional(Schema.String) }),
    /** The session ended by itself; nothing is left to resume. */
    Schema.TaggedStruct("SessionClosed", { reason: Schema.optional(Schema.String) })
  )
)

/**
 * One entry. Parts and messages are live objects, which a memory store shares with the history.
 *
 * @since 0.1.0
 * @category schemas
 */
export type JournalEntry = typeof JournalEntry.Type

/**
 * The entry of a kind: `EntryOf<"ToolEnded">`.
 *
 * @since 0.1.0
 * @category models
 */
export type EntryOf<Tag extends JournalEntry["_tag"]> = Extract<JournalEntry, { readonly _tag: Tag }>

/**
 * An entry, and the session of the tree to which it belongs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Draft {
  readonly sessionId: SessionId
  readonly entry: JournalEntry
  /** The time of an entry from another journal, in milliseconds since the epoch; default: now. */
  readonly at?: number | undefined
  /**
   * What the audit has of it and of those behind it; only for a lease that keeps the audit.
   *
   * @internal
   */
  readonly decisions?: ReadonlyArray<Decision> | undefined
}

/**
 * An entry as it stands in the journal of a tree.
 *
 * @since 0.1.0
 * @category models
 */
export interface Written extends Draft {
  /** Sequence number in the whole tree, 1-based: it keeps the order between parent and children. */
  readonly seq: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The answer to a request, and by whom. The answer of a secret kind is left out.
 *
 * @since 0.1.0
 * @category constructors
 */
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

/**
 * The first entry of a session. `model` is the model's reference.
 *
 * @since 0.1.0
 * @category constructors
 */
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

/**
 * The number of the subagent that an entry is the first to name, else 0. Such numbers are given once in a tree.
 *
 * @internal
 */
export const subagentIn = (entry: JournalEntry): number => {
  const id =
    entry._tag === "SessionOpened"
      ? entry.subagentId
      : // Requested, and perhaps not made yet.
        entry._tag === "InteractionRaised" && entry.request.interaction._tag === "approveSubagentEnvelope"
        ? entry.request.interaction.subagentId
        : undefined
  return Number(/^subagent_(\d+)$/.exec(id ?? "")?.[1] ?? 0)
}

/**
 * The digests of the content that these entries refer to, each once. A store keeps it as long as the entries.
 *
 * @since 0.1.0
 * @category getters
 */
export const contentsIn = (entries: Iterable<JournalEntry>): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const entry of entries) {
    if (entry._tag === "MessageReceived") {
      for (const part of entry.message.parts ?? []) if (part.type === "file") found.add(part.file.sha256)
    } else if (entry._tag === "HistoryReplaced") {
      for (const { content } of entry.messages) {
        if (typeof content === "string") continue
        for (const part of content) {
          const digest = part.type === "file" && part.data instanceof URL ? digestIn(part.data) : undefined
          if (digest !== undefined) found.add(digest)
        }
      }
    }
  }
  return [...found]
}

/**
 * Encodes an entry as JSON-like data; a string on the left says why it cannot be encoded.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encode = (entry: JournalEntry): Either.Either<unknown, string> =>
  Either.mapLeft(encodeEntry(entry), misfit)

/**
 * Decodes JSON-like data; a string on the left says why this version cannot read it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (input: unknown): Either.Either<JournalEntry, string> =>
  Either.flatMap(
    Either.mapLeft(decodeEntry(input), (issue) => unknownKind(input) ?? misfit(issue)),
    (entry) =>
      entry._tag === "SessionOpened" && entry.version > version
        ? Either.left(`it was written with version ${entry.version} of the journal; this program reads ${version}`)
        : Either.right(entry)
  )

/**
 * The first thing that does not fit, in few words: types are pages long.
 *
 * @internal
 */
export const misfit = (issue: ParseResult.ParseIssue): string => {
  const [{ message, path } = { message: "", path: [] }] = ParseResult.ArrayFormatter.formatIssueSync(issue)
  const place = path.length === 0 ? "it" : path.join(".")
  const [, expected = "", actual = ""] = /^Expected (.+), actual (.+)$/s.exec(message) ?? []
  const known = expected.replace(/ & Brand<"[^"]*">/g, "")
  if (message === "is missing") return `${place} is missing`
  return known === "" || known.length > longestType
    ? `${place} has not the form that an entry has there`
    : `${place} is ${UntrustedJson.echo(actual.replace(/\s+/g, " "))}, and ${known} is expected`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const longestType = 60

/**
 * A later contract has more kinds, and a later version more entries; what a question of such a kind allows or asks, and
 * what follows from such an entry, nobody here can tell.
 */
const unknownKind = (input: unknown): string | undefined => {
  const Tagged = Schema.Struct({ _tag: Schema.String })
  const isTagged = Schema.is(Tagged)
  const isRaised = Schema.is(
    Schema.Struct({ _tag: Schema.Literal("InteractionRaised"), request: Schema.Struct({ interaction: Tagged }) })
  )
  if (isTagged(input) && !isKnown(input._tag)) {
    const tag = JSON.stringify(UntrustedJson.echo(input._tag))
    return `it holds an entry of the kind ${tag}, which a later version wrote; open it with that`
  }
  if (!isRaised(input) || Interaction.isKind(input.request.interaction._tag)) return undefined
  const kind = JSON.stringify(UntrustedJson.echo(input.request.interaction._tag))
  return `it holds a question of the kind ${kind}, which a later version asked; this program knows the kinds of contract ${Interaction.contractVersion}`
}

/** The kinds of entries that this version knows. */
const isKnown = Lazy.make(() => {
  const known = JournalEntry.members.flatMap(({ ast }) => SchemaAST.getPropertySignatures(ast))
  const names: ReadonlySet<unknown> = new Set(
    known.flatMap(({ name, type }) => (name === "_tag" && SchemaAST.isLiteral(type) ? [type.literal] : []))
  )
  return (tag: string) => names.has(tag)
})

const encodeEntry = Lazy.make(() => ParseResult.encodeEither(JournalEntry))
const decodeEntry = Lazy.make(() => ParseResult.decodeUnknownEither(JournalEntry))
