import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { readdirSync, readFileSync } from "node:fs"
import type { RequestId } from "../../src/core/Id.js"
import * as SessionArchive from "../../src/journal/SessionArchive.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { attached, content, draft, journal, opened, raised, received, root } from "../kit/JournalSample.js"

const open = Effect.map(SessionStore.makeMemory, (open) => open({ pid: 1, host: "here", isAlive: () => true }))

/** As a file has it. */
const exported = (loaded: SessionStore.Loaded | SessionArchive.Archive): any =>
  JSON.parse(JSON.stringify(Either.getOrThrow(SessionStore.toJson(loaded))))

const session = Effect.gen(function* () {
  const store = yield* open
  const choices = Array.from({ length: 600 }, (_, index) => (index * 7_919) % 100_003)
  const drafts = journal(choices).map(({ entry, sessionId }, index) => ({ sessionId, entry, at: index }))
  const more = [draft(raised("req_last")), draft(raised("req_secret"))]
  yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([...drafts, ...more])))
  yield* store.answer("req_last" as RequestId, 1, "web")
  return yield* store.load(root)
})

describe("an exported session", () => {
  it.effect("is the same in another store, with its times and answers", () =>
    Effect.gen(function* () {
      const before = yield* session
      const decoded = yield* SessionArchive.decode(exported(before))
      const store = yield* open
      yield* SessionArchive.restore(store, decoded)
      const after = yield* store.load(root)
      assert.deepStrictEqual(exported(after), exported(before))
      assert.strictEqual((yield* Effect.flip(SessionArchive.restore(store, decoded)))._tag, "SessionPresent")
      assert.deepStrictEqual(exported(yield* store.load(root)), exported(before))
    })
  )

  it.effect("brings the content that it refers to, and is refused without it", () =>
    Effect.gen(function* () {
      const from = yield* open
      const [one, two] = [content("one"), content("two")]
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* from.lock(root)
          yield* Effect.forEach([one, two], lease.putContent)
          yield* lease.append([draft(opened()), draft(attached("msg_1", one, two)), draft(attached("msg_2", one))])
        })
      )
      const document = exported(yield* SessionArchive.load(from, root))
      assert.lengthOf(document.contents, 2)
      const to = yield* open
      yield* SessionArchive.restore(to, yield* SessionArchive.decode(document))
      for (const { bytes, sha256 } of [one, two]) assert.deepStrictEqual(yield* to.getContent(sha256), bytes)
      const [first, second] = document.contents
      const broken: ReadonlyArray<readonly [unknown, string]> = [
        [[first], `its content ${two.sha256.slice(0, 12)} is missing`],
        [undefined, "is missing"],
        [[first, { ...second, base64: first.base64 }], "is damaged"],
        [[first, { ...second, base64: "*" }], "is damaged"],
        [[first, {}], "it is not an exported session"]
      ]
      for (const [contents, says] of broken) {
        assert.include(Either.getOrThrow(Either.flip(SessionArchive.decode({ ...document, contents }))), says)
      }
    })
  )

  it.effect("is refused in a sentence when it is not whole, and nothing is written", () =>
    Effect.gen(function* () {
      const whole = exported(yield* session)
      const cases: ReadonlyArray<readonly [(document: any) => unknown, string]> = [
        [() => "text", "it is not an exported session"],
        [() => ({}), "it is not an exported session"],
        [(it) => ({ ...it, version: 99 }), "version 99"],
        [(it) => ({ ...it, entries: [] }), "it has no entries"],
        [
          (it) => ({ ...it, entries: it.entries.filter(({ seq }: { readonly seq: number }) => seq !== 3) }),
          "entry 3 is missing"
        ],
        [(it) => ({ ...it, entries: [{ ...it.entries[0], entry: { _tag: "MoonPhaseChanged" } }] }), "entry 1"],
        [(it) => ({ ...it, answers: [{}] }), "it is not an exported session"],
        ...[Infinity, 1.5, -5, 9e15].map(
          (at) =>
            [(it: any) => ({ ...it, entries: [{ ...it.entries[0], at }] }), "it is not an exported session"] as const
        )
      ]
      for (const [change, says] of cases) {
        const decoded = SessionArchive.decode(change(whole))
        assert.include(Either.isLeft(decoded) ? decoded.left : "it was taken", says)
      }
    })
  )
})

describe("a journal of a released version", () => {
  const directory = "test/journal/released"
  for (const name of readdirSync(directory)) {
    it.effect(`${name} is opened, and means the same as then`, () =>
      Effect.gen(function* () {
        const { document, sessions } = JSON.parse(readFileSync(`${directory}/${name}`, "utf8"))
        const loaded = yield* SessionArchive.decode(document)
        const store = yield* open
        yield* SessionArchive.restore(store, loaded)
        const { entries } = yield* store.load(root)
        assert.deepStrictEqual(meaning(entries), sessions)
        yield* Effect.scoped(
          Effect.flatMap(store.lock(root), (lease) => lease.append([draft(received("msg_later", "and now?"))]))
        )
        assert.deepStrictEqual(exported(loaded).entries, document.entries)
      })
    )
  }

  it("has every kind of entry that there was", () => {
    const { document } = JSON.parse(readFileSync(`${directory}/0.1.0.json`, "utf8"))
    const kinds = document.entries.map(({ entry }: SessionStore.Loaded["entries"][number]) => entry._tag)
    assert.isAtLeast(new Set(kinds).size, 12)
  })
})

/** What comes of it: enough to see that nothing of it is read otherwise. */
const meaning = (entries: SessionStore.Loaded["entries"]) =>
  SessionSnapshot.fold(entries).sessions.map(({ closed, history, open, opened, turns, waiting }) => ({
    agent: opened.agent,
    closed,
    turns,
    waiting: waiting.map(({ text }) => text),
    open: open.map(({ requestId }) => requestId),
    history: JSON.parse(JSON.stringify(history))
  }))
