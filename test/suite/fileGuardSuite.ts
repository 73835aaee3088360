/** What guards see of a file system. Run over every one that ships or that a library's user may bring. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import * as Id from "../../src/core/Id.js"
import * as BuiltInGuards from "../../src/permission/BuiltInGuards.js"
import * as Foresight from "../../src/permission/Foresight.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import * as Policy from "../../src/permission/Policy.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as Kit from "../kit/gate.js"

const sessionId = Id.SessionId.make("s")
const open: PolicySource = { defaultPolicy: "allow" }

export const fileGuardSuite = (
  name: string,
  files: Layer.Layer<FileSystem.FileSystem>,
  /** Tells how the file system is given to the guards. */
  given: (fileSystem: FileSystem.FileSystem) => Effect.Effect<FileSystem.FileSystem> = Effect.succeed
): void => {
  /** A workspace in a home, and what would become of calls there. Nothing confines a command. */
  const world = Effect.gen(function* () {
    const fileSystem = yield* Effect.flatMap(FileSystem.FileSystem, given)
    const home = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
    const other = yield* fileSystem.makeTempDirectoryScoped()
    yield* fileSystem.symlink(home, `${other}/home`)
    const workspace = `${home}/work/project`
    yield* fileSystem.makeDirectory(`${workspace}/src`, { recursive: true })
    const platform = yield* Effect.provideService(
      Effect.context<FileSystem.FileSystem | Path.Path>(),
      FileSystem.FileSystem,
      fileSystem
    )
    const shell = (yield* Kit.registry).get("shell")
    assert(shell !== undefined)
    const writer = { ...shell, shellCommand: undefined, paths: ["command"], readonly: false, runs: undefined }
    const become = (
      root: string,
      entry: typeof shell,
      text: string,
      source = open,
      protectedPaths: Array<string> = []
    ) => {
      const surroundings = { workspace: root, platform, protectedPaths, home }
      const policy = BuiltInGuards.placed(Policy.make(source), surroundings)
      const guards = [BuiltInGuards.sanitizer(surroundings)(policy.sanitize), BuiltInGuards.git(surroundings)]
      const options = { policy, guards, sessionId, state: new PermissionState() }
      return Effect.map(Foresight.foresee(options, entry, { command: text }), ({ decision }) => decision)
    }
    const put = (file: string) => Effect.orDie(fileSystem.writeFileString(file, "x"))
    const make = (directory: string) => Effect.orDie(fileSystem.makeDirectory(directory, { recursive: true }))
    const link = (target: string, file: string) => Effect.orDie(fileSystem.symlink(target, file))
    return {
      home,
      /** The home by a link that lies elsewhere. */
      linkedHome: `${other}/home`,
      workspace,
      put,
      make,
      link,
      command: (text: string, source?: PolicySource, root = workspace) => become(root, shell, text, source),
      write: (file: string, source?: PolicySource, protectedPaths?: Array<string>) =>
        become(workspace, writer, file, source, protectedPaths),
      rootAt: (root: string, named = home) =>
        Effect.provide(WorkspaceRoot.make({ root }), platform).pipe(
          Effect.withConfigProvider(
            ConfigProvider.fromMap(
              new Map([
                ["HOME", named],
                ["PATH", `/usr/bin:${named}/tools/`]
              ])
            )
          )
        )
    }
  })
  type World = Effect.Effect.Success<typeof world>
  const scenario = (title: string, use: (at: World) => Effect.Effect<void>) =>
    it.scoped(title, () => Effect.provide(Effect.flatMap(Effect.orDie(world), use), Layer.merge(files, Path.layer)))

  describe(`guards over ${name}`, () => {
    const guarded: ReadonlyArray<readonly [string, (at: World) => Effect.Effect<unknown>]> = [
      ["a .git", ({ make, workspace }) => make(`${workspace}/.git`)],
      ["the .git of a worktree", ({ put, workspace }) => put(`${workspace}/.git`)],
      ["a .git above", ({ home, make }) => make(`${home}/work/.git`)],
      ["a .git far above that leads nowhere", ({ home, link }) => link("nowhere", `${home}/.git`)],
      ["an .assent", ({ make, workspace }) => make(`${workspace}/.assent`)],
      ["an .assent that is a link", ({ link, workspace }) => link("src", `${workspace}/.assent`)]
    ]
    for (const [what, lay] of guarded)
      scenario(`ask about a command that no rule spells out beside ${what}, and about no other`, (at) =>
        Effect.gen(function* () {
          const spelled: PolicySource = { defaultPolicy: "allow", whitelist: { patterns: ["sh a.sh"] } }
          assert.strictEqual(yield* at.command("sh a.sh"), "allow", "before")
          yield* lay(at)
          assert.strictEqual(yield* at.command("sh a.sh"), "ask")
          assert.strictEqual(yield* at.command("ls src"), "allow")
          assert.strictEqual(yield* at.command("sh a.sh", spelled), "allow")
        })
      )

    scenario("ask about a command in a workspace that the file system does not have", ({ command, home }) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* command("ls", open, `${home}/absent`), "allow")
        assert.strictEqual(yield* command("sh a.sh", open, `${home}/absent`), "ask")
      })
    )

    scenario("see where a write leads: into git's own, out of the workspace, to a protected place", (at) =>
      Effect.gen(function* () {
        const { home, link, make, put, workspace, write } = at
        yield* make(`${workspace}/.git/hooks`)
        yield* make(`${home}/outside`)
        yield* make(`${workspace}/state`)
        yield* put(`${workspace}/src/a`)
        yield* link(".git", `${workspace}/innocent`)
        yield* link("../.git/config", `${workspace}/src/settings`)
        yield* link(`${home}/outside`, `${workspace}/out`)
        yield* link(`${home}/outside/absent`, `${workspace}/dangling`)
        yield* link("state", `${workspace}/other`)
        const decided = (file: string) => write(file, open, [`${workspace}/state`])
        for (const file of ["src/a", "src/new", "new/deep"]) assert.strictEqual(yield* decided(file), "allow", file)
        for (const file of [".git/config", ".GIT/x", "innocent/hooks/x", "src/settings", "src/../.git/x"])
          assert.strictEqual(yield* decided(file), "ask", file)
        for (const file of ["out/x", "dangling", "../x", "src/../../x", `${home}/x`])
          assert.strictEqual(yield* decided(file), "ask", file)
        for (const file of ["state/x", "other/x", "STATE/x", "src/../other/new"])
          assert.strictEqual(yield* decided(file), "deny", file)
      })
    )

    scenario("see where a denied path leads", ({ link, make, workspace, write }) =>
      Effect.gen(function* () {
        yield* make(`${workspace}/secrets`)
        yield* link("secrets", `${workspace}/plain`)
        const source: PolicySource = { defaultPolicy: "allow", blacklist: { patterns: ["shell(command=secrets/*)"] } }
        assert.strictEqual(yield* write("secrets/x", source), "deny")
        assert.strictEqual(yield* write("plain/x", source), "deny")
        assert.strictEqual(yield* write("src/x", source), "allow")
      })
    )

    scenario("hide the keys of a home, and leave its start files, wherever the workspace is around them", (at) =>
      Effect.gen(function* () {
        const { home, link, linkedHome, make, put, rootAt } = at
        const keys = [".ssh/id", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", "vault/token", ".ssh/absent/new"]
        for (const place of [".ssh", ".aws", ".config/gh", "vault", "tools", ".vim"]) yield* make(`${home}/${place}`)
        for (const key of keys.slice(0, -1)) yield* put(`${home}/${key}`)
        yield* put(`${home}/.bashrc`)
        yield* link(".ssh", `${home}/work/innocent`)
        yield* link("../.ssh/id", `${home}/work/AGENTS.md`)
        yield* link("../.bashrc", `${home}/work/rc`)
        yield* link("../vault", `${home}/.config/op`)
        yield* link(home, `${home}/work/home`)
        const spelled = [...keys, ".SSH/id", "work/../.ssh/id", "work/home/.ssh/id", "work/AGENTS.md"].map(
          (key) => `${home}/${key}`
        )
        const starts = [
          ".bashrc",
          ".profile",
          "work/rc",
          "tools/ls",
          ".vim/plugin/x.vim",
          ".BASHRC",
          ".config/git/config"
        ]
        for (const [root, named] of [
          [home, home],
          [`${home}/work/home`, home],
          [home, linkedHome],
          [linkedHome, linkedHome]
        ] as const) {
          const { locate, locateToChange, protection } = yield* rootAt(root, named)
          for (const key of spelled) {
            const found = yield* Effect.either(locate(key))
            assert.isTrue(Either.isLeft(found) && found.left.includes("keys"), `${root} ${key}`)
          }
          const isHidden = yield* protection
          for (const key of [".ssh", ".netrc", "vault/token"]) assert.isTrue(isHidden(`${home}/${key}`), key)
          for (const file of starts) {
            assert.isTrue(Either.isRight(yield* Effect.either(locate(`${home}/${file}`))), `reads ${file}`)
            assert.isTrue(Either.isLeft(yield* Effect.either(locateToChange(`${home}/${file}`))), `writes ${file}`)
          }
          for (const file of ["work/project/.npmrc", "work/project/.ssh/config", "notes.txt", "toolshed/x"])
            assert.isTrue(Either.isRight(yield* Effect.either(locateToChange(`${home}/${file}`))), file)
        }
        // What was given by its own name is no secret there; what lies beside it is.
        const inside = yield* rootAt(`${home}/.ssh`)
        assert.isTrue(Either.isRight(yield* Effect.either(inside.locate("id"))))
        const settings = yield* rootAt(`${home}/.config`)
        assert.isTrue(Either.isLeft(yield* Effect.either(settings.locate("gh/hosts.yml"))))
        const tools = yield* rootAt(`${home}/tools`)
        assert.isTrue(Either.isRight(yield* Effect.either(tools.locateToChange("ls"))))
      })
    )

    scenario(
      "ask about a command that names a key of a home that is the workspace",
      ({ command, home, link, make, put }) =>
        Effect.gen(function* () {
          yield* make(`${home}/.ssh`)
          yield* put(`${home}/.ssh/id`)
          yield* put(`${home}/notes`)
          yield* link(".ssh", `${home}/innocent`)
          const source: PolicySource = { whitelist: { patterns: ["cat *"] } }
          const decided = (text: string) => command(text, source, home)
          for (const text of [
            "cat .ssh/id",
            "cat ~/.ssh/id",
            "cat innocent/id",
            "cat notes .netrc",
            "cat .config/gh/x"
          ])
            assert.strictEqual(yield* decided(text), "ask", text)
          for (const text of ["cat notes", "cat work/project/.npmrc", "cat .config/x"])
            assert.strictEqual(yield* decided(text), "allow", text)
        })
    )
  })
}
