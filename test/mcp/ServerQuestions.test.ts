import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as fc from "fast-check"
import { SessionId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import type { Asked } from "../../src/mcp/McpClient.js"
import * as ServerQuestions from "../../src/mcp/ServerQuestions.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Runs from "../kit/Runs.js"

const asked: Asked = {
  mode: "form",
  message: "Which?",
  schema: { type: "object", properties: { name: { type: "string" } } },
  url: ""
}

interface Caller {
  readonly tree: number
  readonly agent: number
}

const session = ({ agent, tree }: Caller) => SessionId.make(`ses_${tree}_${agent}`)

/** Agent 0 of a tree is its root. */
const originOf = (caller: Caller): Origin.Origin => ({
  sessionId: session(caller),
  rootSessionId: session({ ...caller, agent: 0 }),
  agent: caller.agent === 0 ? "main" : `main/agent${caller.agent}`,
  depth: caller.agent === 0 ? 0 : 1
})

/** The answer of the server's question, and who was asked what, with these calls in flight. */
const play = (callers: ReadonlyArray<Caller>) =>
  Effect.gen(function* () {
    const own = new Map<string, TestInteractor.Service>()
    const personOf = (key: string) =>
      Effect.gen(function* () {
        const known = own.get(key) ?? (yield* TestInteractor.make({ id: key, script: () => key, dialogs: "unbounded" }))
        own.set(key, known)
        return known
      })
    const people = new Map<SessionId, Interactor.Service>()
    for (const caller of callers) {
      const root = yield* personOf(`root${caller.tree}`)
      people.set(originOf(caller).rootSessionId, root.interactor)
    }
    const questions = new ServerQuestions.ServerQuestions("legacy", people)
    const done = yield* Deferred.make<void>()
    const calls = yield* Effect.forEach(callers, (caller) =>
      Effect.gen(function* () {
        const person = yield* personOf(caller.agent === 0 ? `root${caller.tree}` : `${caller.tree}/${caller.agent}`)
        return yield* questions
          .during(() => Deferred.await(done))
          .pipe(Origin.withOrigin(originOf(caller)), Interactor.withInteractor(person.interactor), Effect.fork)
      })
    )
    yield* Effect.yieldNow()
    yield* Effect.yieldNow()
    const answer = yield* Effect.promise((signal) => questions.askUnnamed(asked, signal))
    const shown: Record<string, string> = {}
    for (const [key, person] of own) {
      for (const { interaction } of yield* person.shown)
        if (interaction._tag === "Elicit") shown[key] = interaction.title
    }
    yield* Deferred.succeed(done, undefined)
    yield* Effect.forEach(calls, Fiber.join)
    return { answer, shown }
  })

/** Who may be asked, by the contract. */
const expected = (callers: ReadonlyArray<Caller>): string | undefined => {
  const [first] = callers
  if (first === undefined) return undefined
  const agents = new Set(callers.map(({ agent, tree }) => (agent === 0 ? `root${tree}` : `${tree}/${agent}`)))
  const trees = new Set(callers.map(({ tree }) => tree))
  if (agents.size === 1) return [...agents][0]
  return trees.size === 1 ? `root${first.tree}` : undefined
}

/** Questions of a server while calls begin and end in this order, and whether each reached who may be asked then. */
const stepped = (plan: ReadonlyArray<number>, callers: ReadonlyArray<Caller>) =>
  Effect.gen(function* () {
    const people = new Map<SessionId, Interactor.Service>()
    const personOf = (key: string) => TestInteractor.make({ id: key, script: () => key, dialogs: "unbounded" })
    for (const tree of [0, 1]) people.set(session({ tree, agent: 0 }), (yield* personOf(`root${tree}`)).interactor)
    const questions = new ServerQuestions.ServerQuestions("legacy", people)
    const running = new Map<number, { readonly end: Effect.Effect<unknown> }>()
    const wrong: Array<string> = []
    for (const step of plan) {
      const at = step % (callers.length + 1)
      const caller = callers[at]
      const call = running.get(at)
      if (caller === undefined) {
        const who = expected([...running.keys()].flatMap((one) => callers[one] ?? []))
        const answer = yield* Effect.promise((signal) => questions.askUnnamed(asked, signal))
        const heard = answer.action === "accept" ? String(answer.content?.["name"]) : undefined
        if (heard !== who) wrong.push(`${heard} answered for ${who}`)
      } else if (call === undefined) {
        const key = caller.agent === 0 ? `root${caller.tree}` : `${caller.tree}/${caller.agent}`
        const done = yield* Deferred.make<void>()
        const fiber = yield* questions
          .during(() => Deferred.await(done))
          .pipe(
            Origin.withOrigin(originOf(caller)),
            Interactor.withInteractor((yield* personOf(key)).interactor),
            Effect.fork
          )
        yield* Effect.yieldNow()
        yield* Effect.yieldNow()
        running.set(at, { end: Effect.zipRight(Deferred.succeed(done, undefined), Fiber.join(fiber)) })
      } else {
        yield* call.end
        running.delete(at)
      }
    }
    yield* Effect.forEach(running.values(), ({ end }) => end)
    return wrong
  })

const callers = fc.array(fc.record({ tree: fc.nat(1), agent: fc.nat(2) }), { maxLength: 4 })

describe("a question that names no call", () => {
  it.live(
    "reaches nobody of another call, in whatever order calls of two agents begin, ask and end",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(fc.nat(5), { minLength: 4, maxLength: 20 }),
            fc.constantFrom(
              [
                { tree: 0, agent: 1 },
                { tree: 0, agent: 2 }
              ],
              [
                { tree: 0, agent: 0 },
                { tree: 1, agent: 0 }
              ]
            ),
            async (plan, callers) => assert.deepStrictEqual(await Effect.runPromise(stepped(plan, callers)), [])
          ),
          { numRuns: Runs.of(1_000) }
        )
      ),
    { timeout: 60_000 }
  )

  it.live(
    "reaches the one call, the one agent or the root's people, and nobody of another tree",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(callers, async (callers) => {
            const { answer, shown } = await Effect.runPromise(play(callers))
            const who = expected(callers)
            assert.deepStrictEqual(Object.keys(shown), who === undefined ? [] : [who])
            assert.deepStrictEqual(
              answer,
              who === undefined ? { action: "cancel" } : { action: "accept", content: { name: who } }
            )
            const isSure = callers.length === 1
            if (who !== undefined)
              assert.strictEqual(shown[who]?.includes("it does not say for which of them"), !isSure)
          }),
          { numRuns: Runs.of(1_000) }
        )
      ),
    { timeout: 60_000 }
  )
})
