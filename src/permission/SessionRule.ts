/** An entry that a person or a program adds to a session's lists while it runs. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import * as Nearest from "../core/Nearest.js"
import * as Redaction from "../core/Redaction.js"
import * as CommandText from "../shell/CommandText.js"
import * as Remembered from "../shell/Remembered.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as PatternFit from "./PatternFit.js"

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

/**
 * The entry for a list, from what was written. Runs of blanks become one, as in the texts that it is compared with. Where the
 * tools are known, an entry about a tool that there is not is refused, and so is one that can match no call of a tool: it
 * would cover nothing, and nobody would know.
 */
export const of = (
  verb: "allow" | "deny",
  pattern: string,
  tools?: Pick<ToolRegistry.Service, "entries" | "get">
): Either.Either<string, PatternRefused> => {
  const text = CommandText.trim(pattern)
  const refused = (message: string) => Either.left(new PatternRefused({ pattern, message }))
  if (Redaction.isMasked(text))
    return refused(
      `${Redaction.mask} masks a secret, and a pattern would read it as a class of letters. Write * instead.`
    )
  if (text === "") return refused("Name a tool, a pattern or a command.")
  const entry = /["'\\]/.test(text) ? text : text.replace(/[ \t]+/g, " ")
  if (verb === "allow" && CommandText.namesNothing(entry))
    return refused("This rule allows everything. If you mean that, use mode allow or a suspension.")
  if (tools === undefined) return Either.right(entry)
  const known = tools.entries.map(({ tool }) => tool)
  const problem = toolNotThere(entry, tools) ?? PatternFit.problem(entry, verb, known)
  return problem === undefined ? Either.right(PatternFit.spelled(entry, known)) : refused(problem)
}

/**
 * The entries of a session's lists as a journal keeps them, without secrets. A mask in an entry would make it cover other
 * calls: what is allowed with a secret in it holds in this process only, and what is denied is denied more widely.
 */
export const kept = (
  { allow, deny }: { readonly allow: ReadonlyArray<string>; readonly deny: ReadonlyArray<string> },
  redactor: Pick<Redaction.Masking, "text">
) => ({
  allow: allow.filter((entry) => redactor.text(entry) === entry),
  deny: deny.map((entry) => {
    const masked = redactor.text(entry)
    return masked === entry ? entry : wider(masked)
  })
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A pattern over everything that an entry covered before secrets in it were masked. */
const wider = (masked: string): string => {
  const text = masked.replaceAll(Redaction.mask, gap)
  if (!Remembered.is(text)) return text.replaceAll(gap, "*")
  const remembered = Remembered.parse(text)
  if (remembered._tag === "Program") return `${remembered.program} *`
  // What quotes, blanks and wildcards of the command mean in a pattern is left open too.
  return `*${remembered.command}*`.replace(/[^\w./:@%+=~-]+/g, "*")
}

/** A letter that no command has. */
const gap = "\uffff"

/** A call by its tool and arguments; `f() …` begins a function of a shell. */
const call = /^([\w-]+)\((?!\)\s)/

const toolNotThere = (entry: string, tools: Pick<ToolRegistry.Service, "entries" | "get">): string | undefined => {
  const runsCommands = tools.entries.some(({ shellCommand }) => shellCommand !== undefined)
  const known = tools.entries.map((tool) => tool.name)
  const word = /^[\w-]+$/.test(entry) ? entry : undefined
  // Among tools that run commands a word may be a program.
  const isTool = word !== undefined && (!runsCommands || (word.includes("_") && Nearest.of(word, known) !== undefined))
  const name = call.exec(entry)?.[1] ?? (isTool ? word : undefined)
  // The tools of servers come later.
  if (name === undefined || name.startsWith("mcp__") || tools.get(name) !== undefined) return undefined
  const near = Nearest.of(name, known)
  const there = known.length === 0 ? "There are none." : `There are: ${known.join(", ")}.`
  return `There is no tool ${name}${near === undefined ? "" : ` (did you mean ${near}?)`}. ${there}`
}
