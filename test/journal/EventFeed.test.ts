import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import { EventFeed } from "../../src/journal/EventFeed.js"
import type { JournalEntry, Written } from "../../src/journal/JournalEntry.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const stored = (options: Kit.Options) =>
  Effect.gen(function* () {
    const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => true })
    const persistence = yield* Persistence.begin(store)
    return yield* Kit.start({ ...options, agent: { ...options.agent, persistence } })
  })

const read = (agent: Agent.Agent, options?: Agent.ReadOptions) =>
  Effect.gen(function* () {
    const events: Array<AgentEvent> = []
    yield* Agent.events(agent, options).pipe(
      Stream.runForEach((event) => Effect.sync(() => events.push(event))),
      Effect.orDie,
      Effect.forkScoped
    )
    yield* settle
    return events
  })

const told = (events: ReadonlyArray<AgentEvent>) =>
  events.flatMap((event) => {
    switch (event._tag) {
      case "AgentStatusChanged":
      case "AgentCreated":
        return []
      case "TextDelta":
        return [event.text]
      default:
        return [event._tag]
    }
  })

describe("the events of a stored agent", () => {
  it.scoped("begin with what the running answer has said, and go on with what it says then", () =>
    Effect.gen(function* () {
      const kit = yield* stored({ model: [{ text: "one two three four", chunks: 4, chunkDelay: "1 second" }] })
      yield* Effect.fork(kit.agent.run("go"))
      yield* settle
      yield* TestClock.adjust("1 second")
      const events = yield* read(kit.agent)
      assert.deepStrictEqual(told(events), ["TurnStarted", "ModelCallStarted", "BlockStarted", "one two th"])
      yield* TestClock.adjust("2 seconds")
      yield* settle
      assert.deepStrictEqual(told(events), [
        ...["TurnStarted", "ModelCallStarted", "BlockStarted", "one two th", "ree f", "our"],
        ...["BlockEnded", "ModelCallEnded", "TurnEnded"]
      ])
    })
  )

  it.scoped("have rising positions, each on the last event of its entry, from which the rest is read", () =>
    Effect.gen(function* () {
      const kit = yield* stored({
        model: [
          {
            tools: [
              { name: "work", params: { name: "a" } },
              { name: "work", params: { name: "b" } }
            ]
          },
          { text: "done" }
        ]
      })
      yield* kit.agent.run("go")
      const all = yield* read(kit.agent)
      const positions = all.flatMap(({ position }) => position ?? [])
      assert.deepStrictEqual(
        positions,
        [...new Set(positions)].sort((a, b) => a - b)
      )
      assert.isAtLeast(positions.length, 8)
      const proposed = all.filter(({ _tag }) => _tag === "ToolCallProposed")
      assert.deepStrictEqual(
        proposed.map(({ position }) => position !== undefined),
        [false, true]
      )
      for (const after of positions) {
        const rest = (yield* read(kit.agent, { after })).filter(({ _tag }) => _tag !== "AgentStatusChanged")
        const at = all.findIndex(({ position }) => position === after)
        assert.deepStrictEqual(
          rest,
          all.slice(at + 1).filter(({ _tag }) => _tag !== "AgentStatusChanged")
        )
      }
      assert.isAtLeast(yield* Agent.position(kit.agent), positions.at(-1) ?? Infinity)
    })
  )

  it.scoped("tell the answer anew where the journal has other words than were streamed", () =>
    Effect.gen(function* () {
      const kit = yield* stored({
        model: [{ thinking: "hm, hm", text: "one two three four", chunks: 3, chunkDelay: "1 second" }, { text: "yes" }]
      })
      yield* Effect.fork(kit.agent.run("go"))
      const events = yield* read(kit.agent)
      yield* TestClock.adjust("3 seconds")
      yield* kit.agent.send("stop")
      yield* settle
      // What an interrupted call had thought is not kept.
      const lines = told(events)
      const first = lines.indexOf("ModelCallStarted")
      const again = lines.indexOf("ModelCallStarted", first + 1)
      assert.include(lines.slice(first, again), "ThinkingDelta")
      assert.deepStrictEqual(lines.slice(again, again + 5), [
        "ModelCallStarted",
        "BlockStarted",
        "one tw",
        "BlockEnded",
        "ModelCallEnded"
      ])
    })
  )

  it.scoped("end with the agent, and are read after its end", () =>
    Effect.gen(function* () {
      const kit = yield* stored({ model: [{ text: "done" }] })
      const running = yield* Effect.fork(Stream.runCollect(Agent.events(kit.agent)))
      yield* kit.agent.run("go")
      yield* kit.agent.shutdown
      const events = Chunk.toReadonlyArray(yield* running)
      assert.strictEqual(events.at(-1)?._tag, "AgentCompleted")
      assert.include(told(Chunk.toReadonlyArray(yield* Stream.runCollect(Agent.events(kit.agent)))), "TurnEnded")
    })
  )

  it.scoped("fail with what to do: not stored, behind the end, too slow", () =>
    Effect.gen(function* () {
      const plain = yield* Kit.start({ model: [{ text: "done" }] })
      const failed = (agent: Agent.Agent, options?: Agent.ReadOptions) =>
        Effect.flip(Stream.runDrain(Agent.events(agent, options)))
      assert.include((yield* failed(plain.agent)).message, "Persistence.begin")
      assert.strictEqual((yield* Effect.flip(Agent.position(plain.agent)))._tag, "EventsNotStored")
      const kit = yield* stored({ model: [{ text: "done" }] })
      yield* kit.agent.run("go")
      const ahead = yield* failed(kit.agent, { after: 99 })
      assert(ahead._tag === "PositionAhead")
      assert.isBelow(ahead.last, 99)
      const slow = yield* Effect.fork(
        Effect.flip(Stream.runForEach(Agent.events(kit.agent, { capacity: 2 }), () => Effect.sleep("1 second")))
      )
      yield* settle
      yield* kit.agent.run("again")
      yield* TestClock.adjust("1 minute")
      const lagged = yield* slow
      assert(lagged._tag === "ReaderLagged")
      // It goes on from there.
      const rest = yield* read(kit.agent, { after: lagged.position })
      assert.include(told(rest), "TurnEnded")
    })
  )
})

describe("entries that are taken back", () => {
  it.scoped("drop the readers that have counted them: from their positions they read what came instead", () =>
    Effect.gen(function* () {
      const { opened, root, said } = JournalSample
      const written: Array<Written> = []
      let append: (() => void) | undefined
      const feed: EventFeed = new EventFeed({
        root,
        from: 0,
        load: Effect.sync(() => [...written]),
        flush: Effect.sync(() => append?.())
      })
      const note = (entry: JournalEntry) => {
        const draft = { sessionId: root, entry }
        feed.note(draft)
        return () => {
          written.push({ ...draft, seq: written.length + 1, at: 0 })
          feed.append([{ ...draft, at: 0 }])
        }
      }
      note(opened())()
      note(said("lost"))
      const early = yield* Effect.fork(Effect.flip(Stream.runDrain(feed.read({}))))
      yield* settle
      feed.retract(1)
      append = note(said("kept"))
      const late = yield* Effect.fork(
        Stream.runCollect(Stream.takeUntil(feed.read({ after: 1 }), ({ position }) => position === 2))
      )
      yield* settle
      const error = yield* Fiber.join(early)
      assert.deepStrictEqual([error._tag, "position" in error && error.position], ["ReaderLagged", 1])
      assert.strictEqual(feed.position, 2)
      assert.include(told([...(yield* Fiber.join(late))]), "kept")
    })
  )
})
