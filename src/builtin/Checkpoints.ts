/**
 * What files were before tools changed them, so that a person can put them back.
 *
 * ```
 *  DIRECTORY/SESSION/changes.json   which file, by which call, what it was and what it became
 *                    DIGEST         what it was
 * ```
 *
 * A change is kept before it is made. Nothing is kept of earlier turns: the last one is what is put back. A file that is too
 * large, or for which there is no room, is noted without its content. Keeping never fails: a change of which nothing is
 * kept is told as not covered when somebody wants it back.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Digest from "../core/Digest.js"
import * as Directory from "../core/Directory.js"
import { CorrelationId, SessionId, ToolCallId } from "../core/Id.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

const Version = Schema.Struct({
  /** SHA-256 of the bytes. */
  digest: Schema.String,
  mode: Schema.Number,
  /** Bytes. */
  size: Schema.Number
})
export type Version = typeof Version.Type

export const Change = Schema.Struct({
  /** Absolute, with no symbolic link in it. */
  path: Schema.String,
  /** As people are shown it. */
  shown: Schema.String,
  sessionId: SessionId,
  toolCallId: Schema.optional(ToolCallId),
  correlationId: Schema.optional(CorrelationId),
  /** 0: by the root. */
  depth: Schema.Number,
  /** Absent: there was no file. */
  before: Schema.optional(Version),
  /** Absent: the file went. */
  after: Schema.optional(Schema.Struct({ digest: Schema.String, size: Schema.Number })),
  /** Directories that were made for it, the outermost first. */
  made: Schema.Array(Schema.String),
  /** Why its content is not kept. */
  left: Schema.optional(Schema.String)
})
export type Change = typeof Change.Type

/** What is kept of one tree of sessions. Absolute paths. */
const Kept = Schema.Struct({
  changes: Schema.Array(Change),
  /** Calls whose changes were put back, by {@link callOf}. */
  undone: Schema.Array(Schema.String),
  /** Files of an undo that had begun: they are removed when it is done, or done again. */
  beside: Schema.Array(Schema.String)
})
export type Kept = typeof Kept.Type

export interface Limits {
  /** Bytes of one file. */
  readonly file: number
  /** Bytes of all files of a session. */
  readonly session: number
}

/** A call of one of the tree's sessions. */
export const callOf = ({
  sessionId,
  toolCallId
}: {
  readonly sessionId: string
  readonly toolCallId?: string | undefined
}): string => `${sessionId}/${toolCallId ?? ""}`

// -----------------------------------------------------------------------------------------------------------------
// tag
// -----------------------------------------------------------------------------------------------------------------

export interface Service {
  /** Keeps what a file is, just before it changes. `read` gives its bytes and is called when there is room for them. */
  readonly keep: (
    rootSessionId: SessionId,
    change: Change,
    read: Effect.Effect<Uint8Array, unknown>
  ) => Effect.Effect<void>
  readonly load: (rootSessionId: SessionId) => Effect.Effect<Kept>
  /** The bytes with this digest, if they are kept and whole. */
  readonly content: (rootSessionId: SessionId, digest: string) => Effect.Effect<Uint8Array | undefined>
  /** Replaces what is kept; contents that no change names go. Fails with the end of a sentence. */
  readonly save: (rootSessionId: SessionId, kept: Kept) => Effect.Effect<void, string>
  readonly forget: (rootSessionId: SessionId) => Effect.Effect<void>
}

/** Where it is not provided, nothing is kept. */
export class Checkpoints extends Context.Tag("assent/builtin/Checkpoints")<Checkpoints, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const defaults: Limits = { file: 10_000_000, session: 50_000_000 }

/** In a directory, which is made for its owner alone when something is kept. */
export const make = (
  directory: string,
  limits: Limits = defaults
): Effect.Effect<Service, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    // An id may hold anything; its digest is a name.
    const folderOf = (root: SessionId) => path.join(directory, Digest.sha256(root).slice(0, 32))
    const write = (file: string, content: Uint8Array) =>
      Effect.gen(function* () {
        const half = `${file}.new`
        yield* Effect.ignore(fileSystem.remove(half, { force: true }))
        yield* fileSystem.writeFile(half, content, { flag: "wx", mode: 0o600 })
        yield* fileSystem.rename(half, file)
      })
    return of(limits, {
      read: (root, name) => Effect.option(fileSystem.readFile(path.join(folderOf(root), name))),
      write: (root, name, content) =>
        Effect.zipRight(
          Directory.ensure(fileSystem, path, folderOf(root), 0o700),
          write(path.join(folderOf(root), name), content)
        ),
      names: (root) => Effect.orElseSucceed(fileSystem.readDirectory(folderOf(root)), () => []),
      remove: (root, name) => fileSystem.remove(path.join(folderOf(root), name), { force: true }),
      clear: (root) => fileSystem.remove(folderOf(root), { recursive: true, force: true })
    })
  })

/** Lost with the process. */
export const makeMemory = (limits: Limits = defaults): Service => {
  const sessions = new Map<SessionId, Map<string, Uint8Array>>()
  const files = (root: SessionId) => sessions.get(root) ?? new Map<string, Uint8Array>()
  return of(limits, {
    read: (root, name) => Effect.sync(() => Option.fromNullable(files(root).get(name))),
    write: (root, name, content) => Effect.sync(() => void sessions.set(root, files(root).set(name, content))),
    names: (root) => Effect.sync(() => [...files(root).keys()]),
    remove: (root, name) => Effect.sync(() => void files(root).delete(name)),
    clear: (root) => Effect.sync(() => void sessions.delete(root))
  })
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Whether an undo of the session was cut off, and is to be done again. */
export const isUnfinished = ({ load }: Service, rootSessionId: SessionId): Effect.Effect<boolean> =>
  Effect.map(load(rootSessionId), ({ beside }) => beside.length > 0)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const index = "changes.json"

interface Place {
  readonly read: (root: SessionId, name: string) => Effect.Effect<Option.Option<Uint8Array>>
  readonly write: (
    root: SessionId,
    name: string,
    content: Uint8Array
  ) => Effect.Effect<void, { readonly message: string }>
  readonly names: (root: SessionId) => Effect.Effect<ReadonlyArray<string>>
  readonly remove: (root: SessionId, name: string) => Effect.Effect<void, unknown>
  readonly clear: (root: SessionId) => Effect.Effect<void, unknown>
}

const nothing: Kept = { changes: [], undone: [], beside: [] }

const decode = Schema.decodeUnknownEither(Schema.parseJson(Kept))
const encode = Schema.encodeSync(Schema.parseJson(Kept))

const of = (limits: Limits, place: Place): Service => {
  // One change at a time, from its first look to its last write.
  const inTurn = Effect.unsafeMakeSemaphore(1).withPermits(1)
  const load = (root: SessionId) =>
    Effect.map(place.read(root, index), (found) =>
      Option.match(found, {
        onNone: () => nothing,
        // One that is damaged covers nothing.
        onSome: (bytes) => Either.getOrElse(decode(new TextDecoder().decode(bytes)), () => nothing)
      })
    )
  /** What is kept, with its size. */
  const contents = (changes: ReadonlyArray<Change>): ReadonlyMap<string, number> =>
    new Map(
      changes.flatMap(({ before, left }): ReadonlyArray<[string, number]> =>
        before === undefined || left !== undefined ? [] : [[before.digest, before.size]]
      )
    )
  const save = (root: SessionId, kept: Kept) =>
    Effect.gen(function* () {
      yield* place.write(root, index, new TextEncoder().encode(encode(kept)))
      const named = contents(kept.changes)
      for (const name of yield* place.names(root)) {
        if (name !== index && !named.has(name)) yield* Effect.ignore(place.remove(root, name))
      }
    })
  return {
    keep: (root, change, read) =>
      Effect.gen(function* () {
        const kept = yield* load(root)
        const { before } = change
        const changes = sinceTurn(kept.changes, change)
        const there = contents(changes)
        let left: string | undefined
        if (before !== undefined && !there.has(before.digest)) {
          const used = Array.from(there.values()).reduce((sum, size) => sum + size, 0)
          if (before.size > limits.file) left = `it is larger than ${bytes(limits.file)}`
          else if (before.size + used > limits.session) left = `more than ${bytes(limits.session)} would be kept`
          else yield* place.write(root, before.digest, yield* read)
        }
        yield* save(root, { ...kept, changes: [...changes, left === undefined ? change : { ...change, left }] })
      }).pipe(inTurn, Effect.ignore, Effect.uninterruptible),
    load: (root) => inTurn(load(root)),
    content: (root, digest) =>
      Effect.map(place.read(root, digest), (found) =>
        Option.getOrUndefined(Option.filter(found, (bytes) => Digest.sha256(bytes) === digest))
      ),
    save: (root, kept) => inTurn(Effect.mapError(save(root, kept), ({ message }) => message)),
    forget: (root) => inTurn(Effect.ignore(place.clear(root)))
  }
}

/**
 * The changes that may be of the same turn of the root: those behind the last one that the root made in an earlier turn.
 * A subagent's turn has another id, and what it did may belong to either.
 */
const sinceTurn = (changes: ReadonlyArray<Change>, { correlationId, depth }: Change): ReadonlyArray<Change> =>
  depth > 0
    ? changes
    : changes.slice(changes.findLastIndex((one) => one.depth === 0 && one.correlationId !== correlationId) + 1)

const bytes = (count: number): string => (count % 1_000_000 === 0 ? `${count / 1_000_000} MB` : `${count} bytes`)
