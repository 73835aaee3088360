/** Node's synchronous file calls: for searches over very many files, and for files that a command can change. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isUtf8 } from "node:buffer"
import * as fs from "node:fs"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as Askpass from "../builtin/Askpass.js"
import * as DirectFiles from "../builtin/DirectFiles.js"
import * as DirectLinks from "../internal/DirectLinks.js"

/** Bytes of a file that is read at once; as much as `LineReader` looks at to tell text from binary. */
const most = 65_536

export const layer: Layer.Layer<DirectFiles.DirectFiles> = Layer.sync(DirectFiles.DirectFiles, () => {
  const buffer = Buffer.allocUnsafe(most)
  const decoder = new TextDecoder()
  // A search asks for the same one again and again.
  let wanted: { readonly needles: ReadonlyArray<string>; readonly bytes: ReadonlyArray<Buffer> } = {
    needles: [],
    bytes: []
  }
  return {
    entries: (directory, decided) => {
      let held: number | undefined
      try {
        held = fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_DIRECTORY)
        const handle = isLinux ? `/proc/self/fd/${held}` : directory
        if (decided !== undefined && !ResolvedPath.isSameFile(fs.fstatSync(held), decided)) return undefined
        const found = fs.readdirSync(handle, { withFileTypes: true })
        // On its way to the directory a link may have been put.
        if ((isLinux ? fs.readlinkSync(handle) : fs.realpathSync(directory)) !== directory) return undefined
        return found
          .map((entry) => [entry.name, kindOf(entry)] as const)
          .sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
      } catch {
        return undefined
      } finally {
        if (held !== undefined) fs.closeSync(held)
      }
    },
    mayHold: (path, needles, isIn) => {
      let file: number | undefined
      if (wanted.needles !== needles) wanted = { needles, bytes: needles.map((needle) => Buffer.from(needle)) }
      try {
        // Without waiting: a pipe may have taken the file's place. Nothing is taken out of it, because it has no position.
        file = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
        const size = fs.readSync(file, buffer, 0, most, 0)
        const bytes = buffer.subarray(0, size)
        const holds =
          size === most ||
          hasUtf16Mark(bytes) ||
          (!bytes.includes(0) &&
            (!isUtf8(bytes) || (wanted.bytes.some((needle) => bytes.includes(needle)) && isIn(decoder.decode(bytes)))))
        return holds && fs.fstatSync(file).isFile()
      } catch (error) {
        // Another reader says that the system does not permit it.
        return error instanceof Error && "code" in error && error.code === "EACCES"
      } finally {
        if (file !== undefined) fs.closeSync(file)
      }
    },
    removeDirectory: (path) => {
      try {
        fs.rmdirSync(path)
      } catch {
        // It is not empty, or it is gone.
      }
    }
  }
})

/** For commands that ask for a password. `nobody` says why nobody can be asked. */
export const askpass = (nobody?: string): Layer.Layer<Askpass.Askpass> =>
  Layer.succeed(Askpass.Askpass, {
    nobody,
    text: (path, most) =>
      opened(path, fs.constants.O_RDONLY, (file) => {
        const found = fs.fstatSync(file)
        if (!found.isFile() || found.size > most) return undefined
        const bytes = Buffer.alloc(most)
        return bytes.toString("utf8", 0, fs.readSync(file, bytes, 0, most, 0))
      }),
    write: (path, text) =>
      opened(path, fs.constants.O_WRONLY, (file) => {
        if (!fs.fstatSync(file).isFIFO()) return false
        const bytes = Buffer.from(text)
        return bytes.length === 0 || fs.writeSync(file, bytes) === bytes.length
      }) ?? false,
    watch: (directory, changed) => {
      try {
        const watcher = fs.watch(directory, { persistent: false }, changed)
        // The directory is looked at from time to time, too.
        watcher.on("error", () => watcher.close())
        return () => watcher.close()
      } catch {
        return () => undefined
      }
    }
  })

/** Lets Node's own file system, and nothing that wraps it, tell at once what is at a path. */
export const directLinks: Effect.Effect<void, never, FileSystem.FileSystem> = Effect.map(
  FileSystem.FileSystem,
  ({ readLink }) => void DirectLinks.bind(readLink, entryAt)
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The system names open files by `/proc/self/fd`. */
const isLinux = process.platform === "linux"

/** Opens without waiting, and no link. Undefined if that fails. */
const opened = <A>(path: string, flags: number, use: (file: number) => A): A | undefined => {
  let file: number | undefined
  try {
    file = fs.openSync(path, flags | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
    return use(file)
  } catch {
    return undefined
  } finally {
    if (file !== undefined) fs.closeSync(file)
  }
}

/** Such a file is read in pieces, as one in Latin-1 is. */
const hasUtf16Mark = ([one, two]: Buffer): boolean => (one === 0xff && two === 0xfe) || (one === 0xfe && two === 0xff)

const kindOf = (entry: fs.Dirent): DirectFiles.Kind =>
  entry.isSymbolicLink() ? "link" : entry.isFile() ? "file" : entry.isDirectory() ? "directory" : "other"

const entryAt = (path: string): DirectLinks.Entry => {
  try {
    const found = fs.lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return "missing"
    if (found.isSymbolicLink()) return { target: fs.readlinkSync(path) }
    return found.isDirectory() ? "other" : "file"
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOTDIR" ? "missing" : "other"
  }
}
