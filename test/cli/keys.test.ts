import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as Runs from "../kit/Runs.js"

const sizes = [120, 80, 40]
/** All sizes in the soak; here one, which differs by test. */
const sizesOf = (turn: number): ReadonlyArray<number> => (Runs.isWhole ? sizes : sizes.slice(turn, turn + 1))

const start = (place: Program.Place, options: Pseudo.Options = {}, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const screen = yield* Pseudo.start(place, ["chat", ...flags], options)
    yield* screen.sees((text) => /Commands [a-z, ]+\.\n>$/.test(text.replace(/\n(?!>)/g, " ").replace(/ +/g, " ")))
    return screen
  })

/** Where this workspace's history is. */
const historyOf = (place: Program.Place): string => {
  const root = join(place.path("state"), "workspaces")
  return join(root, readdirSync(root)[0] ?? "", "history")
}

const script = (...steps: ReadonlyArray<unknown>) => ({ version: 1, agents: { main: steps } })
const command = (line: string) => ({ tools: [{ name: "run_command", params: { command: line } }] })
const hushed = Effect.sleep("700 millis")
const typed = (screen: Pseudo.Pseudo, text: string, pause: number) =>
  Effect.forEach(text, (key) => Effect.delay(screen.type(key), pause), { discard: true })

/** A chat that a shell has begun. */
const chatInShell = Effect.gen(function* () {
  const place = yield* Program.place
  const shell = yield* Pseudo.startShell(place)
  yield* shell.type("assent chat\r")
  yield* shell.sees((text) => text.endsWith(".\n>"))
  return shell
})

const suspend = (shell: Effect.Effect.Success<typeof chatInShell>) =>
  Effect.zipRight(
    shell.type("\x1a"),
    shell.sees((text) => /Stopped[^\n]*\n(?:[^\n]*\n)?\$$/.test(text))
  )

describe.concurrent("keys at a terminal", () => {
  for (const columns of sizesOf(2))
    it.live(`clear, search, fold and break lines, in ${columns} columns`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const screen = yield* start(place, { columns })
          // Ctrl-C with text never quits, however often it is pressed.
          for (let time = 0; time < 3; time++) {
            yield* screen.type("not this")
            yield* screen.sees((text) => text.endsWith("> not this"))
            yield* screen.type("\x03")
            yield* screen.sees((text) => text.endsWith("\n>"))
          }
          yield* screen.type("one\ntwo")
          yield* screen.sees((text) => text.endsWith("> one\n  two"))
          yield* screen.type("\x1b[13;2uthree\x1b\rfour")
          yield* screen.sees((text) => text.endsWith("> one\n  two\n  three\n  four"))
          yield* screen.type("\x1b\x1b")
          yield* screen.sees((text) => text.endsWith("\n>"))
          yield* screen.type(`\x1b[200~${Array.from({ length: 40 }, (_, row) => `row ${row}`).join("\r")}\x1b[201~`)
          yield* screen.sees((text) => text.endsWith("> [40 lines · Ctrl-O opens]"))
          yield* screen.type("\x0f")
          yield* screen.sees((text) => text.includes("  row 38\n  row 39"))
          yield* screen.type("\x03/cost\r")
          yield* screen.sees((text) => text.includes("> /cost"))
          yield* screen.type("\x12co")
          yield* screen.sees((text) => text.endsWith('search "co"> /cost'))
          yield* screen.type("\t")
          yield* screen.sees((text) => text.endsWith("\n> /cost"))
          yield* screen.type("\x03\x03\x03")
          assert.strictEqual(yield* screen.exit, 0)
        })
      )
    )

  it.live("leave the terminal to a shell and to an editor, and come back as it was", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const editor = place.path("editor.sh")
        writeFileSync(editor, '#!/bin/sh\nprintf "%s" "$(cat "$1") from an editor" > "$1"\n')
        chmodSync(editor, 0o755)
        const screen = yield* start(place, { env: { EDITOR: editor, VISUAL: "" } })
        yield* screen.type("words")
        yield* screen.sees((text) => text.endsWith("> words"))
        yield* screen.type("\x07")
        yield* screen.sees((text) => text.endsWith("> words from an editor"))
        yield* screen.type("\x18\x05")
        yield* screen.sees((text) => text.endsWith("> words from an editor from an editor"))
        // There is no shell here with jobs: it comes back by itself, and draws itself anew.
        yield* screen.type("\x1a")
        yield* hushed
        yield* screen.type("!")
        yield* screen.sees((text) => text.endsWith("editor!"))
      })
    )
  )

  for (const [command, how] of [
    ["no-such-editor --wait", "is not there"],
    ["/nowhere/editor", "is not there"],
    ["false", "ended with exit code 1"],
    ["sh -c 'exit 3' x", "ended with exit code 3"]
  ] as const)
    it.live(`say which editor failed and how, and keep what is typed: ${command}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const screen = yield* start(place, { env: { EDITOR: command, VISUAL: "" } })
          yield* screen.type("words")
          yield* screen.sees((text) => text.endsWith("> words"))
          yield* screen.type("\x07")
          const said = yield* screen.sees((text) => text.includes("still there.\n") && text.endsWith("\n> words"))
          const sentence = `The editor ${command} ${how}. Set VISUAL or EDITOR to another one, such as nano. Your text is still there.`
          assert.include(said.replace(/\s+/g, " "), sentence)
          // Nothing beside it, as of a shell, and no word is broken.
          assert.include(`\n${said}`, `\nThe editor`)
          assert.notMatch(said, /not found|\bsh: /)
        })
      )
    )

  for (const how of [{ args: ["--plain"] }, { args: [], env: { TERM: "dumb" } }])
    it.live(`are heard where no screen is drawn, in the midst of a turn: ${JSON.stringify(how)}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const waiting = { tools: [{ name: "run_command", params: { command: "echo begun; sleep 60" } }] }
          const script = yield* place.script(waiting, waiting, { text: "On we go." })
          const screen = yield* Pseudo.start(place, ["chat", "--yolo", "--model", script, ...how.args], how)
          const ends = (text: string) => screen.sees((shown) => shown.endsWith(text))
          yield* ends("Ctrl-D to quit\nyou>")
          // What is typed is seen before it is read, and lost when Ctrl-C comes before that.
          yield* screen.type("!printf '10 %%\\r20 %%\\nbegun\\n'; sleep 60\r")
          yield* ends("sleep 60\n  20 %\n  begun")
          yield* screen.type("\x03")
          yield* ends("failed: stopped\nyou>")
          // Ctrl-C gives back what no agent has read; after the command it begins the next turn.
          const stops = [
            ["\x03", "cancelled (user)\nyou>"],
            ["/cancel main\r", "cancelled (user)\nOn we go.\nyou>"]
          ] as const
          for (const [stop, end] of stops) {
            yield* screen.type("go\r")
            yield* ends("calls run_command echo begun; sleep 60")
            yield* screen.type("more words\r")
            yield* ends("from you: more words")
            yield* screen.type(stop)
            yield* ends(end)
            yield* screen.type("/status\r")
            yield* screen.sees((text) => /Mode: [^\n]*\nContext: [^\n]*\nyou>$/.test(text))
          }
          const hint = "Press Ctrl-C again to quit, or type /quit.\nyou>"
          yield* screen.type("\x03")
          yield* ends(hint)
          // Twice is one right after the other.
          yield* screen.type("/status\r")
          yield* screen.sees((text) => /Context: [^\n]*\nyou>$/.test(text))
          yield* screen.type("\x03")
          yield* ends(hint)
          yield* screen.type("\x03")
          assert.strictEqual(yield* screen.exit, 0)
        })
      )
    )

  it.live("stop it as a job of a shell, whose terminal is sane, and fg goes on", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const shell = yield* chatInShell
        yield* shell.type("half a thought")
        yield* shell.sees((text) => text.endsWith("> half a thought"))
        yield* suspend(shell)
        yield* shell.type("stty -a | grep -c ' icanon'; stty -a | grep -c ' echo '\r")
        yield* shell.sees((text) => text.endsWith("\n1\n1\n$"))
        yield* shell.resize(50, 60)
        yield* shell.type("fg\r")
        yield* shell.sees((text) => text.endsWith("> half a thought"))
        yield* shell.type(" that goes on\r")
        yield* shell.sees((text) => text.includes("> half a thought that goes on\n"))
        // It knows the size that the shell was told: narrow help has two rows for each command.
        yield* shell.type("/help\r")
        yield* shell.sees((text) => text.includes("\n/cost\n  show model calls"))
      })
    )
  )

  it.live("stop it in the midst of a search, which goes on where it was", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const shell = yield* chatInShell
        yield* shell.type("/cost\r")
        yield* shell.sees((text) => text.includes("> /cost"))
        yield* shell.type("a draft\x12co")
        yield* shell.sees((text) => text.endsWith('search "co"> /cost'))
        yield* suspend(shell)
        yield* shell.type("fg\r")
        yield* shell.sees((text) => text.endsWith('search "co"> /cost'))
        // Of the keys that leave the terminal only this one is none of the search's own.
        yield* shell.type("\x07")
        yield* shell.sees((text) => text.endsWith("\n> a draft"))
      })
    )
  )

  it.live("keep what was typed for the next time, for its owner only, and no secret of it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const key = ["sk", "0".repeat(24)].join("-")
        const first = yield* start(place)
        const lines = ["/cost", "/agents", `use ${key}`, "my password is hunter2", " /private", "/cost"]
        for (const line of lines) yield* first.type(`${line}\r`)
        yield* first.type("\x04")
        assert.strictEqual(yield* first.exit, 0)
        const file = historyOf(place)
        assert.strictEqual(statSync(file).mode & 0o777, 0o600)
        assert.deepStrictEqual(readFileSync(file, "utf8"), '"/cost"\n"/agents"\n"/cost"\n')
        // Whatever stands in it, it can only be text.
        writeFileSync(file, '"\\u001b]0;owned\\u0007\\u001b[2Jred"\nnot json\n[1]\n"\\u001b[31m"\n"/agents"\n')
        const second = yield* start(place)
        yield* second.type("\x1b[A")
        yield* second.sees((text) => text.endsWith("\n> /agents"))
        yield* second.type("\x1b[A")
        yield* second.sees((text) => text.endsWith("\n> [31m"))
        yield* second.type("\x1b[A")
        yield* second.sees((text) => text.endsWith("\n> ]0;owned[2Jred"))
      })
    )
  )

  it.live("interrupt with escape, which never quits", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/script.json", script(command("sleep 60"), { text: "x" }))
        const screen = yield* start(place, {}, "--model", "script:script.json", "--yolo")
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.includes("sleep 60"))
        yield* screen.type("\x1b")
        yield* screen.sees((text) => text.includes("— cancelled (user) —"))
        for (let time = 0; time < 4; time++) yield* screen.type("\x1b")
        yield* hushed
        yield* screen.type("alive")
        yield* screen.sees((text) => text.endsWith("> alive"))
      })
    )
  )
})

describe.concurrent("a message that begins with a slash", () => {
  it.live("is one where it begins with a path, and no command that there is not", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/script.json", script({ text: "First." }, { text: "Second." }))
        const screen = yield* start(place, {}, "--model", "script:script.json")
        yield* screen.type("/usr/lib is large\r")
        yield* screen.sees((text) => text.endsWith("First.\n>"))
        yield* screen.type("/tmp is full\r")
        yield* screen.sees((text) => text.endsWith("Second.\n>"))
        yield* screen.type("/agnets\r")
        yield* screen.sees((text) => text.includes("Did you mean /agents?") && text.endsWith("\n> /agnets"))
      })
    )
  )
})

describe.concurrent("a permission at a terminal", () => {
  for (const columns of sizesOf(1))
    it.live(`is given with one key, and takes commands, in ${columns} columns`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          yield* place.write("workspace/script.json", script(command("printf 'a%.0s' 1"), { text: "Done." }))
          const screen = yield* start(place, { columns, rows: 100 }, "--model", "script:script.json")
          yield* screen.type("go\r")
          yield* screen.sees((text) => text.endsWith("answer>"))
          yield* hushed
          yield* screen.type("/help\r")
          yield* screen.sees((text) => text.includes("this list") && text.endsWith("answer>"))
          yield* hushed
          yield* screen.type("/hepl\r")
          yield* screen.sees((text) =>
            /There is no command \/hepl\.\s[│\s]*Did\s[│\s]*you\s[│\s]*mean\s[│\s]*\/help\?/.test(text)
          )
          yield* screen.type("\r")
          yield* screen.sees((text) => text.includes("Please type one of") && text.endsWith("answer>"))
          yield* hushed
          yield* screen.type("c")
          yield* screen.sees((text) => text.endsWith("comment>"))
          yield* screen.type("\x1b")
          yield* screen.sees((text) => text.includes("comment> (back)") && text.endsWith("answer>"))
          yield* hushed
          yield* screen.type("y")
          yield* screen.sees((text) => text.endsWith("Done.\n>"))
        })
      )
    )

  it.live("is given for this project after its rule was seen, holds in the next session, and is taken back", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const steps = script(command("touch made"), { text: "Done." })
        yield* place.write("workspace/script.json", steps)
        const first = yield* start(place, { columns: 40, rows: 40 }, "--model", "script:script.json")
        yield* first.type("go\r")
        yield* first.sees((text) => text.endsWith("answer>"))
        yield* hushed
        yield* first.type("p")
        yield* first.sees((text) => text.includes("  exactly `touch made`") && text.endsWith("y/n>"))
        yield* hushed
        yield* first.type("y")
        yield* first.sees((text) => text.endsWith("Done.\n>"))
        yield* first.type("\x04")
        assert.strictEqual(yield* first.exit, 0)
        const { stdout } = yield* place.call(["permissions"])
        assert.match(stdout, /allowed in this project, in every session:\n {2}exactly `touch made`/)

        const second = yield* start(place, { rows: 40 }, "--model", "script:script.json")
        yield* second.type("go\r")
        yield* second.sees((text) => text.endsWith("Done.\n>"))
        yield* second.type("/permissions\r")
        yield* second.sees(
          (text) => /1 allow exactly `touch made`.* · this project/.test(text) && text.endsWith("rules>")
        )
        yield* second.type("why run_command touch made\r")
        yield* second.sees((text) => text.includes("Allowed by a rule of this project: exactly `touch made`"))
        yield* second.type("deny rm *\r")
        yield* second.sees((text) => /1 deny {2}rm \* · this session/.test(text))
        yield* second.type("2\r")
        yield* second.sees((text) => text.includes("remove 2 removes that rule."))
        yield* second.type("mode deny\r")
        yield* second.sees((text) => text.includes("mode: deny · suspended: no"))
        yield* second.type("what\r")
        yield* second.sees((text) => text.includes("Nothing here is called what: allow, deny,"))
        yield* second.type("remove 2\r")
        yield* second.sees((text) => text.includes("Removed this project's rule: touch made"))
        yield* hushed
        yield* second.type("\x1b")
        yield* second.sees((text) => text.endsWith("rules> (back)\n>"))
        yield* second.type("\x04")
        assert.strictEqual(yield* second.exit, 0)
        assert.notInclude((yield* place.call(["permissions"])).stdout, "in this project")
      })
    )
  )

  it.live("leaves every letter to the next line, and takes no word behind its key for one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const delays = [350, 1_200, 2_600]
        const steps = delays.flatMap((delay) => [command(`echo ${delay}`), { text: `After ${delay}.` }])
        yield* place.write("workspace/script.json", script(...steps, { text: "The last." }))
        const screen = yield* start(place, { rows: 60 }, "--model", "script:script.json")
        const answered = (delay: number) =>
          Effect.gen(function* () {
            yield* screen.type("go\r")
            yield* screen.sees((text) => text.endsWith("answer>"))
            yield* hushed
            yield* screen.type("y")
            yield* screen.sees((text) => text.endsWith(`After ${delay}.\n>`))
          })
        for (const delay of delays) {
          yield* answered(delay)
          yield* Effect.sleep(delay)
          yield* typed(screen, "explore list src", 40)
          yield* screen.sees((text) => text.endsWith("\n> explore list src"))
          yield* screen.type("\x03")
          yield* screen.sees((text) => text.endsWith("\n>"))
        }
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.endsWith("The last.\n>"))
      })
    )
  )

  it.live("is one answer where its word is typed slowly, and no message", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const steps = script(command("echo 1"), command("echo 2"), { text: "Done." }, { text: "More." })
        yield* place.write("workspace/script.json", steps)
        const screen = yield* start(place, { rows: 60 }, "--model", "script:script.json")
        yield* screen.type("go\r")
        for (const count of [1, 2]) {
          yield* screen.sees(
            (text) => text.split("Allow run_command?").length === count + 1 && text.endsWith("answer>")
          )
          yield* hushed
          yield* typed(screen, "yes\r", 600)
        }
        yield* screen.sees((text) => text.endsWith("Done.\n>"))
        yield* hushed
        yield* screen.type("on")
        yield* screen.sees((text) => text.endsWith("Done.\n> on"))
        assert.notInclude(screen.everything(), "More.")
        assert.notInclude(screen.everything(), "Please type")
      })
    )
  )

  for (const word of ["maybe", "explore", "nothing"])
    it.live(`is no answer by a letter of ${word}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          yield* place.write("workspace/script.json", script(command("touch made"), { text: "Done." }))
          const screen = yield* start(place, { rows: 60 }, "--model", "script:script.json")
          yield* screen.type("go\r")
          yield* screen.sees((text) => text.endsWith("answer>"))
          yield* hushed
          yield* typed(screen, word, 100)
          yield* hushed
          yield* screen.sees((text) => text.endsWith(`answer> ${word}`))
          yield* screen.type("\r")
          yield* screen.sees((text) => text.includes("Please type one of") && text.endsWith("answer>"))
          assert.notInclude(readdirSync(place.path("workspace")), "made")
        })
      )
    )

  it.live("is not given by what was typed before it was asked", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/script.json", script(command("touch made"), { text: "Done." }))
        const screen = yield* start(place, { rows: 60 }, "--model", "script:script.json")
        yield* screen.type("go\r")
        yield* typed(screen, "yy", 30)
        yield* screen.sees((text) => text.endsWith("draft kept: yy\nanswer>"))
        yield* hushed
        yield* screen.type("y")
        yield* hushed
        yield* screen.sees((text) => text.endsWith("draft kept: yy\ny waits for Enter: a draft is kept\nanswer> y"))
        assert.notInclude(readdirSync(place.path("workspace")), "made")
        yield* screen.type("\r")
        yield* screen.sees((text) => text.endsWith("Done.\n> yy"))
      })
    )
  )

  it.live("waits its turn behind others, and a line that is half typed outlasts them all", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const calls = [
          { name: "run_command", params: { command: "echo >> told; sleep 1" } },
          { name: "write_file", params: { path: "made", content: "x" } },
          { name: "ask_user", params: { prompt: "Which one?" } }
        ]
        yield* place.write("workspace/script.json", script({ tools: calls }, { text: "Done." }))
        const screen = yield* start(place, {}, "--model", "script:script.json")
        yield* screen.type("go\rand then a yes of no importance")
        yield* screen.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
        assert.include(screen.everything(), "draft kept: and then a yes of no importance")
        // Answered only by an Enter while a line is half typed; each question after the one before.
        yield* hushed
        yield* screen.type("y\r")
        const second = yield* screen.sees((text) => text.includes("Allow write_file?") && text.endsWith("answer>"))
        assert.notInclude(second, "Which one?")
        yield* hushed
        yield* screen.type("n\r")
        yield* screen.sees((text) => text.includes("Which one?") && text.endsWith("answer>"))
        yield* hushed
        yield* screen.type("this one\r")
        yield* screen.sees((text) => text.endsWith("Done.\n> and then a yes of no importance"))
        const all = screen.everything()
        assert.match(all, /write_file made denied/)
        assert.match(all, /ask_user Which one\? · .* · this one/)
        assert.deepStrictEqual(
          readdirSync(place.path("workspace")).filter((name) => name !== "script.json"),
          ["told"]
        )
      })
    )
  )

  it.live("takes /quit", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/script.json", script(command("true"), { text: "Done." }))
        const screen = yield* start(place, {}, "--model", "script:script.json")
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.endsWith("answer>"))
        yield* hushed
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
      })
    )
  )
})

describe.concurrent("without a screen", () => {
  const question = (extra: object) => ({
    tools: [
      {
        name: "request_clarification",
        params: {
          context: "Which?",
          questions: [{ text: "A or B?", question_type: "single_choice", choices: ["A", "B"], ...extra }]
        }
      }
    ]
  })

  for (const [name, flags, env] of [
    ["a dumb terminal", [], { TERM: "dumb" }],
    ["--plain", ["--plain"], {}]
  ] as const)
    for (const columns of [80, 40])
      it.live(`every dialog works by lines, and no byte draws, with ${name} in ${columns} columns`, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const place = yield* Program.place
            yield* place.write(
              "workspace/script.json",
              script(command("echo hi"), command("echo ho"), question({}), { text: "Done." })
            )
            const screen = yield* Pseudo.start(place, ["chat", "--model", "script:script.json", ...flags], {
              columns,
              env
            })
            yield* screen.sees((text) => text.endsWith("you>"))
            yield* screen.type("go\r")
            yield* screen.sees((text) => text.endsWith("answer>"))
            for (const line of ["", "/help", "what"]) {
              yield* screen.type(`${line}\r`)
              yield* screen.sees((text) => text.endsWith("answer>"))
            }
            yield* screen.type("y\r")
            yield* screen.sees((text) => text.includes("done:") && text.endsWith("answer>"))
            yield* screen.type("c\r")
            yield* screen.sees((text) => text.endsWith("comment>"))
            yield* screen.type("/help\r")
            yield* screen.sees((text) => text.includes("!COMMAND") && text.endsWith("comment>"))
            yield* screen.type("\r")
            yield* screen.sees((text) => text.endsWith("answer>"))
            yield* screen.type("c\r")
            yield* screen.sees((text) => text.endsWith("comment>"))
            yield* screen.type("not now\r")
            yield* screen.sees((text) => text.includes("A or B?") && text.endsWith("answer>"))
            for (const wrong of ["3", "C"]) {
              yield* screen.type(`${wrong}\r`)
              yield* screen.sees((text) => text.includes(`answer> ${wrong}\n  Please`) && text.endsWith("answer>"))
            }
            yield* screen.type(columns === 40 ? "b\r" : "2\r")
            yield* screen.sees((text) => text.endsWith("Done.\nyou>"))
            yield* screen.type("/permissions\r")
            yield* screen.sees((text) => text.endsWith("rules>"))
            yield* screen.type("\r/quit\r")
            assert.strictEqual(yield* screen.exit, 0)
            assert.notInclude(screen.raw(), "\x1b")
            // What a screen reader would spell, or leave out.
            assert.notMatch(screen.raw(), /[^\x00-\x7f]/)
          })
        )
      )

  it.live("what was typed on when a question came is no part of its answer, and is told", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/script.json", script(command("echo hi"), command("echo ho"), { text: "Done." }))
        const screen = yield* Pseudo.start(place, ["chat", "--plain", "--model", "script:script.json"])
        yield* screen.sees((text) => text.endsWith("you>"))
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.endsWith("answer>"))
        yield* screen.type("y\rand no")
        yield* screen.sees((text) => text.includes("echo ho") && text.endsWith("answer>"))
        yield* screen.type("y\r")
        const seen = yield* screen.sees((text) => text.endsWith("Done.\nyou>"))
        assert.include(seen, "(Typed before the question and not taken: and no)\nAllow run_command?")
        assert.include(seen, "answer> y\n")
        assert.strictEqual(seen.split("done:").length, 3)
      })
    )
  )

  it.live(
    "Ctrl-C twice ends it, and how to go on is told on a row of its own; sentences are broken between words",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const screen = yield* Pseudo.start(place, ["chat", "--plain"], { columns: 50 })
          yield* screen.sees((text) => text.includes("for commands,\nCtrl-D to quit\n") && text.endsWith("\nyou>"))
          yield* screen.type("list\r")
          yield* screen.sees((text) => text.includes("list_files:") && text.endsWith("\nyou>"))
          yield* screen.type("\x03")
          yield* screen.sees((text) => text.includes("Press Ctrl-C again to quit"))
          yield* screen.type("\x03")
          assert.strictEqual(yield* screen.exit, 0)
          assert.match(screen.everything().replace(/\n(?!To)/g, ""), /\nTo resume:assent chat --resume ses_\S+$/)
        })
      )
  )

  const words = "Some words that are said one after the other, and a list:\n\n- of things that take more than a row\n"

  it.live("words are broken between words while they come, and when they are told again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const step = { text: words, chunks: 30, chunkDelay: "5 millis" }
        yield* place.write("workspace/script.json", script(step, { text: words }))
        const flags = ["--plain", "--model", "script:script.json"]
        const told = [
          "Some words that are said one after the",
          "other, and a list:",
          "",
          "- of things that take more than a row"
        ]
        const screen = yield* Pseudo.start(place, ["chat", ...flags], { columns: 38 })
        yield* screen.sees((text) => text.endsWith("you>"))
        yield* screen.type("go\r")
        const rows = told.join("\n")
        yield* screen.sees((text) => text.includes(rows))
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
        const again = yield* Pseudo.start(place, ["chat", "--continue", ...flags], { columns: 38 })
        yield* again.sees((text) => text.includes(rows))
        const once = yield* Pseudo.start(place, ["run", ...flags, "go"], { columns: 38 })
        yield* once.sees((text) => text.includes(rows))
      })
    )
  )

  it.live("nothing is broken on a pipe", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/script.json", script({ text: words }))
        const shell = yield* Pseudo.startShell(place, { columns: 38 })
        yield* shell.type("assent chat --model script:script.json | tee out\r")
        yield* shell.sees((text) => text.includes("to quit"))
        yield* shell.type("go\r")
        yield* shell.sees((text) => text.includes("more than a row"))
        yield* shell.type("/nonsense\r/quit\r")
        yield* shell.sees((text) => text.endsWith("$"))
        const out = readFileSync(place.path("workspace/out"), "utf8")
        assert.match(out, /^assent model script\S* · \/help for commands · Ctrl-D to quit$/m)
        assert.include(out, words)
        assert.include(
          out,
          "There is no command /nonsense. /help lists them. To begin a message with a slash, put a blank before it."
        )
      })
    )
  )
})
