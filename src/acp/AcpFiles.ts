/**
 * The files of the editor that shows a session, for the session's file tools. A session outlives its editors: without one
 * the disk counts alone.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as EditorFiles from "../builtin/EditorFiles.js"
import type * as AcpConnection from "../foreign/AcpConnection.js"

/** What an editor can do with files. */
export interface Editor {
  readonly client: AcpConnection.Client
  readonly sessionId: string
  readonly reads: boolean
  readonly writes: boolean
}

export class AcpFiles implements EditorFiles.Service {
  private editor: Editor | undefined

  /** Uses this editor until the returned function is called. */
  attach(editor: Editor): () => void {
    this.editor = editor
    return () => {
      if (this.editor === editor) this.editor = undefined
    }
  }

  readonly read: EditorFiles.Service["read"] = (path) =>
    Effect.suspend(() => {
      const { editor } = this
      if (editor?.reads !== true) return Effect.succeedNone
      const { client, sessionId } = editor
      return Effect.map(
        // An editor that does not answer must not hold up a file that is on the disk.
        Effect.timeoutOption(Effect.option(client.request("fs/read_text_file", { sessionId, path })), patience),
        (answer) => Option.map(Option.flatten(answer), ({ content }) => content)
      )
    })

  readonly write: EditorFiles.Service["write"] = (path, content) =>
    Effect.suspend(() => {
      const { editor } = this
      if (editor?.writes !== true) {
        return Effect.fail("The file has unsaved changes in an editor that takes no text. Ask the person to save it.")
      }
      const { client, sessionId } = editor
      return client.request("fs/write_text_file", { sessionId, path, content }).pipe(
        Effect.mapError(({ message }) => `The editor did not write the file: ${message}`),
        Effect.timeoutFail({
          duration: patience,
          onTimeout: () => "The editor did not say whether it wrote the file. Read it again."
        }),
        Effect.asVoid
      )
    })
}

/** Those of an agent: `own`, unless it was started with others. */
export const of = (agent: object, own: AcpFiles): AcpFiles => {
  const known = started.get(agent)
  if (known !== undefined) return known
  started.set(agent, own)
  return own
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const started = new WeakMap<object, AcpFiles>()

const patience = "10 seconds"
