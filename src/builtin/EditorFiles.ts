/**
 * Files that a person has open in an editor, with words that are not saved yet. For the file tools of a session these words
 * are the file.
 *
 * A path is decided and opened before the editor is asked, so an editor shows no file that the tools could not read.
 * Writes go to the editor only for a file with unsaved words: they would be lost otherwise. Any other file is written on
 * the disk, where no link can lead the write elsewhere.
 */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as FileText from "./FileText.js"
import type { Service as Workspace, Target } from "./WorkspaceRoot.js"

/** An editor. Both paths are absolute, with no symbolic link in them. */
export interface Service {
  /** The text of a file as the editor has it; none if it does not say. */
  readonly read: (path: string) => Effect.Effect<Option.Option<string>>
  /** Replaces the text there and saves it. Fails with a sentence. */
  readonly write: (path: string, text: string) => Effect.Effect<void, string>
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/**
 * The words of a file that are in the editor and not on the disk, in the style of the file: its line ends and its byte order
 * mark. None for a file that is no UTF-8 text, is outside of the workspace, or is saved.
 */
export const unsaved = (
  workspace: Pick<Workspace, "path" | "roots">,
  { absolute }: Pick<Target, "absolute">,
  onDisk: Uint8Array
): Effect.Effect<Option.Option<string>> =>
  Effect.flatMap(FiberRef.get(ref), (editor) => {
    const isInside = workspace.roots.some((root) => absolute.startsWith(root + workspace.path.sep))
    if (editor === undefined || !isInside) return Effect.succeedNone
    const file = FileText.decode(onDisk)
    if (typeof file === "string" || file.encoding !== "utf-8") return Effect.succeedNone
    return Effect.map(
      editor.read(absolute),
      Option.filterMap((text) =>
        plain(text) === plain(file.text) ? Option.none() : Option.some(FileText.inStyleOf(file, text))
      )
    )
  })

/** The editor of this session, if there is one. */
export const current: Effect.Effect<Service | undefined> = Effect.suspend(() => FiberRef.get(ref))

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The tools of a session that is started in the effect see the files as this editor has them. */
export const withEditor =
  (editor: Service | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    editor === undefined ? effect : Effect.locally(effect, ref, editor)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const ref = FiberRef.unsafeMake<Service | undefined>(undefined)

/** Editors show neither a byte order mark nor which line ends a file has. */
const plain = (text: string): string => text.replace(/^\ufeff/, "").replace(/\r\n/g, "\n")
