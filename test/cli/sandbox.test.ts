import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"

const env = { ASSENT_SANDBOX: "auto" }

/** The events of a run whose model runs these command lines. */
const events = (stdout: string): ReadonlyArray<Record<string, unknown>> =>
  stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]))

const calling = (params: Record<string, unknown>) => ({ text: "So.", tools: [{ name: "run_command", params }] })

describe.concurrent("the sandbox of the command line", () => {
  it.scopedLive("takes the modes there are, and directories that are there", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const wrong = yield* at.call(["run", "--sandbox", "on", "x"])
      assert.deepStrictEqual(wrong, {
        code: 2,
        stdout: "",
        stderr: 'assent: --sandbox takes auto, require, off, not "on".\n'
      })
      const missing = yield* at.call(["run", "--add-dir", at.path("missing"), "x"])
      assert.strictEqual(missing.code, 2)
      assert.include(missing.stderr, "is not a directory")
      const all = yield* at.call(["run", "--add-dir", "/", "x"])
      assert.strictEqual(all.code, 2)
      assert.include(all.stderr, "--add-dir / is too wide")
      yield* at.write("config/config.json", { sandbox: { writable: ["/etc"] } })
      const etc = yield* at.call(["run", "x"])
      assert.strictEqual(etc.code, 2)
      assert.include(etc.stderr, "sandbox.writable: /etc is too wide")
    })
  )

  it.scopedLive("gives file tools the directories that the person added, but for what is not theirs", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("other/there", "there\n")
      yield* at.write("other/.assent/permissions.json", { whitelist: { tools: ["*"] } })
      yield* at.write("config/permissions.json", { defaultPolicy: "allow" })
      const write = (path: string) => ({ name: "write_file", params: { path, content: "new\n" } })
      const model = yield* at.script(
        { text: "So.", tools: [write(at.path("other/new")), write(at.path("other/.assent/x"))] },
        { text: "Now.", tools: [{ name: "read_file", params: { path: at.path("other/there") } }] },
        { expect: { contains: "there" }, text: "done" }
      )
      const args = ["run", "--json", "--model", model, "--add-dir", at.path("other"), "x"]
      const { code, stderr } = yield* at.call(args, { env: { ASSENT_SANDBOX: "off" } })
      assert.strictEqual(code, 0, stderr)
      assert.strictEqual(yield* at.read("other/new"), "new\n")
      assert.isFalse(yield* at.exists("other/.assent/x"))
    })
  )

  it.scopedLive("is told by permissions", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stdout } = yield* at.call(["permissions"], { env })
      assert.strictEqual(code, 0)
      assert.match(stdout, /^sandbox: auto, (?:by bubblewrap: commands write in .* only|commands run without one: )/m)
    })
  )

  describe.skipIf(!Confined.isWanted)("where there is one", { concurrent: true }, () => {
    it.scopedLive("lets confined commands run unasked when the policy says so, and says how they ran", () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { whitelist: { sandboxed: true } })
        // What a script does, no reading of the command line can tell.
        const out = at.path("out")
        yield* at.write("workspace/build.sh", `echo in > made; echo out > ${out}; cat ${at.path("config")}/*; exit 1\n`)
        const told = { expect: { contains: "It ran in a sandbox" }, text: "done" }
        const model = yield* at.script(calling({ command: "sh build.sh" }), told)
        const { code, stderr, stdout } = yield* at.call(["run", "--json", "--model", model, "x"], { env })
        assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
        assert.strictEqual(yield* at.read("workspace/made"), "in\n")
        assert.isFalse(yield* at.exists("out"))
        const resolved = events(stdout).find(({ _tag }) => _tag === "PermissionResolved")
        assert.include(resolved, { granted: true, method: "whitelist", sandbox: "confined" })
        const audit = yield* at.call(["audit", "verify"], { env })
        assert.strictEqual(audit.code, 0)
        assert.include(yield* at.allText, '"sandbox":"confined"')
      })
    )

    it.scopedLive("asks on its own for a command that is to leave it, whatever lets commands run", () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", {
          defaultPolicy: "allow",
          whitelist: { sandboxed: true, tools: ["run_command"], patterns: ["echo *"] }
        })
        const params = {
          command: `echo out > ${at.path("workspace/out")}`,
          sandbox: "off",
          reason: "It needs the network."
        }
        const model = yield* at.script(calling(params), { text: "done" })
        const asked = yield* at.call(["run", "--json", "--model", model, "x"], { env })
        assert.strictEqual(asked.code, 3, asked.stderr)
        assert.isFalse(yield* at.exists("workspace/out"))
        const yolo = yield* at.call(["run", "--json", "--yolo", "--model", model, "x"], { env })
        assert.strictEqual(yolo.code, 0)
        const resolved = events(yolo.stdout).find(({ _tag }) => _tag === "PermissionResolved")
        assert.include(resolved, { granted: true, sandbox: "left" })
        assert.strictEqual(yield* at.read("workspace/out"), "out\n")
      })
    )

    it.scopedLive("gives a home to commands when the person says so for once, without what is Assent's own", () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const said = (directory: string, ...flags: ReadonlyArray<string>) =>
          Effect.map(
            at.call(["permissions", "--workspace", at.path(directory), ...flags], { env }),
            ({ stdout }) => stdout
          )
        assert.match(yield* said("home"), /^sandbox: auto, commands run without one: .* holds your home.*--allow-home/m)
        assert.match(yield* said("home", "--allow-home"), /^sandbox: auto, by bubblewrap/m)
        assert.match(yield* said("config", "--allow-home"), /^sandbox: auto, commands run without one: .* belongs to/m)
        yield* at.write("home/.ssh/id", "s3cret\n")
        yield* at.write("config/permissions.json", { whitelist: { sandboxed: true } })
        yield* at.write("home/go.sh", "cat .ssh/id > out; echo evil > .profile\n")
        const model = yield* at.script(calling({ command: "sh go.sh" }), { text: "done" })
        const args = ["run", "--allow-home", "--workspace", at.path("home"), "--model", model, "x"]
        const told = yield* at.call(args, { env })
        assert.strictEqual(told.code, 0, told.stderr)
        assert.strictEqual(yield* at.read("home/out"), "")
        assert.isFalse(yield* at.exists("home/.profile"))
        assert.include(told.stderr, ".profile appeared, which acts later")
      })
    )

    const acting = [
      { line: "git init -q --bare docs", place: "docs/HEAD" },
      { line: "git init -q new", place: "new/.git" },
      { line: "perl -e 'mkdir q(sub); mkdir q(sub/.hg)'", place: "sub/.hg" },
      { line: "mkdir -p deep/er; cd deep/er; mkdir objects refs; : > HEAD", place: "deep/er/HEAD" }
    ]
    it.scopedLive.each(acting)("says to the person, tells and records what was set aside: $line", ({ line, place }) =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { whitelist: { sandboxed: true } })
        const model = yield* at.script(calling({ command: line }), { expect: { contains: "moved to" }, text: "done" })
        const told = yield* at.call(["run", "--json", "--model", model, "x"], { env })
        assert.strictEqual(told.code, 0, told.stderr)
        const events = told.stdout.split("\n").filter((row) => row.includes('"FilesSetAside"'))
        assert.lengthOf(events, 1)
        const { notices, sessionId } = JSON.parse(events[0] ?? "")
        assert.lengthOf(notices, 1)
        const [notice] = notices
        assert.isTrue(notice.startsWith(`[${place} `) || notice.startsWith(`[${place.replace("HEAD", "HEAD makes")} `))
        const to = /it was moved to (\S+?)\.(?: |\])/.exec(notice)?.[1] ?? ""
        assert.isTrue(yield* at.exists(to), notice)
        assert.isFalse(yield* at.exists(`workspace/${place}`))
        const trail = yield* at.call(["audit", "show", sessionId], { env })
        assert.match(trail.stdout, /files_set_aside/)
        assert.include(trail.stdout.replace(/\s+/g, " "), place)
        assert.strictEqual((yield* at.call(["audit", "verify"], { env })).code, 0)
      })
    )

    it.scopedLive("says in words what was set aside, and nothing where nothing was", () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { whitelist: { sandboxed: true } })
        const bare = yield* at.script(calling({ command: "git init -q --bare docs" }), { text: "done" })
        const told = yield* at.call(["run", "--model", bare, "x"], { env })
        assert.strictEqual(told.code, 0, told.stderr)
        assert.include(
          told.stderr,
          "docs/HEAD makes docs a git directory; its settings take effect when git runs there"
        )
        const plain = yield* at.script(calling({ command: "mkdir docs2; : > docs2/HEAD" }), { text: "done" })
        const silent = yield* at.call(["run", "--json", "--model", plain, "x"], { env })
        assert.strictEqual(silent.code, 0, silent.stderr)
        assert.notInclude(silent.stdout, "FilesSetAside")
        assert.notInclude(silent.stderr, "HEAD")
      })
    )

    it.scopedLive("wants a reason for that", () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const model = yield* at.script(calling({ command: "true", sandbox: "off" }), {
          expect: { contains: "Say in reason why" },
          text: "done"
        })
        const result = yield* at.call(["run", "--model", model, "x"], { env })
        assert.strictEqual(result.code, 0, result.stderr)
      })
    )

    it.scopedLive("leaves nothing that runs behind a process that is killed", () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { whitelist: { sandboxed: true } })
        const mark = path.basename(at.path("."))
        const model = yield* at.script(
          calling({ command: `setsid sh -c 'while :; do echo ${mark} >> alive; sleep 0.05; done' & wait` }),
          { text: "done" }
        )
        const program = yield* at.start(["run", "--model", model, "x"], { env })
        yield* at.appears("workspace/alive")
        const left = () => Program.processesWith(`echo ${mark} `)
        assert.isNotEmpty(left())
        yield* program.signal("SIGKILL")
        yield* program.exit
        yield* Program.until(() => left().length === 0, "none is left")
      })
    )
  })
})
