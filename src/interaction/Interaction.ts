/**
 * The closed set of decisions the core can ask for.
 *
 * A kind is one declaration that carries its payload and its answer, so every answer has a type and a decoder, on every
 * wire. Kinds that grant authority take the prompt slot and have a safe answer, which is to deny; the others have none
 * and are simply cancelled.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as AnswerFault from "./AnswerFault.js"
import { SessionId, ToolCallId } from "../core/Id.js"
import { ToolDisplay } from "../tool/ToolCall.js"
import { InteractionError, InteractionKindUnknown, InteractionPayloadMismatch } from "./InteractionError.js"
import * as Option from "effect/Option"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Field from "./Field.js"
import { ApproveAnswer, ApproveOption } from "./ApproveAnswer.js"
import { Needs } from "./Needs.js"
import { ClarifyAnswers, Question } from "./Question.js"

export { Allow, AllowScope, ApproveAnswer, ApproveOption, Deny, Edit } from "./ApproveAnswer.js"
export { Need, Needs, Voted } from "./Needs.js"

/**
 * Version of the kinds, their payloads and answers. A new kind or field raises the minor number, a removed one the major.
 *
 * @since 0.1.0
 * @category constants
 */
export const contractVersion = "2.0.0"

// -----------------------------------------------------------------------------------------------------------------
// permission
// -----------------------------------------------------------------------------------------------------------------

/**
 * May this tool call run?
 *
 * @since 0.1.0
 * @category schemas
 */
export class Approve extends Schema.TaggedRequest<Approve>("assent/interaction/Approve")("Approve", {
  failure: InteractionError,
  success: ApproveAnswer,
  payload: {
    toolCallId: ToolCallId,
    tool: Schema.String,
    /** The arguments as one line, secrets masked. */
    argumentsSummary: Schema.String,
    /** The encoded arguments by name, declared secrets masked. Requests that an older version kept have none. */
    arguments: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Unknown })),
    /** Names of arguments of over 20,000 characters: `arguments` has their beginning and their end, as text. */
    argumentsCut: Schema.optional(Schema.Array(Schema.String)),
    /** The key under which a lasting answer is remembered. */
    approvalKey: Schema.String,
    /** In display order. */
    options: Schema.Array(ApproveOption),
    /** True when an allowing answer holds for this one call: a guard or a rule wants each asked, or it is too long to be shown. */
    onceOnly: Schema.optional(Schema.Boolean),
    /** Present when the arguments may be edited: their names, current values and format. */
    editable: Schema.optional(
      Schema.Struct({
        parameters: Schema.Array(Schema.String),
        format: Schema.Literal("text", "json"),
        current: Schema.Record({ key: Schema.String, value: Schema.Unknown })
      })
    ),
    display: Schema.optional(ToolDisplay),
    /** The people whose agreement the call needs, if a rule reserves the call. An answer is then a vote. */
    needs: Schema.optional(Needs),
    /** True when the policy leaves the decision about this call to a model too: see `Interactors.byModel`. */
    delegated: Schema.optional(Schema.Boolean)
  }
}) {}

/**
 * An `Approve` from valid fields: `new Approve` copies them three times, which costs more than asking.
 *
 * @since 0.1.0
 * @category constructors
 */
export const approve = (fields: ConstructorParameters<typeof Approve>[0]): Approve =>
  Object.assign(Object.create(Approve.prototype), fields, { _tag: "Approve" })

/**
 * May this one proposal of a stage use a tool outside the stage's list?
 *
 * @since 0.1.0
 * @category schemas
 */
export class GrantStageTool extends Schema.TaggedRequest<GrantStageTool>("assent/interaction/grantStageTool")(
  "grantStageTool",
  {
    failure: InteractionError,
    success: Schema.Struct({
      outcome: Schema.Literal("approve", "deny", "defer"),
      note: Schema.optional(Schema.String)
    }),
    payload: {
      stageExecutionId: Schema.String,
      /** 0-based. */
      attempt: Schema.Number,
      proposalId: Schema.String,
      tool: Schema.String,
      /** SHA-256 of the arguments' canonical JSON; compared by equality only. */
      argsDigest: Schema.String,
      argsSummary: Schema.String,
      reason: Schema.optional(Schema.String)
    }
  }
) {}

/**
 * May this subagent use these tools without asking, for its whole life?
 *
 * @since 0.1.0
 * @category schemas
 */
export class ApproveSubagentEnvelope extends Schema.TaggedRequest<ApproveSubagentEnvelope>(
  "assent/interaction/approveSubagentEnvelope"
)("approveSubagentEnvelope", {
  failure: InteractionError,
  success: Schema.Struct({
    outcome: Schema.Literal("approve", "deny"),
    note: Schema.optional(Schema.String)
  }),
  payload: {
    subagentId: Schema.String,
    parentSessionId: SessionId,
    depth: Schema.Number,
    requestedEnvelope: Schema.Array(Schema.String),
    promptSummary: Schema.String,
    model: Schema.Struct({ providerId: Schema.String, modelId: Schema.String })
  }
}) {}

// -----------------------------------------------------------------------------------------------------------------
// questions
// -----------------------------------------------------------------------------------------------------------------

/**
 * A form of questions, asked one after the other. Cancelling one of them cancels all.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Clarify extends Schema.TaggedRequest<Clarify>("assent/interaction/Clarify")("Clarify", {
  failure: InteractionError,
  success: ClarifyAnswers,
  payload: { context: Schema.String, questions: Schema.NonEmptyArray(Question) }
}) {}

/**
 * A question answered with text.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Ask extends Schema.TaggedRequest<Ask>("assent/interaction/Ask")("Ask", {
  failure: InteractionError,
  success: Schema.String,
  payload: { prompt: Schema.String }
}) {}

/**
 * A choice of one; the answer is a 0-based index.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Select extends Schema.TaggedRequest<Select>("assent/interaction/Select")("Select", {
  failure: InteractionError,
  success: Schema.NonNegativeInt,
  payload: { prompt: Schema.String, options: Schema.NonEmptyArray(Schema.String) }
}) {}

/**
 * Yes or no.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Confirm extends Schema.TaggedRequest<Confirm>("assent/interaction/Confirm")("Confirm", {
  failure: InteractionError,
  success: Schema.Boolean,
  payload: { prompt: Schema.String, default: Schema.Boolean }
}) {}

/**
 * A form of typed fields. It is answered whole, with the values by the names of their fields, or cancelled. No field is a
 * secret. `Interactor.elicit` asks by a schema.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Elicit extends Schema.TaggedRequest<Elicit>("assent/interaction/Elicit")("Elicit", {
  failure: InteractionError,
  success: Field.Values,
  payload: {
    title: Schema.String,
    fields: Field.Fields,
    /** The problems of the former values, if the form is asked again. */
    problems: Schema.optional(Schema.Array(Field.Problem))
  }
}) {}

// -----------------------------------------------------------------------------------------------------------------
// authentication
// -----------------------------------------------------------------------------------------------------------------

/**
 * Sign in elsewhere with this code; the answer says that it was done.
 *
 * @since 0.1.0
 * @category schemas
 */
export class AuthDeviceCode extends Schema.TaggedRequest<AuthDeviceCode>("assent/interaction/Auth.DeviceCode")(
  "Auth.DeviceCode",
  {
    failure: InteractionError,
    success: Schema.Literal("completed"),
    payload: {
      url: Schema.String,
      code: Schema.String,
      /** Milliseconds since the epoch. */
      expiresAt: Schema.Number
    }
  }
) {}

/**
 * A password; never on the bus, in the audit or in a log.
 *
 * @since 0.1.0
 * @category schemas
 */
export class AuthPassword extends Schema.TaggedRequest<AuthPassword>("assent/interaction/Auth.Password")(
  "Auth.Password",
  {
    failure: InteractionError,
    success: Schema.Redacted(Schema.String),
    payload: { prompt: Schema.String }
  }
) {}

// -----------------------------------------------------------------------------------------------------------------
// the set
// -----------------------------------------------------------------------------------------------------------------

/**
 * Every kind by its tag. The compiler then names every place that must know a new one.
 *
 * @since 0.1.0
 * @category constants
 */
export const kinds = {
  Approve,
  grantStageTool: GrantStageTool,
  approveSubagentEnvelope: ApproveSubagentEnvelope,
  Clarify,
  Ask,
  Select,
  Confirm,
  Elicit,
  "Auth.DeviceCode": AuthDeviceCode,
  "Auth.Password": AuthPassword
} as const

/**
 * The names of all interactions.
 *
 * @since 0.1.0
 * @category models
 */
export type Kind = keyof typeof kinds
/**
 * The interaction of a kind; without a kind, any interaction.
 *
 * @since 0.1.0
 * @category schemas
 */
export type Interaction<K extends Kind = Kind> = InstanceType<(typeof kinds)[K]>
/**
 * The answer to an interaction.
 *
 * @since 0.1.0
 * @category models
 */
export type Answer<I extends Interaction> = Schema.WithResult.Success<I>

/**
 * The wire form of an interaction, by its `_tag`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Interaction = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(
    Approve,
    GrantStageTool,
    ApproveSubagentEnvelope,
    Clarify,
    Ask,
    Select,
    Confirm,
    Elicit,
    AuthDeviceCode,
    AuthPassword
  )
)

/**
 * Whether this names an interaction.
 *
 * @since 0.1.0
 * @category guards
 */
export const isKind = (tag: string): tag is Kind => Object.hasOwn(kinds, tag)

/**
 * Whether a kind grants authority: its requests are asked one at a time in a tree, and re-checked when they reach the
 * head of the line.
 *
 * @since 0.1.0
 * @category predicates
 */
export const takesPromptSlot = (kind: Kind): boolean => slotKinds.has(kind)

/**
 * Whether answers of a kind are secrets or stand for one: their values never appear in events or the audit.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSecret = (kind: Kind): boolean => kind === "Auth.Password" || kind === "Auth.DeviceCode"

/**
 * The safe answer of a kind: to deny; nothing for kinds that are cancelled instead.
 *
 * @since 0.1.0
 * @category getters
 */
export const safeAnswer = <I extends Interaction>(interaction: I): Option.Option<Answer<I>> =>
  Option.fromNullable(safeAnswers[interaction._tag]) as Option.Option<Answer<I>>

/**
 * Decodes an interaction that came over a wire. Extra fields are rejected.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (
  input: unknown
): Either.Either<Interaction, InteractionKindUnknown | InteractionPayloadMismatch> => {
  const refusal = UntrustedJson.refusal(input)
  if (refusal !== undefined) {
    return Either.left(new InteractionPayloadMismatch({ kind: "unknown", reason: `it ${refusal.message}` }))
  }
  const tag = typeof input === "object" && input !== null && "_tag" in input ? input._tag : undefined
  if (typeof tag !== "string" || !isKind(tag)) {
    return Either.left(new InteractionKindUnknown({ kind: UntrustedJson.echo(String(JSON.stringify(tag ?? input))) }))
  }
  return Either.mapLeft(
    decoderOf(tag)(input, { onExcessProperty: "error" }),
    (error) =>
      new InteractionPayloadMismatch({
        kind: tag,
        reason: UntrustedJson.echo(ParseResult.TreeFormatter.formatIssueSync(error))
      })
  )
}

/**
 * Encodes an interaction for a wire.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encode = (interaction: Interaction): unknown => Schema.encodeSync(Interaction)(interaction)

/**
 * Decodes an answer to `interaction` that came over a wire. A left is the reason why it does not fit: short enough to
 * be shown, without any part of a secret. Never throws, whatever the input is.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decodeAnswer = <I extends Interaction>(
  interaction: I,
  input: unknown
): Either.Either<Answer<I>, string> => {
  // Checked before decoding: the decoder and its error message both follow a value as deep as it goes.
  const refusal = UntrustedJson.refusal(input, answerLimits)
  if (refusal !== undefined) return Either.left(`it ${refusal.message}`)
  const decoded = decoding(interaction, input)
  if (Either.isRight(decoded)) return decoded
  return Either.left(isSecret(interaction._tag) ? "it does not answer this question" : UntrustedJson.echo(decoded.left))
}

/**
 * Why a value is no answer to `interaction`; `undefined` when it is one. For answers that come from code instead of a
 * wire: the type cannot say that an index is in range, and code without types can return anything.
 *
 * @since 0.1.0
 * @category getters
 */
export const misfit = (interaction: Interaction, answer: unknown): string | undefined => {
  try {
    if (!answerTestOf(interaction._tag)(answer)) return `that is not an answer to ${interaction._tag}`
    const reason = misfitOf(interaction, answer) ?? unbounded(interaction, answer)
    return reason === undefined ? undefined : UntrustedJson.echo(reason)
  } catch {
    return unreadable
  }
}

/**
 * Encodes an answer for a wire. Never call it for a kind that {@link isSecret} on a wire that others can read.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encodeAnswer = <I extends Interaction>(interaction: I, answer: Answer<I>): unknown =>
  answerEncoderOf(interaction._tag)(answer)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const slotKinds: ReadonlySet<Kind> = new Set<Kind>(["Approve", "grantStageTool", "approveSubagentEnvelope"])

const safeAnswers: { readonly [K in Kind]?: Answer<Interaction<K>> } = {
  Approve: { decision: "deny", scope: "once" },
  grantStageTool: { outcome: "deny" },
  approveSubagentEnvelope: { outcome: "deny" }
}

/** What belongs to each kind, made when a kind is first met: a program meets few of them. */
const byKind = <A>(make: (kind: (typeof kinds)[Kind]) => A): ((kind: Kind) => A) => {
  const made = new Map<Kind, A>()
  return (kind) => {
    const known = made.get(kind)
    if (known !== undefined) return known
    const value = make(kinds[kind])
    made.set(kind, value)
    return value
  }
}

type Decoder<A> = (
  input: unknown,
  options?: { readonly onExcessProperty: "error" }
) => Either.Either<A, ParseResult.ParseIssue>

const decoderOf: (kind: Kind) => Decoder<Interaction> = byKind((kind) =>
  ParseResult.decodeUnknownEither(kind as Schema.Schema<Interaction, unknown>)
)
const answerDecoderOf: (kind: Kind) => Decoder<unknown> = byKind((kind) =>
  ParseResult.decodeUnknownEither(kind.success as Schema.Schema<unknown>)
)
const answerTestOf = byKind((kind) => ParseResult.is(kind.success as Schema.Schema<unknown>))
const answerEncoderOf = byKind((kind) => Schema.encodeSync(kind.success as Schema.Schema<unknown>))

/** Limits of an answer: they admit the longest typed one, and more. */
const answerLimits: UntrustedJson.Limits = { size: 1_048_576, isCopied: true }

/** The reason for a foreign value that throws when it is read. */
const unreadable = "it cannot be read"

const decoding = <I extends Interaction>(interaction: I, input: unknown): Either.Either<Answer<I>, string> => {
  try {
    const decoded = answerDecoderOf(interaction._tag)(input, { onExcessProperty: "error" })
    if (Either.isLeft(decoded)) return Either.left(AnswerFault.of(interaction._tag, decoded.left))
    // The decoder was chosen by the interaction's own tag.
    const answer = decoded.right as Answer<I>
    const misfit = misfitOf(interaction, answer)
    return misfit === undefined ? Either.right(answer) : Either.left(misfit)
  } catch {
    return Either.left(unreadable)
  }
}

/** Only edited arguments can be of any depth: every other answer has the shape of its schema. */
const unbounded = (interaction: Interaction, answer: unknown): string | undefined => {
  if (interaction._tag !== "Approve") return undefined
  const decision = answer as Answer<Approve>
  if (decision.decision !== "edit") return undefined
  const refusal = UntrustedJson.refusal(decision.editedArguments, answerLimits)
  return refusal === undefined ? undefined : `what was edited ${refusal.message}`
}

/** Checks what the schema of an answer cannot: that the answer fits this very payload. */
const misfitOf = (interaction: Interaction, answer: unknown): string | undefined => {
  // The case is chosen by the interaction's own tag, which decides what its answer is.
  const misfit = misfits[interaction._tag] as ((interaction: Interaction, answer: unknown) => string | undefined) | null
  return misfit === null ? undefined : misfit(interaction, answer)
}

/** By kind; nothing where every answer of the schema fits every payload. */
const misfits: {
  readonly [K in Kind]: ((interaction: Interaction<K>, answer: Answer<Interaction<K>>) => string | undefined) | null
} = {
  Approve: ({ editable }, answer) => {
    if (answer.decision !== "edit") return undefined
    if (editable === undefined) return "this call's arguments cannot be edited"
    const foreign = Object.keys(answer.editedArguments).filter((key) => !editable.parameters.includes(key))
    return foreign.length === 0 ? undefined : `these arguments cannot be edited: ${foreign.join(", ")}`
  },
  Clarify: ({ questions }, answers) => ClarifyAnswers.misfit(questions, answers),
  Elicit: ({ fields }, values) => {
    const problems = Field.problems(fields, values)
    return problems.length === 0 ? undefined : Field.told(fields, problems)
  },
  Select: ({ options }, index) => (index < options.length ? undefined : `index ${index} is out of range`),
  grantStageTool: null,
  approveSubagentEnvelope: null,
  Ask: null,
  Confirm: null,
  "Auth.DeviceCode": null,
  "Auth.Password": null
}
