/**
 * Listing and searching the workspace.
 *
 * Left out everywhere: `.git`, `node_modules`, protected paths, and what the `.gitignore` files from the workspace down
 * to each directory say (not: git's global and per-clone exclude files). Symbolic links are listed and never followed.
 * A directory below such a one is shown when it is named as `path`. Memory is bounded by the results and by the names
 * in the directories on the path; time by {@link patience}.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as RegularFile from "../core/RegularFile.js"
import * as LinePattern from "./LinePattern.js"
import * as LineReader from "./LineReader.js"
import * as PathPattern from "./PathPattern.js"
import { sentence, WorkspaceRoot, type Service } from "./WorkspaceRoot.js"

export interface ListParams {
  readonly path?: string | undefined
  readonly pattern?: string | undefined
  readonly depth?: number | undefined
}
export interface SearchParams {
  readonly pattern: string
  readonly path?: string | undefined
  readonly glob?: string | undefined
  readonly ignore_case?: boolean | undefined
}

/** Milliseconds after which a walk ends with what it has found. */
export const patience = 20_000

/**
 * One path a line, relative to the workspace and sorted; `/` after directories, `@` after links. Without a pattern and a
 * depth: the directory itself; with a pattern: everything below it that matches.
 */
export const list = (params: ListParams): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const start = yield* workspace.locateDirectory(params.path ?? ".")
    const matches = yield* globOf(params.pattern)
    const depth = Math.max(1, params.depth ?? (params.pattern === undefined ? 1 : Infinity))
    const results = collector(workspace.maxOutput, maxEntries)
    const ended = yield* walk(workspace, start.absolute, depth, (entry) =>
      Effect.sync(() => !matches(entry.relative) || results.add(entry.shown + suffixes[entry.kind]))
    )
    if (results.lines.length > 0) return results.text(ended, "Narrow path, pattern or depth.")
    if (ended === "late") return yield* Effect.fail("Nothing was found before the time was up. Narrow the path.")
    return params.pattern === undefined ? `[${start.shown} is empty]` : "No files match."
  })

/** Checks the parameters of a search without searching. */
export const checkSearch = (params: SearchParams): Effect.Effect<void, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    yield* patternOf(params)
    yield* globOf(params.glob)
    yield* startOf(workspace, params)
  })

/** Lines that match, as `path:line: text`, in the order of paths and lines. Binary files are skipped. */
export const search = (params: SearchParams): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const pattern = yield* patternOf(params)
    const matches = yield* globOf(params.glob)
    const start = yield* startOf(workspace, params)
    const deadline = (yield* Clock.currentTimeMillis) + patience
    const goOn = Effect.map(Clock.currentTimeMillis, (now) => now < deadline)
    const results = collector(workspace.maxOutput, maxMatches)

    const searchFile = (absolute: string, shown: string) =>
      LineReader.forEachLine(workspace.fileSystem, absolute, {
        maxLength: searchedLength,
        goOn,
        onLine: (line) => {
          if (!pattern.test(line.text)) return true
          const text = LineReader.clip(line.text, shownLength)
          return results.add(`${shown}:${line.number}: ${text}${text.length < line.text.length ? " […]" : ""}`)
        }
      })

    if (start.kind === "file") {
      yield* Effect.mapError(searchFile(start.absolute, start.shown), (error) => sentence(error, start.shown))
      return results.lines.length === 0 ? "No matches." : results.text("end", "Make the pattern more specific.")
    }
    const ended = yield* walk(workspace, start.absolute, Infinity, (entry) =>
      entry.kind !== "file" || !matches(entry.relative)
        ? Effect.succeed(true)
        : // A file that cannot be read, or is gone meanwhile, has no matches.
          Effect.map(Effect.ignore(searchFile(entry.absolute, entry.shown)), () => !results.full())
    )
    if (results.lines.length > 0) return results.text(ended, "Narrow path, glob or pattern.")
    return ended === "late" ? "[The time was up before everything was searched. Narrow path or glob.]" : "No matches."
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxEntries = 1_000
const maxMatches = 300
/** Characters of a line that are searched, and that are shown. */
const searchedLength = 20_000
const shownLength = 300
const maxIgnoreFile = 262_144

const suffixes = { directory: "/", link: "@", file: "", other: "" }

/** Patterns are matched against the path below the requested directory. */
interface Entry {
  readonly absolute: string
  readonly shown: string
  readonly relative: string
  readonly kind: "file" | "directory" | "link" | "other"
}

/** Collects results up to a number and a size. It only notes that there were more. */
const collector = (maxOutput: number, maxLines: number) => {
  const lines: Array<string> = []
  let room = maxOutput
  let full = false
  return {
    lines,
    full: () => full,
    /** False once there is no room. */
    add: (line: string): boolean => {
      full = full || lines.length >= maxLines || (lines.length > 0 && room < line.length)
      if (full) return false
      const kept = LineReader.clip(line, room)
      lines.push(kept)
      room -= kept.length + 1
      return true
    },
    text: (ended: "end" | "stopped" | "late", advice: string): string => {
      if (ended === "late") return [...lines, `[Incomplete: the time was up. ${advice}]`].join("\n")
      return (full ? [...lines, `[More than ${lines.length} results. ${advice}]`] : lines).join("\n")
    }
  }
}

const patternOf = (params: SearchParams) =>
  Either.match(LinePattern.make(params.pattern, { ignoreCase: params.ignore_case }), {
    onLeft: (reason) => Effect.fail(reason),
    onRight: (pattern) => Effect.succeed(pattern)
  })

const globOf = (glob: string | undefined): Effect.Effect<PathPattern.PathPattern, string> =>
  glob === undefined
    ? Effect.succeed(() => true)
    : Either.match(PathPattern.glob(glob), {
        onLeft: (reason) => Effect.fail(reason),
        onRight: (pattern) => Effect.succeed(pattern)
      })

/** A directory is walked; anything else must be a readable file. */
const startOf = (workspace: Service, params: SearchParams) => {
  const path = params.path ?? "."
  return Effect.orElse(
    Effect.map(workspace.locateDirectory(path), (target) => ({ ...target, kind: "directory" as const })),
    () => Effect.map(workspace.locateFile(path), (target) => ({ ...target, kind: "file" as const }))
  )
}

/** The rules of one directory's ignore file, and where that directory is. */
interface Ignoring {
  readonly directory: string
  readonly rules: PathPattern.IgnoreRules
}

/**
 * Visits what is below a directory, depth first and sorted, until a visit returns false (`stopped`) or the time is up
 * (`late`). Directories that cannot be read are skipped, except the first.
 */
const walk = (
  workspace: Service,
  start: string,
  depth: number,
  visit: (entry: Entry) => Effect.Effect<boolean>
): Effect.Effect<"end" | "stopped" | "late", string> =>
  Effect.gen(function* () {
    const { fileSystem, path } = workspace
    const isProtected = yield* workspace.protection
    const deadline = (yield* Clock.currentTimeMillis) + patience
    const toSlashes = (text: string) => (path.sep === "/" ? text : text.replaceAll(path.sep, "/"))

    const ignoringAt = (directory: string): Effect.Effect<ReadonlyArray<Ignoring>> =>
      RegularFile.read(fileSystem, path.join(directory, ".gitignore"), maxIgnoreFile).pipe(
        Effect.map((text) => [{ directory, rules: PathPattern.ignoreRules(text) }]),
        Effect.orElseSucceed(() => [])
      )

    const isIgnored = (above: ReadonlyArray<Ignoring>, absolute: string, directory: boolean): boolean => {
      for (let i = above.length - 1; i >= 0; i--) {
        const one = above[i]
        const verdict = one?.rules.verdict(toSlashes(path.relative(one.directory, absolute)), directory)
        if (verdict !== undefined) return verdict
      }
      return false
    }

    /** Rules of the parent directories; none when they would ignore the start itself, because it was requested. */
    const above = Effect.gen(function* () {
      const isAbove = (root: string) =>
        start === root || start.startsWith(root.endsWith(path.sep) ? root : root + path.sep)
      let current = workspace.roots.find(isAbove) ?? workspace.root
      const below = path.relative(current, start)
      let found: ReadonlyArray<Ignoring> = []
      for (const name of below === "" ? [] : below.split(path.sep)) {
        found = [...found, ...(yield* ignoringAt(current))]
        current = path.join(current, name)
        if (leftOut.has(name) || isIgnored(found, current, true)) return []
      }
      return found
    })

    const classify = (directory: string, name: string): Effect.Effect<readonly [string, Entry["kind"]]> =>
      Effect.matchEffect(fileSystem.readLink(path.join(directory, name)), {
        onSuccess: () => Effect.succeed([name, "link"] as const),
        onFailure: () =>
          Effect.match(fileSystem.stat(path.join(directory, name)), {
            onSuccess: (info) => [name, kindOf(info)] as const,
            onFailure: () => [name, "other"] as const
          })
      })

    const enter = (
      directory: string,
      names: ReadonlyArray<string>,
      level: number,
      inherited: ReadonlyArray<Ignoring>
    ): Effect.Effect<"end" | "stopped" | "late"> =>
      Effect.gen(function* () {
        const ignoring = [...inherited, ...(yield* ignoringAt(directory))]
        const wanted = names.filter((name) => !leftOut.has(name) && !isProtected(path.join(directory, name)))
        for (let from = 0; from < wanted.length; from += batch) {
          const slice = wanted.slice(from, from + batch)
          const entries = yield* Effect.forEach(slice, (name) => classify(directory, name), { concurrency: 8 })
          for (const [name, kind] of entries) {
            const absolute = path.join(directory, name)
            if (isIgnored(ignoring, absolute, kind === "directory")) continue
            if ((yield* Clock.currentTimeMillis) >= deadline) return "late"
            const relative = toSlashes(path.relative(start, absolute))
            const goesOn = yield* visit({ absolute, shown: workspace.shown(absolute), relative, kind })
            if (!goesOn) return (yield* Clock.currentTimeMillis) >= deadline ? "late" : "stopped"
            if (kind !== "directory" || level >= depth) continue
            const inside = yield* Effect.orElseSucceed(sortedNames(fileSystem, absolute), () => [])
            const ended = yield* enter(absolute, inside, level + 1, ignoring)
            if (ended !== "end") return ended
          }
        }
        return "end"
      })

    const names = yield* Effect.mapError(sortedNames(fileSystem, start), (error) =>
      sentence(error, workspace.shown(start))
    )
    return yield* enter(start, names, 1, yield* above)
  })

const leftOut: ReadonlySet<string> = new Set([".git", "node_modules"])
const batch = 64

const sortedNames = (fileSystem: FileSystem.FileSystem, directory: string) =>
  Effect.map(fileSystem.readDirectory(directory), (names) => names.sort())

const kindOf = (info: FileSystem.File.Info): Entry["kind"] =>
  info.type === "File" ? "file" : info.type === "Directory" ? "directory" : "other"
