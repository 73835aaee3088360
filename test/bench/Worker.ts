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
import { performance } from "node:perf_hooks"
import * as Cpu from "./Cpu.js"
import * as Peers from "./Peers.js"
import type { First, Sample, Workload, Workloads } from "./Workload.js"

/** Ours, a plain Effect loop, what people compare with, and the speed of the machine. */
export const systems = ["ours", "limit", "effect-ai", "ai-sdk", "openai-agents", "machine"] as const
export type System = (typeof systems)[number]

/** Those of them that can be measured here. */
export const available = (): ReadonlyArray<System> =>
  Peers.areInstalled() ? systems : systems.filter((system) => system !== "ai-sdk" && system !== "openai-agents")

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
      const workload = yield* named(system, name)
      return yield* Effect.forever(
        Effect.flatMap(nextBudget, (budget) =>
          Effect.flatMap(Effect.exit(workload.sample(budget)), (exit) => reply(replyOf(exit)))
        )
      )
    })
  )

/** A system's share of a workload, in this process. */
export const named = (system: string, name: string): Effect.Effect<Workload, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { workloads } = yield* Effect.promise(() => load(system))
    const make = workloads[name]
    return yield* make ?? Effect.dieMessage(`${system} has no workload ${name}.`)
  })

/**
 * What the process does that measures a first use: it sends milliseconds of the wall and on a core, and ends. It keeps away
 * from Effect, whose first use is part of what is measured.
 */
export const serveFirst = async (system: string): Promise<void> => {
  const { first } = await load(system)
  if (first === undefined) throw new Error(`${system} has no first life.`)
  const cpu = Cpu.now()
  const wall = performance.now()
  await first()
  const sample = { wall: performance.now() - wall, cpu: (Cpu.now() - cpu) / 1_000 }
  process.send?.({ sample } satisfies Reply, () => process.exit(0))
}

/** The first use of a system by a process of its own. */
export const first = (system: System): Effect.Effect<Sample> =>
  Effect.scoped(
    Effect.flatMap(
      Effect.acquireRelease(
        Effect.sync(() => fork(entry(), ["--first", system], { execArgv: ["--expose-gc"] })),
        (child) => Effect.sync(() => child.kill())
      ),
      (child) => answerOf(child, `${system} first`)
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Reply = { readonly sample: Sample } | { readonly failure: string }

const entry = (): string => process.argv[1] ?? ""

interface Loaded {
  readonly workloads: Workloads
  readonly first?: First
}

/** Loaded when needed: no system's code is in another's process. */
const load = (system: string): Promise<Loaded> => {
  switch (system) {
    case "ours":
      return import("./system/Assent.js")
    case "limit":
      return import("./system/Limit.js")
    case "effect-ai":
      return import("./system/EffectAi.js")
    case "ai-sdk":
      return import("./system/AiSdk.js")
    case "openai-agents":
      return import("./system/OpenAiAgents.js")
    case "machine":
      return import("./system/Machine.js")
    default:
      return Promise.reject(new Error(`There is no system ${system}; there are ${systems.join(", ")}.`))
  }
}

const ask = (child: ChildProcess, what: string, budget: number): Effect.Effect<Sample> =>
  Effect.suspend(() => {
    child.send(budget)
    return answerOf(child, what)
  })

const answerOf = (child: ChildProcess, what: string): Effect.Effect<Sample> =>
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
