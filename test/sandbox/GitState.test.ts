import * as NodeContext from "@effect/platform-node/NodeContext"
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import * as GitState from "../../src/sandbox/GitState.js"
import * as Search from "../../src/sandbox/Search.js"
import * as IndexFile from "../kit/IndexFile.js"
import * as Runs from "../kit/Runs.js"

const make = Effect.gen(function* () {
  const platform = {
    executor: yield* CommandExecutor.CommandExecutor,
    fileSystem: yield* FileSystem.FileSystem,
    path: yield* Path.Path
  }
  const root = yield* platform.fileSystem.realPath(yield* platform.fileSystem.makeTempDirectoryScoped())
  const ws = join(root, "ws")
  fs.mkdirSync(ws)
  const search = yield* Search.make(platform, [ws], "/nowhere")
  const environment = {
    PATH: process.env["PATH"],
    HOME: root,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_EDITOR: "true",
    GIT_SEQUENCE_EDITOR: "true"
  }
  const settings = ["user.name=a", "user.email=a@b", "protocol.file.allow=always", "init.defaultBranch=main"]
  /** Exit codes do not matter: a rebase that stops fails. */
  const git = (...words: ReadonlyArray<string>) =>
    spawnSync("git", [...settings.flatMap((one) => ["-c", one]), ...words], {
      cwd: ws,
      env: environment,
      encoding: "utf8"
    })
  const write = (file: string, text: string | Uint8Array, mode = 0o644) => {
    fs.mkdirSync(dirname(join(ws, file)), { recursive: true })
    fs.writeFileSync(join(ws, file), text, { mode })
  }
  const commit = (file: string, text: string) => {
    write(file, text)
    git("add", file)
    git("commit", "-qm", `${file} ${text}`)
  }
  git("init", "-q")
  commit("a.txt", "one\n")
  const look = GitState.look(platform, search, [join(ws, ".git")])
  return { root, ws, git, write, commit, look }
})
type Place = Effect.Effect.Success<typeof make>

/** `topic` and `main` change the same line. */
const diverged = (at: Place) => {
  at.git("checkout", "-q", "-b", "topic")
  at.commit("a.txt", "topic\n")
  at.commit("b.txt", "b\n")
  at.git("checkout", "-q", "main")
  at.commit("a.txt", "main\n")
}
const other = (at: Place, name = "other") => {
  at.git("init", "-q", `../${name}`)
  at.git("-C", `../${name}`, "commit", "-q", "--allow-empty", "-m", "first")
}
const submodule = (at: Place) => {
  other(at)
  at.git("submodule", "--quiet", "add", "../other", "lib/sub")
  at.git("commit", "-qm", "sub")
}

const stories: ReadonlyArray<readonly [string, (at: Place) => unknown, string?]> = [
  ["a commit", (at) => at.commit("c.txt", "c\n")],
  ["a merge with a conflict", (at) => (diverged(at), at.git("merge", "topic"))],
  ["a rebase that stops", (at) => (diverged(at), at.git("rebase", "main", "topic"))],
  [
    "a rebase -i that stops, with a strategy",
    (at) => (diverged(at), at.git("rebase", "-i", "-s", "recursive", "-X", "patience", "main", "topic"))
  ],
  ["a rebase by patches that stops", (at) => (diverged(at), at.git("rebase", "--apply", "main", "topic"))],
  [
    "a rebase --rebase-merges",
    (at) => (
      diverged(at),
      at.git("merge", "-Xours", "-m", "m", "topic"),
      at.git("rebase", "-i", "--rebase-merges", "--root"),
      at.git("rebase", "--edit-todo")
    )
  ],
  [
    "a rebase that stops at break",
    (at) => (diverged(at), at.git("-c", "sequence.editor=sed -i 1ibreak", "rebase", "-i", "HEAD~1"))
  ],
  [
    "a rebase with exec",
    (at) => (diverged(at), at.git("rebase", "-x", "false", "HEAD~1")),
    "git rebase -x false HEAD~1"
  ],
  [
    "a rebase with a strategy of the person's",
    (at) => (diverged(at), at.git("rebase", "-s", "mine", "main", "topic")),
    "git rebase -s mine main topic"
  ],
  [
    "a stash",
    (at) => (at.write("a.txt", "x\n"), at.git("stash", "-u"), at.write("a.txt", "y\n"), at.git("stash", "pop"))
  ],
  ["a cherry-pick of two that stops", (at) => (diverged(at), at.git("cherry-pick", "-x", "topic~1", "topic"))],
  [
    "a revert of two that stops",
    (at) => (diverged(at), at.git("revert", "--no-edit", "-X", "patience", "topic~1", "topic"))
  ],
  [
    "patches that do not apply",
    (at) => (
      diverged(at),
      at.git("format-patch", "-q", "-o", "../p", "main..topic"),
      at.git(
        "am",
        "-3",
        "--whitespace=fix",
        "--directory=it's",
        ...fs.readdirSync(join(at.root, "p")).map((name) => `../p/${name}`)
      )
    )
  ],
  [
    "a worktree",
    (at) => (
      at.git("worktree", "add", "-q", "wt"),
      at.git("worktree", "add", "-q", "wt2"),
      at.git("worktree", "move", "wt2", "wt3"),
      fs.rmSync(join(at.ws, "wt"), { recursive: true })
    )
  ],
  ["a submodule", submodule],
  [
    "a submodule that is updated and left",
    (at) => (submodule(at), at.git("submodule", "update", "--init"), at.git("submodule", "deinit", "-f", "lib/sub"))
  ],
  [
    "a submodule in a submodule",
    (at) => (
      other(at, "inner"),
      other(at),
      at.git("-C", "../other", "submodule", "add", "../inner", "in"),
      at.git("-C", "../other", "commit", "-qm", "in"),
      at.git("submodule", "add", "../other", "s"),
      at.git("submodule", "update", "--init", "--recursive")
    )
  ],
  [
    "a bisect",
    (at) => (
      diverged(at),
      at.git("bisect", "start", "HEAD", "HEAD~1"),
      at.git("bisect", "run", "true"),
      at.git("bisect", "log")
    )
  ],
  ["a gc", (at) => (diverged(at), at.git("gc", "-q"), at.git("pack-refs", "--all"))],
  ["a fetch", (at) => (other(at), at.git("remote", "add", "o", "../other"), at.git("fetch", "-q", "o"))],
  [
    "branches and tags of any name",
    (at) => (
      at.git("branch", "index"),
      at.git("branch", "modules/hooks/config"),
      at.git("tag", "rebase-merge"),
      at.git("checkout", "-q", "-b", "sequencer/todo")
    )
  ],
  [
    "files in the place of directories",
    (at) => {
      fs.rmSync(join(at.ws, ".git/hooks"), { recursive: true })
      for (const name of ["modules", "worktrees", "hooks", "sequencer"]) at.write(`.git/${name}`, "x")
    }
  ],
  ["rerere", (at) => (diverged(at), at.git("-c", "rerere.enabled=true", "merge", "topic"))],
  [
    "indexes of all kinds",
    (at) => (
      at.commit(".github/x", "x\n"),
      at.git("update-index", "--index-version", "4"),
      at.git("update-index", "--split-index"),
      at.commit("d.txt", "d\n"),
      at.git("update-index", "--untracked-cache")
    )
  ],
  [
    "a sparse index",
    (at) => (
      at.commit("d/e", "x\n"),
      at.commit("f/g", "y\n"),
      at.git("sparse-checkout", "set", "--cone", "--sparse-index", "f"),
      at.git("status")
    )
  ]
]

describe("git's own work", () => {
  it.scopedLive.each(stories.map(([name, tell, command]) => ({ name, tell, command })))(
    "leaves nothing that acts: $name",
    ({ command = "git", tell }) =>
      Effect.gen(function* () {
        const at = yield* make
        const before = yield* at.look
        assert.deepStrictEqual([...before], [])
        tell(at)
        assert.deepStrictEqual(GitState.changes(before, yield* at.look, command), [])
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is in the middle of what the stories are about", () =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      for (const [, tell] of stories) {
        const at = yield* make
        tell(at)
        for (const name of fs.readdirSync(join(at.ws, ".git"))) seen.add(name.replace(/\..*/, ""))
      }
      for (const name of [
        "rebase-merge",
        "rebase-apply",
        "sequencer",
        "worktrees",
        "modules",
        "MERGE_RR",
        "BISECT_LOG",
        "sharedindex"
      ])
        assert.isTrue(seen.has(name), name)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

// ---- what another program leaves

const exec = "pick 1234567 x\nexec touch /x\n"

interface Planted {
  readonly name: string
  readonly put: (at: Place) => unknown
  readonly file: string
  readonly place?: string
}
const link = (file: string, target = "/etc/passwd"): Planted => ({
  name: `a link ${file} to ${target}`,
  file,
  put: (at) => {
    fs.mkdirSync(dirname(join(at.ws, file)), { recursive: true })
    fs.rmSync(join(at.ws, file), { recursive: true, force: true })
    fs.symlinkSync(target, join(at.ws, file))
  }
})
const written = (file: string, content: string | Uint8Array, place = file): Planted => ({
  name: `${file}: ${JSON.stringify(typeof content === "string" ? content.slice(0, 40) : Buffer.from(content).toString("latin1").slice(74, 110))}`,
  file,
  place,
  put: (at) => at.write(file, content, 0o755)
})
const names = [
  ".git/hooks/x",
  ".GIT/config",
  "a/.git/config",
  "git~1/config",
  ".git /x",
  ".git./x",
  ".git::$INDEX_ALLOCATION/x",
  ".g\u200cit/config",
  "../x",
  "a/../b",
  "/etc/x",
  "a//b",
  ".",
  "a\\.git\\x",
  ""
]

let links = 0
const planted: ReadonlyArray<Planted> = [
  ...[
    "COMMIT_EDITMSG",
    "logs/HEAD",
    "logs/refs/heads/main",
    "HEAD",
    "sequencer",
    "rebase-merge",
    "refs/heads/x",
    "objects/ab",
    "objects/ab/cd",
    "objects/pack/p.pack",
    "worktrees",
    "modules/m",
    "x/y/objects/ab/z",
    "description",
    "index.lock"
  ].map((name) => link(`.git/${name}`)),
  link(".git/ORIG_HEAD", "/nowhere/at/all"),
  link(".git/FETCH_HEAD", "HEAD"),
  {
    name: "a directory that cannot be listed",
    file: ".git/x",
    put: (at) => fs.mkdirSync(join(at.ws, ".git/x"), { mode: 0 })
  },
  ...names.map((name) => written(".git/index", IndexFile.of(name))),
  ...names.slice(0, 9).map((name) => written(".git/index", IndexFile.of(name, { version: 4 }))),
  written(".git/index", IndexFile.of(".git", { mode: 0o160000 })),
  written(".git/index", IndexFile.of(".git/", { mode: 0o040000 })),
  written(".git/sharedindex.0123", IndexFile.of(".git/x")),
  written(".git/index", "DIRC"),
  written(".git/index", ""),
  written(".git/worktrees/w/index", IndexFile.of(".git/x")),
  written(".git/modules/a/b/index", IndexFile.of(".git/x")),
  written(".git/rebase-merge/git-rebase-todo", exec, ".git/rebase-merge"),
  written(".git/rebase-merge/git-rebase-todo", " \tx touch /x", ".git/rebase-merge"),
  written(".git/rebase-merge/git-rebase-todo", "x\ttouch /x\r\n", ".git/rebase-merge"),
  written(".git/rebase-merge/git-rebase-todo", "shell touch /x\n", ".git/rebase-merge"),
  written(".git/rebase-merge/strategy", "evil\n", ".git/rebase-merge"),
  written(".git/rebase-merge/author-script", "GIT_AUTHOR_NAME='a'\ntouch /x\n", ".git/rebase-merge"),
  written(".git/rebase-merge/author-script", "GIT_AUTHOR_NAME='a' touch /x\n", ".git/rebase-merge"),
  written(".git/rebase-apply/apply-opt", " '--build-fake-ancestor=/home/x'", ".git/rebase-apply"),
  written(".git/rebase-apply/author-script", "touch /x\n", ".git/rebase-apply"),
  written(".git/sequencer/todo", exec, ".git/sequencer"),
  written(".git/sequencer/opts", "[options]\n\tstrategy = evil\n", ".git/sequencer"),
  written(".git/sequencer/opts", "[include]\n\tpath = x\n", ".git/sequencer"),
  written(".git/worktrees/w/rebase-merge/git-rebase-todo", exec, ".git/worktrees/w/rebase-merge"),
  written(".git/modules/m/rebase-merge/git-rebase-todo", exec, ".git/modules/m/rebase-merge"),
  written(".git/MERGE_RR", "0123456789012345678901234567890123456789\t/home/ada/.ssh/id\0"),
  written(".git/MERGE_RR", "0123456789012345678901234567890123456789\t../../home/ada/.ssh/id\0"),
  written(".git/modules/m/config", "[core]\n\tfsmonitor = ./evil\n"),
  written(".git/modules/m/config", "[core]\n\tworktree = ../../../..\n"),
  written(".git/modules/m/config", "[core]\n\tworktree = ../../..\n"),
  written(".git/modules/m/hooks/post-checkout", "#!/bin/sh\n"),
  written(".git/modules/m/commondir", "../../../../other/.git\n"),
  written(".git/worktrees/w/config.worktree", "[diff]\n\texternal = x\n"),
  written(".git/worktrees/w/commondir", "../../../../other/.git\n"),
  written(".git/worktrees/w/gitdir", "/etc/.git\n"),
  written(".git/worktrees/w/gitdir", "/etc/passwd\n"),
  {
    name: "a worktree behind a link",
    file: ".git/worktrees/w/gitdir",
    put: (at) => {
      fs.mkdirSync(join(at.root, "notes"), { recursive: true })
      fs.symlinkSync("../notes", join(at.ws, `l${links++}`))
      at.write(".git/worktrees/w/gitdir", `${at.ws}/l${links - 1}/.git\n`)
    }
  },
  {
    name: "a worktree that belongs to another repository",
    file: ".git/worktrees/w/gitdir",
    put: (at) => (at.write("w/.git", "gitdir: /other/.git\n"), at.write(".git/worktrees/w/gitdir", `${at.ws}/w/.git\n`))
  },
  {
    name: "an index that is too large",
    file: ".git/index",
    put: (at) => (at.write(".git/index", "DIRC"), fs.truncateSync(join(at.ws, ".git/index"), 65_000_000))
  },
  written(".git/config", "[core]\n\tpager = ./evil\n"),
  written(".git/config.worktree", "[core]\n\tpager = ./evil\n"),
  written(".git/hooks/post-checkout", "#!/bin/sh\n"),
  written(".git/commondir", "../x\n"),
  written(".git/objects/info/alternates", "/x\n")
]

describe("what another program leaves in a git directory", () => {
  it.scopedLive.each(planted.filter(({ file }) => !file.includes("x/y/objects")))(
    "is shown, and what to set aside: $name",
    ({ file, place, put }) =>
      Effect.gen(function* () {
        const at = yield* make
        const before = yield* at.look
        put(at)
        const [act, ...others] = GitState.changes(before, yield* at.look, "git commit -m 'exec touch'")
        assert.deepStrictEqual([act?.file, act?.place], [join(at.ws, file), join(at.ws, place ?? file)])
        assert.deepStrictEqual(others, [])
        assert.deepStrictEqual(GitState.changes(yield* at.look, yield* at.look, ""), [])
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is shown beside any ordinary state", () =>
    Effect.gen(function* () {
      const draws = fc.sample(
        fc.record({
          story: fc.constantFrom(...stories),
          act: fc.constantFrom(...planted)
        }),
        Math.max(12, Runs.of(300))
      )
      for (const {
        act,
        story: [, tell]
      } of draws) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const at = yield* make
            tell(at)
            const before = yield* at.look
            // The story may have left a file where the act wants a directory.
            const above = act.file.split("/").map((_, end, names) => join(at.ws, ...names.slice(0, end)))
            if (above.some((place) => fs.lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === false)) return
            fs.rmSync(join(at.ws, act.file), { recursive: true, force: true })
            act.put(at)
            const found = new Set(GitState.changes(before, yield* at.look, "git status").map(({ file }) => file))
            assert.isTrue(found.has(join(at.ws, act.file)), `${act.name}: ${[...found].join(" ")}`)
          })
        )
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )

  const todos: ReadonlyArray<readonly [string, string, number]> = [
    ["git rebase -x 'touch /x' main", "exec touch /x", 0],
    ['git rebase --exec "touch /x" main', "exec touch /x", 0],
    ["git rebase --exec=touch\\ /x main", "x touch /x", 0],
    ["git rebase -ix 'touch /x'", "exec touch /x", 0],
    ["git rebase -x'touch /x'", "exec touch /x", 0],
    ['git rebase -x "echo \\$HOME"', "exec echo $HOME", 0],
    ["cd a && git rebase -x make -x 'make test' && git log", "exec make\nexec make test", 0],
    ["git rebase -x 'touch /x/y' main", "exec touch /x", 1],
    ['git rebase -x "touch $X" main', "exec touch /x", 1],
    ["git commit -m 'touch /x'", "exec touch /x", 1],
    ["git rebase -x make main", "exec make\nexec touch /x", 1]
  ]
  it.scopedLive.each(todos.map(([command, todo, count]) => ({ command, todo, count })))(
    "is not what the command asked git to write: $command: $todo",
    ({ command, count, todo }) =>
      Effect.gen(function* () {
        const at = yield* make
        at.write(".git/rebase-merge/git-rebase-todo", `${todo}\n`)
        assert.lengthOf(GitState.changes(new Map(), yield* at.look, command), count)
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("may be a hook that the repository has too", () =>
    Effect.gen(function* () {
      const at = yield* make
      const hook = ".git/modules/m/hooks/pre-commit"
      at.write(".git/hooks/pre-commit", "exit 0\n", 0o755)
      at.write(hook, "exit 0\n", 0o755)
      const known = yield* at.look
      assert.deepStrictEqual(
        [...known.values()].map(({ file }) => file),
        [join(at.ws, ".git/hooks/pre-commit")]
      )
      at.write(hook, "evil\n", 0o755)
      assert.deepStrictEqual(
        GitState.changes(known, yield* at.look, "").map(({ file }) => file),
        [join(at.ws, hook)]
      )
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("may be the person's own from before, which git goes on with", () =>
    Effect.gen(function* () {
      const at = yield* make
      diverged(at)
      at.git("rebase", "-x", "false", "-x", "true", "HEAD~1")
      const before = yield* at.look
      assert.isAbove(before.size, 0)
      at.git("rebase", "--skip")
      assert.deepStrictEqual(GitState.changes(before, yield* at.look, "git rebase --skip"), [])
      at.write(".git/rebase-merge/git-rebase-todo", "exec true\nexec evil\n")
      assert.deepStrictEqual(
        GitState.changes(before, yield* at.look, "").map(({ file, reason }) => `${basename(file)} ${reason}`),
        ["git-rebase-todo runs evil"]
      )
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
