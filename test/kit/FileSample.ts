/** One file of each type that is recognized, as small as they come. */
import { crc32, deflateSync } from "node:zlib"

const chunk = (name: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}

/** Of one colour; `salt` makes the bytes others. */
export const png = (width = 2, height = 2, salt = 0): Uint8Array => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 0, 0, 0, 0], 8)
  const rows = Buffer.concat(Array.from({ length: height }, () => Buffer.from([0, ...Array<number>(width).fill(salt)])))
  return Uint8Array.from(
    Buffer.concat([
      Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
      chunk("IHDR", header),
      chunk("IDAT", deflateSync(rows)),
      chunk("IEND", Buffer.alloc(0))
    ])
  )
}

export const jpeg = (width = 3, height = 4): Uint8Array =>
  Uint8Array.from([
    ...[0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 1],
    ...[0xff, 0xc0, 0, 11, 8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0],
    ...[0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x2a, 0xff, 0xd9]
  ])

export const gif = (width = 5, height = 6): Uint8Array =>
  Uint8Array.from(
    Buffer.from(
      `GIF89a${String.fromCharCode(width, 0, height, 0)}\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;`,
      "latin1"
    )
  )

export const webp = (width = 7, height = 8): Uint8Array => {
  const bytes = Buffer.alloc(30)
  bytes.write("RIFF", 0, "latin1")
  bytes.writeUInt32LE(22, 4)
  bytes.write("WEBPVP8X", 8, "latin1")
  bytes.writeUInt32LE(10, 16)
  bytes.writeUIntLE(width - 1, 24, 3)
  bytes.writeUIntLE(height - 1, 27, 3)
  return Uint8Array.from(bytes)
}

export const pdf = (words = "Hello"): Uint8Array =>
  new TextEncoder().encode(
    `%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n% ${words}\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n`
  )

export const text = (words: string): Uint8Array => new TextEncoder().encode(words)

/** Images and a document: media type, and a file of it. */
export const all: ReadonlyArray<readonly [mediaType: string, name: string, bytes: Uint8Array]> = [
  ["image/png", "shot.png", png()],
  ["image/jpeg", "photo.jpg", jpeg()],
  ["image/gif", "cat.gif", gif()],
  ["image/webp", "page.webp", webp()],
  ["application/pdf", "paper.pdf", pdf()]
]
