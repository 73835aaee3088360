/**
 * The branch of the repository around a directory, read from its files without running git. Assent only shows the
 * name, so a forged repository can at most show a wrong word.
 */
import * as path from "node:path"
import * as OwnFile from "./OwnFile.js"

/** The name of the branch, or the beginning of the commit where there is none; nothing outside of a repository. */
export const of = (directory: string): string | undefined => {
  for (let at = directory; ; at = path.dirname(at)) {
    const found = headIn(path.join(at, ".git"))
    if (found !== undefined) return branchIn(found)
    if (at === path.dirname(at)) return undefined
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes. A branch's name is a path, and no longer than one. */
const longest = 8_192

/** In a worktree and in a submodule `.git` is a file that names the directory. */
const headIn = (git: string): string | undefined => {
  const head = textOf(path.join(git, "HEAD"))
  if (head !== undefined) return head
  const [, elsewhere] = /^gitdir: ([^\0\n]+)\n?$/.exec(textOf(git) ?? "") ?? []
  return elsewhere === undefined ? undefined : textOf(path.join(path.resolve(path.dirname(git), elsewhere), "HEAD"))
}

const textOf = (file: string): string | undefined => {
  const content = OwnFile.read(file, longest)
  return content._tag === "Text" ? content.text : undefined
}

const branchIn = (head: string): string | undefined => {
  const [, branch, commit] = /^(?:ref: refs\/heads\/([^\s\x00-\x1f\x7f]+)|([0-9a-f]{7,64}))\s*$/.exec(head) ?? []
  // Where branches are kept otherwise, the file names one that cannot be.
  if (branch === ".invalid") return undefined
  return branch ?? commit?.slice(0, 7)
}
