/** Sessions that are opened under an id of the caller's, run over every store. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import { SessionId } from "../../src/core/Id.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import { allowAll, runtime } from "../kit/agents.js"
import type { Options } from "./sessionStoreSuite.js"

const id = SessionId.make("chosen-by_a-caller")
const workspace = "/project/one"
const model = "provider/model"

export const persistenceSuite = (name: string, { make }: Pick<Options, "make">): void => {
  /** Stores of processes with these numbers; all but the first are dead to the others. */
  const stores = Effect.map(
    make,
    (open) => (pid: number) => open({ pid, host: "here", isAlive: (other) => other === 1 })
  )

  const spoken = (persistence: Persistence.Persistence, words: string) =>
    Effect.flatMap(Agent.startWith([], { persistence }), (agent) => agent.run(words)).pipe(
      Effect.provide(runtime({ agents: { main: [{ text: "first" }, { text: "second" }] } }, { policy: allowAll }))
    )

  describe(`${name}: a request that a former process settled`, () => {
    const asking = runtime({
      agents: { main: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "over" }] }
    })
    const yes = { decision: "allow", scope: "once" }

    /** Asks in one process, ends the request by `end`, and yields the broker of the next process. */
    const settledBy = <E>(end: (agent: Agent.Agent, requestId: string) => Effect.Effect<unknown, E>) =>
      Effect.gen(function* () {
        const store = yield* stores
        const requestId = yield* Effect.scoped(
          Effect.gen(function* () {
            const persistence = yield* Persistence.open(yield* store(1), id, { workspace })
            const channel = yield* QueueChannel.make()
            const agent = yield* Agent.startWith([channel.interactor], { persistence })
            const running = yield* Effect.fork(agent.run("add"))
            yield* channel.take
            const [request = assert.fail()] = yield* agent.broker.open
            yield* end(agent, request.requestId)
            yield* Fiber.join(running)
            return request.requestId
          })
        )
        const persistence = yield* Persistence.open(yield* store(1), id, { workspace })
        const { broker } = yield* Agent.startWith([], { persistence })
        return { broker, requestId }
      }).pipe(Effect.provide(asking))

    it.scoped("says who answered it, to each who comes too late", () =>
      Effect.gen(function* () {
        const { broker, requestId } = yield* settledBy(({ broker }, requestId) => broker.answer(requestId, "ada", yes))
        for (const late of ["bob", "ada"])
          assert.deepInclude(yield* Effect.flip(broker.answer(requestId, late, yes)), {
            _tag: "InteractionAlreadyAnswered",
            requestId,
            by: "ada"
          })
        assert.isFalse(yield* broker.cancel(requestId, "bob"))
        const unknown = yield* Effect.flip(broker.answer("req_made-up", "bob", yes))
        assert.strictEqual(unknown._tag, "UnknownRequest")
      })
    )

    it.scoped("says who withdrew it", () =>
      Effect.gen(function* () {
        const { broker, requestId } = yield* settledBy(({ broker }, requestId) => broker.cancel(requestId, "eve"))
        const late = yield* Effect.flip(broker.answer(requestId, "bob", yes))
        assert.deepInclude(late, { _tag: "InteractionAlreadyAnswered", by: "eve" })
      })
    )

    it.scoped("says that its asker withdrew it, when a turn was cancelled", () =>
      Effect.gen(function* () {
        const { broker, requestId } = yield* settledBy((agent) => agent.cancel("user"))
        const late = yield* Effect.flip(broker.answer(requestId, "bob", yes))
        assert.strictEqual(late._tag, "InteractionAlreadyAnswered")
        assert.include(late.message, "already settled by")
      })
    )
  })

  describe(`${name}: a session that is opened by id`, () => {
    it.scoped("is listed before anybody speaks to it, with its workspace, model and profile", () =>
      Effect.gen(function* () {
        const store = yield* (yield* stores)(1)
        const persistence = yield* Persistence.open(store, id, { workspace, model, profile: "careful" })
        assert.deepStrictEqual([persistence.rootSessionId, persistence.workspace], [id, workspace])
        const { sessions } = yield* store.page()
        assert.lengthOf(sessions, 1)
        const [{ entries, title, turns, ...listed } = assert.fail()] = sessions
        assert.deepStrictEqual({ entries, title, turns }, { entries: 1, title: "", turns: 0 })
        assert.deepStrictEqual(
          [listed.rootSessionId, listed.workspace, listed.model, listed.state],
          [id, workspace, model, "running"]
        )
        const [first] = (yield* store.load(id)).entries
        assert.deepInclude(first?.entry, { _tag: "SessionOpened", agent: "main", depth: 0, profile: "careful" })
      })
    )

    it.scoped("is resumed by another process with what was said, and changed by no options", () =>
      Effect.gen(function* () {
        const store = yield* stores
        yield* Effect.scoped(
          Effect.gen(function* () {
            const persistence = yield* Persistence.open(yield* store(1), id, { workspace, model })
            assert.deepInclude(yield* spoken(persistence, "one"), { _tag: "Completed", text: "first" })
          })
        )
        const second = yield* store(1)
        const persistence = yield* Persistence.open(second, id, { model: "provider/other", profile: "other" })
        assert.deepInclude(yield* spoken(persistence, "two"), { _tag: "Completed", text: "second" })
        const [listed] = (yield* second.page()).sessions
        assert.deepInclude(listed, { title: "one", turns: 2, model, workspace })
        const opened = (yield* second.load(id)).entries.filter(({ entry }) => entry._tag === "SessionOpened")
        assert.lengthOf(opened, 1)
      })
    )

    it.scoped("is resumed by another process when nobody spoke to it", () =>
      Effect.gen(function* () {
        const store = yield* stores
        yield* Effect.scoped(Effect.flatMap(store(1), (store) => Persistence.open(store, id, { workspace, model })))
        const persistence = yield* Persistence.resume(yield* store(1), id, { workspace })
        assert.deepInclude(yield* spoken(persistence, "late"), { _tag: "Completed", text: "first" })
      })
    )

    it.scoped("is one process's at a time: the other is told whose, and takes nothing", () =>
      Effect.gen(function* () {
        const store = yield* stores
        const scope = yield* Scope.make()
        yield* Scope.extend(Persistence.open(yield* store(1), id), scope)
        const other = yield* store(2)
        const locked = yield* Effect.flip(Effect.scoped(Persistence.open(other, id)))
        assert.strictEqual(locked._tag, "SessionLocked")
        assert.include(locked.message, "process 1 on here")
        yield* Scope.close(scope, Exit.void)
        yield* Effect.scoped(Persistence.open(other, id))
        assert.lengthOf((yield* other.page()).sessions, 1)
      })
    )

    it.scoped("goes on in no other workspace", () =>
      Effect.gen(function* () {
        const store = yield* (yield* stores)(1)
        yield* Effect.scoped(Persistence.open(store, id, { workspace }))
        const elsewhere = yield* Effect.flip(Effect.scoped(Persistence.open(store, id, { workspace: "/project/two" })))
        assert.strictEqual(elsewhere._tag, "SessionElsewhere")
        // It was given back.
        assert.isTrue(Option.isSome(yield* Effect.option(Effect.scoped(Persistence.open(store, id, { workspace })))))
      })
    )

    it.scoped("that was begun without a trace is opened as a new one", () =>
      Effect.gen(function* () {
        const store = yield* (yield* stores)(1)
        const begun = yield* Effect.scoped(Persistence.begin(store))
        assert.deepStrictEqual((yield* store.page()).sessions, [])
        yield* Persistence.open(store, begun.rootSessionId)
        assert.lengthOf((yield* store.page()).sessions, 1)
      })
    )
  })
}
