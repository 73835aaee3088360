/**
 * Listing and searching the workspace. Where the system offers `DirectFiles`, a hundred thousand files take about a second;
 * what is found is the same without them.
 *
 * Left out everywhere: `.git`, `node_modules`, protected paths, and what git leaves out. A directory below such a one is
 * shown when it is named as `path`. Symbolic links are listed and never followed. Memory is bounded by the results and by
 * the names in the directories on the path; time by {@link patience}.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as EventLoop from "../internal/EventLoop.js"
import type * as DirectFiles from "./DirectFiles.js"
import * as IgnoreFiles from "./IgnoreFiles.js"
import * as LinePattern from "./LinePattern.js"
import * as LineReader from "./LineReader.js"
import * as LineSearch from "./LineSearch.js"
import * as OpenedFile from "./OpenedFile.js"
import * as PathPattern from "./PathPattern.js"
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
      yield* paceNow,
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
      yield* paceNow,
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
    yield* patternOf(params)
    yield* globOf(params.glob)
    yield* startOf(workspace, params)
  })

/**
 * Lines that match, as `path:line: text`, in the order of paths and lines. Binary files are skipped. The event loop is
 * given way to within a line, too, so a search is interrupted, and its time ends, whatever the pattern and the files.
 */
export const search = (params: SearchParams): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const pattern = yield* patternOf(params)
    const matches = yield* globOf(params.glob)
    const start = yield* startOf(workspace, params)
    const pace = yield* paceNow
    const results = collector(workspace.maxOutput, maxMatches)
    const omitted = omissions(matches)
    /** How far the search has come: whole files, the place where it is, the work that it took, and whether time was up there. */
    const progress = { files: 0, at: start.shown, steps: 0, characters: 0, isLate: false }
    const budget: LinePattern.Budget = { left: 0 }

    /** One part of the work. */
    const run = (lines: LineSearch.LineSearch, steps: number): LineSearch.Progress => {
      const before = lines.left()
      budget.left = steps
      const done = lines.run(budget)
      progress.characters += before - lines.left()
      progress.steps += steps - budget.left
      return done
    }
    const searchFile = (absolute: string, shown: string, decided?: ResolvedPath.FileIdentity) =>
      Effect.suspend(() => {
        const lines = LineSearch.make(pattern, shownLength, ({ number, text, before, isCut }) => {
          const from = before > 0 ? `[from character ${before + 1}] ` : ""
          return results.add(`${shown}:${number}: ${from}${text}${isCut ? " […]" : ""}`)
        })
        const onPiece = (text: string): Effect.Effect<number | undefined> =>
          Effect.gen(function* () {
            lines.push(text)
            for (;;) {
              progress.at = `${shown}:${lines.line()}`
              progress.isLate = pace.isLate()
              if (progress.isLate) return unread
              if (EventLoop.isDue(pace.breath, pace.clock)) yield* EventLoop.give
              const done = run(lines, stepsAtOnce)
              if (done !== "more") return done === "read" ? undefined : unread
            }
          })
        return Effect.map(LineReader.forEachPiece(workspace.fileSystem, absolute, onPiece, decided), (outcome) => {
          if (outcome === "end") lines.end(budget)
          if (!progress.isLate) {
            progress.at = shown
            progress.files++
          }
          return outcome
        })
      })
    // A file that is gone meanwhile has no matches.
    const inPieces = (entry: Entry) =>
      Effect.match(searchFile(entry.absolute, entry.shown), {
        onFailure: (error) => {
          if (!isNotFound(error)) omitted.add("unreadable", entry)
          return true
        },
        onSuccess: () => !results.full() && !progress.isLate
      })
    /** What takes more than one part of the work may hold one. */
    const holdsLine = (text: string): boolean => {
      let found = false
      const lines = LineSearch.make(pattern, shownLength, () => !(found = true))
      lines.push(text)
      if (run(lines, firstLook) === "more") return true
      if (!found) lines.end(budget)
      return found
    }
    const told = (ended: Ended, advice: string): string => {
      if (ended !== "late") return results.lines.length === 0 ? "No matches." : results.text("", `Narrow ${advice}.`)
      const isPattern = progress.steps > hard * progress.characters
      const reason = isPattern ? "the pattern took too long" : "the time was up"
      const what = results.lines.length === 0 ? "Nothing was found, but the search is incomplete" : "Incomplete"
      const mend = isPattern ? "Make the pattern simpler, with fewer or smaller counts" : `Narrow ${advice}`
      const place = progress.isLate
        ? `at ${progress.at}. Files searched before it`
        : `behind ${progress.at}. Files searched`
      return results.text(`[${what}: ${reason} ${place}: ${progress.files}. ${mend}.]`, "")
    }

    if (start.kind === "file") {
      const identity = Option.getOrUndefined(Option.map(start.info, ResolvedPath.identityOf))
      const outcome = yield* Effect.mapError(searchFile(start.absolute, start.shown, identity), (error) =>
        sentence(error, start.shown)
      )
      if (outcome === "binary") return `[${start.shown} is a binary file; only text is searched.]`
      return told(progress.isLate ? "late" : "end", "the pattern")
    }
    const ended = yield* walk(
      workspace,
      start,
      Infinity,
      pace,
      (entry) => {
        if (entry.kind !== "file" || !matches(entry.relative)) return true
        progress.at = entry.shown
        // Only what is found has to be certain, so nearly all files are done with after the first look.
        if (workspace.direct?.mayHold(entry.absolute, pattern.needles, holdsLine) !== false) return inPieces(entry)
        progress.files++
        return true
      },
      omitted.add
    )
    return omitted.after(told(ended, "path, glob or pattern"))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxEntries = 1_000
const maxMatches = 300
/** Characters of a line that are shown. */
const shownLength = 300
/** Steps of a pattern between two looks at the time: some milliseconds at most. */
const stepsAtOnce = 50_000
/** Steps for a file that is read at once: enough for all of its characters where the pattern is not hard. */
const firstLook = 100_000
/** Characters that are left where a file is not read to its end: its last line has none then. */
const unread = 1
/** Steps a character from which on it is the pattern that takes the time. */
const hard = 20

type Ended = "end" | "stopped" | "late"

/** When what was begun now ends, and how it gives way to the event loop until then. */
interface Pace {
  readonly clock: Clock.Clock
  readonly breath: EventLoop.LoopTurn
  readonly isLate: () => boolean
}

const paceNow: Effect.Effect<Pace> = Effect.map(Effect.clock, (clock) => {
  const deadline = clock.unsafeCurrentTimeMillis() + patience
  return { clock, breath: { ...EventLoop.fresh }, isLate: () => clock.unsafeCurrentTimeMillis() >= deadline }
})

const suffixes = { directory: "/", link: "@", file: "", other: "" }

/** Patterns are matched against the path below the requested directory. */
interface Entry {
  readonly absolute: string
  readonly shown: string
  readonly relative: string
  readonly kind: DirectFiles.Kind
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

/**
 * Visits what is below a directory, depth first and sorted, until a visit returns false (`stopped`) or the time is up
 * (`late`). Directories that cannot be read are skipped, except the first.
 */
const walk = (
  workspace: Service,
  { absolute: start, info }: Pick<Target, "absolute" | "info">,
  depth: number,
  { breath, clock, isLate }: Pace,
  visit: (entry: Entry) => boolean | Effect.Effect<boolean>,
  omit: (reason: Reason, entry: Pick<Entry, "kind" | "relative">) => void
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
          if (EventLoop.isDue(breath, clock)) yield* EventLoop.give
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
        }
        return "end"
      })

    const inside = yield* Effect.mapError(within(start, decided), (error) => sentence(error, workspace.shown(start)))
    return yield* enter(start, "", inside, 1, yield* above)
  })

type Classified = readonly [name: string, kind: DirectFiles.Kind]

const leftOut: ReadonlySet<string> = new Set([".git", "node_modules"])

const kindOf = (info: FileSystem.File.Info): Entry["kind"] =>
  info.type === "File" ? "file" : info.type === "Directory" ? "directory" : "other"
