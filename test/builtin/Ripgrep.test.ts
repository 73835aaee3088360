/** Searches by ripgrep find what is found without ripgrep, and say so if ripgrep does not work. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as FastCheck from "fast-check"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as os from "node:os"
import * as path from "node:path"
import * as LinePattern from "../../src/builtin/LinePattern.js"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as NodeFiles from "../../src/host/NodeFiles.js"
import * as Confined from "../kit/Confined.js"
import * as HeldLoop from "../kit/HeldLoop.js"
import { until } from "../kit/Program.js"
import * as Runs from "../kit/Runs.js"
import { inWorkspace } from "./workspaceFixture.js"

/** A program in place of `rg` that says its version, and then does this. */
const playing = (directory: string, version: string, then: string): string => {
  const file = `${directory}/rg`
  fs.writeFileSync(
    file,
    `#!/bin/sh\nfor word; do case "$word" in --version) echo "ripgrep ${version}"; exit 0;; esac; done\n${then}\n`,
    { mode: 0o755 }
  )
  return file
}

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "rg-"))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true }))
)

const toolkitOf = (options: Workspace.Options) => {
  const layer = Layer.provide(Workspace.layer(options), NodeFiles.layer)
  return (params: object): Effect.Effect<string, never, NodeContext.NodeContext> =>
    Workspace.toolkit.pipe(
      // The parameters are checked by the schema.
      Effect.flatMap((kit) => kit.handle("search_files", params as never)),
      Effect.map(({ encodedResult }) => String(encodedResult)),
      Effect.orDie,
      Effect.provide(layer)
    )
}

describe("a search without ripgrep", () => {
  const unusable: ReadonlyArray<readonly [title: string, version: string, then: string, note: RegExp]> = [
    [
      "another version",
      "13.0.0",
      "",
      /^\[Searched without ripgrep: \S+ is ripgrep 13\.0\.0, and version 15 is needed\.\]$/
    ],
    ["no ripgrep", "", "", /^\[Searched without ripgrep: \S+ does not start: ripgrep\.\]$/],
    ["killed", "15.0.0", "kill -9 $$", /^\[Searched without ripgrep: it was killed\.\]$/],
    [
      "killed after the pattern is read",
      "15.0.0",
      'case "$*" in *" /dev/null") exit 1;; *) kill -9 $$;; esac',
      /^\[ripgrep failed: it was killed\.\]$/
    ],
    [
      "out of memory",
      "15.0.0",
      'case "$*" in *" /dev/null") exit 1;; *) echo memory allocation of 9 bytes failed >&2; exit 134;; esac',
      /^\[ripgrep failed: memory allocation of 9 bytes failed\.\]$/
    ]
  ]
  for (const [title, version, then, note] of unusable) {
    it.scopedLive(`says why: ${title}`, () =>
      inWorkspace(
        ({ call, put }) =>
          Effect.gen(function* () {
            yield* put("a", "one\nneedle\n")
            const [row, said, ...more] = (yield* call("search_files", { pattern: "n[ae]+dle" })).split("\n")
            assert.deepStrictEqual([row, more], ["a:2: needle", []])
            assert.match(said ?? "", note)
          }),
        ({ outside }) => ({ ripgrep: playing(outside, version, then) })
      )()
    )
  }

  it.scopedLive(
    "says that the program is not there",
    inWorkspace(
      ({ call, check, put }) =>
        Effect.gen(function* () {
          yield* put("a", "needle")
          assert.match(
            yield* call("search_files", { pattern: "needle" }),
            /^a:1: needle\n\[Searched without ripgrep: \/none\/rg does not start: .*not found\.\]$/
          )
          assert.include(yield* check("search_files", { pattern: "(" }), "The pattern is not a regular expression: ")
          assert.include(yield* check("search_files", { pattern: "(a{99}){99}" }), "the pattern is too large")
        }),
      { ripgrep: "/none/rg" }
    )
  )

  it.live("holds the event loop for no hostile pattern", () =>
    Effect.gen(function* () {
      // What loads the engine is no pattern's.
      yield* LinePattern.make("a", false)
      const hostile = [
        ...["(a+)+$", ".*a.{900}c", "(.*a){50}.*[bc]", "(?i)\\pL{900}c", "(a|b|ab)*c", "(a?){900}[cd]", "\\w{900}[cd]"],
        ...["x*".repeat(900), "(".repeat(900), "a{1000}".repeat(200), "((a{9}){9}){9}", "[a-z]{1,400}[0-9]{1,400}z"]
      ]
      for (const pattern of hostile) {
        const { milliseconds } = yield* Effect.promise(() =>
          HeldLoop.measure({
            name: pattern,
            limit: 500,
            make: () => pattern,
            run: (text) =>
              Effect.match(LinePattern.make(text, false), {
                onFailure: () => undefined,
                onSuccess: ({ find, longest }) => find("aab".repeat(longest).slice(0, longest))
              })
          })
        )
        assert.isBelow(milliseconds, 500, pattern)
      }
    })
  )

  it.scopedLive(
    "searches the beginning of a long line, and says so",
    inWorkspace(
      ({ call, put }) =>
        Effect.gen(function* () {
          yield* put("a", `${"x".repeat(500)}needle${"y".repeat(20_000)}late`)
          const note = "[Searched without ripgrep: it is turned off.]"
          const cut = "[Of long lines the first 10000 characters were searched.]"
          assert.strictEqual(
            yield* call("search_files", { pattern: "needle" }),
            `a:1: [from character 401] ${"x".repeat(100)}needle${"y".repeat(194)} […]\n${note}\n${cut}`
          )
          assert.strictEqual(yield* call("search_files", { pattern: "late" }), `No matches.\n${note}\n${cut}`)
        }),
      { ripgrep: false }
    )
  )
})

describe("a search by ripgrep", () => {
  it.scopedLive(
    "finds the lines that are found without ripgrep",
    () =>
      Effect.gen(function* () {
        const base = yield* directory
        const name = FastCheck.constantFrom("a", "a-b", "B", "ä", "x.ts", ".h", "node_modules", ".assent", "out", "a b")
        const content = FastCheck.array(FastCheck.constantFrom("one\n", "two\r\n", "ön 1\n", "\n", "one two"), {
          maxLength: 5
        })
        const tree = FastCheck.array(FastCheck.tuple(FastCheck.array(name, { minLength: 1, maxLength: 3 }), content), {
          maxLength: 12
        })
        const ignored = FastCheck.constantFrom("", "out\n", "*.ts\n!/a/*.ts\n", "a/*\n")
        const params = FastCheck.record(
          {
            pattern: FastCheck.constantFrom("one", "^o", "o$", "n.?1", "\\bo", "t|1", "^$", "(?i)ONE"),
            glob: FastCheck.constantFrom("*.ts", "a/**", "*"),
            ignore_case: FastCheck.boolean()
          },
          { requiredKeys: ["pattern"] }
        )
        let runs = 0
        const property = FastCheck.asyncProperty(tree, ignored, params, (files, rules, wanted) =>
          Effect.gen(function* () {
            const root = `${base}/${runs++}`
            fs.mkdirSync(root)
            if (rules !== "") fs.writeFileSync(`${root}/.gitignore`, rules)
            for (const [names, lines] of files) {
              const file = path.join(root, ...names)
              try {
                fs.mkdirSync(path.dirname(file), { recursive: true })
                fs.writeFileSync(file, lines.join(""))
              } catch {
                // A file stands where a directory is to be, or the other way round.
              }
            }
            const fast = yield* toolkitOf({ root })(wanted)
            const slow = yield* toolkitOf({ root, ripgrep: false })(wanted)
            assert.strictEqual(slow, `${fast}\n[Searched without ripgrep: it is turned off.]`)
          }).pipe(Effect.provide(NodeContext.layer), Effect.runPromise)
        )
        yield* Effect.promise(() => FastCheck.assert(property, { numRuns: Runs.of(160) }))
      }),
    120_000
  )

  it.scopedLive(
    "reads each encoding, and no binary file",
    () =>
      Effect.gen(function* () {
        const root = yield* directory
        const text = (...parts: ReadonlyArray<string | number>): Uint8Array =>
          Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part]))))
        const files: Readonly<Record<string, Uint8Array>> = {
          binary: text("needle\n", 0, "\n"),
          crlf: text("needle\r\nNEEDLE\r\n"),
          empty: text(),
          exactly: text("x".repeat(65_529), "needle\n"),
          latin: text("a", 0xff, "needle\n", 0xc3),
          long: text("y".repeat(9_900), " needle and needle\n"),
          mark: text(0xef, 0xbb, 0xbf, "needle\n"),
          late: text("x\n".repeat(40_000), "needle"),
          wide: Buffer.concat([text(0xff, 0xfe), Buffer.from("ä\nneedle\n", "utf16le")])
        }
        for (const [name, bytes] of Object.entries(files)) fs.writeFileSync(`${root}/${name}`, bytes)
        const search = toolkitOf({ root })
        const plain = toolkitOf({ root, ripgrep: false })
        const rows = (yield* search({ pattern: "needle" })).split("\n")
        assert.deepStrictEqual(
          rows.map((row) => row.slice(0, row.indexOf(": "))),
          ["crlf:1", "exactly:1", "late:40001", "latin:1", "long:1", "mark:1", "wide:2"]
        )
        for (const path of ["crlf", "late", "latin", "long", "mark", "wide"]) {
          for (const pattern of ["needle", "^needle$", "n.*e$"]) {
            const found = yield* search({ pattern, path })
            assert.strictEqual(
              yield* plain({ pattern, path }),
              `${found}\n[Searched without ripgrep: it is turned off.]`
            )
          }
        }
        assert.include(yield* search({ pattern: "needle", path: "binary" }), "binary is a binary file")
      }).pipe(Effect.provide(NodeContext.layer)),
    60_000
  )

  it.scopedLive(
    "takes more files than fit into one call, in the order of their paths",
    inWorkspace(({ call, run }) =>
      Effect.gen(function* () {
        yield* run({
          command: "for d in b a; do mkdir $d; (cd $d; for i in $(seq 3500); do echo $d$i >$i.ts; done); done"
        })
        yield* run({ command: "touch a/x b/x; echo a7 >a-b.ts" })
        const expected = ["a/7.ts:1: a7", "a-b.ts:1: a7", "b/7.ts:1: b7"].join("\n")
        assert.strictEqual(yield* call("search_files", { pattern: "^[ab]7$", glob: "*.ts" }), expected)
        assert.strictEqual(yield* call("search_files", { pattern: "^[ab]7$" }), expected)
        const many = (yield* call("search_files", { pattern: "." })).split("\n")
        assert.deepStrictEqual(
          [many.length, many[0], many[300]],
          [301, "a/1.ts:1: a1", "[More than 300 results. Narrow path, glob or pattern.]"]
        )
      })
    ),
    120_000
  )

  it.scopedLive(
    "counts files that cannot be read, and takes a name with any character",
    inWorkspace(({ call, fileSystem, put, root }) =>
      Effect.gen(function* () {
        yield* put("a\nb", "needle")
        yield* put("-e", "needle")
        yield* put("rg: x (os error 5)", "needle")
        yield* put("closed", "needle")
        yield* fileSystem.chmod(`${root}/closed`, 0)
        const rows = ["-e:1: needle", "a\nb:1: needle"]
        // The system refuses nothing to root, who may run the tests.
        const isRoot = process.getuid?.() === 0
        assert.strictEqual(
          yield* call("search_files", { pattern: "needle" }),
          [
            ...rows,
            ...(isRoot ? ["closed:1: needle"] : []),
            "rg: x (os error 5):1: needle",
            ...(isRoot ? [] : ["[Left out: unreadable: 1.]"])
          ].join("\n")
        )
      })
    )
  )

  it.scopedLive(
    "does without ripgrep when a line of 200 MB takes too much memory",
    inWorkspace(({ call, run, put }) =>
      Effect.gen(function* () {
        yield* put("a", "needle")
        yield* run({ command: "head -c 200000000 /dev/zero | tr '\\0' x >z" })
        const text = yield* call("search_files", { pattern: "needle" })
        assert.match(text, /^a:1: needle\n\[ripgrep failed: memory allocation of \d+ bytes failed\.\]\n\[Of long lines/)
      })
    ),
    120_000
  )

  for (const phase of ["--files-with-matches", "--line-number"]) {
    it.scopedLive(
      `shows nothing of where a directory leads that became a link before ${phase}`,
      inWorkspace(
        ({ call, outside, put, root }) =>
          Effect.gen(function* () {
            yield* put("dir/a", "needle inside")
            fs.writeFileSync(`${outside}/a`, "needle outside")
            const found = yield* call("search_files", { pattern: "needle", path: "dir" })
            assert.isTrue(fs.lstatSync(`${root}/dir`).isSymbolicLink())
            assert.match(found, /^No matches\.\n\[Left out: unreadable: \d\.\]$/)
          }),
        ({ outside, root }) => ({
          ripgrep: playing(
            outside,
            "15.0.0",
            `case "$*" in *"${phase}"*" ${root}"*) mv ${root}/dir ${outside}/aside; ln -s ${outside} ${root}/dir;; esac\n` +
              `exec ${createRequire(import.meta.url)("@vscode/ripgrep").rgPath} "$@"`
          )
        })
      )
    )
  }

  it.scopedLive(
    "ends with its caller, and leaves no process",
    () =>
      inWorkspace(
        ({ call, outside, put }) =>
          Effect.gen(function* () {
            yield* put("a", "needle")
            const searching = yield* Effect.fork(call("search_files", { pattern: "needle" }))
            yield* until(() => fs.existsSync(`${outside}/pid`), "ripgrep runs")
            yield* Fiber.interrupt(searching)
            const pid = Number(fs.readFileSync(`${outside}/pid`, "utf8"))
            const isOver = () =>
              !fs.existsSync(`/proc/${pid}/stat`) || / Z /.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"))
            yield* until(isOver, "ripgrep is over")
          }),
        ({ outside }) => ({
          ripgrep: playing(
            outside,
            "15.0.0",
            `case "$*" in *" /dev/null") exit 1;; *) echo $$ >${outside}/p; mv ${outside}/p ${outside}/pid; exec sleep 99;; esac`
          )
        })
      )(),
    60_000
  )

  it.scopedLive.runIf(Confined.isWanted)(
    "runs in the sandbox, with nothing writable",
    () =>
      Effect.gen(function* () {
        const base = yield* directory
        fs.mkdirSync(`${base}/ws/dir`, { recursive: true })
        fs.mkdirSync(`${base}/added`)
        fs.writeFileSync(`${base}/ws/dir/a`, "needle")
        fs.writeFileSync(`${base}/ws/.gitignore`, "none")
        fs.writeFileSync(`${base}/added/b`, "needle")
        if (process.platform === "linux") execFileSync("mkfifo", [`${base}/ws/pipe`])
        const sandbox = { mode: "require", directory: `${base}/sandbox` } as const
        const roots = { root: `${base}/ws`, added: [`${base}/added`], sandbox }
        const search = toolkitOf(roots)
        assert.strictEqual(yield* search({ pattern: "needle" }), "dir/a:1: needle")
        assert.strictEqual(yield* search({ pattern: "needle", path: `${base}/added` }), `${base}/added/b:1: needle`)
        const writes = `case "$*" in *" /dev/null") exit 1;; *) echo x >${base}/ws/new; echo x >${base}/out;  exit 1;; esac`
        const played = toolkitOf({ ...roots, ripgrep: playing(base, "15.0.0", writes) })
        assert.strictEqual(yield* played({ pattern: "needle" }), "No matches.")
        assert.isFalse(fs.existsSync(`${base}/ws/new`) || fs.existsSync(`${base}/out`))
      }).pipe(Effect.provide(NodeContext.layer)),
    60_000
  )
})
