/**
 * Wants a question of its own for every call of a file tool that would write where git keeps its configuration and hooks,
 * because git runs the files it finds there: later, elsewhere, unasked.
 *
 * Such a place is a directory or file named `.git`, anywhere, and a directory with the shape of a git directory under
 * any name (`--separate-git-dir`, a bare repository); links are followed. Tools that only read are let through.
 *
 * Commands are not looked at: a sandbox holds them, and without one a person is asked about those that no rule spells out.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FoldedName from "../core/FoldedName.js"
import { FileSurvey, run, type Places, type Steps } from "./FileSurvey.js"
import * as Guard from "./Guard.js"
import * as SanitizerOptions from "./SanitizerOptions.js"

export interface Surroundings {
  readonly fileSystem: FileSystem.FileSystem
  readonly path: Path.Path
  /** Absolute. Relative paths start here. */
  readonly workspace: string
}

export const make =
  (surroundings: Surroundings): Guard.Guard =>
  ({ entry, subject }) => {
    if (entry.readonly || subject.command !== undefined) return Effect.void
    const fields = entry.paths.flatMap((name) => SanitizerOptions.fieldOf(subject, name))
    if (fields.length === 0) return Effect.void
    return Effect.flatMap(Effect.clock, (clock) => {
      const look = new Look(surroundings, clock, subject.call.places)
      return Effect.map(run(look.found(fields)), (found) =>
        found === undefined ? undefined : Guard.ask({ reason: question(found) })
      )
    })
  }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const question = (text: string): string =>
  `${shortened(text)} leads to where git keeps its configuration and hooks; git runs programs that it finds there.`

const shortened = (text: string): string => (text.length <= 200 ? text : `${text.slice(0, 199)}…`)

class Look {
  private readonly survey: FileSurvey
  private readonly shapes = new Map<string, boolean>()

  constructor(
    private readonly at: Surroundings,
    clock: Clock.Clock,
    places: Places | undefined
  ) {
    this.survey = new FileSurvey(at.fileSystem, at.path, { workspace: at.workspace, clock, places })
  }

  /** The path that leads to such a place, or may: more paths than can be looked at are asked about. */
  *found(fields: ReadonlyArray<string>): Steps<string | undefined> {
    for (const field of fields) {
      if (isGit(field) || (yield* this.isInside(this.at.workspace, field)) || this.survey.isSpent) return field
    }
    return undefined
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

/** Some file systems ignore case and invisible characters, and have a second, short name. */
const isGit = (path: string): boolean =>
  path.split(/[\\/]/).some((part) => {
    const name = FoldedName.of(part)
    return name === ".git" || name === ".hg" || /^(?:git|hg)~\d+$/.test(name)
  })
