/**
 * Writes shell lines that look like reading, runs them where nothing can be changed, and looks whether something changed.
 *
 * ```
 * node dist/soak-reading/soak-reading.js [--lines 100000] [--seed 1]
 * ```
 *
 * Prints what came of it, and exits with 1 if anything changed.
 */
import * as Effect from "effect/Effect"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Unchanged from "../kit/Unchanged.js"

const numberOf = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

const total = numberOf("--lines", 100_000)
const seed = numberOf("--seed", 1)
const place = realpathSync(mkdtempSync(join(tmpdir(), "assent-unchanged-")))
const began = performance.now()
const write = (text: string) => process.stdout.write(`${text}, ${((performance.now() - began) / 1000).toFixed(0)} s\n`)
const tell = (lines: number) => (lines % 5_000 === 0 ? write(`${lines} lines`) : undefined)
const { changed, lines } = await Effect.runPromise(Effect.scoped(Unchanged.run(place, { lines: total, seed, tell })))
rmSync(place, { recursive: true, force: true })
for (const batch of changed) process.stdout.write(`${JSON.stringify(batch)}\n`)
write(`${lines} lines ran, ${changed.length === 0 ? "nothing" : "something"} changed`)
process.exitCode = changed.length === 0 ? 0 : 1
