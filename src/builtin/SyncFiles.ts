/**
 * Directories read at once, without an effect for each: for walks over very many of them.
 *
 * A system may offer it beside its file system. Whoever uses it gives way to the event loop now and then, and finds the
 * same without it, only later.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
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
  /** Loads the package `@vscode/ripgrep`, if it is installed. */
  readonly ripgrep: Effect.Effect<unknown, unknown>
  /** Removes a directory that is empty, and nothing else. */
  readonly removeDirectory: (path: string) => void
}

export class SyncFiles extends Context.Tag("assent/builtin/SyncFiles")<SyncFiles, Service>() {}
