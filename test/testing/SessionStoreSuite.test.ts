/** The kit for stores tells a broken one what is wrong. Ours pass it in `journal`, `store` and `postgres`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Process } from "../../src/journal/SessionLease.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as SessionStoreSuite from "../../src/testing/SessionStoreSuite.js"

type Fresh = SessionStoreSuite.Options["fresh"]

const memory: Fresh = Effect.map(SessionStore.makeMemory, (open) => (process: Process) => Effect.succeed(open(process)))

const remembered = new Map<string, Uint8Array>()

const broken = (change: (store: SessionStore.Service) => Partial<SessionStore.Service>): Fresh =>
  Effect.map(
    memory,
    (open) => (process: Process) => Effect.map(open(process), (store) => ({ ...store, ...change(store) }))
  )

describe("a broken store", () => {
  const stores: { readonly [says: string]: Fresh } = {
    "The journal has other entries than were written": broken((store) => ({
      load: (id) => Effect.map(store.load(id), (it) => ({ ...it, entries: [...it.entries].reverse() }))
    })),
    "Two processes had the lease of one session": Effect.succeed((process: Process) =>
      Effect.flatMap(memory, (open) => open(process))
    ),
    "An answer was taken that does not fit its request": broken((store) => ({
      answer: (id, _, by) => store.answer(id, 1, by)
    })),
    "The first answer counts": broken((store) => ({
      load: (id) => Effect.map(store.load(id), (it) => ({ ...it, answers: [] }))
    })),
    "A session that a process runs was deleted": broken((store) => ({
      delete: (id) => Effect.catchTag(store.delete(id), "SessionLocked", () => Effect.void)
    })),
    "A deleted session was loaded": broken(() => ({ delete: () => Effect.void })),
    "What is open must be": broken(() => ({ openRequests: () => Effect.succeed([]) })),
    "The list must be, last used first": broken((store) => ({
      list: Effect.map(store.list, (all) => [...all].reverse())
    })),
    "Pages of 1 must make up the list": broken((store) => ({
      page: (query) => store.page({ ...query, after: undefined })
    })),
    "A page with the last session must have no `next`": broken((store) => ({
      page: (query) =>
        Effect.map(store.page(query), ({ sessions }) => {
          const last = sessions.at(-1)
          return last === undefined ? { sessions } : { sessions, next: last }
        })
    })),
    'A page of {"waiting":true} must have ses_checked': broken((store) => ({
      page: (query) => store.page({ ...query, waiting: false })
    })),
    "Content was kept that no session refers to any more": broken((store) => {
      // A store that never forgets.
      return {
        getContent: (sha256) =>
          Effect.orElse(store.getContent(sha256), () => Effect.succeed(remembered.get(sha256) ?? new Uint8Array())),
        lock: (id) =>
          Effect.map(store.lock(id), (lease) => ({
            ...lease,
            putContent: (content) => {
              remembered.set(content.sha256, content.bytes)
              return lease.putContent(content)
            }
          }))
      }
    }),
    "It failed where it must not: no such thing": broken(() => ({ load: () => Effect.die(new Error("no such thing")) }))
  }
  for (const [says, fresh] of Object.entries(stores)) {
    it.effect(`is told: ${says}`, () =>
      Effect.gen(function* () {
        const told: Array<string> = []
        for (const { check } of SessionStoreSuite.make({ fresh })) {
          const outcome = yield* Effect.either(check)
          if (outcome._tag === "Left") told.push(outcome.left.message)
          if (told.at(-1)?.startsWith(says) === true) return
        }
        assert.fail(told.join("\n"))
      })
    )
  }
})
