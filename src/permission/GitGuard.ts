/**
 * Wants a question of its own for every call that would write where git keeps its configuration and hooks, because git
 * runs the files it finds there: later, elsewhere, unasked.
 *
 * Such a place is a directory or file named `.git`, anywhere, and a directory with the shape of a git directory under
 * any name (`--separate-git-dir`, a bare repository); links are followed. Tools that only read are let through, and so
 * are programs that only print. For any other command it is enough that a word, an assignment or a redirection names
 * such a place, or may come to by a glob. What git itself writes without such a name is left to the rules, apart from
 * settings by which it runs something, or may.
 *
 * Four more cases are asked about: a search that starts above such a place and hands its results to a program that
 * writes; a copied directory that contains such a place; a template for new repositories; and, where no sandbox confines
 * the call, an archive or a patch that is laid down in a directory with such a place.
 *
 * The guard cannot see what a program writes by itself, such as an installer of hooks, nor a name that is only an
 * expansion or stands in a file.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FoldedName from "../core/FoldedName.js"
import type { CommandLine, Reading, SimpleCommand } from "../shell/CommandLine.js"
import * as FileGlob from "./FileGlob.js"
import { FileSurvey, run, type Places, type Steps } from "./FileSurvey.js"
import * as GitSearch from "./GitSearch.js"
import * as GitSetting from "../shell/GitSetting.js"
import * as Guard from "./Guard.js"
import * as Program from "../shell/Program.js"
import * as Sanitizer from "./Sanitizer.js"
import * as ShellPath from "../shell/ShellPath.js"
import * as ShellVariables from "../shell/ShellVariables.js"
import * as Unpacking from "./Unpacking.js"
import * as WorkingDirectory from "./WorkingDirectory.js"

export interface Surroundings {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  /** Absolute. Relative paths start here. */
  readonly workspace: string
}

export const make =
  (surroundings: Surroundings): Guard.Guard =>
  (call) => {
    const { entry, subject } = call
    if (entry.readonly || !Sanitizer.concerns(subject, entry.paths)) return Effect.void
    return Effect.flatMap(Effect.clock, (clock) => {
      const look = new Look(surroundings, clock, subject.call.places)
      return Effect.map(run(look.found(call)), (found) =>
        found === undefined ? undefined : Guard.ask({ reason: found })
      )
    })
  }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const question = (text: string): string =>
  `${shortened(text)} leads to where git keeps its configuration and hooks; git runs what it finds there.`

const untold = (text: string): string =>
  `${shortened(text)} is more than can be looked at, so it cannot be told whether it leads to where git keeps its ` +
  "configuration and hooks; git runs what it finds there."

const unpacks = (place: string): string => `What is unpacked into ${place === "." ? "its directory" : place}`

const shortened = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 199)}…`)

const place: ShellPath.Place = { paths: [], basename: ".git" }

class Look {
  private readonly survey: FileSurvey
  private readonly shapes = new Map<string, boolean>()
  private readonly globs = new Map<string, FileGlob.Found>()

  constructor(
    private readonly at: Surroundings,
    clock: Clock.Clock,
    places: Places | undefined
  ) {
    this.survey = new FileSurvey(at.fileSystem, at.path, { workspace: at.workspace, clock, places })
  }

  /** What to ask about the call, if anything. */
  *found(call: Guard.Guarded): Steps<string | undefined> {
    const named = yield* this.named(call)
    if (named !== undefined) return question(named)
    const reached = yield* this.reached(call)
    if (reached !== undefined) return reached
    return this.survey.isSpent ? untold(call.subject.command ?? "What it names") : undefined
  }

  /** The text in the call that names such a place. */
  private *named({ entry, subject }: Guard.Guarded): Steps<string | undefined> {
    const field = entry.paths.flatMap((name) => Sanitizer.fieldOf(subject, name)).find(isGit)
    if (field !== undefined || subject.command === undefined) return field
    const { command, line } = subject
    let variables: ShellVariables.Variables | undefined
    for (const { deep, text, words } of subject.readings) {
      yield* this.survey.goOn()
      if (GitSetting.isChanged(isGiven(words) ? [...words, "$1", "$2"] : words, deep)) return text
      if (!/[$`]/.test(text) || text.length > longestPath) continue
      variables ??= ShellVariables.make(ShellVariables.assignments(command, line))
      const known = ShellVariables.resolve(text, variables) ?? []
      if (known.some((one) => GitSetting.isChanged(one.trim().split(/\s+/), deep))) return text
    }
    if (line === undefined) {
      return mentions(subject.command) || ShellPath.spellsInCodes(subject.command) ? subject.command : undefined
    }
    for (const { operator, target } of line.redirects) if (writes(operator) && mentions(target)) return target
    const taken = isTaken(line)
    for (const command of line.commands) {
      const assignment = command.assignments.find(mentions)
      if (assignment !== undefined) return assignment
      for (const word of writerWords(command, taken)) {
        yield* this.survey.goOn()
        if (mentions(word)) return word
      }
    }
    return undefined
  }

  /** The question about a path in the call that leads to such a place without naming it. */
  private *reached({ entry, params, subject }: Guard.Guarded): Steps<string | undefined> {
    const { path, workspace } = this.at
    const fields = entry.paths.flatMap((name) => Sanitizer.fieldOf(subject, name))
    for (const field of fields) if (yield* this.isInside(workspace, field)) return question(field)
    const { command, readings } = subject
    if (command === undefined) return undefined
    const line = subject.line ?? inPieces(readings)
    const [first] = fields
    const base = first === undefined ? workspace : path.resolve(workspace, first)
    const variables = ShellVariables.make(ShellVariables.assignments(command, subject.line))
    const bases = yield* WorkingDirectory.visited(readings, variables, base, this.survey, (from, pattern) =>
      this.glob(from, pattern)
    )
    if (bases === undefined) return question(command)
    const targets = new Set(line.redirects.flatMap(({ operator, target }) => (writes(operator) ? [target] : [])))
    const taken = isTaken(line)
    for (const command of line.commands) {
      const words = writerWords(command, taken).slice(1)
      // After `rm *` the matching files are gone, so git runs none of them.
      const isGlob = (word: string) => removers.has(Program.nameOf(command.program)) && ShellPath.isWild(word)
      for (const word of words) {
        yield* this.survey.goOn()
        if (!isGlob(word)) for (const piece of ShellPath.piecesIn(word)) targets.add(piece)
      }
    }
    for (const target of targets) {
      if (target.length > longestPath) continue
      for (const from of bases) {
        const { complete, hits } = yield* this.hits(from, target)
        if (!complete) return untold(target)
        for (const hit of hits) if (yield* this.isInside(from, hit)) return question(target)
      }
    }
    for (const command of line.commands) {
      for (const word of moved(command)) {
        for (const from of bases) {
          const held = yield* this.holds(path.resolve(from, word), copies(command))
          if (held !== false) return held === true ? question(word) : untold(word)
        }
      }
    }
    // In a sandbox these places cannot be written.
    const unpacked = entry.runs?.(params) === "confined" ? [] : Unpacking.destinations(readings)
    for (const place of unpacked) {
      if (ShellPath.isUnknown(place) || ShellPath.isWild(place)) return question(place)
      for (const from of bases) {
        const held = yield* this.holds(path.resolve(from, place), true)
        if (held !== false) return (held === true ? question : untold)(unpacks(place))
      }
    }
    const loose = subject.line === undefined ? command : undefined
    for (const start of GitSearch.starts(line, (program) => readers.has(program), loose)) {
      if (start.length > longestPath) continue
      for (const from of bases) {
        const { complete, hits } = yield* this.hits(from, start)
        if (!complete) return untold(start)
        for (const hit of hits) {
          const held = yield* this.holds(path.resolve(from, hit), true)
          if (held !== false) return held === true ? question(start) : untold(start)
        }
      }
    }
    return undefined
  }

  /**
   * The directory has a `.git`. `deep`: a directory below it may have one too. `unknown`: there is too much in it.
   */
  private *holds(directory: string, deep: boolean): Steps<boolean | "unknown"> {
    const { path } = this.at
    if (yield* this.survey.isThere(path.join(directory, ".git"))) return true
    if (!deep) return false
    // Links may lead back to where they are.
    const seen = new Set([yield* this.survey.real(directory)])
    let looks = 0
    for (const next of seen) {
      const names = yield* this.survey.namesIn(next)
      if (names.some(isGit)) return true
      for (const name of names) {
        if (looks++ === maxLooks || this.survey.isSpent) return "unknown"
        seen.add(yield* this.survey.real(path.join(next, name)))
      }
    }
    return false
  }

  /** The paths that the shell may put for a word; also the word itself, for programs that expand globs themselves. */
  private *hits(base: string, word: string): Steps<FileGlob.Found> {
    if (!ShellPath.isWild(word)) return { hits: [word], complete: true }
    const { complete, hits } = yield* this.glob(base, word)
    return { hits: [word, ...hits], complete }
  }

  private *glob(base: string, pattern: string): Steps<FileGlob.Found> {
    const key = `${base}\0${pattern}`
    const known = this.globs.get(key)
    if (known !== undefined) return known
    const found = yield* FileGlob.expand(this.survey, this.at.path, base, pattern)
    this.globs.set(key, found)
    return found
  }

  private *isInside(base: string, text: string): Steps<boolean> {
    for (const target of yield* this.survey.targets(base, text)) {
      if (isGit(target)) return true
      let below = ""
      for (let at = target; ; at = this.at.path.dirname(at)) {
        const isTop = at === this.at.workspace || at === this.at.path.dirname(at)
        if (yield* this.hasShape(at, below, isTop)) return true
        if (isTop) break
        below = FoldedName.of(this.at.path.basename(at))
      }
    }
    return false
  }

  /**
   * The directory has the entries by which git recognizes its own directories. Or it has them when `below` is written,
   * the name of one of its entries: a repository can be made of files that are written one by one. The workspace
   * itself may have the shape: then only what completes it is a question.
   */
  private *hasShape(directory: string, below: string, isTop: boolean): Steps<boolean> {
    if (isTop && !shape.has(below)) return false
    const key = shape.has(below) ? `${directory}\0${below}` : directory
    const known = this.shapes.get(key)
    if (known !== undefined) return known
    const { survey } = this
    const found =
      (below === "head" || (yield* survey.isThere(`${directory}/HEAD`))) &&
      (below === "objects" ||
        below === "commondir" ||
        (yield* survey.isThere(`${directory}/objects`)) ||
        (yield* survey.isThere(`${directory}/commondir`)))
    this.shapes.set(key, found)
    return found
  }
}

/** The folded names of the entries by which git recognizes its own directories. */
const shape: ReadonlySet<string> = new Set(["head", "objects", "commondir"])

/** The limit of directories and files searched below one; more would make a noticeable delay. */
const maxLooks = 2_000

/** No file system has longer paths. */
const longestPath = 4_096

/** Some file systems ignore case and invisible characters, and have a second, short name. */
const isGit = (path: string): boolean =>
  path.split(/[\\/]/).some((part) => {
    const name = FoldedName.of(part)
    return name === ".git" || name === ".hg" || /^(?:git|hg)~\d+$/.test(name)
  })

const mentions = (text: string): boolean =>
  isGit(text) ||
  ShellPath.mentions(text, place) ||
  [text, ...text.split(/[\s;&|()<>"']+/)].some((part) => ShellPath.couldHavePart(part, place.basename)) ||
  // Git prints its directory, or is told one by a variable.
  isPrinted(text) ||
  /\bGIT_(?:(?:COMMON_)?DIR|TEMPLATE_DIR)\b/.test(text) ||
  /\binit\.templatedir\b/i.test(text)

/** Behind an expansion, git is asked for its directory. The order is looked at once, not for each expansion. */
const isPrinted = (text: string): boolean => {
  const expansion = text.search(/[$`]/)
  return expansion >= 0 && /--(?:absolute-)?git-(?:common-)?(?:dir|path)\b/.test(text.slice(expansion))
}

/** The program's last words come from its input. */
const isGiven = (words: ReadonlyArray<string>): boolean => /^(?:g?xargs|parallel)$/.test(Program.nameOf(words[0] ?? ""))

const writes = (operator: string): boolean => operator.includes(">")

/** Programs that print what they read, and write nothing else. */
const readers: ReadonlySet<string> = new Set(
  [
    "cat tac nl head tail wc ls stat du grep egrep fgrep rg cmp diff strings od readlink realpath basename dirname find",
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum cksum sum test [ echo printf pwd true false"
  ].flatMap((line) => line.split(" "))
)

/** Programs that take their orders from the printed text: what to write, or what to run. */
const takers = /^(?:g?xargs|parallel|(?:ba|da|z|k|a)?sh|read|mapfile|readarray|cpio|tar|rsync)$/

/** Some command of the line takes its orders from the text that others print. */
const isTaken = ({ commands }: Pick<CommandLine, "commands">): boolean =>
  commands.some(({ fed, words }) => fed && words.some((word) => takers.test(word)))

/** The words of a command that may write, without those that exclude files. */
const writerWords = ({ named, program, words }: SimpleCommand, isTaken: boolean): ReadonlyArray<string> =>
  named && readers.has(program) && Program.runner(words) === undefined && !isTaken
    ? []
    : words.filter((word) => !/^--?(?:exclude|ignore)[a-z-]*=/.test(word))

/**
 * What is read of a text that cannot be taken apart, such as a loop, as if it were simple commands, each with the output
 * of another: more is asked about then, and nothing less.
 */
const inPieces = (readings: ReadonlyArray<Reading>): Pick<CommandLine, "commands" | "redirects"> => {
  const commands: Array<SimpleCommand> = []
  const redirects: Array<CommandLine["redirects"][number]> = []
  for (const { named, text, words } of readings) {
    const [program = "", target = ""] = words
    if (/[<>]/.test(program)) {
      redirects.push({ operator: program, target })
      continue
    }
    // The braces are lost, by which a search hands on what it finds.
    const whole = words.some((word) => /^-(?:exec|ok)/.test(word)) ? [...words, "{}", ";"] : words
    const unknown = whole.flatMap((word, at) => (/[$`]/.test(word) ? [at] : []))
    commands.push({
      program,
      words: whole,
      sources: whole,
      text,
      dynamic: unknown.length > 0,
      unknown,
      named,
      fed: true,
      assignments: []
    })
  }
  return { commands, redirects }
}

const removers: ReadonlySet<string> = new Set("rm rmdir unlink trash".split(" "))

/** Programs that copy, move or delete everything in a directory. */
const movers: ReadonlySet<string> = new Set("cp mv rm rsync install unlink shred trash".split(" "))

/** They change the modes and owners of everything in a directory, when they are told to. */
const changers = /^(?:chmod|chown|chgrp)$/

const copies = ({ program }: SimpleCommand): boolean =>
  /^(?:cp|rsync|install|chmod|chown|chgrp)$/.test(Program.nameOf(program))

/** The operands of such a command, without the destination. */
const moved = ({ program, words }: SimpleCommand): ReadonlyArray<string> => {
  const name = Program.nameOf(program)
  if (changers.test(name) && words.some((word) => /^(?:-[A-Za-z]*R|--recursive$)/.test(word)))
    return words.slice(2).filter((word) => !word.startsWith("-") && word.length <= longestPath)
  if (!movers.has(name)) return []
  const operands = words.slice(1).filter((word) => !word.startsWith("-") && word.length <= longestPath)
  return name === "cp" || name === "mv" || name === "rsync" || name === "install" ? operands.slice(0, -1) : operands
}
