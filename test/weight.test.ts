/**
 * What programs load of the library: how much of it the smallest agent needs, and that a browser can load all of it.
 *
 * Packages beside the library are not counted, and neither is what `import()` loads later.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { relative, resolve } from "node:path"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { rolldown, type OutputChunk, type RolldownOptions } from "rolldown"

const bundled = async (options: RolldownOptions) => {
  const bundle = await rolldown({
    logLevel: "silent",
    resolve: { alias: { assent: resolve("src/index.ts") } },
    ...options
  })
  const { output } = await bundle.generate({ format: "esm", minify: true, comments: false })
  await bundle.close()
  return output.filter((chunk) => chunk.type === "chunk")
}

/** The chunks that are loaded at once. */
const atOnce = (chunks: ReadonlyArray<OutputChunk>): ReadonlyArray<OutputChunk> => {
  const loaded = new Set<OutputChunk>()
  const visit = (chunk: OutputChunk): void => {
    if (loaded.has(chunk)) return
    loaded.add(chunk)
    for (const name of chunk.imports) chunks.filter(({ fileName }) => fileName === name).forEach(visit)
  }
  chunks.filter(({ isEntry }) => isEntry).forEach(visit)
  return [...loaded]
}

const smallestAgent = async () =>
  atOnce(
    await bundled({
      input: "test/kit/SmallestAgent.ts",
      platform: "neutral",
      external: (id) => !/^[./]|^test\/|^assent$/.test(id),
      treeshake: { moduleSideEffects: false }
    })
  )

/** What Node loads of itself for the built library. Its parts for CommonJS are among them. */
const loadedByTheIndex = `
  await import("effect")
  await import("@effect/ai")
  const before = new Set(process.moduleLoadList)
  await import("./dist/node/index.js")
  console.log(JSON.stringify(process.moduleLoadList.filter((name) => !before.has(name))))`

describe("what is loaded", () => {
  /** In bytes, minified. It is to go down: the goal is 120,000. */
  const limit = 282_200

  it("is little for the smallest agent", async () => {
    const chunks = await smallestAgent()
    const size = chunks.reduce((sum, { code }) => sum + Buffer.byteLength(code), 0)
    const largest = chunks
      .flatMap(({ modules }) => Object.entries(modules))
      .map(([id, { renderedLength }]) => [renderedLength, relative("src", id)] as const)
      .sort(([a], [b]) => b - a)
      .slice(0, 10)
      .map(([length, name]) => `${length} before it is minified: ${name}`)
    assert.isAbove(size, 50_000, "it measures something else")
    assert.isAtMost(size, limit, `The smallest agent has ${size} bytes. Its largest modules:\n${largest.join("\n")}`)
  })

  it("is little for the web console", () => {
    const size = gzipSync(readFileSync("dist/web/console.js"), { level: 9 }).length
    assert.isAbove(size, 20_000, "it measures something else")
    assert.isAtMost(size, 45_000)
  })

  it("has no XML, no shipped provider and no screen in the smallest agent", async () => {
    const chunks = await smallestAgent()
    const rooms = new Set(
      chunks.flatMap(({ modules }) => Object.keys(modules)).map((id) => relative("src", id).split("/")[0])
    )
    assert.isTrue(rooms.has("runtime"))
    assert.deepStrictEqual(
      ["xml", "tui", "store", "cli", "builtin", "testing"].filter((room) => rooms.has(room)),
      []
    )
  })

  it("takes commands apart in no agent without commands, and asks no file system about paths without paths", async () => {
    const chunks = await smallestAgent()
    const files = new Set(chunks.flatMap(({ modules }) => Object.keys(modules)).map((id) => relative("src", id)))
    assert.isTrue(files.has("permission/PermissionGate.ts"))
    const late = ["CommandReader", "CommandLine", "ShellScanner", "CommandOption"].map((name) => `shell/${name}.ts`)
    const guards = ["Sanitizer", "PathScope", "GitGuard"].map((name) => `permission/${name}.ts`)
    assert.deepStrictEqual(
      [...late, ...guards].filter((name) => files.has(name)),
      []
    )
  })

  it("is no module of Node's and no CommonJS, beyond what Effect and `@effect/ai` load", async () => {
    const told = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", loadedByTheIndex])
    assert.deepStrictEqual(JSON.parse(told.stdout), [])
  })

  it("is loaded by a browser, with all packages it needs", async () => {
    const asked = new Set<string>()
    await bundled({
      input: "src/index.ts",
      platform: "browser",
      treeshake: false,
      plugins: [
        {
          name: "asked",
          resolveId: (id) => {
            if (!isBuiltin(id)) return null
            asked.add(id)
            return { id, external: true }
          }
        }
      ]
    })
    assert.deepStrictEqual([...asked], [])
  })
})
