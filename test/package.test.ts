/**
 * What is shipped, tried as its users get it: the packed tarball, unpacked into an empty project, with links to what the
 * project would have installed beside it.
 *
 * ```
 *  small/node_modules   assent, its own dependencies, the mandatory peers
 *  full/node_modules    the same, every optional peer, and the tools of a team that uses it
 * ```
 *
 * The links lead to packages outside of the project, so the package itself finds only what is in its project.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { rolldown } from "rolldown"
import { afterAll } from "vitest"
import * as DocExamples from "./kit/DocExamples.js"
import * as Documents from "./kit/Documents.js"

/** Where a module is: its types, its form for Node and the one for browsers and bundlers. */
interface Target {
  readonly types: string
  readonly node: { readonly development: string; readonly module: string; readonly default: string }
  readonly default: string
}

interface Manifest {
  readonly bin: Record<string, string>
  readonly exports: Readonly<Record<string, Target | string>>
  readonly files: ReadonlyArray<string>
  readonly scripts: Record<string, string>
  readonly dependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest
const isOptional = (name: string): boolean => manifest.peerDependenciesMeta[name]?.optional === true
const mandatory = Object.keys(manifest.peerDependencies).filter((name) => !isOptional(name))
const optional = Object.keys(manifest.peerDependencies).filter(isOptional)

interface Ran {
  /** Nothing where a signal ended it. */
  readonly status: number | null
  readonly stdout: string
  readonly all: string
}

// Not by `spawnSync`: vitest must be able to speak with this process meanwhile.
const run = (cwd: string, command: string, args: ReadonlyArray<string>): Promise<Ran> =>
  new Promise((resolve) => {
    const child = execFile(
      command,
      args,
      {
        cwd,
        timeout: 200_000,
        maxBuffer: 100_000_000,
        env: {
          PATH: process.env["PATH"],
          HOME: root,
          XDG_CONFIG_HOME: join(root, "config"),
          XDG_STATE_HOME: join(root, "state")
        }
      },
      (_, stdout, stderr) => resolve({ status: child.exitCode, stdout, all: `${stdout}${stderr}` })
    )
    child.stdin?.end()
  })
const node = (cwd: string, code: string) => run(cwd, process.execPath, ["--input-type=module", "-e", code])

const compiler = resolve("node_modules/typescript-native/bin/tsc")

const root = realpathSync(mkdtempSync(join(tmpdir(), "assent-package-")))
const small = join(root, "small")
const full = join(root, "full")

/** An empty project with the package and links to others. */
const project = async (directory: string, tarball: string, others: ReadonlyArray<string>): Promise<void> => {
  const modules = join(directory, "node_modules")
  mkdirSync(join(modules, "assent"), { recursive: true })
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }))
  const unpacked = await run(root, "tar", ["-xzf", tarball, "-C", join(modules, "assent"), "--strip-components=1"])
  assert.strictEqual(unpacked.status, 0, unpacked.all)
  for (const name of others) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(resolve("node_modules", name), join(modules, name))
  }
}

/** Doors that stand for several modules. */
const doors = [
  ".",
  "./testing",
  "./sql",
  "./postgres",
  "./cluster",
  "./mcp",
  "./node",
  "./http",
  "./serve",
  "./package.json"
]

/** Where modules were before their rooms moved. JSON has no comments: these stay until 1.0, and then they go. */
const former = [
  "./event/AuditFile",
  "./event/AuditTrail",
  "./interaction/InteractionBroker",
  "./interaction/InteractionXml",
  "./session/CompactionConfig",
  "./session/History",
  "./session/JournalEntry",
  "./session/RecordedScript",
  "./session/Replay",
  "./session/Restored",
  "./session/SessionLock",
  "./session/SessionStore",
  "./session/SessionSummary",
  "./session/StoreError",
  "./session/Turn",
  "./subagent/SubagentOrder"
]

/** Public modules that are reached by their path only, so that nobody loads what they do not use. */
const alone = [
  "./audit/AuditFile",
  "./builtin/FetchUrl",
  "./channel/FileChannel",
  "./channel/WebhookChannel",
  "./journal/RecordedScript",
  "./model/AnthropicMessages",
  "./model/ChatCompletions",
  "./model/Gemini",
  "./model/KnownModel",
  "./model/ModelRegistry",
  "./model/OpenAiResponses"
]

/** A picture of one pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** Every path under which the package can be imported. */
const entries = Object.keys(manifest.exports)
  .filter((key) => !key.endsWith(".json"))
  .map((key) => key.replace(/^\./, "assent"))

/** Where the source of a public module is, below `src` and without its ending. */
const sources = new Map(
  Object.entries(manifest.exports).flatMap(([key, target]) =>
    typeof target === "string" ? [] : [[key, target.default.slice("./dist/lib/".length, -".js".length)] as const]
  )
)

/** Imports each, and says what went wrong with which. */
const importAll = async (directory: string, names: ReadonlyArray<string>): Promise<Record<string, string>> => {
  const { all, status, stdout } = await node(
    directory,
    `const failed = {}
     for (const name of ${JSON.stringify(names)}) {
       try { await import(name) } catch (error) { failed[name] = (error.code ?? "") + " " + error.message }
     }
     console.log(JSON.stringify(failed))`
  )
  assert.strictEqual(status, 0, all)
  return JSON.parse(stdout)
}

describe("the package", () => {
  beforeAll(async () => {
    // It is built once, before the tests: a build in the middle of them would take the program away from others.
    const packed = await run(resolve("."), "npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", root])
    assert.strictEqual(packed.status, 0, packed.all)
    const tarball = join(root, packed.stdout.trim())
    await project(small, tarball, [...Object.keys(manifest.dependencies), ...mandatory])
    await project(full, tarball, [
      ...Object.keys(manifest.dependencies),
      ...mandatory,
      ...optional,
      "vitest",
      "@effect/vitest",
      "@types/node",
      // Readers of events.
      "ai",
      "undici"
    ])
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  it("is built before it is packed or tested", () => {
    assert.strictEqual(manifest.scripts["prepack"], manifest.scripts["pretest"])
    assert.match(manifest.scripts["prepack"] ?? "", /run (?:--silent )?build$/)
    // A clone that was installed has the whole program, with the page that it serves.
    assert.match(manifest.scripts["dependencies"] ?? "", /run (?:--silent )?build:bin$/)
    assert.include(manifest.scripts["build:bin"], "build.mjs web")
  })

  it("runs nothing where it is installed: npm would ask whoever installs it about that", () => {
    const install = ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"]
    assert.deepStrictEqual(
      install.filter((script) => script in manifest.scripts),
      []
    )
  })

  it("holds every public module of the sources, and no more than it should", () => {
    const within = (place: string) => readdirSync(place, { recursive: true, encoding: "utf8" })
    const built = new Set(within(join(full, "node_modules/assent/dist/lib")))
    const missing = within("src").filter(
      (file) =>
        file.endsWith(".ts") &&
        !/^(?:cli|web|tui\/(?:chat|process|view))\//.test(file) &&
        !built.has(file.replace(/\.ts$/, ".js"))
    )
    assert.deepStrictEqual(missing, [])
    assert.deepStrictEqual(
      [...built].filter((file) => file.endsWith(".js") && !existsSync(join("src", file.replace(/\.js$/, ".ts")))),
      []
    )
    const packed = within(join(full, "node_modules/assent"))
    for (const name of ["index.html", "console.js", "console.css", "icon.svg", "THIRD-PARTY.txt"])
      assert.include(packed, `dist/web/${name}`)
    assert.deepStrictEqual(
      packed.filter(
        (file) => !file.startsWith("test") && /(?:^|\/)(?:test|node_modules|compiled|\.assent)(?:\/|$)/.test(file)
      ),
      []
    )
    assert.sameMembers(
      packed.filter((file) => file.startsWith("test/examples/")),
      readdirSync("test/examples").map((file) => `test/examples/${file}`)
    )
    assert.sameMembers(
      packed.filter((file) => /^test(?:$|\/(?!examples\/))/.test(file)),
      ["test", "test/examples"]
    )
    for (const file of ["README.md", "LICENSE", "CHANGELOG.md", manifest.bin["assent"]?.slice(2) ?? ""]) {
      assert.include(packed, file)
    }
  })

  it("has the guide, for people and for coding agents, and each of its links leads to a file of the package", () => {
    const docs = join(full, "node_modules/assent/docs")
    assert.sameMembers(readdirSync(docs), readdirSync(".github/guide"))
    const pages = Documents.below(docs)
    assert.include(pages.map(({ path }) => path).join(" "), "AGENTS.md")
    assert.deepStrictEqual(pages.flatMap(Documents.deadLinks), [])
  })

  it("brings the terms of every package that is in it", () => {
    const terms = (place: string) =>
      readFileSync(join(full, "node_modules/assent/dist", place, "THIRD-PARTY.txt"), "utf8")
    for (const name of ["effect", "marked", "lowlight", "yaml", "@libsql/client"])
      assert.match(terms("bin/program"), new RegExp(`^${name} [\\d.]+: [\\w.-]+$`, "m"))
    assert.deepStrictEqual(
      terms("node")
        .match(/^[\w@/-]+ [\d.]+: [\w.-]+$/gm)
        ?.map((line) => line.split(" ")[0]),
      ["@noble/hashes", "ansi-regex", "get-east-asian-width", "saxes", "string-width", "strip-ansi", "xmlchars"]
    )
  })

  it("is imported at every path, with what is mandatory beside it and nothing else", { timeout: 120_000 }, async () => {
    const missing = Object.entries(await importAll(small, entries)).map(([entry, message]) => [
      entry,
      optional.find((name) => message.includes(`'${name}'`)) ?? message
    ])
    // Sessions in a database, which says so in its own words.
    assert.deepStrictEqual(missing, [
      ["assent/sql", "@effect/sql"],
      ["assent/postgres", "@effect/sql"],
      ["assent/cluster", "@effect/sql"],
      ["assent/serve", "@effect/platform-node"]
    ])
  })

  it("is imported at every path where the optional peers are", { timeout: 120_000 }, async () => {
    assert.deepStrictEqual(await importAll(full, entries), {})
  })

  it("lists its public modules one by one, each with a name in the library or alone", () => {
    const index = Array.from(
      readFileSync("src/index.ts", "utf8").matchAll(/^export \* as (\w+) from "\.\/(.+)\.js"$/gm),
      ([, name = "", path = ""]) => ({ name, path: `./${path}` })
    )
    const modules = [...sources].filter(([key]) => !doors.includes(key) && !former.includes(key))
    assert.deepStrictEqual(
      modules.filter(([key, source]) => key !== `./${source}`),
      []
    )
    assert.sameMembers(
      modules.map(([key]) => key),
      [...new Set(index.map(({ path }) => path)), ...alone]
    )
    // A namespace has the name of its module, and a former name where the module had another.
    const names = new Set(former.map((path) => path.replace(/.*\//, "")))
    assert.deepStrictEqual(
      index.filter(({ name, path }) => !path.endsWith(`/${name}`) && !names.has(name)),
      []
    )
    assert.deepStrictEqual(
      former.filter((path) => !modules.some(([, source]) => source === sources.get(path))),
      []
    )
  })

  it("has every public module in two forms with one declaration", () => {
    const wrong = Object.entries(manifest.exports).filter(([key, target]) => {
      if (key === "./package.json") return target !== key
      const source = sources.get(key)
      const forNode = `./dist/node/${source}.js`
      const inParts = `./dist/lib/${source}.js`
      const expected: Target = {
        types: `./dist/lib/${source}.d.ts`,
        // Bundlers ask for `module`. Vite asks for `development` too, and leaves the package to Node.
        node: { development: forNode, module: inParts, default: forNode },
        default: inParts
      }
      // The first that fits counts, so their order does too.
      return JSON.stringify(target) !== JSON.stringify(expected)
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("exports the same names in both forms", { timeout: 120_000 }, async () => {
    const code = `const named = async (form) => {
      const all = (module) => Object.entries(module).flatMap(([name, value]) =>
        value?.[Symbol.toStringTag] === "Module" ? all(value).map((inner) => name + "." + inner) : [name])
      const names = {}
      for (const source of ${JSON.stringify([...new Set(sources.values())])}) {
        names[source] = all(await import("./node_modules/assent/dist/" + form + "/" + source + ".js")).sort()
      }
      return names
    }
    console.log(JSON.stringify([await named("lib"), await named("node")]))`
    const { all, status, stdout } = await node(full, code)
    assert.strictEqual(status, 0, all)
    const [lib, bundled] = JSON.parse(stdout)
    assert.isAbove(Object.values(lib).flat().length, 1000)
    assert.deepStrictEqual(bundled, lib)
  })

  it("has one copy of everything in a program, whatever paths it is imported by", { timeout: 120_000 }, async () => {
    // A tag, a class or a FiberRef that is there twice is two things.
    const code = `const index = await import("assent")
      const bySource = new Map(), wrong = []
      let compared = 0
      for (const [key, source] of ${JSON.stringify([...sources].filter(([key]) => !doors.includes(key)))}) {
        const module = await import(key.replace(".", "assent"))
        const name = source.slice(source.lastIndexOf("/") + 1)
        for (const other of [bySource.get(source), index[name]]) {
          if (other === undefined) continue
          for (const member of new Set([...Object.keys(module), ...Object.keys(other)])) {
            compared += 1
            if (module[member] !== other[member]) wrong.push(key + " " + member)
          }
        }
        bySource.set(source, module)
      }
      const { createRequire } = await import("node:module")
      const required = createRequire(process.cwd() + "/")("assent")
      if (required.Agent.start !== index.Agent.start) wrong.push("require")
      console.log(JSON.stringify({ compared, wrong }))`
    const { all, status, stdout } = await node(full, code)
    assert.strictEqual(status, 0, all)
    const { compared, wrong } = JSON.parse(stdout.slice(stdout.indexOf("{")))
    assert.isAbove(compared, 500)
    assert.deepStrictEqual(wrong, [])
    // And in the files: what two of them declare is there twice.
    const home = join(full, "node_modules/assent/dist/node")
    const held = new Map<string, Array<string>>()
    const maps = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js.map"))
    for (const file of maps) {
      const map = JSON.parse(readFileSync(join(home, file), "utf8")) as { readonly sources: ReadonlyArray<string> }
      for (const source of map.sources) {
        const place = resolve(dirname(join(home, file)), source)
        assert.isTrue(existsSync(place), `${file} leads to ${source}, which is not in the package`)
        held.set(place, [...(held.get(place) ?? []), file])
      }
    }
    assert.isAbove(held.size, 300)
    assert.deepStrictEqual(
      [...held].filter(([, files]) => files.length > 1),
      []
    )
  })

  it("is a few files for Node, and what is rarely needed is not in them", () => {
    const home = join(full, "node_modules/assent/dist/node")
    const seen = new Set<string>()
    const visit = (file: string): void => {
      if (seen.has(file)) return
      seen.add(file)
      const text = readFileSync(file, "utf8")
      for (const [, to = ""] of text.matchAll(/^(?:import|export)[^;]*?from "(\.[^"]+)"/gm)) {
        visit(resolve(dirname(file), to))
      }
    }
    visit(join(home, "index.js"))
    assert.isAtMost(seen.size, 3)
    const loaded = [...seen].map((file) => readFileSync(file, "utf8")).join("")
    assert.include(loaded, "// src/turn/Turn.ts\n")
    const late = ["shell/CommandReader", "subagent/Children", "turn/CompactionRun", "permission/Upcoming"]
    assert.deepStrictEqual(
      late.filter((name) => loaded.includes(`// src/${name}.ts\n`)),
      []
    )
  })

  it("is taken apart by a bundler for a server, though Node gets few files", { timeout: 60_000 }, async () => {
    const directory = join(full, "bundled")
    mkdirSync(directory)
    cpSync("test/kit/SmallestAgent.ts", join(directory, "server.ts"))
    const bundle = await rolldown({
      cwd: directory,
      input: "server.ts",
      platform: "node",
      logLevel: "silent",
      external: (id) => !/^[./#]|^assent(?:\/|$)/.test(id)
    })
    const { output } = await bundle.generate({ format: "esm", minify: true })
    await bundle.close()
    const modules = output.flatMap((chunk) => (chunk.type === "chunk" ? Object.keys(chunk.modules) : []))
    assert.isAbove(modules.filter((id) => id.includes("/dist/lib/")).length, 100)
    assert.deepStrictEqual(
      modules.filter((id) => id.includes("/dist/node/")),
      []
    )
    const [entry] = output
    const loaded = new Set<string>()
    const visit = (name: string): void => {
      const chunk = output.find(({ fileName }) => fileName === name)
      if (chunk?.type !== "chunk" || loaded.has(name)) return
      loaded.add(name)
      chunk.imports.forEach(visit)
    }
    visit(entry.fileName)
    const size = output.reduce(
      (sum, chunk) => sum + (chunk.type === "chunk" && loaded.has(chunk.fileName) ? chunk.code.length : 0),
      0
    )
    assert.isAbove(size, 50_000, "it measures something else")
    assert.isAtMost(size, 284_000)
  })

  it("is imported in this repository as by others, so that a closed module does not compile here either", () => {
    const { compilerOptions } = JSON.parse(readFileSync("tsconfig.json", "utf8")) as {
      readonly compilerOptions: { readonly paths: Record<string, ReadonlyArray<string>> }
    }
    const opened = doors.filter((key) => key !== "./package.json")
    assert.deepStrictEqual(
      compilerOptions.paths,
      Object.fromEntries(
        [...opened, ...alone].map((key) => [key.replace(".", "assent"), [`./src/${sources.get(key)}.ts`]])
      )
    )
  })

  it("closes every other module", { timeout: 120_000 }, async () => {
    const open = new Set([...sources.values()].map((source) => `${source}.js`))
    const filesOf = (form: string) =>
      readdirSync(join(full, "node_modules/assent/dist", form), { recursive: true, encoding: "utf8" }).filter((file) =>
        file.endsWith(".js")
      )
    const closed = filesOf("lib")
      .filter((file) => !open.has(file))
      .map((file) => `assent/${file.slice(0, -".js".length)}`)
    for (const some of ["assent/internal/OneShot", "assent/tui/process/NodeTerminal", "assent/turn/Turn"])
      assert.include(closed, some)
    const files = ["lib", "node"].flatMap((form) => filesOf(form).map((file) => `assent/dist/${form}/${file}`))
    assert.include(files, "assent/dist/node/chunk/library.js")
    const asked = [...closed, ...files]
    const failed = await importAll(full, asked)
    assert.deepStrictEqual(
      asked.filter((name) => failed[name]?.startsWith("ERR_PACKAGE_PATH_NOT_EXPORTED") !== true),
      []
    )
  })

  it("is required by a program in CommonJS", async () => {
    const code = `const { Agent } = require("assent"); const { TestAgent } = require("assent/testing")
      console.log(typeof Agent.start, typeof TestAgent, typeof require("assent/runtime/Agent").start)`
    // Node 20 tells that it is an experiment, on standard error.
    const { all, stdout } = await run(small, process.execPath, ["-e", code])
    assert.strictEqual(stdout.trim(), "function object function", all)
  })

  it("has at its place every module that README and guide name", async () => {
    const text = Documents.forUsers.map((document) => document.text).join("\n")
    const named = new Set(Array.from(text.matchAll(/(?<![./\w])assent\/[a-z]+(?:\/[A-Z]\w+)?/g), ([name]) => name))
    assert.isAtLeast(named.size, 4)
    const code = `for (const name of ${JSON.stringify([...named])}) await import(name)`
    assert.strictEqual((await node(full, code)).all, "")
  })

  it(
    "runs the programs of README, guide and examples, and they compile against its types, as those in doc comments do",
    { timeout: 300_000 },
    async () => {
      cpSync("test/examples", join(full, "examples"), { recursive: true })
      const documented = DocExamples.read()
      assert.isAbove(documented.length, 15)
      mkdirSync(join(full, "examples/documented"))
      for (const { name, text } of documented) {
        assert.include(text, `"assent`, `${name} imports nothing of the package, so it is no example of it`)
        writeFileSync(join(full, "examples/documented", name), text)
      }
      // Not every user skips the checks of declarations, and those of a module are checked where it is imported.
      const everything = entries.map((entry) => `import ${JSON.stringify(entry)}`).join("\n")
      writeFileSync(join(full, "examples/everything.ts"), everything)
      writeFileSync(
        join(full, "tsconfig.json"),
        JSON.stringify({
          compilerOptions: {
            target: "ES2022",
            lib: ["ES2023"],
            module: "NodeNext",
            strict: true,
            exactOptionalPropertyTypes: true,
            skipLibCheck: false,
            types: ["node"],
            noEmit: true
          },
          include: ["examples"]
        })
      )
      const types = await run(full, process.execPath, [compiler, "-p", "."])
      assert.oneOf(types.status, [0, 1], types.all)
      // What is linked is not ours, and wants types of a browser.
      assert.deepStrictEqual(
        types.stdout.split("\n").filter((line) => line !== "" && !/^(?:\.\.|\s)/.test(line)),
        []
      )
      const tests = await run(full, process.execPath, [
        resolve("node_modules/vitest/vitest.mjs"),
        "run",
        "--root",
        full,
        "--testTimeout",
        "60000"
      ])
      assert.strictEqual(tests.status, 0, tests.all)
      assert.match(tests.stdout, /Tests .*[1-9]\d* passed/)
    }
  )

  it("costs the compiler little more than @effect/ai alone", { timeout: 120_000 }, async () => {
    const directory = join(full, "cost")
    mkdirSync(directory)
    const tool = `import { LanguageModel, Tool, Toolkit } from "@effect/ai"
      import { Effect, Layer } from "effect"
      const Now = Toolkit.make(Tool.make("now"))
      const handlers = Now.toLayer({ now: () => Effect.void })\n`
    const programs = {
      alone: `${tool} void Layer
        export const program = LanguageModel.generateText({ prompt: "?", toolkit: Now }).pipe(Effect.provide(handlers))`,
      ours: `${tool} void LanguageModel
        import { Agent, AgentRuntime, AutoChannel, ScriptedModel } from "assent"
        const Runtime = AgentRuntime.layer({ toolkit: Now }).pipe(
          Layer.provide([handlers, ScriptedModel.layer({ agents: {} })])
        )
        export const program = Effect.flatMap(Agent.start(), (agent) => agent.run("?")).pipe(
          Effect.scoped, Effect.provide([Runtime, AutoChannel.layer()])
        )`
    }
    for (const [name, text] of Object.entries(programs)) writeFileSync(join(directory, `${name}.ts`), text)
    // Time depends on the machine; types do not, and take it.
    const typesOf = async (name: string): Promise<number> => {
      const options = [
        "--ignoreConfig",
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--target",
        "ES2022",
        "--module",
        "NodeNext"
      ]
      const counted = ["--types", "node", "--extendedDiagnostics", "--singleThreaded", `${name}.ts`]
      const { all, status } = await run(directory, process.execPath, [compiler, ...options, ...counted])
      assert.strictEqual(status, 0, all)
      return Number(/^Types: +(\d+)$/m.exec(all)?.[1])
    }
    const [alone, ours] = [await typesOf("alone"), await typesOf("ours")]
    assert.isAbove(alone, 1000)
    assert.isAtMost(ours / alone, 1.8, `${ours} types beside ${alone}`)
  })

  it("runs the commands of README and guide", { timeout: 120_000 }, async () => {
    const workspace = join(root, "workspace")
    mkdirSync(join(workspace, "src"), { recursive: true })
    writeFileSync(join(workspace, "README.md"), "# Something\n")
    writeFileSync(join(workspace, "stricter.json"), "{}")
    writeFileSync(join(workspace, "shot.png"), Buffer.from(pixel, "base64"))
    const program = join(full, "node_modules/assent", manifest.bin["assent"] ?? "")
    const assent = (words: ReadonlyArray<string>) => run(workspace, process.execPath, [program, ...words])
    const halted = await assent(["run", "--json", "run touch waited"])
    assert.strictEqual(halted.status, 3, halted.all)
    const [, session = ""] = /"sessionId":"([^"]+)"/.exec(halted.stdout) ?? []
    const [, request = ""] = /"requestId":"([^"]+)"/.exec(halted.stdout) ?? []
    /** What commands in documents name: a session that waits for an answer, and what it asks. */
    const places = new Map([
      ["SESSION", session],
      ["req_1", request]
    ])
    /** A store elsewhere, and a workspace that was moved away. */
    const other = join(root, "other.db")
    const old = join(root, "old")
    mkdirSync(old)
    for (const args of [
      ["--store", other],
      ["--workspace", old]
    ]) {
      const ran = await assent(["run", ...args, "list"])
      assert.strictEqual(ran.status, 0, ran.all)
    }
    rmSync(old, { recursive: true })
    places.set("FILE", other).set("/old/place", old)
    // Each command that names it finds it as it was, whatever another did to it.
    const written = ["state", "config"]
    for (const name of written) cpSync(join(root, name), join(root, "kept", name), { recursive: true })
    const again = () => {
      for (const name of written) {
        rmSync(join(root, name), { recursive: true })
        cpSync(join(root, "kept", name), join(root, name), { recursive: true })
      }
    }
    const commands = [...new Set(Documents.commands)]
      .filter((line) => line.startsWith("assent "))
      // Some need a server or a database, some have no end of their own, and one needs a key.
      .filter((line) => !/webhook:|--cluster|^assent (?:answer|keys|serve)|mcp log|--reviewer/.test(line))
    assert.isAtLeast(commands.length, 35)
    for (const command of commands) {
      const words = Array.from(command.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "")
      if (words.includes("SESSION")) again()
      const { all, status } = await assent(words.slice(1).map((word) => places.get(word) ?? word))
      // Nobody answered before it was gone on with, and nobody is there to do so, or to pick from a list.
      const isOpen = /^assent (?:run --resume|(?:chat )?--continue)/.test(command)
      const expected = isOpen ? 3 : command === "assent --resume" ? 2 : 0
      assert.strictEqual(status, expected, `${command}\n${all}`)
    }
  })
})
