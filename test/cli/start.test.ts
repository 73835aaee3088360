import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import {
  chownSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"
import * as Runs from "../kit/Runs.js"

/** The program in a place of its own: as it is built and nobody has run it, or as another place is. */
const install = (like?: string) => {
  const directory = mkdtempSync(join(tmpdir(), "assent-start-"))
  const compiled = join(directory, "bin/program/compiled")
  if (like === undefined) {
    cpSync(resolve("dist/bin"), join(directory, "bin"), { recursive: true })
    symlinkSync(resolve("node_modules"), join(directory, "node_modules"))
    rmSync(compiled, { recursive: true, force: true })
  } else cpSync(like, directory, { recursive: true, verbatimSymlinks: true })
  const probe = join(directory, "probe.cjs")
  const loaded = join(directory, "loaded.json")
  writeFileSync(
    probe,
    `const vm = require("vm")
    const scripts = []
    vm.Script = class extends vm.Script {
      constructor(text, options) {
        super(text, options)
        scripts.push([require("path").basename(options.filename), this.cachedDataRejected === false])
      }
    }
    require("module").syncBuiltinESMExports()
    process.on("exit", () => {
      const all = JSON.stringify({ parts: process.moduleLoadList, scripts })
      require("fs").writeFileSync(${JSON.stringify(loaded)}, all)
    })`
  )
  const assent = (...args: ReadonlyArray<string>): Effect.Effect<string> =>
    Effect.async((resume) => {
      const places = { ASSENT_CONFIG_DIR: join(directory, "config"), ASSENT_STATE_DIR: join(directory, "state") }
      const env = { ...process.env, ...places, NODE_OPTIONS: `--require ${probe}` }
      execFile(
        process.execPath,
        [join(directory, "bin/assent.js"), ...args, "--workspace", directory],
        { env },
        (error, out, wrong) =>
          resume(error === null ? Effect.succeed(out) : Effect.dieMessage(`${error.message}: ${wrong}`))
      ).stdin?.end()
    })
  /** The cache files of the runs, by name, with the hash that each of them ends with, and the number of runs. */
  const caches = () => {
    const files = readdirSync(compiled, { recursive: true, encoding: "utf8" }).map((name) => join(compiled, name))
    const runs = files.find((file) => file.endsWith("/run/runs"))
    const whole = new Map<string, { size: number; hash: string }>()
    for (const file of files.filter((name) => /\/run\/[^/]+\.js/.test(name))) {
      const bytes = readFileSync(file)
      const hash = createHash("sha256").update(bytes.subarray(0, -32)).digest("hex")
      assert.strictEqual(bytes.subarray(-32).toString("hex"), hash, file)
      whole.set(file, { size: bytes.length, hash })
    }
    return {
      whole,
      size: [...whole.values()].reduce((sum, { size }) => sum + size, 0),
      runs: runs === undefined ? 0 : statSync(runs).size
    }
  }
  /** As if so many runs had ended well. */
  const counted = (runs: number) => {
    const place = [...caches().whole.keys()].find((file) => file.endsWith("/main.js"))
    assert.isDefined(place)
    writeFileSync(join(place, "../runs"), ".".repeat(runs))
    return join(place, "../runs")
  }
  const pieces = () =>
    readdirSync(compiled, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"))
  /** The parts of Node that the last run loaded. */
  const parts = (): ReadonlyArray<string> => JSON.parse(readFileSync(loaded, "utf8")).parts
  /** The pieces of the program that the last run loaded, and whether each was there compiled. */
  const scripts = (): ReadonlyArray<readonly [name: string, wasCompiled: boolean]> =>
    JSON.parse(readFileSync(loaded, "utf8")).scripts
  return { directory, compiled, assent, pieces, caches, counted, parts, scripts }
}

/** As nobody has run it. */
const installed = Effect.acquireRelease(
  Effect.sync(() => install()),
  ({ directory }) => Effect.sync(() => rmSync(directory, { recursive: true }))
)

let first = ""
beforeAll(() => {
  const { assent, directory } = install()
  first = directory
  return Effect.runPromise(assent("run", "--model", "offline", "hello"))
})
afterAll(() => rmSync(first, { recursive: true, force: true }))

/** After one run, which was a greeting. */
const greeted = Effect.acquireRelease(
  Effect.sync(() => install(first)),
  ({ directory }) => Effect.sync(() => rmSync(directory, { recursive: true }))
)

/** A request that has much more of the program compiled than a greeting, in the same pieces. */
const tools = "read bin/package.json and list bin and read bin/assent.js"

/** The pieces of the program that are loaded with one of them, in bytes. */
const loadedWith = (name: string, seen = new Map<string, number>()): ReadonlyMap<string, number> => {
  if (seen.has(name)) return seen
  const code = readFileSync(join(resolve("dist/bin/program"), name), "latin1")
  seen.set(name, code.length)
  const atOnce = code.replaceAll(/\(\)=>require\("[^"]+"\)/g, "")
  for (const [, other = ""] of atOnce.matchAll(/require\("\.\/([^"]+)"\)/g)) loadedWith(other, seen)
  return seen
}

describe("how the program starts", () => {
  it("help and the version are told by a small part of it", () => {
    const sizes = [...loadedWith("main.js").values()]
    const program = readdirSync("dist/bin/program").filter((name) => name.endsWith(".js"))
    assert.isBelow(sizes.length, program.length / 10)
    assert.isBelow(
      sizes.reduce((sum, size) => sum + size, 0),
      120_000
    )
  })

  it("no piece of it asks for a module with import(), which a script that was compiled ahead cannot", () => {
    const program = resolve("dist/bin/program")
    const asking = readdirSync(program)
      .filter((name) => name.endsWith(".js"))
      .filter((name) => /(?<![\w$.])import\(/.test(readFileSync(join(program, name), "latin1")))
    assert.deepStrictEqual(asking, [])
  })

  it("every piece of it loads, with those that it names, whatever command asks for it", async () => {
    const assent = resolve("dist/bin/assent.js")
    // `start.ts` in short. What the main piece runs is the version.
    const code = `const program = join(${JSON.stringify(assent)}, "../program"), loaded = new Map()
      const outside = createRequire(${JSON.stringify(assent)})
      const load = (id) => {
        if (!id.startsWith("./")) return outside(id)
        if (!loaded.has(id)) {
          const module = { exports: {} }, file = join(program, id)
          loaded.set(id, module)
          runInThisContext(readFileSync(file, "latin1"))(module.exports, load, module, file, program)
        }
        return loaded.get(id).exports
      }
      for (const name of readdirSync(program)) if (name.endsWith(".js")) load("./" + name)
      process.on("exit", () => console.log(loaded.size))`
    const parts =
      'import { createRequire } from "module"; import { join } from "path"; import { runInThisContext } from "vm"'
    const all = `${parts}; import { readdirSync, readFileSync } from "fs"\n${code}`
    const words = ["--input-type=module", "-e", all, "--", "assent", "--version"]
    const { stdout } = await promisify(execFile)(process.execPath, words, { timeout: 60_000 })
    const pieces = readdirSync(resolve("dist/bin/program")).filter((name) => name.endsWith(".js"))
    assert.match(stdout, /^\d+\.\d+\.\d+\n/)
    assert.strictEqual(stdout.trimEnd().split("\n").at(-1), String(pieces.length))
  })

  it.scopedLive("a run keeps what was compiled for it, whole, and the next one takes it and keeps nothing", () =>
    Effect.gen(function* () {
      const { assent, compiled, pieces } = yield* installed
      assert.match(yield* assent("run", "--model", "offline", "read bin/package.json"), /\{\}/)
      const kept = pieces()
      assert.isTrue(kept.some((name) => name.endsWith("/main.js")))
      assert.isTrue(kept.some((name) => /\/Run-[^/]+\.js$/.test(name)))
      assert.isAbove(kept.length, 10)
      const contents = () => kept.map((name) => readFileSync(join(compiled, name)).toString("base64"))
      const before = contents()
      assert.match(yield* assent("run", "--model", "offline", "read bin/package.json"), /\{\}/)
      assert.deepStrictEqual(pieces(), kept)
      assert.deepStrictEqual(contents(), before)
      // What a chat calls of the same pieces is kept apart.
      yield* assent("chat", "--model", "offline")
      const more = pieces().filter((name) => !kept.includes(name))
      assert.isTrue(more.some((name) => name.endsWith("/chat/main.js")))
      assert.isTrue(more.every((name) => name.includes("/chat/")))
      assert.deepStrictEqual(contents(), before)
    })
  )

  it.scopedLive("a run without commands loads no part of Node for processes, for the network or for measuring", () =>
    Effect.gen(function* () {
      const { assent, parts } = yield* greeted
      yield* assent("run", "--model", "offline", "read bin/package.json")
      const costly = ["child_process", "perf_hooks", "http", "https", "tls", "zlib", "internal/deps/undici/undici"]
      assert.deepStrictEqual(
        costly.filter((name) => parts().includes(`NativeModule ${name}`)),
        []
      )
      // The probe sees one that is there.
      assert.include(parts(), "NativeModule crypto")
    })
  )

  it.scopedLive("a command that needs little of the program keeps nothing for those that need all of it", () =>
    Effect.gen(function* () {
      const { assent, compiled } = yield* installed
      assert.match(yield* assent("--version"), /^\d+\.\d+\.\d+/)
      yield* assent("sessions")
      assert.throws(() => readdirSync(compiled))
    })
  )

  it.scopedLive("a command takes what a run kept, and so does the first chat, which keeps its own", () =>
    Effect.gen(function* () {
      const { assent, pieces, scripts } = yield* installed
      yield* assent("run", "--model", "offline", "read bin/package.json")
      assert.isTrue(scripts().every(([, wasCompiled]) => !wasCompiled))
      const kept = pieces()
      const compiledOf = () =>
        scripts().flatMap(([name, wasCompiled]) =>
          kept.some((file) => file.endsWith(`/run/${name}`)) ? wasCompiled : []
        )
      yield* assent("sessions")
      assert.isAbove(compiledOf().length, 5)
      assert.notInclude(compiledOf(), false)
      assert.deepStrictEqual(pieces(), kept)
      yield* assent("chat", "--model", "offline")
      assert.notInclude(compiledOf(), false)
      const own = pieces().filter((name) => name.includes("/chat/"))
      assert.deepStrictEqual(
        own.map((name) => name.slice(name.lastIndexOf("/") + 1)).sort(),
        scripts()
          .map(([name]) => name)
          .sort()
      )
    })
  )

  it.scopedLive("a program that was changed takes nothing of what was compiled before, be it of the same length", () =>
    Effect.gen(function* () {
      const { assent, directory } = yield* greeted
      const version = (yield* assent("--version")).trim()
      // A piece's name has a hash of its text, and the main piece names it.
      const place = (name: string) => join(directory, "bin/program", name)
      const piece = [...loadedWith("main.js").keys()].find((name) =>
        readFileSync(place(name), "latin1").includes(version)
      )
      assert.isDefined(piece)
      const renamed = piece.replace(/-.{8}\.js$/, "-changed_.js")
      const changed = readFileSync(place(piece), "latin1").replaceAll(version, version.replaceAll(/\d/g, "7"))
      writeFileSync(place(renamed), changed)
      writeFileSync(place("main.js"), readFileSync(place("main.js"), "latin1").replaceAll(piece, renamed))
      assert.strictEqual((yield* assent("--version")).trim(), version.replaceAll(/\d/g, "7"))
    })
  )

  it.scopedLive("what cannot be used is not used, and what cannot be kept is not kept", () =>
    Effect.gen(function* () {
      const { assent, compiled, pieces } = yield* installed
      const run = assent("run", "--model", "offline", "read bin/package.json")
      // A file where the directory would be: as good as a place that nobody may write to.
      writeFileSync(compiled, "")
      assert.match(yield* run, /\{\}/)
      rmSync(compiled)
      assert.match(yield* run, /\{\}/)
      for (const [index, name] of pieces().entries()) {
        const file = join(compiled, name)
        if (index % 3 === 0) truncateSync(file, index % 2 === 0 ? 0 : 100)
        else if (index % 3 === 1) writeFileSync(file, "what another program left here".repeat(100))
      }
      assert.match(yield* run, /\{\}/)
    })
  )

  it.scopedLive("what was damaged on the disk is not used, and kept anew", () =>
    Effect.gen(function* () {
      const { assent, compiled, pieces } = yield* greeted
      const run = assent("run", "--model", "offline", "read bin/package.json")
      const files = pieces().map((name) => join(compiled, name))
      const damagedAt = (file: string) => {
        const bytes = readFileSync(file)
        const at = bytes.length >> 1
        bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at)
        return bytes
      }
      const damaged = new Map(files.map((file) => [file, damagedAt(file)]))
      for (const [file, bytes] of damaged) writeFileSync(file, bytes)
      assert.match(yield* run, /\{\}/)
      for (const [file, bytes] of damaged) assert.isFalse(readFileSync(file).equals(bytes), file)
      assert.match(yield* run, /\{\}/)
    })
  )

  // These take many starts, and are about when the cache is worth it: the soak has them.
  const whole = it.scopedLive.skipIf(!Runs.isWhole)

  whole("a run that compiled much more keeps all of it, and the next one finds it", () =>
    Effect.gen(function* () {
      const { assent, caches } = yield* installed
      // It fails early, so little was compiled, and it is not counted.
      yield* Effect.exit(assent("run", "--model", "offline", "--profile", "nobody", "hello"))
      const early = caches()
      assert.isAbove(early.size, 0)
      assert.strictEqual(early.runs, 0)
      yield* assent("run", "--model", "offline", "hello")
      const first = caches()
      assert.isAbove(first.size, early.size)
      assert.strictEqual(first.runs, 1)
      // The piece with the agent in it was there before.
      assert.isTrue([...early.whole].some(([file, { size }]) => (first.whole.get(file)?.size ?? 0) > size * 1.05))
      yield* assent("run", "--model", "offline", tools)
      const second = caches()
      assert.isAbove(second.size, first.size * 1.03)
      yield* assent("run", "--model", "offline", "hello")
      yield* assent("run", "--model", "offline", tools)
      const fourth = caches()
      assert.deepStrictEqual(fourth.whole, second.whole)
      assert.strictEqual(fourth.runs, 4)
    })
  )

  it.scopedLive("a program that is removed or built anew while it runs says so, and how to go on", () =>
    Effect.gen(function* () {
      const { directory } = yield* greeted
      const place = yield* Program.place
      const script = yield* place.script({ text: "First." })
      const program = join(directory, "bin/assent.js")
      const screen = yield* Pseudo.start(place, ["chat", "--model", script], { program })
      yield* screen.sees((text) => text.endsWith("\n>"))
      yield* screen.type("begin\r")
      yield* screen.sees((text) => text.includes("First.") && text.endsWith("\n>"))
      rmSync(join(directory, "bin"), { recursive: true })
      yield* screen.type("/permissions\r")
      assert.strictEqual(yield* screen.exit, 1)
      assert.match(screen.everything(), /\nTo resume: assent chat --resume ses_\S+\n/)
      assert.match(screen.everything().replaceAll("\n", " "), /assent: Part of assent is missing .* Start it again\./)
    })
  )

  whole("only some runs look whether it is worth it, and none when there have been many", () =>
    Effect.gen(function* () {
      const { assent, caches, counted } = yield* greeted
      const { whole } = caches()
      for (const runs of [2, 5, 254, 256]) {
        counted(runs)
        yield* assent("run", "--model", "offline", tools)
        assert.deepStrictEqual(caches().whole, whole, `after ${runs} runs`)
        assert.strictEqual(caches().runs, runs < 256 ? runs + 1 : runs)
      }
      counted(255)
      yield* assent("run", "--model", "offline", tools)
      assert.notDeepEqual(caches().whole, whole)
    })
  )

  whole("runs that keep it anew at once leave whole files, and nothing else", () =>
    Effect.gen(function* () {
      const { assent, caches, counted } = yield* greeted
      const first = caches()
      // Three run beside each other, and at least two of them look.
      counted(0)
      const run = assent("run", "--model", "offline", tools)
      yield* Effect.all([run, run, run], { concurrency: "unbounded" })
      const later = caches()
      assert.isAbove(later.size, first.size * 1.03)
      assert.deepStrictEqual([...later.whole.keys()].toSorted(), [...first.whole.keys()].toSorted())
      assert.match(yield* run, /read_file/)
    })
  )

  it.scopedLive.skipIf(process.getuid?.() !== 0)("an administrator replaces nothing that a user kept", () =>
    Effect.gen(function* () {
      const { assent, caches, counted } = yield* greeted
      const { whole } = caches()
      chownSync(counted(1), 12_345, 12_345)
      yield* assent("run", "--model", "offline", tools)
      assert.deepStrictEqual(caches().whole, whole)
      assert.strictEqual(caches().runs, 1)
    })
  )
})
