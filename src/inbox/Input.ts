/**
 * Words of a person or a program for an agent, or words with images and files, in their order.
 *
 * Files are taken by their bytes. The bytes decide, not the name: images and PDFs are recognized. A damaged file, or
 * one of another type, is refused before anything of the message is filed. Text files are masked as words are. In the
 * audit and in events there is what a file is called, its type, its size and its digest.
 *
 * @example
 * ```ts
 * import { Agent, Input } from "assent"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const agent = yield* Agent.start()
 *   const screenshot = yield* Input.read("shot.png")
 *   return yield* agent.run(["What is wrong here?", screenshot])
 * })
 * ```
 *
 * @since 0.1.0
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Attachment from "../core/Attachment.js"
import * as RegularFile from "../core/RegularFile.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

const file = {
  /** The bytes; base64 in JSON. */
  bytes: Schema.Uint8ArrayFromBase64,
  /** Shown to people and to the model. Default: `image` or `file`. */
  name: Schema.optional(Schema.String),
  /** Refused where the bytes are something else. Default: by the bytes, and for text by the name. */
  mediaType: Schema.optional(Schema.String)
}

/**
 * A file: an image, a PDF, a text, or what else the model takes.
 *
 * @since 0.1.0
 * @category schemas
 */
export const File = Schema.Struct({ type: Schema.Literal("file"), ...file })
export type File = typeof File.Type

/**
 * An image: PNG, JPEG, GIF or WebP.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Image = Schema.Struct({ type: Schema.Literal("image"), ...file })
export type Image = typeof Image.Type

/**
 * One part. A string is words.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Part = Schema.Union(
  Schema.String,
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Image,
  File
)
export type Part = typeof Part.Type

/**
 * Words, or parts in their order. Encoded it is JSON, as a client sends it.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Input = Schema.Union(Schema.String, Schema.Array(Part))
export type Input = typeof Input.Type

/**
 * How much is taken in one message; these are among `Limits`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Limits {
  /** Files. Default: 20. */
  readonly inputFiles: number
  /** Bytes of one file. Default: 20,000,000. */
  readonly inputFileBytes: number
  /** Bytes of all files together. Default: 50,000,000. */
  readonly inputTotalBytes: number
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A file was not taken, and nothing of its message was filed; the message says why.
 *
 * @since 0.1.0
 * @category errors
 */
export class InputRefused extends Schema.TaggedError<InputRefused>("assent/inbox/InputRefused")("InputRefused", {
  /** The name of the file, if the problem is about a file. */
  file: Schema.optional(Schema.String),
  /**
   * `unreadable`: it is missing, empty or damaged; `wrongType`: its bytes are not what it is said to be; `notTaken`: the
   * model takes no such files.
   */
  problem: Schema.Literal("unreadable", "wrongType", "tooLarge", "tooMany", "notTaken"),
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The name and the type of a file.
 *
 * @since 0.1.0
 * @category models
 */
export interface FileOptions {
  readonly name?: string | undefined
  readonly mediaType?: string | undefined
}

/**
 * An image of these bytes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const image = (bytes: Uint8Array, options: FileOptions = {}): Image => ({ type: "image", bytes, ...options })

/**
 * A file of these bytes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromBytes = (bytes: Uint8Array, options: FileOptions = {}): File => ({ type: "file", bytes, ...options })

/**
 * Reads a file. One that is larger than `maxBytes` (20 MB) is not read. Its name is that of the path, unless another one is
 * given.
 *
 * @since 0.1.0
 * @category constructors
 */
export const read = (
  path: string,
  {
    maxBytes = defaults.inputFileBytes,
    mediaType,
    name = baseName(path)
  }: FileOptions & { readonly maxBytes?: number } = {}
): Effect.Effect<File, InputRefused, FileSystem.FileSystem> =>
  Effect.flatMap(path === "" ? Effect.fail(nameless) : FileSystem.FileSystem, (fs) =>
    Effect.mapBoth(RegularFile.readBytes(fs, path, maxBytes), {
      onSuccess: (bytes) => fromBytes(bytes, { name, mediaType }),
      onFailure: (error) => {
        const shown = cleanName(name, "file")
        if (error._tag === "FileUnfit") {
          const problem = error.reason.startsWith("is larger") ? "tooLarge" : "unreadable"
          const instead = error.type === undefined ? undefined : insteadOf[error.type]
          const more = instead === undefined ? "" : ` ${instead}`
          return refused(problem, shown, `${shown} ${error.reason}, and is not taken.${more}`)
        }
        return refused("unreadable", shown, `${shown} cannot be read: ${whyNot(error)}.`)
      }
    })
  )

/**
 * How much is taken where nothing else is said.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaults: Limits = { inputFiles: 20, inputFileBytes: 20_000_000, inputTotalBytes: 50_000_000 }

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The words alone.
 *
 * @since 0.1.0
 * @category getters
 */
export const wordsOf = (input: Input): string =>
  typeof input === "string" ? input : input.flatMap((part) => wordsIn(part) ?? []).join("\n")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** @internal */
export const wordsIn = (part: Part): string | undefined =>
  typeof part === "string" ? part : part.type === "text" ? part.text : undefined

/** @internal */
export const refused = (problem: InputRefused["problem"], file: string | undefined, reason: string): InputRefused =>
  new InputRefused({ problem, reason, ...(file === undefined ? {} : { file }) })

const nameless = refused("unreadable", undefined, "The name of a file is empty. Name one that is there.")

/** @internal */
export const tooLarge = (name: string, most: number): InputRefused =>
  refused("tooLarge", name, `${name} is larger than ${Attachment.sized(most)}, and is not taken.`)

/**
 * A file's name for people, events and models: without its directory, in one line, not endless.
 *
 * @internal
 */
export const cleanName = (name: string | undefined, otherwise: string): string => {
  const clean = baseName(name ?? "")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ")
    .trim()
  return clean === "" ? otherwise : clean.length <= longestName ? clean : `${clean.slice(0, 80)}…${clean.slice(-40)}`
}

const longestName = 128

const baseName = (path: string): string => path.replace(/[/\\]+$/, "").replace(/^.*[/\\]/s, "")

/** By what Node and by what the platform calls it. */
const reasons: { readonly [reason: string]: string } = {
  NotFound: "there is no such file",
  ENOTDIR: "there is no such file",
  ELOOP: "its links lead in a circle; name the file itself",
  ENAMETOOLONG: "its name is too long",
  PermissionDenied: "access is not permitted; see who may with ls -l"
}

const insteadOf: { readonly [T in FileSystem.File.Type]?: string } = {
  Directory: "Name a file in it.",
  FIFO: "Write its output into a file, and attach that file."
}

const whyNot = (error: PlatformError): string => {
  const { cause, description = error.message } = error
  const code = Predicate.hasProperty(cause, "code") ? String(cause.code) : ""
  const known = reasons[code] ?? (error._tag === "SystemError" ? reasons[error.reason] : undefined)
  return known ?? description.replace(/\.$/, "")
}
