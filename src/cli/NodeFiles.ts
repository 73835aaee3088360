/** Node's synchronous file calls, for searches over very many files. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as DirectFiles from "../builtin/DirectFiles.js"
import * as DirectLinks from "../internal/DirectLinks.js"

/** Bytes of a file that is read at once; as much as `LineReader` looks at to tell text from binary. */
const most = 65_536

const nothing: DirectFiles.FileText = { _tag: "nothing" }
const large: DirectFiles.FileText = { _tag: "large" }

export const layer: Layer.Layer<DirectFiles.DirectFiles> = Layer.sync(DirectFiles.DirectFiles, () => {
  const buffer = Buffer.allocUnsafe(most)
  const decoder = new TextDecoder()
  return {
    entries: (directory) => {
      try {
        const found = fs.readdirSync(directory, { withFileTypes: true })
        return found
          .map((entry) => [entry.name, kindOf(entry)] as const)
          .sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
      } catch {
        return undefined
      }
    },
    text: (path, needle) => {
      let file: number | undefined
      try {
        // Without waiting: a pipe may have taken the file's place.
        file = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
        if (!isStill(path, file) || !fs.fstatSync(file).isFile()) return nothing
        const size = fs.readSync(file, buffer, 0, most, 0)
        if (size === most) return large
        const bytes = buffer.subarray(0, size)
        if (bytes.includes(0) || !bytes.includes(needle)) return nothing
        return { _tag: "text", text: decoder.decode(bytes) }
      } catch {
        return nothing
      } finally {
        if (file !== undefined) fs.closeSync(file)
      }
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

const onLinux = process.platform === "linux"

/** No link on the path was put there meanwhile: see `OpenedFile`. */
const isStill = (path: string, file: number): boolean => {
  const real = onLinux ? fs.readlinkSync(`/proc/self/fd/${file}`) : fs.realpathSync(path)
  return real === path || real === `${path} (deleted)`
}
