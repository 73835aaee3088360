/**
 * How many steps of Effect a turn takes. Each costs 0.1 to 0.3 µs and some bytes, in every turn of every agent; a fast path
 * that is missed by mistake shows here and nowhere else.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as Supervisor from "effect/Supervisor"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Agents from "../kit/agents.js"

/** Counts the steps of the fibers that begin under it, and of theirs. */
class Counter extends Supervisor.AbstractSupervisor<number> {
  count = 0
  fibers = 0

  override value = Effect.sync(() => this.count)

  override onStart(): void {
    this.fibers++
  }

  override onEffect(_: Fiber.RuntimeFiber<unknown, unknown>): void {
    this.count++
  }
}

interface Life {
  readonly interactor: Interactor.Service
  readonly others?: ReadonlyArray<Interactor.Service>
  readonly policy?: PermissionFile.Policy
}

/** The steps of an agent that has one call in each of so many steps of its run. */
const stepsOf = (calls: number, { interactor, others = [], policy }: Life) =>
  Effect.suspend(() => {
    const counter = new Counter()
    const main = Array.from({ length: calls }, (_, i) => ({ tools: [{ name: "add", params: { a: i, b: 1 } }] }))
    const script = { agents: { main: [...main, { text: "done" }] } }
    return Effect.gen(function* () {
      const agent = yield* Agent.startWith([interactor, ...others])
      const end = yield* agent.run("go")
      assert.strictEqual(end._tag, "Completed")
      return { steps: counter.count, fibers: counter.fibers }
    }).pipe(
      Effect.scoped,
      Effect.provide(Agents.runtime(script, policy === undefined ? {} : { policy })),
      Effect.provide(Layer.merge(Supervisor.addSupervisor(counter), RuntimeFlags.enableOpSupervision))
    )
  })

/** The least of some runs: one that took long gave way to the event loop, which is a step or two more. */
const least = (calls: number, life: Life) =>
  Effect.map(Effect.all(Arr.replicate(stepsOf(calls, life), 5)), (runs) => ({
    steps: Math.min(...runs.map(({ steps }) => steps)),
    fibers: Math.min(...runs.map(({ fibers }) => fibers))
  }))

/** The steps and fibers of one turn among others, without the start and the end of its agent. */
const perTurn = (life: Life) =>
  Effect.gen(function* () {
    const few = yield* least(4, life)
    const many = yield* least(24, life)
    return { steps: (many.steps - few.steps) / 20, fibers: (many.fibers - few.fibers) / 20 }
  })

/** As {@link perTurn}, again where all runs took long, as they do on a machine that has more to do. */
const within = (limit: number, life: Life) =>
  Effect.repeat(perTurn(life), { until: ({ steps }) => steps <= limit, times: 3 })

/** A channel at which somebody allows everything. */
const approving = (id: string) =>
  Effect.gen(function* () {
    const channel = yield* QueueChannel.make({ id })
    const yes = Effect.flatMap(channel.take, (dialog) =>
      dialog._tag === "Opened"
        ? channel.answer(dialog.request.requestId, { decision: "allow", scope: "once" })
        : Effect.void
    )
    yield* Effect.forkScoped(Effect.forever(yes))
    return channel.interactor
  })

describe("the steps of a turn", () => {
  it.scopedLive("with a call that a rule allows", () =>
    Effect.gen(function* () {
      const { interactor } = yield* QueueChannel.make()
      assert.isAtMost((yield* within(25, { interactor, policy: Agents.allowAll })).steps, 25)
    })
  )

  it.scopedLive("with a call that a person approves", () =>
    Effect.gen(function* () {
      assert.isAtMost((yield* within(50, { interactor: yield* approving("one") })).steps, 50)
    })
  )

  it.scopedLive("with a call on which three have to agree, for whom no fiber is begun", () =>
    Effect.gen(function* () {
      const interactor = yield* approving("one")
      const alone = yield* perTurn({ interactor })
      const others = [yield* approving("two"), yield* approving("three")]
      const policy = PermissionFile.policy({ approvals: [{ tools: ["add"], quorum: 3 }] })
      const agreed = yield* within(58, { interactor, others, policy })
      assert.strictEqual(agreed.fibers, alone.fibers)
      assert.isAtMost(agreed.steps, 58)
    })
  )
})
