/** Typing while a model streams faster than anybody reads. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as DeltaServer from "../kit/DeltaServer.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as Runs from "../kit/Runs.js"

const line = "the quick brown fox jumps over the lazy dog and types on while it does"

/**
 * Runs inside of the program. From the first key on it takes down, in milliseconds of the processor, what passes between a
 * key's bytes and the row that shows it, and between two moments in which input could be served. Other work of the machine
 * is not in there. Where the time of one thread is not to be had it is that of all of them, which is more.
 */
const probe = `
import { readFileSync, writeFileSync } from "node:fs"
const ofThread = "/proc/self/task/" + process.pid + "/schedstat"
const spent = () => {
  try {
    return Number(readFileSync(ofThread, "utf8").split(" ")[0]) / 1e6
  } catch {
    const { system, user } = process.cpuUsage()
    return (system + user) / 1000
  }
}
const keys = [], turns = []
let last, arrived
const { emit } = process.stdin
process.stdin.emit = function (name, data, ...rest) {
  if (name === "data" && String(data) >= " ") {
    last ??= spent()
    arrived = spent()
  } else if (name === "data") last = undefined
  return emit.call(this, name, data, ...rest)
}
const { write } = process.stdout
process.stdout.write = function (text, ...rest) {
  if (arrived !== undefined && String(text).includes("> ")) {
    keys.push(spent() - arrived)
    arrived = undefined
  }
  return write.call(this, text, ...rest)
}
setInterval(() => {
  const now = spent()
  if (last !== undefined) turns.push(now - last)
  if (last !== undefined) last = now
}, 1).unref()
process.on("exit", () => writeFileSync(process.env.PROBED, JSON.stringify({ keys, turns })))
`

const parts = (taken: ReadonlyArray<number>) => {
  const sorted = taken.toSorted((one, other) => one - other)
  return (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Infinity
}

describe("a key that is typed while 2,000 deltas a second stream", () => {
  for (const columns of Runs.isWhole ? [120, 80, 40] : [80])
    it.live(`is on the screen within 20 ms, and input is served every 16 ms, in ${columns} columns`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const url = yield* DeltaServer.start(2_000)
          const [file, probed] = [yield* place.write("probe.mjs", probe), place.path("probed.json")]
          const args = ["chat", "--model", "openai-compatible/m", "--base-url", url]
          const env = { OPENAI_COMPATIBLE_API_KEY: "key", NODE_OPTIONS: `--import ${file}`, PROBED: probed }
          const screen = yield* Pseudo.start(place, args, { columns, rows: 40, env })
          yield* screen.sees((text) => text.endsWith("\n>"))
          yield* screen.type("go\r")
          // Until its first code block has loaded the colours of code.
          yield* screen.sees((text) => text.includes("Adds what is there"))
          let typed = ""
          for (const key of line) {
            typed += key
            yield* screen.type(key)
            yield* screen.sees(
              (text) => text.slice(text.lastIndexOf("\n>")).replaceAll("\n", "") === `> ${typed}`.trimEnd()
            )
            yield* Effect.sleep("20 millis")
          }
          yield* screen.type("\u0015\u0003")
          yield* screen.sees((text) => text.includes("cancelled"))
          yield* screen.type("\u0004")
          yield* screen.exit
          const { keys, turns } = JSON.parse(yield* place.read("probed.json"))
          assert.isAbove(keys.length, line.length / 2)
          assert.isAbove(turns.length, 20)
          // Beside other programs that use the same caches the same work takes up to twice the processor's time.
          assert.isAtMost(parts(keys)(0.95), 2 * 20)
          // V8 stops for longer a few times at the beginning of the first answer, to collect and to optimise.
          assert.isAtMost(parts(turns)(0.98), 2 * 16)
        })
      )
    )
})
