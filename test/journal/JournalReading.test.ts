import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import * as SessionReport from "../../src/tui/view/SessionReport.js"
import type { CorrelationId } from "../../src/core/Id.js"
import type { JournalEntry, Written } from "../../src/journal/JournalEntry.js"
import { SessionReading } from "../../src/journal/JournalReading.js"
import * as Replay from "../../src/journal/Replay.js"
import * as SessionFork from "../../src/journal/SessionFork.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionSummary from "../../src/journal/SessionSummary.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Runs from "../kit/Runs.js"

const { draft, ended, opened, proposed, raised, received, root, said, settled, started, taken, turnEnded } =
  JournalSample

/** Whole journals, and those in which some turns were never ended. */
const journals = FastCheck.tuple(JournalSample.journals, FastCheck.array(FastCheck.boolean(), { maxLength: 40 })).map(
  ([entries, dies]) => {
    let ends = 0
    const kept = entries.filter(({ entry }) => entry._tag !== "TurnEnded" || dies[ends++] !== true)
    return kept.map((written, index): Written => ({ ...written, seq: index + 1 }))
  }
)

describe("one reading of a journal", () => {
  it("gives every projection the same turns, also where a process died in one", () => {
    let abandoned = 0
    FastCheck.assert(
      FastCheck.property(journals, (entries) => {
        const loaded = { rootSessionId: root, entries, answers: [] }
        const snapshot = SessionSnapshot.get(SessionSnapshot.fold(entries), root)
        const summary = SessionSummary.after(SessionSummary.empty(root, 0), entries)
        const turns = SessionFork.turns(loaded)
        const events = Replay.events(entries).filter(({ sessionId }) => sessionId === root)
        abandoned += turns.slice(0, -1).filter((turn) => turn.ended === undefined).length
        assert.strictEqual(summary.turns, snapshot?.turns ?? 0)
        assert.strictEqual(turns.length, summary.turns)
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "TurnStarted" ? [event.correlationId] : [])),
          turns.map(({ correlationId }): CorrelationId | undefined => correlationId)
        )
        assert.strictEqual(summary.inTurn, snapshot?.turn !== undefined)
        assert.strictEqual(turns.at(-1)?.ended === undefined && turns.length > 0, summary.inTurn)
      }),
      { numRuns: Runs.of(1_600) }
    )
    assert.isAbove(abandoned, 0)
  })

  it("gives an unfinished batch its place before the words of the turn that follows", () => {
    const reading = new SessionReading()
    for (const entry of [received("msg_1", "a"), taken("turn_1", 1, "msg_1"), proposed("turn_1", 1, "call_1")])
      reading.read(entry, 1)
    reading.read(received("msg_2", "b"), 2)
    const fact = reading.read(taken("turn_2", 1, "msg_2"), 2)
    assert(fact._tag === "MessageTaken")
    assert.strictEqual(fact.abandoned?.correlationId, "turn_1")
    assert.strictEqual(fact.finished?.calls.map(({ call }): string => call.id).join(), "call_1")
    assert.isUndefined(reading.batch)
  })

  it("counts a step once its model call is recorded, and not when words are taken for it", () => {
    const step = (...entries: ReadonlyArray<JournalEntry>): number | undefined => {
      const reading = new SessionReading()
      for (const entry of [received("msg_1", "a"), taken("turn_1", 1, "msg_1"), ...entries]) reading.read(entry, 1)
      return reading.turn?.step
    }
    const used = (step: number): JournalEntry => ({
      _tag: "UsageRecorded",
      correlationId: "turn_1" as CorrelationId,
      model: "offline",
      step,
      usage: {},
      finishReason: "stop"
    })
    assert.strictEqual(step(), 0, "no model call yet")
    assert.strictEqual(step(used(1)), 1)
    const steered = [received("msg_2", "b"), taken("turn_1", 2, "msg_2")]
    assert.strictEqual(step(used(1), ...steered), 1, "the call that reads the words is still to come")
    assert.strictEqual(step(...steered), 1, "the first call was interrupted and left no other trace")
    assert.strictEqual(step(proposed("turn_1", 1, "call_1"), ...steered), 1)
    assert.strictEqual(step(used(1), ...steered, used(2)), 2)
    assert.strictEqual(step(used(3), ...steered), 3, "a step is never taken back")
  })

  it("ignores what it was told twice, and what nobody began", () => {
    const told = JournalSample.write(
      [
        opened(),
        received("msg_1", "a"),
        taken("turn_1", 1, "msg_1"),
        proposed("turn_1", 1, "call_1"),
        opened(),
        started("call_9"),
        ended("call_9"),
        settled("req_9"),
        raised("req_1"),
        started("call_1"),
        ended("call_1"),
        started("call_1"),
        ended("call_1", "interrupted"),
        said("Done."),
        turnEnded("turn_1")
      ].map((entry) => draft(entry))
    )
    const events = Replay.events(told)
    const count = (tag: string) => events.filter(({ _tag }) => _tag === tag).length
    assert.deepStrictEqual(
      ["AgentCreated", "ToolCallStarted", "ToolCallEnded", "InteractionCancelled"].map(count),
      [1, 1, 1, 1]
    )
    // A transcript tells what is written, also of a call that nobody proposed.
    assert.include(
      SessionReport.transcript({ rootSessionId: root, entries: told, answers: [] }).join("\n"),
      "call_9: succeeded"
    )
  })

  it("counts the turns of a summary that was stored without its turn as they were", () => {
    const before = { ...SessionSummary.empty(root, 0), inTurn: true, turns: 3 }
    const again = JournalSample.write([draft(taken("turn_3", 2, "msg_1"))])
    assert.strictEqual(SessionSummary.after(before, again).turns, 3)
  })
})
