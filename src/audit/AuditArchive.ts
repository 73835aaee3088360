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
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as FileFailure from "../core/FileFailure.js"
import { SessionId } from "../core/Id.js"
import { AuditBroken } from "./AuditBroken.js"
import * as AuditChain from "./AuditChain.js"
import type { AuditRecord, Decided } from "./AuditRecord.js"

export interface Archive {
  /** The directory of the trails, absolute. */
  readonly directory: string
  /** The directory of the heads, absolute; several workspaces may share it. */
  readonly headDirectory: string
}

/** Trails and heads, wherever they are kept. */
export interface Source {
  /** The place, in messages. */
  readonly name: string
  /** The names of trail and head in messages. */
  readonly files: (sessionId: SessionId) => AuditChain.Files
  /** Absent when there is none. */
  readonly head: (sessionId: SessionId) => Effect.Effect<Uint8Array | undefined, AuditBroken>
  /**
   * Hands over each whole line, without its end; the bytes are valid until the callback returns. Yields how many bytes
   * follow the last line; nothing when there is no trail.
   */
  readonly eachLine: (
    sessionId: SessionId,
    take: (line: Uint8Array) => Effect.Effect<void, AuditBroken>
  ) => Effect.Effect<number | undefined, AuditBroken>
  /** The root sessions that have a trail, or had one. */
  readonly sessions: Effect.Effect<ReadonlyArray<SessionId>, AuditBroken>
}

/** The files as a source. */
export const sourceOf = (from: Archive | Source): Effect.Effect<Source, never, FileSystem.FileSystem | Path.Path> => {
  if ("eachLine" in from) return Effect.succeed(from)
  return Effect.map(Effect.context<FileSystem.FileSystem | Path.Path>(), (context) => {
    const of = (sessionId: SessionId) => files(Context.get(context, Path.Path), from, sessionId)
    return {
      name: from.directory,
      files: of,
      head: (sessionId) => Effect.provide(readIfThere(of(sessionId).head), context),
      eachLine: (sessionId, take) => Effect.provide(eachLine(of(sessionId).trail, take), context),
      sessions: Effect.provide(sessionsIn(from), context)
    }
  })
}

/** The paths of a root session's trail and head, existing or not. */
export const files = (
  path: Path.Path,
  { directory, headDirectory }: Archive,
  sessionId: SessionId
): AuditChain.Files => {
  const name = encodeURIComponent(sessionId).replaceAll(".", "%2E")
  return { trail: path.join(directory, `${name}.jsonl`), head: path.join(headDirectory, `${name}.json`), sessionId }
}

/**
 * Reads a trail and its head. While a trail is being written, it is read between two of its writes, if there is a
 * pause.
 */
export const read = (files: AuditChain.Files): Effect.Effect<AuditChain.Evidence, AuditBroken, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    let head = yield* readIfThere(files.head)
    for (let attempt = 1; ; attempt++) {
      // The head is read first: if the trail grows meanwhile, its head lags, which is allowed. The other order would
      // look like a cut trail.
      const trail = yield* readIfThere(files.trail)
      const after = yield* readIfThere(files.head)
      if (attempt === maxReads || isSame(head, after)) return { files, trail, head }
      head = after
    }
  })

/**
 * Verifies a trail against its head. Yields its records when each of them, their order and their number are as written;
 * fails naming the first one that is not. Give the key if the trail was written with one.
 */
export const verify = (
  files: AuditChain.Files,
  key?: AuditChain.Key
): Effect.Effect<AuditChain.Chain, AuditBroken, FileSystem.FileSystem> =>
  Effect.flatMap(read(files), (evidence) => AuditChain.check(evidence, key))

/** Verifies the trail of a root session. A trail in the place of another one does not verify. */
export const verifySession = (
  archive: Archive,
  sessionId: SessionId,
  key?: AuditChain.Key
): Effect.Effect<AuditChain.Chain, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(Path.Path, (path) => verify(files(path, archive, sessionId), key))

/**
 * The decisions in the trail of a root session, which is verified before. What a process that died had not sealed took no
 * effect, and is not among them.
 */
export const decisions = (
  archive: Archive,
  sessionId: SessionId,
  key?: AuditChain.Key
): Effect.Effect<ReadonlyArray<Decided>, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const evidence = yield* read(files(yield* Path.Path, archive, sessionId))
    const { unsealed } = yield* AuditChain.recover(evidence, key)
    const records = AuditChain.peek(evidence.trail ?? new Uint8Array())
    return records.slice(0, records.length - unsealed).filter((record) => record?._tag === "Decided")
  })

/** A verified trail, without its records. */
export interface Verified extends AuditChain.Summary {
  /** What later processes found wrong when they continued the trail; the first hundred. */
  readonly reopened: ReadonlyArray<Extract<AuditRecord, { readonly _tag: "Reopened" }>>
  /** Questions that were left open, and about which no later record decides; the first hundred. */
  readonly open: ReadonlyArray<Extract<AuditRecord, { readonly _tag: "Decided" }>>
}

/** Like {@link verifySession}, in memory that is independent of the trail's length. */
export const verifyStreamed = (
  from: Archive | Source,
  sessionId: SessionId,
  key?: AuditChain.Key
): Effect.Effect<Verified, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const source = yield* sourceOf(from)
    const of = source.files(sessionId)
    let head = yield* source.head(sessionId)
    for (let attempt = 1; ; attempt++) {
      const reopened: Array<Verified["reopened"][number]> = []
      const open = new Map<string, Verified["open"][number]>()
      const follower = new AuditChain.Follower(of, key, AuditChain.sealedCount(head))
      let lines = 0
      const torn = yield* source.eachLine(sessionId, (line) =>
        Either.map(follower.take(AuditChain.lineOf(line)), (record) => {
          lines++
          if (record._tag === "Decided" && record.requestId !== undefined) {
            if (record.outcome === "left_open") {
              if (open.size < 100 || open.has(record.requestId)) open.set(record.requestId, record)
            } else if (record.outcome !== "voted") open.delete(record.requestId)
          }
          if (record._tag !== "Reopened" || (record.unsealed === 0 && record.torn === 0)) return
          if (reopened.length < 100) reopened.push(record)
        })
      )
      const after = yield* source.head(sessionId)
      if (attempt < maxReads && !isSame(head, after)) {
        head = after
        continue
      }
      const chain = lines === 0 || torn === undefined ? undefined : yield* follower.end(torn)
      const trail = torn === undefined ? undefined : { torn, chain }
      return { ...(yield* AuditChain.judge({ files: of, head, trail }, key)), reopened, open: [...open.values()] }
    }
  })

/** The outline of a trail, unverified: the number of lines, and the first two records and the last one. */
export interface Extent {
  readonly lines: number
  readonly ends: ReadonlyArray<AuditRecord>
}

/** Absent when there is no trail. Memory is independent of the trail's length. */
export const extent = (
  from: Archive | Source,
  sessionId: SessionId
): Effect.Effect<Extent | undefined, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    let lines = 0
    const first: Array<Uint8Array> = []
    let last: Uint8Array | undefined
    const torn = yield* (yield* sourceOf(from)).eachLine(sessionId, (line) => {
      lines++
      if (lines <= 2) first.push(line.slice())
      last = keep(last, line)
      return Either.void
    })
    const ends = [...first, ...(last === undefined ? [] : [last])].flatMap(
      (line) => AuditChain.peekLine(AuditChain.lineOf(line)) ?? []
    )
    return torn === undefined ? undefined : { lines, ends }
  })

/**
 * Hands over the record in each line, unverified; nothing for a line that is no record. Yields whether there is a
 * trail. Memory is independent of the trail's length.
 */
export const peekEach = (
  from: Archive | Source,
  sessionId: SessionId,
  take: (record: AuditRecord | undefined) => Effect.Effect<void>
): Effect.Effect<boolean, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(sourceOf(from), ({ eachLine }) =>
    Effect.map(
      eachLine(sessionId, (line) => take(AuditChain.peekLine(AuditChain.lineOf(line)))),
      (torn) => torn !== undefined
    )
  )

/** The root sessions with a trail in the directory, and those whose head says that they had one, ordered by name. */
export const sessions = (
  from: Archive | Source
): Effect.Effect<ReadonlyArray<SessionId>, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(sourceOf(from), ({ sessions }) => sessions)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sessionsIn = (
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

const maxReads = 5
/** Bytes read at once, and bytes of the longest line: our records are far shorter. */
const chunk = 65_536
const longestLine = 8_000_000

/**
 * Hands over each whole line, without its end; the bytes are valid until the callback returns. Yields how many bytes
 * follow the last line; nothing when there is no such file.
 */
const eachLine = (
  file: string,
  take: (line: Uint8Array) => Effect.Effect<void, AuditBroken>
): Effect.Effect<number | undefined, AuditBroken, FileSystem.FileSystem> =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const handle = yield* fs.open(file, { flag: "r" })
      // One buffer for all reads: discarded buffers count until they are collected.
      const buffer = new Uint8Array(chunk)
      let held: Array<Uint8Array> = []
      let length = 0
      for (;;) {
        const size = Number(yield* handle.read(buffer))
        if (size === 0) return length
        let from = 0
        for (let end = buffer.indexOf(lineEnd); end >= 0 && end < size; end = buffer.indexOf(lineEnd, from)) {
          const piece = buffer.subarray(from, end)
          // A longer line is no record, so its rest need not be kept.
          const isLong = length + piece.length > longestLine
          yield* take(isLong ? noLine : held.length === 0 ? piece : joined([...held, piece]))
          held = []
          length = 0
          from = end + 1
        }
        length += size - from
        if (length > longestLine) held = []
        else if (size > from) held.push(buffer.slice(from, size))
      }
    })
  ).pipe(
    Effect.catchTags({
      BadArgument: (error) => inaccessible(file)(error),
      SystemError: (error) => (isNotFound(error) ? Effect.succeed(undefined) : inaccessible(file)(error))
    })
  )

const lineEnd = 10
/** These bytes are no text in any encoding. */
const noLine = Uint8Array.of(0xff)

/** A copy, in the former buffer when it fits. */
const keep = (before: Uint8Array | undefined, line: Uint8Array): Uint8Array => {
  const room = before !== undefined && before.buffer.byteLength >= line.length ? before.buffer : undefined
  const copy = new Uint8Array(room ?? new ArrayBuffer(line.length * 2), 0, line.length)
  copy.set(line)
  return copy
}

const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

const isSame = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean =>
  a === b || (a !== undefined && a.length === b?.length && a.every((byte, index) => byte === b[index]))

const inaccessible = (file: string) => (error: PlatformError.PlatformError) =>
  new AuditBroken({ file, problem: "inaccessible", reason: FileFailure.reason(error) })

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
