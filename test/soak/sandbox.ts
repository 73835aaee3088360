/**
 * Runs confined commands that are killed at random, and looks whether anything of them is left.
 *
 * ```
 * node dist/soak-sandbox/soak-sandbox.js [--calls 1000] [--seed 1]
 * ```
 *
 * Prints what came of it, and exits with 1 when something runs, is mounted or lies about that should not.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Onslaught from "../kit/Onslaught.js"
import * as ShellLines from "../kit/ShellLines.js"

const numberOf = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

const calls = numberOf("--calls", 1_000)
const seed = numberOf("--seed", 1)
const place = realpathSync(mkdtempSync(join(tmpdir(), "assent-onslaught-")))
const began = performance.now()
const seconds = () => ((performance.now() - began) / 1000).toFixed(0)
const write = (text: string) => process.stdout.write(`${text}\n`)

write(`${calls} calls, seed ${seed}`)
const { ends, left } = await Onslaught.run({
  calls,
  place,
  random: ShellLines.randomOf(seed),
  tell: (line) => write(`${line}, ${seconds()} s`)
})
execFileSync("chmod", ["-R", "u+rwx", place])
rmSync(place, { recursive: true, force: true })
for (const [way, count] of Object.entries(ends)) write(`${String(count).padStart(5)} ${way}`)
for (const what of left) write(`left: ${what}`)
write(left.length === 0 ? `nothing is left, ${seconds()} s` : `${left.length} left, ${seconds()} s`)
process.exitCode = left.length === 0 ? 0 : 1
