/**
 * The instructions that agents get: `AGENTS.md` of the home, of the workspace's root and of its folders, nearer ones
 * last, then `.assent/instructions.md`. Together at most 64 kB.
 *
 * The excess is cut from the least important file: from folders first, the deepest before the others.
 */
import * as Effect from "effect/Effect"
import * as path from "node:path"
import * as Brought from "./Brought.js"
import * as OwnFile from "./OwnFile.js"

export interface Place {
  readonly home: string | undefined
  readonly configDirectory: string
  readonly brought: Brought.Brought
}

export interface Instructions {
  readonly text: string
  /** Sentences about what was refused or cut. */
  readonly remarks: ReadonlyArray<string>
}

export const load = ({ brought, configDirectory, home }: Place): Effect.Effect<Instructions> =>
  Effect.sync(() => {
    const { workspace } = brought
    const remarks: Array<string> = []
    const sources: Array<Source> = []
    const take = (source: Omit<Source, "text">, content: OwnFile.Content) => {
      if (content._tag === "Refused") remarks.push(`${source.file} ${content.reason}.`)
      else if (content._tag === "Text" && content.text.trim() !== "")
        sources.push({ ...source, text: content.text.trim() })
    }
    if (home !== undefined && path.resolve(home) !== workspace) {
      const file = path.join(home, name)
      take({ file, rank: 0, heading: `From ${file}:` }, OwnFile.read(file, OwnFile.maxSettings))
    }
    const own = path.join(configDirectory, "instructions.md")
    take({ file: own, rank: 1, heading: `From ${own}:` }, OwnFile.read(own, OwnFile.maxSettings))
    for (const folder of folders(workspace)) {
      const below = path.join(folder, name)
      const rank = folder === "" ? 3 : 3 + folder.split(path.sep).length
      const heading = folder === "" ? `From ${below}:` : `From ${below}, for what is in ${folder}:`
      const file = path.join(workspace, below)
      take({ file, rank, heading }, OwnFile.readIn(workspace, below, OwnFile.maxSettings))
    }
    const last = brought.files.get(Brought.instructions) ?? OwnFile.absent
    take({ file: path.join(workspace, Brought.instructions), rank: 2, heading: `From ${Brought.instructions}:` }, last)
    return { text: fit(sources, remarks), remarks }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const name = "AGENTS.md"

interface Source {
  readonly file: string
  /** A more important source has a lower rank. */
  readonly rank: number
  readonly heading: string
  readonly text: string
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
const folders = (workspace: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let level = [""]
  let seen = 0
  for (let depth = 0; depth <= maxDepth && level.length > 0; depth++) {
    const next: Array<string> = []
    for (const folder of level) {
      if (seen++ >= maxFolders) return found
      const directory = path.join(workspace, folder)
      if (OwnFile.isThere(path.join(directory, name))) found.push(folder)
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
  let room = Brought.maxInstructions
  const kept = new Map<Source, string>()
  for (const source of [...sources].sort((left, right) => left.rank - right.rank)) {
    const whole = sources.length === 1 ? source.text : `${source.heading}\n\n${source.text}\n\n`
    const bytes = Buffer.from(whole)
    if (bytes.length > room) {
      const limit = `${Brought.maxInstructions / 1_000} kB together`
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
