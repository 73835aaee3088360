/**
 * A process that does one system's share of one workload.
 *
 * Each system has a process of its own, so none warms up or clutters the engine for another; samples are asked for one at a
 * time over the process's message channel, so systems can take turns.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { type ChildProcess, fork } from "node:child_process"
import type { Sample, Workload, Workloads } from "./Workload.js"

export const systems = ["ours", "limit", "ai", "machine"] as const
export type System = (typeof systems)[number]

/** Starts the process; it ends with the scope. */
export const open = (system: System, workload: string): Effect.Effect<Workload, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => fork(entry(), ["--worker", system, workload], { execArgv: ["--expose-gc"] })),
      (child) => Effect.sync(() => child.disconnect())
    ),
    (child) => ({ sample: (budget) => ask(child, `${system} ${workload}`, budget) })
  )

/** What the process does: samples, each when it is asked for. */
export const serve = (system: string, name: string): Effect.Effect<never> =>
  Effect.scoped(
    Effect.gen(function* () {
      process.once("disconnect", () => process.exit(0))
      const { workloads } = yield* load(system)
      const make = workloads[name]
      if (make === undefined) return yield* Effect.dieMessage(`${system} has no workload ${name}.`)
      const workload = yield* make
      return yield* Effect.forever(
        Effect.flatMap(nextBudget, (budget) =>
          Effect.flatMap(Effect.exit(workload.sample(budget)), (exit) => reply(replyOf(exit)))
        )
      )
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Reply = { readonly sample: Sample } | { readonly failure: string }

const entry = (): string => process.argv[1] ?? ""

/** Loaded when needed: no system's code is in another's process. */
const load = (system: string): Effect.Effect<{ readonly workloads: Workloads }> => {
  switch (system) {
    case "ours":
      return Effect.promise(() => import("./system/Assent.js"))
    case "limit":
      return Effect.promise(() => import("./system/Limit.js"))
    case "ai":
      return Effect.promise(() => import("./system/EffectAi.js"))
    case "machine":
      return Effect.promise(() => import("./system/Machine.js"))
    default:
      return Effect.dieMessage(`There is no system ${system}.`)
  }
}

const ask = (child: ChildProcess, what: string, budget: number): Effect.Effect<Sample> =>
  Effect.async((resume) => {
    const onMessage = (message: Reply) => {
      child.off("exit", onExit)
      resume(
        "sample" in message
          ? Effect.succeed(message.sample)
          : Effect.dieMessage(`${what} went wrong: ${message.failure}`)
      )
    }
    const onExit = () => {
      child.off("message", onMessage)
      resume(Effect.dieMessage(`${what} went away in the middle.`))
    }
    child.once("message", onMessage)
    child.once("exit", onExit)
    child.send(budget)
  })

const nextBudget: Effect.Effect<number> = Effect.async((resume) => {
  process.once("message", (budget: number) => resume(Effect.succeed(budget)))
})

const replyOf = (exit: Exit.Exit<Sample>): Reply =>
  Exit.isSuccess(exit) ? { sample: exit.value } : { failure: Cause.pretty(exit.cause) }

const reply = (message: Reply): Effect.Effect<void> =>
  Effect.async((resume) => {
    process.send?.(message, () => resume(Effect.void))
  })
