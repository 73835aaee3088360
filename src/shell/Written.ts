/**
 * The files that a command writes itself, and whether a program in it runs one of them: then nobody can tell what runs.
 *
 * Files are compared by their names alone, whatever directory they are in: the command may change it, or give it by a
 * variable. What a program writes without a word of the command (an archiver, a compiler, a script) is not seen.
 */
import * as Harmless from "./Harmless.js"
import * as Interpreter from "./Interpreter.js"
import * as Program from "./Program.js"
import type { CommandLine } from "./ShellGrammar.js"

/** Names, without their directories. */
export type Written = ReadonlySet<string>

export const none: Written = new Set()

/** With what the line around this one writes. */
export const inLine = ({ commands, redirects }: CommandLine, around: Written): Written => {
  const out = new Set(around)
  for (const { operator, target } of redirects) {
    if (operator.includes(">") && !/^(?:\d+-?|-|\/dev\/.*)$/.test(target)) out.add(nameOf(target))
  }
  for (const { words } of commands) {
    for (const [at, word] of words.entries()) {
      if (at > maxWords) break
      const program = Program.nameOf(word)
      if (!placing.has(program) || (at > 0 && !Harmless.isKnown(word)) || Harmless.isHarmless(words.slice(at))) continue
      if (words.length > maxWords) return new Set([anything])
      // The script that it follows is not what it writes.
      const option = scripts.get(program)
      const followed = option === undefined ? [] : valuesOf(words, option)
      for (const word of words.slice(at + 1)) if (!followed.includes(word)) addNames(out, word)
      break
    }
  }
  return out.size === 0 ? none : out
}

/** The program with these words runs a file that was written, reads its orders from one, or begins with one. */
export const isRunBy = (written: Written, words: ReadonlyArray<string>): boolean => {
  if (written.size === 0) return false
  const [program = ""] = words
  const isWritten = (path: string) => written.has(anything) || written.has(nameOf(path))
  if (program.includes("/") && isWritten(program)) return true
  const name = Program.nameOf(program)
  if (beginnings.get(name)?.some((file) => written.has(file)) === true) return true
  const option = scripts.get(name)
  if (option !== undefined) return valuesOf(words, option).some(isWritten)
  if (!sourcing.test(program) && !Interpreter.isInterpreter(program)) return false
  const operands = scriptsOf(words)
  return (
    operands.some((word) => isWritten(word) || isWritten(`${word.replace(/^.*\./s, "")}.py`)) ||
    (Interpreter.speaksAnother(program) && words.some((word, at) => at > 0 && imports(word, written)))
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxWords = 256
const longestWord = 4096

/** Stands for names that nobody looked at. */
const anything = "*"

const nameOf = (path: string): string => Program.basename(path.replace(/\/+$/, "")).toLowerCase()

const addNames = (out: Set<string>, word: string): void => {
  if (word.length > longestWord) {
    out.add(anything)
    return
  }
  out.add(nameOf(word))
  // The value of an option, a name within a script of `sed` or `awk`, the file at the end of an address.
  for (const piece of word.replace(/^-[A-Za-z]/, " ").split(/[^\w.+-]+/)) if (piece !== "") out.add(piece.toLowerCase())
}

/** They write files that their words name: all their words count. */
const placing: ReadonlySet<string> = new Set(
  "tee cp mv ln install dd sort curl wget sed gsed awk gawk mawk nawk split csplit rsync scp patch truncate xxd".split(
    " "
  )
)

const sourcing = /^(?:\.|source)$/

/** The words that may be the script: the first operand, and those that an option before it may have taken as its value. */
const scriptsOf = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const out: Array<string> = []
  let isValue = false
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ""
    if (/^[-+]./.test(word)) {
      isValue = word !== "--"
      if (word.includes("=")) out.push(word.slice(word.indexOf("=") + 1))
      continue
    }
    out.push(word)
    if (!isValue) break
    isValue = false
  }
  return out
}

/** Options of programs that are no interpreters of scripts, whose value is a file with orders. */
const scripts: ReadonlyMap<string, RegExp> = new Map([
  ...["sed", "gsed"].map((name): [string, RegExp] => [name, /^(?:-[nErszu]*f|--file=?)/]),
  ...["awk", "gawk", "mawk", "nawk"].map((name): [string, RegExp] => [
    name,
    /^(?:-[fEil]|--(?:file|exec|include|load)=?)/
  ]),
  ...["make", "gmake", "bmake"].map((name): [string, RegExp] => [name, /^(?:-[A-Za-z]*f|--(?:make)?file=?)/])
])

const valuesOf = (words: ReadonlyArray<string>, option: RegExp): ReadonlyArray<string> =>
  words.flatMap((word, at) => {
    const found = option.exec(word)
    if (at === 0 || found === null) return []
    const glued = word.slice(found[0].length)
    return [glued === "" ? (words[at + 1] ?? "") : glued]
  })

/** The files with which programs begin, unless they are told another. */
const beginnings: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ...["make", "gmake", "bmake"].map((name): [string, ReadonlyArray<string>] => [
    name,
    ["makefile", "gnumakefile", "bsdmakefile"]
  ]),
  ...["npm", "npx", "pnpm", "pnpx", "yarn", "yarnpkg", "bun", "bunx"].map((name): [string, ReadonlyArray<string>] => [
    name,
    ["package.json"]
  ]),
  ["just", ["justfile", ".justfile"]],
  ["rake", ["rakefile", "rakefile.rb"]],
  ["pytest", ["conftest.py"]]
])

const module_ = /^(.+)\.(?:py|js|mjs|cjs|ts|mts|cts|rb|pl|pm|lua|php)$/

/** Code on the command line speaks of a written module by its name. */
const imports = (code: string, written: Written): boolean => {
  for (const file of written) {
    const name = module_.exec(file)?.[1]
    if (name !== undefined && code.toLowerCase().split(/\W+/).includes(name)) return true
  }
  return false
}
