import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { RequestId } from "../../src/core/Id.js"
import { Ask, Confirm } from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import { interactorSuite, type Subject } from "../suite/interactorSuite.js"

const settleDown = Effect.repeatN(Effect.yieldNow(), 20)

const subject = (
  form: "encoded" | "line" | "form",
  options: QueueChannel.Options
): Effect.Effect<Subject, never, Scope.Scope> =>
  Effect.gen(function* () {
    const channel = yield* QueueChannel.make(options)
    const visible = new Set<string>()
    const opened = yield* Queue.unbounded<RequestId>()
    let output = ""
    yield* Effect.forkDaemon(
      Stream.runForEach(channel.stream, (dialog) => {
        output += JSON.stringify(dialog)
        if (dialog._tag === "Closed") return Effect.sync(() => visible.delete(dialog.requestId))
        visible.add(dialog.request.requestId)
        return Queue.offer(opened, dialog.request.requestId)
      })
    )
    return {
      interactor: channel.interactor,
      output: Effect.sync(() => output),
      outside: {
        shown: Queue.take(opened),
        answer: ({ requestId }, sample) => {
          const values = form === "form" ? InteractionSample.filled(sample) : undefined
          return Effect.orDie(
            values !== undefined
              ? channel.answerForm(requestId, values)
              : form === "line"
                ? channel.answerText(requestId, sample.line)
                : channel.answer(requestId, sample.encoded)
          )
        },
        nonsense: (request) =>
          Effect.gen(function* () {
            const rejected = yield* Effect.flip(
              form === "encoded"
                ? channel.answer(request.requestId, { decision: "allow", scope: "for ever" })
                : form === "form"
                  ? channel.answerForm(request.requestId, { decision: "allow", scope: "for ever" })
                  : channel.answerText(request.requestId, "certainly, go on\nplease\nnow")
            )
            assert.strictEqual(rejected._tag, "MalformedAnswer")
          }).pipe(Effect.orDie),
        send: ({ requestId }, json) =>
          Effect.gen(function* () {
            const given =
              form === "encoded"
                ? channel.answer(requestId, JSON.parse(json))
                : form === "form"
                  ? channel.answerForm(requestId, JSON.parse(json))
                  : channel.answerText(requestId, json)
            const rejected = yield* Effect.flip(given)
            assert.strictEqual(rejected._tag, "MalformedAnswer")
            assert.isBelow(rejected.message.length, 400, "what it says of it is short")
          }).pipe(Effect.orDie),
        cancel: ({ requestId }) => Effect.orDie(channel.cancel(requestId)),
        visible: Effect.zipRight(
          settleDown,
          Effect.sync(() => [...visible])
        )
      }
    }
  })

for (const form of ["encoded", "line", "form"] as const) {
  for (const dialogs of ["one", "unbounded"] as const) {
    interactorSuite(`QueueChannel (${form} answers, dialogs: ${dialogs})`, {
      claims: InteractionSample.kinds,
      dialogs,
      make: subject(form, { dialogs })
    })
  }
}

const confirm = new Confirm({ prompt: "Deploy?", default: false })
const make = InteractionSample.request(confirm)
const forever: Interactor.Timeouts = { permission: 0, clarification: 0 }

describe("QueueChannel", () => {
  it.scoped("turns away a second answer, naming the winner, and an answer to nothing", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ id: "tui" })
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(InteractorCall.ask(channel.interactor, request))
      yield* channel.take
      yield* channel.answer(request.requestId, true)
      const late = yield* Effect.flip(channel.answer(request.requestId, false))
      assert.strictEqual(late._tag, "InteractionAlreadyAnswered")
      assert.include(late.message, "tui")
      assert.strictEqual((yield* Effect.flip(channel.answer("req_none", true)))._tag, "UnknownRequest")
      assert.strictEqual((yield* Effect.flip(channel.cancel("req_none")))._tag, "UnknownRequest")
      assert.deepStrictEqual(yield* Fiber.join(asking), { answer: true, by: "tui", how: "answered" })
    })
  )

  it.scoped("tells an answer that comes after the asker left that somebody else settled the request", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.take
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(
        yield* channel.take,
        QueueChannel.Closed({ requestId: request.requestId, status: "cancelled" })
      )
      const late = yield* Effect.flip(channel.answerText(request.requestId, "y"))
      assert.strictEqual(late._tag, "InteractionAlreadyAnswered")
    })
  )

  it.scoped("reaches the reader that is left, however many have gone before", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", timeouts: forever })
      for (let count = 0; count < 100; count++) {
        const gone = yield* Effect.fork(channel.take)
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(gone)
      }
      const left = yield* Effect.fork(channel.take)
      const others = yield* Effect.replicateEffect(Effect.fork(channel.take), 40)
      yield* settleDown
      for (const reader of others) yield* Fiber.interrupt(reader)
      const request = yield* InteractionSample.request(confirm)
      yield* Effect.fork(channel.interactor.request(request))
      assert.deepStrictEqual(yield* Fiber.join(left), QueueChannel.Opened({ request }))
    })
  )

  it.effect.prop(
    "hands out what is open in the order it came, whatever ended before it was taken",
    [FastCheck.array(FastCheck.constantFrom("ask", "end", "take"), { maxLength: 300 })],
    ([steps]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const channel = yield* QueueChannel.make({ dialogs: "unbounded", timeouts: forever, capacity: 1000 })
          const untaken: Array<{ readonly id: RequestId; readonly asking: Fiber.RuntimeFiber<unknown, unknown> }> = []
          let asked = 0
          for (const [at, step] of steps.entries()) {
            if (step === "ask" || untaken.length === 0) {
              const request = {
                ...(yield* InteractionSample.request(confirm)),
                requestId: `req_${asked++}` as RequestId
              }
              const asking = yield* Effect.fork(channel.interactor.request(request))
              yield* Effect.yieldNow()
              untaken.push({ id: request.requestId, asking })
            } else if (step === "end") {
              const [ended] = untaken.splice((at * 7) % untaken.length, 1)
              if (ended !== undefined) yield* Fiber.interrupt(ended.asking)
            } else {
              const dialog = yield* channel.take
              assert.deepStrictEqual(dialog._tag === "Opened" && dialog.request.requestId, untaken.shift()?.id)
            }
          }
          // All at once, as a reader of the stream sees them.
          const rest = yield* Stream.runCollect(Stream.take(channel.stream, untaken.length))
          assert.deepStrictEqual(
            Array.from(rest, (dialog) => dialog._tag === "Opened" && dialog.request.requestId),
            untaken.map(({ id }) => id)
          )
          const more = yield* Effect.fork(channel.take)
          yield* settleDown
          assert.isNull(more.unsafePoll(), "and nothing else")
        })
      ),
    { fastCheck: { numRuns: 60 } }
  )

  it.scoped("forgets the oldest settled ids, and no open one", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", timeouts: forever, capacity: 5000 })
      const open = yield* InteractionSample.request(confirm)
      yield* Effect.fork(channel.interactor.request(open))
      const ids: Array<string> = []
      for (let count = 0; count < 1100; count++) {
        const request = yield* InteractionSample.request(confirm)
        const asking = yield* Effect.fork(channel.interactor.request(request))
        yield* Effect.yieldNow()
        yield* channel.answer(request.requestId, true)
        yield* Fiber.join(asking)
        ids.push(request.requestId)
      }
      assert.strictEqual((yield* Effect.flip(channel.cancel(ids[0] ?? "")))._tag, "UnknownRequest")
      assert.strictEqual((yield* Effect.flip(channel.cancel(ids[1099] ?? "")))._tag, "InteractionAlreadyAnswered")
      assert.deepStrictEqual(yield* channel.open, [open])
    })
  )

  it.scoped("makes askers wait while the queue is full, in their order, and lets them in as dialogs are taken", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", capacity: 2, timeouts: forever })
      const [a, b, c, d, e] = yield* Effect.all([make, make, make, make, make])
      const fork = (request: InteractionRequest) =>
        Effect.zipLeft(Effect.fork(channel.interactor.request(request)), Effect.yieldNow())
      yield* Effect.forEach([a, b, c], fork)
      const leaving = yield* fork(d)
      yield* fork(e)
      assert.deepStrictEqual(yield* channel.open, [a, b])
      // What waits for room has not been shown and cannot be answered.
      assert.strictEqual((yield* Effect.flip(channel.answer(c.requestId, true)))._tag, "UnknownRequest")
      // An asker that leaves while it waits leaves nothing behind.
      yield* Fiber.interrupt(leaving)
      const taken = [yield* channel.take, yield* channel.take, yield* channel.take, yield* channel.take]
      assert.deepStrictEqual(
        taken,
        [a, b, c, e].map((request) => QueueChannel.Opened({ request }))
      )
      assert.deepStrictEqual(yield* channel.open, [a, b, c, e])
    })
  )

  it.scoped("lets the next asker in when a request leaves the full queue without having been taken", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", capacity: 1, timeouts: forever })
      const [a, b, c] = yield* Effect.all([make, make, make])
      const leaving = yield* Effect.fork(channel.interactor.request(a))
      yield* Effect.forEach([b, c], (request) => Effect.fork(channel.interactor.request(request)))
      yield* settleDown
      yield* Fiber.interrupt(leaving)
      assert.deepStrictEqual(yield* channel.open, [b])
      yield* channel.answer(b.requestId, true)
      assert.deepStrictEqual(yield* channel.take, QueueChannel.Opened({ request: c }))
    })
  )

  it.scoped("never shows a request that was withdrawn before it was taken", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded" })
      const gone = yield* InteractionSample.request(confirm)
      const answered = yield* InteractionSample.request(confirm)
      const kept = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(channel.interactor.request(gone))
      yield* Effect.fork(channel.interactor.request(answered))
      yield* Effect.fork(channel.interactor.request(kept))
      yield* settleDown
      yield* Fiber.interrupt(asking)
      yield* channel.answer(answered.requestId, true)
      assert.deepStrictEqual(yield* channel.take, QueueChannel.Opened({ request: kept }))
    })
  )

  it.scoped("loses no dialog to a reader that is interrupted while it waits", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const readers = [yield* Effect.fork(channel.take), yield* Effect.fork(channel.take)]
      yield* settleDown
      const request = yield* InteractionSample.request(confirm)
      yield* Effect.fork(channel.interactor.request(request))
      yield* Effect.forEach(readers.slice(0, 1), Fiber.interrupt)
      const dialogs = yield* Effect.forEach(readers, Fiber.await)
      const seen = dialogs.filter(Exit.isSuccess).length + (yield* channel.open).length
      assert.isAtLeast(seen, 1)
      yield* channel.answerText(request.requestId, "y")
    })
  )

  it.scoped("takes the clock of its own timeouts from the moment the request is shown, and says what happened", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const first = yield* InteractionSample.request(confirm)
      const second = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(Effect.either(channel.interactor.request(first)))
      yield* settleDown
      const waiting = yield* Effect.fork(Effect.either(channel.interactor.request(second)))
      yield* channel.take
      yield* TestClock.adjust("59 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* TestClock.adjust("1 seconds")
      const timedOut = yield* Fiber.join(asking)
      assert.isTrue(Either.isLeft(timedOut) && timedOut.left._tag === "InteractionTimedOut")
      assert.deepStrictEqual(
        yield* channel.take,
        QueueChannel.Closed({ requestId: first.requestId, status: "timed_out", by: "queue" })
      )
      // The second was in line: its minute has only begun.
      assert.deepStrictEqual(yield* channel.take, QueueChannel.Opened({ request: second }))
      yield* TestClock.adjust("59 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)))
      yield* channel.answer(second.requestId, true)
      assert.isTrue(Either.isRight(yield* Fiber.join(waiting)))
    })
  )

  it.scoped("denies nothing by itself: a timeout allows only where that was asked for, and says so", () =>
    Effect.gen(function* () {
      const { interaction } = InteractionSample.samples.Approve
      for (const onTimeout of ["allow", "deny", undefined] as const) {
        const channel = yield* QueueChannel.make({ timeouts: { permission: Duration.seconds(5), onTimeout } })
        const request = yield* InteractionSample.request(interaction)
        const asking = yield* Effect.fork(Effect.either(channel.interactor.request(request)))
        yield* channel.take
        yield* TestClock.adjust("5 seconds")
        const ended = yield* Fiber.join(asking)
        if (onTimeout === "allow") {
          assert.deepStrictEqual(
            ended,
            Either.right({ answer: { decision: "allow", scope: "once" }, by: "queue", how: "timeout" })
          )
        } else assert.isTrue(Either.isLeft(ended) && ended.left._tag === "InteractionTimedOut")
      }
    })
  )

  it.scoped("counts the time of a request from when a reader takes it, one by one or all at once", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", capacity: 1 })
      const ask = Effect.flatMap(InteractionSample.request(confirm), (request) =>
        Effect.fork(Effect.flip(channel.interactor.request(request)))
      )
      const [first, second, third] = [yield* ask, yield* ask, yield* ask]
      yield* TestClock.adjust("1 hour")
      yield* channel.take
      yield* TestClock.adjust("30 seconds")
      yield* channel.take
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* Fiber.join(first))._tag, "InteractionTimedOut")
      assert.isNull(second.unsafePoll())
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* Fiber.join(second))._tag, "InteractionTimedOut")
      assert.isNull(third.unsafePoll())
      yield* Effect.forkScoped(Stream.runDrain(channel.stream))
      yield* TestClock.adjust("60 seconds")
      assert.strictEqual((yield* Fiber.join(third))._tag, "InteractionTimedOut")
      assert.deepStrictEqual(yield* channel.open, [])
    })
  )

  const partial: ReadonlyArray<Interactor.Timeouts> = [
    {},
    { permission: undefined, clarification: undefined },
    { onTimeout: "allow" },
    { clarification: 0 }
  ]
  it.scoped.each([...partial])("keeps its default for what is not given: %j", (timeouts) =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ timeouts })
      const request = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      const asking = yield* Effect.fork(Effect.either(channel.interactor.request(request)))
      yield* channel.take
      yield* TestClock.adjust("29 seconds")
      assert.isNull(asking.unsafePoll())
      yield* TestClock.adjust("1 second")
      assert.strictEqual(Either.isRight(yield* Fiber.join(asking)), timeouts.onTimeout === "allow")
    })
  )

  it.scoped.each([0, -1, Number.POSITIVE_INFINITY, Duration.infinity])("waits for ever when its time is %s", (limit) =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ timeouts: { permission: limit, clarification: limit } })
      const asking = yield* Effect.fork(channel.interactor.request(yield* make))
      yield* channel.take
      yield* TestClock.adjust("1000 days")
      assert.isNull(asking.unsafePoll())
    })
  )

  it.scoped("names the person who answers or cancels, whatever the form", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ id: "tui", dialogs: "unbounded" })
      const [first, second, third] = [yield* make, yield* make, yield* make]
      const asking = yield* Effect.fork(
        Effect.forEach([first, second, third], (request) => Effect.either(channel.interactor.request(request)), {
          concurrency: 3
        })
      )
      yield* settleDown
      yield* channel.answer(first.requestId, true, "ada")
      yield* channel.answerText(second.requestId, "n", "bob")
      yield* channel.cancel(third.requestId, "eve")
      assert.deepStrictEqual(
        (yield* Fiber.join(asking)).map((end) =>
          Either.isRight(end) ? end.right.by : "by" in end.left && end.left.by
        ),
        ["ada", "bob", "eve"]
      )
      const late = yield* Effect.flip(channel.answer(first.requestId, true, "bob"))
      assert(late._tag === "InteractionAlreadyAnswered")
      assert.strictEqual(late.by, "ada")
    })
  )

  it.scoped("takes the answer that is known already when the request reaches the head of its line", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const known = yield* Deferred.make<boolean>()
      const recheck = Effect.map(Deferred.isDone(known), (done) => (done ? Option.some(true) : Option.none()))
      const first = yield* InteractionSample.request(confirm)
      const second = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(InteractorCall.ask(channel.interactor, first, { recheck }))
      yield* channel.take
      const waiting = yield* Effect.fork(InteractorCall.ask(channel.interactor, second, { recheck }))
      yield* settleDown
      yield* Deferred.succeed(known, true)
      yield* channel.answer(first.requestId, false)
      assert.strictEqual((yield* Fiber.join(asking)).how, "answered")
      assert.deepStrictEqual(yield* Fiber.join(waiting), { answer: true, by: "policy", how: "recheck" })
      assert.deepStrictEqual(yield* channel.open, [])
    })
  )

  it.scoped("refuses a second request under an id that is open, and takes the id again afterwards", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded" })
      const request = yield* InteractionSample.request(confirm)
      const asking = yield* Effect.fork(channel.interactor.request(request))
      yield* channel.take
      assert.strictEqual((yield* Effect.flip(channel.interactor.request(request)))._tag, "InteractorUnavailable")
      yield* channel.answer(request.requestId, true)
      yield* Fiber.join(asking)
      yield* channel.take
      const again = yield* Effect.fork(channel.interactor.request(request))
      assert.deepStrictEqual(yield* channel.take, QueueChannel.Opened({ request }))
      yield* channel.answer(request.requestId, false)
      assert.strictEqual((yield* Fiber.join(again)).answer, false)
    })
  )

  it.effect("ends its dialogs with its scope and is unavailable from then on", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const channel = yield* Scope.extend(QueueChannel.make({ dialogs: "unbounded", capacity: 2 }), scope)
      const requests = yield* Effect.all(Array.from({ length: 4 }, () => InteractionSample.request(confirm)))
      const askers = yield* Effect.forEach(requests, (request) =>
        Effect.fork(Effect.flip(channel.interactor.request(request)))
      )
      yield* settleDown
      yield* channel.take
      yield* Scope.close(scope, Exit.void)
      const ended = yield* Effect.forEach(askers, Fiber.join)
      assert.deepStrictEqual(
        ended.map((error) => error._tag),
        Array.from({ length: 4 }, () => "InteractionCancelled")
      )
      const rest = yield* Stream.runCollect(channel.stream)
      assert.deepStrictEqual(
        [...rest],
        requests
          .slice(0, 1)
          .map(({ requestId }) => QueueChannel.Closed({ requestId, status: "cancelled", by: "queue" }))
      )
      assert.isTrue(Exit.isInterrupted(yield* Effect.exit(channel.take)))
      const refused = yield* Effect.flip(channel.interactor.request(yield* InteractionSample.request(confirm)))
      assert.strictEqual(refused._tag, "InteractorUnavailable")
    })
  )

  it.scoped("keeps what was sent out of the rejection of a secret, and cuts long reasons", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded" })
      const secret = yield* InteractionSample.request(InteractionSample.samples["Auth.Password"].interaction)
      const plain = yield* InteractionSample.request(confirm)
      yield* Effect.fork(channel.interactor.request(secret))
      yield* Effect.fork(channel.interactor.request(plain))
      yield* settleDown
      const rejected = yield* Effect.flip(channel.answer(secret.requestId, { value: InteractionSample.password }))
      assert.notInclude(rejected.message, InteractionSample.password)
      const huge = yield* Effect.flip(channel.answer(plain.requestId, "x".repeat(10_000_000)))
      assert.isBelow(huge.message.length, 1000)
      const binary = yield* Effect.flip(channel.answerText(plain.requestId, "\u0000\u0001y\u0002"))
      assert.strictEqual(binary._tag, "MalformedAnswer")
      assert.strictEqual((yield* channel.open).length, 2)
    })
  )

  it.effect("is an interactor and a queue as one layer", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.QueueChannel
      const asking = yield* Effect.fork(Interactor.ask(new Ask({ prompt: "Name?" })))
      const dialog = yield* channel.take
      const requestId = dialog._tag === "Opened" ? dialog.request.requestId : ""
      yield* channel.answerText(requestId, "Ada\n")
      assert.strictEqual(yield* Fiber.join(asking), "Ada")
    }).pipe(Effect.provide(QueueChannel.layer()))
  )

  it.scoped("lets ten thousand requests wait and answers them in any order", () =>
    Effect.gen(function* () {
      const count = 10_000
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", timeouts: forever })
      const asking = yield* Effect.fork(
        Effect.forEach(
          Array.from({ length: count }, (_, index) => index),
          (index) =>
            Effect.map(Interactor.ask(new Ask({ prompt: String(index) })), (answer) => answer === String(index)),
          { concurrency: "unbounded" }
        ).pipe(Effect.provide(Interactor.layer(channel.interactor)))
      )
      const taken: Array<QueueChannel.Dialog> = []
      while (taken.length < count) taken.push(yield* channel.take)
      for (const dialog of taken.reverse()) {
        if (dialog._tag === "Closed" || dialog.request.interaction._tag !== "Ask") continue
        yield* channel.answer(dialog.request.requestId, dialog.request.interaction.prompt)
      }
      const right = yield* Fiber.join(asking)
      assert.isTrue(right.every((ok) => ok))
      assert.deepStrictEqual(yield* channel.open, [])
    })
  )
})
