/** What a chat loads while no call waits for it. */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

/**
 * Runs inside of the program: says on the screen when the pieces of an answer and Node's client are loaded, entries of a journal can be written, and how many of
 * the pieces at most without a look at the keys. V8 makes code of a long expression when it is used again, for texts in Latin
 * letters and for others: both are to be there.
 */
const probe = `
import vm from "node:vm"
const { Script } = vm
const wanted = ["MarkdownStream-", "CodeColors-", "AgentText-", "Printed-"]
let most = 0, together = 0
vm.Script = class extends Script {
  constructor(code, options) {
    super(code, options)
    const at = wanted.findIndex((name) => String(options?.filename).includes("/" + name))
    if (at < 0) return
    wanted.splice(at, 1)
    most = Math.max(most, ++together)
    setImmediate(() => (together = 0))
  }
}
const { exec } = RegExp.prototype
const uses = new Map()
RegExp.prototype.exec = function (text) {
  if (this.source.length > 200) {
    const { latin = 0, others = 0 } = uses.get(this.source) ?? {}
    const isLatin = !/[^\\x00-\\xff]/[Symbol.match](text)
    uses.set(this.source, { latin: latin + Number(isLatin), others: others + Number(!isLatin) })
  }
  return exec.call(this, text)
}
// An encoder is kept by the structure that it is for.
const { set } = WeakMap.prototype
let isEncoded = false
WeakMap.prototype.set = function (key, value) {
  if (key?.propertySignatures?.some(({ type }) => type.literal === "TaskTold")) isEncoded = true
  return set.call(this, key, value)
}
const isUsed = () => [...uses.values()].filter(({ latin, others }) => latin > 1 && others > 1).length > 9
const interval = setInterval(() => {
  if (wanted.length > 0 || !process.moduleLoadList.includes("NativeModule internal/deps/undici/undici")) return
  if (!isUsed() || !isEncoded) return
  clearInterval(interval)
  process.stdout.write("\\r\\nall is loaded, at once " + most + "\\r\\n")
}, 10).unref()
`

describe("a chat at a terminal", () => {
  it.live("loads what the first answer needs before there are words to answer", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const file = yield* place.write("probe.mjs", probe)
        const args = ["chat", "--model", "openai-compatible/m", "--base-url", "http://127.0.0.1:9/v1"]
        const env = { OPENAI_COMPATIBLE_API_KEY: "key", NODE_OPTIONS: `--import ${file}` }
        const screen = yield* Pseudo.start(place, args, { columns: 80, rows: 24, env })
        yield* screen.sees((text) => text.includes("all is loaded, at once 1"))
        yield* screen.type("\u0004")
        yield* screen.exit
      })
    )
  )
})
