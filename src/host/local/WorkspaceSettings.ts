/**
 * The workspace's own files that say how agents are to work there. They are read once, through `OwnFile`, so that the
 * bytes a person trusts are the bytes that count.
 *
 * A `.assent` that is a symbolic link is not the workspace's own: the directory behind it was trusted for another place
 * or for none. Only its denials are read.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Digest from "../../core/Digest.js"
import * as OwnFile from "./OwnFile.js"

export interface WorkspaceSettings {
  /** The workspace's real path. */
  readonly workspace: string
  /**
   * By path below the workspace, such as `.assent/permissions.json`, in order of their names. Absent files are left
   * out.
   */
  readonly files: ReadonlyMap<string, OwnFile.Content>
  /** Changes with every byte of any of them. */
  readonly digest: string
  /** The directories of ours that are symbolic links. */
  readonly links: ReadonlyArray<string>
  /**
   * Where links lead that stand for something of these files: as much ours as what stands at its own place. Instructions
   * are not among them. They allow and deny nothing, and may be a link to a text that the workspace works on.
   */
  readonly targets: ReadonlyArray<string>
  /** Sentences about what was not read. */
  readonly remarks: ReadonlyArray<string>
}

/** Paths of our own files, below the workspace. */
export const permissions = ".assent/permissions.json"
export const config = ".assent/config.json"
export const instructions = ".assent/instructions.md"
export const profileDirectories: ReadonlyArray<string> = [".assent/profiles", ".jaato/profiles"]

/** What may be a link to elsewhere in the workspace, or become one while agents work: where it leads is as much ours. */
export const linkable: ReadonlyArray<string> = [permissions, config, ...profileDirectories]

/** Bytes of instructions that count, all files together. */
export const maxInstructions = 64_000

/** Reads all of it; `workspace` is its real path. */
export const load = (workspace: string): Effect.Effect<WorkspaceSettings> =>
  Effect.sync(() => {
    const files = new Map<string, OwnFile.Content>()
    const remarks: Array<string> = []
    const links = [".assent", ".jaato"].filter((name) => OwnFile.isLink(path.join(workspace, name)))
    const read = (name: string, limit: number) => {
      const content = OwnFile.readIn(workspace, name, limit)
      if (content._tag !== "Absent") files.set(name, content)
    }
    for (const name of links) {
      remarks.push(
        `${path.join(workspace, name)} is a symbolic link, so only its denying rules count. Put the directory itself there.`
      )
    }
    if (links.includes(".assent")) {
      const content = readDenials(workspace)
      if (content._tag !== "Absent") files.set(permissions, content)
    } else {
      read(permissions, OwnFile.maxSettings)
      read(config, OwnFile.maxSettings)
      read(instructions, OwnFile.maxSettings)
    }
    for (const directory of profileDirectories) {
      if (links.some((link) => directory.startsWith(`${link}/`))) continue
      const names = OwnFile.namesIn(workspace, directory, maxProfiles)
      if (typeof names === "string") files.set(directory, OwnFile.refused(names))
      else for (const name of names.filter(isProfile)) read(`${directory}/${name}`, OwnFile.maxSettings)
    }
    const sorted = new Map([...files].sort(([left], [right]) => (left < right ? -1 : 1)))
    const own = [...files.keys(), ...profileDirectories].filter((name) => name !== instructions)
    const targets = new Set(own.flatMap((name) => targetOf(workspace, name)))
    return { workspace, files: sorted, digest: digestOf(sorted, links), links, targets: [...targets], remarks }
  })

/** Names of files that hold profiles. */
export const isProfile = (name: string): boolean => /^[^.].*\.(json|ya?ml)$/i.test(name)

/** A file's text; undefined for an absent or refused file. */
export const textOf = ({ files }: WorkspaceSettings, name: string): string | undefined => {
  const content = files.get(name)
  return content?._tag === "Text" ? content.text : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The most files in one directory. */
const maxProfiles = 1_000

/** Where a path of ours leads, if that is another place of the workspace. */
const targetOf = (workspace: string, name: string): ReadonlyArray<string> => {
  const real = OwnFile.realPath(path.join(workspace, name))
  return real === undefined || real === path.join(workspace, name) || !OwnFile.isWithin(workspace, real) ? [] : [real]
}

/** Reads behind a link, in the directory that it leads to. No further link out of that directory is followed. */
const readDenials = (workspace: string): OwnFile.Content => {
  const directory = path.join(workspace, ".assent")
  try {
    return OwnFile.readIn(fs.realpathSync(directory), "permissions.json", OwnFile.maxSettings)
  } catch {
    return OwnFile.absent
  }
}

const digestOf = (files: WorkspaceSettings["files"], links: ReadonlyArray<string>): string =>
  Digest.digest({
    links,
    files: [...files].map(([name, content]) => [name, content._tag === "Text" ? { text: content.text } : content._tag])
  })
