import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import type { CorrelationId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import type { InteractionError } from "../../src/interaction/InteractionError.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import { policy } from "../../src/permission/PermissionFile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"

const { samples } = InteractionSample
const confirm = samples.Confirm.interaction
const approve = samples.Approve.interaction

const nobody = (id: string): Interactor.Service => ({ id, relay: false, request: () => Effect.never })
const inside = nobody("inside")
const outsider = Interactor.layer(nobody("outside"))

const origin: Origin.Origin = {
  sessionId: "ses_1" as SessionId,
  rootSessionId: "ses_1" as SessionId,
  agent: "main",
  depth: 0,
  correlationId: "turn_1" as CorrelationId
}

/** What a fiber sees of the two ambient values. */
const seen = Effect.zipWith(
  Interactor.current,
  Origin.current,
  ({ id }, { agent, toolCallId }) => `${id} ${agent} ${toolCallId ?? "-"}`
)

/** Every way in which work gets into another fiber. */
const ways: Readonly<Record<string, <R>(look: Effect.Effect<string, never, R>) => Effect.Effect<string, never, R>>> = {
  "the same fiber": (look) => look,
  "Effect.fork": (look) => Effect.flatMap(Effect.fork(look), Fiber.join),
  "Effect.forkDaemon": (look) => Effect.flatMap(Effect.forkDaemon(look), Fiber.join),
  "Effect.forkScoped": (look) => Effect.scoped(Effect.flatMap(Effect.forkScoped(look), Fiber.join)),
  "a fork in a fork": (look) => Effect.flatMap(Effect.fork(Effect.flatMap(Effect.fork(look), Fiber.join)), Fiber.join),
  "Effect.forEach, two at once": (look) => agreed(Effect.forEach([1, 2, 3, 4], () => look, { concurrency: 2 })),
  "Effect.forEach, all at once": (look) =>
    agreed(Effect.forEach([1, 2, 3, 4], () => Effect.zipRight(Effect.yieldNow(), look), { concurrency: "unbounded" })),
  "Effect.race": (look) => Effect.race(look, Effect.never),
  "Effect.raceFirst": (look) => Effect.raceFirst(Effect.never, look),
  "Effect.timeout": (look) => Effect.orDie(Effect.timeout(Effect.zipRight(Effect.yieldNow(), look), "1 second")),
  "Effect.disconnect": (look) => Effect.disconnect(look),
  "Stream.mapEffect, three at once": (look) =>
    agreed(
      Effect.map(
        Stream.runCollect(Stream.mapEffect(Stream.range(1, 6), () => look, { concurrency: 3 })),
        Chunk.toReadonlyArray
      )
    ),
  "Stream.merge": (look) =>
    agreed(
      Effect.map(
        Stream.runCollect(Stream.merge(Stream.fromEffect(look), Stream.fromEffect(look))),
        Chunk.toReadonlyArray
      )
    ),
  "a runtime captured inside": (look) =>
    Effect.flatMap(Effect.runtime<Effect.Effect.Context<typeof look>>(), (runtime) =>
      Effect.promise(() => Runtime.runPromise(runtime)(look))
    )
}

const agreed = <R>(all: Effect.Effect<ReadonlyArray<string>, never, R>): Effect.Effect<string, never, R> =>
  Effect.map(all, (values) => [...new Set(values)].join(" and "))

describe("whom a fiber asks, and as whom", () => {
  it.effect.each(Object.keys(ways))("flows down into %s, and nothing of it comes back", (way) =>
    Effect.gen(function* () {
      const look = ways[way]
      assert(look !== undefined)
      const within = look(seen).pipe(
        Origin.inToolCall("call_1" as ToolCallId),
        Interactor.withInteractor(inside),
        Origin.withOrigin(origin)
      )
      assert.strictEqual(yield* within, "inside main call_1")
      assert.strictEqual(yield* seen, "outside outside -")
      // Joining a fiber that set them hands nothing to whoever joins.
      assert.strictEqual(yield* look(within), "inside main call_1")
      assert.strictEqual(yield* seen, "outside outside -")
    }).pipe(Effect.provide(outsider))
  )

  it.effect("does not cross a queue to a consumer that was forked before", () =>
    Effect.gen(function* () {
      const questions = yield* Queue.unbounded<Deferred.Deferred<string>>()
      yield* Effect.fork(
        Effect.forever(
          Effect.flatMap(Queue.take(questions), (reply) =>
            Effect.flatMap(seen, (view) => Deferred.succeed(reply, view))
          )
        )
      )
      const view = yield* Effect.gen(function* () {
        const reply = yield* Deferred.make<string>()
        yield* Queue.offer(questions, reply)
        return yield* Deferred.await(reply)
      }).pipe(Interactor.withInteractor(inside), Origin.withOrigin(origin))
      assert.strictEqual(view, "outside outside -")
    }).pipe(Effect.provide(outsider))
  )

  it.effect("does not leak from a fiber that is still inside to a session that inherits from it", () =>
    Effect.gen(function* () {
      const running = yield* Effect.fork(
        Effect.never.pipe(
          Interactor.withInteractor(nobody("other")),
          Origin.withOrigin({ ...origin, agent: "main/other" })
        )
      )
      yield* Recorder.settle
      yield* Fiber.inheritAll(running)
      assert.strictEqual(yield* seen, "inside main -")
      yield* Fiber.interrupt(running)
    }).pipe(Interactor.withInteractor(inside), Origin.withOrigin(origin))
  )

  it.effect("is the innermost one, and the former one again afterwards", () =>
    Effect.gen(function* () {
      const views = yield* Effect.gen(function* () {
        const before = yield* seen
        const deep = yield* Interactor.withInteractor(nobody("deeper"))(Effect.flatMap(Effect.fork(seen), Fiber.join))
        const failed = yield* Effect.exit(Interactor.withInteractor(nobody("deeper"))(Effect.fail("no")))
        assert.isTrue(Exit.isFailure(failed))
        return [before, deep, yield* seen]
      }).pipe(Interactor.withInteractor(inside), Origin.withOrigin(origin))
      assert.deepStrictEqual(views, ["inside main -", "deeper main -", "inside main -"])
    }).pipe(Effect.provide(outsider))
  )

  it.effect("is the service as well, for code that asks for the tag", () =>
    Effect.gen(function* () {
      const tag = yield* Interactor.withInteractor(inside)(Interactor.Interactor)
      assert.strictEqual(tag.id, "inside")
      assert.strictEqual((yield* Interactor.Interactor).id, "outside")
    }).pipe(Effect.provide(outsider))
  )

  it.effect("stands in the envelope of what is asked", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["y"] })
      const child: Origin.Origin = {
        ...origin,
        agent: "main/reviewer",
        parentSessionId: "ses_0" as SessionId,
        subagentId: "sub_1"
      }
      yield* TestClock.adjust("3 seconds")
      yield* Interactor.ask(confirm).pipe(
        Effect.fork,
        Effect.flatMap(Fiber.join),
        Interactor.withInteractor(person.interactor),
        Origin.withOrigin(child)
      )
      const [request] = yield* person.shown
      assert.deepStrictEqual(request, {
        requestId: request!.requestId,
        correlationId: "turn_1" as CorrelationId,
        sessionId: "ses_1" as SessionId,
        agentPath: "main/reviewer",
        issuedAt: 3000,
        parentSessionId: "ses_0" as SessionId,
        subagentId: "sub_1",
        interaction: confirm
      })
    })
  )
})

describe("inside an agent's turn", () => {
  const Look = Tool.make("look", {
    parameters: { way: Schema.String },
    success: Schema.Struct({ interactor: Schema.Boolean, origin: Schema.Unknown }),
    dependencies: [Interactor.Interactor]
  })
  const AskBack = Tool.make("ask_back", { success: Schema.Boolean, dependencies: [Interactor.Interactor] })
  const toolkit = Toolkit.make(Look, AskBack)
  const calls = Object.keys(ways).map((way, index) => ({ name: "look", params: { way }, id: `call_${index}` }))

  /** A runtime that was captured when the handlers were built knows nothing of any turn. */
  const handlers = (expected: () => Interactor.Service, captured: Deferred.Deferred<Runtime.Runtime<never>>) =>
    toolkit.toLayer(
      Effect.gen(function* () {
        yield* Deferred.succeed(captured, yield* Effect.runtime<never>())
        return toolkit.of({
          look: ({ way }) => {
            const through = ways[way]
            assert(through !== undefined)
            const look = Effect.zipWith(Interactor.current, Origin.current, (interactor, origin) =>
              JSON.stringify({ interactor: interactor === expected(), origin })
            )
            return Effect.map(through(look), (text) => JSON.parse(text))
          },
          ask_back: () =>
            Effect.gen(function* () {
              // Foreign code that calls back: the handler's own runtime is captured and run as a promise.
              const runtime = yield* Effect.runtime<Interactor.Interactor>()
              return yield* Effect.promise(() => Runtime.runPromise(runtime)(Effect.orDie(Interactor.ask(confirm))))
            })
        })
      })
    )

  for (const parallelTools of [1, 3, 50]) {
    it.scoped(`a tool sees its turn's interactor and its own call, ${parallelTools} at once, however it forks`, () =>
      Effect.gen(function* () {
        let expected: Interactor.Service | undefined
        const captured = yield* Deferred.make<Runtime.Runtime<never>>()
        yield* Effect.gen(function* () {
          const { agent, events } = yield* TestAgent.start()
          expected = agent.broker.interactor
          assert.strictEqual((yield* agent.run("look"))._tag, "Completed")
          const [started] = (yield* events).flatMap((event) => (event._tag === "TurnStarted" ? [event] : []))
          const results = agent.history.messages.flatMap((message) =>
            message.role === "tool" ? message.content.map(({ id, result }) => ({ id, result })) : []
          )
          assert.deepStrictEqual(
            results,
            calls.map(({ id }) => ({
              id,
              result: {
                interactor: true,
                origin: { ...agent.origin, correlationId: started?.correlationId, toolCallId: id }
              }
            }))
          )
        }).pipe(
          Effect.provide(
            TestAgent.layer({
              toolkit,
              script: [{ tools: calls }, { text: "seen" }],
              policy: policy({ defaultPolicy: "allow" }),
              limits: { parallelTools }
            })
          ),
          Effect.provide(handlers(() => expected ?? inside, captured))
        )
      })
    )
  }

  it.scoped("a tool that calls back from foreign code asks the same person as its turn", () =>
    Effect.gen(function* () {
      const captured = yield* Deferred.make<Runtime.Runtime<never>>()
      yield* Effect.gen(function* () {
        const { agent, person } = yield* TestAgent.start()
        yield* agent.run("ask me")
        const [request] = yield* person.shown
        assert.strictEqual(request?.sessionId, agent.id)
        assert.strictEqual(request?.agentPath, "main")
        const runtime = yield* Deferred.await(captured)
        const before = yield* Effect.promise(() => Runtime.runPromise(runtime)(Origin.current))
        assert.strictEqual(before, Origin.outside, "what was captured outside of the turn stays outside")
      }).pipe(
        Effect.provide(
          TestAgent.layer({
            toolkit,
            script: [{ tools: [{ name: "ask_back" }] }, { text: "asked" }],
            policy: policy({ defaultPolicy: "allow" }),
            person: ["y"]
          })
        ),
        Effect.provide(handlers(() => inside, captured))
      )
    })
  )
})

describe("an interactor made of handlers", () => {
  const declining = Object.fromEntries(
    InteractionSample.kinds.map((kind) => [kind, Interactor.declines])
  ) as unknown as Interactor.Handlers

  it.effect("turns away the kinds it does not take, without waiting in line", () =>
    Effect.gen(function* () {
      const service = Interactor.make({ id: "picky", handlers: { ...declining, Confirm: () => Effect.never } })
      yield* Effect.fork(service.request(yield* InteractionSample.request(confirm)))
      yield* Recorder.settle
      const other = Interactor.make({ id: "picky", dialogs: "unbounded", handlers: declining })
      const request = yield* InteractionSample.request(approve)
      const failure = yield* Effect.flip(other.request(request))
      assert.deepInclude(failure, { _tag: "InteractorUnavailable", by: "picky", requestId: request.requestId })
    })
  )

  it.effect("names itself as the author, and says how it came to its answer", () =>
    Effect.gen(function* () {
      const service = Interactor.make({
        id: "robot",
        how: "auto",
        handlers: { ...declining, Confirm: () => Effect.succeed(true) }
      })
      const answered = yield* InteractorCall.ask(service, yield* InteractionSample.request(confirm))
      assert.deepStrictEqual(answered, { answer: true, by: "robot", how: "auto" })
    })
  )

  it.effect("shows one dialog at a time, in order, and never one that was withdrawn in line", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make()
      const requests = yield* Effect.forEach([1, 2, 3], () => InteractionSample.request(confirm))
      const fibers: Array<Fiber.RuntimeFiber<unknown, InteractionError>> = []
      for (const request of requests) {
        fibers.push(yield* Effect.fork(person.interactor.request(request)))
        yield* Recorder.settle
      }
      assert.deepStrictEqual(yield* person.shown, [requests[0]!])
      yield* Fiber.interrupt(fibers[1]!)
      yield* Fiber.interrupt(fibers[0]!)
      yield* Recorder.settle
      assert.deepStrictEqual(yield* person.shown, [requests[0]!, requests[2]!])
      assert.deepStrictEqual(yield* person.open, [requests[2]!])
      yield* Fiber.interrupt(fibers[2]!)
      assert.deepStrictEqual(yield* person.open, [])
    })
  )

  it.effect("does not show what is decided by the time it would be its turn", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: [TestInteractor.delay("1 second", "n")] })
      const [first, second] = [yield* InteractionSample.request(approve), yield* InteractionSample.request(approve)]
      let known: Option.Option<{ readonly decision: "deny"; readonly scope: "once" }> = Option.none()
      yield* Effect.fork(person.interactor.request(first))
      yield* Recorder.settle
      const waiting = yield* Effect.fork(
        InteractorCall.ask(person.interactor, second, { recheck: Effect.sync(() => known) })
      )
      yield* Recorder.settle
      known = Option.some({ decision: "deny", scope: "once" })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(waiting), {
        answer: { decision: "deny", scope: "once" },
        by: "policy",
        how: "recheck"
      })
      assert.deepStrictEqual(yield* person.shown, [first])
    })
  )
})

describe("a time limit", () => {
  const limited = (timeouts: Interactor.Timeouts) => TestInteractor.make({ timeouts, dialogs: "unbounded" })

  it.effect("starts when the dialog is shown, not while it waits in line", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ timeouts: { clarification: "10 seconds" } })
      const [first, second] = [yield* InteractionSample.request(confirm), yield* InteractionSample.request(confirm)]
      const one = yield* Effect.fork(Effect.flip(person.interactor.request(first)))
      yield* Recorder.settle
      const two = yield* Effect.fork(Effect.flip(person.interactor.request(second)))
      yield* Recorder.settle
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(one))._tag, "InteractionTimedOut")
      yield* Recorder.settle
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(yield* person.open, [second])
      yield* TestClock.adjust("1 second")
      const late = yield* Fiber.join(two)
      assert.deepInclude(late, { _tag: "InteractionTimedOut", by: "person", after: 10_000 })
      assert.deepStrictEqual(yield* person.dismissed, [first.requestId, second.requestId])
    })
  )

  it.effect.each([0, -1, "0 millis" as const, "none" as const])("of %s waits for ever", (permission) =>
    Effect.gen(function* () {
      const person = yield* limited({ permission: permission === "none" ? undefined : permission })
      const asking = yield* Effect.fork(person.interactor.request(yield* InteractionSample.request(approve)))
      yield* Recorder.settle
      yield* TestClock.adjust("365 days")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* Fiber.interrupt(asking)
    })
  )

  it.effect("gives a form its time for each of its questions, and signing in no limit", () =>
    Effect.gen(function* () {
      const person = yield* limited({ clarification: "1 minute", permission: "1 second" })
      const form = yield* Effect.fork(
        Effect.exit(person.interactor.request(yield* InteractionSample.request(samples.Clarify.interaction)))
      )
      const login = yield* Effect.fork(
        Effect.exit(person.interactor.request(yield* InteractionSample.request(samples["Auth.Password"].interaction)))
      )
      yield* Recorder.settle
      yield* TestClock.adjust("119 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(form)))
      yield* TestClock.adjust("1 second")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(form)))
      yield* TestClock.adjust("1 day")
      assert.isTrue(Option.isNone(yield* Fiber.poll(login)))
      yield* Fiber.interrupt(login)
    })
  )

  it.effect("allows an approval only where that was opted for, and says that nobody said so", () =>
    Effect.gen(function* () {
      const person = yield* limited({ permission: "1 second", onTimeout: "allow" })
      for (const kind of ["Approve", "grantStageTool", "approveSubagentEnvelope"] as const) {
        const request = yield* InteractionSample.request(samples[kind].interaction)
        const asking = yield* Effect.fork(Effect.either(person.interactor.request(request as never)))
        yield* Recorder.settle
        yield* TestClock.adjust("1 second")
        const end = yield* Fiber.join(asking)
        if (kind === "Approve") {
          assert(end._tag === "Right")
          assert.deepStrictEqual(end.right, {
            answer: { decision: "allow", scope: "once" },
            by: "person",
            how: "timeout"
          } as never)
        } else assert(end._tag === "Left" && end.left._tag === "InteractionTimedOut")
      }
    })
  )
})
