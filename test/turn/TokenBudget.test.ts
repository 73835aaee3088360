import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { MessageId, SessionId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import type { Message, Source } from "../../src/inbox/Message.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TokenLedger from "../../src/model/TokenLedger.js"
import * as Policy from "../../src/permission/Policy.js"
import * as TokenBudget from "../../src/turn/TokenBudget.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

const payerOf = (ledger: TokenLedger.Service, id: string, depth = 1): TokenBudget.Payer => ({
  ledger,
  origin: { ...Origin.outside, sessionId: id as SessionId, agent: `main/${id}`, depth }
})

const said = (source: Source): ReadonlyArray<Message> => [
  { id: "msg_1" as MessageId, source, delivery: "queue", text: "go on", at: 0 }
]

/** A tree of which the first session used this many tokens. */
const used = (tokens: number, limits: TokenLedger.Limits) => {
  const ledger = TokenLedger.make({ limits })
  const first = payerOf(ledger, "a")
  TokenBudget.spend(first, { model: "m/m", usage: { inputTokens: tokens, outputTokens: 0 }, kind: "call" })
  return { ledger, first }
}

const prompts = (person: TestInteractor.Service) =>
  Effect.map(person.shown, (shown) =>
    shown.map(({ interaction }) => (interaction._tag === "Confirm" ? interaction.prompt : interaction._tag))
  )

describe("TokenBudget", () => {
  it.effect("asks nobody below the limit, or without a ledger", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({})
      const { first } = used(9, { sessionTokens: 10, treeTokens: 10 })
      for (const payer of [first, { ...first, ledger: undefined }]) {
        assert.isFalse(TokenBudget.isReached(payer))
        assert.isUndefined(yield* TokenBudget.refusal(payer).pipe(Interactor.withInteractor(person.interactor)))
      }
      assert.deepStrictEqual(yield* prompts(person), [])
    })
  )

  it.effect("asks nobody when the ledger is halted, also above a limit, and asks again when it goes on", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["n"] })
      const { first, ledger } = used(10, { treeTokens: 10 })
      const refusal = TokenBudget.refusal(first).pipe(Interactor.withInteractor(person.interactor))
      ledger.halt("It is late.")
      assert.isTrue(TokenBudget.isReached(payerOf(ledger, "b", 0)))
      assert.strictEqual(yield* refusal, "It is late.")
      assert.deepStrictEqual(yield* prompts(person), [])
      ledger.halt(undefined)
      assert.include(yield* refusal, "nobody allowed more")
      assert.lengthOf(yield* prompts(person), 1)
    })
  )

  it.effect("asks at the limit, and a yes allows as much again from what was used", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["y", "y"] })
      const { first, ledger } = used(130, { sessionTokens: 100 })
      const refusal = TokenBudget.refusal(first).pipe(Interactor.withInteractor(person.interactor))
      assert.isTrue(TokenBudget.isReached(first))
      assert.isUndefined(yield* refusal)
      assert.isFalse(TokenBudget.isReached(first))
      TokenBudget.spend(first, { model: "m/m", usage: { inputTokens: 50, outputTokens: 50 }, kind: "summary" })
      assert.isUndefined(yield* refusal)
      assert.deepStrictEqual(yield* prompts(person), [
        "The agent has used 130 of 100 tokens. Allow another 100?",
        "The agent has used 230 of 230 tokens. Allow another 100?"
      ])
      assert.strictEqual(ledger.totals().summaries, 1)
    })
  )

  it.effect("asks about the session first, and then about the tree", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["y", "n"] })
      const { first } = used(20, { sessionTokens: 10, treeTokens: 15 })
      const refusal = yield* TokenBudget.refusal(first).pipe(Interactor.withInteractor(person.interactor))
      assert.deepStrictEqual(yield* prompts(person), [
        "The agent has used 20 of 10 tokens. Allow another 10?",
        "The agent and its subagents have used 20 of 15 tokens. Allow another 15?"
      ])
      assert.strictEqual(
        refusal,
        "The limit of 15 tokens for the agent and its subagents together is reached (20 used), and nobody allowed more tokens."
      )
    })
  )

  it.effect("asks about money in its currency, for a run, a session and a day", () =>
    Effect.gen(function* () {
      for (const [limits, prompt, refusal] of [
        [
          { runCost: 0.5 },
          "This run has cost 2.50 USD of 0.5000 USD. Allow another 0.5000 USD?",
          "The limit of 0.5000 USD for one run is reached (2.50 USD spent), and nobody allowed more tokens."
        ],
        [
          { treeCost: 2 },
          "This session has cost 2.50 USD of 2.00 USD. Allow another 2.00 USD?",
          "The limit of 2.00 USD for this session is reached (2.50 USD spent), and nobody allowed more tokens."
        ],
        [
          { dayCost: 2.5 },
          "The sessions of today have cost 2.50 USD of 2.50 USD. Allow another 2.50 USD?",
          "The limit of 2.50 USD for one day is reached (2.50 USD spent), and nobody allowed more tokens."
        ]
      ] as const) {
        const person = yield* TestInteractor.make({ script: ["n", "y"] })
        const ledger = TokenLedger.make({
          limits,
          currency: "USD",
          prices: { "m/m": { input: 2_500_000, output: 0 } }
        })
        const [root, first] = [payerOf(ledger, "root", 0), payerOf(ledger, "a")]
        TokenBudget.spend(first, { model: "m/m", usage: { inputTokens: 1, outputTokens: 0 }, kind: "call" })
        const ask = TokenBudget.refusal(root).pipe(Interactor.withInteractor(person.interactor))
        assert.strictEqual(yield* ask, refusal)
        // Another session of the tree does not ask again.
        const other = TokenBudget.refusal(first).pipe(Interactor.withInteractor(person.interactor))
        assert.strictEqual(yield* other, refusal)
        assert.deepStrictEqual(yield* prompts(person), [prompt])
        TokenBudget.begin(root, said("user"))
        // A new run has spent nothing yet.
        assert.isUndefined(yield* ask)
        assert.strictEqual((yield* prompts(person)).length, "runCost" in limits ? 1 : 2)
        assert.isFalse(TokenBudget.isReached(first))
      }
    })
  )

  it.effect("takes a no, nobody and silence for the same refusal, and says which it was", () =>
    Effect.gen(function* () {
      const silent = yield* TestInteractor.make({ script: () => TestInteractor.silent })
      const interactors = [
        (yield* TestInteractor.make({ script: ["n"] })).interactor,
        (yield* TestInteractor.make({ script: ["cancel"] })).interactor,
        Interactor.withTimeout(silent.interactor, { clarification: "1 minute" }),
        { id: "broken", relay: false, request: () => Effect.dieMessage("boom") } satisfies Interactor.Service
      ]
      const refusals: Array<string | undefined> = []
      for (const interactor of interactors) {
        const { first } = used(10, { sessionTokens: 10 })
        const asked = yield* Effect.fork(TokenBudget.refusal(first).pipe(Interactor.withInteractor(interactor)))
        yield* TestClock.adjust("1 minute")
        refusals.push(yield* Fiber.join(asked))
      }
      const limit = /^The limit of 10 tokens for this session is reached \(10 used\), and /
      for (const refusal of refusals) assert.match(refusal ?? "", limit)
      assert.match(refusals[0] ?? "", /nobody allowed more tokens\.$/)
      assert.match(refusals[1] ?? "", /nobody allowed more tokens: /)
      assert.match(refusals[2] ?? "", /nobody allowed more tokens: /)
      assert.match(refusals[3] ?? "", /asking for more failed\.$/)
    })
  )

  describe("in a tree", () => {
    const several = (ledger: TokenLedger.Service, person: TestInteractor.Service) =>
      Effect.forEach(["a", "b", "c", "d"], (id) =>
        Effect.fork(TokenBudget.refusal(payerOf(ledger, id)).pipe(Interactor.withInteractor(person.interactor)))
      )

    it.effect("sessions that reach its limit together ask once, and all go on with a yes", () =>
      Effect.gen(function* () {
        const answer = yield* Deferred.make<string>()
        const person = yield* TestInteractor.make({
          script: [TestInteractor.wait(Deferred.await(answer))]
        })
        const { ledger } = used(10, { treeTokens: 10 })
        const fibers = yield* several(ledger, person)
        yield* settle
        assert.strictEqual((yield* person.shown).length, 1)
        yield* Deferred.succeed(answer, "y")
        for (const fiber of fibers) assert.isUndefined(yield* Fiber.join(fiber))
        assert.strictEqual((yield* person.shown).length, 1)
      })
    )

    it.effect("a no is the answer to all of them, and to whoever comes later", () =>
      Effect.gen(function* () {
        const person = yield* TestInteractor.make({ script: ["n"] })
        const { first, ledger } = used(10, { treeTokens: 10 })
        const fibers = yield* several(ledger, person)
        const refusals = yield* Effect.forEach(fibers, Fiber.join)
        const later = yield* TokenBudget.refusal(first).pipe(Interactor.withInteractor(person.interactor))
        for (const refusal of [...refusals, later]) assert.match(refusal ?? "", /together is reached/)
        assert.strictEqual((yield* person.shown).length, 1)
      })
    )

    it.effect("when the one that asks is cancelled, the next one asks", () =>
      Effect.gen(function* () {
        const person = yield* TestInteractor.make({ script: [TestInteractor.silent, "y"] })
        const { ledger } = used(10, { treeTokens: 10 })
        const [asker, ...others] = yield* several(ledger, person)
        yield* settle
        assert(asker !== undefined)
        const exit = yield* Fiber.interrupt(asker)
        assert.isTrue(Exit.isInterrupted(exit))
        for (const fiber of others) assert.isUndefined(yield* Fiber.join(fiber))
        assert.strictEqual((yield* person.shown).length, 2)
      })
    )

    it.effect("each session has a limit and a question of its own", () =>
      Effect.gen(function* () {
        const person = yield* TestInteractor.make({ script: ["n", "y"] })
        const { first, ledger } = used(10, { sessionTokens: 10 })
        const second = payerOf(ledger, "b")
        TokenBudget.spend(second, { model: "m/m", usage: { inputTokens: 0, outputTokens: 11 }, kind: "call" })
        const ask = (payer: TokenBudget.Payer) =>
          TokenBudget.refusal(payer).pipe(Interactor.withInteractor(person.interactor))
        assert.isString(yield* ask(first))
        assert.isUndefined(yield* ask(second))
      })
    )

    it.effect("a refusal is forgotten when a person speaks to the root, and not before", () =>
      Effect.gen(function* () {
        const person = yield* TestInteractor.make({ script: ["n", "y"] })
        const { first, ledger } = used(10, { treeTokens: 10 })
        const root = payerOf(ledger, "root", 0)
        const refusal = TokenBudget.refusal(first).pipe(Interactor.withInteractor(person.interactor))
        assert.isString(yield* refusal)
        TokenBudget.begin(root, said("child"))
        TokenBudget.begin(first, said("user"))
        assert.isString(yield* refusal)
        assert.strictEqual((yield* person.shown).length, 1)
        TokenBudget.begin(root, said("user"))
        assert.isUndefined(yield* refusal)
        assert.strictEqual((yield* person.shown).length, 2)
      })
    )
  })
})

describe("an agent with a limit", () => {
  const using = (tokens: number): Kit.Step => ({
    text: "Working.",
    tools: [{ name: "work", params: { name: "a" } }],
    usage: { input: tokens, output: 0 }
  })
  const limited = (model: ReadonlyArray<Kit.Step>, person: TestInteractor.Script) =>
    Kit.start({ model, person, runtime: { tokens: { limits: { treeTokens: 100 } } } })

  it.scoped("stops before the next model call when nobody allows more, and says so", () =>
    Effect.gen(function* () {
      const kit = yield* limited([using(60), using(60), { text: "never said" }], ["n", "y"])
      const end = yield* kit.agent.run("go")
      assert.deepStrictEqual(end, {
        _tag: "Failed",
        error:
          "The limit of 100 tokens for the agent and its subagents together is reached (120 used), and nobody allowed more tokens.",
        steps: 2
      } as TurnEnd)
      assert.strictEqual((yield* kit.of("ModelCallStarted")).length, 2)
      assert.strictEqual((yield* kit.of("ModelRetried")).length, 0)
      assert.deepStrictEqual(
        (yield* kit.of("InteractionRequested")).map(({ kind }) => kind),
        ["Confirm"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
      // The person speaks again: the question is put again, and this time the answer is yes.
      assert.deepStrictEqual(yield* kit.agent.run("go on"), {
        _tag: "Completed",
        text: "never said",
        steps: 1
      } as TurnEnd)
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("goes on in the same turn when a person allows more", () =>
    Effect.gen(function* () {
      const kit = yield* limited([using(100), using(10), { text: "Done." }], ["y"])
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      assert.strictEqual((yield* kit.of("InteractionRequested")).length, 1)
      const totals = kit.agent.ledger.totals()
      assert.deepStrictEqual([totals.calls, totals.inputTokens], [3, 110])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("says once of a model without a price that no limit of money holds it", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [using(60), using(60), { text: "Done." }],
        person: [],
        runtime: { policy: Policy.make({ defaultPolicy: "allow" }), tokens: { limits: { treeCost: 1 } } }
      })
      assert.strictEqual((yield* kit.agent.run("go"))._tag, "Completed")
      const told = (yield* kit.of("AgentError")).map(({ message }) => message)
      assert.lengthOf(told, 1)
      assert.match(
        told[0] ?? "",
        /^The limit of money does not count \S+, because its price is unknown\. Set its price/
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("can be cancelled while it asks", () =>
    Effect.gen(function* () {
      const kit = yield* limited([using(100), { text: "never said" }], () => TestInteractor.silent)
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* kit.person.next
      yield* kit.agent.cancel("user")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Cancelled")
      assert.deepStrictEqual(yield* kit.wrong, [])
      assert.strictEqual((yield* kit.of("InteractionCancelled")).length, 1)
    })
  )

  it.scoped("counts retries and calls whose usage nobody told", () =>
    Effect.gen(function* () {
      const fails: Kit.Step = { error: "rate_limit" }
      const kit = yield* Kit.start({ model: [fails, fails, { text: "Done." }] })
      const running = yield* Effect.fork(kit.agent.run("go"))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      const { calls, retries, unknownCalls } = kit.agent.ledger.totals()
      assert.deepStrictEqual([calls, retries, unknownCalls], [1, 2, 1])
      assert.deepStrictEqual([...kit.agent.ledger.byAgent().keys()], ["main"])
    })
  )
})
