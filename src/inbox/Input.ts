/**
 * What a person or a program says to an agent: words, or words with images and files, in an order.
 *
 * Files are taken by their bytes. What a file is decides, and not what it is called: images and PDFs are recognized, and
 * one that is damaged or something else is refused before anything of the message is filed. Text files are masked as
 * words are. In the audit and in events there is what a file is called, its type, its size and its digest.
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
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Attachment from "../core/Attachment.js"
import * as Digest from "../core/Digest.js"
import * as MediaType from "../core/MediaType.js"
import * as RegularFile from "../core/RegularFile.js"
import type * as Redaction from "../core/Redaction.js"
import * as Message from "./Message.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

const file = {
  /** As JSON: base64. */
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

/** Input that was taken: a draft, and the content that it refers to. */
export interface Taken {
  readonly draft: Pick<Message.Draft, "text" | "parts">
  readonly contents: ReadonlyArray<{ readonly sha256: string; readonly bytes: Uint8Array }>
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
  /** The file, where it is about one. */
  name: Schema.optional(Schema.String),
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
 * How a file is called, and what it is.
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
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    Effect.mapBoth(RegularFile.readBytes(fs, path, maxBytes), {
      onSuccess: (bytes) => fromBytes(bytes, { name, mediaType }),
      onFailure: (error) => {
        const shown = cleanName(name, "file")
        if (error._tag === "FileUnfit") {
          const problem = error.reason.startsWith("is larger") ? "tooLarge" : "unreadable"
          return refused(problem, shown, `${shown} ${error.reason}, and is not taken.`)
        }
        const why = error._tag === "SystemError" ? reasons[error.reason] : undefined
        return refused("unreadable", shown, `${shown} cannot be read: ${why ?? error.message.replace(/\.$/, "")}.`)
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

/**
 * Takes parts as a draft of a message. The bytes are copied: nobody changes them
 * afterwards.
 *
 * @internal
 */
export const take = (
  parts: ReadonlyArray<Part>,
  limits: Limits,
  redactor: Pick<Redaction.Redactor, "text">
): Effect.Effect<Taken, InputRefused> =>
  Effect.gen(function* () {
    const files = parts.filter((part) => wordsIn(part) === undefined).length
    if (files > limits.inputFiles) {
      const reason = `The message has ${files} files; ${limits.inputFiles} are taken at once.`
      return yield* refused("tooMany", undefined, reason)
    }
    const contents = new Map<string, Uint8Array>()
    const taken: Array<Message.Part> = []
    let total = 0
    for (const part of parts) {
      if (typeof part === "string" || part.type === "text") {
        const text = typeof part === "string" ? part : part.text
        if (!Message.isBlank(text)) taken.push({ type: "text", text })
        continue
      }
      total += part.bytes.length
      if (part.bytes.length > limits.inputFileBytes) {
        return yield* tooLarge(cleanName(part.name, part.type), limits.inputFileBytes)
      }
      if (total > limits.inputTotalBytes) {
        const most = Attachment.sized(limits.inputTotalBytes)
        return yield* refused(
          "tooLarge",
          undefined,
          `The files of the message have more than ${most} together. Send some of them in another message.`
        )
      }
      const kept = yield* kindOf(part, redactor)
      contents.set(kept.file.sha256, kept.bytes)
      taken.push(kept)
    }
    const text = wordsOf(parts)
    if (files === 0) return { draft: { text }, contents: [] }
    return {
      draft: { text, parts: taken },
      contents: Array.from(contents, ([sha256, bytes]) => ({ sha256, bytes }))
    }
  })

/**
 * Why a model does not take one of these files; `takes` are its media types, and undefined where nobody knows.
 *
 * @internal
 */
export const notTaken = (
  { parts = [] }: Pick<Message.Draft, "parts">,
  { id, inputs }: { readonly id: string; readonly inputs?: ReadonlyArray<string> | undefined }
): InputRefused | undefined => {
  if (inputs === undefined) return undefined
  for (const part of parts) {
    if (part.type === "text" || inputs.some((input) => MediaType.covers(input, part.file.mediaType))) continue
    const { mediaType, name } = part.file
    const what = inputs.length === 0 ? "It takes words only" : `It takes ${inputs.join(", ")}`
    return refused(
      "notTaken",
      name,
      `The model ${id} takes no ${mediaType} (${name}). ${what}; choose another model, or convert the file.`
    )
  }
  return undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const wordsIn = (part: Part): string | undefined =>
  typeof part === "string" ? part : part.type === "text" ? part.text : undefined

const refused = (problem: InputRefused["problem"], name: string | undefined, reason: string): InputRefused =>
  new InputRefused({ problem, reason, ...(name === undefined ? {} : { name }) })

const tooLarge = (name: string, most: number): InputRefused =>
  refused("tooLarge", name, `${name} is larger than ${Attachment.sized(most)}, and is not taken.`)

/** A file's name for people, events and models: without its directory, in one line, not endless. */
const cleanName = (name: string | undefined, otherwise: string): string => {
  const clean = baseName(name ?? "")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ")
    .trim()
  return clean === "" ? otherwise : clean.length <= longestName ? clean : `${clean.slice(0, 80)}…${clean.slice(-40)}`
}

const longestName = 128

const baseName = (path: string): string => path.replace(/[/\\]+$/, "").replace(/^.*[/\\]/s, "")

const reasons: { readonly [reason: string]: string } = {
  NotFound: "there is no such file",
  PermissionDenied: "access is not permitted"
}

/** What the file is, and whether it is what it is said to be. */
const kindOf = (
  { bytes: given, mediaType: declared, name: called, type }: Image | File,
  redactor: Pick<Redaction.Redactor, "text">
): Effect.Effect<Extract<Message.Part, { readonly type: "file" }> & { readonly bytes: Uint8Array }, InputRefused> =>
  Effect.gen(function* () {
    const name = redactor.text(cleanName(called, type))
    if (given.length === 0) return yield* refused("unreadable", name, `${name} cannot be read: it is empty.`)
    const found = MediaType.of(given)
    const wanted = declared === undefined ? undefined : MediaType.normalized(declared)
    const isOpen =
      wanted === undefined || wanted === "" || wanted === "image/*" || wanted === "application/octet-stream"
    const claimed = isOpen ? MediaType.claimedBy(name) : wanted
    const isKnown = (mediaType: string | undefined) =>
      mediaType !== undefined && (mediaType === MediaType.pdf || MediaType.images.includes(mediaType))
    const text = found === undefined ? MediaType.textOf(given) : undefined
    const is = found?.mediaType ?? (text === undefined ? undefined : "text")
    const wrong = (what: string) =>
      refused("wrongType", name, `${name} is ${what}, and its bytes are ${is ?? "of no type that is known here"}.`)
    if (type === "image" || wanted === "image/*") {
      if (found === undefined || found.mediaType === MediaType.pdf)
        return yield* wrong("to be an image (PNG, JPEG, GIF or WebP)")
    }
    // A name claims no more than that it is one of those which are known; which of them, the bytes say.
    if (found === undefined ? isKnown(claimed) : !isOpen && wanted !== found.mediaType) {
      return yield* wrong(isOpen ? `called ${claimed}` : `said to be ${wanted}`)
    }
    if (found?.problem !== undefined) {
      return yield* refused("unreadable", name, `${name} cannot be read as ${found.mediaType}: ${found.problem}.`)
    }
    const mediaType =
      found?.mediaType ?? (isOpen ? (text === undefined ? undefined : (claimed ?? "text/plain")) : wanted)
    if (mediaType === undefined) {
      const reason = `${name} is of no type that is known here. Say of which (mediaType), or convert it to PNG, JPEG, PDF or text.`
      return yield* refused("wrongType", name, reason)
    }
    if (text === undefined && MediaType.isText(mediaType)) return yield* wrong(`said to be ${mediaType}`)
    const masked = text !== undefined && MediaType.isText(mediaType) ? redactor.text(text) : text
    const bytes = masked === text || masked === undefined ? given.slice() : new TextEncoder().encode(masked)
    const size = bytes.length
    return { type: "file" as const, file: { name, mediaType, size, sha256: Digest.sha256(bytes) }, bytes }
  })
