/** Where the audit of a workspace lies, and the key that it is written and verified with. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"
import * as path from "node:path"
import type * as AuditArchive from "../../audit/AuditArchive.js"
import type * as AuditChain from "../../audit/AuditChain.js"
import * as ConfigurationInvalid from "./ConfigurationInvalid.js"
import * as OwnFile from "./OwnFile.js"
import type * as UserLocation from "./UserLocation.js"

/**
 * Trails are with the workspace's state, heads beside the user's own settings: access to the one does not give access
 * to the other.
 */
export const archive = (
  settings: UserLocation.Folder & { readonly configDirectory: string }
): AuditArchive.Archive => ({
  directory: path.join(settings.folder, "audit"),
  headDirectory: path.join(settings.configDirectory, "audit-heads")
})

/** The key in a file that only its owner reads, without the white space around it; none when no file is named. */
export const readKey = (
  file: string | undefined
): Effect.Effect<AuditChain.Key | undefined, ConfigurationInvalid.ConfigurationInvalid> =>
  Effect.gen(function* () {
    if (file === undefined) return undefined
    const content = OwnFile.read(file, longest)
    if (content._tag === "Absent")
      return yield* ConfigurationInvalid.make(`There is no key file ${file}. ${remedy(file)}`)
    if (content._tag === "Refused") return yield* ConfigurationInvalid.make(`The key ${file} ${content.reason}.`)
    if (isShared(file)) {
      return yield* ConfigurationInvalid.make(
        `The key ${file} is not yours alone to read or write. Run: chmod 600 ${file}`
      )
    }
    if (fs.statSync(file).nlink > 1) {
      return yield* ConfigurationInvalid.make(
        `The key ${file} has another name, a hard link, by which it could be read. Make a copy of it, and remove both names.`
      )
    }
    const key = content.text.trim()
    return key.length >= shortest
      ? Redacted.make(key)
      : yield* ConfigurationInvalid.make(
          `The key in ${file} is too short. Make one of at least ${shortest} characters. ${remedy(file)}`
        )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A shorter key could be found by trying keys against a copied trail. */
const shortest = 16
/** Bytes. */
const longest = 10_000

const remedy = (file: string): string => `To make one: (umask 077; openssl rand -hex 32 > ${file})`

/**
 * True when the file has another owner, or others may read it. False on a system without modes: there it cannot be
 * known.
 */
const isShared = (file: string): boolean => {
  if (process.getuid === undefined) return false
  const { mode, uid } = fs.statSync(file)
  return uid !== process.getuid() || (mode & 0o077) !== 0
}
