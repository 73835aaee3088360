/**
 * Kills the built command line at random moments, again and again, and lets it go on with what it was doing.
 *
 * ```
 * node dist/soak/soak.js [--kills 500] [--seed 1] [--store postgres://…]
 * ```
 *
 * Prints what came of it, and exits with 1 when something was lost, done twice, or left open.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Saga from "./Saga.js"

const numberOf = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

/** The same numbers for the same seed. */
const randomOf = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const write = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

const soak = Effect.gen(function* () {
  const kills = numberOf("--kills", 500)
  const seed = numberOf("--seed", 1)
  const store = process.argv.includes("--store") ? process.argv[process.argv.indexOf("--store") + 1] : undefined
  const random = randomOf(seed)
  const began = performance.now()
  let all = Saga.none
  yield* write(`${kills} kills, seed ${seed}`)
  while (all.kills < kills) {
    const story = yield* Saga.play(random, Math.min(12, kills - all.kills), store)
    all = Saga.sum(all, story)
    for (const problem of story.violations) yield* write(`  ${problem}`)
    if (all.stories % 10 === 0)
      yield* write(`  ${all.stories} stories, ${all.kills} kills, ${all.violations.length} violations`)
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(0)
  for (const name of [
    "stories",
    "kills",
    "resumes",
    "messages",
    "decisions",
    "answers",
    "effects",
    "interrupted"
  ] as const)
    yield* write(`${name.padEnd(12)}${all[name]}`)
  yield* write(`${"violations".padEnd(12)}${all.violations.length}`)
  yield* write(`${"seconds".padEnd(12)}${seconds}`)
  return all.violations.length === 0 ? 0 : 1
})

Effect.runFork(soak).addObserver((exit) => {
  if (Exit.isFailure(exit)) process.stderr.write(`${Cause.pretty(exit.cause)}\n`)
  process.exit(Exit.isSuccess(exit) ? exit.value : 1)
})
