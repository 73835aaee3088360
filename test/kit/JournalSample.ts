/** Entries as sessions write them, and whole journals of trees that did all kinds of things. */
import * as Prompt from "@effect/ai/Prompt"
import * as FastCheck from "fast-check"
import type { CorrelationId, MessageId, RequestId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Digest from "../../src/core/Digest.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as History from "../../src/conversation/History.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"

export const root = "ses_root" as SessionId

export const opened = (
  sessionId: SessionId = root,
  more: Partial<JournalEntry.SessionOpened> = {}
): JournalEntry.SessionOpened => ({
  _tag: "SessionOpened",
  version: JournalEntry.version,
  sessionId,
  rootSessionId: root,
  agent: "main",
  depth: 0,
  model: "offline",
  instructions: "digest",
  ...more
})

export const received = (
  id: string,
  text: string,
  more: Partial<JournalEntry.EntryOf<"MessageReceived">["message"]> = {}
): JournalEntry.EntryOf<"MessageReceived"> => ({
  _tag: "MessageReceived",
  message: { id: id as MessageId, source: "user", delivery: "steer", text, at: 1, ...more }
})

/** Bytes, and words that refer to them. */
export const content = (text: string): SessionStore.Content => {
  const bytes = new TextEncoder().encode(text)
  return { bytes, sha256: Digest.sha256(bytes) }
}

export const attached = (id: string, ...contents: ReadonlyArray<SessionStore.Content>) =>
  received(id, "Look", {
    parts: [
      { type: "text", text: "Look" },
      ...contents.map(({ bytes, sha256 }, at) => ({
        type: "file" as const,
        file: { name: `${at}.png`, mediaType: "image/png", size: bytes.length, sha256 }
      }))
    ]
  })

export const taken = (
  correlationId: string,
  step: number,
  ...ids: ReadonlyArray<string>
): JournalEntry.EntryOf<"MessageTaken"> => ({
  _tag: "MessageTaken",
  messageIds: ids as ReadonlyArray<MessageId>,
  correlationId: correlationId as CorrelationId,
  step
})

export const said = (text: string, partial = false): JournalEntry.EntryOf<"AssistantAppended"> => ({
  _tag: "AssistantAppended",
  content: [Prompt.textPart({ text })],
  ...(partial ? { partial: true as const } : {})
})

export const turnEnded = (correlationId: string, text = "done"): JournalEntry.EntryOf<"TurnEnded"> => ({
  _tag: "TurnEnded",
  correlationId: correlationId as CorrelationId,
  end: { _tag: "Completed", text, steps: 1 }
})

export const proposed = (
  correlationId: string,
  step: number,
  ...ids: ReadonlyArray<string>
): JournalEntry.EntryOf<"CallsProposed"> => ({
  _tag: "CallsProposed",
  correlationId: correlationId as CorrelationId,
  step,
  content: [
    Prompt.textPart({ text: "I will." }),
    ...ids.map((id) => Prompt.toolCallPart({ id, name: "look", params: { at: id }, providerExecuted: false }))
  ],
  calls: ids.map((id) => ({ id: id as ToolCallId, name: "look", params: { at: id } }))
})

export const decided = (
  toolCallId: string,
  granted: boolean,
  requestId?: string
): JournalEntry.EntryOf<"CallDecided"> => ({
  _tag: "CallDecided",
  toolCallId: toolCallId as ToolCallId,
  granted,
  method: requestId === undefined ? "whitelist" : granted ? "user_approved" : "user_denied",
  reason: "look",
  ...(requestId === undefined ? {} : { requestId: requestId as RequestId })
})

export const started = (toolCallId: string): JournalEntry.EntryOf<"ToolStarted"> => ({
  _tag: "ToolStarted",
  toolCallId: toolCallId as ToolCallId,
  tool: "look",
  params: { at: toolCallId }
})

export const ended = (
  toolCallId: string,
  outcome: JournalEntry.EntryOf<"ToolEnded">["outcome"] = "succeeded"
): JournalEntry.EntryOf<"ToolEnded"> => ({
  _tag: "ToolEnded",
  toolCallId: toolCallId as ToolCallId,
  outcome,
  result: { seen: toolCallId }
})

export const results = (correlationId: string): JournalEntry.EntryOf<"ResultsAppended"> => ({
  _tag: "ResultsAppended",
  correlationId: correlationId as CorrelationId
})

export const request = (
  requestId: string,
  interaction: Interaction.Interaction = new Interaction.Select({ prompt: "Which?", options: ["a", "b"] }),
  sessionId: SessionId = root
): InteractionRequest => ({
  requestId: requestId as RequestId,
  correlationId: "turn_1" as CorrelationId,
  sessionId,
  agentPath: "main",
  issuedAt: 5,
  interaction
})

export const raised = (
  requestId: string,
  interaction?: Interaction.Interaction
): JournalEntry.EntryOf<"InteractionRaised"> => ({
  _tag: "InteractionRaised",
  request: request(requestId, interaction)
})

export const settled = (requestId: string, answer: unknown = 0): JournalEntry.EntryOf<"InteractionSettled"> => ({
  _tag: "InteractionSettled",
  requestId: requestId as RequestId,
  status: "answered",
  answer,
  by: "person"
})

export const draft = (entry: JournalEntry.JournalEntry, sessionId: SessionId = root): JournalEntry.Draft => ({
  sessionId,
  entry
})

/** Numbers drafts as a store does. */
export const write = (drafts: ReadonlyArray<JournalEntry.Draft>): ReadonlyArray<JournalEntry.Written> =>
  drafts.map((one, index) => ({ ...one, seq: index + 1, at: 1_000 + index }))

/** A journal that a tree of sessions could have written, cut off anywhere. */
export const journal = (choices: ReadonlyArray<number>): ReadonlyArray<JournalEntry.Written> => {
  const drafts: Array<JournalEntry.Draft> = []
  const sessions = [new Played(root, 0)]
  const [main] = sessions
  if (main !== undefined) drafts.push(draft(opened()))
  for (const [index, choice] of choices.entries()) {
    const session = sessions[choice % sessions.length]
    if (session === undefined) continue
    const what = Math.floor(choice / 7)
    const child = what % 11 === 0 && sessions.length < 4 ? session.callForChild() : undefined
    if (child === undefined) {
      for (const entry of session.play(what, index)) drafts.push(draft(entry, session.id))
    } else {
      const id = `ses_${index}` as SessionId
      sessions.push(new Played(id, index))
      const more = {
        agent: `main/${index}`,
        depth: 1,
        parentSessionId: session.id,
        parentToolCallId: child,
        subagentId: `sub_${index}`
      }
      drafts.push(draft(opened(id, more), id))
    }
  }
  return write(drafts)
}

export const journals: FastCheck.Arbitrary<ReadonlyArray<JournalEntry.Written>> = FastCheck.array(
  FastCheck.nat({ max: 100_000 }),
  { maxLength: 120, size: "max" }
).map(journal)

/** One session of such a tree: in which state it is, and what can come next. */
class Played {
  private count = 0
  private waiting: Array<string> = []
  private turn: string | undefined
  private step = 0
  private batch: Array<{ readonly id: string; state: "proposed" | "asked" | "decided" | "started" | "ended" }> = []

  constructor(
    readonly id: SessionId,
    private readonly seed: number
  ) {}

  callForChild(): ToolCallId | undefined {
    return this.batch.find(({ state }) => state === "started")?.id as ToolCallId | undefined
  }

  play(what: number, index: number): ReadonlyArray<JournalEntry.JournalEntry> {
    if (what % 5 === 0) return this.receive(index)
    if (what % 37 === 0) return [this.permissions()]
    if (this.turn === undefined) return this.begin(index)
    if (this.batch.length > 0) return this.work(what)
    return this.generate(what)
  }

  private next(kind: string): string {
    return `${kind}_${this.seed}_${++this.count}`
  }

  private receive(index: number): ReadonlyArray<JournalEntry.JournalEntry> {
    const id = this.next("msg")
    this.waiting.push(id)
    const busy = this.turn !== undefined
    return [
      received(id, `words ${index}`, {
        at: index,
        ...(this.seed === 0 ? {} : { source: "parent" }),
        ...(busy ? { interjection: { parentId: "root" } } : {})
      })
    ]
  }

  private begin(index: number): ReadonlyArray<JournalEntry.JournalEntry> {
    if (this.waiting.length === 0) return this.receive(index)
    this.turn = this.next("turn")
    this.step = 1
    return [taken(this.turn, 1, ...this.waiting.splice(0))]
  }

  private generate(what: number): ReadonlyArray<JournalEntry.JournalEntry> {
    const turn = this.turn ?? ""
    if (this.waiting.length > 0) {
      const ids = this.waiting.splice(0)
      return what % 2 === 0
        ? [said("I was ab", true), taken(turn, ++this.step, ...ids)]
        : [taken(turn, ++this.step, ...ids)]
    }
    if (what % 3 === 0) {
      this.turn = undefined
      return [said("All done."), turnEnded(turn)]
    }
    if (what % 13 === 0) {
      return [
        {
          _tag: "HistoryReplaced",
          reason: "compacted",
          messages: [History.summaryMessage("so far")]
        }
      ]
    }
    const ids = Array.from({ length: 1 + (what % 3) }, () => this.next("call"))
    this.batch = ids.map((id) => ({ id, state: "proposed" }))
    return [proposed(turn, this.step, ...ids)]
  }

  private work(what: number): ReadonlyArray<JournalEntry.JournalEntry> {
    const call =
      this.batch.filter(({ state }) => state !== "ended")[what % 2] ?? this.batch.find(({ state }) => state !== "ended")
    if (call === undefined) {
      this.batch = []
      this.step++
      return [results(this.turn ?? "")]
    }
    switch (call.state) {
      case "proposed":
        if (what % 2 === 0) {
          call.state = "asked"
          return [raised(`req_${call.id}`)]
        }
        call.state = "decided"
        return [decided(call.id, true)]
      case "asked":
        call.state = what % 3 === 0 ? "ended" : "decided"
        return call.state === "ended"
          ? [settled(`req_${call.id}`, 1), decided(call.id, false, `req_${call.id}`), ended(call.id, "denied")]
          : [settled(`req_${call.id}`, 0), decided(call.id, true, `req_${call.id}`)]
      case "decided":
        call.state = "started"
        return [started(call.id)]
      default:
        call.state = "ended"
        return [ended(call.id)]
    }
  }

  private permissions(): JournalEntry.JournalEntry {
    return {
      _tag: "PermissionsChanged",
      permissions: { allow: [this.next("tool")], deny: [], all: false, turn: [this.id], idle: [] }
    }
  }
}
