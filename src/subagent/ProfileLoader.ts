/**
 * Finds and reads profile files, and reports everything that is wrong with them. No file is fatal.
 *
 * Among trusted directories the first with a profile of a name wins; the built-in profiles come last. In one directory
 * the first file wins too, in order of file names, and a second one is a problem.
 *
 * A profile of an untrusted directory cannot take a name in use, act without asking, choose a model or provider, or
 * read the environment.
 *
 * @example
 * ```ts
 * import { ProfileLoader, ToolRegistry } from "assent"
 *
 * const loaded = ProfileLoader.load({
 *   directories: [
 *     { path: "/home/me/shop/.assent/profiles", trusted: false },
 *     { path: "/home/me/.config/assent/profiles", trusted: true }
 *   ],
 *   variables: (name) => (name === "workspaceRoot" ? "/home/me/shop" : undefined),
 *   tools: ToolRegistry.empty
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import type { PlatformError } from "@effect/platform/Error"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FileFailure from "../core/FileFailure.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as UntrustedYaml from "../core/UntrustedYaml.js"
import * as RegularFile from "../core/RegularFile.js"
import * as Option from "effect/Option"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as DefaultProfiles from "./DefaultProfiles.js"
import * as ProfileVariables from "./ProfileVariables.js"
import * as SubagentProfile from "./SubagentProfile.js"

export type { Variables } from "./ProfileVariables.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * A directory with profiles, and how far it is trusted.
 *
 * @since 0.1.0
 * @category models
 */
export interface Directory {
  /** It need not exist. */
  readonly path: string
  /** A person said that its files may allow things. */
  readonly trusted: boolean
  /**
   * The files of the directory, if the caller has read them. A left says why the whole directory is unusable.
   */
  readonly files?: Either.Either<ReadonlyMap<string, Text>, string> | undefined
}

/**
 * The text of a file, or the end of a sentence about its problem.
 *
 * @since 0.1.0
 * @category models
 */
export type Text = Either.Either<string, string>

/**
 * The tools, models and profiles against which the loader checks profiles.
 *
 * @since 0.1.0
 * @category models
 */
export interface Context {
  readonly variables: ProfileVariables.Variables
  /** Tools and groups that profiles may name. */
  readonly tools: ToolRegistry.Service
  /** Providers that profiles may name. Default: any. */
  readonly providers?: ReadonlyArray<string> | undefined
}

/**
 * The directories of profiles, and the tools and models they are checked against.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Context {
  /** In order of precedence. */
  readonly directories: ReadonlyArray<Directory>
}

/**
 * A remark about a file; `path` is such as `$.gc.type`, and `$` is the whole.
 *
 * @since 0.1.0
 * @category models
 */
export interface Remark extends SubagentProfile.Problem {
  readonly file: string
}

/**
 * The result of reading one file.
 *
 * @since 0.1.0
 * @category models
 */
export interface Read {
  /** Undefined when the file cannot be used. */
  readonly profile: SubagentProfile.SubagentProfile | undefined
  /** Errors that its author has to correct. */
  readonly problems: ReadonlyArray<Remark>
  /** Settings without effect until the directory is trusted. */
  readonly warnings: ReadonlyArray<Remark>
}

/**
 * The valid profiles, and the problems of the others.
 *
 * @since 0.1.0
 * @category models
 */
export interface Loaded extends Omit<Read, "profile"> {
  /** By name, the names sorted. */
  readonly profiles: ReadonlyMap<string, SubagentProfile.SubagentProfile>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Reads all profiles of all directories. Unusable files are reported and left out.
 *
 * @since 0.1.0
 * @category operations
 */
export const load = (options: Options): Effect.Effect<Loaded, never, FileSystem.FileSystem | Path.Path> =>
  Effect.map(
    Effect.forEach(options.directories, (directory) =>
      Effect.map(loadDirectory(directory, options), (loaded) => ({ ...loaded, trusted: directory.trusted }))
    ),
    (found) => {
      const profiles = new Map<string, SubagentProfile.SubagentProfile>()
      const warnings = found.flatMap((directory) => directory.warnings)
      const of = (trusted: boolean) =>
        found.flatMap((directory) => (directory.trusted === trusted ? [...directory.profiles.values()] : []))
      for (const profile of [...of(true), ...DefaultProfiles.all]) {
        if (!profiles.has(profile.name)) profiles.set(profile.name, profile)
      }
      const taken = new Map(Array.from(profiles.values(), (profile) => [likeness(profile.name), profile]))
      for (const profile of of(false)) {
        const before = taken.get(likeness(profile.name))
        if (before === undefined) {
          taken.set(likeness(profile.name), profile)
          profiles.set(profile.name, profile)
        } else if (before.source !== profile.source) {
          const whose = before.source === "built-in" ? "a built-in profile" : `the profile of ${before.source}`
          const message = `${whose} has this name; this one is left out ${until}`
          warnings.push({ file: profile.source, path: "$.name", message })
        }
      }
      return {
        profiles: new Map([...profiles].sort(([left], [right]) => compare(left, right))),
        problems: found.flatMap(({ problems }) => problems),
        warnings
      }
    }
  )

/**
 * Reads one file, unless its text is given. A symbolic link is refused, because a workspace could point it anywhere. So
 * is anything but a regular file, and a file of more than 100 kB.
 *
 * @since 0.1.0
 * @category operations
 */
export const loadFile = (
  file: string,
  {
    text,
    trusted,
    providers,
    tools,
    variables
  }: Context & Pick<Directory, "trusted"> & { readonly text?: Text | undefined }
): Effect.Effect<Read, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const { ext, name } = path.parse(file)
    const parse = ext.toLowerCase() === ".json" ? parseJson : parseYaml
    const decoded = yield* (text ?? readText(file)).pipe(
      Effect.filterOrFail(
        ({ length }) => length <= maxSize,
        () => `it is larger than ${maxSize / 1_000} kB`
      ),
      Effect.flatMap(parse),
      Effect.mapError((message): ReadonlyArray<SubagentProfile.Problem> => [{ path: "$", message }]),
      Effect.flatMap((value) => SubagentProfile.decode(value, { name, source: file })),
      Effect.either
    )
    const remark = (problem: SubagentProfile.Problem): Remark => ({ file, ...problem })
    if (Either.isLeft(decoded)) return { profile: undefined, problems: few(decoded.left).map(remark), warnings: [] }
    const written = decoded.right
    const allowed = trusted ? written : { ...written, autoApproved: false, model: undefined, provider: undefined }
    const known = trusted ? variables : ProfileVariables.onlyPlaces(variables)
    return {
      profile: ProfileVariables.expandProfile(allowed, known),
      problems: few([...unknownNames(written, tools), ...unknownProvider(written, providers)]).map(remark),
      warnings: trusted ? [] : few(untrusted(written, variables)).map(remark)
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes of a file, and characters of all files of a directory: a start waits for them, less than half a second. */
const maxSize = 100_000
const maxRead = 200_000
/** Problems of one file that are reported. */
const maxProblems = 20
/** Files in one directory. */
const maxFiles = 1_000

/** The first problems, each of bounded length, and how many there are more. */
const few = (problems: ReadonlyArray<SubagentProfile.Problem>): ReadonlyArray<SubagentProfile.Problem> => [
  ...problems.slice(0, maxProblems).map(({ message, path }) => ({
    path: UntrustedJson.echo(path),
    message: UntrustedJson.echo(message, 2_000)
  })),
  ...(problems.length > maxProblems ? [{ path: "$", message: `${problems.length - maxProblems} more problems` }] : [])
]

const until = "until the directory is trusted"

/** A key that is equal for names that look the same to a person. */
const likeness = (name: string): string => name.normalize("NFKC").toLowerCase()

// By code unit: the order must not depend on the machine's language.
const compare = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

const loadDirectory = (directory: Directory, context: Context) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const profiles = new Map<string, SubagentProfile.SubagentProfile>()
    const known = Option.fromNullable(directory.files)
    const listed = yield* Effect.either(
      Option.isSome(known) ? Either.map(known.value, (files) => [...files.keys()]) : filesOf(directory.path)
    )
    if (Either.isLeft(listed)) {
      const problems = [{ file: directory.path, path: "$", message: listed.left }]
      return { profiles, problems, warnings: [] } satisfies Loaded
    }
    const problems: Array<Remark> = []
    const warnings: Array<Remark> = []
    let room = maxRead
    for (const name of listed.right) {
      const file = path.join(directory.path, name)
      const text = directory.files && Option.getOrUndefined(Either.getRight(directory.files))?.get(name)
      const found = text ?? (yield* Effect.either(readText(file)))
      // A file that is too large is not parsed.
      room -= Either.match(found, { onLeft: () => 0, onRight: ({ length }) => (length > maxSize ? 0 : length) })
      if (room < 0) {
        const message = `it and those behind it are not read: all files of a directory have at most ${maxRead / 1_000} kB`
        problems.push({ file, path: "$", message })
        break
      }
      const read = yield* loadFile(file, { ...context, trusted: directory.trusted, text: found })
      problems.push(...read.problems)
      if (read.profile === undefined) continue
      const first = profiles.get(read.profile.name)
      if (first === undefined) {
        profiles.set(read.profile.name, read.profile)
        warnings.push(...read.warnings)
      } else {
        problems.push({ file, path: "$.name", message: `${read.profile.name} is already the name of ${first.source}` })
      }
    }
    return { profiles, problems, warnings } satisfies Loaded
  })

/** Names of the files that hold profiles, sorted; none where there is no such directory. */
const filesOf = (directory: string): Effect.Effect<ReadonlyArray<string>, string, FileSystem.FileSystem> =>
  FileSystem.FileSystem.pipe(
    Effect.flatMap((fileSystem) => fileSystem.readDirectory(directory)),
    Effect.map((names) => names.filter((name) => /^[^.].*\.(json|ya?ml)$/i.test(name)).sort(compare)),
    Effect.catchAll((error) => (reasonOf(error) === "NotFound" ? Effect.succeed([]) : Effect.fail(unreadable(error)))),
    Effect.filterOrFail(
      (names) => names.length <= maxFiles,
      (names) => `it holds ${names.length} files, and more than ${maxFiles} are not read`
    )
  )

const readText = (file: string): Effect.Effect<string, string, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const isLink = yield* Effect.isSuccess(fileSystem.readLink(file))
    if (isLink) return yield* Effect.fail("a symbolic link is not read; put the file itself here")
    const text = yield* Effect.mapError(RegularFile.read(fileSystem, file, maxSize), (error) =>
      error._tag === "FileUnfit" ? `it ${error.reason}` : unreadable(error)
    )
    return text.replace(/^\ufeff/, "")
  })

const reasonOf = (error: PlatformError): string => (error._tag === "SystemError" ? error.reason : error._tag)

const unreadable = (error: PlatformError): string =>
  reasonOf(error) === "NotFound" ? "there is no such file" : `it cannot be read (${FileFailure.reason(error)})`

const parseJson = (text: string): Either.Either<unknown, string> =>
  Either.mapLeft(UntrustedJson.parse(text), ({ detail, message }) =>
    detail === undefined ? `it ${message}` : `not JSON: ${sentence(detail)}`
  )

/**
 * Aliases are resolved here, and a document that explodes through them is refused. The parser is loaded for the first
 * YAML file: most workspaces have none.
 */
const parseYaml = (text: string): Effect.Effect<unknown, string> =>
  Effect.gen(function* () {
    const tooMuch = UntrustedYaml.textRefusal(text)
    if (tooMuch !== undefined) return yield* Effect.fail(`it ${tooMuch.message}`)
    const yaml = yield* Effect.promise(() => import("yaml"))
    return yield* Either.try({
      try: (): unknown => {
        const document = UntrustedYaml.parse(yaml, text)
        const [error] = document.errors
        if (error !== undefined) throw error
        return document.toJS({ maxAliasCount: 100 })
      },
      catch: (cause) => `not YAML: ${sentence(cause)}`
    })
  })

const sentence = (cause: unknown): string => {
  const message = cause instanceof Error ? cause.message : String(cause)
  return (message.split("\n")[0] ?? message).replace(/:$/, "")
}

const unknownNames = (
  { pluginConfigs, plugins }: SubagentProfile.SubagentProfile,
  tools: ToolRegistry.Service
): ReadonlyArray<SubagentProfile.Problem> => {
  const groups = new Set(tools.entries.flatMap((entry) => entry.groups))
  const names = new Set([...tools.entries.map((entry) => entry.name), ...groups])
  const among = [...names].sort(compare).join(", ")
  const message = (name: string) => `${JSON.stringify(name)} is neither a tool nor a group; there are ${among}`
  return [
    ...(plugins ?? []).flatMap((name, index) =>
      names.has(name) || ToolRegistry.isOfServer(tools, name)
        ? []
        : [{ path: `$.plugins[${index}]`, message: message(name) }]
    ),
    ...Object.keys(pluginConfigs).flatMap((name) =>
      names.has(name) || ToolRegistry.isOfServer(tools, name)
        ? []
        : [{ path: "$.plugin_configs", message: message(name) }]
    )
  ]
}

const unknownProvider = (
  profile: SubagentProfile.SubagentProfile,
  providers: ReadonlyArray<string> | undefined
): ReadonlyArray<SubagentProfile.Problem> => {
  const name = SubagentProfile.providerOf(profile)
  if (name === undefined || providers === undefined || providers.includes(name)) return []
  const path = profile.provider === undefined ? "$.model" : "$.provider"
  return [{ path, message: `there is no provider ${JSON.stringify(name)}; there are ${providers.join(", ")}` }]
}

const untrusted = (
  profile: SubagentProfile.SubagentProfile,
  variables: ProfileVariables.Variables
): ReadonlyArray<SubagentProfile.Problem> => {
  const withheld = ProfileVariables.namesIn(profile).filter(
    (name) => !ProfileVariables.places.includes(name) && variables(name) !== undefined
  )
  return [
    ...(profile.autoApproved ? [{ path: "$.auto_approved", message: `it has no effect ${until}` }] : []),
    ...(profile.model === undefined ? [] : [{ path: "$.model", message: `it has no effect ${until}` }]),
    ...withheld.map((name) => ({ path: "$", message: `\${${name}} stays as it is written ${until}` }))
  ]
}
