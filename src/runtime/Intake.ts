/**
 * Takes words into an agent: only while it runs, each id once, and durable before they are acknowledged.
 *
 * ```
 *  words ─► still taking? ─► id unknown? ─► filed ─► on the disk ─► whoever sent them is told
 *                                 └─ known ─► those before are on the disk ─► MessageAlreadyTaken
 * ```
 *
 * So a sender that does not know whether its words arrived, because one of the two processes died, sends them again.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { MessageId } from "../core/Id.js"
import type { InputRefused } from "../inbox/Input.js"
import type { Taken } from "../inbox/InputTaking.js"
import { isBlank, MessageBlank } from "../inbox/Message.js"
import type * as JournalWriter from "../journal/JournalWriter.js"
import type * as StoreError from "../journal/StoreError.js"
import type { RequestedTurn } from "../session/TurnRequests.js"

/**
 * The agent was shut down and takes no more words.
 *
 * @since 0.1.0
 * @category errors
 */
export class AgentStopped extends Schema.TaggedError<AgentStopped>("assent/runtime/AgentStopped")("AgentStopped", {
  agent: Schema.String
}) {
  override get message(): string {
    return `Agent ${this.agent} was shut down; start another one.`
  }
}

/**
 * Earlier words with this id were taken; these were not.
 *
 * @since 0.1.0
 * @category errors
 */
export class MessageAlreadyTaken extends Schema.TaggedError<MessageAlreadyTaken>("assent/runtime/MessageAlreadyTaken")(
  "MessageAlreadyTaken",
  { messageId: MessageId }
) {
  override get message(): string {
    return `Message ${this.messageId} was taken before and is not taken again; give other words another id.`
  }
}

/**
 * Why words were not taken: the agent is stopped, they are blank, a file of them is refused, they could not be stored, or
 * their id was used before.
 *
 * @since 0.1.0
 * @category errors
 */
export type NotTaken = AgentStopped | MessageAlreadyTaken | MessageBlank | InputRefused | JournalWriter.JournalFailure

/**
 * Target and id of words.
 *
 * @since 0.1.0
 * @category models
 */
export interface SendOptions {
  /** One agent: its path, its session's id or its subagent id. */
  readonly target?: string | undefined
  /**
   * Becomes the message's id. Only the first words under an id are taken, also across a resume; others fail as
   * `MessageAlreadyTaken`. It is told and written as it is: no secret belongs into it.
   */
  readonly id?: string | undefined
}

/**
 * The typed result of a run. The schema must have a JSON form, and need no services.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunOptions<A, I> {
  readonly output: Schema.Schema<A, I>
}

/**
 * Other words were taken under this id; these were not run.
 *
 * @since 0.1.0
 * @category errors
 */
export class MessageDiffers extends Schema.TaggedError<MessageDiffers>("assent/runtime/MessageDiffers")(
  "MessageDiffers",
  { messageId: MessageId }
) {
  override get message(): string {
    return `Other words were taken under the id ${this.messageId}, and these are not run. Give them another id.`
  }
}

/**
 * The id of a run.
 *
 * @since 0.1.0
 * @category models
 */
export interface RunId {
  /**
   * Becomes the message's id, as in `SendOptions`. Each id is run once: the same words again wait for, or get, the end
   * of that run.
   */
  readonly id: string
}

/**
 * Why a run with an id has no end for its caller: also, the id has other words, or the store cannot be read.
 *
 * @since 0.1.0
 * @category errors
 */
export type NotRun = NotTaken | MessageDiffers | StoreError.JournalUnreadable | StoreError.StoreUnusable

/** A run with an id. */
export interface Run {
  /** Its words, masked, and its files. */
  readonly words: string
  readonly turn: RequestedTurn
  /** Callers that wait for it. */
  waiting: number
}

/** Words, or words with files that were taken. */
type Words = Taken["draft"]

export class Intake {
  /** Ids that senders gave; unbounded. */
  private given: Set<string> | undefined
  private begun: Map<string, Run> | undefined
  private closed = false

  /** `before`: ids that another process has taken. */
  constructor(
    private readonly agent: string,
    private readonly journal: JournalWriter.Service,
    private readonly before?: ReadonlySet<string>
  ) {}

  get isClosed(): boolean {
    return this.closed
  }

  /** Refuses all later words. */
  close(): void {
    this.closed = true
  }

  /** Runs what these words begin, unless the agent is stopped. */
  admit<A, E>(draft: Words, effect: Effect.Effect<A, E>): Effect.Effect<A, E | AgentStopped | MessageBlank> {
    return Effect.suspend((): Effect.Effect<A, E | AgentStopped | MessageBlank> => this.refusal(draft) ?? effect)
  }

  /** Runs with an id, those that are over too; unbounded. */
  get runs(): Map<string, Run> {
    return (this.begun ??= new Map())
  }

  taken(messageId: MessageId): MessageAlreadyTaken {
    return new MessageAlreadyTaken({ messageId })
  }

  differs(messageId: MessageId): MessageDiffers {
    return new MessageDiffers({ messageId })
  }

  know(id: string): void {
    this.given = (this.given ?? new Set()).add(id)
  }

  /** Its words were withdrawn, or not stored. */
  forget(id: string): void {
    this.given?.delete(id)
    this.begun?.delete(id)
  }

  /** Keeps the content of files before their message is filed: what the journal refers to must be there. */
  keep(contents: Taken["contents"]): Effect.Effect<void, AgentStopped | JournalWriter.JournalFailure> {
    return Effect.suspend((): Effect.Effect<void, AgentStopped | JournalWriter.JournalFailure> =>
      this.isStopped() ? this.stopped() : this.journal.keep(contents)
    )
  }

  /** Files these words, and returns when they are durable. */
  take<A, E>(
    draft: Words,
    file: (id: MessageId | undefined) => Effect.Effect<A, E>,
    id?: string
  ): Effect.Effect<A, E | NotTaken> {
    return Effect.suspend((): Effect.Effect<A, E | NotTaken> => {
      const refusal = this.refusal(draft)
      if (refusal !== undefined) return refusal
      if (id === undefined) return this.durable(file(undefined))
      const messageId = MessageId.make(id, { disableValidation: true })
      if (this.isKnown(id)) return Effect.zipRight(this.journal.flush, this.taken(messageId))
      // In one step with the check: of two concurrent sends with one id, the second finds it.
      this.know(id)
      const forget = Effect.sync(() => this.forget(id))
      return this.durable(Effect.onError(file(messageId), () => forget))
    })
  }

  /** Returns when what was filed is durable; undefined when nothing is stored. */
  get kept(): Effect.Effect<void, AgentStopped | JournalWriter.JournalFailure> | undefined {
    const { journal } = this
    if (!journal.enabled) return undefined
    // Words filed after the journal was frozen are not in it.
    return Effect.suspend((): Effect.Effect<void, AgentStopped | JournalWriter.JournalFailure> =>
      journal.isFrozen() ? this.stopped() : journal.flush
    )
  }

  /** Why nothing is taken any more; nothing while it is. */
  get ended(): AgentStopped | undefined {
    return this.isStopped() ? this.stopped() : undefined
  }

  private refusal({ parts, text }: Words): AgentStopped | MessageBlank | undefined {
    if (this.isStopped()) return this.stopped()
    return parts === undefined && isBlank(text) ? new MessageBlank() : undefined
  }

  isKnown(id: string): boolean {
    return this.given?.has(id) === true || this.before?.has(id) === true
  }

  private isStopped(): boolean {
    return this.closed || this.journal.isFrozen()
  }

  private stopped(): AgentStopped {
    return new AgentStopped({ agent: this.agent })
  }

  private durable<A, E>(file: Effect.Effect<A, E>): Effect.Effect<A, E | AgentStopped | JournalWriter.JournalFailure> {
    const { kept } = this
    return kept === undefined ? file : Effect.flatMap(file, (filed) => Effect.as(kept, filed))
  }
}
