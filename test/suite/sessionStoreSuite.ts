/** The contract of every session store, run over one store after the other. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as FastCheck from "fast-check"
import * as Digest from "../../src/core/Digest.js"
import { CorrelationId, SessionId, type RequestId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as JournalEntry from "../../src/journal/JournalEntry.js"
import * as SessionLease from "../../src/journal/SessionLease.js"
import type { Process } from "../../src/journal/SessionLease.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as SessionVote from "../../src/journal/SessionVote.js"
import * as StoreProbe from "../../src/testing/StoreProbe.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as JournalSample from "../kit/JournalSample.js"

const { draft, opened, raised, received, root, settled, taken, turnEnded } = JournalSample

export interface Options {
  /** A fresh store; the function opens it as a process does. */
  readonly make: Effect.Effect<
    (process: Process) => Effect.Effect<SessionStore.Service, unknown, Scope.Scope>,
    unknown,
    Scope.Scope
  >
  /** Of the property tests. */
  readonly runs: number
  /** How leases are held. What only heartbeats have is left out for fences. Default: `beat`. */
  readonly holding?: SessionLease.Holding
}

/** Processes of one host; dead ones are known by number. */
const host = (holding: SessionLease.Holding) => {
  const dead = new Set<number>()
  return {
    dead,
    process: (pid: number, name = "here"): Process => ({ pid, host: name, isAlive: (pid) => !dead.has(pid), holding })
  }
}

/** Takes the lease as a process that is then suspended and sends no heartbeat. */
const lockAndStall = (store: SessionStore.Service, id: SessionId = root) => StoreProbe.lockAndStall(store, id)

const tagOf = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<string, never, R> =>
  Effect.match(effect, { onFailure: (error) => error._tag, onSuccess: () => "succeeded" })

const beginning = [draft(opened()), draft(received("msg_1", "Fix the\n tests")), draft(taken("turn_1", 1, "msg_1"))]

const entriesOf = (loaded: SessionStore.Loaded) =>
  loaded.entries.map(({ seq, sessionId, entry }) => ({ seq, sessionId, entry }))

const numbered = (drafts: ReadonlyArray<JournalEntry.Draft>) => drafts.map((one, index) => ({ seq: index + 1, ...one }))

export const sessionStoreSuite = (name: string, options: Options): void => {
  const { holding = "beat" } = options
  const ofBeats = it.scoped.runIf(holding === "beat")
  /** With a store that one process has open. */
  const withStore = <E>(
    body: (
      store: SessionStore.Service,
      others: {
        readonly open: (process: Process) => Effect.Effect<SessionStore.Service, unknown, Scope.Scope>
      } & ReturnType<typeof host>
    ) => Effect.Effect<void, E, Scope.Scope>
  ) =>
    Effect.gen(function* () {
      const open = yield* options.make
      const processes = host(holding)
      const store = yield* open(processes.process(1))
      yield* body(store, { open, ...processes })
    })

  describe(`${name}: the journal`, () => {
    it.scoped("gives back what was written, in the order in which it was written", () =>
      withStore((store) =>
        Effect.gen(function* () {
          const child = "ses_child" as SessionId
          const lease = yield* store.lock(root)
          const rest = [draft(opened(child, { parentSessionId: root, depth: 1 }), child), draft(turnEnded("turn_1"))]
          yield* lease.append(beginning)
          yield* TestClock.adjust("1 second")
          yield* lease.append(rest)
          const loaded = yield* store.load(root)
          assert.deepStrictEqual(entriesOf(loaded), numbered([...beginning, ...rest]))
          assert.deepStrictEqual(
            loaded.entries.map(({ at }) => at),
            [0, 0, 0, 1_000, 1_000]
          )
        })
      )
    )

    it.scoped("gives back every kind of entry as it was", () =>
      withStore((store) =>
        Effect.gen(function* () {
          const choices = Array.from({ length: 2_000 }, (_, index) => (index * 7_919) % 100_003)
          const drafts = JournalSample.journal(choices).map(({ sessionId, entry }) => ({ sessionId, entry }))
          const lease = yield* store.lock(root)
          yield* lease.append(drafts)
          assert.deepStrictEqual(entriesOf(yield* store.load(root)), numbered(drafts))
          assert.isAtLeast(new Set(drafts.map(({ entry }) => entry._tag)).size, 12)
        })
      )
    )

    it.scoped("goes on where it stopped when it is opened again", () =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append(beginning)))
          const later = yield* open(process(2))
          yield* Effect.scoped(Effect.flatMap(later.lock(root), (lease) => lease.append([draft(turnEnded("turn_1"))])))
          assert.deepStrictEqual(
            entriesOf(yield* store.load(root)),
            numbered([...beginning, draft(turnEnded("turn_1"))])
          )
        })
      )
    )

    it.scoped("knows no session that nothing was written to", () =>
      withStore((store) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* tagOf(store.load(root)), "SessionUnknown")
          assert.strictEqual(yield* tagOf(store.delete(root)), "SessionUnknown")
          yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([])))
          assert.strictEqual(yield* tagOf(store.load(root)), "SessionUnknown")
          assert.deepStrictEqual(yield* store.list, [])
        })
      )
    )

    it.scoped(
      "gives every entry once and in order to a reader that follows it, wherever it comes back",
      () =>
        Effect.promise(() =>
          FastCheck.assert(
            FastCheck.asyncProperty(
              FastCheck.array(FastCheck.array(FastCheck.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }), {
                minLength: 1,
                maxLength: 5
              }),
              FastCheck.array(FastCheck.integer({ min: 1, max: 9 }), { maxLength: 5 }),
              (plan, parts) => Effect.runPromise(Effect.scoped(following(plan, parts)))
            ),
            { numRuns: options.runs }
          )
        ),
      60_000
    )

    /** Processes append to a session each, at the same time; a reader leaves and comes back after parts of this size. */
    const following = (plan: ReadonlyArray<ReadonlyArray<number>>, parts: ReadonlyArray<number>) =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          const total = plan.flat().reduce((sum, size) => sum + size, 0)
          const reading = yield* Effect.fork(
            Effect.gen(function* () {
              const found: Array<SessionStore.Appended> = []
              for (let at = 0; found.length < total; at++) {
                const wanted = Math.min(parts[at] ?? total, total - found.length)
                const stream = SessionStore.follow(store, found.at(-1)?.cursor)
                found.push(...(yield* Stream.runCollect(Stream.take(stream, wanted))))
              }
              return found
            })
          )
          yield* Effect.forEach(
            plan,
            (batches, writer) =>
              Effect.gen(function* () {
                const id = `ses_${writer}` as SessionId
                const mine = writer % 2 === 0 ? store : yield* open(process(writer + 2))
                const lease = yield* mine.lock(id)
                for (const [batch, size] of batches.entries()) {
                  yield* lease.append(
                    Array.from({ length: size }, (_, at) => draft(received(`${batch}/${at}`, "x"), id))
                  )
                  yield* Effect.yieldNow()
                }
              }),
            { concurrency: "unbounded", discard: true }
          )
          const found = yield* Fiber.join(reading)
          for (const [writer, batches] of plan.entries()) {
            const id = `ses_${writer}` as SessionId
            const own = found.filter(({ rootSessionId }) => rootSessionId === id).map(({ written }) => written)
            assert.deepStrictEqual(
              own.map(Either.getOrThrow).map(({ seq }) => seq),
              Array.from({ length: batches.reduce((sum, size) => sum + size, 0) }, (_, at) => at + 1)
            )
            assert.deepStrictEqual(own.map(Either.getOrThrow), (yield* store.load(id)).entries)
          }
          assert.deepStrictEqual(yield* store.readAll({ after: found.at(-1)?.cursor }), [])
        })
      )

    it.scoped("writes what several fibers append as wholes, each fiber's in its order", () =>
      Effect.promise(() =>
        FastCheck.assert(
          FastCheck.asyncProperty(
            FastCheck.array(FastCheck.array(FastCheck.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 6 }), {
              minLength: 1,
              maxLength: 6
            }),
            FastCheck.array(FastCheck.nat({ max: 5 }), { maxLength: 3 }),
            (plan, interrupted) => Effect.runPromise(Effect.scoped(concurrently(plan, interrupted)))
          ),
          { numRuns: options.runs }
        )
      )
    )

    /** Fibers append batches of these sizes at the same time; some of them are interrupted while they do. */
    const concurrently = (plan: ReadonlyArray<ReadonlyArray<number>>, interrupted: ReadonlyArray<number>) =>
      withStore((store) =>
        Effect.gen(function* () {
          const lease = yield* store.lock(root)
          const acknowledged = new Set<string>()
          const fibers = yield* Effect.forEach(plan, (batches, writer) =>
            Effect.fork(
              Effect.forEach(batches, (size, batch) => {
                const drafts = Array.from({ length: size }, (_, at) =>
                  draft(received(`${writer}/${batch}/${at}/${size}`, "x"))
                )
                return Effect.zipRight(
                  lease.append(drafts),
                  Effect.sync(() => acknowledged.add(`${writer}/${batch}`))
                )
              })
            )
          )
          yield* Effect.yieldNow()
          for (const index of interrupted) {
            const fiber = fibers[index]
            if (fiber !== undefined) yield* Fiber.interruptFork(fiber)
          }
          yield* Effect.forEach(fibers, Fiber.await)
          const loaded = yield* Effect.orElseSucceed(store.load(root), () => ({ entries: [] }))
          const ids = loaded.entries.map(({ entry }) => (entry._tag === "MessageReceived" ? entry.message.id : "?"))
          const batches: Array<string> = []
          for (let at = 0; at < ids.length;) {
            const [writer, batch, , size] = (ids[at] ?? "").split("/")
            const whole = Array.from({ length: Number(size) }, (_, index) => `${writer}/${batch}/${index}/${size}`)
            assert.deepStrictEqual(ids.slice(at, at + Number(size)) as ReadonlyArray<string>, whole)
            batches.push(`${writer}/${batch}`)
            at += Number(size)
          }
          assert.strictEqual(new Set(batches).size, batches.length)
          for (const batch of acknowledged) assert.include(batches, batch)
          for (const writer of plan.keys()) {
            const own = batches.filter((batch) => batch.startsWith(`${writer}/`))
            assert.deepStrictEqual(own, [...own].sort())
          }
          assert.deepStrictEqual(
            loaded.entries.map(({ seq }) => seq),
            ids.map((_, index) => index + 1)
          )
        })
      )
  })

  describe(`${name}: the list`, () => {
    it.scoped("tells sessions apart by their first words and what became of them, last used first", () =>
      withStore((store, { open, process, dead }) =>
        Effect.gen(function* () {
          const other = yield* open(process(2))
          const ids = ["idle", "waiting", "interrupted", "closed", "running"].map((id) => id as SessionId)
          const idle = [...beginning, draft(turnEnded("turn_1"))]
          const drafts: { readonly [id: string]: ReadonlyArray<JournalEntry.Draft> } = {
            idle,
            waiting: [...beginning, draft(raised("req_1")), draft(raised("req_2")), draft(settled("req_1"))],
            interrupted: beginning,
            closed: [...idle, draft({ _tag: "SessionClosed" })],
            running: beginning
          }
          for (const id of ids) {
            yield* TestClock.adjust("1 second")
            const session = (drafts[id] ?? []).map(({ entry }) => draft(entry, id))
            const { lease, end } = yield* lockAndStall(id === "running" ? other : store, id)
            yield* lease.append(session)
            if (id !== "running") yield* end
          }
          const listed = yield* store.list
          assert.deepStrictEqual(
            listed.map(({ rootSessionId, state, turns }) => [rootSessionId, state, turns]),
            [
              ["running", "running", 1],
              ["closed", "closed", 1],
              ["interrupted", "interrupted", 1],
              ["waiting", "waiting", 1],
              ["idle", "idle", 1]
            ]
          )
          assert.deepInclude(listed[3], {
            title: "Fix the tests",
            model: "offline",
            entries: 6,
            created: 2_000,
            lastActivity: 2_000,
            open: [{ requestId: "req_2" as RequestId, kind: "Select" }]
          })
          assert.deepStrictEqual(listed[0]?.holder, { pid: 2, host: "here" })
          if (holding === "fence") return
          dead.add(2)
          assert.strictEqual((yield* store.list)[0]?.state, "interrupted")
        })
      )
    )

    it.scoped("forgets a session that is deleted, and no other", () =>
      withStore((store) =>
        Effect.gen(function* () {
          const kept = "ses_kept" as SessionId
          for (const id of [root, kept]) {
            yield* Effect.scoped(
              Effect.flatMap(store.lock(id), (lease) => lease.append(beginning.map(({ entry }) => draft(entry, id))))
            )
          }
          yield* store.delete(root)
          assert.strictEqual(yield* tagOf(store.load(root)), "SessionUnknown")
          assert.deepStrictEqual(
            (yield* store.list).map(({ rootSessionId }) => rootSessionId),
            [kept]
          )
          assert.lengthOf((yield* store.load(kept)).entries, 3)
        })
      )
    )

    it.scoped("counts the tokens of a day, also of sessions that are deleted, and those of a fork once", () =>
      withStore((store) =>
        Effect.gen(function* () {
          const correlationId = CorrelationId.make("turn_1")
          const used = (
            model: string,
            usage: JournalEntry.EntryOf<"UsageRecorded">["usage"]
          ): JournalEntry.JournalEntry =>
            model === "summary"
              ? { _tag: "TokensSpent", model, usage, kind: "summary" }
              : { _tag: "UsageRecorded", correlationId, step: 1, model, finishReason: "stop", usage }
          const add = (id: string, usage: Parameters<typeof used>[1], model = "offline", at?: number) => {
            const session = SessionId.make(id)
            const own = (entry: JournalEntry.JournalEntry) => draft(entry, session)
            return Effect.scoped(
              Effect.flatMap(store.lock(session), (lease) =>
                Effect.zipRight(
                  lease.append([own(opened(session)), ...beginning.slice(1).map(({ entry }) => own(entry))]),
                  lease.append([{ ...draft(used(model, usage), SessionId.make("ses_child")), at }])
                )
              )
            )
          }
          const tallies = Effect.all(["", "acme.", "ac.", "acm"].map((prefix) => SessionStore.tally(store, prefix)))
          const tokens = Effect.map(tallies, (all) => all.map(({ tokens }) => tokens))
          yield* TestClock.adjust("23 hours")
          yield* add("acme.a", { inputTokens: 10, outputTokens: 5, reasoningTokens: 3 })
          yield* add("acme.b", { inputTokens: 100, cachedInputTokens: 50, outputTokens: 5 }, "anthropic/claude")
          yield* add("ac.a", { inputTokens: 1_000 }, "summary")
          yield* add("acme.c", {})
          // What is copied was used before.
          yield* add("acme.fork", { inputTokens: 7_000 }, "offline", 3_600_000)
          assert.deepStrictEqual(yield* tokens, [1_170, 170, 1_000, 170])
          yield* add("acme.a", { inputTokens: 1, outputTokens: 1 })
          yield* store.delete(SessionId.make("acme.a"))
          yield* store.delete(SessionId.make("acme.fork"))
          assert.deepStrictEqual(yield* tokens, [1_172, 172, 1_000, 172])
          yield* add("acme.a", { outputTokens: 20 })
          yield* store.delete(SessionId.make("acme.a"))
          assert.deepStrictEqual(yield* tokens, [1_192, 192, 1_000, 192])
          yield* TestClock.adjust("1 hour")
          assert.deepStrictEqual(yield* tokens, [0, 0, 0, 0])
          yield* add("acme.b", { outputTokens: 4 })
          yield* store.delete(SessionId.make("ac.a"))
          assert.deepStrictEqual(yield* tallies, [
            { sessions: 2, turns: 2, tokens: 4 },
            { sessions: 2, turns: 2, tokens: 4 },
            { sessions: 0, turns: 0, tokens: 0 },
            { sessions: 2, turns: 2, tokens: 4 }
          ])
        })
      )
    )
  })

  describe(`${name}: the lock`, () => {
    ofBeats("is one process's until its scope ends, and names who has it", () =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          const other = yield* open(process(2))
          yield* Effect.scoped(
            Effect.gen(function* () {
              const lease = yield* store.lock(root)
              yield* lease.append(beginning)
              for (const second of [other, store]) {
                const error = yield* Effect.flip(Effect.scoped(second.lock(root)))
                assert.strictEqual(error._tag, "SessionLocked")
                assert.include(error.message, "process 1 on here")
              }
              assert.strictEqual(yield* tagOf(other.delete(root)), "SessionLocked")
              // As long as it beats, whatever the time. A beat may have to go to a server and back.
              for (let beats = 0; beats < 12; beats++) {
                yield* TestClock.adjust(SessionLease.beatEvery)
                const now = yield* Clock.currentTimeMillis
                yield* Effect.repeat(Effect.flip(Effect.scoped(other.lock(root))), {
                  until: (error) => error._tag !== "SessionLocked" || error.heartbeat === now,
                  times: 1_000
                })
              }
              assert.strictEqual(yield* tagOf(Effect.scoped(other.lock(root))), "SessionLocked")
              yield* Effect.scoped(other.lock("ses_other" as SessionId))
            })
          )
          assert.strictEqual(yield* tagOf(Effect.scoped(other.lock(root))), "succeeded")
        })
      )
    )

    ofBeats("is taken over at once from a process of this host that has died, and only of this host", () =>
      withStore((_, { open, process, dead }) =>
        Effect.gen(function* () {
          const there = yield* open(process(3, "there"))
          const here = yield* open(process(2))
          const asked = yield* open(process(1))
          const far = "ses_far" as SessionId
          yield* Effect.flatMap(lockAndStall(here), ({ lease }) => lease.append(beginning))
          yield* Effect.flatMap(lockAndStall(there, far), ({ lease }) => lease.append([draft(opened(far), far)]))
          assert.strictEqual(yield* tagOf(Effect.scoped(asked.lock(root))), "SessionLocked")
          dead.add(2).add(3)
          assert.strictEqual(yield* tagOf(Effect.scoped(asked.lock(root))), "succeeded")
          assert.strictEqual(yield* tagOf(Effect.scoped(asked.lock(far))), "SessionLocked")
        })
      )
    )

    ofBeats("is taken over from a process that was silent for 15 seconds, which then writes nothing any more", () =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          const { lease, end } = yield* lockAndStall(store)
          yield* lease.append(beginning)
          const other = yield* open(process(2, "there"))
          yield* TestClock.adjust("14999 millis")
          assert.strictEqual(yield* tagOf(Effect.scoped(other.lock(root))), "SessionLocked")
          yield* TestClock.adjust("1 millis")
          const next = yield* other.lock(root)
          const error = yield* Effect.flip(lease.append([draft(turnEnded("turn_1"))]))
          assert.strictEqual(error._tag, "SessionTakenOver")
          assert.include(error.message, "process 2 on there")
          yield* next.append([draft(received("msg_2", "and now?"))])
          // The first one's end does not take the lock away from the second.
          yield* end
          assert.strictEqual(yield* tagOf(Effect.scoped(store.lock(root))), "SessionLocked")
          assert.deepStrictEqual(
            entriesOf(yield* store.load(root)),
            numbered([...beginning, draft(received("msg_2", "and now?"))])
          )
        })
      )
    )

    it.scoped("stays with a process that stood still when nobody wanted it", () =>
      withStore((store) =>
        Effect.gen(function* () {
          const { lease, end } = yield* lockAndStall(store)
          yield* lease.append(beginning)
          yield* TestClock.adjust("1 hour")
          yield* lease.append([draft(turnEnded("turn_1"))])
          assert.lengthOf((yield* store.load(root)).entries, 4)
          yield* end
        })
      )
    )

    ofBeats("goes to exactly one of many who want it", () =>
      withStore((_, { open, process }) =>
        Effect.gen(function* () {
          const stores = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], (pid) => open(process(pid)))
          const outcomes = yield* Effect.forEach(stores, (store) => tagOf(store.lock(root)), {
            concurrency: "unbounded"
          })
          assert.deepStrictEqual([...outcomes].sort(), [...Array<string>(7).fill("SessionLocked"), "succeeded"])
        })
      )
    )

    it.scoped("is gone with a session that was deleted while its process stood still", () =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          const { lease } = yield* lockAndStall(store)
          yield* lease.append(beginning)
          const other = yield* open(process(2, "there"))
          yield* TestClock.adjust("15 seconds")
          yield* other.delete(root)
          assert.strictEqual(yield* tagOf(lease.append(beginning)), "SessionTakenOver")
          assert.strictEqual(yield* tagOf(store.load(root)), "SessionUnknown")
        })
      )
    )
  })

  describe(`${name}: answers while nobody runs the session`, () => {
    const requestId = "req_1" as RequestId
    const waiting = (store: SessionStore.Service, interaction?: Interaction.Interaction) =>
      Effect.scoped(
        Effect.flatMap(store.lock(root), (lease) => lease.append([...beginning, draft(raised("req_1", interaction))]))
      )

    it.scoped("keeps the first one that fits", () =>
      withStore((store) =>
        Effect.gen(function* () {
          yield* waiting(store)
          const misfit = yield* Effect.flip(store.answer(requestId, 7, "web"))
          assert.include(misfit.message, "out of range")
          yield* TestClock.adjust("1 second")
          yield* store.answer(requestId, 1, "web")
          const late = yield* Effect.flip(store.answer(requestId, 0, "mail"))
          assert.include(late.message, "web has answered it")
          assert.deepStrictEqual((yield* store.load(root)).answers, [{ requestId, answer: 1, by: "web", at: 1_000 }])
        })
      )
    )

    it.scoped("keeps votes of several, where a rule reserves the call, and no answer of one alone", () =>
      withStore((store) =>
        Effect.gen(function* () {
          const need = { quorum: 2, roles: ["ops"], members: ["ada", "grace"], deny: "one", rule: "look" } as const
          const reserved = Interaction.approve({
            ...InteractionSample.samples.Approve.interaction,
            needs: { digest: "d", all: [need], votes: [] }
          })
          yield* waiting(store, reserved)
          const allow = { decision: "allow", scope: "once" }
          assert.deepInclude(yield* Effect.flip(store.answer(requestId, allow, "ada")), { problem: "reserved" })
          const give = (by: string) => SessionVote.give(store, { rootSessionId: root, requestId, answer: allow, by })
          assert.deepInclude(yield* Effect.flip(give("mallory")), { problem: "reserved" })
          const token = `sk-${"a1B2".repeat(5)}`
          const secret = { decision: "edit", editedArguments: { command: token } }
          const vote = { rootSessionId: root, requestId, answer: secret, by: "ada" }
          assert.deepInclude(yield* Effect.flip(SessionVote.give(store, vote)), { problem: "secret" })
          const denial = { decision: "deny", scope: "once", comment: `not with ${token}` }
          yield* SessionVote.give(store, { ...vote, answer: denial })
          assert.notInclude(JSON.stringify((yield* store.load(root)).entries), token)
          assert.deepStrictEqual(yield* give("ada"), { missing: "1 more of: ops" })
          assert.deepStrictEqual(yield* give("grace"), { missing: undefined })
          assert.deepStrictEqual(yield* give("grace"), { missing: undefined })
          const [open] = yield* store.openRequests(root)
          assert(open?.request.interaction._tag === "Approve")
          assert.deepStrictEqual(
            open.request.interaction.needs?.votes.map(({ by }) => by),
            ["ada", "grace"]
          )
          const { answers, entries } = yield* store.load(root)
          assert.deepStrictEqual(answers, [])
          assert.strictEqual(entries.filter(({ entry }) => entry._tag === "VoteGiven").length, 3)
        }).pipe(Effect.catchTag("SessionTakenOver", Effect.die))
      )
    )

    it.scoped("goes to exactly one of many who answer", () =>
      withStore((store) =>
        Effect.gen(function* () {
          yield* waiting(store)
          const outcomes = yield* Effect.forEach(
            [0, 1, 0, 1],
            (answer) => tagOf(store.answer(requestId, answer, "web")),
            {
              concurrency: "unbounded"
            }
          )
          assert.lengthOf(
            outcomes.filter((outcome) => outcome === "succeeded"),
            1
          )
          assert.lengthOf((yield* store.load(root)).answers, 1)
        })
      )
    )

    it.scoped("takes none for what nobody asks, has been settled, or is a secret", () =>
      withStore((store) =>
        Effect.gen(function* () {
          assert.include((yield* Effect.flip(store.answer(requestId, 1, "web"))).message, "no call waits for it")
          yield* waiting(store, new Interaction.AuthPassword({ prompt: "Password?" }))
          const secret = yield* Effect.flip(store.answer(requestId, "hunter22", "web"))
          assert.include(secret.message, "secrets")
          assert.notInclude(secret.message, "hunter22")
          yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([draft(settled("req_1"))])))
          assert.include((yield* Effect.flip(store.answer(requestId, 1, "web"))).message, "no call waits for it")
          assert.deepStrictEqual((yield* store.load(root)).answers, [])
        })
      )
    )

    it.scoped("are asked for in one list, with who waits, since when, and what was answered", () =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          const ids = ["ses_a", "ses_b", "ses_c", "ses_d"].map((id) => id as SessionId)
          const other = yield* open(process(2))
          for (const [index, id] of ids.entries()) {
            const { end, lease } = yield* lockAndStall(index === 2 ? other : store, id)
            const asked = { ...JournalSample.request(`req_${index}`, undefined, id), issuedAt: 50 - index }
            const old = `old_${index}` as RequestId
            yield* lease.append([
              draft(opened(id, { workspace: `/home/ada/project-${index}` }), id),
              draft(received("msg_1", `Words "open":[] of ${index}`), id),
              draft({ _tag: "InteractionRaised", request: asked }, id),
              draft({ _tag: "InteractionRaised", request: { ...asked, requestId: old } }, id),
              draft(settled(old), id),
              ...(index === 3 ? [draft({ _tag: "SessionClosed" }, id)] : [])
            ])
            if (index !== 2) yield* end
          }
          yield* TestClock.adjust("1 second")
          yield* store.answer("req_0" as RequestId, 1, "web")
          const waiting = yield* store.openRequests()
          const of = (index: number) => ({
            rootSessionId: ids[index],
            title: `Words "open":[] of ${index}`,
            workspace: `/home/ada/project-${index}`,
            request: { ...JournalSample.request(`req_${index}`, undefined, ids[index]), issuedAt: 50 - index }
          })
          const expected = [
            { ...of(2), holder: { pid: 2, host: "here" } },
            of(1),
            { ...of(0), answer: { requestId: "req_0", answer: 1, by: "web", at: 1_000 } }
          ]
          assert.deepStrictEqual(JSON.parse(Digest.canonicalJson(waiting)), JSON.parse(Digest.canonicalJson(expected)))
          assert.deepStrictEqual(yield* store.openRequests(ids[1]), waiting.slice(1, 2))
          assert.deepStrictEqual(yield* store.openRequests("ses_none" as SessionId), [])
        })
      )
    )

    ofBeats("ends the lease of a process that stood still, so that it does not go on without the answer", () =>
      withStore((store, { open, process }) =>
        Effect.gen(function* () {
          const { lease } = yield* lockAndStall(store)
          yield* lease.append([...beginning, draft(raised("req_1"))])
          const other = yield* open(process(2, "there"))
          yield* TestClock.adjust("14999 millis")
          assert.strictEqual(yield* tagOf(other.answer(requestId, 1, "web")), "SessionLocked")
          yield* TestClock.adjust("1 millis")
          yield* other.answer(requestId, 1, "web")
          assert.strictEqual(yield* tagOf(lease.append([draft(settled("req_1"))])), "SessionTakenOver")
          assert.lengthOf((yield* store.load(root)).entries, 4)
        })
      )
    )

    ofBeats("takes none while a process runs it, and names that process", () =>
      withStore((store) =>
        Effect.gen(function* () {
          yield* waiting(store)
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* store.lock(root)
              const error = yield* Effect.flip(store.answer(requestId, 1, "web"))
              assert.strictEqual(error._tag, "SessionLocked")
              assert.include(error.message, "process 1 on here")
            })
          )
          yield* store.answer(requestId, 1, "web")
        })
      )
    )
  })
}
