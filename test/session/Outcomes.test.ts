/** What becomes of a call is told once, and is true: last looks, broken approvals, cancelled questions, crashes. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HashMap from "effect/HashMap"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import type * as Guard from "../../src/permission/Guard.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const work = (name: string, id?: string) => ({ name: "work", params: { name }, ...(id === undefined ? {} : { id }) })
const ask = PermissionFile.policy({})

/** Refuses these words from a call's second look on. */
const flips = (...words: ReadonlyArray<string>): Guard.Guard => {
  const seen = new Map<string, number>()
  return ({ params }) => {
    const key = JSON.stringify(params)
    const looks = (seen.get(key) ?? 0) + 1
    seen.set(key, looks)
    return looks > 1 && words.some((word) => key.includes(word)) ? Effect.fail("it has changed") : Effect.void
  }
}

/** With what the audit was told. */
const audited = <A, E, R>(
  program: (decisions: Effect.Effect<ReadonlyArray<Record<string, unknown>>>) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const { memory, trail } = yield* AuditTrail.makeMemory()
    return yield* Effect.provideService(program(memory.decisions), AuditTrail.AuditTrail, trail)
  })

describe("a guard that refuses at its last look", () => {
  const cases = {
    "a lone call": [work("bad")],
    "one of some": [work("a"), work("bad"), work("b")],
    "one that waited for room": [work("a"), work("b"), work("bad")]
  }
  for (const [name, tools] of Object.entries(cases)) {
    for (const policy of [Kit.allowAll, ask]) {
      it.scoped(`${name}, ${policy === ask ? "allowed by a person" : "allowed by rule"}, is the one decision`, () =>
        audited((decisions) =>
          Effect.gen(function* () {
            const kit = yield* Kit.start({
              model: [{ tools }, { text: "done" }],
              runtime: { policy, guards: [flips("bad")] },
              person: () => "y",
              agent: { limits: { parallelTools: 2 } }
            })
            assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
            assert.include(kit.results(), "Permission denied: it has changed")
            const resolved = yield* kit.of("PermissionResolved")
            assert.strictEqual(resolved.length, tools.length)
            const [refused, another] = resolved.filter(({ granted }) => !granted)
            assert.isUndefined(another)
            assert.deepInclude(refused, { method: "guard", reason: "it has changed" })
            assert.strictEqual(refused?.requestId !== undefined, policy === ask)
            const records = yield* decisions
            assert.strictEqual(records.length, tools.length)
            const [denied] = records.filter(({ outcome }) => outcome === "denied")
            assert.strictEqual(denied?.["method"], "guard")
            assert.strictEqual(denied?.["requestId"], refused?.requestId)
            assert.deepStrictEqual(yield* kit.wrong, [])
          })
        )
      )
    }
  }
})

describe("an approval that is broken off", () => {
  for (const end of ["cancel", "halt", "shutdown", "interrupt"] as const) {
    it.scoped(`by ${end} keeps who was asked and when`, () =>
      audited((decisions) =>
        Effect.gen(function* () {
          const kit = yield* Kit.start({
            model: [{ tools: [work("a", "call_a")] }, { text: "done" }],
            runtime: { policy: ask },
            person: () => TestInteractor.silent
          })
          yield* kit.agent.send("go")
          const request = yield* kit.person.next
          yield* TestClock.adjust("3 seconds")
          if (end === "cancel") yield* kit.agent.cancel()
          if (end === "halt") yield* kit.agent.halt("nobody is there")
          if (end === "shutdown") yield* kit.agent.shutdown
          if (end === "interrupt") yield* kit.agent.interrupt({ toolCallId: "call_a" })
          yield* settle
          const { requestId } = request
          const [resolved, another] = yield* kit.of("PermissionResolved")
          assert.isUndefined(another)
          assert.deepInclude(resolved, { granted: false, method: "cancelled", requestId })
          const [record, second] = yield* decisions
          assert.isUndefined(second)
          assert.deepInclude(record, { outcome: "cancelled", requestId, askedAt: 0, answeredAt: 3_000 })
          assert.strictEqual((yield* kit.of("InteractionCancelled")).length, 1)
          assert.deepStrictEqual(yield* kit.wrong, [])
        })
      )
    )
  }
})

describe("interrupting a call that waits", () => {
  it.scoped("for its approval ends that call alone, and closes the dialog", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: ["a", "b", "c"].map((name) => work(name, `call_${name}`)) }, { text: "done" }],
        runtime: { policy: ask },
        person: [TestInteractor.silent, "y"]
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      assert.deepStrictEqual(yield* kit.agent.interrupt({ toolCallId: "call_b" }), Option.none(), "it waits in line")
      assert.deepStrictEqual(yield* kit.agent.interrupt({ toolCallId: "call_a" }), Option.none())
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      const cancelled = "The user cancelled this call."
      assert.deepStrictEqual(kit.results(), [cancelled, cancelled, "c"])
      assert.deepStrictEqual(yield* kit.person.open, [])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("alone in its step goes on with the turn", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [work("a", "call_a")] }, { text: "done" }],
        runtime: { policy: ask },
        person: () => TestInteractor.silent
      })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      yield* kit.agent.interrupt({ toolCallId: "call_a" })
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      assert.deepStrictEqual(kit.results(), ["The user cancelled this call."])
      assert.deepStrictEqual(yield* kit.wrong, [])
      const again = yield* Effect.flip(kit.agent.interrupt({ toolCallId: "call_a" }))
      assert.strictEqual(again._tag, "ToolCallNotRunning")
    })
  )

  it.scoped("for room to run, after it was allowed", () =>
    audited((decisions) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        const kit = yield* Kit.start({
          model: [{ tools: ["a", "b"].map((name) => work(name, `call_${name}`)) }, { text: "done" }],
          worker: (name) => Effect.as(Deferred.await(gate), name),
          agent: { limits: { parallelTools: 1 } }
        })
        const running = yield* Effect.fork(kit.agent.run("go"))
        yield* settle
        yield* kit.agent.interrupt({ toolCallId: "call_b" })
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(running)
        assert.deepStrictEqual(kit.results(), ["a", "The user cancelled this call."])
        assert.deepStrictEqual(
          (yield* kit.of("PermissionResolved")).map(({ method }) => method),
          ["default", "cancelled"]
        )
        assert.strictEqual((yield* decisions).length, 2)
        assert.deepStrictEqual(yield* kit.wrong, [])
      })
    )
  )
})

describe("calls that wait for room when the turn is stopped", () => {
  it.scoped("are each written down, also where a guard beside them does not stop", () =>
    Effect.gen(function* () {
      const { memory, trail } = yield* AuditTrail.makeMemory()
      const slow: AuditTrail.Service = {
        ...trail,
        record: (entry) => Effect.zipRight(Effect.sleep("1 second"), trail.record(entry))
      }
      const stubborn: Guard.Guard = ({ params }) =>
        JSON.stringify(params).includes("stuck") ? Effect.uninterruptible(Effect.never) : Effect.void
      const kit = yield* Effect.provideService(
        Kit.start({
          model: [{ tools: ["a", "b", "c", "stuck"].map((name) => work(name)) }, { text: "done" }],
          runtime: { policy: Kit.allowAll, guards: [stubborn] },
          worker: () => Effect.never,
          agent: { limits: { parallelTools: 1 } }
        }),
        AuditTrail.AuditTrail,
        slow
      )
      yield* kit.agent.send("go")
      yield* settle
      yield* TestClock.adjust("5 seconds")
      const cancelling = yield* Effect.fork(kit.agent.cancel())
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.join(cancelling)
      yield* TestClock.adjust("30 seconds")
      yield* settle
      const resolved = (yield* kit.of("PermissionResolved")).map(({ toolCallId }) => toolCallId)
      const recorded = (yield* memory.decisions).map(({ toolCallId }) => toolCallId)
      assert.lengthOf(resolved, 4)
      assert.deepStrictEqual([...recorded].sort(), [...resolved].sort())
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("an audit that never returns", () => {
  const hangs: AuditTrail.Service = { record: () => Effect.never, release: () => Effect.never }
  const stuck: AuditTrail.Service = { ...hangs, record: () => Effect.uninterruptible(Effect.never) }
  for (const [name, trail] of Object.entries({ hangs, stuck })) {
    for (const tools of [[work("a")], [work("a"), work("b")]]) {
      it.scoped(`(${name}) holds up neither cancel nor shutdown of ${tools.length} calls`, () =>
        Effect.gen(function* () {
          const kit = yield* Kit.start({ model: [{ tools }, { text: "again" }] })
          yield* kit.agent.send("go")
          yield* settle
          const cancelling = yield* Effect.fork(kit.agent.cancel())
          yield* TestClock.adjust("5 seconds")
          assert.strictEqual(Option.getOrThrow(yield* Fiber.join(cancelling))._tag, "Cancelled")
          assert.deepStrictEqual(
            (yield* kit.of("PermissionResolved")).map(({ granted }) => granted),
            [false]
          )
          const stopping = yield* Effect.fork(kit.agent.shutdown)
          yield* TestClock.adjust("10 seconds")
          yield* Fiber.join(stopping)
          assert.deepStrictEqual(yield* kit.wrong, [])
        }).pipe(Effect.provideService(AuditTrail.AuditTrail, trail))
      )
    }
  }

  it.scoped("nor one call that somebody interrupts", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [work("a", "call_a"), work("b", "call_b")] }, { text: "done" }] })
      yield* kit.agent.send("go")
      yield* settle
      const stopping = yield* Effect.fork(kit.agent.interrupt({ toolCallId: "call_a" }))
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(stopping)
      const cancelling = yield* Effect.fork(kit.agent.cancel())
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(cancelling)
      assert.deepStrictEqual(yield* kit.wrong, [])
    }).pipe(Effect.provideService(AuditTrail.AuditTrail, { ...stuck, release: () => Effect.void }))
  )
})

describe("what crashes", () => {
  interface Line {
    readonly message: string
    readonly cause: string
    readonly annotations: Record<string, unknown>
  }
  const logged = <A, E, R>(program: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const lines: Array<Line> = []
      const logger = Logger.make<unknown, void>(({ annotations, cause, message }) => {
        const all = Object.fromEntries(HashMap.toEntries(annotations))
        lines.push({ message: String(message), cause: Cause.pretty(cause), annotations: all })
      })
      yield* Effect.provide(program, Logger.replace(Logger.defaultLogger, logger))
      return lines
    })
  const boom = new Error("boom of s3cr3t-s3cr3t")
  const cases: Readonly<Record<string, Partial<Kit.Options>>> = {
    "a handler": { worker: () => Effect.die(boom) },
    "a handler that throws": {
      worker: () => {
        throw boom
      }
    }
  }
  for (const [name, options] of Object.entries(cases)) {
    for (const tools of [[work("a", "call_a")], [work("a", "call_a"), work("b", "call_b")]]) {
      it.scoped(`${name}, of ${tools.length}: the log has the cause, masked, and nobody else its words`, () =>
        Effect.gen(function* () {
          const lines = yield* logged(
            Effect.gen(function* () {
              const kit = yield* Kit.start({
                model: [{ tools }, { text: "done" }],
                ...options,
                runtime: { secrets: [Redacted.make("s3cr3t-s3cr3t")] }
              })
              yield* kit.agent.run("go")
              const said = JSON.stringify([yield* kit.events, kit.agent.history.messages])
              assert.notInclude(said, "boom")
              assert.strictEqual(kit.results()[0], "work crashed. The log has the reason.")
              assert.deepStrictEqual(yield* kit.wrong, [])
            })
          )
          assert.strictEqual(lines.length, tools.length)
          assert.deepInclude(lines[0]?.annotations, { tool: "work", call: "call_a", agent: "main" })
          assert.isString(lines[0]?.annotations["session"])
          assert.include(lines[0]?.cause, "boom of [REDACTED]")
          assert.notInclude(JSON.stringify(lines), "s3cr3t")
        })
      )
    }
  }

  it.scoped("a result that its tool's schema does not allow: the log says what does not fit", () =>
    Effect.gen(function* () {
      const tools = [{ name: "typed", params: { why: "wrong" }, id: "call_a" }]
      const lines = yield* logged(
        Effect.gen(function* () {
          const kit = yield* Kit.start({ model: [{ tools }, { text: "done" }] })
          yield* kit.agent.run("go")
          assert.match(String(kit.results()[0]), /What does not fit is in the log\.$/)
          assert.deepStrictEqual(yield* kit.wrong, [])
        })
      )
      assert.lengthOf(lines, 1)
      assert.strictEqual(lines[0]?.message, "Encoding what typed returned crashed")
      assert.include(lines[0]?.cause, "Expected")
      assert.deepInclude(lines[0]?.annotations, { tool: "typed", call: "call_a", agent: "main" })
    })
  )
})

describe("a step with too many calls", () => {
  it.scoped("runs the first of them, and the others get a result that says so", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: Array.from({ length: 2_000 }, (_, index) => work(String(index))) }, { text: "done" }]
      })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      const outcomes = (yield* kit.of("ToolCallEnded")).map(({ outcome }) => outcome)
      assert.strictEqual(outcomes.filter((outcome) => outcome === "succeeded").length, 128)
      assert.strictEqual(outcomes.filter((outcome) => outcome === "invalid").length, 2_000 - 128)
      assert.match(String(kit.results()[128]), /^This step has 2000 calls, and only the first 128 are looked at\./)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )
})

describe("nobody", () => {
  it.scoped("was ever there to be asked: that is a method of its own", () =>
    audited((decisions) =>
      Effect.gen(function* () {
        const kit = yield* Kit.start({
          model: [{ tools: [work("a")] }, { text: "done" }],
          runtime: { policy: ask },
          interactors: []
        })
        yield* kit.agent.run("go")
        assert.deepStrictEqual(
          (yield* kit.of("PermissionResolved")).map(({ method }) => method),
          ["no_channel"]
        )
        assert.deepInclude((yield* decisions)[0], { outcome: "unavailable", method: "no_channel" })
      })
    )
  )
})
