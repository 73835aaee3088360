import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Runs from "../kit/Runs.js"
import * as Unchanged from "../kit/Unchanged.js"
import * as Wait from "../kit/Wait.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-reading-")))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

const git = (directory: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", directory, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  })
const commit = (directory: string) => {
  writeFileSync(join(directory, "a.txt"), "one\n")
  git(directory, "add", "a.txt")
  git(directory, "commit", "-qm", "first")
}

const world = Effect.gen(function* () {
  const place = join(base, `${count++}`)
  const root = join(place, "workspace")
  mkdirSync(root, { recursive: true })
  const sandbox = yield* Confined.make({ root, hidden: [join(root, "secret")], directory: join(place, "state") })
  return {
    place,
    root,
    sandbox,
    reads: (line: string) => Confined.run(sandbox, root, line, { reads: [] }),
    runs: (line: string) => Confined.run(sandbox, root, line, {}),
    git: (line: string) => Confined.run(sandbox, root, line, { git: true })
  }
})

/** Every file of a directory with its content and times. */
const everything = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .toSorted()
    .map((name) => {
      const { ctimeMs, mode, mtimeMs, size } = statSync(join(directory, name))
      return `${name} ${size} ${mode} ${mtimeMs} ${ctimeMs}`
    })

/** Programs that git's settings name, and how a repository names each. */
const settings: ReadonlyArray<readonly [string, (root: string) => unknown]> = [
  ["diff.external", (root) => git(root, "config", "diff.external", "./evil.sh")],
  ["a textconv", (root) => (git(root, "config", "diff.e.textconv", "./evil.sh"), attributes(root, "diff=e"))],
  ["a diff driver", (root) => (git(root, "config", "diff.e.command", "./evil.sh"), attributes(root, "diff=e"))],
  ["a clean filter", (root) => (git(root, "config", "filter.e.clean", "./evil.sh"), attributes(root, "filter=e"))],
  ["a process filter", (root) => (git(root, "config", "filter.e.process", "./evil.sh"), attributes(root, "filter=e"))],
  ["core.pager", (root) => git(root, "config", "core.pager", "./evil.sh")],
  ["core.fsmonitor", (root) => git(root, "config", "core.fsmonitor", "./evil.sh")],
  ["the hook post-index-change", (root) => hook(root)],
  [
    "an included file",
    (root) => (
      writeFileSync(join(root, "inc"), "[diff]\n\texternal = ./evil.sh\n"),
      git(root, "config", "include.path", "../inc")
    )
  ]
]
const attributes = (root: string, text: string) => writeFileSync(join(root, ".gitattributes"), `*.txt ${text}\n`)
const hook = (root: string) => {
  mkdirSync(join(root, ".git/hooks"), { recursive: true })
  writeFileSync(join(root, ".git/hooks/post-index-change"), `#!/bin/sh\ntouch ${root}/PWNED\n`, { mode: 0o755 })
}

describe.skipIf(!Confined.isWanted)("a command that only reads", () => {
  it.scopedLive.each(settings)("changes nothing, whatever the repository makes git run: %s", ([, name]) =>
    Effect.gen(function* () {
      const { reads, root } = yield* world
      git(root, "init", "-q", "-b", "main")
      commit(root)
      writeFileSync(join(root, "a.txt"), "two\n")
      writeFileSync(join(root, "evil.sh"), `#!/bin/sh\ntouch ${root}/PWNED .git/PWNED /tmp/PWNED\ncat 2>/dev/null\n`)
      chmodSync(join(root, "evil.sh"), 0o755)
      name(root)
      const before = everything(root)
      for (const line of ["git status", "git diff", "git log -p", "git show", "git blame a.txt", "git grep -n o"]) {
        yield* reads(line)
        assert.deepStrictEqual(everything(root), before, line)
      }
    })
  )

  it.scopedLive(
    "changes nothing in hundreds of random lines",
    () =>
      Effect.gen(function* () {
        const place = join(base, `${count++}`)
        mkdirSync(place)
        const { changed, lines } = yield* Unchanged.run(place, { lines: Runs.of(8_000), seed: 20_261_129 })
        assert.deepStrictEqual(changed, [])
        assert.isAtLeast(lines, Runs.of(8_000))
      }),
    240_000
  )

  it.scopedLive("has a temp directory of its own, no network and no other place to write", () =>
    Effect.gen(function* () {
      const { reads, root } = yield* world
      writeFileSync(join(root, "a.txt"), "one\n")
      const { output } = yield* reads(
        [
          "touch /tmp/x && ls /tmp",
          "for place in . a.txt /etc/x /usr/x /home/x; do { echo x >> $place/x || echo x >> $place; } 2>/dev/null && echo wrote $place; done",
          "cat /proc/net/route | wc -l",
          "echo index $GIT_OPTIONAL_LOCKS",
          "ulimit -d"
        ].join("; ")
      )
      assert.strictEqual(output, "x\n1\nindex 0\n1048576\n")
      assert.deepStrictEqual(readdirSync(root), ["a.txt"])
    })
  )

  it.scopedLive("does not see what other commands do not see", () =>
    Effect.gen(function* () {
      const { reads, root } = yield* world
      mkdirSync(join(root, "secret"))
      writeFileSync(join(root, "secret/key"), "KEY")
      const { output } = yield* reads("ls secret; cat secret/key")
      assert.notInclude(output, "KEY")
      assert.notInclude(output, "key\n")
    })
  )

  it.scopedLive("runs beside one that writes, and waits for nothing", () =>
    Effect.gen(function* () {
      const { reads, root, runs } = yield* world
      const job = yield* Effect.fork(runs("touch up; while [ ! -e go ]; do sleep 0.02; done"))
      yield* Wait.until(
        Effect.sync(() => existsSync(join(root, "up"))),
        Boolean
      )
      assert.strictEqual((yield* reads("ls")).output, "up\n")
      writeFileSync(join(root, "go"), "")
      yield* Fiber.join(job)
    })
  )
})

describe.skipIf(!Confined.isWanted)("a git directory", () => {
  const links: ReadonlyArray<string> = [
    "logs/HEAD",
    "COMMIT_EDITMSG",
    "sequencer",
    "ORIG_HEAD",
    "index.lock",
    "x/y",
    "refs/heads/z"
  ]
  it.scopedLive("is read-only for a command that is not git", () =>
    Effect.gen(function* () {
      const { root, runs } = yield* world
      git(root, "init", "-q", "-b", "main")
      commit(root)
      const before = everything(join(root, ".git"))
      const lines = links.map(
        (name) => `mkdir -p .git/x; rm -rf .git/${name}; ln -sf /etc/passwd .git/${name}; echo evil > .git/${name}`
      )
      const { notices } = yield* runs(
        `${lines.join("; ")}; mv .git g; mkdir -p .git/evil; rm -rf .git; git commit --allow-empty -m x`
      )
      assert.deepStrictEqual(notices, [])
      assert.deepStrictEqual(everything(join(root, ".git")), before)
    })
  )

  it.scopedLive("is found and readable in each of its shapes, and git may write it", () =>
    Effect.gen(function* () {
      const { git: asGit, place, reads, root, runs } = yield* world
      const status = "git log --format=%s && git status --short"
      const shapes: Record<string, () => void> = {
        apart: () => git(root, "init", "-q", "-b", "main", "--separate-git-dir", join(place, "g2")),
        linked: () => {
          git(root, "init", "-q", "-b", "main")
          execFileSync("mv", [join(root, ".git"), join(place, "g3")])
          symlinkSync("../g3", join(root, ".git"))
        }
      }
      for (const [name, make] of Object.entries(shapes)) {
        make()
        commit(root)
        for (const run of [reads, runs, asGit]) assert.strictEqual((yield* run(status)).output, "first\n", name)
        const author = "-c user.name=A -c user.email=a@example.com"
        assert.strictEqual(
          (yield* asGit(`git ${author} commit -q --allow-empty -m second; git log --format=%s`)).output,
          "second\nfirst\n",
          name
        )
        rmSync(join(root, ".git"), { recursive: true })
      }
    })
  )

  it.scopedLive("of somebody else's work tree is not made visible by a file or a link", () =>
    Effect.gen(function* () {
      const { place, reads, root, runs } = yield* world
      const other = join(place, "other")
      mkdirSync(other)
      git(other, "init", "-q", "-b", "main")
      commit(other)
      git(place, "init", "-q", "--bare", "bare")
      for (const target of [join(other, ".git"), join(place, "bare")]) {
        writeFileSync(join(root, ".git"), `gitdir: ${target}\n`)
        for (const run of [reads, runs]) assert.include((yield* run("git log")).output, "not a git repository")
        rmSync(join(root, ".git"))
        symlinkSync(target, join(root, ".git"))
        for (const run of [reads, runs]) assert.include((yield* run("git log")).output, "not a git repository")
        rmSync(join(root, ".git"))
      }
    })
  )
})

describe.skipIf(!Confined.isWanted)("a workspace with many repositories", () => {
  const planted = (root: string, many: number) => {
    for (let index = 0; index < many; index++) {
      mkdirSync(join(root, `r${index}/.git/hooks`), { recursive: true })
      writeFileSync(join(root, `r${index}/.git/config`), "[core]\n\tbare = false\n")
    }
  }
  it.scopedLive(
    "runs commands, which write in the nearest repositories",
    () =>
      Effect.gen(function* () {
        const { reads, root, sandbox } = yield* world
        planted(root, 400)
        assert.strictEqual((yield* reads("ls | wc -l")).output, "400\n")
        const run = (directory: string, line: string) => Confined.run(sandbox, join(root, directory), line, {})
        yield* run("r399", "touch here ../top; for tree in ../r*; do touch $tree/there $tree/.git/x; done")
        assert.isTrue(existsSync(join(root, "r399/here")) && existsSync(join(root, "top")))
        const trees = Array.from({ length: 400 }, (_, index) => join(root, `r${index}`))
        assert.lengthOf(
          trees.filter((tree) => existsSync(join(tree, "there"))),
          300
        )
        assert.isFalse(trees.some((tree) => existsSync(join(tree, ".git/x"))))
        assert.strictEqual(readFileSync(join(root, "r7/.git/config"), "utf8"), "[core]\n\tbare = false\n")
      }),
    { timeout: 60_000 }
  )
  it.scopedLive(
    "says what to do when they are too many for one that writes",
    () =>
      Effect.gen(function* () {
        const { reads, root, runs } = yield* world
        planted(root, 1_501)
        assert.strictEqual((yield* reads("ls | wc -l")).output, "1501\n")
        const refused = yield* Effect.flip(runs("touch x"))
        assert.match(refused, /more than 1500 repositories.*Start Assent in one of them/)
      }),
    { timeout: 60_000 }
  )
})
