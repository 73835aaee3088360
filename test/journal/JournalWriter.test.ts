import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import type { Decision } from "../../src/audit/AuditRecord.js"
import type { RequestId, SessionId } from "../../src/core/Id.js"
import * as JournalWriter from "../../src/journal/JournalWriter.js"
import type { Draft } from "../../src/journal/JournalEntry.js"
import type { Lease } from "../../src/journal/SessionStore.js"
import { StoreUnwritable } from "../../src/journal/StoreError.js"
import * as JournalSample from "../kit/JournalSample.js"

const { opened, root, said } = JournalSample
const child = "ses_child" as SessionId

/** A lease that remembers what was appended at once, and can be made to wait or fail. */
const recorded = () => {
  const appended: Array<ReadonlyArray<string>> = []
  const state: { gate: Effect.Effect<void>; failing: boolean } = { gate: Effect.void, failing: false }
  const textOf = ({ sessionId, entry }: Draft) =>
    `${sessionId === root ? "root" : "child"}: ${entry._tag === "AssistantAppended" ? entry.content.map((part) => (part.type === "text" ? part.text : "")).join("") : entry._tag}`
  const lease: Lease = {
    rootSessionId: root,
    append: (drafts) =>
      Effect.suspend(() => {
        const { failing, gate } = state
        return Effect.zipRight(
          gate,
          failing
            ? Effect.fail(new StoreUnwritable({ store: "it", reason: "the disk is full" }))
            : Effect.sync(() => {
                appended.push(drafts.map(textOf))
              })
        )
      }),
    putContent: () => Effect.void
  }
  return { appended, state, lease }
}

describe("a journal", () => {
  it.scoped("keeps what is noted until somebody flushes, in the order of the whole tree", () =>
    Effect.gen(function* () {
      const { appended, lease } = recorded()
      const journal = yield* JournalWriter.make(lease)
      const childs = journal.of(child)
      journal.note(opened())
      childs.note(said("a"))
      journal.note(said("b"))
      assert.deepStrictEqual(appended, [])
      yield* childs.flush
      assert.deepStrictEqual(appended, [["root: SessionOpened", "child: a", "root: b"]])
      yield* journal.flush
      yield* journal.write([said("c")])
      assert.deepStrictEqual(appended.slice(1), [["root: c"]])
    })
  )

  it.scoped("waits also for what another flush is writing, and writes the rest at once", () =>
    Effect.gen(function* () {
      const { appended, lease, state } = recorded()
      const journal = yield* JournalWriter.make(lease)
      const gate = yield* Deferred.make<void>()
      state.gate = Deferred.await(gate)
      journal.note(said("a"))
      const first = yield* Effect.fork(journal.flush)
      yield* Effect.yieldNow()
      const idle = yield* Effect.fork(journal.flush)
      const writes = yield* Effect.forEach(["b", "c", "d"], (text) =>
        Effect.fork(journal.of(child).write([said(text)]))
      )
      yield* Effect.yieldNow()
      assert.isNull(idle.unsafePoll())
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([first, idle, ...writes])
      assert.deepStrictEqual(appended, [["root: a"], ["child: b", "child: c", "child: d"]])
    })
  )

  it.scoped("tries again, in its place, what could not be written", () =>
    Effect.gen(function* () {
      const { appended, lease, state } = recorded()
      const journal = yield* JournalWriter.make(lease)
      state.failing = true
      for (const text of ["a", "b"]) {
        assert.include((yield* Effect.flip(journal.write([said(text)]))).message, "the disk is full")
      }
      state.failing = false
      yield* journal.write([said("c")])
      assert.deepStrictEqual(appended, [["root: a", "root: b", "root: c"]])
    })
  )

  for (const [name, append] of Object.entries({
    crashes: () => Effect.die(new Error("boom")),
    throws: () => {
      throw new Error("boom")
    },
    "interrupts itself": () => Effect.interrupt
  })) {
    it.scoped(`of a store that ${name} says that nothing was written, and keeps it`, () =>
      Effect.gen(function* () {
        const { appended, lease } = recorded()
        let broken = true
        const journal = yield* JournalWriter.make({
          ...lease,
          append: (drafts) => (broken ? append() : lease.append(drafts))
        })
        journal.note(said("a"))
        const error = yield* Effect.flip(journal.flush)
        assert.strictEqual(error._tag, "StoreUnwritable")
        assert.notInclude(error.message, "boom")
        broken = false
        yield* journal.flush
        assert.strictEqual(appended.flat().length, 1)
      })
    )
  }

  it.scoped("writes what it was handed though no call waits for it any more", () =>
    Effect.gen(function* () {
      const { appended, lease, state } = recorded()
      const journal = yield* JournalWriter.make(lease)
      const gate = yield* Deferred.make<void>()
      state.gate = Deferred.await(gate)
      const first = yield* Effect.fork(journal.write([said("a")]))
      yield* Effect.yieldNow()
      const second = yield* Effect.fork(journal.write([said("b")]))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(second)
      yield* Fiber.interruptFork(first)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.await(first)
      yield* journal.flush
      assert.deepStrictEqual(appended, [["root: a"], ["root: b"]])
    })
  )

  for (const seconds of [1, 14, 16, 20, 60, 3_600]) {
    it.scoped(`of a store that takes ${seconds} s waits for it, and decides nothing meanwhile`, () =>
      Effect.gen(function* () {
        const { appended, lease, state } = recorded()
        const journal = yield* JournalWriter.make(lease)
        for (const { fails, kept } of [
          { fails: false, kept: [["root: a"], ["root: b", "root: c"]] },
          { fails: true, kept: [["root: a", "root: b", "root: c"]] }
        ]) {
          const gate = yield* Deferred.make<void>()
          state.gate = Deferred.await(gate)
          state.failing = fails
          const first = yield* Effect.fork(Effect.either(journal.write([said("a")])))
          yield* Effect.yieldNow()
          const others = yield* Effect.forEach([journal.write([said("b")]), journal.flush], (one) => Effect.fork(one))
          yield* TestClock.adjust(seconds * 1_000)
          for (const fiber of [first, ...others]) assert.isNull(fiber.unsafePoll())
          state.gate = Effect.void
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual(Either.isLeft(yield* Fiber.join(first)), fails)
          state.failing = false
          yield* Effect.forEach(others, Fiber.await)
          yield* journal.write([said("c")])
          assert.deepStrictEqual(appended.splice(0).flat(), kept.flat())
        }
      })
    )
  }

  it.scoped("repeats in its place what fails for a reason that passes, for as long as that takes", () =>
    Effect.gen(function* () {
      const { appended, lease } = recorded()
      const passing = new StoreUnwritable({ store: "it", reason: "the line was cut", passing: true })
      let failure: StoreUnwritable | undefined = passing
      const journal = yield* JournalWriter.make({
        ...lease,
        append: (drafts) => Effect.suspend(() => failure ?? lease.append(drafts))
      })
      const first = yield* Effect.fork(journal.commit([said("a")]))
      yield* Effect.yieldNow()
      const second = yield* Effect.fork(journal.write([said("b")]))
      yield* TestClock.adjust("20 seconds")
      assert.isNull(first.unsafePoll())
      failure = undefined
      yield* TestClock.adjust("1 second")
      yield* Fiber.joinAll([first, second])
      assert.deepStrictEqual(appended.flat(), ["root: a", "root: b"])
      // One that stays is the store's word.
      failure = passing
      const third = yield* Effect.fork(Effect.flip(journal.commit([said("c")])))
      yield* TestClock.adjust("20 seconds")
      failure = new StoreUnwritable({ store: "it", reason: "the disk is full" })
      yield* TestClock.adjust("1 second")
      assert.include((yield* Fiber.join(third)).message, "the disk is full")
      failure = undefined
      yield* journal.write([said("d")])
      assert.deepStrictEqual(appended.flat(), ["root: a", "root: b", "root: d"])
    })
  )

  it.scoped("takes back what counts only once it is written, and nothing else, when the store refuses it", () =>
    Effect.gen(function* () {
      const { lease, state } = recorded()
      const wrote: Array<string> = []
      const journal = yield* JournalWriter.make({
        ...lease,
        append: (drafts) =>
          Effect.zipRight(
            lease.append(drafts),
            Effect.sync(() => {
              for (const { decisions = [], entry } of drafts)
                wrote.push([entry._tag === "InteractionSettled" ? entry.status : entry._tag, ...decisions].join(" "))
            })
          ),
        decide: () => Effect.void
      })
      const decision = (name: string) => name as unknown as Decision
      const request = JournalSample.request("req_1")
      const { requestId } = request
      yield* journal.write([{ _tag: "InteractionRaised", request }])
      state.failing = true
      journal.note(said("before"))
      const allowed = { _tag: "InteractionSettled", requestId, status: "answered", answer: "allow", by: "ann" } as const
      yield* Effect.flip(journal.commit([allowed], decision("granted")))
      // It is open, so it can end otherwise.
      yield* Effect.flip(
        journal.write([{ _tag: "InteractionSettled", requestId, status: "unavailable" }], decision("not"))
      )
      state.failing = false
      yield* journal.commit([said("after")], decision("last"))
      assert.deepStrictEqual(wrote, [
        "InteractionRaised",
        "AssistantAppended not last",
        "unavailable",
        "AssistantAppended"
      ])
    })
  )

  it.scoped("takes back what nobody waits for any more, unless the store has it", () =>
    Effect.gen(function* () {
      const { appended, lease, state } = recorded()
      const journal = yield* JournalWriter.make(lease)
      const gate = yield* Deferred.make<void>()
      state.gate = Deferred.await(gate)
      const first = yield* Effect.fork(journal.commit([said("a")]))
      yield* Effect.yieldNow()
      const second = yield* Effect.fork(journal.commit([said("b")]))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(second)
      yield* Fiber.interruptFork(first)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.await(first)
      yield* journal.flush
      assert.deepStrictEqual(appended, [["root: a"]])
    })
  )

  it.scoped("takes nothing of a neighbour back, whose flush had the entry in its batch", () =>
    Effect.gen(function* () {
      const { appended, lease } = recorded()
      const gate = yield* Deferred.make<void>()
      let attempts = 0
      const journal = yield* JournalWriter.make({
        ...lease,
        append: (drafts) =>
          Effect.flatMap(Deferred.await(gate), () =>
            ++attempts === 2 ? new StoreUnwritable({ store: "it", reason: "the disk is full" }) : lease.append(drafts)
          )
      })
      const first = yield* Effect.fork(journal.write([said("a")]))
      yield* Effect.yieldNow()
      const both = yield* Effect.forEach([journal.commit([said("b")]), journal.of(child).commit([said("c")])], (one) =>
        Effect.fork(Effect.either(one))
      )
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      // Of the batch with both, the one whose flush failed hears that. The other has its own flush.
      assert.deepStrictEqual((yield* Fiber.joinAll(both)).map(Either.isLeft), [true, false])
      assert.deepStrictEqual(appended, [["root: a"], ["child: c"]])
    })
  )

  for (const [name, answer] of Object.entries({
    "does not answer": Effect.never,
    "fails for a reason that passes": new StoreUnwritable({ store: "it", reason: "the line was cut", passing: true })
  })) {
    it.scoped(`of a store that ${name} ends all the same, says so, and begins nothing more`, () =>
      Effect.gen(function* () {
        let attempts = 0
        const { lease } = recorded()
        const journal = yield* JournalWriter.make({
          ...lease,
          append: () => Effect.suspend(() => (attempts++, answer))
        })
        const running = yield* Effect.fork(Effect.flip(journal.commit([said("a")])))
        yield* TestClock.adjust("20 seconds")
        assert.isNull(running.unsafePoll())
        const end = yield* Effect.fork(Effect.flip(journal.freeze))
        yield* TestClock.adjust(JournalWriter.patience - 1)
        assert.isNull(end.unsafePoll())
        yield* TestClock.adjust(1)
        for (const fiber of [running, end])
          assert.include((yield* Fiber.join(fiber)).message, name === "does not answer" ? "not answered for 15s" : "it")
        yield* TestClock.adjust("1 second")
        const before = attempts
        for (const late of [journal.flush, journal.commit([said("b")])]) yield* Effect.either(late)
        yield* TestClock.adjust("20 seconds")
        assert.strictEqual(attempts, before)
      })
    )
  }

  it.scoped("tells its observer what is noted, and what is durable, once and in order", () =>
    Effect.gen(function* () {
      const { lease, state } = recorded()
      const seen: Array<string> = []
      const textOf = ({ entry }: Draft) => (entry._tag === "AssistantAppended" ? JSON.stringify(entry.content) : "")
      const observer: JournalWriter.Observer = {
        note: (draft) => void seen.push(`note ${/text":"(.)/.exec(textOf(draft))?.[1]}`),
        append: (drafts) =>
          void seen.push(`append ${drafts.map((one) => /text":"(.)/.exec(textOf(one))?.[1]).join("")}`),
        retract: (count) => void seen.push(`retract ${count}`)
      }
      const journal = yield* JournalWriter.make(lease, { observer })
      journal.note(said("a"))
      journal.of(child).note(said("b"))
      yield* journal.flush
      assert.deepStrictEqual(seen.splice(0), ["note a", "note b", "append ab"])
      state.failing = true
      yield* Effect.flip(journal.write([said("c")]))
      state.failing = false
      yield* journal.flush
      assert.deepStrictEqual(seen.splice(0), ["note c", "append c"])
      state.failing = true
      yield* Effect.flip(journal.commit([said("d")]))
      state.failing = false
      yield* journal.commit([said("e")])
      assert.deepStrictEqual(seen, ["note d", "retract 1", "note e", "append e"])
    })
  )

  it.scoped("has one end of each request that is open, and none of another", () =>
    Effect.gen(function* () {
      const { appended, lease } = recorded()
      const before = "req_before" as RequestId
      const journal = yield* JournalWriter.make(lease, { raised: [before] })
      const end = (requestId: RequestId) => journal.note({ _tag: "InteractionSettled", requestId, status: "cancelled" })
      for (const id of [before, before, "req_other" as RequestId]) end(id)
      const request = JournalSample.request("req_new")
      end(request.requestId)
      journal.note({ _tag: "InteractionRaised", request })
      end(request.requestId)
      yield* journal.flush
      assert.deepStrictEqual(appended, [
        ["root: InteractionSettled", "root: InteractionRaised", "root: InteractionSettled"]
      ])
    })
  )

  it.scoped("that is frozen writes what was noted before, and nothing that comes later", () =>
    Effect.gen(function* () {
      const { appended, lease } = recorded()
      const journal = yield* JournalWriter.make(lease)
      assert.deepStrictEqual([journal.isFrozen(), journal.isHeld()], [false, false])
      yield* journal.hold
      assert.deepStrictEqual([journal.isFrozen(), journal.isHeld()], [false, true])
      journal.note(said("a"))
      yield* journal.freeze
      assert.isTrue(journal.of(child).isFrozen())
      yield* journal.write([said("b")])
      assert.deepStrictEqual(appended, [["root: a"]])
    })
  )

  it.scoped("writes decisions with the entry about them, else apart, and none without a new entry", () =>
    Effect.gen(function* () {
      const { lease } = recorded()
      const wrote: Array<string> = []
      const decision = (name: string) => name as unknown as Decision
      const journal = yield* JournalWriter.make({
        ...lease,
        append: (drafts) =>
          Effect.sync(() => {
            for (const { decisions = [], entry } of drafts) wrote.push([entry._tag, ...decisions].join(" "))
          }),
        decide: (decisions) => Effect.sync(() => void wrote.push(["alone", ...decisions].join(" ")))
      })
      yield* journal.write([said("a"), said("b")], decision("first"))
      assert.deepStrictEqual(wrote.splice(0), ["AssistantAppended first", "AssistantAppended"])
      journal.decide?.(decision("second"))
      yield* journal.flush
      assert.deepStrictEqual(wrote.splice(0), ["alone second"])
      const requestId = "req_gone" as RequestId
      yield* journal.write([{ _tag: "InteractionSettled", requestId, status: "cancelled" }], decision("third"))
      assert.deepStrictEqual(wrote, [])
      yield* journal.freeze
      journal.decide?.(decision("fourth"))
      yield* journal.flush
      assert.deepStrictEqual(wrote, [])
      assert.isUndefined((yield* JournalWriter.make(lease)).decide)
    })
  )

  it.effect("does not hold the end of its scope when its store does not answer", () =>
    Effect.gen(function* () {
      const { lease, state } = recorded()
      const scope = yield* Scope.make()
      const journal = yield* Scope.extend(JournalWriter.make(lease), scope)
      state.gate = Effect.never
      journal.note(said("a"))
      const closing = yield* Effect.fork(Scope.close(scope, Exit.void))
      yield* TestClock.adjust(JournalWriter.patience)
      yield* Fiber.join(closing)
    })
  )

  it.effect("writes what is left when its scope ends", () =>
    Effect.gen(function* () {
      const { appended, lease } = recorded()
      const scope = yield* Scope.make()
      const journal = yield* Scope.extend(JournalWriter.make(lease), scope)
      journal.note(said("a"))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(appended, [["root: a"]])
    })
  )

  it.effect("that keeps nothing says so, for every session", () =>
    Effect.gen(function* () {
      const journal = JournalWriter.noop.of(child)
      journal.note(said("a"))
      yield* journal.write([said("b")])
      yield* journal.flush
      assert.isFalse(journal.enabled)
    })
  )
})
