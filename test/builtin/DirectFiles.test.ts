/** What is found is the same whether the system reads files at once or by effects. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as FastCheck from "fast-check"
import { execFileSync } from "node:child_process"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import * as WorkspaceSearch from "../../src/builtin/WorkspaceSearch.js"
import * as LinePattern from "../../src/builtin/LinePattern.js"
import * as NodeFiles from "../../src/cli/NodeFiles.js"

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
        for (const name of ["binary:", "a.log", "node_modules", "link", ".assent", "a-b"]) assert.notInclude(all, name)
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
})

describe("the needle of a pattern", () => {
  it("is in every line that matches", () => {
    const part = FastCheck.constantFrom("a", "b", ".", "(ab)", "[ab]", "a?", "b*", "\\w", "^", "$", "a{2}", "ü", "|")
    const line = FastCheck.string({ unit: FastCheck.constantFrom("a", "b", "ü", " "), maxLength: 8 })
    FastCheck.assert(
      FastCheck.property(FastCheck.array(part, { maxLength: 6 }), line, (parts, text) => {
        const pattern = Either.getOrUndefined(LinePattern.make(parts.join("")))
        if (pattern?.test(text) === true) assert.include(text, pattern.needle)
      }),
      { numRuns: 2_000 }
    )
    const needles = ["a.*function x", "a|b", "(?i)abc", "", "ab?c"].map((source) =>
      Either.getOrThrow(Either.map(LinePattern.make(source), ({ needle }) => needle))
    )
    assert.deepStrictEqual(needles, ["function x", "", "", "", "a"])
  })
})
