import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const answer = `# What I found

Some **bold words**, *soft ones* and \`npm ci\`, in a sentence that is long enough to be wrapped at words. 漢字かな交じり文も折り返されます。

1. First, with [a link](https://example.com/docs)
2. Second:
   - a detail
   - another one

> Somebody said this.

| Name | Meaning | Count |
|------|:-------:|------:|
| alpha | the first of them | 1 |
| 漢字 | wide | 12 |

\`\`\`ts
/** Adds. */
export const add = (a: number): number => a + 1
\`\`\`

Done.`

const command = { tools: [{ name: "run_command", params: { command: "true" } }] }

const chat = (steps: ReadonlyArray<unknown>, options: Pseudo.Options = {}) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    yield* place.write("workspace/script.json", { version: 1, agents: { main: steps } })
    const screen = yield* Pseudo.start(place, ["chat", "--model", "script:script.json"], options)
    yield* screen.sees((text) => text.endsWith("Commands open.\n>"))
    return screen
  })

describe.concurrent("what a model says, at a terminal", () => {
  for (const columns of [120, 80, 40])
    it.live(`is drawn as it is meant, in ${columns} columns`, ({ expect }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const screen = yield* chat([{ text: answer, chunks: 60 }], { columns, rows: 50 })
          yield* screen.type("go\r")
          const seen = yield* screen.sees((text) => text.endsWith("Done.\n>"))
          yield* Effect.promise(() => expect(`${seen}\n`).toMatchFileSnapshot(`screens/markdown-${columns}.txt`))
          assert.deepStrictEqual(screen.styleOf("What I found"), ["bold", "underline"])
          assert.deepStrictEqual(screen.styleOf("export"), ["5"])
          assert.deepStrictEqual(screen.styleOf("soft"), ["italic"])
        })
      )
    )

  for (const [name, value] of [
    ["CLICOLOR", "0"],
    ["FORCE_COLOR", "0"],
    ["FORCE_COLOR", "false"]
  ] as const)
    it.live(`has no colours with ${name}=${value}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const plain = yield* chat([{ text: answer }], { rows: 50, env: { [name]: value } })
          yield* plain.type("go\r")
          yield* plain.sees((text) => text.endsWith("Done.\n>"))
          assert.notMatch(plain.raw(), /\x1b\[\d*m/)
        })
      )
    )

  for (const [env, isColored] of [
    [{}, false],
    [{ CLICOLOR: "1" }, false],
    [{ CLICOLOR_FORCE: "1" }, true],
    [{ CLICOLOR_FORCE: "1", CLICOLOR: "0" }, true],
    [{ CLICOLOR_FORCE: "0" }, false],
    [{ FORCE_COLOR: "1" }, true],
    [{ FORCE_COLOR: "true", TERM: "dumb" }, true],
    [{ CLICOLOR_FORCE: "1", FORCE_COLOR: "0" }, false],
    [{ CLICOLOR_FORCE: "1", FORCE_COLOR: "1", NO_COLOR: "1" }, false]
  ] as const)
    it.scopedLive(
      `has ${isColored ? "" : "no "}colours in a pipe with ${JSON.stringify(env)}, and no model's own`,
      () =>
        Effect.gen(function* () {
          const place = yield* Program.place
          const model = yield* place.script(command, { text: "\x1b[31mred" })
          const flags = ["--model", model, "--yolo"]
          const run = yield* place.call(["run", ...flags, "go"], { env })
          assert.strictEqual(run.stdout, "␛[31mred\n")
          const [id = ""] = /ses_\S+/.exec((yield* place.call(["sessions"])).stdout) ?? []
          for (const args of [["doctor"], ["profiles"], ["sessions", "replay", id]]) {
            const { stdout } = yield* place.call(args, { env })
            assert.strictEqual(/\x1b\[\d+m/.test(stdout), isColored, args[0])
            assert.notInclude(stdout.replace(/\x1b\[\d*m/g, ""), "\x1b")
          }
          const { stdout } = yield* place.call(["chat", ...flags], { env, stdin: "go\n" })
          assert.strictEqual(/\x1b\[1massent/.test(stdout), isColored)
          assert.notInclude(stdout, "\x1b[31m")
        })
    )

  it.live("is readable without colours, and as it came on a dumb terminal", ({ expect }) =>
    Effect.scoped(
      Effect.gen(function* () {
        const plain = yield* chat([{ text: answer }], { rows: 50, env: { NO_COLOR: "1" } })
        yield* plain.type("go\r")
        const seen = yield* plain.sees((text) => text.endsWith("Done.\n>"))
        yield* Effect.promise(() => expect(`${seen}\n`).toMatchFileSnapshot("screens/markdown-plain.txt"))
        assert.notMatch(plain.raw(), /\x1b\[\d*m/)

        const place = yield* Program.place
        yield* place.write("workspace/script.json", { version: 1, agents: { main: [{ text: answer }] } })
        const dumb = yield* Pseudo.start(place, ["chat", "--model", "script:script.json"], {
          rows: 50,
          env: { TERM: "dumb" }
        })
        yield* dumb.sees((text) => text.includes("for commands"))
        yield* dumb.type("go\r")
        yield* dumb.sees((text) => text.includes("Done."))
        assert.include(dumb.everything(), "Some **bold words**, *soft ones*")
        assert.notInclude(dumb.raw(), "\x1b")
        yield* dumb.type("\x04")
        assert.strictEqual(yield* dumb.exit, 0)
      })
    )
  )

  it.live("can be followed while it comes, is drawn anew in another width, and keeps what was cut", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(" ")
        const screen = yield* chat([{ text: words, chunks: 400, chunkDelay: "10 millis" }], { rows: 12 })
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.includes("word30 "))
        yield* screen.resize(50, 12)
        yield* screen.sees((text) => text.includes("word60 ") && text.split("\n").every((row) => row.length <= 50))
        yield* screen.type("draft")
        yield* screen.sees((text) => /^> draft$/m.test(text))
        yield* screen.type("\x15")
        yield* screen.type("\x03")
        yield* screen.sees((text) => text.includes("cancelled"))
        assert.include(screen.everything(), "word60 ")
      })
    )
  )

  it.live("has its thoughts folded, and a key that shows them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const screen = yield* chat([{ thinking: "I look at the files first.", text: "So it is." }])
        yield* screen.type("go\r")
        const folded = yield* screen.sees((text) => text.endsWith("So it is.\n>"))
        assert.match(folded, /· thought for .* Ctrl-T shows it/)
        assert.notInclude(folded, "I look at")
        yield* screen.type("\x14")
        yield* screen.sees((text) => text.includes("  I look at the files first."))
        assert.deepStrictEqual(screen.styleOf("I look"), ["dim"])
      })
    )
  )

  it.live("is drawn by run too, and raw where nobody reads it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const model = yield* place.script({ text: answer })
        const screen = yield* Pseudo.start(place, ["run", "--model", model, "go"], { rows: 50 })
        assert.strictEqual(yield* screen.exit, 0)
        assert.include(screen.everything(), "Some bold words, soft ones and npm ci")
        const { stdout } = yield* place.call(["run", "--model", model, "go"])
        assert.strictEqual(stdout, `${answer}\n`)
      })
    )
  )
})
