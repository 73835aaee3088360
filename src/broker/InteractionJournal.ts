/**
 * What the core writes down of its questions, so that they outlive the process: raised before anybody sees them, settled
 * before the answer counts. And what was answered while no process ran.
 */
import type * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Answered } from "../interaction/Interactor.js"

/** How a request ended for good before this process asked it, and who ended it. */
export interface Kept {
  /** Encoded; absent when the question was withdrawn. */
  readonly answer?: unknown
  readonly by: string
  /** Present when nobody decided, but a rule that somebody had opted for. */
  readonly how?: "timeout" | "yolo" | undefined
}

/** Where requests and their ends are kept before they count, so that they outlive the process. */
export interface InteractionJournal {
  /** Returns when it is durable; fails with a sentence, and then nobody is asked. */
  readonly raised: (request: InteractionRequest) => Effect.Effect<void, string>
  /** Returns when it is durable; fails with a sentence, and then an answer does not count. */
  readonly settled: (
    request: InteractionRequest,
    end: Exit.Exit<Answered<Interaction.Interaction>, InteractionError>
  ) => Effect.Effect<void, string>
  /** The end that came before the request was raised again. */
  readonly kept: (requestId: string) => Kept | undefined
}
