/** What rules decide about a call of an agent of others, beside the same call of a tool of ours. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Environment from "../../src/host/Environment.js"
import * as Host from "../../src/host/Host.js"

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
