#!/usr/bin/env node
/**
 * What is started: loads the program together with what V8 made of its text before, which takes a third off the time until
 * the first model call.
 *
 * ```
 *  dist/bin/assent.js               this
 *  dist/bin/program/main.js, …      the program, in pieces that are loaded when they are asked for
 *  dist/bin/program/compiled/…      what V8 made of each piece, by its version; written by the first run that ends
 * ```
 *
 * V8 refuses what another version of it made, and a piece has the hash of its text in its name. Who could write something
 * false there could as well change the program.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Script } from "node:vm"

/** What the bundler makes of a piece: a function of what CommonJS gives it. */
type Piece = (
  exports: object,
  require: (id: string) => unknown,
  module: { exports: object },
  filename: string,
  directory: string
) => void

const program = join(dirname(fileURLToPath(import.meta.url)), "program")
const compiled = join(program, "compiled", `${process.versions.v8}-${process.arch}`)
const loaded = new Map<string, { exports: object }>()
/** What V8 had to read itself, by where the result is to be kept. */
const fresh = new Map<string, Script>()
const outside = createRequire(import.meta.url)

const load = (file: string): object => {
  const known = loaded.get(file)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  loaded.set(file, module)
  const directory = dirname(file)
  const require = (id: string) => (id.startsWith(".") ? load(resolve(directory, id)) : outside(id))
  // A script's value has no type.
  const piece = compile(file).runInThisContext() as Piece
  piece(module.exports, require, module, file, directory)
  return module.exports
}

const compile = (file: string): Script => {
  const place = join(compiled, basename(file))
  const cachedData = readIfThere(place)
  // The bundler wrote ASCII: half the memory, and nothing to decode.
  const script = new Script(readFileSync(file, "latin1"), { filename: file, cachedData })
  if (cachedData === undefined) fresh.set(place, script)
  return script
}

const readIfThere = (file: string): Buffer | undefined => {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

/** Only what runs agents has had most of the program compiled by its end; what other commands leave would be little. */
const keep = (): void => {
  if (fresh.size === 0 || ![...loaded.keys()].some((file) => /^(?:Run|Chat)-/.test(basename(file)))) return
  try {
    mkdirSync(compiled, { recursive: true })
    for (const [place, script] of fresh) {
      const half = `${place}.${process.pid}`
      writeFileSync(half, script.createCachedData())
      renameSync(half, place)
    }
  } catch {
    // This user may not write here: every start takes as long as the first.
  }
}

process.on("exit", keep)
load(join(program, "main.js"))
