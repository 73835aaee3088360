/**
 * The port to an interactor: a request goes in, an answer comes out.
 *
 * Callers use all of this under the name `Interactor`. It stands in a file of its own so that the fast paths can import
 * it.
 */
import type * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Option from "effect/Option"
import type { Answer, Approve, Interaction } from "./Interaction.js"
import type { AnswerRejected, InteractionError } from "./InteractionError.js"
import type { InteractionRequest } from "./InteractionRequest.js"

/**
 * How an answer came about: somebody gave it, a model gave it in their place, or a rule did because nobody would.
 *
 * @since 0.1.0
 * @category models
 */
export type How = "answered" | "model" | "timeout" | "auto" | "yolo" | "recheck"

/**
 * What an interactor yields.
 *
 * @since 0.1.0
 * @category models
 */
export interface Reply<I extends Interaction> {
  readonly answer: Answer<I>
  /**
   * Who answered, as the interactor knows it for itself: by a token, the operating system's user, the application's own
   * sign-in. What an answer says of its author is not that. Default: the id of the interactor.
   */
  readonly by?: string | undefined
  /** Roles that the author has, as the interactor knows it; a policy may name others. */
  readonly roles?: ReadonlyArray<string> | undefined
  /** Present when several people agreed on it: the vote of each. */
  readonly votes?: ReadonlyArray<Vote<I>> | undefined
}

/**
 * An answer with its author.
 *
 * @since 0.1.0
 * @category models
 */
export interface Answered<I extends Interaction> extends Reply<I> {
  /** The person, where one is named; else the id of the interactor, or the path of the agent, that decided. */
  readonly by: string
  /** Always `answered` for a program's own interactor; only Assent's own rooms set another value. */
  readonly how: How
  /** Milliseconds since the epoch: when it was given. Present when that was before this process asked. */
  readonly at?: number | undefined
}

/**
 * One person's answer to a question on which several have to agree.
 *
 * @since 0.1.0
 * @category models
 */
export interface Vote<I extends Interaction> {
  readonly answer: Answer<I>
  /** Whose vote it is; each person counts once. */
  readonly by: string
  /** Roles that this person has, beside those of a policy. */
  readonly roles?: ReadonlyArray<string> | undefined
}

/**
 * An approval that will be asked later, as it would be asked now.
 *
 * @since 0.1.0
 * @category models
 */
export interface Upcoming {
  /** Its place in the batch of the request that is asked now. */
  readonly index: number
  readonly interaction: Approve
}

/**
 * What goes with a request. An interactor that wraps another hands it on.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<I extends Interaction> {
  /** May already know the answer. An interactor with a line evaluates it at the head of the line: see `rechecked`. */
  readonly recheck?: Effect.Effect<Option.Option<Answer<I>>> | undefined
  /**
   * Why the question was withdrawn. An interactor reads it after its asking was interrupted, to report the end: a
   * question that timed out further down was not cancelled by anybody.
   */
  readonly withdrawn?: (() => InteractionError | undefined) | undefined
  /**
   * Called with the end, also if the asker was interrupted meanwhile and so does not get it. Only for relays.
   *
   * @internal
   */
  readonly settled?: ((end: Exit.Exit<Answered<I>, InteractionError>) => void) | undefined
  /**
   * How the question ended elsewhere. An interactor reads it after its asking was interrupted, to tell the person it
   * asked. Nothing when the question was not settled, but this interactor was detached.
   */
  readonly ended?: (() => Ended | undefined) | undefined
  /** The votes given so far, where several have to agree. Absent: one answer decides. */
  readonly votes?: ReadonlyArray<Vote<I>> | undefined
  /**
   * Files an answer without ending the dialog, where several have to agree. An interactor yields one answer, and votes
   * once with it; one through which several people answer gives each answer to this function and goes on asking. It
   * returns when the vote is durable, and fails where the vote does not count: its author is told so, and the dialog stays.
   */
  readonly vote?: ((reply: Reply<I>) => Effect.Effect<Filed, AnswerRejected>) | undefined
  /**
   * The other approvals of the request's batch, for an interactor that shows them side by side. None of them is open: each is
   * asked when its turn comes, unless something else decides it before. What was answered to one meanwhile counts if exactly
   * that is asked then, and the interactor answers with it. An interactor that may ask others for those hands this on to
   * nobody. Absent: there are none.
   */
  readonly upcoming?: Effect.Effect<ReadonlyArray<Upcoming>> | undefined
  /**
   * Who is asked next, where somebody is: an interactor may tell the person, and let them pass the question on. Then it fails
   * as unavailable, which is no answer.
   */
  readonly next?: Next | undefined
  /**
   * Ends the turn of the root as `Halted` with this sentence, for an interactor that nobody is behind, once the tools that
   * run have ended. It returns at once, and the asking is interrupted then. Absent where no agent asks.
   */
  readonly halt?: ((detail: string) => Effect.Effect<void>) | undefined
  /**
   * Begins the time for an answer, for an interactor in which something else may stand before a question; yields when it
   * ends, in milliseconds of the clock, as far as can be told now. Once begun it does not begin anew. Absent: there is no
   * limit, or it has begun.
   *
   * @internal
   */
  readonly shown?: Effect.Effect<() => number> | undefined
}

/**
 * Who is asked next, by the id of the interactor, and after how many milliseconds; without a time only when this one passes
 * or cannot answer.
 *
 * @since 0.1.0
 * @category models
 */
export interface Next {
  readonly by: string
  readonly after?: number | undefined
}

/**
 * What came of a vote: others are waited for, or it settled the question. Then the asking is interrupted.
 *
 * @since 0.1.0
 * @category models
 */
export type Filed = "open" | "settled"

/**
 * How a question ended, for the interactors that were asked as well and did not end it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Ended {
  readonly status: "answered" | "cancelled" | "timed_out" | "unavailable"
  /** Who ended it; absent when nobody did. */
  readonly by: string | undefined
  /** Reports that somebody answered after the end. */
  readonly late: (by: string) => void
}

/**
 * Asks somebody. A request that cannot be answered fails with an `InteractionError`, and never allows anything.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** Names the interactor in events, audit and messages. */
  readonly id: string
  /** True for an interactor that only forwards and shows nothing itself. */
  readonly relay: boolean
  /**
   * The one person who answers here, where it can be nobody else. They are not asked what they have no say in. Absent: it
   * is known only with the answer.
   */
  readonly principal?: string | undefined
  /** Roles of the principal, as the interactor knows it. */
  readonly roles?: ReadonlyArray<string> | undefined
  /**
   * Asks and waits for the answer. Interrupting it withdraws the question and closes the dialog. Fails when the question
   * was withdrawn, timed out, or could not be put; a denial is an answer.
   */
  readonly request: <I extends Interaction>(
    request: InteractionRequest<I>,
    options?: Options<I>
  ) => Effect.Effect<Reply<I>, InteractionError>
}
