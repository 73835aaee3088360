/**
 * Where the paths of a call lead: inside the workspace or not, and never into a protected place.
 *
 * A path is judged twice: as a text (`a/../b` is `b`) and as the system walks it (behind a link `a`, `..` is another
 * directory). Both must be inside. Links are followed as far as the path exists, dangling ones too, because writing
 * through them creates their target. Names are compared as the most lenient file systems do, ignoring case.
 *
 * In a command, everything that could be a path is judged, from every directory that it may change to: words; what
 * options, braces, wildcards and known variables make of them; redirections; and values of variables.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type { CommandLine, Reading } from "../shell/CommandLine.js"
import * as FoldedName from "../core/FoldedName.js"
import * as Glob from "../core/Glob.js"
import * as FileGlob from "./FileGlob.js"
import { FileSurvey, run, type Places, type Steps } from "./FileSurvey.js"
import * as Program from "../shell/Program.js"
import * as ShellPath from "../shell/ShellPath.js"
import * as ShellVariables from "../shell/ShellVariables.js"
import * as WorkingDirectory from "./WorkingDirectory.js"

/**
 * Which paths outside of the workspace may be named.
 *
 * @since 0.1.0
 * @category models
 */
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

/** The paths that a call names. */
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
  /** Where the call's path parameters lead. Without it, links are followed anew. */
  readonly places?: Places | undefined
}

/** Problems of the file system never fail it: a path that cannot be resolved counts as written. */
export const violations = (
  named: Named,
  bounds: Bounds
): Effect.Effect<ReadonlyArray<Violation>, never, FileSystem.FileSystem | Path.Path> =>
  bounds.scope === undefined && bounds.protectedPaths.length === 0
    ? Effect.succeed([])
    : Effect.flatMap(Effect.all([FileSystem.FileSystem, Path.Path, Effect.clock]), ([fs, path, clock]) =>
        run(
          new Judge(
            new FileSurvey(fs, path, { workspace: bounds.workspace, clock, places: bounds.places }),
            path,
            bounds
          ).judge(named)
        )
      )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Judge {
  private readonly found = new Map<string, Violation>()
  private readonly roots: Array<string> = []
  private readonly places: Array<ShellPath.Place> = []
  private variables: ShellVariables.Variables = new Map()
  private readonly globs = new Map<string, FileGlob.Found>()

  constructor(
    private readonly links: FileSurvey,
    private readonly path: Path.Path,
    private readonly bounds: Bounds
  ) {}

  *judge(named: Named): Steps<ReadonlyArray<Violation>> {
    yield* this.survey()
    const { workspace } = this.bounds
    for (const field of named.fields) yield* this.field(field)
    const [first] = named.fields
    const base = first === undefined ? workspace : this.path.resolve(workspace, first)
    if (named.command !== undefined) yield* this.shell(named.command, named, base)
    if (this.links.isSpent) {
      const rule = this.bounds.scope === undefined ? "protected_path" : "path_scope"
      this.found.set("", { rule, message: "It names more paths than can be looked at; use several calls." })
    }
    return [...this.found.values()]
  }

  /** Follows the links of the scope's own places. */
  private *survey(): Steps<void> {
    const { workspace, scope, protectedPaths, temporary = defaultTemporary, home } = this.bounds
    const allowed = [workspace, ...(scope?.roots ?? []).map((root) => this.path.resolve(workspace, root))]
    if (scope?.allowTmp === true) allowed.push(...temporary)
    if (scope?.allowHome === true && home !== undefined) allowed.push(home)
    for (const root of allowed) this.roots.push(yield* this.links.own(this.path.resolve(root)))
    const all = new Set(protectedPaths.map((text) => this.path.resolve(workspace, text)))
    for (const place of all) {
      const real = yield* this.links.own(place)
      const above = this.path.dirname(place)
      const basename = this.path.basename(place)
      const isInner = all.has(above) && this.path.basename(above).startsWith(".")
      // Its name means nothing elsewhere, and where it is nobody comes. It counts as a link, for where that leads.
      if (isInner && real === this.path.join(yield* this.links.own(above), basename)) continue
      const known = isInner ? real : place
      this.places.push({
        paths: [...new Set([FoldedName.of(known), FoldedName.of(real)])],
        basename: FoldedName.of(this.path.basename(known))
      })
    }
  }

  private *field(text: string): Steps<void> {
    const { workspace, scope } = this.bounds
    if (text.includes("\0")) return this.outside(text)
    if (/^~(?:\/|$)/.test(text) && scope?.allowHome !== true) this.outside(text)
    this.absolute(text)
    for (const target of yield* this.links.targets(workspace, text)) {
      if (!this.isInside(target)) this.outside(text)
      if (this.isProtected(target) || this.passes(target)) this.protects(text)
    }
    const written = this.path.resolve(workspace, text)
    if (this.isProtected(written) || this.passes(written)) this.protects(text)
    if (ShellPath.isWild(text) && this.couldName(workspace, text)) this.protects(text)
  }

  private *shell(command: string, { line, readings }: Named, base: string): Steps<void> {
    const assignments = ShellVariables.assignments(command, line)
    this.variables = ShellVariables.make(assignments)
    for (const reading of readings) {
      const lost = WorkingDirectory.leaves(reading, this.variables)
      if (lost?.to === "unknown" || (lost?.to === "home" && this.bounds.scope?.allowHome !== true))
        this.outside(lost.text)
    }
    const { links, variables } = this
    const bases = yield* WorkingDirectory.visited(readings, variables, base, links, (from, pattern) =>
      this.glob(from, pattern)
    )
    if (bases === undefined) {
      this.add("path_scope", "The command changes to more directories than can be followed; use several commands.")
      return
    }
    for (const { name, value } of assignments) {
      if (this.isEnough) return
      if (moves.has(name)) this.outside(`${name}=`)
      for (const part of value === undefined ? [] : new Set([value, ...value.split(":")])) {
        yield* this.scopedWord(part, assigned, bases)
        yield* this.protectedWord(part, bases, false)
      }
    }
    const seen = new Set<string>()
    for (const reading of readings) {
      const name = Program.nameOf(reading.words[0] ?? "")
      for (const start of destroyedBelow(name, reading.words, this.places))
        yield* this.protectedWord(start, bases, true)
      for (const [index, word] of reading.words.entries()) {
        const destroyed = destroyers.has(name) && (name !== "mv" || index < reading.words.length - 1)
        const key = [name, reading.deep, index > 0, destroyed, word].join(" ")
        if (seen.has(key)) continue
        if (this.isEnough) return
        seen.add(key)
        if (index > 0) yield* this.scopedWord(word, name, bases)
        yield* this.protectedWord(word, bases, destroyed)
        // A value is looked at where it is set; a part of one, only here.
        if (word.includes("${"))
          for (const text of ShellVariables.resolve(word, this.variables) ?? [])
            yield* this.protectedWord(text, bases, destroyed)
        if (reading.deep || ShellPath.isUnknown(word)) this.mentions(word)
      }
    }
    if (line !== undefined) {
      for (const text of spoken(line)) {
        yield* this.looseWords(text, seen, bases)
        this.mentions(text)
      }
      return
    }
    yield* this.looseWords(command, seen, bases)
    this.mentions(command)
    if (ShellPath.spellsInCodes(command)) {
      const rule = this.places.length > 0 ? "protected_path" : "path_scope"
      this.add(rule, "The command spells characters as codes in $'…'; write them as they are.")
    }
  }

  private *looseWords(text: string, seen: Set<string>, bases: ReadonlyArray<string>): Steps<void> {
    for (const { program, word } of ShellVariables.looseWords(text)) {
      const key = `${program} ${word}`
      if (seen.has(key)) continue
      if (this.isEnough) return
      seen.add(key)
      yield* this.scopedWord(word, program, bases)
    }
  }

  private *scopedWord(word: string, program: string, bases: ReadonlyArray<string>): Steps<void> {
    if (this.bounds.scope === undefined) return
    // `grep "/api/users"`, `sed -n /start/p`, a message: not a path unless the root has an entry of that name.
    const mayBeText = patternPrograms.has(program) || (/\s/.test(word) && !/[<>]/.test(program))
    const isPattern = patternPrograms.has(program)
    if (/^(?:HOME|CDPATH)=/.test(word) && !isPattern) this.outside(word)
    if (!/^(?:echo|printf)$/.test(program) && ShellVariables.cutsGiven(word, this.variables)) this.outside(word)
    const texts = ShellVariables.resolve(word, this.variables)
    if (texts === undefined) return this.outside(word)
    // It prints the directory that holds what it is given.
    if (program === "dirname") for (const known of texts) yield* this.scopedPath(`${known}/..`, { ...named, bases })
    for (const known of texts) {
      // An empty leading variable may be a mistake; then the rest of the word starts at the root.
      const mayBeLost = program === assigned || (word.startsWith("$") && known.startsWith("/"))
      for (const text of ShellPath.pathsIn(known, program)) {
        const isPlain = mayBeLost && /^\/[^/*?[$`\uffff]/.test(text) && !climbs.test(text) && !ShellPath.isWild(text)
        yield* this.scopedPath(text, { mayBeText: mayBeText || isPlain, isPattern, bases })
      }
    }
  }

  private *scopedPath(
    text: string,
    how: { readonly mayBeText: boolean; readonly isPattern: boolean; readonly bases: ReadonlyArray<string> }
  ): Steps<void> {
    const { scope } = this.bounds
    if (devices.test(text) || /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(text)) return
    if (ShellPath.replaceHome(text, "") !== undefined) {
      if (scope?.allowHome !== true || climbs.test(text) || this.variables.has("HOME")) this.outside(text)
      return
    }
    const local = text.replace(/^file:(?:\/\/[^/]*)?(?=\/)/i, "").replace(/^\$(?:PWD|\{PWD\})(?=\/|$)/, ".")
    const isText = how.mayBeText && local.startsWith("/") && !(yield* this.startsSomewhere(local))
    if (ShellPath.isUnknown(local)) {
      if (climbs.test(local) || (!isText && (yield* this.mayBeOutside(local, how.bases)))) this.outside(text)
      return
    }
    this.absolute(local)
    if (isText) return
    if (local.length > longest) {
      // A program may make a shorter one of it.
      if (!/\s/.test(local) && /(?:^|\/)\.{1,2}\//.test(local)) this.outside(text)
      return
    }
    for (const base of how.bases) {
      // A glob without a match stays as written.
      for (const path of new Set([ShellPath.fixedPart(local), local])) {
        for (const target of yield* this.links.targets(base, path)) if (!this.isInside(target)) this.outside(text)
      }
      if (ShellPath.isWild(local)) yield* this.globbed(base, text, local, how.isPattern)
    }
  }

  /**
   * Judges the files that a glob matches. A pattern for a program that takes patterns is mostly no glob, so `..` is not
   * meant.
   */
  private *globbed(base: string, text: string, glob: string, isPattern: boolean): Steps<void> {
    const { complete, hits } = yield* this.glob(base, glob)
    if (!complete) {
      const message = `${shortened(text)} finds more than can be looked at, or names that are no text`
      this.add("path_scope", `${message}; name directories in it.`)
      return
    }
    for (const hit of hits) {
      if (isPattern && climbs.test(hit)) continue
      for (const target of yield* this.links.targets(base, hit)) {
        if (!this.isInside(target)) this.outside(hit)
        if (this.isProtected(target)) this.protects(hit)
      }
    }
  }

  private *glob(base: string, pattern: string): Steps<FileGlob.Found> {
    const key = `${base}\0${pattern}`
    const known = this.globs.get(key)
    if (known !== undefined) return known
    const found = yield* FileGlob.expand(this.links, this.path, base, pattern)
    this.globs.set(key, found)
    return found
  }

  private *protectedWord(word: string, bases: ReadonlyArray<string>, destroys: boolean): Steps<void> {
    if (this.places.length === 0) return
    for (const piece of ShellPath.piecesIn(word)) {
      const { home } = this.bounds
      const text = (home === undefined ? undefined : ShellPath.replaceHome(piece, home)) ?? piece
      if (this.places.some((place) => ShellPath.passes(text, place))) this.protects(word)
      for (const base of bases) {
        if (/[*?[$`{]/.test(text) && this.couldName(base, text)) this.protects(word)
        if (text.length > longest) continue
        // Where paths may lead anywhere, nobody else looks at what a glob finds.
        if (this.bounds.scope === undefined && ShellPath.isWild(text)) yield* this.globbed(base, word, text, false)
        for (const target of yield* this.links.targets(base, text)) {
          if (this.isProtected(target) || (destroys && this.contains(target))) this.protects(word)
        }
      }
    }
  }

  private couldName(base: string, text: string): boolean {
    return this.places.some((place) => ShellPath.couldName(this.path, base, text, place))
  }

  private mentions(text: string): void {
    for (const place of this.places) if (ShellPath.mentions(text, place)) this.protects(place.basename)
  }

  /**
   * Judges a path by its known part. `/etc/$x` is outside when nothing below `/etc` is inside. `link/$x` is outside
   * when the link leads there. `$JAVA_HOME/lib` is outside, like all variables that the system sets.
   */
  private *mayBeOutside(text: string, bases: ReadonlyArray<string>): Steps<boolean> {
    const known = text.slice(0, text.search(/[$`\uffff]/))
    const directory = known.slice(0, known.lastIndexOf("/") + 1)
    if (directory === "") return known === "" && this.leadsIntoSystem(text)
    if (/^\/+$/.test(known)) return true
    if (ShellPath.isWild(directory)) {
      for (const base of bases) yield* this.globbed(base, text, directory.replace(/\/+$/, ""), false)
    }
    for (const base of bases) {
      for (const target of yield* this.links.targets(base, directory)) {
        if (this.isInside(target)) continue
        // The known part leads towards an allowed directory, and its next part may still become it.
        const next = known.slice(directory.length)
        if (!this.roots.some((root) => root.startsWith(target === "/" ? `/${next}` : `${target}/${next}`))) return true
      }
    }
    return false
  }

  private leadsIntoSystem(text: string): boolean {
    const name = ShellVariables.leading(text)
    if (name === undefined || !text.includes("/") || this.variables.has(name) || !systemDirectories.test(name))
      return false
    return this.bounds.scope?.allowTmp !== true || !/^(?:TMPDIR|TMP|TEMP)$/.test(name)
  }

  private *startsSomewhere(text: string): Steps<boolean> {
    const first = text.split("/").find((part) => part !== "") ?? ""
    return first === "" || first === ".." || first === "." || (yield* this.links.isThere(`/${first}`))
  }

  private isInside(target: string): boolean {
    return this.bounds.scope === undefined || this.roots.some((root) => within(root, target))
  }

  private isProtected(target: string): boolean {
    const lower = FoldedName.of(target)
    return this.places.some(({ paths }) => paths.some((place) => within(place, lower)))
  }

  /** Below the workspace it goes through a hidden directory of a protected one's name: that of another project. */
  private passes(target: string): boolean {
    const below = this.path.relative(this.bounds.workspace, target)
    return this.places.some((place) => ShellPath.passes(below, place))
  }

  private contains(target: string): boolean {
    const lower = FoldedName.of(target)
    return this.places.some(({ paths }) => paths.some((place) => within(lower, place)))
  }

  /** So much is wrong that nobody reads on; or more is asked than can be looked at. */
  private get isEnough(): boolean {
    return this.found.size >= maxFound || this.links.isSpent
  }

  private outside(text: string): void {
    if (this.bounds.scope === undefined) return
    this.add(
      "path_scope",
      `The path ${shortened(text)} leads outside the workspace ${this.bounds.workspace}; stay inside it.`
    )
  }

  private absolute(text: string): void {
    const { scope, temporary = defaultTemporary } = this.bounds
    if (scope?.blockAbsolute !== true || !this.path.isAbsolute(text)) return
    if (scope.allowTmp === true && temporary.some((directory) => within(directory, text))) return
    this.add("path_scope", `The path ${shortened(text)} is absolute; write it relative to the workspace.`)
  }

  private protects(text: string): void {
    this.add("protected_path", `${shortened(text)} names a protected place that no tool may touch; leave it out.`)
  }

  private add(rule: Violation["rule"], message: string): void {
    this.found.set(message, { rule, message })
  }
}

const defaultTemporary = ["/tmp"]

/** No file system has longer paths. */
const longest = 4_096

/** Nobody reads more of what is wrong with one call. */
const maxFound = 20

const shortened = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 199)}…`)

const named = { mayBeText: false, isPattern: false }

/** What is printed for a shell to run: `echo 'cat x' | sh`. */
const spoken = ({ commands }: CommandLine): ReadonlyArray<string> =>
  commands.some(({ fed, words }) => fed && words.some((word) => shells.test(word)))
    ? commands.flatMap(({ words }) => words.filter((word) => /\s/.test(word)))
    : []

const shells = /^(?:.*\/)?(?:ba|da|z|k|a|fi)?sh$/

/** Setting one of these changes what `cd` and `~` mean, or the reported directory. */
const moves: ReadonlySet<string> = new Set(["HOME", "CDPATH", "OLDPWD", "PWD"])

/** Stands for the program where a variable is set. */
const assigned = "="

/** Variables that lead into the system, or to the person's own files. */
const systemDirectories = /^(?:OLDPWD|TMPDIR|TMP|TEMP|XDG_\w+|\w*_(?:HOME|DIR|ROOT|PREFIX))$/

const climbs = /(?:^|\/)\.\.(?:\/|$)/

const devices = /^\/dev\/(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|fd\/\d+)$/

// Their arguments are often texts that look like paths.
const patternPrograms: ReadonlySet<string> = new Set(
  "grep egrep fgrep zgrep rg ag ack sed gsed awk gawk jq yq perl ruby echo printf expr".split(" ")
)

/** Where a search begins that deletes or changes what it finds, unless it looks for other names than protected ones. */
const destroyedBelow = (
  name: string,
  words: ReadonlyArray<string>,
  places: ReadonlyArray<ShellPath.Place>
): ReadonlyArray<string> => {
  if (places.length === 0 || !/^g?find$/.test(name)) return []
  const destroys = words.some(
    (word, at) =>
      word === "-delete" || (/^-(?:exec|ok)(?:dir)?$/.test(word) && destroyers.has(Program.nameOf(words[at + 1] ?? "")))
  )
  if (!destroys) return []
  const globs = words.flatMap((word, at) => (/^-i?name$/.test(word) ? [(words[at + 1] ?? "*").toLowerCase()] : []))
  const isOpen = words.some((word) => /^(?:-o|-or|,|!|-not)$/.test(word))
  const kept = [...places.map(({ basename }) => basename), ...ownFiles]
  if (!isOpen && globs.some((glob) => !kept.some((file) => Glob.test(glob, file)))) return []
  const end = words.findIndex((word, at) => at > 0 && /^[-(!]/.test(word) && !/^-(?:[HLP]|O\d?)$/.test(word))
  const starts = words.slice(1, end < 0 ? undefined : end).filter((word) => !word.startsWith("-"))
  return starts.length === 0 ? ["."] : starts
}

/** What lies in protected directories. */
const ownFiles = "permissions.json config.json instructions.md profiles sessions.db".split(" ")

// They act on everything below a directory; for `mv`, not below the last one.
const destroyers: ReadonlySet<string> = new Set("rm rmdir mv chmod chown chgrp shred unlink trash".split(" "))

const within = (directory: string, target: string): boolean =>
  target === directory || target.startsWith(directory.endsWith("/") ? directory : `${directory}/`)
