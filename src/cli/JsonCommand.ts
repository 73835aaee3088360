/** What another process may tell a running agent: one JSON object a line. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

/** An agent: its path, its session's id or its subagent id. */
const Target = Schema.NonEmptyString

/** Names words for the whole life of a session; becomes the message's id. */
const Name = Schema.NonEmptyString.pipe(Schema.maxLength(200))

/**
 * Words for an agent: now (a turn when idle, an interjection when busy), or as a turn of the root's when that is idle.
 * Without a target, for whoever hears a user's words; several targets hear the same. What comes again under an `id` is not
 * taken again.
 */
export const Send = Schema.TaggedStruct("Send", {
  text: Schema.NonEmptyString,
  id: Schema.optional(Name),
  target: Schema.optional(Schema.Union(Target, Schema.NonEmptyArray(Target))),
  when: Schema.optional(Schema.Literal("now", "idle"))
})

/** An answer: the kind's object, or a string as a person would type it. */
export const Answer = Schema.TaggedStruct("Answer", { requestId: Schema.String, answer: Schema.Unknown })

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

const decode = ParseResult.decodeUnknownEither(Schema.parseJson(JsonCommand))

/** Only the root keeps words for later. */
export class TargetNotQueued extends Schema.TaggedError<TargetNotQueued>("assent/cli/TargetNotQueued")(
  "TargetNotQueued",
  { root: Schema.String }
) {
  override get message(): string {
    return `"when": "idle" is for ${this.root} alone; leave out the target, or "when".`
  }
}

/** One message has one id. */
export class IdForSeveral extends Schema.TaggedError<IdForSeveral>("assent/cli/IdForSeveral")("IdForSeveral", {
  id: Schema.String
}) {
  override get message(): string {
    return `The id ${JSON.stringify(this.id)} is for one message; send to each target alone, under an id of its own.`
  }
}

/** The longest line that is read, in characters. */
export const maxLine = 1_048_576

/** Parses one line; a left says what is wrong with it. */
export const parse = (line: string): Either.Either<JsonCommand, string> =>
  line.length > maxLine
    ? Either.left(`longer than ${maxLine} characters`)
    : Either.mapLeft(decode(line, { onExcessProperty: "error" }), (issue) =>
        ParseResult.TreeFormatter.formatIssueSync(issue).slice(0, 1_000)
      )
