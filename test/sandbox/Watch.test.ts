import * as NodeContext from "@effect/platform-node/NodeContext"
import { FileSystem } from "@effect/platform/FileSystem"
import { Path } from "@effect/platform/Path"
import { CommandExecutor } from "@effect/platform/CommandExecutor"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Search from "../../src/sandbox/Search.js"
import * as Confined from "../kit/Confined.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-watch-")))
})
afterAll(() => {
  execFileSync("chmod", ["-R", "u+rwx", base])
  rmSync(base, { recursive: true, force: true })
})

const world = Effect.gen(function* () {
  const place = join(base, `${count++}`)
  const root = join(place, "workspace")
  mkdirSync(root, { recursive: true })
  execFileSync("git", ["init", "-q", root])
  const sandbox = yield* Confined.make({ root, directory: join(place, "state") })
  return { place, root, run: (line: string) => Confined.run(sandbox, root, line) }
})

const asideOf = (notices: ReadonlyArray<string>) =>
  notices.map((line) => /^\[(\S+) .*; it was moved to /.exec(line)?.[1] ?? line).toSorted()

describe.skipIf(!Confined.isWanted)("what nobody may list", () => {
  /** What the person has, what the commands do one after the other, what is put away at last, and which modes stay. */
  const table: ReadonlyArray<{
    readonly before?: ReadonlyArray<string>
    readonly lines: ReadonlyArray<string>
    readonly aside: ReadonlyArray<string>
    readonly modes?: Readonly<Record<string, number>>
  }> = [
    { lines: ["mkdir -p d/.git; chmod 111 d"], aside: ["d/.git"], modes: { d: 0o111 } },
    { lines: ["mkdir -p d/.git; chmod 000 d"], aside: ["d/.git"], modes: { d: 0 } },
    { lines: ["mkdir -p d/.assent; chmod 444 d"], aside: ["d/.assent"], modes: { d: 0o444 } },
    { lines: ["mkdir -p 'd e'; ln -s /x 'd e/.git'; chmod 311 'd e'"], aside: ["d e/.git"] },
    {
      lines: ["mkdir -p d/e/f/.git; chmod 111 d/e/f; chmod 000 d/e; chmod 300 d"],
      aside: ["d/e/f/.git"],
      modes: { d: 0o300 }
    },
    { lines: ["mkdir -p d/s; chmod 111 d", "mkdir d/s/.git"], aside: ["d/s/.git"], modes: { d: 0o111 } },
    { lines: ["mkdir -p d/s; chmod 000 d", "chmod 755 d; mkdir d/s/.git; chmod 000 d"], aside: ["d/s/.git"] },
    { lines: ["mkdir d; chmod 000 d", "true"], aside: [], modes: { d: 0 } },
    { before: ["theirs/.git"], lines: ["chmod 000 theirs", "true"], aside: [], modes: { theirs: 0 } },
    { lines: ["mkdir d .git/d; touch .git/commondir; chmod 000 .git"], aside: [".git/commondir"] },
    { before: [".git/modules/m"], lines: ["mkdir .git/modules/n; chmod 111 .git/modules"], aside: [".git/modules/n"] },
    {
      before: [".git/modules/m"],
      lines: ["chmod 000 .git/modules", "chmod 700 .git/modules; mkdir .git/modules/n"],
      aside: [".git/modules/n"]
    }
  ]
  for (const { aside, before = [], lines, modes = {} } of table) {
    it.scopedLive(`is looked at all the same: ${[...before, ...lines].join(" | ")}`, () =>
      Effect.gen(function* () {
        const { root, run } = yield* world
        for (const name of before) mkdirSync(join(root, name), { recursive: true })
        const told: Array<string> = []
        for (const line of lines) told.push(...(yield* run(line)).notices)
        assert.deepStrictEqual(
          told.map((line) => /^\[(.*) appeared, which acts later; it was moved to /.exec(line)?.[1] ?? line),
          aside
        )
        for (const [name, mode] of Object.entries(modes))
          assert.strictEqual(statSync(join(root, name)).mode & 0o777, mode, name)
        execFileSync("chmod", ["-R", "u+rwx", root])
        for (const name of aside) assert.isFalse(existsSync(join(root, name)), name)
        for (const name of before) assert.isTrue(existsSync(join(root, name)), name)
      })
    )
  }

  it.scopedLive("is looked at again and again with the same result", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      mkdirSync(join(root, "theirs/.git"), { recursive: true })
      const told: Array<string> = []
      for (let call = 0; call < 12; call++) told.push(...(yield* run(call === 0 ? "chmod 000 theirs" : "true")).notices)
      assert.deepStrictEqual(told, [])
      assert.isTrue(existsSync(join(root, ".git/HEAD")))
    })
  )

  const attempts: ReadonlyArray<{ readonly closed: string; readonly mode: number; readonly line: string }> = [
    { closed: "theirs", mode: 0, line: "chmod 755 theirs; echo x > theirs/.git/hooks/pre-commit" },
    { closed: "theirs", mode: 0, line: "chmod 755 theirs; echo x >> theirs/.git/config" },
    { closed: "theirs", mode: 0o311, line: "echo x > theirs/.git/hooks/pre-commit" },
    { closed: "theirs", mode: 0o111, line: "chmod 755 theirs; mv theirs/.git theirs/g; cp -r theirs/g theirs/.git" },
    { closed: "theirs", mode: 0, line: "mv theirs t; chmod 755 t; echo x > t/.git/hooks/pre-commit; mv t theirs" },
    { closed: "", mode: 0, line: "chmod 755 . theirs; echo x > theirs/.git/hooks/pre-commit" }
  ]
  for (const { closed, line, mode } of attempts) {
    it.scopedLive(`is guarded while it is closed (${mode.toString(8)} ${closed || "."}): ${line}`, () =>
      Effect.gen(function* () {
        const { place, root } = yield* world
        const other = join(place, "other")
        execFileSync("git", ["init", "-q", join(other, "theirs")])
        const config = readFileSync(join(other, "theirs/.git/config"), "utf8")
        chmodSync(join(other, closed), mode)
        const sandbox = yield* Confined.make({ root, writable: [other], directory: join(place, "state") })
        for (let call = 0; call < 2; call++) {
          yield* Confined.run(sandbox, root, `cd ${other}; ${line}`)
          // A directory that nobody can enter is nowhere to begin.
          const there = yield* Effect.either(Confined.run(sandbox, other, line))
          if (Either.isLeft(there))
            assert.match(there.left, /other cannot be used by the sandbox \(permission denied\)/)
        }
        execFileSync("chmod", ["u+rwx", other, join(other, "theirs")])
        assert.isFalse(existsSync(join(other, "theirs/.git/hooks/pre-commit")))
        assert.strictEqual(readFileSync(join(other, "theirs/.git/config"), "utf8"), config)
      })
    )
  }

  it.scopedLive("is guarded where a link from outside leads into it", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      mkdirSync(join(root, "linked"))
      execFileSync("git", ["init", "-q", "--bare", join(root, "vault/store")])
      symlinkSync("../vault/store", join(root, "linked/.git"))
      chmodSync(join(root, "vault"), 0)
      for (let call = 0; call < 2; call++) {
        const line = "chmod 755 vault; echo x > vault/store/hooks/pre-commit; mv vault v; chmod 755 v; echo up"
        assert.include((yield* run(line)).output, "up")
      }
      execFileSync("chmod", ["-R", "u+rwx", root])
      assert.includeMembers(readdirSync(root), ["linked", "vault"])
      assert.isFalse(existsSync(join(root, "vault/store/hooks/pre-commit")))
    })
  )

  it.scopedLive("is put away itself where it is too deep to be opened, and told", () =>
    Effect.gen(function* () {
      const { run } = yield* world
      const deep = Array.from({ length: 30 }, (_, level) => `d${level}`)
      const inner = deep.map((_, level) => deep.slice(0, deep.length - level).join("/"))
      const { notices } = yield* run(`mkdir -p ${inner[0]}/.git; chmod 000 ${inner.join(" ")}`)
      if (process.getuid?.() === 0) return assert.deepStrictEqual(asideOf(notices), [`${inner[0]}/.git`])
      assert.lengthOf(notices, 1)
      assert.match(notices[0] ?? "", /^\[d0\/\S+ cannot be listed; it was moved to /)
    })
  )
})

describe.skipIf(!Confined.isWanted)("what a person has", () => {
  it.scopedLive("is guarded from the first command on, also when it was made between two", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      yield* run("true")
      execFileSync("git", ["init", "-q", join(root, "theirs")])
      const { notices } = yield* run(
        "echo x > theirs/.git/hooks/pre-commit; echo x >> theirs/.git/config; touch theirs/.git/commondir"
      )
      assert.deepStrictEqual(asideOf(notices), ["theirs/.git/commondir"])
      assert.isFalse(existsSync(join(root, "theirs/.git/hooks/pre-commit")))
      assert.notInclude(readFileSync(join(root, "theirs/.git/config"), "utf8"), "x\n")
    })
  )

  it.scopedLive("is guarded where its hooks are a link, and the link stays", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      rmSync(join(root, ".git/hooks"), { recursive: true })
      mkdirSync(join(root, "tools/hooks"), { recursive: true })
      symlinkSync("../tools/hooks", join(root, ".git/hooks"))
      for (let call = 0; call < 2; call++) {
        const { notices } = yield* run("echo x > tools/hooks/pre-commit; mv tools/hooks x; mv tools y; ls tools")
        assert.deepStrictEqual(notices, [])
      }
      assert.strictEqual(readlinkSync(join(root, ".git/hooks")), "../tools/hooks")
      assert.isFalse(existsSync(join(root, "tools/hooks/pre-commit")))
      const { notices } = yield* run("rm .git/hooks; mkdir .git/hooks")
      assert.deepStrictEqual(asideOf(notices), [
        ".git/hooks",
        "[.git/hooks was a link to ../tools/hooks, which is gone; it was restored.]"
      ])
    })
  )

  it.scopedLive("is guarded where its .git is a link, and the link stays", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      mkdirSync(join(root, "linked"))
      execFileSync("git", ["init", "-q", "--bare", join(root, "store")])
      symlinkSync("../store", join(root, "linked/.git"))
      assert.deepStrictEqual((yield* run("echo x > store/hooks/pre-commit; mv store s")).notices, [])
      assert.isFalse(existsSync(join(root, "store/hooks/pre-commit")))
      assert.strictEqual(readlinkSync(join(root, "linked/.git")), "../store")
      // A link is what it says, whoever made it.
      assert.deepStrictEqual((yield* run("rm linked/.git; ln -s ../store linked/.git")).notices, [])
      const { notices } = yield* run("rm linked/.git; ln -s ../x linked/.git")
      assert.deepStrictEqual(asideOf(notices), [
        "[linked/.git was a link to ../store, which is gone; it was restored.]",
        "linked/.git"
      ])
    })
  )
})

describe("Search", () => {
  const platform = Effect.gen(function* () {
    return { fileSystem: yield* FileSystem, path: yield* Path, executor: yield* CommandExecutor }
  }).pipe(Effect.provide(NodeContext.layer))
  const place = Effect.sync(() => {
    const root = join(base, `search-${count++}`)
    mkdirSync(join(root, "a/.git"), { recursive: true })
    mkdirSync(join(root, "a/line\nend 0/.ASSENT"), { recursive: true })
    mkdirSync(join(root, "node_modules/.git.x/x.git"), { recursive: true })
    mkdirSync(join(root, "left/.git"), { recursive: true })
    return root
  })
  const program = (text: string) =>
    Effect.sync(() => {
      const file = join(base, `program-${count++}`)
      writeFileSync(file, `#!/bin/sh\n${text}\n`)
      chmodSync(file, 0o755)
      return file
    })
  const found = (programs?: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const root = yield* place
      const search = yield* Search.make(yield* platform, [root], join(root, "left"), programs)
      const both = [yield* search.find, yield* search.find]
      return both.map((result) => result.found.map(({ file }) => file.slice(root.length + 1)).toSorted())
    })
  const all = ["a/.git", "a/line\nend 0/.ASSENT"]

  it.scopedLive("finds every name that acts, in any case, and nothing else", () =>
    Effect.map(found(), (results) => assert.deepStrictEqual(results, [all, all]))
  )

  it.scopedLive("finds them where find knows no dates", () =>
    Effect.gen(function* () {
      const simple = yield* program('case "$*" in *-printf*|*-readable*) exit 1;; esac; exec /usr/bin/find "$@"')
      assert.deepStrictEqual(yield* found([simple]), [all, all])
    })
  )

  it.scopedLive("asks another one when somebody ended the one that it asked", () =>
    Effect.gen(function* () {
      const killer = yield* program(
        '[ "$2" != -maxdepth ] && [ ! -e "$0.done" ] && touch "$0.done" && kill -9 $PPID; exec /usr/bin/find "$@"'
      )
      assert.deepStrictEqual(yield* found([killer]), [all, all])
    })
  )

  it.scopedLive("says so where there is none, and where it does not work", () =>
    Effect.gen(function* () {
      const none = yield* Effect.either(found([join(base, "nowhere")]))
      assert.include(Either.isLeft(none) ? none.left : "", "find is not installed")
      const broken = yield* program("exit 3")
      assert.deepStrictEqual(yield* Effect.either(found([broken])), Either.left("the workspace could not be searched"))
    })
  )
})
