/**
 * Directories and files as rules name them: by their text, relative to the workspace.
 *
 * `./a//b/../c`, `a/c` and the workspace's full path with `a/c` behind it are one place. Links are not followed here;
 * the guards do that, because they have the file system.
 */

/** A directory in which a command runs. */
export interface Directory {
  /**
   * Relative to the workspace without `.` and inner `..`; empty for the workspace itself; absolute for a place
   * elsewhere.
   */
  readonly path: string
  /** Absolute. Nothing where it is not known; then every absolute path is elsewhere. */
  readonly workspace: string | undefined
}

export const directory = (path: string | undefined, workspace?: string): Directory => ({
  path: path === undefined ? "" : normal(path, workspace),
  workspace
})

export const isWorkspace = ({ path }: Directory): boolean => path === ""

/** The shortest text for a path. */
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
