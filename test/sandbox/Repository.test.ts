import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Repository from "../../src/sandbox/Repository.js"

const pipe = (file: string) => void execFileSync("mkfifo", [file])
const hole = (file: string) => (fs.writeFileSync(file, ""), fs.truncateSync(file, 1_900_000_000))
const zero = (file: string) => fs.symlinkSync("/dev/zero", file)

describe("what a workspace has as its .git", () => {
  it.scopedLive.each(
    [pipe, hole, zero].flatMap((put) =>
      [".git", "real/config", "real/commondir", "real/gitdir"].map((name) => ({ put, name }))
    )
  )("is not waited for, nor read whole: $name", ({ name, put }) =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const root = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
      fs.mkdirSync(path.join(root, "real"))
      fs.writeFileSync(path.join(root, ".git"), "gitdir: real\n")
      if (name === "real/gitdir") fs.writeFileSync(path.join(root, "real/commondir"), "..\n")
      fs.rmSync(path.join(root, name), { force: true })
      put(path.join(root, name))
      const before = process.memoryUsage().arrayBuffers
      const found = yield* Repository.read(fileSystem, path, path.join(root, ".git"), [root])
      assert.isBelow(process.memoryUsage().arrayBuffers - before, 50_000_000)
      // Nothing of it is taken for a repository that this directory has.
      assert.isFalse((found?.mounts ?? []).some(({ _tag }) => _tag === "Writable"))
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("the repository that a directory lies below", () => {
  const git = (directory: string, ...words: ReadonlyArray<string>) =>
    void execFileSync(
      "git",
      ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", ...words],
      { cwd: directory, stdio: "ignore" }
    )
  const init = (directory: string) => {
    fs.mkdirSync(directory, { recursive: true })
    git(directory, "init", "-q")
    git(directory, "commit", "-q", "--allow-empty", "-m", "first")
  }
  const put = (file: string, text: string) => {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  }

  interface Case {
    readonly name: string
    /** Makes it. `at` is an empty directory. */
    readonly make: (at: string) => void
    /** Below `at`. */
    readonly workspace: string
    readonly secret?: string
    readonly readable: ReadonlyArray<string>
  }
  const cases: ReadonlyArray<Case> = [
    { name: "one directory up", make: (at) => init(`${at}/r`), workspace: "r/pkg", readable: ["r"] },
    { name: "several directories up", make: (at) => init(`${at}/r`), workspace: "r/a/b/c", readable: ["r"] },
    { name: "is none for its own root", make: (at) => init(`${at}/r`), workspace: "r", readable: [] },
    { name: "is none without a repository", make: () => {}, workspace: "r/pkg", readable: [] },
    {
      name: "is the nearest of two",
      make: (at) => [`${at}/r`, `${at}/r/in`].forEach(init),
      workspace: "r/in/pkg",
      readable: ["r/in"]
    },
    {
      name: "is further up if a .git is an empty directory",
      make: (at) => (init(`${at}/r`), fs.mkdirSync(`${at}/r/pkg/.git`, { recursive: true })),
      workspace: "r/pkg/src",
      readable: ["r"]
    },
    {
      name: "of a worktree is the worktree and the git directory",
      make: (at) => (init(`${at}/r`), git(`${at}/r`, "worktree", "add", "-q", "../tree")),
      workspace: "tree/pkg",
      readable: ["tree", "r/.git"]
    },
    {
      name: "of a submodule is the submodule and its git directory",
      make: (at) => {
        init(`${at}/other`)
        init(`${at}/r`)
        git(`${at}/r`, "submodule", "add", "-q", `${at}/other`, "sub")
      },
      workspace: "r/sub/pkg",
      readable: ["r/sub", "r/.git/modules/sub"]
    },
    {
      name: "is none if a file points to a repository that does not point back",
      make: (at) => (init(`${at}/other`), put(`${at}/r/.git`, `gitdir: ${at}/other/.git`)),
      workspace: "r/pkg",
      readable: []
    },
    {
      name: "is none if the .git is a link",
      make: (at) => (init(`${at}/other`), fs.mkdirSync(`${at}/r`), fs.symlinkSync("../other/.git", `${at}/r/.git`)),
      workspace: "r/pkg",
      readable: []
    },
    {
      name: "is none behind a file that git does not understand",
      make: (at) => (init(`${at}/r`), put(`${at}/r/in/.git`, "nonsense")),
      workspace: "r/in/pkg",
      readable: []
    },
    {
      name: "is none inside of a git directory",
      make: (at) => (init(`${at}/r`), git(`${at}/r`, "init", "-q", "--bare", "bare")),
      workspace: "r/bare/hooks",
      readable: []
    },
    {
      name: "is none if a home lies in it",
      make: (at) => init(`${at}/r`),
      workspace: "r/pkg",
      secret: "r/home",
      readable: []
    },
    { name: "is none if it is a home", make: (at) => init(`${at}/r`), workspace: "r/pkg", secret: "r", readable: [] },
    {
      name: "is found if a home lies beside it",
      make: (at) => init(`${at}/r`),
      workspace: "r/pkg",
      secret: "home",
      readable: ["r"]
    }
  ]

  it.scopedLive.each(cases)("$name", ({ make, readable, secret, workspace }) =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const at = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
      make(at)
      const inside = path.join(at, workspace)
      fs.mkdirSync(inside, { recursive: true })
      const places = secret === undefined ? [] : [path.join(at, secret)]
      const found = yield* Repository.above(fileSystem, yield* Path.Path, inside, places)
      assert.deepStrictEqual(
        found?.readable ?? [],
        readable.map((file) => path.join(at, file))
      )
      assert.strictEqual(found?.root, found?.readable[0])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  // Only root can give a file to somebody else.
  const names = process.getuid?.() === 0 ? [".", ".git"] : []
  for (const name of names)
    it.scopedLive(`is none if another user owns its ${name}`, () =>
      Effect.gen(function* () {
        const fileSystem = yield* FileSystem.FileSystem
        const root = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
        init(root)
        fs.mkdirSync(path.join(root, "pkg"))
        const find = Repository.above(fileSystem, yield* Path.Path, path.join(root, "pkg"), [])
        assert.strictEqual((yield* find)?.root, root)
        fs.chownSync(path.join(root, name), 65_534, 65_534)
        assert.isUndefined(yield* find)
      }).pipe(Effect.provide(NodeContext.layer))
    )
})
