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
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Directory from "../core/Directory.js"
import type * as Home from "./Home.js"
import * as OwnFiles from "./OwnFiles.js"
import * as Repository from "./Repository.js"
import * as Search from "./Search.js"
import * as Quarantine from "./Quarantine.js"
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

/** A place in a layout, until it is left. */
export interface Entered {
  readonly view: View.View
  /** The same with the network. */
  readonly networked: View.View
  /** Whether other commands run in the layout, so that no new one can be made. */
  readonly isShared: () => boolean
  /** Sets aside what appeared, and yields sentences that say so. */
  readonly leave: Effect.Effect<ReadonlyArray<string>>
}

export interface Layout {
  /** Uninterruptible. Every entered place must be left. */
  readonly enter: Effect.Effect<Entered, string>
  /** The view of a program of Assent that only reads, with these further files. Commands may run beside the program. */
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
    let isStale = false
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

    /** Made while closed directories are open. They are closed when a command begins, and mounts in them stay. */
    const layOut = (known: ReadonlyArray<Search.Found>) =>
      Effect.gen(function* () {
        const files = yield* own
        const mounts = [...(yield* mountsFor(files))]
        const absent = new Map<string, string | undefined>()
        const nests = new Map<string, ReadonlySet<string>>()
        const held = new Set<string>()
        const barred: Array<Barred> = []
        const shaped = new Set(known.flatMap(({ file, head }) => (head === undefined ? [] : [file])))
        const isRepository = (file: string) =>
          shaped.has(file) || [".git", ".hg"].includes(path.basename(file).toLowerCase())
        for (const file of new Set(known.map(({ file }) => file))) {
          const real = Option.getOrUndefined(yield* Effect.option(fileSystem.realPath(file)))
          const isItself = real === file
          // A command can remove or replace a link; when it ends the link is put back. The link's target is guarded
          // where a command could reach it.
          if (real === undefined || !options.roots.some((root) => View.isWithin(root, real))) continue
          if (isRepository(file)) {
            const repository = yield* Repository.read(fileSystem, path, real, options.roots)
            if (repository === undefined) continue
            mounts.push(...repository.mounts)
            for (const mount of repository.mounts)
              if (mount._tag === "ReadOnly") barred.push({ file: mount.path, deep: true })
            for (const [name, link] of repository.absent) absent.set(name, link)
            for (const [nest, names] of repository.nests) nests.set(nest, names)
          } else if (isItself || !Repository.isAround(real, [...options.roots, path.dirname(file)])) {
            mounts.push({ _tag: "ReadOnly", path: real })
            barred.push({ file: real, deep: true })
          }
          if (isItself) held.add(file)
        }
        const writable = mounts.filter(({ _tag }) => _tag === "Writable").map((mount) => mount.path)
        for (const file of options.readOnly) {
          const isSeen = writable.some((root) => View.isWithin(root, file)) && !options.roots.includes(file)
          const isItself = Option.contains(yield* Effect.option(fileSystem.realPath(file)), file)
          if (!isSeen || !isItself || held.has(file)) continue
          mounts.push({ _tag: "ReadOnly", path: file })
          barred.push({ file, deep: true })
        }
        const { keys, startFiles } = options.home
        const guarded = Repository.guarding(fileSystem, path, options.roots)
        yield* Effect.forEach([...keys, ...startFiles], guarded.guard, { discard: true })
        mounts.push(...guarded.mounts)
        for (const { path: file } of guarded.mounts) barred.push({ file, deep: true })
        for (const [name, link] of guarded.absent) absent.set(name, link)
        const hiddenKeys = (yield* Effect.forEach(keys, (file) => Effect.option(fileSystem.realPath(file)))).flatMap(
          Option.toArray
        )
        for (const file of new Set([...options.hidden, options.directory, ...hiddenKeys])) {
          const info = yield* Effect.option(fileSystem.stat(file))
          const isSeen = [...writable, ...options.readable].some((root) => View.isWithin(root, file))
          if (!isSeen || Option.isNone(info) || options.roots.includes(file) || held.has(file)) continue
          mounts.push({ _tag: "Hidden", path: file, kind: info.value.type === "Directory" ? "directory" : "file" })
          barred.push({ file, deep: false })
        }
        const others = yield* otherNames(barred)
        const view = yield* viewOf(files, [
          ...mounts,
          ...others.map((file): View.Mount => ({ _tag: "ReadOnly", path: file }))
        ])
        const networked = { ...view, network: true, mounts: [...view.mounts, ...files.ofNetwork] }
        const links = yield* linksOf([
          ...absent.keys(),
          ...options.readOnly.filter((file) => options.roots.some((root) => View.isWithin(root, file)))
        ])
        return { view, networked, guarded: { absent, nests }, barred, others, links, held, nodes: nodesOf(known) }
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
    const current = Effect.gen(function* () {
      if (laidOut !== undefined && active > 0) return laidOut
      const { appeared, everything, unseen } = yield* watch.look(outlook, laidOut?.guarded)
      const { close, closed, found } = yield* everything
      const isLinked = yield* Effect.every(laidOut?.links ?? [], isStill)
      const isAsBefore = !isStale && isLinked && appeared.length === 0 && unseen.length === 0
      const isSame = isAsBefore && laidOut?.nodes === nodesOf(found)
      const laid = yield* Effect.ensuring(
        Effect.gen(function* () {
          if (laidOut === undefined || !isSame) return yield* layOut(found)
          const others = yield* otherNames(laidOut.barred)
          return others.join("\0") === laidOut.others.join("\0") ? laidOut : yield* layOut(found)
        }),
        close
      )
      isStale = false
      before = new Map([...found, ...closed].map(({ file, version }) => [file, version]))
      const replaceable = found.filter(({ file }) => !laid.held.has(file))
      links = new Map([...(yield* linksOf(replaceable.map(({ file }) => file))), ...laid.links])
      return laid
    })

    const aside = path.join(options.directory, "set-aside")
    const rootOf = (file: string) => options.roots.find((place) => View.isWithin(place, file)) ?? path.dirname(file)
    const shownAt = (file: string) => shown(path.relative(rootOf(file), file) || ".")

    /** Sets aside what appeared since then, and yields sentences that say so: a few, and where all of them are listed. */
    const settle = ({ before, guarded, held, links, view }: Since) =>
      Effect.gen(function* () {
        const { appeared, everything, unseen } = yield* watch.look(Effect.succeed(view), guarded)
        const lost = new Map(yield* Effect.filter(links, (link) => Effect.negate(isStill(link))))
        // A link is what it says, whichever file says it.
        const isSame = (file: string) => held.has(file) || (links.has(file) && !lost.has(file))
        const isNew = ({ file, version }: Search.Found) => !isSame(file) && before.get(file) !== version
        const stamp = new Date(yield* Clock.currentTimeMillis).toISOString().replace(/\W/g, "").slice(0, 15)
        const notices: Array<string> = []
        /** What still acts comes first. */
        const urgent: Array<string> = []
        const run: Quarantine.Options["run"] = (script, words, copies) =>
          confined({ ...view, homeFrom: copies }, ["/bin/sh", "-c", script, "sh", ...words])
        const put = (file: string, what: string, advice = "") =>
          Effect.gen(function* () {
            const root = rootOf(file)
            const moving = { file, root, directory: aside, stamp, run, within: view.home }
            const moved = yield* Quarantine.move(fileSystem, path, moving)
            const happened = `${shownAt(file)} ${what}`
            if (moved?.isLeft === false) notices.push(`[${happened}; it was moved to ${moved.to}.${advice}]`)
            else {
              const copied = moved === undefined ? "" : ` (a copy is ${moved.to})`
              urgent.push(
                `[${happened}; it could not be moved away${copied}: look at it before you run anything there.]`
              )
            }
          })
        if (Either.isLeft(everything))
          urgent.push(`[${everything.left}; a .git that a command left there acts when git runs in it.]`)
        else {
          // A directory that became git's own may hold other things: it stays, without what makes it one.
          for (const { file, head } of everything.right.found.filter(isNew))
            yield* head === undefined
              ? put(file, "appeared, which acts later")
              : put(
                  head,
                  `makes ${shownAt(file)} a git directory; its settings take effect when git runs there`,
                  ofShape
                )
          for (const { file } of everything.right.closed.filter(isNew)) yield* put(file, "cannot be listed")
        }
        for (const file of appeared) yield* put(file, "appeared, which acts later")
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
          const { to } = yield* Quarantine.firstFree(
            fileSystem,
            path,
            aside,
            (attempt) => `${stamp}-${attempt}-list.txt`
          )
          yield* fileSystem.writeFileString(to, `${notices.join("\n")}\n`, { mode: 0o600 })
          return `${rest}: ${to} lists all of them.]`
        })
        const last = yield* Effect.orElseSucceed(listed, () => `${rest}: look into ${aside}.]`)
        return [...notices.slice(0, mostSaid), last]
      })

    const leave = (laid: LaidOut) =>
      Effect.gen(function* () {
        const notices = [...left, ...(yield* settle({ ...laid, before, links }))]
        left = []
        active -= 1
        if (active === 0) yield* unfinished.end
        return notices
      })

    const enter = Effect.uninterruptible(
      turn.withPermits(1)(
        Effect.gen(function* () {
          const laid = yield* current
          laidOut = laid
          if (active === 0) yield* unfinished.begin({ ...laid, before, links })
          active += 1
          let left: Effect.Effect<ReadonlyArray<string>> | undefined = turn.withPermits(1)(leave(laid))
          // Only the first caller gets the sentences.
          const once = Effect.suspend(() => {
            const now = left ?? Effect.succeed([])
            left = undefined
            return now
          })
          return {
            view: laid.view,
            networked: laid.networked,
            isShared: () => active > 1,
            leave: Effect.uninterruptible(once)
          }
        })
      )
    )
    const unfinished = yield* Unfinished.make(platform, options.directory)
    for (const since of unfinished.earlier) {
      left = [...left, ...(yield* settle({ ...since, view: yield* outlook }))]
    }
    yield* unfinished.settled
    yield* Effect.forEach(left, (notice) => Effect.logWarning(`After a command that ended with Assent: ${notice}`))
    const forget = Effect.sync(() => {
      isStale = true
    })
    const reader: Layout["reader"] = (files) =>
      Effect.map(outlook, (view) => ({
        ...view,
        homeFrom: undefined,
        network: false,
        mounts: [
          ...view.mounts.map((mount) => (mount._tag === "Writable" ? { ...mount, _tag: "ReadOnly" as const } : mount)),
          ...files
            .filter((file) => !view.mounts.some(({ path: place }) => View.isWithin(place, file)))
            .map((file) => ({ _tag: "ReadOnly" as const, path: file }))
        ]
      }))
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

interface LaidOut {
  readonly view: View.View
  readonly networked: View.View
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

const mostSaid = 5
const ofShape = " The person can move it back. A repository below $HOME or /tmp is not moved."

/** A path in one line, not too long. A command chose it. */
const shown = (file: string): string => {
  const line = file.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`)
  return line.length <= mostShown ? line : `${line.slice(0, mostShown / 2)}…${line.slice(-mostShown / 2)}`
}
const mostShown = 240

const isThere = (fileSystem: FileSystem.FileSystem, file: string): Effect.Effect<boolean> =>
  Effect.orElseSucceed(fileSystem.exists(file), () => false)
