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
import * as Program from "./Program.js"
import * as RealPath from "./RealPath.js"
import * as ShellPath from "./ShellPath.js"

export interface Options {
  /** Directories allowed beside the workspace; relative ones start there. */
  readonly roots?: ReadonlyArray<string> | undefined
  /** Default: false. */
  readonly allowTmp?: boolean | undefined
  /** Default: false. */
  readonly allowHome?: boolean | undefined
  /** Refuse absolute paths also where they lead inside, temporary ones excepted. Default: false. */
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

class Judge {
  private readonly found = new Map<string, Violation>()
  private roots: ReadonlyArray<string> = []
  private places: ReadonlyArray<ShellPath.Place> = []
  private readonly links: RealPath.RealPath

  constructor(
    private readonly fs: FileSystem.FileSystem,
    private readonly path: Path.Path,
    private readonly bounds: Bounds
  ) {
    this.links = RealPath.make(fs, path)
  }

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
    const { workspace, scope, protectedPaths, temporary = defaultTemporary, home } = this.bounds
    return Effect.gen(this, function* () {
      const allowed = [workspace, ...(scope?.roots ?? []).map((root) => this.path.resolve(workspace, root))]
      if (scope?.allowTmp === true) allowed.push(...temporary)
      if (scope?.allowHome === true && home !== undefined) allowed.push(home)
      this.roots = yield* Effect.forEach(allowed, (root) => this.links.real(this.path.resolve(root)))
      // One after the other: most lie in one directory, which is then looked up once.
      this.places = yield* Effect.forEach(protectedPaths, (text) => {
        const place = this.path.resolve(workspace, text)
        return Effect.map(this.links.real(place), (real) => ({
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
      if (/^~(?:\/|$)/.test(text) && scope?.allowHome !== true) this.outside(text)
      this.absolute(text)
      for (const target of yield* this.links.targets(workspace, text)) {
        if (!this.isInside(target)) this.outside(text)
        if (this.isProtected(target)) this.protects(text)
      }
      if (this.isProtected(this.path.resolve(workspace, text))) this.protects(text)
      if (ShellPath.isWild(text) && this.couldName(workspace, text)) this.protects(text)
    })
  }

  private shell(command: string, { line, readings }: Named, base: string): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const bases = [base, ...(yield* this.visited(readings, base))]
      const seen = new Set<string>()
      for (const reading of readings) {
        if (reading.start > 0) continue
        const runs = Program.runner(reading.words) !== undefined || !reading.named
        const name = Program.nameOf(reading.program)
        for (const [index, word] of reading.words.entries()) {
          const destroyed = destroyers.has(name) && (name !== "mv" || index < reading.words.length - 1)
          const key = [name, runs, index > 0, destroyed, word].join(" ")
          // No path is as long.
          if (word.length > 4096 || seen.has(key)) continue
          seen.add(key)
          if (index > 0) yield* this.scopedWord(word, name, bases)
          yield* this.protectedWord(word, bases, destroyed)
          if (runs || ShellPath.isUnknown(word)) this.mentions(word)
        }
      }
      if (line !== undefined) return
      this.mentions(command)
      if (this.places.length > 0 && ShellPath.spellsInCodes(command)) {
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
      targets.filter((target) => !target.startsWith("-") && !ShellPath.isUnknown(target)),
      (target) => this.links.walk(base, target)
    )
  }

  private scopedWord(word: string, program: string, bases: ReadonlyArray<string>): Effect.Effect<void> {
    const { scope } = this.bounds
    if (scope === undefined) return Effect.void
    return Effect.gen(this, function* () {
      for (const text of ShellPath.pathsIn(word)) {
        if (devices.test(text) || /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(text)) continue
        if (ShellPath.replaceHome(text, "") !== undefined) {
          if (scope.allowHome !== true || climbs.test(text)) this.outside(text)
          continue
        }
        const local = text.replace(/^file:\/\//, "").replace(/^\$(?:PWD|\{PWD\})(?=\/|$)/, ".")
        // `grep "/api/users"`, `sed -n /start/p`, a message: no file when nothing at the root is named so.
        const mayBeText = patternPrograms.has(program) || (/\s/.test(word) && !/[<>]/.test(program))
        const isText = mayBeText && local.startsWith("/") && !(yield* this.startsSomewhere(local))
        if (ShellPath.isUnknown(local)) {
          if (climbs.test(local) || (!isText && (yield* this.beginsOutside(local)))) this.outside(text)
          continue
        }
        this.absolute(local)
        if (isText) continue
        for (const base of bases) {
          for (const target of yield* this.links.targets(base, ShellPath.fixedPart(local))) {
            if (!this.isInside(target)) this.outside(text)
          }
        }
      }
    })
  }

  private protectedWord(word: string, bases: ReadonlyArray<string>, destroys: boolean): Effect.Effect<void> {
    if (this.places.length === 0) return Effect.void
    return Effect.gen(this, function* () {
      for (const piece of ShellPath.piecesIn(word)) {
        const { home } = this.bounds
        const text = (home === undefined ? undefined : ShellPath.replaceHome(piece, home)) ?? piece
        if (this.places.some((place) => ShellPath.passes(text, place))) this.protects(word)
        for (const base of bases) {
          if (/[*?[$`{]/.test(text) && this.couldName(base, text)) this.protects(word)
          for (const target of yield* this.links.targets(base, text)) {
            if (this.isProtected(target) || (destroys && this.contains(target))) this.protects(word)
          }
        }
      }
    })
  }

  private couldName(base: string, text: string): boolean {
    return this.places.some((place) => ShellPath.couldName(this.path, base, text, place))
  }

  private mentions(text: string): void {
    for (const place of this.places) if (ShellPath.mentions(text, place)) this.protects(place.basename)
  }

  /** Whatever the expansion becomes: `/etc/$x` is outside when nothing below `/etc` is inside. */
  private beginsOutside(text: string): Effect.Effect<boolean> {
    const known = text.slice(0, text.search(/[$`]/))
    const directory = known.slice(0, known.lastIndexOf("/") + 1)
    if (!directory.startsWith("/")) return Effect.succeed(false)
    return Effect.map(
      this.links.real(directory),
      (target) => !this.isInside(target) && !this.roots.some((root) => within(target, root))
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
    const { scope, temporary = defaultTemporary } = this.bounds
    if (scope?.blockAbsolute !== true || !this.path.isAbsolute(text)) return
    if (scope.allowTmp === true && temporary.some((directory) => within(directory, text))) return
    this.add("path_scope", `The path ${text} is absolute; write it relative to the workspace.`)
  }

  private protects(text: string): void {
    this.add("protected_path", `${text} names a protected place that no tool may touch; leave it out.`)
  }

  private add(rule: Violation["rule"], message: string): void {
    this.found.set(message, { rule, message })
  }
}

const defaultTemporary = ["/tmp"]

const climbs = /(?:^|\/)\.\.(?:\/|$)/

const devices = /^\/dev\/(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|fd\/\d+)$/

// Their arguments are often texts that look like paths.
const patternPrograms: ReadonlySet<string> = new Set(
  "grep egrep fgrep zgrep rg ag ack sed gsed awk gawk jq yq perl ruby echo printf expr".split(" ")
)

// They act on everything below a directory; for `mv`, not below the last one.
const destroyers: ReadonlySet<string> = new Set("rm rmdir mv chmod chown chgrp shred unlink trash".split(" "))

const within = (directory: string, target: string): boolean =>
  target === directory || target.startsWith(directory.endsWith("/") ? directory : `${directory}/`)
