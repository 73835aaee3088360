/** Thousands of interjections, at moments and in orders that nobody chose. */
import * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Model from "../../src/model/Model.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as History from "../../src/conversation/History.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Runs from "../kit/Runs.js"
import * as Kit from "../kit/session.js"
import * as Shuffled from "../kit/Shuffled.js"
import * as VirtualClock from "../kit/VirtualClock.js"

const runs = Runs.of(100)
const words = 100

/** One agent that works on something all the time, and a person who never stops talking. */
const drive = (seed: number) => {
  const random = Shuffled.random(seed)
  const below = (n: number) => Math.floor(random() * n)
  const pick = <A>(items: ReadonlyArray<A>): A => items[below(items.length)] as A
  const pause = Effect.suspend(() => Effect.repeatN(Effect.yieldNow(), below(5)))
  const time = VirtualClock.make()
  const wrong: Array<string> = []
  /** What the person said and did not take back, in order. */
  const said: Array<string> = []
  const takenBack = new Set<string>()
  /** Ids that a model call has been given. */
  const seen = new Set<string>()
  const idsIn = (messages: ReadonlyArray<Prompt.Message>) =>
    messages.flatMap((message) => History.metadata(message).messageId ?? [])

  const step = (): Kit.Step =>
    below(3) === 0
      ? { text: "done", chunks: 1 + below(3) }
      : {
          text: "words",
          chunks: 2,
          tools: Array.from({ length: 1 + below(3) }, () => ({
            name: "work",
            params: { name: pick(["a", "b", "slow"]) }
          }))
        }
  const model: Model.Service = {
    id: "test/random",
    contextWindow: 2_000,
    stream: ({ prompt }) => {
      for (const id of idsIn(prompt.content)) seen.add(id)
      const failure = new Model.Overloaded({ model: "test/random", message: "busy", status: 529 })
      if (below(10) === 0) return Stream.fail(failure)
      return Kit.parts(step()).pipe(
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
        person: () => ({
          react: (dialog) => Effect.flatMap(pause, () => TestInteractor.type(pick(["y", "n", "t"])).react(dialog))
        }),
        runtime: {
          policy: PermissionFile.policy({}),
          compaction: {
            ...CompactionConfig.defaults,
            type: pick(["truncate", "summarize", "hybrid"] as const),
            notifyOnGc: false
          }
        },
        agent: {
          limits: { maxSteps: 4 + below(20), retryDelay: "1 second", modelAttempts: 100, identicalErrors: 1_000 }
        }
      })
      const { agent } = kit
      const cancels = below(2) === 0
      for (let left = words; left > 0; left--) {
        // Nothing at all, some scheduling, or some time between two words.
        switch (below(8)) {
          case 0:
            break
          case 1:
            yield* time.advance(below(4) * 1_000)
            break
          default:
            yield* pause
        }
        if (cancels && below(12) === 0) {
          if (below(2) === 0) for (const { id } of yield* Effect.orDie(agent.takeBack())) takenBack.add(id)
          yield* Effect.fork(agent.cancel("user"))
        }
        said.push((yield* Effect.orDie(agent.send(`word ${left}`))).id)
      }
      const waiting = yield* Effect.fork(agent.awaitIdle)
      while (Option.isNone(yield* waiting.poll)) yield* time.advance(1_000)

      const events = yield* kit.events
      const expected = said.filter((id) => !takenBack.has(id))
      // Compaction forgets turns; what it left is in order, and nothing is there twice.
      const kept = idsIn(agent.history.messages)
      if (new Set(kept).size !== kept.length) wrong.push("something is in the history twice")
      const places = kept.map((id) => expected.indexOf(id))
      if (places.includes(-1)) wrong.push("something that was taken back is in the history")
      if (places.some((place, index) => index > 0 && place <= (places[index - 1] ?? 0)))
        wrong.push("the history is out of order")
      const compacted = events.some((event) => event._tag === "CompactionEnded" && event.removed > 0)
      if (!compacted && kept.length !== expected.length)
        wrong.push(`${expected.length - kept.length} are not in the history`)
      // A turn that was cancelled before its first model call may be followed by none.
      const unseen = expected.filter((id) => !seen.has(id))
      if (!cancels && unseen.length > 0) wrong.push(`${unseen.length} were never seen`)
      wrong.push(...receipts(events, cancels))
      yield* agent.shutdown
      return [...wrong, ...(yield* kit.wrong)]
    })
  ).pipe(Effect.withScheduler(new Shuffled.Shuffled(random)), Effect.withClock(time.clock))
}

/** Each interjection is acknowledged once, after it was told, in order, and before the next model call but one. */
const receipts = (events: ReadonlyArray<AgentEvent>, cancels: boolean): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  let open: Array<string> = []
  for (const event of events) {
    if (event._tag === "UserInterjected") open.push(event.messageId)
    if (event._tag !== "InterjectionAcknowledged") continue
    const at = open.indexOf(event.messageId)
    if (at < 0) wrong.push(`${event.messageId} was acknowledged without being told, or twice`)
    if (at > 0 && !cancels) wrong.push(`${event.messageId} overtook ${at} others`)
    open = open.filter((id) => id !== event.messageId)
  }
  if (!cancels && open.length > 0) wrong.push(`${open.length} were not acknowledged`)
  return wrong
}

describe("thousands of interjections", () => {
  it("are each in the history once, in order, seen by the model, and break nothing", async () => {
    for (let seed = 1; seed <= runs; seed++) {
      assert.strictEqual((await Effect.runPromise(drive(seed))).join("\n"), "", `seed ${seed}`)
    }
  })
})
