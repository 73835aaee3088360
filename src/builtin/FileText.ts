/**
 * The text of a file and the bytes that hold it: UTF-8, UTF-16 behind a byte order mark, or Latin-1 (as
 * windows-1252, which has all of it). Decoding and encoding give the same bytes. A byte order mark is the first
 * character of the text.
 */
import * as Either from "effect/Either"

export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252"

export interface FileText {
  readonly text: string
  readonly encoding: Encoding
}

/** As people call them. */
export const names: Readonly<Record<Encoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16 LE",
  "utf-16be": "UTF-16 BE",
  "windows-1252": "Latin-1"
}

/** `damaged`: nearly text, but decoding and encoding would change its bytes. */
export const decode = (bytes: Uint8Array): FileText | "binary" | "damaged" => {
  const encoding = encodingOf(bytes, false)
  if (encoding === "binary") return encoding
  if (encoding === "windows-1252") return { text: latin(bytes), encoding }
  try {
    return { text: new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes), encoding }
  } catch {
    return "damaged"
  }
}

/** Decodes a file in pieces, by its first one; bytes that are no text become U+FFFD. Undefined for a binary file and for another encoding than `only`. */
export const reader = (first: Uint8Array, only?: Encoding): ((piece?: Uint8Array) => string) | undefined => {
  const encoding = encodingOf(first, true)
  if (encoding === "binary" || (only !== undefined && encoding !== only)) return undefined
  if (encoding === "windows-1252") return (piece) => (piece === undefined ? "" : latin(piece))
  const decoder = new TextDecoder(encoding)
  return (piece) => (piece === undefined ? decoder.decode() : decoder.decode(piece, { stream: true }))
}

/** The left is the first character that the encoding does not have. */
export const encode = ({ encoding, text }: FileText): Either.Either<Uint8Array, string> => {
  if (encoding === "utf-8") return Either.right(new TextEncoder().encode(text))
  if (encoding === "windows-1252") {
    const bytes = new Uint8Array(text.length)
    for (let at = 0; at < text.length; at++) {
      const byte = latinBytes.get(text.charCodeAt(at))
      if (byte === undefined) return Either.left(String.fromCodePoint(text.codePointAt(at) ?? 0))
      bytes[at] = byte
    }
    return Either.right(bytes)
  }
  const bytes = new Uint8Array(text.length * 2)
  const view = new DataView(bytes.buffer)
  for (let at = 0; at < text.length; at++) view.setUint16(at * 2, text.charCodeAt(at), encoding === "utf-16le")
  return Either.right(bytes)
}

/** Models write `\n`. If all lines of `text` end with `\r\n`, the part gets these ends. */
export const withLineEndsOf = (text: string, part: string): string =>
  hasWindowsEnds(text) ? part.replace(/\r?\n/g, "\r\n") : part

/** A new text for such a file: with its line ends, and with its byte order mark. */
export const inStyleOf = ({ text }: FileText, content: string): string => {
  const adapted = withLineEndsOf(text, content)
  return hasMark(text) && !hasMark(adapted) ? mark + adapted : adapted
}

/** What {@link inStyleOf} and {@link encode} keep beyond plain UTF-8, in words; empty for nothing. */
export const styleOf = ({ encoding, text }: FileText): ReadonlyArray<string> => [
  ...(encoding === "utf-8" ? [] : [names[encoding]]),
  ...(hasMark(text) ? ["byte order mark"] : []),
  ...(hasWindowsEnds(text) ? ["CRLF line ends"] : [])
]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const mark = "\ufeff"
const hasMark = (text: string): boolean => text.startsWith(mark)

const hasWindowsEnds = (text: string): boolean => text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text)

/** Bytes that are looked at for a zero, which only binary files have. */
const looked = 65_536

/** `isCut`: the file goes on behind these bytes. */
const encodingOf = (bytes: Uint8Array, isCut: boolean): Encoding | "binary" => {
  const [one, two, three, four] = bytes
  if (one === 0xff && two === 0xfe) return three === 0 && four === 0 ? "binary" : "utf-16le"
  if (one === 0xfe && two === 0xff) return "utf-16be"
  if (bytes.subarray(0, looked).includes(0)) return "binary"
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut })
    return "utf-8"
  } catch {
    // UTF-8 with a few bad bytes stays UTF-8: as Latin-1 all the good ones would be unreadable.
    return hasUtf8Sequence(bytes) || bytes.some(isControl) ? "utf-8" : "windows-1252"
  }
}

/** No text has it. Backspace to carriage return and escape are in texts. */
const isControl = (byte: number): boolean => byte < 0x08 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b)

const hasUtf8Sequence = (bytes: Uint8Array): boolean => {
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const following =
      byte >= 0xf0 && byte < 0xf5 ? 3 : byte >= 0xe0 && byte < 0xf0 ? 2 : byte >= 0xc2 && byte < 0xe0 ? 1 : 0
    if (following === 0 || at + following >= bytes.length) continue
    if (bytes.subarray(at + 1, at + 1 + following).every((next) => next >= 0x80 && next < 0xc0)) return true
  }
  return false
}

/** Of the bytes 0x80 to 0x9f. Node decodes them as control characters. */
const latinExtras = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ"

/** The characters of all 256 bytes. */
const latinCharacters = Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x80 && byte < 0xa0 ? (latinExtras[byte - 0x80] ?? "") : String.fromCharCode(byte)
)
const latinBytes: ReadonlyMap<number, number> = new Map(
  latinCharacters.map((character, byte): [number, number] => [character.charCodeAt(0), byte])
)

const latin = (bytes: Uint8Array): string => {
  let text = ""
  for (const byte of bytes) text += latinCharacters[byte]
  return text
}
