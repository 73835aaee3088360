#!/usr/bin/env node
/**
 * The entry point. It loads the program together with V8's code cache, which saves a third of the time until the first
 * model call.
 *
 * ```
 *  dist/bin/assent.js               this
 *  dist/bin/program/main.js, …      the program, in pieces that are loaded when they are asked for
 *  dist/bin/program/compiled/…      what V8 made of each piece, by V8, program and kind of command; written by the first
 *                                   run and the first chat that end, and again by one that compiled much more
 * ```
 *
 * V8 checks only the length of a source text and trusts its cache. So a cache file is named by a hash of the text, ends
 * with a hash of itself, and is complete on disk before it gets its name. Anybody who could forge a cache file could as
 * well change the program.
 *
 * The bundled program sees no `process.report`: libsql would generate a whole report to detect the C library, and has
 * another way to detect it.
 */
import { createHash } from "node:crypto"
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync
} from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { cachedDataVersionTag, getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext, Script } from "node:vm"
import * as ExitCode from "../host/ExitCode.js"

/**
 * It has to be said before the program is loaded, because each collection fixes when the next one comes.
 *
 * A peer may flood us with lines. Nothing is kept of them, but V8 makes its young generation larger when enough has
 * outlived a collection, and collects what has only when the heap is four times as large as it was. With a peer the young
 * generation keeps its size, and the heap is collected when it has doubled: a quarter of the memory, at the same speed.
 *
 * Else the young generation grows eightfold at once: five collections while the program starts in place of 39. Sixteenfold
 * would save one more, and an idle chat would hold five megabytes more.
 */
if (process.argv.includes("--jsonl")) {
  setFlagsFromString("--semi-space-growth-factor=1")
  setFlagsFromString("--heap-growing-percent=100")
} else setFlagsFromString("--semi-space-growth-factor=8")
// V8 forgets what it compiled and did not run for a while, and so it would be missing in what is kept at the end.
setFlagsFromString("--no-flush-bytecode")

/**
 * Optimised code pays after a second of work. A start is over by then, and would spend a seventh of its time on it. A cache
 * is for the flags it was made with: with optimisation, which is on whenever V8 takes or makes one.
 */
let isStarting = true
const optimize = (isOn: boolean): void => setFlagsFromString(isOn ? "--opt" : "--no-opt")
setTimeout(() => {
  isStarting = false
  optimize(true)
}, 500).unref()

/** Milliseconds between two looks at what there is to collect. */
const look = 5_000

/**
 * V8 collects when something is made, and an idle program makes nothing: a chat would keep what its last answers left for as
 * long as it waits, a third of its memory. So it is collected after a time in which next to nothing was done, and up to twice
 * more, because V8 does not always give back its young generation at once. That takes 40 ms each. The flag is taken back,
 * because the cache of code is for the flags that it was made with.
 */
const collectWhenIdle = (): void => {
  let before = process.cpuUsage()
  let needed = 0
  let left = 0
  let isOurs = false
  setInterval(() => {
    const { system, user } = process.cpuUsage(before)
    before = process.cpuUsage()
    const isBusy = (user + system) / 1_000 > look / 50 && !isOurs
    isOurs = false
    if (isBusy) left = 3
    if (isBusy || left === 0 || getHeapStatistics().total_heap_size < 1.6 * needed) return
    left--
    isOurs = true
    setFlagsFromString("--expose-gc")
    const collect: unknown = runInNewContext("gc")
    setFlagsFromString("--no-expose-gc")
    if (typeof collect === "function") collect()
    needed = getHeapStatistics().used_heap_size
  }, look).unref()
}

/** A piece as the bundler makes it: a function of the CommonJS arguments. */
type Piece = (
  exports: object,
  require: (id: string) => unknown,
  module: { exports: object },
  filename: string,
  directory: string
) => void

const hash = (bytes: Buffer): Buffer => createHash("sha256").update(bytes).digest()
const hashSize = 32

const program = join(dirname(fileURLToPath(import.meta.url)), "program")

/** A piece that is missing belonged to a program that was built anew or removed while this one runs. */
function read(name: string): Buffer {
  try {
    return readFileSync(join(program, name))
  } catch (cause) {
    throw new Error("Part of assent is missing on the disk: it was replaced or removed meanwhile. Start it again.", {
      cause
    })
  }
}

const main = "main.js"
const v8 = `${process.version}-${process.arch}-${cachedDataVersionTag().toString(16)}`
// The main piece names all other pieces, directly or through others, and their names contain their hashes.
const version = hash(read(main)).toString("hex").slice(0, 16)
/**
 * A run and a chat call other functions of the same piece, and only what was called is kept. Each takes what the other kept
 * until it has its own, and commands that keep nothing take either.
 */
const [work, other] = process.argv[2] === "run" ? (["run", "chat"] as const) : (["chat", "run"] as const)
const kept = join(program, "compiled", v8, version)
const compiled = join(kept, work)
const loaded = new Map<string, { exports: object }>()
/** Scripts that were compiled without a cache, by the path of their cache file. */
const fresh = new Map<string, Script>()
/** Scripts that were made of a cache, with its size. */
const taken = new Map<string, { readonly script: Script; readonly size: number }>()
/** Cache files that are corrupt. */
const damaged = new Set<string>()
const outside = createRequire(import.meta.url)

/** By its name: all pieces are in one directory. */
const load = (name: string): object => {
  const known = loaded.get(name)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  const file = join(program, name)
  // A script's value has no type.
  const piece = compile(file, name).runInThisContext() as Piece
  // Before it runs: pieces may ask for each other.
  loaded.set(name, module)
  piece(module.exports, require, module, file, program)
  return module.exports
}

const require = (id: string): unknown => (id.startsWith("./") ? load(id.slice(2)) : fromOutside(id))

/**
 * The native part of libsql is a dependency of a dependency: not every package manager puts it where we can resolve it.
 */
const fromOutside = (id: string): unknown => {
  try {
    return outside(id)
  } catch (error) {
    if (!id.startsWith("@libsql/")) throw error
    const client = createRequire(outside.resolve("@libsql/client/sqlite3"))
    return createRequire(client.resolve("libsql"))(id)
  }
}

const compile = (file: string, name: string): Script => {
  const place = join(compiled, name)
  const own = readIfThere(place)
  const cachedData = own ?? readIfThere(join(kept, other, name))
  optimize(true)
  // The bundler wrote ASCII: half the memory, and nothing to decode.
  const script = new Script(read(name).toString("latin1"), { filename: file, cachedData })
  if (isStarting) optimize(false)
  if (own === undefined) fresh.set(place, script)
  // V8 rejects a cache that was made under other flags. It stays as it is for those who start without them.
  else if (script.cachedDataRejected === false) taken.set(place, { script, size: own.length })
  return script
}

/** Undefined when the file is absent or corrupt. */
const readIfThere = (file: string): Buffer | undefined => {
  try {
    const content = readFileSync(file)
    const data = content.subarray(0, -hashSize)
    if (hash(data).equals(content.subarray(-hashSize))) return data
    damaged.add(file)
  } catch {
    // Not there.
  }
  return undefined
}

/** Only commands that run agents have most of the program compiled at their end; other commands would cache little. */
const keep = (code: number): void => {
  if (![...loaded.keys()].some((name) => /^(?:Run|Chat)-/.test(name))) return
  try {
    mkdirSync(compiled, { recursive: true })
    optimize(true)
    // Another process may have written it meanwhile.
    const absent = [...fresh].filter(([place]) => !existsSync(place) || damaged.has(place))
    for (const [place, script] of absent) write(place, script.createCachedData())
    if (isTurnToLook(code, absent.length > 0)) keepAnew()
  } catch {
    // This user may not write here: every start takes as long as the first.
  }
}

/** Each file stands for itself, and whoever gives it its name last wins: two processes may do this at once. */
const write = (place: string, data: Buffer): void => {
  const half = `${place}.${process.pid}`
  const file = openSync(half, "w")
  writeSync(file, Buffer.concat([data, hash(data)]))
  fsyncSync(file)
  closeSync(file)
  renameSync(half, place)
}

const mostRuns = 256

/**
 * The first run may have failed early, or called no tool: what later ones call would be compiled at each of their starts.
 * To see how much that is takes as long as to make the cache. So it is seen after the first, second, fourth, … run that
 * ended well, nine times at most, and after one that did something new: it loaded a piece that no other did. The size of a
 * file is the number of runs.
 */
const isTurnToLook = (code: number, isNew: boolean): boolean => {
  if (code !== ExitCode.completed && code !== ExitCode.halted) return false
  const file = openSync(join(compiled, "runs"), "a")
  try {
    const { size, uid } = fstatSync(file)
    // An administrator may write everywhere, and would leave files that their owner cannot replace.
    if (uid !== (process.getuid?.() ?? uid)) return false
    if (size >= mostRuns) return isNew
    writeSync(file, ".")
    return isNew || (size & (size + 1)) === 0
  } finally {
    closeSync(file)
  }
}

/** What was taken and what was compiled since, if that is a thirtieth more: three starts gain what it costs. */
const keepAnew = (): void => {
  const now = [...taken].map(([place, { script, size }]) => ({ place, size, data: script.createCachedData() }))
  const before = now.reduce((sum, { size }) => sum + size, 0)
  const after = now.reduce((sum, { data }) => sum + data.length, 0)
  if (after < before * (31 / 30)) return
  for (const { data, place, size } of now) if (data.length > size) write(place, data)
}

process.on("exit", keep)
collectWhenIdle()
load(main)
