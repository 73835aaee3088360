/**
 * The instructions that agents get: `AGENTS.md` of the home, of the directories from the repository's root down to the
 * workspace, and of the workspace's folders, nearer ones last, then `.assent/instructions.md`. Together at most 64 kB.
 * In a directory without an `AGENTS.md`, a `CLAUDE.md` takes its place.
 *
 * The excess is cut from the least important file: from the directories that are furthest from the workspace.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as path from "node:path"
import * as Home from "../../sandbox/Home.js"
import * as Repository from "../../sandbox/Repository.js"
import * as WorkspaceSettings from "./WorkspaceSettings.js"
import * as OwnFile from "./OwnFile.js"

export interface Place {
  readonly home: string | undefined
  readonly configDirectory: string
  readonly brought: WorkspaceSettings.WorkspaceSettings
}

export interface Instructions {
  readonly text: string
  /** Sentences about what was refused, cut or read in place of another file. */
  readonly remarks: ReadonlyArray<string>
}

export const load = ({
  brought,
  configDirectory,
  home
}: Place): Effect.Effect<Instructions, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const { workspace } = brought
    const secret = [configDirectory, ...(home === undefined ? [] : [home])].map(
      (file) => OwnFile.realPath(file) ?? file
    )
    const above = yield* Repository.above(yield* FileSystem.FileSystem, yield* Path.Path, workspace, secret)
    const remarks: Array<string> = []
    const sources: Array<Source> = []
    const foreign: Array<string> = []
    const { keys } = yield* Home.find(yield* FileSystem.FileSystem, yield* Path.Path, [workspace])
    const hidden = keys.flatMap((key) => [key, OwnFile.realPath(key) ?? key])
    const take = (source: Omit<Source, "text">, content: OwnFile.Content) => {
      const real = OwnFile.realPath(source.file) ?? source.file
      if (hidden.some((key) => OwnFile.isWithin(key, real)))
        remarks.push(`${source.file} leads to keys in the home, and is not read.`)
      else if (content._tag === "Refused") remarks.push(`${source.file} ${content.reason}.`)
      else if (content._tag === "Text" && content.text.trim() !== "") {
        sources.push({ ...source, text: content.text.trim() })
        if (path.basename(source.file) === inPlace) foreign.push(source.file)
      }
    }
    if (home !== undefined && path.resolve(home) !== workspace) {
      const file = path.join(home, nameIn(home) ?? name)
      take({ file, rank: 0, heading: `From ${file}:` }, OwnFile.read(file, OwnFile.maxSettings))
    }
    const own = path.join(configDirectory, "instructions.md")
    take({ file: own, rank: 1, heading: `From ${own}:` }, OwnFile.read(own, OwnFile.maxSettings))
    const outer = above === undefined ? [] : directoriesAbove(above.root, workspace)
    for (const [at, directory] of outer.entries()) {
      const found = nameIn(directory)
      if (above === undefined || found === undefined) continue
      const file = path.join(directory, found)
      const content = OwnFile.readIn(above.root, path.relative(above.root, file), OwnFile.maxSettings)
      take({ file, rank: 3 + outer.length - at, heading: `From ${file}:` }, content)
    }
    for (const { folder, found } of folders(workspace)) {
      const below = path.join(folder, found)
      const rank = folder === "" ? 3 : 3 + folder.split(path.sep).length
      const heading = folder === "" ? `From ${below}:` : `From ${below}, for what is in ${folder}:`
      const file = path.join(workspace, below)
      take({ file, rank, heading }, OwnFile.readIn(workspace, below, OwnFile.maxSettings))
    }
    const last = brought.files.get(WorkspaceSettings.instructions) ?? OwnFile.absent
    take(
      {
        file: path.join(workspace, WorkspaceSettings.instructions),
        rank: 2,
        heading: `From ${WorkspaceSettings.instructions}:`
      },
      last
    )
    const text = fit(sources, remarks)
    if (foreign.length > 0) remarks.push(`${foreign.join(", ")}: read, because there is no ${name} beside it.`)
    return { text, remarks }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const name = "AGENTS.md"
/** What other agents call it. */
const inPlace = "CLAUDE.md"

/** The name of the instructions in a directory. */
const nameIn = (directory: string): string | undefined =>
  [name, inPlace].find((one) => OwnFile.isThere(path.join(directory, one)))

/** From a root down to a directory, without that. */
const directoriesAbove = (root: string, directory: string): ReadonlyArray<string> => {
  const parts = path.relative(root, directory).split(path.sep)
  return parts.map((_, depth) => path.join(root, ...parts.slice(0, depth)))
}

interface Source {
  readonly file: string
  /** A more important source has a lower rank. */
  readonly rank: number
  readonly heading: string
  readonly text: string
}

/** A folder below the workspace, and the file found in it. */
interface Held {
  readonly folder: string
  readonly found: string
}

/** The depth and the number of folders are bounded, because the start waits for the search. */
const maxDepth = 4
const maxFolders = 400
/** Entries that are read of one folder. */
const maxEntries = 5_000

/** Folders of generated or installed files: they hold no instructions of this project. */
const passedOver = /^(?:\..*|node_modules|bower_components|vendor|target|dist|build|out|coverage|venv|__pycache__)$/

/**
 * The folders of a workspace that have such a file; the root first, each folder before its subfolders. No link is
 * followed.
 */
const folders = (workspace: string): ReadonlyArray<Held> => {
  const found: Array<Held> = []
  let level = [""]
  let seen = 0
  for (let depth = 0; depth <= maxDepth && level.length > 0; depth++) {
    const next: Array<string> = []
    for (const folder of level) {
      if (seen++ >= maxFolders) return found
      const directory = path.join(workspace, folder)
      const held = nameIn(directory)
      if (held !== undefined) found.push({ folder, found: held })
      if (depth === maxDepth) continue
      for (const entry of OwnFile.entriesOf(directory, maxEntries)) {
        if (entry.isDirectory() && !passedOver.test(entry.name)) next.push(path.join(folder, entry.name))
      }
    }
    level = next.sort()
  }
  return found
}

/** Joins the sources into one text, with headings when there are several. Adds a remark for each cut. */
const fit = (sources: ReadonlyArray<Source>, remarks: Array<string>): string => {
  let room = WorkspaceSettings.maxInstructions
  const kept = new Map<Source, string>()
  for (const source of [...sources].sort((left, right) => left.rank - right.rank)) {
    const whole = sources.length === 1 ? source.text : `${source.heading}\n\n${source.text}\n\n`
    const bytes = Buffer.from(whole)
    if (bytes.length > room) {
      const limit = `${WorkspaceSettings.maxInstructions / 1_000} kB together`
      remarks.push(`${source.file} is cut by ${bytes.length - room} bytes: instructions may have ${limit}.`)
    }
    kept.set(source, bytes.length <= room ? whole : bytes.toString("utf8", 0, room).replace(/\ufffd$/, ""))
    room = Math.max(0, room - bytes.length)
  }
  return sources
    .map((source) => kept.get(source) ?? "")
    .join("")
    .trimEnd()
}
