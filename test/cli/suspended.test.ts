import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { chmodSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const command = (line: string) => ({ tools: [{ name: "run_command", params: { command: line } }] })
const hushed = Effect.sleep("700 millis")

/** A chat that a shell has begun. */
const chatInShell = (steps: ReadonlyArray<unknown>, options: Pseudo.Options = {}, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const model = yield* place.script(...steps)
    yield* place.write("workspace/notes.md", "x")
    const shell = yield* Pseudo.startShell(place, {
      columns: 100,
      ...options,
      env: { ASSENT_MODEL: model, ...options.env }
    })
    yield* shell.type(`${["assent", "chat", ...flags].join(" ")}\r`)
    yield* shell.sees((text) => text.endsWith(".\n>"))
    return { place, shell, ends: (text: string) => shell.sees((seen) => seen.endsWith(text)) }
  })

type Shell = Effect.Effect.Success<ReturnType<typeof chatInShell>>["shell"]

const stopped = (shell: Shell) => shell.sees((text) => /Stopped[^\n]*\n(?:[^\n]*\n)?\$$/.test(text))
const suspend = (shell: Shell) => Effect.zipRight(shell.type("\x1a"), stopped(shell))

/** What the shell's terminal does with lines. */
const isSane = (shell: Shell) =>
  Effect.zipRight(
    shell.type("echo sane $(stty -a | grep -c ' icanon') $(stty -a | grep -c ' echo ')\r"),
    shell.sees((text) => text.includes("\nsane 1 1\n"))
  )

/** The program's process, which works there. */
const pidIn = (place: Program.Place): number => {
  const found = readdirSync("/proc").find((pid) => {
    try {
      return (
        readlinkSync(`/proc/${pid}/cwd`) === place.path("workspace") &&
        readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("\0chat\0")
      )
    } catch {
      return false
    }
  })
  return Number(found)
}

describe.concurrent("Ctrl-Z", () => {
  it.scopedLive("leaves a pager, which comes back where it was, and goes on", () =>
    Effect.gen(function* () {
      const { ends, shell } = yield* chatInShell([command("seq 1 100"), { text: "Done." }], {}, "--yolo")
      yield* shell.type("go\r")
      yield* ends("Done.\n>")
      yield* shell.type("\x0f")
      yield* shell.sees((text) => text.includes("1-23 of 100"))
      yield* shell.type(" j")
      yield* shell.sees((text) => text.startsWith("25\n") && text.includes("25-47 of 100"))
      yield* suspend(shell)
      assert.isFalse(shell.isPaging())
      yield* isSane(shell)
      yield* shell.type("fg\r")
      yield* shell.sees((text) => text.startsWith("25\n") && text.includes("25-47 of 100"))
      assert.isTrue(shell.isPaging())
      yield* shell.type("k")
      yield* shell.sees((text) => text.startsWith("24\n"))
      yield* shell.type("q")
      yield* ends("\n>")
      assert.isFalse(shell.isPaging())
      // What the shell wrote stands, and one prompt below it.
      assert.match(shell.everything(), /Done\.\n\n?\[1\]\+ +Stopped[^>]*\$ fg\n[^>]*\n>$/)
      yield* shell.type("alive")
      yield* ends("> alive")
    })
  )

  it.scopedLive("leaves a question, whose answer counts afterwards, and a list that is open", () =>
    Effect.gen(function* () {
      const { ends, shell } = yield* chatInShell([command("touch made"), { text: "It was made." }])
      yield* shell.type("look at @")
      yield* shell.sees((text) => text.includes("notes.md"))
      yield* shell.type("no")
      yield* shell.sees((text) => text.includes("notes.md"))
      yield* suspend(shell)
      yield* shell.type("fg\r")
      yield* shell.sees((text) => /> look at @no\n[^>]*notes\.md/.test(text))
      yield* shell.type("\t\x15go\r")
      yield* ends("answer>")
      yield* hushed
      yield* shell.type("y\x1a")
      yield* stopped(shell)
      yield* isSane(shell)
      yield* shell.type("fg\r")
      yield* ends("answer> y")
      yield* shell.type("\r")
      yield* shell.sees((text) => text.includes("It was made."))
    })
  )

  it.scopedLive("leaves while words stream and a command of one's own runs; what came meanwhile is there", () =>
    Effect.gen(function* () {
      const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ")
      const step = { text: words, chunks: 60, chunkDelay: "20 millis" }
      const { shell } = yield* chatInShell([step])
      yield* shell.type("go\r")
      yield* shell.sees((text) => text.includes("word5 "))
      yield* suspend(shell)
      yield* hushed
      yield* shell.type("fg\r")
      const all = yield* shell.sees((text) => text.includes("word59"))
      assert.include(all.replace(/\s+/g, " "), words)
      yield* shell.type("!echo begun; sleep 1; echo over\r")
      yield* shell.sees((text) => text.includes("\n  begun"))
      yield* suspend(shell)
      yield* shell.type("fg\r")
      yield* shell.sees((text) => /\n {2}over\n {2}✓/.test(text))
    })
  )

  it.scopedLive("stops an editor with it, and fg goes back to the editor", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const editor = place.path("editor.sh")
      // As editors do: it waits for words, and writes them.
      writeFileSync(editor, '#!/bin/sh\necho editing\nread -r words\nprintf "%s" "$words" > "$1"\n')
      chmodSync(editor, 0o755)
      const shell = yield* Pseudo.startShell(place, { columns: 100, env: { EDITOR: editor, VISUAL: "" } })
      yield* shell.type("assent chat\r")
      yield* shell.sees((text) => text.endsWith(".\n>"))
      yield* shell.type("draft\x07")
      yield* shell.sees((text) => text.endsWith("editing"))
      yield* suspend(shell)
      yield* shell.type("fg\r")
      yield* shell.sees((text) => text.includes("$ fg\n"))
      yield* shell.type("from an editor\r")
      yield* shell.sees((text) => text.endsWith("\n> from an editor"))
      yield* shell.type("!")
      yield* shell.sees((text) => text.endsWith("\n> from an editor!"))
    })
  )

  it.scopedLive("lets the shell end it", () =>
    Effect.gen(function* () {
      const { shell } = yield* chatInShell([])
      yield* suspend(shell)
      // `wait` returns at once, with 148, as long as the shell has not heard that the job goes on.
      yield* shell.type("kill %1; until wait %1 2>&-; ended=$?; [ $ended != 148 ]; do :; done; echo ended $ended\r")
      yield* shell.sees((text) => text.endsWith("ended 129\n$"))
      yield* isSane(shell)
    })
  )
})

describe.skipIf(process.platform !== "linux")("a stop from outside", { concurrent: true }, () => {
  for (const where of ["a draft", "a pager"])
    it.scopedLive(`is gone on from at ${where}, once and in raw mode, and nothing of the shell's is lost`, () =>
      Effect.gen(function* () {
        const { ends, place, shell } = yield* chatInShell([command("seq 1 3; false"), { text: "Done." }], {}, "--yolo")
        yield* shell.type("go\r")
        yield* ends("Done.\n>")
        yield* shell.type(where === "a draft" ? "half a word" : "\x0f")
        yield* where === "a draft" ? ends("> half a word") : shell.sees((text) => text.includes("1-3 of 3"))
        const pid = pidIn(place)
        process.kill(pid, "SIGSTOP")
        yield* stopped(shell)
        // Behind the shell's back nothing of the terminal is touched.
        process.kill(pid, "SIGCONT")
        yield* shell.type("echo from the shell\r")
        yield* shell.sees((text) => text.includes("\nfrom the shell\n"))
        yield* isSane(shell)
        yield* shell.type("fg\r")
        if (where === "a pager") {
          yield* shell.sees((text) => text.startsWith("1\n2\n3\n~") && text.includes("1-3 of 3"))
          assert.isTrue(shell.isPaging())
          yield* shell.type("q")
          yield* ends("Done.\n>")
          return
        }
        const seen = yield* shell.sees((text) => /\$ fg\n[^>]*\n> half a word$/.test(text))
        assert.include(seen, "\nfrom the shell\n")
        yield* shell.type("!")
        yield* ends("> half a word!")
        // As it was left, and as it is.
        assert.strictEqual(shell.everything().split("> half a word").length, 3)
      })
    )

  it.scopedLive("changes nothing where no shell has had the terminal", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const screen = yield* Pseudo.start(place, ["chat"])
      yield* screen.sees((text) => text.endsWith("\n>"))
      yield* screen.type("half a word")
      const before = yield* screen.sees((text) => text.endsWith("> half a word"))
      process.kill(screen.pid, "SIGSTOP")
      process.kill(screen.pid, "SIGCONT")
      yield* screen.type("!")
      assert.strictEqual(yield* screen.sees((text) => text.endsWith("!")), `${before}!`)
    })
  )
})
