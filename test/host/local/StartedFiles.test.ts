import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { ServerSettings } from "../../../src/tool/ServerSettings.js"
import * as StartedFiles from "../../../src/host/local/StartedFiles.js"

/** A workspace with these files, and what becomes of a program after a change there. `@…` is the target of a link. */
const world = (files: Readonly<Record<string, string>>, server: ServerSettings | string) =>
  Effect.gen(function* () {
    const base = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-started-")))),
      (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
    )
    const workspace = path.join(base, "ws")
    const put = (file: string, text: string) => {
      const place = path.join(workspace, file)
      fs.mkdirSync(path.dirname(place), { recursive: true })
      fs.rmSync(place, { force: true })
      if (text.startsWith("@")) fs.symlinkSync(text.slice(1).replace("BASE", base), place)
      else fs.writeFileSync(place, text, { mode: 0o755 })
    }
    for (const place of [workspace, path.join(base, "bin"), path.join(base, "state/w/f")])
      fs.mkdirSync(place, { recursive: true, mode: 0o700 })
    for (const program of ["node", "npx", "npm", "sh", "python", "make"])
      fs.writeFileSync(path.join(base, "bin", program), "", { mode: 0o755 })
    put("../out/x.js", "outside")
    for (const [file, text] of Object.entries(files)) put(file, text)
    const place = { workspace, folder: path.join(base, "state/w/f") }
    const where = { workspace, writable: [] }
    const [program] =
      typeof server === "string" ? [StartedFiles.ofAgent(server, where)] : StartedFiles.ofServer("x", server, where)
    assert(program !== undefined)
    const said: Array<string> = []
    const search = ["node_modules/.bin", path.join(base, "bin"), "/usr/bin"].join(":")
    const withPath = Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["PATH", search]])))
    return {
      put,
      said,
      remove: (file: string) => fs.rmSync(path.join(workspace, file)),
      admit: Effect.either(withPath(StartedFiles.admit(place, program, (sentence) => void said.push(sentence)))),
      changed: withPath(StartedFiles.changed(place, [program])),
      trust: Effect.flatMap(withPath(StartedFiles.changed(place, [program])), (all) => StartedFiles.record(place, all))
    }
  })

const node = (...args: ReadonlyArray<string>): ServerSettings => ({ command: "node", args })
const packageJson = (more: object) => JSON.stringify({ name: "p", version: "1.0.0", ...more })
const run = packageJson({ scripts: { serve: "node tools/run.js", preserve: "true", test: "vitest" } })

/** A command line, the files at first, and one change that decides what starts. */
const attacks: ReadonlyArray<
  readonly [title: string, ServerSettings | string, Readonly<Record<string, string>>, file: string, text: string]
> = [
  ["its script", node("server.js"), { "server.js": "a" }, "server.js", "b"],
  ["its script, into a link", node("server.js"), { "server.js": "a", "b.js": "a" }, "server.js", "@b.js"],
  ["the target of its script", node("server.js"), { "server.js": "@src/b.js", "src/b.js": "a" }, "src/b.js", "b"],
  ["a link to elsewhere", node("server.js"), { "server.js": "@BASE/out/x.js" }, "server.js", "@BASE/out/y.js"],
  ["its script without an ending", node("server"), { "server.js": "a" }, "server.js", "b"],
  ["what goes before its script", node("server"), { "server.js": "a" }, "server", "b"],
  ["the script of an option", node("--require=./hook.js", "x"), { "hook.js": "a" }, "hook.js", "b"],
  [
    "the script of a variable",
    { command: "node", args: ["/x.js"], env: { NODE_OPTIONS: "--import ./h.mjs" } },
    { "h.mjs": "a" },
    "h.mjs",
    "b"
  ],
  ["the program itself", { command: "./run" }, { run: "a" }, "run", "b"],
  ["the program itself, of bytes that are no text", { command: "./run" }, { run: "\u0000a" }, "run", "\u0000b"],
  [
    "a program of its search path",
    { command: "tool" },
    { "node_modules/.bin/tool": "a" },
    "node_modules/.bin/tool",
    "b"
  ],
  ["a program that goes before another one", node("/x.js"), {}, "node_modules/.bin/node", "b"],
  [
    "the interpreter of its environment",
    { command: ".venv/bin/python", args: ["s.py"] },
    { ".venv/bin/python": "@/usr/bin/env" },
    ".venv/bin/python",
    "@BASE/out/x.js"
  ],
  [
    "the main file of a directory",
    node("pkg"),
    { "pkg/package.json": packageJson({ main: "lib/m.js" }), "pkg/lib/m.js": "a" },
    "pkg/lib/m.js",
    "b"
  ],
  [
    "which file is the main one",
    node("pkg"),
    { "pkg/package.json": packageJson({ main: "a.js" }) },
    "pkg/package.json",
    packageJson({ main: "b.js" })
  ],
  ["the index of a directory", node("."), { "index.js": "a" }, "index.js", "b"],
  [
    "a script of npm",
    { command: "npm", args: ["run", "serve"] },
    { "package.json": run },
    "package.json",
    run.replace("run.js", "evil.js")
  ],
  [
    "what runs before a script of npm",
    { command: "npm", args: ["run", "serve"] },
    { "package.json": run },
    "package.json",
    run.replace('"true"', '"sh evil.sh"')
  ],
  [
    "the file of a script of npm",
    { command: "npm", args: ["run", "serve"] },
    { "package.json": run, "tools/run.js": "a" },
    "tools/run.js",
    "b"
  ],
  [
    "the settings of npm",
    { command: "npm", args: ["run", "serve"] },
    { "package.json": run },
    ".npmrc",
    "script-shell=./evil"
  ],
  [
    "a program of npx",
    { command: "npx", args: ["-y", "server@1.2"] },
    { "node_modules/.bin/server": "@../s/cli.js", "node_modules/s/cli.js": "a" },
    "node_modules/s/cli.js",
    "b"
  ],
  [
    "a program of npx that was not there",
    { command: "npx", args: ["-y", "@scope/server"] },
    {},
    "node_modules/.bin/server",
    "b"
  ],
  [
    "a package of npx",
    { command: "npx", args: ["@scope/server"] },
    {},
    "node_modules/@scope/server/package.json",
    "{}"
  ],
  [
    "the script of a shell line",
    { command: "sh", args: ["-c", "cd . && exec node './server.js' --x"] },
    { "server.js": "a" },
    "server.js",
    "b"
  ],
  [
    "a module of Python",
    { command: "python", args: ["-m", "app.server"] },
    { "app/server.py": "a" },
    "app/server.py",
    "b"
  ],
  [
    "a module of Python that goes before another one",
    { command: "python", args: ["-m", "http"] },
    {},
    "http/__main__.py",
    "b"
  ],
  ["a Makefile", { command: "make", args: ["serve"] }, { Makefile: "serve:\n\ttrue" }, "Makefile", "serve:\n\tevil"],
  ["the script of an agent", "A=1 python agent.py --x", { "agent.py": "a" }, "agent.py", "b"]
]

describe("a program of the settings, after commands changed", () => {
  it.scoped.each([...attacks])("%s, does not start before it is trusted", ([, server, files, file, text]) =>
    Effect.gen(function* () {
      const { admit, changed, put, trust } = yield* world(files, server)
      assert.isTrue(Either.isRight(yield* admit), "the first start")
      assert.isTrue(Either.isRight(yield* admit), "unchanged")
      put(file, text)
      const refused = yield* admit
      assert.isTrue(Either.isLeft(refused) && refused.left.includes("start with --trust"), JSON.stringify(refused))
      assert.lengthOf(yield* changed, 1)
      yield* trust
      assert.isTrue(Either.isRight(yield* admit), "trusted")
      assert.deepStrictEqual(yield* changed, [])
    })
  )

  it.scoped("its script away, does not start, and says so", () =>
    Effect.gen(function* () {
      const { admit, changed, remove, said } = yield* world({ "server.js": "a" }, node("server.js"))
      yield* admit
      assert.match(said.join(), /^Commands can change files of the tool server x: server\.js\./)
      remove("server.js")
      const refused = yield* admit
      assert.isTrue(Either.isLeft(refused) && refused.left.includes("server.js"))
      assert.deepStrictEqual(
        (yield* changed).map(({ names }) => names),
        [["server.js"]]
      )
      assert.lengthOf(said, 1)
    })
  )

  const work: ReadonlyArray<readonly [ServerSettings | string, file: string, text: string]> = [
    [node("server.js"), "src/other.js", "b"],
    [node("server.js"), "package.json", packageJson({ main: "b.js" })],
    [node("/opt/server.js"), "opt/server.js", "b"],
    [{ command: "npx", args: ["-y", "server-files", "."] }, "index.js", "b"],
    [
      { command: "npx", args: ["-y", "server-files", "."] },
      "package.json",
      run.replace("vitest", "jest").replace("1.0.0", "1.0.1")
    ],
    [
      { command: "npm", args: ["run", "serve"] },
      "package.json",
      run.replace("vitest", "jest").replace("1.0.0", "1.0.1")
    ],
    [{ command: "python", args: ["s.py"] }, "Makefile", "x:"],
    ["python agent.py", "notes.md", "b"]
  ]
  it.scoped.each([...work])("what it does not start with, starts: %j", ([server, file, text]) =>
    Effect.gen(function* () {
      const { admit, put } = yield* world({ "package.json": run, "server.js": "a", "agent.py": "a" }, server)
      yield* admit
      put(file, text)
      assert.isTrue(Either.isRight(yield* admit))
    })
  )
})
