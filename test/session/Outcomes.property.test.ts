/** Whatever is answered, cancelled, halted, interrupted, refused or broken, and when: each call has one end and one decision. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as AuditRecord from "../../src/audit/AuditRecord.js"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Runs from "../kit/Runs.js"
import * as Kit from "../kit/session.js"
import * as Shuffled from "../kit/Shuffled.js"
import * as VirtualClock from "../kit/VirtualClock.js"

const runs = Runs.of(300)

const drive = (seed: number) => {
  const random = Shuffled.random(seed)
  const below = (n: number) => Math.floor(random() * n)
  const pick = <A>(items: ReadonlyArray<A>): A => items[below(items.length)] as A
  const pause = Effect.suspend(() => Effect.repeatN(Effect.yieldNow(), below(6)))
  const time = VirtualClock.make()
  const entries: Array<AuditRecord.AuditEntry> = []
  const trail: AuditTrail.Service = {
    record: (entry) =>
      Effect.flatMap(
        Effect.zipRight(
          pause,
          Effect.sync(() => void entries.push(entry))
        ),
        () =>
          below(10) === 0
            ? new AuditTrail.AuditUnwritable({ directory: "nowhere", reason: "the disk is full" })
            : Effect.void
      ),
    release: () => pause
  }
  const step = (): Kit.Step => ({
    tools: Array.from({ length: 1 + below(4) }, () => ({ name: "work", params: { name: pick(["a", "b", "slow"]) } }))
  })

  return Effect.scoped(
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: Array.from({ length: 12 }, step),
        worker: (name) => (name === "slow" ? Effect.as(Effect.sleep("2 seconds"), name) : Effect.as(pause, name)),
        person: () => {
          if (below(6) === 0) return TestInteractor.silent
          return {
            react: (dialog) =>
              Effect.flatMap(pause, () => TestInteractor.type(pick(["y", "y", "n", "c: no", "t"])).react(dialog))
          }
        },
        runtime: {
          policy: PermissionFile.policy({}),
          guards: [() => (below(8) === 0 ? Effect.zipRight(pause, Effect.fail("not now")) : Effect.void)]
        },
        agent: { limits: { parallelTools: 1 + below(3), identicalErrors: 1_000, maxSteps: 12 } }
      })
      const { agent } = kit
      for (let turn = 0; turn < 3; turn++) {
        yield* agent.send("go")
        for (let i = 0; i < 6; i++) {
          yield* pause
          if (below(3) === 0) yield* time.advance(1_000)
          switch (below(8)) {
            case 0:
              yield* Effect.fork(agent.cancel())
              break
            case 1:
              yield* Effect.fork(agent.halt("nobody is there"))
              break
            case 2: {
              const calls = (yield* kit.of("ToolCallProposed")).map(({ toolCallId }) => toolCallId)
              const toolCallId = calls.at(-1 - below(3))
              if (toolCallId !== undefined) yield* Effect.fork(Effect.ignore(agent.interrupt({ toolCallId })))
              break
            }
          }
        }
        const resting = yield* Effect.fork(agent.cancel())
        for (let i = 0; i < 40 && Option.isNone(yield* resting.poll); i++) yield* time.advance(1_000)
      }
      const stopping = yield* Effect.fork(agent.shutdown)
      for (let i = 0; i < 40 && Option.isNone(yield* stopping.poll); i++) yield* time.advance(1_000)

      const wrong = [...(yield* kit.wrong)]
      const proposed = (yield* kit.of("ToolCallProposed")).map(({ toolCallId }) => toolCallId)
      const ended = (yield* kit.of("ToolCallEnded")).map(({ toolCallId }) => toolCallId)
      const resolved = yield* kit.of("PermissionResolved")
      if ([...proposed].sort().join() !== [...ended].sort().join()) wrong.push("not every call has one end")
      const asked = entries.filter((entry) => entry.class === "permission")
      for (const { granted, method, requestId, toolCallId } of resolved) {
        const [record, second] = asked.filter((entry) => entry.toolCallId === toolCallId)
        if (record === undefined || second !== undefined) wrong.push(`${toolCallId}: not one record`)
        if (record?.requestId !== requestId) wrong.push(`${toolCallId}: the record names another request`)
        const unwritten = method === "check_failed"
        if (!unwritten && (record?.outcome === "granted") !== granted) wrong.push(`${toolCallId}: told otherwise`)
      }
      if (asked.length !== resolved.length) wrong.push(`${asked.length} records, ${resolved.length} decisions`)
      return wrong
    })
  ).pipe(
    Effect.provideService(AuditTrail.AuditTrail, trail),
    Effect.withScheduler(new Shuffled.Shuffled(random)),
    Effect.withClock(time.clock)
  )
}

describe("a call", () => {
  it("has one result, one decision and one record, and every request one end, in any order of things", async () => {
    for (let seed = 1; seed <= runs; seed++) {
      assert.strictEqual((await Effect.runPromise(drive(seed))).join("\n"), "", `seed ${seed}`)
    }
  }, 120_000)
})
