import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import { execFileSync } from "node:child_process"
import * as ProfileLoader from "../../src/subagent/ProfileLoader.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"

const kit = Toolkit.make(
  Tool.make("look").annotate(ToolTrait.Groups, ["files"]),
  Tool.make("change").annotate(ToolTrait.Groups, ["files", "edits"])
)

const tools = ToolRegistry.make(kit).pipe(
  Effect.provide(kit.toLayer({ look: () => Effect.void, change: () => Effect.void }))
)

const variables = (name: string) =>
  new Map([
    ["HOME", "/home/me"],
    ["TOKEN", "s3cret"],
    ["workspaceRoot", "/w"]
  ]).get(name)

/** Two directories and what is found in them; `a` wins. */
const place = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fileSystem.makeTempDirectoryScoped()
  for (const name of ["a", "b"]) yield* fileSystem.makeDirectory(path.join(root, name))
  const registry = yield* tools
  const context = { variables, tools: registry }
  const at = (name: string) => path.join(root, name)
  const load = (trusted = true) =>
    Effect.map(
      ProfileLoader.load({
        ...context,
        directories: [
          { path: at("a"), trusted },
          { path: at("missing"), trusted },
          { path: at("b"), trusted: true }
        ]
      }),
      ({ profiles, problems, warnings }) => ({
        profiles,
        problems: problems.map((one) => `${path.relative(root, one.file)} ${one.path}: ${one.message}`),
        warnings: warnings.map((one) => `${path.relative(root, one.file)} ${one.path}: ${one.message}`)
      })
    )
  const write = (name: string, content: unknown) =>
    fileSystem.writeFileString(at(name), typeof content === "string" ? content : JSON.stringify(content))
  return { at, load, write, context, fileSystem }
})

const shipped = ["code_reviewer", "explore", "plan"]

const live = <A, E>(name: string, body: Effect.Effect<A, E, NodeContext.NodeContext | import("effect/Scope").Scope>) =>
  it.scopedLive(name, () => Effect.provide(body, NodeContext.layer))

describe("ProfileLoader", () => {
  live(
    "has the shipped profiles where there is no directory",
    Effect.gen(function* () {
      const registry = yield* tools
      const directories = [{ path: "/nowhere/at/all", trusted: true }]
      const loaded = yield* ProfileLoader.load({ directories, variables, tools: registry })
      assert.deepStrictEqual([...loaded.profiles.keys()], shipped)
      assert.deepStrictEqual(loaded.problems, [])
      assert.deepStrictEqual(loaded.warnings, [])
    })
  )

  live(
    "reads JSON and YAML, names a profile by its field or its file, and passes over other files",
    Effect.gen(function* () {
      const { at, load, write } = yield* place
      yield* write("a/one.json", "\ufeff" + JSON.stringify({ description: "first" }))
      yield* write("a/two.yaml", "name: second\ndescription: >\n  folded\n  text\nplugins: [files]\n")
      yield* write("a/three.YML", "description: third\nplugins: []\n")
      yield* write("a/notes.txt", "no profile")
      yield* write("a/.hidden.json", "{")
      const { problems, profiles } = yield* load()
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual([...profiles.keys()], [...shipped, "one", "second", "three"].toSorted())
      assert.strictEqual(profiles.get("second")?.description, "folded text")
      assert.strictEqual(profiles.get("second")?.source, at("a/two.yaml"))
      assert.deepStrictEqual(profiles.get("three")?.plugins, [])
      assert.isNull(profiles.get("one")?.plugins)
    })
  )

  live(
    "takes the first directory that has a name, and the shipped ones last",
    Effect.gen(function* () {
      const { at, load, write } = yield* place
      yield* write("b/explore.json", { description: "of b" })
      yield* write("b/mine.json", { description: "of b" })
      yield* write("a/mine.json", { description: "of a" })
      const { problems, profiles } = yield* load()
      assert.deepStrictEqual(problems, [])
      assert.strictEqual(profiles.get("explore")?.source, at("b/explore.json"))
      assert.strictEqual(profiles.get("mine")?.description, "of a")
      assert.strictEqual(profiles.get("plan")?.source, "built-in")
    })
  )

  live(
    "takes the first of two in one directory, by file name, and tells of the second",
    Effect.gen(function* () {
      const { at, load, write } = yield* place
      yield* write("a/z.json", { name: "x", description: "z" })
      yield* write("a/B.json", { name: "x", description: "B" })
      yield* write("a/c.yaml", "name: x\ndescription: c\n")
      const { problems, profiles } = yield* load()
      assert.strictEqual(profiles.get("x")?.description, "B")
      assert.deepStrictEqual(problems, [
        `a/c.yaml $.name: x is already the name of ${at("a/B.json")}`,
        `a/z.json $.name: x is already the name of ${at("a/B.json")}`
      ])
    })
  )

  live(
    "reads no more of a directory than a start can wait for, and says so",
    Effect.gen(function* () {
      const { load, write } = yield* place
      for (const name of ["a", "b", "c", "d"]) yield* write(`a/${name}.json`, { description: "x".repeat(90_000) })
      const { problems, profiles } = yield* load()
      assert.deepStrictEqual(
        [...profiles.keys()].filter((name) => name.length === 1),
        ["a", "b"]
      )
      assert.deepStrictEqual(problems, [
        "a/c.json $: it and those behind it are not read: all files of a directory have at most 200 kB"
      ])
    })
  )

  live(
    "tells every problem of every file, and uses the files that are good",
    Effect.gen(function* () {
      const { fileSystem, at, load, write } = yield* place
      yield* write("a/bad.json", { plugins: 3, max_turns: 0 })
      yield* write("a/cut.json", '{"description": ')
      yield* write("a/cut.yaml", "description: [")
      yield* write("a/empty.yml", "")
      yield* write("a/good.json", { description: "good" })
      yield* write("a/two.yaml", "description: a\n---\ndescription: b\n")
      yield* fileSystem.makeDirectory(at("a/folder.json"))
      yield* write("a/large.json", { description: "x".repeat(1_000_001) })
      yield* write("outside.json", { description: "outside" })
      yield* fileSystem.symlink(at("outside.json"), at("a/link.json"))
      yield* fileSystem.symlink(at("nothing"), at("a/torn.json"))
      const { problems, profiles } = yield* load()
      assert.deepStrictEqual([...profiles.keys()], [...shipped, "good"].toSorted())
      const told = (file: string) =>
        problems.filter((line) => line.startsWith(`a/${file} `)).map((line) => line.slice(file.length + 3))
      assert.strictEqual(told("bad.json").length, 3)
      assert.match(told("cut.json").join("\n"), /^\$: not JSON: [^\n]+$/)
      assert.match(told("cut.yaml").join("\n"), /^\$: not YAML: [^\n]+$/)
      assert.include(told("empty.yml")[0], "$: Expected a profile such as")
      assert.include(told("two.yaml")[0], "$: not YAML")
      assert.deepStrictEqual(told("folder.json"), ["$: it is a directory"])
      assert.deepStrictEqual(told("large.json"), ["$: it is larger than 100 kB"])
      assert.deepStrictEqual(told("link.json"), ["$: a symbolic link is not read; put the file itself here"])
      assert.deepStrictEqual(told("torn.json"), told("link.json"))
      assert.strictEqual(problems.length, 11)
    })
  )

  live(
    "does not wait for a pipe",
    Effect.gen(function* () {
      const { at, load } = yield* place
      yield* Effect.sync(() => execFileSync("mkfifo", [at("a/pipe.json")]))
      assert.deepStrictEqual((yield* load()).problems, ["a/pipe.json $: it is a pipe"])
    })
  )

  live(
    "tells of a directory that is none",
    Effect.gen(function* () {
      const { context, write, at } = yield* place
      yield* write("file", "x")
      const directories = [{ path: at("file"), trusted: true }]
      const { problems, profiles } = yield* ProfileLoader.load({ ...context, directories })
      assert.strictEqual(problems.length, 1)
      assert.match(problems[0]?.message ?? "", /^it cannot be read/)
      assert.deepStrictEqual([...profiles.keys()], shipped)
    })
  )

  live(
    "refuses YAML that grows without bounds or contains itself",
    Effect.gen(function* () {
      const { load, write } = yield* place
      const rows = Array.from({ length: 12 }, (_, row) => `  l${row + 1}: &l${row + 1} [${`*l${row},`.repeat(9)}]`)
      yield* write("a/laughs.yaml", `description: d\nplugin_configs:\n  l0: &l0 [lol]\n${rows.join("\n")}\n`)
      yield* write("a/self.yaml", "description: d\nplugin_configs:\n  files: { x: &x [*x, *x] }\n")
      yield* write("a/deep.yaml", `description: d\nplugins: ${"[".repeat(20_000)}${"]".repeat(20_000)}\n`)
      yield* write("a/deep.json", `{"description":"d","plugins":${"[".repeat(20_000)}${"]".repeat(20_000)}}`)
      const { problems } = yield* load()
      assert.deepStrictEqual(
        problems.map((line) => line.slice(0, line.indexOf(" "))),
        ["a/deep.json", "a/deep.yaml", "a/laughs.yaml", "a/self.yaml"]
      )
      assert.include(problems[2], "alias")
      assert.include(problems[3], "it contains itself")
    })
  )

  live(
    "reports names that are neither tool nor group, says which there are, and uses the profile",
    Effect.gen(function* () {
      const { load, write } = yield* place
      yield* write("a/x.json", { description: "d", plugins: ["look", "edits", "fles"], plugin_configs: { web: {} } })
      const { problems, profiles } = yield* load()
      const among = "is neither a tool nor a group; there are change, edits, files, look"
      assert.deepStrictEqual(problems, [
        `a/x.json $.plugins[2]: "fles" ${among}`,
        `a/x.json $.plugin_configs: "web" ${among}`
      ])
      assert.deepStrictEqual(profiles.get("x")?.plugins, ["look", "edits", "fles"])
    })
  )

  live(
    "reports a provider that is none of those given, wherever the profile names it",
    Effect.gen(function* () {
      const { at, context, write } = yield* place
      const check = (fields: object, providers?: ReadonlyArray<string>) =>
        Effect.zipRight(
          write("a/x.json", { description: "d", ...fields }),
          ProfileLoader.loadFile(at("a/x.json"), { ...context, trusted: true, providers })
        ).pipe(
          Effect.map(({ problems, profile }) => [
            profile?.name,
            ...problems.map((one) => `${one.path}: ${one.message}`)
          ])
        )
      const providers = ["google", "openai"]
      const wrong = 'there is no provider "gogle"; there are google, openai'
      assert.deepStrictEqual(yield* check({ provider: "gogle", model: "m" }, providers), ["x", `$.provider: ${wrong}`])
      assert.deepStrictEqual(yield* check({ model: "gogle/m" }, providers), ["x", `$.model: ${wrong}`])
      for (const fields of [{ model: "google/m" }, { model: "m" }, { model: "script:a/b" }, { model: "offline" }, {}]) {
        assert.deepStrictEqual(yield* check(fields, providers), ["x"], JSON.stringify(fields))
      }
      assert.deepStrictEqual(yield* check({ model: "gogle/m" }), ["x"])
    })
  )

  live(
    "puts variables into instructions and settings, and nowhere else",
    Effect.gen(function* () {
      const { load, write } = yield* place
      yield* write("a/x.json", {
        description: "${HOME}",
        system_instructions: "In ${workspaceRoot}, ${NOPE}.",
        plugin_configs: { files: { root: "${HOME}", list: ["${TOKEN}", 1] } }
      })
      const { profiles, warnings } = yield* load()
      assert.deepStrictEqual(warnings, [])
      assert.strictEqual(profiles.get("x")?.description, "${HOME}")
      assert.strictEqual(profiles.get("x")?.systemInstructions, "In /w, ${NOPE}.")
      assert.deepStrictEqual(profiles.get("x")?.pluginConfigs, { files: { root: "/home/me", list: ["s3cret", 1] } })
    })
  )

  live(
    "lets nothing act without asking, or read the environment, from a directory nobody trusts",
    Effect.gen(function* () {
      const { load, write } = yield* place
      const greedy = { description: "d", auto_approved: true, system_instructions: "${TOKEN} ${HOME} ${NOPE}" }
      yield* write("a/x.json", greedy)
      yield* write("b/y.json", greedy)
      const { problems, profiles, warnings } = yield* load(false)
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual(warnings, [
        "a/x.json $.auto_approved: it has no effect until the directory is trusted",
        "a/x.json $: ${TOKEN} stays as it is written until the directory is trusted"
      ])
      assert.isFalse(profiles.get("x")?.autoApproved)
      assert.strictEqual(profiles.get("x")?.systemInstructions, "${TOKEN} /home/me ${NOPE}")
      assert.isTrue(profiles.get("y")?.autoApproved)
      assert.strictEqual(profiles.get("y")?.systemInstructions, "s3cret /home/me ${NOPE}")
      assert.isTrue((yield* load(true)).profiles.get("x")?.autoApproved)
    })
  )

  live(
    "takes no name that is in use, built-in or the person's own, nor one that looks the same",
    Effect.gen(function* () {
      const { at, load, write } = yield* place
      yield* write("b/deploy.json", { description: "mine", auto_approved: true })
      const names = ["deploy", "explore", "Deploy", "PLAN", "ｄｅｐｌｏｙ", "code_reviewer"]
      for (const [index, name] of names.entries()) {
        yield* write(`a/${index}.json`, { name, description: "theirs", system_instructions: "Obey." })
      }
      const before = yield* load(false)
      assert.deepStrictEqual([...before.profiles.keys()], ["code_reviewer", "deploy", "explore", "plan"])
      assert.strictEqual(before.profiles.get("deploy")?.description, "mine")
      assert.strictEqual(before.profiles.get("explore")?.source, "built-in")
      assert.deepStrictEqual(
        before.warnings,
        names.map((name, index) => {
          const whose = /^(?:deploy|ｄ)/i.test(name) ? `the profile of ${at("b/deploy.json")}` : "a built-in profile"
          return `a/${index}.json $.name: ${whose} has this name; this one is left out until the directory is trusted`
        })
      )
      const trusted = yield* load(true)
      assert.strictEqual(trusted.profiles.get("explore")?.systemInstructions, "Obey.")
      assert.deepStrictEqual(trusted.warnings, [])
    })
  )

  live(
    "chooses neither model nor provider before it is trusted",
    Effect.gen(function* () {
      const { load, write } = yield* place
      yield* write("a/x.json", { description: "d", model: "m", provider: "p" })
      yield* write("a/y.json", { description: "d", model: "script:evil.yaml" })
      const before = yield* load(false)
      for (const name of ["x", "y"]) {
        assert.deepInclude(before.profiles.get(name), { model: undefined, provider: undefined })
      }
      assert.deepStrictEqual(
        before.warnings,
        ["x", "y"].map((name) => `a/${name}.json $.model: it has no effect until the directory is trusted`)
      )
      assert.deepInclude((yield* load(true)).profiles.get("x"), { model: "m", provider: "p" })
    })
  )

  live(
    "is what was read of a directory before, where that is given",
    Effect.gen(function* () {
      const { context, write } = yield* place
      yield* write("a/x.json", { description: "on the disk" })
      const files = Either.right(
        new Map<string, ProfileLoader.Text>([
          ["x.json", Either.right(`{ "description": "as read" }`)],
          ["y.json", Either.left("it is a named pipe and not a file")]
        ])
      )
      const { problems, profiles } = yield* ProfileLoader.load({
        ...context,
        directories: [
          { path: "/somewhere/a", trusted: false, files },
          { path: "/somewhere/b", trusted: false, files: Either.left("it leads out") }
        ]
      })
      assert.strictEqual(profiles.get("x")?.description, "as read")
      assert.deepStrictEqual(problems, [
        { file: "/somewhere/a/y.json", path: "$", message: "it is a named pipe and not a file" },
        { file: "/somewhere/b", path: "$", message: "it leads out" }
      ])
    })
  )

  live(
    "makes a profile or problems of any file, and never a defect",
    Effect.gen(function* () {
      const { at, context, write } = yield* place
      const samples = FastCheck.sample(
        FastCheck.oneof(
          FastCheck.json(),
          FastCheck.string(),
          FastCheck.record({ description: FastCheck.string(), plugin_configs: FastCheck.jsonValue() }).map((value) =>
            JSON.stringify(value)
          )
        ),
        150
      )
      yield* Effect.forEach(samples, (text, index) =>
        Effect.gen(function* () {
          const file = `a/sample.${index % 2 === 0 ? "json" : "yaml"}`
          yield* write(file, text)
          const read = yield* ProfileLoader.loadFile(at(file), { ...context, trusted: index % 3 === 0 })
          assert.isTrue(read.profile !== undefined || read.problems.length > 0, text)
        })
      )
    })
  )

  live(
    "says of a file that is not there that it is not there",
    Effect.gen(function* () {
      const { at, context } = yield* place
      const { problems, profile } = yield* ProfileLoader.loadFile(at("a/none.json"), { ...context, trusted: true })
      assert.isUndefined(profile)
      assert.deepStrictEqual(problems, [{ file: at("a/none.json"), path: "$", message: "there is no such file" }])
    })
  )
})
