/** What can be told of a command, or of a pattern for commands, by its text alone: nobody takes it apart for that. */
import * as Glob from "../core/Glob.js"

/** In bytes, which are never fewer than UTF-16 units. Longer texts are refused. */
export const maxLength = 20_000

/** Trims only what a shell takes for white space; a blank after a backslash stays. */
export const trim = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (end > start && isSpace(text.charCodeAt(end - 1)) && text[end - 2] !== "\\") end--
  return text.slice(start, end)
}

/** Split at a shell's blanks, and no others. */
export const words = (text: string): ReadonlyArray<string> => text.split(/[ \t\r\n]+/).filter((word) => word !== "")

/** Words with one blank between them. */
export const normal = (text: string): string => words(text).join(" ")

/** The word sets a variable. */
export const isAssignment = (word: string): boolean => assignment.test(word)

/** Why a pattern allows less than its author may expect; nothing for others. */
export const remark = (text: string): string | undefined => {
  const all = words(text)
  const first = all.find((word) => !isAssignment(word)) ?? ""
  if (/^[A-Za-z_][\w-]*\(/.test(first)) return undefined
  const program = first.replace(/\*+$/, "")
  return Glob.isWild(program) || program === ""
    ? `${JSON.stringify(text)} allows no command: name the program, such as "npm test*".`
    : undefined
}

/** The program, where the pattern is about all commands of one program. */
export const onlyProgram = (text: string): string | undefined =>
  /^([A-Za-z0-9_][A-Za-z0-9_.+-]*)(?: ?\*)?$/.exec(text)?.[1]

/** Nothing but stars. */
export const isStars = (text: string): boolean => /^[\s*]*\*[\s*]*$/.test(text)

/** It names nothing: beside wildcards there are only blanks and the brackets around arguments. It may fit everything. */
export const namesNothing = (text: string): boolean =>
  text.includes("*") && text.replace(/\[[!^]?\]?[^\]]*\]|[\s*?()]/g, "") === ""

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const assignment = /^[A-Za-z_][A-Za-z0-9_]*\+?=/

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0a
