/** The part of a session store's contract that is about content. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as TestClock from "effect/TestClock"
import * as Digest from "../core/Digest.js"
import { MessageId, type SessionId } from "../core/Id.js"
import type * as JournalEntry from "../journal/JournalEntry.js"
import * as SessionLease from "../journal/SessionLease.js"
import type * as SessionStore from "../journal/SessionStore.js"
import {
  expect,
  expectEntries,
  expectFailure,
  lockAndStall,
  opened,
  other,
  root,
  said,
  there,
  type Body
} from "./StoreProbe.js"

export const checks: { readonly [name: string]: Body } = {
  "keeps content once, for as long as a session refers to it": (open, store) =>
    Effect.gen(function* () {
      const [one, two] = [content(1), content(2)]
      for (const sessionId of [root, other]) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const lease = yield* store.lock(sessionId)
            yield* lease.putContent(one)
            yield* lease.putContent(one)
            if (sessionId === other) yield* lease.putContent(two)
            yield* lease.append([opened(sessionId), attached("a", one.sha256, sessionId)])
            if (sessionId === other) yield* lease.append([attached("b", two.sha256, sessionId)])
          })
        )
      }
      const again = yield* open(there)
      yield* hasContent(again, one, "The store does not return referenced content unchanged.")
      yield* hasContent(again, two, "The store does not return content of a second append unchanged.")
      yield* store.delete(root)
      yield* hasContent(store, one, "The deletion of a session took content away that another one refers to.")
      yield* again.delete(other)
      for (const gone of [one, two]) {
        yield* hasNoContent(store, gone, "Content was kept that no session refers to any more")
      }
    }),
  "writes no entry that refers to content which is not there": (_, store) =>
    Effect.gen(function* () {
      const missing = content(1)
      yield* hasNoContent(store, missing, "The store returned content that nobody put")
      const lease = yield* store.lock(root)
      yield* lease.append([opened()])
      const dangling = "An entry was written that refers to content which is not there"
      yield* expectFailure(lease.append([said("a"), attached("b", missing.sha256)]), "StoreUnwritable", dangling)
      yield* expectEntries(store, [opened()], "after an append that was refused")
      yield* lease.putContent(missing)
      yield* lease.append([attached("b", missing.sha256)])
      yield* expectEntries(store, [opened(), attached("b", missing.sha256)], "once their content was there")
    }),
  "drops content that was put and that no entry refers to when the lease ends": (_, store) =>
    Effect.gen(function* () {
      const [kept, orphan] = [content(1), content(2)]
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* store.lock(root)
          yield* lease.putContent(kept)
          yield* lease.putContent(orphan)
          yield* lease.append([opened(), attached("a", kept.sha256)])
          yield* hasContent(store, orphan, "Content is not given back while the lease holds it.")
        })
      )
      yield* hasContent(store, kept, "Content was dropped that an entry refers to.")
      yield* hasNoContent(store, orphan, "Content was kept that no entry refers to and no lease holds")
      yield* Effect.scoped(Effect.flatMap(store.lock(other), (lease) => lease.putContent(orphan)))
      yield* hasNoContent(store, orphan, "Content was kept of a session that nothing was written to")
      yield* expect((yield* store.list).length === 1, "A session is listed that nothing but content was written to.")
    }),
  "sweeps content of a process that died before it wrote the entry": (open, store) =>
    Effect.gen(function* () {
      const [orphan, another, shared] = [content(1), content(2), content(3)]
      const { lease } = yield* lockAndStall(store)
      yield* lease.putContent(shared)
      yield* lease.append([opened(), attached("a", shared.sha256)])
      yield* lease.putContent(orphan)
      const second = yield* open(there)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const next = yield* second.lock(other)
          yield* next.putContent(another)
          yield* hasContent(second, orphan, "Content was swept that the lease of a living process holds.")
          yield* TestClock.adjust(SessionLease.silentAfter)
          yield* next.putContent(shared)
          yield* hasNoContent(second, orphan, "Content of a process that had died was not swept with the next content")
          yield* hasContent(second, shared, "Content was swept with that of a dead process that an entry refers to.")
          const late = "A process went on without the content that it had put"
          yield* expectFailure(lease.append([attached("b", orphan.sha256)]), "SessionTakenOver", late)
        })
      )
      const { lease: again } = yield* lockAndStall(store)
      yield* again.putContent(orphan)
      yield* TestClock.adjust(SessionLease.silentAfter)
      yield* Effect.scoped(second.lock(root))
      yield* hasNoContent(second, orphan, "Content of a process that had died was not swept with the next lease")
      yield* hasContent(second, shared, "The next lease swept content that an entry refers to.")
    }),
  "loses no content between a process that deletes and one that puts the same": (open, store) =>
    Effect.gen(function* () {
      const same = content(1)
      const second = yield* open(there)
      for (const early of [true, false]) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const lease = yield* store.lock(root)
            yield* lease.putContent(same)
            yield* lease.append([opened(), attached("a", same.sha256)])
          })
        )
        yield* Effect.scoped(
          Effect.gen(function* () {
            const lease = yield* second.lock(other)
            if (early) yield* Effect.zipRight(lease.putContent(same), store.delete(root))
            else yield* Effect.all([lease.putContent(same), store.delete(root)], { concurrency: "unbounded" })
            yield* lease.append([opened(other), attached("b", same.sha256, other)])
          })
        )
        yield* hasContent(
          second,
          same,
          "Content was lost that one session put while another one that had it was deleted."
        )
        yield* second.delete(other)
      }
    })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Words with a file. */
const attached = (id: string, sha256: string, sessionId: SessionId = root): JournalEntry.Draft => ({
  sessionId,
  entry: {
    _tag: "MessageReceived",
    message: {
      id: MessageId.make(id),
      source: "user",
      delivery: "steer",
      text: "",
      parts: [{ type: "file", file: { name: "a.bin", mediaType: "image/png", size: 1, sha256 } }],
      at: 1
    }
  }
})

/** Bytes of every value, zero too, which differ by their first. */
const content = (first: number): SessionStore.Content => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => (at === 0 ? first : at % 251))
  return { bytes, sha256: Digest.sha256(bytes) }
}

const hasContent = (store: SessionStore.Service, { bytes, sha256 }: SessionStore.Content, sentence: string) =>
  Effect.flatMap(Effect.either(store.getContent(sha256)), (found) =>
    expect(
      Either.isRight(found) &&
        found.right.length === bytes.length &&
        found.right.every((byte, at) => byte === bytes[at]),
      sentence
    )
  )

const hasNoContent = (store: SessionStore.Service, { sha256 }: SessionStore.Content, sentence: string) =>
  expectFailure(store.getContent(sha256), "ContentUnknown", sentence)
