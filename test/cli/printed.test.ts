import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const command = (line: string) => ({ tools: [{ name: "run_command", params: { command: line } }] })

const chat = (steps: ReadonlyArray<unknown>, options: Pseudo.Options = {}, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    yield* place.write("workspace/script.json", { version: 1, agents: { main: steps } })
    yield* place.write("workspace/a.ts", "const a = 1\nconst b = 2\nconst c = 3\nexport { a }\n")
    const screen = yield* Pseudo.start(place, ["chat", "--model", "script:script.json", ...flags], options)
    yield* screen.sees((text) => text.endsWith("Commands open.\n>"))
    return screen
  })

/** So long nobody types before an answer. */
const hushed = Effect.sleep("700 millis")

/** Without times, which differ. */
const steady = (text: string) => `${text.replace(/\d+(?:\.\d)? m?s/g, "N s")}\n`

describe.concurrent("what commands do, at a terminal", () => {
  it.live("is seen while it happens, and what is seen is kept when it is stopped", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const screen = yield* chat([command("seq 1 30; sleep 60"), { text: "x" }], {}, "--yolo")
        yield* screen.type("go\r")
        const live = yield* screen.sees((text) => text.includes("    30\n"))
        assert.include(live, "    26\n")
        assert.notInclude(live, "    25\n")
        yield* screen.type("\x03")
        const kept = yield* screen.sees((text) => text.includes("— cancelled (user) —"))
        assert.match(
          kept,
          /… 18 lines above · Ctrl-O shows all\n +19\n[^]* {4}30\n {2}✗ run_command interrupted · [\d.]+ m?s\n/
        )
      })
    )
  )

  it.live("keeps its colours while it runs, behind it and in the whole", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const printing =
          "printf 'one\\n\\033[3'; printf '2mgr''een\\n\\033[1;41mba''dge\\033[0m\\033]0;t\\007\\n'; read -r go < go"
        const screen = yield* chat([command(`mkfifo go; ${printing}`), { text: "Done." }], {}, "--yolo")
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.includes("    badge\n"))
        assert.deepStrictEqual(screen.styleOf("green"), ["dim", "2"])
        yield* screen.type("!echo > go\r")
        yield* screen.sees((text) => text.includes("Done."))
        assert.deepStrictEqual(screen.styleOf("green"), ["dim", "2"])
        assert.deepStrictEqual(screen.styleOf("badge"), ["bold", "dim", "1"])
        yield* screen.type("\x0f")
        yield* screen.sees((text) => text.includes("1-3 of 3"))
        assert.deepStrictEqual(screen.styleOf("green"), ["2"])
        assert.deepStrictEqual(screen.styleOf("badge"), ["bold", "1"])
      })
    )
  )

  it.live("is counted whole, also where not all of it was shown", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const screen = yield* chat([command("seq 1 400000"), { text: "Done." }], {}, "--yolo")
        yield* screen.type("!seq 1 300000\r")
        yield* screen.sees((text) => text.includes("  … 299988 lines above · Ctrl-O shows all\n  299989\n"))
        yield* screen.type("go\r")
        const seen = yield* screen.sees((text) => text.endsWith("Done.\n>"))
        assert.match(seen, / {4}… 399995 lines above · Ctrl-O shows all\n {4}399996\n/)
        assert.match(seen, /✓ [^\n]*400,?000 lines/)
      })
    )
  )

  for (const plain of ["chat --plain", "run", "run --plain"])
    it.live(`is seen behind it in ${plain}, too, where no key opens the whole`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const model = yield* place.script(command("seq 1 20; exit 3"), { text: "It failed." })
          const [name = "", ...flags] = plain.split(" ")
          const words = name === "run" ? ["go"] : []
          const screen = yield* Pseudo.start(place, [name, ...flags, "--model", model, ...words])
          if (name === "chat") {
            yield* screen.sees((text) => text.includes("Ctrl-D to quit"))
            yield* screen.type("go\r")
          }
          yield* screen.sees((text) => text.endsWith("answer>"))
          yield* hushed
          yield* screen.type("yes\r")
          const seen = yield* screen.sees((text) => text.includes("It failed."))
          const [more, failed, between] = flags.length > 0 ? ["", "failed:", ","] : ["… ", "✗", " ·"]
          const rows = ` {4}${more}8 lines above\\n {4}9\\n(?: {4}\\d+\\n){10} {4}20\\n {2}${failed} run_command exit 3${between} `
          assert.match(seen, new RegExp(`^${rows}`, "m"))
        })
      )
    )

  const asksNobody: ReadonlyArray<{ readonly how: string; readonly line: string }> = [
    { how: "allows all", line: "assent run --yolo --model script:s.json go" },
    { how: "leaves it to a policy", line: "assent run --channel auto --model script:s.json go" },
    { how: "is told more by a pipe", line: "echo more | assent run --yolo --model script:s.json go" },
    { how: "runs in the background", line: "assent run --yolo --model script:s.json go > answer &" }
  ]
  for (const { how, line } of asksNobody)
    it.live(`is seen in a run that ${how} and asks nobody, while it goes on`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const steps = [command("seq 1 20; mkfifo go; touch made; read -r go < go"), { text: "Done." }]
          const policy = { whitelist: { tools: ["run_command"] } }
          yield* place.write("workspace/s.json", { version: 1, agents: { main: steps } })
          yield* place.write("config/permissions.json", policy)
          const shell = yield* Pseudo.startShell(place, { columns: 100 })
          yield* shell.type(`${line}\r`)
          yield* shell.sees((text) => /^(?:\$ )?● run_command seq 1 20/m.test(text))
          yield* place.appears("workspace/made")
          const second = yield* Pseudo.startShell(place)
          yield* second.type("echo > go\r")
          const end = yield* shell.sees((text) => text.includes("✓"))
          assert.match(end, /^ {4}… 15 lines above\n {4}16\n/m)
        })
      )
    )

  it.live("is told with its exit code in red, and the rest is behind a key", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const screen = yield* chat([command("seq 1 100; exit 3"), { text: "Done." }], {}, "--yolo")
        yield* screen.type("go\r")
        const end = yield* screen.sees((text) => text.endsWith("Done.\n>"))
        assert.match(end, /✗ run_command exit 3 · [\d.]+ m?s · 100 lines/)
        assert.deepStrictEqual(screen.styleOf("run_command exit 3"), ["1"])
        yield* screen.type("\x0f")
        const first = yield* screen.sees((text) => text.includes("1-23 of 100"))
        assert.isTrue(first.startsWith("1\n2\n3\n"))
        assert.isTrue(screen.isPaging())
        yield* screen.type("G")
        yield* screen.sees((text) => text.includes("\n100\n") && text.includes("78-100 of 100"))
        yield* screen.resize(60, 12)
        yield* screen.sees(
          (text) => text.includes("of 100 · / searches · q closes · run_command") && text.split("\n").length === 12
        )
        yield* screen.type("/4")
        yield* screen.sees((text) => text.endsWith("\n/4"))
        // A key that closes is a letter here.
        yield* screen.type("qx\x7f\x7f1\r")
        yield* screen.sees((text) => text.startsWith("41\n") && text.includes("n: the next 41"))
        yield* screen.type("/1\rn")
        yield* screen.sees((text) => text.startsWith("51\n"))
        yield* screen.type("NN")
        yield* screen.sees((text) => text.startsWith("31\n"))
        yield* screen.type("/nowhere\r")
        yield* screen.sees((text) => text.startsWith("31\n") && text.includes("nothing has nowhere"))
        yield* screen.type("/left")
        yield* screen.sees((text) => text.endsWith("\n/left"))
        yield* screen.type("\x1b")
        yield* screen.sees((text) => text.includes("nothing has nowhere"))
        yield* screen.type("q")
        yield* screen.sees((text) => text.endsWith("Done.\n>"))
        assert.isFalse(screen.isPaging())
        yield* screen.type("hello")
        yield* screen.sees((text) => text.endsWith("> hello"))
      })
    )
  )

  for (const columns of [120, 80, 40])
    it.live(`is said in a person's words, in ${columns} columns`, ({ expect }) =>
      Effect.scoped(
        Effect.gen(function* () {
          const edit = { path: "a.ts", old_text: "const b = 2\nconst c = 3", new_text: "const b = 7777\nconst d = 4" }
          const screen = yield* chat(
            [
              { tools: [{ name: "read_file", params: { path: "a.ts" } }] },
              { tools: [{ name: "search_files", params: { pattern: "const" } }] },
              command("printf 'one\\n'"),
              command("printf '1\\n2\\n3\\n'"),
              { tools: [{ name: "edit_file", params: edit }] },
              { text: "Done." }
            ],
            { columns, rows: 50 }
          )
          yield* screen.type("/permissions allow printf*\r")
          yield* screen.sees((text) => /Allowed for this session[^>]*>$/.test(text))
          yield* screen.type("go\r")
          yield* screen.sees((text) => text.includes("Allow edit_file?") && text.includes("7777"))
          assert.deepStrictEqual(screen.styleOf("7777"), ["bold", "underline", "2"])
          yield* Effect.sleep("300 millis")
          yield* screen.type("y\r")
          const told = steady(yield* screen.sees((text) => text.endsWith("Done.\n>")))
          assert.notMatch(told, /exitCode|output=/)
          yield* Effect.promise(() => expect(told).toMatchFileSnapshot(`screens/printed-${columns}.txt`))
        })
      )
    )
})
