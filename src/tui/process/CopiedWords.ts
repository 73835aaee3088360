/**
 * What a person copies out of a sentence of ours: commands, and flags with what is given to them. A row that ends within
 * one makes two of it. All pure.
 */
import { commandNames } from "../../host/CommandName.js"

/** The line with a blank that is none between what stays together. */
export const joined = (line: string): string => {
  const words = line.split(blank)
  let out = ""
  for (let at = 0; at < words.length;) {
    const end = endOf(words, at)
    out += (at === 0 ? "" : " ") + words.slice(at, end).join(glue)
    at = end
  }
  return out
}

/** What {@link joined} was made of. */
export const parted = (line: string): string => line.replaceAll(glue, " ")

/** Whether {@link joined} made one of these words. */
export const isJoined = (word: string): boolean => word.includes(glue)

/** Between words; blanks that part columns stay in one. */
export const blank = /(?<=\S) (?=\S)/

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** As wide as a blank. Sentences of ours have no such character. */
const glue = "\u00a0"

const programs = /^(?:npm|npx|ollama|sysctl|chmod|export|git|apt-get|dnf|apk|pacman|brew)$/
/** What stands before a command: the start of a row or of a sentence, the word that bids to run it, or another one. */
const lead = /(?:^|[.:;,]|\b(?:run|with|type|use|or))$/i
/** What a sentence says of the command before it. */
const said = /^(?:or|and|in|to|takes|needs|lists|shows|says|tells|holds|\(.*)$/
const stop = /[.,:;)?]$/
const value = /^(?:[A-Z]{2,}|[^-].*[:/=])/

const ours: ReadonlySet<string> = new Set(commandNames)

const bare = (word: string): string => word.replace(/\x1b\[[\d;]*m/g, "")

/** Where what begins at this word ends. */
const endOf = (words: ReadonlyArray<string>, start: number): number => {
  // A column's last word belongs to nothing before it.
  const first = bare(words[start] ?? "")
    .replace(/^.* {2,}/, "")
    .trimStart()
  const next = bare(words[start + 1] ?? "")
  if (/^--[a-z][a-z-]*$/.test(first)) return value.test(next) ? start + 2 : start + 1
  const isLed = start === 0 || first !== bare(words[start] ?? "") || lead.test(bare(words[start - 1] ?? ""))
  if (!isLed || !(first === "assent" ? ours.has(next) || next.startsWith("-") : programs.test(first))) return start + 1
  let end = start + 1
  let quote: string | undefined
  while (end < words.length) {
    const word = bare(words[end] ?? "")
    if (quote === undefined && said.test(word.replace(stop, ""))) break
    end += 1
    for (const [mark] of word.matchAll(/["']/g)) quote = quote === undefined ? mark : quote === mark ? undefined : quote
    if (quote === undefined && (stop.test(word) || / {2}/.test(word))) break
  }
  return end
}
