/**
 * Files read at once, without an effect for each: for searches over very many of them.
 *
 * A system may offer it beside its file system. Whoever uses it gives way to the event loop now and then, and finds the
 * same without it, only later.
 */
import * as Context from "effect/Context"
import type { FileIdentity } from "../core/ResolvedPath.js"

export type Kind = "file" | "directory" | "link" | "other"

export interface Service {
  /**
   * What is in a directory, sorted by name; undefined when it cannot be read, or when its path leads elsewhere by now. It
   * has to be `decided`, if that is given.
   */
  readonly entries: (
    directory: string,
    decided?: FileIdentity
  ) => ReadonlyArray<readonly [name: string, kind: Kind]> | undefined
  /**
   * A first look at a file. False when it is no regular file, cannot be read, is binary, lacks each needle, or `isIn` says
   * false of its text; true also for a file that has to be read in pieces. It does not see whether the path leads elsewhere
   * by now: nothing may be told of a file that was not read in another way.
   */
  readonly mayHold: (path: string, needles: ReadonlyArray<string>, isIn: (text: string) => boolean) => boolean
  /** Removes a directory that is empty, and nothing else. */
  readonly removeDirectory: (path: string) => void
}

export class DirectFiles extends Context.Tag("assent/builtin/DirectFiles")<DirectFiles, Service>() {}
