/**
 * The tasks of one child: given, waited for by a call or by nobody, and told.
 *
 * ```
 *  work ──► turn ──end──► the call that waits for it
 *  begin ─► turn ──end──► a message for the parent, which is not idle until then
 * ```
 *
 * Nobody who waits means no fiber: the child itself tells how the task ended, in the step in which its turn ends.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { MessageId, ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { Message, Source } from "../inbox/Message.js"
import * as History from "../conversation/History.js"
import { OneShot } from "../internal/OneShot.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as Session from "../session/Session.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import { neverBegun, type TurnEnd } from "../event/TurnEnd.js"
import type { AgentTree } from "./AgentTree.js"
import * as SubagentResult from "./SubagentResult.js"

/** A task that has ended. */
export interface Done {
  readonly end: TurnEnd
  readonly result: SubagentResult.SubagentResult
}

/** Publishes as the child. */
export type Tell = (body: AgentEvent.Body) => void

export interface Options {
  /** Of the child. */
  readonly id: string
  readonly parent: Session.Service
  readonly tree: AgentTree
  readonly session: Session.Service
  readonly journal: SessionRecorder | undefined
  readonly tell: Tell
}

export class ChildTasks {
  /** Those that nobody waits for, oldest first; gone when they have ended. */
  private open: ReadonlyArray<Open> = none
  /** Given before a restart. */
  private readonly left: ReadonlyArray<Left>
  private isSilent = false

  constructor(
    private readonly options: Options,
    left: ReadonlyArray<SessionSnapshot.Task> = none
  ) {
    this.left = left.map(({ end, messageId, toolCallId }) => {
      const order =
        end === undefined ? options.session.rejoin(messageId) : { end: OneShot.of(end), giveUp: Effect.void }
      const said = new Said(options.session, messageId)
      order.end.observe(said.close)
      return { messageId, toolCallId, said, end: order.end, giveUp: order.giveUp }
    })
  }

  /** Gives it a task and waits for the end. Interrupting it cancels the task. */
  work(task: string): Effect.Effect<Done> {
    const { journal, parent, session } = this.options
    return Effect.flatMap(Origin.current, ({ toolCallId }) => {
      const said = new Said(session)
      const authority = parent.bound()
      const filed = ({ id }: Message) => {
        said.id = id
        journal?.given(id, toolCallId, authority !== undefined)
      }
      const end = session.turn(task, { source: "parent", reason: "parent", authority, filed, ended: said.close })
      return this.waited(end, said)
    })
  }

  /** As {@link work}, for a call that gave it the task already in another process: waits for that one's end. */
  workOn(task: string): Effect.Effect<Done> {
    return Effect.flatMap(Origin.current, ({ toolCallId }) => {
      const given = this.left.find((task) => task.toolCallId === toolCallId)
      if (given === undefined) return this.work(task)
      return this.waited(
        Effect.onInterrupt(given.end, () => given.giveUp),
        given.said
      )
    })
  }

  /** Gives it a task and does not wait. The parent is not idle meanwhile, and is told the end as a message. */
  begin(task: string): Effect.Effect<void> {
    return Effect.sync(() => void this.give(task, "parent"))
  }

  /**
   * Takes words of the parent: to be read by what it works on, else as a task. What it works on may not be under what the
   * parent's turn is under, and then must not do that turn's work along with its own.
   */
  hear(words: string): Effect.Effect<"now" | "later" | "reads"> {
    const { parent, session } = this.options
    return Effect.map(session.isIdle, (idle) => {
      const bound = parent.bound()
      if (!idle && (bound === undefined || bound === session.bound())) {
        session.note(words)
        return "reads"
      }
      this.give(words, "parent")
      return idle ? "now" : "later"
    })
  }

  /** As {@link begin}, unless it was given a task before a restart. */
  beginOnce(task: string): Effect.Effect<void> {
    return this.left.length > 0 ? Effect.void : this.begin(task)
  }

  /** The tasks of another process that no call waits for: the parent is told their ends. */
  get goOn(): Effect.Effect<void> {
    return Effect.sync(() => {
      for (const task of this.left) if (task.toolCallId === undefined) this.alone(task.messageId, task)
    })
  }

  /** As {@link begin}, at once, from whomever; nothing when the child has ended. */
  give(task: string, source: Source, id?: MessageId): Option.Option<Message> {
    const { journal, parent, session } = this.options
    // A person's words to it are no work of its parent's turn.
    const authority = source === "parent" ? parent.bound() : undefined
    const filed = journal && (({ id }: Message) => journal.given(id, undefined, authority !== undefined))
    const order = { source, reason: "parent", authority, filed, id } as const
    return Option.map(session.order(task, order), ({ end, giveUp, message }) => {
      this.alone(message.id, { end, giveUp })
      return message
    })
  }

  /** The parent closes the child, and is told no more ends. */
  silence(): void {
    this.isSilent = true
  }

  /** Stops or takes back those that nobody waits for, the latest first, and tells no parent. */
  get giveUp(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.isSilent = true
      const { open } = this
      if (open.length === 0) return Effect.void
      return Effect.forEach(open.toReversed(), ({ giveUp, release }) => Effect.ensuring(giveUp, Effect.sync(release)), {
        discard: true
      })
    })
  }

  /** Nobody waits: the parent is not idle until it is told. */
  private alone(messageId: MessageId, { end, giveUp }: Pick<Session.Order, "end" | "giveUp">): void {
    const { journal, parent, session } = this.options
    const said = () => History.saidIn(session.history, messageId)
    const open: Open = { giveUp, release: parent.retain() }
    // Mostly there is one, and what a spread makes has room for sixteen more.
    this.open = this.open.length === 0 ? [open] : [...this.open, open]
    end.observe((end) => {
      this.open = this.open.length === 1 ? none : this.open.filter((other) => other !== open)
      // Of a child that is closed only what has begun has an end to tell, and that to those who look on.
      if (!this.isSilent) {
        parent.inbox.childPort.tell(SubagentResult.announce(this.doneWith(end, said()).result, end))
        journal?.told(messageId)
      } else if (end !== neverBegun) this.doneWith(end, said())
      open.release()
    })
  }

  /** A task that is stopped has an end too, and it is told; not that of one which was taken back before it began. */
  private waited(end: Effect.Effect<TurnEnd>, said: Said): Effect.Effect<Done> {
    const { session } = this.options
    const before = session.turns()
    const doneWith = (end: TurnEnd) => this.doneWith(end, said.text)
    const stopped = () =>
      Effect.flatMap(session.isIdle, (idle) =>
        idle && session.turns() > before ? Effect.map(session.awaitIdle, Option.map(doneWith)) : Effect.void
      )
    return Effect.map(Effect.onInterrupt(end, stopped), doneWith)
  }

  private doneWith(end: TurnEnd, said: string): Done {
    const { id, session, tell, tree } = this.options
    const usage = tree.shared.ledger.of(session.origin.sessionId)
    const result = SubagentResult.make({
      agentId: id,
      end,
      text: end._tag === "Completed" ? end.text : said === "" && end._tag === "TurnLimit" ? end.text : said,
      // What no provider reported is not nothing, and is not told as nothing.
      usage: usage.unknownCalls === usage.calls ? undefined : { input: usage.inputTokens, output: usage.outputTokens },
      outputStreamed: tree.settings.outputStreamed
    })
    const { error, success, turns_used: turnsUsed } = result
    tell({ _tag: "AgentCompleted", success, turnsUsed, ...(error === undefined ? {} : { error }) })
    return { end, result }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: ReadonlyArray<never> = []

interface Open {
  readonly giveUp: Effect.Effect<void>
  /** Lets the parent be idle. */
  readonly release: () => void
}

interface Left extends Pick<Session.Order, "end" | "giveUp"> {
  readonly said: Said
  readonly messageId: MessageId
  readonly toolCallId: ToolCallId | undefined
}

/** What was said in one turn, taken in the step in which it ends: another may follow, and shorten the history. */
class Said {
  text = ""

  constructor(
    private readonly session: Session.Service,
    public id?: MessageId
  ) {}

  readonly close = (): void => {
    if (this.id !== undefined) this.text = History.saidIn(this.session.history, this.id)
  }
}
