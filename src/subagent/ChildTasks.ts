/**
 * The tasks of one child. A call waits for the end of a task, or the parent gets it as a message.
 *
 * ```
 *  work ──► turn ──end──► the call that waits for it
 *  begin ─► turn ──end──► a message for the parent, which is not idle until then
 * ```
 *
 * A task that no call waits for has no fiber: the child itself reports how the task ended, in the step in which its
 * turn ends.
 */
import * as Effect from "effect/Effect"
import type * as FiberRefs from "effect/FiberRefs"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ToolCallId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { Draft, Message } from "../inbox/Message.js"
import * as History from "../conversation/History.js"
import { OneShot } from "../internal/OneShot.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as Session from "../session/Session.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import { neverBegun, type TurnEnd } from "../event/TurnEnd.js"
import * as TypedOutput from "../turn/TypedOutput.js"
import type { AgentTree } from "./AgentTree.js"
import type { SubagentProfile } from "./SubagentProfile.js"
import * as SubagentResult from "./SubagentResult.js"

/** A task that has ended. */
export interface Done {
  readonly end: TurnEnd
  readonly result: SubagentResult.SubagentResult
}

/** Publishes as the child. */
export type Tell = (body: AgentEvent.Body) => void

export interface Options {
  /** Id of the child. */
  readonly id: string
  readonly parent: Session.Session
  readonly tree: AgentTree
  readonly session: Session.Session
  readonly journal: SessionRecorder | undefined
  readonly tell: Tell
  /** The form of its answers. */
  readonly output: SubagentProfile["outputSchema"]
  /** Names of the tools of its profile that its parent lacks. */
  readonly lacking: ReadonlyArray<string>
}

export class ChildTasks {
  /** Tasks that no call waits for and that have not ended, oldest first. */
  private open: ReadonlyArray<Open> = none
  /** Tasks from before a restart. */
  private readonly left: ReadonlyArray<Left>
  private isSilent = false

  constructor(
    private readonly options: Options,
    left: ReadonlyArray<SessionSnapshot.Task> = none
  ) {
    const { session } = options
    this.left = left.map(({ end, messageId, toolCallId }) => {
      const output = this.asked()
      // It was read in the process in which it ended.
      if (end?._tag === "Completed") output?.read(end.text)
      const turn =
        end === undefined
          ? session.awaitTurn(messageId, { reason: "parent", output })
          : { id: messageId, end: OneShot.of(end), giveUp: Effect.void }
      return { turn, toolCallId, output, said: new Said(session, turn) }
    })
  }

  /** Gives it a task and waits for the end. Interrupting it cancels the task. */
  work(task: string): Effect.Effect<Done> {
    const { parent, session } = this.options
    return Effect.flatMap(Origin.current, ({ toolCallId }) => {
      let said: Said | undefined
      const output = this.asked()
      const end = session.run(
        { text: task, source: "parent" },
        {
          reason: "parent",
          authority: parent.bound(),
          task: { toolCallId },
          output,
          requested: (turn) => {
            said = new Said(session, turn)
          }
        }
      )
      return this.waited(end, () => said?.text ?? "", output)
    })
  }

  /** Like {@link work}, for a call that gave the task in another process: waits for the end of that task. */
  workOn(task: string): Effect.Effect<Done> {
    return Effect.flatMap(Origin.current, ({ toolCallId }) => {
      const given = this.left.find((task) => task.toolCallId === toolCallId)
      if (given === undefined) return this.work(task)
      const { output, said, turn } = given
      return this.waited(
        Effect.onInterrupt(turn.end, () => turn.giveUp),
        () => said.text,
        output
      )
    })
  }

  /** Gives it a task and does not wait. The parent is not idle meanwhile, and gets the end as a message. */
  begin(task: string): Effect.Effect<void> {
    return Effect.map(Effect.getFiberRefs, (world) => void this.give({ text: task, source: "parent" }, world))
  }

  /**
   * Takes words of the parent: its running task reads them, else they are a task. The running task may lack the
   * authority that the parent's turn is under; then it must not take over work of that turn.
   */
  hear(words: string): Effect.Effect<"now" | "later" | "reads"> {
    const { parent, session } = this.options
    const draft: Draft = { text: words, source: "parent" }
    return Effect.map(Effect.getFiberRefs, (world) => {
      const idle = session.isIdle()
      const bound = parent.bound()
      if (!idle && (bound === undefined || bound === session.bound())) {
        session.send(draft, "steer")
        return "reads"
      }
      this.give(draft, world)
      return idle ? "now" : "later"
    })
  }

  /** Like {@link begin}, unless it was given a task before a restart. */
  beginOnce(task: string): Effect.Effect<void> {
    return this.left.length > 0 ? Effect.void : this.begin(task)
  }

  /** Resumes tasks of another process that no call waits for: the parent gets their ends as messages. */
  get resumeLeft(): Effect.Effect<void> {
    return Effect.sync(() => {
      for (const task of this.left) if (task.toolCallId === undefined) this.alone(task.turn, task.output)
    })
  }

  /**
   * Like {@link begin}, synchronously, from any source, in the world of a caller if there is one; none when the child has
   * ended.
   */
  give(draft: Draft, world?: FiberRefs.FiberRefs): Option.Option<Message> {
    const { parent, session } = this.options
    if (session.isOver()) return Option.none()
    // A person's words are not work of the parent's turn.
    const isTask = draft.source === "parent"
    const authority = isTask ? parent.bound() : undefined
    // A person talks with it: no form is asked for there.
    const output = isTask ? this.asked() : undefined
    const message = session.send(draft, "queue")
    const wanted = { reason: "parent", authority, world, output, task: { toolCallId: undefined } } as const
    this.alone(session.awaitTurn(message.id, wanted), output)
    return Option.some(message)
  }

  /** The parent closes the child; no further ends are reported to it. */
  silence(): void {
    this.isSilent = true
  }

  /** Cancels or takes back the tasks that no call waits for, the latest first, without reporting to the parent. */
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

  /** No call waits: the parent is not idle until it got the end. */
  private alone({ end, giveUp, id }: Session.RequestedTurn, output: TypedOutput.TypedOutput | undefined): void {
    const { journal, parent, session } = this.options
    const said = () => History.saidIn(session.history, id)
    const open: Open = { giveUp, release: parent.retain() }
    // Mostly there is one, and a spread array would reserve room for sixteen more.
    this.open = this.open.length === 0 ? [open] : [...this.open, open]
    end.observe((end) => {
      this.open = this.open.length === 1 ? none : this.open.filter((other) => other !== open)
      // In a closed child only a task that has begun reports its end, and only as an event.
      if (!this.isSilent) {
        const text = SubagentResult.announce(this.doneWith(end, said(), output).result, end)
        parent.send({ text, source: "child" }, "queue")
        journal?.told(id)
      } else if (end !== neverBegun) this.doneWith(end, said(), output)
      open.release()
    })
  }

  /** A cancelled task reports its end too; a task that was taken back before it began does not. */
  private waited(
    end: Effect.Effect<TurnEnd>,
    said: () => string,
    output: TypedOutput.TypedOutput | undefined
  ): Effect.Effect<Done> {
    const { session } = this.options
    const before = session.turns()
    const doneWith = (end: TurnEnd) => this.doneWith(end, said(), output)
    const stopped = () =>
      Effect.suspend(() =>
        session.isIdle() && session.turns() > before ? Effect.map(session.awaitIdle, Option.map(doneWith)) : Effect.void
      )
    return Effect.map(Effect.onInterrupt(end, stopped), doneWith)
  }

  /** The result that is asked for with one task. */
  private asked(): TypedOutput.TypedOutput | undefined {
    const { output } = this.options
    return output === undefined ? undefined : TypedOutput.make<unknown, unknown>(output)
  }

  private doneWith(ended: TurnEnd, said: string, output: TypedOutput.TypedOutput | undefined): Done {
    const { id, lacking, session, tell, tree } = this.options
    const { answer, end, unread } = this.typed(ended, output)
    const usage = tree.shared.ledger.of(session.origin.sessionId)
    const result = SubagentResult.make({
      agentId: id,
      end,
      text:
        end._tag === "Completed" ? end.text : (unread ?? (said === "" && end._tag === "TurnLimit" ? end.text : said)),
      output: answer,
      // Usage that no provider reported is unknown, not zero.
      usage: usage.unknownCalls === usage.calls ? undefined : { input: usage.inputTokens, output: usage.outputTokens },
      outputStreamed: tree.settings.outputStreamed,
      lacking
    })
    const { error, success, turns_used: turnsUsed } = result
    tell({ _tag: "AgentCompleted", success, turnsUsed, ...(error === undefined ? {} : { error }) })
    return { end, result }
  }

  /** The end with its answer as JSON in the form that was asked for; else with the last answer, which had not that form. */
  private typed(
    end: TurnEnd,
    output: TypedOutput.TypedOutput | undefined
  ): { readonly end: TurnEnd; readonly answer?: { readonly value: unknown }; readonly unread?: string | undefined } {
    const schema = this.options.output
    if (output === undefined || schema === undefined) return { end }
    const typed = output.endOf(end)
    if (typed._tag === "Failed") return { end: typed, unread: typed.invalid?.text }
    if (typed._tag !== "Completed") return { end: typed }
    return Either.match(Schema.encodeUnknownEither(schema)(typed.value), {
      onLeft: (): ReturnType<typeof this.typed> => ({
        end: {
          _tag: "Failed",
          error: "Its answer fits the schema, but has no JSON form.",
          steps: end.steps
        },
        unread: typed.text
      }),
      onRight: (value) => ({ end: typed, answer: { value } })
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: ReadonlyArray<never> = []

interface Open {
  readonly giveUp: Effect.Effect<void>
  /** Allows the parent to be idle. */
  readonly release: () => void
}

interface Left {
  readonly turn: Session.RequestedTurn
  readonly said: Said
  readonly output: TypedOutput.TypedOutput | undefined
  readonly toolCallId: ToolCallId | undefined
}

/** The words of one turn, taken in the step in which it ends: the next turn may shorten the history. */
class Said {
  text = ""

  constructor(session: Session.Session, { end, id }: Session.RequestedTurn) {
    end.observe(() => {
      this.text = History.saidIn(session.history, id)
    })
  }
}
