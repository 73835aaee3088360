import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import * as GitBranch from "../../../src/host/local/GitBranch.js"
import * as Program from "../../kit/Program.js"

const place = Effect.map(Program.place, (place) => {
  const at = (...parts: ReadonlyArray<string>) => place.path("workspace", ...parts)
  mkdirSync(at("deep/inside"), { recursive: true })
  return at
})

describe("the branch of a workspace", () => {
  it.scoped("is that of the repository it lies in, without running git", () =>
    Effect.gen(function* () {
      const at = yield* place
      assert.isUndefined(GitBranch.of(at("deep/inside")))
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: at(), stdio: "pipe" })
      git("init", "-q", "-b", "feature/login")
      assert.strictEqual(GitBranch.of(at()), "feature/login")
      assert.strictEqual(GitBranch.of(at("deep/inside")), "feature/login")
      git("commit", "-q", "--allow-empty", "-m", "a")
      git("worktree", "add", "-q", "-b", "other", at("tree"))
      assert.strictEqual(GitBranch.of(at("tree")), "other")
      git("checkout", "-q", "--detach")
      assert.match(GitBranch.of(at()) ?? "", /^[0-9a-f]{7}$/)
    })
  )

  it.scoped("is none where the files are not what they should be, and nothing is waited for", () =>
    Effect.gen(function* () {
      const at = yield* place
      mkdirSync(at(".git"))
      const heads = [
        "",
        "ref: refs/heads/\n",
        "ref: refs/heads/a\x1b[2J\n",
        "ref: refs/heads/.invalid\n",
        "x".repeat(9_000)
      ]
      for (const head of [...heads, "ref: refs/tags/v1\n", "abc\n", "ref: refs/heads/a\nref: refs/heads/b\n"]) {
        writeFileSync(at(".git/HEAD"), head)
        assert.isUndefined(GitBranch.of(at()), JSON.stringify(head.slice(0, 40)))
      }
      execFileSync("rm", ["-r", at(".git")])
      for (const file of ["gitdir: /nowhere\n", "gitdir: \n", "gitdir: .git\n", "something else\n"]) {
        writeFileSync(at(".git"), file)
        assert.isUndefined(GitBranch.of(at()), file)
      }
      execFileSync("rm", [at(".git")])
      mkdirSync(at(".git"))
      execFileSync("mkfifo", [at(".git/HEAD")])
      assert.isUndefined(GitBranch.of(at()))
      execFileSync("rm", [at(".git/HEAD")])
      symlinkSync("HEAD", at(".git/HEAD"))
      assert.isUndefined(GitBranch.of(at()), "a link to itself")
    })
  )
})
