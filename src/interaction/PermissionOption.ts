/**
 * The options of a permission prompt in display order, each with its word and its meaning. One table for all channels.
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as AnswerWords from "./AnswerWords.js"
import type { ApproveAnswer, ApproveOption } from "./Interaction.js"

/**
 * The meaning of a typed line. `NeedsComment` and `NeedsEdit` need a second question.
 *
 * @since 0.1.0
 * @category models
 */
export type Typed = Data.TaggedEnum<{
  readonly Answer: { readonly answer: ApproveAnswer }
  /** Deny with words for the model that are still to be typed. */
  readonly NeedsComment: {}
  /** The arguments are to be edited. */
  readonly NeedsEdit: {}
}>
/**
 * Constructors and guards of {@link Typed}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const { Answer, NeedsComment, NeedsEdit, $is: is, $match: match } = Data.taggedEnum<Typed>()

/**
 * The choices that the prompt of a call may offer.
 *
 * @since 0.1.0
 * @category models
 */
export interface Offer {
  readonly editable: boolean
  /** An allowing answer holds for this one call only. Default: false. */
  readonly onceOnly?: boolean | undefined
}

/**
 * The options offered for a call, in display order.
 *
 * @since 0.1.0
 * @category getters
 */
export const offered = ({ editable, onceOnly = false }: Offer): ReadonlyArray<ApproveOption> =>
  onceOnly ? (editable ? onceWithEdit : onceWithoutEdit) : editable ? withEdit : withoutEdit

/**
 * Parses a typed option, in its short or its full form, trimmed and in any case; `c: text` denies with a comment.
 * Nothing for any other text, and for an option that is not offered.
 *
 * @since 0.1.0
 * @category conversions
 */
export const parse = (line: string, offer: Offer): Option.Option<Typed> => {
  const text = line.trim()
  const comment = /^(?:c|comment):([^]*)$/i.exec(text)
  if (comment !== null) {
    const words = (comment[1] ?? "").trim()
    return Option.some(
      words === "" ? NeedsComment() : Answer({ answer: { decision: "deny", scope: "once", comment: words } })
    )
  }
  const row = byWord.get(text.toLowerCase())
  if (row === undefined || (row.full === "edit" && !offer.editable)) return Option.none()
  if (offer.onceOnly === true && reachesBeyond(row)) return Option.none()
  return Option.some(row.typed)
}

/**
 * What a person typed: as {@link parse}, and words behind an answer. `no, use ls instead` denies with these words; an answer
 * that allows carries none. A left is a sentence that asks what is meant, or nothing for any other text.
 *
 * @internal
 */
export const read = (line: string, offer: Offer): Either.Either<Typed, string | undefined> => {
  const exact = parse(line, offer)
  if (Option.isSome(exact)) return Either.right(exact.value)
  const said = AnswerWords.split(line)
  const row = said === undefined ? undefined : byWord.get(said.answer)
  if (said === undefined || row === undefined) return Either.left(undefined)
  const { answer, mark, words } = said
  const { typed } = row
  if (typed._tag === "NeedsComment")
    return Either.right(Answer({ answer: { decision: "deny", scope: "once", comment: words } }))
  if (typed._tag === "Answer" && typed.answer.decision === "deny") {
    if (AnswerWords.isPhrase(said) || byWord.has(words.toLowerCase())) return Either.left(AnswerWords.unclear)
    return Either.right(words === "" ? typed : Answer({ answer: { ...typed.answer, comment: words } }))
  }
  // One letter may begin any sentence.
  if (mark === "" && answer.length === 1 && answer !== "y") return Either.left(undefined)
  return Either.left(`Words go to the agent with a no: type ${row.full} alone, or no and your words.`)
}

/**
 * Reduces an allowing answer to this one call, where each such call is to be asked about.
 *
 * @since 0.1.0
 * @category combinators
 */
export const once = (answer: ApproveAnswer): ApproveAnswer =>
  answer.decision === "allow" ? { decision: "allow", scope: "once" } : answer

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Row extends ApproveOption {
  readonly typed: Typed
}

const allow = (scope: "once" | "turn" | "idle" | "session" | "all"): Typed =>
  Answer({ answer: { decision: "allow", scope } })
const deny = (scope: "once" | "session"): Typed => Answer({ answer: { decision: "deny", scope } })

const table: ReadonlyArray<Row> = [
  { short: "y", full: "yes", description: "allow this call", typed: allow("once") },
  { short: "n", full: "no", description: "deny this call", typed: deny("once") },
  { short: "a", full: "always", description: "allow and remember for this session", typed: allow("session") },
  { short: "t", full: "turn", description: "allow everything until this turn ends", typed: allow("turn") },
  { short: "i", full: "idle", description: "allow everything until this agent is idle", typed: allow("idle") },
  { full: "once", description: "allow this call", typed: allow("once") },
  { full: "never", description: "deny and remember for this session", typed: deny("session") },
  { full: "all", description: "allow everything, every agent, until resumed", typed: allow("all") },
  { short: "c", full: "comment", description: "deny and tell the agent why", typed: NeedsComment() },
  { short: "e", full: "edit", description: "edit the arguments", typed: NeedsEdit() }
]

const shown = ({ short, full, description }: Row): ApproveOption =>
  short === undefined ? { full, description } : { short, full, description }

const reachesBeyond = ({ typed }: Row): boolean =>
  typed._tag === "Answer" && typed.answer.decision === "allow" && typed.answer.scope !== "once"

const onceWithEdit = table.filter((row) => !reachesBeyond(row)).map(shown)
const onceWithoutEdit = onceWithEdit.filter((option) => option.full !== "edit")

const withEdit = table.map(shown)
const withoutEdit = withEdit.filter((option) => option.full !== "edit")

const byWord = new Map(
  table.flatMap((row) => [...(row.short === undefined ? [] : [[row.short, row] as const]), [row.full, row] as const])
)
