/**
 * Files read at once, without an effect for each: for searches over very many of them.
 *
 * A system may offer it beside its file system. Whoever uses it gives way to the event loop now and then, and finds the
 * same without it, only later.
 */
import * as Context from "effect/Context"

export type Kind = "file" | "directory" | "link" | "other"

export interface Service {
  /** What is in a directory, sorted by name; undefined when it cannot be read. */
  readonly entries: (directory: string) => ReadonlyArray<readonly [name: string, kind: Kind]> | undefined
  /**
   * The text of a regular file. `nothing`: it cannot be read, is binary, lacks the needle, or was replaced by a link while it
   * was opened. `large`: it has to be read in pieces. `path` is absolute and has no link in it.
   */
  readonly text: (path: string, needle: string) => FileText
}

export type FileText =
  { readonly _tag: "text"; readonly text: string } | { readonly _tag: "nothing" } | { readonly _tag: "large" }

export class DirectFiles extends Context.Tag("assent/builtin/DirectFiles")<DirectFiles, Service>() {}
