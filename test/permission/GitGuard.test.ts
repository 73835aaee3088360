import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as GitGuard from "../../src/permission/GitGuard.js"
import * as Guard from "../../src/permission/Guard.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Kit from "../kit/gate.js"

/** What the guard says of paths, in a workspace that holds what {@link inWorkspace} lays there. */
interface InteractorCall {
  readonly write: (path: unknown) => Effect.Effect<boolean>
  readonly read: (path: string) => Effect.Effect<boolean>
  /** The question. */
  readonly asked: (path: string) => Effect.Effect<string | undefined>
}

const inWorkspace = (use: (asking: InteractorCall) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const workspace = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
    for (const directory of [
      ".git/hooks",
      "nested/deep/.git/hooks",
      "apart/objects",
      "apart/hooks",
      "bare.git/objects",
      "bare.git/hooks",
      "shared",
      "src",
      "template/.git/hooks",
      "plain/objects",
      "half/objects",
      "begun",
      "inner/deeper/bare/objects",
      "inner/deeper/bare/hooks"
    ]) {
      yield* fileSystem.makeDirectory(`${workspace}/${directory}`, { recursive: true })
    }
    for (const file of [
      "apart/HEAD",
      "begun/HEAD",
      "bare.git/HEAD",
      "inner/deeper/bare/HEAD",
      "shared/HEAD",
      "shared/commondir",
      "src/a.ts"
    ]) {
      yield* fileSystem.writeFileString(`${workspace}/${file}`, "x")
    }
    yield* fileSystem.makeDirectory(`${workspace}/separate`)
    yield* fileSystem.writeFileString(`${workspace}/separate/.git`, "gitdir: ../apart")
    yield* fileSystem.symlink(".git", `${workspace}/innocent`)
    yield* fileSystem.symlink("../.git/hooks", `${workspace}/src/docs`)
    yield* fileSystem.symlink(".git/config", `${workspace}/settings`)
    yield* fileSystem.symlink("src", `${workspace}/src-link`)
    const guard = GitGuard.make({ fileSystem, path, workspace })
    const { tools } = { tools: yield* Kit.registry }
    const entry = tools.get("shell")
    assert(entry !== undefined)
    const ask = (params: unknown, more: Partial<typeof entry>) => {
      const changed = { ...entry, ...more }
      const subject = PermissionRule.subject({ tool: entry.name, params, commandField: changed.shellCommand })
      return Effect.map(Effect.orDie(guard({ tool: entry.name, params, subject, entry: changed })), (found) =>
        found instanceof Guard.Ask ? found.reason : undefined
      )
    }
    const isAsked = (found: string | undefined) => found !== undefined
    const writing = { shellCommand: undefined, paths: ["path"] }
    yield* use({
      write: (path) => Effect.map(ask({ path }, writing), isAsked),
      read: (path) => Effect.map(ask({ path }, { ...writing, readonly: true }), isAsked),
      asked: (path) => ask({ path }, writing)
    })
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

const table = <A>(
  ask: (input: A) => Effect.Effect<boolean>,
  expected: boolean,
  inputs: ReadonlyArray<A>
): Effect.Effect<void> =>
  Effect.map(
    Effect.forEach(inputs, (input) => Effect.map(ask(input), (asked) => [input, asked] as const)),
    (rows) =>
      assert.deepStrictEqual(
        rows,
        inputs.map((input) => [input, expected] as const)
      )
  )

describe("a question of its own", () => {
  it.live("is wanted for a file tool that writes there, however it is spelled", () =>
    inWorkspace(({ write }) =>
      table<unknown>(write, true, [
        ".git",
        ".git/config",
        ".git/hooks/pre-commit",
        "./.git/info/attributes",
        ".GIT/config",
        ".g\u200cit/config",
        "git~1/config",
        "src/../.git/config",
        "nested/deep/.git/hooks/x",
        "new/.git/config",
        "separate/.git",
        "apart/hooks/pre-commit",
        "bare.git/config",
        "shared/config",
        "innocent/config",
        "src/docs/pre-commit",
        "settings",
        "src-link/docs/x",
        "src-link/../.git/x",
        "half/HEAD",
        "begun/objects/pack/x",
        "begun/commondir",
        ".hg/hgrc",
        "hg~1/hgrc",
        ["src/a.ts", ".git/config"]
      ])
    )
  )

  it.live("is not wanted for what reads, and for other files", () =>
    inWorkspace(({ read, write }) =>
      Effect.zipRight(
        table(read, false, [".git/config", "apart/HEAD"]),
        table<unknown>(write, false, [
          "src/a.ts",
          ".gitignore",
          ".gitattributes",
          ".github/workflows/x.yml",
          "foo.git.ts",
          "plain/objects/x",
          "plain/x",
          "begun/other",
          "half/commondir",
          "src-link/new.ts",
          "nested/x",
          undefined
        ])
      )
    )
  )

  it.live("names the path, and a long one by its beginning", () =>
    inWorkspace(({ asked }) =>
      Effect.gen(function* () {
        const where = "leads to where git keeps its configuration and hooks; git runs programs that it finds there."
        const most = `.git/${"x".repeat(195)}`
        assert.strictEqual(yield* asked(".git/config"), `.git/config ${where}`)
        assert.strictEqual(yield* asked(most), `${most} ${where}`)
        assert.strictEqual(yield* asked(`${most}x`), `${most.slice(0, 199)}… ${where}`)
        assert.isUndefined(yield* asked("src/a.ts"))
      })
    )
  )
})
