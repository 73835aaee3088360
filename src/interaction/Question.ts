/**
 * The questions of a clarification and the one parser of their answers, for all channels.
 *
 * Numbers are 1-based wherever a person or a model sees them.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"

/**
 * How a question is answered.
 *
 * @since 0.1.0
 * @category schemas
 */
export const QuestionType = Schema.Literal("single_choice", "multiple_choice", "free_text")
export type QuestionType = typeof QuestionType.Type

/**
 * One question. A choice question has choices; a default is one of them.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Question = Schema.Struct({
  text: Schema.String,
  question_type: Schema.optionalWith(QuestionType, { default: () => "single_choice" as const }),
  choices: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] }),
  required: Schema.optionalWith(Schema.Boolean, { default: () => true }),
  /** 1-based number of the choice that an empty answer means. */
  default_choice: Schema.optional(Schema.Int)
}).pipe(
  Schema.filter((question) => {
    if (question.question_type === "free_text") {
      return question.default_choice === undefined || "a free_text question cannot have a default_choice"
    }
    if (question.choices.length === 0) return `a ${question.question_type} question needs choices`
    if (question.default_choice !== undefined && !inRange(question.default_choice, question.choices)) {
      return `default_choice ${question.default_choice} is out of range 1-${question.choices.length}`
    }
    return true
  }),
  Schema.annotations({ identifier: "Question" })
)
export type Question = typeof Question.Type

/**
 * The answer to one question.
 *
 * @since 0.1.0
 * @category schemas
 */
export const QuestionAnswer = Schema.Union(
  Schema.Struct({ selected: Schema.Int, text: Schema.String }),
  Schema.Struct({ selected: Schema.Array(Schema.Int), texts: Schema.Array(Schema.String) }),
  Schema.Struct({ value: Schema.String }),
  Schema.Struct({ skipped: Schema.Literal(true) })
)
export type QuestionAnswer = typeof QuestionAnswer.Type

/**
 * Answers keyed by 1-based question number: `{"1": …, "2": …}`.
 *
 * @since 0.1.0
 * @category schemas
 */
export type ClarifyAnswers = { readonly [number: string]: QuestionAnswer }
/**
 * The wire form of answers. `misfit` says why answers do not fit their questions.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ClarifyAnswers = Object.assign(Schema.Record({ key: Schema.String, value: QuestionAnswer }), {
  /** Why these answers do not answer these questions; `undefined` when they do. */
  misfit: (questions: ReadonlyArray<Question>, answers: ClarifyAnswers): string | undefined => {
    for (const key of Object.keys(answers)) {
      const number = Number(key)
      if (!/^[1-9][0-9]*$/.test(key) || !inRange(number, questions))
        return `there is no question ${JSON.stringify(key)}`
    }
    for (const [index, question] of questions.entries()) {
      const reason = misfitOf(question, answers[String(index + 1)])
      if (reason !== undefined) return `question ${index + 1}: ${reason}`
    }
    return undefined
  }
})

/**
 * Whether the line is `cancel`, in any case: the word that cancels the whole form at any of its questions.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isCancel = (line: string): boolean => line.trim().toLowerCase() === "cancel"

/**
 * Parses a typed answer to one question. A left is a sentence that says what to type instead. `cancel` is not an answer;
 * check {@link isCancel} first.
 *
 * @since 0.1.0
 * @category conversions
 */
export const parse = (question: Question, line: string): Either.Either<QuestionAnswer, string> => {
  const text = line.trim()
  switch (question.question_type) {
    case "free_text":
      if (text !== "") return Either.right({ value: text })
      return question.required ? Either.left("Please type an answer.") : Either.right({ skipped: true })
    case "single_choice": {
      if (text === "") return whenEmpty(question, (number) => ({ selected: number, text: choice(question, number) }))
      const number = choiceNumber(question, text)
      return number === undefined
        ? Either.left(`Please type a number from 1 to ${question.choices.length}, or one of the choices.`)
        : Either.right({ selected: number, text: choice(question, number) })
    }
    case "multiple_choice": {
      const several = (numbers: ReadonlyArray<number>) => ({
        selected: numbers,
        texts: numbers.map((number) => choice(question, number))
      })
      const parts = text
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== "")
      if (parts.length === 0) return whenEmpty(question, (number) => several([number]))
      const numbers = new Set<number>()
      const wrong: Array<string> = []
      for (const part of parts) {
        const number = choiceNumber(question, part)
        if (number === undefined) wrong.push(part)
        else numbers.add(number)
      }
      return wrong.length > 0
        ? Either.left(`Not among the choices 1-${question.choices.length}: ${wrong.join(", ")}.`)
        : Either.right(several([...numbers]))
    }
  }
}

/**
 * One line about an answer, for events and screens; at most 30 characters of free text.
 *
 * @since 0.1.0
 * @category conversions
 */
export const summarize = (answer: QuestionAnswer): string => {
  if ("skipped" in answer) return "skipped"
  if ("texts" in answer) return answer.texts.length === 1 ? (answer.texts[0] ?? "") : `${answer.texts.length} choices`
  if ("text" in answer) return answer.text
  const value = answer.value.length <= 30 ? answer.value : `${answer.value.slice(0, 27)}...`
  return JSON.stringify(value)
}

/**
 * The answer without a person: the default, the first choice, or the given text.
 *
 * @since 0.1.0
 * @category getters
 */
export const autoAnswer = (question: Question, freeText: string): QuestionAnswer => {
  const number = question.default_choice ?? 1
  switch (question.question_type) {
    case "free_text":
      return { value: freeText }
    case "single_choice":
      return { selected: number, text: choice(question, number) }
    case "multiple_choice":
      return { selected: [number], texts: [choice(question, number)] }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const inRange = (number: number, list: ReadonlyArray<unknown>): boolean =>
  Number.isInteger(number) && number >= 1 && number <= list.length

const choice = (question: Question, number: number): string => question.choices[number - 1] ?? ""

/** The choice that the text names: by a number in range, else by its exact text, else by its text in any case. */
const choiceNumber = (question: Question, text: string): number | undefined => {
  if (/^[0-9]+$/.test(text) && inRange(Number(text), question.choices)) return Number(text)
  const exact = question.choices.findIndex((entry) => entry.trim() === text)
  if (exact >= 0) return exact + 1
  const lower = text.toLowerCase()
  const similar = question.choices.filter((entry) => entry.trim().toLowerCase() === lower)
  return similar.length === 1 ? question.choices.indexOf(similar[0] ?? "") + 1 : undefined
}

const whenEmpty = (
  question: Question,
  ofDefault: (number: number) => QuestionAnswer
): Either.Either<QuestionAnswer, string> => {
  if (question.default_choice !== undefined) return Either.right(ofDefault(question.default_choice))
  return question.required
    ? Either.left(`Please choose from 1 to ${question.choices.length}.`)
    : Either.right({ skipped: true })
}

const misfitOf = (question: Question, answer: QuestionAnswer | undefined): string | undefined => {
  if (answer === undefined || "skipped" in answer) return question.required ? "an answer is required" : undefined
  switch (question.question_type) {
    case "free_text":
      if (!("value" in answer)) return "a text is expected"
      return question.required && answer.value.trim() === "" ? "an answer is required" : undefined
    case "single_choice":
      if (!("text" in answer)) return "one choice is expected"
      if (!inRange(answer.selected, question.choices)) return `choice ${answer.selected} is out of range`
      return choice(question, answer.selected) === answer.text ? undefined : "the text is not that of the choice"
    case "multiple_choice": {
      if (!("texts" in answer)) return "a list of choices is expected"
      if (answer.selected.length === 0) return question.required ? "an answer is required" : undefined
      if (new Set(answer.selected).size !== answer.selected.length) return "a choice is repeated"
      const wrong = answer.selected.find((number) => !inRange(number, question.choices))
      if (wrong !== undefined) return `choice ${wrong} is out of range`
      const texts = answer.selected.map((number) => choice(question, number))
      return texts.length === answer.texts.length && texts.every((text, index) => text === answer.texts[index])
        ? undefined
        : "the texts are not those of the choices"
    }
  }
}
