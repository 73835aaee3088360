/**
 * Files of messages in a history: with their bytes while an agent lives, by the address of their content in a journal.
 *
 * ```
 *  given ──► bytes ──written──► sha256:… ──resumed──► bytes of the store
 *                                            └─ not there ──► a note
 * ```
 *
 * A compaction that drops a file leaves a note of it, so that the model knows what there was.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Attachment from "../core/Attachment.js"
import * as MediaType from "../core/MediaType.js"
import type * as Message from "../inbox/Message.js"
import * as PromptMessage from "./PromptMessage.js"

type Messages = ReadonlyArray<Prompt.Message>

/** The bytes of content that is at hand, by their digest. */
export type Contents = ReadonlyMap<string, Uint8Array>

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The parts of a message as those of a prompt; `masked` masks its words. */
export const parts = (
  message: ReadonlyArray<Message.Part>,
  masked: (text: string) => string
): ReadonlyArray<Prompt.UserMessagePart> =>
  message.map((part) =>
    part.type === "text"
      ? PromptMessage.text(masked(part.text))
      : filePart(part.file, part.bytes ?? Attachment.address(part.file.sha256))
  )

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The description of a stored file; `undefined` for other files, such as those of a program's own prompt. */
export const of = ({ fileName, mediaType, options }: Prompt.FilePart): Attachment.Attachment | undefined => {
  const { sha256, size } = (options["assent"] ?? {}) as { readonly sha256?: string; readonly size?: number }
  return sha256 === undefined || size === undefined ? undefined : { name: fileName ?? "file", mediaType, size, sha256 }
}

/** What is said in place of a file. */
export const note = (part: Prompt.FilePart, more = ""): string => {
  const file = of(part)
  return `[Attached: ${file === undefined ? (part.fileName ?? part.mediaType) : Attachment.describe(file)}${more}]`
}

/** Names of files, for people: `a.png, b.png and 3 more`. */
export const named = (files: ReadonlyArray<Prompt.FilePart>): string => {
  const names = files.slice(0, 3).map(({ fileName, mediaType }) => fileName ?? mediaType)
  return `${names.join(", ")}${files.length > names.length ? ` and ${files.length - names.length} more` : ""}`
}

/** What is said in place of a file that the store has lost. */
export const lost = (file: Attachment.Attachment): string =>
  `[Attached: ${Attachment.describe(file)}; the store no longer has its content]`

/** The same message without its files: a note for each. */
export const noted = (message: Prompt.Message): Prompt.Message =>
  replaced(message, (part) => PromptMessage.text(note(part)))

/** Digests of the content that messages refer to without having it. */
export const missingIn = (messages: Messages): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const { content } of messages) {
    if (typeof content === "string") continue
    for (const part of content) {
      const digest = part.type === "file" ? digestOf(part) : undefined
      if (digest !== undefined) found.add(digest)
    }
  }
  return [...found]
}

/** The same message without those of these files that it has: the model is told that its provider refused them. */
export const without = (message: Prompt.Message, refused: ReadonlySet<Prompt.FilePart>): Prompt.Message => {
  const why = refused.size > 1 ? "; the provider refused it, or a file beside it" : "; the provider refused it"
  return replaced(message, (part) => (refused.has(part) ? PromptMessage.text(note(part, why)) : part))
}

/** As a journal has it: no bytes that are kept by their content. */
export const unloaded = (message: Prompt.Message): Prompt.Message =>
  replaced(message, (part) => {
    const file = part.data instanceof Uint8Array ? of(part) : undefined
    return file === undefined ? part : filePart(file, Attachment.address(file.sha256))
  })

/** As a model is given it: with the bytes. Content that the store has lost is noted. */
export const loaded = (message: Prompt.Message, contents: Contents): Prompt.Message =>
  replaced(message, (part) => {
    const digest = digestOf(part)
    if (digest === undefined) return part
    const bytes = contents.get(digest)
    const file = of(part)
    return bytes === undefined || file === undefined
      ? PromptMessage.text(file === undefined ? note(part) : lost(file))
      : filePart(file, bytes)
  })

/**
 * The prompt for a model that takes these types only, such as one that was chosen later, and without files that it is
 * not to be given: it is told what there was. The same prompt where it is given all of them.
 */
export const readable = (
  prompt: Prompt.Prompt,
  { inputs }: { readonly inputs?: ReadonlyArray<string> | undefined },
  withheld: ReadonlySet<Prompt.FilePart> | undefined
) => {
  if (inputs === undefined && withheld === undefined) return prompt
  const takes = ({ mediaType }: Prompt.FilePart) => inputs?.some((input) => MediaType.covers(input, mediaType)) ?? true
  const content = prompt.content.map((message) =>
    replaced(withheld === undefined ? message : without(message, withheld), (part) =>
      takes(part) ? part : PromptMessage.text(note(part, "; this model cannot read it"))
    )
  )
  return content.every((message, at) => message === prompt.content[at]) ? prompt : PromptMessage.prompt(content)
}

/** Whether a message has a file. */
export const isIn = ({ content, role }: Prompt.Message): boolean =>
  role === "user" && content.some(({ type }) => type === "file")

/** Characters and tokens of a file, about as providers count them. */
export const weigh = ({ data, mediaType }: Prompt.FilePart): number => {
  if (!(data instanceof Uint8Array)) return perImage
  if (MediaType.isText(mediaType)) return Math.ceil(data.length / 4)
  if (mediaType === MediaType.pdf) return perPage * Math.max(1, Math.ceil(data.length / bytesOfPage))
  const { height, width } = MediaType.of(data) ?? {}
  if (width === undefined || height === undefined) return perImage
  // Providers make an image smaller first, and count a token for so many of its pixels then.
  return Math.min(perImage, Math.max(16, Math.ceil((width * height) / 750)))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The most that a provider counts for an image. */
const perImage = 1_600

/** A page of a document counts as its words and as an image; how many there are, only its size tells. */
const perPage = 2_500
const bytesOfPage = 60_000

const filePart = ({ mediaType, name, sha256, size }: Attachment.Attachment, data: Uint8Array | URL): Prompt.FilePart =>
  PromptMessage.file({ mediaType, fileName: name, data }, { assent: { sha256, size } })

const digestOf = ({ data }: Prompt.FilePart): string | undefined =>
  data instanceof URL ? Attachment.digestIn(data) : undefined

/** The same message where nothing is replaced. */
const replaced = (message: Prompt.Message, f: (part: Prompt.FilePart) => Prompt.UserMessagePart): Prompt.Message => {
  if (message.role !== "user" || !isIn(message)) return message
  const content = message.content.map((part) => (part.type === "file" ? f(part) : part))
  return content.every((part, at) => part === message.content[at])
    ? message
    : PromptMessage.user(content, message.options)
}
