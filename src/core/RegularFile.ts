/**
 * Files that others may have written: in a workspace, or in a directory that is shared with others.
 *
 * Only regular files of bounded size are read. A file is checked before it is opened, because opening a pipe waits for
 * its other end, and opening alone can move a device; and checked again when it is open. Never more bytes are held than
 * the limit allows.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"

/** The file is not read. The reason is the end of a sentence, without a full stop. */
export class FileUnfit extends Data.TaggedError("FileUnfit")<{
  readonly reason: string
  /** What it is, where it is no file. */
  readonly type?: FileSystem.File.Type
}> {
  override get message(): string {
    return `It ${this.reason}.`
  }
}

/** The text of a file of at most so many bytes; links are followed. */
export const read = (
  fileSystem: FileSystem.FileSystem,
  file: string,
  maxBytes: number
): Effect.Effect<string, PlatformError | FileUnfit> =>
  Effect.map(readBytes(fileSystem, file, maxBytes), (bytes) => new TextDecoder().decode(bytes))

/** Like {@link read}, the bytes. */
export const readBytes = (
  fileSystem: FileSystem.FileSystem,
  file: string,
  maxBytes: number
): Effect.Effect<Uint8Array, PlatformError | FileUnfit> =>
  Effect.scoped(
    Effect.gen(function* () {
      const seen = yield* fileSystem.stat(file)
      if (seen.type !== "File") return yield* new FileUnfit({ reason: `is ${called[seen.type]}`, type: seen.type })
      if (seen.size > maxBytes) return yield* tooLarge(maxBytes)
      const handle = yield* fileSystem.open(file, { flag: "r" })
      const opened = yield* handle.stat
      if (!Equal.equals(opened.ino, seen.ino) || opened.dev !== seen.dev) {
        return yield* new FileUnfit({ reason: "was exchanged while it was opened" })
      }
      // Another process may write to the file meanwhile, so the read is bounded too.
      const bytes = yield* handle.readAlloc(Math.min(Number(opened.size), maxBytes) + 1)
      if (Option.isNone(bytes)) return new Uint8Array()
      return bytes.value.length > maxBytes ? yield* tooLarge(maxBytes) : bytes.value
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const called: { readonly [T in Exclude<FileSystem.File.Type, "File">]: string } = {
  Directory: "a directory",
  FIFO: "a pipe",
  Socket: "a socket",
  CharacterDevice: "a device",
  BlockDevice: "a device",
  SymbolicLink: "a link",
  Unknown: "not a file"
}

const tooLarge = (maxBytes: number) => new FileUnfit({ reason: `is larger than ${sized(maxBytes)}` })

const sized = (bytes: number): string => {
  if (bytes % 1_000_000 === 0) return `${bytes / 1_000_000} MB`
  return bytes >= 10_000 && bytes % 1_000 === 0 ? `${bytes / 1_000} kB` : `${bytes} bytes`
}
