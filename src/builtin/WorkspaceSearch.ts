/**
 * Listing and searching the workspace.
 *
 * ```
 *  walk ──► places ──► ripgrep: which files match ──► sorted ──► ripgrep: which lines ──► read here, and shown
 *    └──► without ripgrep: each file is read here, line by line
 * ```
 *
 * The walk alone decides which files count. A place is a file, or a directory of which the walk left out nothing.
 *
 * Left out everywhere: `.git`, `node_modules`, protected paths, and what git leaves out. A directory below such a one is
 * shown when it is named as `path`. Symbolic links are listed and never followed. The time of a walk and of a search is
 * limited; see {@link patience}.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as EventLoop from "../internal/EventLoop.js"
import type * as SyncFiles from "./SyncFiles.js"
import * as IgnoreFiles from "./IgnoreFiles.js"
import * as LinePattern from "./LinePattern.js"
import * as LineReader from "./LineReader.js"
import * as OpenedFile from "./OpenedFile.js"
import * as PathPattern from "../core/PathPattern.js"
import type * as Ripgrep from "./Ripgrep.js"
import { isNotFound, sentence, WorkspaceRoot, type Service, type Target } from "./WorkspaceRoot.js"

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
const patience = 20_000

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
    const omitted = omissions(matches)
    const ended = yield* walk(
      workspace,
      start,
      depth,
      yield* paceNow(patience),
      (entry) => !matches(entry.relative) || results.add(entry.shown + suffixes[entry.kind]),
      omitted.add
    )
    const advice = "Narrow path, pattern or depth."
    if (results.lines.length > 0) {
      return omitted.after(results.text(ended === "late" ? `[Incomplete: the time was up. ${advice}]` : "", advice))
    }
    if (ended === "late") return yield* Effect.fail("Nothing was found before the time was up. Narrow the path.")
    if (params.pattern !== undefined) return omitted.after("No files match.")
    return omitted.isNone() ? `[${start.shown} is empty]` : omitted.after(`[Nothing in ${start.shown} is shown]`)
  })

/** Paths of a workspace, and why it has more, if it has. */
export interface Paths {
  readonly paths: ReadonlyArray<string>
  /** `many`: there was no room for more. `late`: the time was up. */
  readonly cut: "many" | "late" | undefined
}

/** Paths below the workspace, sorted, at most so many, `/` after directories: of what is not left out. */
export const paths = (most: number): Effect.Effect<Paths, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const found: Array<string> = []
    const ended = yield* walk(
      workspace,
      { absolute: workspace.root, info: Option.none() },
      Infinity,
      yield* paceNow(patience),
      ({ kind, shown }) => {
        if (kind === "other") return true
        if (found.length === most) return false
        found.push(kind === "directory" ? `${shown}/` : shown)
        return true
      },
      () => undefined
    )
    return { paths: found, cut: ended === "end" ? undefined : ended === "late" ? "late" : "many" }
  })

/** Checks the parameters of a search without searching. */
export const checkSearch = (params: SearchParams): Effect.Effect<void, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    yield* engineOf(workspace, params)
    yield* globOf(params.glob)
    yield* startOf(workspace, params)
  })

/**
 * Lines that match, as `path:line: text`, in the order of paths and lines. Binary files are skipped. A search can be
 * interrupted, and its time ends, for every pattern and file. If ripgrep fails, the search begins anew without ripgrep.
 */
export const search = (params: SearchParams): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const engine = yield* engineOf(workspace, params)
    const matches = yield* globOf(params.glob)
    const start = yield* startOf(workspace, params)
    const task: Task = { workspace, params, matches, start, pace: yield* paceNow(patience) }
    if (engine._tag === "Lines") return yield* byLines(task, engine)
    return yield* Effect.catchAll(byRipgrep(task, engine.ripgrep), (reason) =>
      Effect.flatMap(linesOf(params, `ripgrep failed: ${reason}`), (lines) => byLines(task, lines))
    )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxEntries = 1_000
const maxMatches = 300
/** Characters of a line that are shown, and how many of them stand before a match that is far behind the beginning. */
const shownLength = 300
const lead = 100
/** Characters of a pattern. */
const longestPattern = 2_000
/** Time to show what was found when the time is up, in milliseconds. */
const grace = 5_000

type Ended = "end" | "stopped" | "late"

/** When what was begun now ends, and how it gives way to the event loop until then. */
interface Pace {
  readonly clock: Clock.Clock
  readonly breath: EventLoop.LoopTurn
  readonly isLate: () => boolean
  /** Milliseconds until then. */
  readonly left: () => number
}

const paceNow = (milliseconds: number): Effect.Effect<Pace> =>
  Effect.map(Effect.clock, (clock) => {
    const deadline = clock.unsafeCurrentTimeMillis() + milliseconds
    return {
      clock,
      breath: { ...EventLoop.fresh },
      isLate: () => clock.unsafeCurrentTimeMillis() >= deadline,
      left: () => Math.max(0, deadline - clock.unsafeCurrentTimeMillis())
    }
  })

const suffixes = { directory: "/", link: "@", file: "", other: "" }

/** Patterns are matched against the path below the requested directory. */
interface Entry {
  readonly absolute: string
  readonly shown: string
  readonly relative: string
  readonly kind: SyncFiles.Kind
}

type Reason = "ignored" | "unreadable" | "reserved"

/** Counts what a walk leaves out, of what the pattern fits: a directory may hold files that fit. */
const omissions = (matches: PathPattern.PathPattern) => {
  const counts = { ignored: 0, unreadable: 0, reserved: 0 }
  return {
    add: (reason: Reason, { kind, relative }: Pick<Entry, "kind" | "relative">): void => {
      if (kind === "directory" || matches(relative)) counts[reason]++
    },
    isNone: () => counts.ignored + counts.unreadable + counts.reserved === 0,
    /** A text, and what was left out of it. Names that are always reserved, such as `.git`, go without saying. */
    after: (text: string): string => {
      const parts = [
        ...(counts.ignored > 0 ? [`ignored: ${counts.ignored} (.gitignore, node_modules)`] : []),
        ...(counts.unreadable > 0 ? [`unreadable: ${counts.unreadable}`] : [])
      ]
      return parts.length === 0 ? text : `${text}\n[Left out: ${parts.join(", ")}.]`
    }
  }
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
    /** The results, and what is said last: `end`, or that there are more where nothing else is to be said. */
    text: (end: string, advice: string): string => {
      const more = full ? `[More than ${lines.length} results. ${advice}]` : ""
      return [...lines, ...[end || more].filter((line) => line !== "")].join("\n")
    }
  }
}

interface Task {
  readonly workspace: Service
  readonly params: SearchParams
  readonly matches: PathPattern.PathPattern
  readonly start: Target & { readonly kind: "directory" | "file" }
  readonly pace: Pace
}

/** What finds lines. */
type Engine = { readonly _tag: "Ripgrep"; readonly ripgrep: Ripgrep.Service } | Lines

interface Lines {
  readonly _tag: "Lines"
  readonly pattern: LinePattern.LinePattern
  /** Why ripgrep does not find them. */
  readonly note: string
}

const queryOf = ({ ignore_case, pattern }: SearchParams): Ripgrep.Query => ({
  pattern,
  ignoreCase: ignore_case === true
})

const engineOf = ({ ripgrep }: Service, params: SearchParams): Effect.Effect<Engine, string> =>
  Effect.gen(function* () {
    if (/\n|(?<!\\)(?:\\\\)*\\n/.test(params.pattern)) {
      return yield* Effect.fail(
        "The pattern has a newline, and each line is searched alone. Search for one of the lines."
      )
    }
    if (params.pattern.length > longestPattern) {
      return yield* Effect.fail(`The pattern is longer than ${longestPattern} characters. Search for a part of it.`)
    }
    if (ripgrep === undefined) return yield* linesOf(params, "Searched without ripgrep: no program can be run here")
    const fault = yield* Effect.either(Effect.zipRight(ripgrep.ready, ripgrep.fault(queryOf(params))))
    if (Either.isLeft(fault)) return yield* linesOf(params, `Searched without ripgrep: ${fault.left}`)
    if (fault.right === undefined) return { _tag: "Ripgrep", ripgrep }
    return yield* Effect.fail(`The pattern is not a regular expression of ripgrep: ${fault.right}.`)
  })

const linesOf = ({ ignore_case, pattern }: SearchParams, note: string): Effect.Effect<Lines, string> =>
  Effect.mapBoth(LinePattern.make(pattern, ignore_case === true), {
    onFailure: (reason) => `${note}. ${reason}`,
    onSuccess: (pattern) => ({ _tag: "Lines", pattern, note })
  })

/** What a search has found, and what is said of it. */
const findings = ({ matches, workspace }: Task) => {
  const results = collector(workspace.maxOutput, maxMatches)
  const omitted = omissions(matches)
  const notes = new Set<string>()
  return {
    results,
    omitted,
    notes,
    show: (shown: string, { before, left, number, text }: LineReader.Line): boolean => {
      const from = before > 0 ? `[from character ${before + 1}] ` : ""
      return results.add(`${shown}:${number}: ${from}${text}${left > 0 ? " […]" : ""}`)
    },
    /** The failure of a file. A file that is gone meanwhile holds no match. */
    failed: (error: PlatformError, entry: Pick<Entry, "kind" | "relative">) =>
      isNotFound(error) ? undefined : omitted.add("unreadable", entry),
    /** `late`: where the search was when the time was up. */
    text: (late: string | undefined, advice: string): string => {
      const what = results.lines.length === 0 ? "Nothing was found, but the search is incomplete" : "Incomplete"
      const end = late === undefined ? "" : `[${what}: the time was up${late}. Narrow ${advice}.]`
      const text = end === "" && results.lines.length === 0 ? "No matches." : results.text(end, `Narrow ${advice}.`)
      return [omitted.after(text), ...Array.from(notes, (note) => `[${note}.]`)].join("\n")
    }
  }
}

const anyPlace = "path, glob or pattern"
const isBinary = ({ shown }: Target) => `[${shown} is a binary file; only text is searched.]`
const identityOf = ({ info }: Target) => Option.getOrUndefined(Option.map(info, ResolvedPath.identityOf))

const byRipgrep = (task: Task, ripgrep: Ripgrep.Service): Effect.Effect<string, string> =>
  Effect.gen(function* () {
    const { matches, pace, params, start, workspace } = task
    const { failed, omitted, results, show, text } = findings(task)
    const { fileSystem } = workspace
    const query = queryOf(params)
    let isLate = false

    /** Shows lines of a file. What is at its path by now has to be what was there. */
    const reread = (
      file: string,
      hits: ReadonlyArray<Ripgrep.Hit>,
      shown = workspace.shown(file),
      decided?: ResolvedPath.FileIdentity
    ) => {
      const before = new Map(hits.map(({ before, line }) => [line, before]))
      const last = hits.at(-1)?.line ?? 0
      return LineReader.forEachLine(fileSystem, file, {
        maxLength: shownLength,
        skip: (number) => skippedOf(before.get(number) ?? 0),
        onLine: (line) => (!before.has(line.number) || show(shown, line)) && line.number < last,
        only: hits.some(({ isLatin }) => isLatin) ? "windows-1252" : undefined,
        decided
      })
    }
    const linesOf = (files: ReadonlyArray<string>) =>
      Effect.map(ripgrep.lines(query, files, maxMatches + 1), (hits) => {
        const byFile = new Map<string, Array<Ripgrep.Hit>>(files.map((file) => [file, []]))
        for (const hit of hits) byFile.get(hit.file)?.push(hit)
        return byFile
      })

    if (start.kind === "file") {
      const { absolute } = start
      const decided = identityOf(start)
      const atFile = Effect.mapError((error: PlatformError) => sentence(error, start.shown))
      const first = LineReader.forEachPiece(fileSystem, absolute, () => Effect.succeed(1), decided)
      if ((yield* atFile(first)) === "binary") return isBinary(start)
      const found = yield* Effect.timeoutOption(linesOf([absolute]), pace.left())
      const hits = Option.getOrUndefined(found)?.get(absolute) ?? []
      if (hits.length > 0) yield* atFile(reread(absolute, hits, start.shown, decided))
      return text(Option.isNone(found) ? "" : undefined, "the pattern")
    }

    const places = placesOf()
    const visit = ({ absolute, kind, relative }: Entry): boolean => {
      if (kind === "directory") places.enter(absolute)
      if (kind === "file" && matches(relative)) places.add(absolute)
      else if (kind === "file") places.leaveOut()
      return true
    }
    const omit: typeof omitted.add = (reason, entry) => {
      places.leaveOut()
      omitted.add(reason, entry)
    }
    // The other half of the time is for ripgrep.
    const walking = yield* paceNow(pace.left() / 2)
    places.enter(start.absolute)
    if ((yield* walk(workspace, start, Infinity, walking, visit, omit, places.leave)) === "end") places.leave()
    else isLate = true

    const files: Array<string> = []
    const paths = places.paths()
    if (paths.length > 0) {
      const search = ripgrep.files(query, paths, (file) => void files.push(file))
      const unreadable = yield* Effect.timeoutOption(search, pace.left())
      isLate ||= Option.isNone(unreadable)
      for (let i = 0; i < Option.getOrElse(unreadable, () => 0); i++)
        omitted.add("unreadable", { kind: "directory", relative: "" })
    }

    // A name may have appeared in a directory after the walk.
    const isProtected = yield* workspace.protection
    const sorted = inOrderOfWalk(workspace, files).filter((file) => !isProtected(file))
    const showing = Effect.gen(function* () {
      for (let at = 0; at < sorted.length && !results.full(); at += maxMatches) {
        for (const [file, hits] of yield* linesOf(sorted.slice(at, at + maxMatches))) {
          if (results.full()) return
          if (hits.length === 0) continue
          yield* Effect.catchAll(reread(file, hits), (error) =>
            Effect.sync(() => failed(error, { kind: "file", relative: workspace.path.relative(start.absolute, file) }))
          )
        }
      }
    })
    isLate ||= Option.isNone(yield* Effect.timeoutOption(showing, pace.left() + grace))
    return text(isLate ? "" : undefined, anyPlace)
  })

/** Bytes of a line that are not shown before a match. */
const skippedOf = (before: number): number => (before > 2 * lead ? before - lead : 0)

/** Files to search, by few paths: a directory stands for its files if none was left out. */
const placesOf = () => {
  const paths: Array<string> = []
  const open: Array<{ readonly directory: string; readonly from: number; isWhole: boolean }> = []
  const leaveOut = (): void => {
    const last = open.at(-1)
    if (last !== undefined) last.isWhole = false
  }
  return {
    paths: (): ReadonlyArray<string> => paths,
    add: (file: string): void => void paths.push(file),
    /** A file in the directory is not searched. */
    leaveOut,
    enter: (directory: string): void => void open.push({ directory, from: paths.length, isWhole: true }),
    leave: (): void => {
      const last = open.pop()
      if (last === undefined) return
      if (!last.isWhole) leaveOut()
      else if (paths.length > last.from) paths.splice(last.from, Infinity, last.directory)
    }
  }
}

/** A separator comes before all other characters. */
const inOrderOfWalk = ({ path }: Service, files: ReadonlyArray<string>): ReadonlyArray<string> =>
  files
    .map((file) => [file.replaceAll(path.sep, "\0"), file] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([, file]) => file)

const byLines = (task: Task, { note, pattern }: Lines): Effect.Effect<string, string> =>
  Effect.gen(function* () {
    const { matches, pace, start, workspace } = task
    const { failed, notes, omitted, results, show, text } = findings(task)
    notes.add(note)
    /** How far the search has come: whole files, and the last of them. */
    const progress = { files: 0, last: start.shown, isLate: false }

    const searchFile = (absolute: string, shown: string, decided?: ResolvedPath.FileIdentity) => {
      let lines: Array<LineReader.Line> = []
      const splitter = LineReader.splitter(pattern.longest, (line) => lines.push(line) > 0)
      const find = Effect.gen(function* () {
        const some = lines
        lines = []
        for (const line of some) {
          progress.isLate = pace.isLate()
          if (progress.isLate) return false
          if (EventLoop.isDue(pace.breath, pace.clock)) yield* EventLoop.yieldToEventLoop
          if (line.left > 0) notes.add(`Of long lines the first ${pattern.longest} characters were searched`)
          const at = pattern.find(line.text)
          if (at >= 0 && !show(shown, excerptOf(line, at))) return false
        }
        return true
      })
      const onPiece = (piece: string) => {
        splitter.push(piece)
        return Effect.map(find, (goesOn) => (goesOn ? undefined : 1))
      }
      return LineReader.forEachPiece(workspace.fileSystem, absolute, onPiece, decided).pipe(
        Effect.tap((outcome) => {
          if (outcome === "end") splitter.end()
          return find
        }),
        Effect.tap(() => {
          if (progress.isLate) return
          progress.last = shown
          progress.files++
        })
      )
    }
    const late = () => ` behind ${progress.last}. Files searched: ${progress.files}`

    if (start.kind === "file") {
      const outcome = yield* Effect.mapError(
        searchFile(start.absolute, start.shown, identityOf(start)),
        (error: PlatformError) => sentence(error, start.shown)
      )
      return outcome === "binary" ? isBinary(start) : text(progress.isLate ? late() : undefined, "the pattern")
    }
    const visit = (entry: Entry) => {
      if (entry.kind !== "file" || !matches(entry.relative)) return true
      return Effect.match(searchFile(entry.absolute, entry.shown), {
        onFailure: (error) => {
          failed(error, entry)
          return true
        },
        onSuccess: () => !progress.isLate && !results.full()
      })
    }
    const ended = yield* walk(workspace, start, Infinity, pace, visit, omitted.add)
    return text(ended === "late" ? late() : undefined, anyPlace)
  })

/** What is shown of a line with a match at this character. */
const excerptOf = (line: LineReader.Line, at: number): LineReader.Line => {
  const skipped = skippedOf(at)
  const before = /[\udc00-\udfff]/.test(line.text.charAt(skipped)) ? skipped + 1 : skipped
  const text = LineReader.clip(line.text.slice(before), shownLength)
  return { ...line, before, text, left: line.left + line.text.length - before - text.length }
}

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

/**
 * Visits what is below a directory, depth first and sorted, until a visit returns false (`stopped`) or the time is up
 * (`late`). Directories that cannot be read are skipped, except the first. `leave` follows all visits below a directory.
 */
const walk = (
  workspace: Service,
  { absolute: start, info }: Pick<Target, "absolute" | "info">,
  depth: number,
  { breath, clock, isLate }: Pace,
  visit: (entry: Entry) => boolean | Effect.Effect<boolean>,
  omit: (reason: Reason, entry: Pick<Entry, "kind" | "relative">) => void,
  leave: () => void = () => undefined
): Effect.Effect<Ended, string> =>
  Effect.gen(function* () {
    const { direct, fileSystem, path } = workspace
    const decided = Option.getOrUndefined(Option.map(info, ResolvedPath.identityOf))
    const isProtected = yield* workspace.protection
    const prefixOf = (directory: string) => (directory.endsWith(path.sep) ? directory : directory + path.sep)

    const ignoreFiles = IgnoreFiles.make(workspace)

    /** Rules of the parent directories; none when they would ignore the start itself, because it was requested. */
    const above = Effect.gen(function* () {
      const isAbove = (root: string) => start === root || start.startsWith(prefixOf(root))
      let current = workspace.roots.find(isAbove) ?? workspace.root
      const below = path.relative(current, start)
      let found = yield* ignoreFiles.above(current)
      for (const name of below === "" ? [] : below.split(path.sep)) {
        found = [...found, ...(yield* ignoreFiles.in(current))]
        current = path.join(current, name)
        if (leftOut.has(name) || ignoreFiles.leaveOut(found, current, true)) return []
        found = (yield* ignoreFiles.begun(current)) ?? found
      }
      return found
    })

    /** What is in a directory, sorted. The directory is held open, so that a link in its place is not followed. */
    const within = (
      directory: string,
      decided?: ResolvedPath.FileIdentity
    ): Effect.Effect<ReadonlyArray<Classified>, PlatformError> =>
      Effect.suspend((): Effect.Effect<ReadonlyArray<Classified>, PlatformError> => {
        const found = direct?.entries(directory, decided)
        if (found !== undefined) return Effect.succeed(found)
        return Effect.scoped(
          Effect.flatMap(OpenedFile.entries(fileSystem, directory, decided), ({ handle, names }) =>
            Effect.forEach([...names].sort(), (name) => classify(prefixOf(handle), name), { concurrency: 8 })
          )
        )
      })

    const classify = (prefix: string, name: string): Effect.Effect<Classified> =>
      Effect.matchEffect(fileSystem.readLink(prefix + name), {
        onSuccess: () => Effect.succeed([name, "link"] as const),
        onFailure: () =>
          Effect.match(fileSystem.stat(prefix + name), {
            onSuccess: (info) => [name, kindOf(info)] as const,
            onFailure: () => [name, "other"] as const
          })
      })

    /** How what is in a directory is shown; a root in it is shown as itself. */
    const shownPrefixOf = (directory: string): string => {
      const shown = workspace.shown(directory)
      return shown === "." ? "" : path.isAbsolute(shown) ? prefixOf(shown) : `${shown}/`
    }

    const enter = (
      directory: string,
      relativePrefix: string,
      inside: ReadonlyArray<Classified>,
      level: number,
      inherited: ReadonlyArray<IgnoreFiles.Ignoring>
    ): Effect.Effect<Ended> =>
      Effect.gen(function* () {
        const own = inside.some(([name]) => name === IgnoreFiles.name) ? yield* ignoreFiles.in(directory) : []
        const begun = inside.some(([name]) => name === ".git") ? yield* ignoreFiles.begun(directory) : undefined
        const ignoring = [...(begun ?? inherited), ...own]
        const prefix = prefixOf(directory)
        const shownPrefix = shownPrefixOf(directory)
        for (const [name, kind] of inside) {
          if (EventLoop.isDue(breath, clock)) yield* EventLoop.yieldToEventLoop
          const absolute = prefix + name
          const relative = relativePrefix + name
          if (name === ".git" || isProtected(absolute)) {
            omit("reserved", { kind, relative })
            continue
          }
          if (leftOut.has(name) || ignoreFiles.leaveOut(ignoring, absolute, kind === "directory")) {
            omit("ignored", { kind, relative })
            continue
          }
          if (isLate()) return "late"
          const shown = absolute === workspace.root ? "." : shownPrefix + name
          const visited = visit({ absolute, shown, relative, kind })
          const goesOn = typeof visited === "boolean" ? visited : yield* visited
          if (!goesOn) return isLate() ? "late" : "stopped"
          if (kind !== "directory" || level >= depth) continue
          const below = yield* Effect.catchAll(within(absolute), (error) => {
            if (!isNotFound(error)) omit("unreadable", { kind, relative })
            return Effect.succeed([])
          })
          const ended = yield* enter(absolute, `${relative}/`, below, level + 1, ignoring)
          if (ended !== "end") return ended
          leave()
        }
        return "end"
      })

    const inside = yield* Effect.mapError(within(start, decided), (error) => sentence(error, workspace.shown(start)))
    return yield* enter(start, "", inside, 1, yield* above)
  })

type Classified = readonly [name: string, kind: SyncFiles.Kind]

const leftOut: ReadonlySet<string> = new Set([".git", "node_modules"])

const kindOf = (info: FileSystem.File.Info): Entry["kind"] =>
  info.type === "File" ? "file" : info.type === "Directory" ? "directory" : "other"
