/**
 * What the core journals of its questions, so that they outlive the process: that one is raised, before anybody sees
 * it, and that it is settled, before the answer counts. It also yields what was answered while no process ran.
 */
import type * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { AuditEntry } from "../audit/AuditRecord.js"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type { Answered, Vote } from "../interaction/Interactor.js"

/**
 * How a request ended for good before this process asked it, and who ended it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Kept {
  /** Encoded; absent when the question was withdrawn. */
  readonly answer?: unknown
  readonly by: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Present when no person decided, but a rule that somebody had opted in to. */
  readonly how?: "timeout" | "yolo" | undefined
}

/**
 * Where requests and their ends are kept before they count, so that they outlive the process.
 *
 * @since 0.1.0
 * @category models
 */
export interface InteractionJournal {
  /** Whether another process goes on from here: what is open stays open for it, and nothing that comes now is kept. */
  readonly isParked: () => boolean
  /** Returns when the request is durable. When it fails, with a sentence, nobody is asked. */
  readonly raised: (request: InteractionRequest) => Effect.Effect<void, string>
  /**
   * Returns when the end is durable, however long that takes. When it fails, with a sentence, nothing of an answer is kept, and
   * it does not count; another end is kept all the same. `audited`: what the audit has of it, if the journal's store keeps the
   * audit.
   */
  readonly settled: (
    request: InteractionRequest,
    end: Exit.Exit<Answered<Interaction.Interaction>, InteractionError>,
    audited?: AuditEntry
  ) => Effect.Effect<void, string>
  /** The end that came before the request was raised again. */
  readonly kept: (requestId: string) => Kept | undefined
  /** Who ended the request in a former process, for an answer that comes too late. */
  readonly settledBy: (requestId: string) => string | undefined
  /** Returns when a vote on the request is durable. When it fails, with a sentence, nothing of the vote is kept. */
  readonly voted: (
    request: InteractionRequest,
    vote: Vote<Interaction.Approve>,
    audited?: AuditEntry
  ) => Effect.Effect<void, string>
  /** The votes that came before the request was raised again, on exactly these arguments. */
  readonly votes: (requestId: string, digest: string) => ReadonlyArray<Vote<Interaction.Approve>>
}
