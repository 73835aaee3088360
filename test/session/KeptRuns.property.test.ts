/**
 * Runs of a stored agent through several processes: given up, answered, forked, closed and killed at moments that nobody chose.
 *
 * ```
 *  process 1 ──moves──► closed, interrupted, shut down or killed ──► process 2, which resumes ──► … ──► the last, where everybody says yes
 *                 └── forks, which work for themselves
 * ```
 */
import { assert, describe, it } from "@effect/vitest"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as History from "../../src/conversation/History.js"
import type { SessionId } from "../../src/core/Id.js"
import * as TurnEnd from "../../src/event/TurnEnd.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as Model from "../../src/model/Model.js"
import * as Policy from "../../src/permission/Policy.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as HistoryRules from "../kit/historyRules.js"
import * as Often from "../kit/Runs.js"
import * as Kit from "../kit/session.js"
import * as Shuffled from "../kit/Shuffled.js"
import * as VirtualClock from "../kit/VirtualClock.js"

const seeds = Often.of(240)

type Ending = "closed" | "interrupted" | "shut down" | "killed" | "left to work"

interface Run {
  readonly text: string
  readonly fiber: Fiber.RuntimeFiber<TurnEnd.TurnEnd, Agent.NotTaken>
  readonly life: number
  /** Its caller went away. */
  isLeft: boolean
}

const drive = (seed: number) => {
  const random = Shuffled.random(seed)
  const below = (n: number) => Math.floor(random() * n)
  const pick = <A>(items: ReadonlyArray<A>): A => items[below(items.length)] as A
  const pause = Effect.suspend(() => Effect.repeatN(Effect.yieldNow(), below(6)))
  const time = VirtualClock.make()
  const wrong: Array<string> = []
  let calls = 0
  /** Processes that were killed, or whose scope closed: what was given up there at last is not written down. */
  const cut = new Set<number>()
  /** What handlers have done, without those of a process that is dead. */
  const done: Array<string> = []

  const finished = <A, E>(what: string, fiber: Fiber.RuntimeFiber<A, E>) =>
    Effect.gen(function* () {
      for (let i = 0; i < 60 && Option.isNone(yield* fiber.poll); i++) yield* time.advance(1_000)
      // What is loaded late comes from the disk, in real time.
      for (let i = 0; i < 2_000 && Option.isNone(yield* fiber.poll); i++) {
        yield* Effect.promise(() => setTimeout(10))
        yield* time.advance(1_000)
      }
      if (Option.isNone(yield* fiber.poll)) wrong.push(`${what} does not end`)
    })

  const model: Model.Service = {
    id: "test/echo",
    stream: ({ prompt }) => {
      const own = prompt.content
        .filter(({ role }) => role === "user")
        .map(History.textOf)
        .findLast((text) => /^(run|fork) /.test(text))
      const wanted = below(3)
      const tools =
        wanted === 0
          ? []
          : Array.from({ length: wanted }, () => ({ name: "work", params: { name: `call ${calls++}` } }))
      return Kit.parts({ text: `for ${own}`, tools }).pipe(
        Stream.rechunk(1),
        Stream.tap(() => pause)
      )
    }
  }

  return Effect.gen(function* () {
    const open = yield* SessionStore.makeMemory
    const store = (pid: number): SessionStore.Service => {
      const inner = open({ pid, host: "here", isAlive: () => false })
      return {
        ...inner,
        lock: (id) =>
          Effect.map(inner.lock(id), (lease) => ({
            ...lease,
            append: (drafts) => Effect.zipRight(pause, Effect.zipLeft(lease.append(drafts), pause))
          }))
      }
    }
    /** A process that nobody spoke to has left nothing. */
    const written = (number: number, root: SessionId) =>
      Effect.match(store(number + 100).load(root), { onFailure: () => [], onSuccess: ({ entries }) => entries })
    const start = (persistence: Persistence.Persistence, isLast: boolean) =>
      Effect.gen(function* () {
        const life = { over: false }
        const kit = yield* Kit.start({
          model,
          worker: (name) =>
            Effect.suspend(() => {
              if (!life.over) done.push(name)
              return Effect.as(below(3) === 0 ? Effect.sleep("2 seconds") : pause, name)
            }),
          person: () => {
            if (!isLast && below(4) === 0) return TestInteractor.silent
            return {
              react: (dialog) =>
                Effect.flatMap(pause, () => TestInteractor.type(isLast ? "y" : pick(["y", "y", "n"])).react(dialog))
            }
          },
          runtime: { policy: Policy.make({}) },
          agent: { persistence, limits: { maxSteps: 6, identicalErrors: 1_000 } }
        })
        return { ...kit, life }
      })

    let root: SessionId | undefined
    const runs: Array<Run> = []
    const lives = 2 + below(3)
    for (let number = 1; number <= lives; number++) {
      const isLast = number === lives
      const scope = yield* Scope.make()
      const persistence = yield* Scope.extend(
        root === undefined
          ? Persistence.begin(store(number))
          : // A process that was killed at once has left nothing.
            Effect.catchTag(Persistence.resume(store(number), root), "SessionUnknown", () =>
              Persistence.begin(store(number))
            ),
        scope
      )
      root = persistence.rootSessionId
      const kit = yield* Scope.extend(start(persistence, isLast), scope)
      const { agent } = kit
      const mine = () => runs.filter(({ fiber, life }) => life === number && fiber.unsafePoll() === null)
      const users = () => agent.history.messages.filter(({ role }) => role === "user").map(History.textOf)
      const others: Array<readonly [move: string, fiber: Fiber.RuntimeFiber<unknown, unknown>]> = []
      for (let move = 0; move < 3 + below(8); move++) {
        switch (below(9)) {
          case 0:
          case 1:
          case 2: {
            const text = `run ${runs.length}`
            runs.push({ text, life: number, fiber: yield* Effect.fork(agent.run(text)), isLeft: false })
            break
          }
          case 3: {
            const run = pick(mine())
            if (run === undefined) break
            run.isLeft = true
            others.push(["an interruption", yield* Effect.fork(Fiber.interrupt(run.fiber))])
            break
          }
          case 4:
            others.push(["words", yield* Effect.fork(agent.send(`word ${number}.${move}`))])
            break
          case 5:
            others.push(["a cancel", yield* Effect.fork(agent.cancel("timeout"))])
            break
          case 6: {
            // A fork has none of its parent's questions, and works for itself.
            const forked = Effect.scoped(
              Effect.gen(function* () {
                const child = yield* start(yield* Persistence.fork(store(number), persistence.rootSessionId), true)
                const end = yield* child.agent.run("fork run")
                if (end._tag !== "Completed" && end._tag !== "TurnLimit") wrong.push(`a fork ended as ${end._tag}`)
                wrong.push(...HistoryRules.violations(child.agent.history.messages))
              })
            )
            others.push(["a fork", yield* Effect.fork(Effect.catchTag(forked, "SessionUnknown", () => Effect.void))])
            break
          }
          default:
            yield* time.advance(below(3) * 1_000)
        }
        if (below(3) > 0) yield* pause
      }
      const ending: Ending = isLast ? "left to work" : pick<Ending>(["closed", "interrupted", "shut down", "killed"])
      if (ending === "left to work") {
        yield* finished("the last process", yield* Effect.fork(agent.awaitIdle))
        for (const [move, fiber] of others) yield* finished(`${move} of the last process`, fiber)
        for (const { fiber, life, text } of runs) if (life === number) yield* finished(text, fiber)
        wrong.push(...HistoryRules.violations(agent.history.messages))
        const words = users().flatMap((text) => text.split("\n"))
        const entries = yield* written(number, root)
        const received = new Set(
          entries.flatMap(({ entry }) => (entry._tag === "MessageReceived" ? [entry.message.text] : []))
        )
        for (const { fiber, isLeft, life, text } of runs) {
          const times = words.filter((word) => word === text).length
          if (times > 1) wrong.push(`${text} was heard ${times} times`)
          // An interrupt may be the end of the process, so the words of a caller that left stay.
          const isKept = life === number || cut.has(life)
          if (isLeft && isKept && times === 0 && received.has(text)) wrong.push(`${text} was lost with its caller`)
          const exit = yield* fiber.poll
          if (Option.isNone(exit) || Exit.isFailure(exit.value)) continue
          const end = exit.value.value
          if (end === TurnEnd.neverBegun && !cut.has(life) && times > 0)
            wrong.push(`${text} of process ${life} never began, and was heard`)
          if (end._tag === "Completed" && !end.text.endsWith(`for ${text}`)) wrong.push(`${text} got ${end.text}`)
          if (end._tag === "Completed" && !cut.has(life) && times !== 1)
            wrong.push(`${text} completed and is not in the history`)
        }
        yield* Scope.close(scope, Exit.void)
        continue
      }
      if (ending !== "shut down") cut.add(number)
      if (ending === "killed") {
        // A dead process does nothing more. Its fibers cannot be killed, and what they do now does not count.
        yield* persistence.journal.freeze
        kit.life.over = true
        continue
      }
      // As a signal does: first the fibers of the program, then its scopes.
      const gone =
        ending === "interrupted" ? Effect.forEach(mine(), ({ fiber }) => Fiber.interrupt(fiber)) : Effect.void
      const asked = new Set((yield* agent.broker.open).map(({ requestId }) => requestId))
      const isCancelled = others.some(([move]) => move === "a cancel")
      const end = ending === "shut down" ? agent.shutdown : Effect.zipRight(gone, Scope.close(scope, Exit.void))
      yield* finished(`a process that is ${ending}`, yield* Effect.fork(end))
      for (const run of runs.filter(({ life }) => life === number)) yield* finished(`${run.text}, ${ending}`, run.fiber)
      for (const [move, fiber] of others) yield* finished(`${move}, ${ending}`, fiber)
      if (ending === "shut down") yield* finished("a scope", yield* Effect.fork(Scope.close(scope, Exit.void)))
      kit.life.over = true
      // A person may have answered meanwhile; nothing else ends a question.
      if (ending !== "shut down" && !isCancelled)
        for (const { entry } of yield* written(number, root))
          if (entry._tag === "InteractionSettled" && entry.status !== "answered" && asked.has(entry.requestId))
            wrong.push(`the question ${entry.requestId} of process ${number} was ${entry.status}, ${ending}`)
    }
    const twice = done.filter((name, i) => done.indexOf(name) !== i)
    if (twice.length > 0) wrong.push(`done twice: ${twice.join(", ")}`)
    yield* Fiber.interruptAll(runs.map(({ fiber }) => fiber)).pipe(Effect.forkDaemon)
    return wrong
  }).pipe(Effect.withScheduler(new Shuffled.Shuffled(random)), Effect.withClock(time.clock))
}

describe("runs of a stored agent", () => {
  it(
    "are heard once, end once and do nothing twice, whatever happens to their processes",
    { timeout: 600_000 },
    async () => {
      for (let seed = 1; seed <= seeds; seed++) {
        assert.deepStrictEqual(await Effect.runPromise(drive(seed)), [], `seed ${seed}`)
      }
    }
  )
})
