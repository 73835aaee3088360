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
import { spawnSync } from "node:child_process"
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
import { afterAll } from "vitest"

interface Manifest {
  readonly bin: Record<string, string>
  readonly exports: Record<string, unknown>
  readonly files: ReadonlyArray<string>
  readonly scripts: Record<string, string>
  readonly dependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest
const readme = readFileSync("README.md", "utf8")
const isOptional = (name: string): boolean => manifest.peerDependenciesMeta[name]?.optional === true
const mandatory = Object.keys(manifest.peerDependencies).filter((name) => !isOptional(name))
const optional = Object.keys(manifest.peerDependencies).filter(isOptional)

const run = (cwd: string, command: string, args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    input: "",
    timeout: 200_000,
    maxBuffer: 100_000_000,
    env: {
      PATH: process.env["PATH"],
      HOME: root,
      XDG_CONFIG_HOME: join(root, "config"),
      XDG_STATE_HOME: join(root, "state")
    }
  })
  return { status, stdout, all: `${stdout}${stderr}` }
}
const node = (cwd: string, code: string) => run(cwd, process.execPath, ["--input-type=module", "-e", code])

const root = realpathSync(mkdtempSync(join(tmpdir(), "assent-package-")))
const small = join(root, "small")
const full = join(root, "full")

/** An empty project with the package and links to others. */
const project = (directory: string, tarball: string, others: ReadonlyArray<string>) => {
  const modules = join(directory, "node_modules")
  mkdirSync(join(modules, "assent"), { recursive: true })
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }))
  assert.strictEqual(
    run(root, "tar", ["-xzf", tarball, "-C", join(modules, "assent"), "--strip-components=1"]).status,
    0
  )
  for (const name of others) {
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(resolve("node_modules", name), join(modules, name))
  }
}

/** Every path under which the package can be imported. */
const entries = (): ReadonlyArray<string> => {
  const library = join(full, "node_modules/assent/dist/lib")
  const modules = readdirSync(library, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .map((file) => `assent/${file.slice(0, -".js".length)}`)
  const named = Object.keys(manifest.exports)
    .filter((key) => !key.includes("*") && !key.endsWith(".json"))
    .map((key) => key.replace(/^\./, "assent"))
  return [...named, ...modules]
}

/** Imports each, and says what went wrong with which. */
const importAll = (directory: string): Record<string, string> => {
  const { all, status, stdout } = node(
    directory,
    `const failed = {}
     for (const name of ${JSON.stringify(entries())}) {
       try { await import(name) } catch (error) { failed[name] = String(error.message) }
     }
     console.log(JSON.stringify(failed))`
  )
  assert.strictEqual(status, 0, all)
  return JSON.parse(stdout)
}

describe("the package", () => {
  beforeAll(() => {
    // It is built once, before the tests: a build in the middle of them would take the program away from others.
    const packed = run(resolve("."), "npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", root])
    assert.strictEqual(packed.status, 0, packed.all)
    const tarball = join(root, packed.stdout.trim())
    project(small, tarball, [...Object.keys(manifest.dependencies), ...mandatory])
    project(full, tarball, [
      ...Object.keys(manifest.dependencies),
      ...mandatory,
      ...optional,
      "vitest",
      "@effect/vitest",
      "@types/node"
    ])
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  it("is built before it is packed or tested", () => {
    assert.strictEqual(manifest.scripts["prepack"], manifest.scripts["pretest"])
    assert.match(manifest.scripts["prepack"] ?? "", /run (?:--silent )?build$/)
  })

  it("holds every public module of the sources, and no more than it should", () => {
    const within = (place: string) => readdirSync(place, { recursive: true, encoding: "utf8" })
    const built = new Set(within(join(full, "node_modules/assent/dist/lib")))
    const missing = within("src").filter(
      (file) => file.endsWith(".ts") && !file.startsWith("cli/") && !built.has(file.replace(/\.ts$/, ".js"))
    )
    assert.deepStrictEqual(missing, [])
    assert.deepStrictEqual(
      [...built].filter((file) => file.endsWith(".js") && !existsSync(join("src", file.replace(/\.js$/, ".ts")))),
      []
    )
    const packed = within(join(full, "node_modules/assent"))
    assert.deepStrictEqual(
      packed.filter((file) => /(?:^|\/)(?:test|node_modules|compiled|\.assent)(?:\/|$)/.test(file)),
      []
    )
    for (const file of ["README.md", "LICENSE", "CHANGELOG.md", manifest.bin["assent"]?.slice(2) ?? ""]) {
      assert.include(packed, file)
    }
  })

  it("is imported at every path, with what is mandatory beside it and nothing else", { timeout: 120_000 }, () => {
    const missing = Object.entries(importAll(small)).map(([entry, message]) => [
      entry,
      optional.find((name) => message.includes(`'${name}'`)) ?? message
    ])
    const wants = new Map(missing.map(([entry = "", peer]) => [entry, peer]))
    for (const [entry, peer] of wants) {
      // These say so in their own words: sessions in a database, a terminal on Node.
      const expected = /^assent\/(?:sql|store)/.test(entry) ? "@effect/sql" : "@effect/platform-node"
      assert.strictEqual(peer, expected, entry)
      assert.match(entry, /^assent\/(?:sql|store\/.*|node|cli\/.*)$/)
    }
  })

  it("is imported at every path where the optional peers are", { timeout: 120_000 }, () => {
    assert.deepStrictEqual(importAll(full), {})
  })

  it("is required by a program in CommonJS", () => {
    const code = `const { Agent } = require("assent"); const { TestAgent } = require("assent/testing")
      console.log(typeof Agent.start, typeof TestAgent, typeof require("assent/runtime/Agent").start)`
    // Node 20 tells that it is an experiment, on standard error.
    const { all, stdout } = run(small, process.execPath, ["-e", code])
    assert.strictEqual(stdout.trim(), "function object function", all)
  })

  it("has at its place every module that the README names", () => {
    const named = new Set(Array.from(readme.matchAll(/(?<![./\w])assent\/[a-z]+(?:\/[A-Z]\w+)?/g), ([name]) => name))
    assert.isAtLeast(named.size, 4)
    const code = `for (const name of ${JSON.stringify([...named])}) await import(name)`
    assert.strictEqual(node(full, code).all, "")
  })

  it(
    "runs the programs of the README and of the examples, and they compile against its types",
    { timeout: 300_000 },
    () => {
      cpSync("test/examples", join(full, "examples"), { recursive: true })
      writeFileSync(
        join(full, "tsconfig.json"),
        JSON.stringify({
          compilerOptions: {
            target: "ES2022",
            lib: ["ES2023"],
            module: "NodeNext",
            strict: true,
            exactOptionalPropertyTypes: true,
            skipLibCheck: true,
            types: ["node"],
            noEmit: true
          },
          include: ["examples"]
        })
      )
      const types = run(full, process.execPath, [resolve("node_modules/typescript/bin/tsc"), "-p", "."])
      assert.strictEqual(types.status, 0, types.all)
      const tests = run(full, process.execPath, [resolve("node_modules/vitest/vitest.mjs"), "run", "--root", full])
      assert.strictEqual(tests.status, 0, tests.all)
      assert.match(tests.stdout, /Tests .*[1-9]\d* passed/)
    }
  )

  it("runs the commands of the README", { timeout: 120_000 }, () => {
    const workspace = join(root, "workspace")
    mkdirSync(join(workspace, "src"), { recursive: true })
    writeFileSync(join(workspace, "README.md"), "# Something\n")
    const program = join(full, "node_modules/assent", manifest.bin["assent"] ?? "")
    const assent = (words: ReadonlyArray<string>) => run(workspace, process.execPath, [program, ...words])
    /** What a command of the README names: a session that waits for an answer. */
    const waiting = () => {
      const halted = assent(["run", "--json", "run echo waited for"])
      const [, session = ""] = /"sessionId":"([^"]+)"/.exec(halted.stdout) ?? []
      const [, request = ""] = /"requestId":"([^"]+)"/.exec(halted.stdout) ?? []
      assert.strictEqual(halted.status, 3, halted.all)
      return new Map([
        ["SESSION", session],
        ["req_1", request]
      ])
    }
    waiting()
    /** A store elsewhere, and a workspace that was moved away. */
    const other = join(root, "other.db")
    const old = join(root, "old")
    mkdirSync(old)
    for (const args of [
      ["--store", other],
      ["--workspace", old]
    ]) {
      const kept = assent(["run", ...args, "list"])
      assert.strictEqual(kept.status, 0, kept.all)
    }
    rmSync(old, { recursive: true })
    const places = [
      ["FILE", other],
      ["/old/place", old]
    ] as const
    const commands = Array.from(readme.matchAll(/```sh\n([^]*?)```/g), ([, text = ""]) => text)
      .flatMap((text) => text.split("\n"))
      .map((line) => line.replace(/#.*/, "").trim())
      .filter((line) => line.startsWith("assent "))
      // One needs a server, the other has no end of its own.
      .filter((line) => !/webhook:|^assent answer/.test(line))
    assert.isAtLeast(commands.length, 6)
    for (const command of commands) {
      const words = Array.from(command.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "")
      const names = new Map([...(words.includes("SESSION") ? waiting() : []), ...places])
      const { all, status } = assent(words.slice(1).map((word) => names.get(word) ?? word))
      // Nobody answered before it was gone on with, and nobody is there to do so.
      const expected = command.startsWith("assent run --resume") ? 3 : 0
      assert.strictEqual(status, expected, `${command}\n${all}`)
    }
  })
})
