/** The commands of another process to a running agent: one JSON object a line. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as RemoteInteractor from "../../channel/RemoteInteractor.js"
import * as ForeignJson from "../../core/ForeignJson.js"
import { Words } from "../../inbox/Message.js"

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

/** Parses one line. A left is a sentence that says what is wrong, and quotes only a short part of it. */
export const parse = (line: string): Either.Either<JsonCommand, string> => {
  // Checked before parsing: bad lines may be very many, and a parser's error is expensive. It keeps a script alive
  // until a full garbage collection.
  const isObject = begins.test(line) && (line.length > maxLine || line.trimEnd().endsWith("}"))
  if (!isObject) return Either.left("it is not a JSON object.")
  const json = ForeignJson.parse(line, { size: maxLine })
  if (Either.isLeft(json)) return Either.left(`it ${json.left.message}.`)
  const tag = Predicate.isRecord(json.right) ? json.right._tag : undefined
  if (typeof tag !== "string" || !isTag(tag)) return Either.left(`"_tag" must be ${tags}.`)
  return Either.mapLeft(decoders[tag](json.right, { onExcessProperty: "error" }), (issue) => {
    const [first] = ParseResult.ArrayFormatter.formatIssueSync(issue)
    return `${first === undefined ? `${tag} is wrong` : sentenceOf(tag, first)}.`
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const begins = /^\s*\{\s*["}]/

const isTag = (tag: string): tag is JsonCommand["_tag"] => Object.hasOwn(decoders, tag)

const tags = Object.keys(decoders)
  .join(", ")
  .replace(/, (?=\w+$)/, " or ")

const sentenceOf = (tag: string, { _tag, message, path }: ParseResult.ArrayFormatterIssue): string => {
  if (path.length === 0) return `${tag} ${message}`
  const field = `"${ForeignJson.echo(path.map(String).join("."))}"`
  if (_tag === "Unexpected") return `${tag} has no field ${field}`
  // A list that must not be empty misses its first element.
  if (_tag === "Missing" && path.at(-1) === 0) return `"${path.slice(0, -1).join(".")}" of ${tag} is empty`
  return `${field} of ${tag} ${message}`
}
