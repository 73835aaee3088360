/**
 * What a confined command sees of the machine beside its workspace: the system, and the tool chains on the search path.
 *
 * An allow list. From a home only directories of programs are taken, never one in which people keep other things too:
 * from `~/.cargo` its `bin`, from `~/.local` its `bin` and `lib`. A directory that is not known to be a tool chain is
 * not visible.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isWithin, type Mount } from "./View.js"

export interface Surroundings {
  readonly mounts: ReadonlyArray<Mount>
  /** The places of tool chains whose default place depends on the real home. */
  readonly environment: Readonly<Record<string, string>>
}

/** Inspects the machine, once. */
export const look = (fileSystem: FileSystem.FileSystem, path: Path.Path): Effect.Effect<Surroundings> =>
  Effect.gen(function* () {
    const kindOf = (file: string) =>
      Effect.matchEffect(fileSystem.readLink(file), {
        onSuccess: (target) => Effect.succeed({ link: target }),
        onFailure: () =>
          Effect.orElseSucceed(
            Effect.map(fileSystem.stat(file), () => ({ link: undefined })),
            () => undefined
          )
      })
    const real = (file: string) => Effect.option(fileSystem.realPath(file))
    /** The directory of the program that a link leads to. Most are no links, and to fail for each would cost more. */
    const programLinked = (file: string) =>
      Effect.map(real(file), (program) =>
        Option.isSome(program) && program.value !== file ? path.dirname(program.value) : undefined
      )
    const mounts: Array<Mount> = []
    for (const file of system) {
      const kind = yield* kindOf(file)
      if (kind === undefined) continue
      if (kind.link === undefined) mounts.push({ _tag: "ReadOnly", path: file })
      else mounts.push({ _tag: "Link", path: file, target: kind.link })
    }
    const variables = yield* environmentOf(["PATH", "HOME", ...toolHomes])
    const home = variables["HOME"] === undefined ? undefined : Option.getOrUndefined(yield* real(variables["HOME"]))
    const add = (directory: string) =>
      Effect.gen(function* () {
        if (!path.isAbsolute(directory) || directory === "/" || mounts.some(isSeen(directory))) return
        const found = Option.getOrUndefined(yield* real(directory))
        if (found === undefined || isTooMuch(found, home)) return
        const place = path.resolve(directory)
        mounts.push(
          place === found ? { _tag: "ReadOnly", path: place } : { _tag: "ReadOnly", path: place, from: found }
        )
      })
    const addPrefix = (programs: string) =>
      Effect.gen(function* () {
        const prefix = path.dirname(programs)
        yield* add(programs)
        const owner = homeOf(prefix) ?? (home !== undefined && isWithin(home, prefix) ? home : undefined)
        if (owner === undefined) {
          // Outside of a home, a separate prefix below a shared directory is one tool chain as a whole.
          return yield* prefix.split("/").length > 2 ? add(prefix) : Effect.void
        }
        if (prefix === owner) return
        const parts = prefix === path.join(owner, ".local") ? ["lib", ...localParts] : partsOfPrefix
        for (const part of parts) yield* add(path.join(prefix, part))
      })

    for (const programs of new Set((variables["PATH"] ?? "").split(":"))) {
      // Directories that a package manager puts in front belong to a workspace, and are visible where the workspace is.
      if (!path.isAbsolute(programs) || programs.includes("/node_modules/") || mounts.some(isSeen(programs))) continue
      const found = Option.getOrUndefined(yield* real(programs))
      if (found === undefined || (mounts.some(isLinked(programs)) && mounts.some(isSeen(found)))) continue
      yield* add(programs)
      if (/^s?bin$|^shims$/.test(path.basename(programs))) yield* addPrefix(path.resolve(programs))
      // Programs there may be links into tool chains elsewhere.
      const names = yield* Effect.orElseSucceed(fileSystem.readDirectory(found), () => [])
      const linked = yield* Effect.forEach(names.slice(0, maxLinks), (name) => programLinked(path.join(found, name)), {
        concurrency: 16
      })
      for (const directory of new Set(linked)) {
        if (directory !== undefined && /^s?bin$/.test(path.basename(directory))) yield* addPrefix(directory)
      }
    }
    const environment: Record<string, string> = {}
    for (const name of toolHomes) {
      const usual = home === undefined ? undefined : usualPlaces[name]?.(home)
      const place = variables[name] ?? usual
      if (place === undefined || Option.isNone(yield* real(place))) continue
      if (variables[name] !== undefined || (usual !== undefined && isOnPath(variables["PATH"], name, home))) {
        yield* add(place)
        environment[name] = place
      }
    }
    return { mounts, environment }
  })

/** A directory that belongs to no single project: one of the system's own, or the home of any user. */
export const isShared = (directory: string): boolean => shared.has(directory) || homeOf(directory) === directory

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"]

/**
 * The files of `/etc` that programs need to run: names, types, public certificates. No keys, no passwords. Files are
 * copied, because each mount costs time with every command; directories are mounted.
 */
export const configuration: { readonly files: ReadonlyArray<string>; readonly directories: ReadonlyArray<string> } = {
  files: [
    "bash.bashrc",
    "debian_version",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki/tls/openssl.cnf",
    "profile",
    "protocols",
    "services",
    "shells",
    "ssl/openssl.cnf",
    "timezone"
  ],
  directories: ["alternatives", "fonts", "ld.so.conf.d", "pki/ca-trust/extracted", "pki/tls/certs", "ssl/certs"]
}

/** Files for finding other machines; with their contents only where there is network access. */
export const ofNetwork = ["gai.conf", "resolv.conf"]

/** Variables that name the directory of a tool chain. */
const toolHomes = [
  "JAVA_HOME",
  "GOROOT",
  "PYENV_ROOT",
  "RUSTUP_HOME",
  "NVM_DIR",
  "VOLTA_HOME",
  "ASDF_DIR",
  "ASDF_DATA_DIR",
  "MISE_DATA_DIR",
  "RBENV_ROOT",
  "SDKMAN_DIR",
  "VIRTUAL_ENV",
  "CONDA_PREFIX",
  "BUN_INSTALL"
]

/** Where tool chains are when the variable is not set: inside, the real home cannot be asked. */
const usualPlaces: { readonly [name: string]: (home: string) => string } = {
  PYENV_ROOT: (home) => `${home}/.pyenv`,
  RUSTUP_HOME: (home) => `${home}/.rustup`,
  VOLTA_HOME: (home) => `${home}/.volta`,
  ASDF_DATA_DIR: (home) => `${home}/.asdf`,
  MISE_DATA_DIR: (home) => `${home}/.local/share/mise`,
  RBENV_ROOT: (home) => `${home}/.rbenv`
}

const programsOf: { readonly [name: string]: string } = { RUSTUP_HOME: "/.cargo/bin", MISE_DATA_DIR: "/mise/" }

const isOnPath = (search: string | undefined, name: string, home: string | undefined): boolean =>
  home !== undefined && (search ?? "").includes(programsOf[name] ?? usualPlaces[name]?.(home) ?? "\0")

/** The directories that belong to a prefix of programs; others beside them are not visible. */
const partsOfPrefix = ["lib", "lib64", "libexec", "include", "share", "shims", "versions", "plugins", "toolchains"]
const localParts = ["share/mise", "share/uv/tools", "share/uv/python", "share/pipx", "share/fnm"]

const maxLinks = 500

const isSeen =
  (directory: string) =>
  (mount: Mount): boolean =>
    mount._tag === "ReadOnly" && mount.from === undefined && isWithin(mount.path, directory)

/** The directory is below a link that is there inside too, as `/bin` often is one to `/usr/bin`. */
const isLinked =
  (directory: string) =>
  (mount: Mount): boolean =>
    mount._tag === "Link" && isWithin(mount.path, directory)

/** A directory in which people keep more than programs. */
const isTooMuch = (directory: string, home: string | undefined): boolean =>
  isShared(directory) ||
  (home !== undefined && isWithin(directory, home)) ||
  /^\/(?:proc|sys|dev|run|tmp)(?:\/|$)/.test(directory)

/** The home that contains a path, of any user: also one that `HOME` does not name. */
const homeOf = (directory: string): string | undefined =>
  /^\/(?:root|(?:home|Users)\/[^/]+)(?=\/|$)/.exec(directory)?.[0]

const shared = new Set([
  ...["/", "/etc", "/usr", "/opt", "/var", "/srv", "/mnt", "/media", "/run", "/dev", "/proc", "/sys", "/dev/shm"],
  ...["/tmp", "/var/tmp", "/var/lib", "/private", "/private/tmp", "/private/var", "/private/var/tmp"],
  ...["/home", "/root", "/Users"]
])

const environmentOf = (names: ReadonlyArray<string>): Effect.Effect<Record<string, string>> =>
  Effect.gen(function* () {
    const found: Record<string, string> = {}
    for (const name of names) {
      const value = yield* Effect.option(Config.nonEmptyString(name))
      if (Option.isSome(value)) found[name] = value.value
    }
    return found
  })
