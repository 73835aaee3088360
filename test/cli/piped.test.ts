import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))

/** Runs a pipeline in a session of its own, which has no terminal. */
const withoutTerminal = (at: Program.Place, lines: string, args: ReadonlyArray<string>) =>
  Program.execute("sh", ["-c", 'printf "%b" "$0" | setsid -w "$@"', lines, process.execPath, binary, ...args], {
    cwd: at.path("workspace"),
    env: at.environment
  })

describe.skipIf(process.platform !== "linux")("a pipe on standard input", { concurrent: true }, () => {
  it.scopedLive.each([
    ["y\\n", ["run", "run touch made"]],
    ["yes\\nalways\\n", ["run", "run touch made"]],
    ["run touch made\\ny\\n", ["chat"]],
    ["run touch made\\nall\\nrun touch made\\n", ["chat", "--store", ":memory:"]]
  ] as const)("answers no question of the same run: %j", ([lines, args]) =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stderr, stdout } = yield* withoutTerminal(at, lines, args)
      assert.strictEqual(code, 3, stdout + stderr)
      assert.match(stdout + stderr, /Approve/)
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("is the task of a session that goes on, and an empty one is none", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      assert.strictEqual((yield* withoutTerminal(at, "hello\\n", ["run"])).code, 0)
      const before = yield* withoutTerminal(at, " \\n", ["run", "--continue"])
      assert.strictEqual(before.code, 0, before.stderr)
      const going = yield* withoutTerminal(at, "run touch made\\n", ["run", "--continue", "--yolo"])
      assert.strictEqual(going.code, 0, going.stderr)
      assert.isTrue(yield* at.exists("workspace/made"))
      assert.notStrictEqual(going.stdout, before.stdout)
    })
  )

  it.scopedLive("is refused with the console where there is no terminal, with what to do", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      for (const command of [["run", "run touch made"], ["chat"]]) {
        const { code, stderr } = yield* withoutTerminal(at, "y\\n", [...command, "--channel", "console"])
        assert.strictEqual(code, 2)
        assert.include(stderr, "--channel console needs a terminal")
        assert.include(stderr, "--piped-answers")
      }
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("answers with --piped-answers, as a script does", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      for (const [lines, args] of [
        ["y\\n", ["run", "--piped-answers", "run touch made"]],
        ["y\\n", ["run", "--piped-answers", "--channel", "console", "run touch made2"]],
        ["run touch made3\\ny\\n", ["chat", "--piped-answers"]]
      ] as const)
        assert.strictEqual((yield* withoutTerminal(at, lines, args)).code, 0)
      for (const file of ["made", "made2", "made3"]) assert.isTrue(yield* at.exists(`workspace/${file}`))
    })
  )

  it.scopedLive.each([
    `printf 'y\\ny\\n' | assent run --channel console "run touch made"; echo "exit $?"`,
    `printf 'run touch made\\ny\\n' | assent chat | cat; echo "exit $?"`
  ])("leaves the question to the terminal: %s", (line) =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const shell = yield* Pseudo.startShell(at, { columns: 100 })
      yield* shell.sees((screen) => screen.startsWith("$"))
      yield* shell.type(`${line}\r`)
      yield* shell.sees((screen) => screen.endsWith("answer>"))
      assert.isFalse(yield* at.exists("workspace/made"))
      yield* shell.type("no, not now\r")
      yield* shell.sees((screen) => /not now[^]*not now[^]*exit \d/.test(screen))
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )
})
