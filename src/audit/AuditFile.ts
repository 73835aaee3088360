/**
 * Writes audit trails to files, so that no record can be changed, removed, moved or added unnoticed.
 *
 * ```
 *  record ─► waiting ─► writer: append all that wait ─► fsync ─► head beside, fsync, rename ─► record returns
 * ```
 *
 * One fiber writes. It takes all waiting records at once, so decisions made at the same time share the cost of reaching
 * the disk (a few milliseconds). `record` returns when trail and head are on the disk: a decision that took effect is
 * there after a crash or a power cut. A failed write is undone, and its decisions fail as `AuditUnwritable`.
 *
 * An existing trail is verified as a whole before anything is added, and continues with a record that says so. A trail
 * that does not verify is left alone: nothing can be recorded in it, so nothing is granted.
 *
 * @since 0.1.0
 */
import type * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import type * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Directory from "../core/Directory.js"
import * as FileFailure from "../core/FileFailure.js"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import * as AuditArchive from "./AuditArchive.js"
import type { AuditBroken } from "./AuditBroken.js"
import * as AuditChain from "./AuditChain.js"
import * as AuditRecord from "./AuditRecord.js"
import * as AuditTrail from "./AuditTrail.js"

export { AuditBroken } from "./AuditBroken.js"
export type { Key } from "./AuditChain.js"

/**
 * Where trails are kept, and what seals them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The directory of the trails; created when the first one is written. Keep it out of reach of the agent's tools. */
  readonly directory: string
  /** The directory of the heads. Keep it in another place, where a process that can change the trails cannot write. */
  readonly headDirectory: string
  /** Makes every hash an HMAC. A trail is written and verified with the same key. */
  readonly key?: AuditChain.Key | undefined
  /** Masks declared secrets and the shapes of tokens in every text. Default: the shapes only. */
  readonly redactor?: Redaction.Redactor | undefined
}

/**
 * Which decisions are read.
 *
 * @since 0.1.0
 * @category models
 */
export interface Reading extends Pick<Options, "directory" | "headDirectory" | "key"> {
  /** Of this root session alone. Default: of all that have a trail in the directory, ordered by their ids. */
  readonly sessionId?: SessionId | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A trail for each root session. Fails when the directories cannot be written to; creates nothing yet. Closing the
 * scope writes the waiting records; later records fail.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<AuditTrail.Service, AuditTrail.AuditUnwritable, Scope.Scope | FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const ids = yield* Id.IdGenerator
    const directory = path.resolve(options.directory)
    const headDirectory = path.resolve(options.headDirectory)
    yield* requireWritable(fs, path, directory)
    yield* requireWritable(fs, path, headDirectory)
    const writer = new Writer(fs, path, { ...options, directory, headDirectory }, Id.session(ids))
    yield* Effect.addFinalizer(() => writer.close)
    yield* Effect.forkScoped(writer.run)
    return writer
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * Keeps a file a session; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<AuditTrail.AuditTrail, AuditTrail.AuditUnwritable, FileSystem.FileSystem | Path.Path> =>
  Layer.scoped(AuditTrail.AuditTrail, make(options))

/**
 * Like {@link layer}, with settings from `Config`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig = (
  options: Config.Config.Wrap<Options>
): Layer.Layer<
  AuditTrail.AuditTrail,
  AuditTrail.AuditUnwritable | ConfigError.ConfigError,
  FileSystem.FileSystem | Path.Path
> => Layer.unwrapEffect(Effect.map(Config.unwrap(options), layer))

// -----------------------------------------------------------------------------------------------------------------
// reading
// -----------------------------------------------------------------------------------------------------------------

/**
 * The decisions that were written down. Each trail is verified before the first of its
 * decisions is told, and one trail at a time is in memory. A trail in which a record was changed, removed, moved or added
 * fails as {@link AuditBroken}. What a process that died had not sealed took no effect, and is left out.
 *
 * A trail may be read while it is written.
 *
 * @example
 * ```ts
 * import * as AuditFile from "assent/audit/AuditFile"
 * import { Stream } from "effect"
 *
 * export const refused = AuditFile.decisions({ directory: "audit", headDirectory: "heads" }).pipe(
 *   Stream.filter(({ outcome }) => outcome === "denied")
 * )
 * ```
 *
 * @since 0.1.0
 * @category operations
 */
export const decisions = (
  options: Reading
): Stream.Stream<AuditRecord.Decided, AuditBroken, FileSystem.FileSystem | Path.Path> =>
  Stream.unwrap(
    Effect.map(Path.Path, (path) => {
      const { key, sessionId } = options
      const directory = path.resolve(options.directory)
      const archive = { directory, headDirectory: path.resolve(options.headDirectory) }
      const sessions = sessionId === undefined ? AuditArchive.sessions(archive) : Effect.succeed([sessionId])
      return Stream.flatMap(Stream.fromIterableEffect(sessions), (session) =>
        Stream.fromIterableEffect(AuditArchive.decisions(archive, session, key))
      )
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Resume = (effect: Effect.Effect<void, AuditTrail.AuditUnwritable>) => void

interface Waiting extends AuditRecord.Decision {
  readonly root: SessionId
  readonly resume: Resume
}

/** A trail that is being written. */
interface Open {
  readonly sessionId: SessionId
  readonly files: AuditChain.Files
  readonly last: AuditChain.Link
  /** The file's expected size in bytes. */
  readonly size: number
  /** The records that the next batch begins with. */
  readonly first: ReadonlyArray<AuditRecord.Content>
}

class Writer implements AuditTrail.Service {
  /**
   * Recording fibers add entries; the one writing fiber takes them all. Its length is the number of fibers that wait
   * for their record; it is never full. Closing the scope writes the rest and ends it.
   */
  private waiting: Array<Waiting> = []
  private wake: (() => void) | undefined
  private closed = false
  private readonly trails = new Map<SessionId, Open>()
  private readonly redactor: Redaction.Redactor

  constructor(
    private readonly fs: FileSystem.FileSystem,
    private readonly path: Path.Path,
    private readonly options: Options,
    /** The trail for decisions outside of any session. */
    private readonly outside: SessionId
  ) {
    this.redactor = options.redactor ?? Redaction.shapesOnly
  }

  readonly record = (entry: AuditRecord.AuditEntry): Effect.Effect<void, AuditTrail.AuditUnwritable> =>
    Effect.async((resume) => {
      const root = entry.rootSessionId === Origin.outside.rootSessionId ? this.outside : entry.rootSessionId
      if (this.closed) return resume(Effect.fail(this.unwritable(root)("the program is ending")))
      // Made here, not in the writer: the digest must be of the arguments as they are now.
      const decision = AuditRecord.decision(entry, this.redactor)
      if (Either.isLeft(decision)) return resume(Effect.fail(this.unwritable(root)(decision.left)))
      this.waiting.push({ root, ...decision.right, resume })
      this.wake?.()
    })

  readonly release = (rootSessionId: SessionId): Effect.Effect<void> =>
    Effect.sync(() => {
      this.trails.delete(rootSessionId)
    })

  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.zipRight(
      Effect.async<void>((resume) => {
        if (this.waiting.length > 0) return resume(Effect.void)
        this.wake = () => {
          this.wake = undefined
          resume(Effect.void)
        }
        return Effect.sync(() => {
          this.wake = undefined
        })
      }),
      Effect.uninterruptible(Effect.suspend(() => this.flush))
    )
  )

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.closed = true
    return this.flush
  })

  /** Writes all waiting records; different trails at the same time. */
  private readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    const batches = new Map<SessionId, Array<Waiting>>()
    for (const waiting of this.waiting) {
      const batch = batches.get(waiting.root)
      if (batch === undefined) batches.set(waiting.root, [waiting])
      else batch.push(waiting)
    }
    this.waiting = []
    return Effect.forEach(
      batches,
      ([root, batch]) =>
        Effect.map(Effect.exit(this.write(root, batch)), (exit) => {
          for (const { resume } of batch) resume(exit)
        }),
      { concurrency: 8, discard: true }
    )
  })

  private write(root: SessionId, batch: ReadonlyArray<Waiting>): Effect.Effect<void, AuditTrail.AuditUnwritable> {
    return Effect.gen(this, function* () {
      const trail = this.trails.get(root) ?? (yield* this.open(root, batch[0]?.forkOf))
      // After any failure from here on, the next record reads the files again.
      this.trails.delete(root)
      let { last } = trail
      let text = ""
      for (const content of [...trail.first, ...batch.map(({ decided }) => decided)]) {
        const { line, link } = AuditChain.append(last, content, this.options.key)
        last = link
        text += line
      }
      const size = yield* this.append(trail, text)
      yield* Effect.onError(this.writeHead(trail, last), () => this.undo(trail))
      this.trails.set(root, { ...trail, last, size, first: [] })
    }).pipe(
      Effect.catchTags({ BadArgument: this.failed(root), SystemError: this.failed(root) }),
      Effect.catchAllDefect((defect) => Effect.fail(this.unwritable(root)(`writing crashed: ${String(defect)}`)))
    )
  }

  /** Yields the file's new size. */
  private append(trail: Open, text: string) {
    const bytes = new TextEncoder().encode(text)
    return Effect.scoped(
      Effect.gen(this, function* () {
        const file = yield* this.fs.open(trail.files.trail, { flag: "a", mode: 0o600 })
        const { size } = yield* file.stat
        if (Number(size) !== trail.size) {
          return yield* this.unwritable(trail.sessionId)(`${trail.files.trail} was changed by somebody else`)
        }
        yield* Effect.onError(Effect.zipRight(file.writeAll(bytes), file.sync), () => this.undo(trail))
        return trail.size + bytes.length
      })
    )
  }

  /** Removes a partial write, as far as possible. */
  private undo({ files, size }: Open): Effect.Effect<void> {
    return Effect.ignore(this.fs.truncate(files.trail, size))
  }

  private writeHead({ files, sessionId }: Open, { hash, seq }: AuditChain.Link) {
    const { directory } = this.options
    const text = AuditChain.renderHead({ sessionId, directory, count: seq, hash }, this.options.key)
    const half = `${files.head}.new`
    const write = Effect.scoped(
      Effect.flatMap(this.fs.open(half, { flag: "w", mode: 0o600 }), (file) =>
        Effect.zipRight(file.writeAll(new TextEncoder().encode(text)), file.sync)
      )
    )
    return Effect.zipRight(write, this.fs.rename(half, files.head))
  }

  private open(sessionId: SessionId, forkOf: AuditRecord.ForkOf | undefined) {
    return Effect.gen(this, function* () {
      const { directory, headDirectory, key } = this.options
      const files = AuditArchive.files(this.path, { directory, headDirectory }, sessionId)
      yield* Directory.ensure(this.fs, this.path, directory, 0o700)
      yield* Directory.ensure(this.fs, this.path, headDirectory, 0o700)
      const unusable = (broken: AuditBroken) => this.unwritable(sessionId)(broken.message.replace(/\.$/, ""))
      const evidence = yield* Effect.mapError(
        Effect.provideService(AuditArchive.read(files), FileSystem.FileSystem, this.fs),
        unusable
      )
      const at = yield* Clock.currentTimeMillis
      const opened = AuditRecord.opened(sessionId, at, key && AuditChain.fingerprint(key), forkOf)
      const fresh: Open = { sessionId, files, last: AuditChain.start, size: 0, first: [opened] }
      if (evidence.trail === undefined && evidence.head === undefined) {
        // The head comes first: from now on a trail without a head is one whose head was removed.
        yield* this.writeHead(fresh, AuditChain.start)
        return fresh
      }
      const left = yield* Either.mapLeft(AuditChain.recover(evidence, key), unusable)
      if (left.torn > 0) yield* this.fs.truncate(files.trail, left.size)
      const reopened: AuditRecord.Content = { _tag: "Reopened", at, unsealed: left.unsealed, torn: left.torn }
      return {
        ...fresh,
        last: left.last,
        size: left.size,
        first: left.last.seq > 0 ? [reopened] : left.torn > 0 ? [opened, reopened] : [opened]
      }
    })
  }

  private readonly unwritable =
    (sessionId: SessionId) =>
    (reason: string): AuditTrail.AuditUnwritable =>
      new AuditTrail.AuditUnwritable({ directory: this.options.directory, sessionId, reason })

  private failed(sessionId: SessionId) {
    return (error: PlatformError.PlatformError) => Effect.fail(this.unwritable(sessionId)(FileFailure.reason(error)))
  }
}

/** Fails unless the directory can be written to, or the one in which it would have to be created. */
const requireWritable = (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  directory: string
): Effect.Effect<void, AuditTrail.AuditUnwritable> =>
  Effect.gen(function* () {
    let place = directory
    while (!(yield* fs.exists(place)) && path.dirname(place) !== place) place = path.dirname(place)
    const { type } = yield* fs.stat(place)
    if (type !== "Directory") {
      return yield* new AuditTrail.AuditUnwritable({ directory, reason: `${place} is not a directory` })
    }
    yield* fs.access(place, { writable: true })
  }).pipe(
    Effect.mapError((error) =>
      error._tag === "AuditUnwritable"
        ? error
        : new AuditTrail.AuditUnwritable({ directory, reason: FileFailure.reason(error) })
    )
  )
