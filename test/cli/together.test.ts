/** Calls of one tool that are proposed together, at a pseudo-terminal: one dialog, an answer and a record for each. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const write = (name: string, rows = 1) => ({
  name: "write_file",
  params: { path: `${name}.txt`, content: Array.from({ length: rows }, (_, row) => `${name} ${row}\n`).join("") }
})
const run = (command: string) => ({ name: "run_command", params: { command } })

const begin = (options: Pseudo.Options, tools: ReadonlyArray<unknown>, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const model = yield* place.script({ tools }, { text: "Done." })
    const screen = yield* Pseudo.start(place, ["chat", "--model", model, ...flags], options)
    yield* screen.sees((text) => text.endsWith(flags.includes("--plain") ? "\nyou>" : "\n>"))
    yield* screen.type("go\r")
    const decided = () => {
      const workspaces = place.path("state", "workspaces")
      const audit = join(workspaces, readdirSync(workspaces)[0] ?? "", "audit")
      return readdirSync(audit)
        .filter((name) => name.endsWith(".jsonl"))
        .flatMap((name) => readFileSync(join(audit, name), "utf8").split("\n"))
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
        .filter((record) => record.class === "permission")
    }
    return { place, screen, decided }
  })

/** A person who reads before they type. */
const say = (screen: Pseudo.Pseudo, line: string) => Effect.delay(screen.type(line), "700 millis")

describe.concurrent("calls of one tool at a terminal", () => {
  it.live("are one dialog, and each is decided and recorded for itself", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { decided, place, screen } = yield* begin(
          { rows: 40 },
          ["a", "b", "c", "d", "e"].map((name) => write(name))
        )
        yield* screen.sees((text) => text.includes("Allow 5 calls of write_file?") && text.endsWith("answer>"))
        yield* say(screen, "3 c: not this one\r")
        yield* screen.sees(
          (text) => text.includes("3. create c.txt (new file, 1 line) · no") && text.endsWith("answer>")
        )
        yield* say(screen, "y")
        yield* screen.sees((text) => text.includes("Done."))
        for (const name of ["a", "b", "d", "e"]) assert.isTrue(existsSync(place.path(`workspace/${name}.txt`)), name)
        assert.isFalse(existsSync(place.path("workspace/c.txt")))
        const records = decided()
        assert.deepStrictEqual(
          records.map(({ outcome }) => outcome),
          ["granted", "granted", "denied", "granted", "granted"]
        )
        assert.strictEqual(new Set(records.map(({ requestId }) => requestId)).size, 5)
        assert.strictEqual(new Set(records.map(({ by }) => by)).size, 1)
      })
    )
  )

  it.live("are a row each where their commands are one, however many, and one key allows them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const names = Array.from({ length: 11 }, (_, index) => `made-${index}`)
        const { place, screen } = yield* begin(
          { rows: 24 },
          names.map((name) => run(`touch ${name} && echo ${name}`))
        )
        const shown = yield* screen.sees(
          (text) => text.includes("Allow 11 calls of run_command?") && text.endsWith("answer>")
        )
        assert.notInclude(shown, "not shown whole")
        for (const name of names) assert.strictEqual(shown.split(`touch ${name} `).length, 2, name)
        yield* say(screen, "y")
        yield* screen.sees((text) => text.includes("Done."))
        for (const name of names) assert.isTrue(existsSync(place.path(`workspace/${name}`)), name)
      })
    )
  )

  it.live("are allowed together once each was seen whole", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { place, screen } = yield* begin({ rows: 24 }, [write("long", 30), write("short")])
        yield* screen.sees((text) => text.includes("not shown whole") && text.endsWith("answer>"))
        yield* say(screen, "y")
        yield* screen.sees((text) => text.includes("You have not seen all of 1") && text.endsWith("answer>"))
        yield* say(screen, "v")
        yield* screen.sees((text) => text.includes("long 0") && text.includes("waits for you · q goes back to it"))
        assert.isTrue(screen.isPaging())
        yield* screen.type("q")
        yield* screen.sees((text) => text.includes("[y]es to all 2") && text.endsWith("answer>"))
        assert.notInclude(screen.everything(), "long 29")
        yield* say(screen, "y")
        yield* screen.sees((text) => text.includes("Done."))
        assert.isTrue(existsSync(place.path("workspace/short.txt")))
      })
    )
  )

  it.live("are a numbered list with --plain", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { decided, screen } = yield* begin(
          { rows: 24 },
          [run("echo one"), run("echo two"), run("echo three")],
          "--plain"
        )
        yield* screen.sees((text) => text.includes("Allow 3 calls of run_command?") && text.endsWith("answer>"))
        for (const words of ["1. ", "2. ", "3. ", "echo three"]) assert.include(screen.everything(), words)
        yield* say(screen, "2 n\r")
        yield* screen.sees((text) => text.includes("echo two, no") && text.endsWith("answer>"))
        yield* say(screen, "y\r")
        yield* screen.sees((text) => text.includes("Done."))
        assert.deepStrictEqual(
          decided().map(({ outcome }) => outcome),
          ["granted", "denied", "granted"]
        )
      })
    )
  )
})
