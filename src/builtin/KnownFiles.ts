/**
 * What agents know of files: the version that a session read or wrote last. A whole write is for a file that is still
 * as the agent knows it. Kept in memory: after a restart an agent reads a file again.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import type { Service, Target } from "./WorkspaceRoot.js"

export interface Version {
  readonly key: string
  /** Undefined for a text that is too long to be kept. */
  readonly text: string | undefined
}

/** Characters of a text that is kept; bytes of a file that is read at once. */
export const mostText = 1_000_000

export const ofText = (text: string): Version => ({
  key: Digest.sha256(text),
  text: text.length > mostText ? undefined : text
})

/** Of a file whose text is not at hand. */
export const ofInfo = ({ info }: Pick<Target, "info">): Version => ({
  key: Option.match(info, {
    onNone: () => "none",
    onSome: ({ ino, mtime, size }) =>
      [size, Option.getOrUndefined(ino), Option.getOrUndefined(mtime)?.getTime()].join(" ")
  }),
  text: undefined
})

/** The agent of the current call knows this version from now on. */
export const note = (
  workspace: Service,
  { absolute }: Pick<Target, "absolute">,
  version: Version
): Effect.Effect<void> =>
  Effect.map(Origin.current, (origin) => {
    const known = knownIn(workspace)
    const { versions } = known
    const key = keyOf(origin, absolute)
    known.characters += lengthOf(version) - lengthOf(versions.get(key))
    versions.delete(key)
    versions.set(key, version)
    for (const [oldest, old] of versions) {
      if (known.characters <= mostTexts && versions.size <= most) return
      known.characters -= lengthOf(old)
      if (versions.size > most) versions.delete(oldest)
      else versions.set(oldest, { key: old.key, text: undefined })
    }
  })

/** What the agent of the current call knows; undefined: it never read the file. */
export const find = (workspace: Service, { absolute }: Pick<Target, "absolute">): Effect.Effect<Version | undefined> =>
  Effect.map(Origin.current, (origin) => knownIn(workspace).versions.get(keyOf(origin, absolute)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Files of all sessions that are remembered, and characters of their texts. */
const most = 2_000
const mostTexts = 10_000_000

interface Known {
  readonly versions: Map<string, Version>
  characters: number
}

const kept = new WeakMap<Service, Known>()

const knownIn = (workspace: Service): Known => {
  const known = kept.get(workspace) ?? { versions: new Map(), characters: 0 }
  kept.set(workspace, known)
  return known
}

const keyOf = ({ sessionId }: Origin.Origin, absolute: string): string => `${sessionId} ${absolute}`

const lengthOf = (version: Version | undefined): number => version?.text?.length ?? 0
