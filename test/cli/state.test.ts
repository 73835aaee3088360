import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as Program from "../kit/Program.js"

const sessionIn = (text: string): string => /ses_[\w-]+/.exec(text)?.[0] ?? ""

/** All files below a directory, with what others may do with them. */
const openBelow = (directory: string): ReadonlyArray<string> =>
  fs.readdirSync(directory, { withFileTypes: true, recursive: true }).flatMap((entry) => {
    const file = `${entry.parentPath}/${entry.name}`
    return (fs.statSync(file).mode & 0o077) === 0 ? [] : [file]
  })

describe("the state of a workspace", () => {
  it.scopedLive("lies outside of it, for its owner alone, and is found by its real path", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const halted = yield* at.call(["run", "run touch made"])
      assert.strictEqual(halted.code, 3)
      assert.deepStrictEqual(yield* at.list("workspace"), [])
      assert.deepStrictEqual(openBelow(at.path("state")), [])
      const [folder = ""] = fs.readdirSync(at.path("state/workspaces"))
      assert.match(folder, /^workspace-[0-9a-f]{16}$/)
      assert.includeMembers(fs.readdirSync(at.path("state/workspaces", folder)), [
        "audit",
        "sessions.db",
        "workspace.json"
      ])
      // By whatever name one comes.
      fs.symlinkSync(at.path("workspace"), at.path("alias"))
      const listed = yield* at.call(["sessions", "list"], { cwd: at.path("alias") })
      assert.strictEqual(sessionIn(listed.stdout), sessionIn(halted.stderr))
      assert.strictEqual((yield* at.call(["sessions", "list"], { cwd: at.path("home") })).stdout, "")
    })
  )

  it.scopedLive("is out of the agent's reach where the workspace contains it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("home/notes.txt", "n")
      const env = { ASSENT_STATE_DIR: "", ASSENT_CONFIG_DIR: "", XDG_STATE_HOME: at.path("home/var") }
      yield* at.call(["run", "--yolo", "list"], { cwd: at.path("home"), env })
      const state = at.path("home/var/assent")
      assert.isTrue(fs.existsSync(state))
      fs.symlinkSync(state, at.path("home/innocent"))
      const run = (command: string) => ({ name: "run_command", params: { command } })
      const tools = [
        { name: "list_files", params: { path: "var/assent" } },
        { name: "list_files", params: { path: "innocent/workspaces" } },
        { name: "write_file", params: { path: "var/assent/workspaces/x/trust.json", content: "{}" } },
        run("cat var/assent/workspaces/*/sessions.db"),
        run("rm -r var/assent"),
        run(`ls ${state}`),
        run("ls innocent/workspaces")
      ]
      const model = yield* at.script({ tools }, { text: "done" })
      const { stdout } = yield* at.call(["run", "--json", "--yolo", "--model", model, "x"], {
        cwd: at.path("home"),
        env
      })
      const outcomes = Program.events(stdout).flatMap((event) =>
        event._tag === "ToolCallEnded" ? [event.outcome] : []
      )
      assert.lengthOf(outcomes, tools.length)
      assert.notInclude(outcomes, "succeeded")
      const inside = yield* at.call(["run", "x"], { cwd: state, env })
      assert.strictEqual(inside.code, 2)
      assert.include(inside.stderr, "which holds Assent's state; no agent may work there")
    })
  )

  it.scopedLive("that cannot be kept is one sentence and exit code 2", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const file = yield* at.write("file", "in the way")
      const home = (HOME: string) => ({ HOME, ASSENT_STATE_DIR: "", ASSENT_CONFIG_DIR: "" })
      for (const env of [
        { ASSENT_STATE_DIR: `${file}/state` },
        { ASSENT_STATE_DIR: "/proc/assent" },
        home("/proc"),
        home("/dev/null"),
        home(file)
      ]) {
        const { code, stderr, stdout } = yield* at.call(["run", "x"], { env })
        assert.deepStrictEqual([code, stdout], [2, ""])
        assert.match(
          stderr,
          /^assent: Assent cannot store its state in [^\n]+ set ASSENT_STATE_DIR to another one\.\n$/
        )
      }
    })
  )
})

describe("a session", () => {
  it.scopedLive("goes on in its own workspace only, and in the place that it was moved to once it is taken over", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const halted = yield* at.call(["run", "run touch made"])
      const id = sessionIn(halted.stderr)
      yield* at.makeDirectory("other")
      const there = { cwd: at.path("other") }
      const all = yield* at.call(["sessions", "list", "--all"], there)
      assert.match(all.stdout, new RegExp(`^${at.path("workspace")}\n {2}${id}`))
      assert.strictEqual(
        JSON.parse((yield* at.call(["sessions", "list", "--all", "--json"])).stdout).workspace,
        at.path("workspace")
      )
      // Still there: nothing is taken away from it.
      const early = yield* at.call(["sessions", "adopt", at.path("workspace")], there)
      assert.strictEqual(early.code, 2)
      assert.include(early.stderr, "is still there")

      fs.renameSync(at.path("workspace"), at.path("moved"))
      const here = { cwd: at.path("moved") }
      assert.strictEqual((yield* at.call(["run", "--resume", id], here)).code, 2)
      const unnamed = yield* at.call(["sessions", "adopt"], here)
      assert.include(unnamed.stderr, `are gone, and their sessions are stored: ${at.path("workspace")}`)
      const adopted = yield* at.call(["sessions", "adopt", at.path("workspace")], here)
      assert.strictEqual(adopted.code, 0)
      assert.include(adopted.stderr, `1 session of ${at.path("workspace")} works in ${at.path("moved")}`)
      // Its question is open as it was, and its audit is whole.
      const answered = yield* at.call(["sessions", "answer", id], here)
      assert.include(answered.stdout, "touch made")
      assert.strictEqual((yield* at.call(["run", "--resume", id], here)).code, 3)
      const verified = yield* at.call(["audit", "verify"], here)
      assert.strictEqual(verified.code, 0)
      assert.include(verified.stdout, id)
    })
  )

  it.scopedLive(
    "is answered and taken over from another workspace by the beginning of its id, if no other begins so",
    () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const [first = "", second = ""] = yield* Effect.forEach(["workspace", "other"], (name) =>
          Effect.gen(function* () {
            const cwd = yield* at.makeDirectory(name)
            return sessionIn((yield* at.call(["run", `run touch ${name}`], { cwd })).stderr)
          })
        )
        const shared = [...first].findIndex((char, index) => char !== second[index])
        const from = { cwd: yield* at.makeDirectory("third") }
        const both = first.slice(0, shared)
        for (const verb of ["answer", "adopt"]) {
          const refused = yield* at.call(["sessions", verb, both], from)
          assert.strictEqual(refused.code, 2)
          assert.include(refused.stderr, `Sessions of 2 workspaces begin with ${both}: `)
          assert.include(refused.stderr, `${first} (${at.path("workspace")})`)
          assert.include(refused.stderr, `${second} (${at.path("other")})`)
          const unknown = yield* at.call(["sessions", verb, "ses_zzz"], from)
          assert.strictEqual(unknown.code, 2)
        }
        // Without the letters that all begin with, too.
        const shown = yield* at.call(["sessions", "answer", first.slice("ses_".length, shared + 1)], from)
        assert.include(shown.stdout, "touch workspace")
        fs.renameSync(at.path("workspace"), at.path("moved"))
        const adopted = yield* at.call(["sessions", "adopt", first.slice(0, shared + 1)], { cwd: at.path("moved") })
        assert.strictEqual(adopted.code, 0, adopted.stderr)
        assert.include((yield* at.call(["sessions", "list"], { cwd: at.path("moved") })).stdout, first)
        assert.include((yield* at.call(["sessions", "list"], { cwd: at.path("other") })).stdout, second)
      })
  )

  it.scopedLive("of another workspace is read from anywhere, and what else is wanted of it says where it is", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const id = sessionIn((yield* at.call(["run", "run touch made"])).stderr)
      const there = { cwd: yield* at.makeDirectory("other") }
      const reading = ["show", "turns", "replay", "script", "export"]
      for (const isGone of [false, true]) {
        if (isGone) fs.renameSync(at.path("workspace"), at.path("moved"))
        const listed = yield* at.call(["sessions", "list", "--all"], there)
        assert.include(listed.stdout, id)
        for (const verb of reading) {
          const read = yield* at.call(["sessions", verb, id], there)
          assert.deepStrictEqual([verb, read.code, read.stderr], [verb, 0, ""])
          assert.include(read.stdout, "touch made")
        }
        const where = isGone
          ? `Session ${id} belongs to ${at.path("workspace")}, which is gone. Take the session over: assent sessions adopt ${id}.`
          : `Session ${id} belongs to ${at.path("workspace")}. Name that workspace: --workspace ${at.path("workspace")}.`
        for (const words of [
          ["sessions", "delete", id],
          ["sessions", "fork", id],
          ["run", "--resume", id],
          ["chat", "--resume", id]
        ]) {
          const refused = yield* at.call(words, there)
          assert.strictEqual(refused.code, 2, words.join(" "))
          assert.include(refused.stderr, where)
        }
        const unknown = yield* at.call(["sessions", "show", "ses_zzz"], there)
        assert.include(unknown.stderr, "There is no session ses_zzz in ")
      }
      assert.include((yield* at.call(["sessions", "list", "--all"], there)).stdout, id)
    })
  )

  it.scopedLive("of a workspace that was moved is named with the way to take it over, wherever none is found", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const id = sessionIn((yield* at.call(["run", "run touch made"])).stderr)
      const there = { cwd: at.path("moved") }
      const isSaid = (said: string) => said.includes(`assent sessions adopt ${at.path("workspace")}`)
      const words = [
        ["sessions"],
        ["sessions", "list"],
        ["run", "--continue"],
        ["chat", "--continue"],
        ["run", "--resume", "ses_zzz"]
      ]
      yield* at.makeDirectory("beside")
      for (const asked of words)
        assert.isFalse(isSaid((yield* at.call(asked, { cwd: at.path("beside") })).stderr), asked.join(" "))
      fs.renameSync(at.path("workspace"), at.path("moved"))
      for (const asked of words) {
        const { stderr } = yield* at.call(asked, there)
        assert.isTrue(isSaid(stderr), `${asked.join(" ")}: ${stderr}`)
      }
      assert.strictEqual((yield* at.call(["sessions", "adopt", at.path("workspace")], there)).code, 0)
      const adopted = yield* at.call(["sessions"], there)
      assert.include(adopted.stdout, id)
      assert.isFalse(isSaid(adopted.stderr))
      // Several, of which each may be meant.
      for (const name of ["a", "b", "c", "d"]) {
        yield* at.call(["run", "hello"], { cwd: yield* at.makeDirectory(name) })
        fs.rmSync(at.path(name), { recursive: true })
      }
      const { stderr } = yield* at.call(["sessions"], { cwd: at.path("beside") })
      assert.match(stderr, /Sessions are kept of \S+, \S+, \S+ and 1 more, which are gone\..*adopt WORKSPACE\.\n$/)
    })
  )

  it.scopedLive("in a store that several workspaces share is no other's", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const store = ["--store", at.path("shared.db")]
      yield* at.makeDirectory("other")
      const there = { cwd: at.path("other") }
      const id = sessionIn((yield* at.call(["run", ...store, "run touch made"])).stderr)
      const refused = yield* at.call(["run", ...store, "--resume", id], there)
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, `works in ${at.path("workspace")} only`)
      // The last one of this workspace is not the last one of all.
      assert.include((yield* at.call(["run", ...store, "--continue"], there)).stderr, "There are no sessions")
      fs.rmSync(at.path("workspace"), { recursive: true })
      const adopted = yield* at.call(["sessions", "adopt", id, ...store], there)
      assert.strictEqual(adopted.code, 0, adopted.stderr)
      assert.strictEqual((yield* at.call(["run", ...store, "--resume", id], there)).code, 3)
    })
  )

  it.scopedLive("in a store that lies in a workspace goes on once that is trusted", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const store = ["--store", "kept.db"]
      const id = sessionIn((yield* at.call(["run", ...store, "run touch made"])).stderr)
      const refused = yield* at.call(["run", ...store, "--resume", id])
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, "sessions import")
      assert.strictEqual((yield* at.call(["run", ...store, "--resume", id, "--trust"])).code, 3)
    })
  )
})

describe("a store that is taken over", () => {
  it.scopedLive("is one, and a file; what else is named is told by the name that was given", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const text = yield* at.write("text", "No store. ".repeat(100))
      execFileSync("mkfifo", [at.path("pipe")])
      fs.symlinkSync("/dev/zero", at.path("zero"))
      for (const [file, words] of [
        [text, "the file is not a database"],
        [at.path("pipe"), "is not a regular file"],
        [at.path("zero"), "is not a regular file"],
        [at.path("workspace"), "is not a regular file"],
        [at.path("none"), "There is no store"]
      ] as const) {
        const { code, stderr } = yield* at.call(["sessions", "import", file])
        assert.strictEqual(code, 2)
        assert.include(stderr, file)
        assert.include(stderr, words)
      }
      assert.deepStrictEqual(yield* at.list("tmp"), [])
    })
  )
})

describe("trust", () => {
  it.scopedLive("is asked again when a file changes, with each rule and what changed", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const file = "workspace/.assent/permissions.json"
      yield* at.write(file, { whitelist: { patterns: ["touch made"] } })
      const first = yield* at.call(["run", "run touch made"])
      assert.strictEqual(first.code, 3)
      assert.include(first.stderr, "It would allow:\nassent:   calls like touch made\n")
      assert.strictEqual((yield* at.call(["run", "--trust", "run touch made"])).code, 0)
      yield* at.write(file, { whitelist: { patterns: ["touch made", "touch other*"], tools: ["write_file"] } })
      for (const command of ["run touch other", "run touch made"]) {
        const changed = yield* at.call(["run", command])
        assert.strictEqual(changed.code, 3)
        assert.include(changed.stderr, "has changed since you trusted it")
        assert.include(changed.stderr, "the tool write_file, with any arguments")
        assert.match(changed.stderr, /assent: {5}\+ .*touch other\*/)
      }
      assert.strictEqual((yield* at.call(["run", "--trust", "run touch other"])).code, 0)
    })
  )

  it.scopedLive("is told where files that allow nothing deny less than those that were trusted", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const file = "workspace/.assent/permissions.json"
      const begun = (...flags: ReadonlyArray<string>) =>
        Effect.map(at.call(["run", ...flags, "list"]), ({ stderr }) => Program.linesOf(stderr))
      const lost = (what: string) => [
        `assent: ${at.path(file)} no longer denies what it denied when you trusted the directory: ${what}. If you meant that, start with --trust.`
      ]
      const blacklist = { tools: ["fetch_url"], patterns: ["rm *", "git push*"] }
      const approvals = [{ patterns: ["deploy*"], quorum: 2 }]
      yield* at.write(file, { blacklist, approvals })
      assert.deepStrictEqual(yield* begun(), [])
      yield* at.write(file, { blacklist: {} })
      assert.deepStrictEqual(yield* begun(), [], "nobody trusted what it denied")
      yield* at.write(file, { blacklist, approvals })
      assert.deepStrictEqual(yield* begun("--trust"), [])
      yield* at.write(file, {
        blacklist: { patterns: ["git push*", "rm *", "sudo *"], tools: ["fetch_url"] },
        approvals
      })
      assert.deepStrictEqual(yield* begun(), [])
      yield* at.write(file, { blacklist: { patterns: ["git push*"] }, approvals })
      assert.deepStrictEqual(yield* begun(), lost("the tool fetch_url, calls like rm *"))
      fs.rmSync(at.path(file))
      assert.deepStrictEqual(
        yield* begun(),
        lost(
          'the tool fetch_url, calls like rm *, calls like git push*, what is reserved by {"patterns":["deploy*"],"quorum":2}'
        )
      )
      assert.deepStrictEqual(yield* begun("--trust"), [])
      assert.deepStrictEqual(yield* begun(), [])
    })
  )
})
