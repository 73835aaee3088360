/** What rules decide about a call of an agent of others, beside the same call of a tool of ours. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Environment from "../../src/host/Environment.js"
import * as Host from "../../src/host/Host.js"
import * as ForeignCall from "../../src/foreign/ForeignCall.js"

const commands = [
  ...["git status", "git push", "git push --force", "git -c core.pager=sh log", "npm test", "npm run build"],
  ...["rm -rf build", "rm one.txt", "/bin/rm one.txt", "sudo rm one.txt", "env rm one.txt", "echo a; rm one.txt"],
  ...["deploy production", "deploy  production", "x && deploy production", "bash -c 'deploy production'"],
  ...["$(rm one.txt)", "eval rm one.txt", "ls | xargs rm", "find . -exec rm {} ;", "echo done > out.txt", "make"],
  ...["cat one.txt", "cat ../two.txt", "cat .env", "curl https://example.com", "node -e 1", "npm test; git push"],
  ...["echo 'unclosed", "git  status", "A=1 git status", "git status &", "(git status)", "time git status"]
]
const files = ["one.txt", "src/one.ts", "../two.txt", ".env", "/etc/hosts", ".git/config"]

const policies = {
  none: {},
  blacklist: { blacklist: { patterns: ["rm *", "deploy production"], arguments: ["--force"] } },
  whitelist: { whitelist: { patterns: ["git *", "npm test", "cat *"] } },
  both: {
    blacklist: { patterns: ["git push*"] },
    whitelist: { patterns: ["git *", "echo *"], arguments: ["npm run"] }
  },
  approvals: { approvals: [{ patterns: ["deploy*", "git push*"], quorum: 2, roles: ["ops"] }] },
  open: { defaultPolicy: "allow", blacklist: { patterns: ["rm *"] } },
  closed: { defaultPolicy: "deny", whitelist: { patterns: ["git status"] } }
}

const place = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-foreign-")))),
    (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
  ),
  (root) => {
    for (const name of ["work", "config", "home"]) fs.mkdirSync(path.join(root, name))
    return (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
  }
)

/** What the gate would do with what an agent says, under a policy. */
const judging = (rules: object) =>
  Effect.gen(function* () {
    const at = yield* place
    const policy = at("policy.json")
    fs.writeFileSync(policy, JSON.stringify({ version: 1, ...rules }))
    const host = yield* Host.make({
      environment: Environment.of({
        HOME: at("home"),
        ASSENT_CONFIG_DIR: at("config"),
        ASSENT_STATE_DIR: at("state"),
        ASSENT_SANDBOX: "off"
      }),
      overrides: { model: "command:nobody", policy },
      notify: () => {}
    })
    const { agent } = yield* host.create({ workspace: at("work") })
    return (said: object) => {
      const { params, tool } = ForeignCall.decide(
        ForeignCall.merge({}, { title: "t", kind: "execute", ...said }),
        at("work")
      )
      return Effect.map(agent.permissions.check(tool, params), ({ decision }) => `${tool} ${decision}`)
    }
  })

const run = (rawInput: object) => ({ rawInput })

describe("what an agent of others says of a call", () => {
  it.scopedLive("is asked about if it is not understood, whatever rules allow", () =>
    Effect.gen(function* () {
      const decided = yield* judging({
        defaultPolicy: "allow",
        whitelist: {
          tools: ["foreign_act", "foreign_edit", "foreign_execute"],
          patterns: ["foreign_act(*title=t*)", "foreign_edit(*path=src/*)", "ls*", "git *"],
          readonly: true
        }
      })
      assert.strictEqual(yield* decided(run({ command: "ls" })), "foreign_execute allow")
      assert.strictEqual(yield* decided(run({ command: ["git", "status"] })), "foreign_execute allow")
      for (const said of [
        run({ command: "ls", cwd: "/etc" }),
        run({ command: "ls", env: { PATH: "." } }),
        run({ command: "ls", unknown: null }),
        { ...run({ command: "ls" }), unknown: 1 },
        { kind: "delete", locations: [{ path: "src/a.ts" }] },
        { kind: "move", locations: [{ path: "src/a.ts" }] },
        { kind: "edit", locations: [{ path: "src/a.ts" }, { path: "src/b.ts" }] },
        { kind: "other" }
      ])
        assert.strictEqual(yield* decided(said), "foreign_act ask", JSON.stringify(said))
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is denied by a rule about any command in it", () =>
    Effect.gen(function* () {
      const decided = yield* judging({
        defaultPolicy: "allow",
        blacklist: { patterns: ["git push*", "touch *"], arguments: ["npm publish"] },
        guards: { deny: { patterns: ["shutdown*"] } }
      })
      for (const said of [
        run({ command: ["/bin/bash", "-lc", "git push"] }),
        run({ command: "git", args: ["push", "--force"] }),
        run({ command: ["/bin/bash", "-lc", "touch made.txt"], cwd: "." }),
        run({ command: ["/bin/bash", "-lc", "touch made.txt"], cwd: "/etc" }),
        run({ command: "git push", env: { A: "1" } }),
        run({ argv: ["git", "push"] }),
        run({ script: "cd src\ngit push" }),
        run({ steps: [{ run: { command: "git", args: ["push"] } }] }),
        run({ command: "git", args: "push --force" }),
        run({ program: "git", arguments: ["push"], cwd: "/etc" }),
        run({ exec: ["npm", "publish"] }),
        run({ exec: "sudo shutdown now" }),
        { kind: "other", title: "git push --force" }
      ])
        assert.match(yield* decided(said), / deny$/, JSON.stringify(said))
      // A text of a file is no command.
      const changes = ["a.ts", "b.ts"].map((path) => ({ type: "diff", path, newText: "git push" }))
      assert.strictEqual(yield* decided({ kind: "edit", content: changes }), "foreign_act ask")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("is seen by the guards at every path in it", () =>
    Effect.gen(function* () {
      const decided = yield* judging({ defaultPolicy: "allow", whitelist: { tools: ["foreign_edit"] } })
      const two = (other: string) => ({
        kind: "edit",
        locations: [{ path: "src/a.ts" }],
        content: [
          { type: "diff", path: "src/a.ts", newText: "" },
          { type: "diff", path: other, newText: "" }
        ]
      })
      for (const said of [
        two(".assent/permissions.json"),
        { kind: "delete", locations: [{ path: "src/a.ts" }, { path: ".assent/permissions.json" }] },
        { kind: "edit", locations: [{ path: "src/a.ts" }], rawInput: { files: { ".assent/permissions.json": "x" } } },
        run({ command: "ls", cwd: ".assent" })
      ])
        assert.strictEqual(yield* decided(said), "foreign_act deny", JSON.stringify(said))
      assert.strictEqual(yield* decided(two(".git/hooks/pre-commit")), "foreign_act ask")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("a call of an agent of others", () => {
  it.scopedLive.each(Object.entries(policies))("is decided as the same call of ours: %s", ([, rules]) =>
    Effect.gen(function* () {
      const at = yield* place
      const policy = at("policy.json")
      fs.writeFileSync(policy, JSON.stringify({ version: 1, ...rules }))
      const host = yield* Host.make({
        environment: Environment.of({
          HOME: at("home"),
          ASSENT_CONFIG_DIR: at("config"),
          ASSENT_STATE_DIR: at("state"),
          ASSENT_SANDBOX: "off"
        }),
        overrides: { model: "command:nobody", policy },
        notify: () => {}
      })
      const { agent } = yield* host.create({ workspace: at("work") })
      const decided = (tool: string, params: object) =>
        Effect.map(agent.permissions.check(tool, params), ({ decision }) => decision)
      const differ: Array<string> = []
      for (const command of commands) {
        const [ours, theirs] = [
          yield* decided("run_command", { command }),
          yield* decided("foreign_execute", { command })
        ]
        if (ours !== theirs) differ.push(`${command}: ${ours}, of others ${theirs}`)
      }
      for (const file of files) {
        const [ours, theirs] = [
          yield* decided("write_file", { path: file, content: "" }),
          yield* decided("foreign_edit", { path: file, after: "" })
        ]
        if (ours !== theirs) differ.push(`${file}: ${ours}, of others ${theirs}`)
      }
      assert.deepStrictEqual(differ, [])
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
