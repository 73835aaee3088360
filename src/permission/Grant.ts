/**
 * Authority that a person gave before the rules: for one proposed call of a stage, or to one subagent for its life.
 *
 * A grant is bound to exactly one call, in exactly one attempt of one run of a stage:
 *
 * ```
 *  mint ──► granted ──consume (all five parts equal)──► spent
 *              └────────the attempt ends────────► expired
 * ```
 *
 * Each attempt holds its own grants in memory, so no grant crosses to another attempt, stage or process.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Digest from "../core/Digest.js"
import type { SessionId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import { EventBus } from "../event/EventBus.js"
import * as EventPublisher from "../event/EventPublisher.js"
import { ApproveSubagentEnvelope } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as Interactor from "../interaction/Interactor.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { Authority } from "./PermissionGate.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * One attempt of one run of a stage.
 *
 * @since 0.1.0
 * @category models
 */
export interface Attempt {
  /** Unique for every run of a stage. */
  readonly stageExecutionId: string
  /** 0-based. */
  readonly attempt: number
}

/**
 * The call, attempt or child that a grant is bound to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Binding extends Attempt {
  /** The proposed call. */
  readonly proposalId: string
  readonly tool: string
  /** Digest of the call's arguments as proposed; compared by equality only. */
  readonly argsDigest: string
}

/**
 * The grants of one attempt.
 *
 * @since 0.1.0
 * @category models
 */
export interface Grants {
  readonly attempt: Attempt
  /** Grants one call, once. Fails when the attempt has ended or is not this one. */
  readonly mint: (binding: Binding) => Effect.Effect<void, GrantExpired, EventBus>
  /** Spends the grant of exactly this call. Any failure leaves all grants unspent. */
  readonly consume: (
    binding: Binding
  ) => Effect.Effect<void, GrantNotFound | GrantAlreadyConsumed | GrantExpired, EventBus>
}

/**
 * The tools that a subagent wants, and what the approver is shown.
 *
 * @since 0.1.0
 * @category models
 */
export interface EnvelopeRequest {
  readonly subagentId: string
  readonly parentSessionId: SessionId
  /** The subagent's depth: 1 for a child of the root. */
  readonly depth: number
  /** Names of tools, as the model asked for them. */
  readonly tools: ReadonlyArray<string>
  /** Names of the parent's own tools. */
  readonly active: ReadonlyArray<string>
  /** The prompt's summary, secrets masked. */
  readonly promptSummary: string
  /** The model of the subagent. */
  readonly model: { readonly providerId: string; readonly modelId: string }
  /** Masks declared secrets and the shapes of tokens in notes of events and errors. Default: the shapes only. */
  readonly redactor?: Redaction.Redactor | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

const grantFields = {
  stageExecutionId: Schema.String,
  /** 0-based. */
  attempt: Schema.Number,
  proposalId: Schema.String,
  tool: Schema.String
}

/**
 * Exactly this call has no grant; a granted call may differ in its arguments only.
 *
 * @since 0.1.0
 * @category errors
 */
export class GrantNotFound extends Schema.TaggedError<GrantNotFound>("assent/permission/GrantNotFound")(
  "GrantNotFound",
  grantFields
) {
  override get message(): string {
    return `No grant covers exactly this call of ${this.tool} (${this.proposalId}); propose it again to be asked for one.`
  }
}

/**
 * The grant was for one call, and that call was made already.
 *
 * @since 0.1.0
 * @category errors
 */
export class GrantAlreadyConsumed extends Schema.TaggedError<GrantAlreadyConsumed>(
  "assent/permission/GrantAlreadyConsumed"
)("GrantAlreadyConsumed", grantFields) {
  override get message(): string {
    return `The grant for this call of ${this.tool} (${this.proposalId}) was used; propose it again to be asked for another.`
  }
}

/**
 * The attempt of the grant has ended, or is another one.
 *
 * @since 0.1.0
 * @category errors
 */
export class GrantExpired extends Schema.TaggedError<GrantExpired>("assent/permission/GrantExpired")(
  "GrantExpired",
  grantFields
) {
  override get message(): string {
    return `Attempt ${this.attempt + 1} of stage ${this.stageExecutionId} does not run; no grant for ${this.tool} holds any more.`
  }
}

/**
 * The request names tools that the parent does not have. It was not asked.
 *
 * @since 0.1.0
 * @category errors
 */
export class EnvelopeInvalid extends Schema.TaggedError<EnvelopeInvalid>("assent/permission/EnvelopeInvalid")(
  "EnvelopeInvalid",
  {
    /** The unknown names, as they were given. */
    unknown: Schema.Array(Schema.String),
    active: Schema.Array(Schema.String)
  }
) {
  override get message(): string {
    const active = this.active.length === 0 ? "You have none." : `You have: ${this.active.join(", ")}.`
    return `A subagent can only be given tools you have yourself, and you do not have ${this.unknown.join(", ")}. ${active}`
  }
}

/**
 * The subagent may not start with these tools: the request was denied, or nobody answered.
 *
 * @since 0.1.0
 * @category errors
 */
export class EnvelopeDenied extends Schema.TaggedError<EnvelopeDenied>("assent/permission/EnvelopeDenied")(
  "EnvelopeDenied",
  {
    subagentId: Schema.String,
    how: Schema.Literal("denied", "cancelled", "timed_out", "unavailable"),
    /** The denier's words, or why nobody answered. */
    note: Schema.optional(Schema.String)
  }
) {
  override get message(): string {
    const reason = this.note === undefined ? "" : `: ${this.note}`
    return `Subagent/EnvelopeDenied (${this.how})${reason}. No subagent was started. Continue without it, or ask for fewer tools.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// grants
// -----------------------------------------------------------------------------------------------------------------

/**
 * The binding of a grant for this call.
 *
 * @since 0.1.0
 * @category getters
 */
export const bindingOf = ({ stageExecutionId, attempt }: Attempt, call: ToolCall): Binding => ({
  stageExecutionId,
  attempt,
  proposalId: call.id,
  tool: call.name,
  argsDigest: Digest.digest(call.params)
})

/**
 * Grants for one attempt; they expire with the scope. Publishes `GrantMinted` and `GrantConsumed`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (attempt: Attempt): Effect.Effect<Grants, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new AttemptGrants(attempt)),
    (grants) => Effect.sync(grants.expire)
  )

// -----------------------------------------------------------------------------------------------------------------
// envelopes
// -----------------------------------------------------------------------------------------------------------------

/**
 * Allows a subagent these tools, by their exact names, for its life. It says nothing about other tools or agents.
 *
 * @since 0.1.0
 * @category constructors
 */
export const envelope = (options: {
  readonly tools: ReadonlyArray<string>
  readonly subagentId: string
}): Authority => {
  const tools = new Set(options.tools)
  const ruling = Option.some({
    granted: true,
    method: "envelope",
    reason: `in the envelope of ${options.subagentId}`
  } as const)
  return ({ call }) =>
    tools.has(call.name)
      ? Effect.map(Origin.current, ({ subagentId }) => (subagentId === options.subagentId ? ruling : Option.none()))
      : Effect.succeedNone
}

/**
 * The requested tools, each once, if the parent has them all. All of the parent's tools may be requested. Resolve
 * groups of tools before.
 *
 * @since 0.1.0
 * @category conversions
 */
export const validateEnvelope = (
  requested: ReadonlyArray<string>,
  active: ReadonlyArray<string>
): Either.Either<ReadonlyArray<string>, EnvelopeInvalid> => {
  const known = new Set(active)
  const tools = [...new Set(requested)]
  const unknown = tools.filter((name) => !known.has(name))
  return unknown.length === 0 ? Either.right(tools) : Either.left(new EnvelopeInvalid({ unknown, active: [...known] }))
}

/**
 * Asks whether a subagent may use its tools without asking, and yields the authority to start it with. Publishes
 * `SubagentEnvelopeApproved` or `SubagentEnvelopeDenied`. Asks nobody when the parent itself lacks one of the tools.
 *
 * @since 0.1.0
 * @category operations
 */
export const requestEnvelope = (
  request: EnvelopeRequest
): Effect.Effect<Authority, EnvelopeInvalid | EnvelopeDenied, Interactor.Interactor | EventBus> =>
  Effect.gen(function* () {
    const { subagentId, parentSessionId, depth, promptSummary, model } = request
    const { text } = request.redactor ?? Redaction.shapesOnly
    const tools = yield* validateEnvelope(request.tools, request.active)
    const interaction = new ApproveSubagentEnvelope({
      subagentId,
      parentSessionId,
      depth,
      requestedEnvelope: [...tools],
      promptSummary,
      model
    })
    const notedAs = (note: string | undefined) => (note === undefined ? {} : { note: text(note) })
    const denied = (how: EnvelopeDenied["how"], note: string | undefined) => {
      const noted = notedAs(note)
      return Effect.zipRight(
        publish({ _tag: "SubagentEnvelopeDenied", subagentId, ...noted }),
        new EnvelopeDenied({ subagentId, how, ...noted })
      )
    }
    const { outcome, note } = yield* Effect.catchAll(Interactor.ask(interaction), (error) =>
      denied(unanswered(error), error.message)
    )
    if (outcome === "deny") return yield* denied("denied", note)
    yield* publish({ _tag: "SubagentEnvelopeApproved", subagentId, ...notedAs(note) })
    return envelope({ tools, subagentId })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class AttemptGrants implements Grants {
  /** The key identifies a call within the attempt. Nothing when the attempt has ended. */
  private states: Map<string, "granted" | "spent"> | undefined = new Map()

  constructor(readonly attempt: Attempt) {}

  readonly mint = (binding: Binding): Effect.Effect<void, GrantExpired, EventBus> =>
    Effect.suspend(() => {
      if (!this.isCurrent(binding)) return new GrantExpired(named(binding))
      this.states?.set(keyOf(binding), "granted")
      return publish({ _tag: "GrantMinted", ...spoken(binding) })
    })

  readonly consume = (
    binding: Binding
  ): Effect.Effect<void, GrantNotFound | GrantAlreadyConsumed | GrantExpired, EventBus> =>
    Effect.suspend((): Effect.Effect<void, GrantNotFound | GrantAlreadyConsumed | GrantExpired, EventBus> => {
      if (!this.isCurrent(binding)) return new GrantExpired(named(binding))
      const state = this.states?.get(keyOf(binding))
      if (state === undefined) return new GrantNotFound(named(binding))
      if (state === "spent") return new GrantAlreadyConsumed(named(binding))
      this.states?.set(keyOf(binding), "spent")
      return publish({ _tag: "GrantConsumed", ...spoken(binding) })
    })

  readonly expire = (): void => {
    this.states = undefined
  }

  private isCurrent({ stageExecutionId, attempt }: Binding): boolean {
    return (
      this.states !== undefined &&
      stageExecutionId === this.attempt.stageExecutionId &&
      attempt === this.attempt.attempt
    )
  }
}

const keyOf = ({ proposalId, tool, argsDigest }: Binding): string => JSON.stringify([proposalId, tool, argsDigest])

const named = ({ stageExecutionId, attempt, proposalId, tool }: Binding) => ({
  stageExecutionId,
  attempt,
  proposalId,
  tool
})

const spoken = ({ stageExecutionId, attempt, tool }: Binding) => ({ stageExecutionId, attempt, tool })

const publish = (body: AgentEvent.Body): Effect.Effect<void, never, EventBus> =>
  Effect.map(Effect.all([EventBus, Effect.clock, Origin.current]), ([bus, clock, origin]) => {
    EventPublisher.publish(bus, clock, origin, body)
  })

const unanswered = (error: InteractionError): EnvelopeDenied["how"] => {
  switch (error._tag) {
    case "InteractionCancelled":
      return "cancelled"
    case "InteractionTimedOut":
      return "timed_out"
    default:
      return "unavailable"
  }
}
