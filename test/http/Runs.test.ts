import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Redaction from "../../src/core/Redaction.js"
import type * as Host from "../../src/host/Host.js"
import * as Answers from "../../src/http/Answers.js"
import type * as RunProjection from "../../src/http/RunProjection.js"
import * as Runs from "../../src/http/Runs.js"
import type { Stores } from "../../src/http/Stores.js"
import { Ask, AuthPassword, type Interaction } from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import { settle } from "../kit/Recorder.js"
import * as Kit from "../kit/session.js"

/** Sees all that is asked, and answers nothing. */
const silent: Interactor.Service = { id: "silent", relay: false, request: () => Effect.never }

/** A stored agent whose answers to words take ten seconds, and the runs of it. */
const world = (model: ReadonlyArray<Kit.Step> = [{ text: "done", delay: "10 seconds" }]) =>
  Effect.gen(function* () {
    const store = (yield* SessionStore.makeMemory)({ pid: 1, host: "here", isAlive: () => true })
    const persistence = yield* Persistence.begin(store)
    const { agent } = yield* Kit.start({ model, interactors: [silent], agent: { persistence } })
    const session: Runs.Session = {
      id: agent.id,
      agent,
      redactor: Redaction.shapesOnly,
      // No test has jobs.
      jobs: { list: () => [] } as Partial<Runs.Session["jobs"]> as Runs.Session["jobs"]
    }
    const stores: Stores = {
      all: [store],
      session: () => Effect.succeed(undefined),
      interrupted: Effect.succeed([]),
      openCount: Effect.succeed(0),
      request: (id) => Effect.map(store.findRequest(id as never), (found) => found && { ...found, store }),
      openRequests: () => Effect.succeed({ waiting: [], remarks: [] })
    }
    // Of a host only its live sessions are looked at.
    const host = { live: Effect.succeed([session as Host.LiveSession]) } as Partial<Host.Service> as Host.Service
    const runs = Runs.make(stores, Answers.make(host, stores))
    const begin = (start: Partial<Runs.Start>, name = "ada") =>
      Effect.gen(function* () {
        const seen = yield* Ref.make<ReadonlyArray<RunProjection.Piece>>([])
        const pieces = yield* runs.begin(
          session,
          {
            thread: "t",
            words: [],
            resume: [],
            said: [],
            shown: [],
            answers: (kind) => kind !== "Auth.Password",
            refusesStale: false,
            ...start
          },
          { person: { name }, isPrivate: true }
        )
        const running = yield* Effect.fork(
          Stream.runForEach(pieces, (piece) => Ref.update(seen, (all) => [...all, piece]))
        )
        yield* settle
        return {
          running,
          tags: Effect.map(Ref.get(seen), (all) =>
            all.map(({ _tag }) => _tag).filter((tag) => tag !== "StateChanged" && tag !== "Happened")
          ),
          last: Effect.map(Ref.get(seen), (all) => all.at(-1))
        }
      })
    const ask = <I extends Interaction>(interaction: I) =>
      Interactor.ask(interaction).pipe(
        Interactor.withInteractor(agent.broker.interactor),
        Effect.either,
        Effect.forkScoped
      )
    const pass = (time: "1 seconds" | "10 seconds" | "60 millis" | "39 millis" | "1 millis" | "100 millis") =>
      Effect.zipRight(TestClock.adjust(time), settle)
    const open = Effect.map(agent.broker.open, (all) => all.map(({ requestId }) => String(requestId)))
    return { agent, begin, ask, pass, open }
  })

const words = [{ id: "m1", input: "go" }]

const asked = (end: RunProjection.Piece | undefined) =>
  end?._tag === "Interrupted"
    ? end.requests.map(({ request: { interaction } }) => ("prompt" in interaction ? interaction.prompt : ""))
    : end?._tag

describe("a run", () => {
  it.scoped("ends with the turn of its words, and shows them whole", () =>
    Effect.gen(function* () {
      const { begin, pass } = yield* world()
      const { running, tags } = yield* begin({ words })
      yield* pass("10 seconds")
      yield* Fiber.join(running)
      assert.deepStrictEqual(yield* tags, [
        "StepStarted",
        "BlockStarted",
        "BlockDelta",
        "BlockEnded",
        "StepEnded",
        "Finished"
      ])
    })
  )

  it.scoped("shows words of others as theirs, and none of its own user's again", () =>
    Effect.gen(function* () {
      const { agent, begin, pass } = yield* world([
        { text: "one", delay: "10 seconds" },
        { text: "two", delay: "10 seconds" },
        { text: "three" }
      ])
      const run = yield* begin({ words })
      yield* agent.enqueue("from a terminal", { id: "t1" })
      yield* pass("10 seconds")
      assert.strictEqual((yield* run.last)?._tag, "Finished")
      assert.notInclude(yield* run.tags, "Said")
      const next = yield* begin({ words: [{ id: "m2", input: "and then" }] })
      yield* pass("10 seconds")
      yield* pass("10 seconds")
      assert.strictEqual((yield* next.last)?._tag, "Finished")
      const again = yield* begin({ said: [{ id: "m1", text: "go" }], words: [{ id: "m2", input: "and then" }] })
      assert.notInclude(yield* again.tags, "Said")
      const other = yield* begin({ said: [{ id: "t1", text: "from a terminal" }] })
      // To this client the other's words are another person's.
      assert.include(yield* other.tags, "Said")
      const whole = yield* begin({ words })
      assert.notInclude(yield* whole.tags, "Said")
    })
  )

  it.scoped("ends as interrupted 100 ms after a question, with all that is open by then", () =>
    Effect.gen(function* () {
      const { ask, begin, pass } = yield* world()
      const run = yield* begin({ words })
      yield* ask(new Ask({ prompt: "one" }))
      yield* pass("60 millis")
      yield* ask(new Ask({ prompt: "two" }))
      yield* pass("39 millis")
      assert.notInclude(yield* run.tags, "Interrupted")
      yield* pass("1 millis")
      assert.deepStrictEqual(asked(yield* run.last), ["one", "two"])
      yield* ask(new Ask({ prompt: "three" }))
      yield* Fiber.join(run.running)
      const next = yield* begin({ said: [{ id: "m1", text: "go" }] })
      yield* pass("100 millis")
      assert.deepStrictEqual(asked(yield* next.last), ["one", "two", "three"])
    })
  )

  it.scoped("goes on when somebody else answers before it would end", () =>
    Effect.gen(function* () {
      const { agent, ask, begin, open, pass } = yield* world()
      const run = yield* begin({ words })
      yield* ask(new Ask({ prompt: "one" }))
      yield* pass("60 millis")
      const [id = ""] = yield* open
      yield* agent.broker.answer(id, "grace", "yes")
      yield* pass("100 millis")
      assert.notInclude(yield* run.tags, "Interrupted")
      yield* pass("10 seconds")
      assert.strictEqual((yield* run.last)?._tag, "Finished")
    })
  )

  it.scoped("leaves a password to the others, and waits", () =>
    Effect.gen(function* () {
      const { ask, begin, open, pass } = yield* world()
      const run = yield* begin({ words })
      yield* ask(new AuthPassword({ prompt: "secret?" }))
      yield* pass("1 seconds")
      assert.notInclude(yield* run.tags, "Interrupted")
      const [id = ""] = yield* open
      const forged = yield* begin({ resume: [{ requestId: id, status: "resolved", payload: "hunter2" }] })
      assert.deepInclude(yield* forged.last, { _tag: "Failed", code: "invalid_payload" })
      assert.deepStrictEqual(yield* open, [id])
    })
  )

  it.scoped("gives no answer when one is missing, unknown or does not fit, and the agent waits on", () =>
    Effect.gen(function* () {
      const { ask, begin, open, pass } = yield* world()
      yield* begin({ words })
      yield* ask(new Ask({ prompt: "one" }))
      yield* ask(new Ask({ prompt: "two" }))
      yield* pass("100 millis")
      const ids = yield* open
      const [one = "", two = ""] = ids
      const answer = (requestId: string, payload: unknown) => ({ requestId, status: "resolved" as const, payload })
      const cases = [
        { resume: [answer(one, { answer: "a" })], code: "partial_resume", says: two },
        { resume: [answer(one, { answer: "a" }), answer(two, { answer: 1 })], code: "invalid_payload", says: two },
        { resume: [answer(one, { answer: "a" }), answer(two, "b")], code: "invalid_payload", says: two },
        { resume: [answer(one, { answer: "a" }), answer("req_no", {})], code: "unknown_interrupt", says: "req_no" }
      ]
      for (const { code, resume, says } of cases) {
        const run = yield* begin({ resume })
        const end = yield* run.last
        assert.deepInclude({ ...end }, { _tag: "Failed", code })
        assert.include(end?._tag === "Failed" ? end.message : "", says)
        assert.deepStrictEqual(yield* open, ids)
      }
      const other = yield* begin({ thread: "another", resume: [answer(one, { answer: "a" })] })
      yield* pass("100 millis")
      assert.deepStrictEqual(asked(yield* other.last), ["two"])
    })
  )

  it.scoped("that a page leaves changes nothing, and is shown again under the ids it had", () =>
    Effect.gen(function* () {
      const { agent, begin, pass } = yield* world([{ text: "one two three four", chunks: 4, chunkDelay: "1 second" }])
      const first = yield* begin({ words })
      yield* pass("1 seconds")
      yield* Fiber.interrupt(first.running)
      yield* pass("1 seconds")
      const again = yield* begin({ words })
      yield* pass("10 seconds")
      assert.strictEqual((yield* again.last)?._tag, "Finished")
      assert.isTrue(yield* agent.isIdle)
      const late = yield* begin({ words })
      const shown = yield* again.tags
      assert.deepStrictEqual(
        yield* late.tags,
        shown.filter((tag, index) => shown.indexOf(tag) === index)
      )
    })
  )
})
