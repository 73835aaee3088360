/** The bytes of an index of git with one entry, whatever its name. */

interface Options {
  readonly mode?: number
  readonly version?: number
  /** As the entry says it. */
  readonly length?: number
  readonly flags?: number
  /** Of version 4: how much of the name before is left out. */
  readonly stripped?: number
  /** What fills the entry, beside zeros. */
  readonly filling?: number
}

export const of = (
  name: string,
  { filling = 0, flags = 0, length, mode = 0o100644, stripped = 0, version = 2 }: Options = {}
): Uint8Array => {
  const text = Buffer.from(name)
  const entry = Buffer.alloc(62)
  entry.writeUInt32BE(mode, 24)
  entry.writeUInt16BE((length ?? Math.min(text.length, 0xfff)) | flags, 60)
  const head = Buffer.alloc(12)
  head.write("DIRC")
  head.writeUInt32BE(version, 4)
  head.writeUInt32BE(1, 8)
  const zeros = Buffer.alloc(8 - ((62 + text.length) % 8))
  zeros[zeros.length - 1] = filling
  const filled = version === 4 ? [Buffer.from([stripped]), text, Buffer.alloc(1)] : [text, zeros]
  return Buffer.concat([head, entry, ...filled, Buffer.alloc(20)])
}
