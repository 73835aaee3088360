/**
 * Answers questions without a person: with their default, or their first choice. The channel never takes
 * permissions, grants, envelopes or anything to do with signing in.
 *
 * | kind | answer |
 * |---|---|
 * | `Clarify` | each question's default, else its first choice; free text where text is wanted |
 * | `Ask` | free text |
 * | `Select` | the first option |
 * | `Confirm` | its default |
 * | `Elicit` | the defaults; cancelled when a required field has none |
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Field from "../interaction/Field.js"
import type { Elicit } from "../interaction/Interaction.js"
import { InteractionCancelled } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as Question from "../interaction/Question.js"

/**
 * The channel's id, and the text it answers with.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Default: `auto`. */
  readonly id?: string | undefined
  /** The answer where a text is wanted. Default: `auto-response`. */
  readonly freeText?: string | undefined
}

/**
 * Answers at once and shows nothing, so it takes any number of requests at a time. Answers are recorded as `auto`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Interactor.Service => {
  const id = options.id ?? "auto"
  const freeText = options.freeText ?? "auto-response"
  return Interactor.make({
    id,
    how: "auto",
    dialogs: "unbounded",
    handlers: {
      Approve: Interactor.declines,
      grantStageTool: Interactor.declines,
      approveSubagentEnvelope: Interactor.declines,
      Clarify: ({ interaction }) => Effect.succeed(answers(interaction.questions, freeText)),
      Ask: () => Effect.succeed(freeText),
      Select: () => Effect.succeed(0),
      Confirm: ({ interaction }) => Effect.succeed(interaction.default),
      Elicit: (request) => filled(id, request),
      "Auth.DeviceCode": Interactor.declines,
      "Auth.Password": Interactor.declines
    }
  })
}

/**
 * An interactor that answers by defaults; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: Options): Layer.Layer<Interactor.Interactor> => Interactor.layer(make(options))

/**
 * The defaults of a form; cancelled by `by` when a required field has none.
 *
 * @since 0.1.0
 * @category operations
 */
export const filled = (
  by: string,
  { interaction, requestId }: InteractionRequest<Elicit>
): Effect.Effect<Field.Values, InteractionCancelled> =>
  Effect.suspend(() => {
    const values = Field.defaults(interaction.fields)
    return values === undefined ? new InteractionCancelled({ requestId, by }) : Effect.succeed(values)
  })

/**
 * Automatic answers to a form. Keys are 1-based question numbers.
 *
 * @since 0.1.0
 * @category getters
 */
export const answers = (questions: ReadonlyArray<Question.Question>, freeText: string): Question.ClarifyAnswers =>
  Object.fromEntries(
    questions.map((question, index) => [String(index + 1), Question.autoAnswer(question, freeText)] as const)
  )
