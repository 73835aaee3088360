import * as NodeContext from "@effect/platform-node/NodeContext"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as HostSandbox from "../../src/sandbox/HostSandbox.js"
import * as Sandbox from "../../src/sandbox/Sandbox.js"
import * as Confined from "../kit/Confined.js"
import * as Wait from "../kit/Wait.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-confined-")))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

/** A workspace with a repository in it, and a sandbox for it. */
const world = (options: Partial<HostSandbox.Options> = {}) =>
  Effect.gen(function* () {
    const place = join(base, `${count++}`)
    const root = join(place, "workspace")
    mkdirSync(root, { recursive: true })
    execFileSync("git", ["init", "-q", root])
    const state = join(place, "state")
    return { place, root, state, sandbox: yield* Confined.make({ root, directory: state, ...options }) }
  })

describe("what holds here", () => {
  it.scopedLive("is told in one sentence where bubblewrap is not installed", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* world({ programs: ["/nowhere/bwrap"] })
      const state = yield* sandbox.state
      assert.deepStrictEqual(state, {
        _tag: "Unconfined",
        reason:
          "bubblewrap is not installed: apt-get install bubblewrap, dnf install bubblewrap, apk add bubblewrap or pacman -S bubblewrap."
      })
      assert.deepStrictEqual(sandbox.known(), state)
    })
  )

  it.scopedLive("is told where the kernel forbids namespaces, in one line and with what to do", () =>
    Effect.gen(function* () {
      const program = join(base, "forbidden")
      const words = "bwrap: No permissions to creating new namespace, likely because the kernel does not allow it."
      writeFileSync(program, `#!/bin/sh\necho ${JSON.stringify(words)} >&2\nexit 1\n`, { mode: 0o755 })
      const { sandbox } = yield* world({ programs: [program] })
      const state = yield* sandbox.state
      if (state._tag === "Confined") return assert.fail("it cannot be")
      assert.include(state.reason, "the kernel does not let programs make namespaces here (bwrap: No permissions")
      assert.include(state.reason, "sysctl kernel.unprivileged_userns_clone=1")
      assert.notInclude(state.reason, "\n")
    })
  )

  it.scopedLive("is told where bubblewrap is too old", () =>
    Effect.gen(function* () {
      const program = join(base, "old")
      writeFileSync(program, "#!/bin/sh\necho 'bwrap: Unknown option --size' >&2\nexit 1\n", { mode: 0o755 })
      const { sandbox } = yield* world({ programs: [program] })
      const state = yield* sandbox.state
      assert.include(state._tag === "Unconfined" ? state.reason : "", "too old")
    })
  )

  it.scopedLive("is none where it is turned off, and nothing is started then", () =>
    Effect.gen(function* () {
      const { root, sandbox, state } = yield* world({ mode: "off" })
      assert.deepStrictEqual(yield* sandbox.state, { _tag: "Unconfined", reason: Sandbox.turnedOff })
      assert.isTrue(Either.isLeft(yield* Effect.either(Confined.run(sandbox, root, "echo never"))))
      assert.isFalse(existsSync(state))
    })
  )

  it.scopedLive("is none for the root of the file system", () =>
    Effect.gen(function* () {
      const sandbox = yield* Confined.make({ root: "/", directory: join(base, "root"), programs: ["/bin/sh"] })
      const state = yield* sandbox.state
      assert.strictEqual(state._tag === "Unconfined" && state.reason, "/ cannot be given to a sandbox as a whole.")
    })
  )
})

describe.skipIf(!Confined.isWanted)("a confined command", () => {
  it.scopedLive("ends as it would outside", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      const table: ReadonlyArray<readonly [string, number | null, string | undefined, string]> = [
        ["echo out; echo err >&2", 0, undefined, "out\nerr\n"],
        ["exit 3", 3, undefined, ""],
        ["exit 137", 137, undefined, ""],
        ["exit 143", 143, undefined, ""],
        ["kill -9 $$", null, "SIGKILL", ""],
        ["kill -TERM $$", null, "SIGTERM", ""],
        ["kill -INT $$", null, "SIGINT", ""],
        ["kill -SEGV $$", null, "SIGSEGV", ""],
        ["cat; echo end", 0, undefined, "end\n"],
        ["no-such-program-anywhere", 127, undefined, "/bin/sh: 1: no-such-program-anywhere: not found\n"],
        ["sleep 300 & echo begun", 0, undefined, "begun\n"],
        ["kill -TERM 0", null, "SIGTERM", ""],
        ["exec 1>&- 2>&-; exit 4", 4, undefined, ""]
      ]
      for (const [line, exitCode, signal, output] of table) {
        const told = yield* Confined.run(sandbox, root, line)
        assert.deepStrictEqual({ line, ...told }, { line, exitCode, signal, output, notices: [], all: [] })
      }
    })
  )

  it.scopedLive("is asked to terminate, with all that it started, and has its time for it", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      // The innermost one says that all are ready.
      const line =
        "trap 'sleep 0.2; echo child >> told; exit' TERM; (trap 'sleep 0.3; echo grandchild >> told; exit' TERM; echo up; while :; do sleep 0.05; done) & while :; do sleep 0.05; done"
      yield* Confined.stopped(sandbox, root, line)
      assert.strictEqual(readFileSync(join(root, "told"), "utf8").split("\n").toSorted().join(" "), " child grandchild")
    })
  )

  it.scopedLive("is killed when it does not want to terminate, and nothing of it is left", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      const line =
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up; while :; do echo alive >> alive; sleep 0.05; done' & wait"
      assert.deepStrictEqual(yield* Confined.stopped(sandbox, root, line), { exitCode: null, signal: "SIGKILL" })
      const before = readFileSync(join(root, "alive"), "utf8").length
      yield* Effect.sleep("200 millis")
      assert.strictEqual(readFileSync(join(root, "alive"), "utf8").length, before)
    })
  )

  it.scopedLive("is not begun when it is stopped before it is there", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      yield* sandbox.state
      yield* Effect.scoped(
        Effect.gen(function* () {
          const running = yield* sandbox.start({
            command: ["/bin/sh", "-c", "touch begun"],
            directory: root,
            environment: {}
          })
          yield* running.stop ?? Effect.void
          yield* running.ended
        })
      )
      assert.isFalse(existsSync(join(root, "begun")))
    })
  )

  it.scopedLive("keeps what it puts into its home, and nothing that it puts into its temp directory", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      yield* Confined.run(
        sandbox,
        root,
        "mkdir ~/.cache && echo warm > ~/.cache/it; echo gone > /tmp/it; echo gone > $TMPDIR/that"
      )
      const told = yield* Confined.run(
        sandbox,
        root,
        "cat ~/.cache/it; cat /tmp/it /tmp/that /var/tmp/it 2>&1 | wc -l; ls /tmp/*/ 2>/dev/null | grep -c gone"
      )
      assert.strictEqual(told.output, "warm\n3\n0\n")
    })
  )

  it.scopedLive("gets of its environment what means something inside", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      const running = (environment: Record<string, string>) =>
        Effect.scoped(
          Effect.gen(function* () {
            const { ended, process } = yield* sandbox.start({ command: ["/usr/bin/env"], directory: root, environment })
            const output = yield* Stream.runFold(Stream.decodeText(process.stdout), "", (all, text) => all + text)
            yield* ended
            return output
          })
        )
      const output = yield* running({
        LANG: "C",
        HOME: "/root",
        TMPDIR: "/var/folders",
        CARGO_HOME: "/root/.cargo",
        GOFLAGS: "-mod=mod",
        HERE: join(root, "x"),
        CC: "/usr/bin/cc"
      })
      const lines = new Set(output.split("\n"))
      for (const line of [
        "LANG=C",
        "HOME=/home/assent",
        "TMPDIR=/tmp",
        "GOFLAGS=-mod=mod",
        `HERE=${join(root, "x")}`,
        "CC=/usr/bin/cc"
      ])
        assert.isTrue(lines.has(line), line)
      assert.notInclude(output, "CARGO_HOME")
    })
  )

  it.scopedLive("finds no file open that we were started with", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      const told = yield* Confined.run(sandbox, root, "cd /proc/self/fd && echo *; ulimit -c")
      assert.match(told.output, /^0 1 2(?: 3)?\n0\n$/)
    })
  )

  it.scopedLive("runs only where it sees", () =>
    Effect.gen(function* () {
      const { place, sandbox } = yield* world()
      assert.deepStrictEqual(
        yield* Effect.either(Confined.run(sandbox, place, "pwd")),
        Either.left(`${place} is not in the sandbox.`)
      )
    })
  )

  it.scopedLive("sees further directories when they are named, writable or not", () =>
    Effect.gen(function* () {
      const place = join(base, "more")
      for (const name of ["writable", "readable", "neither"]) {
        mkdirSync(join(place, name), { recursive: true })
        writeFileSync(join(place, name, "there"), "")
      }
      const { root, sandbox } = yield* world({
        writable: [join(place, "writable")],
        readable: [join(place, "readable")]
      })
      const told = yield* Confined.run(
        sandbox,
        root,
        `cd ${place}; ls *; touch writable/new && echo yes; touch readable/new || echo no`
      )
      assert.match(told.output, /^readable:\nthere\n\nwritable:\nthere\nyes\ntouch: .*Read-only file system\nno\n$/)
    })
  )

  it.scopedLive("does not see what is hidden in its workspace", () =>
    Effect.gen(function* () {
      const place = join(base, "hidden")
      mkdirSync(join(place, "channel"), { recursive: true })
      writeFileSync(join(place, "channel", "question"), "")
      // As in a home that is the workspace: what is hidden, a repository and the state directory are in what is hidden.
      execFileSync("git", ["init", "-q", join(place, "state")])
      writeFileSync(join(place, "state", "sessions.db"), "")
      writeFileSync(join(place, "key"), "secret")
      const { root, sandbox } = yield* world({
        root: place,
        directory: join(place, "state/sandbox"),
        hidden: ["state", "state/sessions.db", "channel", "key", "missing"].map((name) => join(place, name))
      })
      const told = yield* Confined.run(
        sandbox,
        place,
        "ls channel state; cat key; touch channel/answer; echo x > key; mv channel c; mv key k; echo ran; ls -A"
      )
      assert.notInclude(told.output, "secret")
      assert.notInclude(told.output, "question")
      assert.notInclude(told.output, "sessions.db")
      assert.include(told.output, "ran\n")
      assert.isDefined(root)
      assert.deepStrictEqual(readdirSync(join(place, "channel")), ["question"])
      assert.strictEqual(readFileSync(join(place, "key"), "utf8"), "secret")
    })
  )
})

describe.skipIf(!Confined.isWanted)("a workspace below the root of a repository", () => {
  const named = { ...process.env, GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "a" }
  const git = (directory: string, ...words: ReadonlyArray<string>) =>
    execFileSync("git", words, { cwd: directory, encoding: "utf8", env: { ...named, GIT_COMMITTER_EMAIL: "a@b" } })
  /** A repository with a committed and a changed file above its directory `pkg`. */
  const repository = Effect.gen(function* () {
    const { place } = yield* world()
    const top = join(place, "r")
    const root = join(top, "pkg")
    mkdirSync(root, { recursive: true })
    writeFileSync(join(top, "above"), "one\n")
    writeFileSync(join(root, "below"), "one\n")
    writeFileSync(join(place, "secret"), "secret")
    git(place, "init", "-q", top)
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "first")
    writeFileSync(join(top, "above"), "two\n")
    writeFileSync(join(root, "new"), "")
    return { place, top, root }
  })
  const questions = ["status --porcelain", "diff", "log --oneline --stat", "rev-parse --show-toplevel", "ls-files -o"]

  const layouts: ReadonlyArray<readonly [string, (top: string) => string]> = [
    ["a directory of the work tree", (top) => join(top, "pkg")],
    [
      "a directory further down",
      (top) => (mkdirSync(join(top, "pkg/src/deep"), { recursive: true }), join(top, "pkg/src/deep"))
    ],
    ["a directory of a worktree", (top) => (git(top, "worktree", "add", "-q", "../tree"), join(top, "../tree/pkg"))]
  ]
  it.scopedLive.each(layouts)("has the answers of git that git gives outside, in %s", ([, rootIn]) =>
    Effect.gen(function* () {
      const { place, top } = yield* repository
      const root = rootIn(top)
      const sandbox = yield* Confined.make({ root, directory: join(place, "other-state") })
      for (const question of questions) {
        const told = yield* Confined.run(sandbox, root, `git ${question}`)
        assert.deepStrictEqual(
          [question, told.exitCode, told.output, told.notices],
          [question, 0, git(root, ...question.split(" ")), []]
        )
      }
    })
  )

  it.scopedLive("has nothing above it that a command can change or run outside", () =>
    Effect.gen(function* () {
      const { place, root, top } = yield* repository
      const sandbox = yield* Confined.make({ root, directory: join(place, "other-state") })
      const attempts = [
        "echo x > ../above",
        "echo x > ../made",
        "rm -f ../above",
        "mv ../above ../moved",
        "rm -rf ../.git",
        "mv ../.git ../moved",
        "echo '[core]' >> ../.git/config",
        "git config core.fsmonitor /bin/false",
        "git config core.hooksPath pkg/hooks",
        "echo x > ../.git/hooks/post-checkout",
        "git commit -q -am second",
        "git update-ref refs/heads/other HEAD",
        "ln ../.git/config config",
        "mount -o remount,rw ..",
        "cd ..; mv pkg gone"
      ]
      const before = execFileSync("ls", ["-lAR", "--time-style=full-iso", top], { encoding: "utf8" })
      for (const line of attempts) {
        const told = yield* Confined.run(sandbox, root, `{ ${line}; } 2>/dev/null`)
        assert.notStrictEqual(told.exitCode, 0, line)
        assert.strictEqual(
          execFileSync("ls", ["-lAR", "--time-style=full-iso", top], { encoding: "utf8" }),
          before,
          line
        )
      }
      const { output } = yield* Confined.run(sandbox, root, "cat ../../secret 2>/dev/null; ls -A ../..")
      assert.strictEqual(output, "r\n")
    })
  )

  it.scopedLive("runs what its repository names confined, as at the root", () =>
    Effect.gen(function* () {
      const { place, root, top } = yield* repository
      const out = join(place, "out")
      writeFileSync(join(place, "monitor"), `#!/bin/sh\necho ran > ${out}\necho ran > ../above\n`, { mode: 0o755 })
      git(top, "config", "core.fsmonitor", join(place, "monitor"))
      const sandbox = yield* Confined.make({ root, directory: join(place, "other-state") })
      assert.strictEqual((yield* Confined.run(sandbox, root, "git status --porcelain")).exitCode, 0)
      assert.isFalse(existsSync(out))
      assert.strictEqual(readFileSync(join(top, "above"), "utf8"), "two\n")
    })
  )

  it.scopedLive("does not see what is hidden in the repository, nor a repository that holds a home", () =>
    Effect.gen(function* () {
      const { place, root, top } = yield* repository
      const options = { root, directory: join(place, "other-state") }
      const hiding = yield* Confined.make({ ...options, hidden: [join(top, "above")] })
      assert.strictEqual((yield* Confined.run(hiding, root, "cat ../above 2>/dev/null")).output, "")
      const provider = ConfigProvider.fromMap(
        new Map([
          ["HOME", top],
          ["PATH", process.env["PATH"] ?? ""]
        ])
      )
      const atHome = yield* Effect.withConfigProvider(Confined.make(options), provider)
      const { output } = yield* Effect.withConfigProvider(
        Confined.run(atHome, root, "ls -A ..; cat ../above"),
        provider
      )
      assert.match(output, /^pkg\n.*No such file/)
      for (const own of [join(top, "settings"), top]) {
        const beside = yield* Confined.make({ ...options, own: [own] })
        const state = yield* beside.state
        if (state._tag === "Unconfined") assert.include(state.reason, "belongs to the settings")
        else assert.strictEqual((yield* Confined.run(beside, root, "ls -A ..")).output, "pkg\n")
      }
    })
  )

  it.scopedLive("stays writable where the person gave all of it", () =>
    Effect.gen(function* () {
      const { place, root, top } = yield* repository
      for (const writable of [[top], [place]]) {
        const sandbox = yield* Confined.make({ root, writable, directory: join(base, `state-${count++}`) })
        const told = yield* Confined.run(sandbox, root, "echo x >> ../above; git status --porcelain | head -1")
        assert.deepStrictEqual([told.exitCode, told.output], [0, " M above\n"])
      }
    })
  )
})

describe.skipIf(!Confined.isWanted)("a directory that is empty", () => {
  it.scopedLive.each([
    'test -z "$(ls -A)"',
    "rmdir -p sub 2>/dev/null; find . -mindepth 1 | wc -l | grep -qx 0",
    "git clone -q ../source .",
    "python3 -c 'import os; assert os.listdir() == []'",
    "tar cf - . | tar tf - | grep -qx ./"
  ])("is so for a command, and when it has ended: %s", (line) =>
    Effect.gen(function* () {
      const { place } = yield* world()
      const [root, source] = [join(place, "empty"), join(place, "source")]
      mkdirSync(root)
      mkdirSync(source)
      writeFileSync(join(source, "file"), "text")
      execFileSync("sh", ["-c", "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm 1"], {
        cwd: source
      })
      const sandbox = yield* Confined.make({ root, directory: join(place, "other-state"), readable: [source] })
      const told = yield* Confined.run(sandbox, root, line)
      assert.deepStrictEqual([told.exitCode, told.output], [0, ""])
      assert.deepStrictEqual(readdirSync(root), line.includes("clone") ? ["file"] : [])
      // The clone's own directory acts later.
      assert.lengthOf(told.notices, line.includes("clone") ? 1 : 0)
    })
  )

  it.scopedLive("is so while a command runs, and a .assent that one makes is put away", () =>
    Effect.gen(function* () {
      const { place } = yield* world()
      const root = join(place, "empty")
      mkdirSync(root)
      const sandbox = yield* Confined.make({ root, directory: join(place, "other-state") })
      const running = yield* sandbox.start({
        command: ["/bin/sh", "-c", "echo up; exec sleep 300"],
        directory: root,
        environment: { PATH: "/usr/bin:/bin" }
      })
      yield* Stream.runHead(running.process.stdout)
      assert.deepStrictEqual(readdirSync(root), [])
      const told = yield* Confined.run(sandbox, root, "mkdir .assent; echo '{}' > .assent/permissions.json")
      assert.lengthOf(told.notices, 1)
      assert.include(told.notices[0], "[.assent appeared, which acts later; it was moved to ")
      assert.deepStrictEqual(readdirSync(root), [])
    })
  )
})

describe.skipIf(!Confined.isWanted)("what appears and would act later", () => {
  it.scopedLive("is put away when the command ends, and told; what was there stays", () =>
    Effect.gen(function* () {
      const { root, sandbox, state } = yield* world()
      execFileSync("git", ["init", "-q", join(root, "known")])
      yield* Confined.run(sandbox, root, "true")
      const told = yield* Confined.run(
        sandbox,
        root,
        "mkdir -p a/b/.git 'c d/.assent' && echo 'gitdir: /elsewhere' > a/.git; ln -s a/b/.git l; mkdir e && ln -s ../a/b/.git e/.git; touch .git/commondir; mkdir -p .git/modules/m"
      )
      assert.deepStrictEqual(
        told.all.map((line) => line.replace(/moved to .*set-aside/, "moved to")).toSorted(),
        [".git/commondir", ".git/modules/m", "a/.git", "a/b/.git", "c d/.assent", "e/.git"]
          .map((file) => {
            const to = told.all.find((line) => line.startsWith(`[${file} `))?.split("set-aside")[1]
            return `[${file} appeared, which acts later; it was moved to${to}`.replace("to/", "to/")
          })
          .map((line) => line.replace("moved to/", "moved to/"))
          .toSorted()
      )
      for (const file of ["a/.git", "a/b/.git", "c d/.assent", ".git/commondir", ".git/modules/m", "e/.git"])
        assert.isFalse(existsSync(join(root, file)), file)
      assert.isTrue(existsSync(join(root, "known/.git/HEAD")))
      assert.lengthOf(
        readdirSync(join(state, "set-aside")).filter((name) => !name.endsWith("-list.txt")),
        6
      )
      assert.isFalse(existsSync(join(root, ".assent/x")))
    })
  )

  it.scopedLive("is somebody else's when it was made between two commands, and protected from then on", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      yield* Confined.run(sandbox, root, "true")
      execFileSync("git", ["init", "-q", join(root, "theirs")])
      yield* Effect.sleep("150 millis")
      assert.deepStrictEqual((yield* Confined.run(sandbox, root, "true")).notices, [])
      const told = yield* Confined.run(
        sandbox,
        root,
        "echo x >> theirs/.git/config; mv theirs/.git x; mv theirs y; git -C theirs status"
      )
      assert.include(told.output, "On branch")
      // A move of a mount copies it, and the copy has the shape of a git directory.
      assert.match(told.notices.join(), /^\[x\/HEAD makes x a git directory; [^[]*\]$/)
      assert.notInclude(readFileSync(join(root, "theirs/.git/config"), "utf8"), "x\n")
    })
  )

  const homes = ["", "user", "user/deep"]
  it.scopedLive.each(homes)("is not made around a home, such as workspace/%s", (name) =>
    Effect.gen(function* () {
      const { place, root } = yield* world()
      mkdirSync(join(root, name), { recursive: true })
      symlinkSync(join(root, name), join(place, "linked"))
      for (const home of [join(root, name), join(place, "linked")]) {
        const variables = ConfigProvider.fromMap(new Map([["HOME", home]]))
        const made = yield* Effect.withConfigProvider(Confined.make({ root, directory: join(place, "s") }), variables)
        const state = yield* Effect.withConfigProvider(made.state, variables)
        const reason = state._tag === "Unconfined" ? state.reason : ""
        assert.include(reason, `${root} holds your home`)
        assert.include(reason, "--allow-home")
      }
    })
  )

  it.scopedLive("is not made in the directories of settings and state, or around them", () =>
    Effect.gen(function* () {
      const { place, root } = yield* world()
      mkdirSync(join(root, "own/deep"), { recursive: true })
      symlinkSync(join(root, "own"), join(place, "link"))
      const reasonOf = (at: string, allowHome: boolean) =>
        Effect.gen(function* () {
          const own = [join(place, "link")]
          const made = yield* Confined.make({ root: at, directory: join(place, "s"), own, allowHome })
          const state = yield* made.state
          return state._tag === "Unconfined" ? state.reason : undefined
        })
      for (const allowHome of [true, false]) {
        assert.match((yield* reasonOf(join(root, "own"), allowHome)) ?? "", /nothing there is given to commands/)
        assert.match((yield* reasonOf(join(root, "own/deep"), allowHome)) ?? "", /nothing there is given to commands/)
      }
      assert.match((yield* reasonOf(root, false)) ?? "", /holds the settings or the state of Assent\. .*--allow-home/)
      assert.isUndefined(yield* reasonOf(root, true))
    })
  )

  it.scopedLive.each(["", "user"])("hides keys of a home that a person gave, and keeps its start files: '%s'", (name) =>
    Effect.gen(function* () {
      const { place, root } = yield* world()
      const home = join(root, name)
      for (const directory of [".ssh", "dotfiles/aws", ".config/fish", "project", "tools"])
        mkdirSync(join(home, directory), { recursive: true })
      const kept = [".bashrc", "dotfiles/zshrc", ".config/fish/config.fish", "tools/program"]
      for (const file of [...kept, ".ssh/id", "dotfiles/aws/credentials", ".netrc"])
        writeFileSync(join(home, file), "s3cret\n")
      symlinkSync("dotfiles/aws", join(home, ".aws"))
      symlinkSync("dotfiles/zshrc", join(home, ".zshrc"))
      const path = `${process.env["PATH"] ?? ""}:${join(home, "tools")}`
      const variables = ConfigProvider.fromMap(
        new Map([
          ["HOME", home],
          ["PATH", path]
        ])
      )
      const sandbox = yield* Confined.make({ root, directory: join(place, "s"), allowHome: true })
      const run = (line: string) => Effect.withConfigProvider(Confined.run(sandbox, home, line), variables)
      const read = yield* run("cat .ssh/* .aws/* dotfiles/aws/* .netrc .ssh/../.ssh/id; echo made > project/a")
      assert.notInclude(read.output, "s3cret")
      assert.strictEqual(readFileSync(join(home, "project/a"), "utf8"), "made\n")
      const written = yield* run(
        [
          "for f in .bashrc .zshrc dotfiles/zshrc .config/fish/config.fish tools/program; do echo evil >> $f; rm -f $f; done",
          "mv .config x; mv tools y; mv dotfiles/zshrc z; rm -rf .ssh; ln -f .bashrc hard",
          "ln -sf project/a .zshrc",
          "echo evil > .profile; mkdir -p bin .gnupg .local/bin; echo evil > .local/bin/ls; ln -s project .kube"
        ].join("\n")
      )
      for (const file of [...kept, ".ssh/id"]) assert.strictEqual(readFileSync(join(home, file), "utf8"), "s3cret\n")
      const there = (file: string) => lstatSync(join(home, file), { throwIfNoEntry: false })
      for (const file of [".profile", "bin", ".gnupg", ".local/bin", ".kube"]) assert.isUndefined(there(file), file)
      assert.strictEqual(readlinkSync(join(home, ".aws")), "dotfiles/aws")
      assert.include(written.all.join("\n"), ".profile appeared, which acts later")
    })
  )

  it.scopedLive("makes no command follow a link that an earlier one left where the sandbox is laid out", () =>
    Effect.gen(function* () {
      const { place, root, sandbox } = yield* world()
      const outside = join(place, "outside")
      mkdirSync(outside)
      yield* Confined.run(
        sandbox,
        root,
        `rm -rf ~/.cache; ln -s /oldroot${outside} ~/.cache; mkdir -p .git/x; ln -s ${outside} deep`
      )
      symlinkSync(outside, join(root, ".assent-link"))
      yield* Confined.run(sandbox, root, "true")
      assert.deepStrictEqual(readdirSync(outside), [])
    })
  )

  it.scopedLive("is what running commands share: one that starts meanwhile gets no new view", () =>
    Effect.gen(function* () {
      const { root, sandbox } = yield* world()
      const outside = join(base, "outside-of-it")
      mkdirSync(join(outside, ".git"), { recursive: true })
      writeFileSync(join(outside, ".git", "secret"), "secret")
      const first = yield* Effect.fork(
        Confined.run(
          sandbox,
          root,
          `mkdir sub; ln -s ${outside}/.git sub/.git; touch up; while [ ! -e go ]; do sleep 0.02; done`
        )
      )
      yield* Wait.until(
        Effect.sync(() => existsSync(join(root, "up"))),
        Boolean
      )
      const second = yield* Confined.run(sandbox, root, "cat sub/.git/secret; echo x > sub/.git/y")
      assert.notInclude(second.output, "secret\n")
      writeFileSync(join(root, "go"), "")
      yield* Fiber.join(first)
      assert.deepStrictEqual(readdirSync(join(outside, ".git")), ["secret"])
    })
  )
})

describe("layerNone", () => {
  it.effect("confines nothing and says that it is off", () =>
    Effect.gen(function* () {
      const sandbox = yield* Sandbox.Sandbox
      assert.strictEqual(sandbox.mode, "off")
    }).pipe(Effect.provide(Sandbox.layerNone), Effect.provide(NodeContext.layer))
  )
})
