/**
 * Whether a directory is the same one at all nodes of a cluster: a file in it has an id that the first node made, and each
 * node reads it there.
 */
import * as Effect from "effect/Effect"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"
import * as OwnFile from "./local/OwnFile.js"
import * as UserLocation from "./local/UserLocation.js"

/** The id of this directory. It gets one if it has none; of several nodes that make one at once, one's counts. */
export const idOf = (workspace: string): Effect.Effect<string, ConfigurationInvalid.ConfigurationInvalid> =>
  Effect.suspend(() => {
    const invalid = (reason: string) =>
      ConfigurationInvalid.make(
        `The workspace ${workspace} cannot be compared with that of the other nodes: ${name} ${reason}. Let the node write there.`
      )
    if (OwnFile.isLink(path.join(workspace, path.dirname(name)))) return invalid("lies behind a symbolic link")
    try {
      if (!OwnFile.isThere(path.join(workspace, name))) mark(workspace)
    } catch (error) {
      return invalid(`cannot be written: ${UserLocation.reasonOf(error)}`)
    }
    const content = OwnFile.readIn(workspace, name, 1_000)
    return content._tag === "Text"
      ? Effect.succeed(content.text.trim())
      : invalid(content._tag === "Absent" ? "cannot be read" : content.reason)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const name = ".assent/cluster-id"

/** A link takes no place of a file that is there, also on a disk of the network. */
const mark = (workspace: string): void => {
  const id = randomBytes(16).toString("hex")
  const file = path.join(workspace, name)
  const half = `${file}.${id}`
  if (!OwnFile.isThere(path.dirname(file))) make(path.dirname(file))
  fs.writeFileSync(half, `${id}\n`, { flag: "wx" })
  try {
    fs.linkSync(half, file)
  } catch (error) {
    if (!OwnFile.isThere(file)) throw error
  } finally {
    fs.unlinkSync(half)
  }
}

/** Another node may make it at this moment. */
const make = (directory: string): void => {
  try {
    fs.mkdirSync(directory)
  } catch (error) {
    if (!OwnFile.isThere(directory)) throw error
  }
}
