/** The commands of another process to a running agent: one JSON object a line. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as RemoteInteractor from "../../channel/RemoteInteractor.js"
import * as ForeignJson from "../../core/ForeignJson.js"
import { Words } from "../../inbox/Message.js"

/** An agent: its path, its session's id or its subagent id. */
const Target = Schema.NonEmptyString

/** Identifies words for the whole life of a session; becomes the message's id. */
const Name = Schema.NonEmptyString.pipe(Schema.maxLength(200))

const named = { name: Schema.optional(Name), mediaType: Schema.optional(Name) }

/** A file that this process reads, relative to the directory that it was started in. */
const FileAt = Schema.Struct({ path: Schema.NonEmptyString, ...named })

/** The bytes of a file; as much as a line has room for. */
const FileWith = Schema.Struct({ base64: Schema.Uint8ArrayFromBase64, ...named })

/**
 * Words for an agent: now (a turn when idle, an interjection when busy), or as a turn of the root's when that is idle.
 * Without a target, for the agent that hears the user; several targets get the same words. Words that come again under
 * the same `id` are not taken again.
 */
export const Send = Schema.TaggedStruct("Send", {
  text: Schema.optional(Words),
  files: Schema.optional(Schema.NonEmptyArray(Schema.Union(FileAt, FileWith))),
  id: Schema.optional(Name),
  target: Schema.optional(Schema.Union(Target, Schema.NonEmptyArray(Target))),
  when: Schema.optional(Schema.Literal("now", "idle"))
}).pipe(Schema.filter(({ files, text }) => text !== undefined || files !== undefined || 'it needs "text", or "files"'))

/**
 * An answer: the kind's object, or a string as a person would type it; or the filled form of the request, as `form`. `by`
 * names the person, and counts where the peer was declared to vouch for it.
 */
export const Answer = Schema.TaggedStruct("Answer", {
  requestId: Schema.String,
  answer: Schema.Unknown,
  form: Schema.optional(Schema.Unknown),
  by: Schema.optional(RemoteInteractor.Name)
})

/**
 * Cancels the root's running turn, or the target's; with a call's id, that running call alone. Words that the turn had not
 * read begin the next one.
 */
export const Interrupt = Schema.TaggedStruct("Interrupt", {
  target: Schema.optional(Target),
  toolCallId: Schema.optional(Schema.NonEmptyString)
})

/** A `permissions` command line. */
export const Permissions = Schema.TaggedStruct("Permissions", { command: Schema.String })

export const Shutdown = Schema.TaggedStruct("Shutdown", {})

export const JsonCommand = Schema.Union(Send, Answer, Interrupt, Permissions, Shutdown)
export type JsonCommand = typeof JsonCommand.Type

const decoders: {
  readonly [Tag in JsonCommand["_tag"]]: (
    input: unknown,
    options: { readonly onExcessProperty: "error" }
  ) => Either.Either<JsonCommand, ParseResult.ParseIssue>
} = {
  Send: ParseResult.decodeUnknownEither(Send),
  Answer: ParseResult.decodeUnknownEither(Answer),
  Interrupt: ParseResult.decodeUnknownEither(Interrupt),
  Permissions: ParseResult.decodeUnknownEither(Permissions),
  Shutdown: ParseResult.decodeUnknownEither(Shutdown)
}

/** Words can be queued for the root only. */
export class TargetNotQueued extends Schema.TaggedError<TargetNotQueued>("assent/cli/TargetNotQueued")(
  "TargetNotQueued",
  { root: Schema.String }
) {
  override get message(): string {
    return `"when": "idle" is for ${this.root} alone; leave out the target, or "when".`
  }
}

/** An id names one message, so it cannot go to several targets. */
export class IdForSeveral extends Schema.TaggedError<IdForSeveral>("assent/cli/IdForSeveral")("IdForSeveral", {
  id: Schema.String
}) {
  override get message(): string {
    return `The id ${JSON.stringify(this.id)} is for one message; send to each target alone, under an id of its own.`
  }
}

/** The longest line that is read, in characters. */
export const maxLine = 1_048_576

/** Parses one line. A left says what is wrong, and quotes only a short part of it. */
export const parse = (line: string): Either.Either<JsonCommand, string> => {
  // Checked before parsing: bad lines may be very many, and a parser's error is expensive. It keeps a script alive
  // until a full garbage collection.
  const isObject = begins.test(line) && (line.length > maxLine || line.trimEnd().endsWith("}"))
  if (!isObject) return Either.left("it is no JSON object.")
  const json = ForeignJson.parse(line, { size: maxLine })
  if (Either.isLeft(json)) return Either.left(`it ${json.left.message}.`)
  const tag = Predicate.isRecord(json.right) ? json.right._tag : undefined
  if (typeof tag !== "string" || !isTag(tag)) return Either.left(`its "_tag" is none of ${tags}.`)
  return Either.mapLeft(decoders[tag](json.right, { onExcessProperty: "error" }), (issue) => {
    const [first] = ParseResult.ArrayFormatter.formatIssueSync(issue)
    const what = first === undefined ? "it is wrong" : `${first.path.map(String).join(".") || "it"}: ${first.message}`
    return ForeignJson.echo(`${tag} is not understood: ${what}`)
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const begins = /^\s*\{\s*["}]/

const isTag = (tag: string): tag is JsonCommand["_tag"] => Object.hasOwn(decoders, tag)

const tags = Object.keys(decoders).join(", ")
