/**
 * The files of a resumed session, read from the store: its model is given them again. A journal has their digests only.
 */
import * as Effect from "effect/Effect"
import * as Attachment from "../core/Attachment.js"
import * as AttachedFile from "../conversation/AttachedFile.js"
import type { Message, Part } from "../inbox/Message.js"
import type { SessionSnapshot, TreeSnapshot } from "./SessionSnapshot.js"
import type * as SessionStore from "./SessionStore.js"
import type * as StoreError from "./StoreError.js"

/** The same tree with the bytes of its files, each content once. What the store has lost, the model is told of. */
export const load = (
  store: Pick<SessionStore.Service, "getContent">,
  tree: TreeSnapshot
): Effect.Effect<TreeSnapshot, StoreError.StoreUnusable> =>
  Effect.gen(function* () {
    const digests = new Set(tree.sessions.filter(({ closed }) => !closed).flatMap(digestsIn))
    if (digests.size === 0) return tree
    const contents = new Map<string, Uint8Array>()
    for (const sha256 of digests) {
      const bytes = yield* Effect.catchTag(store.getContent(sha256), "ContentUnknown", () => Effect.succeed(undefined))
      if (bytes !== undefined) contents.set(sha256, bytes)
    }
    return { ...tree, sessions: tree.sessions.map((session) => loaded(session, contents)) }
  })

/** The files that came with the words that began the running turn. */
export const inputOf = ({ history, turn }: SessionSnapshot): ReadonlyArray<Attachment.Attachment> =>
  history
    .filter(({ options }) => turn?.input.some((id) => id === options["assent"]?.["messageId"]))
    .flatMap(({ content }) => (typeof content === "string" ? [] : content))
    .flatMap((part) => (part.type === "file" ? (AttachedFile.of(part) ?? []) : []))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const digestsIn = ({ history, waiting }: SessionSnapshot): ReadonlyArray<string> => [
  ...AttachedFile.missingIn(history),
  ...waiting.flatMap(({ parts = [] }) => parts.flatMap((part) => (part.type === "file" ? [part.file.sha256] : [])))
]

const loaded = (session: SessionSnapshot, contents: AttachedFile.Contents): SessionSnapshot => ({
  ...session,
  history: session.history.map((message) => AttachedFile.loaded(message, contents)),
  waiting: session.waiting.map((message): Message => {
    const { parts, ...rest } = message
    return parts === undefined ? message : { ...rest, parts: parts.map((part) => withBytes(part, contents)) }
  })
})

const withBytes = (part: Part, contents: AttachedFile.Contents): Part => {
  if (part.type === "text") return part
  const { file } = part
  const bytes = contents.get(file.sha256)
  return bytes === undefined ? { type: "text", text: AttachedFile.lost(file) } : { type: "file", file, bytes }
}
