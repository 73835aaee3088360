import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { execFileSync } from "node:child_process"
import * as WorkspaceSettings from "../../../src/host/local/WorkspaceSettings.js"
import * as DecidingFile from "../../../src/host/local/DecidingFile.js"

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-deciding-")))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

const placesOf = (file: string) => DecidingFile.of(file)[0]?.places

/** What was told until the scope closed. */
const toldOf = (files: ReadonlyArray<DecidingFile.DecidingFile>, meanwhile: () => void) =>
  Effect.gen(function* () {
    const told: Array<string> = []
    const scope = yield* Scope.make()
    yield* Scope.extend(
      DecidingFile.follow(files, (sentence) => void told.push(sentence)),
      scope
    )
    meanwhile()
    yield* Scope.close(scope, Exit.void)
    return told
  })

describe("the places of a file that decides", () => {
  it.scoped("are all links on its way, and where it is", () =>
    Effect.gen(function* () {
      const at = yield* directory
      fs.mkdirSync(path.join(at, "real/deep"), { recursive: true })
      fs.writeFileSync(path.join(at, "real/deep/p.json"), "{}")
      fs.symlinkSync("real", path.join(at, "one"))
      fs.symlinkSync(path.join(at, "one/deep/../deep"), path.join(at, "two"))
      fs.symlinkSync("two/p.json", path.join(at, "p.json"))
      assert.deepStrictEqual(placesOf(path.join(at, "p.json")), [
        path.join(at, "p.json"),
        path.join(at, "two"),
        path.join(at, "one"),
        path.join(at, "real/deep/p.json")
      ])
      // It is not there yet, and would be made at the end of a link.
      fs.symlinkSync("real/later.json", path.join(at, "later.json"))
      assert.strictEqual(placesOf(path.join(at, "later.json"))?.at(-1), path.join(at, "real/later.json"))
      fs.symlinkSync("loop", path.join(at, "loop"))
      assert.include(placesOf(path.join(at, "loop")) ?? [], path.join(at, "loop"))
    })
  )

  it.scoped("end where the system ends, for links of any form", () =>
    Effect.gen(function* () {
      const at = yield* directory
      const parts = FastCheck.array(FastCheck.constantFrom("a", "b", "c", "..", "."), { minLength: 1, maxLength: 4 })
      let number = 0
      FastCheck.assert(
        FastCheck.property(FastCheck.array(parts, { maxLength: 4 }), parts, (targets, wanted) => {
          const root = path.join(at, String(number++))
          fs.mkdirSync(path.join(root, "x/y/a/b"), { recursive: true })
          fs.mkdirSync(path.join(root, "x/y/b/a"), { recursive: true })
          for (const [index, target] of targets.entries()) {
            const link = path.join(root, ["x/y/c", "x/y/a/c", "x/y/b/c", "x/y/a/b/c"][index] ?? "x/c")
            fs.symlinkSync(target.join("/"), link)
          }
          const file = path.join(root, "x/y", ...wanted)
          if (!fs.existsSync(file)) return
          assert.strictEqual(placesOf(file)?.at(-1), fs.realpathSync(file))
        }),
        { numRuns: 80 }
      )
    })
  )

  it.scoped("are none of a pipe", () =>
    Effect.gen(function* () {
      const at = yield* directory
      execFileSync("mkfifo", [path.join(at, "pipe")])
      assert.deepStrictEqual(DecidingFile.of(path.join(at, "pipe")), [])
    })
  )
})

describe("the files of a start", () => {
  it.scoped("are those that allow something, of the person and of the workspace, and no instructions", () =>
    Effect.gen(function* () {
      const at = yield* directory
      const put = (file: string) => {
        fs.mkdirSync(path.dirname(path.join(at, file)), { recursive: true })
        fs.writeFileSync(path.join(at, file), "{}")
      }
      for (const file of ["config/profiles/a.json", "config/instructions.md", "w/AGENTS.md"]) put(file)
      for (const name of ["permissions.json", "instructions.md", "profiles/b.yaml"]) put(`w/.assent/${name}`)
      put("k")
      const found = DecidingFile.atStart(
        { configDirectory: path.join(at, "config"), key: path.join(at, "k"), named: [path.join(at, "p"), undefined] },
        yield* WorkspaceSettings.load(path.join(at, "w"))
      )
      assert.deepStrictEqual(
        found.map(({ file, isSecret }) => `${path.relative(at, file)}${isSecret ? " secret" : ""}`),
        [
          "config/permissions.json",
          "config/config.json",
          "config/profiles",
          "config/profiles/a.json",
          "w/.assent/permissions.json",
          "w/.assent/profiles/b.yaml",
          "w/.assent/config.json",
          "p",
          "k secret"
        ]
      )
    })
  )
})

describe("a change", () => {
  const changes: Readonly<Record<string, (file: string) => void>> = {
    "of the text": (file) => fs.writeFileSync(file, "[]"),
    "of the file": (file) => {
      fs.writeFileSync(`${file}.new`, "[]")
      fs.renameSync(`${file}.new`, file)
    },
    "that removes it": (file) => fs.rmSync(file),
    "that leads elsewhere": (file) => {
      fs.renameSync(file, `${file}.old`)
      fs.symlinkSync(`${file}.old`, file)
    }
  }
  it.scoped.each(Object.entries(changes))("%s is told", ([, change]) =>
    Effect.gen(function* () {
      const file = path.join(yield* directory, "p.json")
      fs.writeFileSync(file, "{}")
      const told = yield* toldOf(DecidingFile.of(file), () => change(file))
      assert.strictEqual(told.length, 1)
      assert.include(told[0], `${file} changed since the start.`)
    })
  )

  it.scoped("is told of a file that appears, and of a profile", () =>
    Effect.gen(function* () {
      const at = yield* directory
      fs.mkdirSync(path.join(at, "profiles"))
      const files = [...DecidingFile.of(path.join(at, "p.json")), ...DecidingFile.of(path.join(at, "profiles"))]
      const told = yield* toldOf(files, () => {
        fs.writeFileSync(path.join(at, "p.json"), "{}")
        fs.writeFileSync(path.join(at, "profiles/new.yaml"), "name: new")
      })
      assert.strictEqual(told.length, 2)
    })
  )

  it.scoped("is none where the same text is written again", () =>
    Effect.gen(function* () {
      const file = path.join(yield* directory, "p.json")
      fs.writeFileSync(file, "{}")
      const told = yield* toldOf(DecidingFile.of(file), () => {
        fs.writeFileSync(`${file}.new`, "{}")
        fs.renameSync(`${file}.new`, file)
      })
      assert.deepStrictEqual(told, [])
    })
  )
})
