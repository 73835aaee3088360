import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Wait from "../kit/Wait.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-aside-")))
})
afterAll(() => {
  execFileSync("chmod", ["-R", "u+rwx", base])
  rmSync(base, { recursive: true, force: true })
})

/** Where the state lies: beside the workspace, and on another file system where there is one. */
const systems = Confined.states(tmpdir())

const world = (state: string) =>
  Effect.gen(function* () {
    const place = join(base, `${count++}`)
    const root = join(place, "workspace")
    const outside = join(place, "outside")
    mkdirSync(root, { recursive: true })
    mkdirSync(outside)
    for (let index = 0; index < 50; index++) writeFileSync(join(outside, `${index}`), "as it was")
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => realpathSync(mkdtempSync(join(state, "assent-state-")))),
      (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
    )
    const fileSystem = yield* Effect.provide(FileSystem.FileSystem, NodeContext.layer)
    /** What our own rights copied or removed as a whole, by a path in the workspace. */
    const whole: Array<string> = []
    const note = (file: string) => {
      if (file.startsWith("/proc/self/fd/") || file.startsWith(root)) whole.push(file)
    }
    const watched: FileSystem.FileSystem = {
      ...fileSystem,
      copy: (from, to, options) =>
        Effect.zipRight(
          Effect.sync(() => note(from)),
          fileSystem.copy(from, to, options)
        ),
      remove: (file, options) =>
        Effect.zipRight(
          Effect.sync(() => note(file)),
          fileSystem.remove(file, options)
        )
    }
    const sandbox = yield* Confined.make({ root, directory }).pipe(
      Effect.provideService(FileSystem.FileSystem, watched)
    )
    const isUntouched = () =>
      readdirSync(outside).length === 50 &&
      readdirSync(outside).every((name) => readFileSync(join(outside, name), "utf8") === "as it was")
    return { root, outside, directory, isUntouched, whole, run: (line: string) => Confined.run(sandbox, root, line) }
  })

const rounds = 4

/** The number of `renameat2`, which exchanges two paths at once. */
const renameat2 = process.arch === "arm64" ? 276 : 316

/**
 * A job that makes a `.git` with directories of the names outside. As soon as the first of their files is removed, it
 * exchanges the directories with links to there: who removes a file in one by its path removes one outside.
 */
const racer = `
my @names = (0 .. 31);
for my $round (1 .. 100) {
  my $at = "x$round";
  mkdir $at;
  mkdir "$at/new";
  mkdir "$at/links";
  for my $name (@names) {
    mkdir "$at/new/$name";
    for my $file (0 .. 49) { open(my $made, ">", "$at/new/$name/$file") }
    symlink "../../../outside", "$at/links/$name";
  }
  rename "$at/new", "$at/.git";
  open(my $up, ">", "up");
  while (-e "$at/.git/0/0") { exit if -e "stop" }
  for my $pass (0 .. 100) {
    for my $name (@names) { syscall(${renameat2}, -100, my $one = "$at/.git/$name", -100, my $two = "$at/links/$name", 2) }
  }
}
`

describe.skipIf(!Confined.isWanted).each(systems)("with the state $name, a file set aside", ({ state }) => {
  it.scopedLive(
    "leads out of the workspace by no directory that a job exchanges with a link",
    () =>
      Effect.gen(function* () {
        const { isUntouched, root, run } = yield* world(state)
        writeFileSync(join(root, "race.pl"), racer)
        const job = yield* Effect.fork(run("perl race.pl"))
        yield* Wait.until(
          Effect.sync(() => existsSync(join(root, "up"))),
          Boolean
        )
        for (let round = 0; round < rounds; round++) {
          const { notices } = yield* run("true")
          assert.isTrue(isUntouched(), `after ${round} rounds`)
          assert.isTrue(
            notices.every((notice) => notice.startsWith("[x")),
            notices.join("\n")
          )
        }
        writeFileSync(join(root, "stop"), "")
        yield* Fiber.join(job)
        assert.isTrue(isUntouched())
        const left = readdirSync(root).filter((name) => existsSync(join(root, name, ".git")))
        assert.deepStrictEqual(left, [])
      }),
    120_000
  )

  const shapes: ReadonlyArray<{ readonly name: string; readonly line: string; readonly file?: string }> = [
    { name: "a directory with links", line: "mkdir x/.git; ln -s ../../../outside x/.git/l; echo 1 > x/.git/f" },
    { name: "a link", line: "ln -s ../../outside x/.git" },
    { name: "a pipe", line: "mkfifo x/.git" },
    { name: "a tree that nobody may write", line: "mkdir -p x/.git/a/b; echo 1 > x/.git/a/b/f; chmod -R a-w x" },
    {
      name: "a tree that nobody may list",
      line: "mkdir -p x/.git/a/b; echo 1 > x/.git/a/b/f; chmod 0 x/.git/a/b x/.git/a"
    },
    { name: "a name that looks like an option", line: "mkdir -- -rf; mkdir -- -rf/.git", file: "-rf/.git" },
    { name: "a name of several lines", line: "mkdir 'a\nb'; mkdir 'a\nb/.git'", file: "a\nb/.git" }
  ]
  it.scopedLive.each(shapes)("arrives whole and is gone from its place: $name", ({ file = "x/.git", line }) =>
    Effect.gen(function* () {
      const { directory, isUntouched, root, run, whole } = yield* world(state)
      mkdirSync(join(root, "x"))
      const { notices } = yield* run(line)
      const mode = statSync(join(root, "x")).mode
      assert.isUndefined(lstatSync(join(root, file), { throwIfNoEntry: false }))
      assert.lengthOf(notices, 1)
      const to = /it was moved to (\S+)\.\]$/.exec(notices[0] ?? "")?.[1] ?? ""
      assert.isDefined(lstatSync(to, { throwIfNoEntry: false }), notices[0])
      if (line.includes("/a/b/f")) {
        execFileSync("chmod", ["-R", "u+rwx", to])
        assert.strictEqual(readFileSync(join(to, "a/b/f"), "utf8"), "1\n")
      }
      if (line.includes("ln -s ../../../")) assert.isTrue(lstatSync(join(to, "l")).isSymbolicLink())
      assert.strictEqual(mode, line.includes("a-w") ? 0o40555 : 0o40755)
      assert.lengthOf(readdirSync(join(directory, "set-aside")), 1)
      assert.deepStrictEqual(whole, [])
      assert.isTrue(isUntouched())
    })
  )

  it.scopedLive("is moved also below a name that is no text", () =>
    Effect.gen(function* () {
      const { directory, root, run } = yield* world(state)
      const { notices } = yield* run(
        `d=$(printf 'a\\377b\\\\'); mkdir "$d" "$d/.git"; echo 1 > "$d/.git/f"; mkdir é; mkdir é/.git`
      )
      assert.lengthOf(notices, 2)
      assert.include(notices.join(), "\\u{dcff}")
      const left = execFileSync("find", [root, "-name", ".git"], { encoding: "utf8" })
      assert.strictEqual(left, "")
      const moved = execFileSync("find", [join(directory, "set-aside"), "-name", "f"], { encoding: "utf8" })
      assert.strictEqual(moved.trim().split("\n").length, 1)
    })
  )

  it.scopedLive(
    "is one of thousands, which are moved together",
    () =>
      Effect.gen(function* () {
        const { directory, root, run } = yield* world(state)
        const { all } = yield* run("i=0; while [ $i -lt 2000 ]; do mkdir -p d$i/.git; i=$((i+1)); done")
        assert.lengthOf(all, 2_000)
        assert.strictEqual(execFileSync("find", [root, "-name", ".git"], { encoding: "utf8" }), "")
        assert.lengthOf(
          readdirSync(join(directory, "set-aside")).filter((name) => name.endsWith(".git")),
          2_000
        )
      }),
    60_000
  )
})
