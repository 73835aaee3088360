/**
 * A question as a form: flat JSON Schema that any client can show, and the answer to the question out of what was filled
 * in. A client that shows forms needs to know nothing of kinds.
 *
 * | kind | fields |
 * |---|---|
 * | `Clarify` | one for each question: `q01`, `q02`, … |
 * | `Ask`, `Select`, `Confirm` | `answer` |
 * | `Elicit` | its own |
 * | `Approve` | the arguments that may be edited, under their own names; filling them in answers `edit` |
 *
 * Grants, envelopes and sign-ins have no form, nor has an approval that offers no edit. The form has the shape of an
 * elicitation in the Model Context Protocol and the Agent Client Protocol: a message, and a schema of an object whose
 * properties are texts, numbers, yes or no, one choice or several.
 *
 * @example
 * ```ts
 * import { Form, Interaction } from "assent"
 *
 * const question = new Interaction.Select({ prompt: "Which?", options: ["red", "green"] })
 * Form.of(question)?.requestedSchema.properties["answer"]
 * // { type: "string", title: "Answer", oneOf: [{ const: "1", title: "red" }, { const: "2", title: "green" }] }
 * Form.decode(question, { answer: "2" })
 * // Either.right(1)
 * ```
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Field from "./Field.js"
import * as FormSchema from "./FormSchema.js"
import type { Answer, Approve, Interaction, Kind } from "./Interaction.js"
import { misfit } from "./Interaction.js"
import type { ClarifyAnswers, Question, QuestionAnswer } from "./Question.js"

export { type Form, make, type ObjectSchema, type Property, readSchema, type TitledChoice } from "./FormSchema.js"

// -----------------------------------------------------------------------------------------------------------------
// from a question, and back to its answer
// -----------------------------------------------------------------------------------------------------------------

/**
 * The form of a question; `undefined` if the question has no form.
 *
 * @since 0.1.0
 * @category conversions
 */
export const of = (interaction: Interaction): FormSchema.Form | undefined => {
  const sheet = sheetOf(interaction)
  return sheet === undefined ? undefined : FormSchema.make(sheet.message, sheet.fields, sheet.problems)
}

/**
 * The fields of a question's form, for clients that draw them without JSON Schema.
 *
 * @since 0.1.0
 * @category getters
 */
export const fieldsOf = (interaction: Interaction): ReadonlyArray<Field.Field> | undefined =>
  sheetOf(interaction)?.fields

/**
 * The answer of a filled form. A left lists the problems, field by field. It never throws, for any input. An empty field
 * counts as absent.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = <I extends Interaction>(
  interaction: I,
  values: unknown
): Either.Either<Answer<I>, ReadonlyArray<Field.Problem>> => {
  const sheet = sheetOf(interaction)
  if (sheet === undefined) return wrong(`This ${interaction._tag} request has no form; it takes an answer.`)
  const refusal = UntrustedJson.refusal(values, { size: maxSize })
  if (refusal !== undefined) return wrong(`That ${refusal.message}.`)
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    return wrong("A filled form is an object with the names of the fields as keys.")
  }
  const { fields, read } = sheet
  const given = filled(fields, values, interaction._tag !== "Approve")
  const problems = Field.problems(fields, given)
  if (problems.length > 0) return Either.left(problems.slice(0, maxProblems).map(shortened))
  return Either.flatMap(read(given as Field.Values), (answer) => {
    const reason = misfit(interaction, answer)
    // The reader is that of the interaction's own kind.
    return reason === undefined ? Either.right(answer as Answer<I>) : wrong(`${reason}.`)
  })
}

/**
 * The form as it is filled when this is the answer; nothing where the question has no form, or the answer is not one that
 * a form gives. {@link decode} takes it back to the answer.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encode = <I extends Interaction>(interaction: I, answer: Answer<I>): Field.Values | undefined =>
  // The writer is that of the interaction's own kind.
  sheetOf(interaction)?.write(answer as Answer<Interaction>)

/**
 * The problems of a filled form on one line, each behind the title of its field.
 *
 * @since 0.1.0
 * @category conversions
 */
export const told = (interaction: Interaction, problems: ReadonlyArray<Field.Problem>): string =>
  UntrustedJson.echo(Field.told(fieldsOf(interaction) ?? [], problems), 2_000)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The limit of a filled form, as of any answer. In characters. */
const maxSize = 1_048_576

/** Problems beyond these say nothing new. */
const maxProblems = 50

type Read<A> = Either.Either<A, ReadonlyArray<Field.Problem>>

const wrong = (message: string): Read<never> => Either.left([{ message: UntrustedJson.echo(message, 400) }])

const shortened = ({ field, message }: Field.Problem): Field.Problem =>
  field === undefined ? { message } : { field: UntrustedJson.echo(field), message: UntrustedJson.echo(message, 400) }

/** A form with its way back to the answer. */
interface Sheet<A> {
  readonly message: string
  readonly fields: ReadonlyArray<Field.Field>
  readonly problems?: ReadonlyArray<Field.Problem> | undefined
  /** The values fit the fields. */
  readonly read: (values: Field.Values) => Read<A>
  readonly write: (answer: A) => Field.Values | undefined
}

const sheetOf = (interaction: Interaction): Sheet<Answer<Interaction>> | undefined =>
  // The case is chosen by the interaction's own tag, which the type system cannot follow through the mapped type.
  (sheets[interaction._tag] as ((interaction: Interaction) => Sheet<Answer<Interaction>> | undefined) | null)?.(
    interaction
  )

/** By kind; nothing where a kind is never a form. */
const sheets: {
  readonly [K in Kind]: ((interaction: Interaction<K>) => Sheet<Answer<Interaction<K>>> | undefined) | null
} = {
  Clarify: ({ context, questions }) => ({
    message: context === "" ? "Please clarify." : context,
    fields: questions.map((question, index) => ofQuestion(question, nameOf(index, questions.length))),
    read: (values) =>
      Either.right(
        Object.fromEntries(
          questions.map((question, index) => [
            String(index + 1),
            answerTo(question, values[nameOf(index, questions.length)])
          ])
        )
      ),
    write: (answers: ClarifyAnswers) =>
      Object.fromEntries(
        questions.flatMap((_, index) => {
          const value = valueOf(answers[String(index + 1)])
          return value === undefined ? [] : [[nameOf(index, questions.length), value]]
        })
      )
  }),
  Ask: ({ prompt }) => ({
    message: prompt,
    fields: [{ name: only, type: "string", title: "Answer", required: true }],
    read: (values) => Either.right(String(values[only])),
    write: (answer) => ({ [only]: answer })
  }),
  Select: ({ options, prompt }) => ({
    message: prompt,
    fields: [{ name: only, title: "Answer", required: true, ...ofChoices("choice", options) }],
    read: (values) => Either.right(Number(values[only]) - 1),
    write: (index) => ({ [only]: String(index + 1) })
  }),
  Confirm: (interaction) => ({
    message: interaction.prompt,
    fields: [{ name: only, type: "boolean", title: "Yes?", required: true, default: interaction.default }],
    read: (values) => Either.right(values[only] === true),
    write: (answer) => ({ [only]: answer })
  }),
  Elicit: ({ fields, problems, title }) => ({
    message: title,
    fields,
    problems,
    read: Either.right,
    write: (values) => values
  }),
  Approve: ({ editable, tool }) => (editable === undefined ? undefined : ofEditable(tool, editable)),
  grantStageTool: null,
  approveSubagentEnvelope: null,
  "Auth.DeviceCode": null,
  "Auth.Password": null
}

/** The name of the only field. */
const only = "answer"

/** Numbers of one length, because clients may sort the names. */
const nameOf = (index: number, count: number): string =>
  `q${String(index + 1).padStart(Math.max(2, String(count).length), "0")}`

/** Choices by their numbers from 1: two of them may have the same text. */
const ofChoices = (type: "choice" | "choices", texts: ReadonlyArray<string>) => ({
  type,
  choices: texts.map((_, index) => String(index + 1)),
  labels: texts
})

const ofQuestion = (
  { choices, default_choice, question_type, required, text }: Question,
  name: string
): Field.Field => {
  const common = { name, title: text, required }
  switch (question_type) {
    case "free_text":
      return { ...common, type: "string" }
    case "single_choice":
      return {
        ...common,
        ...ofChoices("choice", choices),
        ...(default_choice === undefined ? {} : { default: String(default_choice) })
      }
    case "multiple_choice":
      return {
        ...common,
        ...ofChoices("choices", choices),
        ...(default_choice === undefined ? {} : { default: [String(default_choice)] })
      }
  }
}

const answerTo = ({ choices, question_type }: Question, value: Field.Value | undefined): QuestionAnswer => {
  if (value === undefined) return { skipped: true }
  const textOf = (number: number) => choices[number - 1] ?? ""
  if (typeof value === "object") {
    const selected = value.map(Number)
    return { selected, texts: selected.map(textOf) }
  }
  if (question_type === "free_text") return { value: String(value) }
  const selected = Number(value)
  return { selected, text: textOf(selected) }
}

const valueOf = (answer: QuestionAnswer | undefined): Field.Value | undefined => {
  if (answer === undefined || "skipped" in answer) return undefined
  if ("value" in answer) return answer.value
  return "texts" in answer ? answer.selected.map(String) : String(answer.selected)
}

/** A text, a number, yes or no as itself; everything else as JSON in a text. */
const ofEditable = (
  tool: string,
  { current, format, parameters }: NonNullable<Approve["editable"]>
): Sheet<Answer<Approve>> => {
  const isJson = (name: string): boolean =>
    Object.hasOwn(current, name) ? !["string", "number", "boolean"].includes(typeof current[name]) : format === "json"
  const textOf = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? ""
  return {
    message: `The arguments of ${tool}, to be edited. Missing arguments stay unchanged.`,
    fields: parameters.map((name): Field.Field => {
      const value = current[name]
      // Nothing is required: a text may become empty.
      const common = { name, required: false }
      if (!Object.hasOwn(current, name)) {
        return { ...common, type: "string", ...(isJson(name) ? { description: asJson } : {}) }
      }
      if (typeof value === "string") return { ...common, type: "string", default: value }
      if (typeof value === "number") return { ...common, type: "number", default: value }
      if (typeof value === "boolean") return { ...common, type: "boolean", default: value }
      return { ...common, type: "string", description: asJson, default: textOf(value) }
    }),
    read: (values) => {
      const editedArguments: Record<string, unknown> = {}
      const problems: Array<Field.Problem> = []
      for (const [name, value] of Object.entries(values)) {
        if (!isJson(name)) {
          editedArguments[name] = value
          continue
        }
        Either.match(UntrustedJson.parse(String(value)), {
          onLeft: (refused) => problems.push({ field: name, message: `That ${refused.message}.` }),
          onRight: (json) => {
            editedArguments[name] = json
          }
        })
      }
      return problems.length > 0 ? Either.left(problems) : Either.right({ decision: "edit", editedArguments })
    },
    write: (answer) =>
      answer.decision !== "edit"
        ? undefined
        : Object.fromEntries(
            Object.entries(answer.editedArguments).map(([name, value]) => [
              name,
              isJson(name) || !["string", "number", "boolean"].includes(typeof value)
                ? textOf(value)
                : (value as Field.Value)
            ])
          )
  }
}

const asJson = "As JSON."

/** What was filled in. A client that cannot leave a field out sends it empty. */
const filled = (
  fields: ReadonlyArray<Field.Field>,
  values: object,
  emptyIsAbsent: boolean
): { readonly [name: string]: unknown } => {
  const optional = new Set(fields.filter(({ required }) => !required).map(({ name }) => name))
  return Object.fromEntries(
    Object.entries(values).filter(([name, value]: readonly [string, unknown]) => {
      if (value === null || value === undefined) return !fields.some((field) => field.name === name)
      const isEmpty = value === "" || (Array.isArray(value) && value.length === 0)
      return !(emptyIsAbsent && isEmpty && optional.has(name))
    })
  )
}
