/**
 * Who hears what a user says while agents work.
 *
 * ```
 *  named? ─► that agent
 *  else selected? ─► that agent
 *  else under the root a child works that may be interrupted? ─► it, or a child of its own, as deep as it goes
 *  else ─► the root
 * ```
 *
 * Deciding that an agent still reads and filing the words there are one step. Where it has decided to end, they go to the
 * session that called it, and so on up to the root, which takes everything. What a child's turn ended without reading goes
 * up the same way, under the id it had; see `Session.Options.unread`.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as ForeignJson from "../core/ForeignJson.js"
import { untraced } from "../core/Untraced.js"
import type { MessageId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import type { Message } from "../inbox/Message.js"
import type { Delegations } from "../turn/Delegation.js"
import type { Service as Session } from "./Session.js"

/** One agent that words may be meant for. */
export interface Agent {
  readonly origin: Origin.Origin
  /** @internal */
  readonly session: Session
  /**
   * Of a child: interjects after all, or gives it a turn of its own, whose end its parent is told. Nothing when it has
   * ended. Absent for the root.
   *
   * @internal
   */
  readonly begin?: ((text: string, id?: MessageId) => Effect.Effect<Option.Option<Message>>) | undefined
}

/** Who would hear. */
export interface Receiver {
  readonly agent: Agent
  /** The tool call under which it works, or `root`. */
  readonly parentId: string
  /** Whom the user chose hears also while it is idle. */
  readonly chosen: boolean
}

/**
 * What a strategy decides by.
 *
 * @internal
 */
export interface Scene {
  readonly root: Agent
  /** All that are alive, parents before their children. */
  readonly agents: ReadonlyArray<Agent>
  /** Named with the words. */
  readonly target: Agent | undefined
  /** Chosen before. */
  readonly selected: Agent | undefined
}

/**
 * Knows who hears, or leaves it to the next.
 *
 * @internal
 */
export type Strategy = (scene: Scene) => Receiver | undefined

/** Nobody of this name is there. */
export class AgentUnknown extends Schema.TaggedError<AgentUnknown>("assent/session/AgentUnknown")("AgentUnknown", {
  target: Schema.String,
  /** Paths of those that are. */
  agents: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `There is no agent ${JSON.stringify(ForeignJson.echo(this.target))}. There are: ${this.agents.join(", ")}.`
  }
}

/**
 * Whom the words name.
 *
 * @internal
 */
export const named: Strategy = (scene) => chosen(scene, scene.target)

/**
 * Whom the user selected.
 *
 * @internal
 */
export const selected: Strategy = (scene) => chosen(scene, scene.selected)

/**
 * The child that works under a tool call which may be interrupted, as deep as it goes: see `Delegations.first`.
 *
 * @internal
 */
export const delegated: Strategy = ({ agents, root }) => deepest(agents, root.session.delegations)

/**
 * The root.
 *
 * @internal
 */
export const root = ({ root }: Scene): Receiver => ({ agent: root, parentId: "root", chosen: false })

/**
 * The first strategy that knows.
 *
 * @internal
 */
export const chain =
  (...strategies: ReadonlyArray<Strategy>) =>
  (scene: Scene): Receiver => {
    for (const strategy of strategies) {
      const receiver = strategy(scene)
      if (receiver !== undefined) return receiver
    }
    return root(scene)
  }

/**
 * Named, else selected, else delegated, else the root.
 *
 * @internal
 */
export const receiver: (scene: Scene) => Receiver = chain(named, selected, delegated)

/**
 * Finds an agent by its path, its session's id or its subagent id.
 *
 * @internal
 */
export const find = <A extends Agent>(agents: Iterable<A>, target: string): Either.Either<A, AgentUnknown> => {
  const paths: Array<string> = []
  for (const agent of agents) {
    const { origin } = agent
    if (target === origin.agent || target === origin.sessionId || target === origin.subagentId)
      return Either.right(agent)
    paths.push(origin.agent)
  }
  return Either.left(untraced(() => new AgentUnknown({ target, agents: paths }, true)))
}

/**
 * Hands the words to whom they are meant for, or up from there. Yields once they are filed, under this id if it is given.
 *
 * @internal
 */
export const deliver = (scene: Scene, text: string, id?: MessageId): Effect.Effect<Message> =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      const { agent, chosen, parentId } = receiver(scene)
      return handIn(scene, agent, { text, id }, parentId, chosen)
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const deepest = (agents: ReadonlyArray<Agent>, delegations: Delegations): Receiver | undefined => {
  const delegation = delegations.first()
  if (delegation === undefined) return undefined
  const { session, toolCallId } = delegation
  const agent = agents.find((candidate) => candidate.session === session)
  return deepest(agents, session.delegations) ?? (agent && { agent, parentId: toolCallId, chosen: false })
}

const chosen = ({ agents }: Scene, agent: Agent | undefined): Receiver | undefined =>
  agent && { agent, parentId: callOver(agents, agent), chosen: true }

const parentOf = (agents: ReadonlyArray<Agent>, { origin }: Agent): Agent | undefined =>
  agents.find((candidate) => candidate.origin.sessionId === origin.parentSessionId)

/** The tool call under which an agent works. */
const callOver = (agents: ReadonlyArray<Agent>, agent: Agent): string =>
  parentOf(agents, agent)?.session.delegations.of(agent.origin.sessionId)?.toolCallId ?? "root"

interface Words {
  readonly text: string
  readonly id: MessageId | undefined
}

const handIn = (
  scene: Scene,
  agent: Agent,
  words: Words,
  parentId: string,
  mayBegin: boolean
): Effect.Effect<Message> => {
  const { begin, origin, session } = agent
  const { id, text } = words
  const isRoot = origin.sessionId === scene.root.origin.sessionId
  if (isRoot || begin === undefined) return scene.root.session.send(text, "root", id)
  const up = Effect.suspend(() => {
    const parent = parentOf(scene.agents, agent) ?? scene.root
    return handIn(scene, parent, words, callOver(scene.agents, parent), false)
  })
  return Option.match(session.interject(text, parentId, id), {
    onSome: Effect.succeed,
    onNone: () =>
      mayBegin ? Effect.flatMap(begin(text, id), Option.match({ onNone: () => up, onSome: Effect.succeed })) : up
  })
}
