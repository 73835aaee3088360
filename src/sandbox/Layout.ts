/**
 * What the commands of one workspace see. A layout is made while no command runs, and shared by commands that run at
 * once.
 *
 * A running command may change every directory that is not a mount. A layout made meanwhile could follow a link into
 * the rest of the machine, so none is made: a command that starts beside others uses their layout. Files that act later
 * are set aside when a command ends, and no other command begins until that is done.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Directory from "../core/Directory.js"
import type * as Home from "./Home.js"
import * as GitState from "./GitState.js"
import * as OwnFiles from "./OwnFiles.js"
import * as Repository from "./Repository.js"
import * as Quarantine from "./Quarantine.js"
import type { Job } from "./Sandbox.js"
import * as Search from "./Search.js"
import type { Surroundings } from "./Surroundings.js"
import * as View from "./View.js"
import * as Unfinished from "./Unfinished.js"
import * as Watch from "./Watch.js"

export interface Options {
  /** The workspace and the other writable directories, absolute, without links. The workspace comes first. */
  readonly roots: ReadonlyArray<string>
  /** Where the private home and the files set aside are kept. */
  readonly directory: string
  /** Further visible files and directories, absolute. */
  readonly readable: ReadonlyArray<string>
  /** Paths that are hidden inside visible directories. */
  readonly hidden: ReadonlyArray<string>
  /** Paths, also of links, that are not changed inside writable directories. */
  readonly readOnly: ReadonlyArray<string>
  /** What of the home lies in the roots. */
  readonly home: Home.Home
  readonly network: boolean
}

export type Platform = Search.Platform

/** What a command wants of a layout. */
export type Wanted = Pick<Job, "command" | "directory" | "git" | "network">

/** A place in a layout, until it is left. */
export interface Entered {
  readonly viewOf: (wanted: Wanted) => View.View
  /** Whether other commands run in the layout, so that no new one can be made. */
  readonly isShared: () => boolean
  /** Sets aside what appeared, and yields sentences that say so. */
  readonly leave: Effect.Effect<ReadonlyArray<string>>
}

export interface Layout {
  /** Uninterruptible. Every entered place must be left. */
  readonly enter: (wanted: Wanted) => Effect.Effect<Entered, string>
  /** The view in which nothing can be changed, with these further files. Other commands may run beside. */
  readonly reader: (files: ReadonlyArray<string>) => Effect.Effect<View.View, string>
  /** The next command gets a new layout, because a file that this one mounts is gone. */
  readonly forget: Effect.Effect<void>
}

export const make = (
  platform: Platform,
  options: Options,
  surroundings: Surroundings,
  confined: Watch.Confined
): Effect.Effect<Layout, string, Scope.Scope> =>
  Effect.gen(function* () {
    const { fileSystem, path } = platform
    const search = yield* Search.make(platform, options.roots, options.directory)
    const watch = Watch.make(platform, search, confined)
    const turn = yield* Effect.makeSemaphore(1)
    const own = yield* Effect.cached(Effect.uninterruptible(OwnFiles.make(platform, options)))
    let active = 0
    let laidOut: LaidOut | undefined
    /** The acting names that were there before the running commands began, each with its version. */
    let before: ReadonlyMap<string, string> = new Map()
    /** The links among them and in their repositories, each with its target. A command can remove and replace those. */
    let links = new Map<string, string>()
    /** The lines of git that run, and how the git directories were before the first of them. */
    const lines = new Set<{ readonly text: string }>()
    let acts: GitState.State = new Map()
    let isStale = false
    let isToldOfMany = false
    /** What is to be said of a command that ended with an earlier process of ours. */
    let left: ReadonlyArray<string> = []

    const viewOf = (files: OwnFiles.Made, mounts: ReadonlyArray<View.Mount>) => {
      const home = OwnFiles.homes.find((place) => !mounts.some(({ path: other }) => View.isWithin(other, place)))
      if (home === undefined) return Effect.fail("There is no place for a private home in the sandbox.")
      return Effect.succeed(
        View.make({
          mounts,
          roots: options.roots,
          home,
          homeFrom: files.home,
          network: options.network,
          environment: surroundings.environment
        })
      )
    }
    const mountsFor = (files: OwnFiles.Made) =>
      Effect.map(
        Effect.filter(options.readable, (file) => isThere(fileSystem, file)),
        (readable): ReadonlyArray<View.Mount> => [
          ...surroundings.mounts,
          ...files.mounts,
          ...readable.map((file): View.Mount => ({ _tag: "ReadOnly", path: file })),
          ...options.roots.map((root): View.Mount => ({ _tag: "Writable", path: root }))
        ]
      )
    /** Where our own programs look before there is a layout. No command runs then. */
    const outlook = Effect.gen(function* () {
      const files = yield* own
      return yield* viewOf(files, yield* mountsFor(files))
    })
    const { keys, startFiles } = options.home
    /** What is hidden in these visible directories. */
    const hiddenIn = (visible: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const ofHome = yield* Effect.forEach(keys, (file) => Effect.option(fileSystem.realPath(file)))
        const hidden: Array<View.Mount & { readonly _tag: "Hidden" }> = []
        for (const file of new Set([...options.hidden, options.directory, ...ofHome.flatMap(Option.toArray)])) {
          const info = yield* Effect.option(fileSystem.stat(file))
          const isSeen = visible.some((root) => View.isWithin(root, file))
          if (!isSeen || Option.isNone(info) || options.roots.includes(file)) continue
          hidden.push({ _tag: "Hidden", path: file, kind: info.value.type === "Directory" ? "directory" : "file" })
        }
        return hidden
      })
    /** The git directories of the roots that lie elsewhere. */
    const apart = Effect.map(
      Effect.forEach(options.roots, (root) => Repository.apart(fileSystem, path, path.join(root, ".git"))),
      (found) => found.flat()
    )
    let knownApart: ReadonlyArray<string> = []

    /** Made while closed directories are open. They are closed when a command begins, and mounts in them stay. */
    const layOut = (known: ReadonlyArray<Search.Found>, directory: string) =>
      Effect.gen(function* () {
        const files = yield* own
        const mounts = [...(yield* mountsFor(files))]
        /** Mounts for a command that is git, and for every other one. */
        const opened: Array<View.Mount> = []
        const sealed: Array<View.Mount> = []
        const absent = new Map<string, string | undefined>()
        const nests = new Map<string, ReadonlySet<string>>()
        const held = new Set<string>()
        const barred: Array<Barred> = []
        knownApart = yield* apart
        const isReached = (real: string) => [...options.roots, ...knownApart].some((root) => View.isWithin(root, real))
        const shaped = new Set(known.flatMap(({ file, head }) => (head === undefined ? [] : [file])))
        const gitDirectories: Array<string> = []
        const isRepository = (file: string) => shaped.has(file) || path.basename(file).toLowerCase() === ".git"
        let repositories = 0
        for (const file of nearest([...new Set(known.map(({ file }) => file))], directory)) {
          if (/\p{Surrogate}/u.test(file)) return yield* Effect.fail(unnamed(shownAt(file)))
          const real = Option.getOrUndefined(yield* Effect.option(fileSystem.realPath(file)))
          const isItself = real === file
          // A command can remove or replace a link; when it ends the link is put back. The link's target is guarded
          // where a command could reach it.
          if (real === undefined || !isReached(real)) continue
          if (isRepository(file)) {
            repositories += 1
            if (repositories > mostRepositories) return yield* Effect.fail(tooManyRepositories)
            const tree = path.dirname(real)
            if (repositories > mostWritable && !options.roots.includes(tree) && !View.isWithin(tree, directory)) {
              mounts.push({ _tag: "ReadOnly", path: tree })
              held.add(file)
              continue
            }
            const seal = { _tag: "ReadOnly", path: real } as const
            sealed.push(seal)
            if (repositories > mostForGit) opened.push(seal)
            const repository =
              repositories > mostForGit ? undefined : yield* Repository.read(fileSystem, path, real, options.roots)
            if (repository !== undefined) {
              opened.push(...repository.mounts)
              gitDirectories.push(...(repository.elsewhere.length === 0 ? [real] : repository.elsewhere))
              sealed.push(...repository.elsewhere.map((place) => ({ _tag: "ReadOnly", path: place }) as const))
              for (const [name, link] of repository.absent) absent.set(name, link)
              for (const [nest, names] of repository.nests) nests.set(nest, names)
            }
            barred.push({ file: real, deep: true })
          } else if (isItself || !Repository.isAround(real, [...options.roots, path.dirname(file)])) {
            mounts.push({ _tag: "ReadOnly", path: real })
            barred.push({ file: real, deep: true })
          }
          if (isItself) held.add(file)
        }
        if (repositories > mostWritable && !isToldOfMany) {
          isToldOfMany = true
          yield* Effect.logWarning(
            `The workspace holds ${repositories} repositories. Commands write in the ${mostWritable} nearest of them.`
          )
        }
        const writable = [...mounts, ...opened].filter(({ _tag }) => _tag === "Writable").map((mount) => mount.path)
        for (const file of options.readOnly) {
          const isSeen = writable.some((root) => View.isWithin(root, file)) && !options.roots.includes(file)
          const isItself = Option.contains(yield* Effect.option(fileSystem.realPath(file)), file)
          if (!isSeen || !isItself || held.has(file)) continue
          mounts.push({ _tag: "ReadOnly", path: file })
          barred.push({ file, deep: true })
        }
        const guarded = Repository.guarding(fileSystem, path, options.roots)
        yield* Effect.forEach([...keys, ...startFiles], guarded.guard, { discard: true })
        mounts.push(...guarded.mounts)
        for (const { path: file } of guarded.mounts) barred.push({ file, deep: true })
        for (const [name, link] of guarded.absent) absent.set(name, link)
        for (const hidden of yield* hiddenIn([...writable, ...options.readable])) {
          if (held.has(hidden.path)) continue
          mounts.push(hidden)
          barred.push({ file: hidden.path, deep: false })
        }
        const others = yield* otherNames(barred)
        const viewWith = (more: ReadonlyArray<View.Mount>) =>
          viewOf(files, [...mounts, ...more, ...others.map((file): View.Mount => ({ _tag: "ReadOnly", path: file }))])
        const view = yield* viewWith(sealed)
        const git = yield* viewWith(opened)
        const links = yield* linksOf([
          ...absent.keys(),
          ...options.readOnly.filter((file) => options.roots.some((root) => View.isWithin(root, file)))
        ])
        const { ofNetwork } = files
        return {
          view,
          git,
          gitDirectories,
          ofNetwork,
          guarded: { absent, nests },
          barred,
          others,
          links,
          held,
          nodes: nodesOf(known)
        }
      })

    /**
     * Other names, by hard links, of what is barred: who writes to one writes to the other. Commands can make none,
     * because a barred file is a mount of its own.
     */
    const otherNames = (barred: ReadonlyArray<Barred>): Effect.Effect<ReadonlyArray<string>, string> =>
      Effect.gen(function* () {
        const identify = (file: string) =>
          Effect.map(Effect.option(fileSystem.stat(file)), (found) =>
            Option.isSome(found) &&
            found.value.type === "File" &&
            Option.exists(found.value.nlink, (count) => count > 1)
              ? { file, dev: found.value.dev, ino: Option.getOrElse(found.value.ino, () => 0) }
              : undefined
          )
        const isOne = <A>(found: A | undefined): found is A => found !== undefined
        const ofDepth = (deep: boolean) => barred.filter((one) => one.deep === deep).map(({ file }) => file)
        const files = [
          ...(yield* search.sharedIn(ofDepth(true), undefined)),
          ...(yield* search.sharedIn(ofDepth(false), 1))
        ]
        const shared = (yield* Effect.forEach(files, identify, atOnce)).filter(isOne)
        if (shared.length === 0) return []
        const names = yield* search.namesOf([...new Set(shared.map(({ ino }) => ino))])
        const found = (yield* Effect.forEach(names, identify, atOnce)).filter(isOne)
        return found
          .filter((one) => shared.some(({ dev, ino }) => dev === one.dev && ino === one.ino))
          .map(({ file }) => file)
          .filter((other) => !barred.some(({ file }) => View.isWithin(file, other)))
          .toSorted()
      })

    /** Which acting names are where. */
    const nodesOf = (found: ReadonlyArray<Search.Found>): string =>
      found
        .map(({ file, node }) => `${node} ${file}`)
        .toSorted()
        .join("\0")

    /** The links among these paths, each with its target. */
    const linksOf = (files: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const targets = new Map<string, string>()
        for (const file of files) {
          const target = yield* Effect.option(fileSystem.readLink(file))
          if (Option.isSome(target)) targets.set(file, target.value)
        }
        return targets
      })
    const isStill = ([file, target]: readonly [string, string]) =>
      Effect.map(Effect.option(fileSystem.readLink(file)), (now) => Option.contains(now, target))

    /** The former layout, if nothing that it depends on has changed. */
    const current = (directory: string) =>
      Effect.gen(function* () {
        if (laidOut !== undefined && active > 0) return laidOut
        const { appeared, everything, unseen } = yield* watch.look(outlook, laidOut?.guarded)
        const { close, closed, found } = yield* everything
        const isLinked = yield* Effect.every(laidOut?.links ?? [], isStill)
        const isAsBefore = !isStale && isLinked && appeared.length === 0 && unseen.length === 0
        const isSame = isAsBefore && laidOut?.nodes === nodesOf(found)
        const laid = yield* Effect.ensuring(
          Effect.gen(function* () {
            if (laidOut === undefined || !isSame) return yield* layOut(found, directory)
            const others = yield* otherNames(laidOut.barred)
            return others.join("\0") === laidOut.others.join("\0") ? laidOut : yield* layOut(found, directory)
          }),
          close
        )
        isStale = false
        before = new Map([...found, ...closed].map(({ file, version }) => [file, version]))
        const replaceable = found.filter(({ file }) => !laid.held.has(file))
        links = new Map([...(yield* linksOf(replaceable.map(({ file }) => file))), ...laid.links])
        return laid
      })

    /** What acts in git directories. A command may have closed some directories in them: those are opened. */
    const lookInto = (gitDirectories: ReadonlyArray<string>, view: View.View) =>
      Effect.gen(function* () {
        for (let round = 0; ; round++) {
          const state = yield* GitState.look(platform, search, gitDirectories)
          const closed = [...state.values()].flatMap(({ file, isClosed }) => (isClosed === true ? [file] : []))
          if (closed.length === 0 || round === mostRounds) return state
          yield* watch.open(view, closed)
        }
      })

    const aside = path.join(options.directory, "set-aside")
    const rootOf = (file: string) => options.roots.find((place) => View.isWithin(place, file)) ?? path.dirname(file)
    const shownAt = (file: string) => shown(path.relative(rootOf(file), file) || ".")

    /** Sets aside what appeared since then, and yields sentences that say so: a few, and where all of them are listed. */
    const settle = ({ acts, before, gitDirectories, guarded, held, lines, links, view }: Since) =>
      Effect.gen(function* () {
        const { appeared, everything, unseen } = yield* watch.look(Effect.succeed(view), guarded)
        const lost = new Map(yield* Effect.filter(links, (link) => Effect.negate(isStill(link))))
        // A link is what it says, whichever file says it.
        const isSame = (file: string) => held.has(file) || (links.has(file) && !lost.has(file))
        const isNew = ({ file, version }: Search.Found) => !isSame(file) && before.get(file) !== version
        // Git made a worktree: what it made is looked at with its git directory.
        const isWorktree = (file: string) =>
          lines === "" ? Effect.succeed(false) : Repository.isWorktreeOf(fileSystem, path, file, gitDirectories)
        const isOfWorktree = (file: string) =>
          lines === "" ? Effect.succeed(false) : Repository.isOfWorktree(fileSystem, path, file, gitDirectories)
        const stamp = new Date(yield* Clock.currentTimeMillis).toISOString().replace(/\W/g, "").slice(0, 15)
        const notices: Array<string> = []
        /** What still acts comes first. */
        const urgent: Array<string> = []
        const run: Quarantine.Options["run"] = (script, words, copies) =>
          confined({ ...view, homeFrom: copies }, ["/bin/sh", "-c", script, "sh", ...words])
        const wanted: Array<{ readonly file: string; readonly what: string; readonly advice: string }> = []
        const put = (file: string, what: string, advice = "") => wanted.push({ file, what, advice })
        if (Either.isLeft(everything))
          urgent.push(`[${everything.left}; a .git that a command left there acts when git runs in it.]`)
        else {
          // A directory that became git's own may hold other things: it stays, without what makes it one.
          for (const { file, head } of everything.right.found.filter(isNew))
            if (head === undefined) {
              if (!(yield* isWorktree(file))) put(file, "appeared, which acts later")
            } else
              put(head, `makes ${shownAt(file)} a git directory; its settings take effect when git runs there`, ofShape)
          for (const { file } of everything.right.closed.filter(isNew)) put(file, "cannot be listed")
        }
        for (const file of appeared) if (!(yield* isOfWorktree(file))) put(file, "appeared, which acts later")
        if (lines !== "") {
          const now = yield* Effect.either(lookInto(gitDirectories, view))
          if (Either.isLeft(now)) urgent.push(`[${now.left}: look at .git before you use git there.]`)
          else {
            const left = GitState.changes(acts, now.right, lines)
            // Files that belong together move as one. What moves already moves once.
            for (const place of new Set(left.map((act) => act.place))) {
              if (wanted.some(({ file }) => View.isWithin(file, place))) continue
              const all = left.filter((act) => act.place === place)
              put(place, [...new Set(all.map((act) => reasonOf(act)))].slice(0, mostSaid).join(", "))
            }
            if (left.length > 0) isStale = true
          }
        }
        if (wanted.length > manyLeft)
          yield* Effect.logWarning(`Assent moves ${wanted.length} files away that a command left. This takes a moment.`)
        const files = wanted.map(({ file }) => ({ file, root: rootOf(file) }))
        const moved =
          files.length === 0
            ? []
            : yield* Quarantine.move(fileSystem, path, { files, directory: aside, stamp, run, within: view.home })
        for (const [index, { advice, file, what }] of wanted.entries()) {
          const happened = `${shownAt(file)} ${what}`
          const found = moved[index]
          if (found?.isLeft === false) notices.push(`[${happened}; it was moved to ${found.to}.${advice}]`)
          else {
            const copied = found === undefined ? "" : ` (a copy is ${found.to})`
            urgent.push(`[${happened}; it could not be moved away${copied}: look at it before you run anything there.]`)
          }
        }
        for (const [file, target] of lost) {
          const isBack = yield* Quarantine.putBack(fileSystem, path, { file, target })
          const was = `${shownAt(file)} was a link to ${shown(target)}, which is gone`
          notices.push(isBack ? `[${was}; it was restored.]` : `[${was}; make it again if it is to hold.]`)
          if (!isBack) links.delete(file)
        }
        for (const directory of unseen)
          urgent.push(`[${shown(directory)} could not be checked. Check it before you run anything there.]`)
        if (Either.isRight(everything)) yield* everything.right.close
        return yield* bounded([...urgent, ...notices], stamp)
      })

    /** Many sentences are listed in a file. */
    const bounded = (notices: ReadonlyArray<string>, stamp: string) =>
      Effect.gen(function* () {
        if (notices.length <= mostSaid) return notices
        const rest = `[and ${notices.length - mostSaid} more`
        const listed = Effect.gen(function* () {
          yield* Directory.ensure(fileSystem, path, aside, 0o700)
          const taken = new Set(yield* fileSystem.readDirectory(aside))
          const to = path.join(
            aside,
            Quarantine.freeName(taken, (attempt) => `${stamp}-${attempt}-list.txt`)
          )
          yield* fileSystem.writeFileString(to, `${notices.join("\n")}\n`, { mode: 0o600 })
          return `${rest}: ${to} lists all of them.]`
        })
        const last = yield* Effect.orElseSucceed(listed, () => `${rest}: look into ${aside}.]`)
        return [...notices.slice(0, mostSaid), last]
      })

    const leave = (laid: LaidOut, line: { readonly text: string } | undefined) =>
      Effect.gen(function* () {
        const since = { ...laid, view: laid.git, before, links, acts: new Set(acts.keys()), lines: textOf(lines) }
        const notices = [...left, ...(yield* settle(line === undefined ? { ...since, lines: "" } : since))]
        if (line !== undefined) lines.delete(line)
        left = []
        active -= 1
        if (active === 0) yield* unfinished.end
        return notices
      })

    const unfinished = yield* Unfinished.make(platform, options.directory)
    // Commands that only read need not wait for that: they see no difference.
    const earlier = yield* Effect.forkScoped(
      Effect.uninterruptible(
        Effect.gen(function* () {
          for (const since of unfinished.earlier)
            left = [...left, ...(yield* settle({ ...since, view: yield* outlook }))]
          yield* unfinished.settled
          yield* Effect.forEach(left, (notice) =>
            Effect.logWarning(`After a command that ended with Assent: ${notice}`)
          )
        })
      )
    )
    const enter = ({ command, directory, git }: Wanted) =>
      Effect.uninterruptible(
        turn.withPermits(1)(
          Effect.gen(function* () {
            // Not joined: a command must not go on in the world of the one for which this began.
            yield* Fiber.await(earlier)
            const laid = yield* current(directory)
            laidOut = laid
            const line = git === true ? { text: command.join(" ") } : undefined
            if (line !== undefined && lines.size === 0)
              acts = yield* GitState.look(platform, search, laid.gitDirectories)
            const running = line === undefined ? lines : [...lines, line]
            if (active === 0 || line !== undefined)
              yield* unfinished.begin({ ...laid, before, links, acts: new Set(acts.keys()), lines: textOf(running) })
            if (line !== undefined) lines.add(line)
            active += 1
            let left: Effect.Effect<ReadonlyArray<string>> | undefined = turn.withPermits(1)(leave(laid, line))
            // Only the first caller gets the sentences.
            const once = Effect.suspend(() => {
              const now = left ?? Effect.succeed([])
              left = undefined
              return now
            })
            return {
              viewOf: ({ git, network }: Wanted) => {
                const view = git === true ? laid.git : laid.view
                return network === true ? { ...view, network: true, mounts: [...view.mounts, ...laid.ofNetwork] } : view
              },
              isShared: () => active > 1,
              leave: Effect.uninterruptible(once)
            }
          })
        )
      )
    const forget = Effect.sync(() => {
      isStale = true
    })
    const reader: Layout["reader"] = (files) =>
      Effect.gen(function* () {
        // A running command may have put other links in their places.
        if (active === 0) knownApart = yield* apart
        const base = yield* own
        const mounts = yield* mountsFor(base)
        const more = [...knownApart, ...files].filter(
          (file) => !mounts.some(({ path: place }) => View.isWithin(place, file))
        )
        const hidden = yield* hiddenIn([...options.roots, ...options.readable])
        const view = yield* viewOf(base, [
          ...mounts.map((mount) => (mount._tag === "Writable" ? { ...mount, _tag: "ReadOnly" as const } : mount)),
          ...more.map((file) => ({ _tag: "ReadOnly" as const, path: file })),
          ...hidden.filter(({ path: place }) => !files.some((file) => View.isWithin(place, file)))
        ])
        return { ...view, homeFrom: undefined, network: false }
      })
    return { enter, forget, reader }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What lies where commands write, and must not be written. */
interface Barred {
  readonly file: string
  /** Whether what is in its directories counts: what is hidden may hold all that we keep. */
  readonly deep: boolean
}

/** What was there before commands began. */
interface Since extends Unfinished.Since {
  readonly view: View.View
}

/** What is said of a file, in a sentence that begins with its place. */
const reasonOf = ({ file, place, reason }: GitState.Act): string =>
  file === place ? reason : `holds ${shown(file.slice(place.length + 1))}, which ${reason}`

const textOf = (lines: Iterable<{ readonly text: string }>): string => [...lines].map(({ text }) => text).join("\n")

interface LaidOut {
  /** For every command that is not git. Git directories are read-only. */
  readonly view: View.View
  readonly git: View.View
  /** The git directories that git may write. */
  readonly gitDirectories: ReadonlyArray<string>
  /** Mounts for a command that has the network. */
  readonly ofNetwork: ReadonlyArray<View.Mount>
  readonly guarded: Watch.Guarded
  /** What nobody may write, and the names that it has beside. */
  readonly barred: ReadonlyArray<Barred>
  readonly others: ReadonlyArray<string>
  /** The links among the guarded paths, each with its target. */
  readonly links: ReadonlyMap<string, string>
  /** Which acting names were where. */
  readonly nodes: string
  /** Paths that a command cannot replace. */
  readonly held: ReadonlySet<string>
}

const atOnce = { concurrency: 16 } as const

/**
 * The cost of mounts grows with the square of their number: 300 repositories cost half a second. Git may write that many of
 * the nearest repositories. The work trees of further repositories are read-only as a whole.
 */
const mostForGit = 64
const mostWritable = 300
const mostRepositories = 1_500
const tooManyRepositories =
  `the workspace holds more than ${mostRepositories} repositories, and a confined command can write beside no more. Start ` +
  "Assent in one of them"

const unnamed = (file: string): string =>
  `${file} lies below a name that is no UTF-8, so that it cannot be kept from commands. Rename the directory`

/** Repositories around the directory first, then those in it, then all others. */
const nearest = (files: ReadonlyArray<string>, directory: string): ReadonlyArray<string> => {
  const rank = (file: string) => {
    const tree = file.slice(0, file.lastIndexOf("/"))
    return View.isWithin(tree, directory) ? 0 : View.isWithin(directory, tree) ? 1 : 2
  }
  return files.toSorted((a, b) => rank(a) - rank(b) || a.split("/").length - b.split("/").length)
}

const mostSaid = 5
/** Directories that cannot be listed may be nested. */
const mostRounds = 5
/** Moving so many takes more than a second. */
const manyLeft = 200
const ofShape = " The person can move it back. A repository below $HOME or /tmp is not moved."

/** A path in one line, not too long. A command chose it. */
const shown = (file: string): string => {
  const line = file.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`)
  return line.length <= mostShown ? line : `${line.slice(0, mostShown / 2)}…${line.slice(-mostShown / 2)}`
}
const mostShown = 240

const isThere = (fileSystem: FileSystem.FileSystem, file: string): Effect.Effect<boolean> =>
  Effect.orElseSucceed(fileSystem.exists(file), () => false)
