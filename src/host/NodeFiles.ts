/** Node's synchronous file calls: for searches over very many files, and for files that a command can change. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as Askpass from "../builtin/Askpass.js"
import * as SyncFiles from "../builtin/SyncFiles.js"
import * as SyncLinks from "../internal/SyncLinks.js"

export const layer: Layer.Layer<SyncFiles.SyncFiles> = Layer.succeed(SyncFiles.SyncFiles, {
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
  // A program of scripts has no import().
  ripgrep: Effect.try((): unknown => createRequire(import.meta.url)("@vscode/ripgrep")),
  removeDirectory: (path) => {
    try {
      fs.rmdirSync(path)
    } catch {
      // It is not empty, or it is gone.
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
  ({ readLink }) => void SyncLinks.bind(readLink, entryAt)
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

const kindOf = (entry: fs.Dirent): SyncFiles.Kind =>
  entry.isSymbolicLink() ? "link" : entry.isFile() ? "file" : entry.isDirectory() ? "directory" : "other"

const entryAt = (path: string): SyncLinks.Entry => {
  try {
    const found = fs.lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return "missing"
    if (found.isSymbolicLink()) return { target: fs.readlinkSync(path) }
    return found.isDirectory() ? "other" : "file"
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOTDIR" ? "missing" : "other"
  }
}
