/**
 * A store of one's own: sessions in any `KeyValueStore` of `@effect/platform`, such as a directory or a browser's storage.
 *
 * ```
 *  sessions      the ids of all sessions
 *  session:ID    one session: an archive, as `assent export` writes it
 * ```
 *
 * It works on the store in memory and saves each change before it acknowledges it. An append rewrites its session, and one
 * process uses the values at a time. For long sessions or more processes take a database: `assent/sql`, `assent/postgres`.
 */
import * as KeyValueStore from "@effect/platform/KeyValueStore"
import { type Id, SessionArchive, type SessionLease, SessionStore, StoreError } from "assent"
import { SessionStoreSuite } from "assent/testing"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

const name = "of keys and values"

/** Opens the sessions of the store in the context; the result is the view of one process. */
export const make = Effect.gen(function* () {
  const values = yield* KeyValueStore.KeyValueStore
  const memory = yield* SessionStore.makeMemory
  const saving = yield* Effect.makeSemaphore(1)
  const unreadable = (reason: string) => new StoreError.StoreUnusable({ store: name, problem: "unreadable", reason })
  const unwritable = (reason: string) => new StoreError.StoreUnwritable({ store: name, reason })

  const read = (key: string) =>
    Effect.flatMap(Effect.mapError(values.get(key), String), (text) =>
      Option.isNone(text) ? Effect.succeed(undefined) : Effect.try({ try: () => JSON.parse(text.value), catch: String })
    ).pipe(Effect.mapError(unreadable))
  const write = (key: string, value: unknown) => Effect.mapError(values.set(key, JSON.stringify(value)), String)

  const saved = memory({ pid: 0, host: name, isAlive: () => true })
  const roots: Set<string> = new Set((yield* read("sessions")) ?? [])
  for (const root of roots) {
    const found = yield* read(`session:${root}`)
    if (found === undefined) continue
    const archive = yield* Either.mapLeft(SessionArchive.decode(found), unreadable)
    yield* SessionArchive.restore(saved, archive)
  }

  /** Writes a session as it is now, or removes it. Its id comes first and goes last, so each session is found again. */
  const save = (root: Id.SessionId) =>
    Effect.gen(function* () {
      const archive = yield* Effect.option(SessionArchive.load(saved, root))
      if (Option.isNone(archive)) {
        if (yield* Effect.mapError(values.has(`session:${root}`), String)) {
          yield* Effect.mapError(values.remove(`session:${root}`), String)
        }
        roots.delete(root)
        return yield* write("sessions", [...roots])
      }
      if (!roots.has(root)) yield* write("sessions", [...roots.add(root)])
      yield* write(`session:${root}`, yield* SessionStore.toJson(archive.value))
    }).pipe(Effect.mapError(unwritable), saving.withPermits(1), Effect.uninterruptible)

  return (process: SessionLease.Process): SessionStore.Service => {
    const store = memory(process)
    return {
      ...store,
      name,
      lock: (root) =>
        Effect.map(store.lock(root), (lease) => ({
          ...lease,
          append: (drafts) => Effect.zipRight(lease.append(drafts), drafts.length === 0 ? Effect.void : save(root))
        })),
      answer: (requestId, answer, by) =>
        Effect.gen(function* () {
          yield* store.answer(requestId, answer, by)
          const request = yield* store.findRequest(requestId)
          if (request !== undefined) yield* save(request.rootSessionId)
        }),
      delete: (root) => Effect.zipRight(store.delete(root), save(root))
    }
  }
})

/** Sessions in the `KeyValueStore` of the context. */
export const layer = (process: SessionLease.Process) =>
  Layer.effect(
    SessionStore.SessionStore,
    Effect.map(make, (open) => open(process))
  )

/** What every test begins with: an empty store, which is opened once for each process. */
const fresh = Effect.gen(function* () {
  const context = yield* Layer.build(KeyValueStore.layerMemory)
  const open = yield* Effect.provide(make, context)
  return (process: SessionLease.Process) => Effect.succeed(open(process))
})

/** In a test: `for (const { check, name } of checks) it.effect(name, () => check)`. */
export const checks = SessionStoreSuite.make({ fresh })
