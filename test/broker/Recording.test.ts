/** What a journal and an audit have of a question, and what counts when they have nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { AuditEntry } from "../../src/audit/AuditRecord.js"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import type { RequestId } from "../../src/core/Id.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import { ResumedRequests } from "../../src/interaction/ResumedRequests.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"

const { samples } = InteractionSample
const full = "the disk is full"

interface Recording {
  readonly raised?: Effect.Effect<void, string>
  readonly settled?: Effect.Effect<void, string>
  readonly kept?: InteractionBroker.Kept
  isParked?: boolean
}

/** A broker with a journal that does this, and a person who answers so; what was recorded and told, in order. */
const setup = (
  recording: Recording,
  person: TestInteractor.Script = ["y"],
  audit?: (seen: Array<string>) => AuditTrail.Service
) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const recorder = yield* Recorder.make((event) => seen.push(event._tag))
    const journal: InteractionBroker.InteractionJournal = {
      isParked: () => recording.isParked === true,
      kept: () => recording.kept,
      settledBy: () => "ada",
      raised: () => Effect.suspend(() => (seen.push("raised"), recording.raised ?? Effect.void)),
      settled: (_, end, audited) =>
        Effect.suspend(() => {
          seen.push(`settled ${Exit.isSuccess(end)}${audited === undefined ? "" : ` ${audited.outcome}`}`)
          return recording.settled ?? Effect.void
        }),
      voted: () => Effect.void,
      votes: () => []
    }
    const scope = yield* Effect.scope
    const broker = yield* InteractionBroker.make({ bus: recorder.bus, journal, audit: audit?.(seen) })
    const attached = yield* Scope.fork(scope, ExecutionStrategy.sequential)
    const someone = yield* TestInteractor.make({ script: person })
    yield* Scope.extend(broker.attach(someone.interactor), attached)
    const request = yield* InteractionSample.request(samples.Confirm.interaction)
    const asking = Effect.fork(Effect.either(broker.interactor.request(request)))
    return { broker, someone, request, asking, seen, attached }
  })

const failureOf = <A, E extends { readonly message: string }>(exit: Either.Either<A, E>) =>
  Either.isLeft(exit) ? exit.left.message : "it was answered"

describe("a journal of questions", () => {
  it.scoped("has a question before anybody sees it, and its end before the answer counts", () =>
    Effect.gen(function* () {
      const { asking, seen } = yield* setup({})
      const exit = yield* Fiber.join(yield* asking)
      assert.isTrue(exit._tag === "Right" && exit.right.answer === true)
      assert.deepStrictEqual(seen, ["raised", "InteractionRequested", "settled true", "InteractionAnswered"])
    })
  )

  it.scoped("that cannot have it asks nobody", () =>
    Effect.gen(function* () {
      const { asking, someone } = yield* setup({ raised: Effect.fail(full) })
      assert.match(failureOf(yield* Fiber.join(yield* asking)), /^journal could not answer: the disk is full/)
      assert.deepStrictEqual(yield* someone.shown, [])
    })
  )

  it.scoped("that cannot have its end counts no answer, and leaves other ends as they are", () =>
    Effect.gen(function* () {
      const { asking } = yield* setup({ settled: Effect.fail(full) })
      assert.match(failureOf(yield* Fiber.join(yield* asking)), /^journal could not answer: the disk is full/)
      const other = yield* setup({ settled: Effect.fail(full) }, [TestInteractor.silent])
      const fiber = yield* other.asking
      yield* Recorder.settle
      assert.isTrue(yield* other.broker.cancel(other.request.requestId, "ada"))
      const exit = yield* Fiber.join(fiber)
      assert.strictEqual(exit._tag === "Left" ? exit.left._tag : "", "InteractionCancelled")
    })
  )

  it.scoped("that has an end already asks nobody; one that fits no more is none", () =>
    Effect.gen(function* () {
      const answered = yield* setup({ kept: { answer: false, at: 3, by: "ada", how: "timeout" } })
      const exit = yield* Fiber.join(yield* answered.asking)
      assert.deepInclude(exit._tag === "Right" ? exit.right : {}, { answer: false, by: "ada", how: "timeout", at: 3 })
      assert.deepStrictEqual(yield* answered.someone.shown, [])
      assert.notInclude(answered.seen, "raised")
      const plain = yield* setup({ kept: { answer: true, at: 3, by: "ada" } })
      const plainExit = yield* Fiber.join(yield* plain.asking)
      assert.deepInclude(plainExit._tag === "Right" ? plainExit.right : {}, { answer: true, how: "answered" })
      const withdrawn = yield* setup({ kept: { at: 3, by: "ada" } })
      const end = yield* Fiber.join(yield* withdrawn.asking)
      assert.deepInclude(end._tag === "Left" ? end.left : {}, { _tag: "InteractionCancelled", by: "ada", at: 3 })
      const misfit = yield* setup({ kept: { answer: "perhaps", at: 3, by: "ada" } })
      const asked = yield* Fiber.join(yield* misfit.asking)
      assert.deepInclude(asked._tag === "Right" ? asked.right : {}, { answer: true, by: "person" })
    })
  )

  it.scoped("of a process that ends keeps the question open: no answer is taken, and no end is recorded", () =>
    Effect.gen(function* () {
      const recording: Recording = {}
      const { asking, broker, request, seen } = yield* setup(recording, [TestInteractor.silent])
      const fiber = yield* asking
      yield* Recorder.settle
      recording.isParked = true
      for (const refused of [
        yield* Effect.flip(broker.answer(request.requestId, "ada", true)),
        yield* Effect.flip(broker.cancel(request.requestId, "ada"))
      ])
        assert.deepInclude(refused, { _tag: "VoteRefused", by: "ada", unwritten: true })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(
        seen.filter((line) => line.startsWith("settled")),
        []
      )
    })
  )

  it.scoped("keeps a question for another process when all have gone", () =>
    Effect.gen(function* () {
      const { asking, attached, broker, request } = yield* setup({}, [TestInteractor.silent])
      const fiber = yield* asking
      yield* Recorder.settle
      yield* Scope.close(attached, Exit.void)
      yield* Recorder.settle
      assert.deepStrictEqual(
        (yield* broker.open).map(({ requestId }) => requestId),
        [request.requestId]
      )
      yield* broker.answer(request.requestId, "ada", true)
      const exit = yield* Fiber.join(fiber)
      assert.isTrue(exit._tag === "Right" && exit.right.answer === true)
    })
  )

  it.scoped("is not lost with a channel that closes while it asks, and is with one that breaks", () =>
    Effect.gen(function* () {
      const isOpen = (why: "closes" | "breaks") =>
        Effect.gen(function* () {
          const { attached, broker, request } = yield* setup({}, [TestInteractor.silent])
          yield* Scope.close(attached, Exit.void)
          const gone = new InteractionCancelled({ requestId: request.requestId })
          yield* broker.attach({
            id: "channel",
            relay: false,
            request: () => (why === "closes" ? Effect.fail(gone) : Effect.dieMessage("broken"))
          })
          const fiber = yield* Effect.fork(Effect.exit(broker.interactor.request(request)))
          yield* Recorder.settle
          const open = yield* broker.open
          yield* Fiber.interrupt(fiber)
          return open.length
        })
      assert.strictEqual(yield* isOpen("closes"), 1)
      assert.strictEqual(yield* isOpen("breaks"), 0)
    })
  )

  it.scoped("has the end of a question of a former process also if it is withdrawn before it is asked again", () =>
    Effect.gen(function* () {
      const { broker, seen, someone } = yield* setup({}, [TestInteractor.silent])
      const approve = InteractionSample.request(samples.Approve.interaction)
      const first = yield* Effect.fork(Effect.exit(broker.interactor.request(yield* approve)))
      yield* Recorder.settle
      for (const isResumed of [true, false]) {
        seen.length = 0
        const before = { requestId: "req_before" as RequestId, issuedAt: 1 }
        const request = yield* approve.pipe(
          Effect.provideService(ResumedRequests, { take: () => (isResumed ? before : undefined) })
        )
        // It stands in line behind the first one.
        const waiting = yield* Effect.fork(Effect.exit(broker.interactor.request(request)))
        yield* Recorder.settle
        assert.deepStrictEqual(seen, [])
        yield* Fiber.interrupt(waiting)
        assert.deepStrictEqual(
          seen,
          isResumed ? ["raised", "InteractionRequested", "settled false", "InteractionCancelled"] : []
        )
      }
      assert.lengthOf(yield* someone.shown, 1)
      yield* Fiber.interrupt(first)
    })
  )

  it.scoped("has the end of one whose rules crash, and nobody is asked", () =>
    Effect.gen(function* () {
      const { broker, seen, someone } = yield* setup({}, ["y"])
      const request = yield* InteractionSample.request(samples.Approve.interaction).pipe(
        Effect.provideService(ResumedRequests, {
          take: () => ({ requestId: "req_before" as RequestId, issuedAt: 1 })
        })
      )
      const recheck = Effect.dieMessage("broken")
      const asking = yield* Effect.fork(Effect.exit(broker.interactor.request(request, { recheck })))
      const exit = yield* Fiber.join(asking)
      assert.isTrue(Exit.isFailure(exit) && Cause.isDie(exit.cause))
      assert.deepStrictEqual(seen.slice(0, 3), ["raised", "InteractionRequested", "settled false"])
      assert.deepStrictEqual(yield* someone.shown, [])
    })
  )

  it.scoped("says who settled a question in a former process to those who come too late", () =>
    Effect.gen(function* () {
      const { broker } = yield* setup({})
      assert.deepInclude(yield* Effect.flip(broker.answer("req_former", "eve", true)), {
        _tag: "InteractionAlreadyAnswered",
        by: "ada"
      })
    })
  )
})

describe("an audit of questions", () => {
  const trail =
    (more: Partial<AuditTrail.Service> = {}) =>
    (seen: Array<string>): AuditTrail.Service => ({
      record: (entry: AuditEntry) => Effect.sync(() => void seen.push(`audit ${entry.kind} ${entry.outcome}`)),
      release: () => Effect.void,
      ...more
    })
  const unwritable = new AuditTrail.AuditUnwritable({ directory: "/audit", reason: full })

  it.scoped("has the end behind the journal and before it is told", () =>
    Effect.gen(function* () {
      const { asking, seen } = yield* setup({}, ["y"], trail())
      yield* Fiber.join(yield* asking)
      assert.deepStrictEqual(seen, [
        "raised",
        "InteractionRequested",
        "settled true answered",
        "audit Confirm answered",
        "InteractionAnswered"
      ])
    })
  )

  it.scoped("of the journal's own store has it with the journal's entry", () =>
    Effect.gen(function* () {
      const { asking, seen } = yield* setup({}, ["y"], trail({ note: () => undefined }))
      yield* Fiber.join(yield* asking)
      assert.deepStrictEqual(seen.slice(2), ["settled true answered", "InteractionAnswered"])
    })
  )

  it.scoped("that cannot be written counts no answer, and leaves other ends as they are", () =>
    Effect.gen(function* () {
      const failing = trail({ record: () => unwritable })
      const { asking } = yield* setup({}, ["y"], failing)
      assert.match(failureOf(yield* Fiber.join(yield* asking)), /^audit could not answer: .*the disk is full/)
      const other = yield* setup({}, ["cancel"], failing)
      const exit = yield* Fiber.join(yield* other.asking)
      assert.strictEqual(exit._tag === "Left" ? exit.left._tag : "", "InteractionCancelled")
    })
  )
})
