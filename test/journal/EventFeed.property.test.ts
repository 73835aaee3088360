/**
 * Random stories of a stored family, and a page whose reader comes and goes: what it shows is what one shows that stayed.
 *
 * ```
 *  story ─► events ─┬─► a page that never left, process after process
 *                   ├─► a page that is cut at random, at any event, and reads on behind its position
 *                   └─► a page that is made anew
 * ```
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as FastCheck from "fast-check"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import { Page } from "../kit/Page.js"
import { settle } from "../kit/Recorder.js"
import * as Often from "../kit/Runs.js"

const secret = "correct horse battery"

type Move = "look" | "time" | "interject" | "leave" | "cancel"

interface Story {
  readonly main: ReadonlyArray<ScriptedModel.Step>
  readonly helper: ReadonlyArray<ScriptedModel.Step>
  readonly answers: ReadonlyArray<string>
  readonly moves: ReadonlyArray<readonly [move: Move, cut: number]>
  /** After so many moves the process ends; another one goes on. */
  readonly ends: number
}

const words = FastCheck.constantFrom("Let me look.", `It is ${secret}, I think.`, "One.\n\nTwo.", "x".repeat(50))
const tool = (withHelper: boolean) =>
  FastCheck.oneof(
    FastCheck.constantFrom("a", "b", "c").map((name): ScriptedModel.ToolUse => ({ name: "work", params: { name } })),
    FastCheck.constant<ScriptedModel.ToolUse>({ name: "nothing" }),
    ...(withHelper
      ? [FastCheck.constantFrom(Family.delegate("helper"), Family.spawn("helper"))]
      : [FastCheck.constant<ScriptedModel.ToolUse>({ name: "work", params: {} })])
  )
const step = (withHelper: boolean): FastCheck.Arbitrary<ScriptedModel.Step> =>
  FastCheck.record(
    {
      text: words,
      thinking: words,
      tools: FastCheck.array(tool(withHelper), { maxLength: 3 }),
      chunks: FastCheck.integer({ min: 1, max: 5 }),
      chunkDelay: FastCheck.constant("1 second" as const),
      error: FastCheck.constantFrom("network" as const)
    },
    { requiredKeys: ["chunks", "chunkDelay"] }
  ).map(({ error, ...step }) =>
    error !== undefined && step.text?.startsWith("One") === true ? { ...step, error } : step
  )

const story: FastCheck.Arbitrary<Story> = FastCheck.record({
  main: FastCheck.array(step(true), { minLength: 1, maxLength: 5 }),
  helper: FastCheck.array(step(false), { minLength: 1, maxLength: 3 }),
  answers: FastCheck.array(FastCheck.constantFrom("y", "n", "c: rather not"), { minLength: 8, maxLength: 8 }),
  moves: FastCheck.array(
    FastCheck.tuple(
      FastCheck.constantFrom<Move>("look", "look", "time", "time", "interject", "leave", "cancel"),
      FastCheck.integer({ min: 0, max: 9 })
    ),
    { minLength: 20, maxLength: 40 }
  ),
  ends: FastCheck.integer({ min: 5, max: 60 })
})

/** As over a wire. */
const sent = (event: AgentEvent): AgentEvent => JSON.parse(JSON.stringify(event)) as AgentEvent

const play = ({ answers, ends, helper, main, moves }: Story) =>
  Effect.gen(function* () {
    const open = yield* SessionStore.makeMemory
    const store = (pid: number) => open({ pid, host: "here", isAlive: () => false })
    const stayed = new Page()
    const cut = new Page()
    let reconnects = 0
    let asked = 0
    const reads = (agent: Agent.Agent, page: Page, after: number, most = Infinity) => {
      let count = 0
      return Agent.events(agent, { after }).pipe(
        Stream.runForEachWhile((event) =>
          Effect.sync(() => {
            if (count++ >= most) return false
            page.take(sent(event))
            return true
          })
        ),
        Effect.orDie,
        Effect.forkScoped
      )
    }
    const life = (pid: number, persistence: Persistence.Persistence, task: string, most: number) =>
      Effect.gen(function* () {
        const family = yield* Family.startKept({
          script: { main: [...main, { text: "done" }], helper: [...helper, { text: "helped" }] },
          person: () => ({
            react: (dialog) =>
              Effect.zipRight(
                Effect.sleep("1 second"),
                Effect.suspend(() => TestInteractor.type(answers[asked++ % answers.length] ?? "y").react(dialog))
              )
          }),
          worker: (name) => Effect.as(Effect.sleep("1 second"), `worked ${name} ${secret}`),
          runtime: { secrets: [Redacted.make(secret)] },
          agent: { persistence }
        })
        const { agent } = family
        yield* reads(agent, stayed, stayed.position)
        let reader = yield* reads(agent, cut, cut.position)
        const compare = (most: number) =>
          Effect.gen(function* () {
            yield* settle
            yield* Fiber.interrupt(reader)
            cut.reconnect()
            // Some events, then all.
            reader = yield* reads(agent, cut, cut.position, most)
            yield* settle
            yield* Fiber.interrupt(reader)
            cut.reconnect()
            const anew = new Page()
            const second = yield* reads(agent, anew, 0)
            reader = yield* reads(agent, cut, cut.position)
            yield* settle
            yield* Fiber.interrupt(second)
            reconnects += 3
            assert.deepStrictEqual(cut.shown, stayed.shown, `a page that was cut, process ${pid}`)
            if (pid === 1) assert.deepStrictEqual(anew.shown, stayed.shown, "a page that is made anew")
            assert.notInclude(JSON.stringify(cut.shown), secret)
          })
        yield* Effect.fork(agent.run(task))
        for (const [index, [move, number]] of moves.slice(0, most).entries()) {
          yield* settle
          switch (move) {
            case "look":
              yield* compare(number)
              break
            case "time":
              yield* TestClock.adjust("1 second")
              break
            case "interject":
              yield* Effect.fork(agent.send(`word ${index}`))
              break
            case "leave":
              // It is away for a while.
              yield* Fiber.interrupt(reader)
              yield* TestClock.adjust("1 second")
              break
            case "cancel":
              if (number === 0) yield* Effect.fork(agent.cancel("user"))
          }
        }
        if (most < moves.length) return yield* compare(3)
        for (let i = 0; i < 200 && !(yield* agent.isIdle); i++) {
          yield* settle
          yield* TestClock.adjust("1 second")
        }
        yield* compare(1)
      })
    const scope = yield* Scope.make()
    const first = yield* Scope.extend(Persistence.begin(store(1)), scope)
    yield* Scope.extend(life(1, first, "go", ends), scope)
    yield* Effect.zipRight(
      TestClock.adjust("20 seconds").pipe(Effect.repeatN(3), Effect.fork),
      Scope.close(scope, Exit.void)
    )
    // The page stays open while the next process begins.
    stayed.reconnect()
    cut.reconnect()
    yield* Effect.scoped(
      Effect.gen(function* () {
        const next = yield* Persistence.resume(store(2), first.rootSessionId)
        yield* life(2, next, "go on", Infinity)
      })
    )
    return reconnects
  }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))

describe("a page that is made of events", () => {
  it("shows the same, however often its reader leaves, comes back and is cut", { timeout: 600_000 }, async () => {
    let reconnects = 0
    await FastCheck.assert(
      FastCheck.asyncProperty(story, async (story) => {
        reconnects += await Effect.runPromise(play(story))
      }),
      { numRuns: Often.of(160), endOnFailure: true }
    )
    assert.isAbove(reconnects, 100)
  })
})
