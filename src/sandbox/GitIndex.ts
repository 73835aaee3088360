/**
 * Git's index: the names of the files that git tracks and checks out.
 *
 * Git writes a file for each entry that a checkout restores, and trusts the names in the index. A name that git itself
 * would refuse, such as `.git/hooks/post-checkout`, was put there by another program. The layout of the file is that of
 * git's `index-format`, versions 2 to 4. A file of which two readers may see different entries counts as unreadable.
 */
import * as FoldedName from "../core/FoldedName.js"

export interface Index {
  /** The first names that git refuses to check out. */
  readonly refused: ReadonlyArray<string>
  /** Where submodules are. */
  readonly submodules: ReadonlyArray<string>
}

/** An object's name has `hashBytes` bytes. Nothing if the entries are not certain. */
export const parse = (bytes: Uint8Array, hashBytes: 20 | 32): Index | undefined => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = bytes.length - hashBytes
  if (end < 12 || view.getUint32(0) !== signature("DIRC")) return undefined
  const version = view.getUint32(4)
  const count = view.getUint32(8)
  const least = statBytes + hashBytes + 2
  if (version < 2 || version > 4 || count > (end - 12) / least) return undefined
  const refused: Array<string> = []
  const submodules: Array<string> = []
  const starts = new Uint32Array(count)
  /** Of version 4: how much of a name is that of the entry before. */
  const shared = new Uint32Array(count)
  let hasEmpty = false
  let name = new Uint8Array(256)
  let length = 0
  let at = 12
  for (let entry = 0; entry < count; entry++) {
    starts[entry] = at
    if (at + least > end) return undefined
    const mode = view.getUint32(at + modeAt)
    const flags = view.getUint16(at + statBytes + hashBytes)
    let from = at + least
    if ((flags & extended) !== 0) {
      if (version < 3 || (view.getUint16(from) & ~knownFlags) !== 0) return undefined
      from += 2
    }
    let kept = 0
    if (version === 4) {
      const [stripped, behind] = varint(bytes, from)
      if (stripped > length) return undefined
      kept = length - stripped
      from = behind
    }
    let until = bytes.indexOf(0, from)
    if (until < 0 || until >= end) return undefined
    const written = flags & longest
    const whole = kept + until - from
    if (written === longest ? whole < longest : whole !== written) return undefined
    if (whole > mostBytes) return undefined
    if (whole > name.length) {
      const larger = new Uint8Array(whole * 2)
      larger.set(name.subarray(0, kept))
      name = larger
    }
    name.set(bytes.subarray(from, until), kept)
    shared[entry] = kept
    length = whole
    if (whole === 0) hasEmpty = true
    else if (mayBeOdd(name, whole)) {
      const text = decoder.decode(name.subarray(0, whole))
      if (isRefused(mode === directory ? text.replace(/\/$/, "") : text)) {
        if (refused.length < mostShown) refused.push(text)
      }
    }
    if ((mode & typeBits) === submodule) submodules.push(decoder.decode(name.subarray(0, whole)))
    if (version === 4) at = until + 1
    else {
      // Filled with one to eight zeros.
      at += (until - at + 8) & ~7
      if (at > end) return undefined
      for (; until < at; until++) if (bytes[until] !== 0) return undefined
    }
  }
  const extensions = extensionsOf(view, at, end)
  if (extensions === undefined) return undefined
  // Git may read the entries by these tables, and in parts.
  if (end - at >= 12 + hashBytes) {
    const last = end - 12 - hashBytes
    if (view.getUint32(last) === signature("EOIE") && view.getUint32(last + 8) !== at) return undefined
  }
  for (const [sign, from, to] of extensions) {
    if (sign === signature("IEOT") && !isTableOf(view, from, to, starts, version === 4 ? shared : undefined))
      return undefined
  }
  // Entries that replace those of a shared index have no name of their own.
  if (hasEmpty && !extensions.some(([sign]) => sign === signature("link"))) refused.push("")
  return { refused, submodules }
}

/** Git does not check out a file of this name, on any system. */
export const isRefused = (name: string): boolean =>
  name.split("/").some((part) => part === "" || part === "." || part === ".." || part.split("\\").some(isGit))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Some file systems ignore case, invisible characters, blanks and dots at the end, and have a second, short name. */
const isGit = (part: string): boolean =>
  /^(?:\.git|git~\d+)$/.test(
    FoldedName.of(part)
      .replace(/:[^]*$/, "")
      .replace(/[ .]+$/, "")
  )

const statBytes = 40
const modeAt = 24
const longest = 0xfff
const extended = 0x4000
const knownFlags = 0x6000
const typeBits = 0o170000
const submodule = 0o160000
/** A directory of a sparse index, whose name ends with a slash. */
const directory = 0o040000
const mostBytes = 65_536
const mostShown = 10

const decoder = new TextDecoder()

const signature = (text: string): number => {
  let sum = 0
  for (const letter of text) sum = sum * 256 + letter.charCodeAt(0)
  return sum
}

/** Most names pass here, and only the others are decoded. */
const mayBeOdd = (name: Uint8Array, length: number): boolean => {
  let isStart = true
  for (let at = 0; at < length; at++) {
    const byte = name[at] ?? 0
    if (byte >= 0x80 || odd.has(byte) || (isStart && byte === slash)) return true
    if (isStart && byte === dot && beginsOdd(name, at + 1, length)) return true
    isStart = byte === slash
  }
  return isStart
}

/** Behind a dot: nothing, a dot, or `git` and then nothing that makes it a longer word. */
const beginsOdd = (name: Uint8Array, at: number, length: number): boolean => {
  if (at === length || name[at] === slash || name[at] === dot) return true
  for (const [index, letter] of git.entries()) {
    if (at + index >= length || ((name[at + index] ?? 0) | 0x20) !== letter) return false
  }
  const behind = name[at + git.length] ?? 0
  return at + git.length >= length || !/[\w-]/.test(String.fromCharCode(behind))
}

const dot = 0x2e
const slash = 0x2f
const git = [..."git"].map((letter) => letter.charCodeAt(0))
const odd = new Set([..."\\:~"].map((letter) => letter.charCodeAt(0)))

/** A number as git writes it in a pack, and where it ends. */
const varint = (bytes: Uint8Array, from: number): readonly [number, number] => {
  let at = from
  let byte = bytes[at++] ?? 0
  let value = byte & 127
  while (byte >= 128 && value < mostBytes) {
    byte = bytes[at++] ?? 0
    value = (value + 1) * 128 + (byte & 127)
  }
  return [byte >= 128 ? Infinity : value, at]
}

/** The signature of each, and where its content is. */
const extensionsOf = (view: DataView, from: number, end: number) => {
  const found: Array<readonly [number, number, number]> = []
  let at = from
  while (at + 8 <= end) {
    const to = at + 8 + view.getUint32(at + 4)
    if (to > end) return undefined
    found.push([view.getUint32(at), at + 8, to])
    at = to
  }
  return at === end ? found : undefined
}

/** Each part begins where an entry begins that needs no other one, and the parts are all entries. */
const isTableOf = (view: DataView, from: number, to: number, starts: Uint32Array, shared: Uint32Array | undefined) => {
  if ((to - from) % 8 !== 4 || view.getUint32(from) !== 1) return false
  let entry = 0
  for (let at = from + 4; at < to; at += 8) {
    if (starts[entry] !== view.getUint32(at) || (shared?.[entry] ?? 0) !== 0) return false
    entry += view.getUint32(at + 4)
  }
  return entry === starts.length
}
