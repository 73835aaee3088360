/** What a session notes, masked, and when: each kind as an entry. */
import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { CorrelationId, MessageId, RequestId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Redaction from "../../src/core/Redaction.js"
import type { TurnEnd } from "../../src/event/TurnEnd.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import {
  InteractionCancelled,
  InteractionTimedOut,
  InteractorUnavailable,
  NoInteractor
} from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as InteractionRequests from "../../src/interaction/InteractionRequest.js"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as JournalPort from "../../src/journal/JournalPort.js"
import * as SessionRecorder from "../../src/journal/SessionRecorder.js"
import { StoreUnwritable } from "../../src/journal/StoreError.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as JournalSample from "../kit/JournalSample.js"

const secret = "hunter2-hunter2"
const redactor = Redaction.make([secret])
const call = "call_1" as ToolCallId
const turn = "turn_1" as CorrelationId
const id = "msg_1" as MessageId

/** A journal that shows what is noted in it, and can be frozen, held or full. */
const journal = () => {
  const noted: Array<JournalEntry> = []
  const state = { frozen: false, held: false, full: false }
  const flush = Effect.suspend(() =>
    state.full ? Effect.fail(new StoreUnwritable({ store: "it", reason: "the disk is full" })) : Effect.void
  )
  const write: JournalPort.Service["write"] = (entries) =>
    Effect.zipRight(
      Effect.sync(() => void noted.push(...entries)),
      flush
    )
  const service: JournalPort.Service = {
    ...JournalPort.noop,
    enabled: true,
    note: (entry) => void noted.push(entry),
    write,
    commit: write,
    flush,
    isFrozen: () => state.frozen,
    isHeld: () => state.held,
    of: () => service
  }
  return { noted, service, state }
}

const recorder = (opened?: ReturnType<typeof JournalSample.opened>) => {
  const { noted, service, state } = journal()
  return { noted, state, record: new SessionRecorder.SessionRecorder(service, redactor, opened) }
}

describe("a model that is chosen", () => {
  it.effect("is in the first entry until there is one, and an entry of its own from then on", () =>
    Effect.gen(function* () {
      const { noted, record } = recorder(JournalSample.opened())
      yield* record.chosen("a/one", "high")
      yield* record.chosen("a/two", undefined)
      assert.deepStrictEqual(noted, [])
      record.received({ id, source: "user", text: "hello", at: 0, delivery: "queue" })
      yield* record.chosen("a/three", "low")
      const chosen = noted.flatMap((entry) =>
        entry._tag === "SessionOpened" || entry._tag === "ModelChosen" ? [[entry.model, entry.thinking]] : []
      )
      assert.deepStrictEqual(chosen, [
        ["a/two", undefined],
        ["a/three", "low"]
      ])
    })
  )
})

describe("a session's entries", () => {
  it("begin with its first message, behind the permissions that it had by then", () => {
    const { noted, record } = recorder(JournalSample.opened())
    const permissions = { allow: ["a"], deny: [], all: false, turn: [], idle: [] }
    record.permissions({ ...permissions, allow: [] })
    record.permissions(permissions)
    record.closed()
    assert.deepStrictEqual(noted, [], "a session without messages leaves no trace")
    const message = { id, source: "user", delivery: "steer", text: `say ${secret}`, at: 1 } as const
    record.received(message)
    const masked = { ...message, text: "say [REDACTED]" }
    assert.deepStrictEqual(noted.splice(0), [
      JournalSample.opened(),
      { _tag: "PermissionsChanged", permissions },
      { _tag: "MessageReceived", message: masked }
    ])
    record.received({ ...message, interjection: { parentId: "root" } })
    record.permissions({ ...permissions, default: "deny", plan: true, told: true })
    record.closed()
    assert.deepStrictEqual(noted, [
      { _tag: "MessageReceived", message: { ...masked, interjection: { parentId: "root" } } },
      { _tag: "PermissionsChanged", permissions: { ...permissions, default: "deny", plan: true, told: true } },
      { _tag: "SessionClosed" }
    ])
  })

  it("have files without their bytes, and words masked", () => {
    const { noted, record } = recorder()
    const file = { name: "a.png", mediaType: "image/png", size: 1, sha256: "d" }
    record.received({
      id,
      source: "user",
      delivery: "queue",
      text: secret,
      at: 1,
      parts: [
        { type: "text", text: secret },
        { type: "file", file, bytes: new Uint8Array([1]) }
      ]
    })
    assert.deepStrictEqual(noted, [
      {
        _tag: "MessageReceived",
        message: {
          id,
          source: "user",
          delivery: "queue",
          text: "[REDACTED]",
          at: 1,
          parts: [
            { type: "text", text: "[REDACTED]" },
            { type: "file", file }
          ]
        }
      }
    ])
  })

  it("are what was decided, begun, answered and done, masked", () => {
    const { noted, record } = recorder()
    const toolCall = { id: call, name: "work", params: { name: "a" } }
    const voters = [{ by: "ada" }]
    const decided = { granted: true, method: "user_approved", reason: `ok ${secret}` } as const
    record.decided(toolCall, decided, undefined)
    record.decided(toolCall, { ...decided, requestId: "req_1" as RequestId, how: "model", voters }, { name: secret })
    record.decided(toolCall, { ...decided, granted: false, how: "timeout", voters }, undefined)
    record.given(id, undefined, false)
    record.given(id, call, true)
    record.told(id)
    record.withdrawn(id)
    record.answered([], false)
    record.answered([Prompt.textPart({ text: secret })], false)
    record.answered([Prompt.textPart({ text: "hel" })], true)
    record.ended({ id: call, name: "work", outcome: "failed", result: { why: secret } })
    record.completed(turn)
    record.resumed()
    record.dropped([JournalSample.request("req_1"), JournalSample.request("req_2")])
    const entry = { _tag: "CallDecided", toolCallId: call, granted: true, method: "user_approved" }
    const reason = "ok [REDACTED]"
    const cancelled = { _tag: "InteractionSettled", status: "cancelled" }
    assert.deepStrictEqual<ReadonlyArray<unknown>>(noted, [
      { ...entry, reason },
      { ...entry, reason, requestId: "req_1", how: "model", voters, params: { name: "[REDACTED]" } },
      { ...entry, granted: false, reason },
      { _tag: "TaskGiven", messageId: id },
      { _tag: "TaskGiven", messageId: id, toolCallId: call, bound: true },
      { _tag: "TaskTold", messageId: id },
      { _tag: "MessageWithdrawn", messageId: id },
      { _tag: "AssistantAppended", content: [Prompt.textPart({ text: "[REDACTED]" })] },
      { _tag: "AssistantAppended", content: [Prompt.textPart({ text: "hel" })], partial: true },
      { _tag: "ToolEnded", toolCallId: call, outcome: "failed", result: { why: "[REDACTED]" } },
      { _tag: "ResultsAppended", correlationId: turn },
      { _tag: "SessionResumed" },
      { ...cancelled, requestId: "req_1" },
      { ...cancelled, requestId: "req_2" }
    ])
  })

  it("are the ends of turns, masked", () => {
    const { noted, record } = recorder()
    const ends: ReadonlyArray<readonly [TurnEnd, object]> = [
      [{ _tag: "Completed", text: secret, steps: 1 }, { text: "[REDACTED]" }],
      [{ _tag: "TurnLimit", text: secret, steps: 1 }, { text: "[REDACTED]" }],
      [{ _tag: "Halted", detail: secret, steps: 1 }, { detail: "[REDACTED]" }],
      [{ _tag: "Denied", detail: secret, steps: 1 }, { detail: "[REDACTED]" }],
      [{ _tag: "Failed", error: secret, steps: 1 }, { error: "[REDACTED]" }],
      [{ _tag: "Cancelled", reason: "user", steps: 1 }, { reason: "user" }]
    ]
    for (const [end] of ends) record.turnEnded(turn, end)
    assert.deepStrictEqual<ReadonlyArray<unknown>>(
      noted,
      ends.map(([end, masked]) => ({ _tag: "TurnEnded", correlationId: turn, end: { ...end, ...masked } }))
    )
  })

  it.effect("let a tool begin once they are durable, and in a process that ends not at all", () =>
    Effect.gen(function* () {
      const { noted, record, state } = recorder()
      yield* record.started(call, "work", { name: secret })
      const begun = { _tag: "ToolStarted", toolCallId: call, tool: "work", params: { name: "[REDACTED]" } } as const
      assert.deepStrictEqual(noted.splice(0), [begun])
      state.full = true
      assert.include(yield* Effect.flip(record.started(call, "work", {})), "the disk is full")
      noted.length = 0
      state.frozen = true
      assert.strictEqual(
        yield* Effect.flip(record.started(call, "work", {})),
        "the session was stopped, and continues when it is resumed."
      )
      state.held = true
      const waiting = yield* Effect.fork(record.started(call, "work", {}))
      yield* Effect.yieldNow()
      assert.isNull(waiting.unsafePoll())
      assert.deepStrictEqual(noted, [])
    })
  )
})

describe("the start of a tool that somebody allowed", () => {
  it.effect("waits until it can be written, says why once, and never settles the call", () =>
    Effect.gen(function* () {
      const { record, state } = recorder()
      const why: Array<string> = []
      state.full = true
      const starting = yield* Effect.fork(record.started(call, "work", {}, (one) => void why.push(one)))
      yield* TestClock.adjust("30 seconds")
      assert.isNull(starting.unsafePoll())
      assert.include(why.join(), "the disk is full")
      assert.lengthOf(why, 1)
      state.full = false
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(starting)
      assert.lengthOf(why, 1)
      // The end of the process ends the wait, too.
      state.full = true
      const ending = yield* Effect.fork(Effect.flip(record.started(call, "work", {}, () => {})))
      yield* TestClock.adjust("10 seconds")
      state.frozen = true
      yield* TestClock.adjust("1 second")
      assert.include(yield* Fiber.join(ending), "continues when it is resumed")
    })
  )
})

describe("the questions of a tree", () => {
  const confirm = InteractionSample.samples.Confirm.interaction
  const request = (interaction: Interaction.Interaction): InteractionRequest => ({
    ...JournalSample.request("req_1", interaction, "ses_child" as SessionId),
    agentPath: "main/child"
  })

  it.effect("are noted with their call, masked, and in the class of their kind", () =>
    Effect.gen(function* () {
      const { noted, service } = journal()
      const { raised } = SessionRecorder.interactions(service, redactor)
      const plain = request(confirm)
      yield* raised(plain)
      yield* raised(
        InteractionRequests.askedBy(request(new Interaction.Confirm({ prompt: secret, default: false })), call)
      )
      const [first, second] = noted
      assert.deepStrictEqual(first, { _tag: "InteractionRaised", request: plain })
      assert(second?._tag === "InteractionRaised" && second.request.interaction._tag === "Confirm")
      assert.strictEqual(second.toolCallId, call)
      assert.strictEqual(second.request.interaction.prompt, "[REDACTED]")
      assert.instanceOf(second.request.interaction, Interaction.Confirm)
    })
  )

  it.effect("have one end: an answer, unless it is a secret, or why there is none", () =>
    Effect.gen(function* () {
      const requestId = "req_1" as RequestId
      const base = { _tag: "InteractionSettled", requestId }
      const answered = { answer: true, by: "ada", how: "answered" as const }
      const settle = (interaction: Interaction.Interaction, end: Exit.Exit<unknown, unknown>) =>
        Effect.gen(function* () {
          const { noted, service } = journal()
          yield* SessionRecorder.interactions(service, redactor).settled(request(interaction), end as never)
          return noted
        })
      const settled = { ...base, status: "answered", by: "ada" }
      assert.deepStrictEqual<unknown>(yield* settle(confirm, Exit.succeed(answered)), [{ ...settled, answer: true }])
      for (const how of ["timeout", "yolo"] as const)
        assert.deepStrictEqual<unknown>(yield* settle(confirm, Exit.succeed({ ...answered, how })), [
          { ...settled, answer: true, how }
        ])
      assert.deepStrictEqual<unknown>(yield* settle(confirm, Exit.succeed({ ...answered, how: "model" })), [
        { ...settled, answer: true }
      ])
      const secrets = InteractionSample.kinds.filter((kind) => Interaction.isSecret(kind))
      assert.isAbove(secrets.length, 0)
      for (const kind of secrets) {
        const { answer, interaction }: InteractionSample.Sample = InteractionSample.samples[kind]
        assert.deepStrictEqual<unknown>(yield* settle(interaction, Exit.succeed({ ...answered, answer })), [settled])
      }
      const ends = [
        [new InteractionCancelled({ requestId }), { status: "cancelled" }],
        [new InteractionCancelled({ requestId, by: "ada" }), { status: "cancelled", by: "ada" }],
        [new InteractorUnavailable({ requestId, by: "web", reason: "gone" }), { status: "unavailable", by: "web" }],
        [new NoInteractor({ requestId }), { status: "unavailable" }]
      ] as const
      for (const [error, expected] of ends)
        assert.deepStrictEqual<unknown>(yield* settle(confirm, Exit.fail(error)), [{ ...base, ...expected }])
      const late = new InteractionTimedOut({ requestId, by: "web", after: 5 })
      const [timedOut] = yield* settle(confirm, Exit.fail(late))
      assert.strictEqual(timedOut?._tag === "InteractionSettled" ? timedOut.status : "", "timed_out")
      assert.deepStrictEqual<unknown>(yield* settle(confirm, Exit.die("broken")), [{ ...base, status: "cancelled" }])
    })
  )

  it.effect("have their votes, masked, where a rule reserves the call", () =>
    Effect.gen(function* () {
      const { noted, service } = journal()
      const { voted } = SessionRecorder.interactions(service, redactor)
      const approve = InteractionSample.samples.Approve.interaction
      const needs = {
        digest: "d",
        all: [{ quorum: 1, roles: [], members: [], deny: "one", rule: "x" }] as const,
        votes: []
      }
      const reserved = request(Interaction.approve({ ...approve, onceOnly: true, needs }))
      const answer = { decision: "deny", scope: "once", comment: secret } as const
      yield* voted(request(approve), { answer, by: "ada" })
      yield* voted(reserved, { answer, by: "ada" })
      yield* voted(reserved, { answer, by: "ada", roles: ["ops"] })
      const entry = {
        _tag: "VoteGiven",
        requestId: "req_1",
        by: "ada",
        answer: { ...answer, comment: "[REDACTED]" },
        digest: "d"
      }
      assert.deepStrictEqual<unknown>(noted, [entry, { ...entry, roles: ["ops"] }])
    })
  )

  it.effect("are not written in a process that ends, and say what the store says", () =>
    Effect.gen(function* () {
      const { noted, service, state } = journal()
      const questions = SessionRecorder.interactions(service, redactor)
      state.full = true
      assert.include(yield* Effect.flip(questions.raised(request(confirm))), "the disk is full")
      noted.length = 0
      assert.isFalse(questions.isParked())
      state.frozen = true
      assert.isTrue(questions.isParked())
      assert.deepStrictEqual(
        yield* Effect.either(questions.raised(request(confirm))),
        Either.left("the session was stopped, and continues when it is resumed")
      )
      assert.deepStrictEqual(noted, [])
      assert.deepStrictEqual(
        [questions.kept("req_1"), questions.settledBy("req_1"), questions.votes("req_1", "d")],
        [undefined, undefined, []]
      )
    })
  )
})
