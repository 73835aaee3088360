/**
 * What an interactor is to whoever asks it: a request goes in, an answer comes out.
 *
 * `Interactor` is the name under which all of this is used; it stands here so that what is faster than this port can know
 * of it.
 */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { Answer, Interaction } from "./Interaction.js"
import type { InteractionError } from "./InteractionError.js"
import type { InteractionRequest } from "./InteractionRequest.js"

/** How an answer came about: somebody gave it, a model did in their place, or a rule because nobody would. */
export type How = "answered" | "model" | "timeout" | "auto" | "yolo" | "recheck"

/** What an interactor yields. */
export interface Reply<I extends Interaction> {
  readonly answer: Answer<I>
  /** The person, where one is named. Default: the id of the interactor. */
  readonly by?: string | undefined
}

/** An answer with its author. */
export interface Answered<I extends Interaction> extends Reply<I> {
  /** The person where one is named, else the id of the interactor, or the path of the agent, that decided. */
  readonly by: string
  /** Whatever an interactor of a program's own yields was `answered`: how else, only our own rooms say. */
  readonly how: How
}

/** What somebody said to a question that takes more than one voice. */
export interface Vote<I extends Interaction> {
  readonly answer: Answer<I>
  /** Whose voice it is: each counts once. */
  readonly by: string
}

/** What goes with a request. An interactor that wraps another hands it on. */
export interface Options<I extends Interaction> {
  /** May already know the answer. Whoever keeps a line evaluates it when the request reaches the head: see `rechecked`. */
  readonly recheck?: Effect.Effect<Option.Option<Answer<I>>> | undefined
  /**
   * Why the question was taken back. Read by whoever tells its end, once asking was interrupted: a question that ran out of
   * time further down has not been cancelled by anybody.
   */
  readonly withdrawn?: (() => InteractionError | undefined) | undefined
  /**
   * How the question ended elsewhere. Read by an interactor once its own asking was interrupted, to tell whoever sits there;
   * nothing when the question was not settled, but this interactor was detached.
   */
  readonly ended?: (() => Ended | undefined) | undefined
  /** What was said so far, where several have to agree. Absent: one answer decides. */
  readonly votes?: ReadonlyArray<Vote<I>> | undefined
}

/** How a question ended that others were asked as well, for those who did not end it. */
export interface Ended {
  readonly status: "answered" | "cancelled" | "timed_out" | "unavailable"
  /** Who ended it; absent when nobody did. */
  readonly by: string | undefined
  /** Tells that somebody answered after that. */
  readonly late: (by: string) => void
}

/** Asks somebody. What cannot be answered fails with an `InteractionError`, and never allows anything. */
export interface Service {
  /** Names the interactor in events, audit and messages. */
  readonly id: string
  /** True for an interactor that only passes on and shows nothing. */
  readonly relay: boolean
  /**
   * Asks and waits for the answer. Interrupting it withdraws the question and closes the dialog. Fails when the question
   * was withdrawn, timed out, or could not be put; a denial is an answer.
   */
  readonly request: <I extends Interaction>(
    request: InteractionRequest<I>,
    options?: Options<I>
  ) => Effect.Effect<Reply<I>, InteractionError>
}
