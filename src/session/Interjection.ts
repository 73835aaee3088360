/**
 * Routes a user's words to an agent while agents work.
 *
 * ```
 *  named? ─► that agent
 *  else selected? ─► that agent
 *  else under the root a child works that may be interrupted? ─► it, or a child of its own, as deep as it goes
 *  else ─► the root
 * ```
 *
 * Checking that an agent still reads and filing the words are one step. When its turn has decided to end, the words go
 * to the session that called it, and so on up to the root, which takes everything. Words that a child's turn has not
 * read at its end go up the same way, under the same id; see `Session.Own.unread`.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as ForeignJson from "../core/ForeignJson.js"
import { untraced } from "../core/Untraced.js"
import type * as Origin from "../core/Origin.js"
import type { Draft, Message } from "../inbox/Message.js"
import type { Delegations } from "../turn/Delegation.js"
import type { Service as Session } from "./Session.js"

/**
 * An agent that may receive words.
 *
 * @since 0.1.0
 * @category models
 */
export interface Agent {
  readonly origin: Origin.Origin
  /** @internal */
  readonly session: Session
  /**
   * For a child: gives it a turn of its own, whose end the parent gets; none when it has ended. Absent for the root.
   *
   * @internal
   */
  readonly begin?: ((draft: Draft) => Option.Option<Message>) | undefined
}

/**
 * The agent that receives words, and why it does.
 *
 * @since 0.1.0
 * @category models
 */
export interface Receiver {
  readonly agent: Agent
  /** The tool call under which it works, or `root`. */
  readonly parentId: string
  /** True: the user chose it, so it receives words also while it is idle. */
  readonly chosen: boolean
}

/**
 * Input of a strategy.
 *
 * @internal
 */
export interface Scene {
  readonly root: Agent
  /** All living agents, parents before their children. */
  readonly agents: ReadonlyArray<Agent>
  /** The agent that the words name. */
  readonly target: Agent | undefined
  /** The agent that the user selected before. */
  readonly selected: Agent | undefined
}

/**
 * There is no agent of this name.
 *
 * @since 0.1.0
 * @category errors
 */
export class AgentUnknown extends Schema.TaggedError<AgentUnknown>("assent/session/AgentUnknown")("AgentUnknown", {
  target: Schema.String,
  /** Paths of the living agents. */
  agents: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `There is no agent ${JSON.stringify(ForeignJson.echo(this.target))}. There are: ${this.agents.join(", ")}.`
  }
}

/**
 * Who receives words: the agent that they name, else the one that the user selected, else the deepest child that works under
 * a tool call and can be interrupted (see `Delegations.first`), else the root.
 *
 * @internal
 */
export const receiver = ({ agents, root, selected, target }: Scene): Receiver =>
  chosen(agents, target) ??
  chosen(agents, selected) ??
  deepest(agents, root.session.delegations) ?? { agent: root, parentId: "root", chosen: false }

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
 * Delivers words to their receiver, or upwards from there, in one step.
 *
 * @internal
 */
export const deliver = (scene: Scene, draft: Draft): Message => {
  const { agent, chosen, parentId } = receiver(scene)
  return handIn(scene, agent, draft, parentId, chosen)
}

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

const chosen = (agents: ReadonlyArray<Agent>, agent: Agent | undefined): Receiver | undefined =>
  agent && { agent, parentId: callOver(agents, agent), chosen: true }

const parentOf = (agents: ReadonlyArray<Agent>, { origin }: Agent): Agent | undefined =>
  agents.find((candidate) => candidate.origin.sessionId === origin.parentSessionId)

/** The tool call under which an agent works. */
const callOver = (agents: ReadonlyArray<Agent>, agent: Agent): string =>
  parentOf(agents, agent)?.session.delegations.of(agent.origin.sessionId)?.toolCallId ?? "root"

const handIn = (scene: Scene, agent: Agent, draft: Draft, parentId: string, mayBegin: boolean): Message => {
  const { begin, origin, session } = agent
  const isRoot = origin.sessionId === scene.root.origin.sessionId
  if (isRoot || begin === undefined) return scene.root.session.send(draft, "steer", { parentId: "root" })
  if (session.isReceiving()) return session.send(draft, "steer", { parentId })
  return Option.getOrElse(mayBegin ? begin(draft) : Option.none(), () => {
    const parent = parentOf(scene.agents, agent) ?? scene.root
    return handIn(scene, parent, draft, callOver(scene.agents, parent), false)
  })
}
