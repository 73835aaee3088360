/**
 * Where this program is installed, if that is where commands write: a copy in a workspace, or a package below its
 * `node_modules`. A command that changed it would decide about the next start.
 */
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as OwnFile from "./OwnFile.js"

/**
 * The directories to leave as they are; none where the program is installed elsewhere. `roots`: where commands write. `place`: a
 * file of the program.
 */
export const within = (roots: ReadonlyArray<string>, place = fileURLToPath(import.meta.url)): ReadonlyArray<string> => {
  const file = OwnFile.realPath(place) ?? place
  // A bundle lies beside the file that starts it.
  const files = path.basename(path.dirname(file)) === "program" ? [file, path.join(file, "../../assent.js")] : [file]
  const found = files.flatMap((one) =>
    roots.flatMap((root) => {
      const real = OwnFile.realDirectory(root) ?? root
      return OwnFile.isWithin(real, one) ? [placeIn(real, one)] : []
    })
  )
  return [...new Set(found)].filter((one) => !found.some((other) => other !== one && OwnFile.isWithin(other, one)))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The package, if it is a part of the directory; else the directory in it that holds the program. */
const placeIn = (root: string, file: string): string => {
  for (let at = path.dirname(file); at !== root && OwnFile.isWithin(root, at); at = path.dirname(at))
    if (OwnFile.isThere(path.join(at, "package.json"))) return at
  const [first = ""] = path.relative(root, file).split(path.sep)
  return path.join(root, first)
}
