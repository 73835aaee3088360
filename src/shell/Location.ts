/**
 * Directories and files as rules name them: by their text, seen from the workspace.
 *
 * `./a//b/../c`, `a/c` and the workspace's own full path with `a/c` behind it are one place. Links are not followed here;
 * guards do that, with the file system at hand.
 */

/** A directory in which a command runs. */
export interface Directory {
  /** Relative to the workspace without `.` and inner `..`; empty for the workspace itself; absolute for what is elsewhere. */
  readonly path: string
  /** Absolute; nothing where it is not known, and then every absolute path is elsewhere. */
  readonly workspace: string | undefined
}

export const directory = (path: string | undefined, workspace?: string): Directory => ({
  path: path === undefined ? "" : normal(path, workspace),
  workspace
})

/** The directory that a path leads to from another one. */
export const from = ({ path, workspace }: Directory, target: string): Directory =>
  directory(target.startsWith("/") || path === "" ? target : `${path}/${target}`, workspace)

export const same = (a: Directory, b: Directory): boolean => a.path === b.path

export const isWorkspace = ({ path }: Directory): boolean => path === ""

/** A path by the shortest text for it. */
export const normal = (path: string, workspace?: string): string => {
  const text = joined(path)
  if (workspace === undefined || !text.startsWith("/")) return text
  const root = joined(workspace)
  if (text === root) return ""
  return text.startsWith(root === "/" ? root : `${root}/`) ? text.slice(root === "/" ? 1 : root.length + 1) : text
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const joined = (path: string): string => {
  const absolute = path.startsWith("/")
  const parts: Array<string> = []
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue
    if (part !== "..") parts.push(part)
    else if (parts.length > 0 && parts.at(-1) !== "..") parts.pop()
    else if (!absolute) parts.push(part)
  }
  return (absolute ? "/" : "") + parts.join("/")
}
