/**
 * The events of a session as a run: what one client shows between its words, or its answers, and the end of the turn. An
 * encoder makes a protocol of the pieces.
 *
 * ```
 *   events ─► RunProjection ─► pieces ─┬─► AgUi
 *                                      └─► AiSdkStream
 * ```
 *
 * Contract: everything that starts ends, once and in the same run, whatever the order of the events is. Blocks, steps and
 * children that are open when the run ends are closed before its end. Work of a child comes behind the child's start.
 *
 * Ids depend only on the journal. So a client that comes back gets the same ids, and what it has is not sent again.
 */
import * as Either from "effect/Either"
import type { SessionId } from "../core/Id.js"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type * as Redaction from "../core/Redaction.js"
import type { AgentEvent, EventOf } from "../event/AgentEvent.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Words of the model, or its thinking. */
export type Block = EventOf<"BlockStarted">["block"]

/** `child`: the child whose work it is. Absent for the root's. */
interface Owned {
  readonly child?: string | undefined
}

/** How a run ends. */
export type End =
  /** The session waits for all of these. */
  | { readonly _tag: "Interrupted"; readonly requests: ReadonlyArray<Asked> }
  | { readonly _tag: "Finished" }
  | { readonly _tag: "Cancelled"; readonly detail?: string | undefined }
  /** `message` says what to do. */
  | { readonly _tag: "Failed"; readonly code: FailureCode; readonly message: string }

/** For programs that read errors of a run. */
export type FailureCode =
  "unknown_interrupt" | "partial_resume" | "invalid_payload" | "not_taken" | "turn_failed" | "stream_ended"

/** An open request, and whose it is. */
export interface Asked extends Owned {
  readonly request: InteractionRequest
  /** Masks what the session keeps secret, for what a page shows of the request. */
  readonly redactor: Redaction.Redactor
  /** The call that asks, or is asked about. */
  readonly callId?: string | undefined
}

export type Piece =
  /** Words of a person that came from elsewhere. */
  | { readonly _tag: "Said"; readonly id: string; readonly text: string }
  | ({ readonly _tag: "StepStarted" | "StepEnded"; readonly name: string } & Owned)
  | ({ readonly _tag: "BlockStarted" | "BlockEnded"; readonly block: Block; readonly id: string } & Owned)
  | ({ readonly _tag: "BlockDelta"; readonly block: Block; readonly id: string; readonly text: string } & Owned)
  /** `blockId`: the words before the call. */
  | ({
      readonly _tag: "CallStarted"
      readonly callId: string
      readonly tool: string
      readonly blockId?: string
    } & Owned)
  | ({ readonly _tag: "CallArguments"; readonly callId: string; readonly text: string } & Owned)
  /** The arguments are complete, or the model has left the call. */
  | ({ readonly _tag: "CallReady"; readonly callId: string } & Owned)
  | ({ readonly _tag: "CallEnded"; readonly input: unknown; readonly event: EventOf<"ToolCallEnded"> } & Owned)
  | {
      readonly _tag: "ChildStarted"
      readonly child: string
      readonly name: string
      readonly parent?: string | undefined
      readonly callId?: string | undefined
    }
  | { readonly _tag: "ChildEnded"; readonly child: string; readonly error?: string | undefined }
  /** It goes on, and this run does not show how. `requests`: what it waits for. */
  | { readonly _tag: "ChildLeft"; readonly child: string; readonly requests: ReadonlyArray<string> }
  /** The rest, as it happened. `input`: the arguments of the call that it is about. */
  | ({ readonly _tag: "Happened"; readonly event: AgentEvent; readonly input?: unknown } & Owned)
  /** Somebody else had answered. */
  | { readonly _tag: "AnsweredBefore"; readonly requestId: string; readonly winner: string }
  /** Mode, list of tasks, jobs, agents and cost, whenever one of them changes. */
  | { readonly _tag: "StateChanged"; readonly state: { readonly [name: string]: unknown } }
  | End

export const isEnd = (piece: Piece): piece is End =>
  piece._tag === "Interrupted" || piece._tag === "Finished" || piece._tag === "Cancelled" || piece._tag === "Failed"

/** What a client has already. It decides only what is not sent again. */
export interface Known {
  /** Texts by the ids of blocks, and of what people said. */
  readonly texts: ReadonlyMap<string, string>
  /** Arguments by the ids of calls. */
  readonly calls: ReadonlyMap<string, string>
  /** Calls whose results it has. */
  readonly results: ReadonlySet<string>
}

const nothing: Known = { texts: new Map(), calls: new Map(), results: new Set() }

/** Whose words are: of the client's user, of a person elsewhere, or of no person, such as the end of a child. */
export type Author = "client" | "person" | "nobody"

/** Begins the ids of what people said elsewhere. */
export const saidPrefix = "assent:"

/**
 * What is made of an event: `nothing` is only learned from; `words` are texts, calls and their results; `all` is the rest,
 * too.
 */
export type Extent = "nothing" | "words" | "all"

// -----------------------------------------------------------------------------------------------------------------
// projection
// -----------------------------------------------------------------------------------------------------------------

export class RunProjection {
  private readonly agents = new Map<SessionId, Agent>()
  /** Calls by id, with their arguments; also of earlier runs. */
  private readonly calls = new Map<string, { readonly agent: Agent; input: unknown }>()
  /** Children of this run, in the order of their start. */
  private readonly children = new Map<string, "open" | "ended">()
  /** Ids of blocks that this run has used. */
  private readonly used = new Set<string>()
  private extent: Extent = "all"
  private pieces: Array<Piece> = []

  constructor(
    private readonly root: SessionId,
    private readonly known: Known = nothing,
    /** Whose the words of a message, or of a turn, are. */
    private readonly authorOf: (id: string) => Author = () => "person"
  ) {}

  /** The pieces of an event, which comes behind all events before it. */
  take(event: AgentEvent, extent: Extent): ReadonlyArray<Piece> {
    this.extent = extent
    this.project(event, this.agentOf(event))
    return this.pieces.splice(0)
  }

  /** Whose request it is. */
  childOf({ sessionId }: InteractionRequest): Owned {
    return childOf(this.agents.get(sessionId))
  }

  /** Closes all that is open, and ends the run. */
  end(end: End): ReadonlyArray<Piece> {
    this.extent = "all"
    for (const agent of this.agents.values()) this.closeAll(agent)
    const waiting = end._tag === "Interrupted" ? end.requests : []
    for (const [child, state] of [...this.children].reverse()) {
      if (state === "ended") continue
      const requests = waiting.flatMap((asked) => (asked.child === child ? [String(asked.request.requestId)] : []))
      this.pieces.push({ _tag: "ChildLeft", child, requests })
      this.children.set(child, "ended")
    }
    this.pieces.push(end)
    return this.pieces.splice(0)
  }

  private project(event: AgentEvent, agent: Agent): void {
    switch (event._tag) {
      case "AgentCreated":
        Object.assign(agent, { parent: event.parentSessionId, parentCall: event.parentToolCallId })
        if (event.profile !== undefined) agent.name = event.profile
        return this.extent === "all" ? this.start(agent) : undefined
      case "AgentCompleted":
        return this.complete(event, agent)
      case "TurnStarted":
        return this.begin(event, agent)
      case "TurnEnded":
        this.closeAll(agent)
        if (agent.session === this.root && event.reason === "completed") return
        return this.happen(event, agent)
      case "ModelCallStarted":
        return this.beginCall(event, agent)
      case "ModelCallEnded":
        this.closeBlock(agent)
        this.closeStep(agent)
        return event.remark === undefined ? undefined : this.happen(event, agent)
      case "ModelRetried":
        this.closeBlock(agent)
        this.dropArguments(agent)
        agent.attempt++
        agent.blocks = 0
        return this.happen(event, agent)
      case "BlockStarted":
        this.closeBlock(agent)
        agent.block = beginBlock(event.block, agent)
        return
      case "TextDelta":
        return this.say("text", event.text, agent)
      case "ThinkingDelta":
        return this.say("thinking", event.text, agent)
      case "BlockEnded":
        return this.closeBlock(agent)
      case "ToolArgumentsStarted":
        this.closeBlock(agent)
        agent.arguments.set(event.toolCallId, { tool: event.tool, isOpen: this.openCall(event, agent), text: "" })
        return
      case "ToolArgumentsDelta":
        return this.write(event, agent)
      case "ToolCallProposed":
        return this.propose(event, agent)
      case "ToolCallEnded":
        return this.finish(event, agent)
      case "ToolCallStarted":
        return this.happen(event, agent, this.calls.get(event.toolCallId)?.input)
      case "UserInterjected":
        return this.hear(event.messageId, event.message)
      case "CompactionStarted":
      case "CompactionEnded":
        return event.quiet === true ? undefined : this.happen(event, agent)
      case "AgentStatusChanged":
      case "PermissionStatusChanged":
      case "TodosChanged":
      case "JobStarted":
      case "JobEnded":
        // The state has it.
        return
      default:
        return this.happen(event, agent)
    }
  }

  // ---- agents ----

  private agentOf({ agent: path, sessionId }: AgentEvent): Agent {
    const known = this.agents.get(sessionId)
    if (known !== undefined) return known
    const agent: Agent = {
      session: sessionId,
      child: sessionId === this.root ? undefined : sessionId,
      name: path.slice(path.lastIndexOf("/") + 1),
      parent: undefined,
      parentCall: undefined,
      lives: 1,
      hasEnded: false,
      step: undefined,
      call: "",
      attempt: 0,
      blocks: 0,
      block: undefined,
      lastBlock: undefined,
      arguments: new Map()
    }
    this.agents.set(sessionId, agent)
    return agent
  }

  /** Before anything of a child is shown, its start is, and those of the agents above. */
  private start({ child, name, parent, parentCall }: Agent): void {
    if (child === undefined || this.children.has(child)) return
    const above = parent === undefined ? undefined : this.agents.get(parent)
    if (above !== undefined) this.start(above)
    this.children.set(child, "open")
    this.pieces.push({
      _tag: "ChildStarted",
      child,
      name,
      ...(above?.child === undefined ? {} : { parent: above.child }),
      ...(parentCall === undefined ? {} : { callId: parentCall })
    })
  }

  private begin(event: EventOf<"TurnStarted">, agent: Agent): void {
    this.closeAll(agent)
    if (agent.session === this.root) {
      const id = event.correlationId ?? String(event.at)
      return this.authorOf(id) === "nobody" ? this.happen(event, agent) : this.hear(id, event.input)
    }
    if (agent.hasEnded) {
      // A child that works again is another one to a client: no id starts twice.
      agent.hasEnded = false
      agent.child = `${agent.session}:${++agent.lives}`
    }
    this.happen(event, agent)
  }

  private complete({ error, success }: EventOf<"AgentCompleted">, agent: Agent): void {
    this.closeAll(agent)
    agent.hasEnded = true
    const { child } = agent
    if (child === undefined || this.extent === "nothing") return
    if (this.extent === "all") this.start(agent)
    if (this.children.get(child) !== "open") return
    this.children.set(child, "ended")
    const failure = success ? {} : { error: error ?? "It did not complete." }
    this.pieces.push({ _tag: "ChildEnded", child, ...failure })
  }

  /** Words of a person: the client has its own. */
  private hear(id: string, text: string): void {
    const said = `${saidPrefix}${id}`
    const isKnown = this.authorOf(id) === "client" || this.known.texts.has(id) || this.known.texts.has(said)
    if (this.extent !== "nothing" && !isKnown) this.pieces.push({ _tag: "Said", id: said, text })
  }

  private happen(event: AgentEvent, agent: Agent, input?: unknown): void {
    if (this.extent !== "all") return
    this.start(agent)
    this.pieces.push({ _tag: "Happened", event, ...(input === undefined ? {} : { input }), ...childOf(agent) })
  }

  // ---- model calls ----

  private beginCall({ correlationId, sessionId, step }: EventOf<"ModelCallStarted">, agent: Agent): void {
    this.closeBlock(agent)
    this.dropArguments(agent)
    this.closeStep(agent)
    const call = `${correlationId ?? sessionId}.${step}`
    // Words that differ from those before come again, from the start of their call.
    agent.attempt = call === agent.call ? agent.attempt + 1 : 0
    agent.call = call
    agent.blocks = 0
    agent.lastBlock = undefined
    if (this.extent !== "all") return
    this.start(agent)
    agent.step = `step ${step}`
    this.pieces.push({ _tag: "StepStarted", name: agent.step, ...childOf(agent) })
  }

  private say(block: Block, text: string, agent: Agent): void {
    if (agent.block?.block !== block) {
      this.closeBlock(agent)
      agent.block = beginBlock(block, agent)
    }
    const { block: open } = agent
    if (text === "" || this.extent === "nothing") return
    if (open.id === "") this.nameBlock(open, text, agent)
    const rest = text.slice(open.skipped)
    open.skipped = Math.max(0, open.skipped - text.length)
    if (rest === "") return
    const shown = { block, id: open.id, ...childOf(agent) }
    if (!open.isOpen) {
      this.start(agent)
      this.pieces.push({ _tag: "BlockStarted", ...shown })
      open.isOpen = true
    }
    this.pieces.push({ _tag: "BlockDelta", ...shown, text: rest })
  }

  /** The next free id under which the client has nothing else. */
  private nameBlock(open: OpenBlock, text: string, agent: Agent): void {
    for (let attempt = agent.attempt; ; attempt++) {
      const id = attempt === 0 ? open.base : `${open.base}~${attempt}`
      const before = this.known.texts.get(id)
      if (this.used.has(id) || !(before === undefined || text.startsWith(before) || before.startsWith(text))) continue
      this.used.add(id)
      open.id = id
      open.skipped = before?.length ?? 0
      if (open.block === "text") agent.lastBlock = id
      return
    }
  }

  private closeBlock(agent: Agent): void {
    const { block: open } = agent
    agent.block = undefined
    if (open?.isOpen === true)
      this.pieces.push({ _tag: "BlockEnded", block: open.block, id: open.id, ...childOf(agent) })
  }

  private closeStep(agent: Agent): void {
    const { step } = agent
    agent.step = undefined
    if (step !== undefined) this.pieces.push({ _tag: "StepEnded", name: step, ...childOf(agent) })
  }

  private closeAll(agent: Agent): void {
    this.closeBlock(agent)
    this.dropArguments(agent)
    this.closeStep(agent)
  }

  // ---- tool calls ----

  /** False if the client has the call, or is not shown it. */
  private openCall(
    { tool, toolCallId }: { readonly tool: string; readonly toolCallId: string },
    agent: Agent
  ): boolean {
    if (this.extent === "nothing") return false
    this.start(agent)
    const { lastBlock: blockId } = agent
    const before = blockId === undefined ? {} : { blockId }
    this.pieces.push({ _tag: "CallStarted", callId: toolCallId, tool, ...before, ...childOf(agent) })
    return true
  }

  private write({ text, toolCallId }: EventOf<"ToolArgumentsDelta">, agent: Agent): void {
    const call = agent.arguments.get(toolCallId)
    if (call === undefined) return
    const before = this.known.calls.get(toolCallId) ?? ""
    const all = call.text + text
    const isSame = all.startsWith(before) || before.startsWith(all)
    const rest = all.slice(Math.max(call.text.length, isSame ? before.length : 0))
    call.text = all
    if (call.isOpen && rest !== "")
      this.pieces.push({ _tag: "CallArguments", callId: toolCallId, text: rest, ...childOf(agent) })
  }

  private propose(event: EventOf<"ToolCallProposed">, agent: Agent): void {
    const { arguments: input = {}, toolCallId } = event
    this.closeBlock(agent)
    const isAgain = this.calls.has(toolCallId)
    this.calls.set(toolCallId, { agent, input })
    const written = agent.arguments.get(toolCallId)
    agent.arguments.delete(toolCallId)
    if (written?.isOpen === true) {
      this.pieces.push({ _tag: "CallReady", callId: toolCallId, ...childOf(agent) })
      return
    }
    if (isAgain) return this.happen(event, agent)
    const text = JSON.stringify(input)
    const before = this.known.calls.get(toolCallId)
    if (before !== undefined && isSameJson(before, text)) return
    if (!this.openCall(event, agent)) return
    // Other arguments cannot be taken back. The result says what they were.
    const rest = before === undefined ? text : text.startsWith(before) ? text.slice(before.length) : ""
    if (rest !== "") this.pieces.push({ _tag: "CallArguments", callId: toolCallId, text: rest, ...childOf(agent) })
    this.pieces.push({ _tag: "CallReady", callId: toolCallId, ...childOf(agent) })
  }

  /** The model has left these calls without proposing them. */
  private dropArguments(agent: Agent): void {
    for (const [callId, { isOpen }] of agent.arguments) {
      if (isOpen) this.pieces.push({ _tag: "CallReady", callId, ...childOf(agent) })
    }
    agent.arguments.clear()
  }

  private finish(event: EventOf<"ToolCallEnded">, agent: Agent): void {
    if (this.extent === "nothing" || this.known.results.has(event.toolCallId)) return
    this.start(agent)
    const input = this.calls.get(event.toolCallId)?.input
    this.pieces.push({ _tag: "CallEnded", input, event, ...childOf(agent) })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An agent, as far as a run shows it. */
interface Agent {
  readonly session: SessionId
  /** Absent for the root. */
  child: string | undefined
  name: string
  parent: SessionId | undefined
  parentCall: string | undefined
  /** How often it has worked: a child may be sent words after its end. */
  lives: number
  hasEnded: boolean
  /** The step that this run shows. */
  step: string | undefined
  /** The model call. */
  call: string
  attempt: number
  /** Blocks of the call so far. */
  blocks: number
  block: OpenBlock | undefined
  lastBlock: string | undefined
  /** Calls whose arguments the model writes. */
  readonly arguments: Map<string, { readonly tool: string; readonly isOpen: boolean; text: string }>
}

interface OpenBlock {
  readonly block: Block
  readonly base: string
  /** Empty until its first words. */
  id: string
  /** Characters that the client has. */
  skipped: number
  isOpen: boolean
}

const beginBlock = (block: Block, agent: Agent): OpenBlock => ({
  block,
  base: `${agent.call === "" ? agent.session : agent.call}.${agent.blocks++}`,
  id: "",
  skipped: 0,
  isOpen: false
})

const childOf = (agent: Agent | undefined): Owned => (agent?.child === undefined ? {} : { child: agent.child })

const isSameJson = (one: string, other: string): boolean =>
  one === other ||
  Either.match(UntrustedJson.parse(one), {
    onLeft: () => false,
    onRight: (value) => canonicalJson(value) === canonicalJson(JSON.parse(other))
  })
