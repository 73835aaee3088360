/** An entry that a person or a program adds to a session's lists while it runs. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as CommandText from "../shell/CommandText.js"

/**
 * This pattern is not taken.
 *
 * @since 0.1.0
 * @category errors
 */
export class PatternRefused extends Schema.TaggedError<PatternRefused>("assent/permission/PatternRefused")(
  "PatternRefused",
  { pattern: Schema.String, message: Schema.String }
) {}

/** The entry for a list, from what was written. Runs of blanks become one, as in the texts that it is compared with. */
export const of = (verb: "allow" | "deny", pattern: string): Either.Either<string, PatternRefused> => {
  const text = CommandText.trim(pattern)
  const refused = (message: string) => Either.left(new PatternRefused({ pattern, message }))
  if (text === "") return refused(`permissions ${verb} needs a tool name, a pattern or a command.`)
  const entry = /["'\\]/.test(text) ? text : text.replace(/[ \t]+/g, " ")
  return verb === "allow" && CommandText.namesNothing(entry)
    ? refused("That would allow everything; say permissions default allow, or permissions suspend, if that is meant.")
    : Either.right(entry)
}
