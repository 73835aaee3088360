import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "fast-check"
import * as PrintedOutput from "../../src/builtin/PrintedOutput.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as ToolSummary from "../../src/tool/ToolSummary.js"
import * as Runs from "../kit/Runs.js"

const encode = (text: string) => new TextEncoder().encode(text)

/** Pushes the pieces and gives what watchers saw and what is kept. */
const print = (pieces: ReadonlyArray<Uint8Array>, maxLength: number, directory?: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const file = directory === undefined ? undefined : { directory, path: `${directory}/out.txt` }
      const output = PrintedOutput.make({ fileSystem, path: yield* Path.Path, maxLength, file })
      const seen = yield* Effect.forEach(pieces, output.push)
      return { seen: seen.join(""), ...(yield* output.finish) }
    })
  ).pipe(Effect.provide(NodeContext.layer))

const cut = (bytes: Uint8Array, at: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const borders = [0, ...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return borders.slice(1).map((to, index) => bytes.subarray(borders[index], to))
}

const printable = FastCheck.array(
  FastCheck.constantFrom(
    "a",
    "é",
    "😀",
    "\n",
    "\r",
    "\r\n",
    "\x1b[31m",
    "\x1b[0m",
    "\x1b]0;t\x07",
    "\x1b]8;;u\x1b\\",
    "\x1bM",
    "\x1b",
    "\x07",
    "\0",
    "[",
    "m",
    "\x1b(B",
    "\\"
  ),
  { maxLength: 30 }
).map((parts) => parts.join(""))

describe("PrintedOutput", () => {
  it("keeps no more than some styles behind a carriage return", () => {
    const reader = PrintedOutput.reader()
    const pieces = ["a\r", ...Array.from({ length: 40 }, () => "\x1b[1m".repeat(1_000))]
    const seen = pieces.map((piece) => reader.push(new TextEncoder().encode(piece))).join("")
    assert.strictEqual(PrintedOutput.bare(seen + reader.end()), "a\r")
    assert.isAbove(seen.length, 100_000)
  })

  it("removes escape sequences and control characters and keeps the text", () => {
    assert.strictEqual(
      PrintedOutput.readable("\x1b[1;31mred\x1b[0m\tx\x07\r\n10%\r20%\r\n\x1b]0;title\x07end"),
      "red\tx\n20%\nend"
    )
    assert.strictEqual(PrintedOutput.readable("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ ok"), "link ok")
    assert.strictEqual(PrintedOutput.readable("caf\u009bé\x7f\0"), "café")
  })

  it.effect("shows colours and weights while it runs, and keeps the text alone", () =>
    Effect.gen(function* () {
      const pieces = ["\x1b[3", "1mred\x1b[2J\r", "\x1b[0m\nplain\x1b", "]0;t\x07 \x1b\x1b]0;t\x07[1mnot bold"]
      const { seen, text } = yield* print(pieces.map(encode), 1_000)
      assert.strictEqual(seen, "\x1b[31mred\x1b[0m\nplain [1mnot bold")
      assert.strictEqual(text, "red\nplain [1mnot bold")
    })
  )

  it.effect("gives the same text however the bytes are cut into pieces", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(printable, FastCheck.array(FastCheck.nat(200), { maxLength: 6 }), (text, at) =>
          Effect.runPromise(
            Effect.map(print(cut(encode(text), at), 1_000), ({ text: kept }) => {
              assert.strictEqual(kept, PrintedOutput.readable(text))
              assert.notMatch(kept, /[\0-\x08\x0b-\x1f\x7f-\x9f]/)
            })
          )
        ),
        { numRuns: Runs.of(500) }
      )
    )
  )

  it.effect("keeps all of an output that just fits", () =>
    Effect.gen(function* () {
      const text = "0123456789".repeat(30)
      assert.deepStrictEqual(yield* print(cut(encode(text), [7, 120, 250]), 300), { seen: text, text })
    })
  )

  it.effect("keeps the beginning and the end of a longer one and says how much is left out", () =>
    Effect.gen(function* () {
      const text = Array.from({ length: 1_000 }, (_, index) => `${index}\n`).join("")
      const { text: kept } = yield* print(cut(encode(text), [50, 100, 1_000, 3_000]), 300)
      assert.isTrue(kept.startsWith("0\n1\n2\n"))
      assert.isTrue(kept.endsWith("998\n999\n"))
      assert.match(kept, new RegExp(`\\n\\[… ${text.length - 300} characters in \\d+ lines left out\\]\\n`))
      assert.isBelow(kept.length, 400)
    })
  )

  it.effect.prop(
    "has as many lines in its summary as were printed, also where most of them are left out",
    {
      lines: FastCheck.integer({ min: 2, max: 3_000 }),
      width: FastCheck.integer({ min: 0, max: 40 }),
      isEnded: FastCheck.boolean()
    },
    ({ isEnded, lines, width }) =>
      Effect.gen(function* () {
        const text = Array.from({ length: lines }, (_, index) => `${"x".repeat(width)}${index}`).join("\n")
        const { text: output } = yield* print([encode(isEnded ? `${text}\n` : text)], 600)
        const said = ToolSummary.of({ exitCode: 0, output }, Redaction.shapesOnly)
        assert.strictEqual(said.replaceAll(",", ""), `${lines} lines`)
      })
  )

  it.live("saves a longer output in a file that only its owner can read, and names it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const fileSystem = yield* FileSystem.FileSystem
        const directory = `${yield* fileSystem.makeTempDirectoryScoped()}/not/there/yet`
        const text = "zeile é 😀\n".repeat(100)
        const printed = yield* print(cut(encode(text), [3, 50, 51, 52, 700]), 200, directory)
        assert.strictEqual(printed.file, `${directory}/out.txt`)
        assert.include(printed.text, `the whole output is in ${directory}/out.txt]`)
        assert.strictEqual(yield* fileSystem.readFileString(`${directory}/out.txt`), text)
        assert.strictEqual((yield* fileSystem.stat(`${directory}/out.txt`)).mode & 0o777, 0o600)
        yield* print([encode("short")], 200, `${directory}/unused`)
        assert.isFalse(yield* fileSystem.exists(`${directory}/unused`), "nothing is created for what is shown whole")
      })
    ).pipe(Effect.provide(NodeContext.layer))
  )

  it.live("goes on without a file when none can be written", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const fileSystem = yield* FileSystem.FileSystem
        const file = yield* fileSystem.makeTempFileScoped()
        const printed = yield* print([encode("x".repeat(1_000))], 300, `${file}/below`)
        assert.isUndefined(printed.file)
        assert.include(printed.text, "[… 700 characters left out]")
      })
    ).pipe(Effect.provide(NodeContext.layer))
  )
})
