/**
 * The prompt of an editor as words and files for an agent. A link is named to the agent, which reads it through its tools
 * and their gate; what an editor embeds is quoted with its source.
 */
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Input from "../inbox/Input.js"
import { type ContentBlock, invalid, type ProtocolError } from "../foreign/AcpConnection.js"

/** What the blocks say. A left names the block that is not taken. */
export const toInput = (blocks: ReadonlyArray<ContentBlock>): Either.Either<Input.Input, ProtocolError> => {
  const parts: Array<Input.Part> = []
  for (const block of blocks) {
    const part = partOf(block)
    if (Either.isLeft(part)) return Either.left(part.left)
    if (part.right !== "") parts.push(part.right)
  }
  if (parts.length === 0) return Either.left(invalid("The prompt is empty. Send some words."))
  const isText = (part: Input.Part): part is string => typeof part === "string"
  return Either.right(parts.every(isText) ? parts.join("\n\n") : parts)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const partOf = (block: ContentBlock): Either.Either<Input.Part, ProtocolError> => {
  switch (block.type) {
    case "text":
      return Either.right(block.text)
    case "image":
      return Either.map(bytesOf(block.data, "image"), (bytes) =>
        Input.image(bytes, { mediaType: block.mimeType, ...nameOf(block.uri) })
      )
    case "resource_link": {
      const title = oneLine(block.title ?? block.name)
      const place = pathOf(block.uri)
      return Either.right(place === title ? `[${place}]` : `[${title}: ${place}]`)
    }
    case "resource": {
      const { resource } = block
      if ("text" in resource) return Either.right(quoted(pathOf(resource.uri), resource.text))
      return Either.map(bytesOf(resource.blob, "resource"), (bytes) =>
        Input.fromBytes(bytes, {
          ...nameOf(resource.uri),
          ...(typeof resource.mimeType === "string" ? { mediaType: resource.mimeType } : {})
        })
      )
    }
    case "audio":
      return Either.left(invalid("Assent takes no audio. Send text, links, files or images."))
  }
}

const bytesOf = (base64: string, what: string): Either.Either<Uint8Array, ProtocolError> =>
  Either.mapLeft(Encoding.decodeBase64(base64), () => invalid(`The data of the ${what} is not base64.`))

const nameOf = (uri: string | null | undefined): { readonly name?: string } => {
  const name = typeof uri === "string" ? pathOf(uri).split("/").at(-1) : undefined
  return name === undefined || name === "" ? {} : { name }
}

/** The path of a file, with the lines that an editor names behind it; any other address as it is. */
const pathOf = (uri: string): string => {
  const file = /^file:\/\/(?:localhost)?(\/[^?#]*)(?:[?][^#]*)?(#.*)?$/.exec(uri)
  if (file === null) return oneLine(uri)
  const [, path = "", lines = ""] = file
  try {
    return oneLine(decodeURIComponent(path) + lines)
  } catch {
    return oneLine(path + lines)
  }
}

/** In a fence that the text cannot close. */
const quoted = (place: string, text: string): string => {
  const longest = Math.max(2, ...(text.match(/`{3,}/g) ?? []).map(({ length }) => length))
  const fence = "`".repeat(longest + 1)
  return `[${place}]\n${fence}\n${text.endsWith("\n") ? text : `${text}\n`}${fence}`
}

const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim()
