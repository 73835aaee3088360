/** Files that we write for the inside of a sandbox: the user, the address of `localhost`, and the author of commits. */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Directory from "../core/Directory.js"
import type { Platform } from "./Search.js"
import * as Surroundings from "./Surroundings.js"
import * as View from "./View.js"

export interface Options {
  /** Where they are kept. */
  readonly directory: string
  readonly network: boolean
  /** The directories in which commands write. */
  readonly roots: ReadonlyArray<string>
}

export interface Made {
  /** The place of the private home outside. */
  readonly home: string
  /** The files mounted to `/etc`. */
  readonly mounts: ReadonlyArray<View.Mount>
  /** Mounted over those for a command that has the network although the sandbox has it not. */
  readonly ofNetwork: ReadonlyArray<View.Mount>
}

/** Where the private home is visible. Never inside a writable directory, or it would have to be made there. */
export const homes = ["/home/assent", "/var/assent", "/assent"]

export const make = (
  { executor, fileSystem, path }: Platform,
  { directory, network, roots }: Options
): Effect.Effect<Made, string> =>
  Effect.gen(function* () {
    const put = (file: string, wanted: Uint8Array) =>
      Effect.gen(function* () {
        // A command of another process may be reading the file, so it is rewritten only when it changed.
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
    const { configuration } = Surroundings
    for (const name of configuration.files) {
      const found = yield* Effect.option(fileSystem.readFile(`/etc/${name}`))
      if (Option.isSome(found)) yield* put(path.join(etc, name), found.value)
    }
    const ofNetwork: Array<View.Mount> = []
    for (const name of Surroundings.ofNetwork) {
      const found = yield* Effect.option(fileSystem.readFile(`/etc/${name}`))
      if (Option.isNone(found)) continue
      // Without the network there is an empty file, over which the real one can be mounted.
      yield* put(path.join(etc, name), network ? found.value : bytes.encode(""))
      if (network) continue
      const from = path.join(directory, "network", name)
      yield* put(from, found.value)
      ofNetwork.push({ _tag: "ReadOnly", path: `/etc/${name}`, from })
    }
    const mounts: Array<View.Mount> = [{ _tag: "ReadOnly", path: "/etc", from: etc }]
    for (const name of configuration.directories) {
      const found = yield* Effect.option(fileSystem.realPath(`/etc/${name}`))
      if (Option.isNone(found)) continue
      yield* Directory.ensure(fileSystem, path, path.join(etc, name), 0o700)
      mounts.push({ _tag: "ReadOnly", path: `/etc/${name}`, from: found.value })
    }
    return { home, mounts, ofNetwork }
  }).pipe(Effect.mapError((error) => `The sandbox's directory ${directory} cannot be used: ${error.message}`))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])

/**
 * The part of the person's git settings that shapes commits and comparisons. No addresses, no credentials, no programs.
 */
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
