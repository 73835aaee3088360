/**
 * Where the paths of a call lead: inside the workspace or not, and never into a protected place.
 *
 * A path is judged twice, as a text (`a/../b` is `b`) and as the system walks it (after a link `a`, `..` is somewhere
 * else); both must be inside. Links are followed as far as the path exists, dangling ones too, because writing through
 * them creates their target. Names are compared without regard to case, as some file systems do.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type { CommandLine, Reading } from "./CommandLine.js"
import * as Glob from "./Glob.js"
import * as Program from "./Program.js"

export interface Options {
  /** Directories allowed beside the workspace; relative ones start there. */
  readonly roots?: ReadonlyArray<string> | undefined
  /** Default: false. */
  readonly allowTmp?: boolean | undefined
  /** Default: false. */
  readonly allowHome?: boolean | undefined
  /** Refuse absolute paths also where they lead inside. Default: false. */
  readonly blockAbsolute?: boolean | undefined
}

export interface Violation {
  readonly rule: "metacharacters" | "dangerous_command" | "path_scope" | "protected_path"
  /** A sentence for the model and for people. */
  readonly message: string
}

/** What a call names. */
export interface Named {
  /** Values of path parameters, taken literally. For a command tool the first is the directory it runs in. */
  readonly fields: ReadonlyArray<string>
  readonly command: string | undefined
  readonly line: CommandLine | undefined
  readonly readings: ReadonlyArray<Reading>
}

export interface Bounds {
  readonly workspace: string
  readonly protectedPaths: ReadonlyArray<string>
  /** Nothing: paths may lead anywhere but to protected places. */
  readonly scope: Options | undefined
  readonly temporary?: ReadonlyArray<string> | undefined
  readonly home?: string | undefined
}

/** Problems of the file system never fail it: what cannot be resolved counts as it is written. */
export const violations = (
  named: Named,
  bounds: Bounds
): Effect.Effect<ReadonlyArray<Violation>, never, FileSystem.FileSystem | Path.Path> =>
  bounds.scope === undefined && bounds.protectedPaths.length === 0
    ? Effect.succeed([])
    : Effect.flatMap(Effect.zip(FileSystem.FileSystem, Path.Path), ([fs, path]) =>
        new Judge(fs, path, bounds).judge(named)
      )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Place {
  /** Lower case, textual and with links followed. */
  readonly paths: ReadonlyArray<string>
  readonly basename: string
}

class Judge {
  private readonly found = new Map<string, Violation>()
  private readonly resolved = new Map<string, string>()
  private roots: ReadonlyArray<string> = []
  private places: ReadonlyArray<Place> = []

  constructor(
    private readonly fs: FileSystem.FileSystem,
    private readonly path: Path.Path,
    private readonly bounds: Bounds
  ) {}

  judge(named: Named): Effect.Effect<ReadonlyArray<Violation>> {
    return Effect.gen(this, function* () {
      yield* this.survey()
      const { workspace } = this.bounds
      for (const field of named.fields) yield* this.field(field)
      const [first] = named.fields
      const base = first === undefined ? workspace : this.path.resolve(workspace, first)
      if (named.command !== undefined) yield* this.shell(named.command, named, base)
      return [...this.found.values()]
    })
  }

  /** Follows the links of what the bounds name. */
  private survey(): Effect.Effect<void> {
    const { workspace, scope, protectedPaths, temporary = ["/tmp"], home } = this.bounds
    return Effect.gen(this, function* () {
      const allowed = [workspace, ...(scope?.roots ?? []).map((root) => this.path.resolve(workspace, root))]
      if (scope?.allowTmp === true) allowed.push(...temporary)
      if (scope?.allowHome === true && home !== undefined) allowed.push(home)
      this.roots = yield* Effect.forEach(allowed, (root) => this.real(this.path.resolve(root)))
      this.places = yield* Effect.forEach(protectedPaths, (text) => {
        const place = this.path.resolve(workspace, text)
        return Effect.map(this.real(place), (real) => ({
          paths: [...new Set([place.toLowerCase(), real.toLowerCase()])],
          basename: this.path.basename(place).toLowerCase()
        }))
      })
    })
  }

  private field(text: string): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { workspace, scope } = this.bounds
      if (text.includes("\0")) return this.outside(text)
      if (/^~(?:[/]|$)/.test(text) && scope?.allowHome !== true) this.outside(text)
      if (scope?.blockAbsolute === true && this.path.isAbsolute(text)) this.absolute(text)
      for (const target of yield* this.targets(workspace, text)) {
        if (!this.isInside(target)) this.outside(text)
        if (this.isProtected(target)) this.protects(text)
      }
      if (wild.test(text) && this.couldName(workspace, text)) this.protects(text)
    })
  }

  private shell(command: string, { line, readings }: Named, base: string): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const bases = [base, ...(yield* this.visited(readings, base))]
      for (const reading of readings) {
        if (reading.start > 0) continue
        const runs = Program.runner(reading.words) !== undefined || !reading.named
        for (const [index, word] of reading.words.entries()) {
          if (word.length > 4096) continue
          if (index > 0) yield* this.scopedWord(word, reading, bases)
          yield* this.protectedWord(word, bases, destroyers.has(Program.nameOf(reading.program)))
          if (runs || unknown.test(word)) this.mentions(word)
        }
      }
      if (line !== undefined) return
      this.mentions(command)
      if (this.places.length > 0 && /\$'(?:[^'\\]|\\[^'])*\\[^abefnrtv'"\\?]/.test(command)) {
        this.add("protected_path", "The command spells characters as codes in $'…'; write them as they are.")
      }
    })
  }

  /** Directories the command may change to, from which later words are read. */
  private visited(readings: ReadonlyArray<Reading>, base: string): Effect.Effect<ReadonlyArray<string>> {
    const targets = readings.flatMap(({ program, words, start }) =>
      start === 0 && (program === "cd" || program === "pushd") ? words.slice(1, 3) : []
    )
    return Effect.forEach(
      targets.filter((target) => !target.startsWith("-") && !unknown.test(target)),
      (target) => this.walk(base, target)
    )
  }

  private scopedWord(word: string, { program, words }: Reading, bases: ReadonlyArray<string>): Effect.Effect<void> {
    const { scope } = this.bounds
    if (scope === undefined) return Effect.void
    return Effect.gen(this, function* () {
      for (const text of pathsIn(word)) {
        if (devices.test(text) || /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(text)) continue
        if (homeHead.test(text)) {
          if (scope.allowHome !== true || /(?:^|\/)\.\.(?:\/|$)/.test(text)) this.outside(text)
          continue
        }
        const local = text.replace(/^file:\/\//, "").replace(/^\$(?:PWD|\{PWD\})(?=\/|$)/, ".")
        if (unknown.test(local)) {
          if (/(?:^|\/)\.\.(?:\/|$)/.test(local)) this.outside(text)
          continue
        }
        if (scope.blockAbsolute === true && this.path.isAbsolute(local)) this.absolute(text)
        // `grep "/api/users"`, `sed -n /start/p`, a message: nothing at the root is named so.
        const isText = patternPrograms.has(Program.nameOf(program)) || /\s/.test(word)
        if (words[0] === program && isText && local.startsWith("/") && !(yield* this.startsSomewhere(local))) continue
        // A glob's matches are in the directory before it.
        const fixed = wild.test(local) ? local.slice(0, local.lastIndexOf("/", local.search(wild)) + 1) : local
        for (const base of bases) {
          for (const target of yield* this.targets(base, fixed)) if (!this.isInside(target)) this.outside(text)
        }
      }
    })
  }

  private protectedWord(word: string, bases: ReadonlyArray<string>, destroys: boolean): Effect.Effect<void> {
    if (this.places.length === 0) return Effect.void
    return Effect.gen(this, function* () {
      for (const written of new Set([word, ...word.split(/[=:,@{}]/), word.replace(/^-[A-Za-z]/, "")])) {
        if (written === "" || written === "-") continue
        const { home } = this.bounds
        const text = home === undefined ? written : written.replace(homeHead, home)
        for (const base of bases) {
          if (wild.test(text) || unknown.test(text) || text.includes("{")) {
            if (this.couldName(base, text)) this.protects(word)
          }
          for (const target of yield* this.targets(base, text)) {
            if (this.isProtected(target) || (destroys && this.contains(target))) this.protects(word)
          }
        }
        // Whatever directory it is read from.
        const parts = text.toLowerCase().split("/")
        if (this.places.some(({ basename }) => basename.startsWith(".") && parts.includes(basename)))
          this.protects(word)
      }
    })
  }

  /** A protected name stands in a text that only a shell or another program could read with certainty. */
  private mentions(text: string): void {
    const bare = text
      .replace(/\\\n/g, "")
      .replace(/["'\\]/g, "")
      .toLowerCase()
    for (const { basename } of this.places) {
      for (let at = bare.indexOf(basename); at >= 0; at = bare.indexOf(basename, at + 1)) {
        const around = (bare[at - 1] ?? " ") + (bare[at + basename.length] ?? " ")
        if (!/[a-z0-9_]/.test(around)) return this.protects(basename)
      }
    }
  }

  /** Wildcards and expansions in a path could make it a protected one. An expansion alone could be anything: it is not. */
  private couldName(base: string, text: string): boolean {
    const guess = text
      .toLowerCase()
      .replace(expansions, "\uffff")
      .replace(/\{[^}]*\}/g, "*")
    const matches = (pattern: string, name: string): boolean =>
      /[^\uffff]/.test(pattern) &&
      !(/^[*?]/.test(pattern) && name.startsWith(".")) &&
      Glob.test(pattern.replaceAll("\uffff", "*"), name)
    const parts = guess.split("/")
    const pattern = this.path.resolve(base.toLowerCase(), guess).split("/")
    return this.places.some(
      ({ paths, basename }) =>
        (guess.includes("\uffff") && parts.some((part) => matches(part, basename))) ||
        paths.some((place) => {
          const names = place.split("/")
          return names.length <= pattern.length && names.every((name, i) => matchesPart(pattern[i], name, matches))
        })
    )
  }

  /** Where a path leads, read as a text and, where that may differ, as walked. */
  private targets(base: string, text: string): Effect.Effect<ReadonlyArray<string>> {
    const textual = this.path.resolve(base, text)
    if (!text.split("/").includes("..")) return Effect.map(this.real(textual), (real) => [real])
    return Effect.zipWith(this.real(textual), this.walk(base, text), (real, walked) => [real, walked])
  }

  private walk(base: string, text: string): Effect.Effect<string> {
    return Effect.gen(this, function* () {
      let at = this.path.isAbsolute(text) ? this.path.parse(text).root : yield* this.real(base)
      for (const part of text.split("/")) {
        if (part === "" || part === ".") continue
        at = part === ".." ? this.path.dirname(at) : yield* this.real(this.path.join(at, part))
      }
      return at
    })
  }

  /** Follows links as far as the path exists; a link that leads nowhere counts as where it would lead. */
  private real(text: string, hops = 0): Effect.Effect<string> {
    const known = this.resolved.get(text)
    if (known !== undefined) return Effect.succeed(known)
    const parent = this.path.dirname(text)
    const missing = Effect.suspend(() => (parent === text ? Effect.succeed(text) : this.real(parent, hops))).pipe(
      Effect.flatMap((directory) =>
        parent === text
          ? Effect.succeed(text)
          : this.fs.readLink(text).pipe(
              Effect.flatMap((target) =>
                hops >= maxHops ? Effect.succeed(nowhere) : this.real(this.path.resolve(directory, target), hops + 1)
              ),
              Effect.catchAll(() => Effect.succeed(this.path.join(directory, this.path.basename(text))))
            )
      )
    )
    return Effect.tap(
      Effect.catchAll(this.fs.realPath(text), () => missing),
      (real) => Effect.sync(() => this.resolved.set(text, real))
    )
  }

  private startsSomewhere(text: string): Effect.Effect<boolean> {
    const first = text.split("/").find((part) => part !== "") ?? ""
    return first === "" || first === ".." || first === "."
      ? Effect.succeed(true)
      : Effect.orElseSucceed(this.fs.exists(`/${first}`), () => true)
  }

  private isInside(target: string): boolean {
    return this.bounds.scope === undefined || this.roots.some((root) => within(root, target))
  }

  private isProtected(target: string): boolean {
    const lower = target.toLowerCase()
    return this.places.some(({ paths }) => paths.some((place) => within(place, lower)))
  }

  private contains(target: string): boolean {
    const lower = target.toLowerCase()
    return this.places.some(({ paths }) => paths.some((place) => within(lower, place)))
  }

  private outside(text: string): void {
    if (this.bounds.scope === undefined) return
    this.add("path_scope", `The path ${text} leads outside the workspace ${this.bounds.workspace}; stay inside it.`)
  }

  private absolute(text: string): void {
    this.add("path_scope", `The path ${text} is absolute; write it relative to the workspace.`)
  }

  private protects(text: string): void {
    this.add("protected_path", `${text} names a protected place that no tool may touch; leave it out.`)
  }

  private add(rule: Violation["rule"], message: string): void {
    this.found.set(message, { rule, message })
  }
}

const maxHops = 40

// A loop of links: no directory contains it.
const nowhere = "\0"

const wild = /[*?[]/
const unknown = /[$`]/
const expansions = /\$\(.*\)|`[^`]*`|\$\{[^}]*\}|\$\w+|\$[@*#?$!-]/gs
const homeHead = /^(?:~[^/]*|\$HOME|\$\{HOME\})(?=\/|$)/

const devices = /^\/dev\/(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|fd\/\d+)$/

const patternPrograms: ReadonlySet<string> = new Set(
  "grep egrep fgrep zgrep rg ag ack sed awk gawk jq yq perl ruby echo printf expr curl httpie".split(" ")
)

// They act on everything below a directory.
const destroyers: ReadonlySet<string> = new Set("rm rmdir mv chmod chown chgrp shred unlink trash ln rsync".split(" "))

const within = (directory: string, target: string): boolean =>
  target === directory || target.startsWith(directory.endsWith("/") ? directory : `${directory}/`)

const matchesPart = (
  part: string | undefined,
  name: string,
  matches: (pattern: string, name: string) => boolean
): boolean => part !== undefined && (part === name || matches(part, name))

/** What looks like a path in a word: the word, the value of an option or assignment, the file behind `@`. */
const pathsIn = (word: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  if (!word.startsWith("-")) out.push(word)
  const value = /^-[A-Za-z](.+)$/s.exec(word)?.[1]
  if (value !== undefined) out.push(value)
  if (/[=@,{}]/.test(word)) out.push(...word.split(/[=@,{}]/).filter((part) => /^(?:\/|~|\.\.|\$)/.test(part)))
  return [...new Set(out)].filter((text) => /^[.~]|[./]/.test(text) || homeHead.test(text))
}
