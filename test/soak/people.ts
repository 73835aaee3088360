/**
 * Asks random people in random arrangements, on a clock that stands still: quorums, escalations, routes and roles within each
 * other. Every other schedule is a reserved call, about whose arguments people differ, in a process that dies at entries of its
 * journal.
 *
 * ```
 * node dist/soak-people/soak-people.js [--schedules 100000] [--seed 1]
 * ```
 *
 * Prints what came of it, and exits with 1 when a question had two ends or an answer that too few gave, when it left a
 * dialog open, or asked a person again whose vote was kept.
 */
import * as Effect from "effect/Effect"
import * as Arrangements from "../kit/Arrangements.js"
import * as ReservedCalls from "../kit/ReservedCalls.js"
import { randomOf } from "../kit/ShellLines.js"

const numberOf = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

const total = numberOf("--schedules", 100_000)
const seed = numberOf("--seed", 1)
const began = performance.now()
const seconds = () => ((performance.now() - began) / 1000).toFixed(0)
const write = (text: string) => process.stdout.write(`${text}\n`)

write(`${total} schedules, seed ${seed}`)
const ends = new Map<string, number>()
let wrong = 0
for (let at = 0; at < total; at++) {
  const schedules = at % 2 === 0 ? Arrangements : ReservedCalls
  const { end, problems } = await Effect.runPromise(schedules.play(randomOf(seed * 1_000_000 + at)))
  ends.set(end, (ends.get(end) ?? 0) + 1)
  if (problems.length > 0) wrong++
  for (const problem of problems) write(`schedule ${at}: ${problem}`)
  if ((at + 1) % 10_000 === 0) write(`${at + 1} schedules, ${wrong} wrong, ${seconds()} s`)
}
const ended = [...ends].map(([end, count]) => `${count} ${end}`).join(", ")
write(`${total} schedules, ${wrong} wrong, ${ended}, ${seconds()} s`)
process.exitCode = wrong === 0 ? 0 : 1
