/** Files that decide, and how an agent comes to them: by any path, by any tool, with a sandbox and without. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"

const policy = { defaultPolicy: "allow" }
const profile = "name: helper\ndescription: helps\n"

interface Case {
  readonly what: string
  /** The file that decides, and what it holds. */
  readonly file: string
  readonly content: unknown
  /** Links by which it is reached: from, to. */
  readonly links?: ReadonlyArray<readonly [from: string, to: string]>
  readonly flags?: ReadonlyArray<string>
}

const cases: ReadonlyArray<Case> = [
  { what: "a policy that is named", file: "workspace/p.json", content: policy, flags: ["--policy", "p.json"] },
  {
    what: "a policy deep in the workspace",
    file: "workspace/ci/assent/p.json",
    content: policy,
    flags: ["--policy", "ci/assent/p.json"]
  },
  {
    what: "a policy behind a link",
    file: "workspace/real.json",
    content: policy,
    links: [["workspace/p.json", "real.json"]],
    flags: ["--policy", "p.json"]
  },
  {
    what: "a policy behind a link to its directory",
    file: "workspace/real/p.json",
    content: policy,
    links: [["workspace/dir", "real"]],
    flags: ["--policy", "dir/p.json"]
  },
  {
    what: "a policy in an added directory",
    file: "other/p.json",
    content: policy,
    flags: ["--policy", "../other/p.json", "--add-dir", "../other"]
  },
  {
    what: "a policy in an added directory that is named by a link",
    file: "other/p.json",
    content: policy,
    links: [["added", "other"]],
    flags: ["--policy", "../other/p.json", "--add-dir", "../added"]
  },
  {
    what: "the person's policy, which is a link into the workspace",
    file: "workspace/rules.json",
    content: policy,
    links: [["config/permissions.json", "../workspace/rules.json"]]
  },
  {
    what: "the person's settings, which are a link into the workspace",
    file: "workspace/settings.json",
    content: { mode: "allow" },
    links: [["config/config.json", "../workspace/settings.json"]]
  },
  {
    what: "a profile in a directory that is a link into the workspace",
    file: "workspace/recipes/helper.yaml",
    content: profile,
    links: [["config/profiles", "../workspace/recipes"]],
    flags: ["--yolo"]
  },
  {
    what: "a profile that is a link into the workspace",
    file: "workspace/helper.yaml",
    content: profile,
    links: [["config/profiles/helper.yaml", "../../workspace/helper.yaml"]],
    flags: ["--yolo"]
  }
]

const call = (name: string, params: Record<string, unknown>) => ({ name, params })

/** Lays a case down, and yields what it looks like. */
const begin = ({ content, file, links = [] }: Case) =>
  Effect.gen(function* () {
    const at = yield* Program.place
    yield* at.write(file, content)
    for (const [from, to] of links) {
      yield* at.makeDirectory(path.dirname(from))
      yield* at.link(to, from)
    }
    const names = [file, ...links.map(([from]) => from)]
    const look = Effect.sync(() => ({
      text: fs.readFileSync(at.path(file), "utf8"),
      targets: links.map(([from]) => fs.readlinkSync(at.path(from))),
      isFile: fs.lstatSync(at.path(file)).isFile()
    }))
    return { at, look, before: yield* look, names: names.map((name) => at.path(name)) }
  })

describe.concurrent.each(cases)("$what", (one) => {
  it.scopedLive("is written by no tool", () =>
    Effect.gen(function* () {
      const { at, before, look, names } = yield* begin(one)
      const upper = names.map((name) => path.join(path.dirname(name), path.basename(name).toUpperCase()))
      const tries = names.flatMap((name) => [
        call("write_file", { path: name, content: "{}" }),
        call("edit_file", { path: name, old_text: "e", new_text: "E", replace_all: true }),
        call("run_command", { command: `echo '{}' > ${path.relative(at.path("workspace"), name)}` }),
        call("run_command", { command: `mv ${name} ${name}.old` }),
        call("run_command", { command: `ln -f made ${name}` }),
        call("run_command", { command: `cd ${path.dirname(name)} && rm -f ${path.basename(name)}` })
      ])
      const model = yield* at.script({ text: "So.", tools: tries }, { text: "done" })
      const { code, stderr } = yield* at.call(["run", "--json", "--model", model, ...(one.flags ?? []), "x"])
      assert.strictEqual(code, 0, stderr)
      assert.deepStrictEqual(yield* look, before)
      assert.notInclude(stderr, "changed since the start")
      assert.deepStrictEqual(
        upper.filter((name) => fs.existsSync(name)),
        []
      )
    })
  )

  it.scopedLive.skipIf(!Confined.isWanted)("is changed by no confined command", () =>
    Effect.gen(function* () {
      const { at, before, look, names } = yield* begin(one)
      const lines = names.flatMap((name) => [
        `echo evil > ${name}`,
        `cp evil ${name}`,
        `ln -f evil ${name}`,
        `ln ${name} another && echo evil > another`,
        `ln -sfn evil ${name}`,
        `mv ${name} gone`,
        `rm -rf ${name}`,
        `mv ${path.dirname(name)} ${path.dirname(name)}.old && mkdir ${path.dirname(name)} && cp evil ${name}`
      ])
      yield* at.write("workspace/evil", "evil\n")
      yield* at.write("workspace/build.sh", `${lines.join(" 2>/dev/null\n")} 2>/dev/null\ntouch ran\n`)
      const model = yield* at.script(
        { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] },
        { text: "k" }
      )
      const flags = [...(one.flags ?? []), "--sandbox", "require"]
      const { code, stderr } = yield* at.call(["run", "--json", "--model", model, ...flags, "x"])
      assert.strictEqual(code, 0, stderr)
      assert.isTrue(yield* at.exists("workspace/ran"))
      assert.deepStrictEqual(yield* look, before)
    })
  )

  it.scopedLive("is told to the person, once, when a command changed it by another way", () =>
    Effect.gen(function* () {
      const { at } = yield* begin(one)
      // A script can do what no reading of its command line tells.
      yield* at.write("workspace/build.sh", `echo ' ' >> ${at.path(one.file)}\n`)
      const build = { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] }
      const model = yield* at.script(build, build, { text: "done" })
      const { code, stderr } = yield* at.call(["run", "--json", "--model", model, ...(one.flags ?? []), "x"])
      assert.strictEqual(code, 0, stderr)
      assert.match(stderr, /changed since the start\. This session continues with the former text\./)
      for (const line of new Set(stderr.split("\n"))) {
        if (line !== "") assert.strictEqual(stderr.split(line).length, 2, line)
      }
    })
  )
})

describe.concurrent("the configuration directory as the workspace", () => {
  it.scopedLive("has the person's own files out of reach, also those that are not there yet", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", policy)
      const names = ["permissions.json", "config.json", "profiles/new.json", "notes.md"]
      const tools = names.map((name) => call("write_file", { path: name, content: "{}" }))
      const model = yield* at.script({ text: "So.", tools }, { text: "done" })
      const { code, stderr } = yield* at.call(["run", "--json", "--model", model, "x"], { cwd: at.path("config") })
      assert.strictEqual(code, 0, stderr)
      assert.deepStrictEqual(JSON.parse(yield* at.read("config/permissions.json")), policy)
      assert.deepStrictEqual(
        names.filter((name) => fs.existsSync(at.path("config", name))),
        ["permissions.json", "notes.md"]
      )
    })
  )
})

describe.concurrent("a link on the way to a policy", () => {
  it.scopedLive.skipIf(!Confined.isWanted)(
    "that a confined command replaces by a directory is told to the person",
    () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("workspace/real/p.json", policy)
        yield* at.link("real", "workspace/dir")
        yield* at.write("workspace/build.sh", "rm dir && mkdir dir && echo '{}' > dir/p.json\ntouch ran\n")
        const model = yield* at.script(
          { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] },
          { text: "k" }
        )
        const args = ["run", "--json", "--model", model, "--policy", "dir/p.json", "--sandbox", "require", "x"]
        const { code, stderr } = yield* at.call(args)
        assert.strictEqual(code, 0, stderr)
        assert.isTrue(yield* at.exists("workspace/ran"))
        assert.deepStrictEqual(JSON.parse(yield* at.read("workspace/real/p.json")), policy)
        const isBack = fs.lstatSync(at.path("workspace/dir")).isSymbolicLink()
        assert.strictEqual(stderr.includes("dir/p.json changed since the start"), !isBack)
      })
  )
})

describe.concurrent("a hard link to a policy", () => {
  it.scopedLive.skipIf(!Confined.isWanted)("is as closed for a confined command, and no tool writes through it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/p.json", policy)
      fs.linkSync(at.path("workspace/p.json"), at.path("workspace/other.json"))
      yield* at.write("workspace/build.sh", "echo evil > other.json\ntouch ran\n")
      const model = yield* at.script(
        { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] },
        { text: "So.", tools: [call("write_file", { path: "other.json", content: "{}" })] },
        { text: "done" }
      )
      const args = ["run", "--json", "--model", model, "--policy", "p.json", "--sandbox", "require", "x"]
      const { code, stderr } = yield* at.call(args)
      assert.strictEqual(code, 0, stderr)
      assert.isTrue(yield* at.exists("workspace/ran"))
      assert.deepStrictEqual(JSON.parse(yield* at.read("workspace/p.json")), policy)
    })
  )
})

describe.concurrent("a key", () => {
  it.scopedLive("is read by no tool, under no name", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const secret = "0123456789abcdef-the-key"
      yield* at.write("workspace/keys/k", secret)
      fs.chmodSync(at.path("workspace/keys/k"), 0o600)
      yield* at.link("keys/k", "workspace/key")
      const tries = ["key", "keys/k", "./keys/../key"].flatMap((name) => [
        call("read_file", { path: name }),
        call("write_file", { path: name, content: "another key, long enough" }),
        call("run_command", { command: `cat ${name}` })
      ])
      const model = yield* at.script(
        { text: "So.", tools: [...tries, call("search_files", { pattern: "the-key" })] },
        { text: "k" }
      )
      const args = ["run", "--json", "--yolo", "--model", model, "--key", "key", "x"]
      const { code, stderr, stdout } = yield* at.call(args)
      assert.strictEqual(code, 0, stderr)
      assert.notInclude(stdout, "abcdef-the-key")
      assert.strictEqual(yield* at.read("workspace/keys/k"), secret)
    })
  )

  it.scopedLive("with another name is refused", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("keys/k", "0123456789abcdef")
      fs.chmodSync(at.path("keys/k"), 0o600)
      fs.linkSync(at.path("keys/k"), at.path("workspace/copy"))
      const { code, stderr } = yield* at.call(["run", "--key", at.path("keys/k"), "x"])
      assert.strictEqual(code, 2)
      assert.include(stderr, "has another name, a hard link")
    })
  )
})

describe.concurrent("the script of a model", () => {
  it.scopedLive("in the workspace is written by no tool, and a subagent plays the one of the start", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/permissions.json", policy)
      yield* at.write("config/profiles/helper.json", {
        name: "helper",
        description: "helps",
        model: "script:helper.yaml"
      })
      const helper = (text: string) => `version: 1\nagents:\n  helper:\n    - text: ${text}\n`
      yield* at.write("workspace/helper.yaml", helper("before"))
      yield* at.write("workspace/main.json", {
        version: 1,
        agents: {
          main: [
            {
              text: "So.",
              tools: [
                call("write_file", { path: "helper.yaml", content: helper("after") }),
                call("write_file", { path: "main.json", content: "{}" })
              ]
            },
            { text: "So.", tools: [call("delegate", { task: "go", profile: "helper" })] },
            { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] },
            { text: "So.", tools: [call("delegate", { task: "go", profile: "helper" })] },
            { text: "done" }
          ]
        }
      })
      yield* at.write("workspace/build.sh", `sed -i s/before/after/ ${at.path("workspace/helper.yaml")}\n`)
      const { code, stderr, stdout } = yield* at.call(["run", "--json", "--model", "script:main.json", "x"])
      assert.strictEqual(code, 0, stderr)
      assert.include(stdout, "before")
      assert.notInclude(stdout, '"text":"after"')
      assert.include(stdout, "helper.yaml changed since the start. Start again to use it.")
      assert.include(stderr, "helper.yaml changed since the start")
    })
  )
})

describe.concurrent("an editor", () => {
  it.scopedLive("that replaces the policy changes nothing in the session, and the person is told", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/p.json", { whitelist: { patterns: ["sh build.sh"] } })
      yield* at.write("edited.json", policy)
      yield* at.write("workspace/build.sh", `mv ${at.path("edited.json")} ${at.path("workspace/p.json")}\n`)
      const model = yield* at.script(
        { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] },
        { text: "So.", tools: [call("run_command", { command: "touch made" })] },
        { text: "done" }
      )
      const { code, stderr } = yield* at.call(["run", "--json", "--model", model, "--policy", "p.json", "x"])
      assert.strictEqual(code, 3, stderr)
      assert.isFalse(yield* at.exists("workspace/made"))
      assert.include(stderr, `${at.path("workspace/p.json")} changed since the start.`)
    })
  )

  it.scopedLive("that saves the same text again is not told of", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("workspace/p.json", policy)
      yield* at.write("workspace/build.sh", "cp p.json copy\ncp copy p.json\n")
      const model = yield* at.script(
        { text: "So.", tools: [call("run_command", { command: "sh build.sh" })] },
        { text: "k" }
      )
      const { stderr } = yield* at.call(["run", "--json", "--model", model, "--policy", "p.json", "x"])
      assert.notInclude(stderr, "changed since the start")
    })
  )
})
