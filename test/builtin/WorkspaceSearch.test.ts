import * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as path from "node:path"
import * as WorkspaceSearch from "../../src/builtin/WorkspaceSearch.js"
import { inWorkspace, type Fixture } from "./workspaceFixture.js"

const putAll = (put: Fixture["put"], files: Record<string, string>) =>
  Effect.forEach(Object.entries(files), ([path, content]) => put(path, content), { discard: true })

describe("the paths of a workspace", () => {
  it.scopedLive(
    "are as many as there is room for, and say whether there are more",
    inWorkspace(({ fileSystem, put, root }) =>
      Effect.gen(function* () {
        yield* putAll(put, { "b.ts": "", "src/x.ts": "", "src/y.ts": "", ".gitignore": "out/", "out/z": "" })
        yield* fileSystem.symlink(`${root}/src`, `${root}/link`)
        const all = [".gitignore", "b.ts", "link", "src/", "src/x.ts", "src/y.ts"]
        for (const most of [0, 1, 4, 5, 6, 7]) {
          const found = yield* WorkspaceSearch.paths(most)
          assert.deepStrictEqual(found, { paths: all.slice(0, most), cut: most < all.length ? "many" : undefined })
        }
      })
    )
  )

  it.scopedLive(
    "say that the time was up",
    inWorkspace(({ put }) =>
      Effect.gen(function* () {
        yield* putAll(put, { "a.ts": "", "b.ts": "" })
        const clock = yield* Effect.clock
        let now = 0
        const hasty = { ...clock, unsafeCurrentTimeMillis: () => (now += 15_000) }
        const found = yield* Effect.withClock(WorkspaceSearch.paths(9), hasty)
        assert.strictEqual(found.cut, "late")
      })
    )
  )
})

describe("list_files", () => {
  it.scopedLive(
    "lists one directory, a few levels, or what matches a pattern",
    inWorkspace(({ call, fileSystem, put, root }) =>
      Effect.gen(function* () {
        yield* putAll(put, { "b.ts": "", "a.md": "", "src/x.ts": "", "src/deep/y.ts": "", ".hidden": "" })
        yield* fileSystem.symlink(`${root}/src`, `${root}/link`)
        assert.strictEqual(yield* call("list_files", {}), ".hidden\na.md\nb.ts\nlink@\nsrc/")
        assert.strictEqual(yield* call("list_files", { path: "src" }), "src/deep/\nsrc/x.ts")
        assert.strictEqual(yield* call("list_files", { path: "src", depth: 2 }), "src/deep/\nsrc/deep/y.ts\nsrc/x.ts")
        assert.strictEqual(yield* call("list_files", { pattern: "*.ts" }), "b.ts\nsrc/deep/y.ts\nsrc/x.ts")
        assert.strictEqual(yield* call("list_files", { pattern: "*.ts", depth: 2 }), "b.ts\nsrc/x.ts")
        assert.strictEqual(yield* call("list_files", { pattern: "deep/*", path: "src" }), "src/deep/y.ts")
        assert.strictEqual(yield* call("list_files", { pattern: "*.rs" }), "No files match.")
        assert.strictEqual(yield* call("list_files", { path: "link" }), "src/deep/\nsrc/x.ts")
        assert.include(yield* call("list_files", { path: "b.ts" }), "failed: b.ts is not a directory.")
        assert.include(yield* call("list_files", { path: "none" }), "failed: none does not exist.")
      })
    )
  )

  it.scopedLive(
    "says what is not shown, and calls a directory empty only if nothing is in it",
    inWorkspace(
      ({ call, fileSystem, put, root }) =>
        Effect.gen(function* () {
          yield* put(".gitignore", "*.sh\n")
          yield* put("scripts/a.sh", "needle")
          yield* put("modules/node_modules/x", "needle")
          yield* put("own/.assent/x", "needle")
          yield* put("closed/x", "needle")
          yield* fileSystem.makeDirectory(`${root}/empty`)
          const list = (path: string) => call("list_files", { path })
          const ignored = "[Left out: ignored: 1 (.gitignore, node_modules).]"
          assert.strictEqual(yield* list("scripts"), `[Nothing in scripts is shown]\n${ignored}`)
          assert.strictEqual(yield* list("modules"), `[Nothing in modules is shown]\n${ignored}`)
          assert.strictEqual(yield* list("own"), "[Nothing in own is shown]")
          assert.strictEqual(yield* list("empty"), "[empty is empty]")
          const all = "[Left out: ignored: 2 (.gitignore, node_modules), unreadable: 1.]"
          assert.include(yield* call("list_files", { depth: 9 }), all)
          assert.strictEqual(yield* call("search_files", { pattern: "needle" }), `No matches.\n${all}`)
          // A file that the pattern does not fit is not missed.
          assert.strictEqual(yield* call("list_files", { path: "scripts", pattern: "*.ts" }), "No files match.")
        }),
      {},
      // The system refuses nothing to root, who may run the tests.
      Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (real) => ({
          ...real,
          open: (path: string, options?: FileSystem.OpenFileOptions) =>
            path.endsWith("/closed")
              ? Effect.fail(
                  new PlatformError.SystemError({
                    module: "FileSystem",
                    method: "open",
                    reason: "PermissionDenied",
                    pathOrDescriptor: path
                  })
                )
              : real.open(path, options)
        }))
      )
    )
  )

  it.scopedLive(
    "leaves out .git, node_modules and what ignore files on the way exclude, unless it is asked for by name",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* putAll(put, {
          ".gitignore": "*.log\n/dist/\n!important.log\n",
          "a.log": "",
          "important.log": "",
          "dist/out.js": "",
          "pkg/dist/kept.js": "",
          "pkg/.gitignore": "secret\n!a.log\n",
          "pkg/secret": "",
          "pkg/a.log": "",
          "pkg/sub/secret": "",
          ".git/config": "",
          "node_modules/m/index.js": ""
        })
        assert.strictEqual(
          yield* call("list_files", { pattern: "**" }),
          [".gitignore", "important.log", "pkg/", "pkg/.gitignore", "pkg/a.log"]
            .concat(["pkg/dist/", "pkg/dist/kept.js", "pkg/sub/"])
            .concat(["[Left out: ignored: 5 (.gitignore, node_modules).]"])
            .join("\n")
        )
        assert.strictEqual(
          yield* call("list_files", { path: "pkg/sub", pattern: "**" }),
          "No files match.\n[Left out: ignored: 1 (.gitignore, node_modules).]"
        )
        assert.strictEqual(yield* call("list_files", { path: "node_modules/m" }), "node_modules/m/index.js")
        assert.strictEqual(yield* call("list_files", { path: "dist" }), "dist/out.js")
      })
    )
  )

  it.scopedLive(
    "leaves out what the repository around the workspace does, and the exclude file of its clone, in a worktree too",
    inWorkspace(({ call, fileSystem, put, root }) =>
      Effect.gen(function* () {
        const above = path.dirname(root)
        const write = (file: string, text: string) =>
          Effect.zipRight(
            fileSystem.makeDirectory(path.dirname(path.join(above, file)), { recursive: true }),
            fileSystem.writeFileString(path.join(above, file), text)
          )
        yield* putAll(put, { "a.log": "", "a.txt": "", "b.own": "", "deep/gen/x": "", "deep/gen/kept.own": "" })
        const seen = Effect.map(call("list_files", { pattern: "**" }), (text) =>
          text.split("\n").filter((line) => !line.startsWith("["))
        )
        const all = ["a.log", "a.txt", "b.own", "deep/", "deep/gen/", "deep/gen/kept.own", "deep/gen/x"]
        yield* write(".gitignore", "*.log\n/ws/deep/gen/x\n")
        assert.deepStrictEqual(yield* seen, all)
        const kept = all.filter((name) => name !== "a.log" && name !== "deep/gen/x")
        // To git, a directory of that name is no repository by itself.
        yield* fileSystem.makeDirectory(path.join(above, ".git"))
        assert.deepStrictEqual(yield* seen, all)
        yield* write(".git/HEAD", "ref: refs/heads/main\n")
        assert.deepStrictEqual(yield* seen, kept)
        yield* write(".git/info/exclude", "*.own\n*.txt\n")
        // What is nearer decides.
        yield* put("deep/.gitignore", "!kept.own\n")
        const left = ["deep/", "deep/.gitignore", "deep/gen/", "deep/gen/kept.own"]
        assert.deepStrictEqual(yield* seen, left)
        yield* fileSystem.rename(path.join(above, ".git"), path.join(above, "main"))
        yield* write("main/worktrees/one/commondir", "../..\n")
        yield* write(".git", "gitdir: main/worktrees/one\n")
        assert.deepStrictEqual(yield* seen, left)
        // It was asked for, though the repository leaves it out.
        yield* write(".gitignore", "ws\n")
        assert.deepStrictEqual(
          yield* seen,
          all.flatMap((name) => (name === "deep/" ? ["deep/", "deep/.gitignore"] : [name]))
        )
      })
    )
  )

  it.scopedLive(
    "lets no rule from outside count in a repository of its own, a submodule too",
    inWorkspace(({ call, fileSystem, put, root }) =>
      Effect.gen(function* () {
        const files = {
          ".gitignore": "dist/\n*.log\n",
          "lib/dist/a.js": "",
          "lib/x.log": "",
          "lib/y.own": "",
          "x.log": ""
        }
        yield* putAll(put, { ...files, "lib/.gitignore": "", "lib/sub/x.log": "" })
        const seen = (params: object) =>
          Effect.map(call("list_files", { pattern: "*.{js,log,own}", ...params }), (text) =>
            text.split("\n").filter((line) => !line.startsWith("["))
          )
        assert.deepStrictEqual(yield* seen({}), ["lib/y.own"])
        yield* put("lib/.git", "gitdir: ../.git/modules/lib\n")
        const all = ["lib/dist/a.js", "lib/sub/x.log", "lib/x.log", "lib/y.own"]
        assert.deepStrictEqual(yield* seen({}), all)
        assert.deepStrictEqual(yield* seen({ path: "lib/sub" }), ["lib/sub/x.log"])
        yield* fileSystem.remove(`${root}/lib/.git`)
        yield* fileSystem.makeDirectory(`${root}/lib/.git/info`, { recursive: true })
        assert.deepStrictEqual(yield* seen({}), ["lib/y.own"])
        yield* put("lib/.git/HEAD", "ref: refs/heads/main\n")
        yield* fileSystem.writeFileString(`${root}/lib/.git/info/exclude`, "*.own\n")
        assert.deepStrictEqual(yield* seen({}), all.slice(0, -1))
        assert.deepStrictEqual(yield* seen({ path: "lib" }), all.slice(0, -1))
      })
    )
  )

  it.scopedLive(
    "cuts long lists and says so",
    inWorkspace(({ call, run }) =>
      Effect.gen(function* () {
        yield* run({ command: "for d in 1 2 3; do mkdir $d; (cd $d; seq 500 | xargs touch); done" })
        const lines = (yield* call("list_files", { depth: 9 })).split("\n")
        assert.strictEqual(lines.length, 1_001)
        assert.strictEqual(lines[1_000], "[More than 1000 results. Narrow path, pattern or depth.]")
      })
    )
  )

  it.scopedLive(
    "shows no more than the given number of characters",
    inWorkspace(
      ({ call, run }) =>
        Effect.gen(function* () {
          yield* run({ command: "seq 1000 | xargs touch" })
          assert.isAtMost((yield* call("list_files", {})).length, 300 + 80)
        }),
      { maxOutput: 300 }
    )
  )
})

describe("search_files", () => {
  it.scopedLive(
    "finds lines by expression, in all files, those of a glob, a directory, or one file",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* putAll(put, {
          "a.ts": "const one = 1\r\nconst two = 2\r\n",
          "src/b.ts": "// TODO one\nlast: ONE",
          "src/c.md": "one"
        })
        assert.strictEqual(
          yield* call("search_files", { pattern: "\\bone\\b" }),
          "a.ts:1: const one = 1\nsrc/b.ts:1: // TODO one\nsrc/c.md:1: one"
        )
        assert.strictEqual(yield* call("search_files", { pattern: "2$" }), "a.ts:2: const two = 2")
        assert.strictEqual(yield* call("search_files", { pattern: "one", glob: "*.md" }), "src/c.md:1: one")
        assert.strictEqual(
          yield* call("search_files", { pattern: "one", path: "src", glob: "*.ts", ignore_case: true }),
          "src/b.ts:1: // TODO one\nsrc/b.ts:2: last: ONE"
        )
        assert.strictEqual(yield* call("search_files", { pattern: "^last", path: "src/b.ts" }), "src/b.ts:2: last: ONE")
        assert.strictEqual(yield* call("search_files", { pattern: "nothing like it" }), "No matches.")
      })
    )
  )

  it.scopedLive(
    "skips binary and excluded files, follows no links, and does not wait at pipes",
    inWorkspace(({ call, fileSystem, outside, put, root, run }) =>
      Effect.gen(function* () {
        yield* putAll(put, { ".gitignore": "gen", "gen/x": "needle", "node_modules/x": "needle", ok: "needle" })
        yield* put("binary", new Uint8Array([0, ...new TextEncoder().encode("needle")]))
        yield* fileSystem.writeFileString(`${outside}/secret`, "needle")
        yield* fileSystem.symlink(outside, `${root}/d`)
        yield* fileSystem.symlink(`${outside}/secret`, `${root}/f`)
        yield* fileSystem.symlink(root, `${root}/loop`)
        yield* run({ command: "mkfifo pipe" })
        assert.strictEqual(
          yield* call("search_files", { pattern: "needle" }),
          "ok:1: needle\n[Left out: ignored: 2 (.gitignore, node_modules).]"
        )
      })
    )
  )

  it.scopedLive(
    "names what is wrong with an expression, before and at the call",
    inWorkspace(({ call, check }) =>
      Effect.gen(function* () {
        for (const [pattern, reason] of [
          ["(", "not a regular expression"],
          ["(?=a)b", "look-ahead"],
          ["a\\nb", "has a newline"]
        ] as const) {
          assert.include(yield* check("search_files", { pattern }), reason)
          assert.include(yield* call("search_files", { pattern }), reason)
        }
        assert.include(yield* check("search_files", { pattern: "a", path: "none" }), "none does not exist")
        assert.isUndefined(yield* check("search_files", { pattern: "a" }))
      })
    )
  )

  it.scopedLive(
    "cuts many matches and long lines",
    inWorkspace(({ call, put, run }) =>
      Effect.gen(function* () {
        yield* run({ command: "seq 100000 > many" })
        yield* put("wide", `${"x".repeat(5_000)}needle`)
        const many = (yield* call("search_files", { pattern: "1", path: "many" })).split("\n")
        assert.strictEqual(many.length, 301)
        assert.include(many[300], "More than 300 results")
        assert.strictEqual(
          yield* call("search_files", { pattern: "needle" }),
          `wide:1: [from character 4901] ${"x".repeat(100)}needle`
        )
        assert.strictEqual(yield* call("search_files", { pattern: "xx" }), `wide:1: ${"x".repeat(300)} […]`)
      })
    )
  )

  it.scopedLive(
    "is not hung by an expression that backtracking engines hang on",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* put("a", `${"a".repeat(10_000)}\n`.repeat(100))
        assert.strictEqual(yield* call("search_files", { pattern: "^(a+)+b|(a|aa)+c" }), "No matches.")
      })
    )
  )

  it.scopedLive(
    "searches the whole of a line, however long it is",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* put("min.js", `${"x".repeat(30_000)}é needle${"y".repeat(200_000)}other thing\nlast`)
        assert.strictEqual(
          yield* call("search_files", { pattern: "needle" }),
          `min.js:1: [from character 29904] ${"x".repeat(97)}é needle${"y".repeat(195)} […]`
        )
        assert.strictEqual(
          yield* call("search_files", { pattern: "needle.*other thing$" }),
          `min.js:1: [from character 29904] ${"x".repeat(97)}é needle${"y".repeat(195)} […]`
        )
      })
    )
  )

  it.scopedLive(
    "says so where one file is no text",
    inWorkspace(({ call, put }) =>
      Effect.gen(function* () {
        yield* put("image", new Uint8Array([1, 0, 1]))
        assert.include(yield* call("search_files", { pattern: "a", path: "image" }), "image is a binary file")
      })
    )
  )

  it.scopedLive(
    "ends when its time is up, with what it has",
    inWorkspace(
      ({ call, put }) =>
        Effect.gen(function* () {
          yield* Effect.forEach(["a", "b", "c", "d", "e", "f", "g", "h"], (name) => put(name, "x"))
          let now = 0
          /** Every look at it takes so many milliseconds. */
          const clockOf = (each: number): Clock.Clock =>
            Object.assign(Object.create(Clock.make()), {
              currentTimeMillis: Effect.sync(() => (now += each)),
              unsafeCurrentTimeMillis: () => (now += each)
            })
          const slow = clockOf(3_000)
          const found = yield* Effect.withClock(call("search_files", { pattern: "x" }), slow)
          const narrow = "Narrow path, glob or pattern.]"
          const note = "\n[Searched without ripgrep: it is turned off.]"
          assert.strictEqual(
            found,
            `a:1: x\nb:1: x\nc:1: x\n[Incomplete: the time was up behind c. Files searched: 3. ${narrow}${note}`
          )
          assert.strictEqual(
            yield* Effect.withClock(call("search_files", { pattern: "y" }), slow),
            "[Nothing was found, but the search is incomplete: the time was up behind c. Files searched: 3. " +
              narrow +
              note
          )
          assert.include(yield* Effect.withClock(call("list_files", {}), slow), "[Incomplete: the time was up.")
        }),
      { ripgrep: false }
    )
  )
})
