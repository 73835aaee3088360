/**
 * What a file is, by its bytes: images that models take, PDF, text.
 *
 * The bytes decide, and not what a file is called. A provider that is sent something else than it is told refuses the whole
 * conversation, with every later word.
 */

/** Images that every provider takes which takes any. */
export const images: ReadonlyArray<string> = ["image/png", "image/jpeg", "image/gif", "image/webp"]

export const pdf = "application/pdf"

/** What bytes are. */
export interface Kind {
  readonly mediaType: string
  /** In pixels, of an image. */
  readonly width?: number | undefined
  readonly height?: number | undefined
  /** Why it cannot be read, as the end of a sentence. */
  readonly problem?: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** An image or a PDF by its first bytes, whole or not; undefined for everything else. */
export const of = (bytes: Uint8Array): Kind | undefined => {
  for (const { begins, mediaType, read } of formats) {
    if (begins.every((signature) => matches(bytes, signature))) return { mediaType, ...read(viewOf(bytes), bytes) }
  }
  return undefined
}

/** The type that a file's name claims, where that is one of {@link of} or text. */
export const claimedBy = (name: string): string | undefined =>
  byExtension[/\.([^./\\]+)$/.exec(name)?.[1]?.toLowerCase() ?? ""]

/** The same type by its usual name: in lower case, without parameters. */
export const normalized = (mediaType: string): string => {
  const [plain = ""] = mediaType.toLowerCase().split(";")
  const trimmed = plain.trim()
  return trimmed === "image/jpg" ? "image/jpeg" : trimmed
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Whether a model reads files of this type as words. */
export const isText = (mediaType: string): boolean => mediaType.startsWith("text/") || mediaType === "application/json"

/** Bytes as text; undefined when they are none. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Whether a pattern such as `image/*` names the type. */
export const covers = (pattern: string, mediaType: string): boolean =>
  pattern === mediaType || (pattern.endsWith("/*") && mediaType.startsWith(pattern.slice(0, -1)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Read = (view: DataView, bytes: Uint8Array) => Omit<Kind, "mediaType">

interface Format {
  readonly mediaType: string
  readonly begins: ReadonlyArray<{ readonly at: number; readonly text: string }>
  readonly read: Read
}

const cutOff = { problem: "it is cut off" }

const sized = (width: number, height: number): Omit<Kind, "mediaType"> =>
  width > 0 && height > 0 ? { width, height } : { problem: "it has no size" }

/** Chunks of a length, a name, as many bytes, and a check. */
const png: Read = (view) => {
  let at = 8
  let size: Omit<Kind, "mediaType"> | undefined
  while (at + 12 <= view.byteLength) {
    const length = view.getUint32(at)
    const name = view.getUint32(at + 4)
    if (at + 12 + length > view.byteLength) return cutOff
    if (name === 0x49484452 && length >= 8) size = sized(view.getUint32(at + 8), view.getUint32(at + 12))
    if (name === 0x49454e44) return size ?? { problem: "it has no header" }
    at += 12 + length
  }
  return cutOff
}

/** Segments of a marker and a length, up to the one after which the picture comes. */
const jpeg: Read = (view) => {
  let at = 2
  let size: Omit<Kind, "mediaType"> | undefined
  while (at + 4 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) return { problem: "it is damaged" }
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) {
      at++
      continue
    }
    if (marker === 0xda)
      return size === undefined ? { problem: "it has no header" } : endOfJpeg(view, at) ? size : cutOff
    // All frames but the tables that lie between their numbers.
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame && at + 9 <= view.byteLength) size = sized(view.getUint16(at + 7), view.getUint16(at + 5))
    at += 2 + view.getUint16(at + 2)
  }
  return cutOff
}

const endOfJpeg = (view: DataView, from: number): boolean => {
  for (let at = view.byteLength - 2; at > from; at--) {
    if (view.getUint8(at) === 0xff && view.getUint8(at + 1) === 0xd9) return true
  }
  return false
}

const gif: Read = (view) => (view.byteLength < 14 ? cutOff : sized(view.getUint16(6, true), view.getUint16(8, true)))

const webp: Read = (view) => {
  if (view.byteLength < 30 || view.getUint32(4, true) + 8 > view.byteLength) return cutOff
  switch (view.getUint32(12)) {
    // `VP8 `, `VP8L`, `VP8X`
    case 0x56503820:
      return sized(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff)
    case 0x5650384c: {
      const bits = view.getUint32(21, true)
      return sized((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1)
    }
    case 0x56503858:
      return sized(1 + (view.getUint32(24, true) & 0xffffff), 1 + (view.getUint32(26, true) >>> 8))
    default:
      return { problem: "it is damaged" }
  }
}

/** The end of a PDF is near the end of the file, with some bytes of others behind it at times. */
const document: Read = (_, bytes) =>
  new TextDecoder("latin1").decode(bytes.subarray(-4_096)).includes("%%EOF") ? {} : cutOff

const formats: ReadonlyArray<Format> = [
  { mediaType: "image/png", begins: [{ at: 0, text: "\x89PNG\r\n\x1a\n" }], read: png },
  { mediaType: "image/jpeg", begins: [{ at: 0, text: "\xff\xd8\xff" }], read: jpeg },
  { mediaType: "image/gif", begins: [{ at: 0, text: "GIF87a" }], read: gif },
  { mediaType: "image/gif", begins: [{ at: 0, text: "GIF89a" }], read: gif },
  {
    mediaType: "image/webp",
    begins: [
      { at: 0, text: "RIFF" },
      { at: 8, text: "WEBP" }
    ],
    read: webp
  },
  { mediaType: pdf, begins: [{ at: 0, text: "%PDF-" }], read: document }
]

const matches = (bytes: Uint8Array, { at, text }: { readonly at: number; readonly text: string }): boolean => {
  for (let index = 0; index < text.length; index++) {
    if (bytes[at + index] !== text.charCodeAt(index)) return false
  }
  return true
}

const viewOf = ({ buffer, byteLength, byteOffset }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)

const byExtension: { readonly [extension: string]: string } = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf,
  csv: "text/csv",
  htm: "text/html",
  html: "text/html",
  json: "application/json",
  md: "text/markdown",
  txt: "text/plain",
  xml: "text/xml"
}
