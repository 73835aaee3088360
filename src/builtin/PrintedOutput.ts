/**
 * The output of a running command, cleaned for reading and kept in bounded memory: its beginning and its end with a
 * marker in between, and the whole in a file up to {@link maxSaved}.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Directory from "../core/Directory.js"
import { PrintedRows } from "../tool/PrintedRows.js"

export interface PrintedOutput {
  /** Takes the next bytes and returns them for live output, as {@link reader} does. Never fails. */
  readonly push: (bytes: Uint8Array) => Effect.Effect<string, never, Scope.Scope>
  /** The whole output, or beginning, marker and end. Run it after the last bytes. */
  readonly finish: Effect.Effect<Printed, never, Scope.Scope>
}

export interface Printed {
  readonly text: string
  /** Absolute path of the file with the whole output; present when `text` is not all of it. */
  readonly file?: string
}

export interface Options {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  /** Characters kept. Two thirds are the beginning. */
  readonly maxLength: number
  /** Where to save output that is longer than that; the file is created only then. Nothing is saved without. */
  readonly file?: { readonly directory: string; readonly path: string } | undefined
}

/** Characters of output that a file holds at most. */
const maxSaved = 50_000_000

export const make = (options: Options): PrintedOutput => {
  const headLength = Math.floor((options.maxLength * 2) / 3)
  const tailLength = options.maxLength - headLength
  const bytesReader = reader()
  const rows = new PrintedRows()
  let head = ""
  let tail = ""
  let length = 0
  let breaks = 0
  let saved = 0
  let saving: "not yet" | "stopped" | FileSystem.File = "not yet"

  const save = (text: string): Effect.Effect<void, never, Scope.Scope> =>
    Effect.gen(function* () {
      const { file, fileSystem, path } = options
      if (file === undefined || saving === "stopped" || length <= options.maxLength || saved >= maxSaved) return
      // Until now head and tail together are the whole output, this text included.
      const first = saving === "not yet"
      const part = (first ? head + tail : text).slice(0, maxSaved - saved)
      if (saving === "not yet") {
        yield* Directory.ensure(fileSystem, path, file.directory, 0o700)
        saving = yield* fileSystem.open(file.path, { flag: "wx", mode: 0o600 })
      }
      yield* saving.writeAll(new TextEncoder().encode(part))
      saved += part.length
    }).pipe(
      Effect.catchAll((_: PlatformError) =>
        // A full disk must not end the command; the marker then says how much was saved.
        Effect.sync(() => {
          saving = "stopped"
        })
      )
    )

  const take = (text: string): Effect.Effect<void, never, Scope.Scope> => {
    if (text === "") return Effect.void
    length += text.length
    breaks += breaksIn(text)
    const room = headLength - head.length
    if (room > 0) head += text.slice(0, room)
    tail += room > 0 ? text.slice(room) : text
    return Effect.map(save(text), () => {
      if (tail.length > 2 * tailLength) tail = tail.slice(-tailLength)
    })
  }

  return {
    push: (bytes) =>
      Effect.suspend(() => {
        const styled = bytesReader.push(bytes)
        return Effect.as(take(rows.push(bare(styled))), styled)
      }),
    finish: Effect.gen(function* () {
      yield* take(rows.push(bare(bytesReader.end())) + rows.end())
      if (length <= options.maxLength) return { text: head + tail }
      const end = tail.slice(-tailLength)
      const left = length - head.length - end.length
      const file = saved > 0 ? options.file?.path : undefined
      const where =
        file === undefined
          ? ""
          : saved < length
            ? `; the first ${saved} characters are in ${file}`
            : `; the whole output is in ${file}`
      const lines = breaks - breaksIn(head) - breaksIn(end)
      const inLines = lines === 0 ? "" : ` in ${lines} ${lines === 1 ? "line" : "lines"}`
      const text = `${whole(head)}\n[… ${left} characters${inLines} left out${where}]\n${whole(end)}`
      return file === undefined ? { text } : { text, file }
    })
  }
}

/** Text without escape sequences and control characters, as it stands in the end: see `PrintedRows`. */
export const readable = (text: string): string => {
  const cleaner = makeCleaner()
  const rows = new PrintedRows()
  return rows.push(bare(cleaner.push(text) + cleaner.end())) + rows.end()
}

/**
 * For bytes that arrive in pieces: text without escape sequences, but with the colours and weights that it was printed
 * with, and without control characters, but with carriage returns that do not end a line.
 */
export const reader = () => {
  const decoder = new TextDecoder("utf-8")
  const cleaner = makeCleaner()
  return {
    push: (bytes: Uint8Array): string => cleaner.push(decoder.decode(bytes, { stream: true })),
    end: (): string => cleaner.push(decoder.decode()) + cleaner.end()
  }
}

/** What {@link reader} gives, without colours and weights. */
export const bare = (styled: string): string =>
  styled.includes("\x1b") ? styled.replace(/\x1b\[[\d;:]*m/g, "") : styled

/** Line ends. */
export const breaksIn = (text: string): number => {
  let breaks = 0
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) breaks++
  return breaks
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * What goes, in one pass, so that nothing that is left becomes a sequence. A complete escape sequence: captured for a style,
 * else with parameters, with a string up to its terminator, or short. Or, captured, the beginning of one that the text does
 * not finish. Or a control character.
 */
const sequence =
  /(\x1b\[[\d;:]*m)|\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])|(\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g
const control = /[\0-\x08\x0b-\x1f\x7f-\x9f]/
const controls = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g
/** A carriage return and a line end may have styles in between. */
const returns = /\r((?:\x1b\[[\d;:]*m)*)(\n?)/g
const lastReturn = /\r(?:\x1b\[[\d;:]*m)*$/
/** An unfinished sequence longer than this is not one. */
const maxSequence = 4_096

/** Takes text in pieces; a sequence that may continue in the next piece is held back. */
const makeCleaner = () => {
  let held = ""
  const withLines = (text: string): string =>
    text.replace(returns, (_, styles: string, end: string) => styles + (end === "" ? "\r" : end))
  return {
    push: (piece: string): string => {
      const text = held + piece
      held = ""
      if (!control.test(text)) return text
      const visible = text.replace(sequence, (_, style: string | undefined, unfinished: string | undefined) => {
        if (style !== undefined) return style
        if (unfinished === undefined) return ""
        if (unfinished.length > maxSequence) return unfinished.replace(controls, "")
        held = unfinished
        return ""
      })
      const last = lastReturn.exec(visible)?.[0]
      if (last === undefined || last.length > maxSequence) return withLines(visible)
      held = last + held
      return withLines(visible.slice(0, -last.length))
    },
    end: (): string => {
      const rest = withLines(bare(held).replace(controls, ""))
      held = ""
      return rest
    }
  }
}

/** Removes half characters at the cuts. */
const whole = (text: string): string => text.replace(/^[\udc00-\udfff]/, "").replace(/[\ud800-\udbff]$/, "")
