/**
 * One piece of work that several systems do in the same way, and how it is measured.
 *
 * Every run counts what happened (model calls, tool runs, the sum of their arguments, answers, events) and dies when a count
 * is wrong, so that nobody wins by leaving something out.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Cpu from "./Cpu.js"
import * as Script from "./Script.js"

/** Figures by name. */
export type Sample = Readonly<Record<string, number>>

export interface Workload<R = never> {
  /** Measures for about this long, in milliseconds on a core; at least one run. */
  readonly sample: (budget: number) => Effect.Effect<Sample, never, R>
}

/** The first use of a system in its process: makes what agents share, and runs one agent. Not through this bench's Effect. */
export type First = () => Promise<void>

/** What one system can do, by name; the work is the same under the same name. */
export type Workloads = Readonly<Record<string, Effect.Effect<Workload, never, Scope.Scope>>>

/** Work whose only figure is microseconds on a core per unit. */
export const timed = <R = never>(units: number, run: Effect.Effect<void, never, R>): Workload<R> => ({
  sample: (budget) =>
    Effect.gen(function* () {
      const clock = started(budget)
      while (clock.goesOn()) yield* run
      return { us: clock.perRun() / units }
    })
})

/** As {@link timed}, for work that is a promise and knows nothing of Effect. */
export const awaited = (units: number, run: () => Promise<void>): Workload => {
  const spent = async (budget: number) => {
    const clock = started(budget)
    while (clock.goesOn()) await run()
    return { us: clock.perRun() / units }
  }
  return { sample: (budget) => Effect.promise(() => spent(budget)) }
}

/** Gives the work what it needs once, outside of what is measured. */
export const provided = <R>(context: Context.Context<R>, { sample }: Workload<R>): Workload => ({
  sample: (budget) => Effect.provide(sample(budget), context)
})

/** Work of which only the second part is timed: the outer effect makes it ready, the inner one is measured. */
export const timedPart = (units: number, prepare: Effect.Effect<Effect.Effect<unknown>>): Workload => ({
  sample: (budget) =>
    Effect.gen(function* () {
      let runs = 0
      let spent = 0
      while (runs === 0 || spent < budget * 1_000) {
        const run = yield* prepare
        const start = Cpu.now()
        yield* run
        spent += Cpu.now() - start
        runs++
      }
      return { us: spent / runs / units }
    })
})

/** As {@link timed}; the figure is units per second on a core, in millions. */
export const rated = (units: number, run: Effect.Effect<void>): Workload => {
  const { sample } = timed(units, run)
  return { sample: (budget) => Effect.map(sample(budget), ({ us = Number.NaN }) => ({ rate: 1 / us })) }
}

/**
 * The same work on little and on much, and how much dearer it got. One run of each in turns, so that neither is measured on a
 * heap that only its own kind leaves behind.
 */
export const growing = (little: Workload, much: Workload): Workload => ({
  sample: (budget) =>
    Effect.gen(function* () {
      let runs = 0
      let few = 0
      let many = 0
      const start = Cpu.now()
      while (runs === 0 || Cpu.now() - start < budget * 1_000) {
        few += (yield* little.sample(0)).us ?? Number.NaN
        many += (yield* much.sample(0)).us ?? Number.NaN
        runs++
      }
      return { few: few / runs, many: many / runs, growth: many / few }
    })
})

/** What a run has to come out at. */
export interface Tally {
  modelCalls: number
  toolRuns: number
  /** Of the tools' arguments. */
  sum: number
  asked: number
  events: number
}

export const tally = (): Tally => ({ modelCalls: 0, toolRuns: 0, sum: 0, asked: 0, events: 0 })

/** Dies when a count is not what it must be. */
export const expect = (what: string, actual: unknown, expected: unknown): Effect.Effect<void> =>
  actual === expected
    ? Effect.void
    : Effect.dieMessage(`${what}: expected ${String(expected)}, but it was ${String(actual)}`)

/** Compares what a run counted with what it must come out at. */
export const expectTally = (actual: Tally, expected: Partial<Tally>): Effect.Effect<void> => {
  const wrong = differing(actual, expected)
  return wrong === undefined ? Effect.void : Effect.dieMessage(wrong)
}

/** As {@link expect} and {@link expectTally}, for promises: throws. */
export const assertRun = (text: unknown, actual: Tally, expected: Partial<Tally>): void => {
  const wrong = text === "done" ? differing(actual, expected) : `The last words were ${String(text)}.`
  if (wrong !== undefined) throw new Error(wrong)
}

/** What a run of a script must count, whoever runs it. */
export const ofScript = (script: Script.Script): Partial<Tally> => ({
  modelCalls: script.length,
  toolRuns: script.flatMap(({ calls }) => calls).length,
  sum: Script.sum(script)
})

/** The numbers below `size` in an order that is random, and the same every time. */
export const shuffled = (size: number): ReadonlyArray<number> => {
  const order = Array.from({ length: size }, (_, i) => i)
  let seed = 42
  for (let i = size - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    const j = seed % (i + 1)
    const held = order[i] ?? 0
    order[i] = order[j] ?? 0
    order[j] = held
  }
  return order
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Times runs until they have cost `budget` milliseconds, one at least. Asking for the time on a core reads a file, which
 * costs as much as a run of the cheapest work: it is asked whenever the runs' number has doubled, or the wall's clock says that
 * the budget may be spent.
 */
const started = (budget: number) => {
  const wall = performance.now()
  const start = Cpu.now()
  let runs = 0
  let spent = 0
  let askedAt = wall
  return {
    goesOn: (): boolean => {
      if (runs > 0 && performance.now() - askedAt >= Math.max(1, (budget - spent / 1_000) / 2)) {
        askedAt = performance.now()
        spent = Cpu.now() - start
      }
      if (runs > 0 && spent >= budget * 1_000) return false
      runs++
      return true
    },
    perRun: (): number => (Cpu.now() - start) / runs
  }
}

const differing = (actual: Tally, expected: Partial<Tally>): string | undefined => {
  for (const [name, value] of Object.entries(expected)) {
    const was = actual[name as keyof Tally]
    if (was !== value) return `${name}: expected ${String(value)}, but it was ${String(was)}`
  }
  return undefined
}
