import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import type { MessageId, RequestId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as History from "../../src/conversation/History.js"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import { violations } from "../kit/historyRules.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Computation from "../kit/Computation.js"
import * as Runs from "../kit/Runs.js"

const {
  decided,
  draft,
  ended,
  opened,
  proposed,
  raised,
  received,
  results,
  root,
  said,
  settled,
  started,
  taken,
  turnEnded
} = JournalSample

const fold = (...entries: ReadonlyArray<JournalEntry>) =>
  SessionSnapshot.fold(JournalSample.write(entries.map((entry) => draft(entry))))

/** The root after these entries. */
const after = (...entries: ReadonlyArray<JournalEntry>): SessionSnapshot.SessionSnapshot => {
  const session = SessionSnapshot.get(fold(opened(), ...entries), root)
  assert.isDefined(session)
  return session
}

const shown = ({ history }: SessionSnapshot.SessionSnapshot) =>
  history.map((message) => [message.role, message.role === "tool" ? message.content.length : History.textOf(message)])

const call = (id: string) => ({ id: id as ToolCallId, name: "look", params: { at: id } })

const words = [received("msg_1", "Fix it"), taken("turn_1", 1, "msg_1")]

describe("a restored session", () => {
  it("counts no vote whose edit holds a mask, and every other one", () => {
    const vote = (
      by: string,
      answer: Extract<JournalEntry, { readonly _tag: "VoteGiven" }>["answer"]
    ): JournalEntry => ({
      _tag: "VoteGiven",
      requestId: "req_1" as RequestId,
      by,
      answer,
      digest: "d"
    })
    const { votes } = after(
      ...words,
      raised("req_1"),
      vote("ann", { decision: "edit", editedArguments: { at: Redaction.mask } }),
      vote("bob", { decision: "deny", scope: "once", comment: `${Redaction.mask} is no place` }),
      vote("cy", { decision: "edit", editedArguments: { at: "there" } })
    )
    assert.deepStrictEqual(
      votes.map(({ by }) => by),
      ["bob", "cy"]
    )
  })

  it("has the same history as the one that was written down", () => {
    const live = History.make()
    const message = received("msg_1", "Fix it").message
    const late = received("msg_2", "No, that", { at: 2, interjection: { parentId: "root" } }).message
    const { content } = proposed("turn_1", 2, "call_1", "call_2")
    live.appendInput([message], { beginsTurn: true })
    live.appendAssistant([Prompt.textPart({ text: "I was ab" })], { partial: true })
    live.appendInput([late])
    live.appendAssistant(content)
    live.appendResults([
      { id: call("call_1").id, name: "look", outcome: "succeeded", result: { seen: "call_1" } },
      { id: call("call_2").id, name: "look", outcome: "denied", result: { seen: "call_2" } }
    ])
    live.appendAssistant([Prompt.textPart({ text: "done" })])
    const session = after(
      ...words,
      received("msg_2", "No, that", { at: 2, interjection: { parentId: "root" } }),
      said("I was ab", true),
      taken("turn_1", 2, "msg_2"),
      proposed("turn_1", 2, "call_1", "call_2"),
      started("call_1"),
      ended("call_2", "denied"),
      ended("call_1"),
      results("turn_1"),
      said("done"),
      turnEnded("turn_1")
    )
    assert.deepStrictEqual(session.history, live.messages)
    assert.deepStrictEqual(session.interjections, [late])
    assert.deepStrictEqual([session.turns, session.turn, session.lastEnd?._tag], [1, undefined, "Completed"])
  })

  it("is given its words back that it had not read, in order, without those withdrawn", () => {
    const session = after(
      ...words,
      received("msg_2", "a", { delivery: "queue" }),
      received("msg_3", "b"),
      received("msg_4", "c"),
      { _tag: "MessageWithdrawn", messageId: "msg_3" as MessageId }
    )
    assert.deepStrictEqual(
      session.waiting.map(({ id, delivery, text }) => [id, delivery, text] as const),
      [
        ["msg_2" as MessageId, "queue", "a"],
        ["msg_4" as MessageId, "steer", "c"]
      ]
    )
    const begun = taken("turn_1", 1, "msg_1")
    assert.deepStrictEqual(session.turn, { correlationId: begun.correlationId, input: begun.messageIds, step: 0 })
  })

  it("knows of every call of an unfinished batch how far it came", () => {
    const ids = ["call_1", "call_2", "call_3", "call_4", "call_5"]
    const { batch, history, open } = after(
      ...words,
      proposed("turn_1", 1, ...ids),
      decided("call_1", true),
      started("call_1"),
      ended("call_1"),
      decided("call_2", true),
      started("call_2"),
      decided("call_3", true),
      raised("req_1"),
      settled("req_1", 1),
      decided("call_4", false, "req_1"),
      raised("req_2")
    )
    assert.deepStrictEqual(batch?.calls.map(SessionSnapshot.stateOf), [
      "ended",
      "started",
      "granted",
      "refused",
      "proposed"
    ])
    assert.lengthOf(history, 1)
    assert.deepStrictEqual(
      open.map(({ requestId }) => requestId),
      ["req_2" as RequestId]
    )
    const told = batch?.calls.map(SessionSnapshot.resultOf) ?? []
    assert.deepStrictEqual(told[0], {
      id: call("call_1").id,
      name: "look",
      outcome: "succeeded",
      result: { seen: "call_1" }
    })
    assert.deepStrictEqual(
      told.slice(1).map(({ outcome }) => outcome),
      ["interrupted", "interrupted", "interrupted", "interrupted"]
    )
  })

  it("pairs the calls of a turn that ended without their results", () => {
    const session = after(...words, proposed("turn_1", 1, "call_1", "call_2"), ended("call_2"), turnEnded("turn_1"))
    assert.deepStrictEqual(shown(session), [
      ["user", "Fix it"],
      ["assistant", "I will."],
      ["tool", 2]
    ])
    assert.isUndefined(session.batch)
  })

  it("keeps that a tool returned nothing", () => {
    const nothing = { ...ended("call_1"), result: null }
    const { history } = after(...words, proposed("turn_1", 1, "call_1"), started("call_1"), nothing, results("turn_1"))
    const told = history.flatMap((message) => (message.role === "tool" ? message.content : []))
    assert.deepStrictEqual(
      told.map(({ isFailure, result }) => [isFailure, result]),
      [[false, null]]
    )
  })

  it("keeps what was compacted away, away", () => {
    const summary = Prompt.userMessage({ content: [Prompt.textPart({ text: "So far: nothing." })] })
    const session = after(
      ...words,
      said("one"),
      { _tag: "HistoryReplaced", reason: "compacted", messages: [summary] },
      said("two")
    )
    assert.deepStrictEqual(shown(session), [
      ["user", "So far: nothing."],
      ["assistant", "two"]
    ])
  })

  it("has its open requests, each with the answer that came meanwhile", () => {
    const restored = fold(opened(), ...words, raised("req_1"), raised("req_2"), raised("req_3"), settled("req_3"))
    const answer = { requestId: "req_2" as RequestId, answer: 1, by: "web", at: 9 }
    assert.deepStrictEqual(
      SessionSnapshot.openRequests(restored, [answer, { ...answer, requestId: "req_3" as RequestId }]).map(
        ({ request, answer }) => [request.requestId, answer] as const
      ),
      [
        ["req_1" as RequestId, undefined],
        ["req_2" as RequestId, answer]
      ]
    )
  })

  it("adds up what its model calls took, and remembers what was told at prompts", () => {
    const used = (input: number, step: number): JournalEntry => ({
      _tag: "UsageRecorded",
      correlationId: taken("turn_1", 1).correlationId,
      step,
      model: "offline",
      finishReason: "stop",
      usage: { inputTokens: input, outputTokens: 1 }
    })
    const permissions = { allow: ["look"], deny: ["rm *"], all: false, turn: [root], idle: [] }
    const restored = fold(opened(), ...words, used(10, 1), used(20, 3), { _tag: "PermissionsChanged", permissions })
    const session = SessionSnapshot.get(restored, root)
    assert.deepStrictEqual(session?.usage, { calls: 2, inputTokens: 30, outputTokens: 2 })
    assert.strictEqual(session?.turn?.step, 3)
    assert.deepStrictEqual(restored.permissions, permissions)
  })

  it("may do nothing more without asking than what it was told for longer than its turn", () => {
    const permissions = { allow: ["look"], deny: [], all: false, turn: [root], idle: [root] }
    const told: JournalEntry = { _tag: "PermissionsChanged", permissions }
    const during = fold(opened(), ...words, told)
    assert.deepStrictEqual(SessionSnapshot.permissionsOf(during), permissions)
    const after = fold(opened(), ...words, told, turnEnded("turn_1"))
    assert.deepStrictEqual(SessionSnapshot.permissionsOf(after), { ...permissions, turn: [], idle: [] })
    const more = fold(opened(), ...words, told, turnEnded("turn_1"), received("msg_2", "and that"))
    assert.deepStrictEqual(SessionSnapshot.permissionsOf(more), { ...permissions, turn: [] })
  })

  it("knows the tasks whose ends nobody was told", () => {
    const given = (id: string, call?: string): JournalEntry => ({
      _tag: "TaskGiven",
      messageId: id as MessageId,
      ...(call === undefined ? {} : { toolCallId: call as ToolCallId })
    })
    const tasks = (...entries: ReadonlyArray<JournalEntry>) =>
      after(...entries).tasks.map(({ end, messageId, toolCallId }) => [messageId as string, toolCallId, end?._tag])
    const begun = [received("msg_1", "Fix it"), given("msg_1"), taken("turn_1", 1, "msg_1")]
    assert.deepStrictEqual(tasks(...begun), [["msg_1", undefined, undefined]])
    assert.deepStrictEqual(tasks(...begun, turnEnded("turn_1")), [["msg_1", undefined, "Completed"]])
    const told: JournalEntry = { _tag: "TaskTold", messageId: "msg_1" as MessageId }
    const next = [received("msg_2", "And?"), given("msg_2", "call_1")]
    assert.deepStrictEqual(tasks(...begun, turnEnded("turn_1"), told, ...next), [["msg_2", "call_1", undefined]])
    const withdrawn: JournalEntry = { _tag: "MessageWithdrawn", messageId: "msg_2" as MessageId }
    assert.deepStrictEqual(tasks(...begun, ...next, withdrawn), [["msg_1", undefined, undefined]])
  })

  it("has its children, each with a state of its own", () => {
    const child = "ses_child" as SessionId
    const made = { parentSessionId: root, parentToolCallId: "call_1" as ToolCallId, agent: "main/explore", depth: 1 }
    const restored = SessionSnapshot.fold(
      JournalSample.write([
        draft(opened()),
        ...words.map((entry) => draft(entry)),
        draft(proposed("turn_1", 1, "call_1")),
        draft(started("call_1")),
        draft(opened(child, made), child),
        draft(received("msg_c", "Look around", { source: "parent" }), child),
        draft(taken("turn_c", 1, "msg_c"), child),
        draft(raised("req_c"), child)
      ])
    )
    assert.deepStrictEqual(SessionSnapshot.get(restored, root)?.children, [child])
    const session = SessionSnapshot.get(restored, child)
    assert.strictEqual(session?.opened.parentToolCallId, "call_1" as ToolCallId)
    assert.lengthOf(session?.history ?? [], 1)
    assert.lengthOf(session?.open ?? [], 1)
    assert.lengthOf(SessionSnapshot.get(restored, root)?.open ?? [], 0)
  })

  it("is what any beginning of its journal and the rest of it amount to", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, FastCheck.nat(), (written, cut) => {
        const at = cut % (written.length + 1)
        const whole = SessionSnapshot.fold(written)
        const before = SessionSnapshot.fold(written.slice(0, at))
        const kept = structuredClone(before)
        assert.deepStrictEqual(SessionSnapshot.fold(written.slice(at), before), whole)
        assert.deepStrictEqual(before, kept)
        assert.strictEqual(whole.seq, written.length)
      }),
      { numRuns: Runs.of(300) }
    )
  })

  it("is a valid prompt after any beginning of its journal, once its batch is completed", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, FastCheck.nat(), (written, cut) => {
        for (const session of SessionSnapshot.fold(written.slice(0, cut % (written.length + 1))).sessions) {
          const history = History.make(session.history)
          history.appendAssistant(session.batch?.content ?? [])
          history.appendResults(session.batch?.calls.map(SessionSnapshot.resultOf) ?? [])
          assert.deepStrictEqual(violations(history.messages), [])
        }
      }),
      { numRuns: Runs.of(300) }
    )
  })

  it("loses no word and reads none twice", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (written) => {
        if (written.some(({ entry }) => entry._tag === "HistoryReplaced")) return
        for (const { opened, history, waiting } of SessionSnapshot.fold(written).sessions) {
          const sent = written.flatMap(({ sessionId, entry }) =>
            sessionId === opened.sessionId && entry._tag === "MessageReceived" ? [entry.message.id] : []
          )
          const read = history.flatMap((message) => History.metadata(message).messageId ?? [])
          assert.deepStrictEqual([...read, ...waiting.map(({ id }) => id)], sent)
        }
      }),
      { numRuns: Runs.of(300) }
    )
  })

  it("is folded in time that grows with its length only", () => {
    const entries: Array<JournalEntry> = [opened()]
    for (let turn = 0; turn < 5_000; turn++) {
      entries.push(
        received(`msg_${turn}`, "words"),
        taken(`turn_${turn}`, 1, `msg_${turn}`),
        said("answer"),
        turnEnded(`turn_${turn}`)
      )
    }
    assert.isBelow(
      Computation.least(1_000, () => fold(...entries)),
      1_000
    )
    const session = SessionSnapshot.get(fold(...entries), root)
    assert.lengthOf(session?.history ?? [], 10_000)
    assert.strictEqual(session?.turns, 5_000)
  })

  it("takes an end as turns tell it", () => {
    const end: TurnEnd = { _tag: "Cancelled", reason: "user", steps: 2 }
    assert.deepStrictEqual(after(...words, { ...turnEnded("turn_1"), end }).lastEnd, end)
  })
})
