/** Files in a prompt, as wire formats carry them. */
import type * as Prompt from "@effect/ai/Prompt"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as MediaType from "../core/MediaType.js"

/** The media type; `image/*` becomes the usual image type. */
export const mediaType = ({ mediaType }: Prompt.FilePart): string =>
  mediaType === "image/*" ? "image/jpeg" : mediaType

export { isText } from "../core/MediaType.js"

/** What the formats of Anthropic, OpenAI and those who speak like it carry. */
export const usual: ReadonlyArray<string> = [...MediaType.images, MediaType.pdf, "text/*", "application/json"]

export const name = ({ fileName, mediaType }: Prompt.FilePart): string => fileName ?? mediaType

/** A string is already base64. */
export const base64 = (data: string | Uint8Array): string =>
  typeof data === "string" ? data : Encoding.encodeBase64(data)

export const dataUrl = (data: string | Uint8Array, mediaType: string): string =>
  `data:${mediaType};base64,${base64(data)}`

/** The content of a text file, below its name; the left is a sentence. */
export const text = (part: Prompt.FilePart): Either.Either<string, string> => {
  if (part.data instanceof URL) return Either.left(`it cannot read ${name(part)} from a URL`)
  const text =
    part.data instanceof Uint8Array
      ? Either.right(new TextDecoder().decode(part.data))
      : Encoding.decodeBase64String(part.data)
  return Either.mapBoth(text, {
    onLeft: () => `the data of ${name(part)} is not base64`,
    onRight: (read) => (part.fileName === undefined ? read : `${part.fileName}:\n${read}`)
  })
}

/** Why a file cannot be sent. */
export const unreadable = (part: Prompt.FilePart): string =>
  `it cannot read files of the type ${mediaType(part)} (${name(part)})`
