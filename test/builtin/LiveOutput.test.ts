import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as TestClock from "effect/TestClock"
import * as LiveOutput from "../../src/builtin/LiveOutput.js"
import * as PrintedOutput from "../../src/builtin/PrintedOutput.js"
import * as ToolOutput from "../../src/tool/ToolOutput.js"

const live = Effect.map(Effect.sync(LiveOutput.make), (output) => {
  const chunks: Array<ToolOutput.Chunk> = []
  const sink = (chunk: ToolOutput.Chunk) => Effect.sync(() => void chunks.push(chunk))
  const here = Effect.provideService(ToolOutput.ToolOutput, sink)
  return {
    push: (styled: string) => here(output.push(styled)),
    end: here(output.end),
    /** What was passed on since it was asked last. */
    taken: () => chunks.splice(0).map(({ text }) => text),
    chunks: () => chunks.splice(0)
  }
})

const line = "0123456789\n"
const million = line.repeat(100_000)

describe("what is shown of a command while it runs", () => {
  it.scoped("is all that it prints, as it comes, up to a million characters", () =>
    Effect.gen(function* () {
      const { end, push, taken } = yield* live
      for (const text of ["a", "b\n", million]) yield* push(text)
      yield* end
      assert.deepStrictEqual(taken(), ["a", "b\n", million])
    })
  )

  it.scoped("is then the end of it, a few times a second and when it is over, and how much is missing", () =>
    Effect.gen(function* () {
      const { end, push, taken } = yield* live
      yield* push(million)
      taken()
      yield* push("more\n")
      yield* push("and more\n")
      assert.deepStrictEqual(taken(), [])
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(taken(), ["more\nand more\n"])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(taken(), [])
      for (let count = 0; count < 10_000; count++) yield* push(`${count}\n`)
      yield* TestClock.adjust("200 millis")
      const [shown = "", ...others] = taken()
      assert.deepStrictEqual(others, [])
      const [, missing, rest = ""] = /^\[… (\d+) characters are not shown here\]\n([^]*)$/.exec(shown) ?? []
      assert.strictEqual(Number(missing) + rest.length, 48_890)
      assert.isBelow(rest.length, 16_001)
      assert.match(rest, /^\d{4}\n[^]*\n9999\n$/)
      yield* push("last words")
      yield* end
      assert.deepStrictEqual(taken(), ["last words"])
    })
  )

  const rows = (text: string) => text.split("\n").length - 1

  it.scoped("is told with the lines that are missing, wherever pieces and lines end", () =>
    Effect.gen(function* () {
      const piece = fc.tuple(fc.constantFrom(...["", "\n", "\n\n", "x"]), fc.nat(9_000), fc.boolean())
      for (const pieces of fc.sample(fc.array(piece, { maxLength: 12 }), 20)) {
        const output = yield* live
        let [printed, more] = [million, 0]
        yield* output.push(million)
        const told = output.chunks()
        for (const [end, length, waits] of pieces) {
          const text = "a long word\n".repeat(length / 12) + "y".repeat(length % 40) + end
          printed += text
          yield* output.push(text)
          if (waits) yield* TestClock.adjust("200 millis")
          told.push(...output.chunks())
        }
        yield* output.end
        told.push(...output.chunks())
        for (const { unshown = 0 } of told) more += unshown
        assert.strictEqual(rows(told.map(({ text }) => text).join("")) + more, rows(printed))
      }
    })
  )

  it.scoped("is never cut in a style", () =>
    Effect.gen(function* () {
      const { end, push, taken } = yield* live
      yield* push(million)
      taken()
      for (let count = 0; count < 8_000; count++) yield* push("\x1b[38;5;196mx\x1b[0m")
      yield* end
      assert.match(taken().join(""), /^\[… \d+ characters are not shown here\]\nx+$/)
    })
  )

  it("is made of bytes without their sequences, and goes back in a row where they do", () => {
    const reader = PrintedOutput.reader()
    const bytes = new TextEncoder().encode("a\r\r\n10 %\r\x1b[2K20 %\r\x1b[32m30 %\x1b[0m\r\n")
    assert.strictEqual(reader.push(bytes), "a\r\n10 %\r20 %\x1b[32m\r30 %\x1b[0m\n")
  })
})
