/** Reads a text file line by line, in bounded memory however long the file or any of its lines is. */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import type * as ResolvedPath from "../core/ResolvedPath.js"
import * as FileText from "./FileText.js"
import * as OpenedFile from "./OpenedFile.js"

export interface Line {
  /** 1-based. */
  readonly number: number
  /** Characters of the line that were skipped. */
  readonly before: number
  /** What follows of the line without its line ending, cut to the given number of characters. */
  readonly text: string
  /** Characters of the line behind `text`. */
  readonly left: number
}

export interface LineOptions {
  /** Characters of a line that are kept. */
  readonly maxLength: number
  readonly onLine: (line: Line) => boolean
  /** How much of a line is skipped, as bytes of UTF-8. Default: nothing. */
  readonly skip?: ((number: number) => number) | undefined
  /** A file in any other encoding counts as binary. */
  readonly only?: FileText.Encoding | undefined
  /** The file has to be this one. */
  readonly decided?: ResolvedPath.FileIdentity | undefined
}

/** `end`: all lines were seen; `stopped`: more follows; `binary`: not a text file, and no line was seen. */
export type Outcome = "end" | "stopped" | "binary"

/** Gives each line of a text to `onLine` until that returns false. A byte order mark is left out. */
export const ofText = (text: string, options: Pick<LineOptions, "maxLength" | "onLine">): Outcome => {
  const lines = splitter(options.maxLength, options.onLine)
  const left = lines.push(text.startsWith("\ufeff") ? text.slice(1) : text)
  if (left === undefined) lines.end()
  return left === undefined || left === 0 ? "end" : "stopped"
}

/**
 * Gives each line to `onLine` until that returns false. The first 64 KiB say how the file is encoded, or that it is
 * binary; bytes that do not fit become U+FFFD; a byte order mark is left out. `path` is absolute and has no link in it.
 */
export const forEachLine = (
  fileSystem: FileSystem.FileSystem,
  path: string,
  options: LineOptions
): Effect.Effect<Outcome, PlatformError> => {
  const lines = splitter(options.maxLength, options.onLine, options.skip)
  return Effect.map(
    forEachPiece(fileSystem, path, (text) => Effect.sync(() => lines.push(text)), options.decided, options.only),
    (outcome) => {
      if (outcome === "end") lines.end()
      return outcome
    }
  )
}

/**
 * Gives the text of a file to `onPiece`, as {@link forEachLine} reads it, in pieces of 64 KiB, until that returns a number:
 * of how many characters of the piece it did not see.
 */
export const forEachPiece = (
  fileSystem: FileSystem.FileSystem,
  path: string,
  onPiece: (text: string) => Effect.Effect<number | undefined>,
  decided?: ResolvedPath.FileIdentity,
  only?: FileText.Encoding
): Effect.Effect<Outcome, PlatformError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { file } = yield* OpenedFile.open(fileSystem, path, decided)
      const buffer = new Uint8Array(pieceSize)
      let decode: ((piece?: Uint8Array) => string) | undefined
      for (;;) {
        const size = Number(yield* file.read(buffer))
        if (size === 0) break
        const piece = buffer.subarray(0, size)
        decode ??= FileText.reader(piece, only)
        if (decode === undefined) return "binary"
        const left = yield* onPiece(decode(piece))
        // A line at the end of a piece is the last one only if no byte follows.
        if (left !== undefined) return left > 0 || Number(yield* file.read(buffer)) > 0 ? "stopped" : "end"
      }
      return (yield* onPiece(decode?.() ?? "")) === undefined ? "end" : "stopped"
    })
  )

/** The first `max` characters, never half a character. */
export const clip = (text: string, max: number): string => {
  if (text.length <= max) return text
  const last = text.charCodeAt(max - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)
}

/** Gives the lines of a text that comes in pieces to `onLine` until that returns false. */
export const splitter = (
  maxLength: number,
  onLine: (line: Line) => boolean,
  skipOf: (number: number) => number = () => 0
) => {
  let number = 0
  let skip = skipOf(1)
  let before = 0
  // The beginning of the line that has not ended yet, and how long that line is so far.
  let kept = ""
  let length = 0
  const keep = (whole: string): void => {
    let part = whole
    if (skip > 0) {
      let at = 0
      while (skip > 0 && at < whole.length) {
        const code = whole.codePointAt(at) ?? 0
        skip -= code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
        at += code < 0x10000 ? 1 : 2
      }
      before += at
      part = whole.slice(at)
    }
    if (kept.length <= maxLength) kept += part.slice(0, maxLength + 1 - kept.length)
    length += part.length
  }
  const finish = (): boolean => {
    const whole = length === kept.length
    const line = whole && kept.endsWith("\r") ? kept.slice(0, -1) : kept
    const text = clip(line, maxLength)
    const left = (whole ? line.length : length) - text.length
    const found = { number: ++number, before, text, left }
    kept = ""
    length = 0
    before = 0
    skip = skipOf(number + 1)
    return onLine(found)
  }
  return {
    /** When the reader stops: the characters that it did not see. */
    push: (text: string): number | undefined => {
      let from = 0
      for (let to = text.indexOf("\n"); to >= 0; to = text.indexOf("\n", from)) {
        keep(text.slice(from, to))
        from = to + 1
        if (!finish()) return text.length - from
      }
      keep(text.slice(from))
      return undefined
    },
    end: (): boolean => before + length === 0 || finish()
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const pieceSize = 65_536
