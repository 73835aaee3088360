/**
 * Colours for code, by a highlighter that knows the common languages. It is loaded when there is code to show: it takes
 * longer to load than all the rest of a terminal.
 */
import { common, createLowlight } from "lowlight"
import * as Option from "effect/Option"
import * as TimeLimit from "./TimeLimit.js"
import { colors, over, weights, type Run } from "./StyledText.js"

/** Coloured code. */
export interface Colored {
  readonly lines: ReadonlyArray<ReadonlyArray<Run>>
  /** The last line at whose beginning nothing was open, no comment and no text: what follows can be coloured without what is above. */
  readonly restart: number
}

/**
 * Colours one piece of code; the language as a code fence or a file's name tells it. Undefined when the language is
 * unknown, or when the code takes too long: some code takes the highlighter minutes.
 */
export type Colors = (code: string, language: string) => Colored | undefined

/** A piece of code that is longer, in characters, stays uncoloured. */
export const longest = 50_000

// One for all of a process: a highlighter learns each language for itself, which takes longer than a key may wait.
let lowlight = createLowlight()
let unknown = Object.entries(common)
const prepared = new Set<string>()
/** Code that takes less than a few milliseconds, whatever it is: to watch the time takes longer than most of it. */
const shortest = 512
/** True while it works, and after work that was cut off: a language may be half prepared then. */
let isBusy = false

/** Loads the next few languages; false if all are loaded. Loading all of them at once would delay keys. */
export const learn = (): boolean => {
  for (const [name, grammar] of unknown.splice(0, 4)) lowlight.register(name, grammar)
  return unknown.length > 0
}

/** The same colours until a piece takes too long; from then on none: what follows would take as long. */
export const untilSlow = (colors: Colors): Colors => {
  let isSlow = false
  return (code, language) => {
    if (isSlow) return undefined
    const began = performance.now()
    const found = colors(code, language)
    isSlow = found === undefined && performance.now() - began > TimeLimit.turn / 2
    return found
  }
}

/** The common languages. */
export const ofCode: Colors = (code, language) => {
  if (isBusy) forget()
  while (learn());
  const called = languageOf(language)
  const name = lowlight.registered(called) ? called : languageOfFile(language)
  if (name === "" || code.length > longest || !lowlight.registered(name)) return undefined
  if (!prepared.has(name)) lowlight.highlight(name, "")
  prepared.add(name)
  try {
    return code.length <= shortest ? paint(name, code) : Option.getOrUndefined(TimeLimit.run(() => paint(name, code)))
  } catch {
    // Thousands of texts in each other exhaust the stack.
    return undefined
  }
}

/** The names by which code fences and file names call a language, when they differ from the highlighter's. */
const languageOf = (name: string): string => {
  const word = /^[\w#+.-]*/.exec(name.trim())?.[0].toLowerCase() ?? ""
  return others.get(word) ?? word
}

/** The language of a file, by its name; empty when the name does not tell. */
const languageOfFile = (path: string): string => {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase()
  if (name === "makefile" || name === "dockerfile") return name
  const dot = name.lastIndexOf(".")
  return dot < 0 ? "" : languageOf(name.slice(dot + 1))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const forget = (): void => {
  lowlight = createLowlight()
  unknown = Object.entries(common)
  prepared.clear()
  isBusy = false
}

const paint = (name: string, code: string): Colored => {
  const lines: Array<Array<Run>> = [[]]
  let restart = 0
  const visit = (nodes: ReadonlyArray<Node>, style: number, depth: number): void => {
    for (const node of nodes) {
      if (node.type === "element") visit(node.children, over(style, styleOf(node.properties.className)), depth + 1)
      else if (node.type === "text") {
        for (const [index, text] of node.value.split("\n").entries()) {
          if (index > 0) {
            lines.push([])
            if (depth === 0) restart = lines.length - 1
          }
          if (text !== "") lines.at(-1)?.push({ text, style })
        }
      }
    }
  }
  isBusy = true
  visit(lowlight.highlight(name, code).children, 0, 0)
  isBusy = false
  return { lines, restart }
}

type Node = ReturnType<ReturnType<typeof createLowlight>["highlight"]>["children"][number]

const others = new Map([
  ["console", "shell"],
  ["mts", "typescript"],
  ["cts", "typescript"],
  ["jsonc", "json"],
  ["jsonl", "json"],
  ["ndjson", "json"],
  ["pyi", "python"],
  ["hh", "cpp"],
  ["htm", "xml"],
  ["text", ""],
  ["txt", ""],
  ["plaintext", ""]
])

const styleOf = (names: unknown): number => {
  if (!Array.isArray(names)) return 0
  for (const name of names) {
    const style = styles.get(String(name))
    if (style !== undefined) return style
  }
  return 0
}

const styles = new Map<string, number>([
  ["hljs-comment", weights.dim],
  ["hljs-quote", weights.dim],
  ["hljs-doctag", weights.dim],
  ["hljs-keyword", colors.magenta],
  ["hljs-selector-tag", colors.magenta],
  ["hljs-selector-class", colors.blue],
  ["hljs-selector-id", colors.blue],
  ["hljs-literal", colors.cyan],
  ["hljs-number", colors.cyan],
  ["hljs-symbol", colors.cyan],
  ["hljs-string", colors.green],
  ["hljs-regexp", colors.green],
  ["hljs-char", colors.green],
  ["hljs-addition", colors.green],
  ["hljs-deletion", colors.red],
  ["hljs-title", colors.blue],
  ["hljs-section", weights.bold],
  ["hljs-name", colors.blue],
  ["hljs-attr", colors.blue],
  ["hljs-attribute", colors.blue],
  ["hljs-property", colors.blue],
  ["hljs-built_in", colors.cyan],
  ["hljs-type", colors.yellow],
  ["hljs-variable", colors.yellow],
  ["hljs-template-variable", colors.yellow],
  ["hljs-meta", weights.dim],
  ["hljs-bullet", colors.cyan],
  ["hljs-link", weights.underline],
  ["hljs-strong", weights.bold],
  ["hljs-emphasis", weights.italic],
  ["hljs-subst", 0]
])
