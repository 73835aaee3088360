import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import * as TestClock from "effect/TestClock"
import { vi } from "vitest"
import type { CorrelationId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Spans from "../../src/core/Spans.js"
import * as Traces from "../kit/Traces.js"

const turn = (attributes: Spans.Attributes = {}) => ({ name: "assent.turn", attributes }) as const
const tool = { name: "assent.tool", attributes: {} } as const

class Broken extends Schema.TaggedError<Broken>("test/Broken")("Broken", { message: Schema.String }) {}

describe("Spans", () => {
  it("hand every effect back as it is while they are off", () => {
    const effect = Effect.succeed(1)
    assert.strictEqual(
      Spans.off.within(() => assert.fail("nobody asked"), effect),
      effect
    )
  })

  it.effect("go to the tracer of the program unless others are provided", () =>
    Effect.gen(function* () {
      // By their code: a default is kept for the whole process, which may have loaded the module before.
      assert.strictEqual(String((yield* Spans.Spans).within), String(Spans.ofApp.within))
      const spans = Spans.make()
      assert.strictEqual(yield* Effect.provideService(Spans.Spans, Spans.Spans, spans), spans)
    })
  )

  it.effect("tell when work began and ended, who did it, and what is known at its end", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const spans = Spans.make({ tracer: traces.tracer })
      const opening = () => ({
        ...turn({ "assent.step": 1, "assent.absent": undefined }),
        ended: (exit: Exit.Exit<number>) => ({ "assent.result": Exit.isSuccess(exit) ? exit.value : -1 })
      })
      yield* TestClock.adjust("1 second")
      const running = yield* Effect.fork(
        spans.within(opening, Effect.as(Effect.sleep("2 seconds"), 7)).pipe(
          Origin.withOrigin({
            ...Origin.outside,
            sessionId: "ses_1" as SessionId,
            agent: "main/a",
            depth: 1,
            subagentId: "sub_1",
            correlationId: "turn_1" as CorrelationId,
            toolCallId: "call_1" as ToolCallId
          })
        )
      )
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(running), 7)
      assert.deepStrictEqual(traces.ended(), [
        {
          name: "assent.turn",
          parent: undefined,
          millis: [1_000, 3_000],
          status: "ok",
          attributes: {
            "gen_ai.agent.name": "main/a",
            "gen_ai.conversation.id": "ses_1",
            "assent.depth": 1,
            "assent.turn.id": "turn_1",
            "assent.subagent.id": "sub_1",
            "gen_ai.tool.call.id": "call_1",
            "assent.step": 1,
            "assent.result": 7
          }
        }
      ])
    })
  )

  it.effect("nest, also in fibers that were forked inside, and end with the work", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const spans = Spans.make({ tracer: traces.tracer })
      const inner = spans.within(() => tool, Effect.void)
      yield* spans.within(turn, Effect.zipRight(Effect.flatMap(Effect.fork(inner), Fiber.join), inner))
      yield* inner
      assert.deepStrictEqual(traces.outline(), ["turn > tool", "turn > tool", "turn", "tool"])
    })
  )

  it.effect("go from fiber to fiber as a value, past spans of others that go elsewhere", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const spans = Spans.make({ tracer: traces.tracer })
      const handed = yield* Deferred.make<typeof spans.current extends Effect.Effect<infer A> ? A : never>()
      const child = Effect.flatMap(Deferred.await(handed), (parent) =>
        spans.within(() => ({ ...turn(), parent }), Effect.void)
      )
      const running = yield* Effect.fork(child)
      yield* spans.within(
        () => tool,
        Effect.withSpan(
          Effect.flatMap(spans.current, (span) => Deferred.succeed(handed, span)),
          "of-a-library"
        )
      )
      yield* Fiber.join(running)
      assert.deepStrictEqual(traces.outline(), ["tool", "tool > turn"])
    })
  )

  it.effect("continue the program's own trace, and not one that is only kept in memory", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const ambient = Spans.make()
      const program = Effect.withSpan(ambient.within(turn, Effect.void), "request")
      yield* Effect.withTracer(program, traces.tracer)
      const explicit = Spans.make({ tracer: traces.tracer })
      const local = Effect.withSpan(explicit.within(turn, Effect.void), "request")
      yield* local
      const traceparent = Tracer.externalSpan({ traceId: "a".repeat(32), spanId: "b".repeat(16) })
      yield* Effect.withParentSpan(local, traceparent)
      assert.deepStrictEqual(traces.outline(), ["request > turn", "request", "turn", `${"b".repeat(16)} > turn`])
    })
  )

  it.effect("tell the kind of a failure and never its words", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const spans = Spans.make({ tracer: traces.tracer })
      const secret = "the canary sings"
      const ends: ReadonlyArray<Effect.Effect<never, unknown>> = [
        Effect.fail(new Broken({ message: secret })),
        Effect.fail(secret),
        Effect.die(new TypeError(secret)),
        Effect.die({ secret }),
        Effect.interrupt
      ]
      for (const end of ends) {
        const exit = yield* Effect.exit(spans.within(turn, end))
        assert.isTrue(Exit.isFailure(exit))
      }
      yield* spans.within(() => ({ ...turn(), ended: () => ({ "error.type": "refused" }) }), Effect.void)
      assert.deepStrictEqual(
        traces.ended().map(({ attributes, status }) => [status, attributes["error.type"]]),
        [
          ["error", "Broken"],
          ["error", "failure"],
          ["error", "TypeError"],
          ["error", "failure"],
          ["interrupted", undefined],
          ["error", "refused"]
        ]
      )
      assert.notInclude(traces.text(), "canary")
    })
  )

  it.effect("change nothing about how the work ends or whether it can be interrupted", () =>
    Effect.gen(function* () {
      const traces = Traces.make()
      const spans = Spans.make({ tracer: traces.tracer })
      const failed = yield* Effect.exit(spans.within(turn, Effect.fail("no")))
      assert.deepStrictEqual(failed, Exit.fail("no"))
      const begun = yield* Deferred.make<void>()
      const running = yield* Effect.fork(
        spans.within(turn, Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never))
      )
      yield* Deferred.await(begun)
      const exit = yield* Fiber.interrupt(running)
      assert.isTrue(Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause))
      const kept = yield* Effect.checkInterruptible((can) => Effect.succeed(can)).pipe(
        (look) => spans.within(turn, look),
        Effect.uninterruptible
      )
      assert.isFalse(kept)
    })
  )

  it("are those of the program also for a second copy of the library in its process", async () => {
    const ofFirst = Context.get(Context.empty(), Spans.Spans)
    assert.strictEqual(ofFirst, Spans.ofApp)
    vi.resetModules()
    const second = await import("../../src/core/Spans.js")
    assert.notStrictEqual(second.off, Spans.off)
    assert.strictEqual(second.ofApp, ofFirst)
  })

  it("show the length of what was said, or the words with secrets masked", () => {
    const text = "the key is hunter2hunter2"
    assert.strictEqual(Spans.make().content(text), "[REDACTED: 25 chars]")
    const open = Spans.make({ content: Redaction.make(["hunter2hunter2"]) })
    assert.strictEqual(open.content(text), "the key is [REDACTED]")
    const long = open.content("x".repeat(10_000))
    assert.isBelow(long.length, 8_100)
    assert.match(long, /\[2000 more chars\]$/)
  })
})
