import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as FastCheck from "fast-check"
import type { SessionId, ToolCallId } from "../../src/core/Id.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { JournalEntry, Written } from "../../src/journal/JournalEntry.js"
import * as Replay from "../../src/journal/Replay.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as History from "../../src/conversation/History.js"
import * as EventRules from "../kit/eventRules.js"
import * as Family from "../kit/Family.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Runs from "../kit/Runs.js"

const { decided, draft, ended, opened, proposed, raised, received, results, root, said, settled, started, taken } =
  JournalSample
const { turnEnded } = JournalSample
const { delegate, work } = Family

const written = (...entries: ReadonlyArray<JournalEntry>) =>
  JournalSample.write([opened(), ...entries].map((entry) => draft(entry)))

const told = (...entries: ReadonlyArray<JournalEntry>) => Replay.events(written(...entries))

const words = [received("msg_1", "Fix it"), taken("turn_1", 1, "msg_1")]

const tags = (events: ReadonlyArray<AgentEvent>) =>
  events.map((event) => (event._tag === "AgentStatusChanged" ? event.status : event._tag))

const includes = (event: object | undefined, part: object) => {
  assert.isDefined(event)
  assert.deepInclude(event, part)
}

/** What was told live and is told again the same: without times, and without what no journal keeps. */
const lasting = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<unknown> =>
  events.flatMap((event): ReadonlyArray<unknown> => {
    const { at: _, ...rest } = event
    switch (event._tag) {
      case "AgentStatusChanged":
      case "ToolArgumentsDelta":
      case "QuestionDisplayed":
      case "QuestionAnswered":
        return []
      case "InteractionAnswered":
        // Live it is the answer itself; kept it is encoded.
        return [{ ...rest, value: undefined }]
      case "ToolCallProposed":
        // A journal does not know tools.
        return [{ ...rest, kind: undefined }]
      case "ToolCallEnded":
        return [{ ...rest, duration: event.duration !== undefined }]
      default:
        return [rest]
    }
  })

const byAgent = (events: ReadonlyArray<AgentEvent>) => {
  const agents = new Map<string, Array<AgentEvent>>()
  for (const event of events) agents.set(event.agent, [...(agents.get(event.agent) ?? []), event])
  return agents
}

/** Runs a family over a store; what it told, and what was written. */
const recorded = (options: Family.Options, input: string) =>
  Effect.gen(function* () {
    const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => true })
    const persistence = yield* Persistence.begin(store)
    const family = yield* Family.start({ ...options, agent: { ...options.agent, persistence } })
    yield* family.agent.run(input)
    yield* persistence.journal.flush
    const live = yield* family.events
    return { live, entries: (yield* store.load(persistence.rootSessionId)).entries }
  })

describe("a replay", () => {
  it.scoped("tells a family at work as its events did: words, calls, questions, answers and children, in order", () =>
    Effect.gen(function* () {
      const { entries, live } = yield* recorded(
        {
          script: {
            main: [
              { text: "I ask.", thinking: "Hm.", tools: [delegate("helper", "look"), { name: "nothing" }] },
              { text: "All done.", usage: { input: 7, output: 3 } }
            ],
            helper: [work("a", "b"), { text: "child done" }]
          },
          person: ["y", "c: not b"]
        },
        "go"
      )
      const again = Replay.events(entries)
      const told = byAgent(again)
      for (const [agent, events] of byAgent(live)) {
        assert.deepStrictEqual(lasting(told.get(agent) ?? []), lasting(events), agent)
      }
      assert.deepStrictEqual(EventRules.familyViolations(again), [])
      const at = (tag: AgentEvent["_tag"], agent: string) =>
        again.findLastIndex((event) => event._tag === tag && event.agent === agent)
      assert.isBelow(at("ToolCallStarted", "main"), at("AgentCreated", "main/helper"))
      assert.isBelow(at("AgentCompleted", "main/helper"), at("ToolCallEnded", "main"))
    })
  )

  it("tells a turn from its words to its end, a block at a time, at the times they had", () => {
    const events = told(
      ...words,
      proposed("turn_1", 1, "call_1"),
      decided("call_1", true),
      started("call_1"),
      ended("call_1"),
      results("turn_1"),
      said("All done."),
      turnEnded("turn_1")
    )
    assert.deepStrictEqual(tags(events), [
      "AgentCreated",
      "TurnStarted",
      "thinking",
      "ModelCallStarted",
      "streaming",
      "BlockStarted",
      "TextDelta",
      "BlockEnded",
      "ModelCallEnded",
      "executing",
      "ToolCallProposed",
      "PermissionResolved",
      "ToolCallStarted",
      "ToolCallEnded",
      "thinking",
      "ModelCallStarted",
      "streaming",
      "BlockStarted",
      "TextDelta",
      "BlockEnded",
      "ModelCallEnded",
      "TurnEnded",
      "idle"
    ])
    assert.deepStrictEqual(EventRules.familyViolations(events), [])
    const ended1 = events.find((event) => event._tag === "ToolCallEnded")
    includes(ended1, { at: 1_006, outcome: "succeeded", duration: 1, summary: "call_1", tool: "look" })
  })

  it("tells what a model call took of the context window, also where a cache is counted apart", () => {
    const used = (usage: object, more: object = {}): JournalEntry =>
      ({
        _tag: "UsageRecorded",
        correlationId: "turn_1",
        step: 1,
        model: "anthropic/m",
        finishReason: "stop",
        usage,
        ...more
      }) as never
    const contextOf = (entry: JournalEntry) => {
      const call = told(...words, entry, said("Done."), turnEnded("turn_1")).find(
        ({ _tag }) => _tag === "ModelCallEnded"
      )
      return call?._tag === "ModelCallEnded" ? call.context : assert.fail()
    }
    const usage = { inputTokens: 10, cachedInputTokens: 80, cacheWriteTokens: 10 }
    assert.deepStrictEqual(contextOf(used(usage, { window: 1_000 })), { tokens: 100, window: 1_000 })
    assert.deepStrictEqual(contextOf(used(usage)), { tokens: 100 })
    assert.isUndefined(contextOf(used({}, { window: 1_000 })))
  })

  it("tells interjections with their parents, once, and which model call saw them", () => {
    const events = told(
      ...words,
      received("msg_2", "No, that", { interjection: { parentId: "call_9" } }),
      said("I was ab", true),
      taken("turn_1", 2, "msg_2"),
      said("That then."),
      turnEnded("turn_1")
    )
    assert.deepStrictEqual(EventRules.familyViolations(events), [])
    includes(
      events.find((event) => event._tag === "UserInterjected"),
      { messageId: "msg_2", message: "No, that", targetAgent: "main", parentId: "call_9", correlationId: "turn_1" }
    )
    includes(
      events.find((event) => event._tag === "InterjectionAcknowledged"),
      { messageId: "msg_2", step: 2 }
    )
    includes(
      events.find((event) => event._tag === "ModelCallEnded"),
      { step: 1, interrupted: true, finishReason: "interrupted" }
    )
  })

  it("tells each end of a question, and who answered the permission that hung on it", () => {
    const approve = new Interaction.Approve({
      toolCallId: "call_1" as ToolCallId,
      tool: "look",
      argumentsSummary: "there",
      approvalKey: "look",
      options: [{ full: "yes", description: "" }]
    })
    const asked = told(
      ...words,
      proposed("turn_1", 1, "call_1"),
      raised("req_1", approve),
      settled("req_1", { decision: "allow", scope: "once" }),
      decided("call_1", true, "req_1")
    )
    includes(
      asked.find((event) => event._tag === "InteractionRequested"),
      { requestId: "req_1", kind: "Approve", summary: "look there" }
    )
    includes(
      asked.find((event) => event._tag === "InteractionAnswered"),
      { requestId: "req_1", value: { decision: "allow", scope: "once" }, by: "person" }
    )
    includes(
      asked.find((event) => event._tag === "PermissionResolved"),
      { by: "person", requestId: "req_1", method: "user_approved" }
    )
    const ends = (status: "cancelled" | "timed_out" | "unavailable") =>
      tags(told(raised("req_1"), { _tag: "InteractionSettled", requestId: settled("req_1").requestId, status })).at(-1)
    assert.deepStrictEqual(
      [ends("cancelled"), ends("timed_out"), ends("unavailable")],
      ["InteractionCancelled", "InteractionTimedOut", "InteractionUnavailable"]
    )
  })

  it("tells a session that another process went on with as one: nothing is begun, asked or decided twice", () => {
    const events = told(
      ...words,
      proposed("turn_1", 1, "call_1"),
      raised("req_1"),
      { _tag: "SessionResumed" },
      raised("req_1"),
      settled("req_1"),
      decided("call_1", true, "req_1"),
      started("call_1"),
      { _tag: "SessionResumed" },
      started("call_1"),
      ended("call_1", "interrupted"),
      results("turn_1"),
      said("Well."),
      turnEnded("turn_1")
    )
    assert.deepStrictEqual(EventRules.familyViolations(events), [])
    assert.deepStrictEqual(
      events.flatMap((event) => (event._tag === "SessionRestored" ? [event.messages] : [])),
      [1, 1]
    )
    assert.deepStrictEqual(
      tags(events).filter((tag) => ["SessionRestored", "InteractionRequested", "ToolCallStarted"].includes(tag)),
      ["InteractionRequested", "SessionRestored", "ToolCallStarted", "SessionRestored"]
    )
  })

  it("gives what was left open at the end of a turn an end", () => {
    const events = told(...words, proposed("turn_1", 1, "call_1"), raised("req_1"), turnEnded("turn_1"))
    assert.deepStrictEqual(EventRules.familyViolations(events), [])
    assert.includeMembers(tags(events), ["InteractionCancelled", "ToolCallEnded"])
  })

  it("tells how a history was shortened, and nothing when it was cleared", () => {
    const messages = [History.summaryMessage("so far")]
    const before = [...words, said("One."), turnEnded("turn_1")]
    const shortened = told(...before, { _tag: "HistoryReplaced", reason: "threshold", messages })
    includes(shortened.at(-1), { _tag: "CompactionEnded", reason: "threshold", removed: 2 })
    const cleared = told(...before, { _tag: "HistoryReplaced", reason: "cleared", messages: [] })
    assert.strictEqual(tags(cleared).at(-1), "idle")
  })

  it("tells who may do what without being asked, when that changes", () => {
    const may = (
      more: Partial<Extract<JournalEntry, { _tag: "PermissionsChanged" }>["permissions"]>
    ): JournalEntry => ({
      _tag: "PermissionsChanged",
      permissions: { allow: [], deny: [], all: false, turn: [], idle: [], ...more }
    })
    const events = told(may({ allow: ["git"] }), may({ turn: [root] }), may({ turn: [root] }), may({ default: "deny" }))
    assert.deepStrictEqual(
      events.flatMap((event) => (event._tag === "PermissionStatusChanged" ? [[event.mode, event.suspension]] : [])),
      [
        ["policy", "turn"],
        ["deny", undefined]
      ]
    )
  })

  it("never fails, and what it tells of any journal is in order as far as the journal goes", () => {
    const isOpenEnd = (problem: string) => problem.endsWith("has no end")
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (entries) => {
        const events = Replay.events(entries)
        assert.deepStrictEqual(
          EventRules.familyViolations(events).filter((problem) => !isOpenEnd(problem)),
          []
        )
        const ended = new Set(entries.flatMap(({ entry }) => (entry._tag === "TurnEnded" ? [entry.correlationId] : [])))
        assert.deepStrictEqual(
          new Set(events.flatMap((event) => (event._tag === "TurnEnded" ? [event.correlationId] : []))),
          ended
        )
      }),
      { numRuns: Runs.of(500) }
    )
  })

  it("never fails on entries in any order", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, FastCheck.infiniteStream(FastCheck.double()), (entries, keys) => {
        const shuffled = entries
          .map((entry) => [entry, keys.next().value] as const)
          .sort(([, a], [, b]) => Number(a) - Number(b))
          .map(([entry]) => entry)
        Replay.events(shuffled)
      }),
      { numRuns: Runs.of(200) }
    )
  })

  it("tells the same in one piece and entry by entry", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (entries) => {
        const tell = Replay.teller()
        assert.deepStrictEqual(
          entries.flatMap((entry) => tell(entry)),
          Replay.events(entries)
        )
      }),
      { numRuns: 50 }
    )
  })
})

const at = (times: ReadonlyArray<number>): ReadonlyArray<Written> =>
  times.map((at, index) => ({
    seq: index + 1,
    at,
    sessionId: root,
    entry: index === 0 ? opened() : received(`msg_${index}`, `words ${index}`, { interjection: { parentId: "root" } })
  }))

describe("the pace of a replay", () => {
  const watch = (entries: ReadonlyArray<Written>, options?: Replay.Options) =>
    Effect.gen(function* () {
      const seen = yield* Ref.make(0)
      const fiber = yield* Effect.fork(
        Stream.runForEach(Replay.stream(entries, options), () => Ref.update(seen, (n) => n + 1))
      )
      const after = (millis: number) => Effect.zipRight(TestClock.adjust(millis), Ref.get(seen))
      return { after, fiber }
    })

  it.effect("is the one it had, with no pause longer than two seconds", () =>
    Effect.gen(function* () {
      const { after, fiber } = yield* watch(at([0, 500, 3_600_000]))
      assert.deepStrictEqual([yield* after(0), yield* after(499), yield* after(1)], [1, 1, 2])
      assert.deepStrictEqual([yield* after(1_999), yield* after(1)], [2, 3])
      yield* Fiber.join(fiber)
    })
  )

  it.effect("is faster when asked, and waits longer when that is asked", () =>
    Effect.gen(function* () {
      const { after, fiber } = yield* watch(at([0, 500, 60_500]), { speed: 10, longestPause: "1 hour" })
      assert.deepStrictEqual([yield* after(49), yield* after(1), yield* after(5_999), yield* after(1)], [1, 2, 2, 3])
      yield* Fiber.join(fiber)
    })
  )

  it.effect("needs no clock at all as fast as possible, and none where the clock was set back", () =>
    Effect.gen(function* () {
      const fast = yield* Stream.runCollect(Replay.stream(at([0, 5_000, 10_000]), { speed: Number.POSITIVE_INFINITY }))
      assert.deepStrictEqual(
        Chunk.toReadonlyArray(fast).map((event) => event.at),
        [0, 5_000, 10_000]
      )
      assert.strictEqual((yield* Stream.runCollect(Replay.stream(at([5_000, 4_000, 3_000])))).length, 3)
    })
  )

  it.effect("begins anew each time it is run", () =>
    Effect.gen(function* () {
      const replay = Replay.stream(at([0, 0]), { speed: Number.POSITIVE_INFINITY })
      assert.deepStrictEqual(yield* Stream.runCollect(replay), yield* Stream.runCollect(replay))
    })
  )

  it("leaves out a session that was never opened", () => {
    const strange = at([0, 1]).map((entry) => ({ ...entry, sessionId: "ses_x" as SessionId }))
    assert.deepStrictEqual(Replay.events(strange.slice(1)), [])
  })
})
