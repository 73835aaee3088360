/** The bytes of an index of git with one entry, whatever its name. */
export const of = (name: string, { mode = 0o100644, version = 2 } = {}): Uint8Array => {
  const text = Buffer.from(name)
  const entry = Buffer.alloc(62)
  entry.writeUInt32BE(mode, 24)
  entry.writeUInt16BE(Math.min(text.length, 0xfff), 60)
  const head = Buffer.alloc(12)
  head.write("DIRC")
  head.writeUInt32BE(version, 4)
  head.writeUInt32BE(1, 8)
  const filled =
    version === 4 ? [Buffer.from([0]), text, Buffer.alloc(1)] : [text, Buffer.alloc(8 - ((62 + text.length) % 8))]
  return Buffer.concat([head, entry, ...filled, Buffer.alloc(20)])
}
