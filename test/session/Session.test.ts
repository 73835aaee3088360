import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { JournalEntry } from "../../src/journal/JournalEntry.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Model from "../../src/model/Model.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import type { TurnEnd } from "../../src/turn/Turn.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Family from "../kit/Family.js"
import * as JournalSample from "../kit/JournalSample.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"
import * as Shuffled from "../kit/Shuffled.js"

const work = (name: string) => ({ name: "work", params: { name } })
const ask = PermissionFile.policy({})

describe("turns", () => {
  it.scoped("one at a time: words while busy join the turn, enqueued words wait for turns of their own", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { heard, model } = Kit.replies(
        Kit.halting([], begun),
        { text: "one and two" },
        { text: "three" },
        { text: "four" }
      )
      const kit = yield* Kit.start({ model })
      yield* kit.agent.send("one")
      yield* Deferred.await(begun)
      yield* kit.agent.enqueue("three")
      yield* kit.agent.enqueue("four")
      yield* kit.agent.send("two")
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), [
        "user: one",
        "user: two",
        "assistant: one and two",
        "user: three",
        "assistant: three",
        "user: four",
        "assistant: four"
      ])
      assert.strictEqual(heard.length, 4)
      assert.deepStrictEqual(
        (yield* kit.of("TurnStarted")).map(({ input }) => input),
        ["one", "three", "four"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("words handed in together begin one turn", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "both" }] })
      yield* kit.agent.send("one")
      yield* kit.agent.send("two")
      assert.isFalse(yield* kit.agent.isIdle)
      yield* kit.agent.awaitIdle
      assert.isTrue(yield* kit.agent.isIdle)
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: one", "user: two", "assistant: both"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("say when they are idle again, once", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "a", tools: [work("x")] }, { text: "b" }] })
      yield* kit.agent.run("one")
      assert.deepStrictEqual(
        (yield* kit.of("AgentStatusChanged")).map(({ status }) => status),
        ["thinking", "streaming", "executing", "thinking", "streaming", "idle"]
      )
    })
  )
})

describe("words that no turn has read", () => {
  it.scoped("join the queued turn that waits to begin, behind the words that it was queued for", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "all" }, { text: "alone" }] })
      yield* kit.agent.enqueue("queued")
      yield* kit.agent.enqueue("later")
      yield* kit.agent.send("one")
      yield* kit.agent.send("two")
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(
        (yield* kit.of("TurnStarted")).map(({ input }) => input),
        ["queued\n\none\n\ntwo", "later"]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("begin the next turn while a cancelled turn stops, and are no interjection", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const kit = yield* Kit.start({
        model: [{ tools: [work("a")] }, { text: "next" }],
        worker: (name) => Effect.uninterruptible(Effect.as(Deferred.await(gate), name))
      })
      yield* kit.agent.send("one")
      yield* settle
      const cancelling = yield* Effect.fork(kit.agent.cancel())
      yield* settle
      const { delivery, interjection } = yield* kit.agent.send("two")
      assert.deepStrictEqual({ delivery, interjection }, { delivery: "steer", interjection: undefined })
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(Option.getOrThrow(yield* Fiber.join(cancelling))._tag, "Cancelled")
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(
        (yield* kit.of("TurnStarted")).map(({ input }) => input),
        ["one", "two"]
      )
      assert.deepStrictEqual(yield* kit.of("UserInterjected"), [])
    })
  )

  it.scoped("begin the next turn once a turn has decided to end, and are no interjection", () =>
    Effect.gen(function* () {
      const decided = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const open = yield* SessionStore.makeMemory
      const store = open({ pid: 1, host: "here", isAlive: () => true })
      const slow: SessionStore.Service = {
        ...store,
        lock: (id) =>
          Effect.map(store.lock(id), (lease) => ({
            ...lease,
            append: (drafts) =>
              drafts.some(({ entry }) => entry._tag === "TurnEnded")
                ? Effect.zipRight(
                    Effect.zipRight(Deferred.succeed(decided, undefined), Deferred.await(gate)),
                    lease.append(drafts)
                  )
                : lease.append(drafts)
          }))
      }
      const persistence = yield* Persistence.begin(slow)
      const { agent, events } = yield* Family.start({
        script: { main: [{ text: "one" }, { text: "two" }] },
        agent: { persistence }
      })
      const first = yield* Effect.fork(agent.run("first"))
      yield* Deferred.await(decided)
      const sending = yield* Effect.fork(agent.send("second"))
      yield* settle
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(Family.textOf(yield* Fiber.join(first)), "one")
      assert.isUndefined((yield* Fiber.join(sending)).interjection)
      yield* agent.awaitIdle
      assert.deepStrictEqual(
        Family.ofTag(yield* events, "TurnStarted").map(({ input }) => input),
        ["first", "second"]
      )
      assert.deepStrictEqual(Family.ofTag(yield* events, "UserInterjected"), [])
    })
  )
})

describe("what goes along", () => {
  it.scoped("is read with the next words, before them, and begins nothing", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "one" }, { text: "two" }] })
      yield* kit.agent.leaveNote("a note")
      assert.isTrue(yield* kit.agent.isIdle)
      yield* settle
      assert.deepStrictEqual(kit.agent.history.messages, [])
      yield* kit.agent.run("hello")
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: a note", "user: hello", "assistant: one"])
      assert.deepStrictEqual(
        (yield* kit.of("TurnStarted")).map(({ input }) => input),
        ["hello"]
      )
      assert.deepStrictEqual(yield* kit.of("UserInterjected"), [])
    })
  )

  it.scoped("is what the model has to know of plan mode, once for each change that lasts", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: Array.from({ length: 5 }, () => ({ text: "ok" })) })
      const notes = () =>
        Kit.outline(kit.agent.history.messages).flatMap(
          (line) => /^user: \[(Plan mode(?: is over)?)/.exec(line)?.[1] ?? []
        )
      yield* kit.agent.run("one")
      assert.deepStrictEqual(notes(), [])
      yield* kit.agent.permissions("mode plan")
      yield* kit.agent.run("two")
      yield* kit.agent.run("three")
      assert.deepStrictEqual(notes(), ["Plan mode"])
      yield* kit.agent.permissions("mode ask")
      yield* kit.agent.permissions("mode plan")
      yield* kit.agent.run("four")
      assert.deepStrictEqual(notes(), ["Plan mode"])
      yield* kit.agent.permissions("mode ask")
      yield* kit.agent.run("five")
      assert.deepStrictEqual(notes(), ["Plan mode", "Plan mode is over"])
    })
  )
})

describe("work beside the turns", () => {
  it.scoped("keeps a session busy, which waits, until all of it is done", () =>
    Effect.gen(function* () {
      const gates = { a: yield* Deferred.make<string>(), b: yield* Deferred.make<string>() }
      const family = yield* Family.start({
        script: {
          main: [Family.calls(Family.spawn("helper"), Family.spawn("nested")), { text: "waiting" }],
          helper: [Family.work("a"), { text: "a is done" }],
          nested: [Family.work("b"), { text: "b is done" }]
        },
        runtime: { policy: Kit.allowAll },
        worker: (name) => Deferred.await(gates[name as "a"])
      })
      const status = Effect.map(family.events, (events) =>
        events.flatMap((event) => (event._tag === "AgentStatusChanged" && event.agent === "main" ? [event.status] : []))
      )
      yield* family.agent.run("go")
      yield* settle
      assert.strictEqual((yield* status).at(-1), "waiting")
      assert.isFalse(yield* family.agent.isIdle)
      const idle = yield* Effect.fork(family.agent.awaitIdle)
      yield* Deferred.succeed(gates.a, "a")
      yield* settle
      yield* settle
      assert.strictEqual((yield* status).at(-1), "waiting")
      assert.isTrue(Option.isNone(yield* Fiber.poll(idle)))
      yield* Deferred.succeed(gates.b, "b")
      yield* Fiber.join(idle)
      yield* settle
      assert.isTrue(yield* family.agent.isIdle)
      assert.strictEqual((yield* status).at(-1), "idle")
    })
  )

  it.scoped(
    "is over before a session ends that has nothing to do, and one with something at its end does not end so",
    () =>
      Effect.gen(function* () {
        const sessionOf = (kit: Kit.Started) =>
          Effect.map(kit.agent.agents, ([root]) => (root as NonNullable<typeof root>).session)
        const kit = yield* Kit.start({ model: [{ text: "hello" }] })
        const session = yield* sessionOf(kit)
        const release = session.retain()
        assert.isFalse(session.end())
        release()
        release()
        assert.isTrue(session.isIdle())
        yield* kit.agent.run("hello")
        assert.isTrue(session.end())
        assert.isTrue(session.isOver())
        const other = yield* Kit.start({ model: [{ text: "hello" }] })
        const kept = yield* sessionOf(other)
        yield* kept.atEnd(Effect.void)
        assert.isFalse(kept.end())
        assert.isFalse(kept.isOver())
        yield* kept.close({ cancel: "shutdown" })
        assert.isTrue(kept.isOver())
      })
  )
})

describe("a turn of another process", () => {
  it.scoped("asks its own questions: whether it may go on above its limit of tokens", () =>
    Effect.gen(function* () {
      const { opened, received, root, taken } = JournalSample
      const open = yield* SessionStore.makeMemory
      const process = (pid: number) => open({ pid, host: "here", isAlive: () => false })
      const begins = taken("turn_1", 1, "msg_1")
      const used: JournalEntry = {
        _tag: "UsageRecorded",
        correlationId: begins.correlationId,
        step: 1,
        model: "m/m",
        finishReason: "stop",
        usage: { inputTokens: 200 }
      }
      const entries = [opened(), received("msg_1", "go"), begins, used, JournalSample.said("hel", true)]
      const drafts = entries.map((entry, at) => ({ sessionId: root, at, entry }))
      yield* Effect.scoped(Effect.flatMap(process(1).lock(root), (lease) => lease.append(drafts)))
      const kit = yield* Kit.start({
        model: Kit.replies({ text: "done" }).model,
        person: ["y"],
        runtime: { tokens: { limits: { treeTokens: 100 } } },
        agent: { persistence: yield* Persistence.resume(process(2), root) }
      })
      const end = Option.getOrThrow(yield* kit.agent.awaitIdle)
      assert.deepStrictEqual(end, { _tag: "Completed", text: "done", steps: 2 } as TurnEnd)
      assert.deepStrictEqual(
        (yield* kit.person.shown).map(({ interaction }) => interaction._tag),
        ["Confirm"]
      )
    })
  )
})

describe("cancelling", () => {
  it.scoped("an idle session does nothing, now and later", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ text: "a" }, { text: "b" }] })
      assert.deepStrictEqual(yield* kit.agent.cancel(), Option.none())
      assert.strictEqual((yield* kit.agent.run("one"))._tag, "Completed")
      assert.deepStrictEqual(yield* kit.agent.cancel(), Option.none())
      assert.strictEqual((yield* kit.agent.run("two"))._tag, "Completed")
    })
  )

  it.scoped("before the turn has begun cancels that turn and waits for its end", () =>
    Effect.gen(function* () {
      const { heard, model } = Kit.replies({ text: "again" })
      const kit = yield* Kit.start({ model })
      yield* kit.agent.send("one")
      assert.deepStrictEqual(
        yield* kit.agent.cancel(),
        Option.some({ _tag: "Cancelled", reason: "user", steps: 0 } as TurnEnd)
      )
      assert.strictEqual(heard.length, 0)
      assert.strictEqual((yield* kit.agent.run("two"))._tag, "Completed")
      assert.deepStrictEqual(Kit.outline(kit.agent.history.messages), ["user: one", "user: two", "assistant: again"])
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("one turn leaves the queued one", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: Kit.replies({ tools: [work("a")] }, { text: "next" }).model,
        worker: () => Effect.never
      })
      yield* kit.agent.send("one")
      yield* kit.agent.enqueue("two")
      yield* settle
      assert.strictEqual(Option.getOrThrow(yield* kit.agent.cancel())._tag, "Cancelled")
      assert.strictEqual(Option.getOrThrow(yield* kit.agent.awaitIdle)._tag, "Completed")
    })
  )

  it.scoped("works though nobody reads the events that it waits to tell", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ text: "a", tools: [work("x")] }, { text: "b" }],
        agent: { events: { capacity: 1, whenFull: "wait" } }
      })
      yield* kit.agent.send("one")
      yield* settle
      assert.strictEqual(Option.getOrThrow(yield* kit.agent.cancel())._tag, "Cancelled")
      assert.isTrue(yield* kit.agent.isIdle)
    })
  )

  it.scoped("several at once agree on the end", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({ model: [{ tools: [work("a")] }], worker: () => Effect.never })
      yield* kit.agent.send("one")
      yield* settle
      const ends = yield* Effect.all([kit.agent.cancel("timeout"), kit.agent.cancel("user")], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(ends.map(Option.map((end) => (end._tag === "Cancelled" ? end.reason : end._tag))), [
        Option.some("timeout"),
        Option.some("timeout")
      ])
    })
  )
})

describe("permissions", () => {
  it.scoped("turn ends with the turn, idle with the queue", () =>
    Effect.gen(function* () {
      const calls = { tools: [work("a"), work("b")] }
      const kit = yield* Kit.start({
        model: Kit.replies(calls, calls, { text: "1" }, calls, { text: "2" }, calls, { text: "3" }).model,
        runtime: { policy: ask },
        person: ["turn", "idle", "n", "n"]
      })
      yield* kit.agent.send("one")
      yield* kit.agent.enqueue("two")
      yield* kit.agent.awaitIdle
      const methods = Effect.map(kit.of("PermissionResolved"), (all) => all.map(({ method }) => method))
      assert.deepStrictEqual(yield* methods, [
        "user_approved",
        "turn_suspension",
        "turn_suspension",
        "turn_suspension",
        "user_approved",
        "idle_suspension"
      ])
      yield* kit.agent.run("three")
      assert.deepStrictEqual((yield* methods).slice(6), ["user_denied", "user_denied"])
      assert.deepStrictEqual(
        (yield* kit.of("PermissionStatusChanged")).map(({ suspension }) => suspension),
        ["turn", undefined, "idle", undefined]
      )
      assert.deepStrictEqual(yield* kit.wrong, [])
    })
  )

  it.scoped("a call that waits in line is not asked about when an answer has decided it", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: ["a", "b", "c"].map(work) }, { text: "done" }],
        runtime: { policy: ask },
        person: ["a"]
      })
      yield* kit.agent.run("go")
      assert.deepStrictEqual(kit.results(), ["a", "b", "c"])
      assert.strictEqual((yield* kit.person.shown).length, 1)
    })
  )
})

describe("whatever happens when", () => {
  /** One agent driven at random, by a random schedule; ends with a turn that must work. */
  const drive = (seed: number) => {
    const random = Shuffled.random(seed)
    const below = (n: number) => Math.floor(random() * n)
    const pick = <A>(items: ReadonlyArray<A>): A => items[below(items.length)] as A
    const pause = Effect.suspend(() => Effect.repeatN(Effect.yieldNow(), below(12)))

    const running = new Set<object>()
    const worker: Kit.Worker = (name) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const token = {}
          running.add(token)
          return token
        }),
        () =>
          name === "hang"
            ? Effect.never
            : name === "crash"
              ? Effect.dieMessage("boom")
              : Effect.zipRight(Effect.zipRight(pause, Kit.print(name)), Effect.succeed(name)),
        (token) =>
          Effect.zipRight(
            pause,
            Effect.sync(() => running.delete(token))
          )
      )

    const names = ["a", "b", "crash", "hang"]
    const tools = () =>
      Array.from({ length: 1 + below(4) }, () => (below(8) === 0 ? { name: "nothing" } : work(pick(names))))
    const step = (): Kit.Step => ({
      ...(below(2) === 0 ? { text: "some words to say" } : {}),
      ...(below(3) === 0 ? { thinking: "hm, well" } : {}),
      ...(below(2) === 0 ? { tools: tools() } : { text: "done" }),
      chunks: 1 + below(4)
    })
    let open = 0
    const model: Model.Service = {
      id: "test/random",
      stream: ({ prompt }) => {
        const last = prompt.content.findLast((message) => message.role === "user")
        const final = JSON.stringify(last?.content).includes("final")
        const reply = final ? Kit.parts({ text: "here" }) : Kit.parts(step())
        const slow = reply.pipe(
          Stream.rechunk(1),
          Stream.tap(() => (final ? Effect.void : pause))
        )
        const broken = !final && below(12) === 0 ? Stream.take(slow, below(3)) : slow
        return Stream.acquireRelease(
          Effect.sync(() => open++),
          () => Effect.sync(() => open--)
        ).pipe(Stream.flatMap(() => broken))
      }
    }
    const answers: ReadonlyArray<TestInteractor.Step> = [
      "y",
      "n",
      "t",
      "i",
      "a",
      "never",
      "c: no",
      TestInteractor.silent,
      TestInteractor.cancel,
      TestInteractor.crash
    ]

    return Effect.scoped(
      Effect.gen(function* () {
        const kit = yield* Kit.start({
          model,
          worker,
          runtime: { policy: ask },
          person: () => ({
            react: (dialog) =>
              Effect.flatMap(pause, () => {
                const answer = pick(answers)
                return (typeof answer === "string" ? TestInteractor.type(answer) : answer).react(dialog)
              })
          }),
          agent: {
            limits: { parallelTools: 2, maxSteps: 6, modelAttempts: 2, retryDelay: 0 },
            ...(below(4) === 0 ? { events: { capacity: 1 + below(20), whenFull: "wait" as const } } : {})
          }
        })
        const { agent } = kit
        const owner = yield* Effect.fork(
          Effect.repeat(Effect.zipLeft(agent.events.takeAll, pause), { while: Option.isSome })
        )
        const wrong: Array<string> = []
        const cancel = Effect.gen(function* () {
          yield* agent.cancel(pick(["user", "timeout", "parent"] as const))
          // Other words may have begun another turn since; with nothing more to do, all is at rest.
          if (yield* agent.isIdle) {
            if (running.size > 0) wrong.push(`${running.size} tools run after a cancellation`)
            if (open > 0) wrong.push(`${open} generations are open after a cancellation`)
            const dialogs = yield* kit.person.open
            if (dialogs.length > 0) wrong.push(`${dialogs.length} dialogs are open after a cancellation`)
          }
        })
        const actions: ReadonlyArray<Effect.Effect<unknown>> = [
          Effect.orDie(agent.send("words")),
          Effect.orDie(agent.send("more words")),
          Effect.orDie(agent.enqueue("later")),
          cancel,
          cancel,
          agent.permissions(pick(["suspend turn", "resume", "default ask", "clear"]))
        ]
        yield* Effect.orDie(agent.send("begin"))
        for (let left = below(10); left > 0; left--) {
          yield* pause
          yield* pick(actions)
        }
        // Some end in the middle of it all; the others come to rest first, and then do what they are told.
        if (below(3) > 0) {
          while (!(yield* agent.isIdle)) yield* cancel
          const end = yield* Effect.orDie(agent.run("final"))
          if (end._tag !== "Completed" || end.text !== "here") {
            wrong.push(`the last turn ended as ${JSON.stringify(end)}`)
          }
        }
        yield* agent.shutdown
        const dialogs = yield* kit.person.open
        if (running.size + open + dialogs.length > 0) {
          wrong.push(`${running.size} tools, ${open} generations and ${dialogs.length} dialogs are left`)
        }
        yield* Fiber.join(owner)
        yield* Fiber.join(kit.reader)
        return [...wrong, ...(yield* kit.wrong)]
      })
    ).pipe(Effect.withScheduler(new Shuffled.Shuffled(random)))
  }

  it("the history is valid, nothing is left running, events are balanced, and the next turn works", () =>
    fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        assert.strictEqual((await Effect.runPromise(drive(seed))).join("\n"), "")
      }),
      { numRuns: Runs.of(800), timeout: 30_000, endOnFailure: true }
    ))
})
