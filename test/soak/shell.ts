/**
 * Writes shell lines, and runs in real shells those that the rules let run.
 *
 * ```
 * node dist/soak-shell/soak-shell.js [--lines 200000] [--seed 1]
 * ```
 *
 * Prints what came of it, and exits with 1 when a program ran that nobody allowed.
 */
import * as ShellLines from "../kit/ShellLines.js"

const numberOf = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

const total = numberOf("--lines", 200_000)
const seed = numberOf("--seed", 1)
const random = ShellLines.randomOf(seed)
const machine = ShellLines.machine()
const began = performance.now()
const seconds = () => ((performance.now() - began) / 1000).toFixed(0)
const write = (text: string) => process.stdout.write(`${text}\n`)

write(`${total} lines, seed ${seed}, ${machine.shells.join(" and ")}`)
const all = { lines: 0, allowed: 0, ran: 0, unasked: 0 }
while (all.lines < total) {
  const lines = Array.from({ length: Math.min(500, total - all.lines) }, () => ShellLines.line(random))
  const { allowed, ran, unasked } = await machine.run(lines)
  all.lines += lines.length
  all.allowed += allowed
  all.ran += ran
  all.unasked += unasked.length
  for (const found of unasked) write(JSON.stringify(found))
  if (all.lines % 20_000 === 0) write(`${all.lines} lines, ${all.allowed} allowed, ${all.ran} programs, ${seconds()} s`)
}
machine.close()
write(`${all.lines} lines, ${all.allowed} allowed, ${all.ran} programs ran, ${all.unasked} unasked, ${seconds()} s`)
process.exitCode = all.unasked === 0 && all.ran > 0 ? 0 : 1
