#!/usr/bin/env node
/**
 * What is started: loads the program with what V8 made of its text the last time, which takes a third off its start.
 *
 * ```
 *  dist/bin/assent.js               this
 *  dist/bin/program/main.cjs, …     the program, in pieces that are loaded when they are asked for
 *  dist/bin/program/compiled/…      what V8 made of each piece, by version of V8; written when a run that had none ends
 * ```
 *
 * V8 refuses what another version of it made, and a piece has its text's hash in its name. Whoever could write something
 * false there could as well change the program.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Script } from "node:vm"

type Require = (id: string) => unknown
type Piece = (
  exports: unknown,
  require: Require,
  module: { exports: unknown },
  __filename: string,
  __dirname: string
) => void

const program = join(dirname(fileURLToPath(import.meta.url)), "program")
const compiled = join(program, "compiled", `${process.versions.v8}-${process.arch}`)
const loaded = new Map<string, { exports: unknown }>()
/** Pieces that V8 had to read itself, and where what it made of them goes. */
const fresh = new Map<string, Script>()
const outside = createRequire(import.meta.url)

const load = (file: string): unknown => {
  const known = loaded.get(file)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  loaded.set(file, module)
  const text = readFileSync(file, "utf8").replace(/^#!.*/, "")
  const kept = join(compiled, basename(file))
  const cachedData = readIfThere(kept)
  const script = new Script(`(function(exports,require,module,__filename,__dirname){${text}\n})`, {
    filename: file,
    cachedData
  })
  if (cachedData === undefined) fresh.set(kept, script)
  const piece = script.runInThisContext() as Piece
  const here = dirname(file)
  piece(module.exports, (id) => (id.startsWith(".") ? load(resolve(here, id)) : outside(id)), module, file, here)
  return module.exports
}

const readIfThere = (file: string): Buffer | undefined => {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

/** At the end, when most of what a run needs has been compiled. */
const keep = (): void => {
  if (fresh.size === 0) return
  try {
    mkdirSync(compiled, { recursive: true })
    for (const [file, script] of fresh) {
      const half = `${file}.${process.pid}`
      writeFileSync(half, script.createCachedData())
      renameSync(half, file)
    }
  } catch {
    // Not a place where this user may write: every start takes as long as the first.
  }
}

process.on("exit", keep)
load(join(program, "main.cjs"))
