import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as WorkspaceSettings from "../../../src/host/local/WorkspaceSettings.js"
import * as Instructions from "../../../src/host/local/Instructions.js"
import * as OwnFile from "../../../src/host/local/OwnFile.js"
import * as Computation from "../../kit/Computation.js"

const canary = "out-of-reach-8f3a"

/** A workspace, and beside it what it must not lead to. */
const place = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-door-")))),
    (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
  ),
  (root) => {
    const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
    fs.mkdirSync(at("workspace"))
    fs.mkdirSync(at("home"))
    fs.writeFileSync(at("secret.md"), canary)
    const write = (name: string, text: string) => {
      fs.mkdirSync(path.dirname(at(name)), { recursive: true })
      fs.writeFileSync(at(name), text)
    }
    return { at, write, workspace: at("workspace") }
  }
)

const live = (name: string, body: Effect.Effect<void, never, Scope.Scope>) => it.scopedLive(name, () => body)

type At = Effect.Effect.Success<typeof place>["at"]

/** Ways to put something else in the place of a file; each with the words it is refused with. */
const traps: ReadonlyArray<readonly [string, RegExp, (at: At, file: string) => void]> = [
  ["a named pipe", /is a named pipe and not a file/, (_, file) => execFileSync("mkfifo", [file])],
  ["a directory", /is a directory and not a file/, (_, file) => fs.mkdirSync(file)],
  ["a link to a device", /leads out of the workspace/, (_, file) => fs.symlinkSync("/dev/zero", file)],
  ["a link to a terminal", /leads out of the workspace/, (_, file) => fs.symlinkSync("/dev/tty", file)],
  ["a link to our own memory", /leads out of the workspace/, (_, file) => fs.symlinkSync("/proc/self/environ", file)],
  ["an absolute link out", /leads out of the workspace/, (at, file) => fs.symlinkSync(at("secret.md"), file)],
  [
    "a relative link out",
    /leads out of the workspace/,
    (at, file) => fs.symlinkSync(path.relative(path.dirname(file), at("secret.md")), file)
  ],
  [
    "a link to a link out",
    /leads out of the workspace/,
    (at, file) => {
      fs.symlinkSync(at("secret.md"), at("workspace/hop"))
      fs.symlinkSync(at("workspace/hop"), file)
    }
  ],
  [
    "a link to a pipe inside",
    /is a named pipe/,
    (at, file) => {
      execFileSync("mkfifo", [at("workspace/pipe")])
      fs.symlinkSync("pipe", file)
    }
  ],
  ["a link to nowhere", /leads nowhere/, (at, file) => fs.symlinkSync(at("missing"), file)],
  ["a link to itself", /leads to itself/, (_, file) => fs.symlinkSync(path.basename(file), file)],
  [
    "a file of a terabyte",
    /is larger than 1 MB/,
    (_, file) => {
      fs.writeFileSync(file, "")
      fs.truncateSync(file, 2 ** 40)
    }
  ],
  ["a byte too much", /is larger than 1 MB/, (_, file) => fs.writeFileSync(file, "x".repeat(1_000_001))]
]

describe("a file that a workspace brings", () => {
  for (const [what, words, set] of traps) {
    live(
      `is refused in words when it is ${what}`,
      Effect.gen(function* () {
        const { at, workspace } = yield* place
        set(at, at("workspace/AGENTS.md"))
        const read = () => OwnFile.readIn(workspace, "AGENTS.md", OwnFile.maxSettings)
        assert.isBelow(Computation.least(500, read), 500)
        const content = read()
        assert.strictEqual(content._tag, "Refused")
        assert.match(content._tag === "Refused" ? content.reason : "", words)
      })
    )
  }

  live(
    "is refused when it is a socket",
    Effect.gen(function* () {
      const { workspace } = yield* place
      // The path of a socket has 107 bytes at most, so it is made where it is. Its program is killed, and leaves it.
      const listen = `require("node:net").createServer().listen("s", () => process.kill(process.pid, "SIGKILL"))`
      spawnSync(process.execPath, ["-e", listen], { cwd: workspace })
      assert.deepStrictEqual(OwnFile.readIn(workspace, "s", 100), OwnFile.refused("is a socket and not a file"))
    })
  )

  live(
    "is refused behind a directory that leads out, on any part of the way",
    Effect.gen(function* () {
      const { at, workspace, write } = yield* place
      write("elsewhere/profiles/a.json", canary)
      write("elsewhere/AGENTS.md", canary)
      fs.mkdirSync(at("workspace/.assent"))
      fs.symlinkSync(at("elsewhere/profiles"), at("workspace/.assent/profiles"))
      fs.symlinkSync(at("elsewhere"), at("workspace/packages"))
      for (const name of [".assent/profiles/a.json", "packages/AGENTS.md", "packages/profiles/a.json"]) {
        const content = OwnFile.readIn(workspace, name, 1_000)
        assert.match(content._tag === "Refused" ? content.reason : "", /leads out/)
      }
      assert.match(String(OwnFile.namesIn(workspace, ".assent/profiles", 10)), /leads out/)
    })
  )

  live(
    "is read when it is what it should be, also by a link that stays inside",
    Effect.gen(function* () {
      const { at, workspace, write } = yield* place
      write("workspace/docs/agents.md", "\ufeffBe brief.")
      fs.symlinkSync("docs/agents.md", at("workspace/AGENTS.md"))
      assert.deepStrictEqual(OwnFile.readIn(workspace, "AGENTS.md", 100), { _tag: "Text", text: "Be brief." })
      assert.deepStrictEqual(OwnFile.readIn(workspace, "none/AGENTS.md", 100), OwnFile.absent)
      write("workspace/empty", "")
      assert.deepStrictEqual(OwnFile.readIn(workspace, "empty", 100), { _tag: "Text", text: "" })
    })
  )
})

describe("what a workspace brings", () => {
  live(
    "is only what denies behind a .assent that is a link",
    Effect.gen(function* () {
      const { at, workspace, write } = yield* place
      for (const name of ["permissions.json", "config.json", "instructions.md", "profiles/a.json"]) {
        write(`other/.assent/${name}`, "{}")
      }
      fs.symlinkSync(at("other/.assent"), at("workspace/.assent"))
      const brought = yield* WorkspaceSettings.load(workspace)
      assert.deepStrictEqual([...brought.files.keys()], [".assent/permissions.json"])
      assert.deepStrictEqual(brought.links, [".assent"])
      assert.match(brought.remarks.join(), /is a symbolic link, so only its denying rules count/)
    })
  )

  live(
    "does not grow with a directory that never ends",
    Effect.gen(function* () {
      const { workspace, write } = yield* place
      for (let i = 0; i <= 1_000; i++) write(`workspace/.assent/profiles/${i}.json`, "{}")
      const brought = yield* WorkspaceSettings.load(workspace)
      assert.deepStrictEqual(
        [...brought.files],
        [[".assent/profiles", OwnFile.refused("holds more than 1000 files, and is not read")]]
      )
    })
  )
})

describe("instructions", () => {
  const load = ({ at, workspace }: Effect.Effect.Success<typeof place>) =>
    Effect.flatMap(WorkspaceSettings.load(workspace), (brought) =>
      Instructions.load({ home: at("home"), configDirectory: at("config"), brought })
    ).pipe(Effect.provide(NodeContext.layer))

  live(
    "are those of the home, the root and the folders, nearer ones last, then of .assent",
    Effect.gen(function* () {
      const here = yield* place
      here.write("workspace/.assent/instructions.md", "five")
      here.write("workspace/packages/api/AGENTS.md", "four")
      here.write("workspace/packages/AGENTS.md", "three")
      here.write("workspace/AGENTS.md", "two")
      here.write("home/AGENTS.md", "one")
      for (const name of ["node_modules/a", ".git", "target"]) here.write(`workspace/${name}/AGENTS.md`, "none")
      const { remarks, text } = yield* load(here)
      assert.deepStrictEqual(remarks, [])
      assert.deepStrictEqual(text.match(/one|two|three|four|five|none/g), ["one", "two", "three", "four", "five"])
      assert.include(text, `From packages/api/AGENTS.md, for what is in ${path.join("packages", "api")}:\n\nfour`)
    })
  )

  live(
    "alone stand for themselves",
    Effect.gen(function* () {
      const here = yield* place
      here.write("workspace/AGENTS.md", "Be brief.\n")
      assert.deepStrictEqual(yield* load(here), { text: "Be brief.", remarks: [] })
    })
  )

  live(
    "have 64 kB together, of which folders get what is left, and what is cut is told",
    Effect.gen(function* () {
      const here = yield* place
      here.write("home/AGENTS.md", `${"h".repeat(30_000)}`)
      here.write("workspace/AGENTS.md", `${"r".repeat(30_000)}`)
      here.write("workspace/deep/AGENTS.md", `${"ü".repeat(30_000)}`)
      const { remarks, text } = yield* load(here)
      assert.isAtMost(Buffer.byteLength(text), 64_000)
      assert.strictEqual(text.match(/h{30000}/g)?.length, 1)
      assert.strictEqual(text.match(/r{30000}/g)?.length, 1)
      assert.match(text, /ü{1000,}$/)
      assert.lengthOf(remarks, 1)
      assert.match(remarks.join(), /deep\/AGENTS\.md is cut by \d+ bytes: instructions may have 64 kB together/)
    })
  )

  live(
    "leave out what leads elsewhere, and say so",
    Effect.gen(function* () {
      const here = yield* place
      fs.symlinkSync(here.at("secret.md"), here.at("workspace/AGENTS.md"))
      fs.mkdirSync(here.at("workspace/sub"))
      execFileSync("mkfifo", [here.at("workspace/sub/AGENTS.md")])
      fs.mkdirSync(here.at("workspace/.assent"))
      fs.symlinkSync("/dev/zero", here.at("workspace/.assent/instructions.md"))
      const { remarks, text } = yield* load(here)
      assert.strictEqual(text, "")
      assert.lengthOf(remarks, 3)
    })
  )

  /** The workspace lies two directories below a repository's root. */
  const inRepository = Effect.map(place, (here) => {
    const workspace = here.at("r/packages/api")
    fs.mkdirSync(workspace, { recursive: true })
    execFileSync("git", ["init", "-q", here.at("r")])
    return { ...here, workspace }
  })

  live(
    "begin at the repository's root if the workspace lies below it",
    Effect.gen(function* () {
      const here = yield* inRepository
      here.write("AGENTS.md", "none")
      here.write("home/AGENTS.md", "one")
      here.write("r/AGENTS.md", "two")
      here.write("r/packages/AGENTS.md", "three")
      here.write("r/packages/api/AGENTS.md", "four")
      here.write("r/packages/web/AGENTS.md", "none")
      const { remarks, text } = yield* load(here)
      assert.deepStrictEqual(remarks, [])
      assert.deepStrictEqual(text.match(/one|two|three|four|none/g), ["one", "two", "three", "four"])
      assert.include(text, `From ${here.at("r/AGENTS.md")}:\n\ntwo`)
    })
  )

  live(
    "of a repository's root are cut before those of the workspace",
    Effect.gen(function* () {
      const here = yield* inRepository
      here.write("r/AGENTS.md", "r".repeat(60_000))
      here.write("r/packages/api/AGENTS.md", "w".repeat(60_000))
      const { remarks, text } = yield* load(here)
      assert.strictEqual(text.match(/w{60000}/g)?.length, 1)
      assert.isTrue(remarks.join().startsWith(`${here.at("r/AGENTS.md")} is cut by `))
    })
  )

  live(
    "of a repository's root stay in the repository",
    Effect.gen(function* () {
      const here = yield* inRepository
      fs.symlinkSync(here.at("secret.md"), here.at("r/AGENTS.md"))
      const { remarks, text } = yield* load(here)
      assert.deepStrictEqual(
        [text, remarks],
        ["", [`${here.at("r/AGENTS.md")} leads out of the workspace by a symbolic link, and is not read.`]]
      )
    })
  )

  const strange: ReadonlyArray<readonly [string, (here: Effect.Effect.Success<typeof inRepository>) => void]> = [
    ["that holds the home", ({ at }) => fs.renameSync(at("home"), at("r/home"))],
    [
      "whose .git is a link",
      ({ at }) => (fs.renameSync(at("r/.git"), at("git")), fs.symlinkSync("../git", at("r/.git")))
    ],
    ["that is none", ({ at }) => fs.rmSync(at("r/.git/HEAD"))]
  ]
  for (const [name, change] of strange)
    live(
      `are not those of a repository ${name}`,
      Effect.gen(function* () {
        const here = yield* inRepository
        here.write("r/AGENTS.md", "two")
        change(here)
        const home = fs.existsSync(here.at("home")) ? here.at("home") : here.at("r/home")
        const { text } = yield* load({ ...here, at: (...parts) => (parts[0] === "home" ? home : here.at(...parts)) })
        assert.strictEqual(text, "")
      })
    )

  live(
    "are those of CLAUDE.md in a directory without AGENTS.md, and that is said",
    Effect.gen(function* () {
      const here = yield* inRepository
      here.write("home/CLAUDE.md", "one")
      here.write("r/CLAUDE.md", "two")
      here.write("r/packages/AGENTS.md", "three")
      here.write("r/packages/CLAUDE.md", "none")
      here.write("r/packages/api/CLAUDE.md", "four")
      here.write("r/packages/api/src/CLAUDE.md", "five")
      const { remarks, text } = yield* load(here)
      assert.deepStrictEqual(text.match(/one|two|three|four|five|none/g), ["one", "two", "three", "four", "five"])
      const said = ["home", "r", "r/packages/api", "r/packages/api/src"].map((folder) => here.at(folder, "CLAUDE.md"))
      assert.deepStrictEqual(remarks, [`${said.join(", ")}: read, because there is no AGENTS.md beside it.`])
    })
  )
})

describe("a file that the person names", () => {
  /** As a shell leaves it for `<(…)`: a pipe that is open, whose other end has written. */
  const pipe = (file: string, text: string) => {
    execFileSync("mkfifo", [file])
    const reading = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
    const writing = fs.openSync(file, "w")
    fs.writeSync(writing, text)
    fs.closeSync(writing)
    return reading
  }

  for (const [text, found] of [
    ["{}", { _tag: "Text", text: "{}" }],
    ["x".repeat(11), OwnFile.refused("is larger than 0.01 kB")]
  ] as const) {
    live(
      `may be a pipe of their shell, of bounded size: ${found._tag}`,
      Effect.gen(function* () {
        const { at } = yield* place
        const descriptor = pipe(at("pipe"), text)
        assert.deepStrictEqual(OwnFile.readGiven(`/dev/fd/${descriptor}`, 10), found)
        fs.closeSync(descriptor)
        // By its own name somebody would have to write into it first.
        assert.deepStrictEqual(OwnFile.readGiven(at("pipe"), 10), OwnFile.refused("is a named pipe and not a file"))
      })
    )
  }

  live(
    "is refused when it is a device",
    Effect.sync(() => {
      assert.deepStrictEqual(OwnFile.readGiven("/dev/zero", 10), OwnFile.refused("is a device and not a file"))
    })
  )
})
