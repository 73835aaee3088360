import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { PassThrough } from "node:stream"
import * as readline from "node:readline"
import * as Reports from "../../../src/tui/process/Reports.js"

/** What is left for typed of what a terminal sends at once. Sequences that are whole have no characters. */
const typed = (sent: string): string => {
  const input = new PassThrough()
  const reports = Reports.make()
  let out = ""
  readline.emitKeypressEvents(input)
  input.on("keypress", (_, { sequence }: readline.Key) => {
    if (sequence !== undefined && !reports.has(sequence) && !sequence.startsWith("\x1b")) out += sequence
  })
  input.emit("data", Buffer.from(sent))
  return out
}

const number = fc.nat({ max: 99_999 })
const numbers = fc.array(number, { maxLength: 5 }).map((all) => all.join(";"))
const report = fc.oneof(
  fc
    .tuple(fc.constantFrom("<", "?", ">", "="), numbers, fc.constantFrom(..."MmcRuyn"))
    .map((all) => `\x1b[${all.join("")}`),
  fc.tuple(number, number, number, fc.constantFrom(..."uR~")).map(([a, b, c, end]) => `\x1b[${a};${b}:${c}${end}`),
  fc.string({ minLength: 3, maxLength: 3 }).map((at) => `\x1b[M${at}`),
  fc
    .tuple(number, fc.string({ unit: "grapheme" }), fc.constantFrom("\x07", "\x1b\\"))
    .map(([code, text, end]) => `\x1b]${code};${text.replaceAll(/\p{Cc}/gu, "")}${end}`),
  fc.tuple(fc.constantFrom("1+r", "0$r", ">|"), fc.hexa()).map(([kind, text]) => `\x1bP${kind}${text}\x1b\\`)
)
const words = fc.string().map((text) => text.replaceAll("\x1b", ""))

describe("what a terminal reports among the keys", () => {
  it("is no typing, and takes none with it", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(words, report)), words, (before, after) => {
        const sent = before.map(([text, said]) => text + said).join("") + after
        assert.strictEqual(typed(sent), before.map(([text]) => text).join("") + after)
      })
    )
  })

  it("is nothing that somebody types, whatever it is", () => {
    fc.assert(fc.property(words, (text) => assert.strictEqual(typed(text), text)))
  })
})
