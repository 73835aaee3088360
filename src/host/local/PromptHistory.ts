/**
 * What a person typed at the prompt in this workspace, kept with the person's own state: one JSON string a line, oldest
 * first. Answers to questions are never among it, nor what looks like a secret, nor a line that begins with a blank.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type * as Redaction from "../../core/Redaction.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

export interface PromptHistory {
  /** What was typed before, oldest first. */
  readonly entries: ReadonlyArray<string>
  /** Keeps one more. A history that cannot be written is none: nothing fails. */
  readonly add: (text: string) => Effect.Effect<void>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Reads it. Lines that are no JSON strings are left out. */
export const open = (folder: UserLocation.Folder, redactor: Pick<Redaction.Masking, "text">): PromptHistory => {
  const file = path.join(folder.folder, "history")
  const entries = entriesIn(file)
  let last = entries.at(-1)
  return {
    entries,
    add: (text) =>
      Effect.suspend(() => {
        if (text === last || !isKept(text, redactor)) return Effect.void
        last = text
        return Effect.zipRight(
          UserLocation.prepare(folder),
          Effect.try(() => append(file, text))
        )
      }).pipe(Effect.ignore)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Entries after a file was shortened. */
const most = 1_000
/** Bytes after which a file is shortened. */
const room = 1_000_000
/** Characters of one entry. A whole file that was pasted is nothing to recall. */
const longest = 20_000

const isKept = (text: string, redactor: Pick<Redaction.Masking, "text">): boolean =>
  text.trim() !== "" &&
  !/^\s/.test(text) &&
  text.length <= longest &&
  !speaksOfSecret.test(text) &&
  redactor.text(text) === text

/** A word for a secret, and behind it something that may be one. */
const speaksOfSecret =
  /(?:pass(?:word|wd|phrase|code)?|secret|token|credentials?|api[\s_-]?key|private[\s_-]?key)\b["']?\s*(?:=|:|\bis\b)\s*\S|--?(?:password|passwd|token|secret)[\s=]\S|:\/\/[^\s/@:]+:[^\s/@]+@/i

const entriesIn = (file: string): ReadonlyArray<string> => {
  // A shortened file is far below this limit; one that another program made longer is not read.
  const content = OwnFile.read(file, 4 * room)
  return content._tag === "Text" ? content.text.split("\n").flatMap(entryOf).slice(-most) : []
}

const entryOf = (line: string): ReadonlyArray<string> => {
  if (line === "") return []
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === "string" && value.trim() !== "" && value.length <= longest ? [value] : []
  } catch {
    return []
  }
}

const lineOf = (text: string): string => `${JSON.stringify(text)}\n`

/** One write, so that sessions side by side do not mix their lines. */
const append = (file: string, text: string): void => {
  const flags = fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_WRONLY | fs.constants.O_NOFOLLOW
  const opened = fs.openSync(file, flags | fs.constants.O_NONBLOCK, 0o600)
  try {
    const { mode, size } = fs.fstatSync(opened)
    if ((mode & 0o077) !== 0) fs.fchmodSync(opened, 0o600)
    fs.writeSync(opened, lineOf(text))
    if (size > room)
      UserLocation.replace(
        file,
        entriesIn(file)
          .slice(-most / 2)
          .map(lineOf)
          .join("")
      )
  } finally {
    fs.closeSync(opened)
  }
}
