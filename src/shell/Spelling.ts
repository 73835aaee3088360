/** How a command is spelled, for rules that deny: every text by which one of them may mean it. */
import type * as Glob from "../core/Glob.js"
import type { CommandLine, Reading } from "./CommandLine.js"
import * as CommandText from "./CommandText.js"
import * as Haystack from "./Haystack.js"
import * as Program from "./Program.js"

/** The texts that a pattern is compared with. `line`: nothing for a command that cannot be parsed. */
export const texts = (
  command: string,
  line: CommandLine | undefined,
  readings: ReadonlyArray<Reading>
): ReadonlyArray<string> => {
  const trimmed = CommandText.trim(command)
  const written = new Set([command, trimmed, /\t| {2}/.test(trimmed) ? trimmed.replace(/[ \t]+/g, " ") : trimmed])
  for (const { text } of line?.commands ?? []) written.add(text)
  const out = [...written]
  // The readings hardly repeat each other. Those of a text that cannot be parsed are pieces of it.
  for (const { named, text, words } of readings) {
    if (!named) continue
    if (line === undefined || !written.has(text)) out.push(text)
    const [program = ""] = words
    // A program called by its path counts by its name too.
    if (program.includes("/")) out.push(text.slice(program.length - Program.basename(program).length))
  }
  return out
}

/** The word that may become the pattern's text after expansion. */
export const mayBecome = (line: CommandLine | undefined, { head }: Glob.Glob): string | undefined => {
  for (const { dynamic, program, words } of line?.commands ?? []) {
    if (!dynamic || !head.startsWith(program)) continue
    const at = words.findIndex((word, i) => i > 0 && unknown.test(word))
    if (at < 0) continue
    const word = words[at] ?? ""
    const known = [...words.slice(0, at), word.slice(0, word.search(unknown))].join(" ")
    if (head.length > known.length && head.startsWith(known)) {
      return `What ${word} becomes cannot be told before it runs; write it out.`
    }
  }
  return undefined
}

/** What stands between the parentheses of a pattern over a tool's calls, as patterns for its commands. */
export const commandsIn = (text: string): ReadonlyArray<Haystack.Needle> => {
  const starts = [...text.matchAll(/(?:^\*?|, *\*?)[^\s=,:/?&*()[\]]+=/g)]
  if (starts.length > mostArguments) return [Haystack.needle("*")]
  const values = starts.map(({ 0: start, index }, at) => {
    const from = index + start.length
    return [text.slice(from), text.slice(from, starts[at + 1]?.index)]
  })
  return [...new Set([text, ...values.flat()])].map(Haystack.needle)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An expansion, or a glob that the shell may replace by files. */
const unknown = /[$`*?[{~]/

/** Who writes more of them means no call of a tool that there is; all of its commands are denied then. */
const mostArguments = 16
