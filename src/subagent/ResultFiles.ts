/** Files of tool results: they are checked and stored, and the model gets them with the results of the step. */
import * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import * as InputTaking from "../inbox/InputTaking.js"
import type { Part } from "../inbox/Message.js"
import type { Content } from "../journal/SessionStore.js"
import * as Limits from "../turn/Limits.js"
import type { AgentTree } from "./AgentTree.js"

/** A file of a result. Its bytes must be of the type. */
export interface ResultFile {
  readonly bytes: Uint8Array
  readonly mediaType: string
  readonly name: string
}

/**
 * Attaches files, behind words, for the model of a session of the tree. Yields why a file is not attached, as a sentence for
 * each file. Undefined: the model gets the file.
 */
export const attach = (
  tree: AgentTree,
  sessionId: SessionId,
  words: string,
  files: ReadonlyArray<ResultFile>
): Effect.Effect<ReadonlyArray<string | undefined>> =>
  Effect.gen(function* () {
    const session = tree.node(sessionId)?.session
    if (session === undefined) return files.map(() => "The session has ended.")
    const { limits, redactor } = tree.shared
    const most = Limits.withDefaults(limits)
    const model = yield* session.model
    const parts: Array<Part> = []
    const kept: Array<Content> = []
    let total = 0
    const problems = yield* Effect.forEach(files, ({ bytes, mediaType, name }) => {
      total += bytes.length
      if (parts.length >= most.inputFiles) return Effect.succeed(`A result has at most ${most.inputFiles} files.`)
      if (total > most.inputTotalBytes) return Effect.succeed("The files of the result are too large together.")
      return Effect.match(InputTaking.take([{ type: "file", bytes, mediaType, name }], most, redactor), {
        onFailure: ({ message }) => message,
        onSuccess: ({ contents, draft }) => {
          if (InputTaking.notTaken(draft, model) !== undefined) return `This model takes no ${mediaType}.`
          parts.push(...(draft.parts ?? []))
          kept.push(...contents)
          return undefined
        }
      })
    })
    if (parts.length === 0) return problems
    const stored = yield* Effect.either(tree.journal.keep(kept))
    if (stored._tag === "Left") return problems.map((problem) => problem ?? "The store does not take the file.")
    session.send({ text: words, parts: [{ type: "text", text: words }, ...parts], source: "system" }, "along")
    return problems
  })
