/** Questions of handlers when their process is gone: an answer that is taken counts, and one that cannot is refused. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import { noFiles } from "../kit/agents.js"
import { settle } from "../kit/Recorder.js"
import { resultsOf } from "../kit/session.js"

type Ask = Effect.Effect<unknown, unknown, Interactor.Interactor>

const Book = Tool.make("book", { success: Schema.String, dependencies: [Interactor.Interactor] })

const confirm = Interactor.ask(new Interaction.Confirm({ prompt: "Book 12A?", default: false }))

/** A process that ends gently while a handler's question is open, and what the store says of it. */
const left = (ask: Ask, tool: typeof Book = Book, allowed = true) =>
  Effect.gen(function* () {
    const open = yield* SessionStore.makeMemory
    const view = (pid: number) => open({ pid, host: `h${pid}`, isAlive: () => false })
    const ran: Array<number> = []
    const runtime = (pid: number) =>
      AgentRuntime.layer({
        toolkit: Toolkit.make(tool),
        policy: Policy.make(allowed ? { whitelist: { tools: ["book"] } } : {})
      }).pipe(
        Layer.provide([
          Toolkit.make(tool).toLayer({
            book: () =>
              Effect.zipRight(
                Effect.sync(() => ran.push(pid)),
                Effect.map(Effect.orDie(ask), String)
              )
          }),
          noFiles,
          ScriptedModel.layer({ agents: { main: [{ tools: [{ name: "book", id: "call_1" }] }, { text: "end" }] } })
        ])
      )
    const start = (pid: number, persistence: Persistence.Persistence, person: TestInteractor.Service) =>
      Effect.flatMap(Layer.build(runtime(pid)), (context) =>
        Effect.provide(Effect.orDie(Agent.startWith([person.interactor], { persistence, whenNobody: "wait" })), context)
      )
    const scope = yield* Scope.make()
    const person = yield* TestInteractor.make({ script: () => TestInteractor.silent })
    const agent = yield* Effect.flatMap(Persistence.begin(view(1)), (persistence) =>
      start(1, persistence, person)
    ).pipe(Scope.extend(scope))
    yield* agent.send("book")
    const asked = yield* person.next
    yield* Scope.close(scope, Exit.void)
    const next = Effect.gen(function* () {
      const nobody = yield* TestInteractor.make({ script: () => TestInteractor.silent })
      const again = yield* start(3, yield* Persistence.resume(view(3), agent.id), nobody)
      yield* again.awaitIdle
      const { entries } = yield* view(4).load(agent.id)
      return {
        results: resultsOf(again.history.messages),
        asked: (yield* nobody.shown).length,
        settled: entries.flatMap(({ entry }) => (entry._tag === "InteractionSettled" ? [entry.status] : []))
      }
    })
    return { agent, asked, next, ran, store: view(2) }
  })

type Left = Effect.Effect.Success<ReturnType<typeof left>>

const isRefused = ({ asked, next, ran, store }: Left) =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* store.openRequests(), [])
    const refused = yield* Effect.flip(store.answer(asked.requestId, true, "ada"))
    assert.strictEqual(refused._tag, "AnswerRefused")
    assert.include(refused.message, "ToolTrait.Resumable")
    const { results, settled } = yield* next
    assert.include(String(results[0]), "Whether it took effect is not known.")
    assert.deepStrictEqual([settled, ran], [["cancelled"], [1]])
  })

const counts = ({ asked, next, store }: Left, answer: unknown, result: string) =>
  Effect.gen(function* () {
    assert.deepStrictEqual(
      (yield* store.openRequests()).map(({ request }) => request.requestId),
      [asked.requestId]
    )
    yield* store.answer(asked.requestId, answer, "ada")
    const after = yield* next
    assert.deepStrictEqual(after.results, [result])
    assert.deepStrictEqual([after.asked, after.settled], [0, ["answered"]])
  })

describe("a question of a handler that does not run again", () => {
  const asks: ReadonlyArray<readonly [string, Ask]> = [
    ["a Confirm", confirm],
    ["an Ask", Interactor.ask(new Interaction.Ask({ prompt: "Which seat?" }))],
    ["a Select", Interactor.ask(new Interaction.Select({ prompt: "Which?", options: ["a", "b"] }))],
    ["a fiber of its own", Effect.flatMap(Effect.fork(confirm), Fiber.join)],
    ["a daemon", Effect.flatMap(Effect.forkDaemon(confirm), Fiber.join)],
    [
      "a captured runtime",
      Effect.flatMap(Effect.runtime<Interactor.Interactor>(), (runtime) => Effect.provide(confirm, runtime))
    ]
  ]
  for (const [name, ask] of asks)
    it.scoped(`by ${name} is not listed, and its answer is refused in words`, () =>
      Effect.flatMap(left(ask), isRefused)
    )
})

describe("a question that is asked again", () => {
  const Resumable = Book.annotate(ToolTrait.Resumable, true)

  it.scoped("by a resumable tool is listed, and its answer counts", () =>
    Effect.gen(function* () {
      const one = yield* left(confirm, Resumable)
      yield* counts(one, true, "true")
      assert.deepStrictEqual(one.ran, [1, 3], "its handler runs again")
    })
  )

  it.scoped("by a fiber of a resumable tool is listed, and its answer counts", () =>
    Effect.flatMap(left(Effect.flatMap(Effect.fork(confirm), Fiber.join), Resumable), (one) =>
      counts(one, true, "true")
    )
  )

  it.scoped("by an idempotent tool is listed, and its answer counts", () =>
    Effect.flatMap(left(confirm, Book.annotate(Tool.Idempotent, true)), (one) => counts(one, false, "false"))
  )

  const limited = Effect.flatMap(Interactor.current, (interactor) =>
    Interactor.withInteractor(Interactor.withTimeout(interactor, { clarification: "1 hour" }))(confirm)
  ).pipe(Effect.catchTag("InteractionTimedOut", () => Effect.succeed("late")))

  it.scoped("with a limit of its tool has the time that was left", () =>
    Effect.gen(function* () {
      const one = yield* left(limited, Resumable)
      assert.strictEqual(one.asked.dueAt, 3_600_000)
      yield* TestClock.adjust("50 minutes")
      const next = yield* Effect.fork(one.next)
      yield* settle
      yield* TestClock.adjust("599 seconds")
      yield* settle
      assert.isNull(next.unsafePoll())
      yield* TestClock.adjust("1 second")
      const after = yield* Fiber.join(next)
      assert.deepStrictEqual([after.results, after.asked, after.settled], [["late"], 1, ["cancelled"]])
    })
  )

  it.scoped("after the limit of its tool ends at once", () =>
    Effect.gen(function* () {
      const one = yield* left(limited, Resumable)
      yield* TestClock.adjust("2 hours")
      const after = yield* one.next
      assert.deepStrictEqual([after.results, after.settled], [["late"], ["cancelled"]])
      assert.deepStrictEqual(yield* one.store.openRequests(), [])
    })
  )

  it.scoped("within two limits has the shorter one, and an answer in time counts", () =>
    Effect.gen(function* () {
      const one = yield* left(
        Effect.flatMap(Interactor.current, (interactor) =>
          Interactor.withInteractor(
            Interactor.withTimeout(Interactor.withTimeout(interactor, { clarification: "1 day" }), {
              clarification: "1 hour"
            })
          )(confirm)
        ),
        Resumable
      )
      assert.strictEqual(one.asked.dueAt, 3_600_000)
      yield* TestClock.adjust("50 minutes")
      yield* counts(one, true, "true")
    })
  )

  it.scoped("before the tool began, is listed, and its answer counts", () =>
    Effect.flatMap(left(Effect.succeed("booked"), Book, false), (one) =>
      counts(one, { decision: "allow", scope: "once" }, "booked")
    )
  )
})

describe("a question that no turn asks", () => {
  it.scoped("is not listed, and its answer is refused", () =>
    Effect.gen(function* () {
      const one = yield* left(confirm, Book.annotate(ToolTrait.Resumable, true))
      const request = yield* InteractionRequest.make(new Interaction.Confirm({ prompt: "Beside?", default: false }))
      assert.isTrue(InteractionRequest.isAskedOnce(request))
      assert.isFalse(InteractionRequest.isAskedOnce(one.asked))
      yield* settle
    })
  )
})
