/**
 * What is at a path, at once and without an effect: thousands of words of one command may be names of files.
 *
 * Bound to the very `readLink` of a file system (see `FastPath`), so that a wrapper or another file system has none.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as FastPath from "./FastPath.js"

/**
 * A link and its target; a file that is no directory; nothing. `other`: a directory, or something that cannot be looked at.
 */
export type Entry = { readonly target: string } | "file" | "other" | "missing"

export const { bind, of } = FastPath.make<FileSystem.FileSystem["readLink"], (path: string) => Entry>()
