/**
 * Notes the entries of one session: one method for each kind. Noting is synchronous and masks secrets; {@link
 * SessionRecorder.flush} waits until the entries are durable.
 *
 * A session without a journal has no recorder, so it costs nothing there.
 */
import * as Prompt from "@effect/ai/Prompt"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as AuditRecord from "../audit/AuditRecord.js"
import type { CorrelationId, MessageId, SessionId, ToolCallId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type { Message, Part } from "../inbox/Message.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Interaction from "../interaction/Interaction.js"
import type { InteractionJournal } from "../broker/InteractionJournal.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { Resolution } from "../permission/PermissionGate.js"
import type { Snapshot } from "../permission/PermissionState.js"
import * as SessionRule from "../permission/SessionRule.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import * as AttachedFile from "../conversation/AttachedFile.js"
import * as History from "../conversation/History.js"
import type * as JournalWriter from "./JournalWriter.js"
import * as JournalEntry from "./JournalEntry.js"
import type { TurnEnd } from "../event/TurnEnd.js"

type Content = ReadonlyArray<Prompt.AssistantMessagePart>

export class SessionRecorder {
  private opened: JournalEntry.SessionOpened | undefined
  /** Permissions that were changed before the first message. */
  private begun: Snapshot | undefined

  /** `opened` is noted with the first message: a session without messages leaves no trace. */
  constructor(
    private readonly journal: JournalWriter.Service,
    private readonly redactor: Redaction.Redactor,
    opened?: JournalEntry.SessionOpened
  ) {
    this.opened = opened
  }

  /** Returns when all entries until now are durable; fails with a sentence. */
  get flush(): Effect.Effect<void, string> {
    return Effect.mapError(this.journal.flush, ({ message }) => message)
  }

  /** Whether later entries are ignored: another process goes on from the earlier ones. */
  get isFrozen(): boolean {
    return this.journal.isFrozen()
  }

  /** For the inbox: a message was filed. */
  readonly received = (message: Message): void => {
    this.open()
    const { interjection, parts, ...rest } = message
    this.journal.note({
      _tag: "MessageReceived",
      message: {
        ...rest,
        text: this.redactor.text(message.text),
        ...(parts === undefined ? {} : { parts: parts.map((part) => this.described(part)) }),
        ...(interjection === undefined ? {} : { interjection })
      }
    })
  }

  /** For the inbox: a message was withdrawn unread. */
  readonly withdrawn = (messageId: MessageId): void => {
    this.journal.note({ _tag: "MessageWithdrawn", messageId })
  }

  /**
   * This message is a task; without a waiting call its end is reported by a message. `bound`: it was requested with an
   * authority that ends with the process.
   */
  given(messageId: MessageId, toolCallId: ToolCallId | undefined, bound: boolean): void {
    this.journal.note({
      _tag: "TaskGiven",
      messageId,
      ...(toolCallId === undefined ? {} : { toolCallId }),
      ...(bound ? { bound } : {})
    })
  }

  /** In the step in which the parent gets the end. */
  told(messageId: MessageId): void {
    this.journal.note({ _tag: "TaskTold", messageId })
  }

  taken(messages: ReadonlyArray<Message>, correlationId: CorrelationId, step: number): void {
    this.journal.note({ _tag: "MessageTaken", messageIds: messages.map(({ id }) => id), correlationId, step })
  }

  answered(content: Content, partial: boolean): void {
    const kept = this.masked(content)
    if (kept.length > 0) {
      this.journal.note({ _tag: "AssistantAppended", content: kept, ...(partial ? { partial } : {}) })
    }
  }

  used(used: Omit<JournalEntry.EntryOf<"UsageRecorded">, "_tag">): void {
    this.journal.note({ _tag: "UsageRecorded", ...used })
  }

  spent(spent: Omit<JournalEntry.EntryOf<"TokensSpent">, "_tag">): void {
    this.journal.note({ _tag: "TokensSpent", ...spent })
  }

  proposed(correlationId: CorrelationId, step: number, content: Content, calls: ReadonlyArray<ToolCall>): void {
    this.journal.note({
      _tag: "CallsProposed",
      correlationId,
      step,
      content: this.masked(content),
      calls: calls.map(({ id, name, params }) => ({ id, name, params: this.redactor.value(params) }))
    })
  }

  /** For the gate. */
  readonly decided = ({ id }: ToolCall, resolution: Resolution, params: unknown): void => {
    const { granted, how, method, reason, requestId, voters } = resolution
    this.journal.note({
      _tag: "CallDecided",
      toolCallId: id,
      granted,
      method,
      reason: this.redactor.text(reason),
      ...(requestId === undefined ? {} : { requestId }),
      ...(how === "model" ? { how } : {}),
      ...(granted && voters !== undefined ? { voters } : {}),
      ...(params === undefined ? {} : { params: this.redactor.value(params) })
    })
  }

  /**
   * Returns when it is durable: only then may the tool begin. `waiting`: somebody allowed the call, so it is not settled
   * against that: it waits until the store can be written to, and this hears why.
   */
  started(
    toolCallId: ToolCallId,
    tool: string,
    params: unknown,
    waiting?: (why: string) => void
  ): Effect.Effect<void, string> {
    const start = Effect.suspend((): Effect.Effect<void, JournalWriter.JournalFailure | string> => {
      // It stays allowed, and begins in the next process.
      if (this.journal.isHeld()) return Effect.never
      if (this.isFrozen) return Effect.fail(`${stopped}.`)
      return this.journal.commit([{ _tag: "ToolStarted", toolCallId, tool, params: this.redactor.value(params) }])
    })
    let isTold = false
    const isToWait = (error: JournalWriter.JournalFailure | string) => {
      if (waiting === undefined || this.isFrozen) return false
      if (typeof error === "string" || error._tag !== "StoreUnwritable") return false
      if (!isTold) waiting(error.message)
      isTold = true
      return true
    }
    return Effect.mapError(Effect.retry(start, { while: isToWait, schedule: Schedule.spaced("1 second") }), (error) =>
      typeof error === "string" ? error : error.message
    )
  }

  ended({ id, outcome, result }: ToolResult): void {
    this.journal.note({ _tag: "ToolEnded", toolCallId: id, outcome, result: this.redactor.value(result) })
  }

  completed(correlationId: CorrelationId): void {
    this.journal.note({ _tag: "ResultsAppended", correlationId })
  }

  turnEnded(correlationId: CorrelationId, end: TurnEnd): void {
    this.journal.note({ _tag: "TurnEnded", correlationId, end: masked(end, this.redactor) })
  }

  /** For a compaction, and for a cleared history. */
  readonly replaced = (reason: string, messages: ReadonlyArray<Prompt.Message>): void => {
    this.journal.note({
      _tag: "HistoryReplaced",
      reason,
      messages: messages.filter(({ role }) => role !== "system").map(AttachedFile.unloaded)
    })
  }

  readonly permissions = (permissions: Snapshot): void => {
    // A session that nobody spoke to leaves no trace yet.
    if (this.opened !== undefined) {
      this.begun = permissions
      return
    }
    const { allow, default: fallback, deny, plan, told, ...rest } = permissions
    this.journal.note({
      _tag: "PermissionsChanged",
      permissions: {
        ...rest,
        ...SessionRule.kept({ allow, deny }, this.redactor),
        ...(fallback === undefined ? {} : { default: fallback }),
        ...(plan === undefined ? {} : { plan }),
        ...(told === undefined ? {} : { told })
      }
    })
  }

  /** Returns when it is durable. If it cannot be written, it is with the entries that follow. */
  chosen(model: string, thinking: JournalEntry.Thinking | undefined): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.opened === undefined) this.journal.note({ _tag: "ModelChosen", model, thinking })
      else this.opened = { ...this.opened, model, thinking }
      return Effect.ignore(this.flush)
    })
  }

  private open(): void {
    if (this.opened === undefined) return
    this.journal.note(this.opened)
    this.opened = undefined
    if (this.begun !== undefined) this.permissions(this.begun)
    this.begun = undefined
  }

  closed(): void {
    // A session without messages has nothing to close.
    if (this.opened === undefined) this.journal.note({ _tag: "SessionClosed" })
  }

  /** Questions that no call asks again. */
  dropped(requests: ReadonlyArray<InteractionRequest.InteractionRequest>): void {
    for (const { requestId } of requests)
      this.journal.note({ _tag: "InteractionSettled", requestId, status: "cancelled" })
  }

  resumed(): void {
    this.journal.note({ _tag: "SessionResumed" })
  }

  /** Without its bytes, which the store keeps by their digest. */
  private described(part: Part): Part {
    return part.type === "text"
      ? { type: "text", text: this.redactor.text(part.text) }
      : { type: "file", file: part.file }
  }

  private masked(content: Content): Content {
    return History.masked(content, this.redactor)
  }
}

/** Stores the questions of a whole tree, for its broker. */
export const interactions = (
  journal: JournalWriter.Service,
  redactor: Redaction.Redactor,
  kept: InteractionJournal["kept"] = () => undefined,
  votes: InteractionJournal["votes"] = () => [],
  settledBy: InteractionJournal["settledBy"] = () => undefined
): InteractionJournal => {
  /** `commit`: it counts only if it is written. `write`: it is written sooner or later. */
  const keeping = (
    how: "commit" | "write",
    sessionId: SessionId,
    entry: JournalEntry.JournalEntry,
    audited?: AuditRecord.AuditEntry
  ) =>
    Effect.suspend(() => {
      if (journal.isFrozen()) return Effect.fail(stopped)
      const decision = journal.decide && audited && AuditRecord.decision(audited, redactor)
      if (decision !== undefined && Either.isLeft(decision)) return Effect.fail(decision.left)
      return Effect.mapError(journal.of(sessionId)[how]([entry], decision?.right), ({ message }) => message)
    })
  return {
    isParked: () => journal.isFrozen(),
    kept,
    settledBy,
    votes,
    voted: ({ interaction, requestId, sessionId }, { answer, by, roles }, audited) =>
      Ballot.isReserved(interaction)
        ? keeping(
            "commit",
            sessionId,
            {
              _tag: "VoteGiven",
              requestId,
              by,
              ...(roles && { roles }),
              // Masking keeps the shape.
              answer: redactor.value(answer) as typeof answer,
              digest: interaction.needs.digest
            },
            audited
          )
        : Effect.void,
    raised: (request) => {
      const toolCallId = InteractionRequest.callOf(request)
      const continuation = InteractionRequest.continuationOf(request)
      const call = {
        ...(toolCallId === undefined ? {} : { toolCallId }),
        ...(continuation === undefined ? {} : { continuation })
      }
      const entry = { _tag: "InteractionRaised", request: maskedRequest(request, redactor), ...call } as const
      return keeping("write", request.sessionId, entry)
    },
    settled: (request, end, audited) => {
      const { requestId, sessionId, interaction } = request
      if (Exit.isSuccess(end)) {
        const { answer, by, how } = end.value
        const entry = {
          _tag: "InteractionSettled" as const,
          requestId,
          status: "answered" as const,
          ...(Interaction.isSecret(interaction._tag)
            ? {}
            : { answer: redactor.value(Interaction.encodeAnswer(interaction, answer)) }),
          by,
          ...(how === "timeout" || how === "yolo" ? { how } : {})
        }
        return keeping("commit", sessionId, entry, audited)
      }
      const error = Option.getOrUndefined(Cause.failureOption(end.cause))
      const by = error !== undefined && "by" in error ? error.by : undefined
      const status = error === undefined ? ("cancelled" as const) : statuses[error._tag]
      const entry = { _tag: "InteractionSettled", requestId, status, ...(by === undefined ? {} : { by }) } as const
      return keeping("write", sessionId, entry, audited)
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Why nothing is kept any more. */
const stopped = "the session was stopped, and continues when it is resumed"

const statuses = {
  InteractionCancelled: "cancelled",
  InteractionTimedOut: "timed_out",
  InteractorUnavailable: "unavailable",
  NoInteractor: "unavailable"
} as const

/** A person sees text that only looks like a secret; the stored request masks it. */
const maskedRequest = (
  request: InteractionRequest.InteractionRequest,
  redactor: Redaction.Redactor
): InteractionRequest.InteractionRequest => {
  const { interaction } = request
  const masked = redactor.value(interaction)
  if (masked === interaction) return request
  // Masking loses the class of the value, so the prototype is restored.
  const same: Interaction.Interaction = Object.assign(Object.create(Object.getPrototypeOf(interaction)), masked)
  return { ...request, interaction: same }
}

const masked = (end: TurnEnd, { text }: Redaction.Redactor): TurnEnd => {
  switch (end._tag) {
    case "Completed":
    case "TurnLimit":
      return { ...end, text: text(end.text) }
    case "Halted":
    case "Denied":
      return { ...end, detail: text(end.detail) }
    case "Failed":
      return { ...end, error: text(end.error) }
    case "Cancelled":
      return end
  }
}
