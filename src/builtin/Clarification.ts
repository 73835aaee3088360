/**
 * The tools with which a model asks a person: a form of questions, a form of typed fields, or one question answered with
 * text.
 *
 * They ask the current interactor. Cancelling is an answer of its own. A question without an answer in time, or that
 * could not be asked, is a failure, so that the model cannot take it for words of a person.
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as Field from "../interaction/Field.js"
import { Ask, Clarify, Elicit } from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import * as Interactor from "../interaction/Interactor.js"
import { ClarifyAnswers, Question } from "../interaction/Question.js"
import * as ToolTrait from "../tool/ToolTrait.js"

/**
 * The result of a tool whose question the person cancelled.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Cancelled = Schema.Struct({ cancelled: Schema.Literal(true), message: Schema.String })
export type Cancelled = typeof Cancelled.Type

/**
 * Asks the person several questions at once and waits for all answers.
 *
 * @since 0.1.0
 * @category tools
 */
export const RequestClarification = Tool.make("request_clarification", {
  description:
    'Asks the user one or more questions and waits for the answers, which come keyed by question number: "1", "2", … ' +
    "Use it when the task can be understood in several ways or a choice is the user's to make.",
  parameters: {
    context: Schema.String.annotations({ description: "Why you ask; shown above the questions." }),
    questions: Schema.Array(Question).pipe(
      Schema.minItems(1),
      Schema.annotations({
        description:
          "Each has a text and a question_type: single_choice (the default) or multiple_choice, with choices, or free_text. " +
          "default_choice is the number of a choice, from 1. required is true unless set to false."
      })
    )
  },
  success: Schema.Union(Cancelled, ClarifyAnswers),
  failure: Schema.String,
  failureMode: "return",
  dependencies: [Interactor.Interactor]
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(ToolTrait.Groups, ["clarification"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Essential, true)
  .annotate(ToolTrait.Resumable, true)

/**
 * Asks the person one question and waits for the answer.
 *
 * @since 0.1.0
 * @category tools
 */
export const AskUser = Tool.make("ask_user", {
  description: "Asks the user one question and returns what they type.",
  parameters: { prompt: Schema.String.annotations({ description: "The question." }) },
  success: Schema.Union(Schema.String, Cancelled),
  failure: Schema.String,
  failureMode: "return",
  dependencies: [Interactor.Interactor]
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(ToolTrait.Groups, ["clarification"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Resumable, true)

/**
 * Asks the person to fill in a form of typed fields and waits for it.
 *
 * @since 0.1.0
 * @category tools
 */
export const RequestInput = Tool.make("request_input", {
  description:
    "Asks the user to fill in a form and waits for it: the values come back by the names of the fields, whole or not at all. " +
    "Use it when you need several values of known types; use request_clarification for open questions. Never ask for a " +
    "password, a token or another secret.",
  parameters: {
    title: Schema.String.annotations({ description: "What the form is for; shown above the fields." }),
    fields: Schema.Array(Field.Field).pipe(
      Schema.minItems(1),
      Schema.annotations({
        description:
          "Each has a name and a type: string, number, integer, boolean, choice or choices, the last two with choices. " +
          "required is true unless set to false. default is what the form is filled with. minimum and maximum limit numbers, " +
          "minLength, maxLength and format (email, uri, date, date-time) texts, minItems and maxItems the number of choices."
      })
    )
  },
  success: Schema.Union(Cancelled, Schema.Struct({ values: Field.Values })),
  failure: Schema.String,
  failureMode: "return",
  dependencies: [Interactor.Interactor]
})
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(ToolTrait.Groups, ["clarification"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Resumable, true)

/**
 * All three tools.
 *
 * @since 0.1.0
 * @category tools
 */
export const toolkit = Toolkit.make(RequestClarification, AskUser, RequestInput)

/**
 * The handlers. Each call provides its interactor.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> = toolkit.toLayer({
  request_clarification: ({ context, questions }) =>
    Arr.isNonEmptyReadonlyArray(questions)
      ? // The questions come out of the parameters' schema, which is the payload's.
        answered(Interactor.ask(new Clarify({ context, questions }, { disableValidation: true })))
      : Effect.fail("There are no questions."),
  request_input: ({ fields, title }) => {
    const secret = fields.find(Field.isSecret)
    if (secret !== undefined) {
      const name = JSON.stringify(secret.name)
      return Effect.fail(
        `Field ${name} is a secret by its name, and a form is shown, sent and kept. Ask the user to set it where it is used.`
      )
    }
    return Either.match(decodeFields(fields), {
      onLeft: () => Effect.fail("Each field needs a name of its own, and there must be one at least."),
      onRight: (fields) =>
        Effect.map(answered(Interactor.ask(new Elicit({ title, fields }, { disableValidation: true }))), (values) =>
          isCancelled(values) ? values : { values }
        )
    })
  },
  ask_user: ({ prompt }) => answered(Interactor.ask(new Ask({ prompt }, { disableValidation: true })))
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decodeFields = Lazy.make(() => Schema.validateEither(Field.Fields))

/** Told by identity: a form may have a field of any name. */
const isCancelled = (values: Field.Values | Cancelled): values is Cancelled => values === cancelled

const cancelled: Cancelled = { cancelled: true, message: "User cancelled the clarification request." }

const answered = <A, R>(asking: Effect.Effect<A, InteractionError, R>): Effect.Effect<A | Cancelled, string, R> =>
  Effect.catchAll(asking, (error) =>
    error._tag === "InteractionCancelled"
      ? Effect.succeed(cancelled)
      : Effect.fail(`The question was not answered. ${error.message}`)
  )
