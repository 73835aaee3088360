/** What is faster than the port belongs to the function it is faster than, and how an answer came about to that answer. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import * as AutoChannel from "../../src/channel/AutoChannel.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import type { Interaction } from "../../src/interaction/Interaction.js"
import type { InteractionError } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as GateKit from "../kit/gate.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"
import { wrapped } from "../kit/Wrapping.js"

const approve = InteractionSample.samples.Approve.interaction
const yes = { decision: "allow", scope: "once" } as const

const newBroker = Effect.gen(function* () {
  const { bus } = yield* Recorder.make()
  return yield* InteractionBroker.make({ bus })
})

/** Withdraws in its own name whatever it is asked, and counts. */
const refusing = () => {
  const asked: Array<string> = []
  const request: Interactor.Service["request"] = ({ requestId }) =>
    Effect.suspend(() => {
      asked.push(requestId)
      return Effect.succeed({ answer: { decision: "deny", scope: "once" } as never, by: "the wrapper" })
    })
  return { asked, request }
}

type Ask = (
  service: Interactor.Service,
  options?: Interactor.Options<Interaction>
) => Effect.Effect<Interactor.Answered<Interaction>, InteractionError>
const asks =
  (interaction: Interaction): Ask =>
  (service, options) =>
    Effect.flatMap(InteractionSample.request(interaction), (request) => InteractorCall.ask(service, request, options))

const robot = (how: "model" | "auto"): Interactor.Service =>
  Interactor.make({
    id: "robot",
    how,
    handlers: {
      Approve: Interactor.declines,
      grantStageTool: Interactor.declines,
      approveSubagentEnvelope: Interactor.declines,
      Clarify: Interactor.declines,
      Ask: Interactor.declines,
      Select: Interactor.declines,
      Confirm: () => Effect.succeed(true),
      Elicit: Interactor.declines,
      "Auth.DeviceCode": Interactor.declines,
      "Auth.Password": Interactor.declines
    }
  })

describe("an interactor that is wrapped", () => {
  it.scoped("is asked by the broker, however a channel is wrapped", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", timeouts: {} })
      assert.isDefined(InteractorCall.posting.of(channel.interactor.request), "or there is nothing to be passed by")
      const { asked, request: own } = refusing()
      const ways = wrapped(channel.interactor, "request", own)
      assert.isAtLeast(ways.length, 5)
      for (const [way, interactor] of ways) {
        asked.length = 0
        const broker = yield* newBroker
        yield* broker.attach(interactor)
        const request = yield* InteractionSample.request(approve)
        const answered = yield* InteractorCall.ask(broker.interactor, request)
        assert.deepStrictEqual([answered.by, answered.how], ["the wrapper", "answered"], way)
        assert.deepStrictEqual(asked, [request.requestId], way)
        assert.deepStrictEqual(yield* channel.open, [], way)
      }
    })
  )

  it.scoped("is asked by the gate, however a broker is wrapped", () =>
    Effect.gen(function* () {
      const broker = yield* newBroker
      const { asked, request: own } = refusing()
      for (const [way, interactor] of wrapped(broker.interactor, "request", own)) {
        asked.length = 0
        const kit = yield* GateKit.make({ interactor })
        assert.strictEqual((yield* kit.check("deploy", { n: 1 }))._tag, "Denied", way)
        assert.lengthOf(asked, 1, way)
        assert.deepStrictEqual(
          kit.resolved().map(({ by, method }) => [by, method]),
          [["the wrapper", "user_denied"]],
          way
        )
        assert.deepStrictEqual(yield* broker.open, [], way)
      }
    })
  )

  it.scoped("is asked by a broker and by a program, however a broker is wrapped", () =>
    Effect.gen(function* () {
      const inner = yield* newBroker
      const { asked, request: own } = refusing()
      for (const [way, interactor] of wrapped(inner.interactor, "request", own)) {
        asked.length = 0
        const broker = yield* newBroker
        yield* broker.attach(interactor)
        yield* broker.interactor.request(yield* InteractionSample.request(approve))
        yield* Interactor.withInteractor(interactor)(Interactor.request(approve))
        assert.lengthOf(asked, 2, way)
      }
    })
  )

  it.scoped("keeps what is faster where it keeps the function", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded", timeouts: {} })
      const renamed = { ...channel.interactor, id: "other" }
      assert.isDefined(InteractorCall.posting.of(renamed.request))
      const broker = yield* newBroker
      yield* broker.attach(renamed)
      const asking = yield* Effect.fork(
        InteractorCall.ask(broker.interactor, yield* InteractionSample.request(approve))
      )
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened")
      yield* channel.answer(dialog.request.requestId, yes)
      assert.deepStrictEqual(yield* Fiber.join(asking), { answer: yes, by: "queue", how: "answered" })
    })
  )

  it.scoped("that cannot even be looked at leaves the question to the others", () =>
    Effect.gen(function* () {
      const broker = yield* newBroker
      const broken = {
        id: "broken",
        relay: false,
        get request(): Interactor.Service["request"] {
          throw new Error("out of order")
        }
      }
      yield* broker.attach(broken)
      const person = yield* TestInteractor.make({ script: ["y"] })
      yield* broker.attach(person.interactor)
      const answered = yield* InteractorCall.ask(broker.interactor, yield* InteractionSample.request(approve))
      assert.strictEqual(answered.by, "person")
    })
  )
})

describe("how an answer came about", () => {
  /** Every interactor of ours that answers in another way than that somebody did. */
  const ways: ReadonlyArray<
    readonly [Interactor.How, string, Effect.Effect<Interactor.Service, never, Scope.Scope>, Interaction]
  > = [
    ["auto", "AutoChannel", Effect.succeed(AutoChannel.make()), InteractionSample.samples.Confirm.interaction],
    ["yolo", "HaltChannel.yolo", Effect.succeed(HaltChannel.yolo), approve],
    [
      "timeout",
      "Interactor.withTimeout",
      Effect.map(TestInteractor.make(), ({ interactor }) =>
        Interactor.withTimeout(interactor, { permission: "1 second", onTimeout: "allow" })
      ),
      approve
    ],
    [
      "timeout",
      "QueueChannel",
      Effect.gen(function* () {
        const channel = yield* QueueChannel.make({ timeouts: { permission: "1 second", onTimeout: "allow" } })
        yield* Effect.forkScoped(Effect.forever(channel.take))
        return channel.interactor
      }),
      approve
    ],
    [
      "recheck",
      "Interactor.rechecked",
      Effect.succeed({
        id: "line",
        relay: false,
        request: (_, options) => Interactor.rechecked(options, Effect.dieMessage("it is known"))
      } satisfies Interactor.Service),
      approve
    ],
    ["model", "Interactor.make", Effect.succeed(robot("model")), InteractionSample.samples.Confirm.interaction]
  ]
  for (const [how, what, make, interaction] of ways) {
    it.scoped(`is ${how} of ${what}, through every wrapper that hands its answers on`, () =>
      Effect.gen(function* () {
        const service = yield* make
        const handing: Interactor.Service = {
          id: "handing",
          relay: false,
          request: (request, options) => Effect.tap(service.request(request, options), () => Effect.void)
        }
        const [broker, outer] = [yield* newBroker, yield* newBroker]
        yield* broker.attach(handing)
        yield* outer.attach(broker.interactor)
        const options = how === "recheck" ? { recheck: Effect.succeedSome(yes as never) } : undefined
        for (const asked of [
          service,
          handing,
          Interactor.serialized(handing),
          Interactor.withTimeout(handing, { permission: "1 day" }),
          broker.interactor,
          outer.interactor
        ]) {
          const asking = yield* Effect.fork(asks(interaction)(asked, options))
          yield* Recorder.settle
          yield* TestClock.adjust("2 seconds")
          assert.strictEqual((yield* Fiber.join(asking)).how, how)
        }
      })
    )
  }

  it.scoped("is nothing that a program's own interactor can claim", () =>
    Effect.gen(function* () {
      const given = yield* HaltChannel.yolo.request(yield* InteractionSample.request(approve))
      const claims: ReadonlyArray<object> = [
        { answer: yes, how: "recheck" },
        { answer: yes, by: "me", how: "yolo" },
        { ...given },
        Object.create(given),
        Object.assign(Object.create(Object.getPrototypeOf(given)), given),
        new Proxy(given, {})
      ]
      for (const claim of claims) {
        const service: Interactor.Service = { id: "own", relay: false, request: () => Effect.succeed(claim as never) }
        assert.strictEqual((yield* asks(approve)(service)).how, "answered")
        const broker = yield* newBroker
        yield* broker.attach(service)
        assert.strictEqual((yield* asks(approve)(broker.interactor)).how, "answered")
        assert.strictEqual((yield* Interactor.withInteractor(service)(Interactor.request(approve))).how, "answered")
      }
    })
  )

  it.scoped("is told with its author: the one named, else the interactor", () =>
    Effect.gen(function* () {
      const own = (by?: string): Interactor.Service => ({
        id: "own",
        relay: false,
        request: () => Effect.succeed({ answer: yes as never, ...(by === undefined ? {} : { by }) })
      })
      assert.deepStrictEqual(yield* asks(approve)(own()), { answer: yes, by: "own", how: "answered" })
      assert.deepStrictEqual(yield* asks(approve)(own("ada")), { answer: yes, by: "ada", how: "answered" })
      const broker = yield* newBroker
      yield* broker.attach(own())
      assert.deepStrictEqual(yield* asks(approve)(broker.interactor), { answer: yes, by: "own", how: "answered" })
      const kit = yield* GateKit.make({ interactor: own() })
      assert.strictEqual((yield* kit.check("deploy", { n: 1 }))._tag, "Allowed")
      assert.deepInclude(kit.resolved()[0], { by: "own", method: "user_approved" })
    })
  )
})

describe("what goes with a request", () => {
  it.scoped("reaches every interactor, whoever passes it on: a recheck, and the votes that were given", () =>
    Effect.gen(function* () {
      const votes: ReadonlyArray<Interactor.Vote<Interaction>> = [{ answer: yes, by: "ada" }]
      const seen: Array<unknown> = []
      const counting: Interactor.Service = {
        id: "counting",
        relay: false,
        request: <I extends Interaction>(_: InteractionRequest<I>, options?: Interactor.Options<I>) => {
          seen.push(options?.votes)
          return Effect.succeed({ answer: yes as never })
        }
      }
      const broker = yield* newBroker
      yield* broker.attach(counting)
      const timed = Interactor.withTimeout(counting, { permission: "1 second" })
      for (const service of [counting, Interactor.serialized(counting), timed, broker.interactor]) {
        yield* asks(approve)(service, { votes })
      }
      assert.deepStrictEqual(seen, [votes, votes, votes, votes])
      yield* asks(approve)(broker.interactor)
      assert.isUndefined(seen.at(-1))
    })
  )
})
