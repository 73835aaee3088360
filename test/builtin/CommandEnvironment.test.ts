import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as NodePath from "@effect/platform-node/NodePath"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as CommandEnvironment from "../../src/builtin/CommandEnvironment.js"
import { inWorkspace } from "./workspaceFixture.js"

const having = (variables: Readonly<Record<string, string>>) =>
  Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))

const ours = new Set([...Object.keys(CommandEnvironment.plain), "GIT_CONFIG_COUNT"])
const isOurs = (name: string) => ours.has(name) || /^GIT_CONFIG_(?:KEY|VALUE)_\d$/.test(name)

describe("the environment of a command", () => {
  it.effect.prop(
    "holds what is listed or named, and nothing else that is set",
    {
      set: fc.dictionary(
        fc.oneof(
          fc.constantFrom(...CommandEnvironment.names, "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT"),
          fc.constantFrom(
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "BASH_ENV",
            "ENV",
            "MINE"
          ),
          fc.stringMatching(/^[A-Z_]{1,12}$/)
        ),
        fc.string()
      ),
      passed: fc.subarray(["MINE", "SSH_AUTH_SOCK", "OTEL_EXPORTER_OTLP_HEADERS", "OPENAI_API_KEY"])
    },
    ({ passed, set }) =>
      Effect.gen(function* () {
        const made = yield* having({ ...set, OPENAI_API_KEY: "key" })(
          CommandEnvironment.make({ passed, withheld: ["OPENAI_API_KEY"] })
        )
        const allowed = new Set([...CommandEnvironment.names, ...passed])
        for (const [name, value] of Object.entries(made)) {
          if (isOurs(name)) continue
          assert.isTrue(allowed.has(name), name)
          assert.strictEqual(value, set[name])
          assert.notMatch(name, /^OTEL_|API_KEY/)
        }
      })
  )

  it.effect("does not hold an address with a password in it", () =>
    Effect.gen(function* () {
      const set = { HTTPS_PROXY: "http://me:secret@proxy:8080", HTTP_PROXY: "http://proxy:8080", PATH: "/bin" }
      const made = yield* having(set)(CommandEnvironment.make({}))
      assert.deepStrictEqual(
        [made["HTTPS_PROXY"], made["HTTP_PROXY"], made["PATH"]],
        [undefined, "http://proxy:8080", "/bin"]
      )
    })
  )

  it.effect("tells git more than it was told, never less", () =>
    Effect.gen(function* () {
      const added = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "user.name", GIT_CONFIG_VALUE_0: "me" }
      const made = yield* CommandEnvironment.make({ added })
      assert.strictEqual(made["GIT_CONFIG_COUNT"], "4")
      assert.deepStrictEqual(
        [0, 1, 2, 3].map((index) => [made[`GIT_CONFIG_KEY_${index}`], made[`GIT_CONFIG_VALUE_${index}`]]),
        [
          ["user.name", "me"],
          ["safe.bareRepository", "explicit"],
          ["core.fsmonitor", "false"],
          ["log.showSignature", "false"]
        ]
      )
    })
  )

  it("marks the processes of a call, and of the calls around it", () => {
    const outer = CommandEnvironment.ofCall({}, "call_x-1")
    const inner = CommandEnvironment.ofCall(outer, "call_y-2")
    const environ = `A=:call_x-7:\0ASSENT_CALL=${inner["ASSENT_CALL"]}\0B=2\0`
    for (const [token, belongs] of [
      ["call_x-1", true],
      ["call_y-2", true],
      ["call_x-7", false],
      ["call_x", false],
      ["call_y-", false]
    ] as const) {
      assert.strictEqual(CommandEnvironment.belongsTo(environ, token), belongs, token)
    }
  })

  it.scopedLive(
    "keeps git from running what a repository in the workspace names",
    inWorkspace(({ call, put, run }) =>
      Effect.gen(function* () {
        yield* put("evil.sh", '#!/bin/sh\ntouch "$(dirname "$0")/ran"\n')
        const config = (bare: boolean) =>
          `[core]\n\trepositoryformatversion = 0\n\tbare = ${bare}\n\tfsmonitor = "$PWD/evil.sh"\n`
        yield* run({ command: "chmod +x evil.sh; git init -q real; git init -q --bare deep/bare" })
        yield* put("real/.git/config", config(false).replace("$PWD", "../.."))
        yield* run({
          command: `git -C real config core.fsmonitor "$PWD/evil.sh"; git --git-dir=deep/bare config core.fsmonitor "$PWD/evil.sh"; git --git-dir=deep/bare config core.worktree ..; git --git-dir=deep/bare config core.bare false`
        })
        assert.include(yield* call("run_command", { command: "git -C real status" }), "No commits yet")
        assert.include(yield* call("run_command", { command: "cd deep/bare && git status" }), "safe.bareRepository")
        assert.include(yield* call("run_command", { command: "ls" }), "evil.sh")
        assert.notInclude(yield* call("run_command", { command: "ls" }), "ran")
      })
    )
  )

  it.scopedLive(
    "looks for programs beside the workspace, wherever its PATH leads",
    inWorkspace(({ fileSystem, outside, root }) =>
      Effect.gen(function* () {
        yield* fileSystem.makeDirectory(`${root}/bin`)
        yield* fileSystem.symlink(`${root}/bin`, `${outside}/linked`)
        const place = { fileSystem, path: yield* Path.Path, roots: [root] }
        const pathOf = (PATH: string, home = outside) =>
          Effect.map(CommandEnvironment.outside({ PATH, HOME: home }, place), ({ PATH: made }) => made)
        const ways = [
          `${root}/bin`,
          ".",
          "",
          "bin",
          `${outside}/linked`,
          root,
          `${root}/../ws/bin`,
          `${root}/not-there`
        ]
        for (const way of ways) assert.strictEqual(yield* pathOf(`${way}:/usr/bin:${way}`), "/usr/bin", way)
        assert.strictEqual(yield* pathOf(ways.join(":")), "/usr/local/bin:/usr/bin:/bin")
        assert.strictEqual(yield* pathOf(`${root}-other/bin:/bin`), `${root}-other/bin:/bin`)
        // A home that is worked in: its programs are the person's own.
        assert.strictEqual(yield* pathOf(`${root}/bin:/bin`, root), `/bin:${root}/bin`)
      }).pipe(Effect.provide(NodePath.layer))
    )
  )

  it.scopedLive(
    "runs the system's programs, not those that the workspace brings under their names",
    inWorkspace(
      ({ fileSystem, put, root, run }) =>
        Effect.gen(function* () {
          yield* put("bin/ls", "#!/bin/sh\necho brought\n")
          yield* fileSystem.chmod(`${root}/bin/ls`, 0o755)
          assert.notInclude((yield* run({ command: "ls" })).output, "brought")
        }),
      ({ root }) => ({ environment: { PATH: `${root}/bin:/usr/bin:/bin` } })
    )
  )
})
