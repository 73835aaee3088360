/**
 * Tells whether reading a git repository is harmless where nothing confines git: no program of the repository runs, and
 * nothing outside of it is read.
 *
 * The repository is found as git finds it. Its own configuration must have harmless keys only, and the same holds for
 * its submodules, because `git status` starts git in them. The person's configuration is the person's, and is not read.
 */
import type { PlatformError } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RegularFile from "../core/RegularFile.js"
import * as GitConfig from "./GitConfig.js"
import * as GitIndex from "./GitIndex.js"
import { isWithin } from "./View.js"

export interface Options {
  /** Where commands may read. A git directory elsewhere must name the work tree that leads to it. */
  readonly roots?: ReadonlyArray<string>
  /** The person's user id. Where a system has none, owners do not count. */
  readonly uid?: number | undefined
}

/** Why reading git in a directory is not harmless: a sentence. Nothing if it is, also where there is no repository. */
export const judge = (
  fileSystem: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
  options: Options = {}
): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const real = yield* readable(directory, fileSystem.realPath(directory))
    const judgement = new Judgement(fileSystem, path, real, options)
    const found = yield* judgement.find(real)
    if (found !== undefined) yield* judgement.repository(found, [real])
  }).pipe(Effect.match({ onSuccess: () => undefined, onFailure: (reason) => reason }))

/** Where the `.git` file of a worktree or submodule leads, as it is written. */
export const pointerOf = (text: string): string | undefined => /^gitdir: ([^\r\n\0]+)[\r\n]*$/.exec(text)?.[1]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A step fails with the reason. */
type Step<A> = Effect.Effect<A, string>

interface Repository {
  /** Absent for a bare repository. */
  readonly root: string | undefined
  /** The `.git` that was found, which may be a file. */
  readonly at: string
  readonly git: string
  /** The same, but for a worktree: there it is the git directory of the repository. */
  readonly common: string
}

interface Seen {
  readonly type: FileSystem.File.Type
  readonly uid: number | undefined
  readonly isExecutable: boolean
}

class Judgement {
  private submodules = 0

  constructor(
    private readonly fileSystem: FileSystem.FileSystem,
    private readonly path: Path.Path,
    private readonly directory: string,
    private readonly options: Options
  ) {}

  /** The nearest repository upwards. */
  find(directory: string): Step<Repository | undefined> {
    const { path } = this
    return Effect.gen(this, function* () {
      for (let root = directory; ; root = path.dirname(root)) {
        const found = yield* this.below(root)
        if (found !== undefined) return found
        if (yield* this.hasShape(root, root)) return { root: undefined, at: root, git: root, common: root }
        if (root === path.dirname(root)) return undefined
      }
    })
  }

  /** The repository that has this directory as its work tree. */
  private below(root: string): Step<Repository | undefined> {
    const { path } = this
    return Effect.gen(this, function* () {
      const at = path.join(root, ".git")
      const seen = yield* this.see(at)
      if (seen === undefined) return undefined
      let git = at
      if (seen.type === "File") {
        const pointer = pointerOf(yield* this.text(at, maxPointer))
        if (pointer === undefined) return yield* Effect.fail(`${this.shown(at)} leads to no git directory.`)
        git = yield* readable(this.shown(at), this.fileSystem.realPath(path.resolve(root, pointer)))
      } else if (seen.type !== "Directory") return yield* Effect.fail(`${this.shown(at)} is ${called(seen)}.`)
      const common = yield* this.commonOf(git, at)
      if (yield* this.hasShape(git, common)) return { root, at, git, common }
      return seen.type === "File" ? yield* Effect.fail(`${this.shown(at)} leads to no git directory.`) : undefined
    })
  }

  /** A worktree shares the directory of its repository. Only a repository that points back has this worktree. */
  private commonOf(git: string, at: string): Step<string> {
    const { fileSystem, path } = this
    return Effect.gen(this, function* () {
      const file = path.join(git, "commondir")
      if ((yield* this.see(file)) === undefined) return git
      const real = (base: string, text: string) =>
        readable(this.shown(file), fileSystem.realPath(path.resolve(base, text.replace(/[\r\n]+$/, ""))))
      const common = yield* real(git, yield* this.text(file, maxPointer))
      const back = yield* real(git, yield* this.text(path.join(git, "gitdir"), maxPointer))
      if (path.dirname(git) === path.join(common, "worktrees") && back === at) return common
      return yield* Effect.fail(`${this.shown(file)} leads to another repository.`)
    })
  }

  /** Git takes the directory for its own. Fails if git may or may not. */
  private hasShape(git: string, common: string): Step<boolean> {
    const { path } = this
    return Effect.gen(this, function* () {
      const head = path.join(git, "HEAD")
      const seen = yield* this.see(head)
      if (seen === undefined) return false
      for (const name of ["objects", "refs"]) {
        const part = path.join(common, name)
        const type = (yield* this.see(part))?.type
        if (type === undefined) return false
        if (type !== "Directory") return yield* Effect.fail(`${this.shown(part)} is no directory.`)
      }
      if (/^(?:ref: *refs\/|[0-9a-f]{40,64}\s*$)/.test(yield* this.text(head, maxPointer))) return true
      return yield* Effect.fail(`${this.shown(head)} names no commit and no branch.`)
    })
  }

  /** Fails with the first reason. `above` are the repositories that it is a submodule of. */
  repository(found: Repository, above: ReadonlyArray<string>): Step<void> {
    const { common, git, root } = found
    const { path } = this
    return Effect.gen(this, function* () {
      const files = ["config", "config.worktree"]
      const configs = [...new Set([git, common])].flatMap((place) => files.map((name) => path.join(place, name)))
      for (const file of [...(root === undefined ? [] : [root]), found.at, git, common, ...configs])
        yield* this.own(file)
      const names = new Set<string>()
      for (const place of new Set([git, common])) for (const name of yield* this.entries(place)) names.add(name)
      const settings: Array<GitConfig.Setting> = []
      const hooks = [path.join(common, "hooks")]
      for (const file of configs) {
        for (const setting of yield* this.settings(file)) {
          settings.push(setting)
          const key = GitConfig.keyOf(setting)
          const value = setting.value ?? ""
          if (key === "core.hookspath" && isPlain(value)) {
            for (const base of [root, git, common, this.directory]) {
              if (base !== undefined) hooks.push(path.resolve(base, value))
            }
          } else if (key === "core.worktree" && root !== undefined) {
            if (!(yield* this.leadsTo(path.resolve(git, value), root)))
              return yield* Effect.fail(`${this.shown(file)} names another work tree (core.worktree).`)
          } else if (!GitConfig.isHarmless(setting) && !GitConfig.isHeld(setting)) {
            return yield* Effect.fail(
              `${this.shown(file)} sets ${shortened(key)}, which may make git start a program or read another place.`
            )
          }
        }
      }
      const isNamed = settings.some((setting) => GitConfig.keyOf(setting) === "core.worktree")
      const roots = [...above, ...(root === undefined ? [] : [root]), ...(this.options.roots ?? [])]
      if (git === common && !isNamed && !roots.some((one) => isWithin(one, git))) {
        return yield* Effect.fail(`${this.shown(found.at)} leads to a repository outside of the workspace.`)
      }
      for (const name of ["alternates", "http-alternates"]) {
        const file = path.join(common, "objects/info", name)
        if ((yield* this.see(file)) !== undefined) {
          return yield* Effect.fail(`${this.shown(file)} makes git read objects of another repository.`)
        }
      }
      for (const place of hooks) {
        const hook = path.join(place, "post-index-change")
        if ((yield* this.see(hook))?.isExecutable === true) {
          return yield* Effect.fail(`git may run ${this.shown(hook)} when it reads.`)
        }
      }
      if (root === undefined) return
      for (const name of names) {
        if (name !== "index" && !name.startsWith("sharedindex.")) continue
        const file = path.join(git, name)
        if ((yield* this.see(file)) === undefined) continue
        const bytes = yield* readable(this.shown(file), RegularFile.readBytes(this.fileSystem, file, maxIndex))
        const index = GitIndex.parse(bytes, GitConfig.hashBytes(settings))
        if (index === undefined) return yield* Effect.fail(`${this.shown(file)} cannot be read with certainty.`)
        for (const module of index.submodules) yield* this.submodule(root, module, roots)
      }
    })
  }

  private submodule(root: string, name: string, above: ReadonlyArray<string>): Step<void> {
    return Effect.gen(this, function* () {
      const place = this.path.resolve(root, name)
      const real = yield* Effect.option(this.fileSystem.realPath(place))
      if (Option.isNone(real)) return
      if (real.value !== place || !isWithin(root, place)) {
        return yield* Effect.fail(`the submodule ${this.shown(place)} is a link.`)
      }
      if (++this.submodules > maxSubmodules) return yield* Effect.fail("the repository has too many submodules.")
      const found = yield* this.below(place)
      if (found !== undefined) yield* this.repository(found, above)
    })
  }

  private settings(file: string): Step<ReadonlyArray<GitConfig.Setting>> {
    return Effect.gen(this, function* () {
      if ((yield* this.see(file)) === undefined) return []
      const settings = GitConfig.parse(yield* this.text(file, maxConfig))
      return settings ?? (yield* Effect.fail(`${this.shown(file)} cannot be read with certainty.`))
    })
  }

  private own(file: string): Step<void> {
    const { uid } = this.options
    return Effect.flatMap(this.see(file), (seen) =>
      seen?.uid === undefined || uid === undefined || seen.uid === uid
        ? Effect.void
        : Effect.fail(`${this.shown(file)} belongs to another user.`)
    )
  }

  /** The names in a git directory. Fails if git would follow a link in the places from which it reads. */
  private entries(git: string): Step<ReadonlyArray<string>> {
    const { fileSystem, path } = this
    const inner = ["info", "logs", "logs/refs", "objects", "objects/info", "objects/pack", "refs", "refs/heads"]
    return Effect.gen(this, function* () {
      const names = yield* readable(this.shown(git), fileSystem.readDirectory(git))
      for (const place of ["", ...inner]) {
        const directory = path.join(git, place)
        const inside = place === "" ? names : yield* Effect.orElseSucceed(fileSystem.readDirectory(directory), () => [])
        yield* Effect.forEach(
          inside,
          (name) =>
            place === "" && name === "hooks"
              ? Effect.void
              : Effect.flatMap(Effect.isSuccess(fileSystem.readLink(path.join(directory, name))), (isLink) =>
                  isLink ? Effect.fail(`${this.shown(path.join(directory, name))} is a link.`) : Effect.void
                ),
          { concurrency: 16, discard: true }
        )
      }
      return names
    })
  }

  private leadsTo(file: string, root: string): Effect.Effect<boolean> {
    return Effect.map(Effect.option(this.fileSystem.realPath(file)), Option.contains(root))
  }

  /** What is at a path, links not followed. */
  private see(file: string): Step<Seen | undefined> {
    const { fileSystem } = this
    const isMissing = (error: PlatformError) =>
      error._tag === "SystemError" && (error.reason === "NotFound" || error.description?.includes("ENOTDIR") === true)
    return Effect.matchEffect(fileSystem.readLink(file), {
      onSuccess: () => Effect.succeed<Seen>({ type: "SymbolicLink", uid: undefined, isExecutable: true }),
      onFailure: () =>
        Effect.matchEffect(fileSystem.stat(file), {
          onSuccess: ({ mode, type, uid }) =>
            Effect.succeed<Seen>({ type, uid: Option.getOrUndefined(uid), isExecutable: (mode & 0o111) !== 0 }),
          onFailure: (error) =>
            isMissing(error) ? Effect.succeed(undefined) : Effect.fail(`${this.shown(file)} cannot be read.`)
        })
    })
  }

  /** The text of a file that is no link. */
  private text(file: string, maxBytes: number): Step<string> {
    return Effect.flatMap(this.see(file), (seen) =>
      seen?.type === "File"
        ? readable(this.shown(file), RegularFile.read(this.fileSystem, file, maxBytes))
        : Effect.fail(`${this.shown(file)} is ${called(seen)}.`)
    )
  }

  private shown(file: string): string {
    return isWithin(this.directory, file) ? this.path.relative(this.directory, file) || "." : file
  }
}

const readable = <A, E extends { readonly message: string }>(shown: string, step: Effect.Effect<A, E>): Step<A> =>
  Effect.mapError(step, (error) =>
    error instanceof RegularFile.FileUnfit ? `${shown} ${error.reason}.` : `${shown} cannot be read.`
  )

const called = (seen: Seen | undefined): string =>
  seen === undefined ? "missing" : seen.type === "SymbolicLink" ? "a link" : "no regular file"

/** A relative path without an expansion of git's. */
const isPlain = (value: string): boolean => value !== "" && !/^(?:[/~:]|%\()/.test(value)

const shortened = (text: string): string => (text.length <= 100 ? text : `${text.slice(0, 99)}…`)

const maxPointer = 4_096
const maxConfig = 1_000_000
const maxIndex = 64_000_000
const maxSubmodules = 1_000
