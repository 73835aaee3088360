/**
 * Draws, parses and shows a megabyte of each kind of foreign text as the product does, and measures how long each holds the
 * event loop at a time.
 *
 * ```
 * node dist/soak-texts/soak-texts.js [--only PART] [--size 1000000]
 * ```
 *
 * Prints what took longest, and exits with 1 when something held the loop longer than 50 ms, or the start longer than 500.
 */
import * as HeldLoop from "../kit/HeldLoop.js"

const valueOf = (flag: string, otherwise: string): string => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : (process.argv[at + 1] ?? otherwise)
}

const only = valueOf("--only", "")
const size = Number(valueOf("--size", "1000000"))
const write = (text: string) => process.stdout.write(`${text}\n`)

const found: Array<HeldLoop.Held & { readonly limit: number }> = []
for (const way of HeldLoop.ways(size)) {
  const { limit, name } = way
  if (!name.includes(only)) continue
  let held = await HeldLoop.measure(way)
  // Something else on the machine may have held it: only what happens each time counts.
  for (let again = 0; again < 2 && held.milliseconds > limit; again++) {
    const next = await HeldLoop.measure(way)
    if (next.milliseconds < held.milliseconds) held = next
  }
  found.push({ ...held, limit })
  if (held.milliseconds > limit) write(`${held.milliseconds.toFixed(0).padStart(6)} ms  ${name}`)
}
const worst = found.toSorted((a, b) => b.milliseconds - a.milliseconds).slice(0, 20)
write(`${found.length} texts of ${size} characters; those that held the event loop longest:`)
for (const { milliseconds, name, whole } of worst)
  write(`${milliseconds.toFixed(0).padStart(6)} ms of ${whole.toFixed(0).padStart(6)}  ${name}`)
process.exitCode = found.some(({ limit, milliseconds }) => milliseconds > limit) ? 1 : 0
