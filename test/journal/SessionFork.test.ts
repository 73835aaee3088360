/** Forks of stored sessions: what they take, what they leave, and that their parents never know. */
import type * as Prompt from "@effect/ai/Prompt"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "fast-check"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as History from "../../src/conversation/History.js"
import * as Id from "../../src/core/Id.js"
import type { MessageId, SessionId } from "../../src/core/Id.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"
import * as SessionArchive from "../../src/journal/SessionArchive.js"
import * as SessionFork from "../../src/journal/SessionFork.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import { violations } from "../kit/historyRules.js"
import * as JournalSample from "../kit/JournalSample.js"

const { draft, opened, proposed, raised, received, root, said, taken, turnEnded } = JournalSample

const loadedOf = (entries: ReadonlyArray<JournalEntry.Written>): SessionStore.Loaded => ({
  rootSessionId: root,
  entries,
  answers: []
})

const planned = (loaded: SessionStore.Loaded, at?: SessionFork.Position) =>
  Effect.provideService(SessionFork.planned(loaded, { at }), Id.IdGenerator, ids())

/** Ids that no sample has. */
const ids = (): Id.Generator => {
  let count = 0
  return { unsafeNext: (prefix) => `${prefix}_fork_${++count}` }
}

const stateOf = (drafts: ReadonlyArray<JournalEntry.Draft>, id: SessionId) => {
  const tree = SessionSnapshot.fold(JournalSample.write(drafts))
  const session = SessionSnapshot.get(tree, id)
  assert.isDefined(session)
  return { tree, session }
}

/** All that a model is given. */
const nameless = (history: ReadonlyArray<Prompt.Message>) =>
  history.map((message) => {
    const { messageId: _, ...metadata } = History.metadata(message)
    return { ...message, options: { ...message.options, assent: metadata } }
  })

const messageIds = (entries: ReadonlyArray<JournalEntry.Draft>): ReadonlyArray<MessageId> =>
  entries.flatMap(({ entry }) => {
    if (entry._tag === "MessageReceived") return [entry.message.id]
    if (entry._tag === "MessageTaken") return entry.messageIds
    return entry._tag === "HistoryReplaced"
      ? entry.messages.flatMap((message) => History.metadata(message).messageId ?? [])
      : []
  })

const textOf = (loaded: SessionStore.Loaded): string => JSON.stringify(Either.getOrThrow(SessionStore.toJson(loaded)))

describe("a fork at any entry of any journal", () => {
  it("has a valid history, which is that of its parent at the end of the last whole turn", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (entries) => {
        const loaded = loadedOf(entries)
        const before = textOf(loaded)
        const former = new Set(messageIds(entries))
        let last: number | undefined
        for (let at = 0; at <= entries.length; at++) {
          const { drafts, forked } = Effect.runSync(planned(loaded, { entry: at }))
          assert.isAtMost(forked.entry, at)
          assert.isAtLeast(forked.entry, last ?? 0)
          if (forked.entry === last) continue
          last = forked.entry
          const { session, tree } = stateOf(drafts, forked.rootSessionId)
          const parent = SessionSnapshot.get(
            SessionSnapshot.fold(entries.filter(({ seq }) => seq <= forked.entry)),
            root
          )
          assert.deepStrictEqual(violations(session.history), [])
          assert.deepStrictEqual(nameless(session.history), nameless(parent?.history ?? []))
          assert.strictEqual(session.turns, parent?.turns ?? 0)
          assert.strictEqual(forked.turn, session.turns)
          assert.deepStrictEqual(session.usage, parent?.usage ?? { calls: 0 })
          const { answered, batch, children, closed, open, tasks, turn, waiting } = session
          assert.deepStrictEqual(
            { answered, batch, children, closed, open, tasks, turn, waiting, sessions: tree.sessions.length },
            {
              answered: [],
              batch: undefined,
              children: [],
              closed: false,
              open: [],
              tasks: [],
              turn: undefined,
              waiting: [],
              sessions: 1
            }
          )
          assert.isUndefined(tree.permissions)
          for (const id of messageIds(drafts)) assert.isFalse(former.has(id), id)
        }
        assert.strictEqual(textOf(loaded), before)
      }),
      { numRuns: 40 }
    )
  })

  it("is what was said, and nothing that was decided", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (entries) => {
        const { drafts } = Effect.runSync(planned(loadedOf(entries)))
        const decides = drafts.filter(({ entry }) =>
          /^(?:CallDecided|ToolStarted|Interaction|Permissions|Task|SessionClosed)/.test(entry._tag)
        )
        assert.deepStrictEqual(decides, [])
      })
    )
  })

  it("can be forked again, at the same place and before it", () => {
    FastCheck.assert(
      FastCheck.property(JournalSample.journals, (entries) => {
        const { drafts, forked } = Effect.runSync(planned(loadedOf(entries)))
        const fork = { rootSessionId: forked.rootSessionId, entries: JournalSample.write(drafts), answers: [] }
        for (let turn = 0; turn <= forked.turn; turn++) {
          const again = Effect.runSync(planned(fork, turn))
          const first = Effect.runSync(planned(loadedOf(entries), turn))
          assert.strictEqual(again.forked.turn, first.forked.turn)
          assert.deepStrictEqual(
            nameless(stateOf(again.drafts, again.forked.rootSessionId).session.history),
            nameless(stateOf(first.drafts, first.forked.rootSessionId).session.history)
          )
        }
      }),
      { numRuns: 40 }
    )
  })
})

const first = [draft(received("msg_1", "one")), draft(taken("turn_1", 1, "msg_1")), draft(said("first"))]
const second = [draft(received("msg_2", "two")), draft(taken("turn_2", 1, "msg_2")), draft(said("second"))]
const two = [
  draft(opened(root, { profile: "writer", workspace: "/home/ada/shop" })),
  ...first,
  draft(turnEnded("turn_1")),
  ...second,
  draft(turnEnded("turn_2"))
]

const words = (drafts: ReadonlyArray<JournalEntry.Draft>, id: SessionId) =>
  stateOf(drafts, id).session.history.map(History.textOf)

const wordsAt = (drafts: ReadonlyArray<JournalEntry.Draft>, at?: SessionFork.Position) =>
  Effect.map(planned(loadedOf(JournalSample.write(drafts)), at), ({ drafts, forked }) =>
    words(drafts, forked.rootSessionId)
  )

describe("the place of a fork", () => {
  it.effect("is the end of a turn, the end of the one before, the beginning, or the end of all", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* wordsAt(two), ["one", "first", "two", "second"])
      assert.deepStrictEqual(yield* wordsAt(two, 2), ["one", "first", "two", "second"])
      assert.deepStrictEqual(yield* wordsAt(two, 1), ["one", "first"])
      assert.deepStrictEqual(yield* wordsAt(two, 0), [])
      assert.deepStrictEqual(yield* wordsAt(two, { entry: 8 }), ["one", "first"])
      const running = two.slice(0, -1)
      assert.deepStrictEqual(yield* wordsAt(running), ["one", "first"])
      assert.deepStrictEqual(yield* wordsAt(running, 2), ["one", "first"])
    })
  )

  it.effect("is before the conversation was forgotten, when its turn is named, and behind it at the end", () =>
    Effect.gen(function* () {
      const cleared = [...two, draft({ _tag: "HistoryReplaced", reason: "cleared", messages: [] })]
      assert.deepStrictEqual(yield* wordsAt(cleared), [])
      assert.deepStrictEqual(yield* wordsAt(cleared, 2), ["one", "first", "two", "second"])
      assert.deepStrictEqual(yield* wordsAt([...cleared, draft(received("msg_3", "three"))]), [])
    })
  )

  for (const at of [3, -1, 1.5, NaN, Infinity, { entry: 10 }, { entry: -1 }]) {
    it.effect(`is refused in words at ${JSON.stringify(at)}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(planned(loadedOf(JournalSample.write(two)), at))
        assert.strictEqual(error._tag, "PositionUnknown")
        assert.match(error.message, /^Session ses_root has no (?:turn|entry) \S+: 2 turns of it have ended/)
      })
    )
  }
})

const memory = Effect.map(SessionStore.makeMemory, (open) => open({ pid: 1, host: "here", isAlive: () => true }))

const kept = (drafts: ReadonlyArray<JournalEntry.Draft>) =>
  Effect.tap(memory, (store) => Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append(drafts))))

describe("a fork in a store", () => {
  it.effect("takes profile, workspace and the model that worked last, and says where it came from", () =>
    Effect.gen(function* () {
      const used = draft({
        _tag: "UsageRecorded",
        correlationId: taken("turn_2", 1).correlationId,
        step: 1,
        model: "other/model",
        finishReason: "stop",
        usage: { inputTokens: 3 }
      })
      const moved = draft({ _tag: "SessionResumed", workspace: "/home/ada/moved" })
      const store = yield* kept([...two.slice(0, -1), used, draft(turnEnded("turn_2")), moved])
      const { rootSessionId } = yield* SessionFork.fork(store, root, { at: 2 })
      const [one] = (yield* store.load(rootSessionId)).entries
      assert(one?.entry._tag === "SessionOpened")
      const { forkOf, model, profile, workspace } = one.entry
      assert.deepStrictEqual(
        { forkOf, model, profile, workspace },
        {
          forkOf: { rootSessionId: root, turn: 2, entry: 10, subagents: 0, spent: [] },
          model: "other/model",
          profile: "writer",
          workspace: "/home/ada/moved"
        }
      )
      const [listed] = yield* store.list
      assert.deepStrictEqual(
        [listed?.rootSessionId, listed?.state, listed?.turns, listed?.forkOf],
        [rootSessionId, "idle", 2, { rootSessionId: root, turn: 2 }]
      )
      const before = yield* SessionFork.fork(store, root, { at: 1 })
      const [opening] = (yield* store.load(before.rootSessionId)).entries
      assert(opening?.entry._tag === "SessionOpened")
      assert.strictEqual(opening.entry.model, "offline")
    })
  )

  it.effect("counts on with the subagents and the tokens of those it has not got", () =>
    Effect.gen(function* () {
      const child = "ses_child" as SessionId
      const more = { agent: "main/helper", depth: 1, parentSessionId: root, subagentId: "subagent_4" }
      const { correlationId } = turnEnded("turn_c")
      const usage = { inputTokens: 5, outputTokens: 2 }
      const used = { _tag: "UsageRecorded", correlationId, step: 1, model: "m/c", finishReason: "stop", usage } as const
      const store = yield* kept([
        ...two.slice(0, 4),
        draft(opened(child, more), child),
        draft(used, child),
        ...two.slice(4)
      ])
      const fork = yield* SessionFork.fork(store, root)
      const again = yield* SessionFork.fork(store, fork.rootSessionId, { at: 1 })
      const [one] = (yield* store.load(again.rootSessionId)).entries
      assert(one?.entry._tag === "SessionOpened")
      assert.strictEqual(one.entry.forkOf?.subagents, 4)
      assert.deepStrictEqual(one.entry.forkOf?.spent, [{ sessionId: child, agent: "main/helper", model: "m/c", usage }])
    })
  )

  it.effect("is recorded first, and is not there when it cannot be", () =>
    Effect.gen(function* () {
      const store = yield* kept(two)
      const { memory, trail } = yield* AuditTrail.makeMemory()
      const audited = Effect.provideService(AuditTrail.AuditTrail, trail)
      const { rootSessionId } = yield* audited(SessionFork.fork(store, root, { at: 1, by: "ada" }))
      const [record] = yield* memory.decisions
      assert.deepInclude(record, {
        class: "session",
        kind: "fork",
        outcome: "done",
        sessionId: rootSessionId,
        by: "ada",
        reason: "from ses_root, at the end of turn 1 (entry 5)"
      })
      const refusing: AuditTrail.Service = {
        ...AuditTrail.noop,
        record: () => new AuditTrail.AuditUnwritable({ directory: "/full", reason: "no space is left" })
      }
      const fork = Effect.provideService(SessionFork.fork(store, root), AuditTrail.AuditTrail, refusing)
      assert.strictEqual((yield* Effect.flip(fork))._tag, "AuditUnwritable")
      assert.lengthOf(yield* store.list, 2)
    })
  )

  it.effect("keeps the files that were attached, also when its parent goes", () =>
    Effect.gen(function* () {
      const store = yield* memory
      const [picture, late] = [JournalSample.content("a picture"), JournalSample.content("a late one")]
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* store.lock(root)
          yield* Effect.forEach([picture, late], lease.putContent)
          const begun = [draft(opened()), draft(JournalSample.attached("msg_1", picture))]
          yield* lease.append([
            ...begun,
            draft(taken("turn_1", 1, "msg_1")),
            draft(said("seen")),
            draft(turnEnded("turn_1"))
          ])
          yield* lease.append([draft(JournalSample.attached("msg_2", late)), draft(taken("turn_2", 1, "msg_2"))])
        })
      )
      const { rootSessionId } = yield* SessionFork.fork(store, root)
      yield* store.delete(root)
      assert.deepStrictEqual(yield* store.getContent(picture.sha256), picture.bytes)
      assert.strictEqual((yield* Effect.flip(store.getContent(late.sha256)))._tag, "ContentUnknown")
      yield* store.delete(rootSessionId)
      assert.strictEqual((yield* Effect.flip(store.getContent(picture.sha256)))._tag, "ContentUnknown")
    })
  )

  it.effect("is refused in words for a session that is not there, and for one of another format", () =>
    Effect.gen(function* () {
      const store = yield* kept(two)
      const unknown = yield* Effect.flip(SessionFork.fork(store, "ses_none" as SessionId))
      assert.match(unknown.message, /There is no session ses_none/)
      const document = Either.getOrThrow(SessionStore.toJson(yield* store.load(root)))
      const later = SessionArchive.decode(JSON.parse(JSON.stringify(document).replaceAll('"version":1', '"version":9')))
      assert(Either.isLeft(later))
      assert.match(later.left, /version 9 of the journal; this program reads 1/)
      assert.lengthOf(yield* store.list, 1)
    })
  )

  it.effect("takes what a running session has whole, and leaves its lease alone", () =>
    Effect.gen(function* () {
      const store = yield* kept(two)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* store.lock(root)
          yield* lease.append([
            draft(received("msg_3", "three")),
            draft(taken("turn_3", 1, "msg_3")),
            draft(proposed("turn_3", 1, "call_1")),
            draft(raised("req_1"))
          ])
          const before = textOf(yield* store.load(root))
          const { rootSessionId } = yield* SessionFork.fork(store, root)
          const { entries } = yield* store.load(rootSessionId)
          assert.deepStrictEqual(words(entries, rootSessionId), ["one", "first", "two", "second"])
          assert.strictEqual(textOf(yield* store.load(root)), before)
          yield* lease.append([draft(said("third"))])
        })
      )
    })
  )
})
