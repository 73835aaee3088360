/**
 * What the runtime costs, next to a bare Effect loop (`limit`) and to `@effect/ai` alone, measured in one run.
 *
 * ```
 * node --expose-gc dist/bench/bench.js [--quick] [--check] [part of a workload's name …]
 * ```
 *
 * Figures are medians of time on a core of the main thread. Systems take turns, each in a process of its own. The targets
 * were set on another machine; a few primitives are measured in the same turns to scale them. `--check` exits with 1 when a
 * `must` is missed. Wrong counts always do.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as ColdStart from "./ColdStart.js"
import { median } from "./Cpu.js"
import * as Report from "./Report.js"
import * as Row from "./Row.js"
import * as Worker from "./Worker.js"
import type { Sample } from "./Workload.js"

const write = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

/** Samples of each system, taken in turns. */
const measure = (plan: Row.Plan) =>
  Effect.scoped(
    Effect.gen(function* () {
      const systems: Array<Worker.System> = [...plan.systems, "machine"]
      const workers = yield* Effect.forEach(systems, (system) =>
        Effect.map(Worker.open(system, system === "machine" ? "speed" : plan.workload), (worker) => ({
          system,
          worker,
          samples: new Array<Sample>()
        }))
      )
      for (const { system, worker } of workers) {
        if (plan.warmUp > 0 || system === "machine") yield* worker.sample(plan.warmUp)
      }
      for (let i = 0; i < plan.samples; i++) {
        for (const { samples, worker } of workers) samples.push(yield* worker.sample(plan.budget))
      }
      const figure = (system: Worker.System, name: string): number | undefined => {
        const samples = workers.find((worker) => worker.system === system)?.samples
        return samples === undefined ? undefined : median(samples.map((sample) => sample[name] ?? Number.NaN))
      }
      return plan.rows.map((row): Report.Measured => ({
        row,
        ours: figure("ours", row.figure),
        limit: figure("limit", row.figure),
        ai: figure("ai", row.figure),
        speed: figure("machine", "speed") ?? 1
      }))
    })
  )

/** A start is compared with that of a Node that does nothing, which took 0.1 seconds where the target was set. */
const coldStart = (quick: boolean) =>
  Effect.map(ColdStart.measure(quick ? 3 : 10), ({ program, node }): Report.Measured => ({
    row: { title: "cold start (limit: node alone)", figure: "s", unit: "s", must: 0.4, aim: 0.25, scale: "time" },
    ours: program,
    limit: node,
    ai: undefined,
    speed: 0.1 / node
  }))

const bench = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const quick = args.includes("--quick")
    const wanted = args.filter((arg) => !arg.startsWith("--"))
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
    const missed = all.filter((measured) => Report.mark(measured) === "missed").length
    const speed = median(all.map((measured) => measured.speed))
    yield* write(
      `\nThis machine is ${speed.toFixed(1)}× as fast as the one the targets were set on; "here" is scaled by that, row by row.` +
        `\n${missed === 0 ? "Every must holds." : `Missed: ${missed}.`}`
    )
    return missed > 0 && args.includes("--check") ? 1 : 0
  })

const [flag, system = "", workload = ""] = process.argv.slice(2)
const program = flag === "--worker" ? Worker.serve(system, workload) : bench(process.argv.slice(2))

Effect.runFork(program).addObserver((exit) => {
  if (Exit.isFailure(exit)) process.stderr.write(`${Cause.pretty(exit.cause)}\n`)
  process.exit(Exit.isSuccess(exit) ? exit.value : 1)
})
