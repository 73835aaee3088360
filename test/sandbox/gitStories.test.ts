import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isGitText } from "../../src/shell/CommandReader.js"
import * as Confined from "../kit/Confined.js"

let base = ""
let count = 0
beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "assent-stories-")))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

const author = "-c user.name=Ada -c user.email=ada@example.com"
/** Outside, as the person. */
const person = (root: string, ...args: ReadonlyArray<string>) =>
  execFileSync(
    "git",
    [
      "-C",
      root,
      "-c",
      "user.name=Ada",
      "-c",
      "user.email=ada@example.com",
      "-c",
      "protocol.file.allow=always",
      ...args
    ],
    {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"]
    }
  )

/** A line of an agent: what it does, one line each. A line without `git` is what the agent does with other tools. */
type Step = string | ((root: string) => void)

interface Story {
  readonly name: string
  readonly steps: ReadonlyArray<Step>
  /** What the person's git prints then. */
  readonly ends: readonly [args: ReadonlyArray<string>, prints: string | RegExp]
}

const write =
  (file: string, text: string): Step =>
  (root) =>
    appendFileSync(join(root, file), text)
const subjects: ReadonlyArray<string> = ["log", "--format=%s"]

const stories: ReadonlyArray<Story> = [
  {
    name: "commits",
    steps: [write("a.txt", "two\n"), `git add -A && git ${author} commit -qm second`],
    ends: [subjects, "second\nfirst\n"]
  },
  {
    name: "commits with a message from a here-document",
    steps: [
      write("a.txt", "two\n"),
      `git ${author} commit -qam "$(cat <<'EOF'\nsecond (it's "quoted")\n\nbody\nEOF\n)"`
    ],
    ends: [subjects, 'second (it\'s "quoted")\nfirst\n']
  },
  {
    name: "amends, tags and resets",
    steps: [
      `git ${author} commit -q --amend -m other`,
      `git ${author} tag -a v1 -m v1`,
      `git ${author} commit -q --allow-empty -m x; git reset -q --hard v1`
    ],
    ends: [["log", "--format=%s %D"], /^other .*tag: v1/]
  },
  {
    name: "switches, merges and ends a conflict",
    steps: [
      "git switch -qc topic",
      write("a.txt", "topic\n"),
      `git ${author} commit -qam topic`,
      "git switch -q main",
      write("a.txt", "main\n"),
      `git ${author} commit -qam main`,
      `git ${author} merge topic; git status --short`,
      (root) => writeFileSync(join(root, "a.txt"), "both\n"),
      `git add a.txt && git ${author} commit -qm merged`
    ],
    ends: [["log", "--first-parent", "--format=%s"], "merged\nmain\nfirst\n"]
  },
  {
    name: "rebases, with steps and a program that it was asked to run",
    steps: [
      "git switch -qc topic",
      write("b.txt", "b\n"),
      `git add b.txt && git ${author} commit -qm topic`,
      "git switch -q main",
      write("a.txt", "main\n"),
      `git ${author} commit -qam main`,
      "git switch -q topic",
      `GIT_SEQUENCE_EDITOR=true git ${author} rebase -q -i main`,
      `git ${author} rebase -q -x true --force-rebase main`
    ],
    ends: [subjects, "topic\nmain\nfirst\n"]
  },
  {
    name: "stops and goes on with a rebase",
    steps: [
      "git switch -qc topic",
      write("a.txt", "topic\n"),
      `git ${author} commit -qam topic`,
      "git switch -q main",
      write("a.txt", "main\n"),
      `git ${author} commit -qam main`,
      `git switch -q topic; git ${author} rebase -q main; git status --short`,
      (root) => writeFileSync(join(root, "a.txt"), "both\n"),
      `git add a.txt && GIT_EDITOR=true git ${author} rebase --continue`
    ],
    ends: [subjects, "topic\nmain\nfirst\n"]
  },
  {
    name: "stashes and picks",
    steps: [
      write("a.txt", "kept\n"),
      `git ${author} stash -q`,
      `git ${author} commit -q --allow-empty -m empty`,
      "git stash pop -q",
      `git ${author} commit -qam popped`,
      "git switch -qc other HEAD~2",
      `git ${author} cherry-pick main`
    ],
    ends: [subjects, "popped\nfirst\n"]
  },
  {
    name: "applies patches",
    steps: [
      write("a.txt", "two\n"),
      `git ${author} commit -qam patch`,
      "git format-patch -q -1 -o patches",
      "git reset -q --hard HEAD~1",
      `git ${author} am -q patches/0001-patch.patch`
    ],
    ends: [subjects, "patch\nfirst\n"]
  },
  {
    name: "bisects and cleans up",
    steps: [
      ...["one", "two", "three"].map((name) => `git ${author} commit -q --allow-empty -m ${name}`),
      "git bisect start HEAD HEAD~3 && git bisect good && git bisect reset",
      "git gc -q && git reflog | wc -l && git branch -q side && git branch -q -d side"
    ],
    ends: [subjects, "three\ntwo\none\nfirst\n"]
  },
  {
    name: "adds a worktree and works there",
    steps: [
      "git worktree add -q -b topic tree",
      write("tree/b.txt", "b\n"),
      `cd tree && git add b.txt && git ${author} commit -qm inside`,
      `git ${author} merge -q topic`
    ],
    ends: [subjects, "inside\nfirst\n"]
  },
  {
    name: "works in a submodule",
    steps: [
      (root) => {
        mkdirSync(join(root, "..", "library"))
        person(join(root, "..", "library"), "init", "-q", "-b", "main")
        person(join(root, "..", "library"), "commit", "-q", "--allow-empty", "-m", "library")
        person(root, "submodule", "add", "-q", join(root, "..", "library"), "library")
        person(root, "commit", "-qm", "submodule")
      },
      `cd library && git ${author} commit -q --allow-empty -m change`,
      `git add library && git ${author} commit -qm moved && git submodule status`
    ],
    ends: [["log", "-p", "--submodule=log", "-1", "--format=%s"], /^moved\n[\s\S]*> change/]
  }
]

describe.skipIf(!Confined.isWanted)("git that was allowed works in the sandbox", () => {
  it.scopedLive.each(stories)("it $name", ({ ends: [args, prints], steps }) =>
    Effect.gen(function* () {
      const place = join(base, `${count++}`)
      const root = join(place, "workspace")
      mkdirSync(root, { recursive: true })
      person(root, "init", "-q", "-b", "main")
      writeFileSync(join(root, "a.txt"), "one\n")
      person(root, "add", "a.txt")
      person(root, "commit", "-qm", "first")
      const sandbox = yield* Confined.make({ root, directory: join(place, "state") })
      for (const step of steps) {
        if (typeof step === "function") {
          step(root)
          continue
        }
        assert.isTrue(isGitText(step), step)
        const { notices, output } = yield* Confined.run(sandbox, root, step)
        assert.deepStrictEqual(notices, [], `${step}\n${output}`)
      }
      const printed = person(root, ...args)
      if (typeof prints === "string") assert.strictEqual(printed, prints)
      else assert.match(printed, prints)
    })
  )
})

/** What a program that git starts may do in a git directory, and the word that a notice has. */
const leaves: ReadonlyArray<readonly [script: string, word: RegExp]> = [
  ["ln -sf /etc/passwd .git/COMMIT_EDITMSG", /COMMIT_EDITMSG is a link/],
  ["rm -f .git/logs/HEAD; ln -s /etc/passwd .git/logs/HEAD", /HEAD is a link/],
  ["ln -s /etc .git/sequencer", /sequencer is a link/],
  ["mkdir -p .git/rebase-merge && echo 'exec touch x' > .git/rebase-merge/git-rebase-todo", /rebase-merge/],
  [
    "mkdir -p .git/worktrees/w && echo /x > .git/worktrees/w/gitdir && echo ../.. > .git/worktrees/w/commondir",
    /worktrees\/w/
  ],
  ["mkdir -p new && echo 'gitdir: ../.git/worktrees/none' > new/.git", /new\/\.git appeared/],
  ["mkdir -p .git/modules/m/hooks", /modules\/m appeared/]
]

describe.skipIf(!Confined.isWanted)("a program that git starts", () => {
  it.scopedLive.each(leaves)("leaves nothing that acts later: %s", ([script, word]) =>
    Effect.gen(function* () {
      const place = join(base, `${count++}`)
      const root = join(place, "workspace")
      mkdirSync(root, { recursive: true })
      person(root, "init", "-q", "-b", "main")
      writeFileSync(join(root, "a.txt"), "one\n")
      person(root, "add", "a.txt")
      person(root, "commit", "-qm", "first")
      writeFileSync(join(root, "evil.sh"), `${script}\ncat\n`)
      person(root, "config", "filter.e.clean", "sh ./evil.sh")
      writeFileSync(join(root, ".gitattributes"), "*.txt filter=e\n")
      appendFileSync(join(root, "a.txt"), "two\n")
      const sandbox = yield* Confined.make({ root, directory: join(place, "state") })
      const { notices } = yield* Confined.run(sandbox, root, "git add a.txt")
      assert.match(notices.join("\n"), word)
      assert.notInclude(readdirSync(join(root, ".git")).join(), "sequencer")
      assert.isFalse(existsSync(join(root, ".git/rebase-merge/git-rebase-todo")))
      assert.deepStrictEqual((yield* Confined.run(sandbox, root, "true")).notices, [])
    })
  )
})
