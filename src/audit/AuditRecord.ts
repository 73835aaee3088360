/**
 * The audit's record of a decision: who decided what, when, and by which rule. It never holds arguments or answers: of
 * a call's arguments it keeps the digest, of an answer the fact that there was one.
 *
 * An {@link AuditEntry} is handed in by the code that decides; an {@link AuditRecord} is the line in the trail.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import { CorrelationId, RequestId, SessionId, ToolCallId } from "../core/Id.js"
import * as Digest from "../core/Digest.js"
import type { Origin } from "../core/Origin.js"
import type { Redactor } from "../core/Redaction.js"
import type { PermissionMethod } from "../event/AgentEvent.js"

/**
 * What kind of decision: a tool call, a question, authority for a stage or a subagent, trust in a directory, what a
 * person did to a session itself.
 */
export const AuditClass = Schema.Literal("permission", "interaction", "grant", "envelope", "trust", "session")
export type AuditClass = typeof AuditClass.Type

/**
 * Denied, withdrawn, not answered in time, and nobody to ask: these stay different.
 *
 * - `edited`: the answer changed the arguments of the call. It decided nothing yet.
 * - `voted`: one of several people who have to agree. It decided nothing yet.
 * - `left_open`: the process ended first. The next one goes on with the question.
 * - `done`: nobody had to be asked.
 */
export const AuditOutcome = Schema.Literal(
  "granted",
  "denied",
  "edited",
  "voted",
  "left_open",
  "answered",
  "cancelled",
  "timed_out",
  "unavailable",
  "done"
)
export type AuditOutcome = typeof AuditOutcome.Type

const described = () => ({
  class: AuditClass,
  /** The interaction kind for such decisions, also when a rule decided and nobody was asked. */
  kind: Schema.String,
  outcome: AuditOutcome,
  sessionId: SessionId,
  /** Agent path such as `main/code_reviewer`. */
  agent: Schema.String,
  correlationId: Schema.optional(CorrelationId),
  /** Present when somebody was asked. */
  requestId: Schema.optional(RequestId),
  /** How it was decided; a `PermissionMethod` for permissions. */
  method: Schema.optional(Schema.String),
  /** The rule or sentence that decided. */
  reason: Schema.optional(Schema.String),
  /** Id of the interactor, or path of the agent, that answered. */
  by: Schema.optional(Schema.String),
  /** Whether `by` answered, or a rule did in its place: `Interactor.How`. */
  how: Schema.optional(Schema.String),
  /** Present where several had to agree: what each of them said. */
  votes: Schema.optional(Schema.Array(Schema.Struct({ by: Schema.String, vote: Schema.String }))),
  /** Milliseconds since the epoch; present when somebody was asked. */
  askedAt: Schema.optional(Schema.Number),
  /** Milliseconds since the epoch. */
  answeredAt: Schema.Number,
  /**
   * Milliseconds since the epoch. Present when a later process took the answer from the journal. The process before it
   * may have recorded the same answer.
   */
  countedAt: Schema.optional(Schema.Number),
  /** The request about the changed arguments. Present when an edit led to one. */
  leadsTo: Schema.optional(RequestId),
  tool: Schema.optional(Schema.String),
  /** How a command that was allowed runs: `confined`, `network`, `left` or `open`. */
  sandbox: Schema.optional(Schema.String),
  toolCallId: Schema.optional(ToolCallId)
})

const Description = /* @__PURE__ */ Lazy.schema(() => Schema.Struct(described()))

/**
 * One decision, as the deciding code hands it in.
 *
 * @since 0.1.0
 * @category models
 */
export interface AuditEntry extends Schema.Schema.Type<typeof Description> {
  /** The root session of the tree that decided: each root session has one trail. */
  readonly rootSessionId: SessionId
  /** Encoded arguments of the tool call. Only their digest is kept. */
  readonly args?: unknown
  /** Encoded arguments that an edit put in their place. Only their digest is kept. */
  readonly newArgs?: unknown
  /** Present in the first entry of a fork: the first record of its trail has it. */
  readonly forkOf?: ForkOf | undefined
}

const Parent = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    sessionId: SessionId,
    /** The last turn that the fork has of it, counted from 1; 0 for none. */
    turn: Schema.Number,
    /** The last entry of its journal that counts; 0 where there is no journal. */
    entry: Schema.Number
  })
)

/**
 * Where a fork comes from.
 *
 * @since 0.1.0
 * @category models
 */
export type ForkOf = typeof Parent.Type

/** The first record of a trail. */
export const Opened = /* @__PURE__ */ Lazy.schema(() =>
  Schema.TaggedStruct("Opened", {
    /** Version of this format. */
    version: Schema.Number,
    /** The root session. */
    sessionId: SessionId,
    at: Schema.Number,
    /** Identifies the key; absent when the trail is chained without one. */
    key: Schema.optional(Schema.String),
    /** Present in the trail of a fork. */
    forkOf: Schema.optional(Parent)
  })
)

/** The trail goes on: in a later process, or in the same one, which had let go of it. */
export const Reopened = /* @__PURE__ */ Lazy.schema(() =>
  Schema.TaggedStruct("Reopened", {
    at: Schema.Number,
    /** Records just before this one that no head had counted. */
    unsealed: Schema.Number,
    /** Bytes of a half-written record that were cut off. */
    torn: Schema.Number
  })
)

/**
 * One decision as it is recorded. Of the arguments it keeps the digest.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Decided = /* @__PURE__ */ Lazy.schema(() =>
  Schema.TaggedStruct("Decided", {
    ...described(),
    /** SHA-256 of the arguments' canonical JSON. With a request: of those that the request showed. */
    argsDigest: Schema.optional(Schema.String),
    /** The same, of the arguments that an edit put in their place. */
    newArgsDigest: Schema.optional(Schema.String)
  })
)
export type Decided = typeof Decided.Type

/** A decision on its way into the trail of its root session. */
export interface Decision {
  readonly decided: Decided
  /** Of a fork's first decision: the first record of the trail has it. */
  readonly forkOf?: ForkOf | undefined
}

/** What a record says. */
export const Content = /* @__PURE__ */ Lazy.schema(() => Schema.Union(Opened, Reopened, Decided))
export type Content = typeof Content.Type

const chained = {
  /** 1-based; the same as its line. */
  seq: Schema.Number,
  /** `hash` of the record before. */
  prev: Schema.String,
  hash: Schema.String
}

/** A record's content, and its place in the chain. */
export const AuditRecord = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(
    Schema.Struct({ ...Opened.fields, ...chained }),
    Schema.Struct({ ...Reopened.fields, ...chained }),
    Schema.Struct({ ...Decided.fields, ...chained })
  )
)
export type AuditRecord = typeof AuditRecord.Type

/** The reason of what is left open. */
export const leftOpen = "the process ended before it was decided; the next process goes on with it"

/** Version of the record format. */
export const version = 1

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

type Placed = "agent" | "class" | "correlationId" | "kind" | "rootSessionId" | "sessionId"

/** What is recorded of a tool call beside its place. */
export interface OnCall extends Omit<AuditEntry, Placed | "outcome"> {
  readonly granted: boolean
  readonly method: PermissionMethod | undefined
  /** Default: that of the decision. */
  readonly outcome?: AuditOutcome | undefined
}

/** The entry for a tool call that was allowed or refused, or for an answer that decided nothing yet, as `origin`. */
export const permission = (origin: Origin, { granted, ...decision }: OnCall): AuditEntry => {
  return {
    class: "permission",
    kind: "Approve",
    rootSessionId: origin.rootSessionId,
    sessionId: origin.sessionId,
    agent: origin.agent,
    correlationId: origin.correlationId,
    ...decision,
    outcome: decision.outcome ?? (granted ? "granted" : ((decision.method && refusals[decision.method]) ?? "denied"))
  }
}

/** The part of an entry that the trail keeps: texts masked and cut, the arguments as their digest. */
export const decided = (entry: AuditEntry, redactor: Redactor): Decided => {
  // A masked id identifies nothing any more, but still fills the place of an id.
  const told = <Text extends string>(text: Text): Text => clip(redactor.text(text)) as Text
  const toldOf = <Text extends string>(text: Text | undefined): Text | undefined =>
    text === undefined ? undefined : told(text)
  return {
    _tag: "Decided",
    class: entry.class,
    kind: told(entry.kind),
    outcome: entry.outcome,
    sessionId: told(entry.sessionId),
    agent: told(entry.agent),
    correlationId: toldOf(entry.correlationId),
    requestId: toldOf(entry.requestId),
    method: toldOf(entry.method),
    reason: toldOf(entry.reason),
    by: toldOf(entry.by),
    how: toldOf(entry.how),
    ...(entry.votes && { votes: entry.votes.map(({ by, vote }) => ({ by: told(by), vote: told(vote) })) }),
    askedAt: entry.askedAt,
    answeredAt: entry.answeredAt,
    countedAt: entry.countedAt,
    leadsTo: toldOf(entry.leadsTo),
    tool: toldOf(entry.tool),
    sandbox: toldOf(entry.sandbox),
    toolCallId: toldOf(entry.toolCallId),
    argsDigest: entry.args === undefined ? undefined : Digest.digest(entry.args),
    newArgsDigest: entry.newArgs === undefined ? undefined : Digest.digest(entry.newArgs)
  }
}

/** As {@link decided}, of which a left says why there is no such record. */
export const decision = (entry: AuditEntry, redactor: Redactor): Either.Either<Decision, string> =>
  Either.mapBoth(
    Either.try(() => decided(entry, redactor)),
    {
      // Arguments without JSON.
      onLeft: () => `the arguments of ${entry.tool ?? entry.kind} have no digest`,
      onRight: (decided) => ({ decided, ...(entry.forkOf && { forkOf: entry.forkOf }) })
    }
  )

/** The first record of a trail. */
export const opened = (
  sessionId: SessionId,
  at: number,
  key: string | undefined,
  forkOf: ForkOf | undefined
): Content => ({
  _tag: "Opened",
  version,
  sessionId,
  at,
  ...(key === undefined ? {} : { key }),
  ...(forkOf === undefined ? {} : { forkOf })
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const refusals: { readonly [Method in PermissionMethod]?: AuditOutcome } = {
  cancelled: "cancelled",
  timeout: "timed_out",
  unavailable: "unavailable",
  no_channel: "unavailable"
}

/** Longest text in a record, in characters. Cut after masking, so that no part of a secret is left at the cut. */
const longest = 4_000

const clip = (text: string): string => (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`)
