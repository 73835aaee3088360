/**
 * What the runtime costs, next to a bare Effect loop (`limit`), to `@effect/ai` alone, and, where they are installed, to the
 * AI SDK and OpenAI Agents, measured in one run.
 *
 * ```
 * node --expose-gc dist/bench/bench.js [--quick] [--check] [part of a workload's name …]
 * node --expose-gc [--cpu-prof] dist/bench/bench.js --system SYSTEM [--seconds 5] WORKLOAD
 * ```
 *
 * Figures are medians of time on a core of the main thread. Systems take turns, each in a process of its own. The targets
 * were set on another machine; a few primitives are measured in the same turns to scale them. `--check` exits with 1 when a
 * `must` is missed. Wrong counts always do. With `--system` one workload of one system runs in this very process, for a
 * profiler or a quick look.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { parseArgs } from "node:util"
import * as ColdStart from "./ColdStart.js"
import { median } from "./Cpu.js"
import * as Peers from "./Peers.js"
import * as Report from "./Report.js"
import * as Row from "./Row.js"
import * as Worker from "./Worker.js"
import type { Sample, Workload } from "./Workload.js"

const write = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

/** What was sampled of one system. */
interface Sampled {
  readonly system: Worker.System
  first: Sample | undefined
  readonly samples: Array<Sample>
}

const unsampled = (system: Worker.System): Sampled => ({ system, first: undefined, samples: [] })

/** Samples of each system, taken in turns. */
const measure = (plan: Row.Plan) =>
  Effect.scoped(
    Effect.gen(function* () {
      const machine = yield* Worker.open("machine", "speed")
      yield* machine.sample(0)
      const speeds: Array<number> = []
      const available = Worker.available()
      const systems = plan.systems.filter((system) => available.includes(system)).map(unsampled)
      const sample = yield* plan.firstUse === true ? Effect.succeed(firstUses) : warmed(plan, systems)
      for (let i = 0; i < plan.samples; i++) {
        for (const one of systems) one.samples.push(yield* sample(one.system))
        speeds.push((yield* machine.sample(0)).speed ?? Number.NaN)
      }
      return plan.rows.map((row): Report.Measured => ({
        row,
        of: (system) => figuresOf(systems, system, row.figure),
        speed: median(speeds)
      }))
    })
  )

/** A process for each sample. */
const firstUses = (system: Worker.System) => Worker.first(system)

/** A process for each system. When it has to be warm, its first run is kept. */
const warmed = (plan: Row.Plan, systems: ReadonlyArray<Sampled>) =>
  Effect.gen(function* () {
    const workers = new Map<Worker.System, Workload>()
    for (const { system } of systems) workers.set(system, yield* Worker.open(system, plan.workload))
    const sample = (system: Worker.System, budget: number) =>
      workers.get(system)?.sample(budget) ?? Effect.dieMessage(`${system} was not started.`)
    if (plan.warmUp > 0) {
      for (const one of systems) {
        one.first = yield* sample(one.system, 0)
        yield* sample(one.system, plan.warmUp)
      }
    }
    return (system: Worker.System) => sample(system, plan.budget)
  })

const figuresOf = (
  systems: ReadonlyArray<Sampled>,
  system: Worker.System,
  figure: string
): Report.Figures | undefined => {
  const sampled = systems.find((one) => one.system === system)
  if (sampled === undefined) return undefined
  const values = sampled.samples.map((sample) => sample[figure] ?? Number.NaN)
  return { median: median(values), least: Math.min(...values), first: sampled.first?.[figure] }
}

/** A start is compared with that of a Node that does nothing, which took 0.1 seconds where the target was set. */
const coldStart = (quick: boolean) =>
  Effect.map(ColdStart.measure(quick ? 3 : 10), ({ program, node }): Report.Measured => {
    const seconds: Partial<Record<Worker.System, number>> = { ours: program, limit: node }
    return {
      row: { title: "cold start (limit: node alone)", figure: "s", unit: "s", must: 0.4, aim: 0.25, scale: "time" },
      of: (system) => {
        const median = seconds[system]
        return median === undefined ? undefined : { median, least: median, first: undefined }
      },
      speed: 0.1 / node
    }
  })

const bench = (wanted: ReadonlyArray<string>, { check, quick }: { readonly check: boolean; readonly quick: boolean }) =>
  Effect.gen(function* () {
    const isWanted = (name: string) => wanted.length === 0 || wanted.some((part) => name.includes(part))
    yield* write(Report.heading())
    const all: Array<Report.Measured> = []
    const add = (measured: ReadonlyArray<Report.Measured>) =>
      Effect.forEach(
        measured,
        (one) => {
          all.push(one)
          return write(Report.show(one))
        },
        { discard: true }
      )
    for (const plan of Row.plans(quick)) if (isWanted(plan.workload)) yield* add(yield* measure(plan))
    if (isWanted("cold-start")) yield* add([yield* coldStart(quick)])
    const besides = Report.besides(all)
    if (besides.length > 0) yield* write(`\n${Report.showBesides(besides)}`)
    if (!Peers.areInstalled()) yield* write(`\n${Peers.advice}`)
    const marks = [...all.map(Report.mark), ...besides.map(({ mark }) => mark)]
    const missed = marks.filter((mark) => mark === "missed").length
    const speed = median(all.map((measured) => measured.speed))
    yield* write(
      `\nThis machine is ${speed.toFixed(1)}× as fast as the one the targets were set on; "here" is scaled by that, row by row.` +
        `\n${missed === 0 ? "Every must holds." : `Missed: ${missed}.`}`
    )
    return missed > 0 && check ? 1 : 0
  })

/** One workload of one system in this process. */
const alone = (system: string, workload: string, seconds: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { sample } = yield* Worker.named(system, workload)
      const first = yield* sample(0)
      yield* sample(1_000)
      const samples: Array<Sample> = []
      const end = Date.now() + seconds * 1_000
      while (samples.length === 0 || Date.now() < end) samples.push(yield* sample(200))
      for (const [name, before] of Object.entries(first)) {
        const values = samples.map((sample) => sample[name] ?? Number.NaN)
        const [middle, least, cold] = [median(values), Math.min(...values), before].map((value) => value.toFixed(2))
        yield* write(`${system} ${workload} ${name}: ${middle}, least ${least}, first run ${cold}`)
      }
      return 0
    })
  )

const main = (args: ReadonlyArray<string>) =>
  Effect.suspend(() => {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        quick: { type: "boolean", default: false },
        check: { type: "boolean", default: false },
        system: { type: "string" },
        seconds: { type: "string", default: "5" }
      }
    })
    const [workload] = positionals
    if (values.system === undefined) return bench(positionals, values)
    if (workload === undefined || positionals.length > 1) return Effect.dieMessage("Name one workload.")
    return alone(values.system, workload, Number(values.seconds))
  })

const [flag, system = "", workload = ""] = process.argv.slice(2)

if (flag === "--first") {
  void Worker.serveFirst(system)
} else {
  Effect.runFork(flag === "--worker" ? Worker.serve(system, workload) : main(process.argv.slice(2))).addObserver(
    (exit) => {
      if (Exit.isFailure(exit)) process.stderr.write(`${Cause.pretty(exit.cause)}\n`)
      process.exit(Exit.isSuccess(exit) ? exit.value : 1)
    }
  )
}
