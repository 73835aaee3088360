import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import { readdirSync, readFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import * as TerminalText from "../../../src/core/TerminalText.js"
import * as Runs from "../../kit/Runs.js"

const src = resolve("src")
const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => join(src, name))

/** The code of a file: what a comment says is nothing that runs. */
const codeOf = (file: string): string =>
  readFileSync(file, "utf8")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/^\s*\/\/.*$/gm, "")

const using = (what: RegExp): ReadonlyArray<string> =>
  files
    .filter((file) => what.test(codeOf(file)))
    .map((file) => relative(src, file))
    .sort()

describe("the one way out", () => {
  it("is a module that alone knows the process's outputs, with the streams below it", () => {
    // The protocol of editors has standard output to itself.
    assert.deepStrictEqual(using(/\bprocess\s*(?:\.\s*(?:stdout|stderr|_raw\w*)\b|\[)/), [
      "cli/command/Acp.ts",
      "tui/process/Output.ts",
      "tui/process/StandardStream.ts"
    ])
    // What it writes without a look, only help, the version and that module hand to it.
    assert.deepStrictEqual(using(/\bStandardStream\.write\b/), ["cli/bin.ts", "tui/process/Output.ts"])
    // By another name of theirs.
    assert.deepStrictEqual(using(/["'`]node:(?:console|inspector|repl)["'`]|["'`]effect\/Console["'`]/), [])
    assert.deepStrictEqual(
      using(
        /\bconsole\s*(?:\[|\.\s*(?:assert|debug|dir|dirxml|error|group|info|log|table|time\w*|trace|warn|_\w+)\b)|globalThis\s*\.\s*console|\bConsole\.\w+|withConsole(?:Log|Error)|consoleWith/
      ),
      []
    )
    // One asks at the terminal while standard input is a pipe. The other reads what a shell hands in by such a name.
    assert.deepStrictEqual(using(/\/dev\/(?:tty|stdout|stderr|fd)|\bwriteSync\(\s*[12]\b|\bfd:\s*[12]\b/), [
      "host/local/OwnFile.ts",
      "tui/process/Tty.ts"
    ])
    assert.deepStrictEqual(using(/\bnode:tty\b/), ["tui/process/Tty.ts"])
    assert.deepStrictEqual(using(/["']node:process["']/), ["tui/process/NodeTerminal.ts"])
  })

  it("gives the stream itself to nobody but the terminal, which looks at what it draws as well", () => {
    assert.deepStrictEqual(using(/Output\.screen\(/), ["tui/process/NodeTerminal.ts", "tui/process/Screen.ts"])
    const writes = codeOf(join(src, "tui/process/NodeTerminal.ts")).match(/\.write\([^\n]*/g)
    assert.deepStrictEqual(writes, [
      ".write(TerminalText.drawn(text), (error) =>",
      String.raw`.write("\x1b[?1049l")`,
      String.raw`.write("\x1b[?2004l\x1b[?25h")`
    ])
  })
})

/** Everything that a terminal obeys or hides, the way a test says it: by number. */
const dangerous = (text: string): ReadonlyArray<string> =>
  Array.from(text).filter((char) => {
    const code = char.codePointAt(0) ?? 0
    return (
      (code < 0x20 && code !== 0x0a && code !== 0x09) ||
      (code >= 0x7f && code <= 0x9f) ||
      code === 0x61c ||
      code === 0xad ||
      (code >= 0x200b && code <= 0x200f && code !== 0x200d) ||
      (code >= 0x2028 && code <= 0x202e) ||
      (code >= 0x2060 && code <= 0x206f) ||
      code === 0xfeff ||
      (code >= 0xe0000 && code <= 0xe0fff)
    )
  })

const piece = FastCheck.oneof(
  FastCheck.string({ unit: "binary" }),
  FastCheck.constantFrom(
    ..."\u0000\u0007\b\t\n\u000b\r\u001b\u007f\u0085\u0090\u009b\u009d\u00ad\u061c\u200b\u200d\u200e\u202a\u202e\u2028\u2066\u2069\ufeff",
    "\u{e0041}",
    "\ud800",
    "\r\n"
  ),
  FastCheck.constantFrom(
    "\u001b[2J",
    "\u001b[8m",
    "\u001b[31m",
    "\u001b[0m",
    "\u001b]0;title\u0007",
    "\u001b]52;c;cm0gLXJm\u0007",
    "\u001b]8;;http://x\u001b\\",
    "\u001bP1$r\u001b\\",
    "\u001bc",
    "\u001b[6n",
    "\u009b31m",
    "\u001b[1000000000A",
    "\u001b[?1049h",
    "\u001b[31;1m"
  )
)
const text = FastCheck.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""))

describe("whatever is printed", () => {
  it("where nobody draws, holds nothing that a terminal obeys or hides", () => {
    FastCheck.assert(
      FastCheck.property(text, (wild) => {
        assert.deepStrictEqual(dangerous(TerminalText.printed(wild, false)), [])
      }),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("at a terminal, holds our own styles besides, and leaves none of them on", () => {
    FastCheck.assert(
      FastCheck.property(text, (wild) => {
        const out = TerminalText.printed(wild, true)
        const found = out.match(/\u001b\[[0-9]*m/g) ?? []
        for (const one of found) assert.match(one, /^\u001b\[(?:|[0-4]|9|3[1-6])m$/)
        assert.deepStrictEqual(dangerous(out.replace(/\u001b\[[0-9]*m/g, "")), [])
        if (found.length > 0) assert.match(found.at(-1) ?? "", /^\u001b\[0m$/)
      }),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("on a screen, moves within it and does nothing else to the terminal", () => {
    FastCheck.assert(
      FastCheck.property(text, (wild) => {
        const moves = /\u001b\[(?:(?:[0-4]|9|3[1-6])?m|\?25[hl]|\?2004[hl]|\?1049[hl]|2?J|2K|H|\d{1,4}[ABG])|\r/g
        assert.deepStrictEqual(dangerous(TerminalText.drawn(wild).replace(moves, "")), [])
      }),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("as JSON is the same value, in characters that are all to be seen", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.dictionary(text, text), (value) => {
        const line = TerminalText.json(value)
        assert.deepStrictEqual(dangerous(line), [])
        assert.notInclude(line, "\n")
        assert.strictEqual(JSON.stringify(JSON.parse(line)), JSON.stringify(value))
      }),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("is left alone where it is only text", () => {
    for (const plain of ["", "a\tb\nc", "Grüße, 世界 👩‍👩‍👧 ❤️", "| a | b |"]) {
      assert.strictEqual(TerminalText.printed(plain, false), plain)
      assert.strictEqual(TerminalText.printed(plain, true), plain)
      assert.strictEqual(TerminalText.drawn(plain), plain)
    }
    assert.strictEqual(TerminalText.printed("\u001b[31mred\u001b[0m", true), "\u001b[31mred\u001b[0m")
    assert.strictEqual(TerminalText.printed("\u001b[31mred\u001b[0m", false), "␛[31mred␛[0m")
    assert.strictEqual(TerminalText.printed("evil\u202etxt", true), "evil⟨U+202E⟩txt")
  })
})
