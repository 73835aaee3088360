/**
 * A session as its events tell it: what was said and done in order, and the state beside it. Pure but for its own fields:
 * `take` changes them, and a view reads them on a signal.
 */
import type { AgentEvent } from "../event/AgentEvent.js"

/** The way of a call from its proposal to its end. */
export interface Call {
  readonly kind: "call"
  readonly key: string
  readonly agent: string
  readonly at: number
  readonly tool: string
  summary: string
  args: unknown
  state: "proposed" | "asked" | "running" | "ended"
  /** What it has printed so far; the end of it if that is long. */
  output: string
  outcome?: string
  result?: unknown
  fault?: string | undefined
  duration?: number | undefined
  decision?: { readonly granted: boolean; readonly method: string; readonly reason: string; readonly by?: string }
}

/** Words: of a person, of the model, or its thinking. */
export interface Said {
  readonly kind: "user" | "text" | "thinking"
  readonly key: string
  readonly agent: string
  readonly at: number
  /** The turn that the words began. */
  readonly turn?: string
  text: string
  isOpen: boolean
}

/** A remark about the session. */
export interface Note {
  readonly kind: "note"
  readonly key: string
  readonly agent: string
  readonly at: number
  readonly tone: "quiet" | "warn"
  readonly text: string
  /** The turn that ended here. */
  readonly turn?: string
}

export type Item = Call | Said | Note

/** An agent of the tree. */
export interface Agent {
  readonly path: string
  readonly sessionId: string
  readonly depth: number
  readonly model: string
  readonly profile?: string
  status: string
  context?: { readonly tokens: number; readonly window?: number | undefined } | undefined
}

export interface Job {
  readonly id: string
  readonly command: string
  readonly at: number
  end?: string
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Characters of output that are kept of a running call. */
const longest = 20_000

export class Transcript {
  readonly items: Array<Item> = []
  readonly agents = new Map<string, Agent>()
  readonly jobs = new Map<string, Job>()
  readonly calls = new Map<string, Call>()
  todos: ReadonlyArray<{ readonly content: string; readonly status: string }> = []
  mode: string | undefined
  suspension: string | undefined
  /** A turn of the root runs. */
  isRunning = false
  /** Counts what the audit has a record of. */
  decided = 0
  /** What an agent writes now. */
  private readonly writing = new Map<string, Said>()
  private count = 0

  /** Forgets all, for a stream that begins anew. */
  clear(): void {
    this.items.length = 0
    for (const map of [this.agents, this.jobs, this.calls, this.writing]) map.clear()
    this.todos = []
    this.isRunning = false
  }

  take(event: AgentEvent): void {
    const { agent, at } = event
    switch (event._tag) {
      case "AgentCreated": {
        const { depth, model, profile, sessionId } = event
        this.agents.set(agent, {
          path: agent,
          sessionId,
          depth,
          model,
          status: "idle",
          ...(profile === undefined ? {} : { profile })
        })
        return
      }
      case "AgentStatusChanged":
        return this.setStatus(agent, event.status)
      case "AgentCompleted":
        return this.setStatus(agent, event.success ? "done" : "failed")
      case "AgentError":
        return this.note(event, event.message, "warn")
      case "TurnStarted":
        if (this.isRoot(agent)) this.isRunning = true
        this.setStatus(agent, "thinking")
        this.items.push({ ...this.begun(event, "user"), text: event.input, turn: event.correlationId ?? "" })
        return
      case "UserInterjected":
        this.items.push({ ...this.begun(event, "user"), text: event.message })
        return
      case "TurnEnded":
        if (this.isRoot(agent)) this.isRunning = false
        this.setStatus(agent, "idle")
        this.close(agent)
        if (event.reason === "completed") return this.note(event, "", "quiet", event.correlationId)
        return this.note(event, endOf(event.reason, event.detail), "warn", event.correlationId)
      case "ModelCallStarted":
        return this.close(agent)
      case "ModelCallEnded": {
        this.close(agent)
        const known = this.agents.get(agent)
        if (known !== undefined && event.context !== undefined) known.context = event.context
        if (event.remark !== undefined) this.note(event, event.remark, "warn")
        return
      }
      case "ModelRetried":
        this.close(agent)
        return this.note(event, `The model call failed and is tried again: ${event.reason}`, "warn")
      case "BlockStarted":
        this.close(agent)
        this.write(event, event.block)
        return
      case "TextDelta":
        return this.add(event, "text", event.text)
      case "ThinkingDelta":
        return this.add(event, "thinking", event.text)
      case "BlockEnded":
        return this.close(agent)
      case "ToolArgumentsStarted":
        this.call(event, event.toolCallId, event.tool)
        return
      case "ToolArgumentsDelta": {
        const call = this.calls.get(event.toolCallId)
        if (call?.state === "proposed") call.summary = clipped(call.summary + event.text)
        return
      }
      case "ToolCallProposed": {
        const call = this.call(event, event.toolCallId, event.tool)
        call.summary = event.summary
        call.args = event.arguments
        return
      }
      case "InteractionRequested": {
        const call = event.toolCallId === undefined ? undefined : this.calls.get(event.toolCallId)
        if (call !== undefined && call.state !== "ended") call.state = "asked"
        return
      }
      case "InteractionAnswered":
      case "InteractionVoted":
      case "InteractionCancelled":
        this.decided++
        return
      case "PermissionResolved": {
        this.decided++
        const call = this.call(event, event.toolCallId, event.tool)
        const { by, granted, method, reason } = event
        call.decision = { granted, method, reason, ...(by === undefined ? {} : { by }) }
        if (call.state === "asked") call.state = "proposed"
        return
      }
      case "ToolCallStarted": {
        const call = this.call(event, event.toolCallId, event.tool)
        call.summary = event.summary
        call.state = "running"
        return
      }
      case "ToolOutput": {
        const call = this.calls.get(event.toolCallId)
        if (call !== undefined) call.output = clipped(returned(call.output + event.text))
        return
      }
      case "ToolCallEnded": {
        const call = this.call(event, event.toolCallId, event.tool)
        call.state = "ended"
        call.outcome = event.outcome
        call.result = event.result
        call.fault = event.fault
        call.duration = event.duration
        if (event.summary !== "") call.summary ||= event.summary
        return
      }
      case "TodosChanged":
        if (this.isRoot(agent)) this.todos = event.items
        return
      case "JobStarted":
        this.jobs.set(event.jobId, { id: event.jobId, command: event.command, at })
        return
      case "JobEnded": {
        const job = this.jobs.get(event.jobId)
        const code = event.exitCode === undefined ? "" : ` (${event.exitCode})`
        if (job !== undefined) job.end = `${event.reason.replace("_", " ")}${code}`
        return
      }
      case "McpServerChanged":
        if (event.state === "failed")
          this.note(event, `The server ${event.server} ${event.reason ?? "failed"}.`, "warn")
        return
      case "FilesSetAside":
        return this.note(event, event.notices.join(" "), "quiet")
      case "PermissionStatusChanged":
        this.mode = event.mode
        this.suspension = event.suspension
        if (event.before !== undefined) this.note(event, `Mode: ${event.before} → ${event.mode}`, "quiet")
        return
      case "CompactionEnded":
        if (event.quiet !== true && event.removed > 0)
          this.note(event, `The conversation was shortened by ${event.removed} messages.`, "quiet")
        return
      default:
        return
    }
  }

  isRoot(agent: string): boolean {
    return !agent.includes("/")
  }

  private setStatus(agent: string, status: string): void {
    const known = this.agents.get(agent)
    if (known !== undefined) known.status = status
  }

  private begun<K extends Said["kind"]>({ agent, at }: AgentEvent, kind: K) {
    return { kind, key: `i${this.count++}`, agent, at, text: "", isOpen: false }
  }

  private note({ agent, at }: AgentEvent, text: string, tone: Note["tone"], turn?: string): void {
    const key = `i${this.count++}`
    this.items.push({ kind: "note", key, agent, at, text, tone, ...(turn === undefined ? {} : { turn }) })
  }

  private write(event: AgentEvent, kind: "text" | "thinking"): Said {
    const item: Said = { ...this.begun(event, kind), isOpen: true }
    this.writing.set(event.agent, item)
    this.items.push(item)
    return item
  }

  private add(event: AgentEvent, kind: "text" | "thinking", text: string): void {
    const current = this.writing.get(event.agent)
    const item = current?.kind === kind ? current : this.write(event, kind)
    item.text += text
  }

  /** The agent writes no more of its block. An empty one is taken away. */
  private close(agent: string): void {
    const item = this.writing.get(agent)
    if (item === undefined) return
    item.isOpen = false
    this.writing.delete(agent)
    if (item.text.trim() === "" && this.items.at(-1) === item) this.items.pop()
  }

  private call({ agent, at }: AgentEvent, id: string, tool: string): Call {
    const known = this.calls.get(id)
    if (known !== undefined) return known
    this.close(agent)
    const call: Call = {
      kind: "call",
      key: id,
      agent,
      at,
      tool,
      summary: "",
      args: undefined,
      state: "proposed",
      output: ""
    }
    this.calls.set(id, call)
    this.items.push(call)
    return call
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const clipped = (text: string): string => (text.length <= longest ? text : `…${text.slice(-longest)}`)

/** A carriage return goes back to the beginning of the row, as bars of progress do. */
const returned = (text: string): string =>
  text.includes("\r") ? text.replaceAll("\r\n", "\n").replace(/[^\n]*\r(?!\n)/g, "") : text

const endOf = (reason: string, detail: string | undefined): string => {
  const what: { readonly [reason: string]: string } = {
    cancelled: "Cancelled",
    turn_limit: "Stopped at its limit of steps",
    halted: "Halted",
    denied: "Ended by a denial",
    failed: "Failed"
  }
  return `${what[reason] ?? reason}${detail === undefined ? "." : `: ${detail}`}`
}
