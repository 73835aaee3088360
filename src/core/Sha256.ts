/**
 * SHA-256 in plain JavaScript (FIPS 180-4), for places without Node's own: browsers and workers have it as a promise
 * only, and a digest is needed in synchronous steps.
 */

/** Of bytes. */
export const digest = (bytes: Uint8Array): Uint8Array => {
  const length = bytes.length
  const padded = new Uint8Array((((length + 8) >> 6) + 1) << 6)
  padded.set(bytes)
  padded[length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(length / 0x2000_0000))
  view.setUint32(padded.length - 4, length << 3)
  const { constants, initial } = roots()
  const state = new Uint32Array(initial)
  const words = new Uint32Array(64)
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(at + i * 4)
    block(state, words, constants)
  }
  const out = new DataView(new ArrayBuffer(32))
  state.forEach((word, i) => out.setUint32(i * 4, word))
  return new Uint8Array(out.buffer)
}

/** HMAC (RFC 2104) with this digest. */
export const hmac = (key: Uint8Array, bytes: Uint8Array): Uint8Array => {
  const block = new Uint8Array(64)
  block.set(key.length > 64 ? digest(key) : key)
  const padded = (mask: number, rest: Uint8Array) => {
    const out = new Uint8Array(64 + rest.length)
    out.set(block.map((byte) => byte ^ mask))
    out.set(rest, 64)
    return out
  }
  return digest(padded(0x5c, digest(padded(0x36, bytes))))
}

/** Lower-case hexadecimal. */
export const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The first 32 bits of the fractional part of a root, as the standard wants it; exact for the small primes used. */
const fraction = (root: number): number => Math.floor((root - Math.floor(root)) * 0x1_0000_0000)

interface Roots {
  /** Of the squares of the first eight primes, with which a digest begins. */
  readonly initial: ReadonlyArray<number>
  /** Of the cubes of the first 64 primes, one for each round. */
  readonly constants: ReadonlyArray<number>
}

let made: Roots | undefined
/** They are calculated for the first digest: where Node's own digests are, nobody asks for them. */
const roots = (): Roots => (made ??= calculated())

const calculated = (): Roots => {
  const primes = Array.from({ length: 311 }, (_, i) => i + 2)
    .filter((n) => !Array.from({ length: n - 2 }, (_, i) => i + 2).some((divisor) => n % divisor === 0))
    .slice(0, 64)
  return {
    initial: primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime))),
    constants: primes.map((prime) => fraction(Math.cbrt(prime)))
  }
}

const rotated = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

/** One block into the state. Elements of typed arrays exist by their length; the compiler wants to be told so. */
const block = (state: Uint32Array, words: Uint32Array, constants: ReadonlyArray<number>): void => {
  const word = (i: number): number => words[i] ?? 0
  for (let i = 16; i < 64; i++) {
    const [x, y] = [word(i - 15), word(i - 2)]
    const s0 = rotated(x, 7) ^ rotated(x, 18) ^ (x >>> 3)
    const s1 = rotated(y, 17) ^ rotated(y, 19) ^ (y >>> 10)
    words[i] = word(i - 16) + s0 + word(i - 7) + s1
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state
  for (let i = 0; i < 64; i++) {
    const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (constants[i] ?? 0) + word(i)) | 0
    const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0]
  }
  ;[a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = (state[i] ?? 0) + word))
}
