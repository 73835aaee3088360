/**
 * What the commands of one workspace see, laid out anew while none of them runs and shared by those that run at once.
 *
 * While a command runs it may change every directory that is not a mount. A layout that is made meanwhile could follow a
 * link into the rest of the machine, so none is made: whoever starts beside others gets theirs. What appeared is put away
 * when a command ends, and no other begins until that is done.
 */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Directory from "../core/Directory.js"
import * as Repository from "./Repository.js"
import * as SetAside from "./SetAside.js"
import * as Surroundings from "./Surroundings.js"
import * as View from "./View.js"

export interface Options {
  /** The workspace and what else may be written in, absolute, without links. The first is the workspace. */
  readonly roots: ReadonlyArray<string>
  /** Where the private home and what was set aside are. */
  readonly directory: string
  /** Files and directories that are seen as well, absolute. */
  readonly readable: ReadonlyArray<string>
  /** What is not seen though it lies in something that is. */
  readonly hidden: ReadonlyArray<string>
  readonly network: boolean
}

export interface Platform {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  readonly executor: CommandExecutor.CommandExecutor
}

/** A place in a layout, until it is left. */
export interface Entered {
  readonly view: View.View
  /** Puts away what appeared, and says so. */
  readonly leave: Effect.Effect<ReadonlyArray<string>>
}

export interface Layout {
  /** Uninterruptible; whoever enters leaves. */
  readonly enter: Effect.Effect<Entered, string>
  /** The next command gets a new one: something of this one is not there any more. */
  readonly forget: Effect.Effect<void>
}

export const make = (platform: Platform, options: Options): Effect.Effect<Layout, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { executor, fileSystem, path } = platform
    const turn = yield* Effect.makeSemaphore(1)
    const surroundings = yield* Effect.cached(Surroundings.look(fileSystem, path))
    const ours = yield* Effect.cached(ourFiles(platform, options))
    let active = 0
    let laidOut: LaidOut | undefined
    /** Everything of the names that act that was there when somebody last looked. */
    let known: ReadonlyArray<string> | undefined
    let isStale = false
    const made = new Set<string>()
    yield* Effect.addFinalizer(() => Effect.forEach(made, (directory) => removeEmpty(fileSystem, directory)))

    const layOut = Effect.gen(function* () {
      const around = yield* surroundings
      const files = yield* ours
      known ??= (yield* SetAside.find(executor, options.roots)).map(({ file }) => file)
      const [workspace = "/"] = options.roots
      const own = path.join(workspace, ".assent")
      // To have something to mount. It goes with the scope, if it is empty then.
      if (yield* Effect.isSuccess(fileSystem.makeDirectory(own))) made.add(own)
      const mounts: Array<View.Mount> = [
        ...around.mounts,
        ...files.mounts,
        ...(yield* Effect.filter(options.readable, (file) => isThere(fileSystem, file))).map((file): View.Mount => ({
          _tag: "ReadOnly",
          path: file
        })),
        ...options.roots.map((root): View.Mount => ({ _tag: "Writable", path: root }))
      ]
      const absent: Array<string> = []
      const nests = new Map<string, ReadonlySet<string>>()
      const held = new Set<string>()
      for (const file of new Set([...known, own])) {
        if (!Option.contains(yield* Effect.option(fileSystem.realPath(file)), file)) continue
        if (path.basename(file) !== ".git") {
          mounts.push({ _tag: "ReadOnly", path: file })
          held.add(file)
          continue
        }
        const repository = yield* Repository.read(fileSystem, path, file)
        if (repository === undefined) continue
        mounts.push(...repository.mounts)
        absent.push(...repository.absent)
        for (const [nest, names] of repository.nests) nests.set(nest, names)
        held.add(file)
      }
      const writable = mounts.filter(({ _tag }) => _tag === "Writable").map((mount) => mount.path)
      for (const file of new Set([...options.hidden, options.directory])) {
        const info = yield* Effect.option(fileSystem.stat(file))
        const isSeen = [...writable, ...options.readable].some((root) => View.isWithin(root, file))
        if (!isSeen || Option.isNone(info) || options.roots.includes(file) || held.has(file)) continue
        mounts.push({ _tag: "Hidden", path: file, kind: info.value.type === "Directory" ? "directory" : "file" })
      }
      const home = homes.find((place) => !mounts.some(({ path: other }) => View.isWithin(other, place)))
      if (home === undefined) return yield* Effect.fail("There is no place for a private home in the sandbox.")
      const view = View.make({
        mounts,
        roots: options.roots,
        home,
        homeFrom: files.home,
        network: options.network,
        environment: around.environment
      })
      return { view, absent, nests, held }
    })

    /** What is new in the repositories that were there. */
    const appearedWithin = (laid: LaidOut) =>
      Effect.gen(function* () {
        const wrong: Array<string> = []
        for (const file of laid.absent) {
          const link = yield* Effect.isSuccess(fileSystem.readLink(file))
          if (link || (yield* isThere(fileSystem, file))) wrong.push(file)
        }
        for (const [nest, names] of laid.nests) {
          const now = yield* Effect.orElseSucceed(fileSystem.readDirectory(nest), () => [])
          wrong.push(...now.filter((name) => !names.has(name)).map((name) => path.join(nest, name)))
        }
        return wrong
      })

    /** Everything that is there and should not be. */
    const appeared = (laid: LaidOut, since: number) =>
      Effect.gen(function* () {
        const found = yield* SetAside.find(executor, options.roots)
        const files = found.filter(({ changedAt, file }) => !laid.held.has(file) && changedAt >= since)
        const wrong = files.map(({ file }) => file)
        const before = known
        known = found.map(({ file }) => file).filter((file) => !wrong.includes(file))
        // Somebody else's, from before: protected from now on.
        if (before?.join("\0") !== known.join("\0")) isStale = true
        return [...wrong, ...(yield* appearedWithin(laid))]
      })

    /** What was laid out for the command before, where nobody changed anything that it says. */
    const current = Effect.gen(function* () {
      if (laidOut === undefined) return yield* layOut
      if (active > 0) return laidOut
      const isSame = !isStale && (yield* appearedWithin(laidOut)).length === 0
      if (isSame) return laidOut
      isStale = false
      return yield* layOut
    })

    const leave = (laid: LaidOut, since: number) =>
      Effect.gen(function* () {
        const wrong = yield* appeared(laid, since - coarse)
        const notices: Array<string> = []
        for (const file of wrong) {
          const root = options.roots.find((place) => View.isWithin(place, file)) ?? path.dirname(file)
          const stamp = new Date(yield* Clock.currentTimeMillis).toISOString().replace(/\W/g, "").slice(0, 15)
          const directory = path.join(options.directory, "set-aside")
          const to = yield* SetAside.move(fileSystem, path, { file, root, directory, stamp })
          const shown = path.relative(root, file)
          notices.push(
            to === undefined
              ? `[${shown} appeared, which acts later; it could not be moved away: look at it before you run anything there.]`
              : `[${shown} appeared, which acts later; it was moved to ${to}.]`
          )
        }
        active -= 1
        return notices
      })

    const enter = Effect.uninterruptible(
      turn.withPermits(1)(
        Effect.gen(function* () {
          const laid = yield* current
          laidOut = laid
          active += 1
          const since = yield* Clock.currentTimeMillis
          let left: Effect.Effect<ReadonlyArray<string>> | undefined = turn.withPermits(1)(leave(laid, since))
          // Once: whoever comes later has nothing to tell.
          const once = Effect.suspend(() => {
            const now = left ?? Effect.succeed([])
            left = undefined
            return now
          })
          return { view: laid.view, leave: Effect.uninterruptible(once) }
        })
      )
    )
    const forget = Effect.sync(() => {
      isStale = true
    })
    return { enter, forget }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface LaidOut {
  readonly view: View.View
  readonly absent: ReadonlyArray<string>
  readonly nests: ReadonlyMap<string, ReadonlySet<string>>
  /** Cannot be replaced by a command. */
  readonly held: ReadonlySet<string>
}

/** The kernel's clock for files goes by ticks. */
const coarse = 50

/** Where the private home is seen: never in a directory that commands write to, or it would have to be made there. */
const homes = ["/home/assent", "/var/assent", "/assent"]

const isThere = (fileSystem: FileSystem.FileSystem, file: string): Effect.Effect<boolean> =>
  Effect.orElseSucceed(fileSystem.exists(file), () => false)

const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])

/** Not what somebody put something into meanwhile. */
const removeEmpty = (fileSystem: FileSystem.FileSystem, directory: string): Effect.Effect<void> =>
  Effect.ignore(
    Effect.flatMap(fileSystem.readDirectory(directory), (names) =>
      names.length === 0 ? fileSystem.remove(directory, { recursive: true }) : Effect.void
    )
  )

/** What we write for the inside: who the user is, what `localhost` is, and who the author of a commit is. */
const ourFiles = ({ executor, fileSystem, path }: Platform, { directory, network, roots }: Options) =>
  Effect.gen(function* () {
    const put = (file: string, wanted: Uint8Array) =>
      Effect.gen(function* () {
        // A command of another process may be reading it.
        const there = yield* Effect.option(fileSystem.readFile(file))
        if (Option.exists(there, (found) => isSame(found, wanted))) return
        yield* Directory.ensure(fileSystem, path, path.dirname(file), 0o700)
        yield* fileSystem.writeFile(file, wanted, { mode: 0o644 })
      })
    const home = path.join(directory, "home")
    const etc = path.join(directory, "etc")
    yield* Directory.ensure(fileSystem, path, home, 0o700)
    yield* Directory.ensure(fileSystem, path, etc, 0o700)
    const owner = yield* fileSystem.stat(home)
    const uid = Option.getOrElse(owner.uid, () => 0)
    const gid = Option.getOrElse(owner.gid, () => 0)
    const user = uid === 0 ? "root" : "user"
    const place = homes.find((known) => !roots.some((root) => View.isWithin(root, known))) ?? "/"
    const nobody = uid === 65_534 ? "" : `nobody:x:65534:65534::/:/bin/false\n`
    const texts: ReadonlyArray<readonly [string, string]> = [
      ["passwd", `${user}:x:${uid}:${gid}::${place}:/bin/sh\n${nobody}`],
      ["group", `${user}:x:${gid}:\n${gid === 65_534 ? "" : "nogroup:x:65534:\n"}`],
      ["hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"],
      ["gitconfig", yield* gitSettings(executor)]
    ]
    const bytes = new TextEncoder()
    for (const [name, text] of texts) yield* put(path.join(etc, name), bytes.encode(text))
    const { configuration, ofNetwork } = Surroundings
    for (const name of network ? [...configuration.files, ...ofNetwork] : configuration.files) {
      const found = yield* Effect.option(fileSystem.readFile(`/etc/${name}`))
      if (Option.isSome(found)) yield* put(path.join(etc, name), found.value)
    }
    const mounts: Array<View.Mount> = [{ _tag: "ReadOnly", path: "/etc", from: etc }]
    for (const name of configuration.directories) {
      const found = yield* Effect.option(fileSystem.realPath(`/etc/${name}`))
      if (Option.isNone(found)) continue
      yield* Directory.ensure(fileSystem, path, path.join(etc, name), 0o700)
      mounts.push({ _tag: "ReadOnly", path: `/etc/${name}`, from: found.value })
    }
    return { home, mounts }
  }).pipe(Effect.mapError((error) => `The sandbox's directory ${directory} cannot be used: ${error.message}`))

/** Of the person's git settings, what commits and comparisons look like. No addresses, no credentials, no programs. */
const gitSettings = (executor: CommandExecutor.CommandExecutor): Effect.Effect<string> =>
  Effect.gen(function* () {
    const read = (scope: string) =>
      Effect.orElseSucceed(
        executor.string(
          Command.make("/usr/bin/git", "config", scope, "--includes", "--null", "--get-regexp", harmless).pipe(
            Command.workingDirectory("/")
          )
        ),
        () => ""
      )
    const entries = `${yield* read("--system")}${yield* read("--global")}`.split("\0").flatMap((entry) => {
      const [, key = "", value = ""] = /^([^\n]+)\n?([\s\S]*)$/.exec(entry) ?? []
      const [, section, name] = /^(\w+)\.([\w-]+)$/.exec(key) ?? []
      return section === undefined ? [] : [`[${section}]\n\t${name} = ${JSON.stringify(value)}\n`]
    })
    return entries.join("")
  })

const harmless =
  "^(user\\.(name|email)|init\\.defaultbranch|core\\.(autocrlf|eol|safecrlf|filemode|ignorecase|quotepath)|" +
  "safe\\.directory|pull\\.(rebase|ff)|merge\\.conflictstyle|diff\\.(algorithm|renames|mnemonicprefix)|color\\.ui)$"
