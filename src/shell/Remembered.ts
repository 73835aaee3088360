/** What `always` and `never` remember of a command, and its form as a text. */
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import { trim } from "./CommandText.js"

/** What answering `always` or `never` to a command remembers. */
export type Remembered = Data.TaggedEnum<{
  /** The calls that the harmless table lists for a program, given by its plain name. */
  readonly Program: { readonly program: string; readonly cwd: string }
  /** Exactly this text. */
  readonly Exact: { readonly command: string; readonly cwd: string }
}>

export const { Exact, Program } = Data.taggedEnum<Remembered>()

/**
 * The text form. A program is `(reading) git *`, which no person would write as a pattern. An exact command is the text
 * itself, marked by `$ ` where it needs a mark. The directory stands in front of it, unless it is the workspace: `(in
 * "web") npm test`.
 */
export const format = (entry: Remembered): string => {
  const text =
    entry._tag === "Program"
      ? `(reading) ${entry.program} *`
      : isPlain(entry.command)
        ? entry.command
        : `$ ${entry.command}`
  return entry.cwd === "" ? text : `(in ${JSON.stringify(entry.cwd)}) ${text}`
}

/** The inverse of {@link format}. Any other text is an exact command. */
export const parse = (text: string): Remembered => {
  const [cwd, rest] = placed(text)
  if (rest.startsWith("$ ")) return Exact({ command: rest.slice(2), cwd })
  const program = programEntry.exec(rest)?.[1]
  return program === undefined ? Exact({ command: rest, cwd }) : Program({ program, cwd })
}

/** True for a text that {@link format} may have made; false for patterns and names. */
export const is = (text: string): boolean => {
  const [cwd, rest] = placed(text)
  return cwd !== "" || rest.startsWith("$ ") || programEntry.test(rest) || isPlain(rest)
}

/** The entry remembers this very text, in this directory. */
export const coversText = (entry: Remembered, text: string, cwd: string): boolean =>
  entry._tag === "Exact" && entry.cwd === cwd && trim(text) === entry.command

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const programEntry = /^\(reading\) ([A-Za-z0-9_][A-Za-z0-9_.+-]*) \*$/
const place = /^\(in ("(?:[^"\\]|\\.)*")\) /s

const placed = (text: string): readonly [cwd: string, rest: string] => {
  const match = place.exec(text)
  if (match === null) return ["", text]
  const cwd = Either.getOrUndefined(Either.try((): unknown => JSON.parse(match[1] ?? "")))
  // Accept only the spelling that formatting produces, so that reading and writing are inverse.
  return typeof cwd === "string" && cwd !== "" && JSON.stringify(cwd) === match[1]
    ? [cwd, text.slice(match[0].length)]
    : ["", text]
}

// An exact command needs no mark when it has a blank (so it is no tool name) and no wildcard (so it is no pattern).
const isPlain = (text: string): boolean =>
  /[ \t\n]/.test(text) && !/[*?[]/.test(text) && !/^(?:\$ |\(in "|\(reading\) )/.test(text) && trim(text) === text
