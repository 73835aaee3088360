/** Runs of one agent side by side, given up, cancelled and cut short at moments that nobody chose. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as History from "../../src/conversation/History.js"
import * as Id from "../../src/core/Id.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as TurnEnd from "../../src/event/TurnEnd.js"
import type * as Model from "../../src/model/Model.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as Runs from "../kit/Runs.js"
import * as Kit from "../kit/session.js"
import * as Shuffled from "../kit/Shuffled.js"
import * as VirtualClock from "../kit/VirtualClock.js"

/** What happens to an agent, one after the other, with some scheduling or time in between. */
type Move = "run" | "interrupt" | "send" | "enqueue" | "cancel" | "takeBack" | "wait" | "shutdown"

const moves: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Move>("run") },
  { weight: 3, arbitrary: fc.constant<Move>("interrupt") },
  { weight: 3, arbitrary: fc.constantFrom<Move>("send", "enqueue") },
  { weight: 2, arbitrary: fc.constantFrom<Move>("cancel", "takeBack") },
  { weight: 3, arbitrary: fc.constant<Move>("wait") },
  { weight: 1, arbitrary: fc.constant<Move>("shutdown") }
)

/** At most this many at once. */
const most = 7

interface Run {
  readonly text: string
  readonly fiber: Fiber.RuntimeFiber<TurnEnd.TurnEnd, Agent.NotTaken>
  /** It was given up before it had ended. */
  given: boolean
}

interface StaticHelp {
  readonly runs: ReadonlyArray<Run & { readonly exit: Exit.Exit<TurnEnd.TurnEnd, Agent.NotTaken> }>
  readonly events: ReadonlyArray<AgentEvent>
  readonly history: ReadonlyArray<string>
  /** Numbers of the messages that began turns of their own, in the order of the history. */
  readonly filed: ReadonlyArray<number>
  readonly cancelled: boolean
  readonly stopped: boolean
  readonly wrong: ReadonlyArray<string>
}

const drive = (plan: ReadonlyArray<Move>, seed: number) => {
  const random = Shuffled.random(seed)
  const below = (n: number) => Math.floor(random() * n)
  const pause = Effect.suspend(() => Effect.repeatN(Effect.yieldNow(), below(6)))
  const time = VirtualClock.make()
  /** It says whose turn it takes itself to work for: the last words that began a turn. */
  const model: Model.Service = {
    id: "test/echo",
    stream: ({ prompt }) => {
      const inputs = prompt.content.filter(({ role }) => role === "user").map(History.textOf)
      const own = inputs.findLast((text) => /^(run|later) /.test(text)) ?? "none"
      const calls = below(3) === 0 ? [{ name: "work", params: { name: below(3) === 0 ? "slow" : "a" } }] : []
      return Kit.parts({ text: `for ${own}`, chunks: 1 + below(2), tools: calls }).pipe(
        Stream.rechunk(1),
        Stream.tap(() => pause)
      )
    }
  }
  return Effect.scoped(
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model,
        worker: (name) => (name === "slow" ? Effect.as(Effect.sleep("3 seconds"), name) : Effect.as(pause, name)),
        agent: { limits: { maxSteps: 8, identicalErrors: 1_000 } }
      })
      const { agent } = kit
      const runs: Array<Run> = []
      const isOpen = ({ fiber }: Run) => fiber.unsafePoll() === null
      const others: Array<Fiber.RuntimeFiber<unknown, unknown>> = []
      let cancelled = false
      let stopped = false
      // Some callers go away in the moment in which their turn ends, when the next one begins.
      const snatch = Effect.map(agent.events.takeAll, (batch) => {
        for (const event of Option.getOrElse(batch, () => [])) {
          if (event._tag === "TurnStarted") working = event.input.split("\n")[0]
          if (event._tag !== "TurnEnded" || below(2) === 0) continue
          for (const run of runs.filter(({ text }) => text === working)) {
            run.given = true
            run.fiber.unsafeInterruptAsFork(FiberId.none)
          }
        }
        return Option.isSome(batch)
      })
      let working: string | undefined
      yield* Effect.fork(Effect.repeat(snatch, { while: (more) => more }))
      for (const [index, move] of plan.entries()) {
        const open = runs.filter(isOpen)
        switch (move) {
          case "run": {
            if (open.length >= most) break
            const text = `run ${index}`
            runs.push({ text, fiber: yield* Effect.fork(agent.run(text)), given: false })
            break
          }
          case "interrupt": {
            const run = open[below(open.length)]
            if (run === undefined) break
            run.given = true
            others.push(yield* Effect.fork(Fiber.interrupt(run.fiber)))
            break
          }
          case "send":
            others.push(yield* Effect.fork(agent.send(`word ${index}`)))
            break
          case "enqueue":
            others.push(yield* Effect.fork(agent.enqueue(`later ${index}`)))
            break
          case "cancel":
            cancelled = true
            others.push(yield* Effect.fork(agent.cancel("timeout")))
            break
          case "takeBack":
            // Words that were told as an interjection are only taken back from a turn that is cancelled.
            cancelled = true
            others.push(yield* Effect.fork(Effect.zipRight(agent.takeBack(), agent.cancel("timeout"))))
            break
          case "wait":
            yield* time.advance(below(5) * 1_000)
            break
          case "shutdown":
            stopped = true
            others.push(yield* Effect.fork(agent.shutdown))
        }
        if (below(3) > 0) yield* pause
      }
      const waited = yield* Effect.fork(
        Effect.zipRight(
          Effect.forEach(runs, ({ fiber }) => Fiber.await(fiber)),
          Fiber.awaitAll(others)
        )
      )
      // A run that hangs is what this bound finds.
      for (let seconds = 0; seconds < 300 && waited.unsafePoll() === null; seconds++) yield* time.advance(1_000)
      const hanging = runs.filter(isOpen).map(({ text }) => `${text} hangs`)
      if (hanging.length > 0)
        return { wrong: hanging, runs: [], events: [], history: [], filed: [], cancelled, stopped }
      const ended: Array<StaticHelp["runs"][number]> = []
      for (const run of runs) ended.push({ ...run, exit: yield* Fiber.await(run.fiber) })
      if (!stopped) {
        const idle = yield* Effect.fork(agent.awaitIdle)
        for (let seconds = 0; seconds < 300 && idle.unsafePoll() === null; seconds++) yield* time.advance(1_000)
      }
      yield* agent.shutdown
      const history = agent.history.messages.map(History.textOf)
      const filed = agent.history.messages.flatMap((message) =>
        /^(run|later) /.test(History.textOf(message)) && message.role === "user"
          ? [Number(History.metadata(message).messageId?.replace("msg_", ""))]
          : []
      )
      return { runs: ended, events: yield* kit.events, history, filed, cancelled, stopped, wrong: yield* kit.wrong }
    })
  ).pipe(
    Effect.provideService(Id.IdGenerator, Id.sequence()),
    Effect.withScheduler(new Shuffled.Shuffled(random)),
    Effect.withClock(time.clock)
  )
}

interface Turn {
  readonly input: string
  readonly reason: string
  readonly steps: number
}

/** The turns of the root in order. */
const turnsOf = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  let input = ""
  for (const event of events) {
    if (event._tag === "TurnStarted") input = event.input
    if (event._tag === "TurnEnded") turns.push({ input, reason: event.reason, steps: event.steps })
  }
  return turns
}

const violations = ({ cancelled, events, filed, history, runs, stopped, wrong }: StaticHelp): ReadonlyArray<string> => {
  const found = [...wrong]
  const turns = turnsOf(events)
  for (const { exit, given, text } of runs) {
    // Interjections may follow the words that begin a turn.
    const own = turns.filter(({ input }) => input === text || input.startsWith(`${text}\n`))
    if (own.length > 1) found.push(`${text} had ${own.length} turns`)
    if (turns.some(({ input }) => input.includes(`\n${text}`))) found.push(`${text} was read in another's turn`)
    if (history.filter((message) => message === text).length > own.length) found.push(`${text} is in the history twice`)
    if (Exit.isFailure(exit)) {
      const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
      if (failure !== undefined && !(failure._tag === "AgentStopped" && stopped))
        found.push(`${text} failed as ${failure._tag}`)
      if (failure === undefined && !(Cause.isInterruptedOnly(exit.cause) && given))
        found.push(`${text} was interrupted by nobody`)
      if (failure !== undefined && own.length > 0) found.push(`${text} was refused and worked on`)
      const [turn] = own
      if (failure === undefined && turn !== undefined && turn.reason === "completed" && turn.steps > 8)
        found.push(`${text} went on after it was given up`)
      continue
    }
    const end = exit.value
    const [turn] = own
    if (turn === undefined) {
      if (!(TurnEnd.is("Cancelled")(end) && end.reason === "shutdown" && stopped))
        found.push(`${text} had no turn and ended as ${JSON.stringify(end)}`)
      continue
    }
    const { reason, steps } = TurnEnd.report(end)
    if (reason !== turn.reason || steps !== turn.steps)
      found.push(`${text} was told ${reason} after ${steps}, and its turn ended ${turn.reason} after ${turn.steps}`)
    if (TurnEnd.is("Completed")(end) && end.text !== `for ${text}`) found.push(`${text} was told: ${end.text}`)
    if (TurnEnd.is("Cancelled")(end)) {
      if (end.reason === "timeout" && !cancelled) found.push(`${text} was cancelled by nobody`)
      if (end.reason === "shutdown" && !stopped) found.push(`${text} was shut down by nobody`)
      if (end.reason === "user") found.push(`${text} was cancelled by another's interrupt`)
    }
  }
  // The number of a message is its place among all that were filed.
  if (filed.some((number, at) => !(number > (filed[at - 1] ?? 0)))) found.push(`not in order: ${filed.join(" ")}`)
  return found
}

const ways = { own: 0, withdrawn: 0, cut: 0, never: 0, refused: 0, cancelled: 0 }

const count = ({ events, runs }: StaticHelp): void => {
  const inputs = turnsOf(events).map(({ input }) => input.split("\n")[0])
  for (const { exit, text } of runs) {
    const worked = inputs.includes(text)
    if (Exit.isFailure(exit)) {
      if (Option.isSome(Cause.failureOption(exit.cause))) ways.refused++
      else if (worked) ways.cut++
      else ways.withdrawn++
    } else if (!worked) ways.never++
    else if (exit.value._tag === "Cancelled") ways.cancelled++
    else ways.own++
  }
}

describe("runs of one agent", () => {
  it("each have the end of their own turn, whatever happens beside them", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(moves, { minLength: 1, maxLength: 24 }), fc.integer(), async (plan, seed) => {
        const told = await Effect.runPromise(drive(plan, seed))
        count(told)
        assert.strictEqual(violations(told).join("\n"), "")
      }),
      { numRuns: Runs.of(800), seed: 11, endOnFailure: false }
    )
    // A kind that became rare would prove nothing.
    for (const [way, times] of Object.entries(ways)) assert.isAbove(times, Runs.of(40), way)
  }, 120_000)
})
