/**
 * A person's control over the agents of a tree while they work: send words to one, select one, cancel one or one of its
 * calls.
 *
 * Words that a cancelled turn has not read are not lost: they stay with their agent and begin its next turn; those of a
 * subagent go up to its caller. To give them back to the person as a draft, call `takeBack` before cancelling; then no
 * turn reads them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SessionId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type { Draft, Message } from "../inbox/Message.js"
import type * as Model from "../model/Model.js"
import * as Interjection from "../session/Interjection.js"
import { ToolCallNotRunning } from "../turn/RunningCalls.js"
import type { TurnEnd } from "../turn/Turn.js"
import type { AgentTree, Node } from "./AgentTree.js"

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

/** An agent is named by its path, its session's id or its subagent id. */
export interface Service {
  /** Without a target to the agent that hears such words. */
  readonly send: (draft: Draft, target: string | undefined) => Effect.Effect<Message, Interjection.AgentUnknown>
  /** Sends to each target once; to none of them when one is unknown. */
  readonly broadcast: (
    draft: Draft,
    targets: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown>
  readonly receiver: Effect.Effect<Interjection.Receiver>
  /** The model of the agent that would hear words to this target; the root's when there is none. */
  readonly modelOf: (target: string | undefined) => Effect.Effect<Model.Service>
  readonly select: (target: string | undefined) => Effect.Effect<void, Interjection.AgentUnknown>
  readonly selected: Effect.Effect<Option.Option<Node>>
  /** Yields how the turn ended; none when no turn ran, or when only a call was cancelled. */
  readonly interrupt: (
    options?: InterruptOptions
  ) => Effect.Effect<Option.Option<TurnEnd>, Interjection.AgentUnknown | ToolCallNotRunning>
  readonly takeBack: (target?: string) => Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown>
}

export const make = (tree: AgentTree, root: Node): Service => new TreeControl(tree, root)

/** Sentence about a tree that did not end in time. */
export const leftBehind = ({ nodes }: AgentTree, agent: string, within: Duration.DurationInput): string => {
  const running = nodes.flatMap(({ origin, session }) => session.calls.ids.map((id) => `${id} of ${origin.agent}`))
  const what =
    running.length > 0
      ? `Tool calls that still run: ${running.join(", ")}.`
      : "A model or an interactor does not let itself be interrupted."
  return `Agent ${agent} did not stop within ${Duration.format(within)} and was left behind. ${what}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class TreeControl implements Service {
  /** Checked when words are sent: an agent that has ended is no longer selected. */
  private chosen: SessionId | undefined

  constructor(
    private readonly tree: AgentTree,
    private readonly root: Node
  ) {}

  send(draft: Draft, target: string | undefined): Effect.Effect<Message, Interjection.AgentUnknown> {
    return target === undefined
      ? this.deliver(draft, undefined)
      : Effect.flatMap(this.find(target), (found) => this.deliver(draft, found))
  }

  broadcast(
    draft: Draft,
    targets: ReadonlyArray<string>
  ): Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown> {
    return Effect.flatMap(
      Effect.forEach(targets, (target) => this.find(target)),
      (found) => Effect.forEach(new Set(found), (target) => this.deliver(draft, target))
    )
  }

  get receiver(): Effect.Effect<Interjection.Receiver> {
    return Effect.sync(() => Interjection.receiver(this.scene()))
  }

  modelOf(target: string | undefined): Effect.Effect<Model.Service> {
    if (target === undefined) return Effect.flatMap(this.receiver, ({ agent }) => agent.session.model)
    return Effect.flatMap(
      Effect.orElseSucceed(this.find(target), () => this.root),
      ({ session }) => session.model
    )
  }

  select(target: string | undefined): Effect.Effect<void, Interjection.AgentUnknown> {
    return Effect.map(target === undefined ? Effect.succeed(undefined) : this.find(target), (found) => {
      this.chosen = found?.origin.sessionId
    })
  }

  get selected(): Effect.Effect<Option.Option<Node>> {
    return Effect.sync(() => Option.fromNullable(this.selectedNode()))
  }

  interrupt({ reason = "user", target, toolCallId }: InterruptOptions = {}): ReturnType<Service["interrupt"]> {
    if (toolCallId !== undefined) return Effect.flatMap(this.those(target), (nodes) => cancelCall(nodes, toolCallId))
    const whose = target === undefined ? Effect.succeed(this.root) : this.find(target)
    return Effect.flatMap(whose, ({ session }) => session.stop({ cancel: reason }))
  }

  takeBack(target?: string): Effect.Effect<ReadonlyArray<Message>, Interjection.AgentUnknown> {
    return Effect.map(this.those(target), (nodes) => nodes.flatMap(({ session }) => session.takeBack()))
  }

  private find(target: string): Effect.Effect<Node, Interjection.AgentUnknown> {
    return Effect.suspend(() => Interjection.find(this.tree.nodes, target))
  }

  private those(target: string | undefined): Effect.Effect<ReadonlyArray<Node>, Interjection.AgentUnknown> {
    return target === undefined ? Effect.sync(() => this.tree.nodes) : Effect.map(this.find(target), (found) => [found])
  }

  private deliver(draft: Draft, target: Node | undefined): Effect.Effect<Message> {
    return Effect.sync(() => Interjection.deliver(this.scene(target), draft))
  }

  private scene(target?: Node): Interjection.Scene {
    return { root: this.root, agents: this.tree.nodes, target, selected: this.selectedNode() }
  }

  private selectedNode(): Node | undefined {
    return this.chosen === undefined ? undefined : this.tree.node(this.chosen)
  }
}

const cancelCall = (
  nodes: ReadonlyArray<Node>,
  toolCallId: string
): Effect.Effect<Option.Option<TurnEnd>, ToolCallNotRunning> =>
  Effect.suspend(() => {
    const running = nodes.flatMap(({ session }) => session.calls.ids)
    const unknown = new ToolCallNotRunning({ toolCallId, running })
    const cancelled = Effect.reduce(nodes, false, (found, { session }) =>
      found ? Effect.succeed(true) : session.calls.cancel(toolCallId)
    )
    return Effect.flatMap(cancelled, (found) => (found ? Effect.succeedNone : unknown))
  })
