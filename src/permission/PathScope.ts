/**
 * Where the paths of a call lead: inside the workspace or not, and never into a protected place.
 *
 * A path is judged twice: as a text (`a/../b` is `b`) and as the system walks it (behind a link `a`, `..` is another
 * directory). Both must be inside. Links are followed as far as the path exists, dangling ones too, because writing
 * through them creates their target. Names are compared as the most lenient file systems do, ignoring case.
 *
 * Of a command, the words count that are paths as they stand, the values of options and assignments, and the files of
 * redirections. It is a courtesy for commands that no sandbox confines: a program finds files by itself.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type { CommandLine, StartedProgram } from "../shell/CommandLine.js"
import * as Home from "../sandbox/Home.js"
import * as Program from "../shell/Program.js"
import * as DeniedPaths from "../core/DeniedPaths.js"
import * as FoldedName from "../core/FoldedName.js"
import { FileSurvey, run, type Places, type Steps } from "./FileSurvey.js"
import type { PathScopeOptions } from "./SanitizerOptions.js"
import * as ShellPath from "../shell/ShellPath.js"

export interface Violation {
  /** `denied_path_perhaps`: it cannot be told whether the call touches a denied path. */
  readonly rule:
    "metacharacters" | "dangerous_command" | "path_scope" | "protected_path" | "denied_path" | "denied_path_perhaps"
  /** A sentence for the model and for people. */
  readonly message: string
}

/** The paths that a call names. */
export interface Named {
  /** Values of path parameters, taken literally. For a command tool the first is the directory it runs in. */
  readonly fields: ReadonlyArray<string>
  /** Texts of a tool without path parameters. Each that is a denied path as a whole mentions that. */
  readonly mentions: ReadonlyArray<string>
  readonly command: string | undefined
  /** The sandbox hides denied paths from the command. */
  readonly confined: boolean
  /** Whether a program only reads what its words name. */
  readonly reads: (words: ReadonlyArray<string>) => boolean
  /** Of a command; empty for any other call. */
  readonly line: CommandLine | undefined
  readonly started: ReadonlyArray<StartedProgram>
  /** The files of its redirections. */
  readonly targets: ReadonlyArray<string>
}

export interface Bounds {
  readonly workspace: string
  readonly protectedPaths: ReadonlyArray<string>
  /** Nothing: paths may lead anywhere but to protected places. */
  readonly scope: PathScopeOptions | undefined
  readonly denied?: ReadonlyArray<string> | undefined
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
  bounds.scope === undefined && bounds.protectedPaths.length === 0 && (bounds.denied?.length ?? 0) === 0
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
  /** Keys of a home inside the workspace. */
  private readonly keys: Array<string> = []
  private readonly denied: DeniedPaths.DeniedPaths
  /** The workspace as it was named, and without links. */
  private bases: ReadonlyArray<string> = []
  /** Where denied paths lead that are written out. */
  private deniedPlaces: ReadonlyArray<readonly [place: string, text: string]> = []

  constructor(
    private readonly links: FileSurvey,
    private readonly path: Path.Path,
    private readonly bounds: Bounds
  ) {
    this.denied = DeniedPaths.make(bounds.denied)
  }

  *judge(named: Named): Steps<ReadonlyArray<Violation>> {
    yield* this.survey()
    const { workspace } = this.bounds
    for (const field of named.fields) yield* this.field(field)
    for (const text of named.mentions) yield* this.mention(text)
    const [first] = named.fields
    const base = first === undefined ? workspace : this.path.resolve(workspace, first)
    yield* this.shell(named, base)
    if (named.command !== undefined && !named.confined) this.spells(named.command)
    if (this.links.isSpent) {
      const rule = this.bounds.scope === undefined ? "protected_path" : "path_scope"
      this.found.set("", { rule, message: "It names too many paths. Use several calls." })
    }
    const found = [...this.found.values()]
    const isKnown = found.some(({ rule }) => rule === "denied_path")
    return isKnown ? found.filter(({ rule }) => rule !== "denied_path_perhaps") : found
  }

  /** Follows the links of the scope's own places. */
  private *survey(): Steps<void> {
    const { workspace, scope, protectedPaths, temporary = defaultTemporary, home } = this.bounds
    const allowed = [workspace, ...(scope?.roots ?? []).map((root) => this.path.resolve(workspace, root))]
    if (scope?.allowTmp !== false) allowed.push(...temporary)
    if (scope?.allowHome === true && home !== undefined) allowed.push(home)
    for (const root of allowed) this.roots.push(yield* this.links.own(this.path.resolve(root)))
    if (home !== undefined && scope !== undefined) {
      const given = this.roots.slice(0, 1 + (scope.roots ?? []).length)
      const { keys } = Home.within(yield* this.links.own(this.path.resolve(home)), "", given)
      for (const key of keys) this.keys.push(FoldedName.of(key), FoldedName.of(yield* this.links.own(key)))
    }
    this.bases = [...new Set([this.path.resolve(workspace), yield* this.links.own(this.path.resolve(workspace))])]
    for (const { place, text } of this.denied.entries) {
      if (place === undefined) continue
      const real = yield* this.links.own(this.path.join(workspace, place))
      this.deniedPlaces = [...this.deniedPlaces, [FoldedName.of(real), text]]
    }
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
      if (this.isKey(target)) this.holdsKeys(text)
      if (this.isProtected(target) || this.passes(target)) this.protects(text)
      this.denies(text, target)
    }
    const written = this.path.resolve(workspace, text)
    this.denies(text, written)
    if (this.isProtected(written) || this.passes(written)) this.protects(text)
    if (ShellPath.isWild(text) && this.couldName(workspace, text)) this.protects(text)
  }

  /** A text that is a path as a whole. */
  private *mention(text: string): Steps<void> {
    const { workspace } = this.bounds
    const path = text.trim().replace(/^file:(?:\/\/[^/]*)?(?=\/)/i, "")
    if (this.denied.entries.length === 0 || path === "" || path.length > longest || /[\0\n]/.test(path)) return
    this.denies(path, this.path.resolve(workspace, path))
    for (const target of yield* this.links.targets(workspace, path)) this.denies(path, target)
  }

  /** A denied name stands in data: a program may read that. */
  private spells(command: string): void {
    for (const { place, text } of this.denied.entries) {
      if (place === undefined) continue
      for (let at = command.indexOf(place); at >= 0; at = command.indexOf(place, at + 1)) {
        const around = [command[at - 1] ?? " ", command[at + place.length] ?? " "]
        if (around.every((char) => !/[\w.-]/.test(char))) return this.mayDeny(place, text)
      }
    }
  }

  private *shell({ confined, line, reads, started, targets }: Named, base: string): Steps<void> {
    let bases: ReadonlyArray<string> = [base]
    for (const { words } of started) {
      const [program = "", first] = words
      if (program === "cd" && first !== undefined && words.length === 2 && !ShellPath.isUnknown(first)) {
        yield* this.word(first, bases)
        // It may fail, and so may what stands before it.
        bases = [...new Set([...bases, ...bases.map((from) => this.path.resolve(from, first))])].slice(0, maxBases)
        continue
      }
      const name = Program.basename(program)
      // What such a program does not find, it does not make.
      const makes = !scripted.has(name) && !reads(words)
      for (const [at, word] of words.entries()) {
        if (this.isEnough) return
        const destroys = destroyers.has(name) && (name !== "mv" || at < words.length - 1)
        // A text behind an option is a message.
        const isText = word.includes(" ") && words[at - 1]?.startsWith("-") === true
        const how = { destroys, isNew: makes && at > 0 && !isText }
        if (at > 0 || program.includes("/")) yield* this.word(word, at > 0 ? bases : [], bases, how)
        yield* this.deniedWord(word, bases, confined)
      }
      if (!confined && readsHere(name, words))
        for (const from of bases)
          for (const place of yield* this.links.targets(from, "."))
            if (yield* this.holdsDenied(place)) this.mayDeny(name)
    }
    const assigned = (line?.commands ?? []).flatMap(({ assignments }) =>
      assignments.map((text) => text.slice(text.indexOf("=") + 1))
    )
    for (const target of targets) yield* this.word(target, bases, bases, { destroys: false, isNew: true })
    for (const value of assigned) yield* this.word(value, bases)
    for (const text of [...targets, ...assigned]) yield* this.deniedWord(text, bases, confined)
  }

  /**
   * A program by its path may lie anywhere: then no place is `inside`. `destroys`: with all that is below the path. `isNew`: the
   * word counts even if the first directory of its path is not there.
   */
  private *word(
    word: string,
    inside: ReadonlyArray<string>,
    bases = inside,
    { destroys, isNew } = { destroys: false, isNew: false }
  ): Steps<void> {
    const text = pathIn(word)
    if (text === undefined || text.length > longest || devices.test(text)) return
    const { home, scope } = this.bounds
    const own = ShellPath.replaceHome(text, home ?? "")
    if (own !== undefined && home === undefined && scope?.allowHome !== true) return this.outside(word)
    const known = own ?? text
    const end = known.search(/[$`]/)
    const fixed = end < 0 ? known : known.slice(0, known.lastIndexOf("/", end) + 1)
    if (fixed === "") return
    if (!isNew && fixed.startsWith("/") && !(yield* this.startsSomewhere(fixed))) return
    if (inside.length > 0) this.absolute(known)
    for (const base of bases) {
      for (const path of yield* this.links.expand(base, fixed)) {
        for (const target of yield* this.links.targets(base, path)) {
          if (inside.length > 0 && !this.isInside(target)) this.outside(word)
          if (this.isKey(target)) this.holdsKeys(word)
          if (this.isProtected(target) || this.passes(target) || (destroys && this.contains(target)))
            this.protects(word)
        }
      }
    }
  }

  private *startsSomewhere(text: string): Steps<boolean> {
    const first = text.split("/").find((part) => part !== "") ?? ""
    return first === "" || /^\.{1,2}$|[*?[]/.test(first) || (yield* this.links.isThere(`/${first}`))
  }

  /** What a word of a command says of denied paths: the word, and each part of it that may be a path. */
  private *deniedWord(word: string, bases: ReadonlyArray<string>, confined: boolean): Steps<void> {
    if (this.denied.entries.length === 0 || word === "" || word.length > longest) return
    const { home = "" } = this.bounds
    const inner = word.split(/[=:@,()]/).slice(0, maxParts)
    // Behind a colon git begins at its root: `:/.env`.
    const parts = new Set([
      word,
      word.replace(/^-[A-Za-z]/, ""),
      ...inner,
      ...inner.slice(1).map((one) => one.replace(/^\/+/, ""))
    ])
    const unknown = /^\{\}$|\$[A-Za-z_{(]|`|\uffff/.test(word.replace(/\$(?:PWD|\{PWD\}|HOME|\{HOME\})(?=\/|$)/g, ""))
    if (unknown && !confined) this.mayDeny(word)
    for (const part of parts) {
      const text = (ShellPath.replaceHome(part, home) ?? part).replace(/^\$(?:PWD|\{PWD\})(?=\/|$)/, ".")
      const end = text.search(/[$`]/)
      const fixed = end < 0 ? text : text.slice(0, text.lastIndexOf("/", end) + 1)
      if (fixed === "" || fixed.includes("\0")) continue
      // The sandbox hides what a shell finds by wildcards.
      if (confined && (fixed !== text || ShellPath.isWild(fixed))) continue
      for (const base of bases) {
        if (fixed.length < text.length || !ShellPath.isWild(fixed)) this.denies(word, this.path.resolve(base, fixed))
        for (const path of yield* this.links.expand(base, fixed)) {
          this.denies(word, this.path.resolve(base, path))
          for (const target of yield* this.links.targets(base, path)) {
            this.denies(word, target)
            if (!confined && (yield* this.holdsDenied(target))) this.mayDeny(word)
          }
        }
      }
    }
  }

  /** A directory that has a denied path below it: a program may read all of it. */
  private *holdsDenied(directory: string): Steps<boolean> {
    const below = this.relative(directory)
    if (below === undefined || !DeniedPaths.mayHold(this.denied, below)) return false
    for (const name of yield* this.links.namesIn(directory)) {
      const at = this.path.join(directory, name)
      if (this.globFor(at) !== undefined) return true
      // What a link leads to is looked at in its own place.
      if ((yield* this.links.real(at)) === at && (yield* this.holdsDenied(at))) return true
    }
    return this.links.isSpent
  }

  /** The path of a place in the workspace, with slashes. Empty: the workspace itself. */
  private relative(target: string): string | undefined {
    const base = this.bases.find((one) => within(one, target))
    return base === undefined ? undefined : target.slice(base === "/" ? 1 : base.length + 1)
  }

  private globFor(target: string): string | undefined {
    const below = this.relative(target)
    const found = below === undefined ? undefined : DeniedPaths.find(this.denied, below)
    if (found !== undefined || this.deniedPlaces.length === 0) return found
    const folded = FoldedName.of(target)
    return this.deniedPlaces.find(([place]) => within(place, folded))?.[1]
  }

  private denies(text: string, target: string): void {
    const glob = this.globFor(target)
    if (glob !== undefined) this.add("denied_path", DeniedPaths.sentence(shortened(text), glob))
  }

  private mayDeny(text: string, glob?: string): void {
    const why = glob === undefined ? "" : ` (${glob})`
    this.add(
      "denied_path_perhaps",
      `Assent cannot tell whether ${shortened(text)} reaches a path that blacklist.paths denies${why}. No sandbox confines the command.`
    )
  }

  private contains(target: string): boolean {
    const lower = FoldedName.of(target)
    return this.places.some(({ paths }) => paths.some((place) => within(lower, place)))
  }

  private couldName(base: string, text: string): boolean {
    return this.places.some((place) => ShellPath.couldName(this.path, base, text, place))
  }

  private isInside(target: string): boolean {
    return this.bounds.scope === undefined || this.roots.some((root) => within(root, target))
  }

  private isKey(target: string): boolean {
    if (this.keys.length === 0) return false
    const lower = FoldedName.of(target)
    return this.keys.some((key) => within(key, lower))
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

  /** So much is wrong that nobody reads on; or more is asked than can be looked at. */
  private get isEnough(): boolean {
    return this.found.size >= maxFound || this.links.isSpent
  }

  private outside(text: string): void {
    if (this.bounds.scope === undefined) return
    this.add("path_scope", `The path ${shortened(text)} leads outside the workspace ${this.bounds.workspace}.`)
  }

  private holdsKeys(text: string): void {
    this.add("path_scope", `The path ${shortened(text)} leads to keys in the home.`)
  }

  private absolute(text: string): void {
    const { scope, temporary = defaultTemporary } = this.bounds
    if (scope?.blockAbsolute !== true || !this.path.isAbsolute(text)) return
    if (scope.allowTmp !== false && temporary.some((directory) => within(directory, text))) return
    this.add("path_scope", `The path ${shortened(text)} is absolute; write it relative to the workspace.`)
  }

  private protects(text: string): void {
    this.add("protected_path", `${shortened(text)} names a protected place that no tool may touch. Remove it.`)
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

/** They act on everything below a directory, `mv` not below the last one. */
const destroyers: ReadonlySet<string> = new Set("rm rmdir mv shred unlink trash".split(" "))

/** Parts of a word that may be paths. */
const maxParts = 64

/** They take texts that look like paths: `sed -i /a/d file`. */
const scripted: ReadonlySet<string> = new Set("sed gsed awk gawk mawk nawk perl ed ex vi vim".split(" "))

/** Without a path among its words the program reads the directory in which it runs. */
const readsHere = (name: string, [, ...words]: ReadonlyArray<string>): boolean => {
  const operands = words.filter((word) => !word.startsWith("-")).length
  if (/^(?:ls|dir|vdir|tree|du)$/.test(name)) return operands === 0
  if (name === "find") return words[0] === undefined || words[0].startsWith("-")
  if (/^(?:rg|fd|ag|ack)$/.test(name)) return operands <= 1
  return (
    /^[ef]?grep$/.test(name) &&
    operands <= 1 &&
    words.some((word) => /^(?:-[A-Za-z]*[rR]|--(?:dereference-)?recursive$)/.test(word))
  )
}

/** A line that changes its directory more often costs questions. */
const maxBases = 8

/** The text in a word that a program would take for a path: the word, or the value of an option. */
const pathIn = (word: string): string | undefined => {
  const [, value = word] = /^(?:(?:--?)?[A-Za-z][\w-]*=|@|-[A-Za-z](?=[/~]|\.\.))(.+)$/s.exec(word) ?? []
  // `cut -d/`: a lone slash behind a letter is a separator.
  if (value === "/" && /^-[A-Za-z]\/$/.test(word)) return undefined
  return value.startsWith("-") || value === "" || /^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(value)
    ? undefined
    : value.replace(/^file:(?:\/\/[^/]*)?(?=\/)/i, "").replace(/^\$(?:PWD|\{PWD\})(?=\/|$)/, ".")
}

const devices = /^\/dev\/(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|fd\/\d+)$/

const within = (directory: string, target: string): boolean =>
  target === directory || target.startsWith(directory.endsWith("/") ? directory : `${directory}/`)
