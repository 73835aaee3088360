/**
 * How far a person is in a form. An interactor that asks the questions one by one reports it to the asker. It is an
 * ambient value: without a listener it goes nowhere.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { QuestionAnswer } from "./Question.js"

/** A question was asked, or answered; `answer` is absent when it was asked. */
export interface Progress {
  /** 1-based. */
  readonly number: number
  readonly total: number
  readonly answer?: QuestionAnswer | undefined
}

export class FormProgress extends Context.Reference<FormProgress>()("assent/interaction/FormProgress", {
  defaultValue: (): ((progress: Progress) => Effect.Effect<void>) => () => Effect.void
}) {}

export const tell = (progress: Progress): Effect.Effect<void> =>
  Effect.flatMap(FormProgress, (listener) => listener(progress))
