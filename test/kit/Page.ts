/**
 * A page that shows a tree of agents, made of its events alone, as they come over a wire.
 *
 * On a reconnect it forgets what came behind the last position: that is told again.
 */
import type { AgentEvent } from "../../src/event/AgentEvent.js"

interface Answer {
  step: number
  /** Words by block, and arguments by call. */
  said: Array<{ kind: string; text: string }>
}

interface Session {
  agent: string
  status: string | undefined
  /** What is over, in order. */
  items: Array<unknown>
  /** Stands below all the rest while it is written. */
  running: Answer | undefined
  calls: Record<string, unknown>
  questions: Record<string, unknown>
}

interface State {
  position: number
  sessions: Record<string, Session>
}

export class Page {
  private state: State = { position: 0, sessions: {} }
  private stored: State = structuredClone(this.state)

  get position(): number {
    return this.stored.position
  }

  /** What it shows. */
  get shown(): State["sessions"] {
    return this.state.sessions
  }

  reconnect(): void {
    this.state = structuredClone(this.stored)
    // The statuses of living agents are told at the beginning.
    for (const session of Object.values(this.state.sessions)) if (session.status !== "done") session.status = undefined
  }

  take(event: AgentEvent): void {
    this.show(event)
    if (event.position === undefined) return
    this.state.position = event.position
    this.stored = structuredClone(this.state)
  }

  private show(event: AgentEvent): void {
    const session = (this.state.sessions[event.sessionId] ??= {
      agent: event.agent,
      status: undefined,
      items: [],
      running: undefined,
      calls: {},
      questions: {}
    })
    const { at: _, position: __, sessionId: ___, agent: ____, ...fact } = event
    switch (event._tag) {
      case "AgentStatusChanged":
        session.status = event.status
        return
      case "ModelCallStarted":
        session.running = { step: event.step, said: [] }
        return
      case "ModelRetried":
        if (session.running !== undefined) session.running.said = []
        return
      case "BlockStarted":
        session.running?.said.push({ kind: event.block, text: "" })
        return
      case "ToolArgumentsStarted":
        session.running?.said.push({ kind: `${event.toolCallId} ${event.tool}`, text: "" })
        return
      case "TextDelta":
      case "ThinkingDelta": {
        const last = session.running?.said.at(-1)
        if (last !== undefined) last.text += event.text
        return
      }
      case "ToolArgumentsDelta": {
        const call = session.running?.said.find(({ kind }) => kind.startsWith(`${event.toolCallId} `))
        if (call !== undefined) call.text += event.text
        return
      }
      case "BlockEnded":
      case "ToolOutput":
      case "AgentError":
      case "AgentCompleted":
      case "QuestionDisplayed":
      case "QuestionAnswered":
        return
      case "ModelCallEnded": {
        const { running } = session
        const said = running?.step === event.step ? running.said : []
        session.items.push({ ...fact, blocks: said.filter(({ kind, text }) => !kind.includes(" ") && text !== "") })
        if (running?.step === event.step) session.running = undefined
        return
      }
      case "ToolCallProposed":
      case "ToolCallStarted":
      case "ToolCallEnded":
        session.calls[event.toolCallId] = { ...(session.calls[event.toolCallId] as object), ...fact }
        session.items.push(`${event._tag} ${event.toolCallId}`)
        return
      case "InteractionRequested":
      case "InteractionAnswered":
      case "InteractionCancelled":
      case "InteractionTimedOut":
      case "InteractionUnavailable":
        session.questions[event.requestId] = { ...(session.questions[event.requestId] as object), ...fact }
        session.items.push(`${event._tag} ${event.requestId}`)
        return
      case "TurnEnded":
        session.running = undefined
        session.items.push(fact)
        return
      default:
        session.items.push(fact)
    }
  }
}
