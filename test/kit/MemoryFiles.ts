/** A file system in memory, as a library's user may bring one: directories, files and links, and nothing of Node. */
import { SystemError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { posix } from "node:path"

type Node = { readonly _tag: "File" | "Directory" } | { readonly _tag: "Link"; readonly target: string }

const fault = (method: string, path: string, reason: "NotFound" | "BadResource" | "Unknown") =>
  new SystemError({ module: "FileSystem", method, reason, pathOrDescriptor: path, description: reason })

/** What reads, makes directories, files and links. Everything else fails as if nothing were there. */
export const layer: Layer.Layer<FileSystem.FileSystem> = Layer.sync(FileSystem.FileSystem, () => {
  const nodes = new Map<string, Node>([["/", { _tag: "Directory" }]])
  /** The path without links, as far as it exists; the rest is appended. */
  const real = (path: string, hops = 0): string => {
    let at = "/"
    for (const part of path.split("/").filter((one) => one !== "")) {
      const next = posix.join(at, part)
      const node = nodes.get(next)
      at = node?._tag === "Link" && hops < 40 ? real(posix.resolve(at, node.target), hops + 1) : next
    }
    return at
  }
  const itself = (path: string) => posix.join(real(posix.dirname(path)), posix.basename(path))
  const put = (path: string, node: Node) => Effect.sync(() => void nodes.set(itself(path), node))
  const found = <A>(method: string, path: string, use: (node: Node, at: string) => Effect.Effect<A, SystemError>) =>
    Effect.suspend(() => {
      const node = nodes.get(real(path))
      return node === undefined || node._tag === "Link" ? fault(method, path, "NotFound") : use(node, real(path))
    })
  const infoOf = (node: Node, at: string): FileSystem.File.Info => ({
    type: node._tag === "Directory" ? "Directory" : "File",
    mtime: Option.none(),
    atime: Option.none(),
    birthtime: Option.none(),
    dev: 1,
    ino: Option.some([...nodes.keys()].indexOf(at)),
    mode: 0o644,
    nlink: Option.some(1),
    uid: Option.none(),
    gid: Option.none(),
    rdev: Option.none(),
    size: FileSystem.Size(0),
    blksize: Option.none(),
    blocks: Option.none()
  })
  let number = 0
  return FileSystem.makeNoop({
    makeTempDirectoryScoped: () =>
      Effect.suspend(() => Effect.as(put(`/t${++number}`, { _tag: "Directory" }), `/t${number}`)),
    makeDirectory: (path) =>
      Effect.forEach(
        path.split("/").flatMap((_, at, parts) => (at === 0 ? [] : [parts.slice(0, at + 1).join("/")])),
        (one) => (nodes.has(real(one)) ? Effect.void : put(one, { _tag: "Directory" })),
        { discard: true }
      ),
    writeFileString: (path) => put(path, { _tag: "File" }),
    symlink: (target, path) => put(path, { _tag: "Link", target }),
    exists: (path) => Effect.sync(() => nodes.has(real(path))),
    stat: (path) => found("stat", path, (node, at) => Effect.succeed(infoOf(node, at))),
    realPath: (path) => found("realPath", path, (_, at) => Effect.succeed(at)),
    readLink: (path) =>
      Effect.suspend(() => {
        const node = nodes.get(itself(path))
        if (node === undefined) return fault("readLink", path, "NotFound")
        return node._tag === "Link" ? Effect.succeed(node.target) : fault("readLink", path, "Unknown")
      }),
    readDirectory: (path) =>
      found("readDirectory", path, (node, at) =>
        node._tag === "Directory"
          ? Effect.sync(() =>
              [...nodes.keys()]
                .filter((one) => one !== at && posix.dirname(one) === at)
                .map((one) => posix.basename(one))
            )
          : fault("readDirectory", path, "BadResource")
      )
  })
})
