/**
 * The files by which a program of the settings starts, as far as they lie where commands of agents write: of a tool server,
 * or of an agent of others. Such a program may do more than a command, so it starts only as a person trusted it.
 *
 * The first start records the files. Later a changed, new or missing one is shown, and the program waits for trust. Modules
 * that a program loads by itself are not among these files.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import * as Digest from "../../core/Digest.js"
import * as Lazy from "../../core/Lazy.js"
import type { ServerSettings } from "../../tool/ServerSettings.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as DecidingFile from "./DecidingFile.js"
import * as OwnFile from "./OwnFile.js"
import * as UserLocation from "./UserLocation.js"

/** A program of the settings. */
export interface Program {
  /** For people. */
  readonly name: string
  /** Its command line, the program first. */
  readonly words: ReadonlyArray<string>
  /** Values of its variables, which may name files. */
  readonly variables: ReadonlyArray<string>
  /** Where it runs: the workspace. */
  readonly directory: string
  /** Real paths of the directories in which commands write. */
  readonly roots: ReadonlyArray<string>
}

/** By path, as it is shown: the text of a file, if it is short enough to be compared. */
export interface Texts {
  readonly [name: string]: string
}

/** A program whose files are not as they were trusted. */
export interface Changed {
  readonly program: Program
  readonly before: Texts
  readonly after: Texts
  /** What differs, with files that have no text. */
  readonly names: ReadonlyArray<string>
  /** @internal */
  readonly now: Seen
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

interface Place {
  readonly workspace: string
  readonly writable: ReadonlyArray<string>
}

/** Nothing for a server that is reached by an address. */
export const ofServer = (
  name: string,
  { args = [], command, env = {}, sandbox = {} }: ServerSettings,
  { workspace, writable }: Place
): ReadonlyArray<Program> =>
  command === undefined
    ? []
    : [
        {
          name: `the tool server ${name}`,
          words: [command, ...args],
          variables: Object.values(env),
          directory: workspace,
          roots: rootsOf([workspace, ...writable, ...(sandbox.writable ?? [])])
        }
      ]

/** An agent of others, by the line that a shell reads. */
export const ofAgent = (line: string, { workspace, writable }: Place): Program => ({
  name: `the agent ${line}`,
  words: wordsIn(line),
  variables: [line],
  directory: workspace,
  roots: rootsOf([workspace, ...writable])
})

// -----------------------------------------------------------------------------------------------------------------
// operations
// -----------------------------------------------------------------------------------------------------------------

/** The programs that are not as they were trusted. One that never started is none of them. */
export const changed = (
  place: UserLocation.Folder,
  programs: ReadonlyArray<Program>
): Effect.Effect<ReadonlyArray<Changed>, ConfigurationInvalid> =>
  programs.length === 0
    ? Effect.succeed([])
    : Effect.gen(function* () {
        const known = yield* recorded(place)
        const search = yield* searchPath
        return programs.flatMap((program) => {
          const before = known[keyOf(program)]
          const now = look(program, search)
          return before === undefined || before.digest === now.digest ? [] : [differing(program, before, now)]
        })
      })

/** They are trusted as they were seen. */
export const record = (
  place: UserLocation.Folder,
  seen: ReadonlyArray<Pick<Changed, "now" | "program">>
): Effect.Effect<void, ConfigurationInvalid> =>
  Effect.gen(function* () {
    const known = { ...(yield* recorded(place)) }
    for (const { now, program } of seen) known[keyOf(program)] = now
    yield* UserLocation.prepare(place)
    yield* Effect.try({
      try: () =>
        UserLocation.replace(
          fileIn(place),
          JSON.stringify({ version: 1, workspace: place.workspace, programs: known }, undefined, 2)
        ),
      catch: (error) => invalid(`${fileIn(place)} cannot be written: ${UserLocation.reasonOf(error)}.`)
    })
  })

/**
 * Lets a program start that is as it was trusted, or that starts for the first time. `notify` hears once which of its files
 * lie where commands write. A failure is the end of a sentence that begins with the program, without a full stop.
 */
export const admit = (
  place: UserLocation.Folder,
  program: Program,
  notify: (sentence: string) => void
): Effect.Effect<void, string> =>
  Effect.gen(function* () {
    const known = yield* recorded(place)
    const before = known[keyOf(program)]
    const now = look(program, yield* searchPath)
    if (before !== undefined) {
      if (before.digest === now.digest) return
      const { names } = differing(program, before, now)
      return yield* invalid(
        `is not started, because files of it are not as you trusted them: ${listed(names)}. Look at them, then start with --trust`
      )
    }
    yield* record(place, [{ now, program }])
    const own = Object.keys(now.files).filter((name) => now.files[name] !== missing)
    if (own.length > 0)
      notify(
        `Commands can change files of ${program.name}: ${listed(own)}. A change is asked about at the next start. Changes of what they load are not noticed.`
      )
  }).pipe(Effect.mapError(({ message }) => message))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What was seen of a program. */
interface Seen {
  readonly digest: string
  /** By path: the digest of the file, the text of a link, or what else is there. */
  readonly files: { readonly [name: string]: string }
  readonly texts: Texts
}

const missing = "missing"

const fileIn = ({ folder }: UserLocation.Folder): string => path.join(folder, "programs.json")

/** Bytes. */
const maxSize = 50_000_000

const decode = Lazy.make(() => {
  const texts = Schema.Record({ key: Schema.String, value: Schema.String })
  return Schema.decodeUnknownOption(
    Schema.parseJson(
      Schema.Struct({
        version: Schema.Literal(1),
        workspace: Schema.String,
        programs: Schema.Record({
          key: Schema.String,
          value: Schema.Struct({ digest: Schema.String, files: texts, texts })
        })
      })
    )
  )
})

const recorded = (place: UserLocation.Folder): Effect.Effect<{ readonly [key: string]: Seen }, ConfigurationInvalid> =>
  Effect.suspend(() => {
    const file = fileIn(place)
    const content = OwnFile.read(file, maxSize)
    if (content._tag === "Absent") return Effect.succeed({})
    const found = content._tag === "Text" ? Option.getOrUndefined(decode(content.text)) : undefined
    return found?.workspace === place.workspace
      ? Effect.succeed(found.programs)
      : invalid(`${file} cannot be read. Delete it to trust the programs of your settings anew.`)
  })

/** A person who changes the command line means another program. */
const keyOf = ({ roots, variables, words }: Program): string => Digest.digest([words, variables, roots])

const searchPath = Effect.orElseSucceed(Config.string("PATH"), () => "")

const rootsOf = (directories: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(directories.map((directory) => OwnFile.realDirectory(directory) ?? path.resolve(directory)))
]

const differing = (program: Program, before: Seen, now: Seen): Changed => ({
  program,
  before: before.texts,
  after: now.texts,
  names: [...new Set([...Object.keys(before.files), ...Object.keys(now.files)])]
    .filter((name) => before.files[name] !== now.files[name])
    .sort(),
  now
})

const listed = (names: ReadonlyArray<string>): string =>
  names.length <= 5 ? names.join(", ") : `${names.slice(0, 5).join(", ")} and ${names.length - 5} more`

/** Words and what is in them: `--require=./a.js`, `sh -c 'node b.js'`. */
const wordsIn = (text: string): ReadonlyArray<string> =>
  text.length > 20_000 ? [] : text.split(/[\s'"`;|&()<>=,:]+/).filter((word) => word !== "" && word.length < 1_000)

const look = (program: Program, search: string): Seen => {
  const { directory, roots, variables, words } = program
  const files: { [name: string]: string } = {}
  const texts: { [name: string]: string } = {}
  const isInside = (file: string) => roots.some((root) => OwnFile.isWithin(root, file))
  const note = (file: string) => {
    const places = DecidingFile.placesOf(file)
    const real = places.at(-1) ?? file
    if (!places.some(isInside)) return
    const name = isInside(file) && OwnFile.isWithin(directory, file) ? path.relative(directory, file) || "." : file
    if (Object.hasOwn(files, name)) return
    const led = places.length > 1 ? `${places.slice(1).join(" > ")} ` : ""
    const isDirectory = OwnFile.realDirectory(real) !== undefined
    const kind = isDirectory ? "directory" : OwnFile.isThere(real) ? contentOf(real, isInside(real)) : missing
    files[name] = `${led}${kind}`
    if (isDirectory || kind === missing || !isInside(real)) return
    const content = OwnFile.read(real, longestText)
    if (content._tag === "Text" && !content.text.includes("\ufffd")) texts[name] = content.text
  }
  /** The part of a `package.json` that decides what starts. */
  const notePackage = (folder: string) => {
    const file = path.join(folder, "package.json")
    if (!DecidingFile.placesOf(file).some(isInside)) return
    const content = OwnFile.read(file, longestText)
    const name = path.relative(directory, file)
    const parsed = content._tag === "Text" ? jsonOf(content.text) : undefined
    if (parsed === undefined) return note(file)
    const { bin, exports, imports, main, packageManager, scripts, type, name: own } = parsed
    const run = scriptsOf(scripts, tokens)
    const part = JSON.stringify(
      { name: own, bin, exports, imports, main, packageManager, type, scripts: run },
      undefined,
      2
    )
    files[name] = Digest.sha256(part)
    texts[name] = part
    for (const one of [main, bin].flatMap(stringsIn)) note(path.resolve(folder, one))
    for (const word of Object.values(run).flatMap(wordsIn)) noteWord(word, folder)
  }
  const noteWord = (word: string, base: string) => {
    const file = path.resolve(base, word)
    if (!isInside(file) && !DecidingFile.placesOf(file).some(isInside)) return
    if (OwnFile.realDirectory(file) === undefined) {
      for (const ending of endings) note(file + ending)
      if (/^[\w.]+$/.test(word)) {
        const module = path.join(base, ...word.split("."))
        for (const ending of [".py", "/__init__.py", "/__main__.py"]) note(module + ending)
      }
      return
    }
    // Of the workspace itself only what is started as a directory: many programs are given it to work in.
    if (file === directory && !isStarted) return
    for (const name of ["index.js", "index.mjs", "index.cjs", "__main__.py"]) note(path.join(file, name))
    notePackage(file)
  }
  const all = [...words, ...variables]
  const tokens = new Set([...all, ...all.flatMap(wordsIn)].slice(0, mostWords))
  const programs = [...tokens].map((word) => path.basename(word).replace(/\.(?:exe|cmd)$/, ""))
  const isStarted = !programs.some((name) => ofPackages.test(name))
  // A search path may lead to where commands write: a program counts there until it is found, also when it is not there yet.
  for (const word of [words[0] ?? "", ...tokens].filter((one) => !one.includes("/") && !one.startsWith("-")))
    for (const place of search.split(":").map((one) => path.resolve(directory, one))) {
      if (isInside(place)) note(path.join(place, word))
      if (OwnFile.realPath(path.join(place, word)) !== undefined) break
    }
  for (const word of tokens) if (word !== words[0] || word.includes("/")) noteWord(word, directory)
  if (programs.some((name) => ofPackages.test(name))) {
    notePackage(directory)
    for (const name of settingsOfPackages) note(path.join(directory, name))
    for (const word of [...tokens].filter((one) => !one.startsWith("-"))) {
      const known = /^(?:@[\w.-]+\/)?([\w.-]+)(?:@.*)?$/.exec(word)
      if (known === null) continue
      note(path.join(directory, "node_modules/.bin", known[1] ?? word))
      note(path.join(directory, "node_modules", word.replace(/(.)@.*$/, "$1"), "package.json"))
    }
  }
  if (programs.some((name) => ofProjects.test(name))) for (const name of projects) note(path.join(directory, name))
  return { digest: Digest.digest(files), files, texts }
}

const contentOf = (real: string, isInside: boolean): string =>
  isInside ? (OwnFile.digestOf(real, largest) ?? "unreadable") : "elsewhere"

/** Bytes of the largest program that is compared. */
const largest = 500_000_000
/** Bytes of a text that is shown line by line. */
const longestText = 100_000
const mostWords = 300

/** What programs add to the name of a file. */
const endings = ["", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json", ".node", ".py", ".sh"]

/** They start what a `package.json` or `node_modules` names. */
const ofPackages = /^(?:npm|npx|pnpm|pnpx|yarn|yarnpkg|bun|bunx|corepack|nx|turbo|lerna)$/
const settingsOfPackages = [
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  ".pnp.cjs",
  ".pnpmfile.cjs",
  "pnpm-workspace.yaml",
  "bunfig.toml"
]

/** They start what a file of the project names. */
const ofProjects =
  /^(?:make|gmake|just|task|cargo|go|uv|uvx|poetry|pdm|hatch|rye|pipenv|pixi|tox|nox|invoke|bundle|rake|ruby|composer|gradlew?|mvnw?|ant|dotnet|mix|deno|docker|docker-compose|podman|podman-compose|nix|devenv|direnv)$/
const projects = [
  ..."Makefile makefile GNUmakefile justfile Justfile .justfile Taskfile.yml Taskfile.yaml Cargo.toml go.mod pyproject.toml".split(
    " "
  ),
  ..."uv.toml Pipfile pixi.toml tox.ini noxfile.py tasks.py Gemfile Rakefile composer.json build.gradle build.gradle.kts".split(
    " "
  ),
  ..."settings.gradle settings.gradle.kts pom.xml build.xml mix.exs deno.json deno.jsonc Dockerfile compose.yaml".split(
    " "
  ),
  ..."compose.yml docker-compose.yaml docker-compose.yml flake.nix shell.nix default.nix devenv.nix .envrc".split(" ")
]

const jsonOf = (text: string): { readonly [name: string]: unknown } | undefined => {
  try {
    const found: unknown = JSON.parse(text)
    return typeof found === "object" && found !== null && !Array.isArray(found) ? { ...found } : undefined
  } catch {
    return undefined
  }
}

const stringsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).filter((one) => typeof one === "string")
      : []

/** The scripts that these words name, with what runs around them and what they name themselves. */
const scriptsOf = (scripts: unknown, words: Iterable<string>): { readonly [name: string]: string } => {
  const found: { [name: string]: string } = {}
  if (typeof scripts !== "object" || scripts === null) return found
  const all = new Map(Object.entries(scripts).filter((one): one is [string, string] => typeof one[1] === "string"))
  const rest = [...words]
  for (let word = rest.pop(); word !== undefined; word = rest.pop())
    for (const name of [word, `pre${word}`, `post${word}`]) {
      const script = all.get(name)
      if (script === undefined || Object.hasOwn(found, name)) continue
      found[name] = script
      rest.push(...script.split(/\s+/), ...wordsIn(script))
    }
  return found
}
