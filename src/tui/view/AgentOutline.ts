/**
 * A projection of events to the tree of agents: which there are, what each does, and what it has used. A screen needs
 * it because no single event says it.
 */
import * as Option from "effect/Option"
import type { RequestId, SessionId, ToolCallId } from "../../core/Id.js"
import type { AgentEvent, AgentStatus, EventOf } from "../../event/AgentEvent.js"
import * as TokenLedger from "../../model/TokenLedger.js"

/** A tool call that has begun and not ended. */
export interface Call {
  readonly id: ToolCallId
  readonly tool: string
  /** A summary of its parameters. */
  readonly summary: string
  readonly since: number
}

/** One agent. It is kept after its end, because its last events come later. */
export interface Node {
  readonly sessionId: SessionId
  /** Such as `main/code_reviewer/explore`. */
  readonly path: string
  /** The shortest suffix of its path that no earlier agent has as its label. */
  readonly label: string
  readonly depth: number
  /** Order of appearance. */
  readonly order: number
  readonly parent: Node | undefined
  readonly subagentId: string | undefined
  /** The call that made it. */
  readonly toolCallId: ToolCallId | undefined
  readonly model: string
  readonly icon: string | undefined
  status: AgentStatus
  /** When the status began, in milliseconds since the epoch. */
  since: number
  /** When its last turn began, in the same unit. */
  began: number
  readonly calls: Map<ToolCallId, Call>
  /** What calls of the turn are about that have not begun: some never do. */
  readonly proposed: Map<ToolCallId, string>
  /** Questions of its own that nobody has answered yet. */
  readonly asking: Set<RequestId>
  /** Its model is asked again then, for the so many-th time; nothing once something came. */
  retry: { readonly at: number; readonly attempt: number; readonly attempts: number | undefined } | undefined
  /** How its last task ended. */
  completed: EventOf<"AgentCompleted"> | undefined
  /** Whether it tells again what was said to it in any turn before it was restored: nobody says that now. */
  isRetelling: boolean
}

export interface AgentOutline {
  /** Takes an event in; yields the node it is about. */
  readonly apply: (event: AgentEvent) => Node
  /** All agents in order of appearance, also those that have ended. */
  readonly nodes: () => ReadonlyArray<Node>
  readonly of: (sessionId: SessionId) => Option.Option<Node>
  /** Finds a living agent by label, path, session id or subagent id; of several, the first that appeared. */
  readonly find: (name: string) => Option.Option<Node>
  /** The agents that work or wait for an answer. */
  readonly working: () => ReadonlyArray<Node>
  /** Tokens of the agent and all below it; undefined when no provider reported any. */
  readonly tokens: (node: Node) => number | undefined
  /** The parent's running call that waits for this agent. */
  readonly waiting: (node: Node) => Call | undefined
  /** The agent that this call made, or gave a task to and waited for; with its end when it has ended. */
  readonly workedFor: (caller: Node, call: Call) => Node | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (): AgentOutline => {
  const nodes = new Map<SessionId, Node>()
  const labels = new Set<string>()
  // Fed by events only, so that a recorded session has one too.
  const ledger = TokenLedger.make()

  const labelOf = (path: string, sessionId: SessionId): string => {
    const parts = path.split("/")
    const ends = parts.map((_, index) => parts.slice(parts.length - 1 - index).join("/"))
    const label = ends.find((end) => !labels.has(end)) ?? `${path}#${sessionId}`
    labels.add(label)
    return label
  }
  const create = (event: AgentEvent): Node => {
    const { agent, at, sessionId } = event
    const created = event._tag === "AgentCreated" ? event : undefined
    const parent = created?.parentSessionId === undefined ? undefined : nodes.get(created.parentSessionId)
    const node: Node = {
      sessionId,
      path: agent,
      label: labelOf(agent, sessionId),
      // A late subscriber may have missed the agent's creation.
      depth: created?.depth ?? agent.split("/").length - 1,
      order: nodes.size,
      parent,
      subagentId: created?.subagentId,
      toolCallId: created?.parentToolCallId,
      model: created?.model ?? "",
      icon: created?.icon,
      status: "idle",
      since: at,
      began: at,
      calls: new Map(),
      proposed: new Map(),
      asking: new Set(),
      retry: undefined,
      completed: undefined,
      isRetelling: false
    }
    nodes.set(sessionId, node)
    return node
  }
  const change = (node: Node, event: AgentEvent): void => {
    const { agent, at, sessionId } = event
    node.retry =
      event._tag === "ModelRetried"
        ? { at: at + event.delay, attempt: event.attempt, attempts: event.attempts }
        : undefined
    switch (event._tag) {
      case "AgentStatusChanged":
        node.status = event.status
        node.since = at
        // After the end no further events of these calls come.
        if (event.status === "idle" || event.status === "done") {
          node.calls.clear()
          node.proposed.clear()
          node.asking.clear()
        }
        return
      case "TurnStarted":
        node.began = at
        node.completed = undefined
        return
      case "ToolCallProposed":
        node.proposed.set(event.toolCallId, event.summary)
        return
      case "ToolCallStarted":
        node.proposed.delete(event.toolCallId)
        node.calls.set(event.toolCallId, {
          id: event.toolCallId,
          tool: event.tool,
          summary: event.summary,
          since: at
        })
        return
      case "ToolCallEnded":
        node.calls.delete(event.toolCallId)
        return
      case "InteractionRequested":
        node.asking.add(event.requestId)
        return
      case "InteractionAnswered":
      case "InteractionCancelled":
      case "InteractionTimedOut":
      case "InteractionUnavailable":
        node.asking.delete(event.requestId)
        return
      case "ModelCallEnded":
        return ledger.record({ sessionId, agent, model: event.model, usage: event.usage, kind: "call" })
      case "CompactionEnded":
        if (event.usage !== undefined)
          ledger.record({ sessionId, agent, model: node.model, usage: event.usage, kind: "summary" })
        return
      case "AgentCompleted":
        node.completed = event
    }
  }
  const list = () => [...nodes.values()]
  const isAlive = ({ status }: Node) => status !== "done"

  return {
    apply: (event) => {
      const node = nodes.get(event.sessionId) ?? create(event)
      if (event._tag !== "UserInterjected") node.isRetelling = event._tag === "SessionRestored"
      change(node, event)
      return node
    },
    nodes: list,
    of: (sessionId) => Option.fromNullable(nodes.get(sessionId)),
    find: (name) =>
      Option.fromNullable(
        list().find(
          (node) =>
            isAlive(node) && [node.label, node.path, node.sessionId, node.subagentId].some((known) => known === name)
        )
      ),
    working: () => list().filter((node) => isAlive(node) && (node.status !== "idle" || node.asking.size > 0)),
    tokens: (node) => {
      const totals = list()
        .filter((other) => isWithin(other, node))
        .map(({ sessionId }) => ledger.of(sessionId))
      const sum = totals.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0)
      return sum === 0 && totals.some(({ unknownCalls }) => unknownCalls > 0) ? undefined : sum
    },
    waiting: (node) => {
      for (const call of node.parent?.calls.values() ?? []) if (isFor(call, node)) return call
      return undefined
    },
    workedFor: (caller, call) =>
      list().find(
        (node) =>
          node.parent === caller &&
          (node.toolCallId === call.id || (isFor(call, node) && (node.completed?.at ?? -Infinity) >= call.since))
      )
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isWithin = (node: Node | undefined, above: Node): boolean =>
  node !== undefined && (node === above || isWithin(node.parent, above))

/** Whether a call made this agent, or names it. */
const isFor = ({ id, summary }: Call, { subagentId, toolCallId }: Node): boolean =>
  toolCallId === id || (subagentId !== undefined && new RegExp(`\\b${subagentId}\\b`).test(summary))
