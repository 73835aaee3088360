import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as FastCheck from "effect/FastCheck"
import type { SessionUpdate } from "../../src/foreign/AcpConnection.js"
import * as AcpUpdate from "../../src/acp/AcpUpdate.js"
import type { CorrelationId, RequestId, SessionId, ToolCallId } from "../../src/core/Id.js"
import { AgentEvent } from "../../src/event/AgentEvent.js"
import * as AcpSchema from "../kit/AcpSchema.js"
import * as Runs from "../kit/Runs.js"

const root = "ses_1" as SessionId
const call = "call_1" as ToolCallId

const around: AcpUpdate.Surroundings = {
  root,
  workspace: "/project",
  toolOf: (name) =>
    name === "write_file"
      ? { kind: "edit", paths: ["path"] }
      : name === "run_command"
        ? { kind: "execute", paths: [] }
        : undefined,
  shows: { notices: true, compaction: true },
  options: [
    {
      id: "mode",
      name: "Mode",
      category: "mode",
      type: "select",
      currentValue: "ask",
      options: [
        { value: "ask", name: "Ask" },
        { value: "plan", name: "Plan" }
      ]
    }
  ],
  isReplay: false,
  isOwn: false
}

type Body = AgentEvent extends infer E ? (E extends AgentEvent ? Omit<E, "at" | "sessionId" | "agent"> : never) : never

const event = (body: Body, agent = "main"): AgentEvent =>
  // The fields that all events have complete any of them.
  ({
    at: 0,
    sessionId: agent === "main" ? root : ("ses_2" as SessionId),
    agent,
    correlationId: "turn_1" as CorrelationId,
    ...body
  }) as AgentEvent

const play = (events: ReadonlyArray<AgentEvent>, more: Partial<AcpUpdate.Surroundings> = {}) => {
  let state = AcpUpdate.empty
  const updates: Array<SessionUpdate> = []
  for (const one of events) {
    const [next, sent] = AcpUpdate.step(state, one, { ...around, ...more })
    state = next
    updates.push(...sent)
  }
  return { state, updates }
}

const text = (words: string) => ({ type: "text" as const, text: words })

describe("an event as an update of the protocol", () => {
  it("is a chunk of a message, under an id that a block has for itself", () => {
    const { updates } = play([
      event({ _tag: "BlockStarted", block: "thinking" }),
      event({ _tag: "ThinkingDelta", text: "hm" }),
      event({ _tag: "BlockStarted", block: "text" }),
      event({ _tag: "TextDelta", text: "he" }),
      event({ _tag: "TextDelta", text: "llo" })
    ])
    assert.deepStrictEqual(updates, [
      { sessionUpdate: "agent_thought_chunk", content: text("hm"), messageId: "turn_1/1" },
      { sessionUpdate: "agent_message_chunk", content: text("he"), messageId: "turn_1/2" },
      { sessionUpdate: "agent_message_chunk", content: text("llo"), messageId: "turn_1/2" }
    ])
  })

  it("leaves out what a subagent says, and shows its calls under its path", () => {
    const { updates } = play([
      event({ _tag: "TextDelta", text: "inner" }, "main/reviewer"),
      event({ _tag: "ToolCallProposed", toolCallId: call, tool: "run_command", summary: "ls" }, "main/reviewer")
    ])
    assert.deepStrictEqual(updates, [
      {
        sessionUpdate: "tool_call",
        toolCallId: call,
        title: "[main/reviewer] ls",
        name: "run_command",
        kind: "execute",
        status: "pending"
      }
    ])
  })

  it("announces a call once, with its place in the workspace, and then updates it", () => {
    const proposed = event({
      _tag: "ToolCallProposed",
      toolCallId: call,
      tool: "write_file",
      summary: "a.txt",
      arguments: { path: "src/../a.txt", content: "hi" }
    })
    const { updates } = play([
      proposed,
      proposed,
      event({ _tag: "ToolCallStarted", toolCallId: call, tool: "write_file", summary: "a.txt" }),
      event({
        _tag: "ToolCallEnded",
        toolCallId: call,
        tool: "write_file",
        outcome: "succeeded",
        summary: "done",
        result: "Wrote a.txt."
      })
    ])
    assert.deepStrictEqual(
      updates.map((update) => [update.sessionUpdate, "status" in update ? update.status : undefined]),
      [
        ["tool_call", "pending"],
        ["tool_call_update", "pending"],
        ["tool_call_update", "in_progress"],
        ["tool_call_update", "completed"]
      ]
    )
    assert.deepInclude(updates[0], { locations: [{ path: "/project/a.txt" }], kind: "edit" })
    // The change that was shown with the question stays on the card.
    assert.notProperty(updates[3], "content")
  })

  it("ends what did not succeed as failed, and says how it ended", () => {
    const ended = (outcome: "denied" | "failed") =>
      event({ _tag: "ToolCallEnded", toolCallId: call, tool: "run_command", outcome, summary: "", result: "No." })
    assert.deepStrictEqual(play([ended("denied")]).updates, [
      {
        sessionUpdate: "tool_call",
        toolCallId: call,
        title: "run_command",
        name: "run_command",
        kind: "execute",
        status: "failed",
        content: [AcpUpdate.text("[denied] No.")],
        _meta: { "assent/outcome": "denied" }
      }
    ])
  })

  it("collects what a call prints, and sends its end when it is time", () => {
    const proposed = event({ _tag: "ToolCallProposed", toolCallId: call, tool: "run_command", summary: "x" })
    const printed = (text: string) => event({ _tag: "ToolOutput", toolCallId: call, stream: "stdout", text })
    const { state, updates } = play([proposed, printed("a\n"), printed("b\n")])
    assert.lengthOf(updates, 1)
    assert.isTrue(AcpUpdate.isDue(state))
    const [next, flushed] = AcpUpdate.flush(state)
    assert.deepStrictEqual(flushed, [
      { sessionUpdate: "tool_call_update", toolCallId: call, content: [AcpUpdate.text("a\nb\n")] }
    ])
    assert.isFalse(AcpUpdate.isDue(next))
    assert.deepStrictEqual(AcpUpdate.flush(next)[1], [])
    const { state: long } = play([proposed, printed("x".repeat(20_000))])
    assert.isAtMost(JSON.stringify(AcpUpdate.flush(long)[1]).length, 8_200)
  })

  it("titles a session with its first words, and repeats the words of people in a replay alone", () => {
    const started = event({ _tag: "TurnStarted", input: "fix the build\nplease" })
    const titled: SessionUpdate = { sessionUpdate: "session_info_update", title: "fix the build" }
    assert.deepStrictEqual(play([started, started], { isOwn: true }).updates, [titled])
    assert.deepStrictEqual(play([started], { isReplay: true }).updates, [
      {
        sessionUpdate: "user_message_chunk",
        content: text("fix the build\nplease"),
        messageId: "turn_1/words"
      },
      titled
    ])
  })

  it("says why a turn halted, and leaves the other ends to the answer", () => {
    const ended = (reason: "halted" | "failed") =>
      event({ _tag: "TurnEnded", reason, steps: 1, detail: "Nobody is there." })
    assert.deepStrictEqual(play([ended("halted")]).updates, [
      { sessionUpdate: "agent_message_chunk", content: text("Nobody is there."), messageId: "turn_1/1" }
    ])
    assert.deepStrictEqual(play([ended("failed")]).updates, [])
  })

  it("says who is missing when a vote is filed", () => {
    const requestId = "req_1" as RequestId
    const { updates } = play([
      event({ _tag: "InteractionRequested", requestId, kind: "Approve", summary: "", toolCallId: call }),
      event({
        _tag: "InteractionVoted",
        requestId,
        kind: "Approve",
        by: "ann",
        vote: "allow",
        missing: "1 more of: ops"
      })
    ])
    assert.deepStrictEqual(updates, [
      {
        sessionUpdate: "tool_call_update",
        toolCallId: call,
        content: [AcpUpdate.text("The vote of ann is filed (allow). Missing: 1 more of: ops.")]
      }
    ])
  })

  it("shows the plan, the use of the window and the mode", () => {
    const { updates } = play(
      [
        event({ _tag: "TodosChanged", items: [{ content: "test", status: "in_progress" }] }),
        event({
          _tag: "ModelCallEnded",
          model: "m",
          step: 1,
          finishReason: "stop",
          usage: {},
          context: { tokens: 10, window: 100 }
        }),
        event({ _tag: "PermissionStatusChanged", mode: "plan" })
      ],
      { cost: { amount: 0.5, currency: "USD" } }
    )
    assert.deepStrictEqual(updates.slice(0, 2), [
      { sessionUpdate: "plan", entries: [{ content: "test", status: "in_progress", priority: "medium" }] },
      { sessionUpdate: "usage_update", used: 10, size: 100, cost: { amount: 0.5, currency: "USD" } }
    ])
    assert.deepNestedInclude(updates[2], { "configOptions[0].currentValue": "plan" })
  })

  it("says what a person has to see to an editor without notices, too", () => {
    const trouble = event({ _tag: "AgentError", message: "The disk is full." })
    const withNotices = play([trouble]).updates
    assert.deepStrictEqual(withNotices, [{ sessionUpdate: "notice", severity: "error", title: "The disk is full." }])
    const shows = { notices: false, compaction: false }
    assert.deepStrictEqual(play([trouble], { shows }).updates, [
      { sessionUpdate: "agent_message_chunk", content: text("[The disk is full.]\n"), messageId: "turn_1/remark" }
    ])
    const retried = event({ _tag: "ModelRetried", model: "m", attempt: 1, reason: "overloaded", delay: 1 })
    assert.deepStrictEqual(play([retried], { shows }).updates, [])
  })
})

describe("any events", () => {
  const events = FastCheck.array(Arbitrary.make(AgentEvent), { maxLength: 12 })
  const surroundings = FastCheck.record({
    isReplay: FastCheck.boolean(),
    isOwn: FastCheck.boolean(),
    shows: FastCheck.record({ notices: FastCheck.boolean(), compaction: FastCheck.boolean() })
  })
  /** Half of them are of the root. */
  const rooted = (all: ReadonlyArray<AgentEvent>) =>
    all.map((one, index): AgentEvent => (index % 2 === 0 ? { ...one, sessionId: root } : one))

  it("give updates that the protocol's schema takes", () => {
    FastCheck.assert(
      FastCheck.property(events, surroundings, (all, more) => {
        const { state, updates } = play(rooted(all), more)
        for (const update of [...updates, ...AcpUpdate.flush(state)[1]]) {
          assert.isUndefined(AcpSchema.problem("SessionNotification", { sessionId: root, update }))
        }
      }),
      { numRuns: Runs.of(800) }
    )
  })

  it("announce each call once, before it is updated", () => {
    const ids = ["a", "b", "c"] as ReadonlyArray<string> as ReadonlyArray<ToolCallId>
    const one = FastCheck.tuple(Arbitrary.make(AgentEvent), FastCheck.constantFrom(...ids))
    FastCheck.assert(
      FastCheck.property(FastCheck.array(one, { maxLength: 30 }), (all) => {
        const same = all.map(([one, toolCallId]): AgentEvent => ("toolCallId" in one ? { ...one, toolCallId } : one))
        const { state, updates } = play(rooted(same.filter(({ _tag }) => _tag !== "InteractionRequested")))
        const known = new Set<string>()
        for (const update of [...updates, ...AcpUpdate.flush(state)[1]]) {
          if (update.sessionUpdate === "tool_call") {
            assert.isFalse(known.has(update.toolCallId))
            known.add(update.toolCallId)
          }
          if (update.sessionUpdate === "tool_call_update") assert.isTrue(known.has(update.toolCallId))
        }
      }),
      { numRuns: Runs.of(800) }
    )
  })
})
