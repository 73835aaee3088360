/**
 * The only module that reads text files that we did not write: those of a workspace, and the person's own.
 *
 * Only a regular file of bounded size is read, and opening it never blocks, neither on the writer of a pipe nor on a
 * device. A workspace's file must also lie in that workspace: no link on its path leads out. Anything else is refused
 * unread, with a reason that names what was found.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Digest from "../../core/Digest.js"

/** The result of reading. A reason is the end of a sentence that begins with the file's name, without a full stop. */
export type Content =
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Refused"; readonly reason: string }

export const absent: Content = { _tag: "Absent" }

export const refused = (reason: string): Content => ({ _tag: "Refused", reason })

/** Most bytes of a settings file. Nobody writes more by hand. */
export const maxSettings = 1_000_000

/** Reads one of the person's own files; it may be a link to another place. */
export const read = (file: string, limit: number): Content =>
  safely(file, () => open(fs.realpathSync(file), limit, textOf))

/** Reads a file that the person named on the command line. It may be an open pipe from the shell: `--policy <(…)`. */
export const readGiven = (file: string, limit: number): Content => {
  const [, descriptor] = /^\/(?:dev|proc\/self)\/fd\/(\d+)$/.exec(file === "/dev/stdin" ? "/dev/fd/0" : file) ?? []
  return descriptor === undefined ? read(file, limit) : safely(file, () => fromPipe(Number(descriptor), limit))
}

/** A file of a workspace. `root` is the workspace's real path, `name` a path below it. */
export const readIn = (root: string, name: string, limit: number): Content => {
  const file = path.join(root, name)
  return safely(file, () => {
    const real = fs.realpathSync(file)
    if (!isWithin(root, real)) return refused("leads out of the workspace by a symbolic link, and is not read")
    const content = open(real, limit, textOf)
    // Checked again: a directory on the path may have been replaced by a link meanwhile.
    return fs.realpathSync(file) === real ? content : refused("changed while it was read")
  })
}

/**
 * The names in a directory of a workspace, sorted by code unit; none where there is no such directory. A string is the
 * reason why it was refused; more than `limit` names is one.
 */
export const namesIn = (root: string, name: string, limit: number): ReadonlyArray<string> | string => {
  const directory = path.join(root, name)
  try {
    const real = fs.realpathSync(directory)
    if (!isWithin(root, real)) return "leads out of the workspace by a symbolic link, and is not read"
    if (!fs.lstatSync(real).isDirectory()) return "is not a directory"
    const entries = entriesIn(real, limit + 1)
    return entries.length > limit
      ? `holds more than ${limit} files, and is not read`
      : entries.map((entry) => entry.name).sort()
  } catch (error) {
    const code = codeOf(error)
    if (code === "ENOENT") return isLink(directory) ? "is a symbolic link that leads nowhere" : []
    return code === "ENOTDIR" ? "is not a directory" : `cannot be read (${code})`
  }
}

/** At most `limit` entries of a directory, in the system's order; none when it cannot be read. */
export const entriesOf = (directory: string, limit: number): ReadonlyArray<fs.Dirent> => {
  try {
    return entriesIn(directory, limit)
  } catch {
    return []
  }
}

/** The digest of a regular file, whatever its bytes are; undefined where there is none to read, or a larger one. */
export const digestOf = (file: string, limit: number): string | undefined => {
  try {
    const found = open(fs.realpathSync(file), limit, (bytes) => Digest.sha256(bytes))
    return typeof found === "string" ? found : undefined
  } catch {
    return undefined
  }
}

/** Whether something of that name exists, also a broken link. */
export const isThere = (file: string): boolean => {
  try {
    return fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** Where a directory is, links resolved; undefined when it is none or cannot be looked at. */
export const realDirectory = (path: string): string | undefined => {
  try {
    return fs.statSync(path).isDirectory() ? fs.realpathSync(path) : undefined
  } catch {
    return undefined
  }
}

/** Where something is, links resolved; undefined when it is not there or cannot be looked at. */
export const realPath = (file: string): string | undefined => {
  try {
    return fs.realpathSync(file)
  } catch {
    return undefined
  }
}

/** Whether something of that name is a symbolic link, broken or not. */
export const isLink = (file: string): boolean => {
  try {
    return fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true
  } catch {
    return false
  }
}

/** Whether an absolute path is a directory or something below it. */
export const isWithin = (directory: string, file: string): boolean => {
  const relative = path.relative(directory, file)
  return relative === "" || (relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const safely = (file: string, look: () => Content): Content => {
  try {
    return look()
  } catch (error) {
    const code = codeOf(error)
    switch (code) {
      case "ENOENT":
      case "ENOTDIR":
        return isLink(file) ? refused("is a symbolic link that leads nowhere") : absent
      case "ELOOP":
        return refused("is a symbolic link that leads to itself")
      case "EACCES":
      case "EPERM":
        return refused("cannot be read: access is not permitted")
      default:
        return refused(`cannot be read (${code})`)
    }
  }
}

const entriesIn = (directory: string, limit: number): ReadonlyArray<fs.Dirent> => {
  const handle = fs.opendirSync(directory, { bufferSize: 256 })
  try {
    const found: Array<fs.Dirent> = []
    for (let entry = handle.readSync(); entry !== null && found.length < limit; entry = handle.readSync()) {
      found.push(entry)
    }
    return found
  } finally {
    handle.closeSync()
  }
}

/**
 * `real` has no link in it. Its kind is checked before it is opened, because opening a device can already act on it,
 * and again when it is open.
 */
const open = <A>(real: string, limit: number, use: (bytes: Buffer) => A): A | Content => {
  const before = fs.lstatSync(real)
  if (!before.isFile()) return refused(`is ${kindOf(before)} and not a file`)
  const { O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_RDONLY } = fs.constants
  // Some systems lack these flags.
  const handle = fs.openSync(real, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0) | (O_NOCTTY ?? 0))
  try {
    const now = fs.fstatSync(handle)
    if (!now.isFile() || now.ino !== before.ino || now.dev !== before.dev) return refused("changed while it was read")
    if (now.size > limit) return refused(`is larger than ${sizeOf(limit)}`)
    const bytes = Buffer.allocUnsafe(now.size + 1)
    let length = 0
    for (let got = -1; got !== 0 && length < bytes.length; length += got) {
      got = fs.readSync(handle, bytes, length, bytes.length - length, length)
    }
    if (length > now.size) return refused("grew while it was read")
    return use(bytes.subarray(0, length))
  } finally {
    fs.closeSync(handle)
  }
}

/** Blocks until the other end is closed, or has written too much. */
const fromPipe = (descriptor: number, limit: number): Content => {
  const info = fs.fstatSync(descriptor)
  if (!info.isFIFO() && !info.isFile()) return refused(`is ${kindOf(info)} and not a file`)
  const bytes = Buffer.allocUnsafe(limit + 1)
  let length = 0
  for (let got = -1; got !== 0 && length < bytes.length; length += got) {
    got = fs.readSync(descriptor, bytes, length, bytes.length - length, null)
  }
  return length > limit ? refused(`is larger than ${sizeOf(limit)}`) : textOf(bytes.subarray(0, length))
}

const textOf = (bytes: Buffer): Content => ({
  _tag: "Text",
  text: bytes.toString("utf8").replace(/^\ufeff/, "")
})

const kindOf = (info: fs.Stats): string => {
  if (info.isDirectory()) return "a directory"
  if (info.isFIFO()) return "a named pipe"
  if (info.isSocket()) return "a socket"
  return info.isSymbolicLink() ? "a symbolic link" : "a device"
}

const sizeOf = (bytes: number): string => (bytes >= 1_000_000 ? `${bytes / 1_000_000} MB` : `${bytes / 1_000} kB`)

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : String(error)
