/**
 * What a parent's model may answer to a question of its child, by its tool or as XML.
 * | kind | what it may say |
 * |---|---|
 * | `Approve` | yes or no for this one call, or no with a comment |
 * | `Confirm` | yes or no |
 * | `Clarify`, `Ask`, `Select` | answers by number, as a person types them |
 * | `Elicit` | answers by the name of the field, as a person types them |
 *
 * Everything else is for a person: wider scopes, edited arguments, grants, envelopes and sign-ins. An answer that does
 * not fit is a left with a reason, and never an answer.
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Field from "../interaction/Field.js"
import type * as Interaction from "../interaction/Interaction.js"
import * as PermissionOption from "../interaction/PermissionOption.js"
import * as Question from "../interaction/Question.js"
import * as TypedAnswer from "../interaction/TypedAnswer.js"

/**
 * A question that a model may answer.
 *
 * @since 0.1.0
 * @category models
 */
export type Answerable = Interaction.Interaction<"Approve" | "Confirm" | "Clarify" | "Ask" | "Select" | "Elicit">

/** The model's words, not understood yet. */
export interface Said {
  readonly decision?: string | undefined
  readonly comment?: string | undefined
  /** By number from 1, as written; a lone question has number 1. Those of a form: by the names of its fields. */
  readonly answers?: ReadonlyMap<string, string> | undefined
}

type AnyAnswer = Interaction.Answer<Interaction.Interaction>
type Read<A> = Either.Either<A, string>

/**
 * A call that must be asked each time, because a guard wants a question of its own or because it cannot be shown whole,
 * is for a person.
 */
export const isAnswerable = (interaction: Interaction.Interaction): interaction is Answerable =>
  kinds[interaction._tag] && !(interaction._tag === "Approve" && interaction.onceOnly === true)

/** Reads the model's words as the answer to `interaction`. */
export const read = <I extends Answerable>(interaction: I, said: Said): Read<Interaction.Answer<I>> =>
  // The case is chosen by the interaction's own tag, which decides what its answer is.
  readAny(interaction, said) as Read<Interaction.Answer<I>>

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const kinds: { readonly [K in Interaction.Kind]: K extends Answerable["_tag"] ? true : false } = {
  Approve: true,
  Confirm: true,
  Clarify: true,
  Ask: true,
  Select: true,
  Elicit: true,
  grantStageTool: false,
  approveSubagentEnvelope: false,
  "Auth.DeviceCode": false,
  "Auth.Password": false
}

const readAny = (interaction: Answerable, { answers = none, comment, decision }: Said): Read<AnyAnswer> => {
  if (interaction._tag === "Approve") {
    return answers.size > 0 ? Either.left("A permission is decided, not answered.") : readApprove(decision, comment)
  }
  if (comment !== undefined) return Either.left("A comment belongs to a denied permission.")
  if (interaction._tag === "Confirm") return readConfirm(interaction, decision, answers)
  if (decision !== undefined) return Either.left("A decision belongs to a permission.")
  if (interaction._tag === "Elicit") return readElicit(interaction.fields, answers)
  return interaction._tag === "Clarify"
    ? readClarify(interaction.questions, answers)
    : Either.flatMap(only(answers), (text): Read<AnyAnswer> =>
        interaction._tag === "Ask" ? Either.right(text) : TypedAnswer.parse(interaction, text)
      )
}

const none: ReadonlyMap<string, string> = new Map()

const readApprove = (
  decision: string | undefined,
  comment: string | undefined
): Read<Interaction.Answer<Interaction.Approve>> => {
  if (decision === undefined) return Either.left("There is no decision.")
  const option = Option.getOrUndefined(PermissionOption.parse(decision, { editable: false, onceOnly: true }))
  const answer = option?._tag === "Answer" ? option.answer : undefined
  const denies = answer?.decision === "deny" && answer.scope === "once" && answer.comment === undefined
  if (answer !== undefined && answer.decision !== "edit" && answer.scope === "once" && comment === undefined) {
    return Either.right(answer)
  }
  if (!denies && option?._tag !== "NeedsComment") {
    return Either.left(`${JSON.stringify(brief(decision))} is not for a model to say here.`)
  }
  const words = comment?.trim() ?? ""
  if (words !== "") return Either.right({ decision: "deny", scope: "once", comment: words })
  return denies ? Either.right({ decision: "deny", scope: "once" }) : Either.left("The comment is missing.")
}

const readConfirm = (
  interaction: Interaction.Confirm,
  decision: string | undefined,
  answers: ReadonlyMap<string, string>
): Read<boolean> => {
  if (decision !== undefined && answers.size > 0) return Either.left("It is answered twice.")
  const said = decision === undefined ? only(answers) : Either.right(decision)
  // An empty line of a person means the default. A model's empty answer is no answer.
  return Either.flatMap(said, (text) =>
    text.trim() === "" ? Either.left("There is no answer.") : TypedAnswer.parse(interaction, text)
  )
}

/** The answer to a lone question, if it has content. */
const only = (answers: ReadonlyMap<string, string>): Read<string> => {
  const text = answers.get("1")
  return text === undefined || answers.size > 1 || text.trim() === ""
    ? Either.left("One answer is expected, of number 1.")
    : Either.right(text)
}

const readClarify = (
  questions: ReadonlyArray<Question.Question>,
  texts: ReadonlyMap<string, string>
): Read<Question.ClarifyAnswers> => {
  const foreign = [...texts.keys()].find((number) => !/^[1-9][0-9]*$/.test(number) || Number(number) > questions.length)
  if (foreign !== undefined) {
    return Either.left(`There is no question ${JSON.stringify(brief(foreign))}; the last is ${questions.length}.`)
  }
  const answers: Record<string, Question.QuestionAnswer> = {}
  const problems: Array<string> = []
  for (const [index, question] of questions.entries()) {
    const number = String(index + 1)
    Either.match(answerTo(question, texts.get(number)), {
      onLeft: (reason) => problems.push(`Question ${number}: ${reason}`),
      onRight: (answer) => {
        answers[number] = answer
      }
    })
  }
  return problems.length === 0 ? Either.right(answers) : Either.left(problems.join(" "))
}

/** A field that is not there is left out, which a required one cannot be: a default replaces an empty answer only. */
const readElicit = (fields: ReadonlyArray<Field.Field>, texts: ReadonlyMap<string, string>): Read<Field.Values> => {
  const values: Record<string, Field.Value> = {}
  const problems: Array<Field.Problem> = []
  for (const name of texts.keys()) {
    if (!fields.some((field) => field.name === name))
      problems.push({ field: brief(name), message: "There is no such field." })
  }
  for (const field of fields) {
    const text = texts.get(field.name)
    if (text === undefined) {
      if (field.required) problems.push({ field: field.name, message: "An answer is required." })
      continue
    }
    Either.match(Field.parse(field, text), {
      onLeft: (message) => problems.push({ field: field.name, message }),
      onRight: (value) => {
        if (value !== undefined) values[field.name] = value
      }
    })
  }
  return problems.length === 0 ? Either.right(values) : Either.left(Field.told(fields, problems))
}

/** A default replaces an answer without content, not an absent one. */
const answerTo = (question: Question.Question, text: string | undefined): Read<Question.QuestionAnswer> => {
  if (text === undefined)
    return question.required ? Either.left("an answer is required.") : Either.right({ skipped: true })
  return question.question_type === "free_text" && text.trim() !== ""
    ? Either.right({ value: text })
    : Question.parse(question, text)
}

const brief = (text: string): string => (text.length <= 60 ? text : `${text.slice(0, 59)}…`)
