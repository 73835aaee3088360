import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"

/** The program as it is built, in a place of its own, as nobody has run it. */
const installed = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = mkdtempSync(join(tmpdir(), "assent-start-"))
    cpSync(resolve("dist/bin"), join(directory, "bin"), { recursive: true })
    symlinkSync(resolve("node_modules"), join(directory, "node_modules"))
    const compiled = join(directory, "bin/program/compiled")
    rmSync(compiled, { recursive: true, force: true })
    const probe = join(directory, "probe.cjs")
    const loaded = join(directory, "loaded.json")
    writeFileSync(
      probe,
      `process.on("exit", () => require("fs").writeFileSync(${JSON.stringify(loaded)}, JSON.stringify(process.moduleLoadList)))`
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
    const pieces = () =>
      readdirSync(compiled, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"))
    /** The parts of Node that the last run loaded. */
    const parts = (): ReadonlyArray<string> => JSON.parse(readFileSync(loaded, "utf8"))
    return { directory, compiled, assent, pieces, parts }
  }),
  ({ directory }) => Effect.sync(() => rmSync(directory, { recursive: true }))
)

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
      const { assent, parts } = yield* installed
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

  it.scopedLive("a program that was changed takes nothing of what was compiled before, be it of the same length", () =>
    Effect.gen(function* () {
      const { assent, directory } = yield* installed
      yield* assent("run", "--model", "offline", "read bin/package.json")
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
      const { assent, compiled, pieces } = yield* installed
      const run = assent("run", "--model", "offline", "read bin/package.json")
      yield* run
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
})
