/**
 * Finds what acts later in a workspace, at any depth: names such as `.git`, and directories with the shape of git's own.
 *
 * The system's `find` does the walk: it is faster than our own code and follows no link. Starting a program takes
 * longer than `find` needs for a small workspace, so one shell waits for our word and starts `find` each time. The
 * shell ends with its input, and so with us.
 */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Arr from "effect/Array"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isWithin } from "./View.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** The acting names: systems of version control run the contents of theirs, and Assent heeds the contents of the others. */
export const names = [".git", ".hg", ".jj", ".svn", ".bzr", "_darcs", ".assent", ".jaato"]

export interface Found {
  readonly file: string
  /** The identity of the file: a replacement has another one. */
  readonly node: string
  /** Changes when the file is changed, moved here or replaced. */
  readonly version: string
  /**
   * Present for a directory that git takes for its own by its shape, whatever its name. Without its `HEAD` it is none.
   */
  readonly head?: string
}

/** A directory that cannot be listed or entered: its contents are not known. */
export interface Closed extends Found {
  /** Its permissions, in octal digits. */
  readonly mode: string
}

/** What `find` prints. */
interface Entry extends Closed {
  /** A letter: `d` for a directory. */
  readonly type: string
}

export interface Result {
  readonly found: ReadonlyArray<Found>
  readonly closed: ReadonlyArray<Closed>
}

export interface Search {
  /** Everything below the roots. Fails with a sentence when that cannot be found out. Not interruptible. */
  readonly find: Effect.Effect<Result, string>
  /** The names of these files below the roots, more than one of each where there are hard links. By their inodes. */
  readonly namesOf: (inodes: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<string>, string>
  /** The files with more than one name among these places and in them, down to that depth. Follows no link. */
  readonly sharedIn: (
    places: ReadonlyArray<string>,
    depth: number | undefined
  ) => Effect.Effect<ReadonlyArray<string>, string>
  /** The symbolic links in these directories, at any depth, and the directories that their owner cannot list. */
  readonly linksIn: (places: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, string>
}

export interface Platform {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  readonly executor: CommandExecutor.CommandExecutor
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Where `find` is looked for. Never on the search path, which may contain a workspace. */
const places = ["/usr/bin/find", "/bin/find", "/run/current-system/sw/bin/find"]

/**
 * Searches everything below `roots` except the directories in `left`, where no command writes. Fails with a sentence
 * where there is no `find`. The waiting shell ends with the scope.
 */
export const make = (
  platform: Platform,
  roots: ReadonlyArray<string>,
  left: string,
  programs: ReadonlyArray<string> = places
): Effect.Effect<Search, string, Scope.Scope> =>
  Effect.gen(function* () {
    const { executor, fileSystem } = platform
    const program = yield* Effect.findFirst(programs, (file) =>
      Effect.orElseSucceed(fileSystem.exists(file), () => false)
    )
    if (Option.isNone(program)) return yield* Effect.fail(missing)
    // Not every system's `find` can print change times and test for readability.
    const probe = Command.make(program.value, "/", "-maxdepth", "0", "-readable", "-printf", "%d").pipe(
      Command.stderr("pipe")
    )
    const isDated = (yield* Effect.orElseSucceed(executor.string(probe), () => "")) === "0"
    const command = [program.value, ...roots, ...(isDated ? dated : undated)]
    const turn = yield* Effect.makeSemaphore(1)
    let worker: Worker | undefined
    let isOver = false
    // A search that runs ends first: its pull would never return from a stream that another fiber closed.
    yield* Effect.addFinalizer(() => {
      isOver = true
      return turn.withPermits(1)(Effect.suspend(() => worker?.dismiss ?? Effect.void))
    })

    const look = Effect.gen(function* () {
      // The waiting shell may have been killed; then a new one is started.
      for (let attempt = 0; attempt < 2 && !isOver; attempt++) {
        worker ??= yield* Effect.orElseSucceed(hire(executor, command), () => undefined)
        const told = worker === undefined ? undefined : yield* worker.ask
        if (told !== undefined) return told
        if (worker !== undefined) yield* worker.dismiss
        worker = undefined
      }
      return yield* Effect.fail(failed)
    })
    const find = Effect.flatMap(look, (entries) =>
      Effect.map(
        isDated ? Effect.succeed(entries.flatMap(parse)) : Effect.forEach(entries, (file) => describe(platform, file)),
        (entries): Result & { readonly heads: ReadonlyArray<string> } => {
          const all = entries.filter(({ file }) => !isWithin(left, file))
          const exact = new Set(all.map(({ file }) => file))
          const found: Array<Found> = []
          const closed: Array<Closed> = []
          const heads: Array<string> = []
          for (const one of all) {
            const name = platform.path.basename(one.file)
            const lower = name.toLowerCase()
            if (lower === "head" && one.type !== "d") heads.push(one.file)
            else if (!names.includes(lower)) closed.push(one)
            // On a file system that ignores case, the same name in other letters acts too.
            else if (name === lower || !exact.has(platform.path.join(platform.path.dirname(one.file), lower)))
              found.push(one)
          }
          return { found, closed, heads }
        }
      )
    ).pipe(
      Effect.flatMap(({ closed, found, heads }) =>
        Effect.map(
          Effect.forEach(heads, (head) => shapeOf(platform, head), { concurrency: 16 }),
          (shapes): Result => ({ found: [...found, ...shapes.flat()], closed })
        )
      )
    )
    /** The paths that a search of its own prints. */
    const printed = (words: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const child = yield* executor.start(
          Command.make("/bin/sh", "-c", 'exec "$@" 2>/dev/null', "sh", program.value, ...words, "-print0").pipe(
            Command.workingDirectory("/"),
            Command.env({ LC_ALL: "C" }, { extendEnv: false })
          )
        )
        const text = yield* Stream.mkString(Stream.decodeText(child.stdout))
        // Exit code 1 also means that something could not be listed.
        return (yield* child.exitCode) > 1 ? yield* Effect.fail(failed) : text.split("\0").slice(0, -1)
      }).pipe(
        Effect.scoped,
        Effect.mapError(() => failed)
      )
    const inParts = <A>(all: ReadonlyArray<A>, wordsOf: (some: ReadonlyArray<A>) => ReadonlyArray<string>) =>
      Effect.map(
        Effect.forEach(Arr.chunksOf(all, mostAtOnce), (some) => printed(wordsOf(some))),
        Arr.flatten
      )
    const namesOf = (inodes: ReadonlyArray<number>) =>
      inParts(inodes, (some) => {
        const wanted = some.flatMap((inode, index) => [...(index === 0 ? [] : ["-o"]), "-inum", `${inode}`])
        return [...roots, "-type", "f", "(", ...wanted, ")"]
      })
    const sharedIn = (places: ReadonlyArray<string>, depth: number | undefined) => {
      const limit = depth === undefined ? [] : ["-maxdepth", `${depth}`]
      return inParts(places, (some) => [...some, ...limit, ...contents, "-type", "f", "-links", "+1"])
    }
    const linksIn = (places: ReadonlyArray<string>) =>
      inParts(places, (some) => [...some, "(", "-type", "l", "-o", "-type", "d", "!", "-perm", "-500", ")"])
    return { find: Effect.uninterruptible(turn.withPermits(1)(find)), namesOf, sharedIn, linksIn }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const missing =
  "find is not installed, and Assent needs it to find what commands leave behind: apt-get install findutils."
const failed = "the workspace could not be searched"
/** Paths or inodes that one program is given: a system takes only so many bytes. */
const mostAtOnce = 200

const named = names.flatMap((name, index) => [...(index === 0 ? [] : ["-o"]), "-iname", name])
const shown = "%D:%i %C@ %m %y %p\\0"
const head = ["!", "-type", "d", "-iname", "HEAD"]
/** Clones share git's objects. Their names say what is in them, so that git sees a change. */
const contents = ["-path", "*/objects/??", "-prune", "-o", "-path", "*/objects/pack", "-prune", "-o"]
/** Matches how these names begin. Nearly all files end here: one test costs half of what all of them cost. */
const likely = [0, 1]
  .map((index) => [...names, "head"].map((name) => name.charAt(index)).join(""))
  .map((letters) => `[${letters}${letters.toUpperCase()}]`)
  .join("")
const acting = (print: ReadonlyArray<string>) => [
  ...["-name", `${likely}*`, "(", "(", ...named, ")", ...print, "-prune"],
  ...["-o", ...head, ...print, ")"]
]
const dated = [
  ...acting(["-printf", shown]),
  ...["-o", "-type", "d", "(", "!", "-readable", "-o", "!", "-executable", ")", "-printf", shown, "-prune"]
]
const undated = [...acting(["-print0"]), ...["-o", "-type", "d", "!", "-perm", "-500", "-print0", "-prune"]]

const parse = (entry: string): ReadonlyArray<Entry> => {
  const [, node = "", version = "", mode = "", type = "", file] = /^(\S+) (\S+) (\d+) (\S) ([\s\S]*)$/.exec(entry) ?? []
  return file === undefined ? [] : [{ file, node, version, mode, type }]
}

/** What our own calls can learn about a file, without `find`. */
const describe = ({ fileSystem }: Platform, file: string): Effect.Effect<Entry> =>
  Effect.gen(function* () {
    const link = yield* Effect.option(fileSystem.readLink(file))
    const info = yield* Effect.option(fileSystem.stat(file))
    if (Option.isSome(link)) return { file, node: link.value, version: link.value, mode: "", type: "l" }
    if (Option.isNone(info)) return { file, node: "", version: "", mode: "", type: "U" }
    const { dev, ino, mode, mtime, type } = info.value
    const node = `${dev}:${Option.getOrElse(ino, () => 0)}`
    const version = `${node}:${Option.getOrElse(mtime, () => new Date(0)).getTime()}`
    return { file, node, version, mode: (mode & 0o7777).toString(8), type: type === "Directory" ? "d" : "f" }
  })

/**
 * The directory of a `HEAD`, if git takes it for its own: with `objects` and `refs`, or a `commondir` that names the
 * directory of these.
 */
const shapeOf = (platform: Platform, head: string): Effect.Effect<ReadonlyArray<Found>> =>
  Effect.gen(function* () {
    const { fileSystem, path } = platform
    const file = path.dirname(head)
    /** A link counts although nothing is at its target yet. */
    const has = (name: string) =>
      Effect.zipWith(
        Effect.isSuccess(fileSystem.readLink(path.join(file, name))),
        Effect.orElseSucceed(fileSystem.exists(path.join(file, name)), () => true),
        (isLink, isThere) => isLink || isThere
      )
    const isShaped =
      (yield* has("HEAD")) && ((yield* has("commondir")) || ((yield* has("objects")) && (yield* has("refs"))))
    if (!isShaped) return []
    const { node, version } = yield* describe(platform, file)
    return [{ file, node, version, head }]
  })

/** A shell that runs `find` for each line it reads, and reports when it is done. */
interface Worker {
  /** The found files; nothing when the shell no longer answers. */
  readonly ask: Effect.Effect<ReadonlyArray<string> | undefined>
  readonly dismiss: Effect.Effect<void>
}

const loop = 'while read -r word; do "$@" </dev/null 2>/dev/null; printf "end %s\\0" "$?"; done'
const line = new TextEncoder().encode("find\n")

const hire = (executor: CommandExecutor.CommandExecutor, command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    // The stream of a killed process may end as interrupted. That must not interrupt the end of a session.
    const dismiss = Effect.asVoid(Effect.exit(Scope.close(scope, Exit.void)))
    const begin = Effect.gen(function* () {
      const child = yield* executor.start(
        Command.make("/bin/sh", "-c", loop, "sh", ...command).pipe(
          Command.workingDirectory("/"),
          Command.env({ LC_ALL: "C" }, { extendEnv: false })
        )
      )
      const lines = yield* Queue.unbounded<Uint8Array>()
      // Not awaited: the stream of a killed process may never end. The fiber ends with the queue.
      yield* Effect.forkDaemon(
        Effect.interruptible(Effect.ignore(Stream.run(Stream.fromQueue(lines, { maxChunkSize: 1 }), child.stdin)))
      )
      yield* Effect.addFinalizer(() => Queue.shutdown(lines))
      const pull = yield* Stream.toPull(child.stdout)
      const ask = Effect.gen(function* () {
        yield* Queue.offer(lines, line)
        const parts: Array<Uint8Array> = []
        while (true) {
          const next = yield* Effect.option(pull)
          if (Option.isNone(next)) return undefined
          parts.push(...Chunk.toReadonlyArray(next.value))
          const [, code] = /(?:^|\0)end (\d{1,3})\0$/.exec(textOf(ending(parts))) ?? []
          if (code === undefined) continue
          // Exit code 1 also means that something could not be listed.
          return Number(code) > 1 ? undefined : textOf(whole(parts)).split("\0").slice(0, -2)
        }
      })
      return { ask, dismiss }
    })
    return yield* Effect.onError(Scope.extend(begin, scope), () => dismiss)
  })

const lastWords = 16

const whole = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

const ending = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const some: Array<Uint8Array> = []
  for (let at = parts.length - 1, size = 0; at >= 0 && size < lastWords; at--) {
    const part = parts[at] ?? new Uint8Array()
    some.unshift(part)
    size += part.length
  }
  return whole(some).slice(-lastWords)
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * UTF-8. A byte that belongs to no character becomes a lone surrogate from U+DC80 on, as in Python's `surrogateescape`, so that
 * the name can be written out again.
 */
export const textOf = (bytes: Uint8Array): string => {
  try {
    return decoder.decode(bytes)
  } catch {
    let text = ""
    for (let at = 0; at < bytes.length;) {
      const size = sizeOf(bytes, at)
      text +=
        size === 0 ? String.fromCharCode(0xdc00 + (bytes[at] ?? 0)) : decoder.decode(bytes.subarray(at, at + size))
      at += Math.max(size, 1)
    }
    return text
  }
}

/** The bytes of the character that begins here; 0 if none does. */
const sizeOf = (bytes: Uint8Array, at: number): number => {
  const first = bytes[at] ?? 0
  const size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0
  if (size === 0 || at + size > bytes.length) return 0
  try {
    decoder.decode(bytes.subarray(at, at + size))
    return size
  } catch {
    return 0
  }
}
