import * as KeyValueStore from "@effect/platform/KeyValueStore"
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Digest from "../../src/core/Digest.js"
import type { SessionId } from "../../src/core/Id.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"
import type { Process } from "../../src/journal/SessionLease.js"
import * as KeyValueSessionStore from "../../src/store/KeyValueSessionStore.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"
import { crashSuite } from "../suite/crashSuite.js"
import { persistenceSuite } from "../suite/persistenceSuite.js"
import { sessionStoreSuite } from "../suite/sessionStoreSuite.js"

const { attached, content, draft, opened, received, root, said } = JournalSample

const openIn = (values: KeyValueStore.KeyValueStore) => (process: Process) =>
  Effect.provideService(KeyValueSessionStore.make({ process }), KeyValueStore.KeyValueStore, values)

const valuesOf = <E>(layer: Layer.Layer<KeyValueStore.KeyValueStore, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, KeyValueStore.KeyValueStore))

const inDirectory = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped({ prefix: "assent-values-" })
  const values = yield* valuesOf(
    Layer.provide(
      KeyValueStore.layerFileSystem(directory),
      Layer.succeedContext(yield* Effect.context<NodeContext.NodeContext>())
    )
  )
  return { directory, fs, values }
}).pipe(Effect.provide(NodeContext.layer), Effect.orDie)

/** Values in memory, and the keys there are. */
const inMemory = Effect.map(valuesOf(KeyValueStore.layerMemory), (whole) => {
  const keys = new Set<string>()
  const values: KeyValueStore.KeyValueStore = {
    ...whole,
    set: (key, value) => Effect.tap(whole.set(key, value), () => keys.add(key)),
    remove: (key) => Effect.tap(whole.remove(key), () => keys.delete(key))
  }
  return { values, keys }
})

sessionStoreSuite("keys and values in memory", {
  make: Effect.map(valuesOf(KeyValueStore.layerMemory), openIn),
  runs: Runs.of(100)
})

sessionStoreSuite("keys and values in a directory", {
  make: Effect.map(inDirectory, ({ values }) => openIn(values)),
  runs: 10
})

persistenceSuite("keys and values", { make: Effect.map(valuesOf(KeyValueStore.layerMemory), openIn) })

crashSuite("keys and values", {
  world: Effect.flatMap(valuesOf(KeyValueStore.layerMemory), (values) => Mortal.worldOf(openIn(values))),
  every: Runs.isWhole ? 4 : 12,
  runs: Runs.of(16)
})

const me: Process = { pid: 1, host: "here", isAlive: () => true }

/** Dies in its nth write or removal, which is made in part, or not at all. */
const dying = (whole: KeyValueStore.KeyValueStore, at: number, half: boolean): KeyValueStore.KeyValueStore => {
  let writes = 0
  const change = (made: Effect.Effect<void, unknown>, inPart: Effect.Effect<void, unknown>) =>
    Effect.suspend(() => {
      if (++writes < at) return Effect.orDie(made)
      return Effect.zipRight(writes === at && half ? Effect.orDie(inPart) : Effect.void, Effect.die("dead"))
    })
  return {
    ...whole,
    set: (key, value) => {
      const part = typeof value === "string" ? value.slice(0, value.length / 2) : value.slice(0, value.length / 2)
      return change(whole.set(key, value), whole.set(key, part))
    },
    remove: (key) => change(whole.remove(key), whole.remove(key))
  }
}

describe("a store of keys and values", () => {
  for (const half of [true, false]) {
    it.scoped(
      `has what was acknowledged and nothing in part, whichever write its process dies in (in part: ${half})`,
      () =>
        Effect.gen(function* () {
          for (let at = 1; at < 40; at++) {
            const { values } = yield* inMemory
            let acknowledged = 0
            let deleted = false
            const exit = yield* Effect.gen(function* () {
              const store = yield* openIn(dying(values, at, half))(me)
              const lease = yield* store.lock(root)
              yield* lease.append([draft(opened()), draft(received("msg_1", "Fix it"))])
              for (acknowledged = 1; acknowledged < 4; acknowledged++) {
                yield* lease.append([draft(said("a")), draft(said("b"))])
              }
            }).pipe(
              Effect.scoped,
              Effect.zipRight(
                Effect.flatMap(openIn(dying(values, Math.max(at - 12, 1), half))(me), (store) =>
                  Effect.tap(store.delete(root), () => Effect.sync(() => (deleted = true)))
                )
              ),
              Effect.exit
            )
            const store = yield* openIn(values)({ pid: 2, host: "here", isAlive: () => false })
            const loaded = yield* Effect.either(store.load(root))
            const listed = yield* store.list
            if (loaded._tag === "Left") {
              assert.strictEqual(loaded.left._tag, "SessionUnknown", `${at}`)
              assert.isTrue(deleted || acknowledged === 0 || acknowledged === 4, `${at}: ${acknowledged}`)
              assert.deepStrictEqual(listed, [])
            } else {
              assert.isFalse(deleted)
              assert.include([2 * acknowledged, 2 * acknowledged + 2], loaded.right.entries.length, `${at}`)
              assert.strictEqual(listed[0]?.entries, loaded.right.entries.length)
            }
            const all = Effect.map(store.readAll(), (found) =>
              found.map(({ written }) => Either.getOrThrow(written).seq)
            )
            const seqs = loaded._tag === "Left" ? [] : loaded.right.entries.map(({ seq }) => seq)
            assert.deepStrictEqual(yield* all, seqs, `${at}`)
            // And whatever it died in, it goes on.
            yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([draft(said("on"))])))
            const { entries } = yield* store.load(root)
            assert.strictEqual(entries.length, (loaded._tag === "Right" ? loaded.right.entries.length : 0) + 1)
            assert.deepStrictEqual(yield* all, [...seqs, entries.length], `${at}`)
            if (exit._tag === "Success") assert.isTrue(deleted)
          }
        })
    )
  }

  it.scoped("has the sessions of an earlier version, whose batches have no numbers, in order", () =>
    Effect.gen(function* () {
      const { keys, values } = yield* inMemory
      for (const id of ["ses_a", "ses_b"]) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const lease = yield* Effect.flatMap(openIn(values)(me), (store) => store.lock(id as SessionId))
            yield* lease.append([draft(opened(id as SessionId), id as SessionId), draft(said("a"), id as SessionId)])
            yield* lease.append([draft(said("b"), id as SessionId)])
          })
        )
      }
      // As that version wrote it.
      const before = yield* valuesOf(KeyValueStore.layerMemory)
      for (const key of keys) {
        if (key.startsWith("append:")) continue
        const text = Option.getOrThrow(yield* values.get(key))
        const rows = key.startsWith("batch:")
          ? JSON.stringify((JSON.parse(text) as { readonly rows: unknown }).rows)
          : text
        yield* before.set(key, rows.replace(/"ordered":\{[^}]*\},?/, "").replace(",}", "}"))
      }
      const store = yield* openIn(before)(me)
      yield* Effect.scoped(
        Effect.flatMap(store.lock("ses_b" as SessionId), (lease) =>
          lease.append([draft(said("c"), "ses_b" as SessionId)])
        )
      )
      const all = (yield* store.readAll()).map(
        ({ rootSessionId, written }) => `${rootSessionId} ${Either.getOrThrow(written).seq}`
      )
      assert.deepStrictEqual(all, ["ses_b 1", "ses_b 2", "ses_b 3", "ses_b 4", "ses_a 1", "ses_a 2", "ses_a 3"])
      assert.deepStrictEqual(
        yield* Effect.flatMap(openIn(before)(me), ({ readAll }) => readAll()),
        yield* store.readAll()
      )
      assert.lengthOf((yield* store.load("ses_a" as SessionId)).entries, 3)
    })
  )

  it.scoped("says that a batch of entries is gone", () =>
    Effect.gen(function* () {
      const values = yield* valuesOf(KeyValueStore.layerMemory)
      const store = yield* openIn(values)(me)
      const lease = yield* store.lock(root)
      for (const entry of [opened(), said("a"), said("b")]) yield* lease.append([draft(entry)])
      yield* values.remove(`batch:1:${root}`)
      const lost = yield* Effect.flip(store.load(root))
      assert.strictEqual(lost._tag, "JournalUnreadable")
      const all = (yield* store.readAll()).map(({ written }) => written._tag)
      assert.deepStrictEqual(all, ["Right", "Left", "Right"])
    })
  )

  for (const half of [true, false]) {
    it.scoped(`refers to no content that is not there, and loses none, wherever it dies (in part: ${half})`, () =>
      Effect.gen(function* () {
        const other = "ses_other" as SessionId
        const [one, two] = [content("one"), content("two")]
        for (let at = 1; at < 60; at++) {
          const { keys, values } = yield* inMemory
          yield* Effect.gen(function* () {
            const store = yield* openIn(dying(values, at, half))(me)
            for (const id of [root, other]) {
              yield* Effect.scoped(
                Effect.gen(function* () {
                  const lease = yield* store.lock(id)
                  yield* lease.putContent(one)
                  yield* lease.append([draft(opened(id), id), draft(attached("msg_1", one), id)])
                  yield* lease.putContent(two)
                  if (id === other) yield* lease.append([draft(attached("msg_2", one, two), id)])
                })
              )
            }
            yield* store.delete(other)
            yield* store.delete(root)
          }).pipe(Effect.exit)
          const store = yield* openIn(values)({ pid: 2, host: "here", isAlive: () => false })
          const wanted: Array<string> = []
          for (const { rootSessionId } of yield* store.list) {
            const { entries } = yield* store.load(rootSessionId)
            for (const sha256 of JournalEntry.contentsIn(entries.map(({ entry }) => entry))) {
              wanted.push(sha256)
              assert.strictEqual(Digest.sha256(yield* store.getContent(sha256)), sha256, `${at}`)
            }
          }
          // The next content sweeps what nobody refers to.
          yield* Effect.scoped(Effect.flatMap(store.lock("ses_next" as SessionId), (lease) => lease.putContent(one)))
          const kept = [...keys].filter((key) => key.startsWith("content"))
          assert.deepStrictEqual(kept.sort(), [...new Set(wanted)].map((sha256) => `content:${sha256}`).sort(), `${at}`)
        }
      })
    )
  }

  it.scoped("says in words that it cannot be written or read", () =>
    Effect.gen(function* () {
      const { directory, fs, values } = yield* inDirectory
      const store = yield* openIn(values)(me)
      yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([draft(opened())])))
      for (const name of yield* fs.readDirectory(directory)) yield* fs.writeFileString(`${directory}/${name}`, "{")
      const unreadable = yield* Effect.flip(store.load(root))
      assert.strictEqual(unreadable._tag, "StoreUnusable")
      assert.include(unreadable.message, "is damaged")
      yield* fs.remove(directory, { recursive: true })
      const unwritable = yield* Effect.flip(Effect.scoped(store.lock(root)))
      assert.strictEqual(unwritable._tag, "StoreUnwritable")
      assert.include(unwritable.message, "no such file or directory")
      yield* fs.makeDirectory(directory)
    })
  )
})
