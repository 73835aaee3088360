/** What goes with words: files that a line names, files that were attached, and what was piped in. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as FastCheck from "fast-check"
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as ChatExecutor from "../../src/tui/chat/ChatExecutor.js"
import * as ChatFiles from "../../src/tui/chat/ChatFiles.js"
import * as FileSample from "../kit/FileSample.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as Runs from "../kit/Runs.js"
import * as Wait from "../kit/Wait.js"
import { chat } from "../kit/Wire.js"

/** A workspace with files of every kind, and a model that can be read what it got. */
const setting = Effect.gen(function* () {
  const at = yield* Program.place
  const server = yield* ModelServer.make
  const args = ["--base-url", `${server.url}/v1`, "--model", "openai-compatible/local-test"]
  const env = { OPENAI_COMPATIBLE_API_KEY: "none" }
  yield* at.write("workspace/src/a.ts", "export const a = 1\nexport const b = 2\n")
  yield* at.write("workspace/two words/x y.md", "blanks")
  yield* at.write("workspace/README.md", "hello\n")
  yield* at.write("workspace/empty.txt", "")
  yield* at.write("workspace/big.txt", "x".repeat(200_001))
  yield* at.write("outside.txt", "not here")
  const file = (name: string) => at.path("workspace", name)
  writeFileSync(file("blob.bin"), new Uint8Array([1, 0, 2]))
  writeFileSync(file("shot.png"), FileSample.png())
  writeFileSync(file("lie.png"), "no picture\n")
  symlinkSync(at.path("outside.txt"), file("link.txt"))
  mkdirSync(file(".assent"))
  writeFileSync(file(".assent/config.json"), "{}")
  const says = (text: string) => server.play(ModelServer.eventStream(chat.events({ text: [text] })))
  /** The content of the last message that the model got. */
  const got = Effect.map(server.received, (request): string =>
    JSON.stringify(ModelServer.json(request).messages.at(-1).content)
  )
  return { at, args, env, says, got, server }
})

const start = (place: Program.Place, args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
  Effect.tap(Pseudo.start(place, ["chat", ...args], { columns: 100, rows: 50, env }), (screen) =>
    screen.sees((text) => text.endsWith(".\n>"))
  )

describe.concurrent("a line that names files", () => {
  it.live("takes them along: texts, images, directories, with blanks in names, and behind an agent's name", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, got, says } = yield* setting
        const screen = yield* start(at, args, env)
        const cases: ReadonlyArray<readonly [line: string, told: string, got: ReadonlyArray<string>]> = [
          [
            "see @src/a.ts, twice @src/a.ts.",
            "with src/a.ts (38 bytes, 2 lines)",
            ["see @src/a.ts, twice @src/a.ts.", "[File src/a.ts (38 bytes, 2 lines)]", "a.ts:\\nexport const a = 1"]
          ],
          ['(@"two words/x y.md") and @empty.txt', "two words/x y.md (6 bytes, 1 line), empty.txt (empty)", ["blanks"]],
          ["what is @shot.png?", "shot.png (image/png, ", ["image_url", "data:image/png;base64,"]],
          ["@README.md,@empty.txt", "README.md (6 bytes, 1 line), empty.txt (empty)", ["hello"]],
          ["@src", "what is in src", ["src/a.ts"]],
          ["@main look at @README.md:1", "README.md (6 bytes, 1 line)", ["hello"]]
        ]
        for (const [line, told, expected] of cases) {
          yield* says(`Seen ${line.length}.`)
          yield* screen.type(`${line}\r`)
          yield* screen.sees((text) => text.includes(told) && text.endsWith(`Seen ${line.length}.\n>`))
          const content = yield* got
          for (const part of expected) assert.include(content, part)
          assert.strictEqual(content.split("[File src/a.ts").length, line.includes("src/a.ts") ? 2 : 1)
        }
      })
    )
  )

  it.live("is words where it names none, and is refused in words where one cannot be taken", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, got, says, server } = yield* setting
        const screen = yield* start(at, args, env)
        const refused: ReadonlyArray<readonly [string, string]> = [
          ["see @src/none.ts", "There is no file src/none.ts."],
          ['see @"no such"', "There is no file no such."],
          ["see @blob.bin", "blob.bin is a binary file. You can send texts, images and PDFs."],
          ["see @big.txt", "big.txt has 200 kB; a text of at most 200 kB goes with words."],
          ["see @../outside.txt", "../outside.txt is outside the workspace"],
          ["see @link.txt", "link.txt is outside the workspace"],
          ["see @.assent/config.json", "belongs to the runtime"],
          ["see @lie.png", "lie.png is called image/png"],
          ["@nobody hear this", "There is no agent and no file nobody."]
        ]
        for (const [line, says] of refused) {
          yield* screen.type(`${line}\r`)
          // It comes back, to be changed.
          const shown = yield* screen.sees(
            (text) => text.replace(/\n/g, " ").includes("Nothing was sent.") && text.endsWith(`> ${line}`)
          )
          assert.include(shown.replace(/\n/g, " "), says.replace(/\n/g, " "))
          assert.notMatch(shown, /^ {2}with /m)
          yield* screen.type("\x03\x0c")
          yield* screen.sees((text) => text.trim() === ">")
        }
        assert.strictEqual(server.count(), 0)
        const line = "@types/node, me@example.com, @app.route('/x.html') and \\@src/a.ts are words"
        yield* says("So they are.")
        yield* screen.type(`${line}\r`)
        yield* screen.sees((text) => text.endsWith("So they are.\n>"))
        const content = yield* got
        assert.notInclude(content, "[File")
      })
    )
  )

  it.live("says that the workspace is gone, and not its files alone", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("workspace/src/a.ts", "1")
        const files = yield* ChatFiles.make({ root: at.path("workspace") })
        const refusals = Effect.all([
          Effect.flip(files.gather("see @src/a.ts")),
          Effect.flip(files.gather('see @"two words"')),
          Effect.flip(files.attach("src/a.ts")),
          Effect.flip(files.isFile("README"))
        ])
        assert.isFalse(yield* files.isFile("README"))
        rmSync(at.path("workspace"), { recursive: true })
        const gone = `The workspace is gone: there is no directory ${at.path("workspace")}. `
        for (const refusal of yield* refusals) assert.include(refusal, gone)
        // What may be no file is words, and other files are taken.
        assert.deepStrictEqual((yield* files.gather("@types/node is missing")).words, ["types/node"])
        yield* at.write("note.txt", "2")
        assert.include((yield* files.attach(at.path("note.txt"))).said, "note.txt")
      }).pipe(Effect.provide(NodeContext.layer))
    )
  )

  it.live("comes back whole, with what was attached, when nobody has read it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("workspace/a.md", "text")
        const model = yield* at.script(
          { tools: [{ name: "run_command", params: { command: "sleep 60" } }] },
          { text: "x" }
        )
        const screen = yield* start(at, ["--model", model, "--yolo"], {})
        yield* screen.type("go\r")
        yield* screen.sees((text) => text.includes("sleep 60"))
        yield* screen.type("/attach a.md\r")
        yield* screen.sees((text) => text.includes("With your next words:\n  a.md (4 bytes, 1 line)"))
        yield* screen.type("and @a.md too\r")
        yield* screen.sees((text) => text.includes("with a.md (4 bytes, 1 line), a.md (4 bytes, 1 line)"))
        yield* screen.type("\x1b")
        yield* screen.sees((text) => text.includes("— cancelled (user) —") && text.endsWith("> and @a.md too"))
        yield* screen.type("\x03/attach\r")
        yield* screen.sees((text) => text.endsWith("> /attach\nWith your next words:\n  a.md (4 bytes, 1 line)\n>"))
        yield* screen.type("/attach none\r")
        yield* screen.sees((text) => text.endsWith("No file goes with your next words. /attach FILE adds one.\n>"))
      })
    )
  )
})

describe.concurrent("the list behind an @", () => {
  for (const columns of [80, 40])
    it.live(`has the files that git would have, and is taken with Tab and Enter, in ${columns} columns`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* Program.place
          yield* at.write("workspace/.gitignore", "*.log\nbuild/\n")
          for (const file of [
            "src/deep/thing.ts",
            "src/other.ts",
            "two words/x.md",
            "ignored.log",
            "build/thing.ts",
            "node_modules/thing.ts"
          ])
            yield* at.write(`workspace/${file}`, "text\n")
          const screen = yield* Pseudo.start(at, ["chat"], { columns, rows: 40 })
          yield* screen.sees((text) => text.endsWith(".\n>"))
          yield* screen.type("@")
          const list = yield* screen.sees((text) => text.includes("› .gitignore") && text.endsWith("two words/x.md"))
          assert.include(
            list,
            "\n  src/\n  src/deep/\n  src/deep/thing.ts\n  src/other.ts\n  two words/\n  two words/x.md"
          )
          assert.notMatch(list, /ignored\.log|build|node_modules/)
          yield* screen.type("sr\t")
          yield* screen.sees((text) =>
            text.endsWith("\n> @src/\n› src/\n  src/deep/\n  src/other.ts\n  src/deep/thing.ts")
          )
          yield* screen.type("\x03@thing")
          yield* screen.sees((text) => text.endsWith("\n> @thing\n› src/deep/thing.ts"))
          yield* screen.type("\t")
          yield* screen.sees((text) => text.endsWith("\n> @src/deep/thing.ts"))
          yield* screen.type("@wor")
          yield* screen.sees((text) => text.endsWith("› two words/\n  two words/x.md"))
          yield* screen.type("\x1b[B\r")
          yield* screen.sees((text) => text.replace(/\n/g, "").endsWith('> @src/deep/thing.ts @"two words/x.md"'))
          yield* screen.type("\r")
          yield* screen.sees((text) =>
            text
              .replace(/\n */g, " ")
              .includes("with src/deep/thing.ts (5 bytes, 1 line), two words/x.md (5 bytes, 1 line)")
          )
          // What is new is there the next time.
          yield* at.write("workspace/later.md", "new")
          yield* screen.type("@")
          yield* screen.sees((text) => text.includes("  later.md"))
        })
      )
    )
})

describe.concurrent("the list behind an @ of a large repository", () => {
  it.live("has its last files too", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        for (let folder = 0; folder < 60; folder++) {
          mkdirSync(at.path("workspace", `d${folder}`))
          for (let file = 0; file < 400; file++) writeFileSync(at.path("workspace", `d${folder}`, `file${file}`), "")
        }
        const screen = yield* Pseudo.start(at, ["chat"], { columns: 80, rows: 40 })
        yield* screen.sees((text) => text.endsWith(".\n>"))
        for (const name of ["d59/file399", "d9/file0", "d30/file17"]) {
          yield* screen.type(`@${name}`)
          yield* screen.sees((text) => text.includes(`› ${name}`))
          yield* screen.type("\x03")
          yield* screen.sees((text) => text.endsWith("\n>"))
        }
      })
    )
  )

  it.effect("says once which files are missing, if some are", () =>
    Effect.gen(function* () {
      const files = { ...ChatFiles.none, paths: Effect.succeed({ find: () => [], remark: "Some are missing." }) }
      const said: Array<string> = []
      const offered = yield* Queue.unbounded<void>()
      let ask: ((before: string) => unknown) | undefined
      const screen: Parameters<typeof ChatExecutor.complete>[0] = {
        setCompletion: (_, offers) =>
          Effect.suspend(() => {
            ask = offers
            return Effect.asVoid(Queue.offer(offered, undefined))
          }),
        printLine: (line) => Effect.sync(() => void said.push(line))
      }
      yield* ChatExecutor.complete(screen, { nodes: () => [] }, files, () => [])
      yield* Queue.take(offered)
      for (let round = 0; round < 3; round++) {
        ask?.("@")
        yield* Queue.take(offered)
        yield* Effect.yieldNow()
      }
      assert.deepStrictEqual(said, ["Some are missing."])
    }).pipe(Effect.scoped)
  )
})

describe.concurrent("a name that is picked", () => {
  it.live("is read as that file again, whatever letters it has; what no line can name is not in the list", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const root = at.path("workspace")
        const letters = [
          "a",
          " ",
          '"',
          "'",
          "`",
          "\\",
          "(",
          ")",
          ",",
          ":",
          ";",
          ".",
          "!",
          "?",
          "]",
          "@",
          "-",
          "é",
          "日",
          "#"
        ]
        const names = FastCheck.sample(
          FastCheck.string({ unit: FastCheck.constantFrom(...letters), minLength: 1, maxLength: 6 }),
          { numRuns: Runs.of(300), seed: 17 }
        ).filter((name) => !/^\.+$/.test(name))
        for (const name of names) writeFileSync(path.join(root, name), name)
        for (const name of ["two\nlines", "esc\u001b[31m", "tab\t", Buffer.from([0x62, 0xff])])
          writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]), "x")
        const files = yield* ChatFiles.make({ root })
        const { find: paths } = yield* files.paths
        assert.strictEqual(paths("", 1_000).length, new Set(names).size + 4)
        const offers = ChatFiles.offers({ agents: () => [], ask: () => {}, files, paths: () => paths("", 1_000) })
        const choices = offers('see @"')?.choices ?? []
        assert.sameMembers(
          choices.map(({ label }) => label),
          [...new Set(names)]
        )
        for (const { label, text } of choices) {
          const gathered = yield* files.gather(`see ${text}and (${text.trim()}) as "one"`)
          assert.deepStrictEqual(
            gathered.files.map(({ file }) => new TextDecoder().decode(file?.bytes)),
            [label]
          )
          assert.deepStrictEqual(
            offers(`see ${text.slice(0, -2)}`)?.query,
            label.slice(0, text.endsWith('" ') ? undefined : -1)
          )
        }
      })
    ).pipe(Effect.provide(NodeContext.layer))
  )
})

describe.concurrent("the words of a message with files", () => {
  it("are those that were typed", () => {
    assert.strictEqual(ChatFiles.typedOf("see @a\nand\n[File a (1 byte, 1 line)]\n[File b (empty)]"), "see @a\nand")
    assert.strictEqual(ChatFiles.typedOf("[File shot.png (image/png, 1 kB)]"), "")
    for (const text of ["a [File b]", "[File b] a", "", "a\n"]) assert.strictEqual(ChatFiles.typedOf(text), text)
  })

  it.live("are what a rewind gives back", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("workspace/a.md", "text")
        const screen = yield* start(at, [], {})
        yield* screen.type("see @a.md\r")
        yield* screen.sees((text) => text.includes("I cannot look at a.md") && text.endsWith(".\n>"))
        yield* screen.type("/rewind\r")
        yield* screen.sees((text) => /1\. today \d\d:\d\d {2}Completed {2}see @a\.md\n {3}2\. the beginning/.test(text))
        yield* screen.type("\x1b")
        yield* screen.sees((text) => text.endsWith("(back)\n>"))
        yield* screen.type("/rewind\r")
        yield* screen.sees((text) => /turn>\n› {2}1\. today/.test(text))
        // The last one stands above the first.
        yield* screen.type("\x1b[A\r")
        yield* screen.sees((text) => text.includes("Back at the beginning.") && text.endsWith("\n> see @a.md"))
      })
    )
  )
})

describe.concurrent("an attached file", () => {
  it.live("goes with the first words, from the command line or from anywhere, and with no others", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, got, says } = yield* setting
        const screen = yield* start(at, [...args, "-i", "shot.png", "--file", at.path("outside.txt")], env)
        yield* screen.type("/attach none.txt\r")
        yield* screen.sees((text) => text.includes("none.txt cannot be read: there is no such file."))
        yield* says("One.")
        yield* screen.type("look\r")
        yield* screen.sees((text) => text.includes("with shot.png (image/png, ") && text.endsWith("One.\n>"))
        const first = yield* got
        assert.include(first, "data:image/png;base64,")
        assert.include(first, "not here")
        yield* says("Two.")
        yield* at.write("two words.txt", "not here")
        yield* screen.type(`/attach '${at.path("outside.txt")}'\r`)
        yield* screen.type(`/attach ${at.path("two\\ words.txt")}\ragain\r`)
        yield* screen.sees((text) => text.endsWith("Two.\n>"))
        assert.strictEqual((yield* got).split("not here").length, 3)
        yield* says("Three.")
        yield* screen.type("no more\r")
        yield* screen.sees((text) => text.endsWith("Three.\n>"))
        assert.strictEqual(yield* got, '"no more"')
      })
    )
  )
})

describe.concurrent("a task that names files", () => {
  it.live("takes them along as a line of a chat does, and says so", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, got, says } = yield* setting
        const cases: ReadonlyArray<readonly [task: string, told: string, got: ReadonlyArray<string>]> = [
          ["explain @src/a.ts", "with src/a.ts (38 bytes, 2 lines)", ["explain @src/a.ts", "export const a = 1"]],
          ["look at @src", "with what is in src", ["src/a.ts"]],
          ['@"two words/x y.md", @empty.txt', "with two words/x y.md (6 bytes, 1 line), empty.txt (empty)", ["blanks"]],
          ["what is @shot.png?", "with shot.png (image/png, ", ["image_url", "data:image/png;base64,"]]
        ]
        for (const [task, told, expected] of cases) {
          yield* says("Seen.")
          const { code, stderr, stdout } = yield* at.call(["run", ...args, task], { env })
          assert.deepStrictEqual([code, stdout], [0, "Seen.\n"], stderr)
          assert.isTrue(stderr.startsWith(`assent: ${told}`), stderr)
          const content = yield* got
          for (const part of expected) assert.include(content, part)
        }
        // The words may come one by one, and files with them.
        yield* says("Seen.")
        yield* at.call(["run", ...args, "--file", "README.md", "explain", "@src/a.ts"], { env })
        const content = yield* got
        for (const part of ["export const a", "hello"]) assert.include(content, part)
      })
    )
  )

  it.live("is words where it names none, and is refused before anything begins where one cannot be taken", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, got, says } = yield* setting
        for (const [task, said] of [
          ["why is @types/node missing?", "assent: there is no file types/node; it is sent as a word.\n"],
          ["write to me@example.com", ""],
          ["say \\@src/a.ts", ""]
        ] as const) {
          yield* says("Seen.")
          assert.deepStrictEqual(yield* at.call(["run", ...args, task], { env }), {
            code: 0,
            stdout: "Seen.\n",
            stderr: said
          })
          assert.notInclude(yield* got, "[File")
        }
        for (const [task, why] of [
          ["explain @src/none.ts", "There is no file src/none.ts. If you mean a word, put a backslash before the @."],
          ["explain @big.txt", "a text of at most 200 kB goes with words"],
          ["explain @blob.bin", "blob.bin is a binary file"],
          ["explain @../outside.txt", "--file takes a file from anywhere."],
          ["explain @.assent/config.json", "--file takes a file from anywhere."],
          ["explain @link.txt", "--file takes a file from anywhere."]
        ] as const) {
          const refused = yield* at.call(["run", ...args, task], { env })
          assert.deepStrictEqual([refused.code, refused.stdout], [2, ""], task)
          assert.include(refused.stderr, why)
        }
        // A document that is piped in is nobody's words here.
        yield* says("Seen.")
        const piped = yield* at.call(["run", ...args], { env, stdin: "explain @src/a.ts\n" })
        assert.strictEqual(piped.code, 0, piped.stderr)
        assert.notInclude(yield* got, "export const")
      })
    )
  )
})

describe.concurrent("what is piped in beside words", () => {
  it.live("is part of the task, with its size told, and no task without words", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, got, says } = yield* setting
        yield* says("Right.")
        const result = yield* at.call(["run", ...args, "is", "this right?"], { env, stdin: "one\ntwo\n" })
        assert.deepStrictEqual(result, {
          code: 0,
          stdout: "Right.\n",
          stderr: "assent: with standard input (8 bytes, 2 lines)\n"
        })
        const content = yield* got
        for (const part of ["is this right?", "[File standard input (8 bytes, 2 lines)]", "one\\ntwo"])
          assert.include(content, part)
        yield* says("Nothing.")
        const without = yield* at.call(["run", ...args, "hello"], { env, stdin: " \n" })
        assert.deepStrictEqual(without, { code: 0, stdout: "Nothing.\n", stderr: "" })
        assert.strictEqual(yield* got, '"hello"')
        const refused = yield* at.call(["run", ...args, "hello"], { env, stdin: "x".repeat(200_001) })
        assert.strictEqual(refused.code, 2)
        assert.match(
          refused.stderr,
          /^assent: standard input has 200 kB; a text of at most 200 kB goes with words\. Give less/
        )
      })
    )
  )

  it.live("leaves it to be seen what goes on, except in the background", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { args, at, env, server } = yield* setting
        /** The model thinks until then. */
        const thinking = Effect.gen(function* () {
          const said = yield* Deferred.make<ModelServer.Script>()
          yield* server.play(() => Effect.runPromise(Deferred.await(said)))
          return (text: string) => Deferred.succeed(said, ModelServer.eventStream(chat.events({ text: [text] })))
        })
        const shell = yield* Pseudo.startShell(at, { columns: 100, env })
        yield* shell.sees((text) => text === "$")
        const says = yield* thinking
        const line = `echo one | assent run ${args.join(" ")} hello`
        yield* shell.type(`clear; ${line}\r`)
        const seen = yield* shell.sees((text) => /\n\S thinking \d+\.\ds$/.test(text))
        assert.include(seen, "with standard input (4 bytes, 1 line)")
        yield* says("There.")
        // Nothing of it is left.
        yield* shell.sees((text) => text.endsWith("(4 bytes, 1 line)\nThere.\n$"))
        yield* server.received
        const before = shell.raw().length
        const saysLater = yield* thinking
        yield* shell.type(`${line} &\r`)
        yield* server.received
        yield* shell.type("jobs\r")
        yield* shell.sees((text) => text.includes("Running"))
        yield* saysLater("Here.")
        yield* shell.sees((text) => text.includes("Here."))
        assert.notInclude(shell.raw().slice(before), "thinking")
      })
    )
  )

  it.live("is not waited for where a program leaves it open and says nothing", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))
        assert.isTrue(existsSync(binary))
        const code = yield* Effect.async<number | null>((resume) => {
          const child = spawn(process.execPath, [binary, "run", "hello"], {
            cwd: at.path("workspace"),
            env: { ...at.environment },
            stdio: ["pipe", "ignore", "ignore"]
          })
          child.on("exit", (code) => resume(Effect.succeed(code)))
          return Effect.sync(() => child.kill("SIGKILL"))
        }).pipe(Effect.timeout(Wait.patience))
        assert.strictEqual(code, 0)
      })
    )
  )
})
