/**
 * How far somebody is in a form: what an interactor that puts questions one by one tells whoever asked it. An ambient
 * value: without a listener it goes nowhere.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { QuestionAnswer } from "./Question.js"

/** A question was put, or answered; the answer is absent when it was put. */
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
