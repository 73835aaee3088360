/**
 * What one look at a call has learned of the file system. It is forgotten with that look, because links may change: the
 * next look begins anew.
 *
 * Whoever judges a call works in steps: a generator that yields an effect where it has to wait. So thousands of words
 * cost no effect each, and work that goes on for long gives way to the event loop. What is known already is not looked
 * up again. Where many names of one directory are asked for, the directory is read once, and a name that it certainly
 * lacks is looked for no more.
 *
 * A command may name more than can be looked at in good time. Then {@link FileSurvey.isSpent} is true, and whoever judges
 * must not let the call pass.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FoldedName from "../core/FoldedName.js"
import type * as ResolvedPath from "../core/ResolvedPath.js"
import * as SyncLinks from "../internal/SyncLinks.js"
import * as ShellPath from "../shell/ShellPath.js"
import * as EventLoop from "../internal/EventLoop.js"

/** Work that waits now and then. */
export type Steps<A> = Generator<Effect.Effect<void>, A, void>

/** A place that no directory contains. */
const nowhere = "\0"

export interface Options {
  /** Directories in this one are read where that saves looks. Absolute; links are followed. */
  readonly workspace?: string | undefined
  /** Without it the work does not give way. */
  readonly clock?: Clock.Clock | undefined
  /** Paths that were looked at before: all who judge one call judge the same places. */
  readonly places?: Places | undefined
}

/** The targets of a path parameter: by its text and, if that differs, by the system's walk over links. */
export interface Place extends ResolvedPath.ResolvedPath {
  readonly readings: ReadonlyArray<string>
}

/** By the text of the parameter. */
export type Places = ReadonlyMap<string, Place>

export class FileSurvey {
  private readonly resolved = new Map<string, string>()
  private readonly entries = new Map<string, SyncLinks.Entry>()
  private readonly direct: ((path: string) => SyncLinks.Entry) | undefined
  private readonly lists = new Map<string, ReadonlyArray<string>>()
  private readonly folders = new Map<string, Folder>()
  private readonly turn: EventLoop.LoopTurn = { ...EventLoop.fresh }
  private home: string | undefined
  /** What is looked at was named by settings, and not by a call. */
  private isOurs = false
  private looks = 0
  private work = 0

  constructor(
    private readonly fs: FileSystem.FileSystem,
    private readonly path: Path.Path,
    private readonly options: Options = {}
  ) {
    this.direct = SyncLinks.of(fs.readLink)
  }

  /** More was asked than may be looked at: what is answered from now on means nothing. */
  get isSpent(): boolean {
    return this.looks > maxLooks || this.work > maxWork
  }

  /** Counts work that takes about a microsecond, and gives way to the event loop when it is time. */
  *goOn(work = 1): Steps<void> {
    this.work += work
    const { clock } = this.options
    if (clock !== undefined && EventLoop.isDue(this.turn, clock)) yield EventLoop.yieldToEventLoop
  }

  /**
   * Where an absolute path leads when links are followed, as far as it exists; dangling ones too, because writing through
   * one creates its target. A path that cannot be resolved counts as written, a loop of links leads {@link nowhere}.
   */
  *real(text: string, hops = 0): Steps<string> {
    const known = this.resolved.get(text)
    if (known !== undefined) return known
    // One look for each part of a path, shared by all paths through it.
    const below: Array<string> = []
    let at: string | undefined
    for (let from = text; at === undefined; at = this.resolved.get(from)) {
      const parent = this.path.dirname(from)
      if (parent === from) {
        at = from
        break
      }
      below.push(from)
      from = parent
    }
    for (let step = below.pop(); step !== undefined; step = below.pop()) {
      yield* this.goOn()
      at = yield* this.follow(at, this.path.basename(step), hops)
      if (at === nowhere) return nowhere
      this.resolved.set(step, at)
    }
    return at
  }

  /**
   * Like {@link real}, for a path of ours, such as the workspace or a protected place: it is looked at directly, too. Only
   * what a call names may lead to where a look takes long.
   */
  *own(text: string): Steps<string> {
    const before = this.isOurs
    this.isOurs = true
    try {
      return yield* this.real(text)
    } finally {
      this.isOurs = before
    }
  }

  /** {@link real} part by part from a directory, as the system does it: behind a link, `..` is the parent of its target. */
  *walk(base: string, text: string): Steps<string> {
    const { path } = this
    let at = path.isAbsolute(text) ? path.parse(text).root : yield* this.real(base)
    for (const part of text.split("/")) {
      if (part === "" || part === ".") continue
      at = part === ".." ? path.dirname(at) : yield* this.real(path.join(at, part))
    }
    return at
  }

  /** Both readings of a path, which may differ: `link/../x` as a text, as programs simplify it, and as {@link walk}. */
  *targets(base: string, text: string): Steps<ReadonlyArray<string>> {
    const { places, workspace } = this.options
    const known = base === workspace ? places?.get(text) : undefined
    if (known !== undefined) return known.readings
    yield* this.goOn()
    const textual = yield* this.real(this.path.resolve(base, text))
    return text.includes("..") && text.split("/").includes("..") ? [textual, yield* this.walk(base, text)] : [textual]
  }

  /** There is something at a path, be it a link that leads nowhere. */
  *isThere(path: string): Steps<boolean> {
    const directory = yield* this.real(this.path.dirname(path))
    return (yield* this.entryIn(directory, this.path.basename(path))) !== "missing"
  }

  private *follow(directory: string, name: string, hops: number): Steps<string> {
    const entry = yield* this.entryIn(directory, name)
    if (typeof entry === "string") return this.path.join(directory, name)
    return hops >= maxHops ? nowhere : yield* this.real(this.path.resolve(directory, entry.target), hops + 1)
  }

  /** What a directory without links in its path has under a name. */
  private *entryIn(directory: string, name: string): Steps<SyncLinks.Entry> {
    const at = this.path.join(directory, name)
    const known = this.entries.get(at)
    if (known !== undefined) return known
    const above = this.entries.get(directory)
    if (above === "missing" || above === "file" || this.isSpent) return this.keep(at, "missing")
    if (this.isOurs || (yield* this.isInWorkspace(directory))) {
      if (this.direct !== undefined) {
        yield* this.goOn(directWork)
        return this.keep(at, this.direct(at))
      }
      if (!this.isOurs && (yield* this.lacks(directory, name))) return this.keep(at, "missing")
    }
    this.looks++
    // Below what is no directory, there is nothing either.
    yield Effect.match(this.fs.readLink(at), {
      onFailure: (error) => {
        const isGone = error._tag === "SystemError" && (error.reason === "NotFound" || error.reason === "BadResource")
        this.keep(at, isGone ? "missing" : "other")
      },
      onSuccess: (target) => {
        this.keep(at, { target })
      }
    })
    return this.entries.get(at) ?? "other"
  }

  private keep(at: string, entry: SyncLinks.Entry): SyncLinks.Entry {
    this.entries.set(at, entry)
    return entry
  }

  /** The directory certainly has nothing of this name. It is read when enough of its names were asked for. */
  private *lacks(directory: string, name: string): Steps<boolean> {
    if (!plain.test(name)) return false
    let folder = this.folders.get(directory)
    if (folder === undefined) this.folders.set(directory, (folder = { asked: 0, names: undefined }))
    if (++folder.asked <= fewNames) return false
    folder.names ??= yield* this.foldedIn(directory)
    return folder.names !== "unknown" && !folder.names.has(name.toLowerCase())
  }

  private *isInWorkspace(directory: string): Steps<boolean> {
    const { workspace } = this.options
    if (workspace === undefined) return false
    if (this.home === undefined) {
      // Its own path is looked at part by part.
      this.home = nowhere
      this.home = yield* this.own(workspace)
    }
    return directory === this.home || directory.startsWith(this.home.endsWith("/") ? this.home : `${this.home}/`)
  }

  private *foldedIn(directory: string): Steps<ReadonlySet<string> | "unknown"> {
    const names = yield* this.listed(directory)
    if (typeof names === "string") return "unknown"
    const folded = new Set<string>()
    for (const name of names) {
      yield* this.goOn()
      folded.add(FoldedName.of(name))
    }
    return folded
  }

  /** The names in a directory. Of what cannot be read there are none; more than can be looked at end the look. */
  *namesIn(directory: string): Steps<ReadonlyArray<string>> {
    const names = yield* this.listed(yield* this.real(directory))
    if (names === "large") this.looks = Infinity
    return typeof names === "string" ? none : names
  }

  /**
   * The paths that a shell may make of a path with wildcards or braces, with the directories that it looks into. A name that
   * is not known yet may be there by then: the text counts as well.
   */
  *expand(base: string, text: string): Steps<ReadonlyArray<string>> {
    const found = new Set<string>()
    for (const word of ShellPath.alternatives(text)) {
      if (!ShellPath.isWild(word)) {
        found.add(word)
        continue
      }
      const fixed = ShellPath.fixedPart(word)
      if (fixed !== "") found.add(fixed)
      let heads: ReadonlyArray<string> = [fixed]
      for (const part of word.slice(fixed.length).split("/")) {
        const next: Array<string> = []
        for (const head of heads) {
          if (!ShellPath.isWild(part)) {
            next.push(`${head}${part}/`)
            continue
          }
          for (const name of yield* this.namesIn(this.path.resolve(base, head))) {
            yield* this.goOn()
            if (ShellPath.couldBe(part, name)) next.push(`${head}${name}/`)
          }
        }
        heads = next
      }
      for (const head of heads) {
        found.add(head.slice(0, -1))
        yield* this.goOn(directWork)
      }
    }
    return [...found]
  }

  private *listed(directory: string): Steps<ReadonlyArray<string> | "large" | "unreadable"> {
    const known = this.lists.get(directory)
    if (known !== undefined) return known
    let isSmall: boolean | undefined
    this.looks++
    yield Effect.match(this.fs.stat(directory), {
      onFailure: () => undefined,
      onSuccess: ({ size }) => {
        isSmall = Number(size) <= maxDirectory
      }
    })
    if (isSmall !== true) return isSmall === undefined ? "unreadable" : "large"
    return (yield* this.read(directory)) ?? "unreadable"
  }

  private *read(directory: string): Steps<ReadonlyArray<string> | undefined> {
    if (this.isSpent) return none
    this.looks++
    let found: ReadonlyArray<string> | undefined
    yield Effect.match(this.fs.readDirectory(directory), {
      onFailure: () => undefined,
      onSuccess: (names) => {
        found = names
      }
    })
    if (found !== undefined) this.lists.set(directory, found)
    return found
  }
}

/** Runs steps to their end. */
export const run = <A>(steps: Steps<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const next = steps.next()
    return next.done === true ? Effect.succeed(next.value) : Effect.flatMap(next.value, () => run(steps))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Folder {
  /** How many of its names were looked for. */
  asked: number
  /** Its names, so that those are equal which some file system takes for equal. */
  names: ReadonlySet<string> | "unknown" | undefined
}

const none: ReadonlyArray<string> = []

const maxHops = 40

/** Each is some ten microseconds of work elsewhere, and a wait. */
const maxLooks = 10_000

/** Steps of about a microsecond. */
const maxWork = 500_000

/** What such a look takes, in the same measure. */
const directWork = 5

/** So many names are looked for one by one: reading a directory takes longer. */
const fewNames = 8

/** Bytes of a directory that is read to save looks: some ten thousand names. */
const maxDirectory = 524_288

/**
 * A name that a directory has only if it lists one that is equal but for case. Some systems hide names with a dot in
 * front, make short names with a tilde, leave out dots and blanks at the end, or take a colon for the beginning of something else.
 */
const plain = /^(?!\.)[!-9;-[\]-}]+(?<!\.)$/
