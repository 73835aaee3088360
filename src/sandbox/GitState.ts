/**
 * What a git directory holds that acts when a person uses git the next time: links, programs to run, odd names.
 *
 * A command whose program is git may write in the git directory, and so may each program that git starts: a hook, a
 * filter, an editor. Git's own work leaves nothing of what is listed here, but for the `exec` lines and the strategies
 * that its command line asks for. So a look before the command and one after it show what another program left.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import * as RegularFile from "../core/RegularFile.js"
import * as GitConfig from "./GitConfig.js"
import * as GitIndex from "./GitIndex.js"
import * as RepositoryConfig from "./RepositoryConfig.js"
import type * as Search from "./Search.js"
import { isWithin } from "./View.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

export interface Act {
  /** The file or link that acts. */
  readonly file: string
  /** What to set aside: the file, or the directory whose files belong together. */
  readonly place: string
  /** What it does: the end of a sentence that begins with the file. */
  readonly reason: string
  /** A word of a command line that makes git itself write this. */
  readonly word?: { readonly option: "exec" | "strategy"; readonly value: string }
}

/** All acts, by their file and what they do: an act of the same key has not changed. */
export type State = ReadonlyMap<string, Act>

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Everything that acts in these git directories, their worktrees and their submodules. A directory is that of a whole
 * repository, not of one of its worktrees. Fails with a sentence if that cannot be found out.
 */
export const look = (
  { fileSystem, path }: Pick<Search.Platform, "fileSystem" | "path">,
  { linksIn }: Pick<Search.Search, "linksIn">,
  directories: ReadonlyArray<string>
): Effect.Effect<State, string> =>
  Effect.gen(function* () {
    const looking = new Looking(fileSystem, path)
    const present = yield* Effect.filter(directories, (directory) =>
      Effect.orElseSucceed(fileSystem.exists(directory), () => true)
    )
    // Without a place, `find` would search the working directory.
    const links = present.length === 0 ? [] : yield* linksIn(present)
    for (const link of links) {
      const target = yield* Effect.option(fileSystem.readLink(link))
      if (Option.isSome(target)) looking.add(link, `is a link to ${quoted(target.value)}`, target.value)
      else looking.add(link, "hides what is in it", "")
    }
    for (const directory of present) yield* looking.repository(directory, directory, 0)
    return looking.acts
  })

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The acts that are new since `before`, and that the text of a `command` did not ask git to write. */
export const changes = (before: State, after: State, command: string): ReadonlyArray<Act> => {
  const words = wordsOf(command)
  return [...after].flatMap(([key, act]) => (before.has(key) || isAsked(words, act) ? [] : [act]))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Looking {
  readonly acts = new Map<string, Act>()
  private directories = 0

  constructor(
    private readonly fileSystem: FileSystem.FileSystem,
    private readonly path: Path.Path
  ) {}

  /** `version` tells two acts of one file apart. */
  add(file: string, reason: string, version: string, more: Partial<Act> = {}): void {
    this.acts.set(`${file}\0${version}`, { file, place: file, reason, ...more })
  }

  /** A git directory with those inside it. `top` is the one that its work trees belong to. */
  repository(git: string, top: string, level: number): Effect.Effect<void, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      if (++this.directories > maxDirectories || level > maxLevels)
        return yield* Effect.fail("the repository has too many submodules and worktrees to look at")
      const names = yield* this.namesIn(git)
      const has = (name: string) => names.includes(name)
      const settings = has("config") ? yield* this.config(git, "config") : []
      const hashBytes = GitConfig.hashBytes(settings)
      yield* this.parts(git, names, hashBytes)
      if (has("commondir")) yield* this.pointer(path.join(git, "commondir"), "leads git to another repository")
      if (has("hooks")) yield* this.hooks(git, top)
      if (has("objects")) {
        for (const name of yield* this.namesIn(path.join(git, "objects/info"))) {
          if (!/^(?:http-)?alternates$/.test(name)) continue
          yield* this.pointer(path.join(git, "objects/info", name), "makes git read objects of another repository")
        }
      }
      if (has("worktrees")) {
        for (const name of yield* this.namesIn(path.join(git, "worktrees"))) {
          yield* this.worktree(path.join(git, "worktrees", name), git, hashBytes)
        }
      }
      // Only a directory with a `HEAD` is one of git's. A submodule may have slashes in its name.
      const inner = has("HEAD") || level === 0 ? (has("modules") ? ["modules"] : []) : names
      for (const name of inner) {
        const below = path.join(git, name)
        if (name !== "modules") {
          if (yield* this.isDirectory(below)) yield* this.repository(below, top, level + 1)
        } else {
          for (const module of yield* this.namesIn(below)) {
            const place = path.join(below, module)
            if (yield* this.isDirectory(place)) yield* this.repository(place, top, level + 1)
          }
        }
      }
    })
  }

  private worktree(directory: string, git: string, hashBytes: 20 | 32): Effect.Effect<void, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      if (!(yield* this.isDirectory(directory))) return
      if (++this.directories > maxDirectories)
        return yield* Effect.fail("the repository has too many submodules and worktrees to look at")
      const names = yield* this.namesIn(directory)
      yield* this.parts(directory, names, hashBytes)
      const common = yield* this.text(path.join(directory, "commondir"), maxPointer)
      if (common !== undefined && path.resolve(directory, common.trim()) !== git)
        this.add(path.join(directory, "commondir"), "leads git to another repository", common)
      const tree = yield* this.text(path.join(directory, "gitdir"), maxPointer)
      if (tree !== undefined && !(yield* this.isTreeOf(path.resolve(directory, tree.trim()), directory)))
        this.add(path.join(directory, "gitdir"), "names a work tree that does not belong to it", tree)
    })
  }

  /** What both a git directory and that of a worktree have. */
  private parts(directory: string, names: ReadonlyArray<string>, hashBytes: 20 | 32): Effect.Effect<void, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      for (const name of names) {
        const file = path.join(directory, name)
        if (name === "config.worktree") yield* this.config(directory, name)
        else if (name === "index" || name.startsWith("sharedindex.")) yield* this.index(file, hashBytes)
        else if (states.has(name)) yield* this.steps(file)
        else if (name === "MERGE_RR") yield* this.conflicts(file)
      }
    })
  }

  private config(git: string, name: string): Effect.Effect<ReadonlyArray<GitConfig.Setting>, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      const file = path.join(git, name)
      const text = yield* this.text(file, maxConfig)
      if (text === undefined) return []
      const settings = GitConfig.parse(text)
      if (settings === undefined) this.add(file, "cannot be read with certainty", Digest.sha256(text))
      for (const setting of settings ?? []) {
        const key = GitConfig.keyOf(setting)
        const value = setting.value ?? ""
        if (GitConfig.isHarmless(setting)) continue
        if (key === "core.worktree" && (yield* this.isTreeOf(path.resolve(git, value, ".git"), git))) continue
        this.add(file, `sets ${key}, which may name a program or another place`, `${key}=${value}`)
      }
      return settings ?? []
    })
  }

  private index(file: string, hashBytes: 20 | 32): Effect.Effect<void, string> {
    return Effect.gen(this, function* () {
      const bytes = yield* this.bytes(file, maxIndex)
      const index = bytes && GitIndex.parse(bytes, hashBytes)
      if (bytes === undefined || (index !== undefined && index.refused.length === 0)) return
      const [name] = index?.refused ?? []
      const reason =
        name === undefined ? "cannot be read with certainty" : `has an entry that git refuses: ${quoted(name)}`
      this.add(file, reason, Digest.sha256(bytes))
    })
  }

  /** The state of a rebase, a series of picks or of patches. */
  private steps(place: string): Effect.Effect<void, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      if (!(yield* this.isDirectory(place))) return
      for (const name of yield* this.namesIn(place)) {
        const file = path.join(place, name)
        const acts = tables.get(name)
        if (acts === undefined) continue
        for (const { reason, version, word } of acts((yield* this.text(file, maxSteps)) ?? "")) {
          this.add(file, reason, version, { place, ...(word === undefined ? {} : { word }) })
        }
      }
    })
  }

  /** `git rerere` reads the files that this names, and keeps copies of them. */
  private conflicts(file: string): Effect.Effect<void, string> {
    return Effect.gen(this, function* () {
      for (const entry of ((yield* this.text(file, maxSteps)) ?? "").split("\0").filter((entry) => entry !== "")) {
        const name = entry.slice(entry.indexOf("\t") + 1)
        if (GitIndex.isRefused(name)) this.add(file, `names a file that git refuses: ${quoted(name)}`, name)
      }
    })
  }

  private hooks(git: string, top: string): Effect.Effect<void, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      for (const name of yield* this.namesIn(path.join(git, "hooks"))) {
        if (name.endsWith(".sample")) continue
        const version = (place: string) => this.bytes(path.join(place, "hooks", name), maxSteps)
        const own = yield* version(git)
        // A template gives new submodules the hooks that the repository itself has.
        const known = git === top ? undefined : yield* version(top)
        const digest = own && Digest.sha256(own)
        if (known !== undefined && Digest.sha256(known) === digest) continue
        this.add(path.join(git, "hooks", name), "is a program that git runs", digest ?? "")
      }
    })
  }

  private pointer(file: string, reason: string): Effect.Effect<void, string> {
    return Effect.map(this.text(file, maxPointer), (text) => this.add(file, reason, text ?? ""))
  }

  /** A `.git` file leads back, or there is none yet and its directory lies beside the repository. */
  private isTreeOf(file: string, git: string): Effect.Effect<boolean, string> {
    const { path } = this
    return Effect.gen(this, function* () {
      if (path.basename(file) !== ".git") return false
      const tree = path.dirname(file)
      const real = Option.getOrElse(yield* Effect.option(this.fileSystem.realPath(tree)), () => undefined)
      if (real === undefined) return true
      if (real !== tree) return false
      const text = yield* this.text(file, maxPointer)
      if (text === undefined) {
        const isThere = yield* Effect.orElseSucceed(this.fileSystem.exists(file), () => true)
        return !isThere && this.isBeside(tree, git)
      }
      const led = RepositoryConfig.pointerOf(text)
      return led !== undefined && path.resolve(tree, led) === git
    })
  }

  /** The directory lies in a work tree around the git directory. */
  private isBeside(tree: string, git: string): boolean {
    const { path } = this
    for (let at = git; at !== path.dirname(at); at = path.dirname(at)) {
      if (path.basename(at) === ".git") return isWithin(path.dirname(at), tree) && !isWithin(at, tree)
    }
    return false
  }

  /** Nothing for a file or a link in the place of the directory. */
  private namesIn(directory: string): Effect.Effect<ReadonlyArray<string>, string> {
    return Effect.flatMap(this.isDirectory(directory), (isThere) =>
      isThere
        ? Effect.mapError(this.fileSystem.readDirectory(directory), () => `${directory} cannot be listed`)
        : Effect.succeed([])
    )
  }

  /** Links count as links, whatever they lead to. */
  private isDirectory(file: string): Effect.Effect<boolean> {
    const { fileSystem } = this
    return Effect.matchEffect(fileSystem.readLink(file), {
      onSuccess: () => Effect.succeed(false),
      onFailure: () =>
        Effect.match(fileSystem.stat(file), {
          onSuccess: ({ type }) => type === "Directory",
          onFailure: () => false
        })
    })
  }

  /** The file's bytes. Nothing for a link, which is listed as such, and for one that is not there. */
  private bytes(file: string, maxBytes: number): Effect.Effect<Uint8Array | undefined> {
    const { fileSystem } = this
    return Effect.matchEffect(fileSystem.readLink(file), {
      onSuccess: () => Effect.succeed(undefined),
      onFailure: () =>
        Effect.catchAll(RegularFile.readBytes(fileSystem, file, maxBytes), (error) => {
          const isMissing = error._tag === "SystemError" && error.reason === "NotFound"
          const isElsewhere = error._tag === "FileUnfit" && error.type !== undefined
          if (!isMissing && !isElsewhere) this.add(file, "cannot be read with certainty", "")
          return Effect.succeed(undefined)
        })
    })
  }

  private text(file: string, maxBytes: number): Effect.Effect<string | undefined> {
    return Effect.map(this.bytes(file, maxBytes), (bytes) => bytes && new TextDecoder().decode(bytes))
  }
}

interface Step extends Pick<Act, "reason" | "word"> {
  readonly version: string
}

/** The directories in which git keeps what it goes on with. */
const states: ReadonlySet<string> = new Set(["rebase-merge", "rebase-apply", "sequencer"])

const todo = (text: string): ReadonlyArray<Step> =>
  text.split("\n").flatMap((line): ReadonlyArray<Step> => {
    const plain = line.trim()
    const [first = ""] = plain.split(/\s/)
    // A comment, with whatever mark the person chose, begins with no letter.
    if (!/^[\p{L}\p{N}]/u.test(first) || steps.has(first)) return []
    if (first !== "exec" && first !== "x") return [{ reason: `has the unknown step ${quoted(plain)}`, version: plain }]
    const value = plain.slice(first.length).trim()
    return [{ reason: `runs ${quoted(value)}`, version: `exec ${value}`, word: { option: "exec", value } }]
  })

const strategy = (text: string): ReadonlyArray<Step> => {
  const value = text.trim()
  if (value === "" || strategies.has(value)) return []
  return [
    {
      reason: `merges by the program git-merge-${value}`,
      version: `strategy ${value}`,
      word: { option: "strategy", value }
    }
  ]
}

/** Old versions of git run this as a shell does. */
const author = (text: string): ReadonlyArray<Step> =>
  /^(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)=(?:'[^']*'|\\['!])*\n?)*$/.test(text)
    ? []
    : [{ reason: "holds more than a name, an address and a date", version: text }]

/** The options that `git am` itself passes on. Others write files. */
const applied = (text: string): ReadonlyArray<Step> =>
  /^(?:\s*'(?:-[Cp]\d+|--(?:reject|ignore-space-change|ignore-whitespace)|--(?:whitespace|directory|exclude|include)=[^']*(?:'\\['!]'[^']*)*)')*\s*$/.test(
    text
  )
    ? []
    : [{ reason: `applies patches with ${quoted(text.trim())}`, version: text }]

const opts = (text: string): ReadonlyArray<Step> => {
  const settings = GitConfig.parse(text)
  if (settings === undefined) return [{ reason: "cannot be read with certainty", version: text }]
  return settings.flatMap((setting) => {
    const key = GitConfig.keyOf(setting)
    if (key === "options.strategy") return strategy(setting.value ?? "")
    return setting.section === "options" ? [] : [{ reason: `sets ${key}`, version: `${key}=${setting.value}` }]
  })
}

const tables: ReadonlyMap<string, (text: string) => ReadonlyArray<Step>> = new Map([
  ["git-rebase-todo", todo],
  ["todo", todo],
  ["strategy", strategy],
  ["opts", opts],
  ["author-script", author],
  ["apply-opt", applied]
])

const steps: ReadonlySet<string> = new Set(
  "pick p revert reword r edit e squash s fixup f break b label l reset t merge m update-ref u noop drop d".split(" ")
)
const strategies: ReadonlySet<string> = new Set("recursive ort octopus resolve ours subtree".split(" "))

const isAsked = (words: ReadonlyArray<string>, { word }: Act): boolean => {
  if (word === undefined) return false
  const { behind, within } = options[word.option]
  return words.some(
    (one, index) =>
      (one === word.value && behind.test(words[index - 1] ?? "")) ||
      (one.endsWith(word.value) && within.test(one.slice(0, one.length - word.value.length)))
  )
}

/** The word in front of the value, and what stands before the value in its own word. */
const options = {
  exec: { behind: /^(?:-[a-zA-Z]*x|--e(?:x(?:ec?)?)?)$/, within: /^(?:-[a-zA-Z]*x|--e(?:x(?:ec?)?)?=)$/ },
  strategy: { behind: /^(?:-[a-zA-Z]*s|--strategy)$/, within: /^(?:-[a-zA-Z]*s|--strategy=)$/ }
} as const

/** The words of a command line, without quotes. What a shell would replace stays as it is, and equals nothing. */
const wordsOf = (command: string): ReadonlyArray<string> => {
  const part = /'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([\s;&|()]+)|[^'"\\\s;&|()]/g
  const words: Array<string> = [""]
  for (const [text, single, double, escaped, end] of command.matchAll(part)) {
    if (end !== undefined) words.push("")
    else words[words.length - 1] += single ?? double?.replace(/\\([$`"\\\n])/g, "$1") ?? escaped ?? text
  }
  return words
}

const quoted = (text: string): string => (text.length <= 100 ? text : `${text.slice(0, 99)}…`)

const maxDirectories = 10_000
const maxLevels = 16
const maxPointer = 4_096
const maxConfig = 1_000_000
const maxSteps = 4_000_000
const maxIndex = 64_000_000
