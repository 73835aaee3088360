/** What is found is the same whether the system reads files at once or by effects. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as FastCheck from "fast-check"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as DirectFiles from "../../src/builtin/DirectFiles.js"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import * as WorkspaceSearch from "../../src/builtin/WorkspaceSearch.js"
import * as LinePattern from "../../src/builtin/LinePattern.js"
import * as NodeFiles from "../../src/host/NodeFiles.js"

const bytes = (...parts: ReadonlyArray<string | number>): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part]))))

const files: Readonly<Record<string, Uint8Array>> = {
  "a.txt": bytes("one needle\ntwo\nneedle three"),
  "B.txt": bytes("needle\r\nNEEDLE\r\n"),
  empty: bytes(),
  "ä/ö.md": bytes(0xef, 0xbb, 0xbf, "needle with a mark\nünd needle\n"),
  binary: bytes("needle\n", 0, "\n"),
  "binary late": bytes("x\n".repeat(40_000), 0, "needle\n"),
  invalid: bytes("a", 0xff, "needle\n", 0xc3),
  large: bytes("x\n".repeat(40_000), "needle at the end\n"),
  exactly: bytes("x".repeat(65_529), "needle\n"),
  "long line": bytes("y".repeat(19_990), " needle and needle\n"),
  "src/deep/x.ts": bytes("const needle = 1\n\n\nneedle()\n"),
  "src/.gitignore": bytes("*.log\n"),
  "src/a.log": bytes("needle\n"),
  "node_modules/m/i.js": bytes("needle\n"),
  ".assent/config.json": bytes("needle\n"),
  "a-b/c": bytes("needle\n"),
  "a/c": bytes("needle\n")
}

describe("files read at once", () => {
  it.scopedLive(
    "are found and listed as by effects",
    () =>
      Effect.gen(function* () {
        const fileSystem = yield* FileSystem.FileSystem
        const root = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
        for (const [name, content] of Object.entries(files)) {
          yield* fileSystem.makeDirectory(`${root}/${name}/..`.replace(/[^/]+\/\.\.$/, ""), { recursive: true })
          yield* fileSystem.writeFile(`${root}/${name}`, content)
        }
        yield* fileSystem.symlink(`${root}/src`, `${root}/link`)
        yield* fileSystem.symlink(`${root}/a.txt`, `${root}/linked.txt`)
        if (process.platform === "linux") execFileSync("mkfifo", [`${root}/pipe`])

        const slow = WorkspaceRoot.layer({ root, protectedPaths: ["a-b"] })
        const fast = Layer.provide(slow, NodeFiles.layer)
        const both = (use: Effect.Effect<string, string, WorkspaceRoot.WorkspaceRoot>) =>
          Effect.gen(function* () {
            const [one, other] = yield* Effect.all(
              [slow, fast].map((layer) => Effect.either(Effect.provide(use, layer)))
            )
            assert.deepStrictEqual(other, one)
            return Either.merge(other ?? Either.right(""))
          })
        const all = yield* both(WorkspaceSearch.search({ pattern: "needle" }))
        for (const name of ["a.txt:3", "B.txt:1", "ä/ö.md:2", "invalid:1", "large:40001", "src/deep/x.ts:4", "a/c:1"]) {
          assert.include(all, `${name}: `)
        }
        for (const name of ["binary:", "a.log", "node_modules/", "link", ".assent", "a-b"]) assert.notInclude(all, name)
        for (const pattern of [
          "^needle$",
          "(?i)needle",
          "n.*dle",
          "needle|two",
          "\\bneedle\\(",
          "\ufffd",
          "ü",
          "x{3}",
          "$"
        ]) {
          yield* both(WorkspaceSearch.search({ pattern }))
          yield* both(WorkspaceSearch.search({ pattern, path: "src", glob: "*.ts" }))
        }
        yield* both(WorkspaceSearch.list({ pattern: "**" }))
        yield* both(WorkspaceSearch.list({ path: "none" }))
      }).pipe(Effect.provide(NodeContext.layer)),
    120_000
  )

  /** A directory with a workspace and something outside of it, and a search of the workspace with what is given. */
  const inTree = (
    use: (
      base: string,
      direct: DirectFiles.Service,
      search: (
        pattern: string,
        given: { readonly direct?: DirectFiles.Service; readonly fileSystem?: FileSystem.FileSystem }
      ) => Effect.Effect<string, string>
    ) => Effect.Effect<void, string, FileSystem.FileSystem>
  ) =>
    Effect.gen(function* () {
      const platform = yield* Effect.context<NodeContext.NodeContext>()
      const real = Context.get(platform, FileSystem.FileSystem)
      const base = yield* Effect.flatMap(real.makeTempDirectoryScoped(), real.realPath)
      const direct = Context.get(yield* Layer.build(NodeFiles.layer), DirectFiles.DirectFiles)
      for (const name of ["ws/dir", "outside"]) fs.mkdirSync(`${base}/${name}`, { recursive: true })
      yield* use(base, direct, (pattern, given) =>
        WorkspaceSearch.search({ pattern }).pipe(
          Effect.provide(WorkspaceRoot.layer({ root: `${base}/ws` })),
          Effect.provideService(DirectFiles.DirectFiles, given.direct ?? direct),
          Effect.provideService(FileSystem.FileSystem, given.fileSystem ?? real),
          Effect.provide(platform)
        )
      )
    }).pipe(Effect.provide(NodeContext.layer))

  it.scoped("are opened by an effect only where a line matches", () =>
    inTree((base, _, search) =>
      Effect.gen(function* () {
        for (let i = 0; i < 100; i++) fs.writeFileSync(`${base}/ws/dir/${i}`, `one ${i} two\nthree\n`)
        const real = yield* FileSystem.FileSystem
        const opened: Array<string> = []
        const counted: FileSystem.FileSystem = {
          ...real,
          open: (path, options) => {
            opened.push(path)
            return real.open(path, options)
          }
        }
        const found = yield* search("e 5 t|^ne 7", { fileSystem: counted })
        assert.deepStrictEqual([found, opened], ["dir/5:1: one 5 two", [`${base}/ws/dir/5`]])
        assert.deepStrictEqual(yield* search("four", { fileSystem: counted }), "No matches.")
        assert.lengthOf(opened, 1)
      })
    )
  )

  it.scoped("tell nothing of where a directory leads that became a link before or after the first look", () =>
    inTree((base, direct, search) =>
      Effect.gen(function* () {
        const home = `${base}/ws/dir`
        fs.writeFileSync(`${home}/a`, "needle inside")
        fs.writeFileSync(`${base}/outside/a`, "needle outside")
        const swap = () => {
          fs.renameSync(home, `${base}/aside`)
          fs.symlinkSync(`${base}/outside`, home)
        }
        const back = () => {
          fs.rmSync(home)
          fs.renameSync(`${base}/aside`, home)
        }
        const looked: Array<boolean> = []
        const look = (...args: Parameters<DirectFiles.Service["mayHold"]>) => {
          const found = direct.mayHold(...args)
          looked.push(found)
          return found
        }
        const before: DirectFiles.Service = { ...direct, mayHold: (...args) => (swap(), look(...args)) }
        assert.strictEqual(yield* search("needle", { direct: before }), "No matches.\n[Left out: unreadable: 1.]")
        back()
        const after: DirectFiles.Service = { ...direct, mayHold: (...args) => [look(...args), swap()][0] === true }
        assert.strictEqual(yield* search("needle", { direct: after }), "No matches.\n[Left out: unreadable: 1.]")
        back()
        assert.strictEqual(yield* search("needle", {}), "dir/a:1: needle inside")
        assert.deepStrictEqual(looked, [true, true])
      })
    )
  )

  it.scoped.runIf(process.platform === "linux")("take nothing out of a pipe that is where a file was", () =>
    inTree((base, direct) =>
      Effect.sync(() => {
        const pipe = `${base}/pipe`
        execFileSync("mkfifo", [pipe])
        const ends = fs.openSync(pipe, fs.constants.O_RDWR | fs.constants.O_NONBLOCK)
        try {
          fs.writeSync(ends, "needle")
          assert.isFalse(direct.mayHold(pipe, ["needle"], () => true))
          assert.strictEqual(fs.readSync(ends, Buffer.alloc(9)), 6)
        } finally {
          fs.closeSync(ends)
        }
      })
    )
  )
})

describe("the needles of a pattern", () => {
  it("are one of them in every line that matches", () => {
    const part = FastCheck.constantFrom(
      ...["a", "b", ".", "(ab)", "[ab]", "a?", "b*", "\\w", "^", "$", "a{2}", "ü", "|"],
      ...["(a|bb)", "(ab|ba)+", "(a|)", "(üa|b){0,1}", "((a|b)b)*", "\\b"]
    )
    const line = FastCheck.string({ unit: FastCheck.constantFrom("a", "b", "ü", " "), maxLength: 8 })
    FastCheck.assert(
      FastCheck.property(FastCheck.array(part, { maxLength: 6 }), line, (parts, text) => {
        const pattern = Either.getOrUndefined(LinePattern.make(parts.join("")))
        if (pattern?.test(text) === true) assert.isTrue(pattern.needles.some((needle) => text.includes(needle)))
      }),
      { numRuns: 2_000 }
    )
    const sources = [
      ...["a.*function x", "ab|b+|(cd)+", "a|b?", "(?i)abc", "", "ab?c", "a(bc|de)f", "x(foo|ba)ab"],
      Array.from({ length: 17 }, (_, index) => `n${index}`).join("|")
    ]
    const needles = sources.map((source) =>
      Either.getOrThrow(Either.map(LinePattern.make(source), ({ needles }) => needles))
    )
    assert.deepStrictEqual(needles, [
      ["function x"],
      ["ab", "b", "cd"],
      [""],
      [""],
      [""],
      ["a"],
      ["bc", "de"],
      ["foo", "ba"],
      [""]
    ])
  })
})
