/**
 * Routes a driver's words to the agents of a tree. The router takes each id once, and acknowledges words when they are
 * durable. So a sender that does not know whether its words arrived sends them again.
 *
 * ```
 *  words ─► still open? ─► id unknown? ─► an agent ─► filed ─► on the disk ─► acknowledged
 *                              └─ known ─► those before are on the disk ─► MessageAlreadyTaken, or MessageDiffers
 *
 *  the agent that the words name, else the one that the user selected,
 *  else the deepest child that works under a call which may be interrupted,
 *  else the root
 * ```
 *
 * Deciding and filing are one synchronous step. When the turn of an agent has decided to end, its words go to the session
 * that called it, and so on up to the root, which takes everything. Words that a child's turn has not read at its end go up
 * the same way, under the same id; see `Session.Own.unread`.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Digest from "../core/Digest.js"
import { MessageId, type SessionId } from "../core/Id.js"
import type { Masking } from "../core/Redaction.js"
import { untraced } from "../core/Untraced.js"
import type { CancelReason } from "../core/Interruption.js"
import type { Input, InputRefused } from "../inbox/Input.js"
import type { Taken } from "../inbox/InputTaking.js"
import { isBlank, type Draft, type Message, MessageBlank } from "../inbox/Message.js"
import type * as JournalWriter from "../journal/JournalWriter.js"
import type * as StoreError from "../journal/StoreError.js"
import * as Interjection from "../session/Interjection.js"
import type { RequestedTurn } from "../session/TurnRequests.js"
import type { AgentTree, Node } from "../subagent/AgentTree.js"
import type { Delegations } from "../turn/Delegation.js"
import * as Limits from "../turn/Limits.js"

// -----------------------------------------------------------------------------------------------------------------
// models and errors
// -----------------------------------------------------------------------------------------------------------------

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
 * The same words with this id were taken before; these were not.
 *
 * @since 0.1.0
 * @category errors
 */
export class MessageAlreadyTaken extends Schema.TaggedError<MessageAlreadyTaken>("assent/runtime/MessageAlreadyTaken")(
  "MessageAlreadyTaken",
  { messageId: MessageId }
) {
  override get message(): string {
    return `Message ${this.messageId} was taken before and is not taken again.`
  }
}

/**
 * Why words were not taken: the agent is stopped, they are blank, a file of them is refused, they could not be stored, or
 * their id was used before.
 *
 * @since 0.1.0
 * @category errors
 */
export type NotTaken =
  AgentStopped | MessageAlreadyTaken | MessageDiffers | MessageBlank | InputRefused | JournalWriter.JournalFailure

/**
 * Whose turn or which call is cancelled, and why. Default: the root's turn.
 *
 * @since 0.1.0
 * @category models
 */
export interface InterruptOptions {
  /** The agent whose turn to cancel. Default: the root, and with its turn everything that works under its calls. */
  readonly target?: string | undefined
  /** Cancels one running call instead of a turn: of the target or, without a target, of any agent. */
  readonly toolCallId?: string | undefined
  /** Default: `user`. */
  readonly reason?: CancelReason | undefined
}

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
   * Becomes the message's id. Only the first words under an id are taken, also across a resume. The same words again fail as
   * `MessageAlreadyTaken`, other ones as `MessageDiffers`. Events and the journal hold the id as it is: put no secret into it.
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
 * Other words were taken under this id; these were not.
 *
 * @since 0.1.0
 * @category errors
 */
export class MessageDiffers extends Schema.TaggedError<MessageDiffers>("assent/runtime/MessageDiffers")(
  "MessageDiffers",
  { messageId: MessageId }
) {
  override get message(): string {
    return `Other words were accepted under the id ${this.messageId}, and these were not. Give them another id.`
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
export type NotRun = NotTaken | StoreError.JournalUnreadable | StoreError.StoreUnusable

/** A run with an id. */
export interface Run {
  readonly turn: RequestedTurn
  /** Callers that wait for it. */
  waiting: number
}

/** The words of a message, with its files. */
export type Content = Pick<Draft, "parts" | "text">

/** Words, or words with files that were taken. */
export type Words = Taken["draft"]

/** The part of a tree that words go to. */
export type Tree = Pick<AgentTree, "journal" | "node" | "nodes"> & {
  readonly shared: Pick<AgentTree["shared"], "limits" | "redactor">
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export class MessageRouter {
  /** Ids that senders gave, each with its words as {@link wordsIn} digests them; unbounded. */
  private given: Map<string, string> | undefined
  private begun: Map<string, Run> | undefined
  private closed = false
  /** Looked up when words come: an agent that has ended is no longer selected. */
  private chosen: SessionId | undefined

  /** `before`: ids that another process has taken, each with its words. */
  constructor(
    private readonly tree: Tree,
    private readonly root: Node,
    private readonly before?: ReadonlyMap<string, Content>
  ) {}

  // ---------------------------------------------------------------------------------------------------------------
  // whether words are taken
  // ---------------------------------------------------------------------------------------------------------------

  get isClosed(): boolean {
    return this.closed
  }

  /** Refuses all later words. */
  close(): void {
    this.closed = true
  }

  /** The error of all later words; undefined while the router takes words. */
  get ended(): AgentStopped | undefined {
    // Words filed after the journal was frozen are not in it.
    return this.closed || this.tree.journal.isFrozen() ? new AgentStopped({ agent: this.root.origin.agent }) : undefined
  }

  /** Looks at files, with the agents that will read them, and stores their content: the journal refers to it. */
  accept(input: Input, readers: () => ReadonlyArray<Interjection.Agent>): Effect.Effect<Words, NotTaken> {
    if (typeof input === "string") return Effect.succeed({ text: input })
    return Effect.gen(this, function* () {
      const { limits, redactor } = this.tree.shared
      const InputTaking = yield* loadTaking
      const { contents, draft } = yield* InputTaking.take(input, Limits.withDefaults(limits), redactor)
      if (contents.length === 0) return draft
      for (const { session } of readers()) {
        const refusal = InputTaking.notTaken(draft, yield* session.model)
        if (refusal !== undefined) return yield* refusal
      }
      const { ended } = this
      if (ended !== undefined) return yield* ended
      yield* this.tree.journal.keep(contents)
      return draft
    })
  }

  /** Runs what these words begin. */
  admit<A, E>(words: Words, effect: Effect.Effect<A, E>): Effect.Effect<A, E | AgentStopped | MessageBlank> {
    return Effect.suspend((): Effect.Effect<A, E | AgentStopped | MessageBlank> => this.refusal(words) ?? effect)
  }

  /** Files these words, and returns when they are durable. */
  take<A, E>(
    { parts, text }: Words,
    id: string | undefined,
    file: (draft: Draft) => Either.Either<A, E>
  ): Effect.Effect<A, E | NotTaken> {
    return Effect.suspend((): Effect.Effect<A, E | NotTaken> => {
      const refusal = this.refusal({ parts, text })
      if (refusal !== undefined) return refusal
      const messageId = id === undefined ? undefined : MessageId.make(id, { disableValidation: true })
      if (messageId !== undefined && this.isKnown(messageId)) {
        const before: MessageDiffers | MessageAlreadyTaken = this.isOther(messageId, { parts, text })
          ? new MessageDiffers({ messageId })
          : new MessageAlreadyTaken({ messageId })
        return Effect.zipRight(this.tree.journal.flush, Effect.fail(before))
      }
      // Not a spread with the id behind it: V8 makes a shape for each of those.
      const filed = file({ id: messageId, text, parts })
      if (Either.isLeft(filed)) return filed
      if (messageId !== undefined) this.know(messageId, { parts, text })
      const { kept } = this
      return kept === undefined ? filed : Effect.zipRight(kept, filed)
    })
  }

  /** Returns when what was filed is durable; undefined when nothing is stored. */
  get kept(): Effect.Effect<void, AgentStopped | JournalWriter.JournalFailure> | undefined {
    const { journal } = this.tree
    if (!journal.enabled) return undefined
    return Effect.suspend((): Effect.Effect<void, AgentStopped | JournalWriter.JournalFailure> =>
      journal.isFrozen() ? new AgentStopped({ agent: this.root.origin.agent }) : journal.flush
    )
  }

  private refusal({ parts, text }: Words): AgentStopped | MessageBlank | undefined {
    return this.ended ?? (parts === undefined && isBlank(text) ? new MessageBlank() : undefined)
  }

  // ---------------------------------------------------------------------------------------------------------------
  // ids
  // ---------------------------------------------------------------------------------------------------------------

  isKnown(id: string): boolean {
    return this.given?.has(id) === true || this.before?.has(id) === true
  }

  know(id: string, words: Content): void {
    this.given = (this.given ?? new Map()).set(id, this.digest(words))
  }

  /** Whether the id was given to words that say something else. */
  isOther(id: string, words: Content): boolean {
    const before = this.before?.get(id)
    const known = this.given?.get(id) ?? (before && this.digest(before))
    return known !== undefined && known !== this.digest(words)
  }

  private digest(words: Content): string {
    return Digest.sha256(wordsIn(words, this.tree.shared.redactor))
  }

  /** Its words were withdrawn. */
  forget(id: string): void {
    this.given?.delete(id)
    this.begun?.delete(id)
  }

  /** Runs with an id, those that are over too; unbounded. */
  get runs(): Map<string, Run> {
    return (this.begun ??= new Map())
  }

  // ---------------------------------------------------------------------------------------------------------------
  // which agent
  // ---------------------------------------------------------------------------------------------------------------

  /** Finds an agent by its path, its session's id or its subagent id. */
  find(target: string): Either.Either<Node, Interjection.AgentUnknown> {
    const paths: Array<string> = []
    for (const node of this.tree.nodes) {
      const { agent, sessionId, subagentId } = node.origin
      if (target === agent || target === sessionId || target === subagentId) return Either.right(node)
      paths.push(agent)
    }
    return Either.left(untraced(() => new Interjection.AgentUnknown({ target, agents: paths }, true)))
  }

  /** The agents that a target means: all when there is none. */
  those(target: string | undefined): Either.Either<ReadonlyArray<Node>, Interjection.AgentUnknown> {
    return target === undefined ? Either.right(this.tree.nodes) : Either.map(this.find(target), (node) => [node])
  }

  /** Selects the agent for words without a target, as long as it lives; undefined: no selection. */
  select(target: string | undefined): Either.Either<void, Interjection.AgentUnknown> {
    const found = target === undefined ? Either.right(undefined) : this.find(target)
    return Either.map(found, (node) => {
      this.chosen = node?.origin.sessionId
    })
  }

  get selected(): Node | undefined {
    return this.chosen === undefined ? undefined : this.tree.node(this.chosen)
  }

  /** The agent that reads words to this target; the root when no agent has that name. */
  readerOf(target: string | undefined): Interjection.Agent {
    return target === undefined ? this.receiver().agent : Either.getOrElse(this.find(target), () => this.root)
  }

  /** The receiver of words, and the reason for it. */
  receiver(target?: Node): Interjection.Receiver {
    const chosen = target ?? this.selected
    if (chosen !== undefined) return { agent: chosen, parentId: this.callOver(chosen), chosen: true }
    return this.deepest(this.root.session.delegations) ?? { agent: this.root, parentId: "root", chosen: false }
  }

  /** Sends words to an agent, or to the receiver of words without a target. */
  send(draft: Draft, target: string | undefined): Either.Either<Message, Interjection.AgentUnknown> {
    if (target === undefined) return Either.right(this.deliver(draft))
    return Either.map(this.find(target), (found) => this.deliver(draft, found))
  }

  /** Sends words to each target once, and to no target if one of them is unknown. */
  broadcast(
    draft: Draft,
    targets: ReadonlyArray<string>
  ): Either.Either<ReadonlyArray<Message>, Interjection.AgentUnknown> {
    const found = Either.all(targets.map((target) => this.find(target)))
    return Either.map(found, (nodes) => Array.from(new Set(nodes), (node) => this.deliver(draft, node)))
  }

  private deliver(draft: Draft, target?: Node): Message {
    const { agent, chosen, parentId } = this.receiver(target)
    return this.file(draft, agent, parentId, chosen)
  }

  private file(
    draft: Draft,
    { begin, origin, session }: Interjection.Agent,
    parentId: string,
    mayBegin: boolean
  ): Message {
    const isRoot = origin.sessionId === this.root.origin.sessionId
    if (isRoot || begin === undefined) return this.root.session.send(draft, "steer", { parentId: "root" })
    if (session.isReceiving()) return session.send(draft, "steer", { parentId })
    return Option.getOrElse(mayBegin ? begin(draft) : Option.none(), () => {
      const parent = this.parentOf(origin) ?? this.root
      return this.file(draft, parent, this.callOver(parent), false)
    })
  }

  /** The deepest child that reads words: see `Delegations.first`. */
  private deepest(delegations: Delegations): Interjection.Receiver | undefined {
    const delegation = delegations.first()
    if (delegation === undefined) return undefined
    const { session, toolCallId } = delegation
    const agent = this.tree.node(session.origin.sessionId)
    return this.deepest(session.delegations) ?? (agent && { agent, parentId: toolCallId, chosen: false })
  }

  private parentOf({ parentSessionId }: Interjection.Agent["origin"]): Node | undefined {
    return parentSessionId === undefined ? undefined : this.tree.node(parentSessionId)
  }

  /** The tool call under which an agent works. */
  private callOver({ origin }: Interjection.Agent): string {
    return this.parentOf(origin)?.session.delegations.of(origin.sessionId)?.toolCallId ?? "root"
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const loadTaking = Effect.promise(() => import("../inbox/InputTaking.js"))

/** What two messages have in common if they say the same: their words, masked, and their files. */
const wordsIn = ({ parts, text }: Content, { text: masked }: Masking): string =>
  JSON.stringify([
    masked(text),
    ...(parts ?? []).map((part) => (part.type === "text" ? masked(part.text) : part.file.sha256))
  ])
