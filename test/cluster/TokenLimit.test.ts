/** Tenants that have used their tokens of the day: their turns end at each node, and those of others go on. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import * as TokenLimit from "../../src/cluster/TokenLimit.js"
import type * as Host from "../../src/host/Host.js"
import * as RuntimeHost from "../../src/host/RuntimeHost.js"
import type * as Api from "../../src/http/Api.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { StoreUnusable } from "../../src/journal/StoreError.js"
import * as Agents from "../kit/agents.js"
import { settle } from "../kit/Recorder.js"

const asking = { tools: [{ name: "add", params: { a: 1, b: 2 } }], usage: { input: 90, output: 10 } }

const script = { agents: { main: [asking, { text: "one" }, asking, { text: "two" }, { text: "three" }] } }

/** A session that waits for a person, and how its turn ends. */
const begun = (host: Host.Service, id: string) =>
  Effect.gen(function* () {
    const session = yield* host.create({ id, workspace: "" })
    const end = yield* Effect.fork(session.agent.run("go"))
    yield* settle
    return { session, end }
  })

const answered = ({ agent }: Host.LiveSession) =>
  Effect.gen(function* () {
    for (const { requestId } of yield* agent.broker.open)
      yield* agent.broker.answer(requestId, "ann", { decision: "allow", scope: "once" })
    yield* settle
  })

describe("the tokens of a tenant", () => {
  it.scoped("end a turn before its next model call with a sentence, and let it begin again the next day", () =>
    Effect.gen(function* () {
      const store = Context.get(yield* Layer.build(SessionStore.layerMemory), SessionStore.SessionStore)
      const limits = new Map<string, Api.Limits>([
        ["acme", { tokens: 150 }],
        ["beta", { sessions: 9 }],
        ["gamma", { tokens: 100 }]
      ])
      let isThere = true
      const asked: Array<ReadonlyArray<string>> = []
      // A minute before the day ends, and not at a look of each 5 seconds.
      yield* TestClock.adjust("86338 seconds")
      const host = yield* TokenLimit.over(yield* RuntimeHost.make(store), store, {
        limitsOf: (tenants) => {
          asked.push(tenants)
          return isThere
            ? Effect.succeed(limits)
            : new StoreUnusable({ store: "it", problem: "unavailable", reason: "it is away" })
        }
      })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(asked, [])
      const acme = yield* begun(host, "acme.a")
      const beta = yield* begun(host, "beta.a")
      const gamma = yield* begun(host, "gamma.a")
      const nobody = yield* begun(host, "a")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(asked, [["acme", "beta", "gamma"]])
      for (const { session } of [acme, beta, gamma, nobody]) yield* answered(session)
      const spent = "The tenant gamma may use 100 tokens a day. Try again after midnight in UTC."
      assert.deepInclude(yield* Fiber.join(gamma.end), { _tag: "Failed", error: spent })
      for (const { end } of [acme, beta, nobody]) assert.deepInclude(yield* Fiber.join(end), { text: "one" })

      // Another session of acme reaches the limit, and the first one has used no more.
      const other = yield* begun(host, "acme.b")
      isThere = false
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined(other.session.agent.ledger.halted)
      isThere = true
      yield* TestClock.adjust("5 seconds")
      yield* answered(other.session)
      const end = yield* Fiber.join(other.end)
      assert.match(end._tag === "Failed" ? end.error : end._tag, /tenant acme may use 150 tokens a day/)

      // It came into memory, and its answer goes on with no look in between.
      const last = yield* begun(host, "acme.c")
      yield* host.close("acme.c")
      yield* Fiber.interrupt(last.end)
      const again = yield* host.open("acme.c")
      assert.match(again.agent.ledger.halted ?? "", /acme may use 150/)
      asked.length = 0
      assert.strictEqual(yield* host.open("acme.c"), again)
      assert.deepStrictEqual(asked, [])

      // A raise counts at the next look, and the next day at its beginning.
      limits.set("acme", { tokens: 301 })
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined(other.session.agent.ledger.halted)
      assert.strictEqual(gamma.session.agent.ledger.halted, spent)
      yield* TestClock.adjust("36500 millis")
      assert.strictEqual(gamma.session.agent.ledger.halted, spent)
      yield* TestClock.adjust("500 millis")
      assert.deepInclude(yield* gamma.session.agent.run("go on"), { text: "one" })
      assert.isUndefined(gamma.session.agent.ledger.halted)
    }).pipe(Effect.provide(Agents.runtime(script)))
  )
})
