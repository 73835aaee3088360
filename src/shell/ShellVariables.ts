/**
 * The values that a command gives to variables itself. Generous: a variable may have any of these values anywhere, in
 * any order. A variable that the command does not set is empty, because commands get an environment of few names.
 */
import type { CommandLine } from "./CommandLine.js"

/** By name. An empty list: the variable is set to something unseen. */
export type Variables = ReadonlyMap<string, ReadonlyArray<string>>

/** An assignment as it is written, without quotes; no value where it is read from somewhere. */
export interface Assignment {
  readonly name: string
  readonly value: string | undefined
}

/** A word of a text that cannot be parsed, and the program it may belong to. */
export interface LooseWord {
  readonly word: string
  readonly program: string
}

/**
 * Every assignment in a command, also in front of its programs. In a text that cannot be parsed, everything that looks
 * like one.
 */
export const assignments = (command: string, line: CommandLine | undefined): ReadonlyArray<Assignment> => {
  if (line === undefined) {
    const bare = bareOf(command)
    const set = [...bare.matchAll(/(?:^|[\s;&|(){}`])([A-Za-z_]\w*)\+?=([^\s;&|()`]*)/g)]
    const loops = [...bare.matchAll(/(?:^|[\s;&|(){}`])(?:for|select)\s+([A-Za-z_]\w*)\s+in\s+([^;\n]*)/g)]
    const read = [...bare.matchAll(/\b(?:read|getopts|mapfile|readarray)\s([^;&|<>\n]*)/g)]
    return [
      ...set.map(([, name = "", value = ""]) => ({ name, value })),
      ...loops.flatMap(([, name = "", list = ""]) => list.split(/\s+/).map((value) => ({ name, value }))),
      ...read.flatMap(([, names = ""]) => unseen(names.split(/\s+/)))
    ]
  }
  return line.commands.flatMap(({ assignments, program, words }) => [
    ...[...assignments, ...(declaring.has(program) ? words.slice(1) : [])].flatMap((text) => {
      const [, name, value] = /^([A-Za-z_]\w*)\+?=(.*)$/s.exec(text) ?? []
      return name === undefined ? [] : [{ name, value }]
    }),
    ...(reading.has(program) ? unseen(words.slice(1)) : [])
  ])
}

/** The words of a text that cannot be parsed, without quotes: the pieces between blanks and operators. */
export const looseWords = (command: string): ReadonlyArray<LooseWord> =>
  bareOf(command)
    .split(/[;&|()`\n]+/)
    .flatMap((segment) => {
      const words = segment.split(/[<>\s]+/).filter((word) => word !== "")
      const at = words.findIndex((word) => !leads.test(word))
      const program = words[at] ?? ""
      return words.flatMap((word, index) => (index === at ? [] : [{ word, program }]))
    })

export const make = (found: ReadonlyArray<Assignment>): Variables => {
  const out = new Map<string, Array<string>>()
  for (const { name, value } of found) {
    const values = out.get(name) ?? []
    if (value !== undefined) values.push(value)
    out.set(name, values)
  }
  return out
}

/**
 * The texts that a word may become with known values put in. Unknown expansions stay as written. Nothing when there are
 * too many texts to check.
 */
export const resolve = (text: string, variables: Variables): ReadonlyArray<string> | undefined => {
  let texts: ReadonlyArray<string> = [text.includes("${#") ? text.replace(/\$\{#\w+\}/g, "0") : text]
  // A value may hold another variable.
  for (let depth = 0; depth < 4 && texts.some((text) => text.includes("$")); depth++) {
    const next = new Set<string>()
    for (const known of texts) {
      const all = once(known, variables)
      if (all === undefined) return undefined
      for (const one of all) next.add(one)
      if (next.size > maxTexts) return undefined
    }
    texts = [...next]
  }
  return texts
}

/** The text takes a part of a variable that the system sets: a home without its end is the directory of all homes. */
export const cutsGiven = (text: string, variables: Variables): boolean => {
  for (const [, name = ""] of text.matchAll(/\$\{([A-Za-z_]\w*)(?:[%#/^,@]|:(?![-+=?]))/g))
    if (given.test(name) && !variables.has(name)) return true
  return false
}

/** The name of the variable that a text begins with. */
export const leading = (text: string): string | undefined => {
  const [, plain, braced] = /^\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*))/.exec(text) ?? []
  return plain ?? braced
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxTexts = 64

/** A value that holds itself many times grows with every look, beyond what fits into memory. */
const maxLength = 65_536

const declaring: ReadonlySet<string> = new Set("export readonly declare typeset local env set".split(" "))
const reading: ReadonlySet<string> = new Set("read getopts mapfile readarray".split(" "))

const unseen = (words: ReadonlyArray<string>): ReadonlyArray<Assignment> =>
  words.flatMap((name) => (/^[A-Za-z_]\w*$/.test(name) ? [{ name, value: undefined }] : []))

// Shell keywords after which a command begins, and assignments in front of a command.
const leads = /^(?:if|then|elif|else|while|until|do|time|coproc|!|\{|[A-Za-z_]\w*\+?=.*)$/s

const bareOf = (command: string): string => command.replace(/\\\n/g, "").replace(/\$(?=["'])|["'\\]/g, "")

const expansion = /\$(?:([A-Za-z_]\w*|[1-9@*!])|\{([A-Za-z_]\w*|[1-9@*!])(?::?[-=+]([^{}]*)|([%#/^,@:])[^{}]*)?\})/g

/** Variables that the system or the shell sets. */
const given = new RegExp(
  "^(?:HOME|PWD|OLDPWD|PATH|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\\w+|TZ|TERM|PAGER|CI|TMPDIR|TMP|TEMP|XDG_\\w+|" +
    "\\w+_(?:HOME|DIR|ROOT|PREFIX|PATH)|PPID|UID|EUID|HOSTNAME|IFS|RANDOM|SECONDS|LINENO|OPTARG|OPTIND|BASH\\w*|EPOCH\\w+)$"
)

/** Replaces each expansion by each of its values; a word has few expansions. Nothing when the texts become too long. */
const once = (text: string, variables: Variables): ReadonlyArray<string> | undefined => {
  let texts: ReadonlyArray<string> = [""]
  let at = 0
  for (const match of text.matchAll(expansion)) {
    const [written, plain, braced, fallback, cut] = match
    const whole = valuesOf(plain ?? braced ?? "", written, variables)
    const values = cut === undefined ? whole : partsOf(whole, cut, written)
    if (values === undefined) return undefined
    const all = fallback === undefined ? values : [...values, fallback]
    const between = text.slice(at, match.index)
    texts = texts.flatMap((head) => all.map((value) => head + between + value))
    if (texts.length > maxTexts) return texts
    if (texts.some((head) => head.length > maxLength)) return undefined
    at = match.index + written.length
  }
  return texts.map((head) => head + text.slice(at))
}

/** What an operator may leave of values. Nothing where that cannot be told: it replaces, or there is too much. */
const partsOf = (
  values: ReadonlyArray<string>,
  operator: string,
  written: string
): ReadonlyArray<string> | undefined => {
  const out = new Set<string>()
  for (const value of values) {
    if (value === written || value === "") out.add(value)
    else if (operator !== "%" && operator !== "#") return undefined
    else if (value.length > maxTexts) return undefined
    else for (let at = 0; at <= value.length; at++) out.add(operator === "%" ? value.slice(0, at) : value.slice(at))
  }
  return [...out]
}

const valuesOf = (name: string, written: string, variables: Variables): ReadonlyArray<string> => {
  const values = variables.get(name)
  if (values !== undefined) return values.length === 0 ? [written] : values
  return given.test(name) ? [written] : [""]
}
