import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import { type Content, MessageRouter } from "../../src/runtime/MessageRouter.js"
import * as JournalWriter from "../../src/journal/JournalWriter.js"
import { StoreUnwritable } from "../../src/journal/StoreError.js"

/** A router of a tree whose agents hear nothing: the tests file words themselves. */
const routerOf = (journal: JournalWriter.Service, before?: ReadonlyMap<string, Content>) => {
  const origin = { ...Origin.outside, agent: "main" }
  const root = { origin, session: undefined as never, profile: undefined }
  const shared = { limits: undefined, redactor: Redaction.make() }
  return new MessageRouter({ journal, nodes: [], node: () => undefined, shared }, root, before)
}

/** A router whose words are on the disk when the test says so. */
const make = (before?: ReadonlyMap<string, Content>) =>
  Effect.gen(function* () {
    const filed: Array<string> = []
    const disk = { kept: 0, frozen: false, full: false, gate: yield* Deferred.make<void>() }
    yield* Deferred.succeed(disk.gate, undefined)
    const journal: JournalWriter.Service = {
      ...JournalWriter.noop,
      enabled: true,
      isFrozen: () => disk.frozen,
      flush: Effect.suspend(() => {
        const { length } = filed
        if (disk.full) return new StoreUnwritable({ store: "here", reason: "the disk is full" })
        return Effect.map(Deferred.await(disk.gate), () => {
          disk.kept = Math.max(disk.kept, length)
        })
      })
    }
    const router = routerOf(journal, before)
    const say = (text: string, id?: string) =>
      router.take({ text }, id, (draft) => {
        filed.push(text)
        return Either.right<string | undefined>(draft.id)
      })
    return { disk, filed, router, say }
  })

const tag = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.either(effect), (either) => (Either.isLeft(either) ? either.left._tag : either.right))

describe("the words that an agent takes", () => {
  it.effect("files words under the id they have, once", () =>
    Effect.gen(function* () {
      const { filed, say } = yield* make()
      assert.strictEqual(yield* say("one", "a"), "a")
      const other = yield* Effect.flip(say("other words", "a"))
      assert.strictEqual(other._tag, "MessageDiffers")
      assert.include(other.message, "another id")
      const again = yield* Effect.flip(say("one", "a"))
      assert(again._tag === "MessageAlreadyTaken")
      assert.strictEqual(again.messageId, "a")
      assert.strictEqual(yield* say("two", "b"), "b")
      assert.isUndefined(yield* say("three"))
      assert.isUndefined(yield* say("three"))
      assert.deepStrictEqual(filed, ["one", "two", "three", "three"])
    })
  )

  it.effect("knows what another process took", () =>
    Effect.gen(function* () {
      const { filed, say } = yield* make(new Map([["a", { text: "one" }]]))
      assert.strictEqual(yield* tag(say("one", "a")), "MessageAlreadyTaken")
      assert.strictEqual(yield* tag(say("other words", "a")), "MessageDiffers")
      assert.strictEqual(yield* tag(say("two", "b")), "b")
      assert.deepStrictEqual(filed, ["two"])
    })
  )

  it.effect("returns only when the words are on the disk, also for those that come again", () =>
    Effect.gen(function* () {
      const { disk, filed, say } = yield* make()
      disk.gate = yield* Deferred.make<void>()
      const first = yield* Effect.fork(tag(say("one", "a")))
      const second = yield* Effect.fork(tag(say("one", "a")))
      yield* Effect.yieldNow()
      yield* Effect.yieldNow()
      assert.deepStrictEqual(filed, ["one"])
      assert.isNull(first.unsafePoll())
      assert.isNull(second.unsafePoll())
      yield* Deferred.succeed(disk.gate, undefined)
      assert.deepStrictEqual(
        [yield* Fiber.join(first), yield* Fiber.join(second)].sort(),
        ["MessageAlreadyTaken", "a"].sort()
      )
      assert.strictEqual(disk.kept, 1)
    })
  )

  it.effect("says that they are not kept when they are not, as often as they come", () =>
    Effect.gen(function* () {
      const { disk, filed, say } = yield* make()
      disk.full = true
      assert.strictEqual(yield* tag(say("one", "a")), "StoreUnwritable")
      assert.strictEqual(yield* tag(say("one", "a")), "StoreUnwritable")
      disk.full = false
      assert.strictEqual(yield* tag(say("one", "a")), "MessageAlreadyTaken")
      assert.deepStrictEqual(filed, ["one"])
    })
  )

  it.effect("forgets the id of words that nobody was there for", () =>
    Effect.gen(function* () {
      const { router, say } = yield* make()
      const nobody = router.take({ text: "words" }, "a", () => Either.left("nobody"))
      assert.strictEqual(yield* Effect.flip(nobody), "nobody")
      assert.strictEqual(yield* tag(say("one", "a")), "a")
    })
  )

  it.effect("takes no words that say nothing", () =>
    Effect.gen(function* () {
      const { filed, router, say } = yield* make()
      for (const blank of ["", " ", "\n\t\r\n", "\u00a0\u2003\u3000", "\u200b\ufeff\u2060", "\u0000\u001b"]) {
        assert.strictEqual(yield* tag(say(blank)), "MessageBlank")
        assert.strictEqual(yield* tag(say(blank, "a")), "MessageBlank")
        assert.strictEqual(yield* tag(router.admit({ text: blank }, Effect.succeed(1))), "MessageBlank")
      }
      assert.deepStrictEqual(filed, [])
      // Nor is the id spent.
      assert.strictEqual(yield* tag(say("?", "a")), "a")
    })
  )

  it.effect("takes nothing once it is closed, or the journal is frozen, not even in the middle of it", () =>
    Effect.gen(function* () {
      const { disk, filed, router, say } = yield* make()
      const late = router.take({ text: "words" }, undefined, () => {
        disk.frozen = true
        return Either.right(undefined)
      })
      assert.strictEqual(yield* tag(late), "AgentStopped")
      assert.strictEqual(yield* tag(say("one", "a")), "AgentStopped")
      assert.strictEqual(yield* tag(router.admit({ text: "words" }, Effect.succeed(1))), "AgentStopped")
      disk.frozen = false
      assert.strictEqual(yield* tag(router.admit({ text: "words" }, Effect.succeed(1))), 1)
      assert.isFalse(router.isClosed)
      router.close()
      assert.isTrue(router.isClosed)
      assert.strictEqual(yield* tag(say("one", "a")), "AgentStopped")
      assert.deepStrictEqual(filed, [])
    })
  )

  it.effect("does without a disk where nothing is kept", () =>
    Effect.gen(function* () {
      const router = routerOf(JournalWriter.noop)
      const take = router.take({ text: "words" }, "a", (draft) => Either.right(draft.id))
      assert.strictEqual<string | undefined>(yield* tag(take), "a")
      assert.strictEqual(yield* tag(take), "MessageAlreadyTaken")
    })
  )
})
