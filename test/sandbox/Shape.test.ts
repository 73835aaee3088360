import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Wait from "../kit/Wait.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-shape-")))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

const world = Effect.gen(function* () {
  const place = join(base, `${count++}`)
  const root = join(place, "workspace")
  mkdirSync(join(root, "docs"), { recursive: true })
  const git = (...words: ReadonlyArray<string>) => execFileSync("git", words, { cwd: root, stdio: "ignore" })
  git("init", "-q", ".")
  writeFileSync(join(root, "docs/text"), "text")
  const sandbox = yield* Confined.make({ root, directory: join(place, "state") })
  /** Whether git takes it for a repository of its own. */
  const acts = (directory: string) => {
    const words = ["-C", join(root, directory), "rev-parse", "--absolute-git-dir"]
    const found = execFileSync("git", words, { encoding: "utf8", env: { PATH: process.env["PATH"], HOME: place } })
    return found.trim() !== join(root, ".git")
  }
  return { place, root, git, acts, run: (line: string) => Confined.run(sandbox, root, line) }
})

const pieces = "printf '[core]\n\tbare = true\n' > docs/config; mkdir -p docs/refs"

describe.skipIf(!Confined.isWanted)("a directory that becomes git's own by its shape", () => {
  const cases: ReadonlyArray<{ readonly lines: ReadonlyArray<string>; readonly at: string }> = [
    { lines: ["git init -q --bare docs"], at: "docs" },
    { lines: ["git clone -q --bare . deep/er/mirror"], at: "deep/er/mirror" },
    { lines: [pieces, "mkdir docs/objects; echo 'ref: refs/heads/x' > docs/HEAD"], at: "docs" },
    { lines: [`${pieces}; ln -s refs/heads/x docs/HEAD; ln -s ../.git/objects docs/objects`], at: "docs" },
    { lines: [`${pieces}; mkdir docs/objects; cp .git/HEAD docs/`, "mv docs other"], at: "docs" },
    { lines: ["mkdir g; cp .git/HEAD g/; echo ../.git > g/commondir"], at: "g" },
    { lines: ["mkdir -p g/h; git init -q --bare g/h; chmod 111 g"], at: "g/h" },
    { lines: ["git init -q --bare 'a\nb'"], at: "a\nb" }
  ]
  for (const { at, lines } of cases)
    it.scopedLive(`is none when the command has ended, and nothing else is moved: ${lines.join(" | ")}`, () =>
      Effect.gen(function* () {
        const { acts, root, run } = yield* world
        execFileSync("git", ["commit", "-q", "--allow-empty", "-m", "first"], { cwd: root, env: named })
        const told: Array<string> = []
        for (const line of lines) told.push(...(yield* run(line)).notices)
        assert.lengthOf(told, 1, told.join("\n"))
        assert.include(told[0], "HEAD makes ")
        assert.include(told[0], "it was moved to ")
        execFileSync("chmod", ["-R", "u+rwx", root])
        const now = existsSync(join(root, at)) ? at : "other"
        assert.isFalse(acts(now))
        assert.isFalse(existsSync(join(root, now, "HEAD")))
        if (now === "docs") assert.isTrue(existsSync(join(root, "docs/text")))
        assert.deepStrictEqual((yield* run("true")).notices, [])
      })
    )

  it.scopedLive("acts neither at the root of the workspace", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      const { notices } = yield* run("mkdir objects refs; cp .git/HEAD .; echo '[core]' > config")
      assert.match(notices.join(), /^\[HEAD makes \. a git directory/)
      assert.deepStrictEqual(readdirSync(root).toSorted(), [".git", "config", "docs", "objects", "refs"])
    })
  )

  it.scopedLive("is left alone below the private home, in the temp directory, and where a part is missing", () =>
    Effect.gen(function* () {
      const { run } = yield* world
      const made = yield* run(
        "git init -q --bare ~/x; git init -q --bare /tmp/x; git init -q --bare gone; rm -r gone; mkdir -p docs/refs; touch docs/HEAD"
      )
      assert.deepStrictEqual([made.exitCode, made.output, made.notices], [0, "", []])
    })
  )

  it.scopedLive("is guarded like a .git where the person has one", () =>
    Effect.gen(function* () {
      const { git, root, run } = yield* world
      git("init", "-q", "--bare", "remote")
      execFileSync("git", ["commit", "-q", "--allow-empty", "-m", "first"], { cwd: root, env: named })
      const config = readFileSync(join(root, "remote/config"), "utf8")
      const { notices, output } = yield* run(
        "exec 2>/dev/null; git push -q remote HEAD:refs/heads/pushed; git -C remote rev-parse --verify -q pushed; " +
          "echo x >> remote/config; echo x > remote/hooks/update; echo x > remote/info/attributes; mv remote r; " +
          "echo .. > remote/commondir; ln -s x remote/config.worktree"
      )
      assert.match(output, /^[0-9a-f]{40}\n$/)
      assert.strictEqual(readFileSync(join(root, "remote/config"), "utf8"), config)
      assert.isFalse(existsSync(join(root, "remote/hooks/update")))
      assert.isFalse(existsSync(join(root, "remote/info/attributes")))
      assert.isTrue(existsSync(join(root, "remote/HEAD")))
      assert.deepStrictEqual(notices.map((notice) => notice.split(" ")[0]).toSorted(), [
        "[remote/commondir",
        "[remote/config.worktree"
      ])
    })
  )

  it.scopedLive("is the directory of any other system, of which nothing changes", () =>
    Effect.gen(function* () {
      const { root, run } = yield* world
      const names = [".hg", ".jj", ".svn", ".bzr", "_darcs"]
      for (const name of names) {
        mkdirSync(join(root, "sub", name), { recursive: true })
        writeFileSync(join(root, "sub", name, "config"), "[ui]\n")
      }
      const { notices } = yield* run(
        `exec 2>/dev/null; mkdir new; for name in ${names.join(" ")}; do mkdir new/$name; echo x > sub/$name/state; ` +
          "echo x >> sub/$name/config; mv sub/$name sub/moved; done"
      )
      assert.deepStrictEqual(
        notices.map((notice) => notice.split(" ")[0]).toSorted(),
        names.map((name) => `[new/${name}`).toSorted()
      )
      for (const name of names) {
        assert.deepStrictEqual(readdirSync(join(root, "sub", name)), ["config"])
        assert.strictEqual(readFileSync(join(root, "sub", name, "config"), "utf8"), "[ui]\n")
      }
    })
  )
})

describe.skipIf(!Confined.isWanted)("what a command left that ended with Assent", () => {
  it.scopedLive("is set aside and said at the next start, once", () =>
    Effect.gen(function* () {
      const { place, root, run } = yield* world
      mkdirSync(join(root, "theirs/.git"), { recursive: true })
      symlinkSync("../docs", join(root, "docs/.assent"))
      const state = join(place, "state")
      const job = yield* Effect.fork(run("touch up; while [ ! -e go ]; do sleep 0.02; done"))
      yield* Wait.until(
        Effect.sync(() => existsSync(join(root, "up"))),
        Boolean
      )
      const [note = ""] = readdirSync(state).filter((name) => name.startsWith("unfinished-"))
      const text = readFileSync(join(state, note), "utf8")
      writeFileSync(join(root, "go"), "")
      yield* Fiber.join(job)
      assert.deepStrictEqual(
        readdirSync(state).filter((name) => name.startsWith("unfinished-")),
        []
      )
      // As a process leaves it that is no more; the first process of the system began at another time.
      writeFileSync(join(state, "unfinished-1-1-7"), text)
      writeFileSync(join(state, "unfinished-1-1-8"), text.slice(0, 9))
      mkdirSync(join(root, "new/.git"), { recursive: true })
      execFileSync("git", ["init", "-q", "--bare", "bare"], { cwd: root })
      writeFileSync(join(root, ".git/commondir"), "../docs")
      unlinkSync(join(root, "docs/.assent"))
      writeFileSync(join(root, "theirs/.git/description"), "the person's")
      const next = yield* Confined.make({ root, directory: state })
      const { notices } = yield* Confined.run(next, root, "true")
      assert.deepStrictEqual(
        notices.map((notice) => /^\[(\S+) .*(moved|restored)/.exec(notice)?.slice(1).join(" ")).toSorted(),
        [".git/commondir moved", "bare/HEAD moved", "docs/.assent restored", "new/.git moved"]
      )
      assert.isTrue(existsSync(join(root, "theirs/.git/description")))
      assert.deepStrictEqual((yield* Confined.run(next, root, "true")).notices, [])
      const last = yield* Confined.make({ root, directory: state })
      assert.deepStrictEqual((yield* Confined.run(last, root, "true")).notices, [])
    })
  )

  it.scopedLive("is nothing while the other Assent still runs", () =>
    Effect.gen(function* () {
      const { place, root, run } = yield* world
      const job = yield* Effect.fork(run("touch up; while [ ! -e go ]; do sleep 0.02; done"))
      yield* Wait.until(
        Effect.sync(() => existsSync(join(root, "up"))),
        Boolean
      )
      const next = yield* Confined.make({ root, directory: join(place, "state") })
      mkdirSync(join(root, "new/.git"), { recursive: true })
      assert.deepStrictEqual((yield* Confined.run(next, root, "true")).notices, [])
      writeFileSync(join(root, "go"), "")
      assert.match((yield* Fiber.join(job)).notices.join(), /^\[new\/\.git appeared/)
    })
  )
})

describe.skipIf(!Confined.isWanted)("what is said of many files", () => {
  it.scopedLive("is short, and names the list of all", () =>
    Effect.gen(function* () {
      const { run } = yield* world
      const { all, notices } = yield* run(
        "for i in $(seq 500); do mkdir -p docs/$i; : > docs/$i/.git; done; d=docs/$(printf '%0200d' 0); mkdir -p $d/$(basename $d)/.git"
      )
      assert.lengthOf(notices, 6)
      assert.match(notices[5] ?? "", /^\[and 496 more: \S+ lists all of them\.\]$/)
      assert.lengthOf(all, 501)
      assert.isBelow(notices.join("\n").length, 4_000)
    })
  )

  it.scopedLive("is one line, whatever the files are called", () =>
    Effect.gen(function* () {
      const { run } = yield* world
      const { notices } = yield* run("d=$(printf 'a\\n]\\033[2J\\342\\200\\256b'); mkdir -p \"$d/.git\"")
      assert.match(notices.join(), /^\[a\\u\{a\}\]\\u\{1b\}\[2J\\u\{202e\}b\/\.git appeared/)
    })
  )
})

const named = {
  PATH: process.env["PATH"],
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@b.example",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@b.example"
}
