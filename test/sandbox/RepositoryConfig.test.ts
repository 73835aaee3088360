import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import * as CommandEnvironment from "../../src/builtin/CommandEnvironment.js"
import * as RepositoryConfig from "../../src/sandbox/RepositoryConfig.js"
import * as Runs from "../kit/Runs.js"

interface Place {
  readonly root: string
  readonly ws: string
  /** As Assent starts git, and with no settings of the machine's. */
  readonly environment: CommandEnvironment.Environment
  readonly git: (...words: ReadonlyArray<string>) => string
  readonly write: (file: string, text: string, mode?: number) => void
  readonly judge: (directory?: string, options?: RepositoryConfig.Options) => Effect.Effect<string | undefined>
}

const repository = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fileSystem.realPath(yield* fileSystem.makeTempDirectoryScoped())
  const ws = join(root, "ws")
  const environment = yield* CommandEnvironment.make({ added: { HOME: root, GIT_CONFIG_NOSYSTEM: "1" } })
  const write = (file: string, text: string, mode = 0o644) => {
    fs.mkdirSync(dirname(join(root, file)), { recursive: true })
    fs.writeFileSync(join(root, file), text, { mode })
  }
  const git = (...words: ReadonlyArray<string>) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", ...words], {
      cwd: ws,
      env: environment,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"]
    })
  write("ws/a.txt", "one\n")
  git("init", "-q", "-b", "main")
  git("add", "a.txt")
  git("commit", "-qm", "x")
  const judge = (directory = "ws", options: RepositoryConfig.Options = { roots: [ws] }) =>
    RepositoryConfig.judge(fileSystem, path, join(root, directory), options)
  return { root, ws, environment, git, write, judge } satisfies Place
})

/** Another repository of the person's, beside the workspace. */
const other = (at: Place) => {
  at.git("init", "-q", "../other")
  at.git("-C", "../other", "commit", "-q", "--allow-empty", "-m", "secret")
}
const submodule = (at: Place) => {
  other(at)
  at.git("submodule", "--quiet", "add", `${at.root}/other`, "lib/sub")
  at.git("commit", "-qm", "sub")
}
const pipe = (file: string) => void execFileSync("mkfifo", [file])
const hook = "#!/bin/sh\n"

const harmful: ReadonlyArray<readonly [string, (at: Place) => unknown, RegExp, string?]> = [
  ["a diff program", (at) => at.git("config", "diff.external", "./evil"), /^\.git\/config sets diff\.external,/],
  [
    "a diff program, from a directory below",
    (at) => (at.write("ws/d/b", ""), at.git("config", "diff.external", "x")),
    /diff/,
    "ws/d"
  ],
  ["a textconv", (at) => at.git("config", "diff.e.textconv", "x"), /diff\.e\.textconv/],
  ["a filter", (at) => at.git("config", "filter.e.clean", "x"), /filter\.e\.clean/],
  ["an included file", (at) => at.git("config", "include.path", "../inc"), /include\.path/],
  [
    "settings of a worktree",
    (at) => (
      at.git("config", "extensions.worktreeConfig", "true"),
      at.git("config", "--worktree", "diff.external", "x")
    ),
    /config\.worktree sets diff/
  ],
  ["another work tree", (at) => at.git("config", "core.worktree", at.root), /core\.worktree/],
  ["another work tree, relative", (at) => at.git("config", "core.worktree", "../.."), /core\.worktree/],
  ["revisions to ignore", (at) => at.git("config", "blame.ignoreRevsFile", "x"), /blame\.ignorerevsfile/],
  ["a lazy fetch", (at) => at.git("config", "remote.o.promisor", "true"), /promisor/],
  ["alternates", (at) => at.write("ws/.git/objects/info/alternates", "/x\n"), /alternates/],
  ["the hook post-index-change", (at) => at.write("ws/.git/hooks/post-index-change", hook, 0o755), /post-index-change/],
  ["a link to it", (at) => fs.symlinkSync("../../x", join(at.ws, ".git/hooks/post-index-change")), /post-index-change/],
  [
    "it, in a directory of hooks",
    (at) => (at.git("config", "core.hooksPath", ".husky"), at.write("ws/.husky/post-index-change", hook, 0o755)),
    /post-index-change/
  ],
  ["hooks in the home", (at) => at.git("config", "core.hooksPath", "~/hooks"), /core\.hookspath/],
  [
    "a .git that is a link",
    (at) => (fs.renameSync(join(at.ws, ".git"), join(at.root, "g")), fs.symlinkSync("../g", join(at.ws, ".git"))),
    /\.git is a link/
  ],
  [
    "a .git that is a pipe",
    (at) => (fs.rmSync(join(at.ws, ".git"), { recursive: true }), pipe(join(at.ws, ".git"))),
    /\.git is no regular file/
  ],
  [
    "a config that is a link",
    (at) => (
      fs.renameSync(join(at.ws, ".git/config"), join(at.ws, "c")),
      fs.symlinkSync("../c", join(at.ws, ".git/config"))
    ),
    /config is a link/
  ],
  [
    "a config that is a pipe",
    (at) => (fs.rmSync(join(at.ws, ".git/config")), pipe(join(at.ws, ".git/config"))),
    /config is no regular file/
  ],
  ["a config that is huge", (at) => fs.truncateSync(join(at.ws, ".git/config"), 1_900_000_000), /larger/],
  ["a config that is not certain", (at) => fs.appendFileSync(join(at.ws, ".git/config"), "\0"), /certainty/],
  [
    "objects elsewhere",
    (at) => (
      fs.renameSync(join(at.ws, ".git/objects"), join(at.root, "o")),
      fs.symlinkSync("../../o", join(at.ws, ".git/objects"))
    ),
    /objects is/
  ],
  [
    "a link that check-ignore shows",
    (at) => (
      fs.rmSync(join(at.ws, ".git/info/exclude")),
      fs.symlinkSync("/etc/passwd", join(at.ws, ".git/info/exclude"))
    ),
    /exclude is a link/
  ],
  [
    "a HEAD that git may refuse",
    (at) => (at.git("init", "-q", "sub"), at.write("ws/sub/.git/HEAD", "x\n")),
    /HEAD/,
    "ws/sub"
  ],
  [
    "another repository",
    (at) => (other(at), fs.mkdirSync(join(at.ws, "d")), at.write("ws/d/.git", "gitdir: ../../other/.git\n")),
    /outside of the workspace/,
    "ws/d"
  ],
  [
    "a worktree of another repository",
    (at) => (
      other(at),
      at.git("-C", "../other", "worktree", "add", "-q", "../wt"),
      fs.mkdirSync(join(at.ws, "d")),
      at.write("ws/d/.git", fs.readFileSync(join(at.root, "wt/.git"), "utf8"))
    ),
    /another repository/,
    "ws/d"
  ],
  [
    "a commondir of another repository",
    (at) => (other(at), at.write("ws/.git/commondir", "../../other/.git\n")),
    /missing|another repository|cannot be read/
  ],
  [
    "a submodule with a diff program",
    (at) => (submodule(at), at.git("-C", "lib/sub", "config", "diff.external", "x")),
    /modules\/lib\/sub\/config sets diff/
  ],
  [
    "a nested repository in the index",
    (at) => (
      at.git("init", "-q", "in"),
      at.git("-C", "in", "commit", "-q", "--allow-empty", "-m", "x"),
      at.git("add", "in"),
      at.git("-C", "in", "config", "core.fsmonitor", "x"),
      at.git("-C", "in", "config", "filter.x.clean", "x")
    ),
    /in\/\.git\/config sets filter/
  ],
  [
    "a bare repository",
    (at) => (at.git("init", "-q", "--bare", "bare"), at.git("config", "-f", "bare/config", "diff.external", "x")),
    /config sets diff/,
    "ws/bare/refs"
  ],
  [
    "a submodule that is a link",
    (at) => {
      submodule(at)
      fs.rmSync(join(at.ws, "lib/sub"), { recursive: true })
      fs.symlinkSync("../../other", join(at.ws, "lib/sub"))
    },
    /lib\/sub is a link/
  ],
  ["an index that is not certain", (at) => at.write("ws/.git/index", "DIRC"), /index cannot be read/]
]

const harmless: ReadonlyArray<readonly [string, (at: Place) => unknown, string?]> = [
  ["a new repository", () => undefined],
  ["a directory below it", (at) => at.write("ws/a/b/c", ""), "ws/a/b"],
  ["no repository", (at) => at.write("none/x", ""), "none"],
  ["a clone", (at) => at.git("clone", "-q", ".", "../clone"), "clone"],
  ["attributes that name a driver", (at) => at.write("ws/.gitattributes", "*.txt diff=e filter=e\n")],
  [
    "hooks of husky",
    (at) => (at.git("config", "core.hooksPath", ".husky/_"), at.write("ws/.husky/_/pre-commit", hook, 0o755))
  ],
  ["hooks that reading does not run", (at) => at.write("ws/.git/hooks/pre-commit", hook, 0o755)],
  ["a hook that is not executable", (at) => at.write("ws/.git/hooks/post-index-change", hook)],
  ["a worktree", (at) => at.git("worktree", "add", "-q", "../wt"), "wt"],
  ["submodules", submodule],
  ["in a submodule", submodule, "ws/lib/sub"],
  [
    "a submodule that is not checked out",
    (at) => (submodule(at), at.git("submodule", "--quiet", "deinit", "-f", "lib/sub"))
  ],
  ["a git directory of another name", (at) => at.git("init", "-q", "--separate-git-dir", "real", "sep"), "ws/sep"],
  ["a .git without a repository", (at) => fs.mkdirSync(join(at.ws, "d/.git"), { recursive: true }), "ws/d"],
  ["the work tree that it has anyway", (at) => at.git("config", "core.worktree", at.ws)],
  ["an index of version 4", (at) => at.git("update-index", "--index-version", "4")],
  ["a split index", (at) => at.git("update-index", "--split-index")],
  [
    "objects named by SHA-256",
    (at) => (
      at.git("init", "-q", "--object-format=sha256", "../s"),
      at.write("s/f", ""),
      at.git("-C", "../s", "add", "f")
    ),
    "s"
  ]
]

describe("reading git in a repository", () => {
  it.scopedLive.each(harmful.map(([name, make, reason, directory]) => ({ name, make, reason, directory })))(
    "is not harmless: $name",
    ({ directory, make, reason }) =>
      Effect.gen(function* () {
        const at = yield* repository
        assert.isUndefined(yield* at.judge())
        make(at)
        assert.match((yield* at.judge(directory)) ?? "", reason)
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive.each(harmless.map(([name, make, directory]) => ({ name, make, directory })))(
    "is harmless: $name",
    ({ directory, make }) =>
      Effect.gen(function* () {
        const at = yield* repository
        make(at)
        assert.isUndefined(yield* at.judge(directory))
      }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is not harmless if the repository belongs to another user", () =>
    Effect.gen(function* () {
      const at = yield* repository
      const { uid } = fs.statSync(at.ws)
      assert.isUndefined(yield* at.judge("ws", { uid }))
      assert.match((yield* at.judge("ws", { uid: uid + 1 })) ?? "", /belongs to another user/)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("what is called harmless", () => {
  /** Each may name a program, and most are read by a command below. */
  const settings =
    `core.fsmonitor core.pager pager.log pager.diff diff.external diff.e.command diff.e.textconv filter.e.clean
    filter.e.process core.hooksPath gpg.program gpg.ssh.program include.path alias.status core.editor core.sshCommand
    core.alternateRefsCommand interactive.diffFilter diff.e.xfuncname diff.e.binary merge.e.driver credential.helper
    remote.o.url remote.o.vcs branch.main.remote log.showSignature format.pretty pretty.x tag.sort user.name core.bare
    diff.renames submodule.sub.update extensions.worktreeConfig trailer.x.command`.split(/\s+/)
  const values = ["./evil", "true", "!./evil", "ext::./evil", ".", "../inc", "%G?", "%h", "signature", "hooks"]
  const reading = [
    ["status"],
    ["diff"],
    ["log", "-p"],
    ["show"],
    ["blame", "a.txt"],
    ["grep", "-n", "o"],
    ["branch", "-v"],
    ["stash", "list"]
  ]

  it.scopedLive("starts no program of the repository in real git", () =>
    Effect.gen(function* () {
      const at = yield* repository
      submodule(at)
      const evil = `#!/bin/sh\necho "$0 $*" >>${at.root}/MARK\ncat 2>/dev/null\n`
      at.write("ws/evil", evil, 0o755)
      at.write("ws/lib/sub/evil", evil, 0o755)
      at.write("ws/.gitattributes", "*.txt diff=e filter=e merge=e\n")
      at.write("ws/inc", "[diff]\n\texternal = ./evil\n")
      const config = fs.readFileSync(join(at.ws, ".git/config"), "utf8")
      const inner = join(at.ws, ".git/modules/lib/sub/config")
      const innerConfig = fs.readFileSync(inner, "utf8")
      const setting = fc.tuple(fc.constantFrom(...settings), fc.constantFrom(...values))
      const draw = fc.record({
        own: fc.array(setting, { maxLength: 3 }),
        sub: fc.array(setting, { maxLength: 1 }),
        hook: fc.constantFrom(undefined, undefined, ".git/hooks", "hooks", ".git/modules/lib/sub/hooks")
      })
      const text = (all: ReadonlyArray<readonly [string, string]>) =>
        all
          .map(([key, value]) => {
            const parts = key.split(".")
            return `[${parts.slice(0, -1).join(".")}]\n\t${parts.at(-1)} = "${value}"\n`
          })
          .join("")
      let passed = 0
      let acted = 0
      for (const { hook, own, sub } of fc.sample(draw, Math.max(150, Runs.of(2_000)))) {
        fs.writeFileSync(join(at.ws, ".git/config"), `${config}${text(own)}`)
        fs.writeFileSync(inner, `${innerConfig}${text(sub)}`)
        for (const place of [".git/hooks", "hooks", ".git/modules/lib/sub/hooks"])
          fs.rmSync(join(at.ws, place, "post-index-change"), { force: true })
        if (hook !== undefined) at.write(`ws/${hook}/post-index-change`, evil, 0o755)
        const reason = yield* at.judge()
        // What is not harmless is tried less often: it shows that the trial sees a program.
        if (reason !== undefined && acted > 3) continue
        fs.writeFileSync(join(at.ws, "a.txt"), "two\n")
        fs.writeFileSync(join(at.ws, "lib/sub/b.txt"), "two\n")
        fs.utimesSync(join(at.ws, ".git/index"), 1, 1)
        for (const words of reading) spawnSync("git", words, { cwd: at.ws, env: at.environment })
        const mark = join(at.root, "MARK")
        const ran = fs.existsSync(mark) ? fs.readFileSync(mark, "utf8") : ""
        fs.rmSync(mark, { force: true })
        if (reason === undefined) {
          passed++
          assert.strictEqual(ran, "", JSON.stringify({ own, sub, hook }))
        } else if (ran !== "") acted++
      }
      assert.isAbove(passed, 20)
      assert.isAbove(acted, 3)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
