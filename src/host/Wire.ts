/**
 * The words between a running agent and another process: commands in, receipts and events out, each one JSON object. A
 * command line sends them as lines, HTTP as bodies and as data of an event stream.
 *
 * | in | answered by |
 * |---|---|
 * | `Send` | `SendTaken`, once the words are taken, and on disk when the session is stored |
 * | `Answer` | `InteractionClosed` when it counts, else `AnswerRejected` |
 * | `Permissions` | `Permissions` |
 * | `Interrupt`, `Shutdown` | events |
 *
 * Requests come as `InteractionRequest`. Events stay projections; only requests carry authority.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as QueueChannel from "../channel/QueueChannel.js"
import * as RemoteInteractor from "../channel/RemoteInteractor.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type * as Redaction from "../core/Redaction.js"
import * as Input from "../inbox/Input.js"
import { type Message, Words } from "../inbox/Message.js"
import type * as Field from "../interaction/Field.js"
import * as Form from "../interaction/Form.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as Agent from "../runtime/Agent.js"
import type { AgentUnknown } from "../session/Interjection.js"

/** Said of a field in place of what its schema says. */
const must = (be: string) => ({ message: () => ({ message: `must be ${be}`, override: true }) })

/** An agent: its path, its session's id or its subagent id. */
const Target = Schema.NonEmptyString.annotations(must("the name of an agent"))

/** Identifies words for the whole life of a session; becomes the message's id. */
const Name = Schema.NonEmptyString.pipe(Schema.maxLength(200)).annotations(must("a text of 1 to 200 characters"))

const named = { name: Schema.optional(Name), mediaType: Schema.optional(Name) }

/** A file that this process reads, relative to the directory that it was started in. */
const FileAt = Schema.Struct({ path: Schema.NonEmptyString, ...named })

/** The bytes of a file; as much as a line has room for. */
const FileWith = Schema.Struct({ base64: Schema.Uint8ArrayFromBase64, ...named })
const aFile = '{"path": "…"} or {"base64": "…"}, with "name" and "mediaType" if wanted'

/**
 * Words for an agent: now (a turn when idle, an interjection when busy), or as a turn of the root's when that is idle.
 * Without a target, for the agent that hears the user; several targets get the same words. Words that come again under
 * the same `id` are not taken again.
 */
export const Send = Schema.TaggedStruct("Send", {
  text: Schema.optional(Words.annotations(must("a text that is not blank"))),
  files: Schema.optional(
    Schema.NonEmptyArray(Schema.Union(FileAt, FileWith).annotations(must(aFile))).annotations({
      message: () => `must be a list, each of them ${aFile}`
    })
  ),
  id: Schema.optional(Name),
  target: Schema.optional(
    Schema.Union(Target, Schema.NonEmptyArray(Target)).annotations(must("the name of an agent, or a list of them"))
  ),
  when: Schema.optional(Schema.Literal("now", "idle").annotations(must('"now" or "idle"')))
}).pipe(Schema.filter(({ files, text }) => text !== undefined || files !== undefined || 'needs "text" or "files"'))

/**
 * An answer: the kind's object, or a string as a person would type it; or the filled form of the request, as `form`. `by`
 * names the person, and counts where the peer was declared to vouch for it.
 */
export const Answer = Schema.TaggedStruct("Answer", {
  requestId: Schema.String.annotations(must("the id of a request")),
  answer: Schema.Unknown,
  form: Schema.optional(Schema.Unknown),
  by: Schema.optional(RemoteInteractor.Name.annotations(must("a name of at most 200 characters")))
})

/**
 * Cancels the root's running turn, or the target's; with a call's id, that running call alone. Words that the turn had not
 * read begin the next one.
 */
export const Interrupt = Schema.TaggedStruct("Interrupt", {
  target: Schema.optional(Target),
  toolCallId: Schema.optional(Schema.NonEmptyString.annotations(must("the id of a call")))
})

/** A `permissions` command line. */
export const Permissions = Schema.TaggedStruct("Permissions", {
  command: Schema.String.annotations(must("a text"))
})

export const Shutdown = Schema.TaggedStruct("Shutdown", {})

export const Command = Schema.Union(Send, Answer, Interrupt, Permissions, Shutdown)
export type Command = typeof Command.Type

const decoders: {
  readonly [Tag in Command["_tag"]]: (
    input: unknown,
    options: { readonly onExcessProperty: "error" }
  ) => Either.Either<Command, ParseResult.ParseIssue>
} = {
  Send: ParseResult.decodeUnknownEither(Send),
  Answer: ParseResult.decodeUnknownEither(Answer),
  Interrupt: ParseResult.decodeUnknownEither(Interrupt),
  Permissions: ParseResult.decodeUnknownEither(Permissions),
  Shutdown: ParseResult.decodeUnknownEither(Shutdown)
}

/** Words can be queued for the root only. */
export class TargetNotQueued extends Schema.TaggedError<TargetNotQueued>("assent/host/TargetNotQueued")(
  "TargetNotQueued",
  { root: Schema.String }
) {
  override get message(): string {
    return `"when": "idle" is for ${this.root} alone; leave out the target, or "when".`
  }
}

/** An id names one message, so it cannot go to several targets. */
export class IdForSeveral extends Schema.TaggedError<IdForSeveral>("assent/host/IdForSeveral")("IdForSeveral", {
  id: Schema.String
}) {
  override get message(): string {
    return `The id ${JSON.stringify(this.id)} is for one message; send to each target alone, under an id of its own.`
  }
}

/** The longest line that is read, in characters. */
export const maxLine = 1_048_576

/** Parses one line. A left is a sentence that says what is wrong, and quotes only a short part of it. */
export const parse = (line: string): Either.Either<Command, string> => {
  // Checked before parsing: bad lines may be very many, and a parser's error is expensive. It keeps a script alive
  // until a full garbage collection.
  const isObject = begins.test(line) && (line.length > maxLine || line.trimEnd().endsWith("}"))
  if (!isObject) return Either.left("it is not a JSON object.")
  const json = UntrustedJson.parse(line, { size: maxLine })
  if (Either.isLeft(json)) return Either.left(`it ${json.left.message}.`)
  const tag = Predicate.isRecord(json.right) ? json.right._tag : undefined
  if (typeof tag !== "string" || !isTag(tag)) return Either.left(`"_tag" must be ${tags}.`)
  return Either.mapLeft(decoders[tag](json.right, { onExcessProperty: "error" }), (issue) => {
    const [first] = ParseResult.ArrayFormatter.formatIssueSync(issue)
    return `${first === undefined ? `${tag} is wrong` : sentenceOf(tag, first)}.`
  })
}

// -----------------------------------------------------------------------------------------------------------------
// receipts
// -----------------------------------------------------------------------------------------------------------------

/** A request that is open at this interactor, with its form, or one that is not open any more. */
export const dialog = (dialog: QueueChannel.Dialog, masking: Redaction.Masking) =>
  QueueChannel.match(dialog, {
    Opened: ({ request }) => ({
      _tag: "InteractionRequest" as const,
      request: masking.value(InteractionRequest.encode(request)),
      form: masking.value(Form.of(request.interaction))
    }),
    Closed: (closed) => ({ ...closed, _tag: "InteractionClosed" as const })
  })

/** An answer did not count. */
export interface Rejected {
  readonly _tag: "AnswerRejected"
  readonly requestId: string
  readonly reason: string
  /** What is wrong with which field. */
  readonly problems?: ReadonlyArray<Field.Problem> | undefined
}

/** How words were taken. */
export interface Taken {
  /** One id for each target. */
  readonly messageIds: ReadonlyArray<string>
  /** These words were not taken: this id was used before. */
  readonly again?: true
}

// -----------------------------------------------------------------------------------------------------------------
// operations
// -----------------------------------------------------------------------------------------------------------------

/** Reads a file that a command names. A door whose clients are elsewhere refuses. */
export type ReadFile = (file: typeof FileAt.Type) => Effect.Effect<Input.Part, Input.InputRefused>

/** Hands words to the agent. Undefined: it has ended, and its events have said so. */
export const send = (
  agent: Agent.Agent,
  { files, id, target, text: words = "", when }: typeof Send.Type,
  read: ReadFile
): Effect.Effect<Taken | undefined, Agent.NotTaken | AgentUnknown | TargetNotQueued | IdForSeveral> => {
  type Refused = Agent.NotTaken | AgentUnknown | TargetNotQueued | IdForSeveral
  const hand = (text: Input.Input): Effect.Effect<ReadonlyArray<Message>, Refused> => {
    if (when === "idle") {
      const isRoot = target === undefined || target === agent.origin.agent
      return isRoot
        ? Effect.map(agent.enqueue(text, { id }), Array.of)
        : new TargetNotQueued({ root: agent.origin.agent })
    }
    if (target === undefined || typeof target === "string")
      return Effect.map(agent.send(text, { id, target }), Array.of)
    return id === undefined ? agent.broadcast(text, target) : new IdForSeveral({ id })
  }
  return Effect.flatMap(withFiles(words, files, read), hand).pipe(
    Effect.map((messages): Taken => ({ messageIds: messages.map(({ id }) => id) })),
    Effect.catchTags({
      AgentStopped: () => Effect.succeed(undefined),
      MessageAlreadyTaken: ({ messageId }) => Effect.succeed<Taken>({ messageIds: [messageId], again: true })
    })
  )
}

/** Gives an answer at an interactor, from `by` as far as anybody knows. Fails with the receipt. */
export const answer = (
  channel: Pick<QueueChannel.Service, "answer" | "answerForm" | "answerText">,
  { answer, form, requestId }: typeof Answer.Type,
  by: string | undefined
): Effect.Effect<void, Rejected> => {
  const rejected = (reason: string, problems?: ReadonlyArray<Field.Problem>): Rejected => ({
    _tag: "AnswerRejected",
    requestId: UntrustedJson.echo(requestId),
    reason,
    problems
  })
  if (form !== undefined && answer !== undefined) return Effect.fail(rejected("It has both an answer and a form."))
  const given =
    form !== undefined
      ? channel.answerForm(requestId, form, by)
      : typeof answer === "string"
        ? channel.answerText(requestId, answer, by)
        : channel.answer(requestId, answer, by)
  return Effect.mapError(given, (rejection) =>
    rejected(rejection.message, rejection._tag === "MalformedAnswer" ? rejection.problems : undefined)
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const begins = /^\s*\{\s*["}]/

const isTag = (tag: string): tag is Command["_tag"] => Object.hasOwn(decoders, tag)

const tags = Object.keys(decoders)
  .join(", ")
  .replace(/, (?=\w+$)/, " or ")

const sentenceOf = (tag: string, { _tag, message, path }: ParseResult.ArrayFormatterIssue): string => {
  if (path.length === 0) return `${tag} ${message}`
  const field = `"${UntrustedJson.echo(path.map(String).join("."))}"`
  if (_tag === "Unexpected") return `${tag} has no field ${field}`
  // A list that must not be empty misses its first element.
  if (_tag === "Missing" && path.at(-1) === 0) return `"${path.slice(0, -1).join(".")}" of ${tag} is empty`
  return `${field} of ${tag} ${message}`
}

const withFiles = (words: string, files: typeof Send.Type.files, read: ReadFile) =>
  files === undefined
    ? Effect.succeed<Input.Input>(words)
    : Effect.map(
        Effect.forEach(files, (file) =>
          "path" in file ? read(file) : Effect.succeed(Input.fromBytes(file.base64, file))
        ),
        (parts): Input.Input => [words, ...parts]
      )
