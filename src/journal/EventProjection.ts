/**
 * The projection of one session's journal to events, fact by fact. See `Replay`.
 *
 * An event tells what changed, also of calls and requests that are over: what `SessionSnapshot` drops, it keeps.
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { CorrelationId, MessageId, RequestId, ToolCallId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import * as Todo from "../core/Todo.js"
import * as ToolSummary from "../tool/ToolSummary.js"
import * as ToolOutcome from "../core/ToolOutcome.js"
import * as AgentEvent from "../event/AgentEvent.js"
import { attachmentsOf, wordsOf } from "../inbox/Message.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Tally from "../interaction/Tally.js"
import * as Needs from "../interaction/Needs.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as History from "../conversation/History.js"
import type { EntryOf, Permissions, SessionOpened } from "./JournalEntry.js"
import type { Batch, CallSnapshot, Fact, FactOf } from "./JournalReading.js"
import * as TokenUsage from "../model/TokenUsage.js"
import * as TokenEstimate from "../conversation/TokenEstimate.js"
import * as TurnEnd from "../event/TurnEnd.js"

export class EventProjection {
  private at = 0
  private turn: CorrelationId | undefined
  private step = 0
  private status: AgentEvent.AgentStatus = "idle"
  /** Number of messages in the history. */
  private messages = 0
  /** The provider's count of the last prompt. */
  private tokens = 0
  private permissions = ""
  private todos: ReadonlyArray<Todo.Todo> = []
  /** A model call whose words, if any, follow: its usage is written first. */
  private called: EntryOf<"UsageRecorded"> | undefined
  /** Messages in the history that no model call has seen yet. */
  private unseen: Array<MessageId> = []
  /** When calls of the batch began. */
  private readonly startedAt = new Map<ToolCallId, number>()
  private readonly requests = new Map<RequestId, Request>()
  private readonly votes = new Map<RequestId, ReadonlyArray<Ballot.Cast>>()
  /** The requests that are not settled. */
  private readonly open = new Set<RequestId>()

  constructor(
    private readonly opened: SessionOpened,
    private readonly publish: (event: AgentEvent.AgentEvent) => void
  ) {}

  apply(fact: Fact, at: number): void {
    this.at = at
    if (fact._tag !== "AssistantAppended" && fact._tag !== "CallsProposed") this.endCall()
    switch (fact._tag) {
      case "SessionOpened":
        return this.created()
      case "MessageReceived":
        return this.receive(fact.entry)
      case "MessageTaken":
        return this.take(fact)
      case "UsageRecorded":
        this.called = fact.entry
        return
      case "AssistantAppended":
        if (fact.entry.content.length > 0) this.messages++
        return this.modelCall(fact.entry.content, fact.entry.partial === true ? "interrupted" : "stop")
      case "CallsProposed":
        return this.propose(fact)
      case "CallDecided":
        return this.decide(fact)
      case "ToolStarted":
        return this.start(fact)
      case "ToolEnded":
        return fact.call === undefined || fact.isAgain
          ? undefined
          : this.end(fact.call, fact.entry.outcome, fact.entry.result)
      case "ResultsAppended":
        return this.endBatch(fact.finished)
      case "TurnEnded":
        return this.endTurn(fact.entry.end, fact.finished)
      case "InteractionRaised":
        return fact.isAgain ? undefined : this.raise(fact.request)
      case "InteractionSettled":
        return this.settle(fact.entry)
      case "VoteGiven":
        return this.vote(fact.entry)
      case "PermissionsChanged":
        return this.permit(fact.entry.permissions)
      case "ModelChosen":
      case "TokensSpent":
        return
      case "HistoryReplaced":
        return this.shorten(fact.entry)
      case "SessionResumed":
        return this.emit({ _tag: "SessionRestored", messages: this.messages })
      case "SessionClosed":
        return this.setStatus("done")
    }
  }

  private emit(body: AgentEvent.Body): void {
    const { agent, sessionId } = this.opened
    this.publish(AgentEvent.make({ at: this.at, sessionId, agent, correlationId: this.turn }, body))
  }

  private setStatus(status: AgentEvent.AgentStatus): void {
    if (this.status === status) return
    this.status = status
    this.emit({ _tag: "AgentStatusChanged", status })
  }

  private created(): void {
    const { depth, model, parentSessionId, parentToolCallId, profile, subagentId } = this.opened
    this.emit({
      _tag: "AgentCreated",
      depth,
      model,
      ...(parentSessionId === undefined ? {} : { parentSessionId }),
      ...(parentToolCallId === undefined ? {} : { parentToolCallId }),
      ...(subagentId === undefined ? {} : { subagentId }),
      ...(profile === undefined ? {} : { profile })
    })
  }

  private receive({ message }: EntryOf<"MessageReceived">): void {
    if (message.interjection === undefined) return
    this.emit({
      _tag: "UserInterjected",
      messageId: message.id,
      message: message.text,
      targetAgent: this.opened.agent,
      parentId: message.interjection.parentId,
      ...attachmentsOf([message])
    })
  }

  private take({ abandoned, begins, entry, finished, messages }: FactOf<"MessageTaken">): void {
    if (abandoned !== undefined) this.endTurn(TurnEnd.Cancelled({ reason: "shutdown", steps: this.step }), finished)
    this.messages += messages.length
    if (begins) {
      this.turn = entry.correlationId
      this.step = 0
      this.emit({
        _tag: "TurnStarted",
        input: wordsOf(messages),
        ...attachmentsOf(messages)
      })
      this.setStatus("thinking")
    }
    for (const { id, interjection } of messages) if (interjection !== undefined) this.unseen.push(id)
  }

  /** Publishes a whole model call: start, words if any, and end. */
  private modelCall(content: EntryOf<"CallsProposed">["content"], finishReason: string): void {
    const { model, step, usage, window, ...ended } = this.called ?? {
      model: this.opened.model,
      step: this.step + 1,
      window: undefined,
      usage: {},
      finishReason
    }
    this.called = undefined
    this.step = step
    const context = TokenUsage.contextOf(model, usage, window)
    this.tokens = context?.tokens ?? this.tokens
    for (const messageId of this.unseen.splice(0)) this.emit({ _tag: "InterjectionAcknowledged", messageId, step })
    this.setStatus("thinking")
    this.emit({ _tag: "ModelCallStarted", model, step })
    for (const part of content) {
      if (part.type !== "text" && part.type !== "reasoning") continue
      const block = part.type === "text" ? "text" : "thinking"
      this.setStatus("streaming")
      this.emit({ _tag: "BlockStarted", block })
      if (part.text !== "") this.emit({ _tag: block === "text" ? "TextDelta" : "ThinkingDelta", text: part.text })
      this.emit({ _tag: "BlockEnded", block })
    }
    const stopped = ended.finishReason === "interrupted" ? { interrupted: true } : {}
    const { finishReason: reason, remark } = { remark: undefined, ...ended }
    const remarked = remark === undefined ? {} : { remark }
    this.emit({
      _tag: "ModelCallEnded",
      model,
      step,
      usage,
      finishReason: reason,
      ...remarked,
      ...(context && { context }),
      ...stopped
    })
  }

  /** The model call before this entry left no words. */
  private endCall(): void {
    if (this.called !== undefined) this.modelCall([], this.called.finishReason)
  }

  private propose({ entry, finished }: FactOf<"CallsProposed">): void {
    this.endBatch(finished)
    this.modelCall(entry.content, "tool-calls")
    this.setStatus("executing")
    for (const { id, name, params } of entry.calls) {
      const summary = ToolSummary.ofCall(params, redactor)
      const proposed = { toolCallId: id, tool: name, summary, arguments: redactor.value(params) }
      this.emit({ _tag: "ToolCallProposed", ...proposed })
    }
  }

  private decide({ call, entry, isAgain }: FactOf<"CallDecided">): void {
    if (call === undefined || isAgain) return
    const { granted, method, params, reason, requestId, toolCallId } = entry
    const by = requestId === undefined ? undefined : this.requests.get(requestId)?.by
    this.emit({
      _tag: "PermissionResolved",
      toolCallId,
      tool: call.call.name,
      granted,
      method,
      reason,
      ...(requestId === undefined ? {} : { requestId }),
      ...(by === undefined ? {} : { by }),
      ...(params === undefined ? {} : { edited: true })
    })
  }

  private start({ call, entry, isAgain }: FactOf<"ToolStarted">): void {
    if (call === undefined || isAgain) return
    const { params, tool, toolCallId } = entry
    this.startedAt.set(toolCallId, this.at)
    this.emit({ _tag: "ToolCallStarted", toolCallId, tool, summary: ToolSummary.ofCall(params, redactor) })
  }

  private end({ call }: CallSnapshot, outcome: ToolOutcome.ToolOutcome, result: unknown): void {
    const fault = outcome === "succeeded" ? ToolSummary.fault(result) : undefined
    const startedAt = this.startedAt.get(call.id)
    const todos = outcome === "succeeded" ? Todo.written(call.name, call.params) : undefined
    if (todos !== undefined) this.emit({ _tag: "TodosChanged", items: (this.todos = todos) })
    this.emit({
      _tag: "ToolCallEnded",
      toolCallId: call.id,
      tool: call.name,
      outcome,
      summary: ToolSummary.of(result, redactor),
      ...ToolSummary.shown(result),
      ...(fault === undefined ? {} : { fault }),
      ...(startedAt === undefined ? {} : { duration: Math.max(0, this.at - startedAt) })
    })
  }

  private endBatch(finished: Batch | undefined): void {
    for (const call of finished?.calls ?? [])
      if (call.ended === undefined) this.end(call, "interrupted", ToolOutcome.lost)
    // A proposal enters the history together with its results.
    if (finished !== undefined) this.messages += 2
    this.startedAt.clear()
    if (this.status === "executing") this.setStatus("thinking")
  }

  private endTurn(end: TurnEnd.TurnEnd, finished: Batch | undefined): void {
    this.endBatch(finished)
    for (const requestId of [...this.open]) this.settle({ _tag: "InteractionSettled", requestId, status: "cancelled" })
    const report = TurnEnd.report(end)
    const { detail, reason, steps } = report
    this.emit({ _tag: "TurnEnded", ...report })
    this.turn = undefined
    this.setStatus("idle")
    if (this.opened.depth === 0) return
    const error = reason === "completed" ? {} : { error: detail ?? reason }
    this.emit({ _tag: "AgentCompleted", success: reason === "completed", turnsUsed: steps, ...error })
  }

  private raise(request: InteractionRequest): void {
    this.requests.set(request.requestId, { request, by: undefined })
    this.open.add(request.requestId)
    this.emit(InteractionEvent.requested(request, redactor))
  }

  private vote({ answer, by, requestId, roles }: EntryOf<"VoteGiven">): void {
    const interaction = this.requests.get(requestId)?.request.interaction
    if (interaction === undefined || !Ballot.isReserved(interaction)) return
    const votes = [...(this.votes.get(requestId) ?? []), { answer, by, ...(roles && { roles }) }]
    this.votes.set(requestId, votes)
    const standing = Tally.standing(interaction, votes)
    const missing = standing._tag === "Open" ? { missing: standing.missing } : {}
    this.emit({ _tag: "InteractionVoted", requestId, kind: "Approve", by, vote: answer.decision, ...missing })
  }

  private settle({ answer, by, requestId, status }: EntryOf<"InteractionSettled">): void {
    const votes = this.votes.get(requestId)
    const known = this.requests.get(requestId)
    if (known === undefined || !this.open.delete(requestId)) return
    known.by = by
    const { interaction } = known.request
    const common = { requestId, kind: interaction._tag }
    const who = by ?? "nobody"
    switch (status) {
      case "answered":
        this.emit({
          _tag: "InteractionAnswered",
          ...common,
          status,
          ...(answer === undefined ? {} : { value: answer }),
          by: who,
          how: "answered",
          ...(votes && { votes: Needs.votedOf(votes) })
        })
        return this.envelope(interaction, answer)
      case "timed_out":
        return this.emit({ _tag: "InteractionTimedOut", ...common, by: who })
      case "unavailable":
        return this.emit({ _tag: "InteractionUnavailable", ...common, reason: "No channel could answer." })
      case "cancelled":
        return this.emit({ _tag: "InteractionCancelled", ...common, ...(by === undefined ? {} : { by }) })
    }
  }

  private envelope(interaction: Interaction.Interaction, answer: unknown): void {
    if (interaction._tag !== "approveSubagentEnvelope") return
    const { subagentId } = interaction
    const given = Option.getOrUndefined(Either.getRight(Interaction.decodeAnswer(interaction, answer)))
    const noted = given?.note === undefined ? {} : { note: given.note }
    const approved = given?.outcome === "approve"
    this.emit({ _tag: approved ? "SubagentEnvelopeApproved" : "SubagentEnvelopeDenied", subagentId, ...noted })
  }

  /** Publishes only changes that a person would see; the policy itself is in no journal. */
  private permit({ all, default: changed, idle, plan, turn }: Permissions): void {
    const { sessionId } = this.opened
    const mode = plan === true ? "plan" : (changed ?? "policy")
    const suspension = all ? "all" : turn.includes(sessionId) ? "turn" : idle.includes(sessionId) ? "idle" : undefined
    const shown = `${mode} ${suspension ?? ""}`
    if (shown === this.permissions || (this.permissions === "" && shown === "policy ")) return
    this.permissions = shown
    this.emit({
      _tag: "PermissionStatusChanged",
      mode,
      ...(suspension === undefined ? {} : { suspension })
    })
  }

  private shorten({ messages, reason }: EntryOf<"HistoryReplaced">): void {
    // What was refused is noted in its place: nothing was made shorter.
    if (reason === "files_refused") return
    const kept = messages.filter((message) => History.metadata(message).summary !== true).length
    const removed = Math.max(0, this.messages - kept)
    this.messages = messages.length
    if (reason === "cleared") {
      if (this.todos.length > 0) this.emit({ _tag: "TodosChanged", items: (this.todos = []) })
      return
    }
    this.emit({ _tag: "CompactionStarted", reason, tokens: this.tokens })
    this.tokens = Math.round(TokenEstimate.estimate(messages))
    this.emit({ _tag: "CompactionEnded", reason, removed, tokens: this.tokens })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Request {
  readonly request: InteractionRequest
  by: string | undefined
}

/** Entries were masked when written; only summaries made here are masked again. */
const redactor = Redaction.shapesOnly
