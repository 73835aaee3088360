/**
 * The trails of a workspace and their heads, as files.
 *
 * ```
 * <directory>/<sessionId>.jsonl        the trail of one root session, one record a line
 * <headDirectory>/<sessionId>.json     its head: count and hash of what was sealed; kept where the agent cannot write
 * ```
 *
 * Characters that a file name cannot hold are percent-encoded.
 */
import type * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { SessionId } from "../core/Id.js"
import { AuditBroken } from "./AuditBroken.js"
import * as AuditChain from "./AuditChain.js"

export interface Archive {
  /** Of the trails, absolute. */
  readonly directory: string
  /** Of the heads, absolute; several workspaces may share it. */
  readonly headDirectory: string
}

/** Where trail and head of a root session are; whether or not they exist. */
export const files = (
  path: Path.Path,
  { directory, headDirectory }: Archive,
  sessionId: SessionId
): AuditChain.Files => {
  const name = encodeURIComponent(sessionId).replaceAll(".", "%2E")
  return { trail: path.join(directory, `${name}.jsonl`), head: path.join(headDirectory, `${name}.json`), sessionId }
}

/** Reads what is there of a trail. One that is being written is read between two of its writes, if there is a pause. */
export const read = (files: AuditChain.Files): Effect.Effect<AuditChain.Evidence, AuditBroken, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    let head = yield* readIfThere(files.head)
    for (let attempt = 1; ; attempt++) {
      // The head first: a trail that grows meanwhile is one whose head lags, never one that was cut.
      const trail = yield* readIfThere(files.trail)
      const after = yield* readIfThere(files.head)
      if (attempt === maxReads || isSame(head, after)) return { files, trail, head }
      head = after
    }
  })

/**
 * Verifies a trail against its head: yields its records when every one of them, their order and their number are as they
 * were written, and fails naming the first that is not. Give the key if the trail was written with one.
 */
export const verify = (
  files: AuditChain.Files,
  key?: AuditChain.Key
): Effect.Effect<AuditChain.Chain, AuditBroken, FileSystem.FileSystem> =>
  Effect.flatMap(read(files), (evidence) => AuditChain.check(evidence, key))

/** Verifies the trail of a root session. A trail that was put in the place of another does not verify. */
export const verifySession = (
  archive: Archive,
  sessionId: SessionId,
  key?: AuditChain.Key
): Effect.Effect<AuditChain.Chain, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(Path.Path, (path) => verify(files(path, archive, sessionId), key))

/**
 * The root sessions that have a trail in the directory, and those whose head says that they had one, in order of their
 * names.
 */
export const sessions = (
  archive: Archive
): Effect.Effect<ReadonlyArray<SessionId>, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const trails = yield* namesIn(archive.directory, ".jsonl")
    const heads = yield* namesIn(archive.headDirectory, ".json")
    const lost = yield* Effect.filter(
      heads.filter((sessionId) => !trails.includes(sessionId)),
      (sessionId) =>
        Effect.map(
          readIfThere(files(path, archive, sessionId).head),
          (head) => head !== undefined && AuditChain.peekHead(head)?.directory === archive.directory
        )
    )
    return [...trails, ...lost].sort()
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxReads = 5

const isSame = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a === b || (a !== undefined && a.length === b?.length && a.every((byte, index) => byte === b[index]))

const inaccessible = (file: string) => (error: PlatformError.PlatformError) =>
  new AuditBroken({ file, problem: "inaccessible", reason: error.message })

const isNotFound = (error: PlatformError.PlatformError): boolean =>
  error._tag === "SystemError" && error.reason === "NotFound"

const readIfThere = (file: string): Effect.Effect<Uint8Array | undefined, AuditBroken, FileSystem.FileSystem> =>
  FileSystem.FileSystem.pipe(
    Effect.flatMap((fs) => fs.readFile(file)),
    Effect.catchIf(isNotFound, () => Effect.succeed(undefined)),
    Effect.mapError(inaccessible(file))
  )

const namesIn = (
  directory: string,
  ending: string
): Effect.Effect<ReadonlyArray<SessionId>, AuditBroken, FileSystem.FileSystem> =>
  FileSystem.FileSystem.pipe(
    Effect.flatMap((fs) => fs.readDirectory(directory)),
    Effect.catchIf(isNotFound, () => Effect.succeed([])),
    Effect.mapBoth({
      onFailure: inaccessible(directory),
      onSuccess: (names) =>
        names.filter((name) => name.endsWith(ending)).flatMap((name) => Option.toArray(sessionOf(name, ending)))
    })
  )

const sessionOf = (name: string, ending: string): Option.Option<SessionId> =>
  Option.map(Either.getRight(Either.try(() => decodeURIComponent(name.slice(0, -ending.length)))), (id) =>
    SessionId.make(id)
  )
