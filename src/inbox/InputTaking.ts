/**
 * Takes files into a message: what they are, whether they are whole, and whether they are too much.
 *
 * A module of its own, loaded with the first file: most agents hear words only.
 */
import * as Effect from "effect/Effect"
import * as Attachment from "../core/Attachment.js"
import * as Digest from "../core/Digest.js"
import * as MediaType from "../core/MediaType.js"
import type * as Redaction from "../core/Redaction.js"
import {
  cleanName,
  refused,
  tooLarge,
  wordsIn,
  wordsOf,
  type File,
  type Image,
  type InputRefused,
  type Limits,
  type Part
} from "./Input.js"
import * as Message from "./Message.js"

/** Input that was taken: a draft, and the content that it refers to. */
export interface Taken {
  readonly draft: Pick<Message.Draft, "text" | "parts">
  readonly contents: ReadonlyArray<{ readonly sha256: string; readonly bytes: Uint8Array }>
}

/**
 * Takes parts as a draft of a message. The bytes are copied: nobody changes them
 * afterwards.
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
      const reason = `${name} has an unknown type. Name its type (mediaType), or convert it to PNG, JPEG, PDF or text.`
      return yield* refused("wrongType", name, reason)
    }
    if (text === undefined && MediaType.isText(mediaType)) return yield* wrong(`said to be ${mediaType}`)
    const masked = text !== undefined && MediaType.isText(mediaType) ? redactor.text(text) : text
    const bytes = masked === text || masked === undefined ? given.slice() : new TextEncoder().encode(masked)
    const size = bytes.length
    return { type: "file" as const, file: { name, mediaType, size, sha256: Digest.sha256(bytes) }, bytes }
  })
